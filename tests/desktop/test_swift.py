"""The two sources of input, input.swift and input.js: one contract, and exactly the same events on a fake Mac.

The Swift bench is tests/support/swift: stand-ins for Apple's modules, against which the shipped source must compile without a
warning; so what runs here is the logic and the spelling of the calls, not the system behind them. PEEKABOO_REQUIRE_SWIFT=1 makes a missing compiler a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fakemac import FakeMac

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "peekaboo_min" / "desktop" / "macos" / "input.swift"
JXA_SOURCE = SOURCE.with_suffix(".js")
BUILD = ROOT / "tests" / "support" / "swift" / "build.py"

Event = dict[str, Any]
LEFT, RIGHT, MIDDLE = (0, 1, 2), (1, 3, 4), (2, 25, 26)  # button, down, up
COMMAND, SHIFT = 0x100000, 0x20000
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"  # one grapheme cluster, 11 UTF-16 units
STACKED = "a" + "\u0301" * 24  # one grapheme cluster, 25 UTF-16 units


def need_swiftc() -> None:
    if shutil.which("swiftc"):
        return
    if os.environ.get("PEEKABOO_REQUIRE_SWIFT") == "1":
        pytest.fail("there is no swiftc on PATH, and PEEKABOO_REQUIRE_SWIFT is 1")
    pytest.skip("there is no swiftc on PATH")


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
            {name: value for name, value in event.items() if name not in ("t", "suppression_s")}
            for event in self.mac.raw_events()
        ]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_swiftc()
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
def swift(program: Path) -> Bench:
    for file in program.parent.glob("*.json*"):
        file.unlink()
    return Bench(FakeMac(program.parent), [str(program)])


@pytest.fixture
def jxa(tmp_path: Path) -> Bench:
    mac = FakeMac(tmp_path)
    return Bench(mac, [str(mac.bin_dir / "osascript"), "-l", "JavaScript", "-"], JXA_SOURCE.read_bytes())


@pytest.fixture(params=["swift", "jxa"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return request.getfixturevalue(request.param)


def mouse(kind: int, x: float, y: float, button: int = 0, click_state: int = 0) -> Event:
    return {
        "type": kind,
        "x": x,
        "y": y,
        "button": button,
        "clickState": click_state,
        "flags": 0,
        "tap": 0,
        "source_state": -1,
    }


def clicked(x: float, y: float, button: tuple[int, int, int], times: int) -> list[Event]:
    number, down, up = button
    pairs = [mouse(kind, x, y, number, state) for state in range(1, times + 1) for kind in (down, up)]
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


ACTS = {
    "a move": ({"do": "move", "x": -12.5, "y": -100}, [mouse(5, -12.5, -100)]),
    "a click": (
        {"do": "click", "x": 100, "y": 50.5, "button": "left", "clicks": 1},
        clicked(100, 50.5, LEFT, 1),
    ),
    "a double click": (
        {"do": "click", "x": 1, "y": 2, "button": "left", "clicks": 2},
        clicked(1, 2, LEFT, 2),
    ),
    "a triple click": (
        {"do": "click", "x": 1, "y": 2, "button": "left", "clicks": 3},
        clicked(1, 2, LEFT, 3),
    ),
    "a right click": (
        {"do": "click", "x": 1, "y": 2, "button": "right", "clicks": 1},
        clicked(1, 2, RIGHT, 1),
    ),
    "a middle click": (
        {"do": "click", "x": 1, "y": 2, "button": "middle", "clicks": 1},
        clicked(1, 2, MIDDLE, 1),
    ),
    "no text": ({"do": "type", "text": ""}, []),
    "plain text": ({"do": "type", "text": "hello"}, typed("hello")),
    "accents": ({"do": "type", "text": "Ångström, cafe\u0301"}, typed("Ångström, cafe\u0301")),
    "CJK": ({"do": "type", "text": "東京タワー 한국"}, typed("東京タワー 한국")),
    "a family of four": ({"do": "type", "text": f"hi {FAMILY}!"}, typed(f"hi {FAMILY}!")),
    "exactly 20 units": ({"do": "type", "text": "abcdefghijklmnopqrst"}, typed("abcdefghijklmnopqrst")),
    "21 units": ({"do": "type", "text": "abcdefghijklmnopqrstu"}, typed("abcdefghijklmnopqrst", "u")),
    "an emoji on the border": (
        {"do": "type", "text": "x" * 19 + "\U0001f600y"},
        typed("x" * 19, "\U0001f600y"),
    ),
    "a family on the border": (
        {"do": "type", "text": "x" * 10 + FAMILY + FAMILY},
        typed("x" * 10, FAMILY, FAMILY),
    ),
    "an accent on the border": ({"do": "type", "text": "x" * 19 + "e\u0301"}, typed("x" * 19, "e\u0301")),
    "a flag on the border": (
        {"do": "type", "text": "x" * 18 + "\U0001f1e9\U0001f1ea"},
        typed("x" * 18, "\U0001f1e9\U0001f1ea"),
    ),
    "a cluster of 25 units": ({"do": "type", "text": f"ab{STACKED}cd"}, typed("ab", STACKED, "cd")),
    "newline and tab": ({"do": "type", "text": "a\tb\nc"}, typed("a", 48, "b", 36, "c")),
    "only keys": ({"do": "type", "text": "\n\n\t"}, typed(36, 36, 48)),
    "a Windows line end": ({"do": "type", "text": "a\r\nb\rc"}, typed("a", 36, "b", 36, "c")),
    "backspace": ({"do": "type", "text": "ab\bc"}, typed("ab", 51, "c")),
    "500 characters": ({"do": "type", "text": "0123456789" * 50}, typed(*["01234567890123456789"] * 25)),
    "a key": ({"do": "press", "key_code": 53, "flags": 0}, key(53)),
    "a chord": ({"do": "press", "key_code": 17, "flags": COMMAND | SHIFT}, key(17, COMMAND | SHIFT)),
}

XY, BUTTON, CLICKS = (
    "x and y must be finite numbers",
    "button must be left, right or middle",
    "clicks must be 1, 2 or 3",
)
OBJECT, DO, TEXT = (
    "the request must be one JSON object",
    "do must be preflight, move, click, type or press",
    "text must be a string",
)
CODE, FLAGS = (
    "key_code must be a whole number from 0 to 65535",
    "flags must be a whole number from 0 to 4294967295",
)
BAD = {
    "nothing": ("", OBJECT),
    "no JSON": ("click", OBJECT),
    "an array": ("[]", OBJECT),
    "null": ("null", OBJECT),
    "two documents": ('{"do":"preflight"} {}', OBJECT),
    "NaN": ('{"do":"move","x":NaN,"y":0}', OBJECT),
    "no act": ({}, DO),
    "an unknown act": ({"do": "drag"}, DO),
    "an act of the wrong type": ({"do": 1}, DO),
    "no y": ({"do": "move", "x": 1}, XY),
    "a text for x": ({"do": "move", "x": "1", "y": 2}, XY),
    "a boolean for x": ({"do": "move", "x": True, "y": 2}, XY),
    "infinity": ('{"do":"move","x":1e999,"y":0}', XY),
    "an unknown button": ({"do": "click", "x": 1, "y": 2, "button": "back", "clicks": 1}, BUTTON),
    "no button": ({"do": "click", "x": 1, "y": 2, "clicks": 1}, BUTTON),
    "a button that every object has": (
        {"do": "click", "x": 1, "y": 2, "button": "constructor", "clicks": 1},
        BUTTON,
    ),
    "no clicks": ({"do": "click", "x": 1, "y": 2, "button": "left"}, CLICKS),
    "0 clicks": ({"do": "click", "x": 1, "y": 2, "button": "left", "clicks": 0}, CLICKS),
    "4 clicks": ({"do": "click", "x": 1, "y": 2, "button": "left", "clicks": 4}, CLICKS),
    "1.5 clicks": ({"do": "click", "x": 1, "y": 2, "button": "left", "clicks": 1.5}, CLICKS),
    "true clicks": ({"do": "click", "x": 1, "y": 2, "button": "left", "clicks": True}, CLICKS),
    "no text": ({"do": "type"}, TEXT),
    "a number for a text": ({"do": "type", "text": 5}, TEXT),
    "half a surrogate pair": ({"do": "type", "text": "a\ud83d"}, TEXT),
    "no key code": ({"do": "press", "flags": 0}, CODE),
    "a negative key code": ({"do": "press", "key_code": -1, "flags": 0}, CODE),
    "a key code that is too big": ({"do": "press", "key_code": 65536, "flags": 0}, CODE),
    "a key name": ({"do": "press", "key_code": "return", "flags": 0}, CODE),
    "no flags": ({"do": "press", "key_code": 36}, FLAGS),
    "flags that are too big": ({"do": "press", "key_code": 36, "flags": 2**32}, FLAGS),
}


def reply_to(request: Any) -> Any:
    return {"ok": True, "pointer": {"x": request["x"], "y": request["y"]}} if "x" in request else {"ok": True}


@pytest.mark.parametrize("request_, expected", ACTS.values(), ids=ACTS.keys())
def test_an_act_posts_exactly_these_events(bench: Bench, request_: Any, expected: list[Event]) -> None:
    reply = bench.ask(request_)
    assert bench.events() == expected
    assert reply == reply_to(request_)


@pytest.mark.parametrize("request_, message", BAD.values(), ids=BAD.keys())
def test_a_bad_request_is_refused_and_posts_nothing(bench: Bench, request_: Any, message: str) -> None:
    assert bench.ask(request_) == {"ok": False, "code": "INVALID_ARGUMENT", "message": message}
    assert bench.events() == []


@pytest.mark.parametrize("accessibility", ["denied", "not_asked"])
@pytest.mark.parametrize("act", ["a move", "a double click", "plain text", "no text", "a chord"])
def test_without_accessibility_the_answer_says_so_and_nothing_is_posted(
    bench: Bench, act: str, accessibility: str
) -> None:
    bench.mac.set("permissions.accessibility", accessibility)
    assert bench.ask(ACTS[act][0]) == {
        "ok": False,
        "code": "PERMISSION_DENIED_ACCESSIBILITY",
        "message": "mouse and keyboard events are not allowed without Accessibility access",
    }
    assert bench.events() == []


@pytest.mark.parametrize("accessibility", ["granted", "denied"])
@pytest.mark.parametrize("screen_recording", ["granted", "not_asked"])
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


@pytest.mark.parametrize("act, least_ms", [("a double click", 30), ("500 characters", 8)])
def test_an_application_has_time_between_two_events(bench: Bench, act: str, least_ms: float) -> None:
    bench.ask(ACTS[act][0])
    times = [event["t"] for event in bench.mac.raw_events()]
    assert min(later - sooner for sooner, later in zip(times, times[1:])) >= least_ms


def test_the_person_at_the_mac_is_never_locked_out(swift: Bench) -> None:
    swift.ask(ACTS["a double click"][0])
    assert {event["suppression_s"] for event in swift.mac.raw_events()} == {0}


def test_a_pointer_that_cannot_get_there_is_read_back_where_it_stopped(bench: Bench) -> None:
    assert bench.ask({"do": "move", "x": 5000, "y": 100}) == {"ok": True, "pointer": {"x": 1439, "y": 100}}
    assert bench.mac.state()["pointer"] == {"x": 1439, "y": 100}


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
    need_swiftc()
    command = ["swiftc", "-swift-version", "5", "-warnings-as-errors", "-typecheck", str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
