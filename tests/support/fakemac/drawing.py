"""The fake world as pictures: every window a flat rectangle in a colour of its own."""

from __future__ import annotations

import zlib
from typing import Any

from .pictures import Block, Colour, Picture, paint
from .windows import app_with_pid, contains, front_to_back
from .world import State

WALLPAPER: Colour = (30, 60, 110)
MENU_BAR: Colour = (236, 236, 236)
SHADOW: Colour = (8, 8, 8)
SLIDE: Colour = (250, 250, 250)
# Points. The real margin is not known; Pillow tells Retina by a difference of over 100 pixels (6.3.13).
SHADOW_MARGIN = {"side": 34, "top": 22, "bottom": 46}
LETTER_WIDTH, LINE_HEIGHT = 8, 16  # points


def colour_of(name: str) -> Colour:
    """Return a colour between the extremes, computed from the name alone."""
    number = zlib.crc32(name.encode("utf-8"))
    red, green, blue = (40 + (number >> shift & 0xFF) * 200 // 256 for shift in (0, 8, 16))
    return (red, green, blue)


def window_colour(window_id: int) -> Colour:
    return colour_of(f"window {window_id}")


def widget_colour(window_id: int, name: str, value: Any = None, focused: bool = False) -> Colour:
    """Return a widget's colour, which changes with its value and with the focus, as on a Mac."""
    return colour_of(f"widget {window_id} {name} {value!r} {focused}")


def shape_colour(index: int) -> Colour:
    """Return the colour of the nth shape on a slide, counted from 1."""
    return colour_of(f"shape {index}")


class Canvas:
    """A region of the world (points) on its way to a picture (pixels)."""

    def __init__(self, region: list[float], scale: float, background: Colour) -> None:
        self.region, self.scale, self.background = region, scale, background
        self.blocks: list[Block] = []
        self.labels: list[dict[str, Any]] = []
        self.width, self.height = max(1, round(region[2] * scale)), max(1, round(region[3] * scale))

    def pixels(self, rect: list[float]) -> list[float]:
        """Convert a rectangle from points to pixels of the picture."""
        left, top = self.region[:2]
        return [self.scale * value for value in (rect[0] - left, rect[1] - top, rect[2], rect[3])]

    def fill(self, rect: list[float], colour: Colour) -> None:
        x, y, width, height = self.pixels(rect)
        left, top, right, bottom = (round(edge) for edge in (x, y, x + width, y + height))
        self.blocks.append(Block(left, top, right - left, bottom - top, colour))

    def cover(self, rect: list[float]) -> None:
        """Remove labels that a window covers."""
        self.labels = [label for label in self.labels if not contains(rect, label["at"][0], label["at"][1])]

    def write(self, text: str, rect: list[float]) -> None:
        if text.strip() and rect[2] > 0:
            middle = [rect[0] + rect[2] / 2, rect[1] + rect[3] / 2]
            self.labels.append({"text": text, "points": rect, "at": middle})

    def picture(self) -> Picture:
        labels = [
            {"text": label["text"], "rect": [round(value, 2) for value in self.pixels(label["points"])]}
            for label in self.labels
            if contains(self.region, label["points"][0], label["points"][1])
        ]
        bands = paint(self.width, self.height, self.background, self.blocks)
        return Picture(self.width, self.height, bands, labels)


def draw_region(state: State, region: list[float], scale: float) -> Picture:
    """Draw a region of a display; without Screen Recording only wallpaper, menu bar and our own windows
    (A3).
    """
    canvas = Canvas(region, scale, WALLPAPER)
    for window in reversed(front_to_back(state)):
        is_drawn = not (window.get("desktop") or window.get("click_through") or window.get("closing"))
        if window["alpha"] > 0 and is_drawn and may_see(state, window):
            draw_window(canvas, window)
    return canvas.picture()


def may_see(state: State, window: dict[str, Any]) -> bool:
    """Return True with Screen Recording; without it only for the menu bar and the responsible app's
    windows.
    """
    app = app_with_pid(state, window["pid"])
    is_own = window["title"] == "Menubar" or bool(app and app.get("responsible"))
    return is_own or state["permissions"]["screen_recording"] == "granted"


def draw_window(canvas: Canvas, window: dict[str, Any]) -> None:
    left, top, width, _ = window["bounds"]
    canvas.cover(window["bounds"])
    canvas.fill(window["bounds"], MENU_BAR if window["title"] == "Menubar" else window_colour(window["id"]))
    title_width = min(len(window["title"]) * LETTER_WIDTH, width)
    canvas.write(window["title"], [left + (width - title_width) / 2, top + 4, title_width, LINE_HEIGHT])
    for widget in window["widgets"]:
        draw_widget(canvas, window, widget)


def draw_widget(canvas: Canvas, window: dict[str, Any], widget: dict[str, Any]) -> None:
    x, y, width, height = widget["rect"]
    x, y = x + window["bounds"][0], y + window["bounds"][1]
    name, is_focused = widget["name"], widget["name"] == window.get("focus")
    canvas.fill([x, y, width, height], widget_colour(window["id"], name, widget.get("value"), is_focused))
    for index, line in enumerate(shown_lines(widget)):
        line_top = y + 4 + 20 * index if widget["kind"] == "textview" else y + (height - LINE_HEIGHT) / 2
        canvas.write(line, [x + 8, line_top, min(len(line) * LETTER_WIDTH, width - 8), LINE_HEIGHT])


def shown_lines(widget: dict[str, Any]) -> list[str]:
    if widget["kind"] == "password":
        return ["\u2022" * len(widget["value"])]
    if widget["kind"] == "textview":
        return str(widget["value"]).split("\n")
    if widget["kind"] == "field":
        return [str(widget["value"] or widget.get("text", ""))]
    return [widget.get("text", "")]


def draw_slide_picture(deck: dict[str, Any], index: int) -> Picture:
    """Draw a slide as Keynote exports it: one pixel per point (facts E4)."""
    canvas = Canvas([0, 0, deck["width"], deck["height"]], 1, SLIDE)
    for number, shape in enumerate(deck["slides"][index]["shapes"], 1):
        (x, y), width, height = (shape["position"][key] for key in "xy"), shape["width"], shape["height"]
        canvas.fill([x, y, width, height], shape_colour(number))
        text_width = min(len(shape["object_text"]) * 12, width)
        canvas.write(
            shape["object_text"], [x + (width - text_width) / 2, y + height / 2 - 12, text_width, 24]
        )
    return canvas.picture()


def draw_one_window(
    state: State, window: dict[str, Any], family: list[dict[str, Any]], scale: float, shadow: bool
) -> Picture:
    """Draw one window, even if others cover it; the rest of its family may enlarge the picture (facts A4)."""
    rects = [item["bounds"] for item in family]
    left, top = min(rect[0] for rect in rects), min(rect[1] for rect in rects)
    right, bottom = max(rect[0] + rect[2] for rect in rects), max(rect[1] + rect[3] for rect in rects)
    if shadow:
        left, right = left - SHADOW_MARGIN["side"], right + SHADOW_MARGIN["side"]
        top, bottom = top - SHADOW_MARGIN["top"], bottom + SHADOW_MARGIN["bottom"]
    canvas = Canvas([left, top, right - left, bottom - top], scale, SHADOW)
    if may_see(state, window):
        for item in family:
            draw_window(canvas, item)
    else:
        canvas.fill(canvas.region, WALLPAPER)
    return canvas.picture()
