"""Results, errors and schemas as MCP messages, as real clients need them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import PeekabooError
from ..core.models import Result
from ..system.images import read_image_info


def success_message(result: Result) -> dict[str, Any]:
    """Text and structured content, or text and images: never images beside structured content (clients drop them)."""
    notes = [f"note: {message}" for message in result.messages]
    if result.is_text_only or not result.data:
        return _message("\n".join([result.text, *notes]))
    # an answer that is itself a part of the data (a model's) stands above it whole, and need not be said twice
    is_answer = result.text in result.data.values()
    summary = "\n".join([result.text if is_answer else result.summary, *notes])
    shown = {key: value for key, value in result.data.items() if not (is_answer and value == result.text)}
    text = f"{summary}\n{json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}"
    images = [
        {"type": "image", "data": base64.b64encode(one.data).decode("ascii"), "mimeType": one.info.mime_type}
        for one in result.images
    ]
    links = [_link(path) for path in result.files]
    return _message(text, [*images, *links], None if images else {"summary": summary, **result.data})


def _link(path: Path) -> dict[str, Any]:
    info = read_image_info(path)
    kind = info.mime_type if info else "application/octet-stream"
    return {"type": "resource_link", "uri": path.as_uri(), "name": path.name, "mimeType": kind}


def _message(text: str, others: Sequence[dict[str, Any]] = (), structured: Any = None) -> dict[str, Any]:
    message: dict[str, Any] = {"content": [{"type": "text", "text": text}, *others], "isError": False}
    if structured is not None:
        message["structuredContent"] = structured
    return message


def error_message(error: PeekabooError, speaks_grammar: bool = False) -> dict[str, Any]:
    """`CODE: what is wrong. Next step: ...`; where a tool's answers have a grammar of their own, `ERROR: ...`."""
    return {
        "content": [
            {"type": "text", "text": error.message_for_model("ERROR" if speaks_grammar else error.code_name)}
        ],
        "isError": True,
        "_meta": {"backend_error_code": error.code_name},
    }


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema without what strict clients stumble over: no titles, no references, no null alternatives."""
    shared = schema.pop("$defs", {})

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(one) for one in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            node = {**shared[node["$ref"].split("/")[-1]], **{k: v for k, v in node.items() if k != "$ref"}}
            node.setdefault("additionalProperties", False)
        node = {key: plain(value) for key, value in node.items() if key != "title" or isinstance(value, dict)}
        choices = [one for one in node.get("anyOf", []) if one != {"type": "null"}]
        if "anyOf" in node and len(choices) < len(node["anyOf"]):
            node.pop("anyOf")
            node = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **node}
        if node.get("default", "") is None:
            node.pop("default")  # optional, and `null` is not a value to send
        return node

    return plain({**schema, "additionalProperties": False})
