"""Convert results, errors and schemas to messages that MCP clients accept."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

from ..core.errors import PeekabooError
from ..core.models import Result
from ..core.text import encodable

# Above 16 MB a message, Claude Code ends the connection, and Codex waits for ever.
_VALUE_CAP = 200_000  # characters of a text, and of one value of the data


def outgoing_text(text: str, cap: int = _VALUE_CAP) -> str:
    """Return the text cut to `cap` characters and encodable as UTF-8."""
    return encodable(text if len(text) <= cap else f"{text[:cap]}... (cut)")


def outgoing_data(data: Any) -> Any:
    """Convert to JSON types that UTF-8 can encode; lone surrogates become U+FFFD, NaN becomes None."""
    text = encodable(json.dumps(data, ensure_ascii=False, default=str))
    return json.loads(text, parse_constant=lambda _: None)


def success_message(result: Result) -> dict[str, Any]:
    """Return text and structured content, or text and images: clients drop images beside structured content.

    A failed result becomes an error, followed by the text and images of the part that was done.
    """
    images = _images(result)
    notes = [f"note: {message}" for message in result.messages]
    if len(images) < len(result.images):
        left_out = len(result.images) - len(images)
        notes.append(f"note: {left_out} image(s) were left out, because the result would be too large")
    data = {} if result.is_text_only else outgoing_data(result.data)
    for name, value in data.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > _VALUE_CAP:  # a value that is not a string is cut as JSON text
            data[name] = outgoing_text(text)
            notes.append(f"note: {name} is cut, because it was too large")

    # a model's answer is the result's text and a part of its data: show it once
    shown = {key: value for key, value in data.items() if result.data[key] != result.text}
    head = result.summary if data and len(shown) == len(data) else result.text
    summary = "\n".join(map(outgoing_text, [head, *notes]))
    text = summary
    if result.is_text_enough:
        text = "\n".join(map(outgoing_text, [result.text, *notes]))
    elif data:
        text += f"\n{json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(',', ':'))}"
    content = [{"type": "text", "text": text}, *images]
    message: dict[str, Any] = {"content": content, "isError": False}
    if result.is_text_only and "note" in result.data:
        message["_meta"] = {"note": result.data["note"]}
    if data and not images:
        message["structuredContent"] = {"summary": summary, **data}
    if result.failure:
        error = error_message(result.failure)
        return {**message, **error, "content": [*error["content"], *content]}
    return message


def _images(result: Result) -> list[dict[str, Any]]:
    images: list[dict[str, Any]] = []
    size = 0
    for image in result.images:
        size += len(image.data) * 4 // 3
        if size > 10_000_000 and images:
            break
        encoded = b64encode(image.data).decode("ascii")
        images.append({"type": "image", "data": encoded, "mimeType": image.info.mime_type})
    return images


def error_message(error: PeekabooError, has_result_grammar: bool = False) -> dict[str, Any]:
    """Return an error: `CODE: what is wrong. Next step: ...`, or `ERROR: ...` for a result grammar."""
    name = encodable(error.code_name)[:100]
    text = error.message_for_model("ERROR" if has_result_grammar else name)
    return {
        "content": [{"type": "text", "text": outgoing_text(text, 4_000)}],
        "isError": True,
        "_meta": {"backend_error_code": name},
    }


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove titles, references and null alternatives, which strict clients refuse, from a JSON schema."""
    shared = schema.pop("$defs", {})

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            node = {"additionalProperties": False, **shared[node.pop("$ref").split("/")[-1]], **node}
        node = {key: plain(value) for key, value in node.items() if key != "title" or isinstance(value, dict)}
        if choices := ([choice for choice in node.pop("anyOf", []) if choice != {"type": "null"}]):
            node = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **node}
        if node.get("default", "") is None:
            node.pop("default")  # an optional argument is left out, not sent as null
        return node

    properties: dict[str, Any] = plain({**schema, "additionalProperties": False})
    return properties
