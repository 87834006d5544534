#!/bin/sh
# Install everything that the tests need, and run them. With CI set, a missing tool is a failure; otherwise its tests are skipped.
set -eu
. "$(dirname "$0")/setup.sh"

if [ "$(uname)" = Linux ]; then
    # every program that tests request with need(), in tests/support/worlds.py
    need_desktop node:nodejs ps:procps zenity:zenity mousepad:mousepad galculator:galculator xterm:xterm i3:i3-wm \
        xfwm4:xfwm4 i3lock:i3lock wmctrl:wmctrl xmodmap:x11-xserver-utils xhost:x11-xserver-utils \
        setxkbmap:x11-xkb-utils xmessage:x11-utils Xephyr:xserver-xephyr parallel:parallel sshd:openssh-server ssh:openssh-client ssh-keygen:openssh-client bash:bash zsh:zsh \
        python3:python3 xdg-mime:xdg-utils gtk-launch:libgtk-3-bin \
        /usr/lib/python3/dist-packages/gi:python3-gi \
        /usr/lib/$(uname -m)-linux-gnu/girepository-1.0/Atspi-2.0.typelib:gir1.2-atspi-2.0 \
        /usr/lib/$(uname -m)-linux-gnu/girepository-1.0/Gtk-3.0.typelib:gir1.2-gtk-3.0 \
        /usr/share/tesseract-ocr/5/tessdata/deu.traineddata:tesseract-ocr-deu \
        /usr/libexec/at-spi-bus-launcher:at-spi2-core || [ -z "${CI:-}" ]
    # tests with a browser are skipped if apt has none
    [ "$(id -u)" != 0 ] || command -v chromium >/dev/null || command -v google-chrome >/dev/null ||
        install_packages chromium || true
    # JavaScriptCore runs the scripts for macOS once
    [ "$(id -u)" != 0 ] || command -v jsc >/dev/null || install_packages libjavascriptcoregtk-4.0-bin || true
fi
make_environment pytest
cd "$root"
if [ $# -gt 0 ]; then
    exec "$venv/bin/python" -m pytest "$@" # sh scripts/test.sh tests/automation/test_click_and_type.py -k click
fi
exec "$venv/bin/python" tests/support/side_by_side.py
