"""Screenshot records: the choice of a record, and stale records."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Callable

import pytest
from samples import error_of, window

from peekaboo_min.automation.coordinates import find_record, save_record
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import ImageInfo, Point, Rect, Window


@pytest.fixture
def records(tmp_path: Path, environment: Callable[..., None]) -> Path:
    environment(TMPDIR=str(tmp_path))
    return tmp_path


SHOWN = window(7, bounds=Rect(10.5, -20, 300, 200))
PICTURE = ImageInfo("jpg", 600, 400)
SMALL = ImageInfo("jpg", 300, 200)


def test_record_is_found_again_and_private_to_its_owner(records: Path) -> None:
    first = save_record("x11-0", SHOWN, PICTURE)
    assert find_record("x11-0", SHOWN) == first
    kept = save_record("x11-0", SHOWN, PICTURE)
    assert find_record("x11-0", SHOWN) == kept
    assert find_record("x11-0", SHOWN, first.screenshot_id) == first
    assert len(kept.screenshot_id) == 16
    assert kept.to_point(Point(599, 0), Rect(0, 0, 300, 200)) == Point(299.5, 0)
    moved = SHOWN._replace(bounds=Rect(-500, 900, 300, 200))
    assert find_record("x11-0", moved) == kept
    # X servers of one user give out the same window ids
    assert error_of(find_record, "x11-1", SHOWN, kept.screenshot_id).code is ErrorCode.STALE_SCREENSHOT
    for path in records.rglob("record_*.json"):
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_record_of_another_scale_needs_its_id(records: Path) -> None:
    full, small = save_record("x11-0", SHOWN, PICTURE), save_record("x11-0", SHOWN, SMALL)
    for _ in range(2):
        refused = error_of(find_record, "x11-0", SHOWN)
        assert refused.code is ErrorCode.STALE_SCREENSHOT
        shown = f"{full.screenshot_id} (600x400), {small.screenshot_id} (300x200)"
        assert shown in refused.message and "take_window_screenshot" in refused.hint
        small = save_record("x11-0", SHOWN, SMALL)  # a second record of that scale stays ambiguous
    new = save_record("x11-0", SHOWN, SMALL, supersedes_older=True)
    assert find_record("x11-0", SHOWN) == new
    assert find_record("x11-0", SHOWN, full.screenshot_id) == full
    newer = save_record("x11-0", SHOWN, SMALL)
    assert find_record("x11-0", SHOWN) == newer
    save_record("x11-0", SHOWN, PICTURE)
    assert (
        new.screenshot_id not in error_of(find_record, "x11-0", SHOWN).message
    )  # only the newest of each size
    assert find_record("x11-0", SHOWN, new.screenshot_id) == new


def test_newest_record_is_found_after_the_clock_was_set_back(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, real = save_record("x11-0", SHOWN, PICTURE), time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    new = save_record("x11-0", SHOWN, SMALL, supersedes_older=True)
    assert find_record("x11-0", SHOWN) == new
    assert find_record("x11-0", SHOWN, old.screenshot_id) == old


# widths of two windows in points, widths of their images in pixels, True if both have one scale
SCALES = (
    ((1900, 1900), (1900, 1899), True),
    ((1900, 1901), (1900, 1901), True),
    ((1000, 1001), (1568, 1568), True),
    ((1575, 1575), (1575, 1568), False),
    ((300, 300), (600, 300), False),
)


def test_record_scale_may_differ_by_a_rounded_pixel(records: Path) -> None:
    for number, (points, widths, is_same) in enumerate(SCALES):
        for size, width in zip(points, widths):
            resized = window(number, bounds=Rect(0, 0, size, 600))
            kept = save_record("x11-0", resized, ImageInfo("png", width, round(600 * width / size)))
        end = kept.to_point(Point(kept.image_width, kept.image_height), resized.bounds)
        assert [*end] == pytest.approx([resized.bounds.width, 600])  # width and height have their own scales
        if is_same:
            assert find_record("x11-0", resized) == kept
        else:
            assert error_of(find_record, "x11-0", resized).code is ErrorCode.STALE_SCREENSHOT


CHANGED = {
    "wider": SHOWN._replace(bounds=Rect(10.5, -20, 302, 200)),
    "lower": SHOWN._replace(bounds=Rect(10.5, -20, 300, 190)),
    "of another app": SHOWN._replace(app_name="Mail"),
    "of another process": SHOWN._replace(pid=61),
    "of a process without an id": SHOWN._replace(pid=None),
    "in another frame": SHOWN._replace(identity="frame 9"),
    "another window": SHOWN._replace(window_id=70),
    "a window id with the same prefix": SHOWN._replace(window_id=77),
}


@pytest.mark.parametrize("changed", CHANGED.values(), ids=CHANGED.keys())
def test_record_of_another_window_is_stale(records: Path, changed: Window) -> None:
    kept = save_record("x11-0", SHOWN, PICTURE)
    assert error_of(find_record, "x11-0", changed).code is ErrorCode.STALE_SCREENSHOT
    assert error_of(find_record, "x11-0", changed, kept.screenshot_id).code is ErrorCode.STALE_SCREENSHOT


def test_record_of_another_shape_is_stale_except_for_rounding(records: Path) -> None:
    save_record("x11-0", SHOWN, ImageInfo("jpg", 600, 440))
    assert error_of(find_record, "x11-0", SHOWN).code is ErrorCode.STALE_SCREENSHOT
    # in a window 20 points high, rounding by a third of a point changes the scale by 5 %
    flat = SHOWN._replace(bounds=Rect(0, 0, 300, 20))
    kept = save_record("x11-0", flat, ImageInfo("jpg", 100, 7))
    assert find_record("x11-0", flat) == kept
    resized = SHOWN._replace(bounds=Rect(10.5, -20, 400, 300))  # a new size with a clear scale
    kept = save_record("x11-0", resized, ImageInfo("jpg", 400, 300))
    assert find_record("x11-0", resized) == kept


def test_malformed_record_id_is_refused(records: Path) -> None:
    save_record("x11-0", SHOWN, PICTURE)
    for bad in ("", "*", "../../x", "0" * 15, "0" * 17, "G" * 16, "0" * 16 + "\n", "A" * 16):
        assert error_of(find_record, "x11-0", SHOWN, bad).code is ErrorCode.INVALID_ARGUMENT, bad


def test_broken_record_is_stale(records: Path) -> None:
    kept = save_record("x11-0", SHOWN, PICTURE)
    (path,) = records.rglob("record_*.json")
    for text in ("", "{", "[]", "{}", '{"bounds": 1}', '{"bounds": {"x": 1}}', "\x00\xff", "null"):
        path.write_text(text, encoding="latin-1")
        error = error_of(find_record, "x11-0", SHOWN, kept.screenshot_id)
        assert error.code is ErrorCode.STALE_SCREENSHOT, text
