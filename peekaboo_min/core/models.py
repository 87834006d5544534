"""The data types: points, windows, displays, acts, results, offers.

Named tuples, not dataclasses: importing those and making thirty of them would be a third of a command's time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Optional, get_args

from .errors import ErrorCode, PeekabooError
from .text import clean_text


def as_plain(value: Any) -> Any:
    """What JSON has for it: a named tuple as a dictionary, those within it too."""
    if isinstance(value, (list, tuple)):
        names = getattr(value, "_fields", None)
        plain = [as_plain(item) for item in value]
        return dict(zip(names, plain)) if names else plain
    return value


class Point(NamedTuple):
    """A position in screen points (in pixels of an image where a name says so); y grows downwards."""

    x: float
    y: float

    def as_data(self) -> dict[str, float]:
        return _tidy(self._asdict())


class Rect(NamedTuple):
    """A rectangle in screen points; the origin is the top left corner of the main display."""

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
        """The part that lies in `frame`; None for none."""
        left, top = max(self.x, frame.x), max(self.y, frame.y)
        right = min(self.x + self.width, frame.x + frame.width)
        bottom = min(self.y + self.height, frame.y + frame.height)
        return Rect(left, top, right - left, bottom - top) if left < right and top < bottom else None

    @property
    def centre(self) -> Point:
        return Point(self.x + self.width / 2, self.y + self.height / 2)

    @property
    def middle(self) -> Point:
        """The whole pixel at its centre, as it is named to be clicked."""
        return Point(*map(int, self.centre))

    def has_size_of(self, other: Rect, tolerance: float = 1.0) -> bool:
        return abs(self.width - other.width) <= tolerance and abs(self.height - other.height) <= tolerance

    def scaled(self, factor: float) -> Rect:
        return Rect(self.x * factor, self.y * factor, self.width * factor, self.height * factor)

    def in_image_of(self, frame: Rect, width: int) -> Rect:
        """Its place in an image that shows `frame` and is `width` pixels wide."""
        return self._replace(x=self.x - frame.x, y=self.y - frame.y).scaled(width / frame.width)

    def whole(self) -> Rect:
        """The whole pixels around it, at least one."""
        left, top = math.floor(self.x), math.floor(self.y)
        right, bottom = math.ceil(self.x + self.width), math.ceil(self.y + self.height)
        return Rect(left, top, max(1, right - left), max(1, bottom - top))

    def as_data(self) -> dict[str, float]:
        return _tidy(self._asdict())


def rect_around(rects: Sequence[Rect]) -> Rect:
    """The smallest rectangle that holds all of these; there is at least one."""
    left, top = min(rect.x for rect in rects), min(rect.y for rect in rects)
    right = max(rect.x + rect.width for rect in rects)
    bottom = max(rect.y + rect.height for rect in rects)
    return Rect(left, top, right - left, bottom - top)


def _tidy(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: int(n) if n == int(n) else round(n, 3) for name, n in numbers.items()}


class App(NamedTuple):
    """A running application. X11 has no bundle ids, and some of its programs set no pid: None."""

    name: str
    pid: Optional[int] = None
    bundle_id: Optional[str] = None
    is_active: bool = False
    is_regular: bool = True  # False for helpers and agents that never show in the Dock
    window_count: int = 0


_SMALLEST_WINDOW = 50


class Window(NamedTuple):
    """A window as the window server describes it, in a list ordered front to back."""

    window_id: int
    app_name: str  # of a popup: the name of the application that owns it
    pid: Optional[int]
    title: Optional[str]  # None where the window server withholds it (on a Mac without Screen Recording)
    bounds: Rect  # what a screenshot of it shows: without shadow and without a window manager's frame
    bundle_id: Optional[str] = None
    layer: int = 0  # 0 for normal windows; docks, menus and overlays have others
    alpha: float = 1.0
    is_on_screen: bool = True
    is_focused: bool = False  # True for the one window that would receive a key press now
    scale: float = 1.0  # pixels per point of a screenshot of it, by the display that shows its middle
    frame: Optional[Rect] = None  # what it covers on the screen, where that is more than `bounds`
    kind: str = "window"  # or dialog, popup (a menu, a list), tooltip (or notification: it never asks)
    parent_id: Optional[int] = None  # for a dialog or popup: the window it belongs to, where that is known
    is_modal: bool = False  # True for a declared modal dialog or sheet: its parent takes no input
    is_minimised: bool = False
    is_elsewhere: bool = False  # X11: True on another workspace
    is_menu: bool = False  # X11: True for a popup that says it is a menu: it takes its application's keys
    frame_id: Optional[int] = None  # X11: the top-level window that contains this one, where there is one
    identity: str = ""  # differs for another window that gets this id later, where the system lets us know
    is_obscured: bool = False  # True where a capture would show what covers it or is below it
    insets: tuple[float, ...] = (0, 0, 0, 0)  # X11: GTK's shadow left, right, above, below; below 0: a border

    @property
    def outer(self) -> Rect:
        return self.frame or self.bounds

    @property
    def shown_title(self) -> str:
        """Safe to show; empty where it is not known."""
        return clean_text(self.title or "")

    def __str__(self) -> str:
        return f"window {self.window_id} of {self.app_name} ({self.shown_title!r})"

    @property
    def is_popup(self) -> bool:
        return self.kind in ("popup", "tooltip")

    @property
    def is_ordinary(self) -> bool:
        """Of the layer of normal windows or a modal panel, visible, at least 50x50, and no popup."""
        return (
            (self.layer == 0 or self.is_modal)
            and self.alpha > 0
            and not self.is_popup
            and min(self.bounds.width, self.bounds.height) >= _SMALLEST_WINDOW
        )


class Display(NamedTuple):
    """A screen; `number` is 1 for the main one, `scale` is pixels per point."""

    number: int
    name: str
    bounds: Rect
    scale: float = 1.0

    @property
    def is_main(self) -> bool:
        return self.number == 1


class Scene(NamedTuple):
    """One listing of the desktop: everything that a decision needs, of one moment."""

    windows: tuple[Window, ...]  # front to back: popups, docks and minimised windows too
    apps: tuple[App, ...]  # the running applications, helpers included, with their on-screen windows counted
    displays: tuple[Display, ...]  # the active displays, the main one first
    can_see_titles: bool = True
    is_locked: bool = False  # True: the screen is locked, and nothing may be posted
    is_keyboard_grabbed: bool = False  # X11: True while a popup is shown and a program has grabbed it

    def find(self, window_id: int) -> Optional[Window]:
        return next((window for window in self.windows if window.window_id == window_id), None)

    def by_id(self, window_id: int) -> Window:
        """Raises WINDOW_NOT_FOUND."""
        window = self.find(window_id)
        if window is None:
            message = f"there is no window {window_id}"
            raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, hint="list the windows again")
        return window


class KeyChord(NamedTuple):
    """One key with modifiers, both by the names of keys.py."""

    key: str
    modifiers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "+".join((*self.modifiers, self.key))


# The names and limits of acts, for the tools, for what a model may answer, and for what checks them; the
# defaults are those of Act.
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
    """What pointer or keyboard do in one window; each kind reads its own fields."""

    kind: str  # click, scroll, drag or move_pointer, which have points; type or press, which have none
    points: tuple[Point, ...] = ()  # a drag's start and end; screen points, or a screenshot's pixels
    button: str = "left"
    clicks: int = 1
    modifiers: tuple[str, ...] = ()  # what a click holds; a key's are in its chord
    direction: str = "down"  # as the content's scroll bar moves
    amount: int = 3  # notches of a wheel
    text: str = ""  # any Unicode; a newline is the return key, a tab the tab key
    chord: KeyChord = KeyChord("return")
    hold_ms: int = 0  # how long a key stays down
    repeat: int = 1  # how often a key is pressed
    delay_ms: int = 0  # the pause between two keys of a text; 0: the platform's own
    replace: bool = False  # of a text: all that the field holds is selected first; an empty text deletes it


class Delivery(NamedTuple):
    """What became of what was posted."""

    delivered: Optional[bool]  # whether the window got it; None: not known
    point: Optional[Point] = None  # where the pointer was right before the press
    reached_id: Optional[int] = None  # the window that was under the pointer instead of the expected one
    others_typed: int = 0  # keys that somebody else pressed, and the window got, while ours were
    has_lost_copy: bool = False  # whether what somebody copied while a text was pasted may be lost


class RecognisedText(NamedTuple):
    """A line of text found in an image; `box` in pixels of that image, confidence 0 to 1."""

    text: str
    box: Rect
    confidence: float
    words: tuple[RecognisedText, ...] = ()  # with their own boxes, left to right, where words are known


def joined(words: Sequence[RecognisedText]) -> RecognisedText:
    """Words, at least one, as a line: with the box around them all and their average confidence."""
    text = clean_text(" ".join(word.text for word in words), 1000)
    confidence = sum(word.confidence for word in words) / len(words)
    return RecognisedText(text, rect_around([word.box for word in words]), confidence, tuple(words))


class Element(NamedTuple):
    """One element of a window's accessibility tree; `box` in screen points, clipped to the window.

    role: ARIA's word (button, textbox, checkbox, combobox, slider, link...). states: those that hold, of
    checked, focused, disabled, expanded, collapsed, selected, readonly, multiline.
    """

    role: str
    name: str
    value: str
    states: tuple[str, ...]
    box: Rect


class Handler(NamedTuple):
    """The application that opens something."""

    app_name: str
    entry: str = ""  # what the system's opener knows it by, a bundle id or desktop entry; may be empty
    bundle_id: Optional[str] = None


class Offer(NamedTuple):
    """How the shell's parameter differs from MCP's: further metadata of `Annotated[type, "its help"]`."""

    only: str = ""  # `shell` or `mcp`, where the other does not have it
    shell_help: str = ""  # its help in the shell; empty: the same
    shell_choices: tuple[str, ...] = ()  # what the shell may choose as well


SHELL_ONLY = Offer("shell")
MCP_ONLY = Offer("mcp")


class ImageInfo(NamedTuple):
    """What an image file's own header says. kind: png, jpg, gif, webp or bmp; sizes in pixels."""

    kind: str
    width: int
    height: int

    @property
    def mime_type(self) -> str:
        return "image/jpeg" if self.kind == "jpg" else f"image/{self.kind}"


class ImageData(NamedTuple):
    """An image for a model, as bytes of its real type."""

    data: bytes
    info: ImageInfo
    label: str = ""
    source_path: str = ""


NOTHING_FOUND = 3  # the exit code of a search without a match, as grep has 1


class Result(NamedTuple):
    """What an operation answers: text for people, data for programs, images for models."""

    text: str
    data: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it in place
    images: tuple[ImageData, ...] = ()
    messages: tuple[str, ...] = ()  # warnings that belong to a success
    failure: Optional[PeekabooError] = None  # what ended the job, where what it did is worth returning
    exit_code: int = 0  # the shell's: NOTHING_FOUND, or that of a program that a command ran
    stderr: str = ""  # what the shell command writes to stderr: another program's
    is_text_enough: bool = False  # True where the text tells a model what the data says, in fewer characters
    stdout: bytes = b""  # what the shell command writes to stdout instead of the text: an image's bytes
    is_text_only: bool = False  # True for a fixed grammar, to which nothing may be added (Keynote, mail)

    @property
    def summary(self) -> str:
        """The text's first line: what precedes the data where a program gets both."""
        return self.text.split("\n", 1)[0].rstrip(":")
