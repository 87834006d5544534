"""Pointer races: the screen changes while a click, a drag or a scroll is being sent."""

from __future__ import annotations

import time
from typing import Any

from mcp_server import Reply
from stage import Stage, meanwhile
from witness import Event, XWitness
from worlds import comes_true

_STANDING = ("classless cover", "shadow of a cover", "menu")
KINDS = (*_STANDING, "nothing", "cover", "move", "resize", "close", "swap", "raise")
_X, _Y = 200, 150
_HOME = {"x": _X, "y": _Y, "w": 320, "h": 220}
_SCREEN = {"x": 0, "y": 0, "w": 1280, "h": 800}  # encloses the whole target, like a screen shield
# a change happens in the last tenth of a second before the act ends; for a drag, before its press
_WINDOW_S, _DRAG_S = 0.1, 0.4
_MORE: dict[str, dict[str, Any]] = {"drag": {"to_x": 20, "to_y": 200}, "scroll": {"direction": "down"}}


class ClickRace:
    """A target window, a rival and a bystander behind both; each is a separate X client."""

    def __init__(self, on: Stage, act: str) -> None:
        self._on, self._client, self._act = on, on.client(), act
        self.bystander, self.target, self.rival = (on.witness(XWitness) for _ in range(3))
        # the rival's own window stays open behind the target when its covers close
        self.bystander.open("backdrop", x=0, y=0, w=1270, h=760, app="Backdrop")
        self.rival.open("rival", x=240, y=190, w=300, h=200, app="Rival")
        self._window_id = 0

    def usual_s(self) -> float:
        """Return the time from the start of an undisturbed act to its press; the first one is slower."""
        for _ in range(3):
            self.reset()
            start = time.monotonic()
            self.act(60, 60)
        return time.monotonic() - start - (_DRAG_S if self._act == "drag" else 0)

    def reset(self) -> None:
        """Open a new target in front and take its screenshot."""
        self.rival.do("close", "cover")
        self.target.do("close", "menu")
        self.target.do("close", "target")
        self._window_id = self.target.open("target", app="Target", title="The target", **_HOME)
        self._on.listed(self._client, "window_id", self._window_id)
        self.target.do("raise", "target")
        self.target.do("focus", "target")
        self.presses()
        self._client.call("take_window_screenshot", window_id=self._window_id)

    def change(self, kind: str, x: int, y: int) -> None:
        """Change the screen around a pixel of the target."""
        around = {"x": _X + x - 60, "y": _Y + y - 60, "w": 130, "h": 120}
        bare = {"popup": True, "pid": False}
        orders: dict[str, tuple[XWitness, str, str, dict[str, Any]]] = {
            "cover": (self.rival, "open", "cover", {"app": "Rival", "title": "A cover", **around}),
            "classless cover": (self.rival, "open", "cover", {**bare, **around}),
            "shadow of a cover": (self.rival, "open", "cover", {**bare, **_SCREEN}),
            "swap": (self.rival, "open", "cover", {"app": "Target", "title": "The target", **_HOME}),
            "menu": (self.target, "open", "menu", {"popup": True, "app": "Target", **around}),
            "move": (self.target, "move", "target", {"x": _X + 420, "y": _Y + 280}),
            "resize": (self.target, "resize", "target", {"w": x - 15, "h": y - 15}),
            "close": (self.target, "close", "target", {}),
            "raise": (self.rival, "raise", "rival", {}),
        }
        if kind == "swap":
            self.target.do("close", "target")
        if kind in orders:
            witness, what, name, more = orders[kind]
            witness.do(what, name, **more)

    def act(self, x: int, y: int) -> Reply:
        return self._client.call(self._act, window_id=self._window_id, x=x, y=y, **_MORE.get(self._act, {}))

    def presses(self) -> list[Event]:
        """Return the presses that any window received since the last call."""
        return [press for one in (self.target, self.rival, self.bystander) for press in one.take("press")]


def race(on: Stage, act: str = "click", is_standing: bool = False) -> None:
    """Act while the screen changes. is_standing: a popup without title or pid covers the target before it."""
    scene = ClickRace(on, act)
    usual_s = scene.usual_s()
    for kind in on.trials(_STANDING if is_standing else KINDS):
        point = (on.rng.randint(70, 300), on.rng.randint(70, 200))
        scene.reset()
        # before the act if it is negative
        after_s = -0.5 if is_standing else on.rng.uniform(usual_s - _WINDOW_S, usual_s + 0.005)
        with meanwhile(max(0.0, after_s), scene.change, kind, *point):
            time.sleep(max(0.0, -after_s))
            reply = scene.act(*point)
        # a click-to-focus window manager delays the press before it passes it on
        presses = comes_true(scene.presses, 5) if reply.is_delivered else scene.presses()
        on.count_held(kind, scene.target, reply)
        others = "/".join(sorted({press["name"] for press in presses} - {"target"}))
        on.tally.judge(kind, reply, bool(presses), others and f"{others} got it", lost="lost")
