#!/bin/sh
# Watch a window, by its name or id: a line and a screenshot each time that it looks different, until it is closed.
#   scripts/watch_window.sh Mail                       leaves change_001.png, change_002.png, ... in this folder
#   scripts/watch_window.sh Terminal 5 | head -1       looks every 5 seconds, ends at the first change
# A blinking caret is a change, too: watch a window that nobody types into.
set -eu
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: $0 WINDOW [SECONDS]" >&2; exit 2; }
window=$1
every=${2:-2}
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/peekaboo.py" ] || { echo "$0: copy it into the folder of peekaboo.py" >&2; exit 2; }
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM # else dash ends without the trap of EXIT
peekaboo screenshot "$window" --path "$folder/before.png" >/dev/null
echo "watching $window"
count=0
while sleep "$every"; do
    # 15: there is no such window any more
    peekaboo screenshot "$window" --path "$folder/now.png" >/dev/null 2>&1 || { [ $? -eq 15 ] && exit 0; continue; }
    cmp -s "$folder/before.png" "$folder/now.png" && continue
    count=$((count + 1))
    saved=$(printf 'change_%03d.png' "$count")
    cp "$folder/now.png" "$saved"
    mv "$folder/now.png" "$folder/before.png"
    echo "$(date +%H:%M:%S) $window changed: $saved"
done
