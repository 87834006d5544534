#!/bin/sh
# Check style and types without changing anything: ruff (rules and format) and mypy, configured in pyproject.toml.
# The tools are installed into .venv; users of the package do not need them.
set -eu
. "$(dirname "$0")/setup.sh"

tools='ruff==0.17.6 mypy==2.4.1'

have_tools() { # succeeds if .venv has exactly these versions
    "$venv/bin/python" -I -c 'import sys
from importlib.metadata import version
for tool in sys.argv[1:]:
    name, wanted = tool.split("==")
    assert version(name) == wanted' $tools >/dev/null 2>&1
}

imports_all pytest || make_environment pytest
# shellcheck disable=SC2086
have_tools || run "installing $tools" "check the network, then run this again" \
    "$venv/bin/python" -m pip install -q --disable-pip-version-check $tools
cd "$root"
code=0
"$venv/bin/python" -m ruff check || code=1
"$venv/bin/python" -m ruff format --check || code=1
"$venv/bin/python" -m mypy || code=1
exit $code
