"""class Desktop(Protocol): what a platform must do, and never decides."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Protocol

from ..core.errors import ErrorCode, PeekabooError
from ..core.models import App, Display, KeyChord, Permissions, Point, RecognisedText, Rect, Window


class Desktop(Protocol):
    """A desktop's eyes and hands. Every method may raise PeekabooError, and only that, for what can be expected."""

    name: str
    """`macos` or `x11`."""

    needs: tuple[str, ...]
    """The programs that it cannot do without."""

    uses: dict[str, str]
    """Programs that it can do without, and what for they are."""

    def permissions(self) -> Permissions:
        """The grants as they are now, asked without raising a dialog."""

    def denied(self, code: ErrorCode, what: str) -> PeekabooError:
        """The error for a missing grant: `what` is refused, who needs the grant, and how to give it."""

    def displays(self) -> list[Display]:
        """The active displays, the main one first."""

    def apps(self) -> list[App]:
        """The running applications, helpers included, with their on-screen windows counted."""

    def windows(self) -> list[Window]:
        """All windows, front to back: docks, menus and minimised ones too. Who may be seen is decided above."""

    def can_see_titles(self) -> bool:
        """Whether the last windows() could tell other programs' titles."""

    def capture_display(self, display: Display, path: Path, kind: str) -> None:
        """Photograph a display into `path`, at its own pixels. kind: png or jpg."""

    def capture_window(self, window: Window, path: Path, kind: str, with_shadow: bool = False) -> None:
        """Photograph one window, also when others cover it (X11: with a compositor), at its own pixels."""

    def capture_rect(self, rect: Rect, path: Path, kind: str) -> None:
        """Photograph what the screen shows in a rectangle, in screen points."""

    def activate(self, app: App) -> None:
        """Ask for an app to come to the front; the caller looks whether it did."""

    def focus(self, window: Window, may_click: bool = False) -> None:
        """Ask for a window to be raised and focused; the caller looks whether it was.

        may_click: where nothing else works, a click on its title bar is allowed.
        """

    def click(self, point: Point, button: str, clicks: int) -> Optional[Point]:
        """Click at a screen point; button: left, right or middle. Returns where the pointer then was, None if unknown."""

    def type_text(self, text: str) -> None:
        """Type any Unicode text into what has the keyboard; a newline is the return key, a tab the tab key."""

    def press_key(self, chord: KeyChord) -> None:
        """Press and release one key, with its modifiers held."""

    def fit_image(
        self, source: Path, target: Path, width: int, height: int, kind: str, quality: int = 80
    ) -> None:
        """Write `source` into `target` at another size in pixels. kind: png or jpg; quality is for jpg."""

    def read_text(self, path: Path) -> list[RecognisedText]:
        """The lines of text in a picture, by what this machine has for that; no network."""

    def input_backend(self) -> str:
        """What clicks and types, in a word for `doctor`."""
