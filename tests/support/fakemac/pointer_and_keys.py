"""The effects of posted mouse and keyboard events in the fake world.

The numbers come from CGEventTypes.h and IOLLEvent.h (facts B5). An event is
  {"type", "x", "y", "button", "clickState", "number", "dx", "dy", "flags", "source_state"}    mouse
  {"type", "keycode", "unicode", "flags", "source_state"}                                      keys
  {"type": 22, "wheel": [w1, w2], "unit": 0|1}                                                 scroll
with "t" (ms), the time of the post. `flags` is null or 0x100 if they were not set.
"""

from __future__ import annotations

from typing import Any, Optional

from .text_fields import insert_text, log_text, press_named_key, select_all
from .windows import (
    MENU_LAYER,
    activate_now,
    active_displays,
    app_with_pid,
    close_menus,
    contains,
    key_window,
    menu_of,
    modal_of,
    name_of,
    panel_with_keys,
    raise_window,
    window_at,
)
from .world import State, log

Event = dict[str, Any]

DOWN, UP, DRAGGED = {1: 0, 3: 1, 25: 2}, {2: 0, 4: 1, 26: 2}, {6: 0, 7: 1, 27: 2}
MOVED, KEY_DOWN, KEY_UP, FLAGS_CHANGED, SCROLL = 5, 10, 11, 12, 22
# what is shorter is dropped
EARLY_UP_MS, SHORT_CLICK_MS, FAST_CLICK_MS = 100, 40, 10
BUTTONS = {0: "left", 1: "right", 2: "middle"}
NON_COALESCED = 0x100
UNITS_PER_EVENT = 20  # UTF-16 units that one event safely carries (facts B5)
SHIFT, CONTROL, OPTION, COMMAND = 0x20000, 0x40000, 0x80000, 0x100000
MODIFIER_KEYS = {55: COMMAND, 56: SHIFT, 58: OPTION, 59: CONTROL}
MODIFIERS = {"cmd": COMMAND, "shift": SHIFT, "alt": OPTION, "ctrl": CONTROL, "fn": 0x800000}
# Physical positions on a US keyboard: HIToolbox/Events.h (facts F).
LETTERS = dict(
    zip(
        (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 31, 32, 34, 35, 37, 38, 40, 45, 46),
        "asdfhgzxcvbqweryt" + "ouipljknm",
    )
)
DIGITS = {18: "1", 19: "2", 20: "3", 21: "4", 23: "5", 22: "6", 26: "7", 28: "8", 25: "9", 29: "0"}
SIGNS = dict(zip((24, 27, 30, 33, 39, 41, 42, 43, 44, 47, 50, 49), "=-][';\\,/.` "))
SHIFTED = dict(zip("1234567890=-][';\\,/.`", '!@#$%^&*()+_}{":|<?>~'))
# Characters of other layouts on the keys of a US keyboard.
LAYOUTS = {
    "us": {},
    "unreadable": {},
    "azerty": dict(zip("aqzwm;,./", "qawz,m;:!")),
    "german": dict(zip("yz-=[];'/`", "zyß´ü+öä-<")),  # noqa: RUF001
    "russian": dict(zip("abcdefghijklmnopqrstuvwxyz", "фисвуапршолдьтщзйкыегмцчня")),
    "dvorak": dict(zip("qwertyuiop[]asdfghjkl;'zxcvbnm,./-=", "',.pyfgcrl/=aoeuidhtns-;qjkxbmwvz[]")),
}
LAYOUTS["dvorak_qwerty"] = LAYOUTS["dvorak"]
LATIN_WITH_COMMAND = ("russian", "dvorak_qwerty")
# The flags that a keyboard sends with these keys by itself (CGEventTypes.h: numeric pad, secondary fn).
FUNCTION, KEYPAD = 0x800000, 0x200000
OWN_FLAGS = {
    **dict.fromkeys(("left", "right", "up", "down"), FUNCTION | KEYPAD),
    **dict.fromkeys(("home", "end", "page_up", "page_down", "forward_delete", "help"), FUNCTION),
    **{f"f{number}": FUNCTION for number in range(1, 13)},
    "enter": KEYPAD,
}
NAMED = {
    int(pair.split()[0]): pair.split()[1]
    for line in (
        "36 return, 76 enter, 48 tab, 51 backspace, 117 forward_delete, 53 escape, 123 left, 124 right",
        "125 down, 126 up, 115 home, 119 end, 116 page_up, 121 page_down, 114 help, 122 f1, 120 f2",
        "99 f3, 118 f4, 96 f5, 97 f6, 98 f7, 100 f8, 101 f9, 109 f10, 103 f11, 111 f12",
    )
    for pair in line.split(", ")
}


def apply_input(state: State, event: Event) -> None:
    # a post silently does nothing without Accessibility (facts 6.3.10), or while the screen is locked (D6)
    if state["permissions"]["accessibility"] != "granted":
        return log(state, "dropped", why="accessibility", event=event["type"])
    if state["session"]["locked"] or not state["session"]["gui"]:
        return log(state, "dropped", why="locked", event=event["type"])
    kind = event["type"]
    if kind in (KEY_DOWN, KEY_UP, FLAGS_CHANGED):
        apply_key(state, event)
    elif kind == SCROLL:
        apply_scroll(state, event)
    elif kind == MOVED or kind in DOWN or kind in UP or kind in DRAGGED:
        apply_mouse(state, event)
    else:
        log(state, "dropped", why="not an input event", event=kind)


def flags_of(state: State, event: Event) -> int:
    """Return an event's modifiers; without flags the session's, unless its source is private (-1, facts
    B5).
    """
    flags = event.get("flags")
    if flags in (None, NON_COALESCED) and event.get("source_state") == -1:
        return 0
    if flags in (None, NON_COALESCED):
        return state["keyboard"]["session_flags"] | state["keyboard"]["held_flags"]
    return flags


def names_of(flags: int) -> list[str]:
    return [name for name, bit in MODIFIERS.items() if flags & bit]


# --- mouse ---


def apply_mouse(state: State, event: Event) -> None:
    kind, button = event["type"], event.get("button", 0)
    expected = {**DOWN, **UP, **DRAGGED}.get(kind)
    if expected is not None and min(button, 2) != expected:
        return log(state, "dropped", why=f"button {button} does not fit event type {kind}", event=kind)
    move_pointer(state, event["x"], event["y"])
    if kind in DOWN:
        mouse_down(state, event, DOWN[kind])
    elif kind in UP:
        mouse_up(state, event, UP[kind])
    elif kind in DRAGGED and str(DRAGGED[kind]) in state["mouse"]["down"]:
        down = state["mouse"]["down"][str(DRAGGED[kind])]
        # newer systems drop a drag without deltas (of both types, perhaps), with another number than its
        # down's, or from a source
        has_delta = bool((event.get("dx") or event.get("dy")) and event.get("doubles"))
        is_numbered = down["number"] is not None and event.get("number") == down["number"]
        down["points"] += has_delta and is_numbered and not event.get("source_state")
        down["dragged_at"] = event.get("t")


def move_pointer(state: State, x: float, y: float) -> None:
    """Keep the pointer on a display."""
    displays = [display["bounds"] for display in active_displays(state)]
    if not any(contains(bounds, x, y) for bounds in displays):
        places = [
            (min(max(x, left), left + width - 1), min(max(y, top), top + height - 1))
            for left, top, width, height in displays
        ]
        x, y = min(places, key=lambda place: (place[0] - x) ** 2 + (place[1] - y) ** 2)
    state["pointer"] = {"x": x, "y": y}


def mouse_down(state: State, event: Event, button: int) -> None:
    window = window_at(state, event["x"], event["y"])
    state["mouse"]["down"][str(button)] = {
        "x": event["x"],
        "y": event["y"],
        "t": event.get("t"),
        "window": window["id"] if window else None,
        "number": event.get("number"),
        "points": 0,
    }
    if menu_of(state) is not None and (window is None or window["layer"] != MENU_LAYER):
        # a menu tracks the mouse: a press beside it closes it, and reaches no window
        close_menus(state)
        state["mouse"]["down"][str(button)]["window"] = "eaten"
        return
    if not has_following_number(state, event):
        return log(state, "dropped", why="its number does not follow the last one", event=event["type"])
    if window is None or flags_of(state, event) & COMMAND:  # a Command click leaves a window where it is
        return
    if app_with_pid(state, window["pid"]) is not None and window["layer"] < 20:
        if state["frontmost_pid"] != window["pid"]:
            activate_now(state, {"pid": window["pid"], "by": "click"})
        raise_window(state, window)


def has_following_number(state: State, event: Event) -> bool:
    """Return True if the event number follows; otherwise a press activates nothing (macOS 27)."""
    mouse, last = state["mouse"], state["mouse"]["number"]
    mouse["presses"][str(event["type"])] += 1
    mouse["number"] = max(last + 1, event.get("number") or 0)
    return (event.get("number") or 0) > last


def mouse_up(state: State, event: Event, button: int) -> None:
    down = state["mouse"]["down"].pop(str(button), None)
    if down is None:
        return log(state, "dropped", why="a button came up that was not down", event=event["type"])
    if down["window"] == "eaten":
        places: dict[str, Any] = {"window": None, "app": None, "widget": None}
        return log(state, "click", **places, closed_a_menu=True, x=event["x"], y=event["y"])
    if abs(down["x"] - event["x"]) > 4 or abs(down["y"] - event["y"]) > 4:
        return drag(state, event, button, down)
    # programs lose a click that is held for 20 ms, not one of 40
    if "t" in event and event["t"] - (down["t"] or 0) < SHORT_CLICK_MS:
        return log(state, "dropped", why="the click was not held", event=event["type"])
    count = event.get("clickState") or 1
    last = state["mouse"]["last_up"]
    # "AppKit drops multi-clicks that arrive faster than its event loop" (facts B5).
    if count > 1 and "t" in event and last and down["t"] - last < FAST_CLICK_MS:
        return log(state, "dropped", why="the second click came too fast", event=event["type"])
    state["mouse"]["last_up"] = event.get("t")
    click(state, event, button, count)


def drag(state: State, event: Event, button: int, down: dict[str, Any]) -> None:
    """Follow a drag through its points; a press and a release alone are no drag (facts B5)."""
    if down["points"] < 2:
        return log(state, "dropped", why="a drag without points between", event=event["type"])
    if event.get("t", 0) - (down["dragged_at"] or 0) < EARLY_UP_MS:
        return log(state, "dropped", why="the drag arrived when the button was up", event=event["type"])
    start, end = [down["x"], down["y"]], [event["x"], event["y"]]
    log(state, "drag", start=start, end=end, button=BUTTONS[button], window=down["window"])


def click(state: State, event: Event, button: int, count: int) -> None:
    x, y = event["x"], event["y"]
    window = window_at(state, x, y)
    what: dict[str, Any] = {"button": BUTTONS[button], "count": count, "x": x, "y": y}
    modifiers = names_of(flags_of(state, event))
    if modifiers:
        what["modifiers"] = modifiers
    if window is None:
        return log(state, "click", window=None, app=None, widget=None, **what)
    what = {"window": window["id"], "app": name_of(state, window["pid"]), **what}
    sheet = modal_of(state, window)
    if sheet is not None:
        blocked = {"blocked_by_sheet" if sheet.get("attached_to") else "blocked_by_modal": sheet["id"]}
        return log(state, "click", widget=None, **blocked, **what)
    widget = widget_at(window, x, y)
    log(state, "click", widget=widget["name"] if widget else None, **what)
    if widget is not None and button == 0 and widget.get("enabled", True):
        use_widget(state, window, widget, count)


def widget_at(window: dict[str, Any], x: float, y: float) -> Optional[dict[str, Any]]:
    left, top = window["bounds"][0], window["bounds"][1]
    for widget in reversed(window["widgets"]):
        if contains(widget["rect"], x - left, y - top):
            return widget
    return None


def use_widget(state: State, window: dict[str, Any], widget: dict[str, Any], count: int) -> None:
    """Press a widget by a left click or by its key."""
    from .acts import run_actions

    kind = widget["kind"]
    if kind in ("field", "textview", "password"):
        window["focus"] = widget["name"]
        length = len(widget["value"])
        widget["selection"] = [0, length] if count >= 2 else [length, length]
    elif kind == "checkbox":
        widget["value"] = not widget["value"]
    if "on_click" in widget:
        run_actions(state, window, widget["on_click"])


def apply_scroll(state: State, event: Event) -> None:
    window = window_at(state, state["pointer"]["x"], state["pointer"]["y"])
    log(state, "scroll", wheel=event["wheel"], unit=event["unit"], window=window and window["id"])


# --- keyboard ---


def apply_key(state: State, event: Event) -> None:
    code, flags = event.get("keycode", 0), flags_of(state, event)
    if event.get("flags") not in (None, NON_COALESCED):
        press_modifiers(state["keyboard"], event)
    if event["type"] != KEY_DOWN:
        return
    panel = panel_with_keys(state)
    pid = panel["pid"] if panel else state["frontmost_pid"]
    app, window = app_with_pid(state, pid), panel or key_window(state, pid)
    text = event.get("unicode") or ""
    if app is not None and app.get("ignores_unicode_events"):
        text = ""  # "some apps ignore Unicode events and read the key code" (facts B5)
    if window is not None and window["layer"] == MENU_LAYER and (text or code not in NAMED):
        return log_text(state, app, window, text or character(state, code, flags))
    typed = text or (None if code in NAMED else character(state, code, flags))
    if "inputmethod" in (state["keyboard"]["source"] or "") and typed and not flags & (COMMAND | CONTROL):
        return log(state, "composed", text=typed)  # what arrives depends on the method
    if text:
        type_unicode(state, app, window, text, code, flags)
    elif code in NAMED:
        press_key(state, app, window, NAMED[code], code, flags)
    else:
        type_code(state, app, window, code, flags)


def press_modifiers(keyboard: dict[str, Any], event: Event) -> None:
    """Keep the flag of a modifier that was never pressed until its key goes down and up (except shift)."""
    flags = event["flags"] & sum(MODIFIERS.values())
    key = MODIFIER_KEYS.get(event["keycode"], 0)
    if event["type"] == FLAGS_CHANGED:
        keyboard["pressed_flags"] = keyboard["pressed_flags"] & ~key | flags & key
        keyboard["stuck_flags"] &= ~key
    else:
        keyboard["stuck_flags"] |= flags & (CONTROL | OPTION | COMMAND) & ~keyboard["pressed_flags"]
    keyboard["session_flags"] = flags | keyboard["stuck_flags"]


def type_unicode(state: State, app: Any, window: Any, text: str, code: int, flags: int) -> None:
    # Half a surrogate pair is no character; \n \t \b are keys, not text (B5).
    units = text.encode("utf-16-le", "surrogatepass")[: 2 * UNITS_PER_EVENT]
    text = units.decode("utf-16-le", "replace")
    if flags & (COMMAND | CONTROL):
        return shortcut(state, app, window, text, code, flags)
    insert_text(state, app, window, "".join(letter for letter in text if letter >= " "))


def character(state: State, code: int, flags: int) -> Optional[str]:
    letter = LETTERS.get(code) or DIGITS.get(code) or SIGNS.get(code)
    if letter is None:
        return None
    layout = state["keyboard"]["layout"]
    if layout not in LATIN_WITH_COMMAND or not flags & COMMAND:
        letter = LAYOUTS[layout].get(letter, letter)
    if flags & SHIFT:
        letter = SHIFTED.get(letter, letter.upper())
    return letter


def keys_of(layout: str) -> dict[str, list[str]]:
    """Map key codes to their characters alone, with shift and with Command; empty if unreadable."""
    if layout == "unreadable":
        return {}
    state: State = {"keyboard": {"layout": layout}}
    codes = (*LETTERS, *DIGITS, *SIGNS)
    return {
        str(code): [character(state, code, flags) or "" for flags in (0, SHIFT, COMMAND)] for code in codes
    }


def type_code(state: State, app: Any, window: Any, code: int, flags: int) -> None:
    letter = character(state, code, flags & ~SHIFT if flags & COMMAND else flags)
    if letter is None:
        return log(state, "dropped", why=f"there is no key {code}", event=KEY_DOWN)
    if flags & (COMMAND | CONTROL):
        return shortcut(state, app, window, letter, code, flags)
    insert_text(state, app, window, letter)


def press_key(state: State, app: Any, window: Any, key: str, code: int, flags: int) -> None:
    own = OWN_FLAGS.get(key, 0)
    if flags & (COMMAND | CONTROL | OPTION) and flags & own != own:
        # such a chord is looked up with the key's own flags: without them no program recognises it
        return log(state, "dropped", why=f"{key} lacks the flags {own & ~flags:#x}", event=KEY_DOWN)
    log_key(state, app, window, key, code, flags & ~own)
    if window is not None and not flags & (COMMAND | CONTROL):
        press_named_key(window, key)


def log_key(state: State, app: Any, window: Any, key: str, code: int, flags: int) -> None:
    places = {"app": app and app["name"], "window": window and window["id"]}
    log(state, "key", key=key, code=code, modifiers=names_of(flags), **places)


def shortcut(state: State, app: Any, window: Any, key: str, code: int, flags: int) -> None:
    log_key(state, app, window, key, code, flags)
    if (names_of(flags), key.lower()) == (["cmd"], "a"):
        select_all(window)
