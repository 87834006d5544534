"""Typing under attack: a stolen focus, the stop file, lost keys, a slow display, other clients that type."""

from __future__ import annotations

import string
import time
from contextlib import closing, nullcontext

from mcp_server import Reply
from slow_display import SlowDisplay
from stage import Field, Stage, meanwhile
from tally import NO_ANSWER
from witness import Event, XWitness
from worlds import wait_for

PIECE = 20  # characters that are sent between two checks
ATTACKS = ("steal", "steal by a new window", "stop", "cancel", "nothing")
_LETTERS = string.ascii_lowercase + string.digits
_CONTROLS = {"slow keys": 2, "bounce keys": 4}  # bits of the XKB extension
LOSSES = (*_CONTROLS, "a window without keys", "a window without focus", "a hotkey", "a new manager")
_SLOW_TEXT = "THE QUICK BROWN fox JUMPS OVER THE lazy DOG, 57 OF THEM!!"  # a capital takes ten round trips


def text_of(keys: list[Event]) -> str:
    return "".join(key["text"] for key in keys)


def steal_focus(on: Stage) -> None:
    """Type into a window while another client steals the focus, or the call is stopped or cancelled."""
    stop_file = on.folder / "STOP-STRESS"
    typing = on.field(PEEKABOO_STOP_FILE=str(stop_file))
    thief = on.witness(XWitness)
    thief.open("thief", x=500, y=100, w=300, h=200, app="Thief")

    def reset() -> None:
        stop_file.unlink(missing_ok=True)
        thief.do("close", "new")
        thief.take("key")
        typing.clear()

    def strike(attack: str, number: int) -> None:
        if attack == "steal":
            thief.do("focus", "thief")
        elif attack == "steal by a new window":
            thief.do("open", "new", x=600, y=300, w=200, h=150, app="Thief")
        elif attack == "stop":
            stop_file.touch()
        elif attack == "cancel":
            typing.client.send("notifications/cancelled", {"requestId": number}, is_request=False)
        typing.witness.sync()  # earlier keys may still wait to be read
        struck.append(time.monotonic())

    struck: list[float] = []
    reset()
    start = time.monotonic()
    typing.client.reply(typing.type("abcdef" * 10))
    seconds_per_character = (time.monotonic() - start) / 60  # on this machine
    for attack in on.trials(ATTACKS):
        reset()
        struck.clear()
        text = "".join(on.rng.choices(_LETTERS, k=on.rng.randint(40, 160)))
        after_s = on.rng.uniform(0, len(text) * seconds_per_character)
        number = typing.type(text)
        if attack == "cancel":
            time.sleep(after_s)
            strike(attack, number)
            # a cancelled call gets no answer; the next act waits until the running piece has arrived
            typing.client.call("focus_window", window_id=typing.window_id)
            reply = typing.client.reply(number, 0.1)
            reply = Reply("CANCELLED") if reply.code == NO_ANSWER else reply
        else:
            with meanwhile(after_s, strike, attack, number):
                reply = typing.client.reply(number)
        on.count_held(attack, typing.witness, reply)
        arrived, stolen = typing.witness.take_characters(), thief.take_characters()
        is_ended = struck and attack in ("stop", "cancel")
        late = [key for key in arrived if is_ended and key["at"] > struck[0]]
        elsewhere = ""
        if len(stolen) > PIECE or (stolen and reply.is_delivered):
            elsewhere = f"{len(stolen)} characters went to the thief"
        elif len(late) > PIECE:
            elsewhere = "more than a piece came after it"
        on.tally.judge_text(attack, reply, text, text_of(arrived), elsewhere)


def lose_keys(on: Stage) -> None:
    """Keys that the window does not get, though it has the focus: one of LOSSES."""
    client, witness = on.client(), on.witness(XWitness)
    for what in on.trials(LOSSES):
        window_id = witness.open(
            "field", x=100, y=100, w=300, h=200, app="Field",
            takes_keys=what != "a window without keys", input_hint=what != "a window without focus",
        )  # fmt: skip
        # openbox sleeps after a restart until a window asks for something
        with meanwhile(1, witness.do, "raise", "field"):
            on.listed(client, "window_id", window_id)
        witness.do("focus", "field")
        witness.take("key")
        text = "".join(on.rng.choices("aab", k=on.rng.randint(1, 60)))
        bits = _CONTROLS.get(what, 0)
        witness.do("controls", affected=bits, on=bits)
        witness.sync()
        restart = meanwhile(on.rng.uniform(0, 0.6), on.run, "openbox", "--restart")
        with restart if what == "a new manager" else nullcontext(), closing(XWitness(on.x)) as hotkeys:
            hotkeys.do("grab", keysym=ord("b" if what == "a hotkey" else "x"))
            hotkeys.sync()
            reply = client.call("type_text", window_id=window_id, text=text)
        witness.do("controls", affected=sum(_CONTROLS.values()), on=0)
        on.tally.judge_text(what, reply, text, text_of(witness.take_characters()))
        if "others_typed" in reply.data:
            on.tally.count("wrong", f"{what}: reported as another person's keys")
        witness.do("close", "field")


def type_slowly(on: Stage) -> None:
    """Type 57 characters on a display that answers after this many milliseconds."""
    with SlowDisplay(on.x["DISPLAY"], 0.0) as slow:
        field = on.field(DISPLAY=slow.name)
        for milliseconds in on.trials([str(number) for number in range(10, 61)]):
            slow.round_trip_s = int(milliseconds) / 1000
            field.clear()
            reply = field.client.reply(field.type(_SLOW_TEXT))
            got = text_of(field.witness.take_characters())
            on.tally.judge_text(f"{milliseconds} ms", reply, _SLOW_TEXT, got)
        slow.round_trip_s = 0.0


def crowd(on: Stage, has_own_folders: bool = False) -> None:
    """Type from several servers on one display; now and then, one is killed while it types.

    has_own_folders: each server has its own home, state folder and temporary folder.
    """
    typists: list[Field] = []
    for number in range(8):
        folder = on.folder / f"typist{number}"
        folder.mkdir()
        names = ("HOME", "XDG_STATE_HOME", "TMPDIR") if has_own_folders else ()
        typists.append(on.field(number, **dict.fromkeys(names, str(folder))))
    for kind in on.trials(("all type", "one is killed")):
        texts = ["".join(on.rng.choices(_LETTERS, k=on.rng.randint(15, 70))) for _ in typists]
        numbers = [one.type(text) for one, text in zip(typists, texts)]
        victim, killed_at = -1, 0.0
        if kind == "one is killed":
            victim = wait_for(lambda: _typing(typists), "a window gets keys")[-1]
            typists[victim].client.process.kill()
            killed_at = time.monotonic()
        replies = {n: typists[n].client.reply(numbers[n]) for n in range(len(typists)) if n != victim}
        keys = [one.witness.take_characters() for one in typists]
        for number, reply in replies.items():
            on.tally.judge_text("type in a crowd", reply, texts[number], text_of(keys[number]))
        if victim >= 0:
            late = sorted((key["at"], number) for number, found in enumerate(keys) for key in found)
            typing = [number for at, number in late if at > killed_at]
            rest = typing.count(victim)  # at most the current piece, before any other window gets a key
            has_mixed = victim in typing[rest:] or not texts[victim].startswith(text_of(keys[victim]))
            if rest > PIECE or has_mixed:
                on.tally.count("wrong", f"{rest} characters after the kill{', mixed' * has_mixed}")
            typists[victim] = typists[victim]._replace(client=on.client())


def _typing(typists: list[Field]) -> list[int]:
    """Return the numbers of the windows that have received a key."""
    events = [[*one.witness.events] for one in typists]
    return [number for number, found in enumerate(events) if any(one["event"] == "key" for one in found)]
