"""Describe a vendor's JSON as data, and explain how other JSON differs from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

TEXT = re.compile(".+", re.DOTALL)


def problem_in(value: Any, shape: Any, where: str = "body") -> str:
    """Return how and where a JSON value differs from a shape; empty if it fits.

    shape: {name: shape} for an object without other fields, where `name!` is required; [shape] for a list of
    at least one; a tuple of alternatives; a type; a pattern of the whole text; a function that returns the
    problem; else the value itself.
    """
    if isinstance(shape, tuple):
        problems = [problem_in(value, each, where) for each in shape]
        return "" if "" in problems else problems[-1]
    if isinstance(shape, (dict, list)) and not (value and isinstance(value, type(shape))):
        return f"{where}: expected a {type(shape).__name__} that is not empty"
    if isinstance(shape, list):
        problems = [problem_in(each, shape[0], f"{where}[{at}]") for at, each in enumerate(value)]
    elif isinstance(shape, dict):
        known = {name.rstrip("!"): part for name, part in shape.items()}
        problems = [f"{where}.{name}: unknown field" for name in value if name not in known]
        missing = [name[:-1] for name in shape if name.endswith("!") and name[:-1] not in value]
        problems += [f"{where}.{name}: field required" for name in missing]
        given = [name for name in known if name in value]
        problems += [problem_in(value[name], known[name], f"{where}.{name}") for name in given]
    elif isinstance(shape, type):
        return "" if isinstance(value, shape) else f"{where}: expected {shape.__name__}"
    elif isinstance(shape, re.Pattern):
        fits = isinstance(value, str) and shape.fullmatch(value)
        return "" if fits else f"{where}: expected a text like {shape.pattern}"
    elif callable(shape):
        problem = shape(value)
        return f"{where}: {problem}" if problem else ""
    else:
        return "" if value == shape else f"{where}: expected {shape!r}"
    return next(filter(None, problems), "")


_UNSUPPORTED = {
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "string": ("maxLength", "minLength"),
    "array": ("maxItems", "uniqueItems"),
}


def strict_schema(schema: Any) -> str:
    """Return the parts that OpenAI does not enforce: an open object, or an optional property."""
    for part in _schemas(schema):
        missing = [name for name in part.get("properties", {}) if name not in part.get("required", [])]
        if part.get("type") == "object" and missing:
            return f"'required' has to include every property. Missing '{missing[0]}'"
    return closed_schema(schema)


def limitless_schema(schema: Any) -> str:
    """Return the parts that Anthropic does not enforce: an open object, or a limit."""
    for part in _schemas(schema):
        kind = part.get("type")
        for name in _UNSUPPORTED.get("number" if kind == "integer" else str(kind), ()):
            if name in part:
                return f"for '{kind}' type, {name} is not supported"
    return closed_schema(schema)


def closed_schema(schema: Any) -> str:
    for part in _schemas(schema):
        if part.get("type") == "object" and part.get("additionalProperties") is not False:
            return "'additionalProperties' must be false"
    return ""


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a JSON schema and all schemas in it."""
    if isinstance(schema, dict):
        yield schema
        for part in (*schema.get("properties", {}).values(), schema.get("items")):
            yield from _schemas(part)
