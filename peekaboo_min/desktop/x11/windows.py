"""The windows, apps and displays of an X server, in few child processes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Optional

from ...core.cancellation import in_parallel
from ...core.errors import ErrorCode, PeekabooError
from ...core.models import App, Display, Rect, Scene, Window
from ...core.text import clean_text
from .descriptions import (
    Facts,
    Geometry,
    ask_facts,
    ask_geometries,
    ask_properties,
    first_id_in,
    number_in,
    properties_of,
    texts_of,
)
from .server import ask_x, has_compositor
from .window_tree import Tree, TreeNode, read_tree

_TREE_TRIES = 5
_CLIENT_BITS = 21  # the windows of one X client share the bits of their ids above these
_POPUP_LAYER = 101  # as a Mac numbers its menus
_UNOWNED_LAYER = 25
_ALL_DESKTOPS = 0xFFFFFFFF
_ROOT_PROPERTIES = (
    "_NET_CLIENT_LIST_STACKING",
    "_NET_ACTIVE_WINDOW",
    "_NET_CURRENT_DESKTOP",
    "_NET_SUPPORTING_WM_CHECK",
)


def is_same_client(window_id: int, other_id: int) -> bool:
    """Whether two windows were made by one connection to the X server, which is one program."""
    return window_id >> _CLIENT_BITS == other_id >> _CLIENT_BITS


@dataclass(frozen=True)
class _Root:
    """What the window manager writes on the root window; empty and None where there is none."""

    has_list: bool
    """Whether it keeps a list of its clients."""
    client_ids: tuple[int, ...]
    """Front to back."""
    active_id: Optional[int]
    desktop: Optional[int]
    manager_id: Optional[int]
    """A window of the window manager's own."""


def take_scene() -> Scene:
    """Everything at once. The windows of the window manager's list are described while xwininfo walks the
    tree.
    """
    found: dict[str, Any] = {}
    looks: dict[str, Callable[[], object]] = {
        "tree": _ask_tree,
        "clients": _ask_clients,
        "displays": _ask_displays,
    }

    def look(name: str) -> None:
        found[name] = looks[name]()

    in_parallel(look, list(looks))
    root: _Root
    root, listed = found["clients"]
    tree = read_tree(found["tree"])
    facts = _all_facts(tree, root, listed)
    windows = _stacked([_window(one, tree, root, facts) for one in facts], tree, root)
    windows = _with_owners(_with_focus(windows, tree, root.active_id))
    marked = _with_obscured(windows)
    if marked != windows and not has_compositor():
        windows = marked
    return Scene(tuple(windows), tuple(_apps(windows)), tuple(found["displays"]))


def _ask_tree() -> str:
    """xwininfo's walk through all windows; it fails as a whole when one closes in that moment: ask again."""
    for left in reversed(range(_TREE_TRIES)):
        try:
            return ask_x(["xwininfo", "-root", "-tree"])
        except PeekabooError as e:
            if e.code is not ErrorCode.WINDOW_NOT_FOUND or not left:
                raise
    raise AssertionError("the last try returns or raises")


def _ask_displays() -> list[Display]:
    text = ask_x(["xdpyinfo", "-ext", "XINERAMA"])
    heads = re.findall(r"head #\d+: (\d+)x(\d+) @ (-?\d+),(-?\d+)", text)
    whole = re.search(r"dimensions: +(\d+)x(\d+) pixels", text)
    if not heads and whole:
        heads = [(*whole.groups(), "0", "0")]
    if not heads:
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED, "xdpyinfo named no screen", hint="see the details", details=text[:300]
        )
    return [
        Display(number, f"Screen {number}", Rect(float(x), float(y), float(w), float(h)))
        for number, (w, h, x, y) in enumerate(heads, 1)
    ]


def _ask_clients() -> tuple[_Root, dict[int, dict[str, str]]]:
    """The window manager's list, and the properties of the windows in it."""
    values = properties_of(ask_x(["xprop", "-root", *_ROOT_PROPERTIES]))
    listed = values.get("_NET_CLIENT_LIST_STACKING")
    ids = tuple(int(one, 16) for one in re.findall(r"0x[0-9a-f]+", listed or ""))
    root = _Root(
        listed is not None,
        tuple(reversed(ids)),
        first_id_in(values.get("_NET_ACTIVE_WINDOW", "")),
        number_in(values.get("_NET_CURRENT_DESKTOP", "")),
        first_id_in(values.get("_NET_SUPPORTING_WM_CHECK", "")),
    )
    return root, ask_properties(root.client_ids)


def _all_facts(tree: Tree, root: _Root, listed: dict[int, dict[str, str]]) -> list[Facts]:
    """The clients, and the visible top-level windows that contain none: popups, and all of them without a
    manager.
    """
    if not root.has_list:
        # a manager of the old kind puts a client into a frame: it is the window in there that has WM_STATE
        within = [node.window_id for node in tree.nodes if not node.is_top and node.has_class]
        clients = {one.window_id: one for one in ask_facts(within) if one.is_client}
    else:
        clients = {one: facts for one in listed if (facts := _by_tree(one, listed[one], tree, root))}
    wanted = listed.keys() | clients.keys()
    frames = {tree.known[one].top_id for one in wanted if one in tree.known}
    others = [
        node.window_id for node in tree.tops() if node.window_id not in wanted | frames and not node.is_tiny
    ]
    doubtful = [one for one in listed if one not in clients]
    shapes = ask_geometries(list(dict.fromkeys([*doubtful, *others])))
    asked = [Facts(one, listed[one], shapes[one]) for one in doubtful if one in shapes]
    shown = [
        one
        for one in others
        if one in shapes
        and shapes[one].is_viewable
        and not shapes[one].is_input_only
        and max(shapes[one].bounds.width, shapes[one].bounds.height) > 1
    ]
    found = [Facts(one, properties, shapes[one]) for one, properties in ask_properties(shown).items()]
    return [*clients.values(), *asked, *found, *_minimised_without_list(tree, root, shapes, shown)]


def _by_tree(window_id: int, properties: dict[str, str], tree: Tree, root: _Root) -> Optional[Facts]:
    """A client whose place the tree tells, and whose properties say that it is shown; None where xwininfo
    must be asked: it is hidden, elsewhere or without a frame, or a line break in its title may fake its line.
    """
    node = tree.known.get(window_id)
    desktop = number_in(properties.get("_NET_WM_DESKTOP", ""))
    is_here = root.desktop is not None and desktop in (root.desktop, _ALL_DESKTOPS)
    is_normal = "window state: Normal" in properties.get("WM_STATE", "")
    is_hidden = "_NET_WM_STATE_HIDDEN" in properties.get("_NET_WM_STATE", "")
    has_break = any("\\n" in properties.get(name, "") for name in ("_NET_WM_NAME", "WM_NAME", "WM_CLASS"))
    if node is None or node.is_top or has_break or is_hidden or not (is_here and is_normal):
        return None
    return Facts(window_id, properties, Geometry(node.bounds, 0, True, False, False))


def _minimised_without_list(
    tree: Tree, root: _Root, shapes: dict[int, Geometry], shown: list[int]
) -> list[Facts]:
    """Top-level clients that a manager without a client list and without frames has hidden."""
    if root.has_list:
        return []
    hidden = [one for one in shapes if one not in shown and one in tree.known and tree.known[one].has_class]
    return [one for one in ask_facts(hidden) if one.is_client]


def _window(one: Facts, tree: Tree, root: _Root, facts: Sequence[Facts]) -> Window:
    properties, geometry = one.properties, one.geometry
    node = tree.known.get(one.window_id)
    top = tree.known.get(node.top_id) if node else None
    is_client = one.is_client or one.window_id in root.client_ids
    is_popup = not is_client and geometry.is_override_redirect
    desktop = number_in(properties.get("_NET_WM_DESKTOP", ""))
    is_elsewhere = desktop not in (None, _ALL_DESKTOPS, root.desktop) and root.desktop is not None
    is_iconic = "window state: Iconic" in properties.get("WM_STATE", "")
    known_ids = {fact.window_id for fact in facts}
    parent_id = one.parent_id if one.parent_id in known_ids - {one.window_id} else None
    title = texts_of(properties.get("_NET_WM_NAME", "")) or texts_of(properties.get("WM_NAME", ""))
    # without a window manager every top-level window counts; with one, what it does not manage is its own
    # decoration
    is_managers = root.manager_id is not None and is_same_client(one.window_id, root.manager_id)
    counts = is_client or ((is_popup or not root.has_list) and not is_managers)
    return Window(
        window_id=one.window_id,
        app_name=one.class_name if counts else "",
        pid=one.pid,
        title=clean_text(title[0]) if title else "",
        bounds=geometry.bounds,
        layer=_layer(properties.get("_NET_WM_WINDOW_TYPE", ""), is_popup, counts),
        is_on_screen=geometry.is_viewable and not (one.has_state("HIDDEN") and is_client),
        frame=_frame(top, geometry.bounds),
        kind=_kind(properties.get("_NET_WM_WINDOW_TYPE", ""), is_popup, parent_id),
        parent_id=parent_id,
        is_modal=parent_id is not None and one.has_state("MODAL"),
        is_minimised=is_client and not is_elsewhere and (one.has_state("HIDDEN") or is_iconic),
        frame_id=node.top_id if node and not node.is_top else None,
        identity=_identity(one, node),
    )


def _frame(top: Optional[TreeNode], bounds: Rect) -> Optional[Rect]:
    return top.bounds if top and top.bounds != bounds and top.bounds.encloses(bounds) else None


def _identity(one: Facts, node: Optional[TreeNode]) -> str:
    """What another window with this id would hardly have: its frame, which window managers number upwards;
    where there is none and no pid, its title (class and pid are compared anyway).
    """
    if node and not node.is_top:
        return f"frame {node.top_id}"
    if one.pid is not None:
        return ""
    return f"title {one.properties.get('_NET_WM_NAME', '')}{one.properties.get('WM_NAME', '')}"


def _kind(window_type: str, is_popup: bool, parent_id: Optional[int]) -> str:
    if is_popup:
        return "popup"
    return "dialog" if parent_id is not None or "_DIALOG" in window_type else "window"


def _layer(window_type: str, is_popup: bool, counts: bool) -> int:
    """The window server of a Mac numbers its layers; here the type of a dock or a desktop means another
    layer.
    """
    if is_popup:
        return _POPUP_LAYER
    if not counts:
        return _UNOWNED_LAYER
    for name, layer in (("_DOCK", 20), ("_DESKTOP", -20), ("_NOTIFICATION", 25), ("_TOOLTIP", 25)):
        if name in window_type:
            return layer
    return 0


def _stacked(windows: list[Window], tree: Tree, root: _Root) -> list[Window]:
    """Front to back, by the tree; where a title fakes lines of it by the manager's list, popups first."""
    if tree.is_faked and root.has_list:
        places = {window_id: place for place, window_id in enumerate(root.client_ids)}
        return sorted(windows, key=lambda one: places.get(one.window_id, -1))
    places = {}
    for place, node in enumerate(tree.nodes):
        places.setdefault(node.window_id, place)
    return sorted(windows, key=lambda one: places.get(one.frame_id or one.window_id, len(places)))


def _with_focus(windows: list[Window], tree: Tree, active_id: Optional[int]) -> list[Window]:
    focused_id = active_id or window_with_input_focus()
    node = tree.known.get(focused_id)
    meant = {focused_id, node.top_id if node else focused_id}
    return [
        replace(one, is_focused=True) if meant & {one.window_id, one.frame_id} and not one.is_popup else one
        for one in windows
    ]


def window_with_input_focus() -> int:
    """The window that has the X input focus, 0 for none. xdotool names the client, not a child of it."""
    try:
        return int(ask_x(["xdotool", "getwindowfocus"]).strip() or 0)
    except (PeekabooError, ValueError) as e:
        if isinstance(e, PeekabooError) and e.code not in (
            ErrorCode.PROGRAM_FAILED,
            ErrorCode.WINDOW_NOT_FOUND,
        ):
            raise
        return 0


def _with_owners(windows: list[Window]) -> list[Window]:
    """Give each popup its owner's name, pid and window: by its pid, else by the client that made it."""
    owners = [one for one in windows if not one.is_popup and one.app_name]
    owners.sort(key=lambda one: not one.is_focused)
    return [_with_owner(one, owners) if one.is_popup else one for one in windows]


def _with_owner(popup: Window, owners: list[Window]) -> Window:
    fitting = [one for one in owners if popup.pid is not None and one.pid == popup.pid]
    fitting = fitting or [one for one in owners if is_same_client(one.window_id, popup.window_id)]
    if not fitting:
        return popup
    parent_id = popup.parent_id if popup.parent_id is not None else fitting[0].window_id
    pid = popup.pid if popup.pid is not None else fitting[0].pid
    return replace(popup, app_name=fitting[0].app_name, pid=pid, parent_id=parent_id)


def _with_obscured(windows: list[Window]) -> list[Window]:
    """Mark what a capture would not show as it is: without a compositor the pixels below a window do not
    exist.
    """
    marked = []
    for place, window in enumerate(windows):
        above = [one for one in windows[:place] if one.is_on_screen and one.outer.overlaps(window.bounds)]
        marked.append(replace(window, is_obscured=True) if above and window.is_on_screen else window)
    return marked


def _apps(windows: Sequence[Window]) -> list[App]:
    counted = [one for one in windows if one.app_name and one.layer == 0]
    counts = Counter((one.app_name, one.pid) for one in counted if one.is_on_screen)
    active = {(one.app_name, one.pid) for one in counted if one.is_focused}
    return [
        App(name, pid, is_active=(name, pid) in active, window_count=counts[(name, pid)])
        for name, pid in dict.fromkeys((one.app_name, one.pid) for one in counted)
    ]
