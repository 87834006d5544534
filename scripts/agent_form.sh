#!/bin/sh
# Let a vision model fill in the details of the demo form, and print the data that the form received.
#   PEEKABOO_AI_PROVIDERS=openai/gpt-5.4-mini OPENAI_API_KEY=... scripts/agent_form.sh "Zürich" "engineer"
#   PEEKABOO_AI_PROVIDERS=ollama/qwen2.5vl:7b scripts/agent_form.sh "Zürich" "engineer" --dry-run
# leaves peekaboo-run-TIME/report.html in this folder: each screenshot with the click marked, and the model's replies.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 CITY PROFESSION [agent's options]" >&2; exit 2; }
city=$1
profession=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/peekaboo.py" ] || { echo "$0: copy it into the folder of peekaboo.py" >&2; exit 2; }
# the agent needs the package mcp: uv fetches it, else the environment of scripts/test.sh may have it
peekaboo() {
    if command -v uv >/dev/null 2>&1; then
        uv run -q "$here/peekaboo.py" "$@"
    elif [ -x "$here/../.venv/bin/python" ]; then
        "$here/../.venv/bin/python" "$here/peekaboo.py" "$@"
    else
        python3 "$here/peekaboo.py" "$@"
    fi
}

report=$(mktemp)
wish "$here/demo_form.tcl" -name Form -- "$report" "Visitor book" &
form=$!
trap 'kill $form 2>/dev/null || :; rm -f "$report"' EXIT
trap 'exit 130' HUP INT TERM # without it, dash skips the EXIT trap
until grep -q '"ready"' "$report"; do
    kill -0 $form 2>/dev/null || { echo "$0: the form did not open; it needs wish (package tk) and a display" >&2; exit 1; }
    sleep 0.1
done

goal="Open the details. City: $city. Profession: $profession. Ask for the news, then confirm."
peekaboo agent --goal "$goal" --app Form --window-title "Visitor book" "$@"
echo "the form received: $(grep '"event": "details"' "$report" || echo nothing)"
