"""The Desktop protocol: the operations that each platform implements."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Optional, Protocol

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Act, Delivery, Display, Element, Handler, RecognisedText, Rect, Scene, Window

VALUE_LENGTH = 100_000  # characters of an element's value


class Desktop(Protocol):
    """Listings, screenshots and input of one desktop.

    A platform acts; the caller decides. Every method may raise PeekabooError; any other exception is a bug.
    A method with a `return` here is a default, for a platform without that feature.

    The caller of `focus` and `act` holds the input lock. The child process that acts inherits the lock's
    descriptor (system.files.held_locks), so the lock lasts until that child exits, even if we are killed.
    """

    name: str  # `macos` or `x11`
    needs: tuple[str, ...]  # required programs
    uses: dict[str, str]  # optional programs -> the purpose of each
    extra_tools: tuple[str, ...]  # groups of tools that only this platform offers
    variables: tuple[str, ...]  # environment variables that a server's configuration must contain
    config_folder: str  # where the user's programs keep their configuration, with `~`
    has_noisy_captures: bool  # True if two captures of an idle window may differ a little
    capture_cost: int  # a factor for the pause between two captures in a loop

    @property
    def session(self) -> str:
        """Return a name that differs between one user's desktops and is safe in a file name: `x11-0`."""

    def permissions(self) -> dict[ErrorCode, Optional[bool]]:
        """Map each permission's error code to True (granted), False or None (unknown). Opens no dialog."""
        return {}

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        """Return the error for a refused operation (`what`): which app lacks permission, how to grant it."""
        return PeekabooError(code, what)

    def warnings(self) -> tuple[str, ...]:
        """Return warnings about windows of this session that cannot be seen."""
        return ()

    def prepare(self, in_background: bool) -> None:
        """Make acts faster, for example by compiling a helper. Acts work without it."""
        return None

    def request_permissions(self, announce: Callable[[str], None]) -> None:
        """Let the system ask the person at the screen for permissions; announce first for which app."""
        return None

    def snapshot(self, with_minimised: bool = False) -> Scene:
        """List all windows, apps and displays in one call, unfiltered.

        with_minimised: on a Mac, fill in `is_minimised`, with a query to each app that has hidden windows.
        """

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        """Write a screenshot of a display to `path`, in the display's own pixels. kind: png, jpg or bmp."""

    def capture_window(
        self, window: Window, path: Path, kind: str, with_shadow: bool = False
    ) -> Optional[Rect]:
        """Write a screenshot of one window to `path`, in the window's own pixels, even if it is covered.

        kind: png, jpg or bmp. Return the window's bounds right after the capture, or None on macOS, where
        reading them needs another process. Raises CAPTURE_FAILED if the image would show anything but this
        window: it is hidden, or it is covered and X11 runs without a compositor.
        """

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        """Write a screenshot of a rectangle of the screen, given in screen points. kind: png, jpg or bmp."""

    def focus(self, window: Window, may_click: bool = False) -> None:
        """Request focus for a window; may_click: if need be, click its title bar. The caller verifies it."""

    def act(self, window: Window, act: Act, stop_file: Path) -> Delivery:
        """Do one act in a window; the act's points are screen points inside the window.

        Before a click, scroll or drag is posted, ask the window server what is under the point. If it is not
        the window, its frame or a child of it, post nothing and raise WINDOW_COVERED, which names the window
        there. For an act that only moves the pointer, `delivered` is True if the pointer is over the window.
        Every button and key that the act pressed is released when the act ends, even if it fails.

        Send text in pieces of at most 20 characters. Before each piece, and while a key is held, check the
        focus, the stop file and cancellation. Keys to a popup need the focus on the window that owns it.
        Raises FOCUS_LOST, or POLICY_DENIED for the stop file; both report how much was sent.
        """

    def read_elements(self, window: Window) -> list[Element]:
        """Return the visible elements of a window's accessibility tree, in reading order, at most 1,000.

        Raises NO_ELEMENTS (there is no tree), MISSING_PROGRAM and PERMISSION_DENIED_ACCESSIBILITY.
        """

    def find_handler(self, kind: str, target: str) -> Handler:
        """Return the application that `open` would start.

        kind: app (target is a name, bundle id or desktop entry), path (absolute, of an existing file or
        folder) or url (http or https). Raises APP_NOT_FOUND (lists similar names), AMBIGUOUS_APP_IDENTIFIER.
        """

    def open(self, kind: str, target: str, handler: Handler) -> None:
        """Open a target; the caller waits for its window. The program outlives us and inherits no lock."""

    def fit_image(self, source: Path, target: Path, width: int, height: int, kind: str, quality: int) -> None:
        """Resize an image file to width x height pixels. kind: png, jpg (uses `quality`) or bmp."""

    def read_text(self, path: Path, characters: bool = False) -> list[RecognisedText]:
        """Recognise the lines of text in an image, on this machine and without network.

        characters: look instead for lone characters and pairs, such as labels on keys: lines miss them.
        """

    def text_languages(self) -> list[str]:
        """Return the languages of text recognition, best first; empty if the system chooses them."""
        return []

    def missing_language(self, text: str) -> str:
        """Return the package to install so that `text` and the user's language are read; empty if none."""
        return ""

    def input_backend(self) -> str:
        """Name the program that clicks and types, in a few words for `doctor`."""
