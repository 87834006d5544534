"""The five Keynote tools: open, measure, draw, write, export."""

from __future__ import annotations

import functools
import json
import os
import shutil
import time
from pathlib import Path
from typing import Annotated, Any, Callable

from ..automation.input import one_mouse
from ..automation.policy import check_may_act, write_audit_line
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_debug
from ..core.models import Rect, Result
from ..core.settings import platform_name, settings
from ..core.text import clean_text, untypable_character
from ..desktop.macos.osascript import run_applescript, run_jxa
from ..desktop.macos.permissions import permission_error
from ..system.files import asked_path, move_into_place, only_one, temporary_folder
from ..system.images import prepare_target, read_image_info
from .keynote_state import Deck, recall_deck, remember_deck, write_agent_line

KEYNOTE_S = 120.0
_NEW_SIZE = {"width": 1920, "height": 1080}
_DOCUMENT_MODES = ("reuse_or_create", "always_new")
_LONGEST_SHAPE_TEXT = 10_000

# What keynote.js answers instead of doing what it was asked, and what to do then.
_PROBLEMS = {
    "not_running": (ErrorCode.APP_NOT_FOUND, "Keynote is not running", "call open_keynote first"),
    "no_document": (ErrorCode.WINDOW_NOT_FOUND, "the Keynote document was closed", "call open_keynote again"),
    "no_shape": (
        ErrorCode.WINDOW_NOT_FOUND,
        "the rectangle is gone from slide 1, or was moved",
        "call draw_rectangle again",
    ),
    "not_made": (
        ErrorCode.PROGRAM_FAILED,
        "Keynote made nothing",
        "close any dialog there, then call open_keynote again",
    ),
}


def check_is_mac() -> None:
    """Raises UNSUPPORTED_PLATFORM where there is no Keynote."""
    if platform_name() != "macos":
        raise PeekabooError(
            ErrorCode.UNSUPPORTED_PLATFORM, "Keynote runs on a Mac only", hint="run this on a Mac"
        )


def _keynote_tool(function: Callable[..., Result]) -> Callable[..., Result]:
    """A tool that has Keynote for itself while it runs, and whose calls all stand in the agent's log."""

    @functools.wraps(function)
    def one_call(**arguments: Any) -> Result:
        started = time.monotonic()
        said = "ERROR: it failed unexpectedly"
        try:
            check_is_mac()
            with only_one("keynote.lock", KEYNOTE_S, "Keynote"):
                result = function(**arguments)
            said = result.text
            return result
        except PeekabooError as e:
            said = e.message_for_model("ERROR")
            raise
        finally:
            given = ",".join(f"{name!r}:{value!r}" for name, value in arguments.items())
            line = f"args={{{given}}} -> {said} [elapsed={time.monotonic() - started:.3f}s]"
            write_agent_line(f"server][tool={function.__name__}", line)

    return one_call


def _noted(what: str, run: Callable[..., Any], source: Any, given: Any) -> Any:
    """What run_jxa or run_applescript brings back, noted in the agent's log. Raises what a Mac's refusals mean."""
    try:
        told = run(source, given, KEYNOTE_S)
    except PeekabooError as e:
        write_agent_line("server", f"osascript {what} failed: {e.details or e.message}")
        raise _keynote_error(e) from e
    write_agent_line("server", f"osascript {what} -> {json.dumps(told, ensure_ascii=False)}")
    return told


def _ask_keynote(request: dict[str, Any]) -> dict[str, Any]:
    """What keynote.js answers. Raises what a Mac's refusals mean."""
    told: dict[str, Any] = _noted(request["do"], run_jxa, ["integrations/keynote.js"], request)
    failures = "; ".join(told.get("failures", ()))
    if failures:
        log_debug(f"idioms that Keynote did not take: {failures}")
    if told.get("problem") == "not_made" and request["do"] == "draw":
        return _drawn_by_applescript(request)
    if "problem" in told:
        code, message, hint = _PROBLEMS[told["problem"]]
        raise PeekabooError(code, message, hint=hint, details=failures)
    return told


def _drawn_by_applescript(request: dict[str, Any]) -> dict[str, Any]:
    """What keynote.js answers to "draw", where no idiom of JXA's made a shape; "by" tells so."""
    words = [str(request[key]) for key in ("bundle_id", "document_id", "x", "y", "width", "height")]
    said = _noted("draw", run_applescript, "integrations/keynote_draw.applescript", words)
    numbers = (float(word.replace(",", ".")) for word in said.split("|"))  # a German Mac writes 380,5
    whole = (int(one) if one.is_integer() else one for one in numbers)
    return dict(zip(("index", "x", "y", "width", "height"), whole), by="AppleScript")


def _keynote_error(error: PeekabooError) -> PeekabooError:
    """The same error in Keynote's words: osascript's own do not know whom it asked."""
    if error.code == ErrorCode.PERMISSION_DENIED_AUTOMATION:
        return permission_error(error.code, "Keynote cannot be controlled")
    if error.code == ErrorCode.TIMEOUT:
        message = "Keynote did not answer in time"
        hint = "allow it where macOS asks for consent (maybe behind a window), close any dialog in Keynote, then try again"
    elif error.code == ErrorCode.APP_NOT_FOUND:
        message, hint = f"Keynote quit: {error.message}", "call open_keynote again"
    elif error.code == ErrorCode.PROGRAM_FAILED:
        message = f"Keynote refused: {error.message}"
        hint = "close any dialog or What's New window in Keynote, then call open_keynote again"
    else:
        return error
    return PeekabooError(error.code, message, hint=hint, details=error.details)


def _open_deck() -> Deck:
    """The document that open_keynote chose; then whatever happens in Keynote happens there. Raises POLICY_DENIED."""
    deck = recall_deck()
    if deck is None:
        raise PeekabooError(
            ErrorCode.WINDOW_NOT_FOUND, "no Keynote document was opened", hint="call open_keynote first"
        )
    return deck


def _check_and_note(action: str, bundle_id: str, where: dict[str, Any]) -> None:
    check_may_act(action, "Keynote", bundle_id)
    write_audit_line(action, {"app": "Keynote", "bundle_id": bundle_id, **where})


def _with_note(text: str, data: dict[str, Any], note: str) -> Result:
    """A result in the grammar, where a note may follow the fields."""
    if not note:
        return Result(text, data, is_text_only=True)
    return Result(f"{text}, note={note}", {**data, "note": note}, is_text_only=True)


@_keynote_tool
def open_keynote() -> Result:
    """Opens Keynote and makes slide 1 of a document ready. Call it first. The document is the front one, or a new one when
    none is open or KEYNOTE_DOCUMENT_MODE is always_new. Answers KEYNOTE_READY with the slide's size, in points.

    Example: peekaboo-min keynote open
    """
    mode, theme = settings().keynote_document_mode, settings().keynote_theme
    if mode not in _DOCUMENT_MODES:
        message = f"KEYNOTE_DOCUMENT_MODE is {mode[:40]!r}"
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, message, hint="set it to " + " or ".join(_DOCUMENT_MODES)
        )
    bundle_id = _ask_keynote({"do": "find"})["bundle_id"]
    if bundle_id is None:
        raise PeekabooError(
            ErrorCode.APP_NOT_FOUND, "Keynote is not installed", hint="get it in the App Store"
        )
    _check_and_note("open_keynote", bundle_id, {"mode": mode})
    request = {
        "do": "open",
        "bundle_id": bundle_id,
        "theme": theme,
        "always_new": mode == "always_new",
        **_NEW_SIZE,
    }
    with one_mouse():  # it comes to the front
        told = _ask_keynote(request)
    before = recall_deck()
    is_ours = told["is_new"] or bool(before and before.is_ours and before.document_id == told["document_id"])
    deck = Deck(bundle_id, told["document_id"], is_ours, round(told["width"]), round(told["height"]))
    remember_deck(deck)
    notes = [
        "" if is_ours else f"the document {clean_text(told['name'])!r} was open and is used",
        ""
        if told["has_theme"]
        else f"there is no theme {clean_text(theme, 60)!r} so the default one is used",
        "" if told["is_blank"] else "there is no layout Blank so slide 1 keeps its placeholders",
    ]
    note = "; ".join(filter(None, notes))
    size = {"slide_width": deck.slide_width, "slide_height": deck.slide_height}
    word = "KEYNOTE_READY_WITH_WARNING" if note else "KEYNOTE_READY"
    text = f"{word}: slide=1, slide_width={deck.slide_width}, slide_height={deck.slide_height}"
    return _with_note(
        text, {"slide": 1, **size, "document_id": deck.document_id, "bundle_id": bundle_id}, note
    )


@_keynote_tool
def get_slide_size() -> Result:
    """Tells the size of slide 1 in points. Call open_keynote before.

    Example: peekaboo-min keynote size
    """
    deck = _open_deck()
    check_may_act("get_slide_size", "Keynote", deck.bundle_id)
    told = _ask_keynote({"do": "size", **deck.address()})
    width, height = round(told["width"]), round(told["height"])
    remember_deck(deck.resized(width, height))
    return Result(
        f"SLIDE_SIZE: width={width}, height={height}", {"width": width, "height": height}, is_text_only=True
    )


@_keynote_tool
def draw_rectangle(
    x: Annotated[int, "left edge, in points from the slide's left edge"],
    y: Annotated[int, "top edge, in points from the slide's top edge"],
    width: Annotated[int, "width in points; the whole rectangle lies on the slide"],
    height: Annotated[int, "height in points; the whole rectangle lies on the slide"],
) -> Result:
    """Draws a rectangle on slide 1, which add_text_in_keynote then writes into. Answers RECTANGLE_OK with its id and with
    its place as it stands on the slide.

    Example: peekaboo-min keynote rectangle 384 378 1152 324
    """
    deck = _open_deck()
    asked = Rect(x, y, width, height)
    _check_fits(asked, deck)
    _check_and_note("draw_rectangle", deck.bundle_id, {"document": deck.document_id, **asked.as_data()})
    told = _ask_keynote({"do": "draw", **deck.address(), **asked.as_data()})
    log_debug(f"the rectangle was drawn by {told.get('by', 'JXA')}")
    settled = Rect(told["x"], told["y"], told["width"], told["height"])
    deck = deck.with_rectangle(told["index"], settled)
    remember_deck(deck)
    fields = ", ".join(f"{key}={value}" for key, value in settled.as_data().items())
    note = "" if settled == asked else f"Keynote did not keep {x},{y} {width}x{height}"
    return _with_note(
        f"RECTANGLE_OK: id={deck.rectangle_id}, {fields}",
        {"id": deck.rectangle_id, **settled.as_data()},
        note,
    )


def _check_fits(rect: Rect, deck: Deck) -> None:
    for name, value in rect.as_data().items():
        if not isinstance(value, int):
            raise PeekabooError(
                ErrorCode.INVALID_ARGUMENT, f"{name} is {value!r}", hint="give a whole number of points"
            )
    if rect.width < 1 or rect.height < 1:
        message = f"a rectangle of {rect.width}x{rect.height} has no area"
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint="give a positive width and height")
    if not Rect(0, 0, deck.slide_width, deck.slide_height).encloses(rect):
        message = (
            f"x={rect.x}, y={rect.y}, width={rect.width}, height={rect.height} does not fit on the slide"
        )
        hint = (
            f"the slide is {deck.slide_width}x{deck.slide_height}: keep x, y, x+width and y+height within it"
        )
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint=hint)


@_keynote_tool
def add_text_in_keynote(
    text: Annotated[
        str, "the exact text; a broken bar (U+00A6) is written as |, which a FUNCTION_CALL cannot hold"
    ],
) -> Result:
    """Writes text into the rectangle that was drawn last, in place of what stands there. Answers TEXT_OK with the number
    of characters. How it is aligned is the theme's choice: Keynote cannot be told.

    Example: peekaboo-min keynote text "Hello from the shell"
    """
    text = text.replace("¦", "|")
    _check_shape_text(text)
    deck = _open_deck()
    if deck.rectangle is None:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "no rectangle was drawn", hint="call draw_rectangle first"
        )
    _check_and_note(
        "add_text_in_keynote", deck.bundle_id, {"rectangle": deck.rectangle_id, "characters": len(text)}
    )
    request = {
        "do": "text",
        **deck.address(),
        "index": deck.rectangle_index,
        **deck.rectangle.as_data(),
        "text": text,
    }
    told = _ask_keynote(request)
    remember_deck(deck.with_rectangle(told["index"], deck.rectangle, deck.rectangle_id))
    kept = str(told["text"]).replace("\r\n", "\n").replace("\r", "\n")
    note = (
        ""
        if kept == text.replace("\r\n", "\n").replace("\r", "\n")
        else f"Keynote keeps {len(kept)} characters"
    )
    data = {"id": deck.rectangle_id, "characters": len(text)}
    return _with_note(f"TEXT_OK: id={deck.rectangle_id}, characters={len(text)}", data, note)


def _check_shape_text(text: str) -> None:
    if not text:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "the text is empty", hint="give the text to write")
    if len(text) > _LONGEST_SHAPE_TEXT:
        message = f"the text has {len(text)} characters"
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint=f"write at most {_LONGEST_SHAPE_TEXT}")
    bad = untypable_character(text)
    if bad:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"the text holds {bad!r}", hint="leave control characters out"
        )


@_keynote_tool
def screenshot_slide(
    path: Annotated[str, "the .png file to write; its folders are made; empty: SCREENSHOT_PATH"],
) -> Result:
    """Exports slide 1 as a PNG file, at the slide's size. Answers SCREENSHOT_SAVED with the path.

    Example: peekaboo-min keynote screenshot slide.png
    leaves slide.png
    """
    target = _slide_target(path)
    deck = _open_deck()
    _check_and_note("screenshot_slide", deck.bundle_id, {"document": deck.document_id, "path": str(target)})
    if _ask_keynote({"do": "size", **deck.address()})["is_skipped"]:
        message = "slide 1 is skipped, and Keynote exports no skipped slide"
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, message, hint="unskip it in Keynote")
    prepare_target(target)
    folder = temporary_folder() / f"slides_{os.urandom(6).hex()}"  # which Keynote wants to make itself
    try:
        _noted(
            "export",
            run_applescript,
            "integrations/keynote_export.applescript",
            [deck.bundle_id, deck.document_id, str(folder)],
        )
        pictures = sorted(one for one in folder.rglob("*.png") if read_image_info(one))
        if not pictures:
            raise PeekabooError(ErrorCode.CAPTURE_FAILED, "Keynote exported no picture", hint="try again")
        move_into_place(pictures[0], target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(f"SCREENSHOT_SAVED: path={target}", {"path": str(target)}, is_text_only=True)


def _slide_target(path: str) -> Path:
    chosen = path.strip() or settings().screenshot_path
    if not chosen:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "neither a path nor SCREENSHOT_PATH is set", hint="name a .png file"
        )
    target = asked_path(chosen)
    if target.suffix.lower() != ".png":
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"{target.name!r} is no name for a PNG", hint="let it end in .png"
        )
    return target
