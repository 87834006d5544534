"""The two sources of input, input.swift and input.js: one contract, and the same events on a fake Mac.

The Swift bench is tests/support/swift: stand-ins for Apple's modules, against which the shipped source must
compile without a warning; so what runs here is the logic and the spelling of the calls, not what is behind.
PEEKABOO_REQUIRE_SWIFT=1 makes a missing compiler a failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakemac import FakeMac, world
from worlds import need_swift

ROOT = Path(__file__).resolve().parent.parent.parent
MACOS = ROOT / "peekaboo_min" / "desktop" / "macos"
SOURCE = MACOS / "input.swift"
JXA_SOURCES = [MACOS / name for name in ("window_list.js", "accessibility.js", "input.js")]
BUILD = ROOT / "tests" / "support" / "swift" / "build.py"

Event = dict[str, Any]
# The frontmost app's window, which holds the points that are clicked here.
TERMINAL = {"id": 1080, "pid": 480, "x": 60, "y": 80, "width": 700, "height": 420, "is_popup": False}
FORM = {"id": 1090, "pid": 500, "x": 820, "y": 100, "width": 480, "height": 360, "is_popup": False}
STOP = "/nowhere/STOP"
LEFT, RIGHT, MIDDLE = (0, 1, 2), (1, 3, 4), (2, 25, 26)  # button, down, up
COMMAND, SHIFT = 0x100000, 0x20000
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"  # one grapheme cluster, 11 UTF-16 units
STACKED = "a" + "\u0301" * 24  # one grapheme cluster, 25 UTF-16 units


class Bench:
    """A fake Mac, and a way to ask one of the two sources of input on it."""

    def __init__(self, mac: FakeMac, command: list[str], source: bytes = b"") -> None:
        self.mac, self.command, self.source = mac, command, source

    def ask(self, request: Any) -> Any:
        text = request if isinstance(request, str) else json.dumps(request)
        if self.source:
            done = subprocess.run([*self.command, text], input=self.source, capture_output=True, timeout=60)
        else:
            done = subprocess.run(self.command, input=text.encode(), capture_output=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.endswith(b"}\n")
        return json.loads(done.stdout)

    def events(self) -> list[Event]:
        """What was posted, as it came; without the time, and without what only the Swift bench notes."""
        return [
            {name: value for name, value in event.items() if name not in ("t", "idle_ms", "suppression_s")}
            for event in self.mac.raw_events()
            if "type" in event
        ]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_swift()
    if sys.platform == "darwin":
        pytest.skip("on a Mac the events would be real; the source is checked against the real SDK instead")
    folder = tmp_path_factory.mktemp("swift")
    command = [
        sys.executable,
        str(BUILD),
        "compile",
        str(SOURCE),
        "-o",
        str(folder / "input"),
        "--state",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "input"


@pytest.fixture
def swift(program: Path, tmp_path: Path) -> Bench:
    launcher = tmp_path / "input"
    launcher.write_text(program.read_text().replace(str(program.parent), str(tmp_path)))
    launcher.chmod(0o700)
    return Bench(FakeMac(tmp_path), [str(launcher)])


@pytest.fixture
def jxa(tmp_path: Path) -> Bench:
    mac = FakeMac(tmp_path)
    return Bench(
        mac,
        [str(mac.bin_dir / "osascript"), "-l", "JavaScript", "-"],
        b"\n".join(one.read_bytes() for one in JXA_SOURCES),
    )


@pytest.fixture(params=["swift", "jxa"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return request.getfixturevalue(request.param)


def mouse(kind: int, x: float, y: float, button: int = 0, click_state: int = 0, flags: int = 0) -> Event:
    return {
        "type": kind,
        "x": x,
        "y": y,
        "button": button,
        "clickState": click_state,
        "flags": flags,
        "tap": 0,
        "source_state": -1,
    }


def clicked(x: float, y: float, button: tuple[int, int, int], times: int, flags: int = 0) -> list[Event]:
    number, down, up = button
    pairs = [mouse(kind, x, y, number, state, flags) for state in range(1, times + 1) for kind in (down, up)]
    return [mouse(5, x, y), *pairs]


def key(code: int, flags: int = 0, unicode: str = "") -> list[Event]:
    return [
        {"type": kind, "keycode": code, "unicode": unicode, "flags": flags, "tap": 0, "source_state": -1}
        for kind in (10, 11)
    ]


def typed(*parts: Any) -> list[Event]:
    """Text in one event pair each; a number is a key without text."""
    return [
        event for part in parts for event in (key(part) if isinstance(part, int) else key(0, unicode=part))
    ]


def wheel(vertical: int, horizontal: int, notches: int) -> list[Event]:
    turned = {
        "type": 22,
        "unit": 1,
        "wheel": [vertical, horizontal],
        "flags": 0,
        "tap": 0,
        "source_state": -1,
    }
    return [turned] * notches


def dragged(
    start: tuple[float, float], end: tuple[float, float], types: tuple[int, int, int, int]
) -> list[Event]:
    number, down, moved, up = types
    points = [tuple(a + (b - a) * step / 15 for a, b in zip(start, end)) for step in range(1, 16)]
    return [
        mouse(5, *start), mouse(down, *start, number, 1),
        *(mouse(moved, *point, number, 1) for point in points), mouse(up, *end, number, 1),
    ]  # fmt: skip


def move(x: Any, y: Any, **more: Any) -> dict[str, Any]:
    return {"do": "move", "window": TERMINAL, "x": x, "y": y, **more}


def scroll(direction: Any, amount: Any, **more: Any) -> dict[str, Any]:
    return {**move(100, 150), "do": "scroll", "direction": direction, "amount": amount, **more}


def drag(to_x: Any, to_y: Any, **more: Any) -> dict[str, Any]:
    return {**move(100, 150), "do": "drag", "to_x": to_x, "to_y": to_y, "button": "left", **more}


def click(x: float, y: float, **more: Any) -> dict[str, Any]:
    return {
        "do": "click",
        "window": TERMINAL,
        "x": x,
        "y": y,
        "button": "left",
        "clicks": 1,
        "flags": 0,
        **more,
    }


def type_(text: Any, **more: Any) -> dict[str, Any]:
    return {"do": "type", "window": TERMINAL, "text": text, "stop_file": STOP, "delay_ms": 0, **more}


def press(code: Any, flags: Any = 0, **more: Any) -> dict[str, Any]:
    held = {"hold_ms": 0, "repeat": 1, "stop_file": STOP}
    return {"do": "press", "window": TERMINAL, "key_code": code, "flags": flags, **held, **more}


def without(request: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key != name}


ACTS = {
    "a move": (move(100.5, 150), [mouse(5, 100.5, 150)]),
    "a move on the display to the left": (
        move(-460, 160.5, window={**TERMINAL, "id": 1031, "x": -560, "y": 100, "width": 480, "height": 500}),
        [mouse(5, -460, 160.5)],
    ),
    "a scroll up": (scroll("up", 1), [mouse(5, 100, 150), *wheel(3, 0, 1)]),
    "a scroll down": (scroll("down", 5), [mouse(5, 100, 150), *wheel(-3, 0, 5)]),
    "a scroll to the left": (scroll("left", 2), [mouse(5, 100, 150), *wheel(0, 3, 2)]),
    "a scroll to the right": (scroll("right", 1), [mouse(5, 100, 150), *wheel(0, -3, 1)]),
    "a drag": (drag(250, 120), dragged((100, 150), (250, 120), (0, 1, 6, 2))),
    "a drag by the right button": (
        drag(110, 300, button="right"),
        dragged((100, 150), (110, 300), (1, 3, 7, 4)),
    ),
    "a drag by the middle button": (
        drag(90, 140, button="middle"),
        dragged((100, 150), (90, 140), (2, 25, 27, 26)),
    ),
    "a click": (click(100, 150.5), clicked(100, 150.5, LEFT, 1)),
    "a double click": (click(101, 152, clicks=2), clicked(101, 152, LEFT, 2)),
    "a triple click": (click(101, 152, clicks=3), clicked(101, 152, LEFT, 3)),
    "a right click": (click(101, 152, button="right"), clicked(101, 152, RIGHT, 1)),
    "a middle click": (click(101, 152, button="middle"), clicked(101, 152, MIDDLE, 1)),
    "a click with modifiers": (
        click(101, 152, flags=COMMAND | SHIFT),
        clicked(101, 152, LEFT, 1, COMMAND | SHIFT),
    ),
    "no text": (type_(""), []),
    "plain text": (type_("hello"), typed("hello")),
    "accents": (type_("Ångström, cafe\u0301"), typed("Ångström, cafe\u0301")),
    "CJK": (type_("東京タワー 한국"), typed("東京タワー 한국")),
    "a family of four": (type_(f"hi {FAMILY}!"), typed(f"hi {FAMILY}!")),
    "exactly 20 units": (type_("abcdefghijklmnopqrst"), typed("abcdefghijklmnopqrst")),
    "21 units": (type_("abcdefghijklmnopqrstu"), typed("abcdefghijklmnopqrst", "u")),
    "an emoji on the border": (type_("x" * 19 + "\U0001f600y"), typed("x" * 19, "\U0001f600y")),
    "a family on the border": (type_("x" * 10 + FAMILY + FAMILY), typed("x" * 10, FAMILY, FAMILY)),
    "an accent on the border": (type_("x" * 19 + "e\u0301"), typed("x" * 19, "e\u0301")),
    "a flag on the border": (
        type_("x" * 18 + "\U0001f1e9\U0001f1ea"),
        typed("x" * 18, "\U0001f1e9\U0001f1ea"),
    ),
    "a cluster of 25 units": (type_(f"ab{STACKED}cd"), typed("ab", STACKED, "cd")),
    "newline and tab": (type_("a\tb\nc"), typed("a", 48, "b", 36, "c")),
    "only keys": (type_("\n\n\t"), typed(36, 36, 48)),
    "a Windows line end": (type_("a\r\nb\rc"), typed("a", 36, "b", 36, "c")),
    "backspace": (type_("ab\bc"), typed("ab", 51, "c")),
    "500 characters": (type_("0123456789" * 50), typed(*["01234567890123456789"] * 25)),
    "a text with pauses": (type_("a\u0301b\tc", delay_ms=40), typed("a\u0301", "b", 48, "c")),
    "a key": (press(53), key(53)),
    "a key three times": (press(53, repeat=3), key(53) * 3),
    "a key held down": (press(49, SHIFT, hold_ms=100), key(49, SHIFT)),
    "a chord": (press(17, COMMAND | SHIFT), key(17, COMMAND | SHIFT)),
}

REQUEST = "the request"
BAD = {
    "nothing": ("", REQUEST),
    "no JSON": ("click", REQUEST),
    "null": ("null", REQUEST),
    "two documents": ('{"do":"preflight"} {}', REQUEST),
    "NaN": ('{"do":"move","x":NaN,"y":0}', REQUEST),
    "no act": ({}, "do"),
    "an unknown act": ({"do": "shout"}, "do"),
    "an act that every object has": ({"do": "constructor"}, "do"),
    "an act of the wrong type": ({"do": 1}, "do"),
    "no y": (without(move(1, 2), "y"), "y"),
    "a text for x": (move("1", 2), "x"),
    "an unknown button": (click(1, 2, button="back"), "button"),
    "a button that every object has": (drag(1, 2, button="constructor"), "button"),
    "4 clicks": (click(1, 2, clicks=4), "clicks"),
    "1.5 clicks": (click(1, 2, clicks=1.5), "clicks"),
    "a click without flags": (without(click(1, 2), "flags"), "flags"),
    "an unknown direction": (scroll("sideways", 1), "direction"),
    "51 notches": (scroll("up", 51), "amount"),
    "a drag to nowhere": (without(drag(1, 2), "to_y"), "to_y"),
    "a click without a window": (without(click(1, 2), "window"), "window"),
    "a window without its size": (click(1, 2, window=without(TERMINAL, "width")), "window"),
    "a window with a text for its id": (press(1, window={**TERMINAL, "id": "1080"}), "window"),
    "a window that may be a popup": (type_("x", window=without(TERMINAL, "is_popup")), "window"),
    "a number for a text": (type_(5), "text"),
    "no stop file": (without(type_("x"), "stop_file"), "stop_file"),
    "a negative delay": (type_("x", delay_ms=-1), "delay_ms"),
    "a delay of two seconds": (type_("x", delay_ms=2000), "delay_ms"),
    "null for a window": (press(36, window=None), "window"),
    "a key code that is too big": (press(65536), "key_code"),
    "flags that are too big": (press(36, 2**32), "flags"),
    "a key that is held for a day": (press(36, hold_ms=86_400_000), "hold_ms"),
    "no press": (press(36, repeat=0), "repeat"),
    "101 presses": (press(36, repeat=101), "repeat"),
    "a press without a stop file": (without(press(36), "stop_file"), "stop_file"),
}


def reply_to(request: Any) -> Any:
    if request["do"] == "type":
        return {"ok": True, "sent": len(request["text"])}
    if request["do"] == "press":
        return {"ok": True, "sent": request["repeat"]}
    times = request.get("clicks", request.get("amount", 1))
    return {"ok": True, "pointer": {"x": request["x"], "y": request["y"]}, "done": times, "is_certain": True}


def refused(code: str, message: str, sent: int = 0, reached_id: Any = None) -> dict[str, Any]:
    return {"ok": False, "code": code, "message": message, "sent": sent, "reached_id": reached_id}


@pytest.mark.parametrize("request_, expected", ACTS.values(), ids=ACTS.keys())
def test_an_act_posts_exactly_these_events(bench: Bench, request_: Any, expected: list[Event]) -> None:
    reply = bench.ask(request_)
    assert bench.events() == expected
    assert reply == reply_to(request_)


@pytest.mark.parametrize("request_, field", BAD.values(), ids=BAD.keys())
def test_a_bad_request_is_refused_and_posts_nothing(bench: Bench, request_: Any, field: str) -> None:
    assert bench.ask(request_) == refused("INVALID_ARGUMENT", f"{field} is missing or wrong")
    assert bench.events() == []


def test_half_a_character_is_no_text(bench: Bench) -> None:
    answer = bench.ask(type_("\ud83d"))  # which of its fields is wrong, not every JSON reader says
    assert (answer["code"], bench.events()) == ("INVALID_ARGUMENT", [])


@pytest.mark.parametrize(
    ("act", "accessibility"),
    [("a move", "denied"), ("a double click", "not_asked"), ("a drag", "denied"), ("no text", "denied"),
     ("a chord", "not_asked")],
)  # fmt: skip
def test_without_accessibility_the_answer_says_so_and_nothing_is_posted(
    bench: Bench, act: str, accessibility: str
) -> None:
    bench.mac.set("permissions.accessibility", accessibility)
    assert bench.ask(ACTS[act][0]) == refused(
        "PERMISSION_DENIED_ACCESSIBILITY",
        "mouse and keyboard events are not allowed without Accessibility access",
    )
    assert bench.events() == []


@pytest.mark.parametrize(
    ("accessibility", "screen_recording"), [("granted", "not_asked"), ("denied", "granted")]
)
def test_preflight_names_each_grant(bench: Bench, accessibility: str, screen_recording: str) -> None:
    bench.mac.set("permissions.accessibility", accessibility)
    bench.mac.set("permissions.screen_recording", screen_recording)
    may_post = accessibility == "granted"
    assert bench.ask({"do": "preflight"}) == {
        "ok": True,
        "accessibility": may_post,
        "post_event": may_post,
        "screen_recording": screen_recording == "granted",
    }
    assert bench.events() == []


LEAST_PAUSES_MS = {
    "a double click": [30, 30, 30, 30],
    "21 units": [8, 8, 8],
    "a text with pauses": [8, 48, 8, 48, 8, 48, 8],
    "a key held down": [108],
    "a scroll to the left": [30, 20],
}


@pytest.mark.parametrize("act, least", LEAST_PAUSES_MS.items(), ids=LEAST_PAUSES_MS.keys())
def test_an_application_has_time_between_two_events(bench: Bench, act: str, least: list[float]) -> None:
    bench.ask(ACTS[act][0])
    events = [event for event in bench.mac.raw_events() if "type" in event]
    # the Swift bench tells the program's own pauses from the time that it takes itself
    pauses = [later.get("idle_ms", later["t"] - sooner["t"]) for sooner, later in zip(events, events[1:])]
    assert len(pauses) == len(least) and all(one >= low for one, low in zip(pauses, least)), pauses


def test_the_person_at_the_mac_is_never_locked_out(bench: Bench) -> None:
    bench.ask(ACTS["a double click"][0])
    bench.ask(ACTS["a scroll up"][0])
    assert {event["suppression_s"] for event in bench.mac.raw_events() if "type" in event} == {0}


# looking last: the world changes between the request and the press ----------------------------------------

MOVE, DOWN, KEY = {"type": 5}, {"type": 1}, {"type": 10}
STARTED = ({"do": "started", "program": "osascript"}, {"do": "started", "program": "swift-helper"})
POINT = (300, 200)
COVER = {"title": "", "bounds": [250, 150, 200, 200], "layer": 0}
CHANGES: dict[str, tuple[dict[str, Any], str, Any]] = {
    "covered by another app": ({"do": "open_window", "pid": 430, "window": COVER}, "WINDOW_COVERED", 2000),
    "covered by its own app": ({"do": "open_window", "pid": 480, "window": COVER}, "WINDOW_COVERED", 2000),
    "covered by a menu": (
        {"do": "open_window", "pid": 480, "window": {**COVER, "layer": 101}},
        "WINDOW_COVERED",
        2000,
    ),
    "covered by a tiny popup": (
        {"do": "open_window", "pid": 430, "window": {**COVER, "bounds": [299, 199, 3, 3], "layer": 25}},
        "WINDOW_COVERED",
        2000,
    ),
    "another app comes to the front": (
        {"do": "activate_now", "pid": 410, "all_windows": True},
        "WINDOW_COVERED",
        1012,
    ),
    "its sheet opens": (
        {"do": "open_window", "pid": 480, "window": {**COVER, "attached_to": 1080}},
        "WINDOW_COVERED",
        2000,
    ),
    "closed": ({"do": "close_window", "window": 1080}, "WINDOW_NOT_FOUND", None),
    "minimised": (
        {"do": "change_window", "window": 1080, "values": {"minimised": True}},
        "WINDOW_NOT_FOUND",
        None,
    ),
    "moved": (
        {"do": "change_window", "window": 1080, "values": {"bounds": [120, 80, 700, 420]}},
        "STALE_SCREENSHOT",
        None,
    ),
    "resized": (
        {"do": "change_window", "window": 1080, "values": {"bounds": [60, 80, 700, 520]}},
        "STALE_SCREENSHOT",
        None,
    ),
    "locked": ({"do": "lock_screen"}, "SCREEN_LOCKED", None),
}


def buttons_down(bench: Bench) -> int:
    return sum(event["type"] in (1, 3, 25) for event in bench.events())


BEFORE = ["covered by another app", "closed", "moved", "locked"]


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        *((name, "before the hand looks") for name in BEFORE),
        *((name, "when the pointer arrives") for name in CHANGES),
    ],
)
def test_a_window_that_changes_before_the_press_is_not_clicked(bench: Bench, name: str, moment: str) -> None:
    change, code, reached_id = CHANGES[name]
    if moment.startswith("before"):
        for program in STARTED:
            bench.mac.when(program, change)
    else:
        bench.mac.when(MOVE, change)
    answer = bench.ask(click(*POINT))
    assert (answer["ok"], answer["code"], answer["reached_id"]) == (False, code, reached_id), answer
    assert str(reached_id) in answer["message"] or reached_id is None
    assert (buttons_down(bench), bench.mac.events("click")) == (0, [])


@pytest.mark.parametrize(
    "act", [scroll("up", 3), drag(250, 120), move(100, 150)], ids=["scroll", "drag", "move"]
)
def test_no_act_at_the_pointer_reaches_what_covers_the_window(bench: Bench, act: dict[str, Any]) -> None:
    bench.mac.when(
        MOVE, {"do": "open_window", "pid": 430, "window": {**COVER, "bounds": [60, 100, 300, 200]}}
    )
    answer = bench.ask(act)
    assert (answer["ok"], answer["code"], answer["reached_id"]) == (False, "WINDOW_COVERED", 2000)
    assert bench.events() == [mouse(5, 100, 150)]


def test_a_wheel_stops_when_something_comes_under_the_pointer(bench: Bench) -> None:
    bench.mac.when(
        {"type": 22},
        {"do": "open_window", "pid": 430, "window": {**COVER, "bounds": [60, 100, 300, 200]}},
        skip=1,
    )
    answer = bench.ask(scroll("down", 10))
    assert (answer["ok"], answer["done"]) == (True, 2)
    assert bench.mac.window(1080)["scroll"] == [6, 0]


def test_a_drag_moves_what_it_holds(bench: Bench) -> None:
    volume = {"name": "volume", "kind": "slider", "value": 10, "rect": [20, 100, 200, 20]}
    bench.mac.change_window(1080, {"widgets": [volume]})
    assert bench.ask(drag(230, 195, x=100, y=190))["done"] == 1
    assert bench.mac.widget(1080, "volume")["value"] == 75
    assert bench.mac.state()["mouse"]["down"] == {}


def test_a_repeated_key_stops_when_the_focus_is_lost(bench: Bench) -> None:
    bench.mac.when(KEY, {"do": "activate_now", "pid": 430}, skip=1)
    answer = bench.ask(press(48, repeat=5))
    assert (answer["code"], answer["sent"], answer["reached_id"]) == ("FOCUS_LOST", 2, 1030)
    assert [one["app"] for one in bench.mac.events("key")] == ["Terminal"] * 2


def test_a_click_that_closes_its_window_is_not_repeated_on_what_is_behind_it(bench: Bench) -> None:
    button = {
        "name": "x",
        "kind": "button",
        "text": "x",
        "rect": [0, 0, 400, 300],
        "on_click": {"close_window": "this"},
    }
    bench.mac.activate("Form")
    window_id = bench.mac.open_window("Form", title="Quick", bounds=[830, 110, 400, 300], widgets=[button])
    quick = {**FORM, "id": window_id, "x": 830, "y": 110, "width": 400, "height": 300}
    answer = bench.ask(click(900, 200, window=quick, clicks=2))
    assert (answer["ok"], answer["done"]) == (True, 1)
    assert [one["window"] for one in bench.mac.events("click")] == [window_id]


def test_a_pointer_that_does_not_get_there_presses_nothing(bench: Bench) -> None:
    bench.mac.move_window(1080, 1200, 80)
    answer = bench.ask(click(1500, 200, window={**TERMINAL, "x": 1200}))
    assert (answer["ok"], answer["done"], answer["pointer"]) == (True, 0, {"x": 1439, "y": 200})
    assert buttons_down(bench) == 0


def test_what_ends_at_the_point_or_is_invisible_does_not_cover(bench: Bench) -> None:
    bench.mac.open_window("TextEdit", bounds=[200, 100, 100, 300])  # its right edge is at the point
    bench.mac.open_window("TextEdit", bounds=[250, 100, 100, 100])  # its lower edge
    bench.mac.open_window("TextEdit", bounds=[280, 180, 50, 50], alpha=0)
    answer = bench.ask(click(*POINT))
    assert (answer["ok"], answer["done"]) == (True, 1), answer
    assert [one["window"] for one in bench.mac.events("click")] == [1080]


def test_a_point_outside_the_window_is_not_clicked(bench: Bench) -> None:
    bench.mac.update(
        lambda state: state.update(windows=[one for one in state["windows"] if one["id"] == 1080])
    )
    assert bench.ask(click(40, 600)) == refused(
        "WINDOW_COVERED", "that point is outside window 1080", reached_id=None
    )
    assert bench.events() == []


OVERLAYS = {
    # of an app of its own; the Dock's own is there in every test
    "it lets clicks through": ("Calculator", {"click_through": True}, "works", (True, True)),
    "it takes them": ("Calculator", {}, "works", "WINDOW_COVERED"),
    "nobody can tell": ("Calculator", {"click_through": True}, "silent", (True, False)),
    "it belongs to the same app": ("Terminal", {"click_through": True}, "works", (True, False)),
    "it is as large as the window": (
        "Calculator",
        {"click_through": True, "bounds": [60, 80, 700, 420]},
        "works",
        (True, True),
    ),
}


@pytest.mark.parametrize(("app", "more", "test", "expected"), OVERLAYS.values(), ids=OVERLAYS.keys())
def test_an_overlay_over_the_whole_window_is_told_from_one_that_lets_clicks_through(
    bench: Bench, app: str, more: dict[str, Any], test: str, expected: Any
) -> None:
    bench.mac.switch(position_test=test)
    bench.mac.open_window(app, **{"bounds": [0, 0, 1440, 900], "layer": 25, **more})
    answer = bench.ask(click(*POINT))
    if isinstance(expected, str):
        assert (answer["ok"], answer["code"], buttons_down(bench)) == (False, expected, 0)
    else:
        assert (answer["ok"], answer["is_certain"]) == expected
        assert [one["window"] for one in bench.mac.events("click")] == [1080]


def test_a_click_beside_an_open_menu_is_not_certain_and_one_on_its_item_is(bench: Bench) -> None:
    item = {
        "name": "paste",
        "kind": "button",
        "text": "Paste",
        "rect": [0, 0, 120, 24],
        "on_click": {"log": "pasted"},
    }
    menu = bench.mac.open_window("Terminal", bounds=[400, 300, 120, 60], layer=101, widgets=[item])
    popup = {**TERMINAL, "id": menu, "x": 400, "y": 300, "width": 120, "height": 60, "is_popup": True}
    answer = bench.ask(click(410, 310, window=popup))
    assert (answer["ok"], answer["done"], answer["is_certain"]) == (True, 1, True)
    assert [one["text"] for one in bench.mac.events("note")] == ["pasted"]
    assert bench.ask(click(*POINT))["is_certain"] is False
    assert bench.mac.events("click")[-1]["closed_a_menu"]


LONG = "0123456789" * 6
THIEVES: dict[str, tuple[dict[str, Any], Any]] = {
    "another app": ({"do": "activate_now", "pid": 430}, 1030),
    "another window of the app": (
        {"do": "open_window", "pid": 480, "window": {"bounds": [0, 100, 300, 300]}},
        2000,
    ),
    "a sheet": (
        {"do": "open_window", "pid": 480, "window": {"bounds": [100, 100, 300, 300], "attached_to": 1080}},
        2000,
    ),
    "a menu": ({"do": "open_window", "pid": 480, "window": {"bounds": [0, 100, 80, 30], "layer": 101}}, 2000),
    "a panel above all windows": (
        {
            "do": "open_window",
            "pid": 480,
            "window": {"bounds": [0, 100, 300, 300], "layer": 8, "modal": True},
        },
        2000,
    ),
    "its own end": ({"do": "close_window", "window": 1080}, None),
}


@pytest.mark.parametrize("pieces", [0, 2])
@pytest.mark.parametrize(("thief", "reached_id"), THIEVES.values(), ids=THIEVES.keys())
def test_typing_stops_when_the_focus_is_lost_and_says_how_much_went_out(
    bench: Bench, thief: dict[str, Any], reached_id: Any, pieces: int
) -> None:
    if pieces:
        bench.mac.when(KEY, thief, skip=pieces - 1)
    else:
        bench.mac.update(lambda state: world.apply(state, thief))
    answer = bench.ask(type_(LONG))
    expected = (False, "FOCUS_LOST", 20 * pieces, reached_id)
    assert (answer["ok"], answer["code"], answer["sent"], answer["reached_id"]) == expected, answer
    text = "".join(one["text"] for one in bench.mac.events("text") if one["window"] == 1080)
    assert text == LONG[: 20 * pieces] == "".join(one["text"] for one in bench.mac.events("text"))


@pytest.mark.parametrize(("thief", "reached_id"), THIEVES.values(), ids=THIEVES.keys())
def test_a_key_is_not_pressed_in_another_window(bench: Bench, thief: dict[str, Any], reached_id: Any) -> None:
    for program in STARTED:
        bench.mac.when(program, thief)
    answer = bench.ask(press(36))
    assert (answer["code"], answer["sent"], answer["reached_id"]) == ("FOCUS_LOST", 0, reached_id)
    assert bench.events() == []


def test_typing_stops_at_a_stop_file_and_at_a_locked_screen(bench: Bench) -> None:
    stop = str(bench.mac.folder / "STOP")
    bench.mac.when(KEY, {"do": "write_file", "path": stop})
    assert bench.ask(type_(LONG, stop_file=stop)) == refused("POLICY_DENIED", "the stop file is there", 20)
    assert bench.ask(type_("x", stop_file=stop))["sent"] == 0
    bench.mac.when(KEY, {"do": "lock_screen"})
    assert bench.ask(type_(LONG)) == refused("SCREEN_LOCKED", "the screen is locked", 20)
    assert bench.mac.events("dropped") != []  # the key up of the last piece that went out


def test_a_repeated_and_a_held_key_stop_at_a_stop_file(bench: Bench) -> None:
    stop = str(bench.mac.folder / "STOP")
    bench.mac.when(KEY, {"do": "write_file", "path": stop}, skip=1)
    stopped = "the stop file is there"
    assert bench.ask(press(48, repeat=5, stop_file=stop)) == refused("POLICY_DENIED", stopped, 2)
    assert bench.ask(press(48, stop_file=stop)) == refused("POLICY_DENIED", stopped, 0)
    assert len(bench.mac.events("key")) == 2
    held = str(bench.mac.folder / "HELD")
    before = len(bench.mac.raw_events())
    bench.mac.when(KEY, {"do": "write_file", "path": held})
    assert bench.ask(press(49, hold_ms=9000, repeat=3, stop_file=held)) == refused(
        "POLICY_DENIED", stopped, 1
    )
    down, up = bench.mac.raw_events()[before:]  # and it came up again
    assert up["t"] - down["t"] < 6000
    last = str(bench.mac.folder / "LAST")
    bench.mac.when(KEY, {"do": "write_file", "path": last})
    assert bench.ask(press(49, hold_ms=9000, stop_file=last)) == refused("POLICY_DENIED", stopped, 1)


def test_keys_go_to_an_open_menu_when_it_is_meant(bench: Bench) -> None:
    menu = bench.mac.open_window("Terminal", bounds=[400, 300, 120, 60], layer=101)
    popup = {**TERMINAL, "id": menu, "is_popup": True}
    assert bench.ask(press(125, 0xA00000, window=popup)) == {"ok": True, "sent": 1}
    assert [(one["key"], one["window"]) for one in bench.mac.events("key")] == [("down", menu)]
    submenu = bench.mac.open_window("Terminal", bounds=[520, 300, 120, 60], layer=101)
    answer = bench.ask(press(125, 0xA00000, window=popup))
    assert (answer["code"], answer["reached_id"]) == ("FOCUS_LOST", submenu)
    bench.mac.change_window(submenu, {"alpha": 0})  # it fades out
    assert bench.ask(press(125, 0xA00000, window=popup)) == {"ok": True, "sent": 1}
    bench.mac.close_window(menu)
    answer = bench.ask(press(125, 0xA00000, window=popup))
    assert (answer["code"], answer["reached_id"]) == ("FOCUS_LOST", 1080)


def test_a_panel_of_another_layer_is_typed_into_where_accessibility_says_that_it_has_the_focus(
    bench: Bench,
) -> None:
    field = {"name": "name", "kind": "field", "value": "", "rect": [10, 10, 200, 30]}
    panel = bench.mac.open_window(
        "Terminal", bounds=[0, 100, 300, 300], layer=8, modal=True, focus="name", widgets=[field]
    )
    target = {**TERMINAL, "id": panel, "x": 0, "y": 100, "width": 300, "height": 300}
    assert bench.ask(type_("Ada", window=target)) == {"ok": True, "sent": 3}
    assert bench.mac.widget(panel, "name")["value"] == "Ada"


def test_an_application_that_hangs_is_asked_once_and_typed_into(bench: Bench) -> None:
    bench.mac.set("apps.10.hung", True)
    assert bench.mac.state()["apps"][10]["name"] == "Terminal"
    # in front of it, and nobody would type into them
    bench.mac.open_window("Terminal", bounds=[60, 80, 10, 10])
    bench.mac.open_window("Terminal", bounds=[60, 80, 700, 420], alpha=0)
    assert bench.ask(type_(LONG)) == {"ok": True, "sent": 60}
    assert len([event for event in bench.mac.raw_events() if event.get("type") == 10]) == 3
    assert len(bench.mac.events("asked_in_vain")) == 1


@pytest.mark.parametrize("preflight", ["post_event_preflight", "trust_preflight"])
def test_one_false_no_of_two_preflights_blocks_nothing(bench: Bench, preflight: str) -> None:
    bench.mac.switch(**{preflight: "denies"})
    assert bench.ask(press(53)) == {"ok": True, "sent": 1}
    assert len(bench.events()) == 2
    answer = bench.ask({"do": "preflight"})
    assert (answer["accessibility"], answer["post_event"]) == (
        preflight != "trust_preflight",
        preflight != "post_event_preflight",
    )


def test_a_session_that_says_nothing_about_the_console_is_on_it(bench: Bench) -> None:
    bench.mac.set("session.on_console", None)
    assert bench.ask(press(53)) == {"ok": True, "sent": 1}


def test_an_application_in_front_that_is_not_meant_is_asked_nothing(bench: Bench) -> None:
    bench.mac.update(lambda state: next(one for one in state["apps"] if one["pid"] == 430).update(hung=True))
    bench.mac.activate("TextEdit")
    answer = bench.ask(press(53))
    assert (answer["code"], answer["reached_id"]) == ("FOCUS_LOST", 1030)
    assert bench.mac.events("asked_in_vain") == []


def test_the_focused_window_is_known_by_a_frame_that_is_rounded_otherwise(bench: Bench) -> None:
    panel = bench.mac.open_window("Terminal", bounds=[100, 100, 300, 200], layer=8, modal=True)
    target = {**TERMINAL, "id": panel, "x": 100, "y": 100, "width": 300, "height": 200}
    bench.mac.change_window(panel, {"ax_bounds": [101, 98, 301.5, 200]})
    assert bench.ask(press(53, window=target)) == {"ok": True, "sent": 1}
    bench.mac.change_window(panel, {"ax_bounds": [100, 103, 300, 200]})  # that would be another window
    assert bench.ask(press(53, window=target))["reached_id"] == 1080


def test_another_applications_window_of_that_frame_is_not_the_focused_one(bench: Bench) -> None:
    bounds, title = [100, 100, 300, 200], "Options"
    bench.mac.open_window("TextEdit", title=title, bounds=bounds)
    bench.mac.activate("Terminal")
    panel = bench.mac.open_window("Terminal", title=title, bounds=bounds, layer=8, modal=True)
    target = {**TERMINAL, "id": panel, "x": 100, "y": 100, "width": 300, "height": 200}
    assert bench.ask(press(53, window=target)) == {"ok": True, "sent": 1}


def test_another_users_session_on_the_screen_is_a_locked_one(bench: Bench) -> None:
    bench.mac.set("session.on_console", False)
    assert bench.ask(press(53)) == refused("SCREEN_LOCKED", "the screen is locked")
    bench.mac.no_gui_session()
    assert bench.ask(click(*POINT)) == refused("NO_GUI_SESSION", "there is no GUI session")


def test_two_windows_of_one_frame_are_told_apart_by_title_or_by_their_order(bench: Bench) -> None:
    bench.mac.open_window("Terminal", title="twin", bounds=[60, 80, 700, 420])
    answer = bench.ask(press(53))
    assert (answer["code"], answer["reached_id"]) == ("FOCUS_LOST", 2000)
    bench.mac.change_window(2000, {"title": bench.mac.window(1080)["title"]})
    assert bench.ask(press(53))["reached_id"] == 2000
    assert bench.ask(press(53, window={**TERMINAL, "id": 2000})) == {"ok": True, "sent": 1}
    bench.mac.close_window(2000)
    panel = bench.mac.open_window("Terminal", title="panel", bounds=[60, 80, 700, 420], layer=8, modal=True)
    assert bench.ask(press(53, window={**TERMINAL, "id": panel})) == {"ok": True, "sent": 1}


def test_the_start_of_the_compiled_program_is_in_the_log_of_calls(swift: Bench) -> None:
    swift.ask({"do": "preflight"})
    assert [(call["program"], call["argv"], call["stdin"]) for call in swift.mac.calls()] == [
        ("swift-helper", [], None)
    ]


def test_a_warning_of_the_compiler_is_an_error(tmp_path: Path, program: Path) -> None:
    source = tmp_path / "careless.swift"
    source.write_text(
        SOURCE.read_text(encoding="utf-8") + "\nvar neverUsed = { () -> Int in let unused = 1; return 2 }\n",
        encoding="utf-8",
    )
    command = [
        sys.executable,
        str(BUILD),
        "compile",
        str(source),
        "-o",
        str(tmp_path / "input"),
        "--state",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode != 0
    assert "'unused' was never used" in done.stderr
    assert not (tmp_path / "input").exists()


@pytest.mark.skipif(sys.platform != "darwin", reason="only a Mac has Apple's SDK")
def test_a_real_sdk_accepts_the_source_without_a_warning() -> None:
    need_swift()
    command = ["swiftc", "-swift-version", "5", "-warnings-as-errors", "-typecheck", str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
