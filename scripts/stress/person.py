"""A person who uses the same keyboard, mouse and clipboard at random moments of an act."""

from __future__ import annotations

import string
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

from keys import text_of
from paste import PasteScene
from stage import Stage, meanwhile
from tk_windows import clipboard
from witness import XWitness

# a person's actions, as shell commands
_TYPING = {
    "taps shift": "xdotool keydown shift; sleep 0.0{n}; xdotool keyup shift",
    "types along": "xdotool key Z",
    "changes the map": "xmodmap -e 'keycode 38 = q Q'",
}
_POINTING = {
    "moves the window": "xdotool windowmove {id} 3{n} 240",
    "moves the pointer": "for n in 1 2 3 4; do xdotool mousemove_relative -- 1{n} 0; done",
    "closes the window": "xdotool windowclose {id}",
    "moves the pointer of a click": "for n in 1 2 3 4 5 6; do xdotool mousemove_relative -- 2{n} 1; done",
}
_COPY = "printf THEFT | xclip -selection clipboard -i >/dev/null 2>&1"


class PersonScene:
    """A field, a text widget and windows of two other programs, beside a person."""

    def __init__(self, on: Stage) -> None:
        self.on, self.rng, self.judge = on, on.rng, on.tally.judge
        self.field = on.field()
        self.client = self.field.client
        self.paste = PasteScene(on, self.client)
        self.target, self.thief = on.witness(XWitness), on.witness(XWitness)

    @contextmanager
    def person(self, script: str, longest_s: float) -> Iterator[threading.Event]:
        script = script.replace("{n}", str(self.rng.randint(1, 9)))
        with meanwhile(self.rng.uniform(0, longest_s), self.on.run, "sh", "-c", script) as has_acted:
            yield has_acted

    def open_target(self) -> int:
        """Open a new window in front; return its id."""
        self.target.do("close", "target")
        place = {"x": 500, "y": 300, "w": 320, "h": 220}
        window_id = self.target.open("target", app="Target", title="The target", **place)
        self.on.listed(self.client, "window_id", window_id)
        self.target.do("raise", "target")
        self.client.call("take_window_screenshot", window_id=window_id)
        self.target.take("press")
        return window_id

    def type(self, kind: str) -> None:
        self.field.clear()
        text = "".join(self.rng.choices(string.ascii_lowercase, k=120))
        with self.person(_TYPING[kind], 0.4):
            reply = self.client.reply(self.field.type(text))
        got = text_of(self.field.witness.take_characters())
        is_known = bool(reply.code or reply.data.get("others_typed") or got in (f"Z{text}", f"{text}Z"))
        self.judge(kind, reply, got == text or is_known, "" if is_known or got == text else got)
        self.on.count_held(kind, self.field.witness, reply)
        self.on.run("xmodmap", "-e", "keycode 38 = a A")

    def point(self, kind: str) -> None:
        """Drag, or click; only the press of a click must be in place."""
        window_id = self.open_target()
        tool, end = ("click", {}) if kind.endswith("click") else ("drag", {"to_x": 200, "to_y": 90})
        with self.person(_POINTING[kind].replace("{id}", str(window_id)), 0.7 if end else 0.3):
            reply = self.client.call(tool, window_id=window_id, x=40, y=60, **end)
        self.target.sync()
        events = [one for one in self.target.events if one["event"] in ("press", "release")]
        places = [(one["x"], one["y"]) for one in events]
        is_there = places == [(40, 60), (200, 90)] if end else places[:1] == [(40, 60)]
        self.judge(kind, reply, is_there, str(places) if places and not is_there else "")

    def copy(self, kind: str) -> None:
        self.paste.reset("text")
        text = "".join(self.rng.choices("äöüßéè", k=60))
        with self.person(_COPY, 0.4) as has_copied:
            reply = self.client.call("type_text", window_id=self.paste.window_id, text=text)
        got, held = self.paste.text(), clipboard(self.on.x)
        self.judge(kind, reply, got == text, f"the copy was pasted: {got}" if "THEFT" in got else "")
        # the paste may end before the person copies
        is_kept = held == b"THEFT" if has_copied.is_set() else self.paste.is_restored("text")
        if not is_kept and "may be lost" not in reply.text:
            self.on.tally.count("lost", f"{kind}: the clipboard holds {held[:30]!r}, after {reply.code}")

    def hold(self, kind: str) -> None:
        self.field.clear()
        thief = {"x": 600, "y": 40, "w": 200, "h": 150, "app": "Thief"}  # a new window gets the focus
        with meanwhile(self.rng.uniform(0.05, 0.6), self.thief.do, "open", "thief", **thief):
            reply = self.client.call("press_key", window_id=self.field.window_id, key="a", hold_ms=700)
        stolen = len(self.thief.take("key"))
        self.judge(kind, reply, not stolen, f"{stolen} went to the thief" if stolen else "")
        self.on.count_held(kind, self.field.witness, reply)
        self.thief.do("close", "thief")


def stay_beside(on: Stage) -> None:
    """Act while a person does something else."""
    scene = PersonScene(on)
    drivers: dict[str, Callable[[str], None]] = {
        **dict.fromkeys(_TYPING, scene.type),
        **dict.fromkeys(_POINTING, scene.point),
        "copies something": scene.copy,
        "takes the keyboard of a held key": scene.hold,
    }
    for kind in on.trials([*drivers]):
        drivers[kind](kind)
    scene.paste.clear_clipboard()
