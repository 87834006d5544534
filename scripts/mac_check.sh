#!/bin/sh
# Tries a real Mac: the facts of mac_probe.py, four kinds of screenshot, a click, typed text, a Keynote deck.
#   scripts/mac_check.sh --yes     acts in a TextEdit window and a Keynote deck of its own, which it leaves open;
#                                  prints one block to paste into a report. Do not touch the mouse meanwhile.
set -u
[ "${1:-}" = --yes ] && [ $# -eq 1 ] || { sed -n 's/^# //p' "$0" >&2; exit 2; }
case ${PEEKABOO_DESKTOP:-$(uname)} in
    macos | Darwin) ;;
    *) echo "$0: this is for a Mac" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d) || exit 1
report=$folder/report.txt
document="peekaboo check $$.txt"
text="peekaboo typed $$"
failed=0
KEYNOTE_DOCUMENT_MODE=always_new # the deck is a new one, whatever is open
export KEYNOTE_DOCUMENT_MODE
peekaboo() { python3 "$here/peekaboo.py" "$@"; }

note() { # verdict, step, detail; the detail without the paths of this person
    line="$1 $2${3:+: $(printf %s "$3" | tr '\n' ' ' | sed "s|$folder|FOLDER|g; s|$HOME|HOME|g" | cut -c 1-300)}"
    echo "$line"
    echo "$line" >>"$report"
}

step() { # name, arguments of peekaboo: its output is in the report only where it failed, because it may hold titles
    name=$1
    shift
    if output=$(peekaboo "$@" 2>&1); then
        note ok "$name"
    else
        failed=$((failed + 1))
        note FAILED "$name" "$output"
    fi
}

is_image() { # name, file
    if [ -s "$2" ]; then note ok "$1"; else failed=$((failed + 1)) && note FAILED "$1" "no file"; fi
}

own_window() { # the id of the TextEdit window that this script opened
    peekaboo windows --app TextEdit --json 2>/dev/null | python3 -c '
import json, sys
windows = json.load(sys.stdin).get("data", {}).get("windows", [])
print(*[each["window_id"] for each in windows if sys.argv[1] in (each["title"] or "")][:1])' "${document%.txt}"
}

note info system "$(sw_vers -productVersion 2>/dev/null || uname -sr), peekaboo-min $(peekaboo --version)"
step permissions permissions
if facts=$(python3 "$here/mac_probe.py" 2>"$folder/errors"); then
    note ok "facts" "$(echo "$facts" | grep -c ^confirmed) confirmed"
else
    failed=$((failed + 1)) facts=
    note FAILED "facts" "$(cat "$folder/errors")"
fi
: >"$folder/$document"
open -a TextEdit "$folder/$document"
window=
tries=0
while [ -z "$window" ] && [ $tries -lt 20 ]; do
    window=$(own_window)
    tries=$((tries + 1))
    [ -n "$window" ] || sleep 0.5
done
if [ -z "$window" ]; then
    failed=$((failed + 1))
    note FAILED "a TextEdit window of its own" "no window of that name appeared"
else
    note ok "a TextEdit window of its own"
    step "screenshot of a screen" image --mode screen --screen-index 0 --path "$folder/screen.png"
    is_image "its file" "$folder/screen.png"
    step "screenshot of a window by its id" screenshot "$window" --path "$folder/window.png"
    is_image "its file" "$folder/window.png"
    step "screenshots of all windows of an app" image --app TextEdit --mode multi --path "$folder/all/"
    step "screenshot with its shadow" screenshot-app-window --appName TextEdit --includeShadow
    step "focus" focus "$window"
    step "a click into its text" click "$window" 120 120
    step "typed text" type "$window" "$text" --verify
    step "typed text is read back" find-text "$window" "$text"
    found=$(peekaboo find-text "$window" "$text" --json 2>/dev/null | python3 -c '
import json, sys
print(len(json.load(sys.stdin).get("data", {}).get("found", [])))')
    [ "${found:-0}" -gt 0 ] || { failed=$((failed + 1)) && note FAILED "the text in the window" "not found"; }
fi
step "a Keynote deck of its own" keynote open
step "a rectangle" keynote rectangle 384 378 1152 324
asked='tell application id "com.apple.Keynote" to get class of selection of front document'
note info "what is selected then" "$(osascript -e "$asked" 2>&1)" # no source says; nothing depends on it
step "a text in it" keynote text "$text"
step "the slide as an image" keynote screenshot "$folder/slide.png"
is_image "its file" "$folder/slide.png"

echo
echo "The images are in $folder. Close the TextEdit window and the Keynote deck without saving."
echo "To report, paste this:"
echo '```'
cat "$report"
echo "$failed failed"
printf '%s\n' "$facts" | tail -n 1
echo '```'
[ $failed -eq 0 ]
