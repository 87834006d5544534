"""Names of the files that we write."""

from __future__ import annotations

from pathlib import Path

import pytest

from peekaboo_min.system.files import file_name

NAMES = {
    "plain": ("Notes", "Notes.png"),
    "slashes and spaces": ("a/b\\c d:e", "a_b_c_d_e.png"),
    "a path upwards": ("../../etc/passwd", "etc_passwd.png"),
    "a hidden file": (".bashrc", "bashrc.png"),
    "nothing": ("", "window.png"),
    "only dots": ("...", "window.png"),
    "only blanks": (" \n\t ", "window.png"),
    "a newline and an escape": ("a\n\x1b[31mb", "a_[31mb.png"),
    "direction characters": ("gnp.\u202egpj", "gnp._gpj.png"),
    "what a shell reads": ('a*?"<>|b', "a_b.png"),
    "a NUL": ("a\0b", "a_b.png"),
    "accents": ("Grüße", "Grüße.png"),
    "emoji": ("😀 party", "😀_party.png"),
}


@pytest.mark.parametrize(("stem", "name"), NAMES.values(), ids=NAMES.keys())
def test_a_picture_gets_a_name_that_every_file_system_takes(tmp_path: Path, stem: str, name: str) -> None:
    assert file_name(stem, "png") == name
    (tmp_path / name).write_bytes(b"")


@pytest.mark.parametrize("character", ["x", "é", "日", "😀"])
@pytest.mark.parametrize("start", ["", "a", "ab", "abc"])
def test_a_long_name_is_cut_to_255_bytes_between_characters(
    tmp_path: Path, character: str, start: str
) -> None:
    name = file_name(start + character * 300, "png")
    assert name == start + character * ((251 - len(start)) // len(character.encode())) + ".png"
    assert len(name.encode()) <= 255
    (tmp_path / name).write_bytes(b"")


def test_the_last_lone_half_of_a_character_does_not_break_a_name() -> None:
    assert file_name("a\ud800b", "png") == "a_b.png"
