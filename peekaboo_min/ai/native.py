"""Conversations by the computer-use tools of Anthropic, OpenAI and Gemini."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from ..core.errors import invalid
from ..core.settings import settings, without_secrets
from ..core.text import clean_text
from .dialects import notches_of, unpaired, unusable
from .grid import PIXELS, THOUSANDTHS, base_name, is_claude_from
from .providers import VENDORS, Question, Reply, Vendor, as_base64

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
_GEMINI_SCROLL_PIXELS = 300  # its default
_GEMINI_OWN = ("intent", "press_enter", "magnitude", "magnitude_in_pixels", "magnitude_in_wheel_clicks")
_NOT_EXECUTED = "Not executed: only the first action of a turn is. The screenshot shows the state after it."
# Anthropic's own sentence for what follows a failed action
_NOT_AFTER_FAILURE = "Not executed: an earlier computer action in this turn failed."
_LONGEST_TEXT = 300


def conversation_with(provider: str, model: str) -> Conversation:
    """A new conversation. Raises INVALID_ARGUMENT for a model whose vendor has no tool that we know of."""
    name = base_name(model)
    if provider == "anthropic" and is_claude_from({**_TOOLSET_FROM, **_OLDER_FROM}, name):
        return _Anthropic(is_older=not is_claude_from(_TOOLSET_FROM, name))
    if provider == "openai" and re.match(r"gpt-(5\.([4-9]|\d\d)|[6-9]|\d\d)(?!.*nano)", name):
        return _OpenAI()
    if provider == "gemini" and re.match(r"gemini-(3\.([5-9]|\d\d)|[4-9]|\d\d)", name):
        return _Gemini()
    hint = "run the agent without --native: then it works with every vision model"
    raise invalid(
        f"we know of no computer-use tool for {provider}/{model}; --native is for {NATIVE_MODELS}", hint=hint
    )


class Call(NamedTuple):
    """One call of an answer, which must get a result. Its actions (`acts`) keep the vendor's own names."""

    call_id: str
    name: str
    acts: list[dict[str, Any]]
    checks: list[dict[str, Any]]
    """What the vendor wants a person to consent to."""


class Conversation:
    """A run's questions and answers, as one vendor's API has them; each call gets its result.

    One action a turn is carried out. Its result is the next question, with its images; the other calls of
    the turn are answered as not executed.
    """

    unit = PIXELS
    """What the tool counts in, over the last image."""
    provider: str
    ask_path = ""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.is_refused = False
        """The last action cannot be done: the next question says why, without an image."""
        self._messages: list[dict[str, Any]] = []
        self._calls: list[Call] = []
        self._acted = 0  # the number of the call whose action is carried out

    @property
    def vendor(self) -> Vendor:
        """The vendor, asked through its tool."""
        usual = VENDORS[self.provider]
        return usual._replace(
            ask_path=self.ask_path or usual.ask_path,
            headers_for=lambda key: {**usual.headers_for(key), **self.headers},
            body=self.body,
            read=self.read,
        )

    @property
    def safety_check(self) -> str:
        """What a person has to consent to before the next question, which acknowledges it; may be empty."""
        checks = [check for call in self._calls for check in call.checks]
        texts = [
            str(check.get("message") or check.get("explanation") or "no reason given") for check in checks
        ]
        return clean_text(without_secrets("; ".join(texts)), _LONGEST_TEXT)

    def body(self, question: Question) -> dict[str, Any]:
        """The request for a question. It becomes a part of the conversation."""
        raise NotImplementedError

    def read(self, answer: Any) -> Reply:
        """An answer as JSON: its text, and its calls under the vendor's names. Raises as Vendor.read does."""
        reply = self._read(answer)
        if reply.refusal or reply.cut_short:
            return reply
        self._calls, self._acted, self.is_refused = self._calls_of(answer), 0, False
        calls = [{"id": call.call_id, "acts": call.acts, "checks": call.checks} for call in self._calls]
        is_empty = not calls and not reply.text.strip()
        return reply._replace(text="" if is_empty else json.dumps({"text": reply.text, "calls": calls}))

    def action_in(self, reply: str) -> str:
        """The action to carry out, of a reply from `read`, as JSON that ai.dialects reads.

        Each question shows a screenshot, so that asking for one is no action. An answer without a call is
        the end, unless it asks something or says UNSURE. Raises AI_PROVIDER_ERROR.
        """
        found = json.loads(reply)
        why = found["text"].strip()
        acts = [(number, act) for number, call in enumerate(found["calls"]) for act in call["acts"]]
        if not found["calls"]:
            is_unsure = why.upper().startswith("UNSURE") or why.endswith("?")
            return json.dumps({"action": "noop" if is_unsure else "done", "why": why[:_LONGEST_TEXT]})
        if not acts:
            raise unusable("the call has no action")
        self._acted, act = next((each for each in acts if not _is_screenshot(each[1])), acts[0])
        try:
            found = {"action": "wait", "seconds": 0} if _is_screenshot(act) else self._translated(act)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise unusable(f"the arguments of {str(_name_of(act))[:40]} cannot be read") from None
        return json.dumps({"why": why[:_LONGEST_TEXT], **found})

    def _read(self, answer: Any) -> Reply:
        return VENDORS[self.provider].read(answer)

    def _calls_of(self, answer: Any) -> list[Call]:
        raise NotImplementedError

    def _translated(self, act: dict[str, Any]) -> dict[str, Any]:
        """The action in names that ai.dialects reads. Raises AI_PROVIDER_ERROR, or as Vendor.read does."""
        raise NotImplementedError

    def _problem_of(self, number: int) -> str:
        """Why a call of the turn was not executed; empty for the one that was, and for screenshots."""
        is_shown = number == self._acted or all(map(_is_screenshot, self._calls[number].acts))
        return "" if is_shown else self._problem_of_others

    @property
    def _problem_of_others(self) -> str:
        return _NOT_AFTER_FAILURE if self.is_refused else _NOT_EXECUTED


def _name_of(act: dict[str, Any]) -> Any:
    return act.get("action") or act.get("type")


def _is_screenshot(act: dict[str, Any]) -> bool:
    return _name_of(act) in ("screenshot", "take_screenshot")


class _Anthropic(Conversation):
    provider = "anthropic"
    # A button that is held from one turn to the next cannot be: a person may act in between.
    withheld = ("left_mouse_down", "left_mouse_up", "cursor_position")

    def __init__(self, is_older: bool) -> None:
        super().__init__()
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
        contents = []
        for message in self._messages:
            results = [block["content"] for block in message["content"] if block["type"] == "tool_result"]
            contents += [message["content"], *results]
        images = [
            (content, at)
            for content in contents
            for at, block in enumerate(content)
            if block["type"] == "image"
        ]
        if len(images) <= _MOST_ANTHROPIC_IMAGES:
            return
        for content, at in images[:-_KEPT_ANTHROPIC_IMAGES]:
            content[at] = _NO_LONGER_SHOWN
        for message in self._messages:
            kinds = ("thinking", "redacted_thinking") if message["role"] == "assistant" else ()
            message["content"] = [block for block in message["content"] if block["type"] not in kinds]

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


class _OpenAI(Conversation):
    """The vendor keeps the conversation, and drops its beginning when it is too long (`truncation`)."""

    provider = "openai"
    ask_path = "/responses"

    def __init__(self) -> None:
        super().__init__()
        self._last_id = ""
        self._last_image = ""  # a call must be answered with one, even when the app has no window any more

    def body(self, question: Question) -> dict[str, Any]:
        for image in question.images:
            self._last_image = f"data:{image.info.mime_type};base64,{as_base64(image)}"
        items = [self._result(call) for call in self._calls]
        text = question.prompt
        if sum(not _is_screenshot(act) for call in self._calls for act in call.acts) > 1:
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
                found = item.get("actions") or ([item["action"]] if "action" in item else [])
                acts = [{**act} for act in found]  # raises for what is no object
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
            found["amount"] = notches_of(right or down)
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
            found["why"] = act["intent"][:_LONGEST_TEXT]
        if act.get("press_enter") is True:
            found["text"] += "\n"
        if name == "scroll":
            found.update(x=act["x"], y=act["y"])
            pixels = act.get("magnitude_in_pixels") or act.get("magnitude") or _GEMINI_SCROLL_PIXELS
            found["amount"] = act.get("magnitude_in_wheel_clicks") or notches_of(pixels)
        return found
