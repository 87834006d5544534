"""The fake world as pictures: every window a flat rectangle in a colour of its own."""

from __future__ import annotations

import zlib
from typing import Any, Optional

from .pictures import Block, Colour, Picture, paint
from .windows import app_with_pid, contains, front_to_back
from .world import State

WALLPAPER: Colour = (30, 60, 110)
MENU_BAR: Colour = (236, 236, 236)
SHADOW: Colour = (8, 8, 8)
POINTER: Colour = (255, 0, 255)
SLIDE: Colour = (250, 250, 250)
# Points on the left and right, above, below. The real margin is not known; Pillow tells Retina by a difference of over 100 pixels (facts 6.3.13).  # noqa: E501
SHADOW_MARGIN = {"side": 34, "top": 22, "bottom": 46}
LETTER_WIDTH, LINE_HEIGHT = 8, 16  # points


def colour_of(name: str) -> Colour:
    """A colour between the extremes, a pure function of the name."""
    number = zlib.crc32(name.encode("utf-8"))
    return (
        40 + (number & 0xFF) * 200 // 256,
        40 + (number >> 8 & 0xFF) * 200 // 256,
        40 + (number >> 16 & 0xFF) * 200 // 256,
    )


def window_colour(window_id: int) -> Colour:
    return colour_of(f"window {window_id}")


def widget_colour(window_id: int, name: str, value: Any = None, focused: bool = False) -> Colour:
    """What a widget shows changes with its value and with the focus, as on a Mac."""
    return colour_of(f"widget {window_id} {name} {value!r} {focused}")


def shape_colour(index: int) -> Colour:
    """The shape with this number (1, 2, ...) on a slide."""
    return colour_of(f"shape {index}")


class Canvas:
    """A region of the world (points) on its way to a picture (pixels)."""

    def __init__(self, region: list[float], scale: float, background: Colour) -> None:
        self.region, self.scale, self.background = region, scale, background
        self.blocks: list[Block] = []
        self.labels: list[dict[str, Any]] = []
        self.width, self.height = max(1, round(region[2] * scale)), max(1, round(region[3] * scale))

    def fill(self, rect: list[float], colour: Colour) -> None:
        left, top, right, bottom = (
            round(value * self.scale)
            for value in (
                rect[0] - self.region[0],
                rect[1] - self.region[1],
                rect[0] + rect[2] - self.region[0],
                rect[1] + rect[3] - self.region[1],
            )
        )
        self.blocks.append(Block(left, top, right - left, bottom - top, colour))

    def cover(self, rect: list[float]) -> None:
        """What a window lies on cannot be read."""
        self.labels = [label for label in self.labels if not contains(rect, label["at"][0], label["at"][1])]

    def write(self, text: str, rect: list[float]) -> None:
        if text.strip() and rect[2] > 0:
            self.labels.append(
                {"text": text, "points": rect, "at": [rect[0] + rect[2] / 2, rect[1] + rect[3] / 2]}
            )

    def picture(self, dpi: Optional[int]) -> Picture:
        labels = []
        for label in self.labels:
            x, y, width, height = label["points"]
            if contains(self.region, x, y):
                scaled = [
                    (x - self.region[0]) * self.scale,
                    (y - self.region[1]) * self.scale,
                    width * self.scale,
                    height * self.scale,
                ]
                labels.append({"text": label["text"], "rect": [round(value, 2) for value in scaled]})
        return Picture(
            self.width, self.height, paint(self.width, self.height, self.background, self.blocks), labels, dpi
        )


def draw_region(
    state: State,
    region: list[float],
    scale: float,
    dpi: Optional[int],
    permitted: bool = True,
    pointer: bool = False,
) -> Picture:
    """What a display shows there. Without Screen Recording only wallpaper, menu bar and the responsible app's own windows (facts A3)."""  # noqa: E501
    canvas = Canvas(region, scale, WALLPAPER)
    for window in reversed(front_to_back(state)):
        if (
            window["alpha"] > 0
            and not window.get("desktop")
            and not window.get("click_through")
            and not window.get("closing")
            and (permitted or is_own(state, window))
        ):
            draw_window(state, canvas, window)
    if pointer:
        canvas.fill([state["pointer"]["x"], state["pointer"]["y"], 10, 14], POINTER)
    return canvas.picture(dpi)


def is_own(state: State, window: dict[str, Any]) -> bool:
    app = app_with_pid(state, window["pid"])
    return window["title"] == "Menubar" or bool(app and app.get("responsible"))


def draw_window(state: State, canvas: Canvas, window: dict[str, Any]) -> None:
    left, top, width, height = window["bounds"]
    canvas.cover(window["bounds"])
    canvas.fill(window["bounds"], MENU_BAR if window["title"] == "Menubar" else window_colour(window["id"]))
    title_width = min(len(window["title"]) * LETTER_WIDTH, width)
    canvas.write(window["title"], [left + (width - title_width) / 2, top + 4, title_width, LINE_HEIGHT])
    if any(window.get("scroll", [0, 0])):
        canvas.fill([left + width - 8, top, 8, height], colour_of(f"scrolled {window['scroll']}"))
    for widget in window["widgets"]:
        draw_widget(canvas, window, widget)
    if "keynote_document" in window:
        draw_deck(state, canvas, window)


def draw_widget(canvas: Canvas, window: dict[str, Any], widget: dict[str, Any]) -> None:
    x, y, width, height = widget["rect"]
    x, y = x + window["bounds"][0], y + window["bounds"][1]
    canvas.fill(
        [x, y, width, height],
        widget_colour(
            window["id"], widget["name"], widget.get("value"), widget["name"] == window.get("focus")
        ),
    )
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


def draw_deck(state: State, canvas: Canvas, window: dict[str, Any]) -> None:
    deck = next(
        (item for item in state["keynote"]["documents"] if item["id"] == window["keynote_document"]), None
    )
    if deck is None:
        return
    left, top, width, height = window["bounds"]
    zoom = min((width - 40) / deck["width"], (height - 80) / deck["height"])
    origin = [left + 20, top + 60]
    canvas.fill([*origin, deck["width"] * zoom, deck["height"] * zoom], SLIDE)
    draw_slide(canvas, deck["slides"][deck["current_slide"] - 1], origin, zoom)


def draw_slide(canvas: Canvas, slide: dict[str, Any], origin: list[float], zoom: float) -> None:
    for index, shape in enumerate(slide["shapes"], 1):
        x, y = origin[0] + shape["position"]["x"] * zoom, origin[1] + shape["position"]["y"] * zoom
        width, height = shape["width"] * zoom, shape["height"] * zoom
        canvas.fill([x, y, width, height], shape_colour(index))
        text_width = min(len(shape["object_text"]) * 12 * zoom, width)
        canvas.write(
            shape["object_text"],
            [x + (width - text_width) / 2, y + height / 2 - 12 * zoom, text_width, 24 * zoom],
        )


def draw_slide_picture(deck: dict[str, Any], index: int) -> Picture:
    """A slide as Keynote exports it: as many pixels as the slide has points (facts E4)."""
    canvas = Canvas([0, 0, deck["width"], deck["height"]], 1, SLIDE)
    draw_slide(canvas, deck["slides"][index], [0, 0], 1)
    return canvas.picture(72)


def draw_one_window(
    state: State,
    window: dict[str, Any],
    attached: list[dict[str, Any]],
    scale: float,
    dpi: Optional[int],
    shadow: bool,
    permitted: bool,
) -> Picture:
    """A window alone, also when others cover it; its sheets may make the picture larger than its bounds (facts A4)."""  # noqa: E501
    rects = [item["bounds"] for item in [window, *attached]]
    left, top = min(rect[0] for rect in rects), min(rect[1] for rect in rects)
    right, bottom = max(rect[0] + rect[2] for rect in rects), max(rect[1] + rect[3] for rect in rects)
    if shadow:
        left, right = left - SHADOW_MARGIN["side"], right + SHADOW_MARGIN["side"]
        top, bottom = top - SHADOW_MARGIN["top"], bottom + SHADOW_MARGIN["bottom"]
    canvas = Canvas([left, top, right - left, bottom - top], scale, SHADOW)
    if not permitted and not is_own(state, window):
        canvas.fill(canvas.region, WALLPAPER)
        return canvas.picture(dpi)
    for item in [window, *attached]:
        draw_window(state, canvas, item)
    return canvas.picture(dpi)
