"""Rectangles, windows, texts and results as values; errors as text; exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from samples import error_of, window

from peekaboo_min.core.errors import ErrorCode, PeekabooError, file_errors, screen_locked
from peekaboo_min.core.models import (
    Act,
    Display,
    ImageInfo,
    KeyChord,
    Point,
    RecognisedText,
    Rect,
    Result,
    as_plain,
    joined,
    rect_around,
)

BASE = Rect(10, 20, 30, 40)
# the other rectangle: the common part, whether it is enclosed, whether it has the same size
PAIRS: dict[Rect, tuple[Any, bool, bool]] = {
    Rect(10, 20, 30, 40): (BASE, True, True),
    Rect(10, 20, 31, 41): (BASE, False, True),
    Rect(9, 20, 30, 40): (Rect(10, 20, 29, 40), False, True),
    Rect(10, 19, 30, 40): (Rect(10, 20, 30, 39), False, True),
    Rect(10, 20, 28.5, 40): (Rect(10, 20, 28.5, 40), True, False),
    Rect(10, 20, 30, 38.5): (Rect(10, 20, 30, 38.5), True, False),
    Rect(12, 22, 29, 39): (Rect(12, 22, 28, 38), False, True),
    Rect(12, 22, 28, 39): (Rect(12, 22, 28, 38), False, False),
    Rect(40, 20, 30, 40): (None, False, True),
    Rect(10, 60, 30, 40): (None, False, True),
    Rect(-20, 20, 30, 40): (None, False, True),
    Rect(10, -20, 30, 40): (None, False, True),
    Rect(39, 59, 5, 5): (Rect(39, 59, 1, 1), False, False),
    Rect(10, 20, 0, 0): (None, True, False),
}


@pytest.mark.parametrize("other", PAIRS)
def test_rectangles_are_compared(other: Rect) -> None:
    common = BASE.clipped(other)
    assert (common, BASE.encloses(other), BASE.has_size_of(other)) == PAIRS[other]
    assert (other.clipped(BASE), BASE.overlaps(other)) == (common, common is not None)


def test_rectangle_is_converted() -> None:
    odd = Rect(10.5, -20.25, 30, 40.5)
    assert (odd.centre, odd.middle) == (Point(25.5, 0), Point(25, 0))
    places = [(10, 20), (39.9, 59.9), (9.9, 20), (10, 19.9), (40, 20), (10, 60)]
    assert [BASE.contains(Point(*place)) for place in places] == [True] * 2 + [False] * 4
    assert odd.scaled(2) == Rect(21, -40.5, 60, 81)
    assert odd.whole() == Rect(10, -21, 31, 42)
    assert Rect(3, 4, 0, 0).whole() == Rect(3, 4, 1, 1)
    assert BASE.in_image_of(Rect(5, 10, 50, 90), 100) == Rect(10, 20, 60, 80)
    assert odd.as_data() == {"x": 10.5, "y": -20.25, "width": 30, "height": 40.5}
    assert str(Point(0.0, 1.23456).as_data()) == "{'x': 0, 'y': 1.235}"
    assert rect_around([BASE, odd, Rect(0, 50, 5, 20)]) == Rect(0, -20.25, 40.5, 90.25)


def test_values_are_shown_as_text() -> None:
    shown = window(7, " a\nb ", frame=BASE)
    assert (str(shown), shown.outer, window().outer) == ("window 7 of Notes ('a b')", BASE, window().bounds)
    assert window(title=None).shown_title == ""
    assert str(KeyChord("a", ("cmd", "shift"))) == "cmd+shift+a"
    kinds = ("png", "jpg", "gif", "webp")
    types = ["image/png", "image/jpeg", "image/gif", "image/webp"]
    assert [ImageInfo(kind, 1, 1).mime_type for kind in kinds] == types
    assert Result("3 windows:\nmore").summary == "3 windows"
    assert [Display(number, "", BASE).is_main for number in (1, 2)] == [True, False]
    assert [window(kind=kind).is_popup for kind in ("popup", "tooltip", "dialog")] == [True, True, False]
    plain = as_plain({"x": 1}), as_plain((Point(1, 2), [BASE, None]))
    assert plain == ({"x": 1}, [{"x": 1, "y": 2}, [BASE._asdict(), None]])
    default = Act("click")
    assert (default.button, default.clicks, default.direction, default.amount) == ("left", 1, "down", 3)


def test_words_are_joined_into_a_line() -> None:
    words = [RecognisedText("a", Rect(0, 5, 5, 5), 0.4), RecognisedText("b\n", Rect(9, 0, 5, 5), 0.8)]
    text, box, confidence, parts = joined(words)
    assert (text, box, parts) == ("a b", Rect(0, 0, 14, 10), tuple(words))
    assert confidence == pytest.approx(0.6)


def test_each_error_has_a_next_step() -> None:
    assert [code.name for code in ErrorCode if not code.next_step] == ["INVALID_ARGUMENT"]
    assert all(code == code.value == code.name for code in ErrorCode)


TIMEOUT, NEXT = ErrorCode.TIMEOUT, "late. Next step: increase the timeout and try again"
LOCKED = "the screen is locked, or another user is active; nothing was done"
ERRORS = [
    (PeekabooError(TIMEOUT, "late."), NEXT),
    (PeekabooError(TIMEOUT, "late", "wait"), "late. Next step: wait"),
    (PeekabooError(TIMEOUT, "late", details="a\n b"), f"{NEXT} (a b)"),
    (PeekabooError(TIMEOUT, "late", "wait", "x" * 400), f"late. Next step: wait ({'x' * 300})"),
    (PeekabooError(TIMEOUT, "late.", name="Late"), "late."),
    (PeekabooError(ErrorCode.INVALID_ARGUMENT, "bad."), "bad."),
    (
        screen_locked("nothing was done"),
        f"{LOCKED}. Next step: unlock the screen, or switch to this session",
    ),
]


@pytest.mark.parametrize(("error", "text"), ERRORS)
def test_error_is_formatted_for_a_model(error: PeekabooError, text: str) -> None:
    assert error.message_for_model("NAME") == f"NAME: {text}"


def test_error_is_formatted_as_a_sentence() -> None:
    assert PeekabooError(TIMEOUT, "late.", name="Late").sentence() == "late."
    named = PeekabooError(TIMEOUT, "late", name="Late"), PeekabooError(TIMEOUT, "late")
    assert [error.code_name for error in named] == ["Late", "TIMEOUT"]


def test_file_error_names_its_path() -> None:
    def fail(error: OSError) -> None:
        with file_errors(Path("/a")):
            raise error

    errors = error_of(fail, OSError(2, "no such file")), error_of(fail, OSError("odd"))
    assert [error.message for error in errors] == ["/a: no such file", "/a: odd"]
    assert errors[0].code is ErrorCode.FILE_IO_ERROR
