#!/bin/sh
# Build dist/peekaboo-min.mcpb, the bundle that Claude Desktop installs with a click: the single file and a manifest.
# uv, which the client brings along, fetches Python and the package mcp at the first start. Then, where npm is there:
#   scripts/mcpb.sh [FOLDER] && npx @anthropic-ai/mcpb validate dist/mcpb/manifest.json
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
folder=${1:-$root/dist}
rm -rf "$folder/mcpb" "$folder/peekaboo-min.mcpb"
mkdir -p "$folder/mcpb"
cp "$root/scripts/peekaboo.py" "$root/LICENSE" "$folder/mcpb/"
PYTHONPATH=$root python3 - "$root/scripts/server.json" >"$folder/mcpb/manifest.json" <<'END'
import json
import sys
from pathlib import Path

from peekaboo_min.tools.table import TOOLS

# the same name, description and variables as in the MCP registry
server = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
settings = {
    variable["name"]: {
        "type": "string",
        "title": variable["name"],
        "description": variable["description"],
        "required": False,
        **({"sensitive": True} if variable.get("isSecret") else {}),
    }
    for variable in server["packages"][0]["environmentVariables"]
}
manifest = {
    "manifest_version": "0.4",
    "name": server["packages"][0]["identifier"],
    "display_name": server["title"],
    "version": server["version"],
    "description": server["description"],
    "author": {"name": "the peekaboo_min authors"},
    "license": "MIT",
    "server": {
        "type": "uv",
        "entry_point": "peekaboo.py",
        "mcp_config": {
            "command": "uv",
            "args": ["run", "--script", "${__dirname}/peekaboo.py"],
            "env": {name: "${user_config." + name.lower() + "}" for name in settings},
        },
    },
    "tools": [{"name": row.name, "description": row.title} for row in TOOLS.values()],
    "user_config": {name.lower(): setting for name, setting in settings.items()},
    "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.10"}},
}
print(json.dumps(manifest, indent=2))
END
(cd "$folder/mcpb" && python3 -m zipfile -c ../peekaboo-min.mcpb manifest.json peekaboo.py LICENSE)
echo "$folder/peekaboo-min.mcpb"
