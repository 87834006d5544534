"""Windows of a real X server: pieces of text, dialogs, menus, shadows."""

from __future__ import annotations

import ctypes
import os
import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from samples import error_of, window
from witness import XWitness
from worlds import bare_x_server, comes_true, wait_for

from peekaboo_min.core.call import time_budget, use_cancel_token
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import App, Display, Rect, Scene, Window
from peekaboo_min.desktop import keys, matching
from peekaboo_min.desktop.matching import blocking_dialog, foreign_menu, open_menu
from peekaboo_min.desktop.x11 import backend
from peekaboo_min.desktop.x11 import windows as x11
from peekaboo_min.desktop.x11.connection import (
    Address,
    KeyboardMap,
    Reply,
    XConnection,
    _cookie,
    is_same_client,
    request,
    x11_session,
    x_connection,
)
from peekaboo_min.desktop.x11.keyboard import (
    _KEYSYMS,
    _check_time,
    _modifiers_needed,
    keysym_of,
    pauses_in,
    pieces_of,
)

PIECES = {
    "short": ["short"],
    "xy" * 22: ["xy" * 10, "xy" * 10, "xy" * 2],
    "x" * 12: ["x" * 11, "x"],  # 40 ms between the keys
    "a\nb\tc": ["a", "\n", "b", "\t", "c"],
    "日" * 20: ["日" * 20],
    "日" * 21: ["日" * 20, "日"],
}
# text and --delay-ms: the pause before each key, in ms
PAUSES = {
    ("hello, book", 0): [0, 0, 0, 40, 0, 0, 0, 0, 0, 40, 0],
    ("a\nb", 0): [0, 0, 40],
    ("a    b", 0): [0] * 6,  # an indentation
    ("aab", 50): [0, 50, 50],
    ("21*2=", 0): [0, 0, 0, 120, 0],  # a calculator loses a key that repeats too soon
    ("11+1", 20): [0, 120, 20, 100],
    ("~/a\n", 0): [0, 0, 0, 300],  # GTK 3 loads the folder, and loses an early return
    ("21" * 51, 0): [0] * 102,
}


def test_type_goes_out_in_pieces_with_pauses() -> None:
    assert {text: list(pieces_of(text, pauses_in(text))) for text in PIECES} == PIECES
    assert list(pieces_of("日" * 3, [0.0, 0.3, 0.3])) == ["日" * 3], "it is pasted, without pauses"
    pauses = {(text, delay): pauses_in(text, delay / 1000) for text, delay in PAUSES}
    assert {key: [round(seconds * 1000) for seconds in value] for key, value in pauses.items()} == PAUSES


def test_text_that_takes_too_long_names_how_much_fits() -> None:
    hints = [error_of(_check_time, 90.0, count, "characters").hint for count in (200, 1)]
    with time_budget(9.05):
        hints.append(error_of(_check_time, 90.0, 200, "characters").hint)
    assert hints == [f"send at most {most} characters at once" for most in (100, 1, 20)]


def test_character_may_need_the_most_modifiers_of_its_keys() -> None:
    keyboard = KeyboardMap({24: (113, 81, 113, 81, 64, 0x7D9), 11: (64, 34), 66: (0xFFE5,)}, ())
    assert _modifiers_needed(keyboard) == {"q": 0, "Q": 1, "@": 1, '"': 1}


# our names of keys that Xlib calls otherwise
XLIB_NAMES = {
    "page_up": "prior", "page_down": "next", "enter_keypad": "kp_enter", "cmd": "control_l",
    **{name: f"{name}_l" for name in ("shift", "alt", "super")}, "ctrl": "control_l",
}  # fmt: skip


def test_every_key_name_is_the_keysym_of_that_name() -> None:
    xlib = ctypes.CDLL("libX11.so.6")
    xlib.XKeysymToString.restype = ctypes.c_char_p
    names = [name for name in {*keys._KEYS.values(), *_KEYSYMS} if not keys.character_of(name)]
    called = {name: xlib.XKeysymToString(ctypes.c_ulong(keysym_of(name))).decode().lower() for name in names}
    assert called == {name: XLIB_NAMES.get(name, name.replace("keypad", "kp")) for name in names}
    # these names are read, too
    keysyms = {name: ctypes.c_ulong(keysym_of(name)) for name in {*keys._KEYS.values()} - {"cmd"}}
    read = {
        name: str(keys.read_chord(xlib.XKeysymToString(keysym).decode())) for name, keysym in keysyms.items()
    }
    assert read == {name: name for name in keysyms}


def reply(*numbers: int, data: bytes = b"", rest: int = 0) -> Reply:
    """Return a property as the server sends it; `rest`: bytes that were not read."""
    if numbers:
        return Reply(struct.pack(f"<xB14xI12x{len(numbers)}I", 32, len(numbers), *numbers))
    return Reply(struct.pack("<xB10xII12x", 8, rest, len(data)) + data)


@pytest.mark.parametrize(
    ("data", "rest", "texts"),
    [
        ("Zoë".encode(), 0, ["Zoë"]),
        ("Zoë".encode("latin-1"), 0, ["Zoë"]),
        ("Zoë".encode()[:-1], 1, ["Zo"]),  # cut within a character
        (b"\xed\xa0\xbd\xed\xb8\x80", 0, ["😀"]),  # two surrogates, from Tk 8.6
        (b"a\0b\0", 0, ["a", "b"]),
        (b"", 0, []),
    ],
)
def test_property_is_read_as_utf_8_or_latin_1(data: bytes, rest: int, texts: list[str]) -> None:
    assert reply(data=data, rest=rest).texts() == texts


def test_reply_of_another_kind_is_empty() -> None:
    none, text, numbers = Reply(bytes(32)), reply(data=b"ab"), reply(1, 2)
    read = [(one.numbers(), one.texts()) for one in (none, text, numbers)]
    assert read == [((), []), ((), ["ab"]), ((1, 2), [])]
    assert none.rows("I") == none.children() == ()


def test_popup_belongs_to_the_focused_window_of_its_program() -> None:
    popup = window(6, "", app_name="", pid=None, kind="popup")
    back, front = window(1, pid=60), window(2, pid=60, is_focused=True)
    unknown, other = window(1 << 21, pid=None), window(2 << 21, app_name="Other", pid=61)
    popups = [popup, popup._replace(pid=61), popup._replace(window_id=3 << 21)]
    found = x11._with_owners([*popups, back, front, unknown])
    assert [each.parent_id for each in found] == [2, 2, None, None, None, None]
    assert [each.pid for each in found] == [60, 61, None, 60, 60, None]
    # without a pid, the number of the client decides; a pid of its own stays
    by_client = window(2 << 21 | 5, app_name="Other", pid=None)
    pids = [each.pid for each in x11._with_owners([other, by_client, other._replace(pid=62)])]
    assert pids == [61, 61, 62]


@pytest.mark.parametrize(("name", "is_locker"), [("i3lock", True), ("XScreenSaver", True), ("xclock", False)])
def test_screen_is_locked_by_a_locker_that_covers_a_display(name: str, is_locker: bool) -> None:
    cover = window(1, app_name=name, kind="popup", bounds=Rect(0, 0, 640, 480))
    displays = [Display(1, "", Rect(640, 0, 640, 480)), Display(2, "", Rect(0, 0, 640, 480))]
    assert x11._is_locker(cover, displays) is is_locker
    assert not x11._is_locker(cover._replace(bounds=Rect(0, 0, 639, 480)), displays)


def numbers_of(*argv: object) -> list[int]:
    """Run a program; return the numbers in its stdout."""
    out = subprocess.run([*map(str, argv)], capture_output=True, check=True, text=True).stdout
    return [int(number, 0) for number in re.findall(r"0x\w+|\b\d+\b", out)]


@pytest.fixture
def client_on(environment: Callable[..., None]) -> Iterator[Callable[[str], XWitness]]:
    """Yield a function that sets DISPLAY in this process and starts a program there."""
    with ExitStack() as stack:

        def start(display: str) -> XWitness:
            environment(DISPLAY=display)
            return stack.enter_context(closing(XWitness(dict(os.environ))))

        yield start


def listed_as(*expected: Window) -> Scene:
    """Wait until exactly these windows are listed, front to back; return the scene."""
    snapshot = backend.X11Desktop().snapshot
    comes_true(lambda: snapshot().windows == expected, 5)
    scene = snapshot()
    assert [one._asdict() for one in scene.windows] == [one._asdict() for one in expected]
    return scene


TYPE, LONG = "_NET_WM_WINDOW_TYPE", "x" * 195
# a popup's type -> its kind, and whether it is a menu
POPUPS = {
    **dict.fromkeys(("MENU", "DROPDOWN_MENU", "POPUP_MENU"), ("popup", True)), "COMBO": ("popup", False),
    **dict.fromkeys(("TOOLTIP", "NOTIFICATION"), ("tooltip", False)),
}  # fmt: skip


def test_managed_windows_are_listed_whole(display: str, client_on: Callable[[str], XWitness]) -> None:
    program = client_on(display)

    def opened(title: str, y: int, **others: Any) -> Window:
        window_id = program.open(title, x=800, y=y, w=100, h=90, app="Main", **others)
        extents = ("xprop", "-id", window_id, "_NET_FRAME_EXTENTS")
        left, right, above, below = wait_for(lambda: numbers_of(*extents)[:4], "it has a frame")
        frame_id = numbers_of("xwininfo", "-id", window_id, "-children")[2]
        return window(
            window_id, title, app_name="Main", pid=program.process.pid, frame_id=frame_id,
            bounds=Rect(800 + left, y + above, 100.0, 90.0), identity=f"frame {frame_id}",
            frame=Rect(800, y, 100.0 + left + right, 90.0 + above + below),
        )  # fmt: skip

    def popup(title: str, y: int, **others: Any) -> Window:
        window_id = program.open(
            title, x=100, y=y, w=100, h=1, popup=True, title=title, app="Popup", **others
        )
        program.set(title, _NET_WM_WINDOW_TYPE=[f"{TYPE}_NORMAL", f"{TYPE}_{title}"])
        shown = window(window_id, title, bounds=Rect(100, y, 100.0, 1.0), layer=101, parent_id=box.window_id)
        kind, is_menu = POPUPS[title]
        return shown._replace(app_name="Main", pid=program.process.pid, kind=kind, is_menu=is_menu)

    small = opened("small", 10, pid=False)  # its pid is that of its program's other windows
    subprocess.run(["xdotool", "windowminimize", "--sync", str(small.window_id)], check=True)
    rolled = opened("rolled", 110)
    subprocess.run(["wmctrl", "-i", "-r", str(rolled.window_id), "-b", "add,shaded"], check=True)
    far = opened("far", 210)
    subprocess.run(["xdotool", "set_desktop_for_window", str(far.window_id), "1"], check=True)
    program.set("far", _NET_WM_STATE=["_NET_WM_STATE_HIDDEN"])
    dock = opened("dock", 310)
    everywhere = 0xFFFFFFFF
    program.set("dock", _NET_WM_WINDOW_TYPE=[f"{TYPE}_DOCK"], _NET_WM_DESKTOP=[everywhere])
    main = opened("main", 410)
    title = ["xprop", "-id", str(main.window_id), "-f", "_NET_WM_NAME", "8u", "-set", "_NET_WM_NAME"]
    subprocess.run([*title, f"Zoë\n\u202e{LONG}"], check=True)
    program.set("main", _NET_WM_STATE=["_NET_WM_STATE_MODAL"])  # but it has no parent
    box, states = opened("box", 510), ["_NET_WM_STATE_ABOVE", "_NET_WM_STATE_MODAL"]
    program.set("box", WM_TRANSIENT_FOR=[main.window_id], _NET_WM_STATE=states)
    popups = [popup(kind, y, pid=y != 10) for y, kind in enumerate(POPUPS, 10)]
    program.set("COMBO", WM_TRANSIENT_FOR=[main.window_id])
    dot = program.open("dot", x=100, y=10, w=1, h=1, popup=True)
    for name, owner_id in (("rolled", rolled.window_id), ("small", dot)):  # itself, not listed
        program.set(name, WM_TRANSIENT_FOR=[owner_id])
    program.open("glass", x=0, y=0, w=1280, h=800, popup=True, input_only=True)
    hidden = {"is_on_screen": False}
    assert rolled.frame
    rolled_up = rolled.frame._replace(height=rolled.bounds.y - 110)
    scene = listed_as(
        *reversed(popups[4:]),
        popups[3]._replace(parent_id=main.window_id),
        *reversed(popups[1:3]),
        popups[0]._replace(identity="title ['MENU']"),
        box._replace(kind="dialog", parent_id=main.window_id, is_modal=True, is_focused=True),
        main._replace(title=f"Zoë  {LONG}"),
        dock._replace(layer=20),
        far._replace(is_elsewhere=True, **hidden),
        rolled._replace(frame=rolled_up, is_minimised=True, **hidden),
        small._replace(is_minimised=True, **hidden),
    )
    assert scene.apps == (App("Main", main.pid, is_active=True, window_count=2),)
    assert scene[2:] == ((Display(1, "Screen 1", Rect(0.0, 0.0, 1280.0, 800.0)),), True, False, False)


def test_windows_without_a_manager_are_listed_whole(client_on: Callable[[str], XWitness]) -> None:
    with bare_x_server() as display:
        program = client_on(display)

        def opened(title: str, x: int, y: int, **others: Any) -> Window:
            window_id = program.open(title, x=x, y=y, w=90, h=80, title=title, **others)
            pid, place = program.process.pid, Rect(x, y, 90.0, 80.0)
            return window(window_id, title, app_name=others.get("app", ""), pid=pid, bounds=place)

        covered = opened("covered", 10, -15, app="X\nTerm", pid=False)  # by the frame below
        away = opened("away", 450, 350, popup=True)
        plain = opened("plain", 400, 300, app="Plain", border=3)
        opened("field", 5, 5, inside=plain.window_id)
        iconic, hidden = opened("iconic", 420, 310), opened("hidden", 700, 10)
        frames = [opened("frame", 50, 60, app="Frame")]
        frames += [opened("inner", 5, 6, inside=frames[-1].window_id)]
        frames += [opened("innermost", 5, 6, inside=frames[-1].window_id)]
        client = opened("client", 7, 8, inside=frames[-1].window_id, app="Zoo")
        unseen = opened("unseen", 0, 0, inside=hidden.window_id)
        for each, state in ((client, 1), (unseen, 1), (away, 1), (iconic, 3), (hidden, 0)):
            program.set(str(each.title), WM_STATE=[state])
        for name, kind in (("away", "SHADED"), ("unseen", "HIDDEN"), ("covered", "HIDDEN")):
            program.set(name, _NET_WM_STATE=[f"_NET_WM_STATE_{kind}"])
        # GTK's shadow: left, right, above, below; it leaves some window
        for name, *shadow in (("unseen", 7, 11, 20, 9), ("away", 45, 45, 0, 0), ("client", 0, 0, 40, 40)):
            program.set(name, _GTK_FRAME_EXTENTS=shadow)
        for each in (iconic, hidden):
            subprocess.run(["xdotool", "windowunmap", "--sync", str(each.window_id)], check=True)
        # a window manager that was killed has left these, and its window's id to another program
        program.set("plain", _NET_SUPPORTING_WM_CHECK=[iconic.window_id])
        program.set("iconic", _NET_WM_DESKTOP=[1])
        program.set("root", _NET_SUPPORTING_WM_CHECK=[plain.window_id], _NET_CURRENT_DESKTOP=[0])
        for name in ("_NET_ACTIVE_WINDOW", "_NET_CLIENT_LIST_STACKING"):
            program.set("root", **{name: [iconic.window_id]})
        program.do("focus", "field")
        program.sync()
        outer = {"frame_id": frames[0].window_id, "identity": f"frame {frames[0].window_id}"}
        above = {"is_on_screen": False, "frame_id": hidden.window_id, "identity": f"frame {hidden.window_id}"}
        scene = listed_as(
            client._replace(bounds=Rect(67, 80, 90.0, 80.0), frame=frames[0].bounds, **outer),
            unseen._replace(
                app_name="unseen",
                bounds=Rect(707, 30, 72.0, 51.0),
                insets=(7, 11, 20, 9),
                is_minimised=True,
                **above,
            ),
            iconic._replace(app_name="iconic", is_on_screen=False, is_minimised=True),
            plain._replace(bounds=Rect(400, 300, 96.0, 86.0), insets=(-3,) * 4, is_focused=True),
            away._replace(app_name="away", is_on_screen=False, is_minimised=True),
            covered._replace(app_name="X Term", identity="title ['covered']", is_obscured=True),
        )
        assert [x11.shown_bounds(each.window_id) for each in (plain, unseen, iconic)] == [
            Rect(400, 300, 96.0, 86.0), None, None,
        ]  # fmt: skip
        client_app, unseen_app, iconic_app, plain_app, away_app, covered_app = scene.apps
        assert [each.name for each in (unseen_app, iconic_app, away_app)] == ["unseen", "iconic", "away"]
        assert client_app == App("Zoo", client.pid, window_count=1)
        assert plain_app == App("Plain", plain.pid, is_active=True, window_count=1)
        assert covered_app == App("X Term", client.pid, window_count=1)


def test_windows_that_the_manager_does_not_list_are_decorations(client_on: Callable[[str], XWitness]) -> None:
    with bare_x_server() as display:
        manager, program = client_on(display), client_on(display)
        place = {"w": 90, "h": 80, "y": 10, "app": "App"}
        bar = manager.open("bar", x=10, popup=True, title="bar", **place)
        client, own = (program.open(name, x=x, **place) for name, x in (("client", 110), ("own", 210)))
        menu = program.open("menu", x=310, popup=True, title="menu", **place)
        manager.set("bar", _NET_SUPPORTING_WM_CHECK=[bar])
        manager.set("root", _NET_SUPPORTING_WM_CHECK=[bar], _NET_CLIENT_LIST_STACKING=[client])
        program.do("focus", "own")
        program.sync()
        manager.set("root", _NET_ACTIVE_WINDOW=[client])
        program.set("client", _NET_WM_WINDOW_TYPE=[f"{TYPE}_DESKTOP"])

        def row(window_id: int, title: str, x: int, app: str, owner: XWitness, **others: Any) -> Window:
            place = Rect(x, 10, 90.0, 80.0)
            return window(window_id, title, app_name=app, pid=owner.process.pid, bounds=place, **others)

        popup: dict[str, Any] = {"layer": 101, "kind": "popup"}
        listed_as(
            row(menu, "menu", 310, "App", program, parent_id=client, **popup),
            row(own, "own", 210, "", program, layer=25),
            row(client, "client", 110, "App", program, layer=-20, is_focused=True),
            row(bar, "bar", 10, "", manager, **popup),
        )


def test_clients_of_a_server_for_1024_of_them_are_told_apart(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "X_CLIENT_BITS", 21)  # it is 21 again after the test
    with bare_x_server(options=("-maxclients", "1024")) as display:
        environment(DISPLAY=display)
        with x_connection():
            assert not is_same_client(0x200000, 0x280000)


def test_windows_are_found_in_the_tree(client_on: Callable[[str], XWitness]) -> None:
    place = {"x": 10, "y": 10, "w": 90, "h": 80}
    with bare_x_server() as display:
        ours, others = client_on(display), client_on(display)
        frame = others.open("frame", **place)
        client = ours.open("client", inside=frame, **place)
        field = others.open("field", inside=client, **place)
        lone = ours.open("lone", **place)
        part = ours.open("part", inside=lone, **place)
        gone = ours.open("gone", **place)
        ours.do("close", "gone")
        ours.set("client", WM_STATE=[1])
        with x_connection() as server:
            ids = (field, part, gone, 0, server.root_id)
            trees = [[field, client, frame], [part, lone], [], [], []]
            assert [server.containing(window_id) for window_id in ids] == trees
            assert [server.top_level(window_id) for window_id in ids] == [frame, lone, 0, 0, 0]
            assert [server.is_viewable(window_id) for window_id in (field, gone)] == [True, False]
            pids = [others.process.pid, ours.process.pid, 0]
            assert server.pids_of(field, part, 99 << 21) == pids
            pairs = (field, frame), (client, lone), (client, frame), (98 << 21, 99 << 21)  # both unknown
            assert [server.is_same_program(*pair) for pair in pairs] == [True, True, False, True]
            focused = []
            for program, name in ((others, "field"), (ours, "part"), (ours, ""), (ours, "pointer root")):
                program.do("focus", name)
                program.sync()
                focused.append(server.client_with_focus())
            assert focused == [client, lone, 0, 0]


def test_second_screen_has_its_own_windows(client_on: Callable[[str], XWitness]) -> None:
    with bare_x_server("800x600x24", ("-screen", "1", "640x480x24"), compositor=True) as display:
        client_on(display).open("first", x=10, y=10, w=90, h=80)
        program = client_on(f"{display}.1")
        ids = [program.open(name, x=10, y=10, w=90, h=80) for name in ("below", "above")]
        below = window(ids[0], "below", app_name="", pid=program.process.pid, bounds=Rect(10, 10, 90.0, 80.0))
        above = below._replace(window_id=ids[1], title="above")
        scene = listed_as(above, below._replace(is_obscured=True))  # xcompmgr manages the first screen only
        assert scene.displays == (Display(1, "Screen 1", Rect(0.0, 0.0, 640.0, 480.0)),)
        assert not scene.is_locked
        program.open("locked", x=0, y=0, w=640, h=480, popup=True, app="i3lock")
        assert backend.X11Desktop().snapshot().is_locked


def scene(*windows: Window) -> Scene:
    return Scene(windows, (), ())


def test_modal_dialog_blocks_and_the_innermost_is_named() -> None:
    main, other = window(1), window(9)
    find_bar = window(2, kind="dialog", parent_id=1)
    dialog = window(3, kind="dialog", parent_id=1, is_modal=True)
    nested = window(4, kind="dialog", parent_id=3, is_modal=True)
    hidden = window(5, kind="dialog", parent_id=9, is_modal=True, is_on_screen=False)
    everything = scene(nested, dialog, find_bar, main, hidden, other)
    blocked = [blocking_dialog(one, everything) for one in (main, dialog, nested, find_bar, other)]
    assert blocked == [nested, nested, None, None, None]
    round_about = [window(1, is_modal=True, parent_id=2), window(2, is_modal=True, parent_id=1)]
    assert blocking_dialog(round_about[0], scene(*round_about)) == round_about[1]
    assert blocking_dialog(window(8), scene(window(3, is_modal=True))) is None, "it has just closed"


def test_modal_dialog_without_a_parent_blocks_the_windows_behind_it() -> None:
    dialog = window(3, kind="dialog", is_modal=True)
    behind = [window(5), window(6, pid=61), window(7, kind="popup")]
    others = [window(2), dialog, window(4, parent_id=3), *behind]
    blocking = [blocking_dialog(one, scene(*others)) for one in others]
    assert blocking == [None, None, None, dialog, None, None]
    unknown = [each._replace(pid=None) for each in (dialog, behind[0])]
    assert blocking_dialog(unknown[1], scene(*unknown)) is None


def test_open_menu_is_on_the_screen_and_of_the_window() -> None:
    menu = window(2, kind="popup", is_menu=True, parent_id=1)
    others = [
        window(3, kind="popup", parent_id=1), menu._replace(parent_id=9), menu._replace(is_on_screen=False)
    ]  # fmt: skip
    assert open_menu(window(1), scene(*others, menu, menu._replace(window_id=4))) == menu
    assert open_menu(window(1), scene(*others)) is None


def test_menu_of_another_app_blocks_while_it_grabs() -> None:
    main, menu = window(1), window(2, kind="popup", app_name="Other", pid=61, is_menu=True)
    untyped, unowned = window(3, kind="popup", app_name="Other", pid=61), window(4, kind="popup", pid=None)
    tooltip, own = window(5, kind="tooltip", app_name="Other", pid=61), window(6, kind="popup")
    hidden = menu._replace(is_on_screen=False)
    for windows, expected in [
        ((untyped, menu, main), menu), ((untyped, main), untyped), ((unowned, main), unowned),
        ((tooltip, main), None), ((own, menu, main), None), ((hidden, main), None), ((main,), None),
    ]:  # fmt: skip
        grabbed = scene(*windows)._replace(is_keyboard_grabbed=True)
        assert foreign_menu(main, grabbed) == expected, windows
        assert foreign_menu(main, scene(*windows)) is None  # Chromium's menus do not grab the keyboard


def test_shadow_is_cut_off_at_each_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(backend, "_run_maim", lambda argv, *_: asked.append(argv))
    monkeypatch.setattr(backend, "shown_bounds", lambda _: Rect(10, 20, 300, 200))
    for insets in ((7, 11, 20, 40), (0, 0, 0, 5), (0, 0, 0, 0), (-2, -2, -2, -2)):  # the last one is a border
        backend.X11Desktop().capture_window(window(7, insets=insets), tmp_path / "a.png", "png")
    assert [argv[2:] for argv in asked] == [["-g", "300x200+7+20"], ["-g", "300x200+0+0"], [], []]


@pytest.mark.parametrize(
    ("display", "session"),
    [
        *((":7.1", "x11-7"), ("unix:7", "x11-7"), ("a.b:10.0", "x11-a.b-10"), ("tcp/a/b:3", "x11-a_b-3")),
        *(("7", "x11-none"), ("", "x11-none"), (":123456", "x11-none")),
    ],
)
def test_session_is_named_after_the_display(
    display: str, session: str, environment: Callable[..., None]
) -> None:
    environment(DISPLAY=display)
    assert x11_session() == session


HOST = os.uname().nodename.encode()
OURS, NAME, ANY, NUMBER = b"o" * 16, b"MIT-MAGIC-COOKIE-1", b"\xff\xff", b"7"


@pytest.mark.parametrize(
    ("entries", "cookie"),
    [
        ([(HOST, NUMBER, NAME, OURS), (HOST, b"8", NAME, b"x" * 16)], OURS),
        ([(b"other", NUMBER, NAME, b"x" * 16), (HOST, NUMBER, NAME, OURS)], OURS),
        ([(b"other", NUMBER, NAME, OURS)], OURS),  # the host was renamed
        ([(HOST, b"", NAME, OURS)], OURS),  # for all displays
        ([(HOST, NUMBER, b"XDM-AUTHORIZATION-1", b"x" * 16)], b""),
        ([], b""),
    ],
)
def test_cookie_is_that_of_the_display(
    entries: list[tuple[bytes, ...]], cookie: bytes, tmp_path: Path, environment: Callable[..., None]
) -> None:
    fields = [b"".join(struct.pack(">H", len(field)) + field for field in entry) for entry in entries]
    # the file may be cut
    (tmp_path / ".Xauthority").write_bytes(b"".join(ANY + field for field in fields) + ANY[:1])
    environment(XAUTHORITY=str(tmp_path / ".Xauthority"))
    assert _cookie(Address("", 7, 0)) == cookie
    environment(XAUTHORITY="", HOME=str(tmp_path))
    assert _cookie(Address("other", 7, 0)) == (
        {entry[0]: entry[3] for entry in entries}.get(b"other") or cookie
    )


def test_display_without_a_colon_is_explained(environment: Callable[..., None]) -> None:
    environment(DISPLAY="7")
    assert "did you mean ':7'?" in error_of(x_connection().__enter__).details


def greeting(vendor: bytes = b"Foreign") -> bytes:
    """Return a server's first reply: it has two screens, each with one depth, which has one visual."""
    info = (
        struct.pack("<4xII4xHxxBB10x", 1 << 21, (1 << 21) - 1, len(vendor), 2, 2)
        + vendor
        + bytes(-len(vendor) % 4 + 16)
    )
    info += b"".join(struct.pack("<I35xBxxH28x", root_id, 1, 1) for root_id in (50, 60))
    return struct.pack("<BxxxxxH", 1, len(info) // 4) + info


@pytest.mark.parametrize("screen", [0, 1, 5])
@pytest.mark.parametrize("vendor", [b"Foreign", b"The X.Org Foundation"])
def test_root_window_is_that_of_the_screen_of_any_vendor(screen: int, vendor: bytes) -> None:
    ours, server = socket.socketpair()
    with ours, server:
        server.sendall(greeting(vendor))
        assert XConnection(ours, Address("", 0, screen)).root_id == (50, 60, 60)[min(screen, 2)]


@pytest.fixture
def pair(environment: Callable[..., None]) -> Iterator[tuple[XConnection, socket.socket]]:
    """Yield a connection and the server's end of it."""
    ours, server = socket.socketpair()
    with ours, server:
        server.sendall(greeting())
        environment(XAUTHORITY="/dev/null")
        yield XConnection(ours, Address("", 0, 0)), server


ANSWER, LONG_ANSWER = b"\1" + bytes(31), b"\1x\0\0\1" + bytes(31)
# events that every client gets: a new keyboard map (xdotool changes it while it types), a generic event
SKIPPED = bytes([34]) + bytes(31), bytes([35, 0, 0, 0, 2]) + bytes(35)
Pair = tuple[XConnection, socket.socket]


def test_replies_come_in_order_without_events(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    connection, server = pair
    server.sendall(b"".join([*SKIPPED, ANSWER, bytes([0, 3]) + b"x" * 30, *SKIPPED, LONG_ANSWER]))
    times = iter([0.0, 5.0, 10.0, 11.0, 20.0, 23.0])
    clock = SimpleNamespace(monotonic=lambda: next(times))
    monkeypatch.setattr("peekaboo_min.desktop.x11.connection.time", clock)
    assert connection.ask([request(1, 2), request(3), request(4)]) == [ANSWER, bytes(32), LONG_ANSWER]
    server.sendall(ANSWER * 2)
    assert [connection.ask([request(5)]) for _ in range(2)] == [[ANSWER]] * 2
    assert connection.round_trip_s == 1.0, "the shortest"
    sent = b"l\0" + struct.pack("<5H", 11, 0, 0, 0, 0)  # little-endian, version 11.0, no cookie
    sent += b"\1\0\2\0\2\0\0\0" + b"".join(bytes([code, 0, 1, 0]) for code in (3, 4, 5, 5))
    assert server.recv(1000) == sent


def test_messages_that_came_together_are_received_one_by_one(pair: Pair) -> None:
    connection, server = pair
    server.sendall(LONG_ANSWER + ANSWER)
    assert [connection.receive(seconds) for seconds in (9, 0, 0)] == [LONG_ANSWER, ANSWER, None]


def test_window_whose_parent_has_gone_is_gone(pair: Pair) -> None:
    connection, server = pair
    server.sendall(struct.pack("<B11xI16x", 1, 9) + bytes(32))  # the parent 9, and an error
    assert connection.containing(7) == []


def test_connection_with_an_unread_reply_is_not_used_again(pair: Pair) -> None:
    errors = []
    for number in (1, 2):
        with time_budget(0.1):
            errors.append(error_of(pair[0].ask, [request(number)]))
    codes = [ErrorCode.TIMEOUT, ErrorCode.NO_GUI_SESSION]
    assert [error.code for error in errors] == codes, "the second would read the first's reply"
    assert "within 5 seconds" not in errors[0].message


def test_cancelled_call_asks_the_server_nothing(pair: Pair) -> None:
    connection, server = pair
    server.recv(1000)
    server.sendall(ANSWER * 2)
    token = threading.Event()
    token.set()
    with time_budget(60):  # restores the call at its end
        use_cancel_token(token)
        for call, argument in ((connection.ask, [request(1)]), (connection.receive, 0)):
            assert error_of(call, argument).code is ErrorCode.CANCELLED
    with pytest.raises(BlockingIOError):
        server.recv(1, socket.MSG_DONTWAIT)


def test_connection_passes_on_errors_of_its_block(display: str, environment: Callable[..., None]) -> None:
    environment(DISPLAY=display)
    with pytest.raises(OSError, match="disk full"), x_connection():
        raise OSError("disk full")


@pytest.mark.parametrize("greeted", [b"", b"\0\2\x0b\0\0\0\1\0No\0\0", b"\1\0\x0b\0\0\0\1\0"])
def test_connection_that_is_closed_or_refused_is_an_error(greeted: bytes) -> None:
    ours, server = socket.socketpair()
    with ours, server:
        server.sendall(greeted)
        server.shutdown(socket.SHUT_WR)
        assert error_of(XConnection, ours, Address("", 0, 0)).code is ErrorCode.NO_GUI_SESSION


def test_silent_server_is_waited_for_5_seconds(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    silent = SimpleNamespace(select=lambda *files: waits.append(files[3]) or ([], [], []))
    monkeypatch.setattr("peekaboo_min.desktop.x11.connection.select", silent)
    error = error_of(pair[0].ask, [request(1)])
    assert (error.code, waits) == (ErrorCode.TIMEOUT, [5.0])
    assert "within 5 seconds" in error.message
