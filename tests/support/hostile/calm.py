"""What people do all day, undisturbed: a hand that reports doubts here is of no use."""

from __future__ import annotations

import random
import time
from typing import Any, Optional

from worlds import comes_true, wait_for

from .rpc import Client, Reply
from .stage import Stage, TkWitness, count_failure, stage
from .tally import Tally

_ACTS = ("close", "menu", "select", "field", "check", "type", "unicode", "key", "open")


class CalmScene:
    """hostile.tcl's windows, acted on through the server only, as an agent does."""

    def __init__(self, on: Stage, client: Client) -> None:
        self.client = client
        self.tk: TkWitness = on.tk_witness()
        self.main = self.window_titled("Calm main")
        self.screenshot = client.call("take_window_screenshot", window_id=self.main).data["screenshot_id"]

    def windows(self) -> list[dict[str, Any]]:
        return self.client.call("list_windows").data.get("windows", [])

    def window_titled(self, title: str) -> int:
        return wait_for(
            lambda: next((one["window_id"] for one in self.windows() if one["title"] == title), None),
            f"there is a window {title!r}",
        )

    def place(self, widget: str) -> dict[str, int]:
        x, y = map(int, self.tk.ask(f"place {widget}").split())
        return {"x": x, "y": y}

    def click(self, widget: str) -> Reply:
        return self.client.call(
            "click", window_id=self.main, screenshot_id=self.screenshot, **self.place(widget)
        )

    def acts(self, text: str = "") -> list[str]:
        """The acts that the widgets report; waits for `text` where one is expected."""
        self.comes_to_report("act", text)
        found = [one["text"] for one in self.tk.events if one["event"] == "act"]
        self.tk.events.clear()
        return found

    def comes_to_report(self, event: str, start: str) -> bool:
        """Whether an event whose text starts so arrives: a window manager may hold a press back."""

        def look() -> bool:
            self.tk.ask("update")
            return not start or any(
                one["event"] == event and one["text"].startswith(start) for one in self.tk.events
            )

        return comes_true(look)

    def comes_to_hold(self, text: str) -> bool:
        """Whether the upper field holds this text at last."""
        return comes_true(lambda: self.tk.ask(".e get") == text)

    def popup(self, known: set[int]) -> Optional[dict[str, Any]]:
        """A window that was not there before the last click."""
        return comes_true(
            lambda: next((one for one in self.windows() if one["window_id"] not in known), None)
        )

    def click_in(self, window: dict[str, Any], x: int, y: int) -> Reply:
        window_id = window["window_id"]
        shot = self.client.call("take_window_screenshot", window_id=window_id)
        if shot.code:
            return shot
        return self.client.call(
            "click", window_id=window_id, x=x, y=y, screenshot_id=shot.data["screenshot_id"]
        )


def stay_calm(rng: random.Random, trials: int, act: Optional[str] = None) -> Tally:
    tally = Tally("calm")
    start = time.monotonic()
    with stage() as on:
        scene = CalmScene(on, on.client())
        for _ in range(trials):
            which = act or rng.choice(_ACTS)
            scene.acts()
            tally.trials += 1
            _calm_act(scene, tally, which, rng)
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _judge(tally: Tally, what: str, reply: Reply, has_arrived: bool) -> None:
    if count_failure(tally, reply, what):
        return
    if has_arrived and reply.is_delivered and reply.data.get("delivered") is True:
        tally.acted += 1
    elif has_arrived:
        tally.doubted += 1
        tally.note(
            f"{what}: it arrived, reported as {reply.code or reply.data.get('delivered')} {reply.text[:60]}"
        )
    elif reply.is_delivered:
        tally.lost += 1
        tally.unreported += 1
        tally.note(f"{what}: reported as delivered, and it did not arrive")
    else:
        tally.doubted += 1
        tally.note(f"{what}: refused as {reply.code or 'not delivered'}: {reply.text[:100]}")


def _calm_act(scene: CalmScene, tally: Tally, which: str, rng: random.Random) -> None:
    if which == "close":
        scene.tk.ask("open_dialog")
        dialog = {"window_id": scene.window_titled("Calm dialog")}
        scene.acts()
        reply = scene.click_in(dialog, *_xy(scene.place(".d.ok")))
        _judge(tally, "a button that closes its window", reply, "closed" in scene.acts(text="closed"))
        scene.tk.ask("destroy .d")
    elif which == "open":
        reply = scene.click(".b")
        _judge(tally, "a button that opens a window", reply, "opened" in scene.acts(text="opened"))
        scene.tk.ask("destroy .d")
    elif which in ("menu", "select"):
        _menu_or_select(scene, tally, which, rng)
    elif which in ("field", "check"):
        widget = rng.choice((".e", ".e2")) if which == "field" else ".c"
        reply = scene.click(widget)
        _judge(tally, f"a click into a {which}", reply, scene.comes_to_report("press", widget))
    elif which in ("type", "unicode"):
        text = "plain ASCII text, 42!" if which == "type" else rng.choice(("Zoë", "日本", "naïve 😀"))
        scene.tk.ask(".e delete 0 end; focus -force .e")
        reply = scene.client.call("type_text", window_id=scene.main, text=text)
        _judge(tally, f"{which} into a field", reply, scene.comes_to_hold(text))
    else:
        scene.tk.ask(".e delete 0 end; .e insert 0 abc; .e icursor end; focus -force .e")
        reply = scene.client.call("press_key", window_id=scene.main, key="backspace")
        _judge(tally, "a key", reply, scene.comes_to_hold("ab"))


def _menu_or_select(scene: CalmScene, tally: Tally, which: str, rng: random.Random) -> None:
    """Open a menu or a list by one click, and click one of its rows in the window that it is."""
    widget, rows = (".m", ("New", "Save", "Quit")) if which == "menu" else (".s", ("apple", "pear", "plum"))
    known = {one["window_id"] for one in scene.windows()}
    opening = scene.click(widget)
    popup = scene.popup(known)
    if popup is None:
        tally.doubted += 1
        tally.note(f"the popup of a {which} is not listed ({opening.code or 'delivered'})")
        scene.client.call("press_key", window_id=scene.main, key="escape")
        return
    number = rng.randrange(len(rows))
    height = popup["bounds"]["height"]
    row = int(height * (number + 0.5) / len(rows))
    reply = scene.click_in(popup, 12, row)
    wanted = f"{which} {rows[number]}"
    found = scene.acts(text=wanted)
    _judge(tally, f"an entry of a {which}", reply, wanted in found)
    if wanted not in found:
        tally.note(f"{which}: wanted {wanted!r}, the application reports {found}")
        scene.client.call("press_key", window_id=scene.main, key="escape")


def _xy(place: dict[str, int]) -> tuple[int, int]:
    return place["x"], place["y"]
