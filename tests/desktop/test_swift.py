"""Both input executors, input.swift and input.js, post the same events and answers on a fake Mac.

The shipped Swift source is compiled without warnings against stand-ins for Apple's modules (see
tests/support/swift), so these tests cover its logic and the names of its calls, but not Apple's code.
PEEKABOO_REQUIRE_SWIFT=1 makes a missing compiler a failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
from fakemac import FakeMac, world
from fakemac.pointer_and_keys import keys_of
from mac_desk import PANELS, add_app, change_app, widget
from worlds import need_swift

from peekaboo_min.core.models import Act, Point
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.macos.input import count_sent, make_steps, with_layout

ROOT = Path(__file__).resolve().parent.parent.parent
MACOS = ROOT / "peekaboo_min" / "desktop" / "macos"
SOURCE = MACOS / "input.swift"
JXA_SOURCES = [MACOS / name for name in ("read_request.js", "window_list.js", "accessibility.js", "input.js")]
BUILD = ROOT / "tests" / "support" / "swift" / "build.py"

Event = dict[str, Any]
# The frontmost app's window; all clicks of these tests are in it.
TERMINAL = {"id": 1080, "pid": 480, "x": 60, "y": 80, "width": 700, "height": 420, "is_popup": False}
POINT = Point(300, 200)
NOT_MEASURED = ("t", "idle_ms", "suppression_s")
CONTROL, OPTION, SHIFT, COMMAND, ARROW = 0x40000, 0x80000, 0x20000, 0x100000, 0xA00000
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
DONE = {"ok": True, "is_certain": True, "code": None, "message": "", "reached_id": None, "source_id": None}
DONE["released"] = False
METHOD = "com.apple.inputmethod.SCIM.ITABC"


class Bench:
    """A fake Mac and one of the two executors."""

    def __init__(self, mac: FakeMac, command: list[str], source: bytes = b"") -> None:
        self.mac, self.command, self.source = mac, command, source
        self.stop_file = str(mac.folder / "STOP")

    def act(self, act: Act, **window: Any) -> dict[str, Any]:
        """Execute an act and return the answer; `done` is the number of sent characters, clicks or keys."""
        steps = make_steps(act)
        done = self.run(steps, **window)
        assert (done.returncode, done.stderr, done.stdout[-2:]) == (0, b"", b"}\n")
        answer: dict[str, Any] = json.loads(done.stdout)
        return {**answer, "done": count_sent(steps[: answer["step"]])}

    def run(
        self, steps: list[Event], release: Sequence[Event] = (), **window: Any
    ) -> subprocess.CompletedProcess[bytes]:
        request = {"window": {**TERMINAL, **window}, "stop_file": self.stop_file, "steps": steps}
        request |= {"record": str(self.mac.folder / "held.json"), "release": [*release]}
        file = self.mac.folder / "request.json"
        file.write_text(json.dumps(request))
        file.chmod(0o600)
        argument, stdin = ([str(file)], self.source) if self.source else ([], file.read_bytes())
        return subprocess.run([*self.command, *argument], input=stdin, capture_output=True, timeout=60)

    def raw(self) -> list[Event]:
        return [event for event in self.mac.raw_events() if "type" in event]

    def events(self) -> list[Event]:
        """Return the posted events in order, without measured values."""
        return [{name: event[name] for name in event if name not in NOT_MEASURED} for event in self.raw()]


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need_swift()
    if sys.platform == "darwin":
        pytest.skip("the stand-ins are for Linux; on a Mac the events would be real")
    folder = tmp_path_factory.mktemp("swift")
    out = folder / "input"
    command = [sys.executable, str(BUILD), str(SOURCE), str(out), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


@pytest.fixture
def swift(program: Path, tmp_path: Path) -> Bench:
    launcher = tmp_path / "input"
    launcher.write_text(program.read_text().replace(str(program.parent), str(tmp_path)))
    launcher.chmod(0o700)
    return Bench(FakeMac(tmp_path), [str(launcher)])


@pytest.fixture
def jxa(tmp_path: Path) -> Bench:
    mac = FakeMac(tmp_path)
    source = b"\n".join(one.read_bytes() for one in JXA_SOURCES)
    return Bench(mac, [str(mac.bin_dir / "osascript"), "-l", "JavaScript", "-"], source)


@pytest.fixture(params=["swift", "jxa"])
def bench(request: pytest.FixtureRequest) -> Bench:
    chosen: Bench = request.getfixturevalue(request.param)
    return chosen


@pytest.mark.parametrize("act", [Act("type", text="ab"), Act("press", chord=read_chord("a"))])
def test_input_method_is_reported_then_switched_and_restored(bench: Bench, act: Act) -> None:
    steps = make_steps(act)
    bench.mac.set("keyboard.source", METHOD)
    reply = json.loads(bench.run(steps).stdout)
    assert (reply["code"], reply["source_id"], bench.raw()) == ("WINDOW_BLOCKED", METHOD, [])
    switching = with_layout(steps, METHOD)
    assert json.loads(bench.run(switching).stdout)["ok"]
    assert {step["release"][-1]["do"] for step in switching[:-1]} == {"select_source"}, "after the keys"
    selected = [event for event in bench.mac.raw_events() if event.get("do") == "select_source"]
    assert [event["id"] for event in selected] == ["com.apple.keylayout.US", METHOD]
    assert bench.raw()[0]["t"] - selected[0]["t"] > 99, "the program in front needs time for it"


EVENT = {"flags": 0, "tap": 0, "source_state": -1}
PRESSES = 7  # earlier presses of a person; press numbers continue from here


def mouse(kind: int, x: float, y: float, button: int = 0, clicks: int = 0, **more: Any) -> Event:
    return {"type": kind, "x": x, "y": y, "button": button, "clickState": clicks, **EVENT, **more}


def clicked(button: tuple[int, int, int], times: int, flags: int = 0) -> list[Event]:
    number, *kinds = button
    events, (downs, ups) = [mouse(5, 300, 200)], modifiers(flags)
    for n in range(1, times + 1):
        pair = [mouse(kind, 300, 200, number, n, number=PRESSES + n, flags=flags) for kind in kinds]
        events += [*downs, *pair, *ups]
    return events


def dragged(end: tuple[float, float], types: tuple[int, int, int, int]) -> list[Event]:
    button, down, moved, up = types
    points = [tuple(a + (b - a) * step / 15 for a, b in zip((300, 200), end)) for step in range(16)]
    deltas = [[round(b) - round(a) for a, b in zip(*pair)] for pair in zip(points, points[1:])]
    same = {"number": PRESSES + 1, "source_state": 0}  # without an event source
    between = [
        mouse(moved, x, y, button, 1, dx=dx, dy=dy, doubles=True, **same)
        for (x, y), (dx, dy) in zip(points[1:], deltas)
    ]
    first, last = mouse(down, 300, 200, button, 1, **same), mouse(up, *end, button, 1, **same)
    return [mouse(5, 300, 200), first, *between, last]


def key(code: int, flags: int = 0, text: str = "", up_flags: int = 0) -> list[Event]:
    pair = {"keycode": code, "unicode": text, **EVENT}
    return [{"type": 10, **pair, "flags": flags}, {"type": 11, **pair, "flags": up_flags}]


def modifiers(flags: int) -> tuple[list[Event], list[Event]]:
    """Return the events of the modifiers' own keys: down, up."""
    keys = [pair for pair in ((59, CONTROL), (58, OPTION), (56, SHIFT), (55, COMMAND)) if flags & pair[1]]
    event = {"type": 12, "unicode": "", **EVENT}
    held = [0, *accumulate(flag for _, flag in keys)]
    downs = [{**event, "keycode": code, "flags": after} for (code, _), after in zip(keys, held[1:])]
    ups = [{**event, "keycode": code, "flags": before} for (code, _), before in zip(keys, held)]
    return downs, ups[::-1]


def chord(code: int, flags: int, own: int = 0, implied: int = 0) -> list[Event]:
    """Return a chord's events. own: flags of the key itself; implied: flags that the character needs."""
    downs, ups = modifiers(flags)
    return [*downs, *key(code, flags | own | implied, up_flags=flags | own), *ups]


def typed(text: str, layout: str = "us") -> list[Event]:
    """Return each character's key events with its text; a character without a key has code 0."""
    keys: dict[str, tuple[int, int]] = {}
    for flags in (SHIFT, 0):  # a blank needs no shift
        keys.update({pair[bool(flags)]: (int(code), flags) for code, pair in keys_of(layout).items()})
    return [event for each in text for event in key(*keys.get(each, (0, 0)), each)]


def click(clicks: int = 1, button: str = "left", modifiers: tuple[str, ...] = (), at: Point = POINT) -> Act:
    return Act("click", (at,), button=button, clicks=clicks, modifiers=modifiers)


def scroll(direction: str, amount: int) -> Act:
    return Act("scroll", (POINT,), direction=direction, amount=amount)


def drag(x: float, y: float, button: str = "left") -> Act:
    return Act("drag", (POINT, Point(x, y)), button=button)


def type_(text: str, **fields: Any) -> Act:
    return Act("type", text=text, **fields)


def press(chord: str, hold_ms: int = 0, repeat: int = 1) -> Act:
    return Act("press", chord=read_chord(chord), hold_ms=hold_ms, repeat=repeat)


def wheel(vertical: int, horizontal: int, notches: int) -> list[Event]:
    notch = {"type": 22, "unit": 1, "wheel": [vertical, horizontal], **EVENT}
    return [mouse(5, 300, 200), *[notch] * notches]


ALL = CONTROL | OPTION | SHIFT | COMMAND
ACTS = {
    "a move": (Act("move_pointer", (Point(100.5, 150),)), [mouse(5, 100.5, 150)]),
    "a scroll down": (scroll("down", 5), wheel(-3, 0, 5)),
    "a scroll to the left": (scroll("left", 2), wheel(0, 3, 2)),
    "a drag": (drag(450, 170), dragged((450, 170), (0, 1, 6, 2))),
    "a drag by the right button": (drag(310, 350, "right"), dragged((310, 350), (1, 3, 7, 4))),
    "a double click": (click(2), clicked((0, 1, 2), 2)),
    "a right click": (click(button="right"), clicked((1, 3, 4), 1)),
    "a middle click with modifiers": (
        click(button="middle", modifiers=("cmd", "shift")),
        clicked((2, 25, 26), 1, COMMAND | SHIFT),
    ),
    "no text": (type_(""), []),
    "text, keys and accents": (type_("Ah!\tÅ~\n"), [*typed("Ah!"), *key(48), *typed("Å~"), *key(36)]),
    "characters of several units": (
        type_(f"x{FAMILY}e\u0301"), [*typed("x"), *key(0, text=FAMILY), *key(0, text="e\u0301")],
    ),
    "a text in place of another": (type_("Hi", replace=True), [*chord(0, COMMAND), *typed("Hi")]),
    "no text in place of another": (type_("", replace=True), [*chord(0, COMMAND), *key(51)]),
    "a key three times": (press("escape", repeat=3), key(53) * 3),
    "a key with flags of its own": (press("shift+left"), chord(123, SHIFT, own=ARROW)),
    "a key held down": (press("shift+space", hold_ms=100), chord(49, SHIFT)),
    "a chord of all modifiers": (press("cmd+shift+alt+ctrl+t"), chord(17, ALL)),
    "a chord of a character that needs shift": (press("cmd+plus"), chord(24, COMMAND, implied=SHIFT)),
}  # fmt: skip
# minimum pauses between the events of some acts
LEAST_PAUSES_MS: dict[str, list[float]] = {
    "a double click": [0, 60, 40, 60],
    "text, keys and accents": [4, 4, 4, 4, 4, 4, 4, 44, 4, 4, 4, 4, 4],
    "a key held down": [20, 100, 0],
    "a key three times": [0, 40, 0, 40, 0],
    "a scroll to the left": [0, 20],
    "a drag": [0, 100, *[20] * 14, 200],
}


@pytest.mark.parametrize("name", ACTS)
def test_steps_post_exactly_these_events_with_pauses(bench: Bench, name: str) -> None:
    act, expected = ACTS[name]
    steps = make_steps(act)
    pointer = act.points[-1]._asdict() if act.points else None
    answer = {**DONE, "step": len(steps), "pointer": pointer, "done": count_sent(steps)}
    bench.mac.switch(early_exits_dropped_ms=59)
    assert (bench.act(act), bench.events()) == (answer, expected)
    events = bench.raw()
    # the person's input is never suppressed, except during a drag
    assert {event["suppression_s"] for event in events if event["source_state"]} <= {0}
    assert bench.mac.events("dropped", "lost") == [] and held_inputs(bench) == [{}, 0, 0]
    # the Swift bench reports idle time, which excludes its own running time
    pauses = [later.get("idle_ms", later["t"] - sooner["t"]) for sooner, later in zip(events, events[1:])]
    least = LEAST_PAUSES_MS.get(name, [0] * len(pauses))
    assert len(pauses) == len(least) and all(one >= low - 1 for one, low in zip(pauses, least)), pauses


def held_inputs(bench: Bench) -> list[Any]:
    """Return the held buttons, the held modifiers and the stuck modifiers."""
    state = bench.mac.state()
    keyboard = state["keyboard"]
    return [state["mouse"]["down"], keyboard["pressed_flags"], keyboard["stuck_flags"]]


def test_presses_have_consecutive_numbers_and_arrive(bench: Bench) -> None:
    bench.mac.switch(posted_is_held=False)  # the hardware's state does not include posted events
    for act in (drag(450, 170), click(2), press("cmd+t")):
        assert bench.act(act)["ok"]
    arrived = [one["kind"] for one in bench.mac.events("drag", "click", "key", "dropped", "lost")]
    assert arrived == ["drag", "click", "click", "key"]
    assert [one["number"] for one in bench.raw() if one["type"] == 1] == [8, 9, 10]


# acts that end early, before or during their steps ---------------------------------------------------------

Change = dict[str, Any]
MOVE, DOWN, UP, DRAG, KEY = ({"type": kind} for kind in (5, 1, 2, 6, 10))
STARTED = [{"do": "started", "program": name} for name in ("osascript", "swift-helper")]
LONG = "0123456789" * 6
DENIED, REFUSED = "PERMISSION_DENIED_ACCESSIBILITY", "WINDOW_BLOCKED"


def opens(pid: int, *bounds: int, **window: Any) -> Change:
    """Return a change that opens a window of an app; without bounds it covers the clicked point."""
    values = {"title": "", "bounds": list(bounds) or [250, 150, 200, 200], "layer": 0, **window}
    return {"do": "open_window", "pid": pid, "window": values}


def changes(**values: Any) -> Change:
    return {"do": "change_window", "window": 1080, "values": values}


STEAL, CLOSE = {"do": "activate_now", "pid": 430}, {"do": "close_window", "window": 1080}
LOCK, STOP, AWAY = {"do": "lock_screen"}, {"do": "write_file"}, {"do": "point", "x": 9, "y": 9}
COVER = opens(430)


class End(NamedTuple):
    """An act that ends early: the change, made after event `on` and `skip` more, and the expected answer.

    on: None if the change is made before the executor starts.
    """

    act: Act
    change: Change
    code: Optional[str]
    reached_id: Optional[int] = None
    on: Optional[Event] = None
    skip: int = 0
    done: int = 0
    released: bool = False


# change of the target window or its cover, error code, the window at the point instead
BEFORE_A_PRESS: dict[str, tuple[Change, str, Optional[int]]] = {
    "covered by another app": (COVER, "WINDOW_COVERED", 2000),
    "covered by its own app": (opens(480), "WINDOW_COVERED", 2000),
    "covered by a menu": (opens(480, layer=101), "WINDOW_COVERED", 2000),
    "covered by a tiny popup": (opens(430, 299, 199, 3, 3, layer=25), "WINDOW_COVERED", 2000),
    "behind another app": ({**STEAL, "pid": 410, "all_windows": True}, "WINDOW_COVERED", 1012),
    "below its sheet": (opens(480, attached_to=1080), "WINDOW_COVERED", 2000),
    "closed": (CLOSE, "WINDOW_NOT_FOUND", None),
    "minimised": (changes(minimised=True), "WINDOW_NOT_FOUND", None),
    "moved by 3 points": (changes(bounds=[63, 80, 700, 420]), "STALE_SCREENSHOT", None),
    "moved down by 3 points": (changes(bounds=[60, 83, 700, 420]), "STALE_SCREENSHOT", None),
    "resized": (changes(bounds=[60, 80, 700, 423]), "STALE_SCREENSHOT", None),
    "made wider": (changes(bounds=[60, 80, 703, 420]), "STALE_SCREENSHOT", None),
    "locked": (LOCK, "SCREEN_LOCKED", None),
}
# change that moves the keyboard focus, and the window that gets it
THIEVES: dict[str, tuple[Change, Optional[int]]] = {
    "another app": (STEAL, 1030),
    "another window of the app": (opens(480, 0, 100, 300, 300), 2000),
    "a sheet": (opens(480, 100, 100, 300, 300, attached_to=1080), 2000),
    "a menu": (opens(480, 0, 100, 80, 30, layer=101), 2000),
    "a panel above all windows": (opens(480, 0, 100, 300, 300, layer=8, modal=True), 2000),
    "no window: it closed": (CLOSE, None),
}
DRAGGED = drag(450, 170)
ENDS: dict[str, End] = {
    **{f"click: {name}": End(click(), *how, on=MOVE) for name, how in BEFORE_A_PRESS.items()},
    **{
        f"click: {name} before the check": End(click(), *BEFORE_A_PRESS[name], on=STARTED[0])
        for name in ("covered by another app", "closed", "locked")
    },
    "click: the pointer is moved": End(click(), AWAY, None, on=MOVE),
    "click: the pointer is moved sideways": End(click(), {**AWAY, "x": 302, "y": 200}, None, on=MOVE),
    "click: the pointer is moved down": End(click(), {**AWAY, "x": 300, "y": 202}, None, on=MOVE),
    "click: stopped while it and Command are held": End(
        click(modifiers=("cmd",)), STOP, "POLICY_DENIED", on=DOWN, done=1, released=True
    ),
    "click: the second, covered": End(click(2), COVER, "WINDOW_COVERED", 2000, on=UP, done=1),
    "move: covered": End(Act("move_pointer", (POINT,)), COVER, "WINDOW_COVERED", 2000, on=MOVE),
    "scroll: covered": End(scroll("up", 3), COVER, "WINDOW_COVERED", 2000, on=MOVE),
    "scroll: covered after two notches": End(
        scroll("down", 10), COVER, "WINDOW_COVERED", 2000, on={"type": 22}, skip=1, done=2
    ),
    "drag: covered": End(DRAGGED, COVER, "WINDOW_COVERED", 2000, on=MOVE),
    "drag: its end is covered": End(DRAGGED, opens(430, 440, 160, 30, 30), "WINDOW_COVERED", 2000),
    "drag: the pointer is moved": End(DRAGGED, AWAY, None, on={"type": 6, "x": 450}, released=True),
    "drag: stopped when it begins": End(DRAGGED, STOP, "POLICY_DENIED", on=DOWN, released=True),
    "drag: stopped in the middle": End(DRAGGED, STOP, "POLICY_DENIED", on=DRAG, skip=7, released=True),
    "right drag: stopped": End(drag(450, 170, "right"), STOP, "POLICY_DENIED", on={"type": 7}, released=True),
    **{f"type: {name}": End(type_(LONG), change, "FOCUS_LOST", to) for name, (change, to) in THIEVES.items()},
    **{
        f"type: {name}, after 40": End(type_(LONG), change, "FOCUS_LOST", to, on=KEY, skip=39, done=40)
        for name, (change, to) in THIEVES.items()
    },
    "type: stopped": End(type_(LONG), STOP, "POLICY_DENIED", on=KEY, done=20),
    "type: locked": End(type_(LONG), LOCK, "SCREEN_LOCKED", on=KEY, skip=19, done=20),
    "replace: stopped while all is selected": End(type_("Hi", replace=True), STOP, "POLICY_DENIED", on=KEY),
    "press: another app": End(press("tab"), STEAL, "FOCUS_LOST", 1030),
    "press: another app after two": End(
        press("tab", repeat=5), STEAL, "FOCUS_LOST", 1030, on=KEY, skip=1, done=2
    ),
    "press: stopped": End(press("tab"), STOP, "POLICY_DENIED"),
    "press: stopped while it is held": End(
        press("shift+left", hold_ms=9000), STOP, "POLICY_DENIED", on=KEY, done=1, released=True
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_early_end_is_reported_and_nothing_stays_held(bench: Bench, name: str) -> None:
    end = ENDS[name]
    change = {**end.change, "path": bench.stop_file}
    bench.mac.switch(early_exits_dropped_ms=59)
    (record := bench.mac.folder / "held.json").touch()
    if end.on is None:
        bench.mac.update(lambda state: world.apply(state, change))
    for on in STARTED if end.on in STARTED else filter(None, [end.on]):
        bench.mac.when(on, change, skip=end.skip)
    answer = bench.act(end.act)
    expected = (False, end.code, end.reached_id, end.done, end.released)
    assert tuple(answer[key] for key in ("ok", "code", "reached_id", "done", "released")) == expected, answer
    assert str(end.reached_id or "") in answer["message"]
    assert end.change is not AWAY or answer["pointer"] == {"x": 9, "y": 9}
    assert held_inputs(bench) == [{}, 0, 0] and bench.mac.events("lost") == []
    assert not record.exists()
    # all presses are released, and only the target window gets input
    kinds = [event["type"] for event in bench.events()]
    assert all(kinds.count(kind) == kinds.count(kind + 1) for kind in (1, 3, 25, 10))
    assert {one["window"] for one in bench.mac.events("click", "text", "key", "scroll")} <= {1080}
    assert bench.mac.events("drag") == []
    if not end.done and not end.released and not name.startswith("replace"):
        assert set(kinds) <= {5}
    if end.released:
        last = bench.events()[-1]
        before, up = bench.raw()[-2:]
        # a release right after the move back would drop at the earlier point
        assert before["type"] not in (6, 7) or up.get("idle_ms", up["t"] - before["t"]) >= 199
        # modifiers are released after their key, a drag's button at its start, so that nothing is dropped
        assert end.act.kind != "drag" or [bench.events()[-2][axis] for axis in "xy"] == [300, 200]
        expected_last = (0, 300) if end.act.kind == "drag" else (0, None)
        assert (last["flags"], last.get("x")) == expected_last
    if end.act.kind == "type":
        assert "".join(one["text"] for one in bench.mac.events("text")) == LONG[: end.done]


HELD, POINTER = "keyboard.held_flags", "mouse.held"
# a value of the fake Mac, an act, the error code and a part of the message
BAD_STATES: list[tuple[str, Any, Act, str, str]] = [
    (HELD, SHIFT, press("a"), REFUSED, "modifier key"),
    *((HELD, flag, click(), REFUSED, "modifier key") for flag in (SHIFT, CONTROL, OPTION, COMMAND)),
    (POINTER, [0], press("a"), REFUSED, "mouse button"),
    (POINTER, [1], click(), REFUSED, "mouse button"),
    (POINTER, [2], click(), REFUSED, "mouse button"),
    ("session.on_console", False, press("a"), "SCREEN_LOCKED", ""),
    ("session.gui", False, click(), "NO_GUI_SESSION", ""),
    *(("permissions.accessibility", "denied", act, DENIED, "") for act in (type_(""), click(), press("a"))),
]


@pytest.mark.parametrize(("path", "value", "act", "code", "message"), BAD_STATES)
def test_act_in_a_bad_state_is_refused_before_any_event(
    bench: Bench, path: str, value: Any, act: Act, code: str, message: str
) -> None:
    bench.mac.set(path, value)
    answer = bench.act(act)
    assert (answer["code"], message in answer["message"], bench.events()) == (code, True, [])


def test_click_outside_the_window_is_refused(bench: Bench) -> None:
    assert bench.act(click(at=Point(30, 300)))["code"] == "WINDOW_COVERED"


def test_internal_error_releases_held_inputs(bench: Bench) -> None:
    steps = make_steps(DRAGGED)
    middle = steps.index(next(step for step in steps if step.get("type") == 6))
    looked = {"do": "pointer_at", "x": steps[middle]["x"], "y": steps[middle]["y"]}  # holds nothing new
    bench.run([*steps[: middle + 1], looked, {"do": "no such step"}])
    assert [event["type"] for event in bench.events()] == [5, 1, 6, 6, 2] and held_inputs(bench) == [{}, 0, 0]


# harmless states ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("switches.post_event_preflight", "denies"),  # the other preflight grants
        ("switches.trust_preflight", "denies"),
        ("keyboard.held_flags", 0x10000),  # caps lock
        ("keyboard.session_flags", COMMAND),  # stuck in the session, not held
        ("session.on_console", None),  # the session does not report it
        ("keyboard.source", None),
        ("permissions.screen_recording", "denied"),  # titles are hidden
    ],
)
def test_act_succeeds_in_harmless_states(bench: Bench, path: str, value: Any) -> None:
    bench.mac.set(path, value)
    assert bench.act(press("a"))["ok"] and bench.act(click())["ok"]
    assert len(bench.events()) == 5


def test_adjacent_and_invisible_windows_do_not_cover_a_click(bench: Bench) -> None:
    bench.mac.open_window("TextEdit", bounds=[200, 100, 100, 300])  # its right edge is at the point
    bench.mac.open_window("TextEdit", bounds=[250, 100, 100, 100])  # its lower edge
    bench.mac.open_window("TextEdit", bounds=[280, 180, 50, 50], alpha=0)
    bench.mac.change_window(1080, {"bounds": [62, 78, 702, 418]})  # rounded differently, not moved
    bench.mac.when(MOVE, {**AWAY, "x": 301, "y": 199})  # rounded, too
    assert bench.act(click())["ok"]
    assert [one["window"] for one in bench.mac.events("click")] == [1080]


THROUGH, WHOLE = {"click_through": True}, {"bounds": [60, 80, 700, 420]}
# the overlay's app, its properties, the result of the window server's hit test, whether the click is sent,
# and whether its arrival is certain
OVERLAYS: dict[str, tuple[str, dict[str, Any], str, bool, bool]] = {
    "an overlay that lets clicks through": ("Calculator", THROUGH, "works", True, True),
    "an overlay that takes clicks": ("Calculator", {}, "works", False, True),
    "it belongs to the same app": ("Terminal", THROUGH, "works", True, True),
    "it is as large as the window": ("Calculator", {**THROUGH, **WHOLE}, "works", True, True),
    **{
        f"an edge is free: {bounds}": ("Calculator", {**THROUGH, "bounds": bounds}, "works", False, True)
        for bounds in ([61, 80, 700, 420], [60, 81, 700, 420], [60, 80, 699, 420], [60, 80, 700, 419])
    },
    "no hit test result": ("Calculator", THROUGH, "zero", True, False),
    "no hit test result, an ordinary window": ("Calculator", {"layer": 0}, "zero", False, True),
    "the hit test returns an unlisted window": ("Calculator", THROUGH, "unknown", True, False),
    "no hit test result, an overlay of the Dock": ("Dock", THROUGH, "zero", True, True),
}


@pytest.mark.parametrize("name", OVERLAYS)
def test_click_below_an_overlay(bench: Bench, name: str) -> None:
    app, more, hit_test, is_ok, is_certain = OVERLAYS[name]
    bench.mac.switch(hit_test=hit_test)
    bench.mac.open_window(app, **{"bounds": [0, 0, 1440, 900], "layer": 25, **more})
    answer = bench.act(click())
    assert (answer["ok"], answer["is_certain"]) == (is_ok, is_certain)
    assert (answer["code"], answer["reached_id"]) == ((None, None) if is_ok else ("WINDOW_COVERED", 2000))
    assert [one["window"] for one in bench.mac.events("click")] == [1080] * is_ok


# A leftover of a closed menu: still on screen, but unknown to accessibility.
ORPHAN = {"bounds": [400, 340, 120, 60], "layer": 101, "orphaned": True, "click_through": True}


def test_click_beside_an_open_menu_is_not_certain(bench: Bench) -> None:
    bench.mac.open_window("Terminal", **ORPHAN)
    assert bench.act(click())["is_certain"] is True
    item = widget("paste", "button", 0, 0, 120, 24, text="Paste", on_click={"log": "pasted"})
    menu = bench.mac.open_window("Terminal", bounds=[400, 300, 120, 60], layer=101, widgets=[item])
    popup = {"id": menu, "x": 400, "y": 300, "width": 120, "height": 60, "is_popup": True}
    answer = bench.act(click(at=Point(410, 310)), **popup)
    assert (answer["ok"], answer["is_certain"]) == (True, True)
    assert [one["text"] for one in bench.mac.events("note")] == ["pasted"]
    assert bench.act(click())["is_certain"] is False
    assert bench.mac.events("click")[-1]["closed_a_menu"]


# keyboard focus -------------------------------------------------------------------------------------------

ESCAPE = press("escape")


def keyboard_is_with(bench: Bench, act: Act = ESCAPE, **window: Any) -> Any:
    """Return the window that gets an act's keys: the target, or on FOCUS_LOST the reported window."""
    answer = bench.act(act, **window)
    assert answer["code"] == (None if answer["ok"] else "FOCUS_LOST")
    return window.get("id", 1080) if answer["ok"] else answer["reached_id"]


def test_keyboard_is_with_the_menu_in_front(bench: Bench) -> None:
    # also a menu whose list fills its window
    menu = bench.mac.open_window("Terminal", bounds=[400, 300, 120, 60], layer=101, ax_role="AXList")
    popup = {"id": menu, "is_popup": True}
    assert keyboard_is_with(bench, press("down"), **popup) == menu
    assert [(one["key"], one["window"]) for one in bench.mac.events("key")] == [("down", menu)]
    submenu = bench.mac.open_window("Terminal", bounds=[520, 300, 120, 60], layer=101)
    assert keyboard_is_with(bench, **popup) == submenu
    bench.mac.change_window(submenu, {"alpha": 0})  # it fades out
    assert keyboard_is_with(bench, **popup) == menu
    bench.mac.close_window(menu)
    assert keyboard_is_with(bench, **popup) == 1080
    orphan = bench.mac.open_window("Terminal", **ORPHAN)
    assert keyboard_is_with(bench) == keyboard_is_with(bench, id=orphan, is_popup=True) == 1080
    bench.mac.switch(position_test="silent")
    assert keyboard_is_with(bench) == orphan
    bench.mac.switch(position_test="works")
    item = {**widget("item", "button", 0, 0, 120, 60), "hangs": True}
    hung = bench.mac.open_window("Terminal", bounds=[520, 300, 120, 60], layer=101, widgets=[item])
    assert keyboard_is_with(bench) == hung, "it may be open"


PANEL = {"bounds": [400, 100, 600, 80], "layer": 23, "takes_keys": True}
# a window of Google Chrome ({}: none), switches of the fake Mac, the window that has the keyboard
KEYBOARDS: dict[str, tuple[Change, dict[str, Any], int]] = {
    "a panel that is not in front": (PANEL, {}, 2000),
    "a stale focused app": ({}, {"focused_application": "stale"}, 1080),
    "a stale focused app with an item in the menu bar": (
        {"bounds": [900, 0, 30, 24], "layer": 25}, {"focused_application": "stale"}, 1080,
    ),
    "an unreported focused app": ({}, {"focused_application": "silent"}, 1080),
    "a frontmost app that AppKit does not know yet": ({}, {"frozen_frontmost_pid": 430}, 1080),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYBOARDS)
def test_keyboard_is_with_the_expected_window(bench: Bench, name: str) -> None:
    window, switches, expected = KEYBOARDS[name]
    bench.mac.switch(**switches)
    if window:
        bench.mac.open_window("Google Chrome", **window)
    bench.mac.open_window("Terminal", title="tools", bounds=[800, 100, 99, 99], layer=3, never_key=True)
    title = bench.mac.window(1080)["title"]
    for more in {"alpha": 0}, {"layer": -1}:  # twins that no key reaches
        bench.mac.open_window("Terminal", title=title, bounds=[60, 80, 700, 420], **more)
    assert keyboard_is_with(bench) == expected
    bench.mac.activate("TextEdit")
    bench.mac.switch(frozen_frontmost_pid=480)  # it was in front when the process began
    assert keyboard_is_with(bench) == (expected if expected == 2000 else None)


def test_keyboard_window_is_matched_despite_a_rounded_frame(bench: Bench) -> None:
    frame: dict[str, Any] = {"x": 100, "y": 100, "width": 300, "height": 200}
    bounds = list(frame.values())
    bench.mac.open_window("TextEdit", title="Options", bounds=bounds)
    bench.mac.activate("Terminal")
    field = widget("name", "field", 10, 10, 200, 30, value="")
    more: dict[str, Any] = {"layer": 8, "modal": True, "focus": "name", "widgets": [field]}
    panel = bench.mac.open_window("Terminal", title="Options", bounds=bounds, **more)
    bench.mac.change_window(panel, {"ax_bounds": [101, 98, 301.5, 200]})
    assert keyboard_is_with(bench, type_("Ada"), id=panel, **frame) == panel
    assert bench.mac.widget(panel, "name")["value"] == "Ada"
    bench.mac.change_window(panel, {"ax_bounds": [100, 103, 300, 200]})  # too different: another window
    assert keyboard_is_with(bench) is keyboard_is_with(bench, id=panel, **frame) is None


def test_keyboard_is_with_a_panel_of_another_process(bench: Bench) -> None:
    add_app(bench.mac, "Open and Save Panel Service", 600, bundle_id=PANELS, policy=1, panels_of=480)
    panel = bench.mac.open_window(600, title="Save", bounds=[100, 100, 300, 200], modal=True)
    assert keyboard_is_with(bench, id=panel) == panel
    assert keyboard_is_with(bench) in (panel, None)


def test_keyboard_window_among_twins_is_known_only_by_title(bench: Bench) -> None:
    bench.mac.open_window("Terminal", title="twin", bounds=[60, 80, 700, 420])
    assert keyboard_is_with(bench) == 2000
    bench.mac.change_window(2000, {"title": bench.mac.window(1080)["title"]})
    assert keyboard_is_with(bench) is keyboard_is_with(bench, id=2000) is None
    bench.mac.close_window(2000)
    panel = bench.mac.open_window("Terminal", title="panel", bounds=[60, 80, 700, 420], layer=8, modal=True)
    assert keyboard_is_with(bench, id=panel) == panel


def test_only_the_hung_frontmost_app_is_asked_and_only_once(bench: Bench) -> None:
    for app in ("Terminal", "TextEdit"):
        change_app(bench.mac, app, hung=True)
    # in front of it, but too small or invisible
    bench.mac.open_window("Terminal", bounds=[60, 80, 10, 10])
    bench.mac.open_window("Terminal", bounds=[60, 80, 700, 420], alpha=0)
    assert keyboard_is_with(bench, type_(LONG)) == 1080
    assert len(bench.mac.events("asked_in_vain")) == 1
    bench.mac.activate("TextEdit")
    assert keyboard_is_with(bench) == 1030
    assert len(bench.mac.events("asked_in_vain")) == 2


def test_focus_lost_by_a_hung_app_is_noticed(bench: Bench) -> None:
    change_app(bench.mac, "Terminal", hung=True)
    bench.mac.when(KEY, STEAL, skip=19)
    answer = bench.act(type_(LONG))
    assert (answer["code"], answer["reached_id"], answer["done"]) == ("FOCUS_LOST", 1030, 20)


# the keyboard's layout ------------------------------------------------------------------------------------

LAYOUTS = [
    ("us", "ctrl+alt+z", 6),
    ("german", "cmd+shift+z", 16),
    ("german", "z", 16),
    ("german", "cmd+plus", 30),
    ("german", "cmd+left_bracket", 33),  # has no key there, so its position on a US keyboard
    ("azerty", "cmd+a", 12),
    ("dvorak", "ctrl+z", 44),
    ("dvorak_qwerty", "cmd+z", 6),
    ("russian", "cmd+c", 8),  # Latin while Command is held
    ("russian", "ctrl+c", 8),  # has no key there, so its position on a US keyboard
    ("unreadable", "cmd+z", 6),
]


@pytest.mark.parametrize(("layout", "chord", "code"), LAYOUTS)
def test_chord_uses_the_key_of_the_layout(bench: Bench, layout: str, chord: str, code: int) -> None:
    bench.mac.set("keyboard.layout", layout)
    assert bench.act(press(chord, hold_ms=1))["ok"]
    events = [event for event in bench.events() if event["type"] != 12]
    assert [event["keycode"] for event in events] == [code, code]
    flags = {"cmd": COMMAND, "shift": SHIFT, "ctrl": CONTROL, "alt": OPTION}
    assert events[0]["flags"] == sum(flags.get(name, 0) for name in chord.split("+"))


def test_text_is_sent_with_key_codes_of_the_layout(bench: Bench) -> None:
    bench.mac.set("keyboard.layout", "german")
    bench.mac.set("apps.10.ignores_unicode_events", True)
    bench.act(type_("Zyß €"))
    assert bench.events() == typed("Zyß €", "german")
    texts = [event["text"] for event in bench.mac.events("text")]
    assert texts[:4] == ["Z", "y", "ß", " "], "an app that reads only key codes gets them"


def test_unreadable_layout_in_jxa_is_not_treated_as_us(jxa: Bench) -> None:
    jxa.mac.switch(key_events_have_characters=False)
    assert jxa.act(press("cmd+a"))["ok"]
    jxa.mac.set("keyboard.layout", "azerty")
    answer = jxa.act(press("cmd+a"))
    assert (answer["code"], "keyboard layout French" in answer["message"]) == ("INVALID_ARGUMENT", True)
    assert jxa.act(press("cmd+left"))["ok"] and jxa.act(type_("a"))["ok"]
    codes = [event["keycode"] for event in jxa.events()]
    assert codes == [55, 0, 0, 55, *[55, 55], 55, 123, 123, 55, 0, 0]


# steps made in Python --------------------------------------------------------------------------------------

# Expected steps: ⏎ ⇥ ⌫ are keys, | is a pause after a step.
TEXTS = {
    "20 characters are one step": ("abcdefghijklmnopqrst", ["abcdefghijklmnopqrst"]),
    "21 are two": ("abcdefghijklmnopqrstu", ["abcdefghijklmnopqrst", "u"]),
    "equal neighbours are separated": ("hello", ["hel|", "lo"]),
    "a key is its own step": ("a\tb\nc\bd", ["a", "⇥|", "b", "⏎|", "c", "⌫|", "d"]),
    "line ends of three systems": ("a\r\nb\rc\n", ["a", "⏎|", "b", "⏎|", "c", "⏎"]),
    "a character of two units is its own step": ("x\U0001f600y", ["x", "\U0001f600", "y"]),
    "a combining mark stays": ("xe\u0301\u0323y", ["x", "e\u0301\u0323", "y"]),
    "a joiner stays": (f"x{FAMILY}", ["x", FAMILY]),
    "a variation selector stays": ("\u2764\ufe0fx", ["\u2764\ufe0f", "x"]),
    "a skin tone stays": ("\U0001f44d\U0001f3fdx", ["\U0001f44d\U0001f3fd", "x"]),
    "a flag is two letters": (
        "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"],
    ),
    "a flag of tags": ("\U0001f3f4\U000e0067\U000e007fx", ["\U0001f3f4\U000e0067\U000e007f", "x"]),
    "Hangul in parts": ("\u1112\u1161\u11ab\u1100\u1173", ["\u1112\u1161\u11ab", "\u1100\u1173"]),
    "nothing": ("", []),
}  # fmt: skip


def pieces(text: str, delay_ms: int = 0) -> list[tuple[str, int]]:
    """Return the text or key of each typing step, with its pause."""
    steps = make_steps(type_(text, delay_ms=delay_ms))
    assert count_sent(steps) == len(text)
    keys = {36: "⏎", 48: "⇥", 51: "⌫"}
    typing = [step for step in steps if step["do"] == "type"]
    return [(step["text"] or keys[step["code"]], step.get("ms", 0)) for step in typing]


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS.keys())
def test_text_is_split_between_visible_characters(text: str, expected: list[str]) -> None:
    assert [part + "|" * (ms == 40) for part, ms in pieces(text)] == expected
    assert {ms for _, ms in pieces(text)} <= {0, 40}
    at_once = [step["text"] for step in make_steps(type_(text)) if step.get("code") == 0]
    several = [part for part in expected if len(part.encode("utf-16-le")) > 2]
    assert at_once == [part for part in several if not part.rstrip("|⏎⇥⌫").isascii()]


@pytest.mark.parametrize("name", ACTS)
def test_release_of_each_step_covers_all_held_inputs(name: str) -> None:
    down: list[tuple[Any, Any]] = []
    release: list[Event] = []
    for step in make_steps(ACTS[name][0]):
        what = (step.get("code"), step.get("button"))
        if step.get("is_down") or step.get("type") in (1, 3, 25):
            down.insert(0, what)
        elif step["do"] == "key" or step.get("type") in (2, 4, 26):
            down.remove(what)
        release = step.get("release", release)
        lifted = [one for one in release if one.get("type") not in (6, 7)]  # a drag first moves back
        assert [(one.get("code"), one.get("button")) for one in lifted] == down
    assert down == []


def test_text_with_a_delay_is_one_step_per_character() -> None:
    assert pieces("abb\t", 25) == [("a", 25), ("b", 40), ("b", 25), ("⇥", 0)]
