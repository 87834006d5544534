"""Find a text or an element in a window, and click a text."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from ..core.call import report_progress, time_budget
from ..core.errors import ErrorCode, PeekabooError, WindowMoves, invalid
from ..core.models import NOTHING_FOUND, Act, Element, RecognisedText, Rect, Result
from ..core.text import clean_text
from ..desktop.base import VALUE_LENGTH, Desktop
from ..system.bitmaps import changed_rect
from ..system.files import temporary_file
from .act import perform
from .capture import CapturedImage, Subject, save_record_for_text, scene_to_capture, take_bitmap, take_image
from .coordinates import RegionNumbers, Screenshot, find_region
from .labels import Place, element_places, find_in_lines, rows_of, with_characters
from .policy import check_may_act

_WHOLE = ("label", "lookalike")
_TREE_S = 3.0  # few trees take longer, and a click waits for it
_LAST_READING: dict[tuple[bytes, bool], list[RecognisedText]] = {}  # of one image; never on disk
_MOST_SIMILAR, _MOST_LISTED = 5, 200  # few enough for a model's context
_SHORT_VALUE = 300  # characters of a value, if several elements are listed
# recognition misses some single characters, and labels close to a frame
_OTHER_WAY = "try find_elements, which reads the application's own names"


class TextSearch(NamedTuple):
    """Recognised text, and the places of the wanted one, whole labels first, in pixels of `record`."""

    wanted: str
    record: Screenshot
    labels: list[RecognisedText]
    found: list[Place]
    similar: list[Place]
    package: str = ""  # of the missing language; until it is installed, only the tree's places are sure
    role: str = ""  # of the wanted element; empty for any text

    def result(self) -> Result:
        data = _record_data(self.record)
        data["found"] = [place.as_data() for place in self.found]
        data["similar"] = [place.as_data() for place in self.similar]
        unverified = self._unverified()
        if unverified:
            data["accents_unverified"] = self.package
        if not self.found:
            return Result(f"{self.nearest_text()}; {_OTHER_WAY}", data, exit_code=NOTHING_FOUND)
        lines = [f"found {self.wanted[:80]!r} in window {self.record.window_id}"]
        lines[0] += f", in pixels of screenshot {self.record.screenshot_id}"
        lines[0] += f", in {len(self.found)} places, whole labels first:" if self.found[1:] else ", once:"
        lines += [f"  {place}" for place in self.found]
        lines += ["similar:", *(f"  {place}" for place in self.similar)] if self.similar else []
        return Result("\n".join([*lines, *filter(None, [unverified])]), data)

    def by_tree(self) -> list[Place]:
        return [place for place in self.found if place.by == "tree"]

    def _unverified(self) -> str:
        is_sure = self.by_tree() or not self.package
        return "" if is_sure else f"accents unverified: sudo apt-get install {self.package}"

    def nearest_text(self) -> str:
        """Describe the recognised texts that are most like the wanted one."""
        wanted, where = repr(self.wanted[:80]), f"window {self.record.window_id}"
        if self.role:
            return f"no element of {where} has the role {self.role[:80]!r} and the name {wanted}"
        head = f"no text equal to {wanted} was recognised in {where}"
        head = "; ".join(filter(None, [head, self._unverified()]))
        if self.similar:
            return f"{head}; similar: " + "; ".join(map(str, self.similar))
        texts = list(dict.fromkeys(label.text[:80] for label in self.labels))
        nearest = difflib.get_close_matches(self.wanted, texts, _MOST_SIMILAR, cutoff=0)
        return f"{head}; nearest of {len(texts)} lines: {', '.join(map(repr, nearest))}" if texts else head


def _record_data(record: Screenshot) -> dict[str, Any]:
    names = ("window_id", "screenshot_id", "image_width", "image_height")
    return {name: getattr(record, name) for name in names}


def _listing(kind: str, record: Screenshot, lines: Sequence[str], count: int, how_to_see_more: str) -> str:
    head = f"{len(lines)} {kind}(s) of window {record.window_id}"
    if count > len(lines):
        head += f", the first of {count}: {how_to_see_more}"
    return "\n".join([f"{head}; x,y are pixels of screenshot {record.screenshot_id}", *lines])


def wanted_text(text: str) -> str:
    """Return a text to find as one clean line. Raises INVALID_ARGUMENT if it has no word."""
    wanted = " ".join(clean_text(text, 1000).split())
    if not wanted:
        raise invalid("the text to find is empty", "give a text that the window shows")
    return wanted


def search_image(
    desktop: Desktop,
    image: CapturedImage,
    wanted: str,
    part: Optional[tuple[Screenshot, Rect]] = None,
    role: str = "",
) -> TextSearch:
    """Recognise a screenshot's text at full resolution; look for `wanted`, unless it is empty.

    Ask the accessibility tree, too, unless exactly one label is equal. The places are in the pixels of a new
    record. part: the result of find_region; search only there. role: find only elements of this role.
    """
    record = save_record_for_text(desktop, image)
    report_progress(f"reading the text of window {record.window_id}")
    lines = _read_text(desktop, image)
    if wanted and (len(wanted) <= 2 or not any(map(str.isalnum, wanted))):  # the label of a key
        places = find_in_lines(wanted, lines) if len(wanted) > 1 else []
        if all(place.match == "similar" for place in places):
            lines = with_characters(lines, _read_text(desktop, image, characters=True))
    scaled = [_scaled(line, record.image_width / image.info.width) for line in lines]
    region = part[1].scaled(record.image_width / part[0].image_width) if part else None
    labels = [label for row in rows_of(scaled) for label in row]
    if region:
        labels = [label for label in labels if region.contains(label.box.centre)]
    places = find_in_lines(wanted, scaled, region) if wanted else []
    package = desktop.missing_language(wanted) if wanted else ""
    if wanted and (role or package or sum(place.match in _WHOLE for place in places) != 1):
        elements = _elements(desktop, image, must_exist=bool(role))
        named = element_places(wanted, role, elements, record.bounds, record.image_width)
        named = [place for place in named if not region or region.contains(place.box.centre)]
        others = [place for place in places if not any(each.box.overlaps(place.box) for each in named)]
        places = named if role else named + others
    found = [place for place in places if place.match != "similar"]
    similar = [place for place in places if place.match == "similar"]
    return TextSearch(wanted, record, labels, found[:20], similar[:_MOST_SIMILAR], package, role)


def _read_text(desktop: Desktop, image: CapturedImage, characters: bool = False) -> list[RecognisedText]:
    """Recognise an image's text, unless it is the image that was read last."""
    key = (hashlib.sha256(image.content.data).digest(), characters)
    lines = _LAST_READING.get(key)
    if lines is None:
        with temporary_file(image.info.kind, image.content.data) as path:
            lines = desktop.read_text(path, characters)
        if not any(digest == key[0] for digest, _ in list(_LAST_READING)):
            _LAST_READING.clear()
        _LAST_READING[key] = lines
    return lines


def _elements(desktop: Desktop, image: CapturedImage, must_exist: bool) -> list[Element]:
    assert image.subject.window
    try:
        with time_budget(_TREE_S):
            return desktop.read_elements(image.subject.window)
    except PeekabooError as e:
        if must_exist or e.code is ErrorCode.CANCELLED:
            raise
        return []  # most applications without a tree have labels


def _scaled(line: RecognisedText, factor: float) -> RecognisedText:
    words = tuple(_scaled(word, factor) for word in line.words)
    return line._replace(box=line.box.scaled(factor), words=words)


def find_text(
    desktop: Desktop,
    window_id: int,
    text: Optional[str],
    region: RegionNumbers,
    screenshot_id: Optional[str],
    role: Optional[str] = None,
) -> Result:
    """Find a text or list the lines. Raises INVALID_ARGUMENT, the errors of find_region and recognition."""
    wanted = wanted_text(text) if text is not None else ""
    role = wanted_role(role, text)
    window = scene_to_capture(desktop).by_id(window_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    image = take_image(desktop, Subject(window=window))
    search = search_image(desktop, image, wanted, part, role)
    if wanted:
        return search.result()
    rows = []
    for label in search.labels[:_MOST_LISTED]:
        place = Place(label.text, label.text, label.box, "label", 1.0, label.confidence).as_data()
        rows.append({name: place[name] for name in ("text", "x", "y", "box", "confidence")})
    lines = [f'"{row["text"]}" {row["x"]},{row["y"]}' for row in rows]
    listing = _listing("line", search.record, lines, len(search.labels), "give a region to read others")
    data = {**_record_data(search.record), "count": len(search.labels), "lines": rows}
    return Result(listing, data, is_text_enough=True, exit_code=0 if rows else NOTHING_FOUND)


def click_label(
    desktop: Desktop,
    window_id: int,
    text: str,
    button: str,
    clicks: int,
    verify: bool,
    region: RegionNumbers,
    screenshot_id: Optional[str],
    role: Optional[str] = None,
) -> Result:
    """Find a whole label in a window and click it; with a region also a part of one, or a similar text.

    Raises TEXT_NOT_FOUND with the similar or nearest texts, AMBIGUOUS_TEXT, STALE_SCREENSHOT if the window
    changed there while it was read, and the errors of find_text and perform.
    """
    wanted = wanted_text(text)
    window = scene_to_capture(desktop).by_id(window_id)
    check_may_act("click", window.app_name, window.bundle_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    before = take_bitmap(desktop, window)
    image = take_image(desktop, Subject(window=window))
    search = search_image(desktop, image, wanted, part, wanted_role(role, text))
    place = _place_to_click(search, has_region=part is not None)
    now, width = take_bitmap(desktop, window), search.record.image_width
    rect = changed_rect(before.cropped(place.box, width), now.cropped(place.box, width))
    if rect and rect.width > 3:  # a caret is narrower
        change = f"changed at {place.text!r} during text recognition"
        hint = "call wait_for with still=true, then try again"
        message = f"window {window_id} {change}; nothing was clicked"
        raise PeekabooError(ErrorCode.STALE_SCREENSHOT, message, hint)
    act = Act("click", (place.box.middle,), button, clicks)
    done, screenshot_id = f"clicked {place.text!r} in window {window_id}", search.record.screenshot_id
    result = perform(desktop, window_id, act, done, verify, screenshot_id)
    similar = [other.as_data() for other in (*search.found, *search.similar) if other != place]
    others = ", ".join(f"{other['label'][:80]!r} {other['x']},{other['y']}" for other in similar)
    summary = f"{result.text}; similar, not clicked: {others}" if others else result.text
    data = {**result.data, "text": place.text, "screenshot_id": screenshot_id, "similar": similar}
    data.update({"by": place.by} if place.by == "tree" else {})
    return result._replace(text=summary, data=data)


def _place_to_click(search: TextSearch, has_region: bool) -> Place:
    whole = [place for place in search.found if place.match in _WHOLE]
    partial = [place for place in (*search.found, *search.similar) if place not in whole]
    places = search.by_tree() or whole or (partial if has_region else [])
    if search.package:  # recognition may have lost an accent
        places = search.by_tree()
    if len(places) == 1:
        return places[0]
    wanted, where = repr(search.wanted[:80]), f"window {search.record.window_id}"
    if not places and search.package:
        message = f"accents unverified: no element of {where} confirms {wanted}; nothing was clicked"
        hint = f"sudo apt-get install {search.package}, or click a pixel"
        raise PeekabooError(ErrorCode.TEXT_NOT_FOUND, message, hint)
    hint = f"call again with the region of the right place and screenshot_id {search.record.screenshot_id}"
    if places:
        message = f"{wanted} is in {len(places)} places of {where}; nothing was clicked: "
        raise PeekabooError(ErrorCode.AMBIGUOUS_TEXT, message + "; ".join(map(str, places)), hint)
    message = f"no label of {where} is {wanted}; similar, not clicked: "
    message += "; ".join(map(str, partial[:_MOST_SIMILAR]))
    if not partial:
        message = search.nearest_text()
        hint = f"scroll to the text, take a screenshot and click its pixels, or {_OTHER_WAY}"
    raise PeekabooError(ErrorCode.TEXT_NOT_FOUND, message, hint)


def wanted_role(role: Optional[str], text: Optional[str]) -> str:
    """Return a role as elements have it, empty for any. Raises INVALID_ARGUMENT if there is no text."""
    if role and text is None:
        raise invalid("a role is given, and no text", "give the text, or call find_elements")
    return (role or "").strip().lower()


def find_elements(desktop: Desktop, window_id: int, text: Optional[str], role: Optional[str]) -> Result:
    """List accessible elements, in pixels of a new screenshot. Raises NO_ELEMENTS, a capture's errors."""
    window = scene_to_capture(desktop).by_id(window_id)
    elements = desktop.read_elements(window)
    record = save_record_for_text(desktop, take_image(desktop, Subject(window=window)))
    if record.bounds != window.bounds:
        raise WindowMoves(window_id)
    wanted, role = (text or "").strip().casefold(), wanted_role(role, "")
    matches = [
        element
        for element in elements
        if role in ("", element.role)
        and any(wanted in shown.casefold() for shown in (element.name, element.value))
    ]
    boxes = [element.box.in_image_of(window.bounds, record.image_width) for element in matches]
    length = _SHORT_VALUE if matches[1:] else VALUE_LENGTH
    rows = [_element_data(*each, length) for each in zip(matches[:_MOST_LISTED], boxes)]
    data = {**_record_data(record), "count": len(matches), "elements": rows}
    if not matches:
        roles = ", ".join(dict.fromkeys(element.role for element in elements))
        summary = f"0 element(s) of window {window_id}; of {len(elements)}, none match; the roles: {roles}"
        return Result(summary, data, is_text_enough=True, exit_code=NOTHING_FOUND)
    more = "name a text or a role to see others"
    listing = _listing("element", record, [_element_line(row) for row in rows], len(matches), more)
    return Result(listing, data, is_text_enough=True)


def _element_data(element: Element, box: Rect, length: int) -> dict[str, Any]:
    """Return an element's data; box, x and y (its centre, for click) are in pixels of a screenshot."""
    value = element.value if len(element.value) <= length else element.value[: length - 1] + "…"
    named = {"role": element.role, "name": element.name, "value": value, "states": list(element.states)}
    return {**named, **box.middle._asdict(), "width": round(box.width), "height": round(box.height)}


def _element_line(data: dict[str, Any]) -> str:
    value = f' = "{data["value"]}"' if data["value"] else ""
    states = f" [{', '.join(data['states'])}]" if data["states"] else ""
    return f'{data["role"]} "{data["name"]}"{value} {data["x"]},{data["y"]}{states}'
