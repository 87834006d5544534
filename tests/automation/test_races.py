"""The screen changes between an act's last check and its press; a server, a program or the display fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Callable, Optional

import pytest
from mcp_server import Client
from tk_windows import programs_by, window_titled
from witness import XWitness
from worlds import Finished, Program, bare_x_server, clean_environment, wait_for

SCREEN = {"x": 0, "y": 0, "w": 1280, "h": 800}
PLACE = {"x": 200, "y": 150, "w": 300, "h": 200}
ActLate = Callable[[str, str], Finished]


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
    """Return a function that acts in the target and runs xdotool between the last check and the press."""
    ids = {one["name"]: one["id"] for one in windows.events if one["event"] == "opened"}

    def act(act: str, change: str) -> Finished:
        then = f'read -r press && $real {change.format(**ids)} && echo "$press"'
        script = f'{{ read -r move; echo "$move"; {then}; }} | $real -\nexit'
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
