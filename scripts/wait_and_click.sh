#!/bin/sh
# Wait until an app shows a text, then click it: for a button that comes when something is ready. No model, no network.
#   scripts/wait_and_click.sh Installer "Continue" 30     waits at most 30 seconds (1 to 45; without a number 10)
set -eu
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: $0 APP TEXT [SECONDS]" >&2; exit 2; }
app=$1
text=$2
seconds=${3:-10}
here=$(cd "$(dirname "$0")" && pwd)
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

# one JSON document on stdout, also when it fails
window_of='import json, sys
answer = json.load(sys.stdin)
print(answer["data"]["window_id"]) if answer["success"] else sys.exit(answer["error"]["message"])'

window=$(peekaboo wait-for --app "$app" --text "$text" --timeout-s "$seconds" --json | python3 -c "$window_of")
peekaboo click-text "$window" --verify -- "$text"
