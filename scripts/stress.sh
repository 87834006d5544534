#!/bin/sh
# Install what the stress job needs, and run it: sh scripts/stress.sh --trials 20 --class typing (or --help)
set -eu
. "$(dirname "$0")/setup.sh"

need_desktop xhost:x11-xserver-utils xmodmap:x11-xserver-utils python3:python3 \
    /usr/lib/python3/dist-packages/gi:python3-gi \
    "/usr/lib/$(uname -m)-linux-gnu/girepository-1.0/Gtk-3.0.typelib:gir1.2-gtk-3.0"
make_environment pytest
cd "$root"
PYTHONPATH=.:tests/support exec "$venv/bin/python" scripts/stress "$@"
