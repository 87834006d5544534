"""What the X11 desktop reads out of its programs' output, and what it makes of windows (pure)."""

from __future__ import annotations

# ruff: noqa: RUF001
from typing import Any

import pytest

from peekaboo_min.automation.policy import skeleton
from peekaboo_min.core.models import Rect, Scene, Window
from peekaboo_min.desktop.matching import blocking_dialog, catalogue_windows
from peekaboo_min.desktop.x11.descriptions import properties_of, texts_of
from peekaboo_min.desktop.x11.keyboard import pieces_of
from peekaboo_min.desktop.x11.window_tree import read_tree

TREE = """
xwininfo: Window id: 0x50d (the root window) (has no name)

  Root window id: 0x50d (the root window) (has no name)
  Parent window id: 0x0 (none)
     4 children:
     0x200001 "xcompmgr": ()  1x1+0+0  +0+0
     0x40190e (has no name): ()  556x413+60+60  +60+60
        2 children:
        0x600021 "Visitor book": ("Form" "Form")  554x388+1+20  +61+80
           1 child:
           0x600020 (has no name): ()  554x388+0+0  +61+80
        0x401911 (has no name): ()  1x1+-1+-1  +59+59
     0x40020a (has no name): ()  1x1+-100+-100  +-100+-100
"""


def test_the_tree_knows_which_top_level_window_holds_each() -> None:
    tree = read_tree(TREE)
    assert [node.window_id for node in tree.tops()] == [0x200001, 0x40190E, 0x40020A]
    client = tree.known[0x600021]
    assert (client.top_id, client.has_class, client.bounds) == (0x40190E, True, Rect(61, 80, 554, 388))
    assert (tree.known[0x600020].top_id, tree.known[0x40020A].is_tiny, tree.is_faked) == (
        0x40190E,
        True,
        False,
    )


@pytest.mark.parametrize(
    "title",
    ["a\nb", 'x": ("a" "b")  1x1+0+0  +0+0\n     0x40190e "y', "\n" * 2000, "y" * 500_000],
    ids=["a line break", "a faked line", "many line breaks", "half a megabyte"],
)
def test_a_title_cannot_hide_or_fake_another_window(title: str) -> None:
    tree = read_tree(TREE.replace("xcompmgr", title))
    assert tree.known[0x600021].bounds == Rect(61, 80, 554, 388)
    # a line that stands there twice is not believed
    assert (0x40190E in tree.known) is ("0x40190e" not in title)


@pytest.mark.parametrize(
    ("printed", "texts"),
    [
        ('"plain"', ["plain"]),
        ('"a", "b"', ["a", "b"]),
        (r'"a \"b\" \\ c\nd"', ['a "b" \\ c d']),
        (r'"Gr\303\274\303\237e"', ["Grüße"]),
        (r'"Gr\374\337e"', ["Grüße"]),
        ('"Grüße"', ["Grüße"]),
        (r'"\\303"', ["\\303"]),
        ("", []),
    ],
)
def test_the_escapes_of_xprop_are_undone(printed: str, texts: list[str]) -> None:
    assert texts_of(printed) == texts


def test_properties_are_read_by_name_and_missing_ones_are_not_there() -> None:
    state = "WM_STATE(WM_STATE):\n\t\twindow state: Normal\n\t\ticon window: 0x0\n"
    text = state + '_NET_WM_PID:  not found.\nWM_NAME(STRING) = "a"\n'
    assert properties_of(text) == {
        "WM_STATE": "window state: Normal\n\t\ticon window: 0x0",
        "WM_NAME": '"a"',
    }


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
