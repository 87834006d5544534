"""PeekabooError, the only expected exception, and its codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from .text import clean_text

_DETAILS_FOR_MODEL = 300  # characters


class ErrorCode(str, Enum):
    """What went wrong, by name; `exit_code` is what the shell sees, `next_step` what to do mostly.

    The first ten names are the Peekaboo specification's and never change.
    """

    exit_code: int
    next_step: str

    def __new__(cls, name: str, exit_code: int = 1, next_step: str = "") -> ErrorCode:
        code = str.__new__(cls, name)
        code._value_, code.exit_code, code.next_step = name, exit_code, next_step
        return code

    PERMISSION_DENIED_SCREEN_RECORDING = "PERMISSION_DENIED_SCREEN_RECORDING", 11, "allow it, restart the app"
    PERMISSION_DENIED_ACCESSIBILITY = "PERMISSION_DENIED_ACCESSIBILITY", 12, "allow it, restart the app"
    APP_NOT_FOUND = "APP_NOT_FOUND", 18, "open the app, or name another"
    AMBIGUOUS_APP_IDENTIFIER = "AMBIGUOUS_APP_IDENTIFIER", 19, "name one of those that are listed"
    WINDOW_NOT_FOUND = "WINDOW_NOT_FOUND", 15, "list the windows again"
    CAPTURE_FAILED = "CAPTURE_FAILED", 14, "bring the window onto the screen, try again"
    FILE_IO_ERROR = "FILE_IO_ERROR", 17, "check the path and the free space"
    INVALID_ARGUMENT = "INVALID_ARGUMENT", 2, "correct the argument that is named"
    SIPS_ERROR = "SIPS_ERROR", 1, "check the free space, try again"
    INTERNAL_SWIFT_ERROR = "INTERNAL_SWIFT_ERROR", 1, "`peekaboo-min doctor --compile`"

    PERMISSION_DENIED_AUTOMATION = "PERMISSION_DENIED_AUTOMATION", 13, "allow it for the app that is named"
    STALE_SCREENSHOT = "STALE_SCREENSHOT", 20, "take a new screenshot, and use its pixels"
    POLICY_DENIED = "POLICY_DENIED", 21, "ask whoever set the policy, or the stop file"
    FOCUS_FAILED = "FOCUS_FAILED", 1, "close what is in the way, or bring the window forward by hand"
    WINDOW_COVERED = "WINDOW_COVERED", 1, "act on the window in front, or close it"
    WINDOW_BLOCKED = "WINDOW_BLOCKED", 1, "answer the dialog or menu; let go of keys and buttons"
    FOCUS_LOST = "FOCUS_LOST", 1, "see what the window holds, focus it, type the rest"
    TIMEOUT = "TIMEOUT", 22, "try again, with more time"
    CANCELLED = "CANCELLED", 1, "call it again"
    NO_ELEMENTS = "NO_ELEMENTS", 1, "find_text, or a screenshot and pixels"
    TEXT_NOT_FOUND = "TEXT_NOT_FOUND", 1, "click one of the similar places by a region"
    AMBIGUOUS_TEXT = "AMBIGUOUS_TEXT", 1, "give the region of the one that is meant"
    MISSING_PROGRAM = "MISSING_PROGRAM", 1, "install what is named"
    PROGRAM_FAILED = "PROGRAM_FAILED", 1, "read the details, try again"
    UNSUPPORTED_PLATFORM = "UNSUPPORTED_PLATFORM", 1, "run it on a Mac"
    NO_GUI_SESSION = "NO_GUI_SESSION", 1, "set DISPLAY, or log in to a desktop"
    SCREEN_LOCKED = "SCREEN_LOCKED", 1, "unlock the screen, or switch to this session"
    AI_NOT_CONFIGURED = "AI_NOT_CONFIGURED", 1, "set PEEKABOO_AI_PROVIDERS and a key"
    AI_PROVIDER_ERROR = "AI_PROVIDER_ERROR", 1, "read what the provider says, or choose another"
    INTERNAL_ERROR = "INTERNAL_ERROR", 1, "see the log: it is a fault of ours"


class PeekabooError(Exception):
    """An expected failure: `message` says what is wrong, `hint` what to do next.

    `details` holds what a program or a person may want to look at besides: candidates, a program's own
    output. `code_name` is the code that programs see: another program's or document's `name`, else ours.
    """

    def __init__(
        self, code: ErrorCode, message: str, hint: str = "", details: str = "", name: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.details = details
        self.code_name = name or code.value

    def message_for_model(self, name: str) -> str:
        """`NAME: what is wrong. Next step: ... (the beginning of the details)`, as a tool's answer."""
        text = f"{name}: {self.message}"
        if self.hint:
            text = f"{text.rstrip('.')}. Next step: {self.hint}"
        details = clean_text(" ".join(self.details.split()), _DETAILS_FOR_MODEL)
        return f"{text} ({details})" if details else text

    def sentence(self) -> str:
        """What is wrong and what to do next, as one line of text."""
        return f"{self.message.rstrip('.')}; {self.hint}" if self.hint else self.message


class WindowMoves(PeekabooError):
    """CAPTURE_FAILED: a window was elsewhere, or had another size, after each of its captures."""

    def __init__(self, window_id: int) -> None:
        hint = "wait for it: wait_for with still=true, then try again"
        message = f"window {window_id} keeps moving or changing its size"
        super().__init__(ErrorCode.CAPTURE_FAILED, message, hint)


def invalid(message: str, hint: str = "") -> PeekabooError:
    """INVALID_ARGUMENT, to be raised."""
    return PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint)


def screen_locked(undone: str, details: str = "") -> PeekabooError:
    """SCREEN_LOCKED, to be raised; a user who was switched out, or shares a virtual screen, sees it too."""
    code, message = ErrorCode.SCREEN_LOCKED, f"the screen is locked, or another session has it; {undone}"
    return PeekabooError(code, message, code.next_step, details)


def check_range(what: str, value: float, least: float, most: float) -> None:
    """Raises INVALID_ARGUMENT for a number that is not from `least` to `most`."""
    if not least <= value <= most:
        given = f"{value:g}" if isinstance(value, float) else value
        raise invalid(f"{what} is {given}", f"give a number from {least:g} to {most:g}")


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Raises FILE_IO_ERROR about `path` for an OSError of the `with` block."""
    try:
        yield
    except OSError as e:
        hint = "check the path, that you may write there, and that the disk has space; or choose another path"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, f"{path}: {e.strerror or e}", hint) from e
