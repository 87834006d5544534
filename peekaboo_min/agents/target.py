"""The app that the vision agent works in, seen and acted on by MCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from ..core.cancellation import pause
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import App, Picture, Point, Rect, Window
from ..desktop.matching import find_app, find_window, window_by_id, windows_of
from ..system.images import sniff_image
from .actions import Action
from .mcp_client import McpClient, ToolAnswer

LOOKING_TOOLS = ("list_windows", "take_window_screenshot")
NOTHING_CHANGED = "nothing changed"
ACTING_TOOLS = ("focus_window", "click", "type_text", "press_key")

_TRIES_TO_LOOK = 3
_NEXT_WINDOW_S = 1.0
_NEXT_WINDOW_POLL_S = 0.1
# An X server gives every client a range of ids of its own; of windows without a pid nothing else tells whose they are.
_X_CLIENT_BITS = 21


@dataclass(frozen=True)
class Look:
    """A window and its photograph."""

    window: Window
    picture: Picture
    screenshot_id: str

    def pixel_of(self, seen: Point, seen_width: int, seen_height: int) -> Point:
        """A pixel of the picture that a model saw, perhaps a smaller one, as a pixel of the photograph."""
        info = self.picture.info
        return Point(seen.x * info.width / seen_width, seen.y * info.height / seen_height)


@dataclass(frozen=True)
class Outcome:
    """What came of an act. `refusal`: the code of why it was not done; empty when it was."""

    effect: str
    has_changed: bool = False
    refusal: str = ""
    pixel: Optional[Point] = None
    point: Optional[Point] = None


class AgentTarget:
    """One app, through a server. `window` is where the agent is; None when the app shows none."""

    def __init__(self, server: McpClient) -> None:
        self._server = server
        self._anchor: Window
        self._front_id: Optional[int] = None
        self.window: Optional[Window] = None

    def choose(
        self, apps: list[App], app: Optional[str], window_id: Optional[int], title: Optional[str]
    ) -> App:
        """Find the window to begin with, by its id, or as the front one of an app, or by its title; return the app.

        Raises WINDOW_NOT_FOUND, APP_NOT_FOUND, AMBIGUOUS_APP_IDENTIFIER.
        """
        windows = self._list()
        if window_id is not None:
            first = window_by_id(window_id, windows)
            owners = [one for one in apps if one.pid == first.pid and one.name == first.app_name]
            owner = owners[0] if owners else App(first.app_name, first.pid)
        else:
            owner = find_app(app or "", apps)
            owned = windows_of(owner, windows)
            first = find_window(
                owner, [one for one in windows if any(_is_of_one_app(one, own) for own in owned)], title
            )
        self._anchor = self.window = first
        self._front_id = self._family(windows)[0].window_id
        return owner

    def focus(self) -> None:
        """Give the app the keyboard, unless it has it already. Raises what focus_window raises."""
        if self.window and not self.window.is_focused:
            self._checked(self._server.call("focus_window", {"window_id": self.window.window_id}))

    def follow(self) -> None:
        """Look where the agent is now: at the app's new front window if that changed, else at the same window.

        A window that closed leaves the app's next one, which may need a moment. Never another app's.
        """
        waited_s = 0.0
        family = self._family(self._list())
        while not family and waited_s < _NEXT_WINDOW_S:
            pause(_NEXT_WINDOW_POLL_S)
            waited_s += _NEXT_WINDOW_POLL_S
            family = self._family(self._list())
        here = [one for one in family if self.window and one.window_id == self.window.window_id]
        front = family[0] if family else None
        has_new_front = front is not None and front.window_id != self._front_id
        self._front_id = front.window_id if front else None
        self.window = here[0] if here and not has_new_front else front

    def look(self) -> Optional[Look]:
        """The photograph of the window where the agent is; None when the app shows no window."""
        for attempt in range(_TRIES_TO_LOOK):
            if self.window is None:
                return None
            answer = self._server.call("take_window_screenshot", {"window_id": self.window.window_id})
            if (
                not answer.is_error
                or attempt == _TRIES_TO_LOOK - 1
                or answer.code not in ("WINDOW_NOT_FOUND", "CAPTURE_FAILED")
            ):
                break
            self.follow()  # it closed in this moment
        self._checked(answer)
        info = sniff_image(answer.images[0]) if answer.images else None
        if info is None:
            raise PeekabooError(
                ErrorCode.CAPTURE_FAILED, "the server sent no picture of the window", hint="see its log"
            )
        return Look(self.window, Picture(answer.images[0], info), str(answer.data["screenshot_id"]))

    def act(self, action: Action, look: Look, pixel: Optional[Point]) -> Outcome:
        """Do it, in the window that the look shows, and verify. A refusal that a new look may mend is an outcome.

        pixel: of the look's picture. Raises PeekabooError for the other refusals.
        """
        arguments: dict[str, Any] = {"window_id": look.window.window_id, "verify": True}
        if pixel is not None:
            where = {"x": pixel.x, "y": pixel.y, "screenshot_id": look.screenshot_id}
            arguments.update(where, button=action.button, clicks=action.clicks)
            answer = self._server.call("click", arguments)
        elif action.kind == "type":
            answer = self._server.call("type_text", {**arguments, "text": action.text})
        else:
            answer = self._server.call(
                "press_key", {**arguments, "key": action.key, "modifiers": list(action.modifiers)}
            )
        if answer.is_error and answer.code in _MENDED_BY_LOOKING:
            return Outcome(f"it was not done: {answer.text}", refusal=answer.code, pixel=pixel)
        self._checked(answer)
        return _outcome(answer.data, pixel)

    def _list(self) -> list[Window]:
        answer = self._server.call("list_windows", {})
        self._checked(answer)
        return [_read_window(one) for one in answer.data["windows"]]

    def _family(self, windows: list[Window]) -> list[Window]:
        """The app's windows, front to back."""
        return [one for one in windows if _is_of_one_app(one, self._anchor)]

    def _checked(self, answer: ToolAnswer) -> None:
        """Raises the server's error as ours."""
        if answer.is_error:
            known = answer.code in ErrorCode.__members__
            code = ErrorCode(answer.code) if known else ErrorCode.INTERNAL_ERROR
            message, _, hint = answer.text.partition(". Next step: ")
            raise PeekabooError(code, message.removeprefix(f"{answer.code}: "), hint=hint)


_MENDED_BY_LOOKING = (
    "STALE_SCREENSHOT", "WINDOW_NOT_FOUND", "WINDOW_COVERED", "FOCUS_FAILED", "CAPTURE_FAILED", "INVALID_ARGUMENT",
)  # fmt: skip


def _read_window(data: dict[str, Any]) -> Window:
    return Window(
        window_id=data["window_id"],
        app_name=data["owner_name"],
        pid=data["pid"],
        title=data["title"],
        bounds=Rect(**data["bounds"]),
        is_on_screen=data["is_on_screen"],
        is_focused=data["is_focused"],
    )


def _is_of_one_app(one: Window, other: Window) -> bool:
    if one.pid is not None or other.pid is not None:
        return one.pid == other.pid
    return one.window_id >> _X_CLIENT_BITS == other.window_id >> _X_CLIENT_BITS


def _outcome(data: dict[str, Any], pixel: Optional[Point]) -> Outcome:
    is_closed = bool(data.get("window_closed"))
    effect = (
        "the window closed"
        if is_closed
        else "the picture changed"
        if data.get("changed")
        else NOTHING_CHANGED
    )
    if data.get("delivered") is False:
        effect += "; the pointer was not seen there afterwards"
    point = Point(**data["point"]) if "point" in data else None
    pixel = Point(**data["pixel"]) if "pixel" in data else pixel
    return Outcome(effect, has_changed=bool(is_closed or data.get("changed")), pixel=pixel, point=point)
