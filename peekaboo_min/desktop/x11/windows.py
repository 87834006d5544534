"""The windows, apps and displays of an X server, in one listing."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Sequence, Set
from typing import NamedTuple, Optional

from ...core.models import App, Display, Rect, Scene, Window
from ...core.text import clean_text
from .connection import (
    ATTRIBUTES,
    CHILDREN,
    GEOMETRY,
    INPUT_ONLY,
    ORIGIN,
    OWNER,
    Reply,
    XConnection,
    is_same_client,
    property_of,
    request,
    x_connection,
)

_ALL_DESKTOPS = 0xFFFFFFFF
_QUERY_SCREENS = 5  # a request of the extension Xinerama
_ICONIC = 3  # a value of WM_STATE
_MANAGED = (1, _ICONIC)
_PROPERTIES = (
    "WM_STATE", "_NET_WM_NAME", "WM_NAME", "WM_CLASS", "_NET_WM_PID", "_NET_WM_WINDOW_TYPE", "_NET_WM_STATE",
    "_NET_WM_DESKTOP", "WM_TRANSIENT_FOR", "_GTK_FRAME_EXTENTS"
)  # fmt: skip
# i3lock, xsecurelock, XScreenSaver, xfce4-screensaver and others, but no clock
_LOCKER = re.compile(r"(?<!c)lock|screensaver", re.I)
# The properties of the root window that a window manager sets.
_MANAGER, _LIST = "_NET_SUPPORTING_WM_CHECK", "_NET_CLIENT_LIST_STACKING"
_ACTIVE, _DESKTOP = "_NET_ACTIVE_WINDOW", "_NET_CURRENT_DESKTOP"
_HIDDEN, _MODAL, _DIALOG = "_NET_WM_STATE_HIDDEN", "_NET_WM_STATE_MODAL", "_NET_WM_WINDOW_TYPE_DIALOG"
_SHADED = "_NET_WM_STATE_SHADED"  # rolled up into its title bar; its content may stay mapped
_TYPE = "_NET_WM_WINDOW_TYPE_"
_MENUS = {_TYPE + kind for kind in ("MENU", "DROPDOWN_MENU", "POPUP_MENU")}
_TOOLTIPS = {_TYPE + kind for kind in ("TOOLTIP", "NOTIFICATION")}
# X11 has no layers; these numbers stand for the layers of a Mac's window server
_LAYERS = {_TYPE + "DOCK": 20, _TYPE + "DESKTOP": -20, **dict.fromkeys(_TOOLTIPS, 25)}


def own_rect(window: Window) -> Rect:
    """Return the rectangle of the X window itself, which includes the shadow that GTK draws into it."""
    left, right, above, below = window.insets
    x, y, width, height = window.bounds
    return Rect(x - left, y - above, width + left + right, height + above + below)


def shown_bounds(window_id: int) -> Optional[Rect]:
    """Read a window's current bounds; None if it is hidden or gone."""
    with x_connection() as server:
        facts = _read_facts(server, server.atoms(_PROPERTIES), {window_id: window_id}).get(window_id)
    return facts.bounds if facts and facts.is_viewable else None


class _Root(NamedTuple):
    """The root window's properties; 0, None and empty if no window manager runs."""

    manager_id: int
    active_id: int
    desktop: Optional[int]
    client_ids: frozenset[int]


class _Facts(NamedTuple):
    window_id: int
    top_id: int  # the top-level window that contains it; its own id if it is one
    bounds: Rect
    insets: tuple[float, ...]  # see Window.insets
    is_viewable: bool
    is_override_redirect: bool
    is_input_only: bool
    properties: dict[str, Reply]
    kinds: frozenset[str]  # the known names in its _NET_WM_STATE and _NET_WM_WINDOW_TYPE

    def number(self, name: str) -> Optional[int]:
        return next(iter(self.properties[name].numbers()), None)

    def texts(self, name: str) -> list[str]:
        return self.properties[name].texts()

    @property
    def has_pixels(self) -> bool:
        """False for hidden windows and for the tiny helper windows of programs."""
        return self.is_viewable and not self.is_input_only and max(self.bounds.width, self.bounds.height) > 1

    @property
    def popup_kind(self) -> str:
        return "popup" if self.kinds.isdisjoint(_TOOLTIPS) else "tooltip"

    @property
    def is_put_away(self) -> bool:
        return self.number("WM_STATE") == _ICONIC or bool({_HIDDEN, _SHADED} & self.kinds)


def take_scene() -> Scene:
    """List all windows, apps and displays over one connection."""
    with x_connection() as server:
        compositor = f"_NET_WM_CM_S{server.screen}"
        names = (*_PROPERTIES, _MANAGER, _LIST, _ACTIVE, _DESKTOP, _HIDDEN, _SHADED, _MODAL, _DIALOG)
        atoms = server.atoms([*names, *_MENUS, *_LAYERS, compositor])
        root = _read_root(server, atoms)
        tree, owner = server.ask([request(CHILDREN, server.root_id), request(OWNER, atoms[compositor])])
        top_ids = tree.children()
        clients = _clients(server, atoms["WM_STATE"], root.client_ids, top_ids)
        root = root._replace(client_ids=frozenset(clients))
        facts = _read_facts(server, atoms, {**dict(zip(top_ids, top_ids)), **clients})
        focused_id = root.active_id or server.client_with_focus()
        displays = _read_displays(server)
        popups = (window for window in facts.values() if window.is_override_redirect and window.has_pixels)
        is_grabbed = "popup" in {popup.popup_kind for popup in popups} and server.is_keyboard_grabbed()
    managed_ids = clients.keys() | clients.values()
    listed = [  # the clients, and all visible top-level windows except their frames
        window
        for window in facts.values()
        if (window.window_id in clients and not window.is_input_only and window.top_id in facts)
        or (window.window_id not in managed_ids and window.has_pixels)
    ]
    listed.sort(key=lambda window: top_ids.index(window.top_id))
    known_ids = {window.window_id for window in listed}
    windows = [_window(row, facts[row.top_id].bounds, root, known_ids, focused_id) for row in listed]
    windows = _with_owners(windows)
    if owner.fields("I") == (0,):  # no compositor
        windows = _with_obscured(windows)
    is_locked = any(_is_locker(window, displays) for window in windows)
    apps = tuple(_apps(windows))
    return Scene(tuple(windows), apps, tuple(displays), is_locked=is_locked, is_keyboard_grabbed=is_grabbed)


def _read_root(server: XConnection, atoms: dict[str, int]) -> _Root:
    names = (_LIST, _MANAGER, _ACTIVE, _DESKTOP)
    listed, *replies = server.ask([property_of(server.root_id, atoms[name]) for name in names])
    manager_id, active_id, desktop = (next(iter(reply.numbers()), None) for reply in replies)
    # a running manager's window names itself; the properties of a killed one stay on the root window
    (self_reference,) = server.ask([property_of(manager_id or 0, atoms[_MANAGER])])
    if not manager_id or self_reference.numbers() != (manager_id,):
        return _Root(0, 0, None, frozenset())
    return _Root(manager_id, active_id or 0, desktop, frozenset(listed.numbers()))


def _clients(server: XConnection, wm_state: int, listed: Set[int], top_ids: Sequence[int]) -> dict[int, int]:
    """Map each managed window to its top-level window; without a manager's list, WM_STATE decides."""
    clients: dict[int, int] = {}
    level = dict(zip(top_ids, top_ids))  # the windows of one level of the tree -> their top-level windows
    for _ in range(4):  # reparenting managers use 1 to 3 levels
        managed = listed & level.keys()
        if not listed:
            states = zip(level, server.ask([property_of(window_id, wm_state) for window_id in level]))
            managed = {window_id for window_id, state in states if {*state.numbers()[:1]} & {*_MANAGED}}
        clients.update({window_id: level.pop(window_id) for window_id in managed})
        if listed and clients.keys() >= listed:
            break
        trees = server.ask([request(CHILDREN, window_id) for window_id in level])
        level = {child: top_id for top_id, tree in zip(level.values(), trees) for child in tree.children()}
    return clients


def _read_facts(server: XConnection, atoms: dict[str, int], top_ids: dict[int, int]) -> dict[int, _Facts]:
    requests = []
    for window_id in top_ids:
        requests += [request(opcode, window_id) for opcode in (ATTRIBUTES, GEOMETRY)]
        requests += [request(ORIGIN, window_id, server.root_id, 0)]
        requests += [property_of(window_id, atoms[name]) for name in _PROPERTIES]
    replies = iter(server.ask(requests))
    names = {atom: name for name, atom in atoms.items()}
    windows = {}
    for window_id, top_id in top_ids.items():
        attributes, geometry, origin = (next(replies) for _ in range(3))
        properties = {name: next(replies) for name in _PROPERTIES}
        if attributes.has_failed or geometry.has_failed or origin.has_failed:
            continue
        x, y = origin.fields("4xhh")
        width, height, border = geometry.fields("8xHHH")
        # a capture of a window includes its border; i3 keeps xterm's inside its frame
        left, right, above, below = insets = (-border,) * 4
        shadow = properties["_GTK_FRAME_EXTENTS"].numbers()
        # any program can set that property: accept only a shadow that leaves some window
        if len(shadow) == 4 and shadow[0] + shadow[1] < width and shadow[2] + shadow[3] < height:
            left, right, above, below = insets = shadow
        kinds = properties["_NET_WM_STATE"].numbers() + properties["_NET_WM_WINDOW_TYPE"].numbers()
        windows[window_id] = _Facts(
            window_id,
            top_id,
            Rect(x + left, y + above, float(width - left - right), float(height - above - below)),
            insets,
            attributes.is_viewable,
            attributes[27] == 1,
            attributes.fields("4xH") == (INPUT_ONLY,),
            properties,
            frozenset(names.get(atom, "") for atom in kinds),
        )
    return windows


def _read_displays(server: XConnection) -> list[Display]:
    (geometry,) = server.ask([request(GEOMETRY, server.root_id)])
    heads = [geometry.fields("4xhhHH")]
    if xinerama := server.extension("XINERAMA"):
        (screens,) = server.ask([request(xinerama, data=_QUERY_SCREENS)])
        heads = list(struct.iter_unpack("<hhHH", screens[32:])) or heads
    return [Display(n, f"Screen {n}", Rect(*map(float, head))) for n, head in enumerate(heads, 1)]


def _window(facts: _Facts, frame: Rect, root: _Root, known_ids: Set[int], focused_id: int) -> Window:
    # a window of the window manager's list is a client, any other is a popup or decoration
    is_client = facts.window_id in root.client_ids
    is_popup = facts.is_override_redirect and not is_client
    is_decoration = False
    if root.manager_id and not is_client:
        is_decoration = not is_popup or is_same_client(facts.window_id, root.manager_id)
    frame_id = facts.top_id if facts.top_id != facts.window_id else None
    parent_id = facts.number("WM_TRANSIENT_FOR")
    parent_id = parent_id if parent_id in known_ids - {facts.window_id} else None
    kind = "dialog" if parent_id is not None or _DIALOG in facts.kinds else "window"
    layer = next((layer for name, layer in _LAYERS.items() if name in facts.kinds), 0)
    desktop = facts.number("_NET_WM_DESKTOP")
    is_elsewhere = root.desktop is not None and desktop not in (None, _ALL_DESKTOPS, root.desktop)
    is_put_away = is_client and facts.is_put_away
    titles = facts.texts("_NET_WM_NAME") or facts.texts("WM_NAME")
    # a program that sets no class, or an empty one, is named by its title
    names = [*(titles[:1] if is_client else ()), *filter(None, facts.texts("WM_CLASS"))]
    pid = facts.number("_NET_WM_PID")
    return Window(
        window_id=facts.window_id,
        app_name=clean_text(names[-1]) if names and not is_decoration else "",
        pid=pid,
        title=clean_text(titles[0]) if titles else "",
        bounds=facts.bounds,
        layer=101 if is_popup else 25 if is_decoration else layer,
        is_on_screen=facts.is_viewable and not is_put_away,
        is_focused=not is_popup and focused_id in (facts.window_id, facts.top_id),
        # keep the frame only if it covers more of the screen than the window itself
        frame=frame if frame_id and max(facts.insets) <= 0 and frame != facts.bounds else None,
        kind=facts.popup_kind if is_popup else kind,
        parent_id=parent_id,
        is_modal=parent_id is not None and _MODAL in facts.kinds,
        is_minimised=is_put_away and not is_elsewhere,
        is_elsewhere=is_client and is_elsewhere,
        is_menu=is_popup and not facts.kinds.isdisjoint(_MENUS),
        frame_id=frame_id,
        # a reused id gets a new frame, because frames are numbered upwards; the record has class and pid
        identity=f"frame {frame_id}" if frame_id else f"title {titles}" if pid is None else "",
        insets=facts.insets,
    )


def _with_owners(windows: list[Window]) -> list[Window]:
    """Fill in a popup's app name, pid and parent from its owner; give a window without a pid its client's."""
    owners = [window for window in windows if not window.is_popup and window.app_name]
    owners.sort(key=lambda window: not window.is_focused)
    owned = []
    for window in windows:
        by_pid = [owner for owner in owners if owner.pid == window.pid is not None]
        by_client = [owner for owner in owners if is_same_client(owner.window_id, window.window_id)]
        if window.is_popup and (by_pid or by_client):
            owner = (by_pid or by_client)[0]
            pid, parent_id = window.pid or owner.pid, window.parent_id or owner.window_id
            window = window._replace(app_name=owner.app_name, pid=pid, parent_id=parent_id)
        pids = [owner.pid for owner in by_client if owner.pid is not None]
        owned.append(window._replace(pid=pids[0]) if pids and window.pid is None else window)
    return owned


def _with_obscured(windows: list[Window]) -> list[Window]:
    """Mark windows that a capture would not show whole: without a compositor, covered pixels do not exist."""
    marked: list[Window] = []
    in_front: list[Rect] = []  # the areas of the visible windows so far
    for window in windows:
        is_covered = any(area.overlaps(window.bounds) for area in in_front)
        marked.append(window._replace(is_obscured=window.is_on_screen and is_covered))
        in_front += [window.outer] if window.is_on_screen else []
    return marked


def _is_locker(window: Window, displays: Sequence[Display]) -> bool:
    """Return True if a screen locker covers a display with this window. Typed text would be its password."""
    is_locker = window.is_popup and window.is_on_screen and _LOCKER.search(window.app_name) is not None
    return is_locker and any(window.bounds.encloses(display.bounds) for display in displays)


def _apps(windows: Sequence[Window]) -> list[App]:
    ordinary = [window for window in windows if window.app_name and window.layer == 0]
    counts = Counter((window.app_name, window.pid) for window in ordinary if window.is_on_screen)
    active = {(window.app_name, window.pid) for window in ordinary if window.is_focused}
    return [
        App(*key, is_active=key in active, window_count=counts[key])
        for key in dict.fromkeys((window.app_name, window.pid) for window in ordinary)
    ]
