"""Keep the README's tables and SKILL.md equal to the code: prints the README; --write changes both files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from peekaboo_min.frontends.arguments import read_signature
from peekaboo_min.frontends.tools import (
    COMMANDS,
    in_shell_names,
    load_function,
    show_tools,
    variable_reference,
)

README = Path(__file__).resolve().parent.parent / "README.md"
SKILL = Path(__file__).resolve().parent / "SKILL.md"


def command_table() -> str:
    rows = []
    for name, place in COMMANDS.items():
        signature = read_signature(load_function(place), True)
        example = signature.example.splitlines()[0] if signature.example else f"peekaboo-min {name}"
        rows.append(
            f"| `{name}` | {in_shell_names(signature.summary)} | `{example.replace('|', chr(92) + '|')}` |"
        )
    return "\n".join(["| command | does | example |", "|---|---|---|", *rows])


def refreshed(text: str) -> str:
    """The README's text with the sections between its markers made anew."""
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
