#!/bin/sh
# Show the main job as an MCP client does it: list windows, take a screenshot, click, type, take another screenshot.
# On Linux it uses a desktop of its own. With --my-screen, and on a Mac, it only looks at your screen.
set -eu
. "$(dirname "$0")/setup.sh"

if [ "$(uname)" = Linux ] && [ "${1:-}" != --my-screen ]; then
    need_desktop
fi
make_environment
exec "$venv/bin/python" "$root/scripts/demo.py" "$@"
