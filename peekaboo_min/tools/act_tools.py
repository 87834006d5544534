"""The tools that act on a window: focus, pointer, keyboard, open."""

from __future__ import annotations

from typing import Annotated, Optional

from ..automation.act import focus_by_id, perform
from ..automation.find import click_label
from ..automation.listing import window_data
from ..automation.opening import open_and_wait
from ..core import models
from ..core.models import ACT_LIMITS, Act, Point, Result
from ..desktop.keys import read_chord
from ..desktop.select import this_desktop
from .list_tools import Button, Clicks, Region, RegionScreenshotId, Role, ScreenshotId, Verify, WindowId, X, Y

_DEFAULT = Act("")


def _range(name: str) -> str:
    least, most = ACT_LIMITS[name]
    return f"{least} to {most}; default {getattr(_DEFAULT, name)}"


def focus_window(window_id: WindowId) -> Result:
    """Bring a window to the front (activate, raise, switch to it) and give it the keyboard focus.

    Example: peekaboo-min focus 14680078
    """
    window = focus_by_id(this_desktop(), window_id)
    text = f"window {window_id} of {window.app_name} is in front and has the keyboard focus"
    return Result(text, window_data(window))


def click(
    window_id: WindowId,
    x: X,
    y: Y,
    button: Button = "left",
    clicks: Clicks = 1,
    modifiers: Annotated[Optional[list[str]], "held: cmd, ctrl, alt, shift, super; default none"] = None,
    screenshot_id: ScreenshotId = None,
    verify: Verify = False,
) -> Result:
    """Click with the mouse at a pixel of a window's screenshot: a button, link, checkbox, icon or menu.

    Computer use, desktop GUI control: left, right or double click to press, push, tick, select. Refused if
    the window was resized since or is covered there.

    Example: peekaboo-min click 14680078 120 48 --verify
    """
    act = Act("click", (Point(x, y),), button, clicks, tuple(modifiers or ()))
    return perform(this_desktop(), window_id, act, f"clicked window {window_id}", verify, screenshot_id)


def click_text(
    window_id: WindowId,
    text: Annotated[str, "whole label; any case"],
    button: Button = "left",
    clicks: Clicks = 1,
    verify: Verify = False,
    region: Region = None,
    screenshot_id: RegionScreenshotId = None,
    role: Role = None,
) -> Result:
    """Click or choose a button, link, tab or menu entry in a window by the text on it: press these words.

    Only a unique whole label; an error gives regions.

    Example: peekaboo-min click-text 14680078 "Sign the book"
    """
    return click_label(this_desktop(), window_id, text, button, clicks, verify, region, screenshot_id, role)


def scroll(
    window_id: WindowId,
    x: X,
    y: Y,
    direction: Annotated[models.Direction, "down shows what is further below"],
    amount: Annotated[int, f"notches of the wheel, {_range('amount')}"] = _DEFAULT.amount,
    screenshot_id: ScreenshotId = None,
    verify: Verify = False,
) -> Result:
    """Scroll up, down, left or right in a page, list or table with the mouse wheel, to see more of it.

    Give a pixel of the window's screenshot. The rules of click apply.

    Example: peekaboo-min scroll 14680078 300 200 down --amount 5
    """
    act = Act("scroll", (Point(x, y),), direction=direction, amount=amount)
    done = f"scrolled {direction} by {amount} in window {window_id}"
    return perform(this_desktop(), window_id, act, done, verify, screenshot_id)


def drag(
    window_id: WindowId,
    x: X,
    y: Y,
    to_x: Annotated[float, "where to release: pixels from the left edge"],
    to_y: Annotated[float, "where to release: pixels from the top edge"],
    button: Button = "left",
    screenshot_id: ScreenshotId = None,
    verify: Verify = False,
) -> Result:
    """Drag and drop with the mouse: hold the button and move between two pixels of a window's screenshot.

    It moves a slider, an item, a file, or a window by its title bar, or selects text. The rules of click
    apply.

    Example: peekaboo-min drag 14680078 120 48 260 48
    """
    act = Act("drag", (Point(x, y), Point(to_x, to_y)), button)
    return perform(this_desktop(), window_id, act, f"dragged in window {window_id}", verify, screenshot_id)


def move_pointer(window_id: WindowId, x: X, y: Y, screenshot_id: ScreenshotId = None) -> Result:
    """Move the mouse pointer (cursor) to a pixel of a window's screenshot without a click, to hover there.

    It opens a tooltip or a submenu. The rules of click apply.

    Example: peekaboo-min move 14680078 120 48
    """
    act = Act("move_pointer", (Point(x, y),))
    done = f"moved the pointer in window {window_id}"
    return perform(this_desktop(), window_id, act, done, False, screenshot_id)


def type_text(
    window_id: WindowId,
    text: Annotated[str, "Unicode; newline presses return, tab presses tab"],
    replace: Annotated[bool, "replace the field's content (select all); default false"] = False,
    delay_ms: Annotated[int, f"between two keys, {_range('delay_ms')}"] = _DEFAULT.delay_ms,
    verify: Verify = False,
) -> Result:
    """Type text with the keyboard into a field or editor of a window: write, enter, fill in or paste it.

    Computer use, desktop GUI control: click the field first (form, search box, password). Non-ASCII text may
    use the clipboard. A Mac app may autocorrect it.

    Example: peekaboo-min type 14680078 "Grüße, 世界"
    """
    act = Act("type", text=text, delay_ms=delay_ms, replace=replace)
    cleared = ", after the keys for select all" if replace else ""
    done = f"typed {len(text)} character(s) into window {window_id}{cleared}"
    return perform(this_desktop(), window_id, act, done, verify)


def press_key(
    window_id: WindowId,
    key: Annotated[str, "a key or chord: return, page_down, f5, a, cmd+shift+t (on X11 cmd is Control)"],
    modifiers: Annotated[
        Optional[list[str]], "more of cmd, ctrl, alt, shift, super, fn (Mac); default none"
    ] = None,
    hold_ms: Annotated[int, f"how long to hold it, {_range('hold_ms')}"] = _DEFAULT.hold_ms,
    repeat: Annotated[int, f"how often, {_range('repeat')}"] = _DEFAULT.repeat,
    verify: Verify = False,
) -> Result:
    """Press a key or a keyboard shortcut (hotkey) in a window, such as enter, tab, escape or ctrl+s.

    To save, copy, undo, confirm, close, go to the next field.

    Example: peekaboo-min press 14680078 cmd+s
    """
    act = Act("press", chord=read_chord(key, modifiers or ()), hold_ms=hold_ms, repeat=repeat)
    times = f" {repeat} times" if repeat > 1 else ""
    done = f"pressed {act.chord}{times} in window {window_id}"
    return perform(this_desktop(), window_id, act, done, verify)


def open_target(
    app: Annotated[Optional[str], "an installed application, by its name or bundle id; never a path"] = None,
    path: Annotated[Optional[str], "a document or folder to open; nothing that would be executed"] = None,
    url: Annotated[Optional[str], "an http or https address"] = None,
    timeout_s: Annotated[float, "seconds to wait for its window, 1 to 45; default 20"] = 20.0,
) -> Result:
    """Open or start an application, a file, a folder or a web address, and return its window.

    Launch an app, show a document, go to a site in the browser. Give one of app, path, url. is_new_window is
    false if an open window came to the front.

    Example: peekaboo-min open --url https://example.org
    """
    return open_and_wait(this_desktop(), app, path, url, timeout_s)
