#!/bin/sh
# Fill in a form by its labels: the accessibility tree contains each field's position; no model is needed.
#   scripts/fill_form.sh Contacts "Name=Ada Lovelace" "E-mail=ada@example.org"
# Replaces the fields' content. Stops with an error at the first label without a text field.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 WINDOW LABEL=TEXT ..." >&2; exit 2; }
window=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/peekaboo.py" ] || { echo "$0: copy it into the folder of peekaboo.py" >&2; exit 2; }
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

for pair in "$@"; do
    # `textbox "Name" 120,48 [focused]`: pixels of the screenshot that `elements` took
    line=$(peekaboo elements "$window" --role textbox --text "${pair%%=*}" | grep '^textbox' | head -n 1)
    field=$(echo "$line" | sed -n 's/.* \([0-9]*\),\([0-9]*\)\( \[[^]]*\]\)\{0,1\}$/\1 \2/p')
    [ -n "$field" ] || { echo "$window has no text field called: ${pair%%=*}" >&2; exit 1; }
    # shellcheck disable=SC2086  # two numbers
    peekaboo click "$window" $field
    peekaboo type --replace -- "$window" "${pair#*=}"
done
