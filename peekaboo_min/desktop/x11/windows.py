"""The windows, apps and displays of an X server, in one look."""

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
    EXTENSION,
    GEOMETRY,
    IS_VIEWABLE,
    ORIGIN,
    OWNER,
    XConnection,
    children_in,
    fields_in,
    is_same_client,
    named,
    numbers_in,
    property_of,
    request,
    texts_in,
    x_connection,
)

_POPUP_LAYER = 101  # as a Mac numbers its menus
_UNOWNED_LAYER = 25
_ALL_DESKTOPS = 0xFFFFFFFF
_INPUT_ONLY = 2
_QUERY_SCREENS = 5  # of the extension Xinerama
_NORMAL, _ICONIC = 1, 3
_DEEPEST_CLIENT = 4
# Of each window.
_PROPERTIES = (
    "WM_STATE", "_NET_WM_NAME", "WM_NAME", "WM_CLASS", "_NET_WM_PID", "_NET_WM_WINDOW_TYPE", "_NET_WM_STATE",
    "_NET_WM_DESKTOP", "WM_TRANSIENT_FOR", "_GTK_FRAME_EXTENTS",
)  # fmt: skip
# i3lock, xsecurelock, XScreenSaver, xfce4-screensaver and others; no clock
_LOCKER = re.compile(r"(?<!c)lock|screensaver", re.I)
# What the window manager writes on the root window.
_ROOT_PROPERTIES = (
    "_NET_CLIENT_LIST_STACKING", "_NET_ACTIVE_WINDOW", "_NET_CURRENT_DESKTOP", "_NET_SUPPORTING_WM_CHECK",
)  # fmt: skip
_HIDDEN, _MODAL, _DIALOG = "_NET_WM_STATE_HIDDEN", "_NET_WM_STATE_MODAL", "_NET_WM_WINDOW_TYPE_DIALOG"
_SHADED = "_NET_WM_STATE_SHADED"  # rolled up into its title bar; its content may stay mapped
_MENUS = {f"_NET_WM_WINDOW_TYPE_{kind}" for kind in ("MENU", "DROPDOWN_MENU", "POPUP_MENU")}
_TOOLTIPS = {f"_NET_WM_WINDOW_TYPE_{kind}" for kind in ("TOOLTIP", "NOTIFICATION")}
# The window server of a Mac numbers its layers; here the type of a window means another layer.
_LAYERS = {
    "_NET_WM_WINDOW_TYPE_DOCK": 20,
    "_NET_WM_WINDOW_TYPE_DESKTOP": -20,
    "_NET_WM_WINDOW_TYPE_NOTIFICATION": 25,
    "_NET_WM_WINDOW_TYPE_TOOLTIP": 25,
}


def own_rect(window: Window) -> Rect:
    """The window that its program made, with the shadow that GTK draws into it: see Window.insets."""
    left, right, above, below = window.insets
    x, y, width, height = window.bounds
    return Rect(x - left, y - above, width + left + right, height + above + below)


def shown_bounds(window: Window) -> Optional[Rect]:
    """Window.bounds as they are now; None for a window that is hidden or gone."""
    with x_connection() as server:
        asked = [request(opcode, window.window_id) for opcode in (ATTRIBUTES, GEOMETRY)]
        asked += [request(ORIGIN, window.window_id, server.root_id, 0)]
        attributes, geometry, origin = server.ask(asked)
    if not (attributes and geometry and origin) or attributes[26] != IS_VIEWABLE:
        return None
    width, height = fields_in(geometry, "8xHH")
    x, y = fields_in(origin, "4xhh")
    return _bounds(Rect(x, y, width, height), window.insets)


def _bounds(own: Rect, insets: tuple[float, ...]) -> Rect:
    """Window.bounds of a window that its program made, see own_rect."""
    left, right, above, below = insets
    width, height = float(own.width - left - right), float(own.height - above - below)
    return Rect(own.x + left, own.y + above, width, height)


class _Root(NamedTuple):
    """What stands on the root window; empty and None where no window manager writes it."""

    top_ids: tuple[int, ...]
    """The top-level windows, front to back."""
    has_list: bool
    """Whether a window manager keeps a list of its clients."""
    client_ids: tuple[int, ...]
    active_id: int
    desktop: Optional[int]
    manager_id: int
    """A window of the window manager's own."""
    has_compositor: bool
    """Whether a compositing manager keeps covered windows' pixels: it owns the selection _NET_WM_CM_Sn."""


class _Facts(NamedTuple):
    """A window as the server describes it."""

    window_id: int
    top_id: int
    """The top-level window that contains it (its own id, when it is one)."""
    children: tuple[int, ...]
    bounds: Rect
    insets: tuple[float, ...]
    """Window.insets."""
    is_viewable: bool
    is_override_redirect: bool
    is_input_only: bool
    numbers: dict[str, tuple[int, ...]]
    """Properties; what the window does not have is empty."""
    texts: dict[str, list[str]]
    kinds: frozenset[str]
    """The names in its _NET_WM_STATE and _NET_WM_WINDOW_TYPE that count here."""

    def number(self, name: str) -> Optional[int]:
        return next(iter(self.numbers[name]), None)

    @property
    def is_client(self) -> bool:
        """Whether a window manager manages it, shown or minimised."""
        return self.number("WM_STATE") in (_NORMAL, _ICONIC)

    @property
    def is_seen(self) -> bool:
        """False for a hidden window, and for the helper windows of programs."""
        return self.is_viewable and not self.is_input_only and max(self.bounds.width, self.bounds.height) > 1


def take_scene() -> Scene:
    """Everything at once."""
    with x_connection() as server:
        names = (*_PROPERTIES, *_ROOT_PROPERTIES, _HIDDEN, _SHADED, _MODAL, _DIALOG, *_MENUS, *_LAYERS)
        atoms = server.atoms((*names, f"_NET_WM_CM_S{server.screen}"))
        root = _read_root(server, atoms)
        tops = _read_facts(server, atoms, {one: one for one in root.top_ids})
        if root.has_list:
            clients = _listed_clients(server, atoms, root, tops)
        else:
            clients = _clients_by_state(server, atoms, tops)
        focused_id = root.active_id or server.client_with_focus()
        focused = {focused_id, *server.containing(focused_id)[-1:]}
        displays = _read_displays(server)
        is_grabbed = any(map(_may_hold_keyboard, tops.values())) and server.is_keyboard_grabbed()
    frames = {one.top_id for one in clients.values()}
    others = [top for one, top in tops.items() if one not in clients.keys() | frames and top.is_seen]
    facts = {one.window_id: one for one in [*clients.values(), *others] if not one.is_input_only}
    in_order = sorted(facts.values(), key=lambda one: root.top_ids.index(one.top_id))
    windows = [_window(one, tops[one.top_id].bounds, root, facts.keys(), focused) for one in in_order]
    windows = _with_owners(windows)
    if not root.has_compositor:
        windows = _with_obscured(windows)
    is_locked = any(_is_locker(one, displays) for one in windows)
    apps = tuple(_apps(windows))
    return Scene(tuple(windows), apps, tuple(displays), is_locked=is_locked, is_keyboard_grabbed=is_grabbed)


def _read_root(server: XConnection, atoms: dict[str, int]) -> _Root:
    asked = [request(CHILDREN, server.root_id), request(OWNER, atoms[f"_NET_WM_CM_S{server.screen}"])]
    asked += [property_of(server.root_id, atoms[name]) for name in _ROOT_PROPERTIES]
    tree, compositor, clients, active, desktop, manager = server.ask(asked)
    manager_id = next(iter(numbers_in(manager)), 0)
    if manager_id:
        (named_by_itself,) = server.ask([property_of(manager_id, atoms["_NET_SUPPORTING_WM_CHECK"])])
        if numbers_in(named_by_itself) != (manager_id,):  # it was killed, and left all that behind
            clients, active, desktop, manager_id = None, None, None, 0
    return _Root(
        children_in(tree),
        clients is not None and clients[1] == 32,
        numbers_in(clients),
        next(iter(numbers_in(active)), 0),
        next(iter(numbers_in(desktop)), None),
        manager_id,
        fields_in(compositor, "I")[0] != 0,
    )


def _listed_clients(
    server: XConnection, atoms: dict[str, int], root: _Root, tops: dict[int, _Facts]
) -> dict[int, _Facts]:
    """The clients of the window manager's list."""
    within = {child: one for one, top in tops.items() for child in (one, *top.children)}
    found = {one: within.get(one, 0) for one in root.client_ids}
    for one in [one for one, top_id in found.items() if not top_id]:
        found[one] = next(iter(server.containing(one)[-1:]), 0)
    return _read_facts(server, atoms, {one: top_id for one, top_id in found.items() if top_id in tops})


def _clients_by_state(
    server: XConnection, atoms: dict[str, int], tops: dict[int, _Facts]
) -> dict[int, _Facts]:
    """The windows that have WM_STATE: managers without a list put them into frames."""
    found, level = {}, tops
    for _ in range(_DEEPEST_CLIENT):
        found.update({one: facts for one, facts in level.items() if facts.is_client})
        others = [facts for one, facts in level.items() if one not in found]
        level = _read_facts(server, atoms, {child: one.top_id for one in others for child in one.children})
    return found


def _read_facts(server: XConnection, atoms: dict[str, int], tops: dict[int, int]) -> dict[int, _Facts]:
    """What the server knows of these windows, each with its top-level one; those that were closed meanwhile
    are left out.
    """
    asked = []
    for one in tops:
        asked += [request(opcode, one) for opcode in (CHILDREN, ATTRIBUTES, GEOMETRY)]
        asked += [request(ORIGIN, one, server.root_id, 0)]
        asked += [property_of(one, atoms[name]) for name in _PROPERTIES]
    replies = iter(server.ask(asked))
    names = {atom: name for name, atom in atoms.items()}
    found = {}
    for one, top_id in tops.items():
        tree, attributes, geometry, origin = (next(replies) for _ in range(4))
        properties = {name: next(replies) for name in _PROPERTIES}
        if not (tree and attributes and geometry and origin):
            continue
        numbers = {name: numbers_in(reply) for name, reply in properties.items()}
        width, height, border = fields_in(geometry, "8xHHH")
        x, y = fields_in(origin, "4xhh")
        # an image of a window has its border, which i3 leaves to xterm inside of its frame
        insets = _shadow(numbers["_GTK_FRAME_EXTENTS"], width, height) or (-border,) * 4
        atoms_found = (*numbers["_NET_WM_STATE"], *numbers["_NET_WM_WINDOW_TYPE"])
        found[one] = _Facts(
            one,
            top_id,
            children_in(tree),
            _bounds(Rect(x, y, width, height), insets),
            insets,
            attributes[26] == IS_VIEWABLE,
            attributes[27] == 1,
            fields_in(attributes, "4xH")[0] == _INPUT_ONLY,
            numbers,
            {name: texts_in(reply) for name, reply in properties.items()},
            frozenset(names.get(atom, "") for atom in atoms_found),
        )
    return found


def _shadow(extents: tuple[int, ...], width: int, height: int) -> tuple[int, ...]:
    """The widths of the shadow that GTK draws into its window: left, right, top, bottom; empty for none."""
    if len(extents) != 4 or extents[0] + extents[1] >= width or extents[2] + extents[3] >= height:
        return ()  # anybody can write that property
    return extents


def _read_displays(server: XConnection) -> list[Display]:
    geometry, xinerama = server.ask([request(GEOMETRY, server.root_id), named(EXTENSION, "XINERAMA")])
    is_there, opcode = fields_in(xinerama, "BB")
    heads: list[tuple[int, ...]] = []
    if is_there:
        (screens,) = server.ask([request(opcode, data=_QUERY_SCREENS)])
        count = fields_in(screens, "I")[0]
        heads = [struct.unpack_from("<hhHH", screens or b"", 32 + 8 * number) for number in range(count)]
    heads = heads or [fields_in(geometry, "4xhhHH")]
    return [Display(n, f"Screen {n}", Rect(*map(float, head))) for n, head in enumerate(heads, 1)]


def _window(one: _Facts, frame: Rect, root: _Root, known_ids: Set[int], focused: Set[int]) -> Window:
    is_client = one.is_client or one.window_id in root.client_ids
    is_popup = not is_client and one.is_override_redirect
    desktop = one.number("_NET_WM_DESKTOP")
    is_elsewhere = desktop not in (None, _ALL_DESKTOPS, root.desktop) and root.desktop is not None
    is_iconic = one.number("WM_STATE") == _ICONIC or bool({_HIDDEN, _SHADED} & one.kinds)
    is_put_away = is_client and is_iconic
    parent_id = one.number("WM_TRANSIENT_FOR")
    parent_id = parent_id if parent_id in known_ids - {one.window_id} else None
    title = one.texts["_NET_WM_NAME"] or one.texts["WM_NAME"]
    # without a window manager every top-level window counts; with one, what it does not manage is its own
    # decoration
    is_managers = root.manager_id and is_same_client(one.window_id, root.manager_id)
    counts = is_client or ((is_popup or not root.has_list) and not is_managers)
    frame_id = one.top_id if one.top_id != one.window_id else None
    names = one.texts["WM_CLASS"]
    pid = one.number("_NET_WM_PID")
    # what another window with this id would hardly have: its frame, which window managers number upwards;
    # where there is none and no pid, its title (class and pid are compared anyway)
    identity = f"frame {frame_id}" if frame_id else "" if pid is not None else f"title {title}"
    is_dialog = parent_id is not None or _DIALOG in one.kinds
    return Window(
        window_id=one.window_id,
        app_name=clean_text(names[-1] or names[0]) if counts and names else "",
        pid=pid,
        title=clean_text(title[0]) if title else "",
        bounds=one.bounds,
        layer=_layer(one, is_popup, counts),
        is_on_screen=one.is_viewable and not is_put_away,
        is_focused=not is_popup and bool(focused & {one.window_id, one.top_id}),
        # a frame as large as the shadow covers nothing with it
        frame=frame if frame_id and max(one.insets) <= 0 and frame != one.bounds else None,
        kind=_popup_kind(one) if is_popup else "dialog" if is_dialog else "window",
        parent_id=parent_id,
        is_modal=parent_id is not None and _MODAL in one.kinds,
        is_minimised=is_put_away and not is_elsewhere,
        is_elsewhere=is_client and is_elsewhere,
        is_menu=is_popup and not one.kinds.isdisjoint(_MENUS),
        frame_id=frame_id,
        identity=identity,
        insets=one.insets,
    )


def _may_hold_keyboard(one: _Facts) -> bool:
    return one.is_override_redirect and one.is_seen and _popup_kind(one) == "popup"


def _popup_kind(one: _Facts) -> str:
    return "popup" if one.kinds.isdisjoint(_TOOLTIPS) else "tooltip"


def _layer(one: _Facts, is_popup: bool, counts: bool) -> int:
    if is_popup:
        return _POPUP_LAYER
    if not counts:
        return _UNOWNED_LAYER
    return next((layer for name, layer in _LAYERS.items() if name in one.kinds), 0)


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
    return popup._replace(app_name=fitting[0].app_name, pid=pid, parent_id=parent_id)


def _with_obscured(windows: list[Window]) -> list[Window]:
    """Mark what a capture would not show as it is: without a compositor the pixels below a window do not
    exist.
    """
    marked = []
    for place, window in enumerate(windows):
        above = [one for one in windows[:place] if one.is_on_screen and one.outer.overlaps(window.bounds)]
        marked.append(window._replace(is_obscured=True) if above and window.is_on_screen else window)
    return marked


def _is_locker(window: Window, displays: Sequence[Display]) -> bool:
    """Whether it is the window with which a screen locker covers a display: it would get all text as a
    password.
    """
    is_over_all = any(window.bounds.encloses(display.bounds) for display in displays)
    return window.is_popup and window.is_on_screen and is_over_all and bool(_LOCKER.search(window.app_name))


def _apps(windows: Sequence[Window]) -> list[App]:
    counted = [one for one in windows if one.app_name and one.layer == 0]
    counts = Counter((one.app_name, one.pid) for one in counted if one.is_on_screen)
    active = {(one.app_name, one.pid) for one in counted if one.is_focused}
    return [
        App(name, pid, is_active=(name, pid) in active, window_count=counts[(name, pid)])
        for name, pid in dict.fromkeys((one.app_name, one.pid) for one in counted)
    ]
