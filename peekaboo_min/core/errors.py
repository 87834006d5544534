"""PeekabooError, the only expected exception, and its codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from .text import clean_text


class ErrorCode(str, Enum):
    """The error codes, each with the shell's exit code and the usual next step.

    The first ten names come from the Peekaboo specification and never change. INVALID_ARGUMENT has no next
    step, because its messages name their own.
    """

    exit_code: int
    next_step: str

    def __new__(cls, name: str, exit_code: int = 1, next_step: str = "") -> ErrorCode:
        code = str.__new__(cls, name)
        code._value_, code.exit_code, code.next_step = name, exit_code, next_step
        return code

    PERMISSION_DENIED_SCREEN_RECORDING = "PERMISSION_DENIED_SCREEN_RECORDING", 11, "grant it, restart the app"
    PERMISSION_DENIED_ACCESSIBILITY = "PERMISSION_DENIED_ACCESSIBILITY", 12, "grant it, restart the app"
    APP_NOT_FOUND = "APP_NOT_FOUND", 18, "open the app, or name another"
    AMBIGUOUS_APP_IDENTIFIER = "AMBIGUOUS_APP_IDENTIFIER", 19, "name one of the listed candidates"
    WINDOW_NOT_FOUND = "WINDOW_NOT_FOUND", 15, "list the windows again"
    CAPTURE_FAILED = "CAPTURE_FAILED", 14, "bring the window onto the screen and try again"
    FILE_IO_ERROR = "FILE_IO_ERROR", 17, "check the path, its permissions and the free space"
    INVALID_ARGUMENT = "INVALID_ARGUMENT", 2
    SIPS_ERROR = "SIPS_ERROR", 1, "check the free space and try again"
    INTERNAL_SWIFT_ERROR = "INTERNAL_SWIFT_ERROR", 1, "run `peekaboo-min doctor --compile`"

    PERMISSION_DENIED_AUTOMATION = "PERMISSION_DENIED_AUTOMATION", 13, "grant it to the named app"
    STALE_SCREENSHOT = "STALE_SCREENSHOT", 20, "take a new screenshot and use its pixels"
    POLICY_DENIED = "POLICY_DENIED", 21, "ask the person who set the policy or the stop file"
    FOCUS_FAILED = "FOCUS_FAILED", 1, "close the dialogs in front, or raise the window by hand"
    WINDOW_COVERED = "WINDOW_COVERED", 1, "act on the window in front, or close it"
    WINDOW_BLOCKED = "WINDOW_BLOCKED", 1, "answer the dialog or menu, and release held keys and buttons"
    FOCUS_LOST = "FOCUS_LOST", 1, "take a screenshot, focus the window and type the rest"
    NOT_DELIVERED = "NOT_DELIVERED", 1, "take a screenshot to see what happened, before you repeat the act"
    TIMEOUT = "TIMEOUT", 22, "increase the timeout and try again"
    CANCELLED = "CANCELLED", 1, "call it again"
    NO_ELEMENTS = "NO_ELEMENTS", 1, "use find_text, or a screenshot and its pixels"
    TEXT_NOT_FOUND = "TEXT_NOT_FOUND", 1, "scroll to the text, or click a similar text by its region"
    AMBIGUOUS_TEXT = "AMBIGUOUS_TEXT", 1, "give the region of the right place"
    MISSING_PROGRAM = "MISSING_PROGRAM", 1, "install the named program"
    PROGRAM_FAILED = "PROGRAM_FAILED", 1, "try again, or run `peekaboo-min doctor`"
    UNSUPPORTED_PLATFORM = "UNSUPPORTED_PLATFORM", 1, "run it on a Mac"
    NO_GUI_SESSION = "NO_GUI_SESSION", 1, "set DISPLAY, or log in to a desktop"
    SCREEN_LOCKED = "SCREEN_LOCKED", 1, "unlock the screen, or switch to this session"
    AI_NOT_CONFIGURED = "AI_NOT_CONFIGURED", 1, "set PEEKABOO_AI_PROVIDERS and the provider's key"
    AI_PROVIDER_ERROR = "AI_PROVIDER_ERROR", 1, "read the provider's message, or choose another provider"
    INTERNAL_ERROR = "INTERNAL_ERROR", 1, "see the log; please report this bug"


class PeekabooError(Exception):
    """An expected failure. message: the problem. hint: the next step; default: the next step of its code.

    details: more to look at, such as candidates or a program's output. name: the error's name in another
    program or specification; callers see it as `code_name`, instead of our code.
    """

    def __init__(
        self, code: ErrorCode, message: str, hint: str = "", details: str = "", name: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint or ("" if name else code.next_step)  # another program has its own next steps
        self.details = details
        self.code_name = name or code.value

    def message_for_model(self, name: str) -> str:
        """Format the error as a tool's answer: `NAME: message. Next step: hint (start of the details)`."""
        text = f"{name}: {self.message}"
        if self.hint:
            text = f"{text.rstrip('.')}. Next step: {self.hint}"
        details = clean_text(" ".join(self.details.split()), 300)
        return f"{text} ({details})" if details else text

    def sentence(self) -> str:
        """Format the message and the hint as one line."""
        return f"{self.message.rstrip('.')}; {self.hint}" if self.hint else self.message


class WindowMoves(PeekabooError):
    """CAPTURE_FAILED for a window that moved or changed its size during every capture."""

    def __init__(self, window_id: int) -> None:
        hint = "call wait_for with still=true, then try again"
        message = f"window {window_id} keeps moving or changing its size"
        super().__init__(ErrorCode.CAPTURE_FAILED, message, hint)


def invalid(message: str, hint: str = "") -> PeekabooError:
    return PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint)


def screen_locked(undone: str, details: str = "") -> PeekabooError:
    """Return a SCREEN_LOCKED error. Fast user switching and virtual screen sharing look like a lock."""
    message = f"the screen is locked, or another user is active; {undone}"
    return PeekabooError(ErrorCode.SCREEN_LOCKED, message, details=details)


def check_range(what: str, value: float, least: float, most: float) -> None:
    """Raise INVALID_ARGUMENT unless a number is from `least` to `most`."""
    if not least <= value <= most:
        given = f"{value:g}" if isinstance(value, float) else value
        raise invalid(f"{what} is {given}", f"give a number from {least:g} to {most:g}")


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn an OSError of the `with` block into FILE_IO_ERROR about `path`."""
    try:
        yield
    except OSError as e:
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, f"{path}: {e.strerror or e}") from e
