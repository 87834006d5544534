"""A headless X desktop of our own, for the demo, the benchmark and the tests: Xvfb, a compositor, a window manager."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from typing import Iterator, List, Sequence


@contextmanager
def x_server(with_window_manager: bool = True, screen: str = "1280x800x24", options: Sequence[str] = ()) -> Iterator[str]:
    """A server on a free display number; yields its DISPLAY. Everything that it started ends with the `with` block."""
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", screen, *options, "-nolisten", "tcp", "-noreset"],
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    others: List[subprocess.Popen] = []
    try:
        with os.fdopen(reader) as f:
            display = f":{f.readline().strip()}"
        if display == ":":
            raise SystemExit("Xvfb did not start")
        environment = {**os.environ, "DISPLAY": display}
        # `xcompmgr -a` lets covered windows be photographed
        for words in (["xcompmgr", "-a"], ["openbox"])[: 2 if with_window_manager else 1]:
            others.append(
                subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
        _wait_for_window_manager(environment, with_window_manager)
        yield display
    finally:
        for one in [*others, server]:
            one.kill()
            one.wait()


def _wait_for_window_manager(environment: "dict[str, str]", is_expected: bool) -> None:
    deadline = time.monotonic() + 20
    while is_expected and time.monotonic() < deadline:
        words = ["xprop", "-root", "_NET_SUPPORTING_WM_CHECK"]
        if b"window id" in subprocess.run(words, env=environment, capture_output=True).stdout:
            return
        time.sleep(0.02)
    if is_expected:
        raise SystemExit("the window manager did not start")
