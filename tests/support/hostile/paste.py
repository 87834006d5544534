"""The clipboard's part in typing: faults of xclip, a clipboard that must come back, commands ended midway."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from typing import Optional

from tk_windows import clipboard, copy
from worlds import PATIENCE_S, comes_true

from .faults import FaultyPrograms
from .rpc import Client, Reply
from .stage import Stage, TkWitness
from .tally import Tally

_TEXTS = ("Zoë", "日本語", "a\nÅb\tc", "naïve — café", "😀", "x" * 30 + "é" * 30, "Straße\nzwei")
_FAULTS = ("none", "none", "none", "missing", "hung", "late", "killed", "garbage", "fail", "empty")
OLD_TEXT = "the user's old clipboard — ü"


class PasteScene:
    """A Tk text widget that is pasted into, and the user's clipboard."""

    def __init__(self, on: Stage, client: Client) -> None:
        self.on, self.tk = on, on.witness(TkWitness)
        self.window_id = on.listed(client, "title", "Calm main")
        picture = on.folder / "picture.png"
        words = ["convert", "-size", "40x30", "xc:red", f"PNG24:{picture}"]
        subprocess.run(words, check=True, timeout=PATIENCE_S)
        # what the user has copied: the data and its type; nothing where there is none
        self.contents = {
            "text": (OLD_TEXT.encode(), "UTF8_STRING"),
            "image": (picture.read_bytes(), "image/png"),
            "empty": (b"", "UTF8_STRING"),
        }

    def reset(self, content: str) -> None:
        """An empty widget; the clipboard is a program's of the user, `empty` is nobody's."""
        self.drop_clipboard()
        data, kind = self.contents[content]
        if data:
            copy(self.on.x, data, kind)
        assert self.comes_to_hold(content)
        self.tk.ask(".t delete 1.0 end; focus -force .t; .t mark set insert 1.0")

    def drop_clipboard(self) -> None:
        """The xclip that serves it ends when another takes the selection."""
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
    """Text that needs the clipboard, while xclip fails in all ways; what the widget holds decides."""
    programs = FaultyPrograms(on.folder)
    client = on.client(**programs.variables)
    scene = PasteScene(on, client)
    for _ in range(trials):
        content, text = rng.choice([*scene.contents]), rng.choice(_TEXTS)
        fault = kind or rng.choice(_FAULTS)
        if fault == "hung" and rng.random() < 0.5:
            fault = "fail"  # each of those costs its timeout
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
    said = f"reported as {reply.code or 'delivered'}"
    if OLD_TEXT in got:
        columns = "wrong unreported" if reply.is_delivered else "wrong"
        tally.count(columns, f"{what}: the old clipboard was pasted, {said}")
    elif reply.is_delivered and got != text:
        tally.count("lost unreported", f"{what}: {text!r} arrived as {got!r}, {said}")
    elif not text.startswith(got):
        tally.count("wrong", f"{what}: {text!r} arrived as {got!r}, {said}")
    elif reply.is_delivered:
        tally.count("acted")
    elif got == text:
        tally.count("doubted", f"{what}: it arrived whole, {said}")
    elif what.startswith("xclip none, text") and not got:
        tally.count("doubted", f"{what}: refused, {said}")
    if not is_back:
        tally.count("lost", f"{what}: the clipboard does not hold it any more, {said}")


def end_pastes(on: Stage, rng: random.Random, trials: int, _kind: Optional[str] = None) -> None:
    """The shell's `type`, ended by a signal in the middle: the clipboard is as it was; nothing runs on."""
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
        tally.note(f"{what}: KeyboardInterrupt, while Python itself starts")
    elif b"Traceback" in errors:
        tally.count("tracebacks", f"{what}: {errors.strip().splitlines()[-1].decode('utf-8', 'replace')}")
    if OLD_TEXT in got:
        tally.count("wrong", f"{what}: the old clipboard was pasted")
    tally.count(*(["acted"] if is_back else ["lost", f"{what}: what was in the clipboard is lost"]))
