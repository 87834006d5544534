"""The agent's acts: tool calls, effects, doubts about `done`, and runs that end before an act."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from fake_ai import picture
from samples import app, error_of, window

from peekaboo_min.agents import target as target_module
from peekaboo_min.agents.actions import Action
from peekaboo_min.agents.mcp_client import ToolAnswer
from peekaboo_min.agents.run import AgentRun, AgentStep, doubt_about
from peekaboo_min.agents.target import AgentTarget
from peekaboo_min.ai.grid import PIXELS, grid_over
from peekaboo_min.automation.coordinates import find_record
from peekaboo_min.automation.listing import window_data
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo, Rect, Window

SAVE = Action("press", {"key": "cmd+s"})
LAST_SAVE = Action("press", {"key": "cmd+s"}, is_last=True)


def act(action: Action = SAVE, changed: Optional[bool] = False, **more: Any) -> AgentStep:
    effect = {True: "the window changed", False: "nothing changed", None: "it is not known"}[changed]
    return AgentStep(1, action=action, **{"effect": effect, "changed": changed, **more})


WORKED, DONE, WAITED = act(changed=True), act(Action("done", is_last=True)), act(Action("wait"))
MISSED = act(LAST_SAVE, True, effect="another window got it", is_delivered=False)


@pytest.mark.parametrize(
    "steps, doubt",
    [
        ([], ""),
        ([WORKED], ""),
        ([act(LAST_SAVE, True)], ""),
        ([WORKED, act(LAST_SAVE)], "your last action, `press cmd+s`, was delivered, but nothing changed"),
        ([act(LAST_SAVE, None)], "your last action, `press cmd+s`, was delivered, but it is not known"),
        ([act(LAST_SAVE), WORKED], ""),
        ([WORKED, MISSED], "your action `press cmd+s` failed: another window got it"),
        ([WORKED, MISSED, DONE, WAITED], "your action `press cmd+s` failed: another window got it"),
        ([WORKED, MISSED, DONE, WORKED], ""),
        ([MISSED, act(Action("move"), True)], "your action `press cmd+s` failed: another window got it"),
        ([act()], "none of your actions had a visible effect"),
        ([act(), DONE], "none of your actions had a visible effect"),
        ([WAITED, DONE], ""),
    ],
)
def test_claim_after_acts_without_effect_is_doubted(steps: list[AgentStep], doubt: str) -> None:
    """ "Repeat until `"done": true` or safety limit triggers": the model is asked again once."""
    assert doubt_about(steps) == doubt


class Server:
    """A server that records calls. `lists` are the windows in turn, the last for good; by default window 7.

    codes: the errors of the next calls in turn, empty for a success; then each call answers with the data.
    """

    def __init__(self, *lists: list[Window], codes: tuple[str, ...] = (), **data: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.lists, self.codes, self.data = [*(lists or [[window(7)]])], [*codes], data

    def call(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        if name == "list_windows":
            listed = self.lists.pop(0) if self.lists[1:] else self.lists[0]
            return ToolAnswer("", {"windows": [*map(window_data, listed)]})
        self.calls.append((name, arguments))
        code = self.codes.pop(0) if self.codes else ""
        error = PeekabooError(ErrorCode(code), "no", "look") if code else None
        return ToolAnswer(f"{code}: no", self.data, (picture("jpeg", 40, 30),), error)


NOTES: dict[str, Any] = {"target_application_info": {"app_name": "Notes", "pid": 60, "bundle_id": None}}
A, B, GONE = window(7), window(8, "B"), window(6, "Hidden", is_on_screen=False)
MENU, HINT = window(9, "A menu", kind="popup"), window(10, "A hint", kind="tooltip")
FORM = window(5, "A form", app_name="Form", pid=50)
BY_PID = [("list", {"app": "PID:60"})]


def test_agent_never_chooses_an_app_by_likeness() -> None:
    server = Server(**NOTES)
    assert AgentTarget(server)._app("note") == app("Notes", 60)
    error = error_of(AgentTarget(server)._app, "Notas")
    assert (error.code, "Notes" in error.hint) == (ErrorCode.APP_NOT_FOUND, True)


@pytest.mark.parametrize(
    ("options", "windows", "chosen", "calls"),
    [
        ({"app": "Notes"}, [FORM, B, A], 8, [("list", {"app": "Notes"})]),
        ({"app": "Notes", "window_title": "A"}, [B, A], 7, [("list", {"app": "Notes"})]),
        ({"window_id": 7}, [B, A], 7, BY_PID),
        ({"window_id": 6}, [B, GONE], 6, BY_PID),
        ({"window_title": "b"}, [A, B], 8, BY_PID),
        ({"window_title": "men"}, [MENU, B, window(7, "Menus")], 7, BY_PID),
        ({"window_id": 1}, [window(1, pid=None)], 1, []),
    ],
)
def test_agent_starts_with_the_chosen_window_and_stays_until_another_comes_to_the_front(
    options: dict[str, Any], windows: list[Window], chosen: int, calls: Any
) -> None:
    server = Server(windows, **NOTES)
    target = AgentTarget(server)
    assert target.choose(AgentRun("", "", **options)).name == "Notes"
    assert (target.window and target.window.window_id, server.calls) == (chosen, calls)
    server.lists = [[w._replace(is_on_screen=True) for w in windows]]
    target.follow()
    assert target.window and target.window.window_id == chosen


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window_id": 4}, "there is no window 4"),
        ({"window_title": "A"}, "2 windows have 'A' in their title ('A two' of Notes, 'A form' of Form)"),
        ({"window_title": "Z"}, "no windows have 'Z' in their title"),
    ],
)
def test_agent_starts_with_no_other_window(options: dict[str, Any], message: str) -> None:
    target = AgentTarget(Server([window(7, "A two"), FORM, B], **NOTES))
    error = error_of(target.choose, AgentRun("", "", **options))
    assert error.code is ErrorCode.WINDOW_NOT_FOUND
    assert f"{error.message} ({error.details})".startswith(message)


@pytest.mark.parametrize(
    ("lists", "followed"),
    [
        ([[A, B]], 7),
        ([[B, A]], 8),
        ([[A, MENU]], 9),
        ([[HINT, A]], 7),
        ([[FORM, A]], 7),
        ([[GONE, A]], 7),
        ([[B]], 8),
        ([[FORM]], None),
        ([[], [FORM], [], [B]], 8),
        ([*[[]] * 10, [B]], None),
    ],
)
def test_agent_follows_the_front_window_of_its_app(
    monkeypatch: pytest.MonkeyPatch, lists: list[list[Window]], followed: Optional[int]
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(target_module, "pause", pauses.append)
    target = AgentTarget(Server(*lists))
    target._go_to(A)
    target.follow()
    assert (target.window and target.window.window_id, {*pauses} <= {0.1}) == (followed, True)


@pytest.mark.parametrize(
    ("start", "codes", "calls", "followed"),
    [
        (A._replace(is_focused=True), (), 0, 7),
        (MENU, (), 0, 9),
        (A, (), 1, 7),
        (A, ("FOCUS_FAILED",), 1, 8),
        (A, ("WINDOW_BLOCKED",), 1, 8),
    ],
)
def test_agent_focuses_its_window_or_goes_to_the_dialog_in_front(
    start: Window, codes: tuple[str, ...], calls: int, followed: int
) -> None:
    server = Server([B, A], codes=codes)
    target = AgentTarget(server)
    target._go_to(start)
    target._front_id = 8  # a dialog that was there before
    target.focus()
    assert server.calls == [("focus_window", {"window_id": 7})] * calls
    assert target.window and target.window.window_id == followed


def test_agent_with_an_error_that_no_screenshot_solves_stops() -> None:
    target = AgentTarget(Server(codes=("POLICY_DENIED",) * 3 + ("CAPTURE_FAILED",) * 2))
    target._go_to(A)
    step = AgentStep(1, A, action=SAVE, pixel_action=SAVE)
    errors = [error_of(target.focus), error_of(target.act, step), error_of(target.observe, step)]
    assert [error.code for error in errors] == [ErrorCode.POLICY_DENIED] * 3
    assert error_of(target.observe, step).code is ErrorCode.CAPTURE_FAILED


@pytest.mark.parametrize(
    ("codes", "data", "shown", "screenshot_id"),
    [
        ((), {"screenshot_id": "ab"}, 7, "ab"),
        ((), {}, 7, "none"),
        (("WINDOW_NOT_FOUND",), {}, 8, "none"),
    ],
)
def test_agent_takes_the_next_windows_screenshot_if_the_first_fails(
    codes: tuple[str, ...], data: dict[str, Any], shown: int, screenshot_id: str
) -> None:
    step, target = AgentStep(1), AgentTarget(Server([B, A], codes=codes, **data))
    target._go_to(A)
    target.observe(step)
    assert step.window and step.image and step.image.info == ImageInfo("jpg", 40, 30)
    assert (step.window.window_id, step.screenshot_id) == (shown, screenshot_id)


def test_agent_asks_for_elements_until_an_app_has_none() -> None:
    server = Server(codes=("TIMEOUT", "", "NO_ELEMENTS", ""), elements=[])
    target, read = AgentTarget(server), []
    for shown in (A, A, A, B, FORM):
        step = AgentStep(1, shown, ImageData(b"", ImageInfo("jpg", 1, 1)))
        target._go_to(shown)
        target.read_elements(step)
        read.append(step.elements)
    target.read_elements(AgentStep(1, FORM))
    assert [arguments["window_id"] for _, arguments in server.calls] == [7, 7, 7, 5]
    assert read == [{}, {"elements": []}, {}, {}, {"elements": []}]


AT = {"x": 6, "y": 5}
PIXEL = {"x": 60, "y": 50, "screenshot_id": "ab"}


@pytest.mark.parametrize(
    "kind, values, tool, arguments",
    [
        ("click", {**AT, "modifiers": ["cmd"]}, "click", {**PIXEL, "modifiers": ["cmd"], "verify": True}),
        ("move", AT, "move_pointer", PIXEL),
        ("drag", {**AT, "to_x": 2, "to_y": 9}, "drag", {**PIXEL, "to_x": 20, "to_y": 90, "verify": True}),
        ("press", {"key": "a", "hold_ms": 500}, "press_key", {"key": "a", "hold_ms": 500, "verify": True}),
    ],
)
def test_act_becomes_a_call_with_all_its_properties(
    kind: str, values: dict[str, Any], tool: str, arguments: dict[str, Any]
) -> None:
    server = Server(summary="done", delivered=True)
    act_in(server, AgentStep(1, screenshot_id="ab", action=Action(kind, values)))
    assert server.calls == [(tool, {**arguments, "window_id": 7})]


def test_act_on_a_screen_image_uses_no_earlier_pixels() -> None:
    server = Server(summary="done", delivered=True)
    act_in(server, AgentStep(1, action=Action("click", AT)))
    with pytest.raises(PeekabooError, match="screenshot_id must have 16 hexadecimal digits"):
        find_record("session", window(7), server.calls[0][1]["screenshot_id"])


def act_in(server: Server, step: AgentStep) -> None:
    """Do the step's action in window 7, seen in an image ten times as wide and high as the grid."""
    step.window, step.image = window(7), ImageData(b"", ImageInfo("jpg", 100, 80))
    assert step.action
    step.pixel_action = step.action.in_pixels(grid_over(PIXELS, 10, 10), 100, 100)
    target = AgentTarget(server)
    target._go_to(step.window)
    target.act(step)


RECOVERABLE = """STALE_SCREENSHOT WINDOW_NOT_FOUND WINDOW_COVERED WINDOW_BLOCKED FOCUS_FAILED FOCUS_LOST
    CAPTURE_FAILED INVALID_ARGUMENT APP_NOT_FOUND AMBIGUOUS_APP_IDENTIFIER FILE_IO_ERROR TIMEOUT"""


@pytest.mark.parametrize("code", RECOVERABLE.split())
def test_act_with_an_error_that_a_screenshot_may_solve_goes_on(code: str) -> None:
    server, step = Server([B, A], codes=(code, code)), AgentStep(1, A, action=SAVE, pixel_action=SAVE)
    target = AgentTarget(server)
    target._go_to(A)
    target._front_id = 8  # a dialog that was there before; only a blocked act goes to it
    assert target.wait_for(7, "x", 2) == f"{code}: no"
    target.act(step)
    goes_on, moved = {"WINDOW_BLOCKED": (8, "; its window 'B' is in front now")}.get(code, (7, ""))
    assert target.window and target.window.window_id == goes_on
    assert (step.effect, step.changed) == (f"it was not done: {code}: no{moved}", moved != "")
    assert not step.is_delivered


def test_open_goes_on_in_the_opened_window_of_another_app_unless_it_is_forbidden(environment: Any) -> None:
    opened = Action("open", {"app": "Form"})
    owner = {"app_name": FORM.app_name, "pid": FORM.pid, "bundle_id": "com.example.form"}
    server = Server([FORM, A], **window_data(FORM), target_application_info=owner)
    target, step = AgentTarget(server), AgentStep(1, A, action=opened, pixel_action=opened)
    target._go_to(A)
    target.act(step)
    target.follow()
    assert target.window == FORM and server.calls[0] == ("open", {"app": "Form"})
    assert (step.effect, step.changed) == ("'A form' of Form is in front now", True)
    environment(PEEKABOO_DENY_APPS="com.example.form")
    assert error_of(target.act, step).code is ErrorCode.POLICY_DENIED, "no screenshot of it may be sent"


@pytest.mark.parametrize(
    ("windows", "shown"),
    [([B, A], "its window 'B' is in front now"), ([FORM], "the app shows no window now")],
)
def test_act_that_brings_another_window_to_the_front_has_an_effect(windows: list[Window], shown: str) -> None:
    target = AgentTarget(Server(windows, delivered=True, changed=True, changed_rect=RECT))
    image = ImageData(b"", ImageInfo("jpg", 100, 80))
    step = AgentStep(1, A, image, action=SAVE, pixel_action=SAVE)
    target._go_to(A)
    target.act(step)
    assert (step.effect, step.changed_rect) == (f"the window changed; {shown}", None)


def test_wait_for_a_text_lasts_at_least_a_second_as_the_tool_requires() -> None:
    server = Server()
    AgentTarget(server).wait_for(7, "Saved", 0.2)
    assert server.calls == [("wait_for", {"window_id": 7, "text": "Saved", "timeout_s": 1.0})]


NEW_WINDOW = {"new_window": {"window_id": 8, "title": "Save"}}
RECT = {"x": 10, "y": 20, "width": 30, "height": 40, "image_width": 200}


@pytest.mark.parametrize(
    "data, changed, effect",
    [
        ({"changed": True, "changed_rect": RECT}, True, "the window changed"),
        ({"changed": False, "effect_ms": 1500}, False, "no change within 1.5 s"),
        ({"changed": None}, None, "its effect is not known"),
        ({"changed": False, "delivered": False}, False, "but the window did not receive it"),
        ({"changed": True, "window_closed": True}, True, "the window closed"),
        ({"changed": False, **NEW_WINDOW}, True, "window 8 'Save' opened"),
        ({"changed": None, "delivered": None}, None, "it is not known whether the window received it"),
    ],
)
def test_act_effect_is_read_from_the_tools_data(
    data: dict[str, Any], changed: Optional[bool], effect: str
) -> None:
    step = AgentStep(1, action=SAVE)
    act_in(Server(**{"summary": "pressed cmd+s; a; b", "delivered": True, **data}), step)
    assert (step.effect, step.changed) == (effect, changed)
    assert step.is_delivered == (data.get("delivered", True) is not False)
    # in the pixels of the model's image
    assert step.changed_rect == (Rect(5, 10, 15, 20) if "changed_rect" in data else None)
