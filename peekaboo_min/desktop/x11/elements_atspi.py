"""A window as JSON -> [[[role, name, value, states, box]...], problem].

In: {pid, title, is_popup, is_focused, bounds, whole, outer}; `whole` is `bounds` with the shadow that GTK
draws, `outer` with the window manager's frame. Boxes are [x, y, width, height] in screen points; `problem`
explains an empty list. The system's own Python runs this file, because it has `gi`; it is never imported.
"""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple, Optional

import gi  # type: ignore[import-not-found,import-untyped,unused-ignore]

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

Box = tuple[float, float, float, float]

BUDGET_S, CALL_MS = 6.0, 2000  # for a reading, and for one call of an application
AGAIN_S = 0.5  # a browser builds a page's tree when it is first requested
MOST_ELEMENTS, MOST_CHILDREN = 1000, 1000  # as Desktop.read_elements promises; of one node
MANY_ROWS = 50  # of a list, table or tree: only visible ones are read
GRID_X, GRID_Y, MOST_POINTS = 64, 18, 1500  # few cells are smaller; GTK 3 answers 1,500 times in 1.3 s
TEXT_LENGTH = 100_000  # characters of a value; a whole log would block the application
LEAST_VISIBLE = 4  # screen points of an element that is cut off: a click on less may hit its neighbour
LARGEST = 32767  # X11's limit of a window's size; GTK 4 reports any number for undrawn elements
LARGEST_BORDER = 8  # of a window without a shadow; 5 in GTK 4.8
NOWHERE = -(1 << 31)  # in GTK 3, the position of what is out of sight
LARGEST_PADDING, LARGEST_BOX_PADDING = 32, 6  # a plain box has little padding, but may be partly empty
# libadwaita's dialogs (_message-dialog.scss): the padding above and below together -> the padding above
UNEVEN_PADDING = {41: 32, 33: 24, 36: 12}

# AT-SPI's role numbers (atspi-constants.h) -> ARIA's names. Roles that are not here are mere containers.
ROLES = {
    7: "checkbox", 8: "menuitemcheckbox", 10: "columnheader", 11: "combobox", 12: "textbox", 15: "slider",
    26: "img", 27: "img", 29: "text", 32: "option", 33: "menuitem", 35: "menuitem", 37: "tab", 40: "textbox",
    42: "progressbar", 43: "button", 44: "radio", 45: "menuitemradio", 47: "rowheader", 51: "slider",
    52: "spinbutton", 56: "cell", 57: "columnheader", 58: "rowheader", 59: "menuitem", 60: "textbox",
    61: "textbox", 62: "button", 64: "tooltip", 73: "text", 76: "combobox", 77: "textbox", 79: "textbox",
    81: "text", 83: "heading", 88: "link", 90: "row", 91: "treeitem", 103: "meter", 116: "text",
    129: "button",
}  # fmt: skip
MENU, PASSWORD, TOGGLE_BUTTON, VIEWPORT = 33, 40, 62, 68
NEED_A_NAME = ("text", "img", "row", "cell", "option", "treeitem", "tooltip")
NAMED_BY_TEXT = ("button", "cell", "option", "menuitem", "tab", "treeitem")
HAVE_NUMBER = ("slider", "spinbutton", "progressbar", "meter")
PAGES, POPUPS = (82, 95), (33, 41, 64, 69)  # containers of a page, and of a popup's content
TABLES = (55, 65, 66)
ROWS = (31, 98, *TABLES)
# roles that may show only a part of their content
CLIP = (14, 28, 49, VIEWPORT, *PAGES, *ROWS)
STATE = Atspi.StateType
STATES = {
    STATE.CHECKED: "checked", STATE.PRESSED: "checked", STATE.FOCUSED: "focused", STATE.EXPANDED: "expanded",
    STATE.COLLAPSED: "collapsed", STATE.SELECTED: "selected",
}  # fmt: skip
SCREEN, WINDOW = Atspi.CoordType.SCREEN, Atspi.CoordType.WINDOW


class Place(NamedTuple):
    """The transformation of a node's coordinates into screen points: scale, then move by x and y."""

    toolkit: str
    coordinates: Any = SCREEN
    scale: float = 1.0
    x: float = 0.0
    y: float = 0.0

    @property
    def is_gtk4(self) -> bool:
        return self.toolkit.startswith("GTK 4")

    def box(self, node: Any) -> Box:
        """Return a node's box in screen points; its size is 0 if the node is not drawn."""
        with suppress(GLib.Error):
            at = node.get_extents(self.coordinates)
            if 0 < at.width <= LARGEST and 0 < at.height <= LARGEST and at.x != NOWHERE:
                x, y, width, height = (self.scale * size for size in (at.x, at.y, at.width, at.height))
                return (x + self.x, y + self.y, width, height)
        return (0, 0, 0, 0)

    def fitted(self, box: Box, rectangle: Box, scale: float) -> Place:
        """Return the transformation that puts this untransformed box at the rectangle's origin."""
        return self._replace(scale=scale, x=rectangle[0] - scale * box[0], y=rectangle[1] - scale * box[1])

    def inside(self, container: Box, children: list[Any], most: float) -> Place:
        """Return the transformation for a container's children, moved by the container's padding.

        GTK 4.10 to 4.18 reports the children too far left and up, by the container's padding and border
        (gtk_widget_accessible_get_bounds), and does not report these. So take half of the space that the
        children leave free. most: the largest padding; with more free space, they do not fill the container.
        """
        boxes = [box for box in map(self.box, children) if box[2]]
        added = []
        for axis in (0, 1):
            spans = [(box[axis] - container[axis], box[axis + 2]) for box in boxes]
            start = min((start for start, _ in spans), default=0.0)
            end = max((start + size for start, size in spans), default=0.0)
            rest = (container[axis + 2] - end - start) / self.scale
            half = rest / 2 if start >= 0 and 0 < rest <= 2 * most else 0.0
            added.append(self.scale * (UNEVEN_PADDING.get(int(rest), half) if axis else half))
        return self._replace(x=self.x + added[0], y=self.y + added[1])


class Around(NamedTuple):
    """The surroundings of a node; the clips are in screen points."""

    place: Place
    clip: Box  # the visible part of all scrolling containers around it
    narrow_clip: Box  # of all containers
    kind: str = "window"  # or popup, or page
    row: Optional[list[Any]] = None  # of the innermost element around it


def children_of(node: Any) -> list[Any]:
    children = [node.get_child_at_index(index) for index in range(min(node.get_child_count(), MOST_CHILDREN))]
    return [child for child in children if child is not None]


def intersection(box: Box, other: Box) -> Box:
    """Return the intersection of two boxes; its size is 0 if they do not meet."""
    left, top = max(box[0], other[0]), max(box[1], other[1])
    right, bottom = min(box[0] + box[2], other[0] + other[2]), min(box[1] + box[3], other[1] + other[3])
    return (left, top, right - left, bottom - top) if right > left and bottom > top else (0, 0, 0, 0)


def frames_of(window: dict[str, Any]) -> list[tuple[Any, Place]]:
    """Return the nodes that fit the window best: one, or more if windows look alike; for a popup, all."""
    frames: list[tuple[tuple[bool, ...], Place, Any]] = []
    for application in children_of(Atspi.get_desktop(0)):
        with suppress(GLib.Error):  # the application has just ended
            if application.get_process_id() == window["pid"]:
                toolkit = f"{application.get_toolkit_name()} {application.get_toolkit_version()}"
                frames += [(*match(node, toolkit, window), node) for node in children_of(application)]
    best = max((score for score, _, _ in frames), default=None)
    return [(node, place) for score, place, node in frames if score == best]


def match(node: Any, toolkit: str, window: dict[str, Any]) -> tuple[tuple[bool, ...], Place]:
    """Score how well a frame fits the window (title, size, position, focus); return its transformation."""
    node.get_attributes()  # Chromium builds its tree when the attributes are requested
    # GTK 4 reports no screen coordinates
    place = Place(toolkit, WINDOW if toolkit.startswith("GTK 4") else SCREEN)
    if window["is_popup"]:
        return (), place
    box = place.box(node)
    # GTK includes the window manager's frame
    names = ("bounds", "whole", "outer") if place.is_gtk4 else ("whole", "bounds", "outer")
    fits = [(scale_of(box, window[name]), window[name]) for name in names]
    fits += bordered(box, window["bounds"]) if place.is_gtk4 else []
    scale, rectangle = min(fits, key=lambda fit: abs(fit[0] - 1) if fit[0] else LARGEST)
    fitted = place.fitted(box, rectangle, scale or 1.0)
    is_here = max(abs(fitted.x), abs(fitted.y)) <= 2 and not place.is_gtk4
    has_focus = node.get_state_set().contains(STATE.ACTIVE) == window["is_focused"]
    return ((node.get_name() or "") == window["title"], bool(scale), is_here, has_focus), fitted


def bordered(box: Box, rectangle: Any) -> list[tuple[int, Box]]:
    """Return the scale and the inner rectangle if a border of equal width on all sides is around the box.

    GTK 4 draws one around its own title bar if there can be no shadow, and excludes it from all positions.
    """
    fits = []
    for scale in (1, 2, 3):
        x, y = ((rectangle[axis] - scale * box[axis]) / 2 for axis in (2, 3))
        if 0 < x <= LARGEST_BORDER * scale and abs(x - y) <= scale:
            fits.append((scale, (rectangle[0] + x, rectangle[1] + y, scale * box[2], scale * box[3])))
    return fits


def scale_of(box: Box, rectangle: Any) -> float:
    """Return GDK_SCALE or QT_SCALE_FACTOR, from two sizes of one window; 0 if the shapes differ."""
    if max(abs(box[axis] - rectangle[axis]) for axis in (2, 3)) <= 2:
        return 1.0
    scale = float(rectangle[2] / max(1, box[2]))
    is_scale = 0.5 <= scale <= 4 and abs(scale - 1) > 0.1  # a ratio closer to 1 is a border, not a scale
    return scale if is_scale and abs(box[3] * scale - rectangle[3]) <= 2 * max(1, scale) else 0.0


class Reader:
    """Collects the elements of a window, depth first below its frames."""

    def __init__(self, window: dict[str, Any], frames: list[tuple[Any, Place]]) -> None:
        self.bounds: Box = tuple(window["bounds"])
        self.is_popup = bool(window["is_popup"])
        self.until = time.monotonic() + BUDGET_S
        self.rows: list[list[Any]] = []
        self.has_empty_page = False
        for node, place in frames:
            with suppress(GLib.Error):
                node.clear_cache()
                self.visit(node, Around(place, self.bounds, self.bounds), is_frame=True)

    def visit(self, node: Any, around: Around, is_frame: bool = False) -> None:
        """Collect a node and all below it. Raises GLib.Error if it is gone or does not answer."""
        if len(self.rows) >= MOST_ELEMENTS or time.monotonic() > self.until:
            return
        role, rows_before = int(node.get_role()), len(self.rows)
        states = set(node.get_state_set().get_states())
        # GTK 3 reports that a scrolled viewport is hidden
        is_showing = around.place.is_gtk4 or role == VIEWPORT or STATE.SHOWING in states
        if not is_frame and not (STATE.VISIBLE in states and is_showing):
            return
        is_menu_title = role == MENU and around.kind == "window"  # a part of the window, not of its own popup
        around = self.entered(node, role, around, is_frame)
        box = around.place.box(node)
        if box[2] and not is_frame:
            visible, narrow = intersection(box, around.clip), intersection(box, around.narrow_clip)
            is_qt = around.place.toolkit.startswith("Qt")  # there, any widget may clip its children
            if (role in CLIP and not visible[2]) or (is_qt and not narrow[2]):
                return  # it is scrolled out of sight, and with it all below it
            narrow = narrow if narrow[2] else visible
            around = around._replace(clip=visible if role in CLIP else around.clip, narrow_clip=narrow)
            is_visible = all(size >= min(LEAST_VISIBLE, whole) for size, whole in zip(narrow[2:], box[2:]))
            is_in_this_window = (around.kind == "popup") == self.is_popup
            if is_visible and is_in_this_window != is_menu_title:
                around = around._replace(row=self.listed(node, role, states, around))
        children = self.children(node, around)
        # in GTK 4.8, positions are right, and only a widget's own padding is missing from its box
        if re.match(r"GTK 4\.\d\d", around.place.toolkit) and role not in CLIP:  # a list may be partly empty
            is_plain_box = not states.isdisjoint({STATE.VERTICAL, STATE.HORIZONTAL})
            most = LARGEST_BOX_PADDING if is_plain_box else LARGEST_PADDING
            around = around._replace(place=around.place.inside(box, children, most))
        for child in children:
            with suppress(GLib.Error, RecursionError):
                self.visit(child, around)
        self.has_empty_page |= role in PAGES and len(self.rows) == rows_before

    def entered(self, node: Any, role: int, around: Around, is_frame: bool) -> Around:
        """Return the surroundings inside this node, which may begin a popup or a page."""
        place = around.place
        if role in PAGES:
            # Chromium reports its own widgets in scaled points, but pages in screen pixels
            is_browser = place.toolkit.startswith("Chromium")
            return around._replace(kind="page", place=Place(place.toolkit) if is_browser else place)
        if around.kind != "window":
            return around
        # GTK 4.8's page of a stack or notebook is no component
        has_layer = place.is_gtk4 and "Component" in node.get_interfaces()
        if has_layer and node.get_layer() == Atspi.ComponentLayer.POPUP:
            if self.is_popup:
                box = Place(place.toolkit, WINDOW).box(node)
                place = place.fitted(box, self.bounds, self.bounds[2] / max(1, box[2]))
            return around._replace(kind="popup", place=place)
        is_popup = role in POPUPS and (self.is_popup or not is_frame)
        return around._replace(kind="popup") if is_popup else around

    def children(self, node: Any, around: Around) -> list[Any]:
        """Return a node's children; of many, the visible ones: reading all would block the application."""
        count, role, place = node.get_child_count(), int(node.get_role()), around.place
        has_rows = role in ROWS and place.toolkit.startswith(("gtk", "GTK 4", "Qt"))
        if count <= (MANY_ROWS if has_rows else MOST_CHILDREN):
            return children_of(node)
        if place.is_gtk4:  # has no children at points
            return drawn_rows(children_of(node), around)
        left, top, width, height = map(int, around.clip)
        xs, ys = range(left + 12, left + width, GRID_X), range(top + 9, top + height, GRID_Y)
        points = [((x - place.x) / place.scale, (y - place.y) / place.scale) for y in ys for x in xs]
        child_at = node.get_accessible_at_point
        nodes = dict.fromkeys(child_at(*map(int, xy), place.coordinates) for xy in points[:MOST_POINTS])
        hits = [child for child in nodes if child is not None and child != node]
        if not has_rows:
            return hits
        # the grid misses narrow cells, rows that are cut off, and the column headers, which are the first
        columns = 1 + (Atspi.Table.get_n_columns(node) if role in TABLES else 0)  # Qt's rows have a header
        indexes = [child.get_index_in_parent() for child in hits] or [0]
        start, end = max(0, min(indexes) - columns), min(max(indexes) + columns + 1, count)
        shown = map(node.get_child_at_index, (*range(min(columns, start)), *range(start, end)))
        return [child for child in shown if child is not None]

    def listed(self, node: Any, role: int, states: set[Any], around: Around) -> Optional[list[Any]]:
        """List the node if it is an element. Return its row, or else the row of the element around it."""
        # a page's editor has no role of its own
        aria = ROLES.get(role, "textbox" if {STATE.EDITABLE, STATE.FOCUSABLE} <= states else "")
        name = name_of(node) or (label_of(node) if aria and aria not in NEED_A_NAME else "")
        if aria == "tab" and around.place.is_gtk4:
            name = ""  # in GTK 4.8 each is named Tab: use its text
        above = around.row
        if not aria or (not name and aria == "text"):
            return above
        if above and aria == "text":
            # GTK 4: the label of a button, the text of a cell, what a combobox shows
            if above[0] == "combobox":
                above[2] = above[2] or name
            elif above[0] in NAMED_BY_TEXT:
                above[1] = above[1] or name
            if name in above[1:3]:
                return above
        if above and aria == "button" and (above[0] == "combobox" or above[:2] == ["button", name]):
            return above
        value = value_of(node, role, aria, states, around.place.toolkit)
        self.rows.append([aria, name, value, states_of(role, aria, states), around.narrow_clip])
        return self.rows[-1]


def drawn_rows(rows: list[Any], around: Around) -> list[Any]:
    """Return the visible rows, which follow each other; others have old places in GTK 4.8."""
    runs, right, bottom = [list[Any]()], 0.0, 0.0
    for row in rows:
        x, y, width, height = box = around.place.box(row)
        if intersection(box, around.clip)[2]:
            if x < right - 1 and y < bottom - 1:
                runs.append([])
            runs[-1].append(row)
            right, bottom = x + width, y + height
    return max(runs, key=len)


def name_of(node: Any) -> str:
    name = node.get_name() or ""
    is_class = name.startswith("Gtk") and name.isalpha()  # in GTK 4.8
    return ((not is_class and name) or node.get_description() or "").strip()


def label_of(node: Any) -> str:
    """Return the texts that are declared as the node's labels."""
    for relation in node.get_relation_set():
        if relation.get_relation_type() == Atspi.RelationType.LABELLED_BY:
            return " ".join(name_of(relation.get_target(n)) for n in range(relation.get_n_targets()))
    return ""


def states_of(role: int, aria: str, states: set[Any]) -> list[str]:
    # only a toggle button that is pressed is checked
    shown = states if role == TOGGLE_BUTTON else states - {STATE.PRESSED}
    names = [name for state, name in STATES.items() if state in shown]
    if STATE.SENSITIVE not in states:
        names.append("disabled")
    elif aria == "textbox" and STATE.EDITABLE not in states:
        names.append("readonly")
    if aria == "textbox" and STATE.MULTI_LINE in states:
        names.append("multiline")
    return list(dict.fromkeys(names))


def value_of(node: Any, role: int, aria: str, states: set[Any], toolkit: str) -> str:
    """Return a field's text (never a password), a slider's number, or a combobox's choice."""
    with suppress(GLib.Error):
        if aria in HAVE_NUMBER:
            if aria == "spinbutton" and is_masked(node):
                return ""
            return f"{Atspi.Value.get_current_value(node):.10g}"
        if aria == "textbox" and role != PASSWORD:
            return text_of(node, STATE.MULTI_LINE in states or toolkit.startswith("Qt"))
        if aria == "combobox":
            items = [item for menu in children_of(node) for item in children_of(menu)]
            chosen = [name_of(item) for item in items if item.get_state_set().contains(STATE.SELECTED)]
            return " ".join(chosen) or text_of(node, False)
    return ""


def is_masked(node: Any) -> bool:
    # a hidden entry shows one character again and again
    with suppress(GLib.Error):
        shown = set(Atspi.Text.get_text(node, 0, Atspi.Text.get_character_count(node)) or "")
        return len(shown) == 1 and not shown.pop().isalnum()
    return False  # Qt's has no text


def text_of(node: Any, is_known_to_be_shown: bool) -> str:
    # Qt returns nothing if more is requested than exists
    text = Atspi.Text.get_text(node, 0, min(Atspi.Text.get_character_count(node), TEXT_LENGTH)) or ""
    if text and not is_known_to_be_shown:
        # GTK 4 returns the text of a password entry, but its line as drawn: bullets
        line = Atspi.Text.get_string_at_offset(node, 0, Atspi.TextGranularity.LINE).content or ""
        if not line or not (line.startswith(text) or text.startswith(line)):
            return ""
    return text.replace("\N{OBJECT REPLACEMENT CHARACTER}", "")


def read(window: dict[str, Any]) -> tuple[list[list[Any]], str]:
    Atspi.init()
    Atspi.set_timeout(CALL_MS, CALL_MS)
    frames = frames_of(window)
    if not frames and not Atspi.get_desktop(0).get_child_count():
        time.sleep(AGAIN_S)  # the bus has just started, and Qt's applications join it then
        frames = frames_of(window)
    if not frames:
        return [], "its application is not on the accessibility bus"
    if len(frames) > 1 and not window["is_popup"]:
        return [], "another of its windows has the same title, size and place; focus this window first"
    reader = Reader(window, frames)
    if reader.has_empty_page or not reader.rows:
        time.sleep(AGAIN_S)
        reader = Reader(window, frames)
    return [row for row in reader.rows if row[1] or row[0] not in NEED_A_NAME], "its tree is empty"


if __name__ == "__main__":
    print(json.dumps(read(json.loads(sys.argv[1]))))
