"""What the X11 desktop reads out of its programs' output, and what it makes of windows (pure)."""

from __future__ import annotations

# ruff: noqa: RUF001
from typing import Any

import pytest

from peekaboo_min.automation.policy import skeleton
from peekaboo_min.core.models import Rect, Scene, Window
from peekaboo_min.desktop.matching import blocking_dialog, catalogue_windows
from peekaboo_min.desktop.x11.keyboard import pieces_of


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("short", ["short"]),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
        ("a\nb\tc", ["a", "\n", "b", "\t", "c"]),
        ("a\r\nb", ["a", "\n", "b"]),
        ("日" * 21, ["日" * 20, "日"]),
        ("日" * 19 + "e\u0301" + "x", ["日" * 19, "e\u0301x"]),
    ],
)
def test_text_goes_out_in_pieces_of_at_most_twenty_characters(text: str, pieces: list[str]) -> None:
    assert list(pieces_of(text)) == pieces


def window(window_id: int, **others: Any) -> Window:
    values: dict[str, Any] = {"app_name": "Notes", "pid": 60, "bounds": Rect(0, 0, 300, 200), **others}
    return Window(window_id, title=f"w{window_id}", **values)


def scene(*windows: Window) -> Scene:
    return Scene(windows, (), ())


def test_a_declared_modal_dialog_blocks_its_parent_and_the_innermost_is_named() -> None:
    main, other = window(1), window(9)
    find_bar = window(2, kind="dialog", parent_id=1)
    dialog = window(3, kind="dialog", parent_id=1, is_modal=True)
    nested = window(4, kind="dialog", parent_id=3, is_modal=True)
    hidden = window(5, kind="dialog", parent_id=9, is_modal=True, is_on_screen=False)
    everything = scene(nested, dialog, find_bar, main, hidden, other)
    assert [blocking_dialog(one, everything) for one in (main, dialog, nested, find_bar, other)] == [
        nested, nested, None, None, None,
    ]  # fmt: skip
    round_about = [window(1, is_modal=True, parent_id=2), window(2, is_modal=True, parent_id=1)]
    assert blocking_dialog(round_about[0], scene(*round_about)) == round_about[1]


def test_the_catalogue_has_popups_after_their_owner_and_minimised_windows() -> None:
    main, back = window(1), window(2)
    menu = window(3, kind="popup", parent_id=1, layer=101, bounds=Rect(0, 0, 90, 24))
    lost = window(4, kind="popup", layer=101)
    small = window(5, is_minimised=True, is_on_screen=False)
    elsewhere = window(6, is_on_screen=False)
    nobodys = window(7, kind="popup", app_name="")
    found = catalogue_windows(scene(menu, lost, nobodys, main, back, small, elsewhere))
    assert [one.window_id for one in found] == [4, 1, 3, 2, 5]


@pytest.mark.parametrize("name", ["КeePassXC", "Ｋeepassxc", "Kee\u200bPassXC", "KÉEPASSXC", "ΚeePassXC"])
def test_names_that_look_alike_have_one_skeleton(name: str) -> None:
    assert skeleton(name) == skeleton("KeePassXC")
    assert skeleton("Form") != skeleton("Firm")
