"""The computer-use tools of Anthropic, OpenAI and Gemini."""

from __future__ import annotations

import re
from typing import Any

from ..core.errors import invalid
from ..core.settings import settings
from .conversation import LONGEST_TEXT, Call, Conversation, is_screenshot, unusable
from .dialects import unpaired
from .grid import THOUSANDTHS, base_name, is_claude_from
from .providers import VENDORS, Question, Reply, as_base64

NATIVE_MODELS = (
    "anthropic (Claude Opus 4.5, Sonnet 4.6, Fable 5, Mythos 5, Haiku 5.5 and later), "
    "openai (gpt-5.4 and later, without nano), gemini (3.5 and later)"
)
"""The models whose vendors offer a tool, for people."""

_TOOLSET, _OLDER_TOOL = "computer_toolset_20260801", "computer_20251124"
_OLDER_HEADER = {"anthropic-beta": "computer-use-2025-11-24"}
_TOOLSET_FROM = {"opus": (4, 8), "sonnet": (5, 0), "fable": (5, 0), "mythos": (5, 0), "haiku": (5, 5)}
_OLDER_FROM = {"opus": (4, 5), "sonnet": (4, 6)}
# Without a coordinate these act where the pointer is, which a person may have moved.
_AT_POINTER = ("scroll", "left_click", "right_click", "middle_click", "double_click", "triple_click")
# More than 20 images in one request may have 2000 pixels a side only.
_MOST_ANTHROPIC_IMAGES, _KEPT_ANTHROPIC_IMAGES = 20, 10
_KEPT_GEMINI_TURNS = 3
_NO_LONGER_SHOWN = {"type": "text", "text": "(an earlier screenshot, no longer shown)"}
_PIXELS_PER_NOTCH = 100
_MOST_NOTCHES = 50
_GEMINI_SCROLL_PIXELS = 300  # its default
_GEMINI_OWN = ("intent", "press_enter", "magnitude", "magnitude_in_pixels", "magnitude_in_wheel_clicks")


def conversation_with(provider: str, model: str) -> Conversation:
    """A new conversation. Raises INVALID_ARGUMENT for a model whose vendor has no tool that we know of."""
    name = base_name(model)
    if provider == "anthropic" and is_claude_from({**_TOOLSET_FROM, **_OLDER_FROM}, name):
        return _Anthropic(model, is_older=not is_claude_from(_TOOLSET_FROM, name))
    if provider == "openai" and re.match(r"gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!.*nano)", name):
        return _OpenAI(model)
    if provider == "gemini" and re.match(r"gemini-(3\.([5-9]|\d\d)|[4-9]|\d\d)", name):
        return _Gemini(model)
    hint = "run the agent without --native: then it works with every model that sees"
    raise invalid(
        f"we know of no computer-use tool for {provider}/{model}; --native is for {NATIVE_MODELS}", hint=hint
    )


class _Anthropic(Conversation):
    provider = "anthropic"
    # A button that is held from one turn to the next cannot be: a person may act in between.
    withheld = ("left_mouse_down", "left_mouse_up", "cursor_position")

    def __init__(self, model: str, is_older: bool) -> None:
        super().__init__(model)
        self.headers = _OLDER_HEADER if is_older else {}
        self._is_older = is_older
        self._size = (1, 1)

    def body(self, question: Question) -> dict[str, Any]:
        body = VENDORS[self.provider].body(question)
        content = body["messages"][0]["content"]
        results = [self._result(number, content) for number in range(len(self._calls))]
        self._messages.append({"role": "user", "content": results or content})
        self._prune()
        if question.images:
            self._size = question.images[-1].info.width, question.images[-1].info.height
        tool: dict[str, Any] = {
            "type": _TOOLSET,
            "configs": {name: {"enabled": False} for name in self.withheld},
        }
        if self._is_older:
            width, height = self._size
            size = {"display_width_px": width, "display_height_px": height}
            tool = {"type": _OLDER_TOOL, "name": "computer", **size, "enable_zoom": True}
        choice = {"type": "auto", "disable_parallel_tool_use": True}
        return {**body, "messages": self._messages, "tools": [tool], "tool_choice": choice}

    def _result(self, number: int, content: list[dict[str, Any]]) -> dict[str, Any]:
        problem = self._problem_of(number)
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": self._calls[number].call_id,
            "content": [{"type": "text", "text": problem}] if problem else content,
        }
        if not self._is_older:
            result["toolset_name"] = "computer"
        if problem or self.is_refused:  # with an image this would be rejected
            result["is_error"] = True
        return result

    def _prune(self) -> None:
        """Keep the last images. Seldom: what changes an earlier message ends the vendor's caching.

        Newer models bind their thinking to the messages before it: then it has to go.
        """
        count = sum(block["type"] == "image" for block in _anthropic_blocks(self._messages))
        if count <= _MOST_ANTHROPIC_IMAGES:
            return
        left = count - _KEPT_ANTHROPIC_IMAGES
        for message in self._messages:
            kinds = ("thinking", "redacted_thinking") if message["role"] == "assistant" else ()
            message["content"] = [block for block in message["content"] if block["type"] not in kinds]
            for content in [message["content"], *_anthropic_results([message])]:
                for at, block in enumerate(content):
                    if block["type"] == "image" and left:
                        content[at], left = _NO_LONGER_SHOWN, left - 1

    def _calls_of(self, answer: Any) -> list[Call]:
        self._messages.append({"role": "assistant", "content": answer["content"]})
        calls = []
        for block in answer["content"]:
            if block["type"] == "tool_use":
                act = {**block["input"]} if self._is_older else {**block["input"], "action": block["name"]}
                calls.append(Call(block["id"], block["name"], [act], []))
        return calls

    def _translated(self, act: dict[str, Any]) -> dict[str, Any]:
        name = act["action"]
        if name in self.withheld:
            raise unusable(f"{name} is not available")
        if name in _AT_POINTER and act.get("coordinate") is None:
            raise unusable(f"give {name} a coordinate")
        if act.get("text") and name not in ("type", "key", "hold_key"):  # held; where that cannot be, refused
            act = {**act, "text": None, "modifiers": act["text"].split("+")}
        return unpaired(act)


def _anthropic_results(messages: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The contents of all results."""
    blocks = [block for message in messages for block in message["content"]]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def _anthropic_blocks(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All blocks, those in results included."""
    contents = [message["content"] for message in messages] + _anthropic_results(messages)
    return [block for content in contents for block in content]


class _OpenAI(Conversation):
    """The vendor keeps the conversation, and drops its beginning when it is too long (`truncation`)."""

    provider = "openai"
    ask_path = "/responses"

    def __init__(self, model: str) -> None:
        super().__init__(model)
        self._last_id = ""
        self._last_image = ""  # a call must be answered with one, even when the app has no window any more

    def body(self, question: Question) -> dict[str, Any]:
        for image in question.images:
            self._last_image = f"data:{image.info.mime_type};base64,{as_base64(image)}"
        items = [self._result(call) for call in self._calls]
        text = question.prompt
        if sum(not is_screenshot(act) for call in self._calls for act in call.acts) > 1:
            text = f"{self._problem_of_others}\n\n{text}"
        content = [{"type": "input_text", "text": text}]
        if question.images and not items:
            content.append({"type": "input_image", "image_url": self._last_image, "detail": "original"})
        body: dict[str, Any] = {
            "model": question.model,
            "instructions": question.system,
            "tools": [{"type": "computer"}],
            "input": [*items, {"role": "user", "content": content}],
            "truncation": "auto",
            "max_output_tokens": settings().ai_max_tokens,
        }
        return {**body, "previous_response_id": self._last_id} if self._last_id else body

    def _result(self, call: Call) -> dict[str, Any]:
        image = {"type": "computer_screenshot", "image_url": self._last_image, "detail": "original"}
        result = {"type": "computer_call_output", "call_id": call.call_id, "output": image}
        return {**result, "acknowledged_safety_checks": call.checks} if call.checks else result

    def _read(self, answer: Any) -> Reply:
        parts = [part for item in answer["output"] for part in item.get("content") or []]
        texts = [part["text"] for part in parts if part["type"] == "output_text"]
        refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
        reason = (answer.get("incomplete_details") or {}).get("reason")
        if reason and reason != "max_output_tokens":
            refusals.append(reason)
        usage, is_cut = answer.get("usage") or {}, reason == "max_output_tokens"
        tokens = usage.get("input_tokens"), usage.get("output_tokens")
        return Reply("\n".join(texts), *tokens, cut_short=is_cut, refusal=" ".join(refusals))

    def _calls_of(self, answer: Any) -> list[Call]:
        self._last_id = answer["id"]
        calls = []
        for item in answer["output"]:
            if item["type"] == "computer_call":
                acts = item.get("actions") or ([item["action"]] if "action" in item else [])
                checks = [{**check} for check in item.get("pending_safety_checks") or []]
                calls.append(Call(item["call_id"], "computer", acts, checks))
        return calls

    def _translated(self, act: dict[str, Any]) -> dict[str, Any]:
        """Modifiers that cannot be held during an action are refused by the strict reading later."""
        name = act["type"]
        found: dict[str, Any] = {key: act[key] for key in ("x", "y", "text") if key in act}
        found.update(action=name, modifiers=act.get("keys") or [])
        if name == "keypress":
            found.update(key=act["keys"], modifiers=[])
        elif name == "click":
            found["button"] = {"wheel": "middle"}.get(act["button"], act["button"])
        elif name == "drag":
            (first, *_, last) = act["path"]
            found.update(x=first["x"], y=first["y"], x2=last["x"], y2=last["y"])
        elif name == "scroll":
            right, down = act.get("scroll_x") or 0, act.get("scroll_y") or 0
            if bool(right) == bool(down):
                raise unusable("scroll in one direction at a time, by scroll_x or scroll_y")
            names = ("right", "left") if right else ("down", "up")
            found.update(x=act["x"], y=act["y"], direction=names[(right or down) < 0])
            found["amount"] = _notches(right or down)
        elif name not in ("double_click", "move", "type", "wait"):
            raise unusable(f"there is no action {name!r}")
        return found


class _Gemini(Conversation):
    provider = "gemini"
    unit = THOUSANDTHS
    withheld = ("mouse_down", "mouse_up", "key_down", "key_up")
    offered = (
        "click", "double_click", "triple_click", "middle_click", "right_click", "move", "type", "scroll",
        "drag_and_drop", "wait", "press_key", "hotkey",
    )  # fmt: skip

    def body(self, question: Question) -> dict[str, Any]:
        body = VENDORS[self.provider].body(question)
        parts = body["contents"][0]["parts"]
        results = [self._result(number, question.prompt, parts[1:]) for number in range(len(self._calls))]
        self._messages.append({"role": "user", "parts": results or parts})
        turns = [message for message in self._messages if message["role"] == "user"]
        for message in turns[:-_KEPT_GEMINI_TURNS]:
            message["parts"] = [part for part in message["parts"] if "inlineData" not in part]
            for part in message["parts"]:
                part.get("functionResponse", {}).pop("parts", None)
        tool = {"environment": "ENVIRONMENT_DESKTOP", "excludedPredefinedFunctions": list(self.withheld)}
        return {**body, "contents": self._messages, "tools": [{"computerUse": tool}]}

    def _result(self, number: int, text: str, images: list[dict[str, Any]]) -> dict[str, Any]:
        call, problem = self._calls[number], self._problem_of(number)
        outcome = {"error": problem or text} if problem or self.is_refused else {"output": text}
        if call.checks:
            outcome["safety_acknowledgement"] = "true"
        result: dict[str, Any] = {"name": call.name, "response": outcome}
        if call.call_id:
            result["id"] = call.call_id
        return {"functionResponse": result if problem or not images else {**result, "parts": images}}

    def _calls_of(self, answer: Any) -> list[Call]:
        content = answer["candidates"][0].get("content") or {}
        self._messages.append({"role": "model", **content})
        calls = []
        for part in content.get("parts") or []:
            if "functionCall" in part:
                call = part["functionCall"]
                act = {**(call.get("args") or {}), "action": call["name"]}
                check = {**(act.pop("safety_decision", None) or {"decision": "allowed"})}
                checks = [] if check.get("decision") in ("allowed", "regular") else [check]
                calls.append(Call(call.get("id") or "", call["name"], [act], checks))
        return calls

    def _translated(self, act: dict[str, Any]) -> dict[str, Any]:
        name = act["action"]
        found = {key: value for key, value in act.items() if key not in _GEMINI_OWN}
        if name not in self.offered:
            raise unusable(f"{name[:40]} is not available")
        if act.get("intent"):
            found["why"] = act["intent"][:LONGEST_TEXT]
        if act.get("press_enter") is True:
            found["text"] += "\n"
        if name == "scroll":
            found.update(x=act["x"], y=act["y"])
            pixels = act.get("magnitude_in_pixels") or act.get("magnitude") or _GEMINI_SCROLL_PIXELS
            found["amount"] = act.get("magnitude_in_wheel_clicks") or _notches(pixels)
        return found


def _notches(pixels: float) -> int:
    return max(1, min(_MOST_NOTCHES, round(abs(pixels) / _PIXELS_PER_NOTCH)))
