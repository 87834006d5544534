"""Typing under attack: a stolen focus, the stop file, lost keys, a slow display; and many clients."""

from __future__ import annotations

import random
import re
import string
import subprocess
import time
from typing import Optional

from worlds import PATIENCE_S, comes_true, wait_for

from .rpc import Reply
from .slow import SlowDisplay
from .stage import Event, Field, Stage, XWitness
from .tally import Tally

PIECE = 20
_ATTACKS = ("steal", "steal by a new window", "stop", "cancel", "nothing")
_LETTERS = string.ascii_lowercase + string.digits
_CONTROLS = {"slow keys": 2, "bounce keys": 4}  # bits of the XKB extension
LOSSES = (*_CONTROLS, "a window without keys", "a window without focus", "a hotkey", "a new manager")
_SLOW_TEXT = "THE QUICK BROWN fox JUMPS OVER THE lazy DOG, 57 OF THEM!!"  # a capital takes ten round trips


def text_of(keys: list[Event]) -> str:
    return "".join(key["text"] for key in keys)


def steal_focus(on: Stage, rng: random.Random, trials: int, attack: Optional[str] = None) -> None:
    """Type into a window while another client steals the focus, or the call is stopped or cancelled."""
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
            typing.witness.sync()  # earlier keys may still wait to be read
            struck = time.monotonic()
        if struck and attack == "cancel":
            # a cancelled call gets no answer; the next act waits until the running piece has arrived
            typing.client.call("focus_window", window_id=typing.window_id)
            reply = Reply("CANCELLED")
        else:
            reply = typing.client.reply(number)
        on.tally.count("trials")
        if typing.witness.sync():
            on.tally.count("leaked", f"{attack}: a key stays pressed, after {reply.code or 'delivered'}")
            # a held key would repeat, and be missing in the next text
            subprocess.run(["xdotool", "keyup", *_LETTERS], env=on.x, timeout=PATIENCE_S, check=False)
        arrived, stolen = typing.witness.take_characters(), thief.take_characters()
        late = [key for key in arrived if struck and key["at"] > struck]
        judge_typing(on.tally, attack, text, reply, text_of(arrived), len(stolen), len(late))

    seconds_per_character = 0.01
    for _ in range(2):  # measure the typing speed of this machine
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
    """Check that a thief gets at most one piece, and that the reply reports it with the right count."""
    if tally.has_failed(f"type, {attack}", reply):
        return
    outcome = f"reported as {reply.code or 'delivered'}"
    unreported = "unreported" if reply.is_delivered else ""
    if stolen:
        is_too_much = stolen > PIECE
        size = "more than a piece" if is_too_much else "at most a piece"
        columns = f"{'wrong' if is_too_much else ''} {unreported}"
        tally.count(columns, f"{attack}: {size} went to the thief, {outcome}")
    if late > PIECE:
        tally.count(f"wrong {unreported}", f"{attack}: more than a piece came after it, {outcome}")
    if not stolen:
        if got != text and (reply.is_delivered or not text.startswith(got)):
            tally.count("lost", f"{attack}: {text!r} arrived as {got!r}, {outcome}")
        elif got == text and reply.is_delivered:
            tally.count("acted")
        elif got == text and attack == "nothing":
            tally.count("doubted")
    judge_count(tally, attack, reply, got)


def judge_count(tally: Tally, what: str, reply: Reply, got: str) -> None:
    """Compare the number of delivered characters in an error with the characters that arrived."""
    reported = re.search(r"delivered (at least )?(\d+) of \d+ characters", reply.text)
    if not reported:
        if reply.code in ("FOCUS_LOST", "TIMEOUT"):
            tally.count("wrong", f"{what}: {reply.code} without a count")
    elif int(reported[2]) > len(got) or (not reported[1] and int(reported[2]) < len(got)):
        tally.count("wrong", f"{what}: {len(got)} arrived, but {reply.text[:150]}")


def lose_keys(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Keys that the window does not get, though it has the focus: one of LOSSES."""
    client, witness, hotkeys = on.client(), on.witness(XWitness), on.witness(XWitness)

    def one_loss(what: str) -> None:
        place = {"x": 100, "y": 100, "w": 300, "h": 200, "app": "Field"}
        takes = {
            "takes_keys": what != "a window without keys",
            "input_hint": what != "a window without focus",
        }
        window_id = witness.open("field", **place, **takes)

        def is_listed() -> bool:
            witness.do("raise", "field")  # openbox sleeps after a restart until a window asks for something
            windows = client.call("list_windows").data.get("windows", [])
            return any(window["window_id"] == window_id for window in windows)

        wait_for(is_listed, "the window is listed")
        witness.do("focus", "field")
        witness.take("key")
        text = "".join(rng.choices("aab", k=rng.randint(1, 60)))
        if what in _CONTROLS:
            witness.do("controls", affected=_CONTROLS[what], on=_CONTROLS[what])
        elif what == "a hotkey":
            hotkeys.do("grab", keysym=ord("b"))
            hotkeys.sync()
        number = client.start_call("type_text", window_id=window_id, text=text)
        if what == "a new manager":
            time.sleep(rng.uniform(0, 0.6))
            subprocess.run(["openbox", "--restart"], env=on.x, timeout=PATIENCE_S, check=True)
        reply = client.reply(number)
        witness.do("controls", affected=sum(_CONTROLS.values()), on=0)
        hotkeys.do("release")
        hotkeys.sync()
        judge_loss(on.tally, what, text, reply, text_of(witness.take_characters()))
        witness.do("close", "field")

    for _ in range(trials):
        one_loss(kind or rng.choice(LOSSES))
        on.tally.count("trials")


def judge_loss(tally: Tally, what: str, text: str, reply: Reply, got: str) -> None:
    if tally.has_failed(what, reply):
        return
    tally.judge(what, reply, got == text)
    if reply.code:
        judge_count(tally, what, reply, got)
    elif reply.data.get("delivered") is False and got:
        tally.count("wrong", f"{what}: {got!r} arrived, reported as nothing")
    if "others_typed" in reply.data:
        tally.count("wrong", f"{what}: reported as keys of somebody else")


def type_slowly(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """57 characters on a display that answers after 10 to 60 ms. kind: the milliseconds."""
    with SlowDisplay(on.x["DISPLAY"], 0.0) as slow:
        field = on.field(DISPLAY=slow.name)
        for _ in range(trials):
            slow.round_trip_s = float(kind or rng.randint(10, 60)) / 1000
            field.witness.do("focus", "field")
            field.witness.take("key")
            reply = field.client.reply(field.type(_SLOW_TEXT))
            on.tally.count("trials")
            got, what = text_of(field.witness.take_characters()), f"{slow.round_trip_s * 1000:.0f} ms"
            judge_loss(on.tally, what, _SLOW_TEXT, reply, got)
        slow.round_trip_s = 0.0


def crowd(
    on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None, own_folders: bool = False
) -> None:
    """Type from several servers on one display; a killed server may finish one piece before the others type.

    kind: the number of servers. own_folders: each has its own home, state folder and temporary folder.
    """
    typists = []
    for number in range(int(kind or 8)):
        folder = on.folder / f"typist{number}"
        folder.mkdir()
        names = ("HOME", "XDG_STATE_HOME", "TMPDIR") if own_folders else ()
        typists.append(on.field(number, **dict.fromkeys(names, str(folder))))
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
        typists[victim].client.process.kill()  # while it types
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
    """Check a killed server. late, others: times of keys after the kill, in its window and in the others."""
    if len(late) > PIECE:
        tally.count("wrong", "more than a piece arrived after the kill")
    if late and others and min(others) < late[-1]:
        tally.count("wrong", "another server acted while the killed server's child still typed")
    if not text.startswith(got):
        tally.count("wrong", f"mixed: a killed server's window got {got!r} of {text!r}")


def judge_typist(tally: Tally, text: str, got: str, reply: Reply) -> None:
    if tally.has_failed("type in a crowd", reply):
        return
    outcome = f"{text!r} arrived as {got!r}, reported as {reply.code or 'delivered'}"
    if reply.code:
        columns = "doubted" if got == text else "wrong" if not text.startswith(got) else ""
        tally.count(columns, f"refused: {reply.code}{' with characters' if got else ''}")
    elif got == text:
        tally.count("acted")
    elif sorted(got) != sorted(text) and len(got) >= len(text):
        tally.count("wrong unreported", outcome)
    else:
        tally.count("lost", outcome)
