#!/bin/sh
# Make the README's animation: peekaboo-min operates the editor mousepad by its labels, a screenshot after each step.
#   scripts/with_desktop.sh scripts/film.sh scripts/film.gif
# needs mousepad, tesseract and ImageMagick; the screenshots are what peekaboo-min captured, the captions its commands
set -eu
[ $# -eq 1 ] || { echo "usage: $0 FILE.gif" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
editor=
stop() {
    [ -z "$editor" ] || kill "$editor" 2>/dev/null || :
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' HUP INT TERM # else dash ends without the trap of EXIT
peekaboo() { python3 "$here/peekaboo.py" "$@"; }
number=10
frame() { # CAPTION: the screen, with the command that led there below it
    number=$((number + 1))
    peekaboo wait-for --window-id "$window" --still >/dev/null || : # a blinking caret never rests
    peekaboo image --path "$work/screen$number.png" >/dev/null
    convert "$work/screen$number.png" -gravity south -background '#15191c' -splice 0x26 \
        -fill '#e4e8ea' -font DejaVu-Sans-Mono -pointsize 13 -annotate +0+6 "$1" "$work/frame$number.png"
}

printf 'Visitors of today\n\n' >"$work/guests.txt"
# its own settings and no session bus: nothing of the person who makes it shows
export GSETTINGS_BACKEND=memory DBUS_SESSION_BUS_ADDRESS=unix:path=/dev/null NO_AT_BRIDGE=1 HOME="$work"
mousepad "$work/guests.txt" >/dev/null 2>&1 &
editor=$!
window=$(peekaboo wait-for --app Mousepad --title guests.txt --timeout-s 40 --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["window_id"])')
frame "peekaboo-min windows"
peekaboo press "$window" ctrl+end
peekaboo type "$window" "Zoë Müller, Łódź
Αθηνά, Αθήνα
Олена, Київ"
frame 'peekaboo-min type $W "Zoë Müller, Łódź ..."'
peekaboo click-text "$window" Search
frame 'peekaboo-min click-text $W Search'
peekaboo press "$window" escape
peekaboo press "$window" ctrl+r
replace=$(peekaboo wait-for --app Mousepad --title Replace --timeout-s 20 --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["window_id"])')
peekaboo type "$replace" --replace today
peekaboo press "$replace" tab
peekaboo type "$replace" "this week"
frame 'peekaboo-min type $R today; press $R tab; type $R "this week"'
peekaboo click-text "$replace" "Replace all in:"
frame 'peekaboo-min click-text $R "Replace all in:"'
peekaboo click-text "$replace" "Replace All"
peekaboo press "$replace" escape
peekaboo press "$window" ctrl+s
frame 'peekaboo-min click-text $R "Replace All"; press $W ctrl+s'
grep -q 'Visitors of this week' "$work/guests.txt" || { echo "$0: the editor did not save the change" >&2; exit 1; }
convert -delay 180 -loop 0 "$work"/frame*.png +dither -colors 48 -layers optimize "$1"
