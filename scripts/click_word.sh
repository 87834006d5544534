#!/bin/sh
# Click a word that an app's front window shows, found by this machine's own text recognition: no model, no network.
#   scripts/click_word.sh TextEdit "New document"     says where it clicked, and whether the window changed
set -eu
[ $# -eq 2 ] || { echo "usage: $0 APP TEXT" >&2; exit 2; }
app=$1
text=$2
here=$(cd "$(dirname "$0")" && pwd)
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

# the front window's id, then the best place's x, y and screenshot, out of the answers' data
first_window='print(*[one["window_id"] for one in data["windows"][:1]])'
best_place='[print(one["x"], one["y"], "--screenshot-id", data["screenshot_id"]) for one in data["found"][:1]]'
pick() {
    python3 -c "import json, sys
answer = json.load(sys.stdin)
if not answer['success']: sys.exit(answer['error']['message'])
data = answer['data']
$1"
}

window=$(peekaboo windows --app "$app" --json | pick "$first_window")
[ -n "$window" ] || { echo "$app has no window on the screen" >&2; exit 1; }
place=$(peekaboo find-text --json -- "$window" "$text" | pick "$best_place")
[ -n "$place" ] || { echo "window $window does not show: $text" >&2; exit 1; }
# shellcheck disable=SC2086  # three words of our own
peekaboo click "$window" $place --verify
