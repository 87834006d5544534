"""Saved images, as a server remembers them."""

from __future__ import annotations

from pathlib import Path

from peekaboo_min.system.saved_images import note_saved, saved_images


def test_only_the_newest_thousand_saved_images_are_remembered(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.png" for number in range(1001)]
    for path in paths:
        path.touch()
    note_saved(paths)
    assert [path for path, _ in saved_images()] == paths[:0:-1]
    note_saved(paths[1:2])
    assert next(saved_images())[0] == paths[1], "a file that is saved again is the newest"
