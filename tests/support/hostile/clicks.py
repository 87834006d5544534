"""Pointer races: the screen changes while a click, a drag or a scroll is being sent."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any, Optional

from worlds import comes_true

from .rpc import Reply
from .stage import Event, Stage, XWitness
from .tally import Tally

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
        self.on, self.client, self.kind_of_act = on, on.client(), act
        self.bystander, self.target, self.rival = (on.witness(XWitness) for _ in range(3))
        # the rival's own window stays open behind the target when its covers close
        self.bystander.open("backdrop", x=0, y=0, w=1270, h=760, app="Backdrop")
        self.rival.open("rival", x=240, y=190, w=300, h=200, app="Rival")
        self.window_id, self.screenshot = 0, ""

    def usual_seconds(self) -> float:
        """Return the median time from the start of an undisturbed act to its press."""
        times = []
        for _ in range(5):
            self.reset()
            start = time.monotonic()
            self.act(60, 60)
            times.append(time.monotonic() - start)
        return statistics.median(times) - (_DRAG_S if self.kind_of_act == "drag" else 0)

    def reset(self) -> None:
        """Open a new target in front and take its screenshot."""
        for witness in (self.target, self.rival):
            witness.do("forget")
        self.rival.do("close", "cover")
        self.target.do("close", "menu")
        self.target.do("close", "target")
        self.window_id = self.target.open("target", app="Target", title="The target", **_HOME)
        self.on.listed(self.client, "window_id", self.window_id)
        self.target.do("raise", "target")
        self.target.do("focus", "target")
        self.presses()
        shot = self.client.call("take_window_screenshot", window_id=self.window_id)
        self.screenshot = shot.data["screenshot_id"]

    def change(self, kind: str, after: float, x: int, y: int) -> None:
        around = {"x": _X + x - 60, "y": _Y + y - 60, "w": 130, "h": 120}
        bare = {"popup": True, "pid": False}
        orders: dict[str, tuple[Any, str, str, dict[str, Any]]] = {
            "cover": (self.rival, "open", "cover", {"app": "Rival", "title": "A cover", **around}),
            "classless cover": (self.rival, "open", "cover", {**bare, **around}),
            "shadow of a cover": (self.rival, "open", "cover", {**bare, **_SCREEN}),
            "menu": (self.target, "open", "menu", {"popup": True, "app": "Target", **around}),
            "move": (self.target, "move", "target", {"x": _X + 420, "y": _Y + 280}),
            "resize": (self.target, "resize", "target", {"w": x - 15, "h": y - 15}),
            "close": (self.target, "close", "target", {}),
            "swap": (self.target, "close", "target", {}),
            "raise": (self.rival, "raise", "rival", {}),
        }  # fmt: skip
        if kind in orders:
            witness, what, name, more = orders[kind]
            witness.do(what, name, after, **more)
        if kind == "swap":
            self.rival.do("open", "cover", after, app="Target", title="The target", **_HOME)

    def act(self, x: int, y: int) -> Reply:
        place: dict[str, Any] = {
            "window_id": self.window_id,
            "x": x,
            "y": y,
            "screenshot_id": self.screenshot,
        }
        return self.client.call(self.kind_of_act, **place, **_MORE.get(self.kind_of_act, {}))

    def presses(self) -> list[Event]:
        """Return the presses that any window received since the last call."""
        witnesses = (self.target, self.rival, self.bystander)
        return [press for witness in witnesses for press in witness.take("press")]

    def one_act(self, kind: str, seconds: Optional[float], rng: random.Random) -> None:
        """Act while `kind` happens. seconds: how long the act takes, or None to make the change before it."""
        tally, point = self.on.tally, (rng.randint(70, 300), rng.randint(70, 200))
        after = 0.0 if seconds is None else rng.uniform(seconds - _WINDOW_S, seconds + 0.005)
        self.reset()
        self.change(kind, after if seconds is None else max(0.001, after), *point)
        if seconds is None:
            self.presses()
        time.sleep(max(0.0, -after))  # the act may be shorter than the window for changes
        reply = self.act(*point)
        for witness in (self.target, self.rival):
            witness.do("forget")
        # a click-to-focus window manager delays the press before it passes it on
        presses = comes_true(self.presses) if reply.is_delivered else self.presses()
        tally.count("trials")
        if not comes_true(lambda: not self.target.sync(), 2):
            tally.count("leaked", f"{kind}: a button stays pressed, after {reply.code or 'delivered'}")
        judge_click(tally, kind, reply, presses, point)


def judge_click(tally: Tally, kind: str, reply: Reply, presses: list[Event], point: tuple[int, int]) -> None:
    """Compare the reply with the presses that the windows received."""
    others = "/".join(sorted({press["name"] for press in presses} - {"target"}))
    tally.judge(kind, reply, bool(presses), others and f"{others} got it", lost="lost")
    if presses and not others and (presses[0]["x"], presses[0]["y"]) != point:
        tally.note(f"{kind}: the target got it at another pixel, reported as {reply.code or 'delivered'}")


def race(
    on: Stage,
    rng: random.Random,
    trials: int,
    kind: Optional[str] = None,
    act: str = "click",
    standing: bool = False,
) -> None:
    """Run trials. standing: the cover opens first, override-redirect, without a class, title or pid."""
    scene = ClickRace(on, act)
    seconds = None if standing else scene.usual_seconds()
    for _ in range(trials):
        scene.one_act(kind or rng.choice(_STANDING if standing else KINDS), seconds, rng)
