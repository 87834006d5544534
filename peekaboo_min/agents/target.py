"""The app that the vision agent works in, seen and acted on through MCP."""

from __future__ import annotations

from typing import Any, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import App, ImageData, Point, Rect, Scene, Window
from ..desktop.matching import find_window, owner_of, windows_of, windows_titled
from ..system.images import sniff_image
from .actions import ACTIONS
from .mcp_client import McpClient, ToolAnswer
from .run import NO_SCREENSHOT, AgentRun, AgentStep

# What the server offers, for PEEKABOO_TOOLS: to a dry run, and to any other.
LOOKING_TOOLS = "list,list_windows,take_window_screenshot,find_elements"
ACTING_TOOLS = "list,desktop"
_NEXT_WINDOW_TRIES, _NEXT_WINDOW_POLL_S = 10, 0.1
# Refusals after which the model looks again and may choose better; the second line is of `open`, whose window
# may also come later.
_RECOVERABLE = (
    "STALE_SCREENSHOT", "WINDOW_NOT_FOUND", "WINDOW_COVERED", "WINDOW_BLOCKED", "FOCUS_FAILED", "FOCUS_LOST",
    "CAPTURE_FAILED", "INVALID_ARGUMENT",
    "APP_NOT_FOUND", "AMBIGUOUS_APP_IDENTIFIER", "FILE_IO_ERROR", "TIMEOUT",
)  # fmt: skip


class AgentTarget:
    """One app, through a server. `window` is where the agent is; None when the app shows none."""

    def __init__(self, server: McpClient) -> None:
        self._server = server
        self._owner: tuple[str, int]  # which app is meant, whatever its window now
        self._front_id: Optional[int] = None
        self._without_tree: set[tuple[str, int]] = set()
        self.window: Optional[Window] = None

    def choose(self, run: AgentRun) -> App:
        """Find the first window: by its id, by its title, or an app's front one. Returns the app.

        Raises WINDOW_NOT_FOUND (also for a title that several apps have), APP_NOT_FOUND,
        AMBIGUOUS_APP_IDENTIFIER.
        """
        windows = self._list()
        if run.app is not None:
            owner = self._app(run.app)
            first = find_window(owner, windows_of(owner, windows), run.window_title)
        else:
            if run.window_id is not None:
                first = Scene(tuple(windows), (), ()).by_id(run.window_id)
            else:
                first = _only_one_titled(windows, run.window_title or "")
            owner = App(first.app_name) if first.pid is None else self._app(f"PID:{first.pid}")
        self._go_to(first)
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
        for _ in range(_NEXT_WINDOW_TRIES):
            shown = self._own_windows(self._list())
            if shown:
                break
            pause(_NEXT_WINDOW_POLL_S)
        same = [each for each in shown if self.window and each.window_id == self.window.window_id]
        front = shown[0] if shown else None
        has_new_front = front is not None and front.window_id != self._front_id
        self._front_id = front.window_id if front else None
        self.window = same[0] if same and not has_new_front else front

    def observe(self, step: AgentStep) -> None:
        """Take a screenshot of the agent's window for this step; none when the app shows no window."""
        for accepted in (("WINDOW_NOT_FOUND", "CAPTURE_FAILED"), ()):
            step.window = window = self.window
            if window is None:
                return
            seen = {"window_id": window.window_id}
            answer = self._call("take_window_screenshot", seen, accepted)
            if not answer.is_error:
                break
            self.follow()  # the window closed just now
        info = sniff_image(answer.images[0])
        assert info
        step.image = ImageData(answer.images[0], info)
        # there is none for an image of the screen, whose pixels cannot be clicked
        step.screenshot_id = answer.data.get("screenshot_id", NO_SCREENSHOT)
        if self._owner not in self._without_tree:
            answer = self._server.call("find_elements", seen)
            if answer.is_error and answer.code not in _RECOVERABLE:
                self._without_tree.add(self._owner)  # to ask may take seconds
            step.elements = {} if answer.is_error else answer.data

    def wait_for(self, window_id: int, text: str, timeout_s: float) -> str:
        """Wait until the window shows a text; returns what came of it."""
        arguments = {"window_id": window_id, "text": text, "timeout_s": max(1.0, timeout_s)}
        answer = self._call("wait_for", arguments, _RECOVERABLE)
        return answer.text if answer.is_error else "the window shows it"

    def act(self, step: AgentStep) -> None:
        """Do the step's action in the window that it saw, verify, note the effect in the step, and follow.

        A refusal that a new screenshot may solve is an effect. Raises PeekabooError for the others.
        """
        assert step.pixel_action
        tool, arguments = ACTIONS[step.pixel_action.kind].tool, dict(step.pixel_action.values)
        if tool != "open" and step.window:
            arguments["window_id"] = step.window.window_id
        if tool not in ("open", "move_pointer"):
            arguments["verify"] = True
        if step.pixel_action.places:
            arguments["screenshot_id"] = step.screenshot_id
        answer = self._call(tool, arguments, _RECOVERABLE)
        if answer.is_error:
            step.effect = f"it was not done: {answer.text}"
            step.changed = step.is_delivered = False
            if answer.code == "WINDOW_BLOCKED":
                self._front_id = None  # the dialog is followed, also one that was in front before
        elif tool == "open":  # its window, of whichever app, is the agent's from now on
            window = _read_window(answer.data)
            self._go_to(window)
            step.effect, step.changed = f"{window.title!r} of {window.app_name} is in front now", True
            return
        else:
            _note_effect(step, answer.data)
        self.follow()
        now = self.window
        if now is None or (step.window and now.window_id != step.window.window_id):
            where = f"its window {now.title!r} is in front now" if now else "the app shows no window now"
            step.effect, step.changed, step.changed_rect = f"{step.effect}; {where}", True, None

    def _go_to(self, window: Window) -> None:
        self.window, self._front_id, self._owner = window, window.window_id, owner_of(window)

    def _app(self, identifier: str) -> App:
        app = self._call("list", {"app": identifier}).data["target_application_info"]
        return App(app["app_name"], app["pid"], app["bundle_id"])

    def _list(self) -> list[Window]:
        return [_read_window(row) for row in self._call("list_windows", {}).data["windows"]]

    def _own_windows(self, windows: list[Window]) -> list[Window]:
        """The app's windows on the screen, front to back: an open menu or list first, since it has to be
        answered; no tooltips.
        """
        own = [each for each in windows if owner_of(each) == self._owner and each.is_on_screen]
        own = [each for each in own if each.kind != "tooltip"]
        return sorted(own, key=lambda window: not window.is_popup)

    def _call(self, tool: str, arguments: dict[str, Any], accepted: tuple[str, ...] = ()) -> ToolAnswer:
        """The tool's answer. Raises its error as ours, unless its code is one of `accepted`."""
        answer = self._server.call(tool, arguments)
        if answer.is_error and answer.code not in accepted:
            raise answer.error()
        return answer


def _read_window(data: dict[str, Any]) -> Window:
    names = ("window_id", "pid", "title", "is_on_screen", "is_focused", "kind", "parent_id")
    same = {name: data[name] for name in names if name in data}
    return Window(app_name=data["owner_name"], bounds=Rect(**data["bounds"]), **same)


def _only_one_titled(windows: list[Window], title: str) -> Window:
    """The window with this title, or with this in its title. Raises WINDOW_NOT_FOUND."""
    matches = windows_titled(title, [each for each in windows if not each.is_popup])
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(f"{each.title!r} of {each.app_name}" for each in matches[:5])
    message = f"{len(matches) or 'no'} windows have {title[:80]!r} in their title"
    hint = "name the app as well, or the window's id; list the windows"
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, hint, details=names)


def _note_effect(step: AgentStep, data: dict[str, Any]) -> None:
    """What the tool says of the effect, after what it says of the act itself."""
    step.effect = data["summary"].partition("\n")[0].partition("; ")[2] or "its effect is not known"
    step.changed = True if "new_window" in data else data.get("changed")
    step.is_delivered = data.get("delivered") is not False
    if "point" in data:
        step.point = Point(**data["point"])
    if "changed_rect" in data and step.image:
        rect = dict(data["changed_rect"])
        factor = step.image.info.width / rect.pop("image_width")
        step.changed_rect = Rect(**rect).scaled(factor)
