#!/bin/sh
# Fill in a form by its labels: the accessibility tree says where each field is, no model and no pixels are needed.
#   scripts/fill_form.sh Contacts "Name=Ada Lovelace" "E-mail=ada@example.org"
# What a field held is replaced. Ends with an error at the first label that no text field has.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 APP LABEL=TEXT ..." >&2; exit 2; }
app=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
peekaboo() { python3 "$here/peekaboo.py" "$@"; }
pick() {
    python3 -c "import json, sys
answer = json.load(sys.stdin)
if not answer['success']: sys.exit(answer['error']['message'])
data = answer['data']
$1"
}

window=$(peekaboo windows --app "$app" --json | pick 'print(*[one["window_id"] for one in data["windows"][:1]])')
[ -n "$window" ] || { echo "$app has no window on the screen" >&2; exit 1; }
first_field='[print(one["x"], one["y"], "--screenshot-id", data["screenshot_id"]) for one in data["elements"][:1]]'
for pair in "$@"; do
    label=${pair%%=*}
    field=$(peekaboo elements "$window" --role textbox --text "$label" --json | pick "$first_field")
    [ -n "$field" ] || { echo "window $window has no text field called: $label" >&2; exit 1; }
    # shellcheck disable=SC2086  # four words of our own
    peekaboo click "$window" $field
    peekaboo type "$window" --replace -- "${pair#*=}"
done
