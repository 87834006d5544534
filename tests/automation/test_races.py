"""The screen changes between an act's last check and its press; a server, a program or the display fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Optional

import pytest
from mcp_server import Client
from samples import error_of, window
from tk_windows import programs_by, window_titled
from witness import XWitness
from worlds import Finished, Program, bare_x_server, clean_environment, wait_for

from peekaboo_min.automation.act import perform
from peekaboo_min.automation.coordinates import save_record
from peekaboo_min.core.models import Act, Delivery, Display, ImageInfo, Point, Rect, Scene
from peekaboo_min.desktop.x11.keyboard import _Keyboard
from peekaboo_min.desktop.x11.record import Event, Record
from peekaboo_min.desktop.x11.xdotool import _Pointer

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


PRESS = Event(4, 1, 7, 7)


@pytest.mark.parametrize(
    "later",
    [PRESS._replace(detail=3), PRESS._replace(client=9 << 21)],
    ids=["of another button", "by a grab"],
)
def test_press_in_the_window_is_not_replaced_by_another(later: Event) -> None:
    presses, server = [[PRESS], [later]], SimpleNamespace(round_trip_s=0.0)
    record = Record(server, server, 0)  # type: ignore[arg-type]
    record._events = lambda _: presses.pop(0) if presses else None  # type: ignore[method-assign]
    assert record.press_of(1) == PRESS


def test_press_that_may_have_arrived_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    presses: list[Act] = []
    monkeypatch.setattr(_Pointer, "_press_once", lambda _, act: presses.append(act) or Delivery(None))
    server: Any = SimpleNamespace(round_trip_s=0.0)
    _Pointer(server, server, window()).press(Act("click", (Point(20, 30),), clicks=3))
    assert len(presses) == 1, "the receiver of the first press is unknown"


def test_key_that_a_program_without_a_pid_took_is_not_received() -> None:
    keyboard: Any = object.__new__(_Keyboard)
    keyboard._window, keyboard._server = window(7), SimpleNamespace(pids_of=lambda *_: [0, 0])
    taken = Event(2, 38, window_id=1 << 21, client=2 << 21)
    assert not keyboard._is_received_by_window(taken), "two unknown pids are not one program"


def test_key_that_would_end_too_late_is_not_pressed(tmp_path: Path) -> None:
    keyboard: Any = object.__new__(_Keyboard)
    keyboard._stop_file, keyboard._deadline = tmp_path / "STOP", time.monotonic() + 60
    keyboard._check_focus = lambda *_: None
    assert error_of(keyboard._check, 90.0).code.value == "TIMEOUT"


def listing(left: float, is_first: bool, was_shown: bool) -> Scene:
    shown = window(7, bounds=Rect(left, 0, 300, 200), is_on_screen=was_shown or not is_first)
    return Scene((shown._replace(is_focused=not is_first),), (), (Display(1, "", Rect(0, 0, 1280, 800)),))


@pytest.mark.parametrize(
    ("was_shown", "lefts"), [(True, [0, 400]), (False, [0, 90, 400, 400])], ids=["covered", "minimised"]
)
def test_click_follows_a_window_that_moves_as_it_gets_the_focus(
    was_shown: bool, lefts: list[float], environment: Callable[..., None], tmp_path: Path
) -> None:
    environment(TMPDIR=str(tmp_path), XDG_STATE_HOME=str(tmp_path))
    listings = [listing(left, at == 0, was_shown) for at, left in enumerate(lefts)]
    save_record("x11-0", listings[0].windows[0], ImageInfo("png", 300, 200))
    desktop: Any = SimpleNamespace(session="x11-0", snapshot=lambda: listings.pop(0), focus=lambda *_: None)
    desktop.act = lambda _, act, __: Delivery(True, act.points[0])
    result = perform(desktop, 7, Act("click", (Point(10, 10),)), "clicked", verify=False)
    assert result.text == "clicked at screen point 410,10"


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


def test_half_an_image_is_an_error(peek: Program, windows: XWitness, tmp_path: Path) -> None:
    half = programs_by(tmp_path / "bin", '$real "$@" | head -c 300; exit 0', "maim")
    window_id = window_titled(peek, "target")["window_id"]
    assert peek.run("screenshot", window_id, "--json", **half).error["code"] == "CAPTURE_FAILED"


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
