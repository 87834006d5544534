"""Windows of a real X server: pieces of text, dialogs, menus, shadows, policy."""

# ruff: noqa: RUF001
from __future__ import annotations

import ctypes
import socket
import struct
import subprocess
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from in_process import InProcessProgram
from samples import error_of, window
from tk_windows import window_titled
from worlds import PATIENCE_S, Form, clean_environment

from peekaboo_min.automation.policy import check_may_act, plain_name
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import Rect, Scene, Window
from peekaboo_min.desktop import keys
from peekaboo_min.desktop.matching import blocking_dialog, catalogue_windows, foreign_menu
from peekaboo_min.desktop.x11.connection import Reply, x_connection
from peekaboo_min.desktop.x11.keyboard import _KEYSYMS, keysym_of, pauses_in, pieces_of
from peekaboo_min.desktop.x11.windows import _Facts, _Root, _window

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


@pytest.mark.parametrize(
    ("state", "owner", "expected"),
    [
        ("SHADED", 0, (False, True, "window", False)),  # a manager need not set _HIDDEN too
        ("MODAL", 0, (True, False, "window", False)),
        ("MODAL", 1, (True, False, "dialog", True)),
        ("", 1, (True, False, "dialog", False)),  # a find bar
    ],
)
def test_window_state_gives_visibility_kind_and_modality(state: str, owner: int, expected: Any) -> None:
    owners = Reply(struct.pack("<xB14xI12xI", 32, 1, owner))  # the format of the server's reply
    properties: Any = defaultdict(lambda: Reply(bytes(32)), WM_TRANSIENT_FOR=owners)
    kinds = frozenset((f"_NET_WM_STATE_{state}",))
    facts = _Facts(7, 7, Rect(0, 0, 9, 9), (0, 0, 0, 0), True, False, False, properties, kinds)
    read = _window(facts, facts.bounds, _Root(1, 0, None, frozenset((7,))), {1, 7}, set())
    assert (read.is_on_screen, read.is_minimised, read.kind, read.is_modal) == expected


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
    found = catalogue_windows(scene(small, menu, lost, without_app, main, back, elsewhere))
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
    assert bounds_with("400,400,0,0") == place  # too large for a shadow


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
        assert error["code"] == code, error
        listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        thread.join(PATIENCE_S)
        for client in clients:
            client.close()
