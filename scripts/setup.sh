# Read by demo.sh and test.sh: an environment of our own in .venv, and the programs that a headless Linux needs.
# Where root and apt are there, what is missing is installed; otherwise the one line to run is said.

root=$(cd "$(dirname "$0")/.." && pwd)
venv=$root/.venv
says() { printf '%s\n' "$*" >&2; }

install_packages() { # install_packages PACKAGE... : Debian's packages
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        says "installing $*"
        export DEBIAN_FRONTEND=noninteractive
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
            { apt-get update -qq >/dev/null && apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
    elif command -v apt-get >/dev/null 2>&1; then
        says "please run: sudo apt-get install --no-install-recommends $*"
        return 1
    else
        says "these are missing and this script only knows apt: $*"
        return 1
    fi
}

need_programs() { # need_programs PROGRAM:PACKAGE... : install the packages of the programs that are missing
    wanted=
    for pair in "$@"; do
        command -v "${pair%%:*}" >/dev/null 2>&1 || wanted="$wanted ${pair#*:}"
    done
    # shellcheck disable=SC2086
    [ -z "$wanted" ] || install_packages $wanted
}

need_desktop() { # need_desktop [PROGRAM:PACKAGE...] : what a headless desktop and our X11 side need, and these
    need_programs Xvfb:xvfb openbox:openbox xcompmgr:xcompmgr wish:tk xwininfo:x11-utils maim:maim xdotool:xdotool \
        xclip:xclip convert:imagemagick tesseract:tesseract-ocr "$@" || return 1
    [ -d /usr/share/fonts/truetype/dejavu ] || install_packages fonts-dejavu-core
}

find_python() { # the first Python that mcp takes
    for name in python3 python3.13 python3.12 python3.11 python3.10 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
            "$name" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    says "Python 3.10 or newer is needed, and none was found"
    return 1
}

make_environment() { # make_environment PACKAGE... : .venv with our package and these
    if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        python=$(find_python) || return 1
        rm -rf "$venv"
        if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
            # Debian keeps what venv needs in a package of its own
            install_packages python3-venv || return 1
            "$python" -m venv --clear "$venv"
        fi
    fi
    # not editable: that would cost each start of Python 12 ms; what an older build left must not come along
    rm -rf "$root/build"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check "$root" "$@"
}
