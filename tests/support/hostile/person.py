"""A person who uses the same keyboard, mouse and clipboard at random moments of an act."""

from __future__ import annotations

import random
import string
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable, Optional

from tk_windows import clipboard
from worlds import PATIENCE_S

from .keys import text_of
from .paste import PasteScene
from .rpc import Reply
from .stage import Stage, XWitness

_LETTERS = string.ascii_lowercase
# a person's actions during typing
_TYPING = {
    "taps shift": "xdotool keydown shift; sleep 0.0{n}; xdotool keyup shift",
    "types along": "xdotool key Z",
    "changes the map": "xmodmap -e 'keycode 38 = q Q'",
}
_DRAGGING = {
    "moves the window": "xdotool windowmove {id} 3{n} 240",
    "moves the pointer": "for n in 1 2 3 4; do xdotool mousemove_relative -- 1{n} 0; done",
    "closes the window": ":",
}
_POINTING = ("jiggles the mouse", "scrolls over a deaf window")
_COPY = "copies something"
_HOLD = "takes the keyboard of a held key"
_MODIFIER = "holds a modifier"
_MODIFIERS = ("ISO_Level3_Shift", "Super_L", "Hyper_L", "Meta_L", "Alt_L", "Control_L", "Shift_L")
_REFUSED_ACTS: dict[str, dict[str, object]] = {
    "type_text": {"text": "hello quick"},
    "press_key": {"key": "a"},
    "click": {"x": 50, "y": 50},
    "scroll": {"x": 50, "y": 50, "direction": "down"},
    "drag": {"x": 50, "y": 50, "to_x": 90, "to_y": 90},
}
KINDS = (*_TYPING, *_DRAGGING, *_POINTING, _COPY, _HOLD, _MODIFIER)


def stay_beside(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Act while a person does `kind`, or a random one of KINDS."""
    typing = on.field()
    paste = PasteScene(on, typing.client)
    target, deaf = on.witness(XWitness), on.witness(XWitness)

    @contextmanager
    def person(script: str, longest_s: float) -> Iterator[None]:
        script = f"sleep {rng.uniform(0, longest_s):.3f}; {script.replace('{n}', str(rng.randint(1, 9)))}"
        with subprocess.Popen(["timeout", "20", "sh", "-c", script], env=on.x, stdout=subprocess.DEVNULL):
            yield

    def type_beside(what: str) -> None:
        typing.witness.do("focus", "field")
        typing.witness.take("key")
        text = "".join(rng.choices(_LETTERS, k=120))
        with person(_TYPING[what], 0.4):
            reply = typing.client.reply(typing.type(text))
        got = text_of(typing.witness.take_characters())
        is_known = reply.code or reply.data.get("others_typed") or got in (f"Z{text}", f"{text}Z")
        on.tally.judge(what, reply, got == text or bool(is_known), "" if is_known or got == text else got)
        if typing.witness.sync():
            on.tally.count("leaked", f"{what}: a key stays pressed, after {reply.code or 'delivered'}")
        subprocess.run(["xmodmap", "-e", "keycode 38 = a A"], env=on.x, timeout=PATIENCE_S, check=True)

    def open_target() -> int:
        target.do("forget")  # drop a close that came too late for the last drag
        target.do("close", "target")
        window_id = target.open("target", app="Target", title="The target", x=500, y=300, w=320, h=220)
        on.listed(typing.client, "window_id", window_id)
        target.do("raise", "target")
        typing.client.call("take_window_screenshot", window_id=window_id)
        target.take("press")
        return window_id

    def call(tool: str, window_id: int, x: int, y: int, **more: object) -> Reply:
        return typing.client.call(tool, window_id=window_id, x=x, y=y, **more)

    def drag_beside(what: str) -> None:
        window_id = open_target()
        if what == "closes the window":
            target.do("close", "target", rng.uniform(0.1, 0.7))
        with person(_DRAGGING[what].replace("{id}", str(window_id)), 0.7):
            reply = call("drag", window_id, 40, 60, to_x=200, to_y=90)
        target.sync()
        places = [(e["event"], e["x"], e["y"]) for e in target.events if e["event"] in ("press", "release")]
        target.events.clear()
        is_there = places == [("press", 40, 60), ("release", 200, 90)]
        on.tally.judge(what, reply, is_there, str(places) if places and not is_there else "")

    def point_beside(what: str) -> None:
        window_id = open_target()
        if what == _POINTING[0]:
            with person("for n in 1 2 3 4 5 6; do xdotool mousemove_relative -- 2{n} 1; done", 0.3):
                reply = call("click", window_id, 100, 100)
            places = [(press["x"], press["y"]) for press in target.take("press")]
            elsewhere = [place for place in places if place != (100, 100)]
            on.tally.judge(what, reply, (100, 100) in places, str(elsewhere) if elsewhere else "")
            return
        deaf_id = deaf.open("deaf", app="Deaf", x=60, y=400, w=300, h=200, takes_buttons=False)
        on.listed(typing.client, "window_id", deaf_id)
        typing.client.call("take_window_screenshot", window_id=deaf_id)
        reply = call("scroll", deaf_id, 50, 50, direction="down")
        deaf.do("close", "deaf")
        on.tally.judge(what, reply, False)

    def copy_beside(what: str) -> None:
        paste.reset("text")
        text = "".join(rng.choices("äöüßéè", k=60))
        with person("printf THEFT | xclip -selection clipboard -i >/dev/null 2>&1", 0.4):
            reply = typing.client.call("type_text", window_id=paste.window_id, text=text)
        got = paste.text()
        elsewhere = f"the copy was pasted: {got[:40]}" if "THEFT" in got else ""
        on.tally.judge(what, reply, got == text, elsewhere)
        held = clipboard(on.x)
        if held != b"THEFT":
            is_known = "may be lost" in reply.text
            on.tally.count(
                "wrong" if is_known else "lost", f"{what}: it holds {held[:30]!r}, after {reply.code}"
            )

    def hold_beside(what: str) -> None:
        typing.witness.do("focus", "field")
        typing.witness.take("key")
        target.do("forget")
        thief = {"x": 600, "y": 40, "w": 200, "h": 150, "app": "Thief", "takes_focus": True}
        target.do("open", "thief", rng.uniform(0.05, 0.6), **thief)
        reply = typing.client.call("press_key", window_id=typing.window_id, key="a", hold_ms=700)
        stolen = len(target.take("key"))
        on.tally.judge(what, reply, not stolen, f"{stolen} went to the thief" if stolen else "")
        if typing.witness.sync():
            on.tally.count("leaked", f"{what}: the key stays pressed, after {reply.code or 'delivered'}")
        target.do("close", "thief")

    def act_beside_a_modifier(what: str) -> None:
        window_id, modifier = open_target(), rng.choice(_MODIFIERS)
        tool = rng.choice(list(_REFUSED_ACTS))
        subprocess.run(["xdotool", "keydown", modifier], env=on.x, timeout=PATIENCE_S, check=True)
        target.sync()
        target.events.clear()
        reply = typing.client.call(tool, window_id=window_id, **_REFUSED_ACTS[tool])
        arrived = [*target.take("key"), *target.take("press")]
        subprocess.run(["xdotool", "keyup", modifier], env=on.x, timeout=PATIENCE_S, check=True)
        on.tally.judge(f"{what}, {modifier}, {tool}", reply, False, str(arrived) if arrived else "")

    drivers: dict[str, Callable[[str], None]] = {
        **dict.fromkeys(_TYPING, type_beside),
        **dict.fromkeys(_DRAGGING, drag_beside),
        **dict.fromkeys(_POINTING, point_beside),
        _COPY: copy_beside,
        _HOLD: hold_beside,
        _MODIFIER: act_beside_a_modifier,
    }
    for _ in range(trials):
        what = kind or rng.choice(KINDS)
        drivers[what](what)
        on.tally.count("trials")
        time.sleep(0.02)
    paste.drop_clipboard()
