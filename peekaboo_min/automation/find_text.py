"""Where a text is in a window, by text recognition; and a click there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from ..core.cancellation import report_progress
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import NOTHING_FOUND, Act, RecognisedText, Rect, Result
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..system.images import image_file, is_other_within
from .act import perform
from .capture import (
    CapturedImage,
    Subject,
    record_to_read,
    scene_to_capture,
    take_bitmap,
    take_image,
)
from .coordinates import Screenshot, find_region
from .labels import Place, find_in_lines, likeness, rows_of, with_characters
from .policy import check_may_act

_FOUND_AT_MOST, _SIMILAR_AT_MOST, _LINES_AT_MOST = 20, 5, 200
# Recognition misses some single characters, and labels that stand close to a frame.
_OTHER_WAY = "find_elements may know it, by the application's own names"


class TextSearch(NamedTuple):
    """What was recognised in a window, or in a region of it, and where the wanted text is; in pixels of
    `record`, which `click` takes.
    """

    wanted: str
    record: Screenshot
    labels: list[RecognisedText]
    places: list[Place]

    @property
    def found(self) -> list[Place]:
        """Where it is, whole labels first."""
        return [place for place in self.places if place.match != "similar"][:_FOUND_AT_MOST]

    @property
    def similar(self) -> list[Place]:
        return [place for place in self.places if place.match == "similar"][:_SIMILAR_AT_MOST]

    def as_data(self) -> dict[str, Any]:
        found, similar = ([place.as_data() for place in places] for places in (self.found, self.similar))
        return {**_data_of(self.record), "found": found, "similar": similar}

    def found_text(self) -> str:
        """Where it is, and what is similar, for people."""
        found, similar = ([f"  {place}" for place in places] for places in (self.found, self.similar))
        head = f"{self.wanted[:80]!r} in window {self.record.window_id}"
        head += f", in pixels of screenshot {self.record.screenshot_id}"
        places = f"in {len(found)} places, whole labels first" if len(found) > 1 else "once"
        return "\n".join([f"found {head}, {places}:", *found, *(["similar:", *similar] if similar else [])])

    def nearest_text(self) -> str:
        """What was recognised instead, for people."""
        head = f"no text equal to {self.wanted[:80]!r} was recognised in window {self.record.window_id}"
        if self.similar:
            return f"{head}; similar: " + "; ".join(map(str, self.similar))
        texts = list(dict.fromkeys(label.text[:80] for label in self.labels))
        if not texts:
            return f"{head}; no text at all was recognised there"
        nearest = sorted(texts, key=lambda text: -likeness(self.wanted, text))[:_SIMILAR_AT_MOST]
        return f"{head}; the nearest of {len(texts)} lines: " + ", ".join(map(repr, nearest))


def _data_of(record: Screenshot) -> dict[str, Any]:
    names = ("window_id", "screenshot_id", "image_width", "image_height")
    return {name: getattr(record, name) for name in names}


def wanted_text(text: str) -> str:
    """A text to find, in one line. Raises INVALID_ARGUMENT for one without a word."""
    wanted = " ".join(clean_text(text, 1000).split())
    if not wanted:
        raise invalid("the text to find is empty", "give a word of the window")
    return wanted


def search_image(
    desktop: Desktop,
    image: CapturedImage,
    wanted: str,
    part: Optional[tuple[Screenshot, Rect]] = None,
) -> TextSearch:
    """Look for a text in a window's screenshot, recognised at full resolution, placed in the pixels of a new
    record; without one, read all.

    part: of the window, as find_region has it; only what has its middle there counts.
    """
    record = record_to_read(desktop, image)
    report_progress(f"reading the text of window {record.window_id}")
    with image_file(image.info.kind, image.content.data) as path:
        lines = desktop.read_text(path)
        is_like_a_key = len(wanted) <= 2 or not any(map(str.isalnum, wanted))
        if wanted and is_like_a_key and (len(wanted) == 1 or not _is_found(wanted, lines)):
            lines = with_characters(lines, desktop.read_characters(path))
    factor = record.image_width / image.info.width
    scaled = [_scaled(line, factor) for line in lines]
    region = part[1].scaled(record.image_width / part[0].image_width) if part else None
    labels = [label for row in rows_of(scaled) for label in row]
    if region:
        labels = [label for label in labels if region.contains(label.box.centre)]
    return TextSearch(wanted, record, labels, find_in_lines(wanted, scaled, region) if wanted else [])


def _is_found(wanted: str, lines: Sequence[RecognisedText]) -> bool:
    return any(place.match != "similar" for place in find_in_lines(wanted, lines))


def _scaled(line: RecognisedText, factor: float) -> RecognisedText:
    if factor == 1:
        return line
    words = tuple(_scaled(word, factor) for word in line.words)
    return line._replace(box=line.box.scaled(factor), words=words)


def find_text_in_window(
    desktop: Desktop,
    window_id: int,
    text: Optional[str] = None,
    region: Optional[Sequence[float]] = None,
    screenshot_id: Optional[str] = None,
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
    seen = search_image(desktop, take_image(desktop, Subject(window=window)), wanted, part)
    if not wanted:
        return _all_lines(seen)
    if not seen.found:
        return Result(f"{seen.nearest_text()}; {_OTHER_WAY}", seen.as_data(), exit_code=NOTHING_FOUND)
    return Result(seen.found_text(), seen.as_data())


def _all_lines(seen: TextSearch) -> Result:
    names = ("text", "x", "y", "box", "confidence")
    places = [
        Place(label.text, label.text, label.box, "label", 1.0, label.confidence).as_data()
        for label in seen.labels[:_LINES_AT_MOST]
    ]
    lines = [{name: place[name] for name in names} for place in places]
    head = f"{len(lines)} line(s) of window {seen.record.window_id}"
    if len(seen.labels) > len(lines):
        head += f", the first of {len(seen.labels)}: give a region to read others"
    head += f"; x,y are pixels of screenshot {seen.record.screenshot_id}"
    shown = [f'"{line["text"]}" {line["x"]},{line["y"]}' for line in lines]
    data = {**_data_of(seen.record), "count": len(seen.labels), "lines": lines}
    code = 0 if lines else NOTHING_FOUND
    return Result("\n".join([head, *shown]), data, is_text_enough=True, exit_code=code)


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
    check_may_act("click")
    window = scene_to_capture(desktop).by_id(window_id)
    check_may_act("click", window.app_name, window.bundle_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    before = take_bitmap(desktop, window)
    seen = search_image(desktop, take_image(desktop, Subject(window=window)), wanted, part)
    place = _place_to_click(seen, has_region=part is not None)
    if is_other_within(before, take_bitmap(desktop, window), place.box, seen.record.image_width):
        raise PeekabooError(
            ErrorCode.STALE_SCREENSHOT,
            f"window {window_id} changed where {place.text!r} was while it was read; nothing was clicked",
            hint="try again once it rests: wait_for with still=true",
        )
    act = Act("click", (place.box.centre,), button, clicks)
    data = perform(desktop, window_id, act, seen.record.screenshot_id, verify)
    others = [other.as_data() for other in (*seen.found, *seen.similar) if other != place]
    return {**data, "text": place.text, "screenshot_id": seen.record.screenshot_id, "similar": others}


def _place_to_click(seen: TextSearch, has_region: bool) -> Place:
    """Raises AMBIGUOUS_TEXT, TEXT_NOT_FOUND."""
    whole = [place for place in seen.found if place.match in ("label", "lookalike")]
    partial = [place for place in seen.places if place not in whole][:_FOUND_AT_MOST]
    places = whole or (partial if has_region else [])
    if len(places) == 1:
        return places[0]
    where = f"window {seen.record.window_id}"
    again = (
        f"call again with the region of the one that is meant and screenshot_id {seen.record.screenshot_id}"
    )
    if places:
        message = f"{seen.wanted[:80]!r} is in {len(places)} places of {where}; nothing was clicked: "
        raise PeekabooError(ErrorCode.AMBIGUOUS_TEXT, message + "; ".join(map(str, places)), again)
    if partial:
        message = f"no label of {where} is {seen.wanted[:80]!r}; similar, not clicked: "
        shown = "; ".join(map(str, partial[:_SIMILAR_AT_MOST]))
        raise PeekabooError(ErrorCode.TEXT_NOT_FOUND, message + shown, again)
    hint = f"{_OTHER_WAY}; or take a screenshot and click by its pixels, or scroll to the text"
    raise PeekabooError(ErrorCode.TEXT_NOT_FOUND, seen.nearest_text(), hint)
