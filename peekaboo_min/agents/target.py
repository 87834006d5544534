"""The vision agent's app: its windows, screenshots and acts, through MCP."""

from __future__ import annotations

from typing import Any, Optional

from ..automation.act import effect_text
from ..automation.policy import check_may_act
from ..core.call import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import App, ImageData, Rect, Scene, Window
from ..desktop.matching import find_app, find_window, owner_of, windows_of, windows_titled
from ..system.image_files import sniff_image
from .actions import ACTIONS
from .mcp_client import McpClient, ToolAnswer
from .run import NO_SCREENSHOT, AgentRun, AgentStep

# PEEKABOO_TOOLS of the agent's server, for a dry run and for other runs.
LOOKING_TOOLS = "list,list_windows,take_window_screenshot,find_elements"
ACTING_TOOLS = "list,desktop"
# After these errors the model gets a new screenshot and may choose better. The last line is for `open`.
_RECOVERABLE = (
    "STALE_SCREENSHOT", "WINDOW_NOT_FOUND", "WINDOW_COVERED", "WINDOW_BLOCKED", "FOCUS_FAILED", "FOCUS_LOST",
    "CAPTURE_FAILED", "INVALID_ARGUMENT",
    "APP_NOT_FOUND", "AMBIGUOUS_APP_IDENTIFIER", "FILE_IO_ERROR", "TIMEOUT",
)  # fmt: skip


class AgentTarget:
    """The app to act in, with the window to act in next; `window` is None if the app shows none."""

    def __init__(self, server: McpClient) -> None:
        self._server = server
        self._owner: tuple[str, int]  # identifies the app, see owner_of
        self._front_id: Optional[int] = None  # the app's front window when it was last listed
        self._without_elements: set[tuple[str, int]] = set()  # apps that report no elements
        self.window: Optional[Window] = None

    def choose(self, run: AgentRun) -> App:
        """Choose the first window; return its app. Raises WINDOW_NOT_FOUND, and the errors of find_app."""
        windows = self._list()
        if run.app is not None:
            owner = self._app(run.app)
            first = find_window(owner, windows_of(owner, windows), run.window_title)
        else:
            if run.window_id is not None:
                first = Scene(tuple(windows), (), ()).by_id(run.window_id)
            else:
                first = _only_one_titled(windows, run.window_title or "")
            owner = self._app_of(first)
        self._go_to(first)
        app_windows = self._windows_of_app(windows)  # empty if the first is minimised; focus restores it
        self._front_id = app_windows[0].window_id if app_windows else None
        return owner

    def focus(self) -> None:
        """Focus the window, unless it has the focus. Raises the errors of focus_window.

        If it refuses the focus, go on with the app's front window, which may be a dialog.
        """
        if self.window and not self.window.is_focused and not self.window.is_popup:
            accepted = ("FOCUS_FAILED", "WINDOW_BLOCKED")
            if self._call("focus_window", {"window_id": self.window.window_id}, accepted).error:
                self._front_id = None
                self.follow()

    def follow(self) -> None:
        """Update `window`: the app's front window if another one came to the front, else the same window.

        If the window has closed, wait up to 1 s for the app's next one; never take another app's window.
        """
        for _ in range(10):
            windows = self._windows_of_app(self._list())
            if windows:
                break
            pause(0.1)
        front = windows[0] if windows else None
        has_new_front = front is not None and front.window_id != self._front_id
        self._front_id = front.window_id if front else None
        current_id = self.window.window_id if self.window else None
        current = next((window for window in windows if window.window_id == current_id), None)
        self.window = front if has_new_front or current is None else current

    def observe(self, step: AgentStep) -> None:
        """Take a screenshot of the current window for this step, if the app shows a window."""
        for accepted in (("WINDOW_NOT_FOUND", "CAPTURE_FAILED"), ()):  # try again after the first failure
            step.window = window = self.window
            if window is None:
                return
            answer = self._call("take_window_screenshot", {"window_id": window.window_id}, accepted)
            if not answer.error:
                break
            self.follow()  # the window may have closed
        info = sniff_image(answer.images[0])
        assert info
        step.image = ImageData(answer.images[0], info)
        # an image of the screen has no id, because its pixels cannot be clicked
        step.screenshot_id = answer.data.get("screenshot_id", NO_SCREENSHOT)

    def read_elements(self, step: AgentStep) -> None:
        """Read the elements of the step's window, unless its app is known to report none."""
        if step.image is None or step.window is None or self._owner in self._without_elements:
            return
        answer = self._server.call("find_elements", {"window_id": step.window.window_id})
        if answer.error and answer.error.code not in _RECOVERABLE:
            self._without_elements.add(self._owner)  # asking again may take seconds
        step.elements = {} if answer.error else answer.data

    def wait_for(self, window_id: int, text: str, timeout_s: float) -> str:
        """Wait until the window shows a text; return the outcome as a sentence."""
        arguments = {"window_id": window_id, "text": text, "timeout_s": max(1.0, timeout_s)}
        answer = self._call("wait_for", arguments, _RECOVERABLE)
        return answer.text if answer.error else "the window shows the text"

    def act(self, step: AgentStep) -> None:
        """Perform the step's action, store its effect, and update `window`.

        An error that a new screenshot may solve is stored as the effect. Raises the tool's other errors.
        """
        assert step.pixel_action
        tool, arguments = ACTIONS[step.pixel_action.kind].tool, dict(step.pixel_action.values)
        if tool != "open" and step.window:
            arguments["window_id"] = step.window.window_id
        if tool not in ("open", "move_pointer"):
            arguments["verify"] = True
        if step.pixel_action.points:
            arguments["screenshot_id"] = step.screenshot_id
        answer = self._call(tool, arguments, _RECOVERABLE)
        if answer.error:
            step.effect = f"it was not done: {answer.text}"
            step.changed = step.is_delivered = False
            if answer.error.code is ErrorCode.WINDOW_BLOCKED:
                self._front_id = None  # follow the dialog, even if it was in front before
        elif tool == "open":  # go on in the opened window, of whatever app
            window = _read_window(answer.data)
            owner = self._app_of(window)
            check_may_act("agent", owner.name, owner.bundle_id)  # before any screenshot of it is sent
            self._go_to(window)
            step.effect, step.changed = f"{window.title!r} of {window.app_name} is in front now", True
            return
        else:
            step.effect = effect_text(answer.data) or "its effect is not known"
            step.changed = True if "new_window" in answer.data else answer.data.get("changed")
            step.is_delivered = answer.data.get("delivered") is not False
            step.note(answer.data)
        self.follow()
        after = self.window
        if after is None or (step.window and after.window_id != step.window.window_id):
            where = f"its window {after.title!r} is in front now" if after else "the app shows no window now"
            step.effect, step.changed, step.changed_rect = f"{step.effect}; {where}", True, None

    def _go_to(self, window: Window) -> None:
        self.window, self._front_id, self._owner = window, window.window_id, owner_of(window)

    def _app(self, identifier: str) -> App:
        app = self._call("list", {"app": identifier}).data["target_application_info"]
        # the tool also accepts a close spelling, which is not enough to act
        return find_app(identifier, [App(app["app_name"], app["pid"], app.get("bundle_id"))], acts=True)

    def _app_of(self, window: Window) -> App:
        return App(window.app_name) if window.pid is None else self._app(f"PID:{window.pid}")

    def _list(self) -> list[Window]:
        return [_read_window(row) for row in self._call("list_windows", {}).data["windows"]]

    def _windows_of_app(self, windows: list[Window]) -> list[Window]:
        # popups first, because an open menu takes all input
        on_screen = [window for window in windows if owner_of(window) == self._owner and window.is_on_screen]
        without_tooltips = [window for window in on_screen if window.kind != "tooltip"]
        return sorted(without_tooltips, key=lambda window: not window.is_popup)

    def _call(self, tool: str, arguments: dict[str, Any], accepted: tuple[str, ...] = ()) -> ToolAnswer:
        answer = self._server.call(tool, arguments)
        if answer.error and answer.error.code not in accepted:
            raise answer.error
        return answer


def _read_window(data: dict[str, Any]) -> Window:
    names = ("window_id", "pid", "title", "is_on_screen", "is_focused", "kind", "parent_id")
    values = {name: data[name] for name in names if name in data}
    return Window(app_name=data["owner_name"], bounds=Rect(**data["bounds"]), **values)


def _only_one_titled(windows: list[Window], title: str) -> Window:
    matches = windows_titled(title, [window for window in windows if not window.is_popup])
    if len(matches) == 1:
        return matches[0]
    names = ", ".join(f"{window.title!r} of {window.app_name}" for window in matches[:5])
    message = f"{len(matches) or 'no'} windows have {title[:80]!r} in their title"
    hint = "list the windows, then give a window's id, or add its app"
    raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, message, hint, details=names)
