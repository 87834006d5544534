"""The requests to a fake model, and the functions (brains) that answer them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from .images import ReceivedImage


@dataclass
class Request:
    """One HTTP request as received, with text and images of all messages in order."""

    vendor: str  # "" for an unknown path
    path: str  # without the query
    query: dict[str, list[str]]
    headers: dict[str, str]  # lower-case names
    raw: bytes
    body: Any = None  # the JSON body; None when there is none or it is not JSON
    model: str = ""
    prompt: str = ""
    system: str = ""
    schema: Optional[dict[str, Any]] = None
    images: list[ReceivedImage] = field(default_factory=list)
    at: float = field(default_factory=time.monotonic)
    refusal: str = ""  # the vendor's error text, when there was one

    @property
    def is_question(self) -> bool:
        """Return True if it asks a model, rather than for a list or description of models."""
        paths = ("/api/generate", "/v1/chat/completions", "/v1/messages")
        return self.path in paths or self.path.endswith(":generateContent")


@dataclass(frozen=True)
class Reply:
    """A brain's reply. finish: stop, length (cut off), refused (the model), blocked (the vendor's filter)."""

    text: str
    tokens_in: int = 1200
    tokens_out: int = 34
    finish: str = "stop"
    thinking: str = ""  # sent where the vendor sends it, never part of the answer
    pieces: int = 1  # the vendors that answer with a list of parts cut the text into so many

    def parts(self) -> list[str]:
        step = max(1, -(-len(self.text) // max(1, self.pieces)))
        return [self.text[at : at + step] for at in range(0, len(self.text), step)]


Brain = Callable[[Request], Union[str, dict[str, Any], Reply]]


def see(request: Request) -> Union[str, dict[str, Any]]:
    """Describe the images, or fill in the schema (the default brain)."""
    if request.schema:
        return dict(example_of(request.schema))
    seen = [f"a {image.width}x{image.height} {image.real_type}" for image in request.images]
    return "I see " + (", ".join(seen) or "nothing")


def example_of(schema: dict[str, Any]) -> Any:
    """Return about the smallest value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    kind = (kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        return {name: example_of(part) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "integer": 0, "number": 0, "boolean": False}.get(kind, "text")


def script(replies: Iterable[Union[str, dict[str, Any], Reply, Brain]]) -> Brain:
    """Return a brain that gives these replies in turn; one more question fails the test at its end."""
    left = deque(replies)

    def next_line(request: Request) -> Union[str, dict[str, Any], Reply]:
        if not left:
            message = f"the script is over, but {request.vendor} was asked: {request.prompt[:200]!r}"
            raise AssertionError(message)
        line = left.popleft()
        return line(request) if callable(line) else line

    return next_line


def _smart_size(width: int, height: int, least: int) -> tuple[int, int]:
    """Resize like Qwen2.5-VL's smart_resize: whole patches of 28 pixels, at least `least` pixels."""
    size = round(width / 28) * 28, round(height / 28) * 28
    if size[0] * size[1] < least:
        beta = (least / (width * height)) ** 0.5
        size = math.ceil(width * beta / 28) * 28, math.ceil(height * beta / 28) * 28
    return size


CONVENTIONS: dict[str, Callable[[int, int], tuple[float, float]]] = {
    "pixels": lambda width, height: (width, height),
    "thousandths": lambda width, height: (1000, 1000),
    "28-px smart size": lambda width, height: _smart_size(width, height, 4 * 28 * 28),
    "1024-token size": lambda width, height: _smart_size(width, height, 1024 * 28 * 28),
    "1.3x": lambda width, height: (1.3 * width, 1.3 * height),
    "shares": lambda width, height: (1, 1),
}
"""The size in which a model counts over an image of this size, whatever it was asked for."""


def pointer(convention: str, truth: Callable[[Request], tuple[float, float]]) -> Brain:
    """Return a brain that clicks at `truth`, given as shares of the last image's size."""

    def click(request: Request) -> dict[str, Any]:
        seen = request.images[-1]
        sizes = CONVENTIONS[convention](seen.width, seen.height)
        digits = 3 if convention == "shares" else None
        place = {axis: round(share * size, digits) for axis, share, size in zip("xy", truth(request), sizes)}
        unused = dict.fromkeys(("button", "clicks", "text", "key", "modifiers", "confidence"))
        return {**unused, **place, "action": "click", "done": False, "why": "there"}

    return click
