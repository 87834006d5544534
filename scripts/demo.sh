#!/bin/sh
# The main job, as an MCP client does it: list the windows, take a screenshot, click, type, take another.
# Without a screen (a bare Linux) on a headless one of its own; with a screen it looks and touches nothing.
set -eu
. "$(dirname "$0")/setup.sh"

if [ "$(uname)" = Linux ] && [ -z "${DISPLAY:-}" ]; then
    need_desktop
fi
make_environment
exec "$venv/bin/python" "$root/scripts/demo.py" "$@"
