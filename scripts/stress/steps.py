"""Several acts in one call, while their window is closed, covered, renamed or loses the focus."""

from __future__ import annotations

from typing import Any

from keys import PIECE
from mcp_server import Reply
from stage import Stage, meanwhile
from tally import Tally
from witness import XWitness

KINDS = ("nothing", "close", "cover", "rename", "steal", "steal by a new window")
_PLACE = {"x": 200, "y": 150, "w": 320, "h": 220}
TEXTS = ("abcdefghijklmnopqrstuvwxyz", "0123456789zyxwvutsrqponml")


def disturb_steps(on: Stage) -> None:
    """Click, type, click and type in one call, while a rival disturbs it at a random time."""
    client, target, rival = on.client(), on.witness(XWitness), on.witness(XWitness)
    rival.open("thief", x=600, y=400, w=300, h=200, app="Thief")

    def disturb(kind: str, window_id: int) -> None:
        new = {"x": 150, "y": 100, "w": 500, "h": 400}
        if kind == "close":
            target.do("close", "target")
        elif kind == "rename":
            on.run("xdotool", "set_window", "--name", "Another title", str(window_id))
        elif kind == "cover":
            rival.do("open", "new", popup=True, pid=False, **new)
        elif kind == "steal":
            rival.do("focus", "thief")
        elif kind != "nothing":
            rival.do("open", "new", app="Thief", **new)

    for kind in on.trials(KINDS):
        rival.do("close", "new")
        target.do("close", "target")
        window_id = target.open("target", app="Target", title="The target", **_PLACE)
        on.listed(client, "window_id", window_id)
        client.call("take_window_screenshot", window_id=window_id)
        received(target)
        received(rival)
        steps: list[dict[str, Any]] = []
        for text in TEXTS:
            steps.append({"tool": "click", "window_id": window_id, "x": 60, "y": 60})
            steps.append({"tool": "type_text", "window_id": window_id, "text": text})
        with meanwhile(on.rng.uniform(0, 1.5), disturb, kind, window_id):
            reply = client.call("run_steps", steps=steps)
        judge_steps(on.tally, kind, reply, received(target), received(rival))


def received(witness: XWitness) -> str:
    """Return the presses (as `*`) and characters since the last call."""
    witness.sync()
    events = [*witness.events]
    witness.events.clear()
    return "".join("*" if one["event"] == "press" else one.get("text", "") for one in events)


def judge_steps(tally: Tally, kind: str, reply: Reply, arrived: str, stolen: str) -> None:
    """Compare outcomes with the received events: all done steps, part of the failed step, nothing else."""
    outcomes = [step["outcome"] for step in reply.data.get("steps", [])]
    done = outcomes.count("done")
    parts = [part for text in TEXTS for part in ("*", text)]
    at_least, at_most = "".join(parts[:done]), "".join(parts[: done + 1])
    what, elsewhere = f"{kind}, {done} done", ""
    if outcomes[:done] != ["done"] * done or (not reply.code) != (done == len(parts)):
        elsewhere = f"the outcomes are {outcomes}"
    elif len(stolen) > PIECE or (stolen and not reply.code):
        elsewhere = f"{len(stolen)} went to the rival"
    elif not (arrived.startswith(at_least) and at_most.startswith(arrived)):
        elsewhere = f"{arrived!r} arrived"
    tally.judge(what, reply, arrived == "".join(parts), elsewhere)
    if reply.code and kind in ("nothing", "rename"):
        tally.count("doubted", f"{what}: {reply.text}")
