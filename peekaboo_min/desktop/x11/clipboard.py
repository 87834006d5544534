"""Pasting on X11: text by a selection, and the user's clipboard put back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable, NamedTuple, Optional

from ...core.cancellation import pause, uninterrupted
from ...core.errors import ErrorCode, PeekabooError
from ...core.log import log_info, log_warning
from ...core.models import Window
from ...system.process import (
    Completed,
    ProgramTimeout,
    RunningProgram,
    exit_hooks,
    run_program,
    running,
    start_daemon,
)
from .presses import PressRecord

_ANSWER_S = 2.0
_FETCH_S = 5.0
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


class _Saved(NamedTuple):
    """What puts the clipboard's content back: a program, and what it reads."""

    words: list[str]
    data: bytes


class Clipboard:
    """Pastes into one window. What the clipboard held is saved before the first paste."""

    def __init__(self, window: Window) -> None:
        self._key = _TERMINAL_KEYS.get(window.app_name.lower(), "ctrl+v")
        self._selection = "clipboard" if self._key == "ctrl+v" else "primary"
        self._window_id = window.window_id
        self._saved: Optional[_Saved] = None
        self._is_ours = False  # whether the clipboard holds, or held, what we put there

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Put the user's clipboard back at the end of this block, however it ends, also by a signal."""
        exit_hooks.append(self._put_back_by_daemon)
        try:
            yield
        finally:
            try:
                with uninterrupted():
                    self._put_back_now()
            finally:
                exit_hooks.remove(self._put_back_by_daemon)

    def paste(self, text: str, press: Callable[[str], None], record: Optional[PressRecord]) -> None:
        """Serve `text`, press the key that pastes it, and wait until the window's program has fetched it; any
        program, where requests are not recorded.

        Raises PROGRAM_FAILED when it cannot be served (nothing was pressed), or when no program fetched it.
        """
        if self._selection == "clipboard" and not self._is_ours:
            self._saved = _save_clipboard()
        words = ["xclip", "-verbose", "-selection", self._selection, "-i"]
        self._is_ours = self._selection == "clipboard"
        data = text.encode("utf-8")

        def is_served() -> bool:
            return _requests(server) > 0 and _read_selection(self._selection, "UTF8_STRING") == data

        with running(words, data) as server:
            if not _wait_until(is_served, server, _ANSWER_S):
                self._is_ours = self._is_ours and not server.has_ended()  # another program took it
                raise PeekabooError(
                    ErrorCode.PROGRAM_FAILED,
                    "xclip does not serve the text, so it was not pasted",
                    hint="check that no clipboard manager takes its place; ASCII needs no clipboard",
                    details=server.stderr_so_far()[-300:],
                )
            asked = _wait_until_quiet(server)  # a clipboard manager fetches what is new
            if record:
                record.forget_requests()
            press(self._key)

            def is_fetched() -> bool:
                return _requests(server) > asked and (not record or record.has_asked(self._window_id))

            if not _wait_until(is_fetched, server, _FETCH_S):
                reason = "no program fetched the text"
                if _requests(server) > asked:
                    reason = "only another program fetched the text, such as a clipboard manager"
                if server.has_ended():
                    self._is_ours = False  # the clipboard belongs to whoever took it
                    reason = "another program took the clipboard before the text was fetched"
                raise PeekabooError(
                    ErrorCode.PROGRAM_FAILED,
                    f"{reason}: the last piece was not typed",
                    hint="click a text field and see what it holds; a terminal may need its own paste key",
                )
            _wait_until_quiet(server)

    def _put_back_now(self) -> None:
        if not self._is_ours or self._saved is None:
            return
        try:
            run_program(self._saved.words, timeout_s=_ANSWER_S, stdin=self._saved.data, leaves_daemon=True)
        except PeekabooError as e:
            log_warning(f"the clipboard could not be put back: {e.message}")
        self._is_ours = False

    def _put_back_by_daemon(self) -> None:
        if self._is_ours and self._saved is not None:
            start_daemon(self._saved.words, self._saved.data)


def _requests(server: RunningProgram) -> int:
    """How many requests xclip waits for or has answered; 1 as soon as it serves."""
    return server.stderr_so_far().count("selection request number")


def _wait_until_quiet(server: RunningProgram) -> int:
    """How many requests there were once no more came, or after a while: some programs never stop asking."""
    deadline = time.monotonic() + _ANSWER_S
    seen = -1
    while seen != _requests(server) and time.monotonic() < deadline:
        seen = _requests(server)
        pause(_QUIET_S)
    return seen


def _ask_owner(selection: str, target: str) -> Optional[Completed]:
    """What xclip prints of a selection in one format; None when its owner does not answer."""
    words = ["xclip", "-selection", selection, "-target", target, "-o"]
    try:
        return run_program(words, timeout_s=_ANSWER_S, accept=None)
    except ProgramTimeout:
        return None


def _read_selection(selection: str, target: str) -> Optional[bytes]:
    """What a selection holds in one format; None when it has none, or its owner does not answer."""
    done = _ask_owner(selection, target)
    return done.stdout if done and done.code == 0 else None


def _save_clipboard() -> Optional[_Saved]:
    """The clipboard's content, None when it is empty. Raises for what could not be put back."""
    done = _ask_owner("clipboard", "TARGETS")
    if done is None:
        raise _not_kept("the program that owns the clipboard does not answer")
    if done.code:
        if "not available" in done.stderr:
            return None
        raise _not_kept("xclip could not read the clipboard")
    targets = [one for one in done.text.split("\n") if one and one not in _PROTOCOL_TARGETS]
    if not targets:
        return None
    texts = [one for one in _TEXT_TARGETS if one in targets]
    images = sorted((one for one in targets if one.startswith("image/")), key=lambda one: one != "image/png")
    if not texts and not images:
        raise _not_kept(f"the clipboard holds {', '.join(targets[:5])}")
    kept = (texts or images)[0]
    data = _read_selection("clipboard", kept)
    if data is None:
        raise _not_kept("the clipboard's content could not be read")
    same = {*_TEXT_TARGETS, "COMPOUND_TEXT"} if texts else {kept}
    lost = [one for one in targets if one not in same]
    if lost:
        log_info(f"the clipboard is put back as {kept} only, without {', '.join(lost[:10])}")
    return _Saved(["xclip", "-selection", "clipboard", *([] if texts else ["-target", kept]), "-i"], data)


def _not_kept(reason: str) -> PeekabooError:
    return PeekabooError(
        ErrorCode.PROGRAM_FAILED,
        f"{reason}, which could not be put back after pasting; nothing was pasted",
        hint="copy some text, which can be kept, or type ASCII only, which needs no clipboard",
    )


def _wait_until(is_true: Callable[[], bool], server: RunningProgram, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        is_last_look = server.has_ended() or time.monotonic() > deadline
        if is_true():
            return True
        if is_last_look:
            return False
        pause(_POLL_S)
