"""Typing by paste: faults of xclip, slow and deaf programs, commands that are ended midway."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext

from faults import BreakablePrograms
from mcp_server import Client, Reply
from stage import Stage, TkForm, meanwhile
from tally import Tally
from tk_windows import clipboard, copy
from witness import SlowField
from worlds import PATIENCE_S, comes_true

_TEXTS = ("Zoë", "日本語", "a\nÅb\tc", "naïve — café", "😀", "x" * 30 + "é" * 30, "Straße\nzwei")
_FAULTS = ("none", "none", "none", "missing", "hung", "late", "killed", "garbage", "fail", "empty")
_CONTENTS = ("text", "image", "empty")
OLD_TEXT = "the user's old clipboard — ü"


class PasteScene:
    """A Tk text widget as the target of pastes, and the user's clipboard."""

    def __init__(self, on: Stage, client: Client) -> None:
        self.on, self.tk = on, on.witness(TkForm)
        self.window_id = on.listed(client, "title", "Calm main")
        picture = on.folder / "picture.png"
        on.run("convert", "-size", "40x30", "xc:red", f"PNG24:{picture}")
        # the user's clipboard: data and type; empty data means no clipboard owner
        self._contents = {
            "text": (OLD_TEXT.encode(), "UTF8_STRING"),
            "image": (picture.read_bytes(), "image/png"),
            "empty": (b"", "UTF8_STRING"),
        }

    def reset(self, content: str) -> None:
        """Empty the widget and set the user's clipboard."""
        self.clear_clipboard()
        data, kind = self._contents[content]
        if data:
            copy(self.on.x, data, kind)
        assert self.is_restored(content)
        self.tk.ask(".t delete 1.0 end; focus -force .t; .t mark set insert 1.0")

    def clear_clipboard(self) -> None:
        """Take the selection and clear it, so that the xclip that serves it ends."""
        take = "clipboard clear; clipboard append x; update"
        self.tk.ask(f"{take}; selection clear -selection CLIPBOARD; update")

    def is_restored(self, content: str) -> bool:
        """Wait until the clipboard has its old content."""
        data, kind = self._contents[content]
        return comes_true(lambda: clipboard(self.on.x, kind) == data, 20)

    def text(self) -> str:
        return self.tk.ask(".t get 1.0 end-1c")


def break_pastes(on: Stage) -> None:
    """Type text that needs the clipboard while xclip fails; compare the reply with the widget's text."""
    programs = BreakablePrograms(on.folder)
    client = on.client(**programs.variables)
    scene = PasteScene(on, client)
    for fault in on.trials(_FAULTS):
        content, text = on.rng.choice(_CONTENTS), on.rng.choice(_TEXTS)
        scene.reset(content)
        with programs.broken("xclip", fault):
            reply = client.call("type_text", window_id=scene.window_id, text=text)
        what = f"xclip {fault}, {content} in the clipboard"
        judge_paste(on.tally, what, reply, text, scene.text(), scene.is_restored(content))
    scene.clear_clipboard()


def judge_paste(tally: Tally, what: str, reply: Reply, text: str, got: str, is_restored: bool) -> None:
    elsewhere = "" if text.startswith(got) else f"{text!r} arrived as {got!r}"
    tally.judge(what, reply, got == text, elsewhere)
    if not is_restored and "copy_lost" not in reply.text:
        tally.count("lost", f"{what}: the clipboard was not restored, after {reply.code or 'delivered'}")


SLOW = ("blocked", "waiting", "blocked twice", "late waiting twice", "blocked listening", "stopped")
DEAF = ("deaf", "listening deaf", "asking", "hung")
_PAUSES_S = (0.02, 0.1, 0.2, 0.5)


def slow_pastes(on: Stage, kinds: Sequence[str] = SLOW) -> None:
    """Paste into a GTK field that is slow, stopped or deaf; see slow_gtk.py."""
    client, field = on.client(), on.witness(SlowField)
    scene = PasteScene(on, client)
    window_id = on.listed(client, "title", "Slow field")

    def stop(seconds: float) -> None:
        field.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        field.process.send_signal(signal.SIGCONT)

    for how in on.trials(kinds):
        pause_s = on.rng.choice(_PAUSES_S)
        text = "".join(on.rng.choices("äöüßéè日本", k=on.rng.choice((3, 3, 30))))
        scene.reset("text")
        field.reset(how, pause_s)
        stopping = meanwhile(on.rng.uniform(0, 0.4), stop, 4 * pause_s)
        if how == "hung":
            field.process.send_signal(signal.SIGSTOP)
        with stopping if how == "stopped" else nullcontext():
            reply = client.call("type_text", window_id=window_id, text=text)
        field.process.send_signal(signal.SIGCONT)
        got = field.text(text, 10 * pause_s + 1)
        is_restored = clipboard(on.x) == OLD_TEXT.encode()
        judge_paste(on.tally, f"{how} for {pause_s:g} s", reply, text, got, is_restored)
        # a field that may paste late must not paste the user's clipboard
        if kinds is DEAF and is_restored != ("deaf" in how):
            on.tally.count("wrong", f"{how}: the clipboard is {'' if is_restored else 'not '}restored")
    scene.clear_clipboard()


def end_pastes(on: Stage) -> None:
    """End the command `type` by a signal midway; the clipboard must be restored and no process stay."""
    scene = PasteScene(on, on.client())
    longest_s = 0.5
    for name in on.trials(("SIGTERM", "SIGINT")):
        content = on.rng.choice(_CONTENTS[:2])
        scene.reset(content)
        text = "é" * on.rng.randint(1, 30) + "\n" + "ü" * 10
        argv = [sys.executable, "-m", "peekaboo_min", "type", str(scene.window_id), text]
        began, quiet = time.monotonic(), subprocess.DEVNULL
        command = subprocess.Popen(
            argv, env=on.environment, stdin=quiet, stdout=quiet, stderr=subprocess.PIPE
        )
        with meanwhile(on.rng.uniform(0.1, longest_s), command.send_signal, signal.Signals[name]):
            errors = command.communicate(timeout=PATIENCE_S)[1]
        if command.returncode == 0:
            longest_s = time.monotonic() - began
        if b"Traceback" in errors and b"KeyboardInterrupt" not in errors:  # the latter while Python starts
            on.tally.count("tracebacks", f"{name}: {errors.splitlines()[-1].decode('utf-8', 'replace')}")
        if OLD_TEXT in scene.text():
            on.tally.count("wrong", f"{name}: the old clipboard was pasted")
        is_restored = scene.is_restored(content)
        on.tally.count(*(["acted"] if is_restored else ["lost", f"{name}: the {content} was not restored"]))
    scene.clear_clipboard()
