"""FakeAI with the vendors' computer-use tools: it holds conversations, and is as strict as they are.

    with NativeAI() as ai:
        ai.moves = [("click", {"x": 20, "y": 30}), ("type", {"text": "Ada"}), "It is done."]
        run(command, env={**os.environ, **ai.env("openai", "gpt-5.4")})

A move is in our own names and in pixels of the last image; the fake speaks as the vendor's model does. The
texts of refusals are the vendors' where these publish them; those marked (*) are ours.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Optional, Union

from fake_ai import (
    MODELS,
    FakeAI,
    ReceivedImage,
    Reply,
    Request,
    _gemini_image,
    _openai_image,
    answer_anthropic,
    answer_gemini,
    check_anthropic,
    check_gemini,
    check_openai,
    error,
)

Move = tuple[str, dict[str, Any]]
NATIVE_MODELS = {
    **MODELS,
    "openai/gpt-5.4": True,
    "openai/gpt-5.4-nano": True,
    "anthropic/claude-opus-5-5": True,
    "anthropic/claude-opus-4-8": True,
}


@dataclass
class Turn:
    """What a model does in one turn. checks: one safety check for each text; extra: of the first call."""

    moves: list[Move] = field(default_factory=list)
    text: str = ""
    checks: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """What the model sees: the new text and the last image."""

    text: str
    image: Optional[ReceivedImage]


Step = Union[str, Move, Turn, Callable[[Seen], Any]]


class NativeAI(FakeAI):
    """One conversation at a time. `moves` are made in turn; a text ends a turn without a call."""

    def __init__(self, models: Optional[dict[str, bool]] = None) -> None:
        super().__init__(NATIVE_MODELS if models is None else models)
        self.moves: list[Step] = []
        self.seen: list[Seen] = []
        self._tools = {"anthropic": Anthropic(), "openai": OpenAI(), "gemini": Gemini()}

    def check(self, request: Request) -> Any:
        if not isinstance(request.body, dict) or "tools" not in request.body:
            return super().check(request)
        return self._tools[request.vendor].check(self, request)

    def think(self, request: Request) -> Any:
        if not isinstance(request.body, dict) or "tools" not in request.body:
            return super().think(request)
        tool = self._tools[request.vendor]
        self.seen.append(Seen(tool.new_text(request), request.images[-1] if request.images else None))
        assert self.moves, f"the moves are over, but {request.vendor} was asked: {self.seen[-1].text[:200]!r}"
        step = self.moves.pop(0)
        made = step(self.seen[-1]) if callable(step) else step
        if not isinstance(made, Turn):
            made = Turn(text=made) if isinstance(made, str) else Turn([made])
        return tool.answer(request, made)


def _modifiers(move: dict[str, Any]) -> list[str]:
    return list(move.get("modifiers", ()))


# Anthropic

TOOLSET, OLDER = "computer_toolset_20260801", "computer_20251124"
BETA = "computer-use-2025-11-24"
MEMBERS = {
    "key", "hold_key", "type", "cursor_position", "mouse_move", "left_mouse_down", "left_mouse_up",
    "left_click", "right_click", "middle_click", "double_click", "triple_click", "left_click_drag", "scroll",
    "wait", "screenshot", "zoom",
}  # fmt: skip
TOOLS_OF = {
    "claude-opus-5-5": {TOOLSET},
    "claude-opus-4-8": {TOOLSET, OLDER},
    "claude-sonnet-5": {TOOLSET, OLDER},
    "claude-opus-4-7": {OLDER},
    "claude-sonnet-4-6": {OLDER},
}
LIMITS = {"claude-sonnet-4-6": (1568, 1568)}  # long edge in pixels, 28-pixel patches
HIGH_LIMITS = (2576, 4784)


class Anthropic:
    def __init__(self) -> None:
        self._count = 0

    def check(self, ai: FakeAI, request: Request) -> None:
        body = request.body
        plain = {name: value for name, value in body.items() if name not in ("tools", "tool_choice")}
        plain["messages"] = [_plain_message(message) for message in body.get("messages", [])]
        asked = replace(request, body=plain, images=[])
        assert check_anthropic(ai, asked) is None
        request.model, request.images = asked.model, asked.images
        request.prompt, request.system = asked.prompt, asked.system
        (tool,) = body["tools"]
        self._check_tool(request, tool)
        if tool["type"] == TOOLSET:
            edge, patches = LIMITS.get(request.model, HIGH_LIMITS)
            for seen in request.images:
                count = math.ceil(seen.width / 28) * math.ceil(seen.height / 28)
                if max(seen.width, seen.height) > edge or count > patches:
                    raise _bad("messages: an image exceeds the image limits of this model (*)")
        self._check_messages(request, body["messages"], tool["type"] == TOOLSET)

    def _check_tool(self, request: Request, tool: dict[str, Any]) -> None:
        kind = tool.get("type")
        if kind not in TOOLS_OF.get(request.model, ()):
            known = ", ".join(sorted(TOOLS_OF.get(request.model, ())))
            raise _bad(
                f"'{request.model}' does not support tool types: {kind}. Did you mean one of {known or '-'}?"
            )
        if kind == TOOLSET:
            for name in tool:
                if name not in ("type", "configs", "cache_control", "allowed_callers"):
                    raise _bad(f"tools.0.{TOOLSET}.{name}: Extra inputs are not permitted")
            for name in tool.get("configs", {}):
                if name not in MEMBERS:
                    raise _bad(f"tools.0.{TOOLSET}.configs.{name}: Extra inputs are not permitted")
            return
        if request.headers.get("anthropic-beta") != BETA:
            raise _bad(
                f"tools.0: Input tag '{OLDER}' found using 'type' does not match any of the expected tags"
            )
        if tool.get("name") != "computer":
            raise _bad(f"tools.0.{OLDER}.name: Input should be 'computer'")
        for name in ("display_width_px", "display_height_px"):
            if not isinstance(tool.get(name), int) or tool[name] < 1:
                raise _bad(f"tools.0.{OLDER}.{name}: Field required")

    def _check_messages(self, request: Request, messages: list[Any], is_toolset: bool) -> None:
        for at, message in enumerate(messages):
            for number, block in enumerate(_blocks(message)):
                where = f"messages.{at}.content.{number}"
                if block["type"] == "thinking" and block["signature"] != _bound(request, messages[:at]):
                    raise _bad(
                        f"{where}: Invalid `signature` in `thinking` block. The block is bound to a "
                        "different conversation. Remove the block, or set `thinking.block_binding`"
                    )
                if block["type"] == "tool_result":
                    self._check_result(block, where, is_toolset)
            asked = [block["id"] for block in _blocks(message) if block["type"] == "tool_use"]
            after = _blocks(messages[at + 1]) if at + 1 < len(messages) else []
            answered = [block["tool_use_id"] for block in after if block["type"] == "tool_result"]
            missing = [each for each in asked if each not in answered]
            if missing:
                raise _bad(
                    f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately "
                    f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
                    "`tool_result` block in the next message."
                )
            unknown = [each for each in answered if each not in asked]
            if unknown:
                raise _bad(
                    f"messages.{at + 1}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{unknown[0]}. Each `tool_result` block must have a corresponding `tool_use` block in "
                    "the previous message."
                )

    def _check_result(self, block: dict[str, Any], where: str, is_toolset: bool) -> None:
        if is_toolset and block.get("toolset_name") != "computer":
            raise _bad(f"{where}.tool_result: toolset_name must be 'computer' (*)")
        if not is_toolset and "toolset_name" in block:
            raise _bad(f"{where}.tool_result.toolset_name: Extra inputs are not permitted")
        if block.get("is_error") and [each for each in block["content"] if each["type"] != "text"]:
            raise _bad(f"{where}.tool_result: all content must be type `text` if `is_error` is true")

    def new_text(self, request: Request) -> str:
        texts = []
        for block in _blocks(request.body["messages"][-1]):
            parts = block["content"] if block["type"] == "tool_result" else [block]
            texts += [part["text"] for part in parts if part["type"] == "text"]
        return "\n".join(texts)

    def answer(self, request: Request, turn: Turn) -> Any:
        answer = answer_anthropic(request, Reply(turn.text))
        if request.model == "claude-opus-5-5":  # the thinking is bound to what was before it
            signature = _bound(request, request.body["messages"])
            answer["content"].insert(0, {"type": "thinking", "thinking": "", "signature": signature})
        is_toolset = request.body["tools"][0]["type"] == TOOLSET
        for kind, move in turn.moves:
            self._count += 1
            name, inputs = _anthropic_call(kind, move)
            block: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{self._count}", "name": name}
            if is_toolset:
                block.update(toolset_name="computer", input=inputs)
            else:
                block.update(name="computer", input={"action": name, **inputs})
            block["input"].update(turn.extra)
            answer["content"].append(block)
            answer["stop_reason"] = "tool_use"
        return answer


def _bad(message: str) -> Exception:
    return error("anthropic", 400, message)


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _plain_message(message: dict[str, Any]) -> dict[str, Any]:
    """The message for the checks of plain questions: text and images."""
    blocks = []
    for block in _blocks(message):
        if block["type"] == "tool_result":
            blocks += block["content"]
        elif block["type"] in ("text", "image"):
            blocks.append(block)
    return {**message, "content": blocks or [{"type": "text", "text": "-"}]}


def _bound(request: Request, messages: list[Any]) -> str:
    before = json.dumps([request.body["tools"], request.body.get("system"), messages], sort_keys=True)
    return hashlib.sha256(before.encode()).hexdigest()


def _anthropic_call(kind: str, move: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    held = {"text": "+".join(_modifiers(move))} if _modifiers(move) else {}
    at = {"coordinate": [move["x"], move["y"]]} if "x" in move else {}
    if kind == "click":
        name = ("left_click", "double_click", "triple_click")[move.get("clicks", 1) - 1]
        return {"right": "right_click", "middle": "middle_click"}.get(move.get("button", ""), name), {
            **at,
            **held,
        }
    if kind == "drag":
        return "left_click_drag", {
            "start_coordinate": [move["x"], move["y"]],
            "coordinate": [move["x2"], move["y2"]],
        }
    if kind == "scroll":
        return "scroll", {**at, "scroll_direction": move["direction"], "scroll_amount": move["amount"]}
    if kind == "zoom":
        return "zoom", {"region": [move["x"], move["y"], move["x2"], move["y2"]]}
    if kind == "press":
        repeat = {"repeat": move["repeat"]} if "repeat" in move else {}
        return "key", {"text": "+".join([*_modifiers(move), move["key"]]), **repeat}
    names = {"move": "mouse_move", "hold": "hold_key"}
    return names.get(kind, kind), {
        **at,
        **{key: value for key, value in move.items() if key not in ("x", "y")},
    }


# OpenAI

RESPONSES_FIELDS = {
    "model", "input", "instructions", "tools", "tool_choice", "truncation", "previous_response_id", "store",
    "max_output_tokens", "parallel_tool_calls", "reasoning", "text", "metadata", "include", "temperature",
}  # fmt: skip


class OpenAI:
    def __init__(self) -> None:
        self._answers: dict[str, list[dict[str, Any]]] = {}  # by the response's id, its calls

    def check(self, ai: FakeAI, request: Request) -> None:
        check_openai(ai, replace(request, method="GET", path="/v1/models"))  # the key
        body = request.body
        if request.path != "/v1/responses":
            raise _wrong(f"Unknown parameter: 'tools' at {request.path} (*)")
        for name in body:
            if name not in RESPONSES_FIELDS:
                raise _wrong(f"Unknown parameter: '{name}'.")
        request.model, request.system = body["model"], body.get("instructions", "")
        if not ai.name_of("openai", request.model):
            raise error("openai", 404, f"The model `{request.model}` does not exist", code="model_not_found")
        (tool,) = body["tools"]
        kind, is_new = tool.get("type"), bool(re.match(r"gpt-5\.[4-9](?!.*nano)", request.model))
        if kind not in ("computer", "computer_use_preview") or (kind == "computer") != is_new:
            raise _wrong(f"Hosted tool '{kind}' is not supported with {request.model}.")
        if set(tool) != {"type"}:
            raise _wrong(f"Unknown parameter: 'tools[0].{sorted(set(tool) - {'type'})[0]}'.")
        self._check_input(request, body)

    def _check_input(self, request: Request, body: dict[str, Any]) -> None:
        last = body.get("previous_response_id")
        if last is not None and last not in self._answers:
            raise _wrong(f"Previous response with id '{last}' not found.", code="previous_response_not_found")
        pending = {call["call_id"]: call for call in self._answers.get(last or "", [])}
        for at, item in enumerate(body["input"]):
            where = f"input[{at}]"
            if item.get("type") == "computer_call_output":
                call = pending.pop(item["call_id"], None)
                if call is None:
                    raise _wrong(
                        f"No tool call found for computer call output with call_id {item['call_id']}."
                    )
                self._check_output(request, item, call, where)
            else:
                for part in item["content"]:
                    if part["type"] == "input_image":
                        request.images.append(_openai_image(part["image_url"], where))
                    elif part["type"] == "input_text":
                        request.prompt += part["text"]
                    else:
                        raise _wrong(f"Invalid value: '{part['type']}'.")
        if pending:
            raise _wrong(f"No tool output found for computer call {next(iter(pending))}.")

    def _check_output(self, request: Request, item: dict[str, Any], call: dict[str, Any], where: str) -> None:
        known = {check["id"] for check in item.get("acknowledged_safety_checks", [])}
        if {check["id"] for check in call["pending_safety_checks"]} - known:
            raise _wrong(f"{where}: the pending safety checks of {call['call_id']} were not acknowledged (*)")
        output = item["output"]
        if output.get("type") != "computer_screenshot":
            raise _wrong(f"Invalid value: '{output.get('type')}'. Expected 'computer_screenshot'.")
        request.images.append(_openai_image(output["image_url"], where))

    def new_text(self, request: Request) -> str:
        return request.prompt

    def answer(self, request: Request, turn: Turn) -> Any:
        number = len(self._answers) + 1
        output: list[dict[str, Any]] = [{"type": "reasoning", "id": f"rs_{number}", "summary": []}]
        if turn.text:
            content = [{"type": "output_text", "text": turn.text, "annotations": []}]
            output.append({"type": "message", "role": "assistant", "status": "completed", "content": content})
        if turn.moves:
            actions = [_openai_action(kind, move) for kind, move in turn.moves]
            actions[0].update(turn.extra)
            checks = [
                {"id": f"cu_{number}_{at}", "code": "c", "message": m} for at, m in enumerate(turn.checks)
            ]
            ids = {"id": f"cu_{number}", "call_id": f"call_{number}", "status": "completed"}
            output.append(
                {"type": "computer_call", **ids, "actions": actions, "pending_safety_checks": checks}
            )
        self._answers[f"resp_{number}"] = [item for item in output if item["type"] == "computer_call"]
        return {
            "id": f"resp_{number}",
            "object": "response",
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "model": request.model,
            "output": output,
            "usage": {"input_tokens": 1200, "output_tokens": 34, "total_tokens": 1234},
        }


def _wrong(message: str, code: Optional[str] = None) -> Exception:
    return error("openai", 400, message, code=code)


def _openai_action(kind: str, move: dict[str, Any]) -> dict[str, Any]:
    keys = {"keys": [key.upper() for key in _modifiers(move)]} if _modifiers(move) else {}
    at = {"x": move["x"], "y": move["y"]} if "x" in move else {}
    if kind == "click":
        button = {"middle": "wheel"}.get(move.get("button", "left"), move.get("button", "left"))
        is_double = move.get("clicks") == 2
        return (
            {"type": "double_click", **at, **keys}
            if is_double
            else {"type": "click", "button": button, **at, **keys}
        )
    if kind == "drag":
        middle = {"x": (move["x"] + move["x2"]) // 2, "y": (move["y"] + move["y2"]) // 2}
        return {"type": "drag", "path": [at, middle, {"x": move["x2"], "y": move["y2"]}]}
    if kind == "scroll":
        pixels = 100 * move["amount"]
        x, y = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}[move["direction"]]
        return {"type": "scroll", **at, "scroll_x": x * pixels, "scroll_y": y * pixels}
    if kind == "press":
        names = {"return": "ENTER", "tab": "TAB", "escape": "ESC"}
        return {
            "type": "keypress",
            "keys": [*(key.upper() for key in _modifiers(move)), names.get(move["key"], move["key"])],
        }
    return {"type": kind, **at, **{key: value for key, value in move.items() if key not in ("x", "y")}}


# Gemini

ENVIRONMENTS = [f"ENVIRONMENT_{name}" for name in ("BROWSER", "MOBILE", "DESKTOP")]
FUNCTIONS = {
    "click", "double_click", "triple_click", "middle_click", "right_click", "mouse_down", "mouse_up", "move",
    "type", "drag_and_drop", "wait", "press_key", "key_down", "key_up", "hotkey", "take_screenshot", "scroll",
}  # fmt: skip


class Gemini:
    def __init__(self) -> None:
        self._count = 0
        self._checked: set[str] = set()  # ids of calls that need an acknowledgement

    def check(self, ai: FakeAI, request: Request) -> None:
        assert check_gemini(ai, request) is None
        (tool,) = request.body["tools"]
        use = tool.get("computerUse")
        if use is None or set(tool) != {"computerUse"}:
            raise _invalid(f"Unknown name \"{next(iter(tool))}\" at 'tools[0]': Cannot find field.")
        if not re.match(r"gemini-3\.[5-9]", request.model):
            raise _invalid(f"Computer Use is not supported for models/{request.model}.")
        if use.get("environment") not in ENVIRONMENTS:
            raise _invalid(
                f"Invalid value at 'tools[0].computer_use.environment', \"{use.get('environment')}\""
            )
        for name in use.get("excludedPredefinedFunctions", []):
            if name not in FUNCTIONS:
                raise _invalid(f"Unknown predefined function {name} (*)")
        contents = request.body["contents"]
        for at, content in enumerate(contents):
            calls = [part for part in content["parts"] if "functionCall" in part]
            after = contents[at + 1]["parts"] if at + 1 < len(contents) else []
            responses = [part["functionResponse"] for part in after if "functionResponse" in part]
            if len(calls) != len(responses):
                raise _invalid(
                    "Please ensure that the number of function response parts is equal to the number of "
                    "function call parts of the function call turn."
                )
            for part, response in zip(calls, responses):
                self._check_response(request, part, response, f"contents[{at + 1}]")

    def _check_response(
        self, request: Request, part: dict[str, Any], response: dict[str, Any], where: str
    ) -> None:
        call = part["functionCall"]
        if not part.get("thoughtSignature"):
            raise _invalid(
                f"Function call is missing a thought_signature in functionCall parts: {call['name']}"
            )
        if (response.get("name"), response.get("id")) != (call["name"], call["id"]):
            raise _invalid(f"The function response of {call['name']} has another name or id (*)")
        if call["id"] in self._checked and response["response"].get("safety_acknowledgement") != "true":
            raise _invalid(f"The safety decision of {call['name']} was not acknowledged (*)")
        for image in response.get("parts", []):
            request.images.append(_gemini_image(image["inlineData"], where))

    def new_text(self, request: Request) -> str:
        texts = []
        for part in request.body["contents"][-1]["parts"]:
            outcome = part.get("functionResponse", {}).get("response", {})
            texts.append(part.get("text") or outcome.get("output") or outcome.get("error") or "")
        return "\n".join(texts)

    def answer(self, request: Request, turn: Turn) -> Any:
        answer = answer_gemini(request, Reply(turn.text))
        parts = answer["candidates"][0]["content"].setdefault("parts", [])
        checks = list(turn.checks)
        for kind, move in turn.moves:
            self._count += 1
            name, args = _gemini_call(kind, move, request.images[-1] if request.images else None)
            args = {**args, "intent": f"to {kind}", **turn.extra}
            if checks:
                args["safety_decision"] = {"decision": "require_confirmation", "explanation": checks.pop(0)}
                self._checked.add(f"fc_{self._count}")
            call = {"id": f"fc_{self._count}", "name": name, "args": args}
            parts.append({"functionCall": call, "thoughtSignature": "c2lnbmVk"})
        return answer


def _invalid(message: str) -> Exception:
    return error("gemini", 400, message)


def _gemini_call(
    kind: str, move: dict[str, Any], image: Optional[ReceivedImage]
) -> tuple[str, dict[str, Any]]:
    sizes = {"x": image.width, "y": image.height, "x2": image.width, "y2": image.height} if image else {}
    at = {key: round(move[key] * 1000 / sizes[key]) for key in sizes if key in move}
    if kind == "click":
        name = ("click", "double_click", "triple_click")[move.get("clicks", 1) - 1]
        return {"right": "right_click", "middle": "middle_click"}.get(move.get("button", ""), name), at
    if kind == "drag":
        return "drag_and_drop", {"start_x": at["x"], "start_y": at["y"], "end_x": at["x2"], "end_y": at["y2"]}
    if kind == "scroll":
        return "scroll", {**at, "direction": move["direction"], "magnitude_in_pixels": 100 * move["amount"]}
    if kind == "press":
        keys = _modifiers(move)
        return ("hotkey", {"keys": [*keys, move["key"]]}) if keys else ("press_key", {"key": move["key"]})
    names = {"screenshot": "take_screenshot"}
    return names.get(kind, kind), {**at, **{key: value for key, value in move.items() if key not in sizes}}
