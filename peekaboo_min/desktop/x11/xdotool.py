"""xdotool: run once, or kept for one act; it releases what it has pressed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...core.cancellation import uninterrupted
from ...core.errors import ErrorCode, PeekabooError, invalid
from ...core.log import log_warning
from ...system.files import held_locks
from ...system.process import Completed, RunningProgram, exit_hooks, run_program, running, start_daemon
from .connection import no_display

UTF8 = {"LC_ALL": "C.UTF-8"}
_RELEASE_S = 5.0
# What is pressed with Command on a Mac is pressed with Control here; the logo key is called super.
_MODIFIERS = {"cmd": "ctrl", "ctrl": "ctrl", "alt": "alt", "shift": "shift", "super": "super"}


def x11_modifiers(modifiers: Sequence[str]) -> list[str]:
    """xdotool's names of modifiers, each once. Raises INVALID_ARGUMENT for fn, which X11 does not have."""
    if "fn" in modifiers:
        raise invalid("X11 has no fn key", "leave it out")
    return list(dict.fromkeys(_MODIFIERS[name] for name in modifiers))


def run_xdotool(arguments: Sequence[str], timeout_s: float, stdin: bytes = b"") -> Completed:
    """It inherits the input lock; what its exit code means is up to the caller, or to check_xdotool."""
    return run_program(
        ["xdotool", *arguments],
        timeout_s=timeout_s,
        stdin=stdin,
        accept=None,
        environment=UTF8,
        pass_fds=held_locks(),
    )


def check_xdotool(done: Completed) -> None:
    """Raise what the error output of an xdotool that failed means: NO_GUI_SESSION, WINDOW_NOT_FOUND, else
    PROGRAM_FAILED.
    """
    if done.code == 0:
        return
    output = done.stderr.strip()
    if re.search(r"open (X )?display|open X|parse display name|no display", output, re.I):
        raise no_display(output)
    if re.search(r"BadWindow|Bad ?Drawable|No such window|no window with", output, re.I):
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND,
            "that window is gone",
            hint="list the windows again",
            details=output[:300],
        )
    raise PeekabooError(
        ErrorCode.PROGRAM_FAILED, f"xdotool failed with exit code {done.code}", details=output[-1000:]
    )


class Xdotool:
    """An xdotool that does each line at once. It ends by itself when we are killed, after its last line."""

    def __init__(self, program: RunningProgram) -> None:
        self._program = program
        self.is_pressing = False

    def look(self, words: Sequence[str], pattern: str) -> Iterator[int]:
        """The numbers of the pattern's groups in what a line prints that presses nothing, as soon as that
        fits. Raises what its error output means when it never does.
        """
        text = self._program.ask(" ".join(words), lambda answer: re.search(pattern, answer) is not None)
        found = re.search(pattern, text)
        if found is None:
            check_xdotool(self._program.end())
            what = "something may have been" if self.is_pressing else "nothing was"
            raise PeekabooError(
                ErrorCode.PROGRAM_FAILED,
                f"xdotool ended early; {what} pressed",
                hint="take a new screenshot and see",
                details=text[-300:],
            )
        return map(int, found.groups())

    def press(self, words: Sequence[str], pattern: str) -> Iterator[int]:
        """As `look`, for a line that presses something, and releases it in the end."""
        self.is_pressing = True
        return self.look(words, pattern)

    def end(self) -> None:
        """Wait until everything is done."""
        check_xdotool(self._program.end())
        self.is_pressing = False


@contextmanager
def xdotool_session(release: Sequence[str], timeout_s: float) -> Iterator[Xdotool]:
    """An xdotool for one act. `release`: its words that release what the act presses; they are run when the
    block ends before the act does, also by a signal: a killed xdotool leaves everything pressed.
    """
    session: list[Xdotool] = []

    def release_by_daemon() -> None:
        if session and session[0].is_pressing:
            start_daemon(["xdotool", *release], b"")

    exit_hooks.append(release_by_daemon)
    try:
        with running(["xdotool", "-"], None, timeout_s, UTF8, pass_fds=held_locks()) as program:
            session.append(Xdotool(program))
            yield session[0]
    finally:
        try:
            if session and session[0].is_pressing:
                with uninterrupted():
                    run_xdotool(release, _RELEASE_S)
        except PeekabooError as e:
            log_warning(f"a key or button may be pressed still: {e.message}")
        finally:
            exit_hooks.remove(release_by_daemon)
