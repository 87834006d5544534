"""A window as JSON -> {elements: [[role, name, value, states, box]]...}.

In: {pid, title, is_popup, is_focused, bounds, whole, outer, addresses}; `whole` is `bounds` with the shadow
that GTK draws, `outer` with what a window manager draws. Out, besides: `problem`, "bus", "application",
"twins" (windows that nothing tells apart) or "" for none; and `rounds`. Boxes are [x, y, width, height] in
screen points.

Run by the system's own Python, for its `gi`, and never imported. It reads the accessibility tree of one
window over AT-SPI's bus, level by level: all calls of a level go out at once, which is a round.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple, Optional

from gi.repository import Gio, GLib  # type: ignore[import-not-found,import-untyped,unused-ignore]

Node = tuple[str, str]
"""A program's name on the bus, and an object's path in it."""
Box = tuple[int, int, int, int]
Call = tuple[Node, str, str, Any]
"""Whom to ask, interface, method, arguments."""

BUDGET_S = 6.0
CALL_MS = 2000
MOST_ELEMENTS = 1000
MOST_VISITED = 8000
MOST_DEPTH = 60
MOST_CHILDREN = 1000
GRID_X, GRID_Y, MOST_POINTS = 48, 18, 1500  # where a table that is too large is asked what it shows
TEXT_LENGTH = 300

ROOT = "/org/a11y/atspi/accessible/root"
NULL = "/org/a11y/atspi/null"
ACCESSIBLE, COMPONENT = "org.a11y.atspi.Accessible", "org.a11y.atspi.Component"
TEXT, VALUE, PROPERTIES = "org.a11y.atspi.Text", "org.a11y.atspi.Value", "org.freedesktop.DBus.Properties"
SCREEN, WINDOW = 0, 1  # what coordinates are relative to
RECTANGLES = ("bounds", "whole", "outer")

# AT-SPI's numbers of roles (atspi-constants.h) -> ARIA's words. What is not here only holds others.
ROLES = {
    7: "checkbox", 8: "menuitemcheckbox", 10: "columnheader", 11: "combobox", 12: "textbox", 15: "slider",
    26: "img", 27: "img", 29: "text", 32: "option", 33: "menuitem", 35: "menuitem", 37: "tab", 40: "textbox",
    42: "progressbar", 43: "button", 44: "radio", 45: "menuitemradio", 47: "rowheader", 51: "slider",
    52: "spinbutton", 56: "cell", 57: "columnheader", 58: "rowheader", 59: "menuitem", 60: "textbox",
    61: "textbox", 62: "button", 64: "tooltip", 73: "text", 76: "combobox", 77: "textbox", 79: "textbox",
    81: "text", 83: "heading", 88: "link", 90: "row", 91: "treeitem", 103: "meter", 116: "text",
    129: "button",
}  # fmt: skip
MENU, PASSWORD, TOGGLE_BUTTON = 33, 40, 62
NEED_A_NAME = ("text", "img", "row", "cell", "option", "treeitem", "tooltip")
HAVE_TEXT, HAVE_NUMBER = ("textbox", "combobox"), ("slider", "spinbutton", "progressbar", "meter")
# Inside of these there may be so many that asking for them all would stop the application.
MAY_HOLD_MANY = (14, 49, 68, 82, 92, 93, 94, 95, 96)
PAGES, POPUPS = (82, 95), (33, 41, 64, 69)  # what holds a page, and the content of a popup
STATES = {4: "checked", 20: "checked", 12: "focused", 10: "expanded", 5: "collapsed", 23: "selected"}
ACTIVE, EDITABLE, PRESSED, SENSITIVE, SHOWING, VISIBLE, MANAGES_DESCENDANTS = 1, 7, 20, 24, 25, 30, 31
LABELLED_BY = 2


class Bus:
    """AT-SPI's own bus. A call that fails is answered by None."""

    def __init__(self, address: str) -> None:
        flags = Gio.DBusConnectionFlags
        kind = flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION
        self.connection = Gio.DBusConnection.new_for_address_sync(address, kind, None, None)
        self.deadline = time.monotonic() + BUDGET_S
        self.rounds = 0

    def ask(self, calls: list[Call]) -> list[Any]:
        """The answers, all asked for at once."""
        answers: list[Any] = [None] * len(calls)
        loop = GLib.MainLoop()
        left = [len(calls)]

        def answered(connection: Any, result: Any, place: int) -> None:
            with suppress(GLib.Error):  # it is gone, has no such interface, or does not answer
                answers[place] = connection.call_finish(result).unpack()
            left[0] -= 1
            if not left[0]:
                loop.quit()

        wait_ms = min(CALL_MS, int((self.deadline - time.monotonic()) * 1000))
        if not calls or wait_ms <= 0:
            return answers
        self.rounds += 1
        for place, ((name, path), interface, method, arguments) in enumerate(calls):
            flags = Gio.DBusCallFlags.NO_AUTO_START
            words = (name, path, interface, method, arguments, None, flags, wait_ms, None)
            self.connection.call(*words, answered, place)
        loop.run()
        return answers


def open_bus(addresses: list[str]) -> Optional[Bus]:
    for address in addresses:
        try:
            return Bus(address)
        except GLib.Error:
            continue  # what the X server names may have ended
    try:
        session = Gio.bus_get_sync(Gio.BusType.SESSION, None)
        answer = session.call_sync(
            "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress", None, None, 0, CALL_MS, None
        )
        return Bus(answer.unpack()[0])
    except GLib.Error:
        return None


class NodeInfo(NamedTuple):
    """What a node reports about itself."""

    node: Node
    role: int
    states: frozenset[int]
    name: str
    child_count: int
    box: Box
    children: list[Node]
    """Empty, too, where they were not asked for."""

    @property
    def is_shown(self) -> bool:
        return {SHOWING, VISIBLE} <= self.states


def children_call(node: Node) -> Call:
    return node, ACCESSIBLE, "GetChildren", None


def property_call(node: Node, name: str, interface: str = ACCESSIBLE) -> Call:
    # never GetAll: Qt 5 reads a second argument that it does not have, and crashes
    return node, PROPERTIES, "Get", GLib.Variant("(ss)", (interface, name))


def nodes_in(answer: Any) -> list[Node]:
    return [tuple(one) for one in answer[0]] if answer else []


def describe(bus: Bus, nodes: list[Node], relative_to: int, without_children: set[Node]) -> list[NodeInfo]:
    """What these nodes report about themselves, in one round; those that are gone are left out."""
    calls: list[Call] = []
    for node in nodes:
        calls += [
            (node, ACCESSIBLE, "GetRole", None),
            (node, ACCESSIBLE, "GetState", None),
            property_call(node, "Name"),
            property_call(node, "Description"),
            (node, COMPONENT, "GetExtents", GLib.Variant("(u)", (relative_to,))),
            property_call(node, "ChildCount") if node in without_children else children_call(node),
        ]
    answers = bus.ask(calls)
    found = []
    for place, node in enumerate(nodes):
        role, state, name, description, box, below = answers[6 * place : 6 * place + 6]
        if role and state and name:
            bits = sum(word << 32 * number for number, word in enumerate(state[0]))
            states = frozenset(number for number in range(64) if bits >> number & 1)
            text = name[0] or (description[0] if description else "")
            is_counted = node in without_children
            count = below[0] if is_counted and below else 0
            at = box[0] if box else (0, 0, 0, 0)
            found.append(
                NodeInfo(node, role[0], states, text, count, at, [] if is_counted else nodes_in(below))
            )
    return found


class Frame(NamedTuple):
    """The node of a window, and what makes screen points of its coordinates."""

    node: Node
    relative_to: int = SCREEN
    scale: float = 1.0
    off: tuple[float, float] = (0, 0)
    """Added after scaling."""


def frames_of(bus: Bus, window: dict[str, Any]) -> list[Frame]:
    """The window's own node; of a popup, whose content may hang below any window of its application, and of
    windows that nothing tells apart, all.
    """
    applications = nodes_in(bus.ask([children_call(("org.a11y.atspi.Registry", ROOT))])[0])
    driver = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
    pid_words = (driver[0], "GetConnectionUnixProcessID")
    pids = bus.ask([(driver, *pid_words, GLib.Variant("(s)", (one[0],))) for one in applications])
    own = [one for one, pid in zip(applications, pids) if pid and pid[0] == window["pid"]]
    answers = bus.ask([children_call(one) for one in own or applications])
    nodes = [frame for answer in answers for frame in nodes_in(answer)]
    # Chromium has no tree before attributes are asked for
    bus.ask([(node, ACCESSIBLE, "GetAttributes", None) for node in nodes])
    frames = describe(bus, nodes, SCREEN, set())
    if window["is_popup"]:
        return [Frame(frame.node) for frame in frames if own]
    scored = []
    for frame in frames:
        # GTK counts what the window manager draws around a window, too
        rectangles = [window[name] for name in RECTANGLES]
        fitting = [one for one in rectangles if is_near(frame.box[2:], one[2:])]
        scaled = [one for one in rectangles if scale_of(frame.box, one)]
        is_here = any(is_near(frame.box, one) for one in fitting)
        has_title = frame.name == window["title"]
        # a sandbox hides its processes: then only by title and size
        if own or (has_title and fitting):
            at = Frame(frame.node, WINDOW, off=tuple(window["whole"][:2]))
            if is_here:
                at = Frame(frame.node)
            elif scaled and not fitting:
                scale = scale_of(frame.box, scaled[0])
                x, y = (scaled[0][i] - scale * frame.box[i] for i in (0, 1))
                at = Frame(frame.node, SCREEN, scale, (x, y))
            has_focus = (ACTIVE in frame.states) == window["is_focused"]
            scored.append(((has_title + bool(fitting or scaled), is_here, has_focus), at))
    best = max((score for score, _ in scored), default=None)
    return [at for score, at in scored if score == best]


def scale_of(box: Box, rectangle: Any) -> float:
    """How many screen points one of the application's own is, by the sizes of a window (GDK_SCALE and
    QT_SCALE_FACTOR set it); 0 where they do not have the same shape.
    """
    scale = float(rectangle[2] / max(1, box[2]))
    return scale if 0.5 <= scale <= 4 and abs(box[3] * scale - rectangle[3]) <= 2 * max(1, scale) else 0.0


def is_near(one: Any, other: Any) -> bool:
    return all(abs(a - b) <= 2 for a, b in zip(one, other))


def shown_children(bus: Bus, known: NodeInfo, relative_to: int) -> list[Node]:
    """The children of a table that holds too many: what it reports at the points of a grid."""
    x, y, width, height = known.box
    points = [
        (left, top)
        for top in range(y + GRID_Y // 2, y + height, GRID_Y)
        for left in range(x + GRID_X // 4, x + width, GRID_X)
    ][:MOST_POINTS]
    method = (COMPONENT, "GetAccessibleAtPoint")
    answers = bus.ask(
        [(known.node, *method, GLib.Variant("(iiu)", (*point, relative_to))) for point in points]
    )
    found = dict.fromkeys(tuple(answer[0]) for answer in answers if answer)
    return [node for node in found if node != known.node and node[1] != NULL]


def walk(bus: Bus, frame: Node, relative_to: int, is_popup: bool) -> list[NodeInfo]:
    """The visible nodes below a frame; of a popup's application, those in something that pops up."""
    level, visited, found = [frame], {frame}, []
    doubtful: set[Node] = set()  # what may have too many children to ask for
    kinds = {frame: "window"}
    for depth in range(MOST_DEPTH):
        shown = [one for one in describe(bus, level, relative_to, doubtful) if one.is_shown or not depth]
        below = {one.node: one.children for one in shown}
        for one in shown:
            if one.node in doubtful:
                is_few = one.child_count <= MOST_CHILDREN and MANAGES_DESCENDANTS not in one.states
                below[one.node] = [] if is_few else shown_children(bus, one, relative_to)
        few = [one.node for one in shown if one.node in doubtful and not below[one.node]]
        below.update(zip(few, map(nodes_in, bus.ask([children_call(node) for node in few]))))
        level = []
        for one in shown:
            kind = kinds[one.node]
            if kind != "page" and one.role in POPUPS and (depth or is_popup):
                kind = "popup"
            if (kind == "popup") == is_popup or (one.role == MENU and kinds[one.node] != "popup"):
                found.append(one)
            for child in below[one.node]:
                if child not in visited and len(visited) < MOST_VISITED:
                    visited.add(child)
                    level.append(child)
                    kinds[child] = "page" if one.role in PAGES else kind
                    if one.role in MAY_HOLD_MANY:
                        doubtful.add(child)
        if not level:
            break
    return found


def clipped(box: Box, frame: Frame, bounds: Box) -> Optional[tuple[float, ...]]:
    x, y = (frame.scale * box[i] + frame.off[i] for i in (0, 1))
    width, height = (frame.scale * box[i] for i in (2, 3))
    left, top = max(x, bounds[0]), max(y, bounds[1])
    right, bottom = min(x + width, bounds[0] + bounds[2]), min(y + height, bounds[1] + bounds[3])
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None


def states_of(one: NodeInfo) -> list[str]:
    # a pressed button is checked only where it stays so; a text's being selected is no state of the element
    names = [
        name
        for number, name in STATES.items()
        if number in one.states and (number != PRESSED or one.role == TOGGLE_BUTTON)
    ]
    if SENSITIVE not in one.states:
        names.append("disabled")
    elif ROLES[one.role] == "textbox" and EDITABLE not in one.states:
        names.append("readonly")
    return list(dict.fromkeys(names))


def values_of(bus: Bus, elements: list[NodeInfo]) -> list[tuple[str, str]]:
    """Name and value of each: a field's text, never a password's, a slider's number, the label beside it."""
    calls: list[Call] = []
    for one in elements:
        role = ROLES[one.role]
        if role in HAVE_TEXT and one.role != PASSWORD:
            calls.append((one.node, TEXT, "GetText", GLib.Variant("(ii)", (0, TEXT_LENGTH))))
        elif role in HAVE_NUMBER:
            calls.append(property_call(one.node, "CurrentValue", VALUE))
    valued = [call[0] for call in calls]
    nameless = [one.node for one in elements if not one.name and ROLES[one.role] not in NEED_A_NAME]
    answers = bus.ask(calls + [(node, ACCESSIBLE, "GetRelationSet", None) for node in nameless])
    names = {one.node: one.name for one in elements}
    for node, answer in zip(nameless, answers[len(calls) :]):
        targets = [tuple(to) for kind, nodes in (answer or [[]])[0] if kind == LABELLED_BY for to in nodes]
        names[node] = " ".join(names.get(target, "") for target in targets)
    values = {node: answer[0] for node, answer in zip(valued, answers) if answer}
    texts = {node: one if isinstance(one, str) else f"{one:g}" for node, one in values.items()}
    return [(names[one.node], texts.get(one.node, "")) for one in elements]


def read(window: dict[str, Any]) -> dict[str, Any]:
    bus = open_bus(window["addresses"])
    if bus is None:
        return {"elements": [], "problem": "bus", "rounds": 0}
    frames = frames_of(bus, window)
    if len(frames) > 1 and not window["is_popup"]:
        return {"elements": [], "problem": "twins", "rounds": bus.rounds}
    rows: list[list[Any]] = []
    for frame in frames:
        nodes = walk(bus, frame.node, frame.relative_to, window["is_popup"])
        boxes = {one.node: clipped(one.box, frame, window["bounds"]) for one in nodes}
        elements = [one for one in nodes if one.role in ROLES and boxes[one.node]]
        for one, (name, value) in zip(elements, values_of(bus, elements)):
            box = boxes[one.node]
            if box and (name.strip() or ROLES[one.role] not in NEED_A_NAME):
                rows.append([ROLES[one.role], name, value, states_of(one), box])
    problem = "" if frames else "application"
    return {"elements": rows[:MOST_ELEMENTS], "problem": problem, "rounds": bus.rounds}


if __name__ == "__main__":
    print(json.dumps(read(json.loads(sys.argv[1]))))
