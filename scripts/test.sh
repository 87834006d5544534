#!/bin/sh
# The tests, with all that they need. With CI set a missing tool is a failure; else its tests are skipped with the reason.
set -eu
. "$(dirname "$0")/setup.sh"

if [ "$(uname)" = Linux ]; then
    need_desktop node:nodejs ps:procps || [ -z "${CI:-}" ]
fi
make_environment pytest
cd "$root"
if [ $# -gt 0 ]; then
    exec "$venv/bin/python" -m pytest "$@" # sh scripts/test.sh tests/automation/test_click_and_type.py -k click
fi
exec "$venv/bin/python" tests/support/side_by_side.py
