"""The clipboard's part in typing: faults of xclip, a clipboard that must come back, commands ended midway."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import Any, Optional

from worlds import PATIENCE_S, comes_true, wait_for

from .programs import FaultyPrograms
from .rpc import Reply
from .stage import Stage, TkWitness, count_failure, stage
from .tally import Tally

_TEXTS = ("Zoë", "日本語", "a\nÅb\tc", "naïve — café", "😀", "x" * 30 + "é" * 30, "Straße\nzwei")
_FAULTS = ("none", "none", "none", "missing", "hung", "late", "killed", "garbage", "fail", "empty")
_OLD_TEXT = "the user's old clipboard — ü"
_CONTENTS = ("text", "image", "empty")


class PasteScene:
    """A Tk text widget that is pasted into, and the user's clipboard."""

    def __init__(self, on: Stage, tk: TkWitness, window_id: int) -> None:
        self.on, self.tk, self.window_id = on, tk, window_id
        self.picture = on.folder / "picture.png"
        subprocess.run(
            ["convert", "-size", "40x30", "xc:red", f"PNG24:{self.picture}"], check=True, timeout=PATIENCE_S
        )
        self.x = {**os.environ, "DISPLAY": on.display}
        self.owner: Optional[subprocess.Popen[bytes]] = None

    def own_clipboard(self, content: str) -> None:
        """Give the clipboard to a program of the user's; `empty` leaves it to nobody."""
        self.drop_clipboard()
        words = ["xclip", "-quiet", "-selection", "clipboard", "-i"]
        if content == "image":
            words += ["-t", "image/png", str(self.picture)]
        if content != "empty":
            self.owner = subprocess.Popen(
                words, env=self.x, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if content == "text":
                self.owner.stdin.write(_OLD_TEXT.encode())  # type: ignore[union-attr]
            self.owner.stdin.close()  # type: ignore[union-attr]
        self.comes_to_hold(content)

    def drop_clipboard(self) -> None:
        if self.owner:
            self.owner.kill()
            self.owner.wait()
            self.owner = None
        # a daemon that put it back lives on: taking the selection and leaving ends it
        self.tk.ask(
            "clipboard clear; clipboard append x; update; selection clear -selection CLIPBOARD; update"
        )

    def holds(self, content: str) -> bool:
        kind = "image/png" if content == "image" else "UTF8_STRING"
        try:
            held = subprocess.run(
                ["xclip", "-selection", "clipboard", "-o", "-t", kind],
                env=self.x, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        if content == "empty":
            return held.returncode != 0 or not held.stdout
        wanted = self.picture.read_bytes() if content == "image" else _OLD_TEXT.encode()
        return held.returncode == 0 and held.stdout == wanted

    def comes_to_hold(self, content: str) -> bool:
        return comes_true(lambda: self.holds(content))

    def clear(self) -> None:
        self.tk.ask(".t delete 1.0 end; focus -force .t; .t mark set insert 1.0")

    def text(self) -> str:
        return self.tk.ask(".t get 1.0 end-1c")


def open_paste_scene(on: Stage, client: Any) -> PasteScene:
    tk = on.tk_witness()

    def find() -> list[int]:
        windows = client.call("list_windows").data.get("windows", [])
        return [one["window_id"] for one in windows if one["title"] == "Calm main"]

    return PasteScene(on, tk, wait_for(find, "the Tk window is listed")[0])


def break_pastes(rng: random.Random, trials: int, fault: Optional[str] = None) -> Tally:
    """Text that needs the clipboard, while xclip fails in all ways; what the widget holds decides."""
    tally = Tally("paste")
    start = time.monotonic()
    with stage() as on:
        programs = FaultyPrograms(on.folder / "bin", ["xclip"])
        client = on.client(**programs.variables)
        scene = open_paste_scene(on, client)
        for _ in range(trials):
            content, text = rng.choice(_CONTENTS), rng.choice(_TEXTS)
            which = fault or rng.choice(_FAULTS)
            if which == "hung" and rng.random() < 0.5:
                which = "fail"  # each of those costs its timeout
            scene.own_clipboard(content)
            scene.clear()
            programs.set("xclip", which)
            reply = client.call("type_text", window_id=scene.window_id, text=text)
            programs.set("xclip", "none")
            tally.trials += 1
            _judge_paste(tally, f"xclip {which}, {content} in the clipboard", reply, scene, content, text)
        scene.drop_clipboard()
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _judge_paste(tally: Tally, what: str, reply: Reply, scene: PasteScene, content: str, text: str) -> None:
    if count_failure(tally, reply, what):
        return
    got = scene.text()
    said = reply.code or "delivered"
    if _OLD_TEXT in got:
        tally.wrong += 1
        tally.unreported += reply.is_delivered
        tally.note(f"{what}: the old clipboard was pasted, reported as {said}")
    elif reply.is_delivered and got != text:
        tally.lost += 1
        tally.unreported += 1
        tally.note(f"{what}: {text!r} arrived as {got!r}, reported as {said}")
    elif not text.startswith(got):
        tally.wrong += 1
        tally.note(f"{what}: {text!r} arrived as {got!r}, reported as {said}")
    elif got == text:
        tally.acted += reply.is_delivered
        tally.doubted += not reply.is_delivered
        if not reply.is_delivered:
            tally.note(f"{what}: it arrived whole, reported as {said}")
    elif what.startswith("xclip none") and reply.code and not got and content == "text":
        tally.doubted += 1
        tally.note(f"{what}: refused as {said}")
    if not scene.comes_to_hold(content):
        tally.lost += 1
        tally.note(f"{what}: the clipboard does not hold it any more, after {said}")


def end_pastes(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    """The shell's `type`, ended by a signal in the middle: the clipboard is as it was; nothing runs on."""
    tally = Tally("paste ended by a signal")
    start = time.monotonic()
    with stage() as on:
        scene = open_paste_scene(on, on.client())
        seconds = 0.5
        for _ in range(trials):
            content = rng.choice(("text", "image"))
            number = rng.choice((signal.SIGTERM, signal.SIGINT))
            scene.own_clipboard(content)
            scene.clear()
            text = "é" * rng.randint(1, 30) + "\n" + "ü" * 10
            command = subprocess.Popen(
                on.shell_words("type", scene.window_id, text), env=on.environment, cwd=on.folder,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
            began = time.monotonic()
            try:
                command.wait(rng.uniform(0.1, seconds))
            except subprocess.TimeoutExpired:
                command.send_signal(number)
            try:
                _, errors = command.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                command.kill()
                _, errors = command.communicate()
                tally.hung += 1
                tally.note(f"{number.name}: the command did not end")
            if command.returncode == 0:
                seconds = time.monotonic() - began
            tally.trials += 1
            _judge_ended(tally, number.name, content, errors, scene)
        scene.drop_clipboard()
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _judge_ended(tally: Tally, name: str, content: str, errors: bytes, scene: PasteScene) -> None:
    if b"KeyboardInterrupt" in errors:
        tally.note(f"{name}: KeyboardInterrupt, while Python itself starts")
    elif b"Traceback" in errors:
        tally.tracebacks += 1
        tally.note(f"{name}: {errors.strip().splitlines()[-1].decode('utf-8', 'replace')}")
    if _OLD_TEXT in scene.text():
        tally.wrong += 1
        tally.note(f"{name}: the old clipboard was pasted")
    if scene.comes_to_hold(content):
        tally.acted += 1
    else:
        tally.lost += 1
        tally.note(f"{name}: the {content} in the clipboard is lost")
