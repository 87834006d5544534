#!/bin/sh
# Watch a window, by its name or id: print a line and save a screenshot each time it changes, until it is closed.
#   scripts/watch_window.sh Mail                       leaves change_001.png, change_002.png, ... in this folder
#   scripts/watch_window.sh Terminal 5 | head -1       looks every 5 seconds, ends at the first change
# A blinking caret counts as a change: watch a window without one.
set -eu
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: $0 WINDOW [SECONDS]" >&2; exit 2; }
window=$1
every=${2:-2}
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/peekaboo.py" ] || { echo "$0: copy it into the folder of peekaboo.py" >&2; exit 2; }
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM # without it, dash skips the EXIT trap
peekaboo screenshot "$window" --path "$folder/before.png" >/dev/null
echo "watching $window"
count=0
while sleep "$every"; do
    # 15: the window is gone
    peekaboo screenshot "$window" --path "$folder/now.png" >/dev/null 2>&1 || { [ $? -eq 15 ] && exit 0; continue; }
    cmp -s "$folder/before.png" "$folder/now.png" && continue
    count=$((count + 1))
    saved=$(printf 'change_%03d.png' "$count")
    cp "$folder/now.png" "$saved"
    mv "$folder/now.png" "$folder/before.png"
    echo "$(date +%H:%M:%S) $window changed: $saved"
done
