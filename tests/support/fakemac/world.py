"""The state of the fake Mac on disk: one JSON desktop, settled from a log.

A folder holds
  desktop.json   the settled state; replaced as a whole, so it can be read without a lock
  events.jsonl   raw events, appended with O_APPEND by any program in any language
  calls.jsonl    one line per started program: program, argv, stdin hash, pid
  hanging.jsonl  one line per program that waits to be killed: pid

Whoever reads the state settles it first: `settle(folder)`; programs in other languages ask settler.py.
An event is input (`{"type": 1, "x": ...}`, the numbers of CGEventTypes.h) or an act (`{"do": ...}`).
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, Union

State = dict[str, Any]
Event = dict[str, Any]
Folder = Union[str, "os.PathLike[str]"]  # pathlib is not imported: it takes a third of a small program's time


@contextmanager
def locked(folder: Folder) -> Iterator[None]:
    """Hold the world's lock; the system releases it if the holder is killed."""
    descriptor = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_state(folder: Folder) -> State:
    with open(os.path.join(folder, "desktop.json"), encoding="utf-8") as stream:
        return json.load(stream)


def write_state(folder: Folder, state: State) -> None:
    from .pointer_and_keys import keys_of

    state["keyboard"]["keys"] = keys_of(state["keyboard"]["layout"])
    path = os.path.join(folder, "desktop.json")
    new = f"{path}.{os.getpid()}.new"
    with open(new, "w", encoding="utf-8", errors="surrogatepass") as stream:
        stream.write(json.dumps(state, ensure_ascii=False))
    os.replace(new, path)


def append_line(path: str, line: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def post(folder: Folder, event: Event) -> None:
    append_line(os.path.join(folder, "events.jsonl"), dict(event, t=now_ms()))


def now_ms() -> float:
    return time.time() * 1000


def settle(folder: Folder) -> State:
    """Return the state after everything posted so far and everything due by now."""
    return update(folder, lambda state: None)


def update(folder: Folder, change: Callable[[State], Any]) -> State:
    """Settle, then change the state, as one step."""
    with locked(folder):
        state = read_state(folder)
        before = json.dumps(state)
        apply_posted(folder, state)
        apply_due(state, now_ms())
        change(state)
        if json.dumps(state) != before:
            write_state(folder, state)
        return state


def apply_posted(folder: Folder, state: State) -> None:
    events_file = os.path.join(folder, "events.jsonl")
    if not os.path.exists(events_file):
        return
    with open(events_file, "rb") as stream:
        stream.seek(state["settled_bytes"])
        unread = stream.read()
    complete = unread[: unread.rfind(b"\n") + 1]
    state["settled_bytes"] += len(complete)
    for line in complete.splitlines():
        event = json.loads(line)
        apply_due(state, event.get("t", now_ms()))
        try:
            apply(state, event)
            pull_triggers(state, event)
        except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
            # One bad event must not stop the world for every program after it.
            log(state, "strict", why=f"{line.decode()}: {error!r}")


def apply_due(state: State, now: float) -> None:
    """Run the acts that are due (a slow activation, a closed window that lingers)."""
    due = [event for event in state["pending"] if event["due"] <= now]
    state["pending"] = [event for event in state["pending"] if event["due"] > now]
    for event in sorted(due, key=lambda event: event["due"]):
        apply(state, event)


def apply(state: State, event: Event) -> None:
    from .acts import ACTS
    from .pointer_and_keys import apply_input

    if event.get("do") in ACTS:
        ACTS[event["do"]](state, event)
    elif "type" in event and "do" not in event:
        apply_input(state, event)
    else:
        log(state, "strict", why=f"unknown event: {json.dumps(event)}")


def pull_triggers(state: State, event: Event) -> None:
    """Run the acts that a test attached to this event (`FakeMac.when`), once."""
    for trigger in list(state["triggers"]):
        if any(event.get(key) != value for key, value in trigger["on"].items()):
            continue
        if trigger["skip"] > 0:
            trigger["skip"] -= 1
            continue
        state["triggers"].remove(trigger)
        for act in trigger["acts"]:
            apply(state, act)


def log(state: State, kind: str, **what: Any) -> None:
    """Record an event of the world for the tests."""
    state["log"].append({"kind": kind, **what})


def later(state: State, event: Event, delay_ms: float) -> None:
    if delay_ms <= 0:
        apply(state, event)
    else:
        # the post's own time counts, not the time of settling
        state["pending"].append(dict(event, due=event.get("t", now_ms()) + delay_ms))


def lines(path: Folder) -> list[dict[str, Any]]:
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as stream:
        return [json.loads(line) for line in stream if line.strip()]
