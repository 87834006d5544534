"""The windows in the output of `xwininfo -root -tree` (pure)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Optional

from ...core.models import Rect

_TREE_LINE = re.compile(
    r"^(?P<indent> +)(?P<id>0x[0-9a-f]+) (?P<is_nameless>\(has no name\))?.*: \((?P<has_class>.*)\)"
    r"  (?P<w>\d+)x(?P<h>\d+)[+-]-?\d+[+-]-?\d+  \+(?P<x>-?\d+)\+(?P<y>-?\d+)$",
    re.DOTALL,
)
_TREE_LINE_START = re.compile(r"^ +0x[0-9a-f]+ [\"(]")


@dataclass(frozen=True)
class X11Node:
    """A line of `xwininfo -root -tree`; `frame` is the top-level window that holds it."""

    window_id: int
    has_class: bool
    bounds: Rect
    frame: Rect
    is_guess: bool = False
    """True for one with a name and, it seems, no class: a name can fake that, too. It is one only if it has a class."""
    is_repeated: bool = False
    """True where the tree names it twice, which only a title can do that fakes lines."""


def read_x11_tree(text: str) -> list[X11Node]:
    """The windows that matter, front to back.

    A window manager puts a client into a frame of its own: the client is the first window below that has a class. A
    top-level window without any (a menu of the window manager, a tooltip) stands for itself, as it can cover others.
    """
    nodes: list[X11Node] = []
    top: Optional[X11Node] = None
    top_depth = 0
    for match in _tree_lines(text):
        depth = len(match["indent"])
        rect = Rect(float(match["x"]), float(match["y"]), float(match["w"]), float(match["h"]))
        if max(rect.width, rect.height) <= 1 and match["is_nameless"]:
            continue  # the helpers of window managers; a name could fake such a size, "(has no name)" cannot be faked
        node = X11Node(int(match["id"], 16), bool(match["has_class"]), rect, rect)
        top_depth = top_depth or depth
        if depth <= top_depth:
            if top:
                nodes.append(top)
            top = node
        elif top and node.has_class and not top.has_class:
            top = replace(node, frame=top.frame)
        elif top and not top.has_class and not match["is_nameless"]:
            nodes.append(replace(node, frame=top.frame, is_guess=True))
    if top:
        nodes.append(top)
    times = Counter(node.window_id for node in nodes)
    return [
        replace(node, is_repeated=times[node.window_id] > 1)
        for node in {one.window_id: one for one in nodes}.values()
    ]


def _tree_lines(text: str) -> list[re.Match[str]]:
    """The windows' lines of the tree; a title with a newline, which xwininfo prints as it is, takes several."""
    found: list[re.Match[str]] = []
    line = ""
    for part in text.splitlines():
        if not line and not _TREE_LINE_START.match(part):
            continue
        line = f"{line}\n{part}" if line else part
        match = _TREE_LINE.match(line)
        if match:
            found.append(match)
            line = ""
    return found
