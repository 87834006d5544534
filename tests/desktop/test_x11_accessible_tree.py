"""Elements of simulated AT-SPI trees, in the format of tests/support/fake_atspi.py."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from accessible import need_elements
from worlds import ROOT

SECTIONS = (Path(__file__).parent / "accessible_trees.txt").read_text("utf-8").split("\n== ")
TREES = dict(section.split("\n", 1) for section in SECTIONS[1:])


def read(tree: str) -> list[str]:
    need_elements()
    argv = ["/usr/bin/python3", "-B", str(ROOT / "tests" / "support" / "fake_atspi.py")]
    path = {"PYTHONPATH": str(ROOT / "peekaboo_min" / "desktop" / "x11"), "PYTHONUTF8": "1"}
    output = subprocess.run(argv, input=tree, env=path, stdout=-1, check=True, encoding="utf-8").stdout
    return output.rstrip("\n").split("\n")


def one_role_a_line(tree: str) -> str:
    """Write a node with several roles, and the nodes in it, once for each role."""
    several = re.search(r"(?m)^( *)([\w-]+(?:\|[\w-]+)+)(.*(?:\n\1 .*)*)", tree)
    if not several:
        return tree
    nodes = "\n".join(f"{several[1]}{role}{several[3]}" for role in several[2].split("|"))
    return one_role_a_line(tree[: several.start()] + nodes + tree[several.end() :])


@pytest.mark.parametrize("title", TREES)
def test_tree_is_read_row_by_row(title: str) -> None:
    tree = one_role_a_line(TREES[title])
    assert read(tree) == re.findall(r"(?<![^ \n])> (.*)", tree)


# toolkit with changes of the window, place of its only frame -> place of a button at 10 25 50 20
FRAMES = {
    ("gtk 3.24", "0 0 302 198"): "10 25 50 20",  # a pixel off
    ("gtk 3.24", "-50 -25 150 100"): "120 100 100 40",  # a scale of 2
    ("Qt 5.15", "0 0 200 133"): "15 37.5 75 30",  # a scale of 1.5
    ('gtk 3.24 {"whole": [85, 50, 330, 200]}', "0 0 100 67"): "30 75 150 60",  # a scale of 3, and a shadow
    ("gtk 3.24", "0 0 290 194"): "10 25 50 20",  # no scale
    ("gtk 3.24", "0 0 60 40"): "10 25 50 20",  # too large a scale
    ("gtk 3.24", "0 0 900 600"): "10 25 50 20",  # too small a scale
    ("gtk 3.24", "0 0 150 90"): "10 25 50 20",  # another shape
    ('gtk 3.24 {"whole": [90, 30, 320, 230]}', "-10 -20 320 230"): "10 25 50 20",  # a shadow
    ('gtk 3.24 {"outer": [100, 30, 300, 220]}', "0 -20 300 220"): "10 25 50 20",  # a title bar
    ("gtk 3.24", "7 9 300 200"): "3 16 50 20",  # elsewhere
}


@pytest.mark.parametrize(("toolkit", "frame"), FRAMES)
def test_place_of_an_element_depends_on_its_frame(toolkit: str, frame: str) -> None:
    rows = read(f"{toolkit}\nframe 'Main' @{frame}\n  push-button 'a' @10 25 50 20")
    assert rows == [f"button a @{FRAMES[toolkit, frame]}"]


# role, role of the first row, columns, size of a cell, number of cells, rows scrolled out of sight, scale
TABLES = [
    ("table", "column-header", 10, (24, 17), 200, 0, 1),
    ("table", "column-header", 10, (24, 17), 300, 0, 1),
    ("table", "column-header", 10, (12, 9), 300, 0, 2),
    ("tree-table", "column-header", 10, (24, 17), 220, 10, 1),
    ("list-box", "list-item", 1, (70, 20), 1100, 0, 1),
    ("list-box", "list-item", 1, (70, 20), 1005, 1000, 1),
]


@pytest.mark.parametrize(("role", "first", "columns", "size", "count", "scrolled", "scale"), TABLES)
def test_large_table_has_each_visible_cell_once(
    role: str, first: str, columns: int, size: tuple[int, int], count: int, scrolled: int, scale: int
) -> None:
    tops = [0, *[-900] * scrolled, *range(size[1], 9**6, size[1])]  # the first row is always visible
    places = [
        f"{290 // scale - size[0] * (columns - at % columns)} {tops[at // columns]}" for at in range(count)
    ]
    roles = [first] * columns + ["table-cell"] * count
    cells = [f"    {roles[at]} '{at}' @{place} {size[0]} {size[1]}" for at, place in enumerate(places)]
    place = f"@0 0 {300 // scale} {200 // scale}"
    table = f'  {role} {place} {{"columns": {columns}}}'
    rows = read("\n".join(["gtk 3.24", f"frame 'Main' {place}", table, *cells]))
    assert [row.split()[1] for row in rows] == [
        str(at) for at in range(count) if 0 <= tops[at // columns] * scale < 197
    ]


def test_first_1000_elements_are_listed() -> None:
    buttons = [f"    push-button '{at}'" for at in range(600)]
    rows = read("\n".join(["gtk 3.24", "frame 'Main' @0 0 300 200", *["  panel @0 0 300 200", *buttons] * 2]))
    assert rows == [f"button {at}" for at in (*range(600), *range(400))]
