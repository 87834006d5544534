"""Typing under attack: a thief takes the focus, the stop file appears, a call is cancelled."""

from __future__ import annotations

import os
import random
import re
import signal
import string
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Optional

from worlds import PATIENCE_S

from .rpc import Client, Reply
from .stage import Stage, count_failure, stage
from .tally import Tally

PIECE = 20
_ATTACKS = ("steal", "steal by a new window", "stop", "cancel", "nothing")
_LETTERS = string.ascii_lowercase + string.digits


class TypingScene:
    """A window that is typed into, and a thief, each a client of its own."""

    def __init__(self, on: Stage) -> None:
        self.on = on
        self.stop_file = on.folder / "STOP-TRIAL"
        self.client = on.client(PEEKABOO_STOP_FILE=str(self.stop_file))
        self.field, self.thief = on.x_witness(), on.x_witness()
        self.window_id = self.field.open("field", x=100, y=100, w=300, h=200, app="Field")
        self.thief.open("thief", x=500, y=100, w=300, h=200, app="Thief")
        on.wait_for_window(self.client, self.window_id)
        self.characters_per_second = 100.0

    def reset(self) -> None:
        self.stop_file.unlink(missing_ok=True)
        self.thief.forget()
        self.thief.do("close", "new")
        self.thief.sync()
        self.field.do("raise", "field")
        self.field.do("focus", "field")
        self.field.take("key")
        self.thief.take("key")

    def release_keys(self) -> None:
        """What is held would be missing in the next text, and repeat until then."""
        environment = {**os.environ, "DISPLAY": self.on.display}
        subprocess.run(["xdotool", "keyup", *_LETTERS], env=environment, timeout=PATIENCE_S, check=False)

    def keys(self, witness: Any) -> list[dict[str, Any]]:
        return [key for key in witness.take("key") if key["text"]]


def steal_focus(rng: random.Random, trials: int, attack: Optional[str] = None) -> Tally:
    tally = Tally("typing under attack")
    start = time.monotonic()
    with stage() as on:
        scene = TypingScene(on)
        for _ in range(2):  # how long typing takes on this machine
            scene.reset()
            reply = scene.client.call("type_text", window_id=scene.window_id, text="a" * 60)
            scene.characters_per_second = 60 / max(reply.seconds, 0.01)
        for _ in range(trials):
            scene.reset()
            _one_text(scene, tally, attack or rng.choice(_ATTACKS), rng)
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _one_text(scene: TypingScene, tally: Tally, attack: str, rng: random.Random) -> None:
    text = "".join(rng.choices(_LETTERS, k=rng.randint(40, 160)))
    after = rng.uniform(0, len(text) / scene.characters_per_second)
    if attack == "steal":
        scene.thief.do("focus", "thief", after)
    elif attack == "steal by a new window":
        scene.thief.do("open", "new", after, x=600, y=300, w=200, h=150, app="Thief", takes_focus=True)
    began = time.monotonic()
    number = scene.client.start_call("type_text", {"window_id": scene.window_id, "text": text})
    struck = 0.0
    if attack in ("stop", "cancel"):
        early = scene.client.wait(number, after)
        if early is None:
            _strike(scene.client, attack, number, scene.stop_file)
            scene.field.sync()  # what was sent before may have waited for the witness
            struck = time.monotonic()
            if attack == "cancel":
                # a cancelled call is not answered; the next act waits for the running piece, which still
                # arrives
                scene.client.call("focus_window", window_id=scene.window_id)
                early = {
                    "result": {"isError": True, "_meta": {"backend_error_code": "CANCELLED"}, "content": []}
                }
        reply = scene.client.read(early) if early else scene.client.finish_call(number, since=began)
    else:
        reply = scene.client.finish_call(number, since=began)
    tally.trials += 1
    if scene.field.sync():
        tally.leaked += 1
        tally.note(f"{attack}: a key stays pressed, after {reply.code or 'delivered'}")
        scene.release_keys()
    arrived, stolen = scene.keys(scene.field), scene.keys(scene.thief)
    judge_typing(tally, attack, text, reply, arrived, stolen, struck)


def _strike(client: Client, attack: str, number: int, stop_file: Path) -> None:
    if attack == "stop":
        stop_file.touch()
    else:
        client.send("notifications/cancelled", {"requestId": number, "reason": "trial"}, is_request=False)


def judge_typing(
    tally: Tally,
    attack: str,
    text: str,
    reply: Reply,
    arrived: list[dict[str, Any]],
    stolen: list[dict[str, Any]],
    struck: float,
) -> None:
    """At most one piece to a thief, or after a stop; never reported as delivered; with the true count."""
    if count_failure(tally, reply, f"type, {attack}"):
        return
    got = "".join(key["text"] for key in arrived)
    said = reply.code or "delivered"
    late = [key for key in arrived if struck and key["at"] > struck]
    if stolen:
        tally.wrong += len(stolen) > PIECE
        tally.unreported += reply.is_delivered
        size = "more than a piece" if len(stolen) > PIECE else "at most a piece"
        tally.note(f"{attack}: {size} went to the thief, reported as {said}")
    if len(late) > PIECE:
        tally.wrong += 1
        tally.unreported += reply.is_delivered
        tally.note(f"{attack}: more than a piece came after it, reported as {said}")
    if reply.is_delivered and not stolen and got != text:
        tally.lost += 1
        tally.note(f"{attack}: {text!r} arrived as {got!r}")
    elif not text.startswith(got) and not stolen:
        tally.lost += 1
        tally.note(f"{attack}: {got!r} is no beginning of {text!r}, reported as {said}")
    elif got == text and not stolen:
        tally.acted += reply.is_delivered
        tally.doubted += attack == "nothing" and not reply.is_delivered
    if reply.code == "FOCUS_LOST":
        _judge_count(tally, attack, reply, len(got), len(stolen))


def _judge_count(tally: Tally, attack: str, reply: Reply, got: int, stolen: int) -> None:
    """FOCUS_LOST says how many characters surely went to the window, and how many may have gone elsewhere."""
    sure = re.search(r"(\d+) character\(s\) went out", reply.text)
    more = re.search(r"(?:next|last) (\d+)", reply.text)
    least = int(sure[1]) if sure else 0
    most = least + (int(more[1]) if more else 0)
    if got < least or not least <= got + stolen <= most:
        tally.wrong += 1
        tally.note(f"{attack}: {got} arrived, {stolen} stolen, FOCUS_LOST says {reply.text[:150]}")


def crowd(
    rng: random.Random, trials: int, _kind: Optional[str] = None, clients: int = 8, kills: bool = True
) -> Tally:
    """Eight servers, one display: nothing mixed or lost; after a kill -9 at most a piece, before others."""
    tally = Tally(f"{clients} clients at once")
    start = time.monotonic()
    with stage() as on:
        servers = [on.client() for _ in range(clients)]
        fields = [on.x_witness() for _ in servers]
        ids = [
            field.open(f"field{n}", x=20 + 40 * n, y=20 + 30 * n, w=260, h=180, app=f"Field{n}")
            for n, field in enumerate(fields)
        ]
        for one in ids:
            on.wait_for_window(servers[0], one)
        done = 0
        while done < trials:
            done += _one_round(on, servers, fields, ids, tally, rng, kills and rng.random() < 0.5)
        on.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def _one_round(
    on: Stage,
    servers: list[Client],
    fields: list[Any],
    ids: list[int],
    tally: Tally,
    rng: random.Random,
    kill: bool,
) -> int:
    texts = ["".join(rng.choices(_LETTERS, k=rng.randint(15, 70))) for _ in servers]
    numbers = [
        server.start_call("type_text", {"window_id": window, "text": text})
        for server, window, text in zip(servers, ids, texts)
    ]
    victim, killed_at = -1, 0.0
    if kill:
        for _ in range(2000):  # in the middle of somebody's typing
            typing = [n for n, one in enumerate(fields) if any(e["event"] == "key" for e in one.events)]
            if typing:
                victim = typing[-1]
                servers[victim].kill(signal.SIGKILL)
                killed_at = time.monotonic()
                break
            time.sleep(0.002)
    replies = [
        server.finish_call(number) if n != victim else Reply("KILLED", "")
        for n, (server, number) in enumerate(zip(servers, numbers))
    ]
    keys = [[key for key in field.take("key") if key["text"]] for field in fields]
    if victim >= 0:
        servers[victim] = on.client()
    for n, reply in enumerate(replies):
        tally.trials += 1
        got = "".join(key["text"] for key in keys[n])
        if n == victim:
            after = [key for key in keys[n] if key["at"] > killed_at]
            others = [
                key["at"] for m, other in enumerate(keys) if m != n for key in other if key["at"] > killed_at
            ]
            if len(after) > PIECE:
                tally.wrong += 1
                tally.note("more than a piece arrived after the kill")
            if after and others and min(others) < after[-1]["at"]:
                tally.wrong += 1
                tally.note("somebody else acted while the killed server's child still typed")
            if not texts[n].startswith(got):
                tally.wrong += 1
                tally.note(f"mixed: a killed server's window got {got!r} of {texts[n]!r}")
        elif count_failure(tally, reply, "type in a crowd"):
            continue
        elif reply.code:
            tally.note(f"refused: {reply.code}{' with characters' if got else ''}")
            tally.doubted += got == texts[n]
            tally.wrong += bool(got) and not texts[n].startswith(got)
        elif got != texts[n]:
            if sorted(got) != sorted(texts[n]) and len(got) >= len(texts[n]):
                tally.wrong += 1
                tally.unreported += 1
            else:
                tally.lost += 1
            tally.note(f"{texts[n]!r} arrived as {got!r}")
        else:
            tally.acted += 1
    return len(servers)


def cross_displays(rng: random.Random, trials: int, _kind: Optional[str] = None, count: int = 2) -> Tally:
    """X servers of one user give out the same window ids: what is known of one is not used on another."""
    tally = Tally(f"{count} X servers of one user")
    start = time.monotonic()
    with ExitStack() as stages:
        displays = [stages.enter_context(stage()) for _ in range(count)]
        # one user: one home, one state folder, one temporary folder
        shared = {name: displays[0].environment[name] for name in ("HOME", "XDG_STATE_HOME", "TMPDIR")}
        scenes = []
        for one in displays:
            client = one.client(**shared)
            witness = one.x_witness()
            window = witness.open("w", x=100, y=100, w=300 + 10 * len(scenes), h=200, app="Same")
            one.wait_for_window(client, window)
            scenes.append((client, witness, window))
        for _ in range(trials):
            _one_crossing(scenes, tally, rng)
        for one in displays:
            one.finish(tally)
    tally.seconds = time.monotonic() - start
    return tally


def four_servers(rng: random.Random, trials: int, _kind: Optional[str] = None) -> Tally:
    return cross_displays(rng, trials, count=4)


def _one_crossing(scenes: list[Any], tally: Tally, rng: random.Random) -> None:
    (here, _, window), (there, witness, other_window) = rng.sample(scenes, 2)
    tally.trials += 1
    if rng.random() < 0.5:  # a fresh picture here, its id used there
        shot = here.call("take_window_screenshot", window_id=window)
        reply = there.call(
            "click", window_id=other_window, x=20, y=20, screenshot_id=shot.data.get("screenshot_id", "")
        )
        presses = witness.take("press")
        if not reply.code:
            tally.wrong += 1
            tally.unreported += 1
            tally.note("a screenshot of another display was taken for this one's")
        elif presses:
            tally.wrong += 1
        else:
            tally.acted += 1
        return
    witness.take("key")
    # typing here must not keep the other display waiting
    number = here.start_call("type_text", {"window_id": window, "text": "x" * 400})
    reply = there.call("press_key", window_id=other_window, key="a")
    is_first = number not in here.answers
    here.finish_call(number)
    keys = [key for key in witness.take("key") if key["text"]]
    if count_failure(tally, reply, "press beside typing on another display"):
        return
    if reply.code or len(keys) != 1:
        tally.lost += 1
        tally.note(
            f"a key beside typing on another display: {reply.code or 'delivered'}, {len(keys)} arrived"
        )
    elif not is_first:
        tally.lost += 1
        tally.note("a key waited for typing on another display")
    else:
        tally.acted += 1
