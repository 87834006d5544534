"""Everyday acts without disturbance; each must succeed and be reported as delivered."""

from __future__ import annotations

import random
from typing import Any, Optional

from worlds import comes_true

from .rpc import Reply
from .stage import Stage, TkWitness
from .tally import Tally

_ACTS = ("close", "menu", "select", "field", "check", "type", "unicode", "key", "open")
# the widget that opens a popup, and the popup's rows
_POPUPS = {"menu": (".m", ("New", "Save", "Quit")), "select": (".s", ("apple", "pear", "plum"))}


_PERIODS_MS = (0, 300, 500, 1000, 2000)


class CalmScene:
    """The windows of hostile.tcl, used only through the server, like an agent uses them."""

    def __init__(self, on: Stage) -> None:
        self.on, self.client, self.tk = on, on.client(), on.witness(TkWitness)
        self.main = on.listed(self.client, "title", "Calm main")
        self.screenshot = self.client.call("take_window_screenshot", window_id=self.main).data[
            "screenshot_id"
        ]

    def windows(self) -> list[dict[str, Any]]:
        return list(self.client.call("list_windows").data.get("windows", []))

    def middle_of(self, widget: str) -> dict[str, int]:
        x, y = map(int, self.tk.ask(f"place {widget}").split())
        return {"x": x, "y": y}

    def click(self, widget: str) -> Reply:
        place = self.middle_of(widget)
        return self.client.call("click", window_id=self.main, screenshot_id=self.screenshot, **place)

    def click_in(self, window_id: int, place: dict[str, int]) -> Reply:
        shot = self.client.call("take_window_screenshot", window_id=window_id)
        if shot.code:
            return shot
        screenshot = shot.data["screenshot_id"]
        return self.client.call("click", window_id=window_id, screenshot_id=screenshot, **place)

    def judge(self, what: str, reply: Reply, event: str, text: str) -> None:
        """Count an act as arrived if its event comes in time; a window manager may delay a press."""

        def look() -> bool:
            self.tk.ask("update")
            return any(one["event"] == event and one["text"].startswith(text) for one in self.tk.events)

        judge_calm(self.on.tally, what, reply, bool(comes_true(look)))

    def run(self, act: str, rng: random.Random) -> None:
        self.tk.ask("update")
        self.tk.events.clear()
        if act == "close":
            self.tk.ask("open_dialog")
            dialog = self.on.listed(self.client, "title", "Calm dialog")
            reply = self.click_in(dialog, self.middle_of(".d.ok"))
            self.judge("a button that closes its window", reply, "act", "closed")
        elif act == "open":
            self.judge("a button that opens a window", self.click(".b"), "act", "opened")
        elif act in _POPUPS:
            self.choose(act, *_POPUPS[act], rng)
        elif act in ("field", "check"):
            widget = rng.choice((".e", ".e2")) if act == "field" else ".c"
            self.judge(f"a click into a {act}", self.click(widget), "press", widget)
        else:
            texts = {"type": "plain ASCII text, 42!", "unicode": rng.choice(("Zoë", "日本", "naïve 😀"))}
            text = texts.get(act)
            self.tk.ask(".e delete 0 end; .e insert 0 abc; .e icursor end; focus -force .e")
            if text:
                reply = self.client.call("type_text", window_id=self.main, text=text)
            else:
                reply = self.client.call("press_key", window_id=self.main, key="backspace")
            wanted = f"abc{text}" if text else "ab"
            has_arrived = comes_true(lambda: self.tk.ask(".e get") == wanted)
            judge_calm(self.on.tally, f"{act} into a field", reply, has_arrived)
        self.tk.ask("destroy .d")

    def choose(self, act: str, widget: str, rows: tuple[str, ...], rng: random.Random) -> None:
        """Click a widget to open its popup window, then click one of its rows."""
        known = {one["window_id"] for one in self.windows()}
        opening = self.click(widget)

        def popup() -> Any:
            return next((one for one in self.windows() if one["window_id"] not in known), None)

        window, row = comes_true(popup), rng.randrange(len(rows))
        if window:
            y = int(window["bounds"]["height"] * (row + 0.5) / len(rows))
            reply = self.click_in(window["window_id"], {"x": 12, "y": y})
            self.judge(f"an entry of a {act}", reply, "act", f"{act} {rows[row]}")
        else:
            note = f"the popup of a {act} is not listed ({opening.code or 'delivered'})"
            self.on.tally.count("doubted", note)
        if not window or not any(one["event"] == "act" for one in self.tk.events):
            self.client.call("press_key", window_id=self.main, key="escape")


def judge_calm(tally: Tally, what: str, reply: Reply, has_arrived: bool) -> None:
    if has_arrived or reply.is_delivered:
        tally.judge(what, reply, has_arrived)
    elif not tally.has_failed(what, reply):
        tally.count("doubted", f"{what}: refused as {reply.code or 'not delivered'}: {reply.text[:100]}")


def stay_calm(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    scene = CalmScene(on)
    for _ in range(trials):
        on.tally.count("trials")
        scene.run(kind or rng.choice(_ACTS), rng)


def judge_effect(tally: Tally, what: str, reply: Reply, blinks: bool, reacts: bool) -> None:
    """Compare `changed` with the window's reaction; it must be null if the window only blinks."""
    changed = reply.data.get("changed")
    if tally.has_failed(what, reply):
        return
    if changed is reacts or (changed is None and blinks and not reacts):
        tally.count("acted")
    else:
        tally.count("doubted" if changed is None else "wrong unreported", f"{what}: changed is {changed}")


def verify_effects(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Press keys, with and without an effect, in blinking and still windows. kind: the blink period in ms."""
    client, tk = on.client(), on.witness(TkWitness)
    for number in range(trials):
        on.tally.count("trials")
        period_ms = int(kind) if kind else _PERIODS_MS[number // 2 % len(_PERIODS_MS)]
        tk.ask(f"lights {period_ms // 2}")
        window_id = on.listed(client, "title", f"Lights {number + 1}")
        tk.ask(f"after {rng.randrange(300)} {{set waited 1}}; vwait waited")
        reacts = number % 2 == 0
        reply = client.call("press_key", window_id=window_id, key="r" if reacts else "x", verify=True)
        what = f"{'effect' if reacts else 'no effect'}, period {period_ms} ms"
        judge_effect(on.tally, what, reply, period_ms > 0, reacts)
