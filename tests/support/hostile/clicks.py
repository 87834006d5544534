"""The pointer race: something changes on the screen while a click, a drag or the wheel is on its way."""

from __future__ import annotations

import random
import statistics
import time
from typing import Any, Optional

from worlds import comes_true

from .rpc import Client, Reply
from .stage import Stage, count_failure, stage
from .tally import Tally

KINDS = (
    "nothing", "cover", "classless cover", "menu", "move", "resize", "close", "swap", "raise",
    "shadow of a cover",
)  # fmt: skip
_HOME = {"x": 200, "y": 150, "w": 320, "h": 220}
_WINDOW_S, _DRAG_S = 0.1, 0.4


class ClickRace:
    """A target, its rival and a bystander behind everything, each a client of its own."""

    def __init__(self, on: Stage, client: Client) -> None:
        self.on, self.client = on, client
        self.bystander, self.target, self.rival = (on.x_witness() for _ in range(3))
        # the rival's own window outlives the covers, and lies behind the target
        self.bystander.open("backdrop", x=0, y=0, w=1270, h=760, app="Backdrop")
        self.rival.open("rival", x=240, y=190, w=300, h=200, app="Rival")
        self.window_id = 0
        self.screenshot = ""
        self.seconds = 0.0
        self.generation = 0

    def calibrate(self, act: str = "click") -> None:
        """How long an undisturbed act takes: the changes come in the last tenth of a second before its end,
        of a drag before its press.
        """
        times = []
        for _ in range(7):
            self.reset()
            times.append(self.act(act, 60, 60).seconds)
            self.truth()
        self.seconds = statistics.median(times) - (_DRAG_S if act == "drag" else 0)

    def reset(self) -> None:
        """The target in front, at home, with a screenshot of its own."""
        for witness in (self.target, self.rival):
            witness.forget()
        self.rival.do("close", "cover")
        self.target.do("close", "menu")
        if not self.screenshot:
            self.generation += 1
            self.window_id = self.target.open(self.name, app="Target", title="The target", **_HOME)
            self.on.wait_for_window(self.client, self.window_id)
            shot = self.client.call("take_window_screenshot", window_id=self.window_id)
            if shot.code:
                raise RuntimeError(f"no screenshot of the target: {shot.code} {shot.text}")
            self.screenshot = shot.data["screenshot_id"]
        self.target.do("resize", self.name, w=_HOME["w"], h=_HOME["h"])
        self.target.do("move", self.name, x=_HOME["x"], y=_HOME["y"])
        self.target.do("raise", self.name)
        self.target.do("focus", self.name)
        self.truth()

    @property
    def name(self) -> str:
        return f"target{self.generation}"

    def replace(self) -> None:
        self.target.do("close", self.name)
        self.screenshot = ""

    def change(self, kind: str, after: float, point: tuple[int, int]) -> None:
        x, y = _HOME["x"] + point[0], _HOME["y"] + point[1]
        around = {"x": max(0, x - 60), "y": max(0, y - 60), "w": 130, "h": 120}
        if kind == "cover":
            self.rival.do("open", "cover", after, app="Rival", title="A cover", **around)
        elif kind == "classless cover":
            self.rival.do("open", "cover", after, popup=True, pid=False, **around)
        elif kind == "shadow of a cover":  # it encloses the whole target, as a screen shield does
            self.rival.do("open", "cover", after, popup=True, pid=False, x=0, y=0, w=1280, h=800)
        elif kind == "menu":
            self.target.do("open", "menu", after, popup=True, app="Target", **around)
        elif kind == "move":
            self.target.do("move", self.name, after, x=_HOME["x"] + 420, y=_HOME["y"] + 280)
        elif kind == "resize":
            self.target.do("resize", self.name, after, w=max(20, point[0] - 15), h=max(20, point[1] - 15))
        elif kind in ("close", "swap"):
            self.target.do("close", self.name, after)
            if kind == "swap":
                self.rival.do("open", "cover", after, app="Target", title="The target", **_HOME)
        elif kind == "raise":
            self.rival.do("raise", "rival", after)

    def act(self, act: str, x: int, y: int) -> Reply:
        more: dict[str, Any] = {"drag": {"to_x": 20, "to_y": 200}, "scroll": {"direction": "down"}}.get(
            act, {}
        )
        return self.client.call(
            act, window_id=self.window_id, x=x, y=y, screenshot_id=self.screenshot, **more
        )

    def truth(self) -> list[dict[str, Any]]:
        """The presses that any of the windows got since the last time."""
        return [
            press for witness in (self.target, self.rival, self.bystander) for press in witness.take("press")
        ]


def race_clicks(
    rng: random.Random,
    trials: int,
    kind: Optional[str] = None,
    window_manager: bool = True,
    act: str = "click",
) -> Tally:
    tally = Tally(f"{act} race" if window_manager else f"{act} race, no window manager")
    start = time.monotonic()
    with stage(window_manager) as on:
        scene = ClickRace(on, on.client())
        scene.calibrate(act)
        for _ in range(trials):
            _one_act(scene, tally, act, kind or rng.choice(KINDS), rng)
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def race_clicks_bare(rng: random.Random, trials: int, kind: Optional[str] = None) -> Tally:
    return race_clicks(rng, trials, kind, window_manager=False)


def race_drags(rng: random.Random, trials: int, kind: Optional[str] = None) -> Tally:
    return race_clicks(rng, trials, kind, act="drag")


def race_wheels(rng: random.Random, trials: int, kind: Optional[str] = None) -> Tally:
    return race_clicks(rng, trials, kind, act="scroll")


def _one_act(scene: ClickRace, tally: Tally, act: str, kind: str, rng: random.Random) -> None:
    point = (rng.randint(70, 300), rng.randint(70, 200))
    after = rng.uniform(scene.seconds - _WINDOW_S, scene.seconds + 0.005)
    scene.reset()
    name = scene.name
    scene.change(kind, max(0.001, after), point)
    time.sleep(max(0.0, -after))  # an act may take less than the time in which the changes come
    reply = scene.act(act, *point)
    for witness in (scene.target, scene.rival):
        witness.forget()
    # a window manager that focuses by click holds the press back, and passes it on in its own time
    presses = comes_true(scene.truth) if reply.is_delivered else scene.truth()
    tally.trials += 1
    deadline = time.monotonic() + 2
    while scene.target.sync() and time.monotonic() < deadline:
        time.sleep(0.02)  # held back as well
    if scene.target.sync():
        tally.leaked += 1
        tally.note(f"{kind}: a button stays pressed, after {reply.code or 'delivered'}")
    judge_click(tally, kind, reply, presses, name, point)
    if kind in ("close", "swap", "resize", "move") or reply.code in ("HUNG", "WINDOW_NOT_FOUND"):
        scene.replace()


def judge_click(
    tally: Tally, kind: str, reply: Reply, presses: list[dict[str, Any]], name: str, point: tuple[int, int]
) -> None:
    """Compare what is reported with what the windows got."""
    if count_failure(tally, reply, f"click, {kind}"):
        return
    others = sorted({press["name"] for press in presses if press["name"] != name})
    claimed = reply.is_delivered
    said = reply.code or f"delivered {json_word(reply.data.get('delivered'))}"
    if others:
        tally.wrong += 1
        tally.unreported += claimed
        tally.note(f"{kind}: {'/'.join(others).rstrip('0123456789')} got it, reported as {said}")
    elif presses:
        tally.acted += claimed
        tally.doubted += not claimed
        if not claimed:
            tally.note(f"{kind}: the target got it, reported as {said}")
        elif (presses[0]["x"], presses[0]["y"]) != point:
            tally.note(f"{kind}: the target got it at another pixel, reported as {said}")
    elif claimed:
        tally.lost += 1
        tally.note(f"{kind}: nobody got it, reported as {said}")


def json_word(value: Any) -> str:
    return {True: "true", False: "false", None: "null"}.get(value, str(value))


def hold_covers(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """Covers that are there before the click: an override-redirect window without a class, title or pid."""
    tally = Tally("standing cover")
    start = time.monotonic()
    with stage() as on:
        scene = ClickRace(on, on.client())
        for _ in range(trials):
            scene.reset()
            point = (rng.randint(70, 300), rng.randint(70, 200))
            kind = rng.choice(("classless cover", "shadow of a cover", "menu"))
            scene.change(kind, 0, point)
            reply = scene.act("click", *point)
            presses = scene.truth()
            tally.trials += 1
            judge_click(tally, f"standing {kind}", reply, presses, scene.name, point)
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally
