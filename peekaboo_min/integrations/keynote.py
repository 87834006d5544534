"""The five Keynote tools."""

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
from ..system.files import asked_path, file_lock, state_folder, temporary_folder, write_all, write_privately
from ..system.images import prepare_target, whole_image

KEYNOTE_IDS = ("com.apple.Keynote", "com.apple.iWork.Keynote")  # the first is that of the AppleScript
KEYNOTE_S = 120.0
_DECK_FILE = "keynote.json"
_DOCUMENT_MODES = ("reuse_or_create", "always_new")

# The problems that we find and that keynote.js reports, and what to do then.
_PROBLEMS = {
    "not_running": (ErrorCode.APP_NOT_FOUND, "Keynote is not running", "call open_keynote first"),
    "not_installed": (ErrorCode.APP_NOT_FOUND, "Keynote is not installed", "get it in the App Store"),
    "no_deck": (ErrorCode.WINDOW_NOT_FOUND, "no Keynote document is open", "call open_keynote first"),
    "no_document": (ErrorCode.WINDOW_NOT_FOUND, "the Keynote document was closed", "call open_keynote again"),
    "no_shape": (ErrorCode.WINDOW_NOT_FOUND, "the rectangle is gone from slide 1, or was moved",
                 "call draw_rectangle again"),
    "skipped": (ErrorCode.CAPTURE_FAILED, "slide 1 is skipped, and Keynote does not export skipped slides",
                "unskip it in Keynote"),
    "no_image": (ErrorCode.CAPTURE_FAILED, "Keynote exported no complete image of slide 1", "try again"),
}  # fmt: skip


def check_is_mac() -> None:
    if platform_name() != "macos":
        raise PeekabooError(ErrorCode.UNSUPPORTED_PLATFORM, "Keynote runs on a Mac only", "run this on a Mac")


class Deck(NamedTuple):
    """The Keynote document in use. Points."""

    bundle_id: str
    document_id: str
    slide_width: int
    slide_height: int
    rectangle: Optional[dict[str, Any]] = None
    """The one drawn last on slide 1: x, y, width, height, the index that it had among the slide's shapes, and
    an id of ours, because shapes have none: it stays although the index changes.
    """

    def address(self) -> dict[str, str]:
        return {"bundle_id": self.bundle_id, "document_id": self.document_id}


# A server's deck, as the Keynote specification's SERVER_STATE: it ends with the server. Empty in a shell
# command, whose deck is in a file that the next command reads.
_server_state: list[Optional[Deck]] = []


def keep_deck_in_memory() -> None:
    """From now on the deck of this process is its own, and there is none yet."""
    _server_state[:] = [None]


def _load_deck() -> Optional[Deck]:
    """The deck as the last call left it: of this server, or of any command; None where there is none."""
    if _server_state:
        return _server_state[0]
    try:
        return Deck(**json.loads((state_folder() / _DECK_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None  # there is none, or one of another version of ours


def _save_deck(deck: Deck) -> None:
    if _server_state:
        _server_state[0] = deck
    else:
        write_privately(state_folder() / _DECK_FILE, json.dumps(deck._asdict()))


def _open_deck() -> Deck:
    """The document that open_keynote chose, else Keynote's front one. Raises WINDOW_NOT_FOUND."""
    deck = _load_deck()
    if deck is None:
        bundle_id = _installed_keynote()
        check_may_act("keynote", "Keynote", bundle_id)
        opened = _ask_keynote("open", bundle_id=bundle_id, only_open=True)
        log_for_agent("server", f"the document {clean_text(opened['name'])!r} was open and is used")
        deck = Deck(bundle_id, opened["document_id"], round(opened["width"]), round(opened["height"]))
        _save_deck(deck)
    return deck


def _installed_keynote() -> str:
    """Its bundle id. Raises APP_NOT_FOUND."""
    bundle_id: Optional[str] = _ask_keynote("find")["bundle_id"]
    if bundle_id is None:
        raise PeekabooError(*_PROBLEMS["not_installed"])
    return bundle_id


def _keynote_tool(function: Callable[..., Result]) -> Callable[..., Result]:
    """A tool that holds Keynote's lock while it runs, and whose calls are written into the agent's log."""

    @functools.wraps(function)
    def call(**arguments: Any) -> Result:
        started = time.monotonic()
        answer = "ERROR: it failed unexpectedly"
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
            given = ",".join(f"{name!r}:{value!r}" for name, value in arguments.items())
            line = f"args={{{given}}} -> {answer} [elapsed={time.monotonic() - started:.3f}s]"
            log_for_agent(f"server][tool={function.__name__}", line)

    return call


def _run_logged(what: str, run: Callable[[], Any]) -> Any:
    """The output of run_jxa or run_applescript, also written into the agent's log. Raises PeekabooError."""
    try:
        output = run()
    except PeekabooError as e:
        if e.code == ErrorCode.PERMISSION_DENIED_AUTOMATION:
            raise permission_error(e.code, "Keynote cannot be controlled") from e
        hint = "close any dialog in Keynote, allow what macOS asks for, then call open_keynote again"
        raise PeekabooError(e.code, f"Keynote: {e.message}", hint, e.details) from e
    log_for_agent("server", f"osascript {what} -> {json.dumps(output, ensure_ascii=False)}")
    return output


def _ask_keynote(action: str, **request: Any) -> dict[str, Any]:
    """The answer of keynote.js. Raises PeekabooError for a problem or a refusal."""
    script, argument = ["integrations/keynote.js"], {"do": action, **request}
    answer: dict[str, Any] = _run_logged(action, lambda: run_jxa(script, argument, KEYNOTE_S))
    if "problem" in answer:
        raise PeekabooError(*_PROBLEMS[answer["problem"]])
    return answer


def _check_and_audit(action: str, bundle_id: str, where: dict[str, Any]) -> None:
    check_may_act(action, "Keynote", bundle_id)
    write_audit_line(action, {"app": "Keynote", "bundle_id": bundle_id, **where})


def _keynote_result(status: str, fields: dict[str, Any], note: str = "", **more: str) -> Result:
    """`STATUS: name=value, ...`, in the Keynote specification's grammar; `more` is in the data only.

    That has room for a note with a warning; any other is in the data, and in the agent's log.
    """
    noted = {**fields, "note": note} if note else fields
    shown = noted if status.endswith("_WITH_WARNING") else fields
    if shown is not noted:
        log_for_agent("server", note)
    text = ", ".join(f"{name}={value}" for name, value in shown.items())
    return Result(f"{status}: {text}", {**noted, **more}, is_text_only=True)


@_keynote_tool
def open_keynote() -> Result:
    """Opens Keynote and prepares slide 1 of a document. Call it first. The document is the front one, or a
    new one when none is open or KEYNOTE_DOCUMENT_MODE is always_new. Returns KEYNOTE_READY with the slide's
    size, in points.

    Example: peekaboo-min keynote open
    """
    mode, theme = settings().keynote_document_mode, settings().keynote_theme
    if mode not in _DOCUMENT_MODES:
        raise invalid(f"KEYNOTE_DOCUMENT_MODE is {mode[:40]!r}", "set it to " + " or ".join(_DOCUMENT_MODES))
    bundle_id = _installed_keynote()
    _check_and_audit("open_keynote", bundle_id, {"mode": mode})
    request = {"bundle_id": bundle_id, "theme": theme, "always_new": mode == "always_new"}
    with input_lock("macos"):  # it comes to the front
        opened = _ask_keynote("open", **request, width=1920, height=1080)
    before, document_id = _load_deck(), opened["document_id"]
    deck = Deck(bundle_id, document_id, round(opened["width"]), round(opened["height"]))
    _save_deck(deck)
    notes = []
    if not opened["is_new"] and (before is None or before.document_id != document_id):
        notes.append(f"the document {clean_text(opened['name'])!r} was open and is used")
    if not opened["has_theme"]:
        notes.append(f"there is no theme {clean_text(theme, 60)!r} so the default one is used")
    if not opened["is_blank"]:
        notes.append("there is no layout Blank so slide 1 keeps its placeholders")
    status = "KEYNOTE_READY_WITH_WARNING" if notes else "KEYNOTE_READY"
    fields = {"slide": 1, "slide_width": deck.slide_width, "slide_height": deck.slide_height}
    return _keynote_result(status, fields, "; ".join(notes), **deck.address())


@_keynote_tool
def get_slide_size() -> Result:
    """Returns the size of slide 1 in points, of the document of open_keynote, else of the front one.

    Example: peekaboo-min keynote size
    """
    deck = _open_deck()
    check_may_act("get_slide_size", "Keynote", deck.bundle_id)
    slide = _ask_keynote("size", **deck.address())
    width, height = round(slide["width"]), round(slide["height"])
    _save_deck(deck._replace(slide_width=width, slide_height=height))
    return _keynote_result("SLIDE_SIZE", {"width": width, "height": height})


@_keynote_tool
def draw_rectangle(
    x: Annotated[int, "left edge, in points from the slide's left edge"],
    y: Annotated[int, "top edge, in points from the slide's top edge"],
    width: Annotated[int, "width in points; the whole rectangle lies on the slide"],
    height: Annotated[int, "height in points; the whole rectangle lies on the slide"],
) -> Result:
    """Draws a rectangle on slide 1, which add_text_in_keynote then writes into. Returns RECTANGLE_OK with its
    id and its position on the slide.

    Example: peekaboo-min keynote rectangle 384 378 1152 324
    """
    deck, wanted = _open_deck(), Rect(x, y, width, height)
    slide = Rect(0, 0, deck.slide_width, deck.slide_height)
    if width < 1 or height < 1 or not slide.encloses(wanted):
        problem = f"x={x}, y={y}, width={width}, height={height} is no rectangle on the slide"
        size = f"{deck.slide_width}x{deck.slide_height}"
        raise invalid(problem, f"the slide is {size}: keep x, y, x+width and y+height within it")
    _check_and_audit("draw_rectangle", deck.bundle_id, {"document": deck.document_id, **wanted.as_data()})
    drawn = _ask_keynote("draw", **deck.address(), **wanted.as_data())
    index = drawn.pop("index")
    rectangle = {"id": f"{deck.document_id}/1/{index}", **drawn}
    _save_deck(deck._replace(rectangle={**rectangle, "index": index}))
    note = "" if drawn == wanted._asdict() else f"Keynote did not keep {x},{y} {width}x{height}"
    return _keynote_result("RECTANGLE_OK", rectangle, note)


@_keynote_tool
def add_text_in_keynote(
    text: Annotated[
        str, "the exact text; a broken bar (U+00A6) is written as |, which a FUNCTION_CALL cannot hold"
    ],
) -> Result:
    """Writes text into the rectangle that was drawn last, replacing its text. Returns TEXT_OK with the number
    of characters. The theme decides the alignment: Keynote's scripting cannot set it.

    Example: peekaboo-min keynote text "Hello from the shell"
    """
    text = _with_newlines(text.replace("¦", "|"))
    bad = control_character_in(text)
    if bad:
        raise invalid(f"the text contains {bad!r}", "omit control characters")
    deck = _load_deck()
    if deck is None or deck.rectangle is None:
        raise invalid("no rectangle was drawn", "call draw_rectangle first")
    fields = {"id": deck.rectangle["id"], "characters": len(text)}
    _check_and_audit("add_text_in_keynote", deck.bundle_id, fields)
    kept = _with_newlines(_ask_keynote("text", **deck.address(), **deck.rectangle, text=text)["text"])
    note = "" if kept == text else f"Keynote keeps {len(kept)} characters"
    return _keynote_result("TEXT_OK", fields, note)


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


@_keynote_tool
def screenshot_slide(
    path: Annotated[str, "the .png file to write; its folders are created; empty: SCREENSHOT_PATH"],
) -> Result:
    """Exports slide 1 as a PNG file, at the slide's size. Returns SCREENSHOT_SAVED with the path.

    Example: peekaboo-min keynote screenshot slide.png
    leaves slide.png
    """
    target = asked_path(path.strip() or settings().screenshot_path)
    if target.suffix.lower() != ".png":
        message = "neither the path nor SCREENSHOT_PATH names a PNG file"
        raise invalid(message, "name a file that ends in .png")
    deck = _open_deck()
    _check_and_audit("screenshot_slide", deck.bundle_id, {"document": deck.document_id, "path": str(target)})
    if _ask_keynote("size", **deck.address())["is_skipped"]:
        raise PeekabooError(*_PROBLEMS["skipped"])
    prepare_target(target)
    folder = temporary_folder() / f"slides_{os.urandom(6).hex()}"  # Keynote has to create it
    argv = [deck.bundle_id, deck.document_id, str(folder)]
    script, terms = "integrations/keynote_export.applescript", (KEYNOTE_IDS[0], deck.bundle_id)
    try:
        _run_logged("export", lambda: run_applescript(script, argv, KEYNOTE_S, terms))
        images = sorted(folder.rglob("*.png"))
        data = images[0].read_bytes() if images else b""
        if whole_image(data) is None:
            raise PeekabooError(*_PROBLEMS["no_image"])
        write_all({target: data})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _keynote_result("SCREENSHOT_SAVED", {"path": str(target)})
