#!/bin/sh
# Wait until an app shows a text, then click it, for example a button that appears when something is ready. No model, no network.
#   scripts/wait_and_click.sh Installer "Continue" 30     waits at most 30 seconds (1 to 45; without a number 10)
set -eu
[ $# -eq 2 ] || [ $# -eq 3 ] || { echo "usage: $0 APP TEXT [SECONDS]" >&2; exit 2; }
app=$1
text=$2
seconds=${3:-10}
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/peekaboo.py" ] || { echo "$0: copy it into the folder of peekaboo.py" >&2; exit 2; }
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

peekaboo wait-for --app "$app" --text "$text" --timeout-s "$seconds" >/dev/null
peekaboo click-text --verify -- "$app" "$text"
