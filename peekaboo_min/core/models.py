"""The types that modules pass to each other: points, windows, acts, results.

Named tuples, not dataclasses: importing `dataclasses` and creating thirty of them takes a third of the run
time of a command.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Optional, get_args

from .errors import ErrorCode, PeekabooError
from .text import clean_text


def as_plain(value: Any) -> Any:
    """Convert to JSON types: tuples become lists, and named tuples dicts, recursively."""
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None)
        plain = [as_plain(item) for item in value]
        return dict(zip(names, plain)) if names else plain
    return value


class Point(NamedTuple):
    """A position in screen points, or in image pixels where documented; y grows downwards."""

    x: float
    y: float

    def as_data(self) -> dict[str, float]:
        return _tidy(self._asdict())


class Rect(NamedTuple):
    """A rectangle in screen points (0, 0: top left of the main display), or pixels where documented."""

    x: float
    y: float
    width: float
    height: float

    def contains(self, point: Point) -> bool:
        return self.x <= point.x < self.x + self.width and self.y <= point.y < self.y + self.height

    def encloses(self, other: Rect) -> bool:
        is_across = self.x <= other.x and self.x + self.width >= other.x + other.width
        return is_across and self.y <= other.y and self.y + self.height >= other.y + other.height

    def overlaps(self, other: Rect) -> bool:
        return self.clipped(other) is not None

    def clipped(self, frame: Rect) -> Optional[Rect]:
        """Return the part inside `frame`, or None if the two do not overlap."""
        left, top = max(self.x, frame.x), max(self.y, frame.y)
        right = min(self.x + self.width, frame.x + frame.width)
        bottom = min(self.y + self.height, frame.y + frame.height)
        return Rect(left, top, right - left, bottom - top) if left < right and top < bottom else None

    @property
    def centre(self) -> Point:
        return Point(self.x + self.width / 2, self.y + self.height / 2)

    @property
    def middle(self) -> Point:
        """Return the centre, truncated to whole pixels."""
        return Point(*map(int, self.centre))

    def has_size_of(self, other: Rect) -> bool:
        """Return True if the sizes differ by at most 1."""
        return abs(self.width - other.width) <= 1 and abs(self.height - other.height) <= 1

    def scaled(self, factor: float) -> Rect:
        return Rect(self.x * factor, self.y * factor, self.width * factor, self.height * factor)

    def in_image_of(self, frame: Rect, width: int) -> Rect:
        """Convert to pixels of an image that shows `frame` and is `width` pixels wide."""
        return self._replace(x=self.x - frame.x, y=self.y - frame.y).scaled(width / frame.width)

    def whole(self) -> Rect:
        """Round outwards to whole pixels, at least 1x1."""
        left, top = math.floor(self.x), math.floor(self.y)
        right, bottom = math.ceil(self.x + self.width), math.ceil(self.y + self.height)
        return Rect(left, top, max(1, right - left), max(1, bottom - top))

    def as_data(self) -> dict[str, float]:
        return _tidy(self._asdict())


def rect_around(rects: Sequence[Rect]) -> Rect:
    """Return the smallest rectangle that contains all of `rects`; `rects` must not be empty."""
    left, top = min(rect.x for rect in rects), min(rect.y for rect in rects)
    right = max(rect.x + rect.width for rect in rects)
    bottom = max(rect.y + rect.height for rect in rects)
    return Rect(left, top, right - left, bottom - top)


def _tidy(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: int(n) if n == int(n) else round(n, 3) for name, n in numbers.items()}


class App(NamedTuple):
    """A running application. bundle_id: None on X11 or outside a bundle; pid: None if X11 has none."""

    name: str
    pid: Optional[int] = None
    bundle_id: Optional[str] = None
    is_active: bool = False
    is_regular: bool = True  # False for helpers and agents that never show in the Dock
    window_count: int = 0


class Window(NamedTuple):
    """A window as the window server lists it; lists of windows are ordered front to back."""

    window_id: int
    app_name: str  # for a popup: the application that owns it
    pid: Optional[int]
    title: Optional[str]  # None if the window server withholds it (on a Mac without Screen Recording)
    bounds: Rect  # the area that its screenshot shows: without shadow and window manager's frame
    bundle_id: Optional[str] = None
    layer: int = 0  # 0 for normal windows; docks, menus and overlays have others
    alpha: float = 1.0
    is_on_screen: bool = True
    is_focused: bool = False  # True for the window that would receive a key press now
    scale: float = 1.0  # pixels per point of its screenshot, taken from the display under its centre
    frame: Optional[Rect] = None  # the area that it covers on the screen, if larger than `bounds`
    kind: str = "window"  # or dialog, popup (a menu or list), tooltip (or a notification; asks nothing)
    parent_id: Optional[int] = None  # for a dialog or popup: the window it belongs to, if known
    is_modal: bool = False  # True for a declared modal dialog or sheet, whose parent takes no input
    is_minimised: bool = False
    is_elsewhere: bool = False  # X11: True on another workspace
    is_menu: bool = False  # X11: True for a popup of a menu type, which takes its application's keys
    frame_id: Optional[int] = None  # X11: the top-level window that contains this one, if any
    identity: str = ""  # X11: changes, like pid and app_name, if the id is reused; may be empty
    is_obscured: bool = False  # True if a capture would show other windows, or nothing, instead
    insets: tuple[float, ...] = (0, 0, 0, 0)  # X11: GTK's shadow left, right, above, below; < 0: a border

    @property
    def outer(self) -> Rect:
        return self.frame or self.bounds

    @property
    def shown_title(self) -> str:
        """Return the title, safe to display; empty if it is unknown."""
        return clean_text(self.title or "")

    def __str__(self) -> str:
        return f"window {self.window_id} of {self.app_name} ({self.shown_title!r})"

    @property
    def is_popup(self) -> bool:
        return self.kind in ("popup", "tooltip")

    @property
    def is_ordinary(self) -> bool:
        """Return True for a visible window or modal panel of at least 50x50 points that is no popup."""
        is_window = (self.layer == 0 or self.is_modal) and not self.is_popup
        # applications keep many smaller, invisible windows
        return is_window and self.alpha > 0 and min(self.bounds.width, self.bounds.height) >= 50


class Display(NamedTuple):
    """A display; `number` is 1 for the main display, `scale` is pixels per point."""

    number: int
    name: str
    bounds: Rect
    scale: float = 1.0

    @property
    def is_main(self) -> bool:
        return self.number == 1


class Scene(NamedTuple):
    """A snapshot of the desktop."""

    windows: tuple[Window, ...]  # front to back; includes popups, docks and minimised windows
    apps: tuple[App, ...]  # running applications, including helpers; window_count is on-screen only
    displays: tuple[Display, ...]  # the active displays, the main one first
    can_see_titles: bool = True
    is_locked: bool = False  # True: nothing may be posted
    is_keyboard_grabbed: bool = False  # X11: True if a popup is shown and a program has grabbed the keyboard

    def find(self, window_id: int) -> Optional[Window]:
        return next((window for window in self.windows if window.window_id == window_id), None)

    def by_id(self, window_id: int) -> Window:
        """Return the window with this id. Raises WINDOW_NOT_FOUND."""
        window = self.find(window_id)
        if window is None:
            raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, f"there is no window {window_id}")
        return window


class KeyChord(NamedTuple):
    """A key with modifiers, both by their names in keys.py."""

    key: str
    modifiers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "+".join((*self.modifiers, self.key))


# Allowed names and ranges of an act's fields: for tools, models' replies, validation. Defaults: in Act.
Button = Literal["left", "right", "middle"]
Direction = Literal["up", "down", "left", "right"]
ACT_NAMES: dict[str, tuple[str, ...]] = {
    "button": get_args(Button),
    "direction": get_args(Direction),
    "modifier": ("cmd", "ctrl", "alt", "shift", "super"),
}
ACT_LIMITS = {
    "clicks": (1, 3),
    "amount": (1, 50),
    "hold_ms": (0, 5000),
    "repeat": (1, 50),
    "delay_ms": (0, 200),
}


class Act(NamedTuple):
    """One act of the pointer or keyboard in one window; each kind reads its own fields."""

    kind: str  # click, scroll, drag and move_pointer have points; type and press have none
    points: tuple[Point, ...] = ()  # one, or a drag's two; pixels, which perform converts to screen points
    button: str = "left"
    clicks: int = 1
    modifiers: tuple[str, ...] = ()  # held during a click; `chord` has the modifiers of a key
    direction: str = "down"  # the way the scroll bar moves
    amount: int = 3  # notches of the wheel
    text: str = ""  # any Unicode; a newline presses return, a tab presses tab
    chord: KeyChord = KeyChord("return")
    hold_ms: int = 0  # how long to hold the key down
    repeat: int = 1  # how often to press the key
    delay_ms: int = 0  # the pause between two characters of a text; 0: the platform's default
    replace: bool = False  # type only: replace the content of the field; an empty text deletes it


class Delivery(NamedTuple):
    """The outcome of an act whose events were posted."""

    delivered: Optional[bool]  # True if the window received it; None if unknown
    point: Optional[Point] = None  # the pointer's position right before the press
    reached_id: Optional[int] = None  # the window under the pointer, if it was not the expected one
    others_typed: int = 0  # keys that a person pressed during the act and the window received
    has_lost_copy: bool = False  # True if a copy made during the paste may be lost
    reason: str = ""  # why the window did not receive the keys


SIDE = "\u2502"  # a word of a line: a field's or button's side, which ends a label


class RecognisedText(NamedTuple):
    """A line of recognised text; `box` is in pixels of the image, `confidence` from 0 to 1."""

    text: str
    box: Rect
    confidence: float
    words: tuple[RecognisedText, ...] = ()  # left to right, each with its own box; empty if unknown


def joined(words: Sequence[RecognisedText]) -> RecognisedText:
    """Join at least one word into a line, with the box around all and the average confidence."""
    text = clean_text(" ".join(word.text for word in words), 1000)
    confidence = sum(word.confidence for word in words) / len(words)
    return RecognisedText(text, rect_around([word.box for word in words]), confidence, tuple(words))


class Element(NamedTuple):
    """An element of a window's accessibility tree; `box` is in screen points, clipped to the window.

    role: the name in ARIA (button, textbox, checkbox, combobox, slider, link...). states: any of checked,
    focused, disabled, expanded, collapsed, selected, readonly, multiline.
    """

    role: str
    name: str
    value: str
    states: tuple[str, ...]
    box: Rect


class Handler(NamedTuple):
    """The application that `Desktop.open` starts."""

    app_name: str
    entry: str = ""  # its id for the system's opener: a bundle id or desktop entry; may be empty
    bundle_id: Optional[str] = None


class ImageInfo(NamedTuple):
    """The type and size from an image file's header. kind: png, jpg, gif, webp or bmp; size in pixels."""

    kind: str
    width: int
    height: int

    @property
    def mime_type(self) -> str:
        return "image/jpeg" if self.kind == "jpg" else f"image/{self.kind}"


class ImageData(NamedTuple):
    """An image for a model; `info` is read from `data` itself."""

    data: bytes
    info: ImageInfo
    label: str = ""
    source_path: str = ""


NOTHING_FOUND = 3  # the exit code of a search without a match


class Result(NamedTuple):
    """The result of an operation: text for people, data for programs, images for models."""

    text: str
    data: dict[str, Any] = {}  # noqa: RUF012 - never changed in place
    images: tuple[ImageData, ...] = ()
    messages: tuple[str, ...] = ()  # warnings that belong to a success
    failure: Optional[PeekabooError] = None  # the error of a job that still returns a partial result
    exit_code: int = 0  # for the shell: NOTHING_FOUND, or the exit code of a program that the command ran
    stderr: str = ""  # for the shell: the stderr of a program that the command ran
    is_text_enough: bool = False  # True if the text gives a model all of the data in fewer characters
    stdout: Optional[bytes] = None  # for the shell: written to stdout instead of the text
    is_text_only: bool = False  # True if the text has a fixed grammar (Keynote, mail); nothing may be added

    @property
    def summary(self) -> str:
        """Return the text's first line, which precedes the data if both are shown."""
        return self.text.split("\n", 1)[0].rstrip(":")
