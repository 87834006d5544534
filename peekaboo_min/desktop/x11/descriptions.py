"""What xprop and xwininfo know of windows, many asked in one child process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable, NamedTuple, Optional

from ...core.cancellation import in_parallel
from ...core.errors import ErrorCode, PeekabooError
from ...core.models import Rect
from ...core.text import clean_text
from ...system.process import run_program
from ...system.programs import program_path
from .server import QUERY_S, UTF8, ask_x, check_x

_SECONDS_PER_WINDOW = 0.05
_CHUNK = 20  # windows for one child; several run at once
_MOST_BYTES = 2048  # of a property: a title may be a megabyte
_PROPERTIES = (
    "WM_STATE",  # the first: `ask_properties` counts its lines
    "_NET_WM_NAME",
    "WM_NAME",
    "WM_CLASS",
    "_NET_WM_PID",
    "_NET_WM_WINDOW_TYPE",
    "_NET_WM_STATE",
    "_NET_WM_DESKTOP",
    "WM_TRANSIENT_FOR",
)


class Geometry(NamedTuple):
    """What xwininfo says of a window; `bounds` with its border, which a screenshot shows, too."""

    bounds: Rect
    border: float
    is_viewable: bool
    is_override_redirect: bool
    is_input_only: bool


@dataclass(frozen=True)
class Facts:
    """A window as the two programs describe it; `properties` as xprop prints them."""

    window_id: int
    properties: dict[str, str]
    geometry: Geometry

    @property
    def is_client(self) -> bool:
        """Whether a window manager manages it, shown or minimised."""
        return re.search(r"window state: (Normal|Iconic)", self.properties.get("WM_STATE", "")) is not None

    @property
    def class_name(self) -> str:
        names = texts_of(self.properties.get("WM_CLASS", ""))
        return clean_text(names[-1] or names[0]) if names else ""

    @property
    def pid(self) -> Optional[int]:
        return number_in(self.properties.get("_NET_WM_PID", ""))

    @property
    def parent_id(self) -> Optional[int]:
        return first_id_in(self.properties.get("WM_TRANSIENT_FOR", ""))

    def has_state(self, name: str) -> bool:
        return f"_NET_WM_STATE_{name}" in self.properties.get("_NET_WM_STATE", "")


def ask_facts(ids: Sequence[int]) -> list[Facts]:
    """What both programs know of these windows; those that are gone are left out."""
    if not ids:
        return []
    properties: dict[int, dict[str, str]] = {}
    geometries: dict[int, Geometry] = {}
    asks: list[Callable[[], None]] = [
        lambda: properties.update(ask_properties(ids)),
        lambda: geometries.update(ask_geometries(ids)),
    ]
    in_parallel(lambda ask: ask(), asks)
    return [
        Facts(one, properties[one], geometries[one])
        for one in dict.fromkeys(ids)
        if one in properties and one in geometries and not geometries[one].is_input_only
    ]


def ask_properties(ids: Sequence[int]) -> dict[int, dict[str, str]]:
    """The properties of windows, as xprop prints them; those that are gone are left out."""
    words = ["xprop", "-len", str(_MOST_BYTES), "-id", "{}", *_PROPERTIES]
    # xprop escapes line breaks: a line that starts so is its own
    blocks = _ask_each(ids, words, re.compile(rf"^{_PROPERTIES[0]}(?=[(:])", re.M))
    return {one: properties_of(block) for one, block in blocks.items()}


def ask_geometries(ids: Sequence[int]) -> dict[int, Geometry]:
    """The place and state of windows, as xwininfo prints them; those that are gone are left out."""
    blocks = _ask_each(
        ids, ["xwininfo", "-stats", "-id", "{}"], re.compile(r"^xwininfo: Window id: 0x", re.M)
    )
    return {one: _geometry(block) for one, block in blocks.items()}


def _ask_each(ids: Sequence[int], words: list[str], start: re.Pattern[str]) -> dict[int, str]:
    """One program's answer for each window; those that are gone are left out."""
    chunks = [ids[at : at + _CHUNK] for at in range(0, len(ids), _CHUNK)]
    answers: dict[int, str] = {}
    for part in in_parallel(lambda chunk: _ask_chunk(chunk, words, start), chunks):
        answers.update(part)
    return answers


def _ask_chunk(ids: Sequence[int], words: list[str], start: re.Pattern[str]) -> dict[int, str]:
    """In one child of ours: xargs starts the program for each window in turn.

    Where the answers cannot be told apart (a window closed meanwhile, a title fakes a start) each is asked
    alone.
    """
    if len(ids) > 1:
        argv = ["xargs", "-I", "{}", program_path(words[0], run_program), *words[1:]]
        lines = "".join(f"{one}\n" for one in ids).encode("ascii")
        timeout_s = QUERY_S + len(ids) * _SECONDS_PER_WINDOW
        done = run_program(argv, timeout_s=timeout_s, stdin=lines, accept=None, environment=UTF8)
        starts = [match.start() for match in start.finditer(done.text)]
        if done.code == 0 and len(starts) == len(ids):
            ends = [*starts[1:], len(done.text)]
            return {one: done.text[at:end] for one, at, end in zip(ids, starts, ends)}
        if not starts:
            _check_first(words[0])
    answers = in_parallel(lambda one: _ask_one(one, words), list(ids))
    return {one: answer for one, answer in zip(ids, answers) if answer is not None}


def _check_first(program: str) -> None:
    """Nothing at all came: raise what is wrong with the display, if something is, once and not for each
    window.
    """
    words = [program, "-root", *(["WM_NAME"] if program == "xprop" else [])]
    check_x(program, run_program(words, timeout_s=QUERY_S, accept=None, environment=UTF8))


def _ask_one(window_id: int, words: list[str]) -> Optional[str]:
    try:
        return ask_x([str(window_id) if word == "{}" else word for word in words])
    except PeekabooError as e:
        if e.code is ErrorCode.WINDOW_NOT_FOUND:
            return None
        raise


def properties_of(text: str) -> dict[str, str]:
    """xprop's output by name; what a window does not have is not in it."""
    return dict(re.findall(r"^(\w+)\(\w+\)(?: = |:\s+)(.*(?:\n\t.*)*)", text, re.M))


def _geometry(text: str) -> Geometry:
    # the title comes first and may contain anything: the last value of a name is the true one
    numbers = {key: float(value) for key, value in re.findall(r"^  ([A-Z][\w -]+):\s+(-?\d+)$", text, re.M)}
    border = numbers.get("Border width", 0.0)
    bounds = Rect(
        numbers.get("Absolute upper-left X", 0.0),
        numbers.get("Absolute upper-left Y", 0.0),
        numbers.get("Width", 0.0) + 2 * border,
        numbers.get("Height", 0.0) + 2 * border,
    )

    def last(name: str) -> str:
        return text[text.rfind(f"\n  {name}: ") :].strip().split("\n")[0]

    return Geometry(
        bounds,
        border,
        last("Map State").endswith("IsViewable"),
        last("Override Redirect State").endswith("yes"),
        last("Class").endswith("InputOnly"),
    )


def number_in(value: str) -> Optional[int]:
    """The number that a property's value starts with."""
    match = re.match(r"\d+", value)
    return int(match.group()) if match else None


def first_id_in(value: str) -> Optional[int]:
    """The first window id in a property's value; None for none, and for 0."""
    match = re.search(r"0x[0-9a-f]+", value)
    return int(match.group(), 16) or None if match else None


def texts_of(value: str) -> list[str]:
    """The strings of an xprop value, its escapes undone: `\\n`, `\\"`, and bytes as three octal digits."""
    return [_unescaped(part) for part in re.findall(r'"((?:[^"\\]|\\.)*)"', value)]


def _unescaped(text: str) -> str:
    data = bytearray()
    for octal, escaped, plain in re.findall(r"\\([0-7]{3})|\\(.)|([^\\]+)", text, re.S):
        if octal:
            data.append(int(octal, 8) & 0xFF)
        else:
            data += (" " if escaped and escaped in "nt" else escaped or plain).encode(
                "utf-8", "surrogatepass"
            )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")  # the encoding of WM_NAME's STRING
