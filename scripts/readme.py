"""Keep the README's tables and SKILL.md equal to the code: print the README; --write updates both files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from peekaboo_min.core.settings import VARIABLES
from peekaboo_min.frontends.arguments import read_signature
from peekaboo_min.frontends.documents import show_tools
from peekaboo_min.tools.table import COMMANDS

README = Path(__file__).resolve().parent.parent / "README.md"
SKILL = Path(__file__).resolve().parent / "SKILL.md"


def refreshed(text: str) -> str:
    """Regenerate the sections between the README's markers."""
    for name, make in (
        ("commands", command_table),
        ("tools", lambda: show_tools().text),
        ("variables", variable_reference),
    ):
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise SystemExit(f"README.md has no section between <!-- {name} --> and <!-- /{name} -->")
        table = make().replace("\\", r"\\")  # a backslash would be read as a group's reference
        text = pattern.sub(rf"\1{table}\n\2", text)
    return text


def command_table() -> str:
    """Return every shell command as a Markdown table."""
    rows = []
    for name, row in COMMANDS.items():
        signature = read_signature(row.load(for_shell=True))
        example = (signature.example or f"peekaboo-min {name}").splitlines()[0].replace("|", "\\|")
        rows.append(f"| `{name}` | {signature.summary} | `{example}` |")
    return "\n".join(["| command | does | example |", "|---|---|---|", *rows])


def variable_reference() -> str:
    """Return every environment variable that is read, as a Markdown list."""
    lines = []
    for variable in VARIABLES.values():
        default = f" (default `{variable.default}`)" if variable.default else ""
        alias = f" or `{variable.alias}`" if variable.alias else ""
        lines.append(f"- `{variable.name}`{alias}{default}: {variable.help}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    text = refreshed(README.read_text(encoding="utf-8"))
    if arguments == ["--write"]:
        README.write_text(text, encoding="utf-8")
        SKILL.write_text(show_tools(skill=True).text + "\n", encoding="utf-8")
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
