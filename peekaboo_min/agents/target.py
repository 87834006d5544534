"""The app that the vision agent works in, seen and acted on through MCP."""

from __future__ import annotations

import time
from typing import Any, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.log import log_info
from ..core.models import App, ImageData, Point, Rect, Scene, Window
from ..desktop.matching import find_app, find_window, windows_of
from ..system.images import sniff_image
from .actions import ACTIONS
from .mcp_client import McpClient, ToolAnswer
from .run import AgentStep, AgentTask

LOOKING_TOOLS = "list_windows,take_window_screenshot,find_elements"
ACTING_TOOLS = "desktop"
"""What the server offers, for PEEKABOO_TOOLS: to a dry run, and to any other."""
NOTHING_CHANGED = "nothing changed"

_TRIES_TO_LOOK = 3
_NEXT_WINDOW_S = 1.0
_NEXT_WINDOW_POLL_S = 0.1
# An X server gives each client its own range of ids; without a pid nothing else shows a window's owner.
_X_CLIENT_BITS = 21
# Refusals after which the model looks again and may choose better; the second line is of `open`, whose window
# may also come later.
_RECOVERABLE = (
    "STALE_SCREENSHOT", "WINDOW_NOT_FOUND", "WINDOW_COVERED", "WINDOW_BLOCKED", "FOCUS_FAILED", "FOCUS_LOST",
    "CAPTURE_FAILED", "INVALID_ARGUMENT",
    "APP_NOT_FOUND", "AMBIGUOUS_APP_IDENTIFIER", "FILE_IO_ERROR", "TIMEOUT",
)  # fmt: skip
_SLOW_TREE_S = 4.0
_LONGEST_WAIT_S = 45.0
_WAIT_FOR_TEXT_S = 10.0


class AgentTarget:
    """One app, through a server. `window` is where the agent is; None when the app shows none."""

    def __init__(self, server: McpClient) -> None:
        self._server = server
        self._app_window: Window  # shows which app is meant, whatever its window now
        self._front_id: Optional[int] = None
        self._without_tree: set[tuple[str, int]] = set()
        self.window: Optional[Window] = None

    def choose(self, apps: list[App], task: AgentTask) -> App:
        """Find the first window: by its id, by its title, or an app's front one. Returns the app.

        Raises WINDOW_NOT_FOUND (also for a title that several apps have), APP_NOT_FOUND,
        AMBIGUOUS_APP_IDENTIFIER.
        """
        windows = self._list()
        if task.app is not None:
            owner = find_app(task.app, apps)
            owned = windows_of(owner, [each for each in windows if not each.is_popup])
            owners = {_owner_of(each) for each in owned}
            with_popups = [each for each in windows if _owner_of(each) in owners]
            first = find_window(owner, with_popups, task.window_title)
        else:
            if task.window_id is not None:
                first = Scene(tuple(windows), (), ()).by_id(task.window_id)
            else:
                first = _only_one_titled(windows, task.window_title or "")
            named = (each for each in apps if (each.pid, each.name) == (first.pid, first.app_name))
            owner = next(named, App(first.app_name, first.pid))
        self._app_window = self.window = first
        shown = self._own_windows(windows)  # none where the first is minimised: focus brings it back
        self._front_id = shown[0].window_id if shown else None
        return owner

    def focus(self) -> None:
        """Give the app the keyboard focus, unless it has it. Raises what focus_window raises.

        Where that fails, its front window is taken instead, a dialog perhaps: each act focuses as well.
        """
        if self.window and not self.window.is_focused and not self.window.is_popup:
            accepted = ("FOCUS_FAILED", "WINDOW_BLOCKED")
            if self._call("focus_window", {"window_id": self.window.window_id}, accepted).is_error:
                self._front_id = None
                self.follow()

    def follow(self) -> None:
        """Set `window` to the app's front window if that changed, else to the same window as before.

        After a window closed the app's next one follows, which may take a moment; never another app's.
        """
        waited_s = 0.0
        shown = self._own_windows(self._list())
        while not shown and waited_s < _NEXT_WINDOW_S:
            pause(_NEXT_WINDOW_POLL_S)
            waited_s += _NEXT_WINDOW_POLL_S
            shown = self._own_windows(self._list())
        same = [each for each in shown if self.window and each.window_id == self.window.window_id]
        front = shown[0] if shown else None
        has_new_front = front is not None and front.window_id != self._front_id
        self._front_id = front.window_id if front else None
        self.window = same[0] if same and not has_new_front else front

    def observe(self, step: AgentStep) -> None:
        """Take a screenshot of the agent's window for this step; none when the app shows no window."""
        for attempt in range(_TRIES_TO_LOOK):
            if self.window is None:
                return
            window = self.window
            accepted = ("WINDOW_NOT_FOUND", "CAPTURE_FAILED") if attempt < _TRIES_TO_LOOK - 1 else ()
            answer = self._call("take_window_screenshot", {"window_id": window.window_id}, accepted)
            if not answer.is_error:
                break
            self.follow()  # the window closed just now
        image = _image_of(answer)
        step.window, step.image = window, image
        # none where its pixels cannot be clicked: an act is refused then
        step.screenshot_id = answer.data.get("screenshot_id", "")
        step.elements = self._elements(window, image)

    def _elements(self, window: Window, image: ImageData) -> list[dict[str, Any]]:
        """The window's elements, in pixels of `image`.

        An application without a tree, or with one that takes seconds to read, is asked only once.
        """
        owner = _owner_of(window)
        if owner in self._without_tree:
            return []
        started = time.monotonic()
        answer = self._server.call("find_elements", {"window_id": window.window_id})
        if (answer.is_error and answer.code not in _RECOVERABLE) or time.monotonic() - started > _SLOW_TREE_S:
            log_info(f"the model gets no more elements of {window.app_name}: {answer.text[:300]}")
            self._without_tree.add(owner)
        if answer.is_error:
            return []
        factor = image.info.width / answer.data["image_width"]
        return [{**one, "x": one["x"] * factor, "y": one["y"] * factor} for one in answer.data["elements"]]

    def wait_for(self, text: str, seconds: Optional[float], left_s: float) -> str:
        """Wait until the window shows a text; returns what came of it. left_s: no longer than this."""
        assert self.window is not None
        timeout_s = max(1.0, min(seconds or _WAIT_FOR_TEXT_S, left_s, _LONGEST_WAIT_S))
        arguments = {"window_id": self.window.window_id, "text": text, "timeout_s": timeout_s}
        answer = self._call("wait_for", arguments, _RECOVERABLE)
        return answer.text if answer.is_error else "the window shows it"

    def act(self, step: AgentStep) -> None:
        """Do the step's action in the window that it saw, verify, and note the effect in the step.

        A refusal that a new screenshot may solve is an effect. Raises PeekabooError for the others.
        """
        assert step.action
        tool, arguments = ACTIONS[step.action.kind].tool, dict(step.action.values)
        if tool != "open":
            assert step.window
            arguments["window_id"] = step.window.window_id
        if tool not in ("open", "move_pointer"):
            arguments["verify"] = True
        if step.pixel is not None and not step.screenshot_id:
            step.effect = "it was not done: the screenshot shows the screen, whose pixels cannot be clicked"
            step.refusal, step.changed, step.is_delivered = "CAPTURE_FAILED", False, False
            return
        if step.pixel is not None:
            arguments.update(x=step.pixel.x, y=step.pixel.y, screenshot_id=step.screenshot_id)
        if step.end_pixel is not None:
            arguments.update(to_x=step.end_pixel.x, to_y=step.end_pixel.y)
        answer = self._call(tool, arguments, _RECOVERABLE)
        if answer.is_error:
            step.effect, step.refusal = f"it was not done: {answer.text}", answer.code
            step.changed = step.is_delivered = False
        elif tool == "open":  # its window, of whichever app, is the agent's from now on
            self._app_window = self.window = _read_window(answer.data)
            self._front_id = self.window.window_id
            step.changed = True
            step.effect = f"{self.window.title!r} of {self.window.app_name} is in front now"
        else:
            _note_effect(step, answer.data)
        if answer.code == "WINDOW_BLOCKED":
            self._front_id = None  # the dialog is followed, also one that was in front before

    def _list(self) -> list[Window]:
        return [_read_window(row) for row in self._call("list_windows", {}).data["windows"]]

    def _own_windows(self, windows: list[Window]) -> list[Window]:
        """The app's windows on the screen, front to back: an open menu or list first, since it has to be
        answered; no tooltips.
        """
        owner = _owner_of(self._app_window)
        own = [each for each in windows if _owner_of(each) == owner and each.is_on_screen]
        own = [each for each in own if each.kind != "tooltip"]
        return sorted(own, key=lambda each: not each.is_popup)

    def _call(self, tool: str, arguments: dict[str, Any], accepted: tuple[str, ...] = ()) -> ToolAnswer:
        """The tool's answer. Raises its error as ours, unless its code is one of `accepted`."""
        answer = self._server.call(tool, arguments)
        if answer.is_error and answer.code not in accepted:
            raise answer.error()
        return answer


def _image_of(answer: ToolAnswer) -> ImageData:
    info = sniff_image(answer.images[0]) if answer.images else None
    if info is None:
        message = "the server sent no screenshot of the window"
        raise PeekabooError(ErrorCode.CAPTURE_FAILED, message, hint="see its log")
    return ImageData(answer.images[0], info)


def _read_window(data: dict[str, Any]) -> Window:
    return Window(
        window_id=data["window_id"],
        app_name=data["owner_name"],
        pid=data["pid"],
        title=data["title"],
        bounds=Rect(**data["bounds"]),
        is_on_screen=data["is_on_screen"],
        is_focused=data["is_focused"],
        kind=data.get("kind", "window"),
        parent_id=data.get("parent_id"),
    )


def _owner_of(window: Window) -> tuple[str, int]:
    """What the windows of one program have in common."""
    if window.pid is not None:
        return "pid", window.pid
    return "client", window.window_id >> _X_CLIENT_BITS


def _only_one_titled(windows: list[Window], title: str) -> Window:
    """The window with this title, or with this in its title. Raises WINDOW_NOT_FOUND."""
    low = title.lower()
    titled = [each for each in windows if not each.is_popup and low in (each.title or "").lower()]
    found = [each for each in titled if (each.title or "").lower() == low] or titled
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{each.title!r} of {each.app_name}" for each in found[:5])
    message = f"{len(found)} windows have {title[:80]!r} in their title: {names}"
    if not found:
        message = f"no window has {title[:80]!r} in its title"
    hint = "name the app as well, or the window's id; list the windows"
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, hint=hint)


def _note_effect(step: AgentStep, data: dict[str, Any]) -> None:
    step.changed = True if data.get("window_closed") else data.get("changed")
    step.effect = "it is not known whether anything changed" if step.changed is None else NOTHING_CHANGED
    if step.changed:
        step.effect = "the window closed" if data.get("window_closed") else "the window changed"
    if "new_window" in data:
        effect = f"the window {data['new_window']['title']!r} came"
        step.changed, step.effect = True, f"{step.effect}; {effect}" if step.changed else effect
    step.is_delivered = data.get("delivered") is not False
    if not step.is_delivered:
        step.effect += "; another window got it"
    if "point" in data:
        step.point = Point(**data["point"])
    if "pixel" in data:
        step.pixel = Point(**data["pixel"])
    if "changed_rect" in data and step.image:
        rect = dict(data["changed_rect"])
        factor = step.image.info.width / rect.pop("image_width")
        step.changed_rect = Rect(**rect).scaled(factor)
