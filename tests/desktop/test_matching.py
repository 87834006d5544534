"""Matching of names to apps and windows, the windows worth listing, and the window at a point."""

from __future__ import annotations

from typing import Any, Optional

import pytest
from samples import app, error_of, window

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import App, Rect, Scene
from peekaboo_min.desktop.matching import (
    X_CLIENT_BITS,
    cover_of,
    find_app,
    find_window,
    visible_windows,
    window_named,
    windows_of,
)

# apps -------------------------------------------------------------------------------------------------------

CHROME = app("Google Chrome", 10, "com.google.Chrome", window_count=2)
CHROME_HELPER = app("Google Chrome Helper (Renderer)", 11, "com.google.Chrome.helper", is_regular=False)
CODE = app("Visual Studio Code", 20, "com.microsoft.VSCode", window_count=1)
CALCULATOR = app("Calculator", 30, "com.apple.calculator", window_count=1)
CALENDAR = app("Calendar", 31, "com.apple.iCal", window_count=1)
SAFARI = app("Safari", 40, "com.apple.Safari", window_count=1)
SAFARI_PREVIEW = app("Safari Technology Preview", 41, "com.apple.SafariTechnologyPreview")
AGENT = app("CoreServicesUIAgent", 50, "com.apple.coreservices.uiagent", is_regular=False)
XTERM = app("XTerm")
NOTES = app("Notes", 60, "com.apple.Notes", window_count=1)
APPS = [CHROME_HELPER, CHROME, CODE, CALCULATOR, CALENDAR, SAFARI, SAFARI_PREVIEW, AGENT, XTERM, NOTES]

FOUND = {
    "spaces around": ("  Notes ", NOTES), "a misspelling": ("Chromee", CHROME),
    "a short form": ("VSCode", CODE), "four letters of a bundle id": ("iCal", CALENDAR),
    "a process id": ("pid: 31 ", CALENDAR), "a helper by its process id": ("PID:11", CHROME_HELPER),
    "an agent by its bundle id": ("com.apple.coreservices.uiagent", AGENT),
}  # fmt: skip


@pytest.mark.parametrize(("identifier", "expected"), FOUND.values(), ids=FOUND)
def test_find_app_accepts_names_ids_and_misspellings(identifier: str, expected: App) -> None:
    assert find_app(identifier, APPS) == expected
    assert find_app(identifier, APPS[::-1]) == expected
    assert identifier == "Chromee" or find_app(identifier, APPS, acts=True) == expected


def test_find_app_takes_the_best_match_first() -> None:
    best_first = [
        app("note"), app("NOTE"), app("Other", bundle_id="Note"), app("Notebook"), app("My Notes"),
        app("Keynote"), app("Last", bundle_id="org.note"),
    ]  # fmt: skip
    for at, expected in enumerate(best_first):
        assert find_app("note", best_first[at:]) == find_app("note", best_first[at:][::-1]) == expected


NOT_FOUND = {
    "nothing": (" \t", ErrorCode.INVALID_ARGUMENT),
    "a word for a process id": ("PID:abc", ErrorCode.INVALID_ARGUMENT),
    "the start of a process id": ("PID:3", ErrorCode.APP_NOT_FOUND),
    "a long name": ("x" * 500, ErrorCode.APP_NOT_FOUND),
    "three letters of a bundle id": ("com", ErrorCode.APP_NOT_FOUND),
    "the start of an agent's name": ("CoreServ", ErrorCode.APP_NOT_FOUND),
    "Cal, which two begin with": ("Cal", ErrorCode.AMBIGUOUS_APP_IDENTIFIER),
}  # fmt: skip


@pytest.mark.parametrize(("identifier", "code"), NOT_FOUND.values(), ids=NOT_FOUND)
def test_find_app_refuses_names_of_no_app_or_several(identifier: str, code: ErrorCode) -> None:
    error = error_of(find_app, identifier, APPS)
    assert (error.code, bool(error.hint), len(error.message) < 200) == (code, True, True)


def test_find_app_names_two_equally_close_apps() -> None:
    error = error_of(find_app, "Notas", [app("Notes", 1, window_count=1), app("Notos", 2, window_count=1)])
    assert error.code is ErrorCode.AMBIGUOUS_APP_IDENTIFIER
    assert "Notes" in error.hint and "Notos" in error.hint


@pytest.mark.parametrize("identifier", ["Chromee", "Safary", "Calculater", "Notas"])
def test_find_app_never_guesses_for_an_act(identifier: str) -> None:
    guessed = find_app(identifier, APPS)
    error = error_of(find_app, identifier, APPS, acts=True)
    assert (error.code, guessed.name in error.hint) == (ErrorCode.APP_NOT_FOUND, True)


def test_find_app_names_the_nearest() -> None:
    error = error_of(find_app, "Noets App", APPS)
    assert "Notes" in error.hint
    for identifier, apps in (("x", []), ("Photoshop", APPS)):
        assert error_of(find_app, identifier, apps).hint == "open it first"


def test_find_app_prefers_the_process_with_windows() -> None:
    two = [app("Notes", 1), app("Notes", 2, window_count=1)]
    assert find_app("notes", two) == two[1]
    both = [app("Notes", 1, window_count=1), app("Notes", 2, window_count=1)]
    assert error_of(find_app, "notes", both).code is ErrorCode.AMBIGUOUS_APP_IDENTIFIER
    other = [app("Notepad"), app("Notebook", window_count=1)]
    assert error_of(find_app, "note", other).code is ErrorCode.AMBIGUOUS_APP_IDENTIFIER
    assert find_app("notes", [app("Notes", 1, is_regular=False), app("Notes", 2)]).pid == 2


def test_errors_name_ten_candidates_each_once() -> None:
    many = [window(number, f"Draft {number}", app_name=f"Draft {number}", pid=number) for number in range(12)]
    apps = [app(each.app_name, each.pid) for each in many]
    errors = [
        error_of(find_app, "draft", apps), error_of(find_window, NOTES, many, "x" * 500),
        error_of(window_named, "draft", Scene(tuple(many), (), ()), True),
    ]  # fmt: skip
    assert [error.hint.count("Draft") for error in errors] == [10, 10, 10]
    assert max(len(error.message) for error in errors) < 200
    assert error_of(find_app, "Noets", [NOTES, NOTES._replace(pid=61)], acts=True).hint.count("Notes") == 1


# windows ----------------------------------------------------------------------------------------------------

TITLED = [window(1, "Shopping list"), window(2, "List"), window(3, None), window(4, "shopping")]


WANTED: list[tuple[Optional[str], Optional[int], int]] = [
    ("List", None, 2),
    (" SHOPPING ", None, 4),
    ("ping l", None, 1),
    (None, 0, 1),
    (None, 3, 4),
]


@pytest.mark.parametrize(("title", "index", "expected"), WANTED)
def test_find_window_prefers_an_exact_title_or_uses_the_index(
    title: Optional[str], index: Optional[int], expected: int
) -> None:
    assert find_window(NOTES, TITLED, title, index).window_id == expected


@pytest.mark.parametrize(("title", "index"), [("letter", None), ("none", None), (None, 4)])
def test_find_window_names_the_existing_windows(title: Optional[str], index: Optional[int]) -> None:
    error = error_of(find_window, NOTES, TITLED, title, index)
    assert error.code is ErrorCode.WINDOW_NOT_FOUND
    assert "'Shopping list', 'List'" in error.hint


def test_find_window_refuses_a_negative_index_and_no_windows() -> None:
    assert error_of(find_window, NOTES, TITLED, None, -1).code is ErrorCode.INVALID_ARGUMENT
    assert error_of(find_window, NOTES, []).code is ErrorCode.WINDOW_NOT_FOUND
    assert error_of(find_window, NOTES, TITLED[:2], " ").code is ErrorCode.WINDOW_NOT_FOUND


@pytest.mark.parametrize(
    ("others", "is_listed"),
    [
        ({}, True),
        ({"title": ""}, True),
        ({"layer": 25}, False),
        ({"layer": 3, "is_modal": True}, True),
        ({"alpha": 0.0}, False),
        ({"bounds": Rect(0, 0, 49, 200)}, False),
        ({"bounds": Rect(0, 0, 50, 50)}, True),
        ({"app_name": ""}, False),
        ({"bundle_id": "com.apple.dock"}, False),
    ],
)
def test_list_leaves_out_invisible_tiny_and_system_windows(others: dict[str, Any], is_listed: bool) -> None:
    assert bool(visible_windows([window(**others)])) is is_listed


def test_windows_of_an_app_without_a_pid_share_its_x_client() -> None:
    xterm = 2 << X_CLIENT_BITS
    windows = [
        window(1, pid=None),
        window(2, pid=60),
        window(xterm, pid=None, app_name="XTerm"),
        window(xterm + 1, pid=None, app_name="Toplevel"),
        window(xterm + 2, pid=60, app_name="XTerm"),
    ]
    assert windows_of(XTERM, windows) == windows[2:4]
    assert windows_of(NOTES, windows) == [windows[1], windows[4]]


def test_cover_at_a_point_is_the_frontmost_visible_frame() -> None:
    front = window(1, app_name="Mail", pid=2, bounds=Rect(10, 30, 50, 50), frame=Rect(10, 10, 50, 70))
    clear = window(2, app_name="Veil", pid=3, bounds=Rect(0, 0, 500, 500), alpha=0.0)
    gone = window(4, app_name="Gone", pid=4, bounds=Rect(0, 0, 500, 500), is_on_screen=False)
    back = window(3, bounds=Rect(0, 0, 500, 500))
    windows = [front, clear, gone, back]
    places = [(10, 10), (59.5, 79.5), (60, 30), (9, 30), (499, 499), (500, 0)]
    covers = [cover_of(Rect(x, y, 1e-6, 1e-6), back, windows) for x, y in places]
    assert covers == [front, front, None, None, None, None]
    assert cover_of(Rect(20, 20, 1e-6, 1e-6), front, windows) is None


# name, whether the command acts, window id or error code
NAMED = [
    (" Notes.TXT ", True, 1), ("ote", False, 1), ("ote", True, ErrorCode.WINDOW_NOT_FOUND),
    ("editor", True, 5), ("a menu", True, ErrorCode.WINDOW_NOT_FOUND),
    (" ", True, ErrorCode.WINDOW_NOT_FOUND), ("ghost", False, ErrorCode.WINDOW_NOT_FOUND),
    ("org.example.maps", True, 11), ("maps", True, ErrorCode.AMBIGUOUS_APP_IDENTIFIER),
    ("reader", True, 13), ("chap", True, 13), ("cha", True, ErrorCode.WINDOW_NOT_FOUND), ("cha", False, 13),
    ("term", True, 16), ("sheets", True, 14), ("x" * 500, True, ErrorCode.WINDOW_NOT_FOUND),
]  # fmt: skip


SCENE = Scene(
    (
        window(1, app_name="Mousepad", pid=1, title="notes.txt"),
        window(2, app_name="Firefox", pid=2, title="Mousepad - docs and inbox"),
        window(4, app_name="Editor", pid=4, title="a.txt"),
        window(5, app_name="Dialog", pid=4, title="Save?", is_modal=True, parent_id=4),
        window(6, app_name="Terminal", pid=6, title="~"),
        window(8, app_name="Game", pid=8, title="2048"),
        window(9, app_name="Game", pid=8, title="a menu", kind="popup"),
        window(10, app_name="Ghost", pid=10, bounds=Rect(0, 0, 9, 9)),
        window(11, app_name="Maps", pid=11, bundle_id="org.example.maps"),
        window(12, app_name="Maps", pid=12),
        window(13, app_name="Note Reader", pid=13, title="Chapter 2"),
        window(14, app_name="Sheets", pid=14),
        window(
            15, app_name="Dialog", pid=14, title=None, is_modal=True, is_minimised=True, is_on_screen=False
        ),
        window(16, app_name="Log", pid=16, title="Term"),
        window(17, app_name="Dialog", pid=12, title="Route", is_modal=True),
        window(18, app_name="Dialog", pid=4, title="Sure?", is_modal=True, parent_id=5),
    ),
    (),
    (),
)


@pytest.mark.parametrize(("name", "acts", "outcome"), NAMED)
def test_window_named_is_strict_for_acts(name: str, acts: bool, outcome: object) -> None:
    try:
        assert window_named(name, SCENE, acts).window_id == outcome
    except PeekabooError as e:
        assert (e.code, len(e.message) < 200) == (outcome, True)


def test_window_named_for_an_act_matches_no_page_title() -> None:
    browsers = (
        "Firefox Navigator Google-chrome Chromium Safari Microsoft-edge Brave-browser Opera Vivaldi-stable "
        "LibreWolf Epiphany Arc"
    )
    names = [*browsers.split(), "Searcher"]
    windows = [window(number, app_name=name, title="My inbox") for number, name in enumerate(names)]
    assert window_named("inbox", Scene(tuple(windows), (), ()), True) == windows[-1]


@pytest.mark.parametrize(
    ("name", "windows"),
    [("inbox", "2 ('Mousepad - docs and inbox')"), ("txt", "1 ('notes.txt'), 4 ('a.txt')")],
)
def test_window_named_for_an_act_lists_the_windows_that_would_match(name: str, windows: str) -> None:
    error = error_of(window_named, name, SCENE, True)
    assert error.message == f"no window is called {name!r} exactly, and acts need an exact or longer name"
    assert error.hint.endswith(f"or a whole title: {windows}")
