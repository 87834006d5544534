"""Results, errors and schemas as MCP messages, as real clients need them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import PeekabooError
from ..core.models import Result
from ..core.text import encodable
from .arguments import LARGEST_NUMBER

# Clients end the connection at 16 MB a message (Claude Code) or wait for ever (Codex).
_VALUE_CAP = 200_000  # characters of one value of the data, and of the text
_IMAGES_CAP = 10_000_000  # characters of base64
_ERROR_CAP = 4_000
_CUT = "... (cut)"


class Outgoing:
    """Makes values that JSON and UTF-8 can hold, cut at a size; `was_cut` says whether anything was."""

    def __init__(self, cap: int) -> None:
        self._left = cap
        self.was_cut = False

    def text(self, text: str) -> str:
        if len(text) > self._left:
            self.was_cut = True
            text = text[: max(0, self._left)] + _CUT
        self._left -= len(text)
        return encodable(text)

    def value(self, value: Any) -> Any:
        """A copy with U+FFFD for lone surrogates, None for numbers that JSON lacks, and cut at the cap."""
        if isinstance(value, str):
            return self.text(value)
        self._left -= 8  # about what a number, a bracket or a comma costs
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return int(value) if abs(value) <= LARGEST_NUMBER else None
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(each) for key, each in value.items() if self._has_room()}
        if isinstance(value, (list, tuple)):
            return [self.value(each) for each in value if self._has_room()]
        return self.text(str(value))

    def _has_room(self) -> bool:
        self.was_cut = self.was_cut or self._left <= 0
        return self._left > 0


def outgoing_data(data: dict[str, Any], cap: int = _VALUE_CAP) -> tuple[dict[str, Any], list[str]]:
    """The data of an answer, each of its values made safe to send; and the names of those that were cut."""
    safe: dict[str, Any] = {}
    cut: list[str] = []
    for name, value in data.items():
        outgoing = Outgoing(cap)
        safe[name] = outgoing.value(value)
        if outgoing.was_cut:
            cut.append(name)
    return safe, cut


def success_message(result: Result) -> dict[str, Any]:
    """Text and structured content, or text and images: clients drop images beside structured content."""
    images, left_out = _images(result)
    notes = [f"note: {message}" for message in result.messages]
    if left_out:
        notes.append(f"note: {left_out} image(s) were left out: the answer would be too large")
    if result.is_text_only or not result.data:
        return _message("\n".join([_safe_text(result.text), *map(_safe_text, notes)]))
    data, cut = outgoing_data(result.data)
    if cut:
        notes.append(f"note: cut, because it was too large: {', '.join(cut)}")
    # an answer that is itself a part of the data (a model's) stands above it whole, and need not be repeated
    is_answer = result.text in result.data.values()
    summary = "\n".join(map(_safe_text, [result.text if is_answer else result.summary, *notes]))
    shown = {key: data[key] for key, value in result.data.items() if not (is_answer and value == result.text)}
    text = f"{summary}\n{json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(',', ':'))}"
    if result.is_text_enough:
        text = "\n".join(map(_safe_text, [result.text, *notes]))
    links = [_link(path) for path in result.files]
    message = _message(text, [*images, *links], None if images else {"summary": summary, **data})
    return _with_failure(message, result.failure) if result.failure else message


def _with_failure(message: dict[str, Any], failure: PeekabooError) -> dict[str, Any]:
    """The message as an error, whose first text says what failed; what was done until then follows."""
    error = error_message(failure)
    return {**message, **error, "content": [*error["content"], *message["content"]]}


def _safe_text(text: str) -> str:
    return Outgoing(_VALUE_CAP).text(text)


def _images(result: Result) -> tuple[list[dict[str, Any]], int]:
    """The images that fit into one message, and how many do not."""
    images: list[dict[str, Any]] = []
    size = 0
    for number, image in enumerate(result.images):
        size += len(image.data) * 4 // 3
        if size > _IMAGES_CAP and number:
            return images, len(result.images) - number
        import base64  # only answers with images need it

        encoded = base64.b64encode(image.data).decode("ascii")
        images.append({"type": "image", "data": encoded, "mimeType": image.info.mime_type})
    return images, 0


def _link(path: Path) -> dict[str, Any]:
    """A link to a file. Without its type: LangChain makes an image block of an image's link."""
    return {"type": "resource_link", "uri": path.as_uri(), "name": encodable(path.name)}


def _message(text: str, others: Sequence[dict[str, Any]] = (), structured: Any = None) -> dict[str, Any]:
    message: dict[str, Any] = {"content": [{"type": "text", "text": text}, *others], "isError": False}
    if structured is not None:
        message["structuredContent"] = structured
    return message


def error_message(error: PeekabooError, has_result_grammar: bool = False) -> dict[str, Any]:
    """`CODE: what is wrong. Next step: ...`; `ERROR: ...` for tools with a result grammar."""
    name = encodable(error.code_name)[:100]
    text = error.message_for_model("ERROR" if has_result_grammar else name)
    return {
        "content": [{"type": "text", "text": Outgoing(_ERROR_CAP).text(text)}],
        "isError": True,
        "_meta": {"backend_error_code": name},
    }


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema without what strict clients refuse: no titles, no references, no null alternatives."""
    shared = schema.pop("$defs", {})

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            node = {**shared[node["$ref"].split("/")[-1]], **{k: v for k, v in node.items() if k != "$ref"}}
            node.setdefault("additionalProperties", False)
        node = {key: plain(value) for key, value in node.items() if key != "title" or isinstance(value, dict)}
        choices = [choice for choice in node.get("anyOf", []) if choice != {"type": "null"}]
        if "anyOf" in node and len(choices) < len(node["anyOf"]):
            node.pop("anyOf")
            node = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **node}
        if node.get("default", "") is None:
            node.pop("default")  # optional, and `null` is not a value to send
        return node

    properties: dict[str, Any] = plain({**schema, "additionalProperties": False})
    return properties
