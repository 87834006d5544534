# Sourced by demo.sh, test.sh and check.sh: installs the programs of a headless desktop, and makes our Python in .venv.
# As root on a system with apt it installs missing packages; otherwise it prints the command.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
PATH=$PATH:/usr/sbin:/sbin # a user's PATH on Debian lacks them
warn() { printf '%s\n' "$*" >&2; }

run() { # run DESCRIPTION ADVICE COMMAND... : prints the description; after a failure the last line of output and the advice
    what=$1 advice=$2 code=0
    shift 2
    warn "$what"
    log=$(mktemp) || return 1 # not a pipe: a service that apt starts would keep it open
    "$@" >"$log" 2>&1 </dev/null || code=1
    [ $code = 0 ] || warn "failed ($( (grep -E '^E(: |RROR)' "$log" || cat "$log") | tail -n 1)); $advice"
    rm -f "$log"
    return $code
}

# programs ------------------------------------------------------------------------------------------------------------

find_convert() ( # prints the path of ImageMagick's convert; other programs have the same name
    set -f
    IFS=:
    for folder in $PATH; do
        for name in convert magick; do
            "$folder/$name" -version 2>/dev/null </dev/null | grep -q ImageMagick && echo "$folder/$name" && exit
        done
    done
    exit 1
)

is_there() { # is_there NAME : succeeds if the program, or the file at this path, exists
    case $1 in
    /*) [ -e "$1" ] ;;
    convert) find_convert >/dev/null ;;
    python3-venv) find_python >/dev/null || imports_all ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing_packages() { # missing_packages NAME:PACKAGE... : prints the packages of missing programs
    for pair in "$@"; do is_there "${pair%%:*}" || echo "${pair#*:}"; done | sort -u | tr '\n' ' '
}

apt() { # notices a lost network soon; waits for another apt that is running
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

need_desktop() { # need_desktop [NAME:PACKAGE...] : installs a headless desktop, our X11 programs, and these
    set -- Xvfb:xvfb openbox:openbox xcompmgr:xcompmgr dbus-daemon:dbus-daemon wish:tk \
        xwininfo:x11-utils xprop:x11-utils xdpyinfo:x11-utils maim:maim xdotool:xdotool xclip:xclip convert:imagemagick tesseract:tesseract-ocr python3-venv:python3-venv \
        /usr/share/fonts/truetype/dejavu:fonts-dejavu-core "$@"
    wanted=$(missing_packages "$@")
    # shellcheck disable=SC2086
    [ -z "$wanted" ] || install_packages $wanted || return 1
    wanted=$(missing_packages "$@")
    [ -z "$wanted" ] || { warn "still missing: $wanted" && return 1; }
}

# our own Python ------------------------------------------------------------------------------------------------------

find_python() { # prints a Python >= 3.10 with ensurepip, which Debian keeps in python3-venv
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 /usr/bin/python3; do
        "$name" -I -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1 && echo "$name" && return
    done
    return 1
}

imports_all() { # imports_all PACKAGE... : succeeds if .venv has our package and these
    "$venv/bin/python" -I -c 'import sys, pip, mcp.server, mcp.client.stdio, peekaboo_min
for name in sys.argv[1:]: __import__(name)' "$@" >/dev/null 2>&1
}

sources() { # sources PACKAGE... : prints a checksum of everything to be installed
    (cd "$root" && echo "$@" && find pyproject.toml README.md peekaboo_min -type f ! -name '*.pyc' -exec cksum {} + | sort) | cksum
}

make_environment() { # make_environment PACKAGE... : makes .venv, and puts ImageMagick's convert first on PATH
    install_into_environment "$@" || return 1
    convert=$(find_convert) || return 0
    mkdir -p "$venv/programs" && ln -sf "$convert" "$venv/programs/convert" && PATH=$venv/programs:$PATH
}

install_into_environment() { # installs the current package and these; replaces a broken environment
    [ "$(cat "$venv/installed-from" 2>/dev/null)" = "$(sources "$@")" ] && imports_all "$@" && return 0
    if ! imports_all; then
        find_python >/dev/null || install_packages python3-venv || return 1
        python=$(find_python) || { warn "Python 3.10 or newer with its module venv is needed, and none was found" && return 1; }
        rm -rf "$venv"
        run "making $venv" "check that its folder is writable, then run this again" "$python" -m venv "$venv" || return 1
    fi
    rm -rf "$root/build" "$venv/installed-from" # an older build must not be included
    # not editable, which would cost 12 ms at each start of Python
    run "installing Python packages" "check the network connection, then run this again" "$venv/bin/python" -m pip install -q \
        --disable-pip-version-check --retries "${PIP_RETRIES:-1}" --timeout "${PIP_DEFAULT_TIMEOUT:-5}" "$root" "$@" || return 1
    sources "$@" >"$venv/installed-from"
}
