"""The windows in the output of `xwininfo -root -tree` (pure)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ...core.models import Rect

_START = re.compile(r"^(?P<indent> +)(?P<id>0x[0-9a-f]+) (?:(?P<is_nameless>\(has no name\))|\"|\(name in )")
_END = re.compile(
    r"(?P<no_class>: \(\))?  (?P<w>\d+)x(?P<h>\d+)[+-]-?\d+[+-]-?\d+  \+(?P<x>-?\d+)\+(?P<y>-?\d+)$"
)
_END_LENGTH = 120


@dataclass(frozen=True)
class TreeNode:
    """A line of the tree. Titles are untrusted: one with a line break can fake whole lines, with any id."""

    window_id: int
    top_id: int
    """The top-level window that contains it (its own id, when it is one)."""
    has_class: bool
    is_nameless: bool
    bounds: Rect

    @property
    def is_top(self) -> bool:
        return self.window_id == self.top_id

    @property
    def is_tiny(self) -> bool:
        """A helper window of a program; a name could fake such a size, `(has no name)` cannot be faked."""
        return self.is_nameless and max(self.bounds.width, self.bounds.height) <= 1


@dataclass(frozen=True)
class Tree:
    """All windows, front to back."""

    nodes: tuple[TreeNode, ...]
    known: Mapping[int, TreeNode]
    """Those by id whose line stands there once: an id that stands there twice has a faked line."""

    def tops(self) -> list[TreeNode]:
        """The top-level windows, front to back."""
        return [node for node in self.nodes if node.is_top]

    @property
    def is_faked(self) -> bool:
        return len(self.known) < len(self.nodes)


def read_tree(text: str) -> Tree:
    nodes: list[TreeNode] = []
    top_id, top_depth = 0, 0
    start: re.Match[str] | None = None
    for line in text.split("\n"):
        # a title with a line break, which xwininfo prints as it is, takes several lines
        start = start or _START.match(line)
        end = start and _END.search(line[-_END_LENGTH:])
        if not start or not end:
            continue
        depth, window_id = len(start["indent"]), int(start["id"], 16)
        top_depth = top_depth or depth
        if depth <= top_depth:
            top_id = window_id
        bounds = Rect(float(end["x"]), float(end["y"]), float(end["w"]), float(end["h"]))
        nodes.append(TreeNode(window_id, top_id, not end["no_class"], bool(start["is_nameless"]), bounds))
        start = None
    times = Counter(node.window_id for node in nodes)
    return Tree(tuple(nodes), {node.window_id: node for node in nodes if times[node.window_id] == 1})
