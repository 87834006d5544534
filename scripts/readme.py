"""Keep the README's tables and SKILL.md equal to the code: print the README; --write updates both files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from peekaboo_min.frontends.reference import command_table, show_tools, variable_reference

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
