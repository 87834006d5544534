"""The screen changes between an act's last check and its press; a server, a program or the display fails."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Optional

import pytest
from mcp_server import Client
from samples import error_of, window
from tk_windows import Opened, programs_by, window_titled
from witness import XWitness
from worlds import Finished, Program, bare_x_server, clean_environment, wait_for

from peekaboo_min.core.models import Act, Point, Rect
from peekaboo_min.desktop.x11.connection import KeyboardMap, Reply
from peekaboo_min.desktop.x11.keyboard import _Keyboard, _Keys
from peekaboo_min.desktop.x11.record import Event, Record
from peekaboo_min.desktop.x11.xdotool import _Pointer, click_title_bar

SCREEN = {"x": 0, "y": 0, "w": 1280, "h": 800}
PLACE = {"x": 200, "y": 150, "w": 300, "h": 200}
ActLate = Callable[..., Finished]


@pytest.fixture
def windows(peek: Program) -> Iterator[XWitness]:
    """Yield a program with a window `target` in front of `behind`, and a popup beside the screen."""
    with closing(XWitness(peek.environment)) as program:
        for name, place in (("behind", SCREEN), ("target", PLACE)):
            program.open(name, app=name, **place)
            peek.data("screenshot", window_titled(peek, name)["window_id"])
        program.open("cover", popup=True, pid=False, **{**SCREEN, "x": 1280})
        yield program


@pytest.fixture
def act_late(peek: Program, windows: XWitness, tmp_path: Path) -> ActLate:
    """Return a function that acts in the target and runs xdotool before the press, after the last check.

    after_check: False to run it before the check.
    """
    ids = {one["name"]: one["id"] for one in windows.events if one["event"] == "opened"}

    def act(act: str, change: str, after_check: bool = True) -> Finished:
        lines = ["read -r move", 'echo "$move"', "read -r press", 'echo "$press"']
        lines.insert(3 if after_check else 1, f"$real {change.format(**ids)}")
        script = f"{{ {' && '.join(lines)}; }} | $real -\nexit"
        kind, *argv = act.split()
        variables = programs_by(tmp_path / "bin", script, "xdotool")
        return peek.run(kind, ids["target"], *argv, "--json", **variables)

    return act


COVER = "windowmove --sync {cover} 0 0 windowraise {cover}"


@pytest.mark.parametrize(
    ("act", "change", "delivered", "receiver"),
    [
        ("click 100 80", "windowmove --sync {target} 500 300", None, "target"),
        ("click 100 80", "windowsize --sync {target} 20 20", False, "behind"),
        ("click 100 80", "set_window --name Another {target}", True, "target"),
        ("click 100 80", COVER, False, "cover"),
        ("scroll 100 80 down", COVER, False, "cover"),
        ("drag 100 80 20 20", COVER, False, "cover"),
    ],
)
def test_act_is_delivered_only_if_its_window_gets_the_press(
    windows: XWitness, act_late: ActLate, act: str, change: str, delivered: Optional[bool], receiver: str
) -> None:
    assert act_late(act, change).data["delivered"] is delivered
    assert {press["name"] for press in windows.take("press")} == {receiver}


def test_click_in_a_window_that_was_resized_is_refused(windows: XWitness, act_late: ActLate) -> None:
    late = act_late("click 100 80", "windowsize --sync {target} 250 180", False)
    assert (late.error["code"], windows.take("press")) == ("STALE_SCREENSHOT", [])


OURS, THEIRS = 7 << 21, 9 << 21  # clients
KEY, PRESS, RELEASE, GENERIC, SET_OWNER = 2, 4, 5, 35, 22
XINPUT, ANOTHER = 131, 140  # opcodes of extensions


def recorded(*events: bytes, client: int = OURS) -> bytes:
    """Return a message of the extension RECORD: events as a client received them."""
    return struct.pack("<BB10xI16x", 1, 0, client) + b"".join(events)


def core(kind: int, detail: int = 1, x: int = 300, window_id: int = OURS + 3) -> bytes:
    return struct.pack("<BB10xI4xhhhh4x", kind, detail, window_id, x, 200, x - 100, 50)


def generic(kind: int, extension: int = XINPUT) -> bytes:
    return struct.pack("<BB6xH6xI4xI4x", GENERIC, extension, kind, 1, OURS + 3)


PRESSED = Event(PRESS, 1, OURS + 3, OURS, ((300, 200),), (200, 50))
GRABBED = PRESSED._replace(client=THEIRS)
BY_XINPUT = Event(PRESS, 1, OURS + 3, OURS)
# messages, the press that they report, and how long each is waited for: a round trip takes 0.25 s
PRESSES: dict[str, tuple[list[bytes], Optional[Event], list[float]]] = {
    "nothing": ([], None, [0.5]),
    "pressed": ([recorded(core(PRESS))], PRESSED, [0.5, 0.31]),
    "pressed and released": (
        [recorded(core(PRESS)), recorded(core(KEY), core(RELEASE, x=310))],
        PRESSED._replace(places=((300, 200), (310, 200))), [0.5, 0.31],
    ),
    "both at once, by XInput": ([recorded(generic(PRESS), generic(RELEASE))], BY_XINPUT, [0.5]),
    "another extension": ([recorded(generic(PRESS, ANOTHER))], None, [0.5, 0.5]),
    "another button": ([recorded(core(PRESS, 3))], None, [0.5, 0.5]),
    "a release": ([recorded(core(RELEASE))], None, [0.5, 0.5]),
    "a grab": ([recorded(core(PRESS), core(RELEASE), client=THEIRS)], GRABBED, [0.5, 0.35]),
    "a grab that hands it on": (
        [recorded(core(PRESS), client=THEIRS), recorded(core(PRESS))], PRESSED, [0.5, 0.35, 0.31],
    ),
    "a grab later": (
        [recorded(core(PRESS)), recorded(core(PRESS), client=THEIRS)], PRESSED, [0.5, 0.31, 0.31],
    ),
    "a release by a grab": (
        [recorded(core(PRESS)), recorded(core(RELEASE), client=THEIRS)], PRESSED, [0.5, 0.31, 0.31],
    ),
    "another button later": ([recorded(core(PRESS), core(PRESS, 3))], PRESSED, [0.5, 0.31]),
    "two windows": (
        [recorded(core(PRESS), core(PRESS, window_id=OURS + 4))],
        PRESSED._replace(window_id=OURS + 4), [0.5, 0.31],
    ),
}  # fmt: skip


@pytest.fixture
def record_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[bytes], list[float]], Record]:
    """Return a function that makes a Record of these messages, which notes how long it waits for each."""

    def make(messages: list[bytes], waits: list[float]) -> Record:
        left = iter(messages)
        receive = lambda seconds: waits.append(round(seconds, 2)) or next(map(Reply, left), None)  # noqa: E731
        server: Any = SimpleNamespace(receive=receive, round_trip_s=0.25, atoms=lambda _: {"CLIPBOARD": 77})
        return Record(server, server, XINPUT)

    monkeypatch.setattr("peekaboo_min.desktop.x11.record.time", SimpleNamespace(monotonic=lambda: 50.0))
    return make


@pytest.mark.parametrize(("messages", "press", "waits"), PRESSES.values(), ids=PRESSES)
def test_press_is_read_from_the_record(
    messages: list[bytes], press: Optional[Event], waits: list[float], record_of: Callable[..., Record]
) -> None:
    waited: list[float] = []
    record = record_of(messages, waited)
    assert (record.press_of(1), waited) == (press, waits)
    # a window that takes no buttons is not waited for again
    assert (record.press_of(1), waited[len(waits) :]) == (None, [0.5 if press else 0.0])


def test_keys_and_owners_are_read_from_the_record(record_of: Callable[..., Record]) -> None:
    owners = struct.pack("<BB30x", 1, 1) + struct.pack("<BxHIII", SET_OWNER, 4, 5, 77, 0)
    owners += struct.pack("<BxHIII", SET_OWNER, 4, 6, 1, 0)  # of another selection
    keys = [core(KEY, 38), core(PRESS), core(3, 38), generic(KEY), core(KEY, 39)]
    record = record_of([owners, recorded(*keys, client=THEIRS)], [])
    assert record.keys(60) == []
    found = [(key.detail, key.window_id, key.client) for key in record.keys(60) or ()]
    assert found == [(code, OURS + 3, THEIRS) for code in (38, 1, 39)]
    assert record.keys(60) is None
    assert [record.new_owners("CLIPBOARD") for _ in range(2)] == [[5], []]


def origin(x: int, y: int) -> Reply:
    return Reply(struct.pack("<B11xhh16x", 1, x, y))


GONE, MANAGER = Reply(bytes(32)), 4 << 21
# the press, and where the window and its inner window are after it, if not as listed; is it delivered?
DELIVERIES: dict[str, tuple[str, dict[str, Any], Optional[bool]]] = {
    "as listed": ("click", {}, True),
    "not recorded": ("click", {"event": None}, None),
    "to a grab": ("click", {"client": THEIRS}, None),
    "by a moved pointer": ("click", {"places": ((301, 200),)}, None),
    "released elsewhere": ("click", {"places": ((300, 200), (9, 9))}, True),
    "dropped elsewhere": ("drag", {"places": ((300, 200), (9, 9))}, None),
    "to the frame": ("click", {"client": MANAGER, "window_id": MANAGER + 9}, None),
    "to another window": ("click", {"client": THEIRS, "window_id": THEIRS, "top_id": THEIRS}, False),
    "as the frame is taken off": ("click", {"top_id": OURS + 3}, True),
    "as it closes": ("click", {"top_id": 0, "at": GONE, "inner": GONE}, True),
    "as it closes before the drop": ("drag", {"top_id": 0, "at": GONE, "inner": GONE}, None),
    "to its popup, which closes": ("click", {"window_id": OURS + 8, "top_id": 0, "inner": GONE}, True),
    "to an unknown, which closes": ("click", {"client": THEIRS, "window_id": THEIRS, "top_id": 0}, None),
    "after it moved": ("click", {"at": origin(130, 150), "inside": (170, 50)}, None),
    "before it moved": ("click", {"at": origin(130, 150)}, True),
    "before it moved up": ("click", {"at": origin(100, 120)}, True),
    "inside before it moved": (
        "click", {"at": origin(130, 150), "inner": origin(20, 10), "inside": (180, 40)}, True,
    ),
    "inside, gone after a move": ("click", {"at": origin(130, 150), "inner": GONE}, None),
    "by XInput around a move": ("click", {"at": origin(130, 150), "inside": ()}, None),
    "before the frame moved it": ("click", {"at": origin(130, 150), "inner": GONE, "now_in": OURS + 3}, True),
    "as it moves and closes": ("click", {"at": origin(130, 150), "inner": GONE, "now_in": 0}, True),
    "before a drag's frame goes": ("drag", {"at": origin(131, 150), "inner": GONE, "now_in": 0}, None),
    "without a frame": ("click", {"frame_id": None, "top_id": OURS + 3}, True),
    "without a frame, after a move": (
        "click", {"frame_id": None, "top_id": 0, "at": origin(130, 150), "inner": GONE, "now_in": 0}, None,
    ),
    "dragging the window": ("drag", {"at": origin(130, 160)}, True),
    "dragging it too far": ("drag", {"at": origin(131, 160)}, None),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "case", "delivered"), DELIVERIES.values(), ids=DELIVERIES)
def test_delivery_is_judged_by_the_press_and_the_window(
    kind: str, case: dict[str, Any], delivered: Optional[bool]
) -> None:
    usual = {"at": origin(100, 150), "inner": origin(0, 0), "frame_id": MANAGER + 9, "event": PRESSED}
    usual = {**usual, "top_id": MANAGER + 9, "now_in": MANAGER + 9}
    fields = {**usual, **case}
    at, inner, frame_id, event, top_id, now_in = (fields.pop(name) for name in usual)
    server: Any = SimpleNamespace(ask=lambda _: [at, inner], top_level=lambda _: now_in)
    server.root_id, server.round_trip_s = 1, 0.0
    framed = window(OURS + 3, bounds=Rect(100, 150, 300, 200), frame_id=frame_id)
    act = Act(kind, (Point(300.9, 200.2), Point(330.4, 210.7))[: 1 + (kind == "drag")])
    event = event and event._replace(**fields)
    assert _Pointer(server, server, framed)._is_delivered(event, top_id, act) is delivered


def test_title_bar_is_clicked_in_its_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    acts: list[Any] = []
    monkeypatch.setattr("peekaboo_min.desktop.x11.xdotool.act_by_pointer", lambda *act: acts.append(act))
    frame = Rect(100, 100, 302, 225)
    framed = window(7, bounds=Rect(101, 120, 300, 200), frame=frame, frame_id=9, insets=(0, 0, 0, 0))
    low = framed._replace(bounds=Rect(101, 103, 300, 200))
    for each in (framed, framed._replace(frame_id=None), framed._replace(frame=None), low):
        click_title_bar(each)
    top = framed._replace(window_id=9, bounds=frame, frame_id=None)
    assert acts == [(top, Act("click", (Point(251.0, 110.0),)))]


@pytest.mark.parametrize(
    ("second", "delivered"), [("destroy .", True), ("wm geometry . 90x90", None)], ids=["closes", "shrinks"]
)
def test_click_after_which_no_other_is_possible_ends_there(
    peek: Program, opened: Opened, second: str, delivered: Optional[bool]
) -> None:
    program, window_id = opened("Once", f"bind . <ButtonPress> {{puts hit; {second}}}")
    assert peek.data("click", window_id, 150, 100, "--clicks", 3)["delivered"] is delivered
    assert program.lines() == ["hit"]


A, B, C, SHIFT, FREE = 38, 39, 40, 50, 200  # key codes
FRAME, INNER = MANAGER + 9, THEIRS + 1  # INNER: a window of another program, inside ours
TREES = {OURS + 3: [OURS + 3, FRAME], INNER: [INNER, OURS + 3, FRAME], FRAME: [FRAME]}
TOPS = {THEIRS: THEIRS, INNER: FRAME, FRAME: FRAME}


def key(code: int, window_id: int = OURS + 3, client: int = OURS) -> Event:
    return Event(KEY, code, window_id, client)


TYPED = _Keys([], [], [ord("a"), ord("b")], 0.1)
HELD = TYPED._replace(keysyms=[ord("a")], is_held=True)
GRABBING, TO_FRAME, TO_ANOTHER = [key(A, client=THEIRS)], [key(A, FRAME, MANAGER)], [key(A, THEIRS, THEIRS)]
PROCESSES = {OURS: 60, OURS + 3: 60, THEIRS: 61}
# the keys sent, the events, the window's missing, modifier and stray keys; how many were delivered and typed
# by a person; the processes
KEYS: dict[str, tuple[_Keys, list[Event], tuple[bool, int, list[Event]], tuple[int, int], dict[int, int]]] = {
    "nothing": (TYPED, [], (False, 0, []), (0, 0), PROCESSES),
    "all": (TYPED, [key(A), key(B)], (True, 0, []), (2, 0), PROCESSES),
    "swapped": (TYPED, [key(B), key(A)], (True, 0, []), (2, 0), PROCESSES),
    "one": (TYPED, [key(B)], (False, 0, []), (1, 0), PROCESSES),
    "two and two of a person": (TYPED, [key(A), key(A), key(C), key(B)], (True, 0, []), (2, 2), PROCESSES),
    "modifiers": (TYPED, [key(SHIFT), key(A), key(SHIFT), key(B)], (True, 2, []), (2, 0), PROCESSES),
    "to the frame": (TYPED, TO_FRAME, (False, 0, TO_FRAME), (0, 0), PROCESSES),
    "to another": (TYPED, TO_ANOTHER, (False, 0, TO_ANOTHER), (0, 0), PROCESSES),
    "to an inner window": (TYPED, [key(A, INNER, THEIRS), key(B)], (True, 0, []), (2, 0), PROCESSES),
    "to a grab": (TYPED, GRABBING, (False, 0, GRABBING), (0, 0), PROCESSES),
    "to a grab of ours": (TYPED, GRABBING, (False, 0, []), (1, 0), {**PROCESSES, THEIRS: 60}),
    "to a grab, processes unknown": (TYPED, GRABBING, (False, 0, GRABBING), (0, 0), {}),
    "a key without a place": (
        TYPED._replace(keysyms=[0xE9]), [key(SHIFT), key(FREE)], (True, 1, []), (1, 0), PROCESSES,
    ),
    "uncounted": (TYPED._replace(is_counted=False), [key(A), key(B)], (True, 0, []), (0, 0), PROCESSES),
    "held": (HELD, [key(A), key(A), key(A), key(C)], (True, 0, []), (1, 1), PROCESSES),
}  # fmt: skip


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the keyboard of an act, at 50 s, whose server takes 0.25 s for a round trip."""
    made: Any = object.__new__(_Keyboard)
    monkeypatch.setattr("peekaboo_min.desktop.x11.keyboard.time", SimpleNamespace(monotonic=lambda: 50.0))
    made._map = KeyboardMap({A: (97, 65), B: (98, 66), C: (99, 67), SHIFT: (0xFFE1,)}, ((SHIFT,),))
    made._mapped, made._modifier_codes = {97, 65, 98, 66, 99, 67, 0xFFE1}, {SHIFT}
    made._window, made._own_ids = window(OURS + 3, frame_id=FRAME), {OURS + 3, FRAME, None}
    containing = lambda window_id: TREES.get(window_id, [])  # noqa: E731
    made._server = SimpleNamespace(containing=containing, round_trip_s=0.25, top_level=TOPS.get)
    made._delivered, made._others, made.has_received = 0, 0, False
    return made


@pytest.mark.parametrize(("sent", "events", "received", "counts", "processes"), KEYS.values(), ids=KEYS)
def test_keys_are_counted_by_receiver(
    sent: _Keys, events: list[Event], received: tuple[bool, int, list[Event]], counts: tuple[int, int],
    processes: dict[int, int], keyboard: Any,
) -> None:  # fmt: skip
    keyboard._server.pids_of = lambda *ids: [processes.get(window_id, 0) for window_id in ids]
    batches, ends = [events, None, None], []
    keyboard._record = SimpleNamespace(keys=lambda end: ends.append(end) or batches.pop(0))
    assert keyboard._count(sent) == received
    assert (keyboard._delivered, keyboard._others) == counts
    assert ends == [50.75, 0 if received[0] else 50.75], "it waits only for missing keys"
    keyboard._count(TYPED)  # of which none arrives
    assert keyboard.has_received is (len(received[2]) < len(events))


def test_thief_is_an_open_window_of_another_program(keyboard: Any) -> None:
    grabbed, inner, gone = (
        [key(A, *ids)] for ids in ((THEIRS, MANAGER), (INNER, THEIRS), (MANAGER, MANAGER))
    )
    stray = [TO_ANOTHER, grabbed, TO_FRAME, inner, gone]
    assert [keyboard._thief(events) for events in stray] == [THEIRS, None, None, None, None]


def test_key_that_would_end_too_late_is_not_pressed(tmp_path: Path) -> None:
    keyboard: Any = object.__new__(_Keyboard)
    keyboard._stop_file, keyboard._deadline = tmp_path / "STOP", time.monotonic() + 60
    keyboard._check_focus = lambda *_: None
    assert error_of(keyboard._check, 90.0).code.value == "TIMEOUT"


def test_click_in_a_window_that_closes_is_an_error(windows: XWitness, act_late: ActLate) -> None:
    assert act_late("click 100 80", "windowclose {target}").error["code"] == "WINDOW_NOT_FOUND"
    assert windows.take("press") == []


def test_typing_waits_for_the_xdotool_of_a_killed_process(
    peek: Program, windows: XWitness, tmp_path: Path
) -> None:
    window_id, started = window_titled(peek, "target")["window_id"], tmp_path / "started"
    script = f'read -r keys; touch {started}; sleep 3; echo "$keys" | $real -\nexit'
    with peek.start("type", window_id, "abc", **programs_by(tmp_path / "bin", script, "xdotool")) as killed:
        wait_for(started.exists, "xdotool has its keys")
        killed.kill()
    other = peek.having(**dict.fromkeys(("HOME", "XDG_STATE_HOME", "TMPDIR"), str(tmp_path)))
    other.data("type", window_id, "Z")
    wait_for(lambda: len([one for one in windows.events if one.get("text")]) > 3, "all keys arrive")
    assert "".join(key["text"] for key in windows.take_characters()) == "abcZ"


def test_server_survives_the_end_of_its_display(tmp_path: Path) -> None:
    with bare_x_server() as display:
        client = Client("package", clean_environment(tmp_path, DISPLAY=display))
        client.shake_hands()
        with closing(XWitness({"DISPLAY": display})) as witness:
            window_id = witness.open("field", app="Field", **PLACE)
            number = client.start_call("type_text", window_id=window_id, text="abc" * 200)
            witness.wait(lambda one: one["event"] == "key")
    with closing(client):
        assert client.reply(number).code not in ("", "INTERNAL_ERROR")
        assert client.call("list_windows").code == "NO_GUI_SESSION"
