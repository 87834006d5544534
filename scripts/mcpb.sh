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
PYTHONPATH=$root python3 - >"$folder/mcpb/manifest.json" <<'END'
import json

from peekaboo_min.core.version import VERSION
from peekaboo_min.frontends.tools import TOOLS


def setting(title, description, **more):
    return {"type": "string", "title": title, "description": description, "required": False, **more}


settings = {
    "PEEKABOO_AI_PROVIDERS": setting("Models", "providers and models, such as ollama/qwen3-vl:8b,openai/gpt-5.4-mini"),
    "OPENAI_API_KEY": setting("OpenAI key", "only for questions to OpenAI", sensitive=True),
    "ANTHROPIC_API_KEY": setting("Anthropic key", "only for questions to Anthropic", sensitive=True),
    "GEMINI_API_KEY": setting("Gemini key", "only for questions to Gemini", sensitive=True),
}
manifest = {
    "manifest_version": "0.4",
    "name": "peekaboo-min",
    "display_name": "peekaboo_min",
    "version": VERSION,
    "description": "Eyes and hands for AI agents on a desktop: screenshots, text, clicks and keys",
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
    "tools": [{"name": tool.name, "description": tool.title} for tool in TOOLS],
    "user_config": {name.lower(): each for name, each in settings.items()},
    "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.10"}},
}
print(json.dumps(manifest, indent=2))
END
(cd "$folder/mcpb" && python3 -m zipfile -c ../peekaboo-min.mcpb manifest.json peekaboo.py LICENSE)
echo "$folder/peekaboo-min.mcpb"
