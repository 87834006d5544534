"""Read a simulated accessibility bus with elements_atspi.py; for the system's own python3, which has `gi`.

Stdin: toolkit and version, then changes of the window as JSON, in one line; then the application's nodes, one
per line and indented in their parents: role, 'name', @box in the window, +state, -state, {other values}. A
line is printed for each row, without the box if it is PLAIN, or else the reason why there is none.
"""

from __future__ import annotations

import json
import re
import sys
from types import SimpleNamespace
from typing import Any

import elements_atspi
from elements_atspi import STATE, Atspi, GLib

LEFT, TOP = 100, 50  # of the window on the screen; a box is x, y, width and height in the window
PLACE = [LEFT, TOP, 300, 200]
PLAIN = "0 0 50 20"  # the box of a node or a row if none is given
NODE = re.compile(r"( *)([\w-]+)(?: '(.*?)')?(?: @([-\d ]+\d))?((?: [+-]\w+)*)(?: (\{.*\}))?(?: > .*)?")
ROLES = {Atspi.Role(number).value_nick: number for number in range(130)}
ROLES["push-button"] = 43  # AT-SPI 2.56 calls it `button`
WINDOW = {
    "pid": 7, "title": "Main", "is_popup": False, "is_focused": True,
    "bounds": PLACE, "whole": PLACE, "outer": PLACE,
}  # fmt: skip


class Node:
    """A node of the bus. `given` has the results of methods: {"value": 1} is that of `get_value`."""

    def __init__(self, role: str, box: str = PLAIN, states: str = "", index: int = 0, **given: Any) -> None:
        x, y, *size = map(int, box.split())
        self.role, self.inside, self.readings = role, list[Any](), 0
        self.boxes = {elements_atspi.SCREEN: (LEFT + x, TOP + y, *size), elements_atspi.WINDOW: (x, y, *size)}
        changes = {"+visible", "+showing", "+sensitive", *states.split()}
        names = [each[1:] for each in changes if each[0] == "+" and f"-{each[1:]}" not in changes]
        self.states = [getattr(STATE, name.upper()) for name in names]
        always = {"description": "", "attributes": None, "clear_cache": None, "labels": ()}
        always["interfaces"] = ["Accessible", "Component"]
        self.given = {**always, "index_in_parent": index, **given}

    def __getattr__(self, name: str) -> Any:
        if name.removeprefix("get_") not in self.given:
            raise GLib.Error(f"the node has no {name}")
        return lambda *_: self.given[name.removeprefix("get_")]

    def get_role(self) -> int:
        self.readings += 1
        if self.role == "gone":
            raise GLib.Error("its application has ended")
        return ROLES[self.role]

    def get_state_set(self) -> Any:
        return SimpleNamespace(get_states=lambda: self.states, contains=lambda state: state in self.states)

    def get_child_count(self) -> int:
        late = [child for child in self.inside if child and "is_late" in child.given]
        return len(self.inside) - (len(late) if self.readings < 3 else 0)  # they come at the second reading

    def get_child_at_index(self, index: int) -> Any:
        return self.inside[index] if 0 <= index < len(self.inside) else None

    def get_extents(self, coordinates: Any) -> Any:
        return SimpleNamespace(**dict(zip(("x", "y", "width", "height"), self.boxes[coordinates])))

    def get_layer(self) -> Any:
        return Atspi.ComponentLayer.POPUP if "is_layer" in self.given else Atspi.ComponentLayer.WINDOW

    def get_relation_set(self) -> list[Any]:
        labels = [Node("label", name=name) for name in self.given["labels"]]
        targets = {Atspi.RelationType.DESCRIBED_BY: [self], Atspi.RelationType.LABELLED_BY: labels}
        return [
            SimpleNamespace(
                get_relation_type=lambda kind=kind: kind,
                get_n_targets=nodes.__len__, get_target=nodes.__getitem__,
            )
            for kind, nodes in targets.items()
        ]  # fmt: skip

    def get_accessible_at_point(self, x: int, y: int, coordinates: Any) -> Any:
        for child in self.inside:
            left, top, width, height = child.boxes[coordinates]
            is_found = child.role != "column-header"  # GTK 3 does not find them
            if is_found and left <= x < left + width and top <= y < top + height:
                return child
        return self


def read_nodes(lines: list[str]) -> list[Any]:
    above = [Node("")]
    for line in lines:
        match = NODE.fullmatch(line)
        assert match, line
        del above[len(match[1]) // 2 + 1 :]
        index, more = len(above[-1].inside), json.loads(match[6] or "{}")
        node = Node(match[2], match[4] or PLAIN, match[5], index, name=match[3] or "", **more)
        above[-1].inside.append(node if match[2] != "none" else None)
        above.append(node)
    return above[0].inside


def application(pid: int, toolkit: str, lines: list[str]) -> Node:
    name, version = toolkit.split()
    node = Node("application", process_id=pid, toolkit_name=name, toolkit_version=version)
    node.inside = read_nodes(lines)
    return node


def row_text(role: str, name: str, value: str, states: list[str], box: list[float]) -> str:
    place = " ".join(f"{size:g}" for size in (box[0] - LEFT, box[1] - TOP, *box[2:]))
    words = [role, name, f"={value}" if value else "", *states, f"@{place}" if place != PLAIN else ""]
    return " ".join(filter(None, words))


def main() -> None:
    head, *lines = sys.stdin.read().rstrip("\n").split("\n")
    toolkit, _, changes = head.partition(" {")
    other = application(8, "gtk 3.24", ["frame 'Main' @0 0 300 200 +active", "  push-button 'foreign'"])
    window = {**WINDOW, **json.loads("{" + changes if changes else "{}")}
    desktops = [Node("desktop-frame") for _ in range(1 + window.pop("empty_at_first", 0))]
    nodes = [line for line in lines if line[0] != ">"]
    desktops[0].inside = [Node("application"), other, application(7, toolkit, nodes)]
    texts = SimpleNamespace(
        get_text=lambda node, start, end: node.get_text()[start:end],
        get_character_count=lambda node: len(node.get_text()),
        get_string_at_offset=lambda node, *_: SimpleNamespace(
            content=node.given.get("line", node.get_text())
        ),
    )
    elements_atspi.AGAIN_S = 0.0
    elements_atspi.Atspi = SimpleNamespace(
        init=lambda: None, set_timeout=lambda *_: None, Text=texts,
        get_desktop=lambda _: desktops.pop() if desktops[1:] else desktops[0],
        Value=SimpleNamespace(get_current_value=lambda node: node.get_value()),
        Table=SimpleNamespace(get_n_columns=lambda node: node.get_columns()),
        **{name: getattr(Atspi, name) for name in ("RelationType", "ComponentLayer", "TextGranularity")},
    )  # fmt: skip
    rows, problem = elements_atspi.read(window)
    print("\n".join([row_text(*row) for row in rows] or [problem]))


if __name__ == "__main__":
    main()
