"""Typing by paste: faults of xclip, restoring the clipboard, commands that are killed midway."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import Optional

from tk_windows import clipboard, copy
from worlds import PATIENCE_S, comes_true, need

from .faults import FaultyPrograms
from .rpc import Client, Reply
from .stage import HERE, Stage, TkWitness, Witness
from .tally import Tally

_TEXTS = ("Zoë", "日本語", "a\nÅb\tc", "naïve — café", "😀", "x" * 30 + "é" * 30, "Straße\nzwei")
_FAULTS = ("none", "none", "none", "missing", "hung", "late", "killed", "garbage", "fail", "empty")
OLD_TEXT = "the user's old clipboard — ü"


class SlowField(Witness):
    """slow_gtk.py in a process of its own; `events` is what its field held."""

    def __init__(self, environment: dict[str, str]) -> None:
        need(f"/usr/lib/{os.uname().machine}-linux-gnu/girepository-1.0/Gtk-3.0.typelib")
        words = ["/usr/bin/python3", "-I", str(HERE / "slow_gtk.py")]
        super().__init__(words, {**environment, "NO_AT_BRIDGE": "1", "GSETTINGS_BACKEND": "memory"})

    def reset(self, how: str, pause_s: float) -> None:
        """Empty the field, and set how it pauses: see slow_gtk.HOW."""
        since = len(self.events)
        self.write(json.dumps({"how": how, "pause_s": pause_s}))
        self.wait(lambda event: event["event"] == "ready", since)

    def text(self, expected: str, seconds: float = PATIENCE_S) -> str:
        """What the field holds once it is not empty, and if possible what is expected."""
        comes_true(lambda: self.events[-1].get("text") == expected, seconds)
        return str(self.events[-1].get("text", ""))


class PasteScene:
    """A Tk text widget as the target of pastes, and the user's clipboard."""

    def __init__(self, on: Stage, client: Client) -> None:
        self.on, self.tk = on, on.witness(TkWitness)
        self.window_id = on.listed(client, "title", "Calm main")
        picture = on.folder / "picture.png"
        words = ["convert", "-size", "40x30", "xc:red", f"PNG24:{picture}"]
        subprocess.run(words, check=True, timeout=PATIENCE_S)
        # the user's clipboard: data and type; empty data means no clipboard owner
        self.contents = {
            "text": (OLD_TEXT.encode(), "UTF8_STRING"),
            "image": (picture.read_bytes(), "image/png"),
            "empty": (b"", "UTF8_STRING"),
        }

    def reset(self, content: str) -> None:
        """Empty the widget and set the user's clipboard."""
        self.drop_clipboard()
        data, kind = self.contents[content]
        if data:
            copy(self.on.x, data, kind)
        assert self.comes_to_hold(content)
        self.tk.ask(".t delete 1.0 end; focus -force .t; .t mark set insert 1.0")

    def drop_clipboard(self) -> None:
        """Take the selection and clear it, so that the xclip that serves it ends."""
        self.tk.ask(
            "clipboard clear; clipboard append x; update; selection clear -selection CLIPBOARD; update"
        )

    def comes_to_hold(self, content: str) -> bool:
        data, kind = self.contents[content]

        def look() -> bool:
            try:
                return clipboard(self.on.x, kind) == data
            except subprocess.TimeoutExpired:
                return False

        return bool(comes_true(look))

    def text(self) -> str:
        return self.tk.ask(".t get 1.0 end-1c")


def break_pastes(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Type text that needs the clipboard while xclip fails; compare the reply with the widget's text."""
    programs = FaultyPrograms(on.folder)
    client = on.client(**programs.variables)
    scene = PasteScene(on, client)
    for _ in range(trials):
        content, text = rng.choice([*scene.contents]), rng.choice(_TEXTS)
        fault = kind or rng.choice(_FAULTS)
        if fault == "hung" and rng.random() < 0.5:
            fault = "fail"  # a hang takes its whole timeout
        scene.reset(content)
        programs.set("xclip", fault)
        reply = client.call("type_text", window_id=scene.window_id, text=text)
        programs.set("xclip", "none")
        on.tally.count("trials")
        what = f"xclip {fault}, {content} in the clipboard"
        judge_paste(on.tally, what, reply, text, scene.text(), scene.comes_to_hold(content))
    scene.drop_clipboard()


def judge_paste(tally: Tally, what: str, reply: Reply, text: str, got: str, is_back: bool) -> None:
    if tally.has_failed(what, reply):
        return
    outcome = f"reported as {reply.code or 'delivered'}"
    if OLD_TEXT in got:
        columns = "wrong unreported" if reply.is_delivered else "wrong"
        tally.count(columns, f"{what}: the old clipboard was pasted, {outcome}")
    elif reply.is_delivered and got != text:
        tally.count("lost unreported", f"{what}: {text!r} arrived as {got!r}, {outcome}")
    elif not text.startswith(got):
        tally.count("wrong", f"{what}: {text!r} arrived as {got!r}, {outcome}")
    elif reply.is_delivered:
        tally.count("acted")
    elif got == text:
        tally.count("doubted", f"{what}: it arrived whole, {outcome}")
    elif what.startswith("xclip none, text") and not got:
        tally.count("doubted", f"{what}: refused, {outcome}")
    if not is_back and "copy_lost" not in reply.text:
        tally.count("lost", f"{what}: the clipboard was not restored, {outcome}")


_SLOW = ("blocked", "waiting", "blocked twice", "late waiting twice", "blocked listening", "stopped")
_PAUSES_S = (0.02, 0.1, 0.2, 0.5)


def slow_pastes(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Text into a GTK field whose program pauses between the requests of a paste, or is stopped meanwhile."""
    client, field = on.client(), on.witness(SlowField)
    scene = PasteScene(on, client)
    window_id = on.listed(client, "title", "Slow field")
    for _ in range(trials):
        how, pause_s = kind or rng.choice(_SLOW), rng.choice(_PAUSES_S)
        text = "".join(rng.choices("äöüßéè日本", k=rng.choice((3, 3, 30))))
        scene.reset("text")
        field.reset(how, pause_s)
        script, pid = "", field.process.pid
        if how == "stopped":
            script = (
                f"sleep {rng.uniform(0, 0.4):.3f}; kill -STOP {pid}; sleep {4 * pause_s}; kill -CONT {pid}"
            )
        with subprocess.Popen(["sh", "-c", script]):
            reply = client.call("type_text", window_id=window_id, text=text)
        got = field.text(text, 10 * pause_s + 1)
        on.tally.count("trials")
        is_back = clipboard(on.x) == OLD_TEXT.encode()
        judge_paste(on.tally, f"{how} for {pause_s:g} s", reply, text, got, is_back)
    scene.drop_clipboard()


_DEAF = ("deaf", "listening deaf", "asking", "hung", "no ping")


def vain_pastes(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Text into windows that do not paste, or not in time; after that, those that hung may paste late."""
    client, field = on.client(), on.witness(SlowField)
    scene = PasteScene(on, client)
    plain, slow_id = on.field(), on.listed(client, "title", "Slow field")
    for _ in range(trials):
        how = kind or rng.choice(_DEAF)
        scene.reset("text")
        field.reset(how, 0.0)
        window_id = plain.window_id if how == "no ping" else slow_id
        if how == "hung":
            field.process.send_signal(signal.SIGSTOP)
        reply = client.call("type_text", window_id=window_id, text="Zoë")
        field.process.send_signal(signal.SIGCONT)
        got = field.text("Zoë", 2.0 if how == "hung" else 0.5)
        on.tally.count("trials")
        judge_vain(on.tally, how, reply, got, clipboard(on.x) == OLD_TEXT.encode())
    scene.drop_clipboard()


def judge_vain(tally: Tally, what: str, reply: Reply, got: str, is_back: bool) -> None:
    """The user's copy comes back only from the window that surely does not paste; else its loss is told."""
    judge_paste(tally, what, reply, "Zoë", got, is_back)
    if is_back != ("deaf" in what):
        tally.count("wrong", f"{what}: the clipboard is {'' if is_back else 'not '}restored")


def end_pastes(on: Stage, rng: random.Random, trials: int, _kind: Optional[str] = None) -> None:
    """End the command `type` by a signal midway; the clipboard must be restored and no process stay."""
    scene = PasteScene(on, on.client())
    seconds = 0.5
    for _ in range(trials):
        content, number = rng.choice(("text", "image")), rng.choice((signal.SIGTERM, signal.SIGINT))
        scene.reset(content)
        text = "é" * rng.randint(1, 30) + "\n" + "ü" * 10
        began = time.monotonic()
        words = [sys.executable, "-m", "peekaboo_min", "type", str(scene.window_id), text]
        command = subprocess.Popen(
            words, env=on.environment, cwd=on.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            command.wait(rng.uniform(0.1, seconds))
        except subprocess.TimeoutExpired:
            command.send_signal(number)
        try:
            _, errors = command.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            command.kill()
            _, errors = command.communicate()
            on.tally.count("hung", f"{number.name}: the command did not end")
        if command.returncode == 0:
            seconds = time.monotonic() - began
        on.tally.count("trials")
        judge_ended(on.tally, f"{number.name}, {content}", errors, scene.text(), scene.comes_to_hold(content))
    scene.drop_clipboard()


def judge_ended(tally: Tally, what: str, errors: bytes, got: str, is_back: bool) -> None:
    if b"KeyboardInterrupt" in errors:
        tally.note(f"{what}: KeyboardInterrupt while Python starts")
    elif b"Traceback" in errors:
        tally.count("tracebacks", f"{what}: {errors.strip().splitlines()[-1].decode('utf-8', 'replace')}")
    if OLD_TEXT in got:
        tally.count("wrong", f"{what}: the old clipboard was pasted")
    tally.count(*(["acted"] if is_back else ["lost", f"{what}: the clipboard was not restored"]))
