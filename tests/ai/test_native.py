"""The vendors' own computer-use tools: against fakes that refuse what the vendors refuse."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Optional

import pytest
from fake_ai import picture
from fake_native import OLDER, TOOLSET, NativeAI, Turn
from worlds import PATIENCE_S, ROOT

from peekaboo_min.agents.actions import Action, read_action
from peekaboo_min.ai.client import Answer, ask_model, choose_model
from peekaboo_min.ai.grid import PIXELS, THOUSANDTHS, Grid, grid_over, unit_by_name
from peekaboo_min.ai.native import NATIVE_MODELS, Conversation, conversation_with
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo, Point
from peekaboo_min.core.settings import settings
from peekaboo_min.system.web import WebError, ask_json

MODELS = {
    "toolset": "anthropic/claude-sonnet-5",
    "older tool": "anthropic/claude-sonnet-4-6",
    "openai": "openai/gpt-5.4",
    "gemini": "gemini/gemini-3.6-flash",
}
WIDTH, HEIGHT = 640, 480


def image(width: int = WIDTH, height: int = HEIGHT, kind: str = "jpeg") -> ImageData:
    return ImageData(picture(kind, width, height), ImageInfo(kind.replace("jpeg", "jpg"), width, height))


@pytest.fixture
def native_ai() -> Iterator[NativeAI]:
    with NativeAI() as ai:
        yield ai


class Talk:
    """A conversation with the fake, without an agent."""

    def __init__(self, ai: NativeAI, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        provider, _, model = name.partition("/")
        for variable, value in ai.env(provider, model).items():
            monkeypatch.setenv(variable, value)
        settings.cache_clear()
        self.ai = ai
        self.choice = choose_model(provider, model)
        self.conversation: Conversation = conversation_with(provider, model)
        self.grid: Grid = grid_over(self.conversation.unit, WIDTH, HEIGHT)

    def ask(self, text: str, *images: ImageData) -> Answer:
        return ask_model(
            None,  # type: ignore[arg-type]  # no image is scaled
            images,
            text,
            choice=self.choice,
            system="Be careful.",
            are_fitted=True,
            timeout_s=PATIENCE_S,
            vendor=self.conversation.vendor,
        )

    def act(self, text: str, *images: ImageData) -> Action:
        return read_action(self.conversation.action_in(self.ask(text, *images).text), self.grid)

    @property
    def last_body(self) -> dict[str, Any]:
        return self.ai.requests[-1].body


@pytest.fixture
def talk_to(native_ai: NativeAI, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Talk]]:
    yield lambda name: Talk(native_ai, MODELS.get(name, name), monkeypatch)
    settings.cache_clear()


# which model has a tool ---


@pytest.mark.parametrize(
    "name, tool",
    [
        ("anthropic/claude-sonnet-5", TOOLSET),
        ("anthropic/claude-opus-4-8", TOOLSET),
        ("anthropic/claude-opus-5-5", TOOLSET),
        ("anthropic/claude-opus-4-7", OLDER),
        ("anthropic/claude-sonnet-4-6", OLDER),
    ],
)
def test_each_claude_gets_the_tool_that_it_takes(
    talk_to: Callable[[str], Talk], name: str, tool: str
) -> None:
    talk = talk_to(name)
    talk.ai.moves = ["It is done."]
    assert talk.act("Do it", image()).kind == "done"
    (sent,) = talk.last_body["tools"]
    assert sent["type"] == tool
    if tool == OLDER:
        assert (sent["display_width_px"], sent["display_height_px"]) == (WIDTH, HEIGHT)


@pytest.mark.parametrize(
    "provider, model",
    [
        ("anthropic", "claude-haiku-4-5"),
        ("anthropic", "claude-opus-4-1"),
        ("anthropic", "claude-sonnet-4-5-20250929"),
        ("openai", "gpt-4o"),
        ("openai", "gpt-5.2"),
        ("openai", "gpt-5.4-nano"),
        ("openai", "anthropic/claude-sonnet-5"),
        ("gemini", "gemini-2.5-computer-use-preview-10-2025"),
        ("gemini", "gemini-3-flash-preview"),
        ("ollama", "qwen3-vl:8b"),
        ("ocr", "local"),
    ],
)
def test_a_model_without_a_tool_is_refused_with_the_way_out(provider: str, model: str) -> None:
    with pytest.raises(PeekabooError) as caught:
        conversation_with(provider, model)
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT and f"{provider}/{model}" in caught.value.message
    assert NATIVE_MODELS in caught.value.message and "without --native" in (caught.value.hint or "")


def test_the_readme_says_which_models_have_a_grid_and_a_tool() -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    start = lines.index("| family | coordinates are | `agent --native` | examples of model names |") + 2
    rows = [line.strip("| ").split(" | ") for line in lines[start : lines.index("", start)]]
    assert len(rows) == 5
    for _, unit, native, examples in rows:
        for name in re.findall("`(.*?)`", examples):
            provider, _, model = name.partition("/")
            assert unit_by_name(model) == (PIXELS if unit.startswith("pixels") else THOUSANDTHS)
            has_tool = True
            try:
                conversation_with(provider, model)
            except PeekabooError:
                has_tool = False
            assert has_tool == (native != "no"), name


# actions ---


@pytest.mark.parametrize(
    "move, action",
    [
        (("click", {"x": 320, "y": 240}), Action("click", Point(320, 240))),
        (("click", {"x": 320, "y": 240, "clicks": 2}), Action("click", Point(320, 240), clicks=2)),
        (("click", {"x": 320, "y": 240, "button": "right"}), Action("click", Point(320, 240), "right")),
        (("click", {"x": 320, "y": 240, "button": "middle"}), Action("click", Point(320, 240), "middle")),
        (("move", {"x": 320, "y": 240}), Action("move", Point(320, 240))),
        (
            ("drag", {"x": 320, "y": 240, "x2": 32, "y2": 48}),
            Action("drag", Point(320, 240), end=Point(32, 48)),
        ),
        (
            ("scroll", {"x": 320, "y": 240, "direction": "down", "amount": 4}),
            Action("scroll", Point(320, 240), direction="down", amount=4),
        ),
        (
            ("scroll", {"x": 320, "y": 240, "direction": "left", "amount": 2}),
            Action("scroll", Point(320, 240), direction="left", amount=2),
        ),
        (("type", {"text": "Zürich"}), Action("type", text="Zürich")),
        (("press", {"key": "tab"}), Action("press", key="tab")),
        (("press", {"key": "a", "modifiers": ["ctrl"]}), Action("press", key="a", modifiers=("ctrl",))),
        (("screenshot", {}), Action("wait", seconds=0)),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.parametrize("name", MODELS)
def test_an_action_of_each_vendor_becomes_ours(
    talk_to: Callable[[str], Talk], name: str, move: Any, action: Action
) -> None:
    talk = talk_to(name)
    talk.ai.moves = [Turn([move], text="I see the form.")]
    found = talk.act("Do it", image())
    if talk.conversation.unit == THOUSANDTHS:
        action = in_thousandths(action)
    why = (
        "I see the form." if talk.conversation.unit == PIXELS or move[0] == "screenshot" else f"to {move[0]}"
    )
    assert found == Action(**{**vars(action), "why": why})


def in_thousandths(action: Action) -> Action:
    def scaled(place: Optional[Point]) -> Optional[Point]:
        return Point(round(place.x * 1000 / WIDTH), round(place.y * 1000 / HEIGHT)) if place else None

    return Action(**{**vars(action), "place": scaled(action.place), "end": scaled(action.end)})


@pytest.mark.parametrize(
    "name, move, extra, action",
    [
        (
            "toolset",
            ("click", {"x": 1, "y": 2, "modifiers": ["ctrl", "shift"]}),
            {},
            Action("click", Point(1, 2), modifiers=("ctrl", "shift")),
        ),
        ("toolset", ("click", {"x": 1, "y": 2, "clicks": 3}), {}, Action("click", Point(1, 2), clicks=3)),
        ("toolset", ("press", {"key": "Down", "repeat": 7}), {}, Action("press", key="down", repeat=7)),
        ("toolset", ("hold", {"text": "a", "duration": 2}), {}, Action("press", key="a", seconds=2)),
        ("toolset", ("wait", {"duration": 3}), {}, Action("wait", seconds=3)),
        (
            "toolset",
            ("zoom", {"x": 1, "y": 2, "x2": 3, "y2": 4}),
            {},
            Action("zoom", Point(1, 2), end=Point(3, 4)),
        ),
        (
            "openai",
            ("click", {"x": 0, "y": 0, "modifiers": ["shift"]}),
            {},
            Action("click", Point(0, 0), modifiers=("shift",)),
        ),
        ("openai", ("wait", {}), {}, Action("wait")),
        (
            "gemini",
            ("type", {"text": "Ada"}),
            {"press_enter": True},
            Action("type", text="Ada\n", why="to type"),
        ),
        ("gemini", ("wait", {"seconds": 2}), {}, Action("wait", seconds=2, why="to wait")),
        (
            "gemini",
            ("scroll", {"x": 64, "y": 48, "direction": "up", "amount": 1}),
            {"magnitude_in_wheel_clicks": 9},
            Action("scroll", Point(100, 100), direction="up", amount=9, why="to scroll"),
        ),
    ],
)
def test_what_one_vendor_has_beside(
    talk_to: Callable[[str], Talk], name: str, move: Any, extra: dict[str, Any], action: Action
) -> None:
    talk = talk_to(name)
    talk.ai.moves = [Turn([move], extra=extra)]
    assert talk.act("Do it", image()) == action


DRAG = ("drag", {"x": 1, "y": 2, "x2": 3, "y2": 4})
SCROLL = ("scroll", {"x": 1, "y": 2, "direction": "up", "amount": 1})


@pytest.mark.parametrize(
    "name, move, extra, reason",
    [
        ("toolset", ("click", {"x": 9999, "y": 2}), {}, "outside the grid"),
        ("toolset", ("click", {}), {}, "give left_click a coordinate"),
        ("toolset", ("scroll", {"direction": "up", "amount": 1}), {}, "give scroll a coordinate"),
        ("toolset", ("left_mouse_down", {}), {}, "not available"),
        ("toolset", DRAG, {"text": "shift"}, "modifiers does not"),
        ("toolset", ("click", {"x": 1, "y": 2}), {"text": 7}, "cannot be read"),
        ("toolset", ("click", {"x": 1, "y": 2}), {"coordinate": [1]}, "one pair"),
        ("toolset", ("hold", {"text": "a", "duration": 200}), {}, "must be a number"),
        ("openai", ("click", {"x": 1, "y": 2, "button": "back"}), {}, "button is 'back'"),
        ("openai", SCROLL, {"scroll_x": 9}, "one direction"),
        ("openai", DRAG, {"path": [{"x": 1, "y": 2}]}, "cannot be read"),
        ("openai", DRAG, {"keys": ["CTRL"]}, "modifiers does not"),
        ("openai", ("fly", {}), {}, "there is no action 'fly'"),
        ("gemini", ("click", {"x": 1, "y": 2}), {"x": 2000}, "outside the grid"),
        ("gemini", ("mouse_down", {"x": 1, "y": 2}), {}, "mouse_down is not available"),
        ("gemini", ("type", {"text": ""}), {}, "text is empty"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_answered_as_a_failure_with_the_reason(
    talk_to: Callable[[str], Talk], name: str, move: Any, extra: dict[str, Any], reason: str
) -> None:
    talk = talk_to(name)
    talk.ai.moves = [Turn([move], extra=extra), "Well."]
    with pytest.raises(PeekabooError) as caught:
        talk.act("Do it", image())
    assert reason in caught.value.message
    talk.conversation.is_refused = True
    talk.act(f"That was not done: {caught.value.message}")
    assert reason in talk.ai.seen[-1].text
    if name == "toolset":
        assert talk.last_body["messages"][-1]["content"][0]["is_error"] is True


@pytest.mark.parametrize(
    "text, kind",
    [
        ("The form is signed.", "done"),
        ("UNSURE: there is no such button.", "noop"),
        ("Shall I sign the form?", "noop"),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_a_turn_without_a_call_is_the_end_unless_it_asks(
    talk_to: Callable[[str], Talk], name: str, text: str, kind: str
) -> None:
    talk = talk_to(name)
    talk.ai.moves = [text, ("screenshot", {})]
    assert talk.act("Do it", image()) == Action(kind, why=text, is_last=kind == "done")
    assert talk.act("Go on", image()).kind == "wait", "the conversation goes on after it"


# results ---


@pytest.mark.parametrize("name", MODELS)
def test_of_several_calls_the_first_is_done_and_all_are_answered(
    talk_to: Callable[[str], Talk], name: str
) -> None:
    talk = talk_to(name)
    moves = [("screenshot", {}), ("click", {"x": 320, "y": 240}), ("type", {"text": "Ada"})]
    talk.ai.moves = [Turn(moves), "Done."]
    assert talk.act("Do it", image()).kind == "click"
    talk.act("the window changed", image())
    assert talk.ai.requests[-1].status == 200
    text = talk.ai.seen[-1].text
    assert "Not executed: only the first action" in text and "the window changed" in text


@pytest.mark.parametrize("name", MODELS)
def test_what_follows_an_action_that_cannot_be_done_is_not_done_either(
    talk_to: Callable[[str], Talk], name: str
) -> None:
    talk = talk_to(name)
    talk.ai.moves = [Turn([("click", {"x": 9999, "y": 2}), ("type", {"text": "Ada"})]), "Done."]
    with pytest.raises(PeekabooError):
        talk.act("Do it", image())
    talk.conversation.is_refused = True
    talk.act("That was not done: outside.")
    text = talk.ai.seen[-1].text
    assert "an earlier computer action in this turn failed" in text and "That was not done: outside." in text


@pytest.mark.parametrize("name", MODELS)
def test_a_long_conversation_stays_within_the_vendors_limits(
    talk_to: Callable[[str], Talk], name: str
) -> None:
    talk = talk_to("anthropic/claude-opus-5-5" if name == "toolset" else name)
    turns = 45
    talk.ai.moves = [("click", {"x": 1 + n, "y": 2}) for n in range(turns)]
    counts = []
    for number in range(turns):
        talk.act(f"turn {number}", image(2400, 800) if name == "toolset" and number > 40 else image())
        counts.append(len(talk.ai.requests[-1].images))
    assert {request.status for request in talk.ai.requests} == {200}
    assert max(counts) == {"openai": 1, "gemini": 3}.get(name, 20)
    if name in ("toolset", "older tool"):  # many at once, so that the vendor's cache is of use
        assert counts[20:22] == [10, 11] and counts[31] == 10
        thoughts = json.dumps(talk.last_body).count('"thinking"')
        assert bool(thoughts) == (name == "toolset")


def test_a_call_to_openai_is_answered_with_an_image_when_the_window_is_gone(
    talk_to: Callable[[str], Talk],
) -> None:
    talk = talk_to("openai")
    talk.ai.moves = [("click", {"x": 1, "y": 2}), "Done."]
    talk.act("Do it", image())
    talk.act("The application shows no window now")
    assert talk.last_body["input"][0]["output"]["image_url"].startswith("data:image/jpeg;base64,")


def test_a_call_of_openais_earlier_form_is_read_and_an_empty_one_is_refused() -> None:
    conversation = conversation_with("openai", "gpt-5.4")
    call = {"type": "computer_call", "call_id": "call_1"}

    def action(**more: Any) -> dict[str, Any]:
        reply = conversation.vendor.read({"id": "r", "output": [{**call, **more}]})
        return json.loads(conversation.action_in(reply.text))

    assert action(action={"type": "wait"})["action"] == "wait"
    with pytest.raises(PeekabooError, match="has no action"):
        action(actions=[])
    for malformed in (["click"], 5):
        with pytest.raises(TypeError):  # an answer of another form, see Vendor.read
            action(actions=malformed)


def test_a_secret_in_an_answer_is_masked(talk_to: Callable[[str], Talk]) -> None:
    for name in MODELS:
        talk = talk_to(name)
        key = str(talk.ai.keys[talk.choice.provider])
        talk.ai.moves = [Turn([("type", {"text": key})], text=f"I type {key}")]
        reply = talk.ask("Do it", image()).text
        assert key not in reply and key not in talk.conversation.action_in(reply)


@pytest.mark.parametrize("name", ["openai", "gemini"])
def test_a_safety_check_is_text_for_people(talk_to: Callable[[str], Talk], name: str) -> None:
    talk = talk_to(name)
    key = str(talk.ai.keys[name])
    talk.ai.moves = [Turn([("click", {"x": 1, "y": 2})], checks=[f"\x1b[31mSure? {key}"]), "Done."]
    talk.act("Do it", image())
    assert "Sure?" in talk.conversation.safety_check
    assert key not in talk.conversation.safety_check and "\x1b" not in talk.conversation.safety_check
    talk.act("It was done", image())
    assert talk.conversation.safety_check == ""


def test_an_answer_of_another_form_is_an_error(talk_to: Callable[[str], Talk]) -> None:
    for name in MODELS:
        talk = talk_to(name)
        talk.ai.moves = [Turn([("click", {"x": 1, "y": 2})])]
        tool = talk.ai._tools[talk.choice.provider]
        talk.ai._tools[talk.choice.provider] = Broken(tool)
        with pytest.raises(PeekabooError) as caught:
            talk.ask("Do it", image())
        assert caught.value.code is ErrorCode.AI_PROVIDER_ERROR and "does not follow its API" in str(
            caught.value
        )


class Broken:
    """A vendor whose calls have no ids and no names."""

    def __init__(self, tool: Any) -> None:
        self.check, self.new_text = tool.check, tool.new_text

    def answer(self, request: Any, turn: Turn) -> Any:
        return {
            "anthropic": {"content": [{"type": "tool_use"}]},
            "openai": {"id": "x", "output": [{"type": "computer_call"}]},
            "gemini": {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]},
        }[request.vendor]


# the fakes refuse what the vendors refuse ---


def post(ai: NativeAI, provider: str, path: str, body: Any, **headers: str) -> Any:
    key = str(ai.keys[provider])
    keys = {
        "anthropic": {"x-api-key": key, "anthropic-version": "2023-06-01"},
        "openai": {"Authorization": f"Bearer {key}"},
        "gemini": {"x-goog-api-key": key},
    }
    return ask_json(ai.url + path, headers={**keys[provider], **headers}, body=body, timeout_s=PATIENCE_S)


def refusal(ai: NativeAI, *arguments: Any, **headers: str) -> str:
    with pytest.raises(WebError) as caught:
        post(ai, *arguments, **headers)
    assert caught.value.status == 400
    return str(caught.value.body["error"]["message"])


def claude(tool: dict[str, Any], *messages: dict[str, Any], model: str = "claude-sonnet-5") -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": 100,
        "tools": [tool],
        "messages": list(messages) or [turn("Do it")],
    }


def turn(*content: Any, role: str = "user") -> dict[str, Any]:
    blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    return {"role": role, "content": blocks}


USE = {"type": "tool_use", "id": "t1", "name": "screenshot", "toolset_name": "computer", "input": {}}
RESULT = {
    "type": "tool_result",
    "tool_use_id": "t1",
    "toolset_name": "computer",
    "content": [{"type": "text", "text": "OK"}],
}
OTHER_RESULT = {**RESULT, "tool_use_id": "t2"}
TOOL = {"type": TOOLSET}
OLD_TOOL = {"type": OLDER, "name": "computer", "display_width_px": 9, "display_height_px": 9}


def block_of(width: int, height: int) -> dict[str, Any]:
    data = base64.b64encode(picture("jpeg", width, height)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": data}}


@pytest.mark.parametrize(
    "body, reason",
    [
        (claude({**TOOL, "name": "computer"}), "name: Extra inputs are not permitted"),
        (claude({**TOOL, "display_width_px": 9}), "display_width_px: Extra inputs"),
        (claude(OLD_TOOL, model="claude-opus-5-5"), "does not support tool types: computer_20251124"),
        (claude(TOOL, model="claude-sonnet-4-6"), "does not support tool types: computer_toolset"),
        (claude(OLD_TOOL), "does not match any of the expected tags"),  # without its beta header
        (claude(TOOL, turn("Do it"), turn(USE, role="assistant"), turn("And?")), "without `tool_result`"),
        (
            claude(TOOL, turn("Do it"), turn(USE, role="assistant"), turn(RESULT, OTHER_RESULT)),
            "unexpected `tool_use_id`",
        ),
        (
            claude(TOOL, turn("Do it"), turn(USE, role="assistant"), turn({**RESULT, "toolset_name": "x"})),
            "toolset_name",
        ),
        (
            claude(
                TOOL,
                turn("Do it"),
                turn(USE, role="assistant"),
                turn({**RESULT, "is_error": True, "content": [block_of(9, 9)]}),
            ),
            "all content must be type `text`",
        ),
        (claude(TOOL, turn("Do it", block_of(2600, 400))), "image limits"),
        (claude(TOOL, turn("Do it", block_of(2400, 1600))), "image limits"),
        (claude(TOOL, turn("Do it", *[block_of(2100, 900)] * 21)), "2000 pixels"),
        (
            claude(
                TOOL,
                turn("Do it"),
                turn({"type": "thinking", "thinking": "", "signature": "other"}, "Hm.", role="assistant"),
                turn("And?"),
                model="claude-opus-5-5",
            ),
            "bound to a different conversation",
        ),
    ],
)  # fmt: skip
def test_the_fake_anthropic_refuses(native_ai: NativeAI, body: Any, reason: str) -> None:
    assert reason in refusal(native_ai, "anthropic", "/v1/messages", body)


def gpt(*items: Any, **more: Any) -> dict[str, Any]:
    tools = [{"type": "computer"}]
    return {"model": "gpt-5.4", "tools": tools, "input": list(items) or [gpt_message("Do it")], **more}


def gpt_message(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "input_text", "text": text}]}


def result(call_id: str, **more: Any) -> dict[str, Any]:
    url = "data:image/jpeg;base64," + base64.b64encode(picture("jpeg", 64, 48)).decode()
    output = {"type": "computer_screenshot", "image_url": url, "detail": "original"}
    return {"type": "computer_call_output", "call_id": call_id, "output": output, **more}


@pytest.mark.parametrize(
    "body, reason",
    [
        (
            gpt(tools=[{"type": "computer", "display_width": 9}]),
            "Unknown parameter: 'tools[0].display_width'",
        ),
        (gpt(tools=[{"type": "computer_use_preview"}]), "is not supported with gpt-5.4"),
        (gpt(model="gpt-4o"), "Hosted tool 'computer' is not supported with gpt-4o"),
        (gpt(previous_response_id="resp_9"), "Previous response with id 'resp_9' not found"),
        (gpt(previous_response_id="resp_1"), "No tool output found for computer call call_1"),
        (gpt(result("call_7"), previous_response_id="resp_1"), "No tool call found for computer call output"),
        (gpt(result("call_1"), previous_response_id="resp_1"), "were not acknowledged"),
        (gpt(surprise=1), "Unknown parameter: 'surprise'"),
    ],
)
def test_the_fake_openai_refuses(native_ai: NativeAI, body: Any, reason: str) -> None:
    native_ai.moves = [Turn([("click", {"x": 1, "y": 2})], checks=["Are you sure?"])]
    post(native_ai, "openai", "/v1/responses", gpt())
    assert reason in refusal(native_ai, "openai", "/v1/responses", body)


def flash(*turns: dict[str, Any], **use: Any) -> dict[str, Any]:
    tool = {"computerUse": {"environment": "ENVIRONMENT_DESKTOP", **use}}
    first = {"role": "user", "parts": [{"text": "Do it"}]}
    return {"contents": [first, *turns], "tools": [tool]}


def answered(call: Any, **response: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    response = {"id": "fc_1", "response": {"output": "OK"}, **response}
    return {"role": "model", "parts": [call]}, {"role": "user", "parts": [{"functionResponse": response}]}


def test_the_fake_gemini_refuses(native_ai: NativeAI) -> None:
    path = "/v1beta/models/gemini-3.5-flash:generateContent"
    native_ai.moves = [Turn([("wait", {"seconds": 1})], checks=["Are you sure?"])]
    answer = post(native_ai, "gemini", path, flash())
    (call,) = answer["candidates"][0]["content"]["parts"]
    name = call["functionCall"]["name"]
    consent = {"output": "OK", "safety_acknowledgement": "true"}
    cases = [
        (flash(environment="ENVIRONMENT_MOON"), "computer_use.environment"),
        (
            flash({"role": "model", "parts": [call]}, {"role": "user", "parts": [{"text": "?"}]}),
            "is equal to",
        ),
        (flash(*answered(call, name=name, id="fc_7", response=consent)), "another name or id"),
        (flash(*answered(call, name=name)), "was not acknowledged"),
        (flash(*answered({"functionCall": call["functionCall"]}, name=name)), "missing a thought_signature"),
    ]
    for body, reason in cases:
        assert reason in refusal(native_ai, "gemini", path, body)
    old = path.replace("3.5-flash", "3.1-pro")
    native_ai.models["gemini/gemini-3.1-pro"] = True
    assert "not supported for models/gemini-3.1-pro" in refusal(native_ai, "gemini", old, flash())
    native_ai.moves = ["Done."]
    assert post(native_ai, "gemini", path, flash(*answered(call, name=name, response=consent)))


def test_an_image_too_large_for_the_toolset_is_the_vendors_error(talk_to: Callable[[str], Talk]) -> None:
    talk = talk_to("toolset")
    with pytest.raises(PeekabooError) as caught:
        talk.ask("Do it", image(4000, 3000))
    assert "image limits" in caught.value.message
