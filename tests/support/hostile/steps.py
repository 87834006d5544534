"""Several acts in one call, while their window is closed, covered, renamed or loses the focus."""

from __future__ import annotations

import random
import time
from typing import Any, Optional

from .keys import PIECE
from .rpc import Reply
from .stage import Event, Stage, XWitness
from .tally import Tally

KINDS = ("nothing", "close", "cover", "rename", "steal", "steal by a new window")
_PLACE = {"x": 200, "y": 150, "w": 320, "h": 220}
TEXTS = ("abcdefghijklmnopqrstuvwxyz", "0123456789zyxwvutsrqponml")


def disturb_steps(on: Stage, rng: random.Random, trials: int, kind: Optional[str] = None) -> None:
    """Click, type, click and type in one call, while a rival disturbs it at a random time."""
    client, target, rival = on.client(), on.witness(XWitness), on.witness(XWitness)
    rival.open("thief", x=600, y=400, w=300, h=200, app="Thief")

    def one_call(kind: str, seconds: float) -> None:
        for witness in (target, rival):
            witness.do("forget")
        rival.do("close", "new")
        target.do("close", "target")
        window_id = target.open("target", app="Target", title="The target", **_PLACE)
        on.listed(client, "window_id", window_id)
        shot = client.call("take_window_screenshot", window_id=window_id).data["screenshot_id"]
        for witness in (target, rival):
            _received(witness)
        after = rng.uniform(0.01, seconds)
        new = {"x": 150, "y": 100, "w": 500, "h": 400, "app": "Thief"}
        if kind in ("close", "rename"):
            target.do(kind, "target", after, **({"title": "Another title"} if kind == "rename" else {}))
        elif kind == "cover":
            rival.do("open", "new", after, popup=True, pid=False, **{**new, "app": ""})
        elif kind == "steal":
            rival.do("focus", "thief", after)
        elif kind != "nothing":
            rival.do("open", "new", after, takes_focus=True, **new)
        steps: list[dict[str, Any]] = []
        for text in TEXTS:
            steps.append({"tool": "click", "window_id": window_id, "x": 60, "y": 60, "screenshot_id": shot})
            steps.append({"tool": "type_text", "window_id": window_id, "text": text})
        reply = client.call("run_steps", steps=steps)
        on.tally.count("trials")
        rival.do("forget")
        judge_steps(on.tally, kind, reply, _received(target), _received(rival))

    start = time.monotonic()
    one_call("nothing", 1.0)
    seconds = time.monotonic() - start
    for _ in range(trials - 1):
        one_call(kind or rng.choice(KINDS), seconds)


def _received(witness: XWitness) -> str:
    """Return the presses (as `*`) and characters since the last call."""
    witness.sync()
    events: list[Event] = [*witness.events]
    witness.events.clear()
    return "".join("*" if one["event"] == "press" else one.get("text", "") for one in events)


def judge_steps(tally: Tally, kind: str, reply: Reply, arrived: str, stolen: str) -> None:
    """Compare the outcomes with what arrived: all done steps, part of the failed one, and nothing else."""
    if tally.has_failed(kind, reply):
        return
    outcomes = [step["outcome"] for step in reply.data.get("steps", [])]
    done, is_success = outcomes.count("done"), not reply.code
    report = f"{kind}: {done} done, {reply.code or 'success'}"
    parts = [part for text in TEXTS for part in ("*", text)]
    if outcomes[:done] != ["done"] * done or is_success != (done == len(parts)):
        tally.count("wrong unreported", f"{report}: the outcomes are {outcomes}")
    if stolen:
        columns = "unreported" if is_success else "wrong" if len(stolen) > PIECE else ""
        tally.count(columns, f"{report}: {len(stolen)} went to the rival")
    at_least, at_most = "".join(parts[:done]), "".join(parts[: done + 1])
    if not arrived.startswith(at_least):
        tally.count("lost", f"{report}: arrived {arrived!r}")
    elif not at_most.startswith(arrived):
        tally.count("wrong", f"{report}: arrived {arrived!r}")
    elif is_success:
        tally.count("acted")
    elif kind in ("nothing", "rename"):
        tally.count("doubted", f"{report}: {reply.text[:150]}")
