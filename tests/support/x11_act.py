"""Run one act of the X11 desktop in its own process: x11_act.py KIND WINDOW_ID JSON-ARRAY; prints JSON.

A pair of numbers in the arguments is a point in the window. SIGUSR1 cancels the act, like a client.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from peekaboo_min.core.call import use_cancel_token
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import Act, Point, as_plain
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.system.ending import end_cleanly_on_signals

FIELDS = {
    "click": ("button", "clicks", "modifiers"),
    "scroll": ("direction", "amount"),
    "drag": ("button",),
    "move_pointer": (),
    "type": ("text", "delay_ms"),
    "press": ("chord", "hold_ms", "repeat", "stop_file"),
}


def main(kind: str, window_id: str, arguments: str) -> int:
    token = threading.Event()
    use_cancel_token(token)
    signal.signal(signal.SIGUSR1, lambda *_: token.set())
    end_cleanly_on_signals()
    desktop = X11Desktop()
    window = desktop.snapshot().by_id(int(window_id))
    points, values = [], []
    for given in json.loads(arguments):
        if isinstance(given, list) and isinstance(given[0], int):
            points.append(Point(window.bounds.x + given[0], window.bounds.y + given[1]))
        else:
            values.append(given)
    fields: dict[str, Any] = dict(zip(FIELDS[kind], values))
    stop_file = Path(fields.pop("stop_file", "/nowhere"))
    if "chord" in fields:
        fields["chord"] = read_chord(fields["chord"])
    act = Act(kind, tuple(points), **{**fields, "modifiers": tuple(fields.get("modifiers", ()))})
    try:
        done = desktop.act(window, act, stop_file)
    except PeekabooError as e:
        print(json.dumps({"code": e.code.value, "message": e.message}))
        return 1
    print(json.dumps(as_plain(done)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
