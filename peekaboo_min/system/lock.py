"""One at a time: a lock file for what several of our processes share."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..desktop.select import state_folder
from .images import file_error

_TURN_POLL_S = 0.02


@contextmanager
def only_one(lock_name: str, wait_s: float, what: str) -> Iterator[None]:
    """Hold a lock file of the state folder while the `with` block runs. Raises FILE_IO_ERROR, and TIMEOUT when another
    process keeps it.
    """
    path = state_folder() / lock_name
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as e:
        raise file_error(path, e) from e
    with open(descriptor, "a") as f:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    message = f"another peekaboo is using {what}"
                    raise PeekabooError(ErrorCode.TIMEOUT, message, hint="try again in a moment") from None
                pause(_TURN_POLL_S)
        yield
