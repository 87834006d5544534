"""Where a text or an element is in a window; and a click on a text."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Optional

from ..core.cancellation import report_progress
from ..core.errors import ErrorCode, PeekabooError, WindowMoves, invalid
from ..core.models import NOTHING_FOUND, Act, Element, RecognisedText, Rect, Result
from ..core.text import clean_text
from ..desktop.base import Desktop
from ..desktop.select import this_desktop
from ..system.images import image_file, is_other_within
from .act import Button, Clicks, Verify, perform
from .capture import CapturedImage, Subject, record_to_read, scene_to_capture, take_bitmap, take_image
from .coordinates import Region, RegionOf, Screenshot, WindowId, find_region
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
    record; without one, read all.

    part: of the window, as find_region has it; only what has its middle there counts.
    """
    record = record_to_read(desktop, image)
    report_progress(f"reading the text of window {record.window_id}")
    with image_file(image.info.kind, image.content.data) as path:
        lines = desktop.read_text(path)
        if wanted and (len(wanted) <= 2 or not any(map(str.isalnum, wanted))):  # what a key may show
            places = find_in_lines(wanted, lines) if len(wanted) > 1 else []
            if all(place.match == "similar" for place in places):
                lines = with_characters(lines, desktop.read_text(path, True))
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


def find_text(
    window_id: WindowId,
    text: Annotated[
        Optional[str], "a label, or whole words of one; case does not matter; default: list every line"
    ] = None,
    *,
    region: Region = None,
    screenshot_id: RegionOf = None,
) -> Result:
    """Finds a text in a window by text recognition, without a model. Each place has the x and y of its
    middle: pixels for click, with the screenshot_id of the result. Whole labels come first, then parts of
    longer ones; what is merely similar stands apart. Without a text: every line, at most 200.

    Example: peekaboo-min find-text 14680078 "Sign the book"
    """
    # Raises INVALID_ARGUMENT for a text without a word, and what find_record, capturing and recognising raise
    desktop, wanted = this_desktop(), wanted_text(text) if text is not None else ""
    window = scene_to_capture(desktop).by_id(window_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    seen = search_image(desktop, take_image(desktop, Subject(window=window)), wanted, part)
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


def click_text(
    window_id: WindowId,
    text: Annotated[str, "the whole label to click, as the window shows it; case does not matter"],
    button: Button = "left",
    clicks: Clicks = 1,
    verify: Verify = False,
    region: Region = None,
    screenshot_id: RegionOf = None,
) -> Result:
    """Finds a label by text recognition, and clicks it. Nothing is clicked where two labels are this text, or
    where it is only within a longer label or similar to one: the error gives each place's region, to click
    there.

    Example: peekaboo-min click-text 14680078 "Sign the book"
    """
    # With a region it may also be within a longer label or similar. Raises TEXT_NOT_FOUND with the similar or
    # nearest texts, AMBIGUOUS_TEXT, STALE_SCREENSHOT, and what find_text and perform raise
    desktop, wanted = this_desktop(), wanted_text(text)
    window = scene_to_capture(desktop).by_id(window_id)
    check_may_act("click", window.app_name, window.bundle_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    before = take_bitmap(desktop, window)
    seen = search_image(desktop, take_image(desktop, Subject(window=window)), wanted, part)
    place = _place_to_click(seen, has_region=part is not None)
    if is_other_within(before, take_bitmap(desktop, window), place.box, seen.record.image_width):
        what = f"changed where {place.text!r} was while it was read"
        hint = "try again once it rests: wait_for with still=true"
        message = f"window {window_id} {what}; nothing was clicked"
        raise PeekabooError(ErrorCode.STALE_SCREENSHOT, message, hint)
    act = Act("click", (place.box.middle,), button, clicks)
    done, screenshot_id = f"clicked {place.text!r} in window {window_id}", seen.record.screenshot_id
    result = perform(desktop, window_id, act, done, verify, screenshot_id)
    similar = [other.as_data() for other in (*seen.found, *seen.similar) if other != place]
    others = ", ".join(f"{other['label'][:80]!r} {other['x']},{other['y']}" for other in similar)
    told = f"{result.text}; similar, not clicked: {others}" if others else result.text
    data = {**result.data, "text": place.text, "screenshot_id": screenshot_id, "similar": similar}
    return result._replace(text=told, data=data)


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


def find_elements(
    window_id: WindowId,
    text: Annotated[
        Optional[str], "only those with this in their name or value; case does not matter"
    ] = None,
    role: Annotated[
        Optional[str], "only these: button, textbox, checkbox, combobox, slider, link, menuitem, tab..."
    ] = None,
) -> Result:
    """Lists a window's visible controls, from its accessibility tree. At most 200, in reading order, like
    button "Save" 120,48 [focused]: the numbers are x and y for click, with the screenshot_id of the result.
    For an app without a tree use find_text.

    Example: peekaboo-min elements 14680078 --role button
    """
    # Raises NO_ELEMENTS for an application without a tree, and what capturing raises
    desktop = this_desktop()
    window = scene_to_capture(desktop).by_id(window_id)
    elements = desktop.read_elements(window)
    image = take_image(desktop, Subject(window=window))
    record = record_to_read(desktop, image)
    if record.bounds != window.bounds:
        raise WindowMoves(window_id)
    wanted, kind = (text or "").strip().casefold(), (role or "").strip().lower()
    named = [
        each for each in elements if any(wanted in shown.casefold() for shown in (each.name, each.value))
    ]
    matches = [element for element in named if kind in ("", element.role)]
    boxes = [element.box.in_image_of(window.bounds, record.image_width) for element in matches]
    shown = list(map(_element_data, matches[:_LISTED_AT_MOST], boxes))
    data = {**_data_of(record), "count": len(matches), "elements": shown}
    if not matches:
        roles = ", ".join(dict.fromkeys(element.role for element in elements))
        head = f"0 element(s) of window {window_id}; of {len(elements)} none fits; their roles are {roles}"
        return Result(head, data, is_text_enough=True, exit_code=NOTHING_FOUND)
    others = "name a text or a role to see others"
    listing = _listing("element", record, [_element_line(data) for data in shown], len(matches), others)
    return Result(listing, data, is_text_enough=True)


def _element_data(element: Element, box: Rect) -> dict[str, Any]:
    """An element whose box is in pixels of a screenshot; x and y are its middle: what `click` takes."""
    value = element.value
    value = value if len(value) <= _VALUE_LENGTH else value[: _VALUE_LENGTH - 1] + "…"
    named = {"role": element.role, "name": element.name, "value": value, "states": list(element.states)}
    return {**named, **box.middle._asdict(), "width": round(box.width), "height": round(box.height)}


def _element_line(data: dict[str, Any]) -> str:
    """`button "Save" 120,48`; with its value and states where it has any."""
    value = f' = "{data["value"]}"' if data["value"] else ""
    states = f" [{', '.join(data['states'])}]" if data["states"] else ""
    return f'{data["role"]} "{data["name"]}"{value} {data["x"]},{data["y"]}{states}'
