#!/bin/sh
# Style and types, changing nothing: ruff's rules and format, and mypy, as pyproject.toml configures them.
# The tools are installed into .venv, beside what test.sh puts there; nobody who uses the package needs them.
set -eu
. "$(dirname "$0")/setup.sh"

tools='ruff==0.17.6 mypy==2.4.1'

have_tools() { # whether .venv holds exactly these versions
    "$venv/bin/python" -I -c 'import sys
from importlib.metadata import version
for tool in sys.argv[1:]:
    name, wanted = tool.split("==")
    assert version(name) == wanted' $tools >/dev/null 2>&1
}

{ has_environment && imports_all pytest; } || make_environment pytest
if ! have_tools; then
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! run_with_progress "installing $tools" "$venv/bin/python" -m pip install -q --disable-pip-version-check $tools || ! have_tools; then
        warn "pip could not install $tools ($(last_error '^ERROR')); check the network, then run this again"
        rm -f "$log"
        exit 1
    fi
    rm -f "$log"
fi
cd "$root"
code=0
"$venv/bin/python" -m ruff check || code=1
"$venv/bin/python" -m ruff format --check || code=1
"$venv/bin/python" -m mypy || code=1
exit $code
