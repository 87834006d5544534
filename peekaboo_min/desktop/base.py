"""class Desktop(Protocol): what a platform must do; it never decides."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Protocol

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import (
    Act,
    Delivery,
    Display,
    Element,
    Handler,
    RecognisedText,
    Rect,
    Scene,
    Window,
)


class Desktop(Protocol):
    """Looks at a desktop and acts on it. Every method may raise PeekabooError, and nothing else that is
    expected.

    The caller of focus and act holds the input lock; the program that acts inherits the lock's descriptor
    (system.files.held_locks), so that the lock lives as long as the act.
    """

    name: str  # `macos` or `x11`

    needs: tuple[str, ...]  # the programs that it cannot do without

    uses: dict[str, str]  # optional programs, and what each is for

    @property
    def session(self) -> str:
        """Names this desktop among those of one user, safe in a file name: `macos`, `x11-0`."""

    def permissions(self) -> dict[ErrorCode, Optional[bool]]:
        """The grants of this system, by the codes of their absence; None: not known. No dialog is raised."""

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        """The error for a missing grant: `what` is refused, which app needs the grant, and how to give it."""

    def snapshot(self, with_minimised: bool = False) -> Scene:
        """All windows, apps and displays in one listing. What is shown of them is decided above.

        with_minimised: of those off the screen it says which are minimised, for which a Mac asks every app.
        """

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        """Take a screenshot of a display into `path`, at its own pixels. kind: png, jpg or bmp."""

    def capture_window(
        self, window: Window, path: Path, kind: str, with_shadow: bool = False
    ) -> Optional[Rect]:
        """Take a screenshot of one window, also of a covered one, at its own pixels. kind: png, jpg or bmp.

        Returns the window's bounds right after it; None where only another program could tell (macOS).
        Raises CAPTURE_FAILED where that would show something else (a hidden window; X11: an obscured one).
        """

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        """Take a screenshot of what the screen shows in a rectangle of screen points."""

    def focus(self, window: Window, may_click: bool = False) -> None:
        """Ask for a window to be raised and focused; the caller checks whether it was.

        may_click: where nothing else works, a click on its title bar is allowed.
        """

    def act(self, window: Window, act: Act, stop_file: Path) -> Delivery:
        """Do one act in a window; its points are screen points that lie in it.

        Right before a click, a scroll or a drag presses, the window server is asked what is under the point;
        when that is not the window, its frame or a child of it, nothing is posted and WINDOW_COVERED names
        what is there. Of a pointer that only moves `delivered` says whether it is over the window. A button
        or key that was pressed is released when the act ends, however it ends.

        Keys go out in pieces of at most 20 characters; before each, and while a key is held, the focus, the
        stop file and cancellation are checked. A popup needs the focus of the window it belongs to. Raises
        FOCUS_LOST, and POLICY_DENIED for the stop file; both say how much went out.
        """

    def read_elements(self, window: Window) -> list[Element]:
        """The visible elements of a window's accessibility tree, in reading order, at most 1,000.

        Raises NO_ELEMENTS for an application that offers no tree, MISSING_PROGRAM,
        PERMISSION_DENIED_ACCESSIBILITY.
        """

    def find_handler(self, kind: str, target: str) -> Handler:
        """The application that `open` would start. kind: app (a name, bundle id or desktop entry), path (an
        absolute path of a file or folder that exists) or url (http or https).

        Raises APP_NOT_FOUND, naming near ones; AMBIGUOUS_APP_IDENTIFIER.
        """

    def open(self, kind: str, target: str, handler: Handler) -> None:
        """Open an application, a file or an address by the system's own opener; what it starts lives on after
        us and inherits neither a lock nor a pipe. The caller waits for its window.
        """

    def fit_image(
        self, source: Path, target: Path, width: int, height: int, kind: str, quality: int = 80
    ) -> None:
        """Write `source` into `target` at another size in pixels. kind: png, jpg (with quality) or bmp."""

    def read_text(self, path: Path, characters: bool = False) -> list[RecognisedText]:
        """The lines of text in an image, recognised on this machine; no network. characters: instead single
        ones and pairs that stand alone, as on keys, of which it else misses most.
        """

    def input_backend(self) -> str:
        """What clicks and types, in a few words for `doctor`."""
