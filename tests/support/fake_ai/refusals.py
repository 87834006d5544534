"""A vendor's errors in its own shape and words; and what every vendor checks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Optional

from .brains import Request
from .loopback import Refusal


@dataclass(frozen=True)
class Errors:
    """The errors of one vendor, as people report them."""

    body: Callable[[int, str, str], Any]  # status, message, kind: the JSON body
    kinds: dict[str, tuple[int, str]]  # the failures that a test may order: status and text

    def refusal(self, message: str, status: int = 400, kind: str = "") -> Refusal:
        return Refusal(status, self.body(status, message, kind), message)

    def of(self, kind: str, model: str, text: str = "", status: Optional[int] = None) -> Refusal:
        """One of the kinds. text, status: instead of its own."""
        usual_status, usual_text = self.kinds[kind]
        return self.refusal(text or usual_text.format(model=model), status or usual_status, kind)


def json_body(
    errors: Errors, request: Request, not_json: str, wrong_type: str, type_status: int = 400
) -> dict[str, Any]:
    if request.method != "POST":
        raise errors.refusal("Method Not Allowed", 405)
    if wrong_type and not request.headers.get("content-type", "").startswith("application/json"):
        raise errors.refusal(wrong_type, type_status)  # urllib's default is form-urlencoded
    if not isinstance(request.body, dict):
        raise errors.refusal(not_json)
    return request.body


def decode(data: Any) -> Optional[bytes]:
    """Standard base64 with its padding; None when it is something else."""
    try:
        return base64.b64decode(data, validate=True) or None
    except (binascii.Error, ValueError, TypeError):
        return None


def schemas(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every sub-schema of a JSON schema, with where it stands."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from schemas(part, (*path, "properties", name))
    yield from schemas(schema.get("items"), (*path, "items"))
    for at, part in enumerate(schema.get("anyOf", [])):
        yield from schemas(part, (*path, "anyOf", str(at)))
