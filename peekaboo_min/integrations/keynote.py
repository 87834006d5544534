"""The five Keynote tools: open, size, rectangle, text and screenshot."""

from __future__ import annotations

import functools
import json
import os
import shutil
import time
from typing import Annotated, Any, Callable, NamedTuple, Optional

from ..automation.act import input_lock
from ..automation.policy import check_may_act, write_audit_line
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import log_for_agent
from ..core.models import Rect, Result
from ..core.settings import platform_name, settings
from ..core.text import clean_text, control_character_in
from ..desktop.macos.osascript import permission_error, run_applescript, run_jxa
from ..system.files import (
    absolute_path,
    file_lock,
    state_folder,
    temporary_folder,
    write_all,
    write_privately,
)
from ..system.image_files import whole_image
from ..system.saved_images import note_saved, prepare_target

KEYNOTE_IDS = ("com.apple.Keynote", "com.apple.iWork.Keynote")  # the AppleScript contains the first one
KEYNOTE_S = 120.0  # an export of many slides needs this long; the AppleScript gives up after 110
_DECK_FILE = "keynote.json"
_DOCUMENT_MODES = ("reuse_or_create", "always_new")

# The problems that keynote.js and this module report: code, message, hint.
_PROBLEMS = {
    "not_running": (ErrorCode.APP_NOT_FOUND, "Keynote is not running", "call open_keynote first"),
    "not_installed": (ErrorCode.APP_NOT_FOUND, "Keynote is not installed", "get it in the App Store"),
    "no_deck": (ErrorCode.WINDOW_NOT_FOUND, "no Keynote document is open", "call open_keynote first"),
    "no_document": (ErrorCode.WINDOW_NOT_FOUND, "the Keynote document was closed", "call open_keynote again"),
    "no_shape": (ErrorCode.WINDOW_NOT_FOUND, "the rectangle is no longer at its place on slide 1",
                 "call draw_rectangle again"),
    "skipped": (ErrorCode.CAPTURE_FAILED, "slide 1 is skipped, and Keynote does not export skipped slides",
                "unskip it in Keynote"),
    "no_image": (ErrorCode.CAPTURE_FAILED, "Keynote exported no complete image of slide 1", "try again"),
}  # fmt: skip


def check_is_mac() -> None:
    if platform_name() != "macos":
        raise PeekabooError(ErrorCode.UNSUPPORTED_PLATFORM, "Keynote runs on a Mac only")


class Deck(NamedTuple):
    """The Keynote document in use. Sizes are in points."""

    bundle_id: str
    document_id: str
    slide_width: int
    slide_height: int
    rectangle: Optional[dict[str, Any]] = None  # the last one: frame, index among the shapes, our fixed id

    def address(self) -> dict[str, str]:
        return {"bundle_id": self.bundle_id, "document_id": self.document_id}


# A server keeps its deck in memory (the specification's SERVER_STATE); a shell command keeps it in a file.
_is_in_memory = False
_deck_in_memory: Optional[Deck] = None


def keep_deck_in_memory() -> None:
    """Keep the deck of this process in memory from now on, beginning without one."""
    global _is_in_memory, _deck_in_memory
    _is_in_memory, _deck_in_memory = True, None


def _load_deck() -> Optional[Deck]:
    if _is_in_memory:
        return _deck_in_memory
    try:
        return Deck(**json.loads((state_folder() / _DECK_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # there is no file, or another version of this package wrote it


def _save_deck(deck: Deck) -> None:
    global _deck_in_memory
    if _is_in_memory:
        _deck_in_memory = deck
    else:
        write_privately(state_folder() / _DECK_FILE, json.dumps(deck._asdict()))


def _current_deck() -> Deck:
    deck = _load_deck()
    if deck is None:
        bundle_id = _ask_keynote("find")["bundle_id"]
        _check_may_act("keynote", bundle_id)
        opened = _ask_keynote("open", bundle_id=bundle_id, only_open=True)
        log_for_agent("[server]", _note_open_document(opened))
        deck = Deck(bundle_id, opened["document_id"], round(opened["width"]), round(opened["height"]))
        _save_deck(deck)
    return deck


def _note_open_document(opened: dict[str, Any]) -> str:
    return f"using the open document {clean_text(opened['name'])!r}"


def _keynote_tool(function: Callable[..., Result]) -> Callable[..., Result]:
    """Make a tool hold Keynote's lock while it runs, and write its calls to the agent's log."""

    @functools.wraps(function)
    def call(**arguments: Any) -> Result:
        started = time.monotonic()
        answer = "ERROR: unexpected failure"
        try:
            check_is_mac()
            with file_lock("keynote.lock", KEYNOTE_S, "Keynote"):
                result = function(**arguments)
            answer = result.text
            return result
        except PeekabooError as e:
            answer = e.message_for_model("ERROR")
            raise
        finally:
            # the format of the Keynote specification's sample log
            pairs = ",".join(f"{name!r}:{value!r}" for name, value in arguments.items())
            line = f"args={{{pairs}}} -> {answer} [elapsed={time.monotonic() - started:.3f}s]"
            log_for_agent(f"[server][tool={function.__name__}]", line)

    return call


def _run_logged(label: str, run_script: Callable[[], Any]) -> Any:
    try:
        output = run_script()
    except PeekabooError as e:
        if e.code == ErrorCode.PERMISSION_DENIED_AUTOMATION:
            raise permission_error(e.code, "Keynote cannot be controlled") from e
        hint = "close any dialog in Keynote, answer any question from macOS, then call open_keynote again"
        raise PeekabooError(e.code, f"Keynote: {e.message}", hint, e.details) from e
    log_for_agent("[server]", f"osascript {label} -> {json.dumps(output, ensure_ascii=False)}")
    return output


def _ask_keynote(action: str, **request: Any) -> dict[str, Any]:
    script, argument = ["integrations/keynote.js"], {"do": action, **request}
    reply: dict[str, Any] = _run_logged(action, lambda: run_jxa(script, argument, KEYNOTE_S))
    if "problem" in reply:
        raise PeekabooError(*_PROBLEMS[reply["problem"]])
    return reply


def _check_may_act(action: str, bundle_id: str, **audited: Any) -> None:
    check_may_act(action, "Keynote", bundle_id, alias="Keynote Creator Studio")  # the file name of Keynote 15
    if audited:
        write_audit_line(action, {"app": "Keynote", "bundle_id": bundle_id, **audited})


def _keynote_result(status: str, fields: dict[str, Any], note: str = "", **data_only: str) -> Result:
    # the specification's grammar allows a note only in a warning; other notes go into the data and the log
    with_note = {**fields, "note": note} if note else fields
    is_warning = status.endswith("_WITH_WARNING")
    if note and not is_warning:
        log_for_agent("[server]", note)
    text = ", ".join(f"{name}={value}" for name, value in (with_note if is_warning else fields).items())
    return Result(f"{status}: {text}", {**with_note, **data_only}, is_text_only=True)


@_keynote_tool
def open_keynote() -> Result:
    """Open Keynote and prepare slide 1 of a document; returns the slide's size in points. Call this first.

    Uses the front document. Creates one if no document is open or KEYNOTE_DOCUMENT_MODE is always_new.
    Returns KEYNOTE_READY.

    Example: peekaboo-min keynote open
    """
    mode, theme = settings().keynote_document_mode, settings().keynote_theme
    if mode not in _DOCUMENT_MODES:
        raise invalid(f"KEYNOTE_DOCUMENT_MODE is {mode[:40]!r}", "set it to " + " or ".join(_DOCUMENT_MODES))
    bundle_id = _ask_keynote("find")["bundle_id"]
    _check_may_act("open_keynote", bundle_id, mode=mode)
    request = {"bundle_id": bundle_id, "theme": theme, "always_new": mode == "always_new"}
    with input_lock("macos"):  # Keynote comes to the front
        opened = _ask_keynote("open", **request, width=1920, height=1080)
    previous, document_id = _load_deck(), opened["document_id"]
    deck = Deck(bundle_id, document_id, round(opened["width"]), round(opened["height"]))
    _save_deck(deck)
    notes = []
    if not opened["is_new"] and (previous is None or previous.document_id != document_id):
        notes.append(_note_open_document(opened))
    if not opened["has_theme"]:
        notes.append(f"no theme is named {clean_text(theme, 60)!r} so the default theme is used")
    if not opened["is_blank"]:
        notes.append("no layout is named Blank so slide 1 keeps its placeholders")
    status = "KEYNOTE_READY_WITH_WARNING" if notes else "KEYNOTE_READY"
    fields = {"slide": 1, "slide_width": deck.slide_width, "slide_height": deck.slide_height}
    return _keynote_result(status, fields, "; ".join(notes), **deck.address())


@_keynote_tool
def get_slide_size() -> Result:
    """Get the size of slide 1 in points. Returns SLIDE_SIZE.

    Uses the document that was opened before, or else Keynote's front document.

    Example: peekaboo-min keynote size
    """
    deck = _current_deck()
    _check_may_act("get_slide_size", deck.bundle_id)
    slide = _ask_keynote("size", **deck.address())
    width, height = round(slide["width"]), round(slide["height"])
    _save_deck(deck._replace(slide_width=width, slide_height=height))
    return _keynote_result("SLIDE_SIZE", {"width": width, "height": height})


@_keynote_tool
def draw_rectangle(
    x: Annotated[int, "left edge, in points from the left edge of the slide"],
    y: Annotated[int, "top edge, in points from the top edge of the slide"],
    width: Annotated[int, "width in points; the rectangle must fit on the slide"],
    height: Annotated[int, "height in points; the rectangle must fit on the slide"],
) -> Result:
    """Draw a rectangle on slide 1. Text that is added later goes into the last rectangle.

    Returns RECTANGLE_OK with its id, and its position and size on the slide.

    Example: peekaboo-min keynote rectangle 384 378 1152 324
    """
    deck, requested = _current_deck(), Rect(x, y, width, height)
    slide = Rect(0, 0, deck.slide_width, deck.slide_height)
    if width < 1 or height < 1 or not slide.encloses(requested):
        problem = f"x={x}, y={y}, width={width}, height={height} is not a rectangle on the slide"
        size = f"{deck.slide_width}x{deck.slide_height}"
        raise invalid(problem, f"keep x, y, x+width and y+height within the slide, which is {size}")
    _check_may_act("draw_rectangle", deck.bundle_id, document=deck.document_id, **requested.as_data())
    drawn = _ask_keynote("draw", **deck.address(), **requested.as_data())
    index = drawn.pop("index")
    rectangle = {"id": f"{deck.document_id}/1/{index}", **drawn}
    _save_deck(deck._replace(rectangle={**rectangle, "index": index}))
    moved = f"Keynote moved or resized it; {x},{y} {width}x{height} was requested"
    note = "" if drawn == requested._asdict() else moved
    return _keynote_result("RECTANGLE_OK", rectangle, note)


@_keynote_tool
def add_text_in_keynote(
    text: Annotated[
        str, "the exact text; a broken bar (U+00A6) becomes |, which a FUNCTION_CALL line cannot contain"
    ],
) -> Result:
    """Write text into the rectangle that was drawn last, replacing its text.

    Returns TEXT_OK with the number of characters. The theme sets the alignment; Keynote's scripts cannot.

    Example: peekaboo-min keynote text "Hello from the shell"
    """
    text = _with_newlines(text.replace("¦", "|"))
    if control_character := control_character_in(text):
        raise invalid(f"the text contains {control_character!r}", "remove control characters")
    deck = _load_deck()
    if deck is None or deck.rectangle is None:
        raise invalid("no rectangle was drawn", "call draw_rectangle first")
    fields = {"id": deck.rectangle["id"], "characters": len(text)}
    _check_may_act("add_text_in_keynote", deck.bundle_id, **fields)
    stored = _with_newlines(_ask_keynote("text", **deck.address(), **deck.rectangle, text=text)["text"])
    note = "" if stored == text else f"Keynote stored {len(stored)} characters"
    return _keynote_result("TEXT_OK", fields, note)


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


@_keynote_tool
def screenshot_slide(
    path: Annotated[str, "the .png file to write, with its folders; if empty, SCREENSHOT_PATH"],
) -> Result:
    """Export slide 1 as a PNG file, at the slide's size. Returns SCREENSHOT_SAVED with the path.

    Example: peekaboo-min keynote screenshot slide.png
    leaves slide.png
    """
    target = absolute_path(path.strip() or settings().screenshot_path)
    if target.suffix.lower() != ".png":
        message = "neither the path nor SCREENSHOT_PATH names a PNG file"
        raise invalid(message, "name a file that ends in .png")
    deck = _current_deck()
    _check_may_act("screenshot_slide", deck.bundle_id, document=deck.document_id, path=str(target))
    if _ask_keynote("size", **deck.address())["is_skipped"]:
        raise PeekabooError(*_PROBLEMS["skipped"])
    file = prepare_target(target)
    folder = temporary_folder() / f"slides_{os.urandom(6).hex()}"  # must not exist: Keynote creates it
    argv = [deck.bundle_id, deck.document_id, str(folder)]
    script, terms = "integrations/keynote_export.applescript", (KEYNOTE_IDS[0], deck.bundle_id)
    try:
        _run_logged("export", lambda: run_applescript(script, argv, KEYNOTE_S, terms))
        images = sorted(folder.rglob("*.png"))
        data = images[0].read_bytes() if images else b""
        if whole_image(data) is None:
            raise PeekabooError(*_PROBLEMS["no_image"])
        write_all({file: data}, 0o600)
        note_saved([file])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _keynote_result("SCREENSHOT_SAVED", {"path": str(target)})
