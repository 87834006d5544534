"""Paste text on X11 through a selection, then restore the user's clipboard.

A selection stores nothing: a program that pastes asks the selection's owner for the content. To paste a
text, keyboard.type_text calls:

1. `serve`: save what the user has copied to CLIPBOARD, and start an xclip that owns the selection and answers
   with the text. Terminals paste PRIMARY, which is not saved.
2. `expect_fetch`: check that xclip still owns the selection. The paste key is pressed right after it.
3. `wait_for_fetch`: wait until the window's program has fetched the text, then until it asks for no more.

A long text is pasted in pieces: the copy is saved once, and each xclip serves until the next one owns the
selection. At the end, `restorer` starts another xclip, which serves the saved copy and outlives us.

If another program copies meanwhile, our xclip loses the selection and exits with 0; the new copy stays, and
nothing is restored. If the window's program asked for the text and is not done, or does not answer, the text
stays in the selection: a hung program may paste later, and must not paste the user's copy.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Callable, NamedTuple, Optional

from ...core.call import pause
from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Window
from ...system.process import ProgramTimeout, RunningProgram, run_program, running
from .connection import OWNER, XConnection, property_of, request, x_connection
from .record import Record, SelectionRequest
from .xdotool import restored_by

_ANSWER_S = 2.0  # xclip and the owner of a clipboard answer within milliseconds
_FETCH_S = 4.0  # LibreOffice on a busy machine fetches late
_NO_REQUEST_S = 1.0  # a window that answered a ping and asks for nothing for so long does not paste
_SLOW_S = 1.0  # a slow program pauses for so long between its requests
_QUIET_S = 0.06  # a program may fetch the text twice: to check it, then to paste it
_POLL_S = 0.005  # between two readings of the record

# Paste keys of terminals, by window class: they paste PRIMARY, and take ctrl+v as a character.
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
_PROTOCOL_TARGETS = ("TARGETS", "MULTIPLE", "TIMESTAMP", "SAVE_TARGETS", "DELETE")  # hold no content
_PASSWORD_TARGET = "x-kde-passwordManagerHint"
_NOT_SERVED = "the clipboard does not hold the text"

_CHANGE_ATTRIBUTES, _ATOM_NAME, _SEND_EVENT = 2, 17, 25
_CLIENT_MESSAGE = 33
_EVENT_MASK, _SUBSTRUCTURE_NOTIFY = 1 << 11, 1 << 19


@contextmanager
def pasting(window: Window, server: XConnection, record: Record) -> Iterator[Clipboard]:
    """Yield a clipboard to paste with. Restore the user's copy at the end, also after a signal."""
    clipboard = Clipboard(window, server, record)
    try:
        with restored_by(clipboard.restorer), clipboard.serving:
            try:
                yield clipboard
            finally:
                with suppress(PeekabooError):
                    clipboard.keep_newer_copy()
    except PeekabooError as e:
        with suppress(PeekabooError):  # report the original error, not this one
            clipboard.wait_until_restored()
        if clipboard.has_lost_copy:
            e.message += "; the user's copy may be lost"
            e.details = f"{e.details}\ncopy_lost: true".strip()
        raise
    clipboard.wait_until_restored()


class _Content(NamedTuple):
    data: bytes
    target: str = "UTF8_STRING"


class Clipboard:
    """Pastes text into one window; see the module's description."""

    def __init__(self, window: Window, server: XConnection, record: Record) -> None:
        self._window_id, self._server, self._record = window.window_id, server, record
        self.key = _TERMINAL_KEYS.get(window.app_name.lower(), "ctrl+v")
        self._selection = "clipboard" if self.key == "ctrl+v" else "primary"
        self.serving = ExitStack()  # closing it ends xclip
        self._xclip: Optional[RunningProgram] = None  # serves the current piece
        self._owner_id = 0  # xclip's window; until it owns the selection, the previous owner
        self._may_fetch = False  # True from the key press until the program has fetched the text
        self._restored: Optional[_Content] = None  # the content to restore at the end; None: restore nothing
        self.has_lost_copy = False  # True if the user's copy, or one made during a paste, is not restored

    def serve(self, text: str) -> None:
        """Save the user's copy, then serve `text`. Raises PROGRAM_FAILED if that is impossible."""
        if self._selection == "clipboard" and not self._is_ours():
            self._new_owners()
            self._restored = self._user_copy()
            if self._new_owners():  # it changed meanwhile
                self._restored = self._user_copy()
        self._start_xclip(text.encode())
        _answers_ping(self._window_id)  # a program that reads each new copy does that now, before the key
        self._record.drop_requests()

    def expect_fetch(self) -> None:
        """Check that xclip owns the selection, right before the key press. Raises PROGRAM_FAILED."""
        if self._owner() != self._owner_id:
            raise _failed(_NOT_SERVED, "it was not pasted")
        self._may_fetch = True

    def wait_for_fetch(self, text: str) -> None:
        """Wait until the window's program has fetched `text`. Raises PROGRAM_FAILED if it does not."""
        requests: list[SelectionRequest] = []

        def is_fetched() -> bool:
            requests.extend(self._requests())
            # a piece of text is too short for INCR: one answer brings all of it
            return any(request.is_answered and self._is_text(request.target) for request in requests)

        started = time.monotonic()
        if not self._wait_until(is_fetched, _FETCH_S):
            has_answered = _answers_ping(self._window_id)
            if not self._wait_until(is_fetched, _NO_REQUEST_S):
                if not self._is_ours():
                    raise _failed("another program took the clipboard", "its content may have been pasted")
                message = "the window's program did not fetch the text"
                if requests or not has_answered:
                    raise self._leave_text(text, message)
                self._may_fetch = False
                raise _failed(message, "it was not pasted")
        # a program that was slow to fetch the text may be slow to fetch it again
        self._wait_until_quiet(text, max(_QUIET_S, min(2 * (time.monotonic() - started), _SLOW_S)))
        self._may_fetch = False

    def _wait_until_quiet(self, text: str, quiet_s: float) -> None:
        deadline = time.monotonic() + _FETCH_S
        is_busy = True
        while is_busy:
            if time.monotonic() > deadline:
                raise self._leave_text(text, "the window's program fetched the text and is still busy")
            # a program that was blocked requests the text again before it answers
            has_answered = _answers_ping(self._window_id)
            pause(quiet_s)
            is_busy = bool(self._requests()) or has_answered is False

    def keep_newer_copy(self) -> None:
        """Restore nothing if another program has copied during the paste."""
        if not self._is_ours():
            self._restored = None

    def restorer(self) -> Optional[tuple[list[str], bytes]]:
        """Return the argv and the stdin that restore the user's copy, or None to restore nothing."""
        if self._restored is None or self._xclip is None or self._xclip.exit_code() == 0:
            return None
        if self._may_fetch:
            time.sleep(_SLOW_S)  # a late request gets nothing instead of the user's copy
            self._may_fetch = False
        data, target = self._restored
        option = [] if target == "UTF8_STRING" else ["-target", target]
        return ["xclip", "-selection", self._selection, *option, "-i"], data

    def wait_until_restored(self) -> None:
        """Wait until a program that reads the clipboard gets the user's copy."""
        if self._selection != "clipboard" or self._restored is None or not self.restorer():
            return
        deadline = time.monotonic() + _ANSWER_S
        owners, is_restored = self._new_owners(), False
        while not is_restored and len(owners) < 2 and time.monotonic() < deadline:
            is_restored = bool(owners) and _read_clipboard(self._restored.target) == self._restored.data
            pause(_POLL_S)
            owners += self._new_owners()
        # no owner: the copy could not be restored; several: another program copied at the same time
        self.has_lost_copy |= len(owners) != 1

    def _user_copy(self) -> Optional[_Content]:
        """Read the clipboard; None if it is empty. Raises PROGRAM_FAILED if it could not be restored."""
        answer = _read_clipboard("TARGETS")
        offered = (answer or b"").decode("latin-1").splitlines()
        if _PASSWORD_TARGET in offered:
            message = f"the clipboard holds a password ({_PASSWORD_TARGET}); nothing was pasted"
            # a restored password would be without the mark, and clipboard managers would store it
            raise _not_restorable(message)
        targets = [target for target in offered if target not in _PROTOCOL_TARGETS]
        if answer is not None and not targets:
            return None
        images = (target for target in targets if target.startswith("image/"))
        kept = next((target for target in (*_TEXT_TARGETS, "image/png", *images) if target in targets), "")
        data = _read_clipboard(kept) if kept else None
        if data is None and not self._owner():
            return None  # empty, or its program has ended, and the copy with it
        if data is None:
            held = ", ".join(targets[:5]) or "content that its program does not return"
            raise _not_restorable(f"the clipboard holds {held}, which cannot be restored; nothing was pasted")
        if kept == "STRING":
            data = data.decode("latin-1").encode()
        return _Content(data, kept) if kept.startswith("image/") else _Content(data)

    def _start_xclip(self, data: bytes) -> None:
        """Start an xclip that serves `data`; wait until it owns the selection, then end the one before."""
        argv = ["xclip", "-quiet", "-selection", self._selection, "-i"]
        previous, self._owner_id = self._xclip, self._owner()
        owners: list[int] = []

        def is_served() -> bool:
            owners.extend(self._new_owners())
            owner_id = self._owner()
            (pid,) = self._server.pids_of(owner_id)  # 0 if the owner has just ended
            if owner_id not in owners or (pid and not xclip.is_of(pid)) or owner_id != self._owner():
                return False
            self._owner_id = owner_id
            return True

        # Keep the previous xclip until the new one owns the selection: both could have the same window id.
        with self.serving.pop_all():
            self._xclip = xclip = self.serving.enter_context(running(argv, data, leaves_daemon=True))
            if not self._wait_until(is_served, _ANSWER_S):
                if owners:  # another program copied, or a process that we do not know took the selection
                    self.has_lost_copy |= self._restored is not None
                else:
                    self._xclip = previous
                raise _failed(_NOT_SERVED, "it was not pasted")
        if self._selection == "clipboard" and owners[0] != self._owner_id:
            self.has_lost_copy = True  # a program copied after the user's copy was saved

    def _is_ours(self) -> bool:
        """Return True unless another program has taken the selection. xclip exits with 0 a moment later."""
        is_serving = self._xclip is not None and self._xclip.exit_code() != 0
        return is_serving and self._owner() in (0, self._owner_id)

    def _leave_text(self, text: str, message: str) -> PeekabooError:
        """Leave the text in the selection, instead of the user's copy; return the error that reports it."""
        self._may_fetch = False
        self.has_lost_copy |= self._restored is not None
        self._restored = _Content(text.encode())
        return _failed(message, "it stays in the clipboard")

    def _owner(self) -> int:
        (atom,) = self._server.atoms([self._selection.upper()]).values()
        return self._server.ask([request(OWNER, atom)])[0].fields("I")[0]

    def _new_owners(self) -> list[int]:
        return self._record.new_owners(self._selection.upper())

    def _requests(self) -> list[SelectionRequest]:
        """Return the new requests of the window's program to xclip, and the answers to them."""
        requests, is_same = self._record.requests_to(self._owner_id), self._server.is_same_program
        return [request for request in requests if is_same(self._window_id, request.requestor_id)]

    def _is_text(self, target: int) -> bool:
        # xclip answers requests for other formats with the text as well; programs drop that
        (reply,) = self._server.ask([request(_ATOM_NAME, target)])
        (length,) = reply.fields("H")
        name = reply[32 : 32 + length].decode("latin-1")
        return name in (*_TEXT_TARGETS, "COMPOUND_TEXT") or name.startswith("text/plain;")

    def _wait_until(self, is_true: Callable[[], bool], seconds: float) -> bool:
        assert self._xclip
        deadline = time.monotonic() + seconds
        while self._xclip.exit_code() is None and time.monotonic() < deadline:
            if is_true():
                return True
            pause(_POLL_S)
        return is_true()


def _read_clipboard(target: str) -> Optional[bytes]:
    argv = ["xclip", "-selection", "clipboard", "-target", target, "-o"]
    with suppress(ProgramTimeout):
        done = run_program(argv, timeout_s=_ANSWER_S, accept=None)
        return None if done.code else done.stdout
    return None


def _failed(problem: str, consequence: str) -> PeekabooError:
    hint = "click a text field and see what it holds; a terminal may need its own paste key"
    return PeekabooError(ErrorCode.PROGRAM_FAILED, f"{problem}: {consequence}", hint)


def _not_restorable(message: str) -> PeekabooError:
    hint = "copy some text, which can be restored, or type ASCII only, which needs no clipboard"
    return PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint)


def _answers_ping(window_id: int) -> Optional[bool]:
    """Return True if the program has handled all earlier events (_NET_WM_PING, see EWMH); None if unknown."""
    with x_connection() as connection:
        protocols, ping = connection.atoms(["WM_PROTOCOLS", "_NET_WM_PING"]).values()
        (supported,) = connection.ask([property_of(window_id, protocols)])
        if ping not in supported.numbers():
            return None
        timestamp = int(time.monotonic() * 1000) & 0xFFFFFFFF
        data = (ping, timestamp, window_id, 0, 0)
        event = struct.pack("<BBHII5I", _CLIENT_MESSAGE, 32, 0, window_id, protocols, *data)
        # the answer is an event of the root window
        select = request(_CHANGE_ATTRIBUTES, connection.root_id, _EVENT_MASK, _SUBSTRUCTURE_NOTIFY)
        connection.send(select + request(_SEND_EVENT, window_id, 0, text=event))
        deadline = time.monotonic() + 1.0
        while (seconds := deadline - time.monotonic()) > 0:
            message = connection.receive(seconds)
            is_answer = message is not None and message[0] & 0x7F == _CLIENT_MESSAGE
            if message and is_answer and message.fields("4xII") == (ping, timestamp):
                return True
    return False
