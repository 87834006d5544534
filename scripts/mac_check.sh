#!/bin/sh
# Try a real Mac: the facts of mac_probe.py, screenshots, clicks and typed text in TextEdit and Calculator, a Keynote deck.
#   scripts/mac_check.sh --yes [FOLDER]   acts in windows of its own, which it leaves open; images, log, JSON and page.md
#                                         go to FOLDER. Prints one block to paste into a report. Do not touch the mouse while it runs.
# A step is ok, "not allowed" if a permission is missing, or FAILED; after a failure the script exits with 1.
set -u
[ "${1:-}" = --yes ] && [ $# -le 2 ] || { sed -n 's/^# //p' "$0" >&2; exit 2; }
case ${PEEKABOO_DESKTOP:-$(uname)} in
    macos | Darwin) ;;
    *) echo "$0: this is for a Mac" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "$0")" && pwd)
folder=${2:-$(mktemp -d)} && mkdir -p "$folder" || exit 1
report=$folder/report.txt
document="peekaboo check $$.txt"
text="peekaboo typed $$"
export KEYNOTE_DOCUMENT_MODE=always_new # the deck is a new one, whatever is open
peekaboo() { ${PEEKABOO:-python3 "$here/peekaboo.py"} "$@"; } # PEEKABOO: try another installation

note() { # verdict, step, detail; removes this person's paths from the detail
    line="$1 $2${3:+: $(printf %s "$3" | tr '\n' ' ' | sed "s|$folder|FOLDER|g; s|$HOME|HOME|g; s/.*\"message\": \"//; s/; switch .*//" | cut -c 1-300)}"
    echo "$line"
    echo "$line" >>"$report"
}

judge() { # exit code, step, output (shown only after a failure, because it may contain titles); sets $last
    case $1 in
        0) last=ok ;;
        11 | 12 | 13) last="not allowed" ;; # PERMISSION_DENIED_... of peekaboo_min/core/errors.py
        *) last=FAILED ;;
    esac
    [ "$last" = ok ] && note ok "$2" || note "$last" "$2" "$3"
    printf '%s: %s\n%s\n\n' "$last" "$2" "$3" >>"$folder/log.txt"
}

step() { # name, arguments of peekaboo
    name=$1
    shift
    output=$(peekaboo "$@" 2>&1)
    judge $? "$name" "$output"
}

is_image() { # file; checks it if the last step succeeded
    [ "$last" != ok ] || { [ -s "$1" ]; judge $? "its file ${1##*/}" "no file"; }
}

window_id() { # prints the id of the window in the last step's output
    printf '%s\n' "$output" | sed -n 's/^window \([0-9]*\) of .*/\1/p'
}

place() { # possible names of a Calculator button; prints its x, y and screenshot, or nothing if no name matches
    python3 -c '
import json, sys
data = json.load(open(sys.argv[1], encoding="utf-8")).get("data", {})
for each in data.get("elements", []):
    if each["role"] == "button" and each["name"].lower() in sys.argv[2].split():
        sys.exit(print(each["x"], each["y"], "--screenshot-id", data["screenshot_id"]))' "$folder/calculator.json" "$1"
}

counters() { # prints how many events of some kinds the system has counted
    python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import mac_probe; print(*mac_probe.probe_js("counters")["counts"])' "$here"
}

typed() { # the elements of a window as JSON; prints the start of its text fields
    python3 -c 'import json, sys
print(*(each["value"][:8] for each in json.load(sys.stdin)["data"]["elements"] if each["role"] == "textbox"))' 2>/dev/null
}

list() { # title, verdict; prints the steps with that verdict
    printf '\n%s:\n' "$1"
    sed -n "s/^$2 /- /p" "$report" | grep . || echo "- nothing"
}

: >"$report" >"$folder/log.txt"
note info system "$(sw_vers -productVersion 2>/dev/null || uname -sr), peekaboo-min $(peekaboo --version)"
step "doctor, which compiles the Swift helper" doctor --compile
note info "what acts" "$(printf '%s\n' "$output" | sed -n 's/.*mouse and keyboard by: //p')"
python3 "$here/mac_probe.py" >"$folder/facts.txt" 2>"$folder/errors.txt"
judge $? "the facts can be asked" "$(cat "$folder/errors.txt")"
note info "facts that are confirmed" "$(grep -c ^confirmed "$folder/facts.txt")"
grep ^CONTRADICTED "$folder/facts.txt" | while read -r _ fact; do note FAILED "fact" "$fact"; done

: >"$folder/$document"
open -a TextEdit "$folder/$document"
step "a TextEdit window of its own" wait-for --app TextEdit --title "${document%.txt}" --timeout-s 40
window=$(window_id)
if [ -n "$window" ]; then
    step "screenshot of a screen" image --mode screen --screen-index 0 --path "$folder/screen.png"
    is_image "$folder/screen.png"
    step "screenshot of a window by its id" screenshot "$window" --path "$folder/window.png"
    is_image "$folder/window.png"
    step "screenshot of a window as JPEG" screenshot "$window" --path "$folder/window.jpg" && is_image "$folder/window.jpg"
    step "screenshots of all windows of an app" image --app TextEdit --mode multi --path "$folder/all/"
    step "screenshot with its shadow" screenshot-app-window --appName TextEdit --includeShadow
    step "focus" focus "$window"
    before=$(counters)
    step "a click into its text" click "$window" 120 120
    note info "presses, moves and keys of the session and of the hardware, before and after the click" "$before; $(counters)"
    step "text that macOS may change" type "$window" "teh -- x"
    note info "teh -- x arrived as" "$(peekaboo elements "$window" --json 2>/dev/null | typed)"
    step "typed text" type "$window" "$text" --replace --verify
    [ "$last" != ok ] || step "typed text is read back" wait-for --window-id "$window" --text "$text"
fi

step "Calculator is opened" open --app Calculator --timeout-s 40
window=$(window_id)
if [ -n "$window" ]; then
    step "its elements" elements "$window" --json
    printf '%s\n' "$output" >"$folder/calculator.json"
    step "Calculator is cleared" press "$window" escape
    for names in "7 seven" "+ add plus" "8 eight" "= equals"; do
        act="click $window $(place "$names")"
        # in other languages and in some versions of macOS no button has this name
        [ "$act" != "click $window " ] || act="type $window ${names%% *}"
        # shellcheck disable=SC2086
        step "${act%% *} ${names%% *} in Calculator" $act
    done
    [ "$last" != ok ] || step "it shows 15" wait-for --window-id "$window" --text 15
    step "screenshot of Calculator" screenshot "$window" --path "$folder/calculator.png"
fi

output=$(peekaboo keynote open 2>&1)
code=$?
if [ $code = 18 ]; then note info "Keynote" "not installed, so not tried"; else judge $code "a Keynote deck of its own" "$output"; fi
if [ $code = 0 ]; then
    step "a rectangle" keynote rectangle 384 378 1152 324
    asked='tell application id "com.apple.Keynote" to get class of selection of front document'
    note info "what is selected then" "$(osascript -e "$asked" 2>&1)" # undocumented; nothing depends on it
    step "a text in it" keynote text "$text"
    step "the slide as an image" keynote screenshot "$folder/slide.png"
    is_image "$folder/slide.png"
fi

{
    echo '```'
    sed -n 's/^info //p' "$report"
    list worked ok
    list "not allowed here" "not allowed"
    list failed FAILED
    printf '\n' && tail -n 1 "$folder/facts.txt"
    echo '```'
} >"$folder/page.md"
printf '\nThe images are in %s. Close the windows of TextEdit, Calculator and Keynote without saving.\n' "$folder"
echo "To report, paste this:"
cat "$folder/page.md"
! grep -q ^FAILED "$report"
