"""What changed between two looks is not acted on: a label that was read, a window with its elements."""

from __future__ import annotations

from typing import Any

import pytest
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment

from peekaboo_min.automation import find
from peekaboo_min.core.models import Rect
from peekaboo_min.system.images import Bitmap


def test_click_text_that_changed_while_it_was_read_is_refused(
    mac: FakeMac, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [Bitmap(960, 3, (bytes([grey] * 3 * 960),) * 720) for grey in (255, 0)]
    monkeypatch.setattr(find, "take_bitmap", lambda *_: looks.pop(0))
    error = InProcessProgram(mac_environment(mac)).error("click-text", 1090, "Twice")
    assert (error["code"], mac.events("click")) == ("STALE_SCREENSHOT", [])


def test_elements_of_a_window_that_moved_meanwhile_are_refused(
    mac: FakeMac, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_image = find.take_image

    def take_moved(*arguments: Any) -> Any:
        image = take_image(*arguments)
        assert image.subject.window
        moved = image.subject.window._replace(bounds=Rect(300, 300, 480, 360))
        return image._replace(subject=image.subject._replace(window=moved))

    monkeypatch.setattr(find, "take_image", take_moved)
    error = InProcessProgram(mac_environment(mac)).error("elements", 1090)
    assert "keeps moving" in error["message"]
