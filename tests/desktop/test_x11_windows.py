"""Windows of a real X server: pieces of text, dialogs, menus, shadows, policy."""

# ruff: noqa: RUF001
from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Optional

import pytest
from in_process import InProcessProgram
from samples import error_of, window
from tk_windows import window_titled
from worlds import PATIENCE_S, Form, clean_environment

from peekaboo_min.automation.policy import check_may_act, plain_name
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import Display, Rect, Scene, Window
from peekaboo_min.desktop import keys
from peekaboo_min.desktop.matching import blocking_dialog, catalogue_windows, foreign_menu, open_menu
from peekaboo_min.desktop.x11 import backend
from peekaboo_min.desktop.x11 import windows as x11
from peekaboo_min.desktop.x11.connection import (
    Address,
    Reply,
    XConnection,
    _cookie,
    x11_session,
    x_connection,
)
from peekaboo_min.desktop.x11.keyboard import _KEYSYMS, _check_time, keysym_of, pauses_in, pieces_of

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
    ("21" * 51, 0): [0] * 102,
}


def test_type_goes_out_in_pieces_with_pauses() -> None:
    assert {text: list(pieces_of(text, pauses_in(text))) for text in PIECES} == PIECES
    pauses = {(text, delay): pauses_in(text, delay / 1000) for text, delay in PAUSES}
    assert {key: [round(seconds * 1000) for seconds in value] for key, value in pauses.items()} == PAUSES


def test_text_that_takes_too_long_names_how_much_fits() -> None:
    hints = [error_of(_check_time, 90.0, count, "characters").hint for count in (200, 1)]
    assert hints == [f"send at most {most} characters at once" for most in (100, 1)]


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


SHOWN = {"is_on_screen": True, "is_minimised": False, "kind": "window", "is_modal": False}
DOCK, MODAL = "_NET_WM_WINDOW_TYPE_DOCK", "_NET_WM_STATE_MODAL"
ELSEWHERE = {"is_elsewhere": True, "is_minimised": False}


@pytest.mark.parametrize(
    ("kind", "properties", "expected"),
    [
        # a manager need not set _HIDDEN too
        ("_NET_WM_STATE_SHADED", {}, {**SHOWN, "is_on_screen": False, "is_minimised": True}),
        (MODAL, {}, SHOWN),
        (MODAL, {"WM_TRANSIENT_FOR": reply(7)}, {**SHOWN, "parent_id": None}),  # itself
        (MODAL, {"WM_TRANSIENT_FOR": reply(1)}, {**SHOWN, "kind": "dialog", "is_modal": True}),
        ("", {"WM_TRANSIENT_FOR": reply(1)}, {**SHOWN, "kind": "dialog"}),  # a find bar
        ("_NET_WM_STATE_SHADED", {"_NET_WM_DESKTOP": reply(2)}, ELSEWHERE),
        ("", {"_NET_WM_DESKTOP": reply(0xFFFFFFFF)}, {"is_elsewhere": False}),  # all workspaces
        ("", {"_NET_WM_DESKTOP": reply(3)}, {"is_elsewhere": False}),
        (DOCK, {"WM_NAME": reply(data=b"old")}, {"layer": 20, "title": "old", "identity": "title ['old']"}),
        ("", {"_NET_WM_PID": reply(5), "WM_NAME": reply(data=b"a")}, {"pid": 5, "identity": ""}),
        ("", {"WM_CLASS": reply(data=b"xterm\0X\nTerm\0")}, {"app_name": "X Term"}),
        ("", {"_NET_WM_NAME": reply(data="Evil\n\u202e1".encode())}, {"title": "Evil  1"}),
        ("", {"WM_CLASS": reply(data=b"xterm")}, {"app_name": "xterm"}),
    ],
)
def test_window_is_listed_by_its_properties(kind: str, properties: Any, expected: dict[str, Any]) -> None:
    given = defaultdict(lambda: Reply(bytes(32)), properties)
    facts = x11._Facts(7, 7, Rect(0, 0, 9, 9), (0, 0, 0, 0), True, False, False, given, frozenset((kind,)))
    read = x11._window(facts, facts.bounds, x11._Root(1, 0, 3, frozenset((7,))), {1, 7}, set())._asdict()
    assert {name: read[name] for name in expected} == expected
    # without a window manager, no window is on another workspace
    alone = x11._Root(0, 0, None, frozenset((7,)))
    assert not x11._window(facts, facts.bounds, alone, set(), set()).is_elsewhere


def test_properties_of_a_killed_window_manager_are_ignored() -> None:
    answers = [[reply(7), reply(9), reply(7), reply(0)], [reply(8)]]  # 9 is another window now
    server: Any = SimpleNamespace(root_id=1, ask=lambda _: answers.pop(0))
    assert x11._read_root(server, defaultdict(int)) == x11._Root(0, 0, None, frozenset())


@pytest.mark.parametrize(("size", "has_pixels"), [((90, 1), True), ((1, 90), True), ((1, 1), False)])
def test_line_is_a_window_and_a_dot_is_none(size: tuple[int, int], has_pixels: bool) -> None:
    facts = x11._Facts(7, 7, Rect(0, 0, *size), (0, 0, 0, 0), True, True, False, {}, frozenset())
    assert facts.has_pixels is has_pixels


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


def test_popup_keeps_the_parent_that_it_names() -> None:
    popup = window(6, app_name="", kind="popup", parent_id=1)
    found = x11._with_owners([popup, window(1), window(2, is_focused=True)])
    assert found[0].parent_id == 1, "the focused window is not its parent"


def test_window_under_another_windows_title_bar_is_obscured() -> None:
    above = window(1, bounds=Rect(0, 50, 90, 90), frame=Rect(0, 30, 90, 110))
    below, beside = window(2, bounds=Rect(0, 0, 90, 40)), window(3, bounds=Rect(100, 0, 90, 40))
    hidden = above._replace(window_id=4, bounds=beside.bounds, is_on_screen=False)
    covered = [each.is_obscured for each in x11._with_obscured([hidden, above, below, beside])]
    assert covered == [False, False, True, False]


def test_apps_are_counted_by_their_visible_windows() -> None:
    shown, hidden = window(1), window(2, is_on_screen=False)
    dock, other = window(3, layer=20), window(4, app_name="Other", pid=None, is_focused=True)
    apps = [(app.name, app.window_count, app.is_active) for app in x11._apps([shown, hidden, dock, other])]
    assert apps == [("Notes", 1, False), ("Other", 1, True)]


@pytest.mark.parametrize(("name", "is_locker"), [("i3lock", True), ("XScreenSaver", True), ("xclock", False)])
def test_screen_is_locked_by_a_locker_that_covers_a_display(name: str, is_locker: bool) -> None:
    cover = window(1, app_name=name, kind="popup", bounds=Rect(0, 0, 640, 480))
    displays = [Display(1, "", Rect(640, 0, 640, 480)), Display(2, "", Rect(0, 0, 640, 480))]
    assert x11._is_locker(cover, displays) is is_locker
    assert not x11._is_locker(cover._replace(bounds=Rect(0, 0, 639, 480)), displays)


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


def test_list_windows_has_popups_and_minimised_windows() -> None:
    main, back = window(1), window(2)
    menu = window(3, kind="popup", parent_id=1, layer=101, bounds=Rect(0, 0, 90, 24))
    lost = window(4, kind="popup", layer=101)
    small = window(5, is_minimised=True, is_on_screen=False)
    elsewhere = window(6, is_on_screen=False)
    without_app = window(7, kind="popup", app_name="")
    closed = window(8, kind="popup", parent_id=1, is_on_screen=False)
    found = catalogue_windows(scene(small, closed, menu, lost, without_app, main, back, elsewhere))
    assert [one.window_id for one in found] == [4, 1, 3, 2, 5]


def test_policy_treats_lookalike_names_as_equal() -> None:
    for name in ("Ｋeepassxc", "Kee\u200bPassXC", "KÉEPASSXC"):
        assert plain_name(name) == plain_name("KeePassXC")
    assert plain_name("Form") != plain_name("Firm")


def test_policy_refuses_password_managers(environment: Callable[..., None], tmp_path: Path) -> None:
    environment(PEEKABOO_STOP_FILE=str(tmp_path / "STOP"))
    for name in (
        *("KeePass2", "KeePassXC", "Bitwarden", "bitwarden-desktop", "1Password", "Enpass", "Seahorse"),
        *("org.gnome.seahorse.Application", "Gcr-prompter", "Pinentry-gtk-2", "Keychain Access"),
    ):
        assert error_of(check_may_act, "click", name).code is ErrorCode.POLICY_DENIED, name
    check_may_act("click", "Form")


def test_client_side_shadow_is_cut_off(display: str, open_form: Callable[..., Form], tmp_path: Path) -> None:
    peek = InProcessProgram(clean_environment(tmp_path, DISPLAY=display))
    form = open_form("Shadowed")
    whole = window_titled(peek, form.title)
    window_id, place = whole["window_id"], whole["bounds"]

    def bounds_with(extents: str) -> dict[str, Any]:
        words = ["-f", "_GTK_FRAME_EXTENTS", "32c", "-set", "_GTK_FRAME_EXTENTS", extents]
        subprocess.run(["xprop", "-id", str(window_id), *words], env=peek.environment, check=True)
        return window_titled(peek, form.title)["bounds"]

    bounds = bounds_with("7,11,20,40")  # left, right, top, bottom
    assert (bounds["x"], bounds["y"]) == (place["x"] + 7, place["y"] + 20)
    assert (bounds["width"], bounds["height"]) == (place["width"] - 18, place["height"] - 60)
    shot = peek.data("screenshot", window_id)
    assert (shot["image_width"], shot["image_height"]) == (bounds["width"], bounds["height"])
    x, y = form.centre("agree")
    peek.data("click", window_id, x - 7, y - 20)
    assert form.wait_for_event("toggle")["value"] == 1
    # too large for a shadow
    for extents in ("400,400,0,0", f"{place['width']},0,0,0", f"0,0,{place['height']},0"):
        assert bounds_with(extents) == place


def test_shadow_is_cut_off_at_each_side(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(backend, "_run_maim", lambda argv, *_: asked.append(argv))
    monkeypatch.setattr(backend, "shown_bounds", lambda _: Rect(10, 20, 300, 200))
    for insets in ((7, 11, 20, 40), (0, 0, 0, 5), (0, 0, 0, 0), (-2, -2, -2, -2)):  # the last one is a border
        backend.X11Desktop().capture_window(window(7, insets=insets), tmp_path / "a.png", "png")
    assert [argv[2:] for argv in asked] == [["-g", "300x200+7+20"], ["-g", "300x200+0+0"], [], []]


@pytest.mark.parametrize(
    ("display", "session"),
    [(":7.1", "x11-7"), ("unix:7", "x11-7"), ("a.b:10.0", "x11-a.b-10"), ("7", "x11-none"), ("", "x11-none")],
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
        ([(HOST, b"8", NAME, b"x" * 16), (HOST, NUMBER, NAME, OURS)], OURS),
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
    (tmp_path / "authority").write_bytes(b"".join(ANY + field for field in fields))
    environment(XAUTHORITY=str(tmp_path / "authority"))
    assert _cookie(Address("", 7, 0)) == cookie


@pytest.mark.parametrize("screen", [0, 1, 5])
@pytest.mark.parametrize("vendor", [b"Foreign", b"The X.Org Foundation"])
def test_root_window_is_that_of_the_screen_of_any_vendor(screen: int, vendor: bytes) -> None:
    info = struct.pack("<4xI8xHxxBB10x", 1 << 21, len(vendor), 2, 1) + vendor + bytes(-len(vendor) % 4 + 8)
    # two screens, each with one depth, which has one visual
    info += b"".join(struct.pack("<I35xBxxH28x", root_id, 1, 1) for root_id in (50, 60))
    ours, server = socket.socketpair()
    with ours, server:
        server.sendall(struct.pack("<BxxxxxH", 1, len(info) // 4) + info)
        assert XConnection(ours, Address("", 0, screen)).root_id == (50, 60, 60)[min(screen, 2)]


def test_event_before_a_reply_is_skipped() -> None:
    connection: Any = object.__new__(XConnection)
    new_keyboard_map, answer = bytes([34]) + bytes(31), bytes([1]) + bytes(31)
    connection._data, connection.round_trip_s = bytearray(new_keyboard_map + answer), 0.0
    connection.send = lambda _: None
    assert connection.ask([b"a request"]) == [answer], "xdotool changes the keyboard map while it types"


def test_connection_passes_on_errors_of_its_block(display: str, environment: Callable[..., None]) -> None:
    environment(DISPLAY=display)
    with pytest.raises(OSError, match="disk full"), x_connection():
        raise OSError("disk full")


@pytest.mark.parametrize(
    ("script", "code"),
    [(b"", "NO_GUI_SESSION"), (b"\x00" * 8, "NO_GUI_SESSION"), (None, "TIMEOUT")],
    ids=["closes the connection", "refuses us", "sends nothing"],
)
def test_connection_to_a_bad_server_is_an_error(tmp_path: Path, script: Optional[bytes], code: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    clients.append(client)
                    if script is not None:
                        client.recv(100)
                        client.sendall(script)
                        client.shutdown(socket.SHUT_WR)

        clients: list[socket.socket] = []
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        program = InProcessProgram(clean_environment(tmp_path))
        error = program.error("windows", DISPLAY=f"127.0.0.1:{port - 6000}")
        assert error["code"] == code and (code != "TIMEOUT" or "within 5 seconds" in error["message"]), error
        listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        thread.join(PATIENCE_S)
        for client in clients:
            client.close()
