"""Pasting on X11: text by a selection, and the user's clipboard put back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Callable, Optional

from ...core.cancellation import pause
from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Window
from ...system.process import ProgramTimeout, RunningProgram, run_program, running
from .connection import OWNER, XConnection, fields_in, request
from .presses import PressRecord, Restorer, restored_by

_ANSWER_S = 2.0
_FETCH_S = 5.0
_LATE_S = 0.2
_QUIET_S = 0.06
_POLL_S = 0.005

# Programs that paste PRIMARY by a key of their own, by the class of their windows; ctrl+v types ^V into them.
_TERMINAL_KEYS = {
    **dict.fromkeys(
        (
            "xterm", "uxterm", "kterm", "rxvt", "urxvt", "st", "st-256color", "eterm", "aterm", "mlterm",
            "alacritty", "kitty", "wezterm", "org.wezfurlong.wezterm", "gnome-terminal",
            "gnome-terminal-server", "xfce4-terminal", "mate-terminal", "lxterminal", "terminator", "tilix",
            "guake", "sakura", "roxterm", "termite", "terminology", "tilda", "qterminal", "cool-retro-term",
        ),
        "shift+Insert",
    ),
    **dict.fromkeys(("konsole", "yakuake"), "ctrl+shift+Insert"),
}  # fmt: skip
_TEXT_TARGETS = ("UTF8_STRING", "text/plain;charset=utf-8", "STRING", "TEXT", "text/plain")
# What every owner offers besides its data.
_PROTOCOL_TARGETS = frozenset(("TARGETS", "MULTIPLE", "TIMESTAMP", "SAVE_TARGETS", "DELETE"))


@contextmanager
def pasting(window: Window, server: XConnection, record: PressRecord) -> Iterator[Clipboard]:
    """The user's clipboard is put back at the end of this block, however it ends, also by a signal."""
    clipboard = Clipboard(window, server, record)
    try:
        with restored_by(lambda: clipboard.restorer), clipboard.serving:
            try:
                yield clipboard
            finally:
                with suppress(PeekabooError):
                    clipboard.look()
    except PeekabooError as e:
        with suppress(PeekabooError):  # what ended the act is what is told
            clipboard.wait_until_restored()
        if clipboard.has_lost_copy:
            e.message += "; what somebody copied meanwhile may be lost"
        raise
    clipboard.wait_until_restored()


class Clipboard:
    """Pastes into one window. What the clipboard held is saved before the first paste. xclip serves a piece
    until the next, or the end: one that has ended by itself tells that another program took the selection.
    """

    def __init__(self, window: Window, server: XConnection, record: PressRecord) -> None:
        self._window_id, self._server, self._record = window.window_id, server, record
        self.key = _TERMINAL_KEYS.get(window.app_name.lower(), "ctrl+v")
        self._selection = "clipboard" if self.key == "ctrl+v" else "primary"
        self._saved: Optional[Restorer] = None
        self._xclip: Optional[RunningProgram] = None
        self._served_id: Optional[int] = None  # who owns the selection while we serve; None before
        self._is_awaited = self._was_taken = False
        self._kept = ""  # the format in which what was saved is offered again
        self.has_lost_copy = False
        """Whether somebody copied in a moment in which we took the clipboard, or put it back."""
        self.serving = ExitStack()

    @property
    def restorer(self) -> Optional[Restorer]:
        """What puts the user's clipboard back; None where there is nothing to put back, or what is there was
        copied meanwhile.
        """
        if self._served_id is None or self._is_taken:
            return None
        if self._is_awaited:  # who fetches in this moment gets nothing, rather than what the user had copied
            time.sleep(_LATE_S)
        return self._saved

    @property
    def _is_taken(self) -> bool:
        return self._was_taken or (self._xclip is not None and self._xclip.exit_code() == 0)

    def look(self) -> None:
        """See whether somebody else has copied something since; xclip ends a moment after that."""
        has_begun = self._served_id is not None
        self._was_taken = self._is_taken or (has_begun and self._owner() not in (0, self._served_id))

    def paste(self, text: str, press: Callable[[Callable[[], None]], None]) -> None:
        """Serve `text`, press what pastes it, and wait until the window's program has fetched it.

        press: calls what it is given at the last moment. Raises PROGRAM_FAILED when it cannot be served
        (nothing was pressed), or when that does not fetch it.
        """
        self.look()
        if self._selection == "clipboard" and (self._xclip is None or self._is_taken):
            self._was_taken = False
            self._times_taken()
            self._saved = self._save()
            if self._times_taken():  # something was copied meanwhile
                self._saved = self._save()
        argv = ["xclip", "-quiet", "-selection", self._selection, "-i"]
        data = text.encode("utf-8")
        times_taken = 0

        def has_taken() -> bool:
            nonlocal times_taken
            times_taken += self._times_taken()
            is_ours = times_taken > 0 and self._is_served_by(xclip)
            times_taken += self._times_taken()  # it may have taken it since
            return is_ours

        self._served_id = self._owner()
        # the last one is ended after this one serves: before, the server might give its window's id again
        with self.serving.pop_all():
            self._xclip = xclip = self.serving.enter_context(running(argv, data, leaves_daemon=True))
            is_served = self._wait_until(has_taken, xclip, _ANSWER_S)
        self.has_lost_copy |= self._selection == "clipboard" and times_taken > 1
        served_id = self._served_id

        def check_served() -> None:
            if not is_served or xclip.has_ended() or self._owner() != served_id:
                raise self._failed("the clipboard does not hold the text", "it was not pasted")

        def has_asked() -> bool:
            return self._record.has_asked(self._window_id, served_id)

        check_served()
        has_asked()  # a clipboard manager's window may be the program's own
        self._is_awaited = True
        press(check_served)
        self._is_awaited = not self._wait_until(has_asked, xclip, _FETCH_S)
        if self._is_awaited:
            if self._is_taken:
                message = "another program took the clipboard in the last moment"
                raise self._failed(message, "what that copied may have been pasted")
            # what a program that hangs pastes when it wakes up must not be what the user had copied
            self._saved = Restorer(["xclip", "-selection", self._selection, "-i"], data)
            self._kept = "UTF8_STRING"
            raise self._failed("the window's program did not fetch the text", "it stays in the clipboard")
        deadline = time.monotonic() + _ANSWER_S  # some programs never stop asking
        pause(_QUIET_S)
        while has_asked() and time.monotonic() < deadline:
            pause(_QUIET_S)

    def _is_served_by(self, xclip: RunningProgram) -> bool:
        """Whether it owns the selection now, and not another program that has taken it in this moment."""
        owner_id = self._owner()
        (pid,) = self._server.pids_of(owner_id)
        if not owner_id or (pid and not xclip.is_of(pid)):
            return False
        self._served_id = owner_id
        return True

    def wait_until_restored(self) -> None:
        """What reads the clipboard next gets what was put back: xclip serves a moment after it has forked."""
        deadline, times_taken = time.monotonic() + _ANSWER_S, 0
        is_restored = self._selection == "clipboard" and not self._is_taken
        while self._saved and is_restored and time.monotonic() < deadline:
            times_taken += self._times_taken()
            is_back = times_taken > 0 and self._read(self._kept) == self._saved.stdin
            times_taken += self._times_taken()  # it may have been put back since
            self.has_lost_copy |= times_taken > 1
            if is_back or times_taken > 1:
                return
            pause(_POLL_S)

    def _failed(self, what: str, consequence: str) -> PeekabooError:
        hint = "click a text field and see what it holds; a terminal may need its own paste key"
        return PeekabooError(ErrorCode.PROGRAM_FAILED, f"{what}: {consequence}", hint)

    def _owner(self) -> int:
        """The window that owns the selection; 0 for none, also before any program has named it."""
        name = self._selection.upper()
        return fields_in(self._server.ask([request(OWNER, self._server.atoms([name])[name])])[0], "I")[0]

    def _times_taken(self) -> int:
        """How often the selection was taken, by us too, since the last call."""
        return self._record.times_taken(self._selection.upper())

    def _save(self) -> Optional[Restorer]:
        """The clipboard's content, None when it is empty. Raises for what could not be put back."""
        if not self._owner():
            return None
        answer = self._read("TARGETS")
        offered = (answer or b"").decode("latin-1").splitlines()
        targets = [each for each in offered if each not in _PROTOCOL_TARGETS]
        if answer is not None and not targets:
            return None
        texts = [target for target in _TEXT_TARGETS if target in targets]
        images = [target for target in targets if target.startswith("image/")]
        kept = next(iter([*texts, *({"image/png"} & {*images}), *images]), "")
        data = self._read(kept) if kept else None
        if data is None:
            held = ", ".join(targets[:5]) or "what its program does not give"
            message = f"the clipboard holds {held}, which could not be put back; nothing was pasted"
            hint = "copy some text, which can be kept, or type ASCII only, which needs no clipboard"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint)
        self._kept, option = ("UTF8_STRING", []) if texts else (kept, ["-target", kept])
        return Restorer(["xclip", "-selection", "clipboard", *option, "-i"], data)

    def _read(self, target: str) -> Optional[bytes]:
        """What the clipboard holds in one format; None when its owner does not give it."""
        argv = ["xclip", "-selection", "clipboard", "-target", target, "-o"]
        try:
            done = run_program(argv, timeout_s=_ANSWER_S, accept=None)
        except ProgramTimeout:
            return None
        return None if done.code else done.stdout

    def _wait_until(self, is_true: Callable[[], bool], xclip: RunningProgram, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not xclip.has_ended() and time.monotonic() < deadline:
            if is_true():
                return True
            pause(_POLL_S)
        return is_true()
