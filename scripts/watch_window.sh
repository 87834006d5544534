#!/bin/sh
# Watch an app's front window: a line and a screenshot each time that it looks different, until it is closed.
#   scripts/watch_window.sh Mail                       leaves change_001.png, change_002.png, ... in this folder
#   scripts/watch_window.sh Terminal 5 | head -1       looks every 5 seconds, ends at the first change
# A blinking caret is a change, too: watch a window that nobody types into.
set -eu
[ $# -eq 1 ] || [ $# -eq 2 ] || { echo "usage: $0 APP [SECONDS]" >&2; exit 2; }
app=$1
every=${2:-2}
here=$(cd "$(dirname "$0")" && pwd)
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

first_window='import json, sys
answer = json.load(sys.stdin)
if not answer["success"]: sys.exit(answer["error"]["message"])
print(*[one["window_id"] for one in answer["data"]["windows"][:1]])'
window=$(peekaboo windows --app "$app" --json | python3 -c "$first_window")
[ -n "$window" ] || { echo "$app has no window on the screen" >&2; exit 1; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' HUP INT TERM # else dash ends without the trap of EXIT
peekaboo screenshot "$window" --path "$folder/before.png" >/dev/null
echo "watching window $window of $app"
count=0
while sleep "$every"; do
    # 15: there is no such window any more
    peekaboo screenshot "$window" --path "$folder/now.png" >/dev/null || { [ $? -eq 15 ] && exit 0; continue; }
    cmp -s "$folder/before.png" "$folder/now.png" && continue
    count=$((count + 1))
    saved=$(printf 'change_%03d.png' "$count")
    cp "$folder/now.png" "$saved"
    mv "$folder/now.png" "$folder/before.png"
    echo "$(date +%H:%M:%S) window $window changed: $saved"
done
