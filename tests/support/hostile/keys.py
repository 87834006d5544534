"""Typing under attack: a stolen focus, the stop file, a cancelled call; and many clients."""

from __future__ import annotations

import random
import re
import string
import subprocess
import time
from typing import Optional

from worlds import PATIENCE_S, comes_true

from .rpc import Reply
from .stage import Event, Field, Stage, XWitness
from .tally import Tally

PIECE = 20
_ATTACKS = ("steal", "steal by a new window", "stop", "cancel", "nothing")
_LETTERS = string.ascii_lowercase + string.digits


def text_of(keys: list[Event]) -> str:
    return "".join(key["text"] for key in keys)


def steal_focus(on: Stage, rng: random.Random, trials: int, attack: Optional[str] = None) -> None:
    """A window that is typed into, and a thief, each a client of its own."""
    stop_file = on.folder / "STOP-TRIAL"
    typing = on.field(PEEKABOO_STOP_FILE=str(stop_file))
    thief = on.witness(XWitness)
    thief.open("thief", x=500, y=100, w=300, h=200, app="Thief")

    def reset() -> None:
        stop_file.unlink(missing_ok=True)
        thief.do("forget")
        thief.do("close", "new")
        thief.take("key")
        typing.witness.do("raise", "field")
        typing.witness.do("focus", "field")
        typing.witness.take("key")

    def one_text(attack: str) -> None:
        text = "".join(rng.choices(_LETTERS, k=rng.randint(40, 160)))
        after = rng.uniform(0, len(text) * seconds_per_character)
        if attack == "steal":
            thief.do("focus", "thief", after)
        elif attack == "steal by a new window":
            thief.do("open", "new", after, x=600, y=300, w=200, h=150, app="Thief", takes_focus=True)
        number, struck = typing.type(text), 0.0
        if attack in ("stop", "cancel") and not comes_true(lambda: number in typing.client.arrived(), after):
            if attack == "stop":
                stop_file.touch()
            else:
                cancelled = {"requestId": number, "reason": "trial"}
                typing.client.send("notifications/cancelled", cancelled, is_request=False)
            typing.witness.sync()  # what was sent before may have waited for the witness
            struck = time.monotonic()
        if struck and attack == "cancel":
            # a cancelled call is not answered; the next act waits for the running piece, which still arrives
            typing.client.call("focus_window", window_id=typing.window_id)
            reply = Reply("CANCELLED")
        else:
            reply = typing.client.reply(number)
        on.tally.count("trials")
        if typing.witness.sync():
            on.tally.count("leaked", f"{attack}: a key stays pressed, after {reply.code or 'delivered'}")
            # what is held would be missing in the next text, and repeat until then
            subprocess.run(["xdotool", "keyup", *_LETTERS], env=on.x, timeout=PATIENCE_S, check=False)
        arrived, stolen = typing.witness.take_characters(), thief.take_characters()
        late = [key for key in arrived if struck and key["at"] > struck]
        judge_typing(on.tally, attack, text, reply, text_of(arrived), len(stolen), len(late))

    seconds_per_character = 0.01
    for _ in range(2):  # how long typing takes on this machine
        reset()
        start = time.monotonic()
        typing.client.reply(typing.type("abcdef" * 10))
        seconds_per_character = (time.monotonic() - start) / 60
    for _ in range(trials):
        reset()
        one_text(attack or rng.choice(_ATTACKS))


def judge_typing(
    tally: Tally, attack: str, text: str, reply: Reply, got: str, stolen: int = 0, late: int = 0
) -> None:
    """At most one piece to a thief, or after a stop; never reported as delivered; with the true count."""
    if tally.has_failed(f"type, {attack}", reply):
        return
    said = f"reported as {reply.code or 'delivered'}"
    unreported = "unreported" if reply.is_delivered else ""
    if stolen:
        is_too_much = stolen > PIECE
        size = "more than a piece" if is_too_much else "at most a piece"
        columns = f"{'wrong' if is_too_much else ''} {unreported}"
        tally.count(columns, f"{attack}: {size} went to the thief, {said}")
    if late > PIECE:
        tally.count(f"wrong {unreported}", f"{attack}: more than a piece came after it, {said}")
    if not stolen:
        if got != text and (reply.is_delivered or not text.startswith(got)):
            tally.count("lost", f"{attack}: {text!r} arrived as {got!r}, {said}")
        elif got == text and reply.is_delivered:
            tally.count("acted")
        elif got == text and attack == "nothing":
            tally.count("doubted")
    if reply.code == "FOCUS_LOST":
        # it says how many characters surely went to the window, and how many may have gone elsewhere
        sure = re.search(r"(\d+) character\(s\) went out", reply.text)
        more = re.search(r"(?:next|last) (\d+)", reply.text)
        least = int(sure[1]) if sure else 0
        most = least + (int(more[1]) if more else 0)
        if len(got) < least or not least <= len(got) + stolen <= most:
            tally.count("wrong", f"{attack}: {len(got)} arrived, {stolen} stolen, but {reply.text[:150]}")


def crowd(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """So many servers, one display: nothing mixed or lost; after a kill -9 at most a piece, before others."""
    typists = [on.field(number) for number in range(int(kind or 8))]
    for _ in range(0, trials, len(typists)):
        _one_round(on, typists, rng)


def _one_round(on: Stage, typists: list[Field], rng: random.Random) -> None:
    texts = ["".join(rng.choices(_LETTERS, k=rng.randint(15, 70))) for _ in typists]
    numbers = [one.type(text) for one, text in zip(typists, texts)]
    victim, killed_at = -1, 0.0
    if rng.random() < 0.5:

        def who_types() -> list[int]:
            return [
                n for n, one in enumerate(typists) if any(e["event"] == "key" for e in one.witness.events)
            ]

        victim = (comes_true(who_types) or [-1])[-1]
        typists[victim].client.process.kill()  # in the middle of its typing
        killed_at = time.monotonic()
    replies = [
        one.client.reply(number) if n != victim else Reply("KILLED")
        for n, (one, number) in enumerate(zip(typists, numbers))
    ]
    keys = [one.witness.take_characters() for one in typists]
    late = [[key["at"] for key in found if killed_at and key["at"] > killed_at] for found in keys]
    for n, reply in enumerate(replies):
        on.tally.count("trials")
        if n == victim:
            others = [at for m, found in enumerate(late) if m != n for at in found]
            judge_killed(on.tally, texts[n], text_of(keys[n]), late[n], others)
        else:
            judge_typist(on.tally, texts[n], text_of(keys[n]), reply)
    if victim >= 0:
        typists[victim] = typists[victim]._replace(client=on.client())


def judge_killed(tally: Tally, text: str, got: str, late: list[float], others: list[float]) -> None:
    """late: when keys came to it after the kill; others: when they came to the others."""
    if len(late) > PIECE:
        tally.count("wrong", "more than a piece arrived after the kill")
    if late and others and min(others) < late[-1]:
        tally.count("wrong", "somebody else acted while the killed server's child still typed")
    if not text.startswith(got):
        tally.count("wrong", f"mixed: a killed server's window got {got!r} of {text!r}")


def judge_typist(tally: Tally, text: str, got: str, reply: Reply) -> None:
    if tally.has_failed("type in a crowd", reply):
        return
    said = f"{text!r} arrived as {got!r}, reported as {reply.code or 'delivered'}"
    if reply.code:
        columns = "doubted" if got == text else "wrong" if not text.startswith(got) else ""
        tally.count(columns, f"refused: {reply.code}{' with characters' if got else ''}")
    elif got == text:
        tally.count("acted")
    elif sorted(got) != sorted(text) and len(got) >= len(text):
        tally.count("wrong unreported", said)
    else:
        tally.count("lost", said)
