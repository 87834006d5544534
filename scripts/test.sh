#!/bin/sh
# The tests, with all that they need. With CI set a missing tool is a failure; else its tests are skipped with the reason.
set -eu
. "$(dirname "$0")/setup.sh"

if [ "$(uname)" = Linux ]; then
    # with the applications that tests/automation/test_real_applications.py acts on
    need_desktop node:nodejs ps:procps zenity:zenity mousepad:mousepad galculator:galculator xterm:xterm i3:i3-wm \
        xfwm4:xfwm4 parallel:parallel sshd:openssh-server zsh:zsh \
        dbus-daemon:dbus-daemon xdg-mime:xdg-utils gtk-launch:libgtk-3-bin /usr/share/mime/packages:shared-mime-info \
        /usr/lib/python3/dist-packages/gi:python3-gi /usr/libexec/at-spi-bus-launcher:at-spi2-core || [ -z "${CI:-}" ]
    # a browser's tests are skipped where apt has none
    [ "$(id -u)" != 0 ] || command -v chromium >/dev/null || command -v google-chrome >/dev/null ||
        install_packages chromium || true
fi
make_environment pytest
cd "$root"
if [ $# -gt 0 ]; then
    exec "$venv/bin/python" -m pytest "$@" # sh scripts/test.sh tests/automation/test_click_and_type.py -k click
fi
exec "$venv/bin/python" tests/support/side_by_side.py
