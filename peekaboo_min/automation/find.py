"""Where a text or an element is in a window; and a click on a text."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from ..core.cancellation import report_progress
from ..core.errors import ErrorCode, PeekabooError, WindowMoves, invalid
from ..core.models import NOTHING_FOUND, Act, Element, RecognisedText, Rect, Result
from ..core.text import clean_text
from ..desktop.base import Desktop
from .act import perform
from .capture import CapturedImage, image_to_read, record_to_read, scene_to_capture
from .coordinates import Screenshot, find_region
from .effects import is_other_within, take_bitmap
from .labels import Place, find_in_lines, rows_of, with_characters
from .policy import check_may_act

_FOUND_AT_MOST, _SIMILAR_AT_MOST, _LISTED_AT_MOST = 20, 5, 200
_VALUE_LENGTH = 300
# Recognition misses some single characters, and labels that stand close to a frame.
_OTHER_WAY = "find_elements may know it, by the application's own names"


class TextSearch(NamedTuple):
    """What was recognised in a window, or in a region of it, and where the wanted text is, whole labels
    first; in pixels of `record`, which `click` takes.
    """

    wanted: str
    record: Screenshot
    labels: list[RecognisedText]
    found: list[Place]
    similar: list[Place]

    def result(self) -> Result:
        data = _data_of(self.record)
        data["found"] = [place.as_data() for place in self.found]
        data["similar"] = [place.as_data() for place in self.similar]
        if not self.found:
            return Result(f"{self.nearest_text()}; {_OTHER_WAY}", data, exit_code=NOTHING_FOUND)
        lines = [f"found {self.wanted[:80]!r} in window {self.record.window_id}"]
        lines[0] += f", in pixels of screenshot {self.record.screenshot_id}"
        lines[0] += f", in {len(self.found)} places, whole labels first:" if self.found[1:] else ", once:"
        lines += [f"  {place}" for place in self.found]
        lines += ["similar:", *(f"  {place}" for place in self.similar)] if self.similar else []
        return Result("\n".join(lines), data)

    def nearest_text(self) -> str:
        """What was recognised instead, for people."""
        head = f"no text equal to {self.wanted[:80]!r} was recognised in window {self.record.window_id}"
        if self.similar:
            return f"{head}; similar: " + "; ".join(map(str, self.similar))
        texts = list(dict.fromkeys(label.text[:80] for label in self.labels))
        nearest = difflib.get_close_matches(self.wanted, texts, _SIMILAR_AT_MOST, cutoff=0)
        return f"{head}; the nearest of {len(texts)} lines: " + (", ".join(map(repr, nearest)) or "none")


def _data_of(record: Screenshot) -> dict[str, Any]:
    names = ("window_id", "screenshot_id", "image_width", "image_height")
    return {name: getattr(record, name) for name in names}


def _listing(kind: str, record: Screenshot, shown: Sequence[str], count: int, how_others: str) -> str:
    """The text of a list: what it has at most, and a line each."""
    head = f"{len(shown)} {kind}(s) of window {record.window_id}"
    if count > len(shown):
        head += f", the first of {count}: {how_others}"
    return "\n".join([f"{head}; x,y are pixels of screenshot {record.screenshot_id}", *shown])


def wanted_text(text: str) -> str:
    """A text to find, in one line. Raises INVALID_ARGUMENT for one without a word."""
    wanted = " ".join(clean_text(text, 1000).split())
    if not wanted:
        raise invalid("the text to find is empty", "give a word of the window")
    return wanted


def search_image(
    desktop: Desktop, image: CapturedImage, wanted: str, part: Optional[tuple[Screenshot, Rect]] = None
) -> TextSearch:
    """Look for a text in a window's screenshot, recognised at full resolution, placed in the pixels of a new
    record; without one, read all. The image's file is deleted.

    part: of the window, as find_region has it; only what has its middle there counts.
    """
    try:
        record = record_to_read(desktop, image)
        report_progress(f"reading the text of window {record.window_id}")
        lines = desktop.read_text(image.path)
        if wanted and (len(wanted) <= 2 or not any(map(str.isalnum, wanted))):  # what a key may show
            places = find_in_lines(wanted, lines) if len(wanted) > 1 else []
            if all(place.match == "similar" for place in places):
                lines = with_characters(lines, desktop.read_characters(image.path))
    finally:
        image.path.unlink(missing_ok=True)
    factor = record.image_width / image.info.width
    scaled = [_scaled(line, factor) for line in lines]
    region = part[1].scaled(record.image_width / part[0].image_width) if part else None
    labels = [label for row in rows_of(scaled) for label in row]
    if region:
        labels = [label for label in labels if region.contains(label.box.centre)]
    places = find_in_lines(wanted, scaled, region) if wanted else []
    found = [place for place in places if place.match != "similar"]
    similar = [place for place in places if place.match == "similar"]
    return TextSearch(wanted, record, labels, found[:_FOUND_AT_MOST], similar[:_SIMILAR_AT_MOST])


def _scaled(line: RecognisedText, factor: float) -> RecognisedText:
    words = tuple(_scaled(word, factor) for word in line.words)
    return line._replace(box=line.box.scaled(factor), words=words)


def find_text_in_window(
    desktop: Desktop,
    window_id: int,
    text: Optional[str],
    region: Optional[Sequence[float]],
    screenshot_id: Optional[str],
) -> Result:
    """Take a screenshot of a window, recognise its text, and find `text` in it; without one list every line.

    region: x, y, width and height of the part to look at, in pixels of the screenshot `screenshot_id`, else
    of the window's last.

    data: {window_id, screenshot_id, image_width, image_height}, and {found, similar: [{text, label, x, y,
    box, match, confidence}]}, whole labels first, or {count, lines: [{text, x, y, box, confidence}]}, at most
    200; x and y are a place's middle, in pixels that `click` takes with this screenshot_id.
    Raises INVALID_ARGUMENT for a text without a word, and what find_record, capturing and recognising raise.
    """
    wanted = wanted_text(text) if text is not None else ""
    window = scene_to_capture(desktop).by_id(window_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    seen = search_image(desktop, image_to_read(desktop, window), wanted, part)
    if wanted:
        return seen.result()
    lines = []
    for label in seen.labels[:_LISTED_AT_MOST]:
        place = Place(label.text, label.text, label.box, "label", 1.0, label.confidence).as_data()
        lines.append({name: place[name] for name in ("text", "x", "y", "box", "confidence")})
    shown = [f'"{line["text"]}" {line["x"]},{line["y"]}' for line in lines]
    text = _listing("line", seen.record, shown, len(seen.labels), "give a region to read others")
    data = {**_data_of(seen.record), "count": len(seen.labels), "lines": lines}
    return Result(text, data, is_text_enough=True, exit_code=0 if lines else NOTHING_FOUND)


def click_text_in_window(
    desktop: Desktop,
    window_id: int,
    text: str,
    button: str,
    clicks: int,
    verify: bool,
    region: Optional[Sequence[float]] = None,
    screenshot_id: Optional[str] = None,
) -> dict[str, Any]:
    """Click the middle of the only label that is `text`; with a region also what is within a longer label or
    similar, where it is the only such place there.

    The answer is a click's, with `text`, what was clicked, and `similar`, the other places.
    Raises TEXT_NOT_FOUND with the similar or nearest texts, AMBIGUOUS_TEXT for several places,
    STALE_SCREENSHOT where the text changed while it was read, and what find_text_in_window and perform
    raise.
    """
    wanted = wanted_text(text)
    window = scene_to_capture(desktop).by_id(window_id)
    check_may_act("click", window.app_name, window.bundle_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    before = take_bitmap(desktop, window)
    seen = search_image(desktop, image_to_read(desktop, window), wanted, part)
    place = _place_to_click(seen, has_region=part is not None)
    if is_other_within(before, take_bitmap(desktop, window), place.box, seen.record.image_width):
        raise PeekabooError(
            ErrorCode.STALE_SCREENSHOT,
            f"window {window_id} changed where {place.text!r} was while it was read; nothing was clicked",
            hint="try again once it rests: wait_for with still=true",
        )
    act = Act("click", (place.box.centre,), button, clicks)
    data = perform(desktop, window_id, act, seen.record.screenshot_id, verify)
    similar = [other.as_data() for other in (*seen.found, *seen.similar) if other != place]
    return {**data, "text": place.text, "screenshot_id": seen.record.screenshot_id, "similar": similar}


def _place_to_click(seen: TextSearch, has_region: bool) -> Place:
    """Raises AMBIGUOUS_TEXT, TEXT_NOT_FOUND."""
    whole = [place for place in seen.found if place.match in ("label", "lookalike")]
    partial = [place for place in (*seen.found, *seen.similar) if place not in whole]
    places = whole or (partial if has_region else [])
    if len(places) == 1:
        return places[0]
    wanted, where = repr(seen.wanted[:80]), f"window {seen.record.window_id}"
    again = "call again with the region of the one that is meant and screenshot_id"
    hint = f"{again} {seen.record.screenshot_id}"
    if places:
        message = f"{wanted} is in {len(places)} places of {where}; nothing was clicked: "
        raise PeekabooError(ErrorCode.AMBIGUOUS_TEXT, message + "; ".join(map(str, places)), hint)
    message = f"no label of {where} is {wanted}; similar, not clicked: "
    message += "; ".join(map(str, partial[:_SIMILAR_AT_MOST]))
    if not partial:
        message = seen.nearest_text()
        hint = f"{_OTHER_WAY}; or take a screenshot and click by its pixels, or scroll to the text"
    raise PeekabooError(ErrorCode.TEXT_NOT_FOUND, message, hint)


def find_elements_in_window(
    desktop: Desktop, window_id: int, text: Optional[str], role: Optional[str]
) -> Result:
    """The visible elements of a window in reading order, at most 200: those whose name or value holds `text`,
    of this role.

    data: {window_id, screenshot_id, image_width, image_height, count, elements: [{role, name, value, states,
    x, y, width, height}]}; x and y are an element's middle, in pixels that `click` takes with this
    screenshot_id. Raises NO_ELEMENTS for an application without a tree, and what capturing raises.
    """
    window = scene_to_capture(desktop).by_id(window_id)
    elements = desktop.read_elements(window)
    image = image_to_read(desktop, window)
    image.path.unlink(missing_ok=True)
    record = record_to_read(desktop, image)
    if record.bounds != window.bounds:
        raise WindowMoves(window_id)
    matches = [element for element in elements if _fits(element, text or "", role or "")]
    shown = [
        _element_data(element, record.to_pixels(element.box, window.bounds))
        for element in matches[:_LISTED_AT_MOST]
    ]
    data = {**_data_of(record), "count": len(matches), "elements": shown}
    if not matches:
        roles = ", ".join(dict.fromkeys(element.role for element in elements))
        head = f"0 element(s) of window {window_id}; of {len(elements)} none fits; their roles are {roles}"
        return Result(head, data, is_text_enough=True, exit_code=NOTHING_FOUND)
    others = "name a text or a role to see others"
    listing = _listing("element", record, [_element_line(data) for data in shown], len(matches), others)
    return Result(listing, data, is_text_enough=True)


def _fits(element: Element, text: str, role: str) -> bool:
    has_text = any(text.strip().casefold() in shown.casefold() for shown in (element.name, element.value))
    return has_text and role.strip().lower() in ("", element.role)


def _element_data(element: Element, box: Rect) -> dict[str, Any]:
    """An element whose box is in pixels of a screenshot; x and y are its middle: what `click` takes."""
    value = element.value
    return {
        "role": element.role,
        "name": element.name,
        "value": value if len(value) <= _VALUE_LENGTH else value[: _VALUE_LENGTH - 1] + "…",
        "states": list(element.states),
        "x": int(box.centre.x),
        "y": int(box.centre.y),
        "width": round(box.width),
        "height": round(box.height),
    }


def _element_line(data: dict[str, Any]) -> str:
    """`button "Save" 120,48`; with its value and states where it has any."""
    value = f' = "{data["value"]}"' if data["value"] else ""
    states = f" [{', '.join(data['states'])}]" if data["states"] else ""
    return f'{data["role"]} "{data["name"]}"{value} {data["x"]},{data["y"]}{states}'
