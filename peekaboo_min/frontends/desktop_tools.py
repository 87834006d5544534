"""The tools that focus, capture or act on one window."""

from __future__ import annotations

import os
from typing import Annotated, Optional

from ..automation import capture
from ..automation.act import Button, Clicks, Verify, focus_by_id, perform
from ..automation.coordinates import Region, RegionOf, WindowId, find_region
from ..automation.listing import window_data
from ..core import models
from ..core.errors import invalid
from ..core.models import ACT_LIMITS, SHELL_ONLY, Act, Point, Result
from ..desktop.keys import read_chord
from ..desktop.select import this_desktop
from ..system.files import asked_path, new_temporary_path
from ..system.images import kind_by_name

# Parameters that several tools share.
X = Annotated[float, "pixels from the screenshot's left edge"]
Y = Annotated[float, "pixels from the screenshot's top edge"]
ScreenshotId = Annotated[Optional[str], "the screenshot whose pixels x and y are; default: the window's last"]
_DEFAULT = Act("")


def _range(name: str) -> str:
    least, most = ACT_LIMITS[name]
    return f"{least} to {most}; default {getattr(_DEFAULT, name)}"


def focus_window(window_id: WindowId) -> Result:
    """Brings a window to the front, gives it the keyboard focus, and checks that it has it.

    Example: peekaboo-min focus 14680078
    """
    window = focus_by_id(this_desktop(), window_id)
    text = f"window {window_id} of {window.app_name} is in front and has the keyboard focus"
    return Result(text, window_data(window))


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
        capture.check_dimension(max_dimension)
        if region is not None and kind != "png":
            raise invalid("a region is saved as png", "end the path in .png")
    scene = capture.scene_to_capture(desktop)
    window = scene.by_id(window_id)
    part = find_region(desktop.session, window, region, screenshot_id)
    if part:
        image = capture.screenshot_region(desktop, window, *part)
    else:
        image = capture.screenshot_window(desktop, scene, window, kind)
    name = f"window {window_id} of {window.app_name}"
    if in_shell:
        image = capture.shrunk(desktop, image, max_dimension)
        (image,) = capture.save_images([image], [target or new_temporary_path("peekaboo", kind)])
        image = capture.recorded(desktop, image, supersedes_older=True)
        data = image.window_data()
        size = f"{data['image_width']}x{data['image_height']} pixels, scale {data['scale']:g}"
        clicks = f", screenshot_id {data['screenshot_id']}" if image.screenshot else ""
        text = f"{image.region_text() or f'{name} ({size}{clicks})'}: {image.path}"
        return Result(text, {**data, "path": image.path}, messages=image.warnings())
    image = capture.recorded(desktop, capture.for_client(desktop, image), supersedes_older=True)
    text = image.region_text() or name
    return Result(text, image.window_data(), (image.content,), messages=image.warnings())


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
    return perform(this_desktop(), window_id, act, f"clicked window {window_id}", verify, screenshot_id)


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
    """Drags from one pixel of a window's last screenshot to another, to move a slider or select text. The
    rules of click apply.

    Example: peekaboo-min drag 14680078 120 48 260 48
    """
    act = Act("drag", (Point(x, y), Point(to_x, to_y)), button)
    return perform(this_desktop(), window_id, act, f"dragged in window {window_id}", verify, screenshot_id)


def move_pointer(window_id: WindowId, x: X, y: Y, screenshot_id: ScreenshotId = None) -> Result:
    """Moves the pointer over a pixel of a window's last screenshot, to open a tooltip or a submenu. The rules
    of click apply.

    Example: peekaboo-min move 14680078 120 48
    """
    act = Act("move_pointer", (Point(x, y),))
    return perform(
        this_desktop(), window_id, act, f"moved the pointer in window {window_id}", False, screenshot_id
    )


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
    cleared = ", after the keys for select all" if replace else ""
    done = f"typed {len(text)} character(s) into window {window_id}{cleared}"
    return perform(this_desktop(), window_id, act, done, verify)


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
    times = f" {repeat} times" if repeat > 1 else ""
    return perform(
        this_desktop(), window_id, act, f"pressed {act.chord}{times} in window {window_id}", verify
    )
