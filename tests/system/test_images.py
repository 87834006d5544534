"""Whole images and parts of images."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from worlds import need

from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import ImageInfo
from peekaboo_min.system.images import prepare_target, read_image_header, read_image_info, whole_image

KINDS = {"png": [], "jpg": [], "progressive jpg": ["-interlace", "JPEG"], "gif": [], "webp": []}


@pytest.mark.parametrize("name", KINDS)
def test_half_an_image_is_none(tmp_path: Path, name: str) -> None:
    need("convert")
    kind = name.split()[-1]
    path = tmp_path / f"a.{kind}"
    words = ["convert", "-size", "120x90", "plasma:fractal", *KINDS[name], str(path)]
    if subprocess.run(words, capture_output=True).returncode and kind == "webp":
        pytest.skip("this ImageMagick writes no webp")
    data, info = path.read_bytes(), ImageInfo(kind, 120, 90)
    assert (read_image_info(path), whole_image(data)) == (info, info)
    for length in (len(data) - 1, len(data) // 2, len(data) // 5):
        path.write_bytes(data[:length])
        assert (read_image_info(path), whole_image(data[:length])) == (None, None), length


def test_the_end_of_a_thumbnail_is_not_the_end_of_its_image(tmp_path: Path) -> None:
    need("convert")
    path = tmp_path / "a.jpg"
    subprocess.run(["convert", "-size", "64x64", "gradient:red-blue", str(path)], check=True)
    data = path.read_bytes()
    thumbnail = b"Exif\0\0" + data
    with_thumbnail = data[:2] + b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail + data[2:]
    assert whole_image(with_thumbnail) == ImageInfo("jpg", 64, 64)
    assert whole_image(with_thumbnail[: len(thumbnail) + 200]) is None


def test_half_an_image_may_be_overwritten_and_another_file_may_not(tmp_path: Path) -> None:
    need("convert")
    path = tmp_path / "a.png"
    subprocess.run(["convert", "-size", "64x64", "plasma:fractal", str(path)], check=True)
    path.write_bytes(path.read_bytes()[:200])
    assert read_image_header(path) == ImageInfo("png", 64, 64)
    prepare_target(path)
    path.write_text("a letter")
    with pytest.raises(PeekabooError):
        prepare_target(path)
