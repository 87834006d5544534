#!/bin/sh
# Run one command on a Linux desktop of its own, without a screen: Xvfb, a compositor and openbox. All of it ends with
# the command. It is the entry point of scripts/Containerfile; SCREEN chooses the size.
#   SCREEN=1920x1080x24 scripts/with_desktop.sh sh -c 'xterm & sleep 1; peekaboo-min image --path screen.png'
set -eu
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARGUMENT...]" >&2; exit 2; }
work=$(mktemp -d)
pids=
stop() {
    trap - EXIT HUP INT TERM
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2>/dev/null || :
    wait
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# the server takes a free number and writes it once it listens
mkfifo "$work/number"
Xvfb -displayfd 3 -screen 0 "${SCREEN:-1280x800x24}" -nolisten tcp -noreset 3>"$work/number" </dev/null >"$work/log" 2>&1 &
pids=$!
number=$(timeout 20 head -n 1 "$work/number") && [ -n "$number" ] || {
    echo "$0: Xvfb did not start: $(tail -n 1 "$work/log")" >&2
    exit 1
}
export DISPLAY=":$number"
# GTK 4.18's default renderers (Vulkan, OpenGL) often draw a black window on Xvfb
export GSK_RENDERER="${GSK_RENDERER:-cairo}"
xcompmgr -a </dev/null >/dev/null 2>&1 &
pids="$pids $!"
# openbox announces itself before it handles windows, and a window opened in between stays unmapped: wait for its
# startup command, like headless.py
ready=_PEEKABOO_READY
openbox --startup "xprop -root -f $ready 8s -set $ready yes" </dev/null >/dev/null 2>&1 &
pids="$pids $!"
looks=0
until xprop -root "$ready" 2>/dev/null | grep -q yes; do
    looks=$((looks + 1))
    { [ $looks -lt 200 ] && kill -0 "$!" 2>/dev/null; } || {
        echo "$0: openbox did not start; it and xprop (package x11-utils) are needed" >&2
        exit 1
    }
    sleep 0.1
done
# in the background, so that a signal ends the desktop at once, but with our stdin, which MCP speaks over
exec 4<&0
"$@" <&4 4<&- &
command=$!
pids="$command $pids"
code=0
wait "$command" || code=$?
exit "$code"
