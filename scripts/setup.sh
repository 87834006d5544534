# Read by demo.sh, test.sh and check.sh: the programs that a headless desktop needs, and our own Python in .venv.
# As root, where apt is there, what is missing is installed; otherwise one line names all of it.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
PATH=$PATH:/usr/sbin:/sbin # a user's PATH on Debian lacks them
warn() { printf '%s\n' "$*" >&2; }

run() { # run WHAT ADVICE COMMAND... : says what is done; where it fails, its last line, and the advice
    what=$1 advice=$2 code=0
    shift 2
    warn "$what"
    log=$(mktemp) || return 1 # no pipe: a service that apt starts would hold it open
    "$@" >"$log" 2>&1 </dev/null || code=1
    [ $code = 0 ] || warn "failed ($( (grep -E '^E(: |RROR)' "$log" || cat "$log") | tail -n 1)); $advice"
    rm -f "$log"
    return $code
}

# programs ------------------------------------------------------------------------------------------------------------

find_convert() ( # prints the path of ImageMagick's: other programs have the name, too
    set -f
    IFS=:
    for folder in $PATH; do
        for name in convert magick; do
            "$folder/$name" -version 2>/dev/null </dev/null | grep -q ImageMagick && echo "$folder/$name" && exit
        done
    done
    exit 1
)

is_there() { # is_there NAME : a program, or a file by its path
    case $1 in
    /*) [ -e "$1" ] ;;
    convert) find_convert >/dev/null ;;
    python3-venv) find_python >/dev/null || imports_all ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing_packages() { # missing_packages NAME:PACKAGE... : prints the packages of those that are not there
    for pair in "$@"; do is_there "${pair%%:*}" || echo "${pair#*:}"; done | sort -u | tr '\n' ' '
}

apt() { # a lost network is noticed soon; another apt that runs just now is waited for
    DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o Acquire::Retries=0 -o Acquire::http::Timeout=8 \
        -o Acquire::https::Timeout=8 -o APT::Update::Error-Mode=any -o DPkg::Lock::Timeout=60 "$@"
}

apt_install() { apt install --no-install-recommends "$@" || { apt update && apt install --no-install-recommends "$@"; }; }

install_packages() { # install_packages PACKAGE... : Debian's packages
    line="apt-get install --no-install-recommends $*"
    if ! command -v apt-get >/dev/null 2>&1; then
        warn "please install these Debian packages, or what your system calls them: $*"
    elif [ "$(id -u)" != 0 ]; then
        warn "please run: sudo $line"
    else
        run "installing $*" "check the network connection, then run: $line" apt_install "$@" && return 0
    fi
    return 1
}

need_desktop() { # need_desktop [NAME:PACKAGE...] : what a headless desktop and our X11 side need, and these
    set -- Xvfb:xvfb openbox:openbox xcompmgr:xcompmgr wish:tk xwininfo:x11-utils xprop:x11-utils xdpyinfo:x11-utils maim:maim \
        xdotool:xdotool xclip:xclip convert:imagemagick tesseract:tesseract-ocr python3-venv:python3-venv \
        /usr/share/fonts/truetype/dejavu:fonts-dejavu-core "$@"
    wanted=$(missing_packages "$@")
    # shellcheck disable=SC2086
    [ -z "$wanted" ] || install_packages $wanted || return 1
    wanted=$(missing_packages "$@")
    [ -z "$wanted" ] || { warn "still missing: $wanted" && return 1; }
}

# our own Python ------------------------------------------------------------------------------------------------------

find_python() { # prints one that mcp takes and that can make an environment: Debian keeps ensurepip in python3-venv
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3; do
        "$name" -I -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 && echo "$name" && return
    done
    return 1
}

imports_all() { # imports_all PACKAGE... : whether .venv has ours and these
    "$venv/bin/python" -I -c 'import sys, pip, mcp.server, mcp.client.stdio, peekaboo_min
for name in sys.argv[1:]: __import__(name)' "$@" >/dev/null 2>&1
}

sources() { # sources PACKAGE... : a line that changes with what is to be installed
    (cd "$root" && echo "$@" && find pyproject.toml README.md peekaboo_min -type f ! -name '*.pyc' -exec cksum {} + | sort) | cksum
}

make_environment() { # make_environment PACKAGE... : .venv, see below; and ImageMagick's convert first on PATH, for all that we start
    install_into_environment "$@" || return 1
    convert=$(find_convert) || return 0
    mkdir -p "$venv/programs" && ln -sf "$convert" "$venv/programs/convert" && PATH=$venv/programs:$PATH
}

install_into_environment() { # our package as it is now and these; an environment that is broken is made anew
    [ "$(cat "$venv/installed-from" 2>/dev/null)" = "$(sources "$@")" ] && imports_all "$@" && return 0
    if ! imports_all; then
        find_python >/dev/null || install_packages python3-venv || return 1
        python=$(find_python) || { warn "Python 3.10 or newer with its module venv is needed, and none was found" && return 1; }
        rm -rf "$venv"
        run "making $venv" "check that its folder is writable, then run this again" "$python" -m venv "$venv" || return 1
    fi
    rm -rf "$root/build" "$venv/installed-from" # what an older build left must not come along
    # not editable: that would cost each start of Python 12 ms
    run "installing Python packages" "check the network connection, then run this again" "$venv/bin/python" -m pip install -q \
        --disable-pip-version-check --retries "${PIP_RETRIES:-1}" --timeout "${PIP_DEFAULT_TIMEOUT:-5}" "$root" "$@" || return 1
    sources "$@" >"$venv/installed-from"
}
