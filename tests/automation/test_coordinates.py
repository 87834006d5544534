"""Screenshot records: the choice of a record, and stale records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from samples import error_of, window

from peekaboo_min.automation.coordinates import Screenshot, find_record, save_record
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import ImageInfo, Point, Rect, Window


@pytest.fixture
def records(tmp_path: Path, environment: Callable[..., None]) -> Path:
    environment(TMPDIR=str(tmp_path))
    return tmp_path


SHOWN = window(7, bounds=Rect(10.5, -20, 300, 200))
PICTURE = ImageInfo("jpg", 600, 400)
SMALL = ImageInfo("jpg", 300, 200)


def find(window: Window = SHOWN, screenshot_id: Optional[str] = None, session: str = "x11-0") -> Screenshot:
    return find_record(session, window, screenshot_id)


def save(info: ImageInfo = PICTURE, window: Window = SHOWN) -> Screenshot:
    return save_record("x11-0", window, info)


def is_stale(*arguments: Any) -> bool:
    return error_of(find, *arguments).code is ErrorCode.STALE_SCREENSHOT


def test_record_is_found_again_and_private_to_its_owner(records: Path) -> None:
    first, kept = save(), save()
    assert find() == kept
    assert find(SHOWN, first.screenshot_id) == first
    assert len(kept.screenshot_id) == 16
    assert kept.to_points([Point(599, 0)], Rect(0, 0, 300, 200)) == (Point(299.5, 0),)
    assert find(SHOWN._replace(bounds=Rect(-500, 900, 300, 200))) == kept  # it has moved
    # X servers of one user give out the same window ids
    assert is_stale(SHOWN, kept.screenshot_id, "x11-1")
    for path in records.rglob("record_*.json"):
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_clock_may_be_set_back_between_records(records: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, real = save(), time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    new = save_record("x11-0", SHOWN, SMALL, supersedes_older=True)
    assert find() == new
    assert find(SHOWN, old.screenshot_id) == old


# widths of two windows in points, widths of their images in pixels
@pytest.mark.parametrize(
    ("points", "widths", "has_one_scale"),
    [
        ((1900, 1900), (1900, 1899), True),
        ((1900, 1900), (1900, 1898), True),
        ((1000, 1001), (1568, 1568), True),
        ((1575, 1575), (1575, 1568), False),
    ],
)
def test_scale_may_differ_by_a_rounded_pixel(
    records: Path, points: tuple[int, int], widths: tuple[int, int], has_one_scale: bool
) -> None:
    for size, width in zip(points, widths):
        resized = window(bounds=Rect(0, 0, size, 600))
        kept = save(ImageInfo("png", width, round(600 * width / size)), resized)
    assert find(resized) == kept if has_one_scale else is_stale(resized)
    (end,) = kept.to_points([Point(kept.image_width, kept.image_height)], resized.bounds)
    assert [*end] == pytest.approx([resized.bounds.width, 600])  # width and height have their own scales


CHANGED = {
    "wider": SHOWN._replace(bounds=Rect(10.5, -20, 302, 200)),
    "lower": SHOWN._replace(bounds=Rect(10.5, -20, 300, 190)),
    "of another app": SHOWN._replace(app_name="Mail"),
    "of a process without an id": SHOWN._replace(pid=None),
    "in another frame": SHOWN._replace(identity="frame 9"),
    "a window id with the same prefix": SHOWN._replace(window_id=77),
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED.keys())
def test_record_of_another_window_is_stale(records: Path, changed: Window) -> None:
    kept = save()
    assert is_stale(changed)
    assert is_stale(changed, kept.screenshot_id)


def test_record_of_another_shape_is_stale_except_for_rounding(records: Path) -> None:
    save(ImageInfo("jpg", 600, 440))
    assert is_stale()
    # in a window 20 points high, rounding by a third of a point changes the scale by 5 %
    flat = SHOWN._replace(bounds=Rect(0, 0, 300, 20))
    assert save(ImageInfo("jpg", 100, 7), flat) == find(flat)


@pytest.mark.parametrize("bad", ["", "*", "../../x", "0" * 15, "0" * 17, "G" * 16, "0" * 16 + "\n", "A" * 16])
def test_malformed_record_id_is_refused(records: Path, bad: str) -> None:
    save()
    assert error_of(find, SHOWN, bad).code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("text", ["", "{", "[]", '{"bounds": 1}', '{"bounds": {"x": 1}}', "\x00\xff", "null"])
def test_broken_record_is_stale(records: Path, text: str) -> None:
    kept = save()
    (path,) = records.rglob("record_*.json")
    path.write_text(text, encoding="latin-1")
    assert is_stale(SHOWN, kept.screenshot_id)
