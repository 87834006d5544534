"""Results, errors and schemas as MCP messages, as real clients need them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import PeekabooError
from ..core.models import Result
from ..core.text import encodable

# Clients end the connection at 16 MB a message (Claude Code) or wait for ever (Codex).
_VALUE_CAP = 200_000  # characters of one value of the data, and of the text
_IMAGES_CAP = 10_000_000  # characters of base64
_ERROR_CAP = 4_000
_CUT = "... (cut)"


def outgoing_text(text: str, cap: int = _VALUE_CAP) -> str:
    """The text as UTF-8 can hold it, and no longer than a client takes."""
    return encodable(text if len(text) <= cap else text[:cap] + _CUT)


def outgoing_data(data: dict[str, Any], cap: int = _VALUE_CAP) -> tuple[dict[str, Any], list[str]]:
    """The data of an answer as JSON and UTF-8 can hold it: U+FFFD for lone surrogates, None for NaN; and the
    names of the values that were cut. What is no text is cut as the text of its JSON.
    """
    safe: dict[str, Any] = {}
    cut: list[str] = []
    for name, value in data.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if len(text) > cap:
            cut.append(name)
        if len(text) > cap or isinstance(value, str):
            safe[name] = outgoing_text(text, cap)
        else:
            safe[name] = json.loads(encodable(text), parse_constant=lambda _: None)
    return safe, cut


def success_message(result: Result) -> dict[str, Any]:
    """Text and structured content, or text and images: clients drop images beside structured content."""
    images, left_out = _images(result)
    notes = [f"note: {message}" for message in result.messages]
    if left_out:
        notes.append(f"note: {left_out} image(s) were left out: the answer would be too large")
    if result.is_text_only or not result.data:
        return _message(_lines(result.text, notes))
    data, cut = outgoing_data(result.data)
    if cut:
        notes.append(f"note: cut, because it was too large: {', '.join(cut)}")
    # an answer that is itself a part of the data (a model's) stands above it whole, and need not be repeated
    is_answer = result.text in result.data.values()
    summary = _lines(result.text if is_answer else result.summary, notes)
    shown = {key: data[key] for key, value in result.data.items() if not (is_answer and value == result.text)}
    text = f"{summary}\n{json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(',', ':'))}"
    if result.is_text_enough:
        text = _lines(result.text, notes)
    blocks = [*images, *map(_link, result.files)]
    message = _message(text, blocks, None if images else {"summary": summary, **data})
    if result.failure:  # its first text says what failed; what was done until then follows
        error = error_message(result.failure)
        return {**message, **error, "content": [*error["content"], *message["content"]]}
    return message


def _lines(text: str, notes: Sequence[str]) -> str:
    return "\n".join(map(outgoing_text, [text, *notes]))


def _images(result: Result) -> tuple[list[dict[str, Any]], int]:
    """The images that fit into one message, and how many do not."""
    images: list[dict[str, Any]] = []
    size = 0
    for number, image in enumerate(result.images):
        size += len(image.data) * 4 // 3
        if size > _IMAGES_CAP and number:
            return images, len(result.images) - number
        encoded = b64encode(image.data).decode("ascii")
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
        "content": [{"type": "text", "text": outgoing_text(text, _ERROR_CAP)}],
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
