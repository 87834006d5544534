"""What changed between two looks is not acted on: a label that was read, a window with its elements."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from samples import error_of, window

from peekaboo_min.automation import find
from peekaboo_min.automation.capture import CapturedImage, Subject
from peekaboo_min.automation.coordinates import save_record
from peekaboo_min.automation.labels import Place
from peekaboo_min.core.models import ImageData, ImageInfo, Rect, Scene
from peekaboo_min.system.images import Bitmap

INFO = ImageInfo("png", 300, 200)  # of a window of the same size


@pytest.fixture
def desktop(environment: Callable[..., None], tmp_path: Path) -> Any:
    environment(TMPDIR=str(tmp_path))
    scene = Scene((window(7),), (), ())
    return SimpleNamespace(session="test", snapshot=lambda: scene, read_elements=lambda _: [])


def test_click_text_that_changed_while_it_was_read_is_refused(
    desktop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [Bitmap(300, 3, (bytes([grey] * 900),) * 200) for grey in (255, 0)]
    place = Place("Save", "Save", Rect(20, 20, 40, 20), "label", 1.0, 0.9)
    seen = find.TextSearch("Save", save_record("test", window(7), INFO), [], [place], [])
    monkeypatch.setattr(find, "take_bitmap", lambda *_: looks.pop(0))
    monkeypatch.setattr(find, "take_image", lambda *_: None)
    monkeypatch.setattr(find, "search_image", lambda *_: seen)
    error = error_of(find.click_text_in_window, desktop, 7, "Save", "left", 1, False)
    assert "changed where 'Save' was while it was read; nothing was clicked" in error.message


def test_elements_of_a_window_that_moved_meanwhile_are_refused(
    desktop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = Subject(window=window(7, bounds=Rect(10, 60, 300, 200)))
    monkeypatch.setattr(find, "take_image", lambda *_: CapturedImage(ImageData(b"", INFO), moved))
    error = error_of(find.find_elements_in_window, desktop, 7, None, None)
    assert "keeps moving" in error.message
