# Read by demo.sh and test.sh: an environment of our own in .venv, and the programs that a headless Linux needs.
# As root, where apt is there, what is missing is installed; otherwise one line names all of it, once.
# A script that needs both calls need_desktop first: it looks for what make_environment needs, too.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
has_complained= # 1 once what is missing was printed
reached= # lines `NAME PATH`: programs that their names alone do not lead to
system_folders=/usr/bin:/usr/sbin:/bin:/sbin # searched after PATH
warn() { printf '%s\n' "$*" >&2; }

# programs by what they answer ----------------------------------------------------------------------------------------

is_the_program() { # is_the_program NAME PATH : whether that file is the program meant; peekaboo_min/system/programs.py asks the same
    case $1 in
    convert | magick) set -- "$2" -version '^Version: ImageMagick ' ;;
    maim) set -- "$2" --version '^v[0-9]+\.[0-9]' ;;
    node) set -- "$2" --version '^v[0-9]+\.[0-9]+\.[0-9]' ;;
    openbox) set -- "$2" --version '^Openbox [0-9]' ;;
    tesseract) set -- "$2" --version '^tesseract v?[0-9]' ;;
    xclip) set -- "$2" -version '^xclip version ' ;;
    xdotool) set -- "$2" --version '^xdotool version ' ;;
    xdpyinfo) set -- "$2" -version '^xdpyinfo [0-9]' ;;
    xprop) set -- "$2" -version '^xprop [0-9]|xprop: +unable to open display' ;;
    xwininfo) set -- "$2" -version '^xwininfo [0-9]' ;;
    *) return 0 ;; # has no version to ask for
    esac
    # into a file: a pipe would be held open by what a stranger leaves behind
    answer=$(mktemp) || return 1
    limit=
    command -v timeout >/dev/null 2>&1 && limit='timeout -k 1 3'
    # what it printed decides; bash itself would say that it was killed
    { DISPLAY='' $limit "$1" "$2" </dev/null >"$answer" 2>&1 || :; } 2>/dev/null
    is_it=0
    grep -Eq -e "$3" "$answer" || is_it=1
    rm -f "$answer"
    return $is_it
}

find_the_program() { # find_the_program NAME : prints the first file of that name along PATH that is the program meant
    (
        set -f
        IFS=:
        for folder in $PATH:$system_folders; do
            IFS=' '
            path=$folder/$1
            case $path in /?*/*) ;; *) path=$PWD/$path ;; esac
            if [ -f "$path" ] && [ -x "$path" ] && is_the_program "$1" "$path"; then
                printf '%s\n' "$path"
                exit 0
            fi
        done
        exit 1
    )
}

make_reachable() { # make_reachable NAME : make this name lead to the program meant; 1 where that is not there
    found=$(find_the_program "$1") || { [ "$1" = convert ] && found=$(find_the_program magick); } || return 1
    [ "$(command -v "$1" 2>/dev/null)" = "$found" ] || reached="$reached$1 $found
"
}

link_programs() { # put what was reached in another way than by its name first on PATH, for all that we start
    [ -n "$reached" ] || return 0
    mkdir -p "$venv/programs" || return 1
    printf '%s' "$reached" | while read -r name path; do ln -sf "$path" "$venv/programs/$name" || exit 1; done || return 1
    case :$PATH: in *":$venv/programs:"*) ;; *) PATH=$venv/programs:$PATH ;; esac
}

look_for() { # look_for PROGRAM:PACKAGE... : sets absent to those that are missing, wanted to their packages; /... is a file
    absent='' wanted=''
    for pair in "$@"; do
        name=${pair%%:*}
        case $name in
        /*) [ ! -e "$name" ] || continue ;;
        *) ! make_reachable "$name" || continue ;;
        esac
        absent="$absent $name"
        case "$wanted " in *" ${pair#*:} "*) ;; *) wanted="$wanted ${pair#*:}" ;; esac
    done
}

# installing ----------------------------------------------------------------------------------------------------------

run_with_progress() { # run_with_progress WHAT COMMAND... : run it, all that it prints into $log, with a line every 10 s until it ends
    what=$1
    shift
    (
        seconds=0
        # not longer than this script; the sleep keeps nothing of ours open
        while sleep 10 </dev/null >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
            seconds=$((seconds + 10))
            warn "still $what ($seconds s)"
        done
    ) &
    ticker=$!
    code=0
    "$@" >>"$log" 2>&1 </dev/null || code=$?
    kill $ticker 2>/dev/null || :
    wait $ticker 2>/dev/null || :
    return $code
}

apt() { # a lost network is noticed soon; another apt that runs just now is waited for
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=0 -o Acquire::http::Timeout=8 \
        -o Acquire::https::Timeout=8 -o APT::Update::Error-Mode=any -o DPkg::Lock::Timeout=60 "$@"
}

install_packages() { # install_packages PACKAGE... : Debian's packages
    line="apt-get install --no-install-recommends $*"
    if ! command -v apt-get >/dev/null 2>&1; then
        warn "these Debian packages, or what your system calls them, are missing: $*; install them, then run this again"
    elif [ "$(id -u)" != 0 ]; then
        warn "please run: sudo $line"
    else
        warn "installing $*"
        log=$(mktemp) || return 1
        if run_with_progress "installing" apt install --no-install-recommends "$@" || {
            run_with_progress "fetching the lists of packages" apt update &&
                run_with_progress "installing" apt install --no-install-recommends "$@"
        }; then
            rm -f "$log"
            return 0
        fi
        warn "apt-get could not install this ($(last_error '^E: ')); check the network connection, then run: $line"
        rm -f "$log"
    fi
    has_complained=1
    return 1
}

last_error() { # last_error PATTERN : the last line of $log that matches, else its last line
    { grep -e "$1" "$log" || cat "$log"; } | tail -n 1
}

need_desktop() { # need_desktop [PROGRAM:PACKAGE...] : what a headless desktop and our X11 side need, and these
    set -- Xvfb:xvfb openbox:openbox xcompmgr:xcompmgr wish:tk xwininfo:x11-utils xprop:x11-utils xdpyinfo:x11-utils maim:maim \
        xdotool:xdotool xclip:xclip convert:imagemagick tesseract:tesseract-ocr \
        /usr/share/fonts/truetype/dejavu:fonts-dejavu-core "$@"
    look_for "$@"
    has_environment || find_python || wanted="$wanted $venv_packages"
    if [ -n "$wanted" ]; then
        # shellcheck disable=SC2086
        install_packages $wanted || return 1
        look_for "$@"
        if [ -n "$absent" ]; then
            warn "still missing, or another program of that name:$absent; please run: sudo apt-get install --reinstall$wanted"
            has_complained=1
            return 1
        fi
    fi
    link_programs
}

# our own Python ------------------------------------------------------------------------------------------------------

find_python() { # sets python to one that mcp takes and that can make an environment; else 1, and venv_packages
    python='' venv_packages='python3 python3-venv'
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python "${system_folders%%:*}/python3"; do
        "$name" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 || continue
        # Debian keeps ensurepip in a package of its own
        if "$name" -I -c 'import ensurepip, venv' >/dev/null 2>&1; then
            python=$name
            return 0
        fi
        case $name in python3.*) package=$name-venv ;; *) package=python3-venv ;; esac
        [ -n "$python" ] || python=$name venv_packages=$package
    done
    return 1
}

has_environment() { # whether .venv is whole, and was made for this folder
    "$venv/bin/python" -I -c 'import sys, pip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 &&
        grep -qF "$venv/bin/python" "$venv/bin/pip" 2>/dev/null
}

make_venv() { # an empty .venv
    if ! find_python; then
        [ -z "$has_complained" ] || return 1
        # shellcheck disable=SC2086
        install_packages $venv_packages || return 1
        find_python || {
            warn "Python 3.10 or newer with its module venv is needed, and none was found; install one, then run this again"
            return 1
        }
    fi
    rm -rf "$venv" 2>/dev/null
    log=$(mktemp) || return 1
    if ! run_with_progress "making $venv" "$python" -m venv "$venv"; then
        warn "$venv could not be made ($(last_error Error)); remove it, check that its folder is writable, then run this again"
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

sources() { # sources PACKAGE... : a line that changes with what is to be installed
    (cd "$root" && echo "$@" && find pyproject.toml README.md peekaboo_min -type f ! -name '*.pyc' -exec cksum {} + | sort) | cksum
}

is_installed() { # is_installed PACKAGE... : our package as it is now, and these
    [ "$(cat "$venv/installed-from" 2>/dev/null)" = "$(sources "$@")" ] && imports_all "$@"
}

imports_all() {
    "$venv/bin/python" -I -c 'import sys, mcp.server, mcp.client.stdio, peekaboo_min
for name in sys.argv[1:]: __import__(name)' "$@" >/dev/null 2>&1
}

pip_install() { # not editable: that would cost each start of Python 12 ms; what an older build left must not come along
    rm -rf "$root/build"
    PIP_RETRIES=${PIP_RETRIES:-1} PIP_DEFAULT_TIMEOUT=${PIP_DEFAULT_TIMEOUT:-5} run_with_progress "installing Python packages" \
        "$venv/bin/python" -m pip install -q --disable-pip-version-check "$root" "$@"
}

make_environment() { # make_environment PACKAGE... : .venv with our package and these, each imported by its name
    has_environment || make_venv || return 1
    if ! is_installed "$@"; then
        log=$(mktemp) || return 1
        rm -f "$venv/installed-from"
        # what an interrupted installation left may look installed: then once more, into an empty one
        if ! { pip_install "$@" && { imports_all "$@" || { make_venv && log=$(mktemp) && pip_install "$@" && imports_all "$@"; }; }; }; then
            warn "pip could not install peekaboo_min${*:+ and $*} ($(last_error '^ERROR')); check the network connection, then run this again"
            rm -f "$log"
            return 1
        fi
        sources "$@" >"$venv/installed-from"
        rm -f "$log"
    fi
    link_programs
}
