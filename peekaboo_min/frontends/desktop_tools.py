"""The tools of the desktop group: windows, and what acts on one of them."""

from __future__ import annotations

import os
from typing import Annotated, Any, Optional

from ..automation.act import focus_by_id, perform
from ..automation.capture import (
    check_dimension,
    for_client,
    recorded,
    save_images,
    scene_to_capture,
    screenshot_region,
    screenshot_window,
    shrunk,
)
from ..automation.coordinates import find_region
from ..automation.find import click_text_in_window, find_elements_in_window, find_text_in_window
from ..automation.listing import window_data
from ..automation.opening import open_target
from ..automation.wait import wait_for_condition
from ..core import models
from ..core.errors import invalid
from ..core.models import ACT_LIMITS, SHELL_ONLY, Act, Point, Result
from ..desktop.keys import read_chord
from ..desktop.select import this_desktop
from ..system.files import asked_path, new_temporary_path
from ..system.images import kind_by_name

# Parameters that several tools share.
WindowId = Annotated[int, "the id from list_windows"]
Verify = Annotated[bool, "report what changed within a second; default false"]
X = Annotated[float, "pixels from the screenshot's left edge"]
Y = Annotated[float, "pixels from the screenshot's top edge"]
Button = Annotated[models.Button, "the mouse button; default left"]
Clicks = Annotated[int, "1, 2 (a double click) or 3; default 1"]
ScreenshotId = Annotated[Optional[str], "the screenshot whose pixels x and y are; default: the window's last"]
Region = Annotated[
    Optional[list[float]],
    "only this part: x, y, width, height in pixels of a screenshot of the whole window",
]
RegionOf = Annotated[
    Optional[str], "the screenshot whose pixels the region is in; default: the window's last"
]
_DEFAULT = Act("")


def _range(name: str) -> str:
    least, most = ACT_LIMITS[name]
    return f"{least} to {most}; default {getattr(_DEFAULT, name)}"


def focus_window(window_id: WindowId) -> Result:
    """Brings a window to the front, gives it the keyboard focus, and checks that it has it.

    Example: peekaboo-min focus 14680078
    """
    window = focus_by_id(this_desktop(), window_id)
    return Result(
        f"window {window_id} of {window.app_name} is in front and has the keyboard focus", window_data(window)
    )


def take_window_screenshot(
    window_id: WindowId,
    region: Region = None,
    screenshot_id: RegionOf = None,
    path: Annotated[
        Optional[str],
        "the file to write, .png or .jpg, or - for stdout; without it a temporary one",
        SHELL_ONLY,
    ] = None,
    max_dimension: Annotated[Optional[int], "shrink to this many pixels on the long side", SHELL_ONLY] = None,
    in_shell: bool = False,
) -> Result:
    """Takes a screenshot of a window and returns the image (JPEG, at most 1568 pixels on the long side) with
    image_width, image_height, scale and screenshot_id. The x and y of click are pixels of this image, from
    its top left corner. With a region: that part of the window as it is now, for a closer look; clicks stay
    in the pixels of the whole screenshot.

    In the shell: Takes a screenshot of one window: `click` takes pixels of this image.
    With --region X,Y,WIDTH,HEIGHT a part of the window; `click` still takes pixels of the whole one.

    Example: peekaboo-min screenshot 14680078 --path window.png
    leaves window.png
    """
    desktop = this_desktop()
    target = asked_path(path) if path else None
    kind = "jpg"
    if in_shell:
        kind = kind_by_name(target) if target and not os.path.isdir(target) else "png"
        check_dimension(max_dimension)
        if region is not None and kind != "png":
            raise invalid("a region is saved as png", "end the path in .png")
    scene = scene_to_capture(desktop)
    window = scene.by_id(window_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    if part:
        image = screenshot_region(desktop, window, *part)
    else:
        image = screenshot_window(desktop, scene, window, kind)
    name = f"window {window_id} of {window.app_name}"
    if in_shell:
        image = shrunk(desktop, image, max_dimension)
        (image,) = save_images([image], [target or new_temporary_path("peekaboo", kind)])
        image = recorded(desktop, image, supersedes_older=True)
        data = image.window_data()
        size = f"{data['image_width']}x{data['image_height']} pixels, scale {data['scale']:g}"
        clicks = f", screenshot_id {data['screenshot_id']}" if image.screenshot else ""
        text = f"{image.region_text() or f'{name} ({size}{clicks})'}: {image.path}"
        return Result(text, {**data, "path": image.path}, messages=image.warnings())
    image = recorded(desktop, for_client(desktop, image), supersedes_older=True)
    text = image.region_text() or name
    return Result(text, image.window_data(), (image.content,), messages=image.warnings())


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
    return find_text_in_window(this_desktop(), window_id, text, region, screenshot_id)


def click(
    window_id: WindowId,
    x: X,
    y: Y,
    button: Button = "left",
    clicks: Clicks = 1,
    modifiers: Annotated[
        Optional[list[str]], "cmd, ctrl, alt, shift or super, held during the click; default none"
    ] = None,
    screenshot_id: ScreenshotId = None,
    verify: Verify = False,
) -> Result:
    """Clicks a pixel of a window's last screenshot. The window is brought to the front first. Refused when
    it was resized since, or is covered there. A window that moved is clicked where it is now.

    Example: peekaboo-min click 14680078 120 48 --verify
    """
    act = Act("click", (Point(x, y),), button, clicks, tuple(modifiers or ()))
    data = perform(this_desktop(), window_id, act, screenshot_id, verify)
    return _acted(f"clicked window {window_id}", data)


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
    data = click_text_in_window(
        this_desktop(), window_id, text, button, clicks, verify, region, screenshot_id
    )
    acted = _acted(f"clicked {data['text']!r} in window {window_id}", data)
    others = ", ".join(f"{place['label'][:80]!r} {place['x']},{place['y']}" for place in data["similar"])
    return acted._replace(text=f"{acted.text}; similar, not clicked: {others}") if others else acted


def scroll(
    window_id: WindowId,
    x: X,
    y: Y,
    direction: Annotated[models.Direction, "down shows what is further below"],
    amount: Annotated[int, f"notches of the wheel, {_range('amount')}"] = _DEFAULT.amount,
    screenshot_id: ScreenshotId = None,
    verify: Verify = False,
) -> Result:
    """Turns the wheel over a pixel of a window's last screenshot. The rules of click apply. Take a new
    screenshot afterwards.

    Example: peekaboo-min scroll 14680078 300 200 down --amount 5
    """
    act = Act("scroll", (Point(x, y),), direction=direction, amount=amount)
    data = perform(this_desktop(), window_id, act, screenshot_id, verify)
    return _acted(f"scrolled {direction} by {amount} in window {window_id}", data)


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
    """Drags from one pixel of a window's last screenshot to another, to move a slider or select text. The
    rules of click apply.

    Example: peekaboo-min drag 14680078 120 48 260 48
    """
    act = Act("drag", (Point(x, y), Point(to_x, to_y)), button)
    data = perform(this_desktop(), window_id, act, screenshot_id, verify)
    return _acted(f"dragged in window {window_id}", data)


def move_pointer(window_id: WindowId, x: X, y: Y, screenshot_id: ScreenshotId = None) -> Result:
    """Moves the pointer over a pixel of a window's last screenshot, to open a tooltip or a submenu. The rules
    of click apply.

    Example: peekaboo-min move 14680078 120 48
    """
    data = perform(this_desktop(), window_id, Act("move_pointer", (Point(x, y),)), screenshot_id)
    return _acted(f"moved the pointer in window {window_id}", data)


def type_text(
    window_id: WindowId,
    text: Annotated[str, "the text, any Unicode; a newline presses return, a tab presses tab"],
    replace: Annotated[
        bool, "replace what the field holds, by select all; text may be empty; default false"
    ] = False,
    delay_ms: Annotated[int, f"milliseconds between two keys, {_range('delay_ms')}"] = _DEFAULT.delay_ms,
    verify: Verify = False,
) -> Result:
    """Types text into the focused field of a window, which is brought to the front; click the field first.
    Characters beyond ASCII may go through the clipboard, which is restored.

    Example: peekaboo-min type 14680078 "Grüße, 世界"
    """
    act = Act("type", text=text, delay_ms=delay_ms, replace=replace)
    data = perform(this_desktop(), window_id, act, verify=verify)
    cleared = ", after the keys for select all" if replace else ""
    return _acted(f"typed {len(text)} character(s) into window {window_id}{cleared}", data)


def press_key(
    window_id: WindowId,
    key: Annotated[
        str, "a key or a chord: return, escape, page_down, f5, a, cmd+shift+t, ctrl,a (on X11 cmd is Control)"
    ],
    modifiers: Annotated[
        Optional[list[str]], "cmd, ctrl, alt, shift, super or fn, in addition to those in key; default none"
    ] = None,
    hold_ms: Annotated[int, f"milliseconds to hold it down, {_range('hold_ms')}"] = _DEFAULT.hold_ms,
    repeat: Annotated[int, f"how often to press it, {_range('repeat')}"] = _DEFAULT.repeat,
    verify: Verify = False,
) -> Result:
    """Presses one key, or a chord, in a window, which is brought to the front.

    Example: peekaboo-min press 14680078 cmd+s
    """
    act = Act("press", chord=read_chord(key, modifiers or ()), hold_ms=hold_ms, repeat=repeat)
    data = perform(this_desktop(), window_id, act, verify=verify)
    times = f" {repeat} times" if repeat > 1 else ""
    return _acted(f"pressed {data['key']}{times} in window {window_id}", data)


def wait_for(
    window_id: Annotated[Optional[int], "the window's id, from list_windows; this or app"] = None,
    app: Annotated[Optional[str], "an app's name or bundle id: any window of it"] = None,
    text: Annotated[
        Optional[str], "until the window shows this text: whole words, case does not matter"
    ] = None,
    title: Annotated[Optional[str], "until a window has this in its title"] = None,
    closed: Annotated[bool, "until the window, or the app's last one, is gone; default false"] = False,
    still: Annotated[bool, "until the window has not changed for a second; default false"] = False,
    timeout_s: Annotated[float, "seconds, 1 to 45; default 10"] = 10.0,
) -> Result:
    """Waits until a window shows a text or a title, closes, or stops changing. Give one of text (the result
    has its x and y), title, closed, still; or an app alone, until it has a window. Else TIMEOUT, with what
    was seen last.

    Example: peekaboo-min wait-for --window-id 14680078 --text "Saved"
    """
    return wait_for_condition(this_desktop(), window_id, app, text, title, closed, still, timeout_s)


def open_and_wait(
    app: Annotated[Optional[str], "an installed application, by its name or bundle id; never a path"] = None,
    path: Annotated[Optional[str], "a document or folder to open; nothing that would be executed"] = None,
    url: Annotated[Optional[str], "an http or https address"] = None,
    timeout_s: Annotated[float, "seconds to wait for its window, 1 to 45; default 20"] = 20.0,
) -> Result:
    """Opens an app, a file or an address (one of app, path, url) and returns its window. is_new_window is
    false where an open window came to the front.

    Example: peekaboo-min open --url https://example.org
    """
    return open_target(this_desktop(), app, path, url, timeout_s)


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
    return find_elements_in_window(this_desktop(), window_id, text, role)


def _acted(done: str, data: dict[str, Any]) -> Result:
    """The result of an act: what was done and where, whether it arrived, and what it changed."""
    if "point" in data:
        done += " at screen point {x:g},{y:g}".format(**data["point"])
    if "to_point" in data:
        done += " to {x:g},{y:g}".format(**data["to_point"])
    reached, delivered, changed = (data.get(key) for key in ("reached_window_id", "delivered", "changed"))
    missed = f"but window {reached} came in between and got it" if reached else "but it did not arrive there"
    effects = {
        True: "the window closed" if data.get("window_closed") else "the window changed",
        False: f"no change within {data.get('effect_ms', 0) / 1000:.1f} s",
        None: "the window changes by itself, so what this changed is not known",
    }
    parts = [
        done,
        "the pixel was outside the image and was moved to its edge" if data.get("clamped") else "",
        {True: "", False: missed, None: "whether it arrived there is not known"}[delivered],
        "keys of somebody else came among them: {others_typed}".format(**data)
        if "others_typed" in data
        else "",
        effects[changed] if changed or data.get("effect_ms") else "",
        "window {window_id} {title!r} came".format(**data["new_window"]) if data.get("new_window") else "",
    ]
    return Result("; ".join(filter(None, parts)), data)
