"""What modules pass around: points, windows, displays, images, results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional


@dataclass(frozen=True)
class Point:
    """A position, in screen points (or in pixels of an image, where a name says so); y grows downwards."""

    x: float
    y: float

    def as_data(self) -> dict[str, float]:
        return {"x": _tidy_number(self.x), "y": _tidy_number(self.y)}


@dataclass(frozen=True)
class Rect:
    """A rectangle in screen points; the origin is the top left corner of the main display."""

    x: float
    y: float
    width: float
    height: float

    def contains(self, point: Point) -> bool:
        return self.x <= point.x < self.x + self.width and self.y <= point.y < self.y + self.height

    def encloses(self, other: Rect) -> bool:
        return (
            self.x <= other.x
            and self.y <= other.y
            and self.x + self.width >= other.x + other.width
            and self.y + self.height >= other.y + other.height
        )

    @property
    def centre(self) -> Point:
        return Point(self.x + self.width / 2, self.y + self.height / 2)

    def has_size_of(self, other: Rect, tolerance: float = 1.0) -> bool:
        return abs(self.width - other.width) <= tolerance and abs(self.height - other.height) <= tolerance

    def as_data(self) -> dict[str, float]:
        return {key: _tidy_number(getattr(self, key)) for key in ("x", "y", "width", "height")}

    def as_short_data(self) -> dict[str, float]:
        """With `w` and `h`, as the specification's MCP results have it."""
        return {key[0]: _tidy_number(getattr(self, key)) for key in ("x", "y", "width", "height")}


def rect_around(rects: Sequence[Rect]) -> Rect:
    """The smallest rectangle that holds these; there is at least one."""
    left, top = min(rect.x for rect in rects), min(rect.y for rect in rects)
    right = max(rect.x + rect.width for rect in rects)
    bottom = max(rect.y + rect.height for rect in rects)
    return Rect(left, top, right - left, bottom - top)


def _tidy_number(value: float) -> float:
    return int(value) if value == int(value) else round(value, 3)


@dataclass(frozen=True)
class App:
    """A running application. X11 has no bundle ids, and some of its programs set no pid: None."""

    name: str
    pid: Optional[int] = None
    bundle_id: Optional[str] = None
    is_active: bool = False
    is_regular: bool = True
    """False for helpers and agents that never show in the Dock."""
    window_count: int = 0


_SMALLEST_WINDOW = 50


@dataclass(frozen=True)
class Window:
    """A window as the window server knows it, in a list that is ordered front to back."""

    window_id: int
    app_name: str
    pid: Optional[int]
    title: Optional[str]
    """None where the window server does not tell it (on a Mac without Screen Recording)."""
    bounds: Rect
    """The photographed content, without shadow and without a window manager's frame."""
    bundle_id: Optional[str] = None
    layer: int = 0
    """0 for normal windows; docks, menus and overlays have others."""
    alpha: float = 1.0
    is_on_screen: bool = True
    is_focused: bool = False
    """True for the one window that would receive a key press now."""
    frame: Optional[Rect] = None
    """What it covers on the screen, where that is more than `bounds`; None where it is the same."""

    @property
    def outer(self) -> Rect:
        return self.frame or self.bounds

    @property
    def is_ordinary(self) -> bool:
        """Of the layer of normal windows, visible, and as large as a person would call a window (50x50)."""
        return (
            self.layer == 0
            and self.alpha > 0
            and min(self.bounds.width, self.bounds.height) >= _SMALLEST_WINDOW
        )


@dataclass(frozen=True)
class Display:
    """A screen; `number` is 1 for the main one, `scale` is pixels per point."""

    number: int
    name: str
    bounds: Rect
    scale: float = 1.0

    @property
    def is_main(self) -> bool:
        return self.number == 1


@dataclass(frozen=True)
class Permissions:
    """What the system permits; None means that this system has no such grant."""

    screen_recording: Optional[bool] = None
    accessibility: Optional[bool] = None
    automation: Optional[bool] = None


@dataclass(frozen=True)
class KeyChord:
    """One key with modifiers, both by the names of keys.py."""

    key: str
    modifiers: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "+".join((*self.modifiers, self.key))


@dataclass(frozen=True)
class RecognisedText:
    """A line of text found in an image; `box` in pixels of that image, confidence 0 to 1."""

    text: str
    box: Rect
    confidence: float
    words: tuple[RecognisedText, ...] = ()
    """A line's words with boxes of their own, left to right; empty where only lines are recognised."""


@dataclass(frozen=True)
class ImageInfo:
    """What an image file's own header says. kind: png, jpg, gif or webp; sizes in pixels."""

    kind: str
    width: int
    height: int

    @property
    def mime_type(self) -> str:
        return "image/jpeg" if self.kind == "jpg" else f"image/{self.kind}"


@dataclass(frozen=True)
class Screenshot:
    """The coordinate record: what a screenshot of a window showed, so that its pixels can be clicked."""

    screenshot_id: str
    window_id: int
    app_name: str
    pid: Optional[int]
    bounds: Rect
    image_width: int
    image_height: int
    taken_at: float
    """Seconds since 1970."""

    @property
    def scale(self) -> float:
        """Pixels of the returned image per screen point."""
        return round(self.image_width / self.bounds.width, 4)

    def as_data(self) -> dict[str, Any]:
        """What take_window_screenshot answers about its image."""
        return {
            "window_id": self.window_id,
            "bounds": self.bounds.as_data(),
            "image_width": self.image_width,
            "image_height": self.image_height,
            "scale": self.scale,
            "screenshot_id": self.screenshot_id,
        }

    def to_point(self, pixel: Point, bounds: Rect) -> Point:
        """The screen point under a pixel, for a window of this size that may have moved to `bounds`."""
        return Point(
            bounds.x + pixel.x * bounds.width / self.image_width,
            bounds.y + pixel.y * bounds.height / self.image_height,
        )


@dataclass(frozen=True)
class Picture:
    """An image for a model, as bytes of its real type."""

    data: bytes = field(repr=False)
    info: ImageInfo
    label: str = ""
    source_path: str = ""


@dataclass(frozen=True)
class Result:
    """What a job returns: text for people, data for programs, images for models."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    images: tuple[Picture, ...] = ()
    messages: tuple[str, ...] = ()
    """Warnings that belong to a success."""
    files: tuple[Path, ...] = ()
    """Files that a program may want a link to."""
    is_text_only: bool = False
    """True where the text follows a grammar of its own and nothing may stand beside it (Keynote, mail)."""

    @property
    def summary(self) -> str:
        """The text's first line: what stands above the data, where a program gets both."""
        return self.text.split("\n", 1)[0].rstrip(":")
