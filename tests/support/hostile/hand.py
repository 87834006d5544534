"""One act of the X11 desktop in a process of its own: hand.py METHOD WINDOW_ID JSON-ARRAY; prints JSON.

A pair of numbers in the arguments is a place in the window. SIGUSR1 cancels the act as a client does.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from peekaboo_min.core.cancellation import CancelToken, use_cancel_token
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import Point, as_plain
from peekaboo_min.desktop.keys import read_chord
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.system.process import end_cleanly_on_signals


def main(method: str, window_id: str, arguments: str) -> int:
    token = CancelToken()
    use_cancel_token(token)
    signal.signal(signal.SIGUSR1, lambda *_: token.cancel())
    end_cleanly_on_signals()
    desktop = X11Desktop()
    window = desktop.snapshot().by_id(int(window_id))
    corner = window.bounds
    given = [
        Point(corner.x + one[0], corner.y + one[1])
        if isinstance(one, list) and isinstance(one[0], int)
        else one
        for one in json.loads(arguments)
    ]
    if method == "press_key":
        given = [read_chord(given[0]), *given[1:3], *map(Path, given[3:])]
    elif method == "type_text":
        given[1] = Path(given[1])
    try:
        done = getattr(desktop, method)(window, *given)
    except PeekabooError as e:
        print(json.dumps({"code": e.code.value, "message": e.message}))
        return 1
    print(json.dumps(as_plain(done) if done else {}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
