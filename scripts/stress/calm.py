"""Everyday acts without disturbance; each must succeed and be reported as delivered."""

from __future__ import annotations

from typing import Any, Callable

from mcp_server import Reply
from stage import Stage, TkForm
from worlds import comes_true

# the widget that opens a popup, and the popup's rows
_POPUPS = {"menu": (".m", ("New", "Save", "Quit")), "select": (".s", ("apple", "pear", "plum"))}
_WIDGETS = {"field": ".e", "check": ".c"}
# in a field that holds `abc`: tool, arguments, the resulting text
_KEYS: dict[str, tuple[str, dict[str, Any], str]] = {
    "ascii": ("type_text", {"text": "plain, 42!"}, "abcplain, 42!"),
    "unicode": ("type_text", {"text": "naïve 日本 😀"}, "abcnaïve 日本 😀"),
    "key": ("press_key", {"key": "backspace"}, "ab"),
}


class CalmScene:
    """The windows of form.tcl, used only through the server, like an agent uses them."""

    def __init__(self, on: Stage) -> None:
        self.on, self.client, self.tk = on, on.client(), on.witness(TkForm)
        self.main = on.listed(self.client, "title", "Calm main")
        self.client.call("take_window_screenshot", window_id=self.main)

    def click(self, widget: str) -> Reply:
        return self.client.call("click", window_id=self.main, **self.centre(widget))

    def centre(self, widget: str) -> dict[str, int]:
        x, y = map(int, self.tk.ask(f"place {widget}").split())
        return {"x": x, "y": y}

    def click_in(self, window_id: int, place: dict[str, int]) -> Reply:
        shot = self.client.call("take_window_screenshot", window_id=window_id)
        return shot if shot.code else self.client.call("click", window_id=window_id, **place)

    def judge(self, what: str, reply: Reply, has_arrived: Callable[[], bool]) -> None:
        """Judge an act that may arrive late: a window manager may delay a press."""
        is_there = comes_true(has_arrived, 5)
        self.on.tally.judge(what, reply, is_there)
        if not is_there and not reply.is_delivered:
            self.on.tally.count("doubted", f"{what}: refused: {reply.code} {reply.text}")

    def has(self, event: str) -> bool:
        self.tk.ask("update")
        return any(f"{one['event']} {one['text']}".startswith(event) for one in self.tk.events)

    def run(self, kind: str) -> None:
        self.tk.events.clear()
        if kind == "dialog":
            self.judge("a button that opens a window", self.click(".b"), lambda: self.has("act opened"))
            dialog = self.on.listed(self.client, "title", "Calm dialog")
            reply = self.click_in(dialog, self.centre(".d.ok"))
            self.judge("a button that closes its window", reply, lambda: self.has("act closed"))
        elif kind in _WIDGETS:
            self.judge(kind, self.click(_WIDGETS[kind]), lambda: self.has(f"press {_WIDGETS[kind]}"))
        elif kind in _POPUPS:
            self.choose(kind, *_POPUPS[kind])
        else:
            self.tk.ask(".e delete 0 end; .e insert 0 abc; .e icursor end; focus -force .e")
            tool, arguments, text = _KEYS[kind]
            reply = self.client.call(tool, window_id=self.main, **arguments)
            self.judge(kind, reply, lambda: self.tk.ask(".e get") == text)

    def choose(self, kind: str, widget: str, rows: tuple[str, ...]) -> None:
        """Click a widget to open its popup window, then click one of its rows."""

        def windows() -> list[dict[str, Any]]:
            return list(self.client.call("list_windows").data.get("windows", []))

        known = {one["window_id"] for one in windows()}
        self.click(widget)
        new = comes_true(lambda: [one for one in windows() if one["window_id"] not in known], 5)
        if not new:
            self.on.tally.count("doubted", f"the popup of a {kind} is not listed")
            return
        row = self.on.rng.randrange(len(rows))
        y = int(new[0]["bounds"]["height"] * (row + 0.5) / len(rows))
        reply = self.click_in(new[0]["window_id"], {"x": 12, "y": y})
        self.judge(f"an entry of a {kind}", reply, lambda: self.has(f"act {kind} {rows[row]}"))


def stay_calm(on: Stage) -> None:
    """Use a form with buttons, menus and fields."""
    scene = CalmScene(on)
    for kind in on.trials(("dialog", *_WIDGETS, *_POPUPS, *_KEYS)):
        scene.run(kind)


def verify_effects(on: Stage) -> None:
    """Press keys, with and without an effect. kinds: the period in ms with which the window blinks."""
    client, tk = on.client(), on.witness(TkForm)
    for number, period in enumerate(on.trials(("0", "300", "500", "1000", "2000"))):
        tk.ask(f"lights {int(period) // 2}")
        window_id = on.listed(client, "title", f"Lights {number + 1}")
        tk.ask(f"after {on.rng.randrange(300)} {{set waited 1}}; vwait waited")
        reacts = on.rng.random() < 0.5
        reply = client.call("press_key", window_id=window_id, key="r" if reacts else "x", verify=True)
        what, changed = f"{'effect' if reacts else 'no effect'}, {period} ms", reply.data.get("changed")
        if changed is None and (reacts or period == "0"):
            on.tally.count("doubted", f"{what}: the effect is unknown")
        on.tally.judge(what, reply, True, f"changed is {changed}" if changed is (not reacts) else "")
