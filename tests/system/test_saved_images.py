"""Saved images, as a server remembers them."""

from __future__ import annotations

from pathlib import Path

from samples import error_of

from peekaboo_min.core.models import ImageInfo
from peekaboo_min.system.bitmaps import Bitmap
from peekaboo_min.system.saved_images import kind_by_name, note_saved, read_saved_image, saved_images


def test_only_the_newest_thousand_saved_images_are_remembered(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(1001)]
    for path in paths:
        path.touch()
    note_saved(paths)
    assert [path for path, _ in saved_images()] == paths[:0:-1]
    note_saved(paths[1:2])
    assert next(saved_images())[0] == paths[1], "a file that is saved again is the newest"


def test_saved_image_is_read_by_its_uri_quoted_or_not(tmp_path: Path) -> None:
    path = tmp_path / "a b.png"
    path.write_bytes(Bitmap(1, 3, (b"bgr",)).as_png())
    note_saved([path])
    images = [read_saved_image(uri) for uri in (path.as_uri(), f"file://{path}")]
    assert [(image.info, image.label) for image in images] == [(ImageInfo("png", 1, 1), path.name)] * 2


def test_kind_by_name_is_one_that_every_desktop_can_save() -> None:
    assert kind_by_name(Path("A.JPEG")) == "jpg"
    assert error_of(kind_by_name, Path("a.gif")).hint == "end the path in .png or .jpg"
