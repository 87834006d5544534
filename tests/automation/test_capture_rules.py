"""What `image` and the window screenshots promise: all or nothing, in front, by rectangle, the right
names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import fake_mac, mac_environment
from worlds import Form, Program, clean_environment, need, wait_for

from peekaboo_min.system import files
from peekaboo_min.system.images import read_image_info


@pytest.fixture
def peek(display: str, tmp_path: Path) -> Program:
    return InProcessProgram(clean_environment(tmp_path, DISPLAY=display))


@pytest.fixture
def mac(tmp_path: Path) -> Iterator[FakeMac]:
    with fake_mac(tmp_path / "mac") as mac:
        yield mac


@pytest.fixture
def mac_peek(mac: FakeMac) -> Program:
    return InProcessProgram(mac_environment(mac))


def ids_of(peek: Program, *titles: str) -> list[int]:
    """The windows with these titles, once all of them are listed."""

    def find() -> list[int]:
        by_title = {row["title"]: row["window_id"] for row in peek.data("windows")["windows"]}
        return [by_title[title] for title in titles] if by_title.keys() >= set(titles) else []

    return wait_for(find, f"{titles} are listed")


def without(program: str, words: str, folder: Path) -> str:
    """A PEEKABOO_BIN_DIR in which a program fails when its arguments contain `words`; the others are the
    real ones.
    """
    folder.mkdir()
    for name in ("maim", "xdotool", "xclip", "convert"):
        need(name)
        (folder / name).symlink_to(str(shutil.which(name)))
    (folder / program).unlink()
    (folder / program).write_text(
        f'#!/bin/sh\ncase " $* " in *" {words} "*) exit 1;; esac\nexec {shutil.which(program)} "$@"\n'
    )
    (folder / program).chmod(0o755)
    return str(folder)


FORM_COLOUR = bytes((244, 241, 234))


def colour(entry: dict[str, Any], x: int, y: int) -> bytes:
    """One pixel of a saved file, as ImageMagick decodes it."""
    argv = ["convert", entry["path"], "-depth", "8", "-crop", f"1x1+{x}+{y}", "+repage", "rgb:-"]
    return subprocess.run(argv, capture_output=True, check=True).stdout


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# all or nothing ---------------------------------------------------------------------------------------------


@pytest.fixture
def two(peek: Program, open_form: Callable[..., Form]) -> list[int]:
    open_form("First", "+20+20")
    open_form("Second", "+660+20")
    return ids_of(peek, "First", "Second")


def test_a_failed_capture_of_several_windows_leaves_nothing_and_replaces_nothing(
    peek: Program, two: list[int], tmp_path: Path
) -> None:
    folder = tmp_path / "all"
    multi = ["image", "--app", "Form", "--mode", "multi", "--path"]
    peek.data(*multi, folder / "m.png")
    old = {name: (folder / name).read_bytes() for name in below(folder)}
    assert len(old) == 2
    peek.data("clean")
    peek.data("focus", two[0])
    for number, window_id in enumerate(two):
        programs = without("maim", f"-i {window_id}", tmp_path / f"bin{number}")
        for path in (folder / "m.png", tmp_path / "new" / "er" / "m.png", tmp_path / "folder"):
            error = peek.error(*multi, path, PEEKABOO_BIN_DIR=programs)
            assert error["code"] == "CAPTURE_FAILED"
    assert {name: (folder / name).read_bytes() for name in below(folder)} == old
    assert not (tmp_path / "new").exists() and not (tmp_path / "folder").exists()
    assert [below(path) for path in (tmp_path / "tmp").iterdir()] == [[]]


# names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", ["s" * 60, "s" * 240, "日" * 80])
def test_long_names_that_differ_at_their_ends_do_not_meet(
    peek: Program, two: list[int], tmp_path: Path, stem: str
) -> None:
    folder = tmp_path / "all"
    for end in ("_before", "_after"):
        if len(f"{stem}{end}.png".encode()) <= 255:
            peek.data("image", "--app", "Form", "--mode", "multi", "--path", folder / f"{stem}{end}.png")
    names = below(folder)
    assert len(names) == 4
    assert max(len(name.encode()) for name in names) <= 255
    assert [
        sum(f"{end}_window{index}_" in name for name in names)
        for end in ("before", "after")
        for index in (0, 1)
    ] == [1] * 4


@pytest.mark.parametrize("name", ["x.bmp", "x.TIFF", "x.tif", "x.heic", "x.gif", "x.webp", "x.pdf"])
def test_the_name_of_another_kind_of_image_is_refused(peek: Program, tmp_path: Path, name: str) -> None:
    for variables in ({}, {"PEEKABOO_DEFAULT_SAVE_PATH": str(tmp_path / name)}):
        path = [] if variables else ["--path", tmp_path / name]
        finished = peek.run("image", *path, "--json", **variables)
        assert (finished.code, finished.error["code"]) == (2, "INVALID_ARGUMENT")
        assert ".png or .jpg" in finished.error["message"]
    assert not (tmp_path / name).exists()


def test_a_folder_may_have_the_name_of_another_kind_of_image(peek: Program, tmp_path: Path) -> None:
    (tmp_path / "x.bmp").mkdir()
    for path in (f"{tmp_path}/x.bmp", f"{tmp_path}/y.tiff/"):
        (entry,) = peek.data("image", "--path", path)["saved_files"]
        assert Path(entry["path"]).parent == Path(path)


# what must be granted, before anything else -----------------------------------------------------------------

UNGRANTED: dict[str, list[str]] = {
    "a title": ["image", "--app", "Safari", "--window-title", "Start"],
    "a title that no window has": ["image", "--app", "Safari", "--window-title", "no such page"],
    "in front": ["image", "--app", "Calculator", "--capture-focus", "foreground"],
    "in front, by a title": [
        *("image", "--app", "Safari", "--window-title", "Start", "--capture-focus", "foreground"),
    ],
    "a screen in front": [
        "image",
        "--app",
        "Calculator",
        "--mode",
        "screen",
        "--capture-focus",
        "foreground",
    ],
    "all windows": ["image", "--app", "Safari", "--mode", "multi"],
    "a screen": ["image"],
    "an app window": ["screenshot-app-window", "--appName", "Safari", "--windowIndex", "7"],
    "an unknown window": ["screenshot", "999"],
    "its text": ["find-text", "999", "Save"],
    "a list": ["list", "windows", "--app", "Safari"],
}


@pytest.mark.parametrize("argv", UNGRANTED.values(), ids=UNGRANTED.keys())
def test_without_screen_recording_nothing_is_focused_matched_or_created(
    mac: FakeMac, mac_peek: Program, tmp_path: Path, argv: list[str]
) -> None:
    """ "The CLI must proactively check for Screen Recording permission before attempting any capture or
    window listing that requires it (e.g., reading window titles via CGWindowListCopyWindowInfo)."
    """
    mac.activate("Terminal")
    mac.deny("screen_recording")
    before, had = len(mac.events()), below(mac.folder / "tmp")
    path = ["--path", tmp_path / "new" / "a.png"] if argv[0] in ("image", "screenshot") else []
    finished = mac_peek.run(*argv, *path, "--json")
    assert finished.code == 11, finished.out
    assert "Screen Recording" in finished.error["message"]
    assert len(mac.events()) == before
    assert (mac.calls("screencapture"), (tmp_path / "new").exists()) == ([], False)
    assert [name for name in below(mac.folder / "tmp") if name.endswith((".png", ".json"))] == []
    assert [name for name in had if name.endswith((".png", ".json"))] == []


# in front ---------------------------------------------------------------------------------------------------


def minimise(peek: Program, form: Form, window_id: int) -> None:
    form.xdotool("windowminimize", "--sync", str(window_id))

    def is_minimised() -> bool:
        rows = peek.data("windows")["windows"]
        return [row["is_minimised"] for row in rows if row["window_id"] == window_id] == [True]

    wait_for(is_minimised, "it is minimised")


MINIMISED: dict[str, tuple[list[str], list[Any]]] = {
    "by its title": (["--window-title", "Hidden"], ["Hidden", 0]),
    "by its index": (["--window-index", "1"], ["Hidden", 1]),
}


@pytest.mark.parametrize(("argv", "row"), MINIMISED.values(), ids=MINIMISED.keys())
def test_a_minimised_window_is_restored_and_captured(
    peek: Program, open_form: Callable[..., Form], argv: list[str], row: list[Any]
) -> None:
    """ "'foreground': bring target to front before capture." """
    form = open_form("Hidden", "+20+20")
    open_form("Shown", "+660+20")
    hidden, _ = ids_of(peek, "Hidden", "Shown")
    minimise(peek, form, hidden)
    (entry,) = peek.data("image", "--app", "Form", *argv, "--capture-focus", "foreground")["saved_files"]
    assert [entry["window_title"], entry["window_index"]] == row
    assert colour(entry, 2, 2) == FORM_COLOUR  # painted, not only on the screen


@pytest.mark.parametrize("mode", ["window", "multi", "screen"])
def test_an_app_whose_only_window_is_minimised_is_brought_to_the_front(
    peek: Program, form: Form, mode: str
) -> None:
    """ "'foreground': bring target to front before capture.", in every mode."""
    (window_id,) = ids_of(peek, form.title)
    minimise(peek, form, window_id)
    argv = ["image", "--app", "Form", "--mode", mode]
    if mode != "screen":
        assert peek.error(*argv)["code"] == "WINDOW_NOT_FOUND"
    (entry,) = peek.data(*argv, "--capture-focus", "foreground")["saved_files"]
    assert entry.get("window_title") == (None if mode == "screen" else form.title)
    (row,) = [row for row in peek.data("windows")["windows"] if row["window_id"] == window_id]
    assert (row["is_on_screen"], row["is_focused"]) == (True, True)
    left, top = (row["bounds"]["x"], row["bounds"]["y"]) if mode == "screen" else (0, 0)
    assert colour(entry, left + 2, top + 2) == FORM_COLOUR


def test_the_index_in_the_answer_is_the_asked_one(peek: Program, two: list[int]) -> None:
    """ ""window_index": 0, // Optional, if relevant (e.g. for multi-window or indexed capture)" """
    peek.data("focus", two[0])
    (entry,) = peek.data("image", "--app", "Form", "--window-index", 1, "--capture-focus", "foreground")[
        "saved_files"
    ]
    assert (entry["window_id"], entry["window_index"]) == (two[1], 1)


def test_a_window_is_not_captured_in_the_name_of_another_app(mac_peek: Program) -> None:
    error = mac_peek.error("image", "--app", "Terminal", "--window-id", 1050)
    assert error["code"] == "INVALID_ARGUMENT"
    assert "window 1050 is one of Calculator" in error["message"]
    (entry,) = mac_peek.data("image", "--app", "calc", "--window-id", 1050)["saved_files"]
    assert entry["window_id"] == 1050


HIDDEN: dict[str, Callable[[FakeMac], Any]] = {
    "an app that is hidden": lambda mac: mac.update(
        lambda state: [app.update(hidden=True) for app in state["apps"] if app["name"] == "Calculator"]
    ),
    "a minimised window": lambda mac: mac.change_window(1050, {"minimised": True}),
}


@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN.keys())
@pytest.mark.parametrize("title", [[], ["--window-title", "Calculator"]], ids=["any window", "by its title"])
def test_on_a_mac_what_is_hidden_is_shown_and_captured(
    mac: FakeMac, mac_peek: Program, hide: Callable[[FakeMac], Any], title: list[str]
) -> None:
    """ "Activates app using NSRunningApplication.activate(options: [.activateIgnoringOtherApps])." """
    mac.activate("Terminal")
    hide(mac)
    (entry,) = mac_peek.data("image", "--app", "Calculator", *title, "--capture-focus", "foreground")[
        "saved_files"
    ]
    assert (entry["window_id"], entry["window_index"]) == (1050, 0)
    front = mac.front_window()
    assert front is not None and front["id"] == 1050


def test_a_screen_is_captured_though_the_app_has_no_window_to_bring_to_the_front(
    mac: FakeMac, mac_peek: Program
) -> None:
    """ "Multi-Screen (--mode screen): Enumerates CGGetActiveDisplayList, captures each display"."""
    mac.close_window(1050)
    argv = ["image", "--app", "Calculator", "--capture-focus", "foreground"]
    finished = mac_peek.run(*argv, "--mode", "screen", "--json")
    assert finished.code == 0, finished.out
    assert [row["item_label"] for row in finished.data["saved_files"]] == ["Display 1 / Main", "Display 2"]
    (message,) = finished.json["messages"]
    assert message.startswith("nothing was brought to the front: the 'Calculator' process is running")
    assert mac_peek.error(*argv)["code"] == "WINDOW_NOT_FOUND"


def test_without_accessibility_a_foreground_capture_captures_with_a_warning(
    mac: FakeMac, mac_peek: Program
) -> None:
    """ "If specific window raise fails (or Accessibility not used/permitted), it logs a warning to the
    debug_logs array
    [...] and captures the most suitable front window of the activated app."
    """
    mac.activate("Terminal")
    mac.deny("accessibility")
    finished = mac_peek.run(
        "image", "--app", "Safari", "--window-index", 1, "--capture-focus", "foreground", "--json"
    )
    (entry,) = finished.data["saved_files"]
    assert (entry["window_index"], entry["window_title"]) == (1, "Bug 12/34: crash in usr/bin")
    by_title = ["image", "--app", "Safari", "--window-title", "crash in", "--capture-focus", "foreground"]
    assert mac_peek.data(*by_title)["saved_files"][0]["window_index"] == 1  # it is not in front
    raised = "Could not raise specific window; proceeding with frontmost of activated app."
    assert raised in finished.json["debug_logs"]
    assert "Accessibility" in finished.json["messages"][0]
    assert (mac.front_window() or {})["id"] in (1004, 1012)  # the app itself was activated


# a window that moves while it is captured -------------------------------------------------------------------

# What xdotool does to the window (600x400) before and after maim runs, n counting the runs, and how often.
RACES: dict[str, tuple[str, str, int]] = {
    "resized once": ("windowsize --sync ID 720 480", "", 1),
    "moved once": ("", "windowmove ID 500 300", 1),
    "moved each time": ("", "windowmove ID $((300 + 9 * n)) 200", 99),
    "resized each time": ("windowsize --sync ID $((600 + 9 * n)) 400", "", 99),
    "resized and back each time": ("windowsize --sync ID 900 600", "windowsize --sync ID 600 400", 99),
}


@pytest.mark.parametrize(("before", "after", "times"), RACES.values(), ids=RACES.keys())
def test_an_image_of_a_window_that_moved_meanwhile_is_taken_again_or_refused(
    peek: Program, form: Form, tmp_path: Path, before: str, after: str, times: int
) -> None:
    (window_id,) = ids_of(peek, form.title)
    form.xdotool("windowsize", "--sync", str(window_id), "600", "400")
    kept = peek.data("screenshot", window_id)
    peek.environment["PEEKABOO_BIN_DIR"] = without("maim", "no such words", tmp_path / "bin")
    count, maim = tmp_path / "count", shutil.which("maim")
    steps = [f"xdotool {act}".replace("ID", str(window_id)) if act else "" for act in (before, after)]
    (tmp_path / "bin" / "maim").write_text(
        f"#!/bin/sh\nn=$(cat {count} 2>/dev/null || echo 1)\n"
        f'case "$*" in *-i*) [ $n -le {times} ];; *) false;; esac || exec {maim} "$@"\n'
        f"echo $((n + 1)) > {count}\n"
        # a window manager moves it later than xdotool's --sync waits for
        f"place() {{ xdotool getwindowgeometry {window_id}; }}\n"
        'act() { [ $# -gt 0 ] || return; old=$(place); "$@"; until [ "$(place)" != "$old" ]; do :; done; }\n'
        f'act {steps[0]} >&2\n{maim} "$@"\ncode=$?\nact {steps[1]} >&2\nexit $code\n'
    )
    if times == 1:
        data = peek.data("screenshot", window_id)
        (row,) = [row for row in peek.data("windows")["windows"] if row["window_id"] == window_id]
        assert data["bounds"] == row["bounds"] != kept["bounds"]
        assert (data["image_width"], data["image_height"]) == (
            row["bounds"]["width"],
            row["bounds"]["height"],
        )
        peek.data("click", window_id, *form.centre("agree"))
        assert form.wait_for_event("toggle")["value"] == 1
        return
    left = below(tmp_path / "tmp")
    for argv in (
        ["screenshot", window_id],
        ["screenshot", window_id, "--region", "0,0,50,50", "--screenshot-id", kept["screenshot_id"]],
        ["image", "--app", "Form", "--path", tmp_path / "new.png"],
        ["find-text", window_id, "Name"],
    ):
        error = peek.error(*argv)
        if error["code"] == "STALE_SCREENSHOT":  # it has another size than at the screenshot with that id
            continue
        assert error["code"] == "CAPTURE_FAILED", argv
        assert "keeps moving" in error["message"] and "wait_for" in error["message"]
    assert (below(tmp_path / "tmp"), (tmp_path / "new.png").exists()) == (left, False)


LOOK = ["osascript", "screencapture"]
# What happens right before each capture, and the programs that the screenshot starts.
MAC_RACES: dict[str, tuple[list[tuple[str, list[int]]], list[str]]] = {
    "resized once": ([("AXSize", [600, 450])], 2 * LOOK),
    "moved, which clicks bear": ([("AXPosition", [300, 200])], LOOK),
    "resized each time": (
        [("AXSize", [600, 450]), ("AXSize", [640, 480]), ("AXSize", [600, 450])],
        [*3 * LOOK, "osascript"],
    ),
}


@pytest.mark.parametrize(("acts", "programs"), MAC_RACES.values(), ids=MAC_RACES.keys())
def test_on_a_mac_the_images_size_tells_that_a_window_was_resized_meanwhile(
    mac: FakeMac, mac_peek: Program, acts: list[tuple[str, list[int]]], programs: list[str]
) -> None:
    for number, (attribute, value) in enumerate(acts):
        act = {"do": "ax_set", "window": 1090, "attribute": attribute, "value": value}
        mac.when({"do": "started", "program": "screencapture"}, act, skip=number)
    finished = mac_peek.run("screenshot", 1090, "--json")
    assert [call["program"] for call in mac.calls()] == programs
    if len(acts) > 1:
        assert (finished.code, "keeps moving" in finished.error["message"]) == (14, True)
        assert mac_peek.error("click", 1090, 5, 5)["code"] == "STALE_SCREENSHOT"
        return
    data, bounds = finished.data, finished.data["bounds"]
    assert (data["image_width"], data["image_height"]) == (2 * bounds["width"], 2 * bounds["height"])
    x, y, width, height = (mac.window(1090) or {})["bounds"]
    assert (bounds["width"], bounds["height"]) == (width, height)
    answer = mac_peek.data("click", 1090, 280, 400)
    assert answer["point"] == {"x": x + 140, "y": y + 200}


# by rectangle -----------------------------------------------------------------------------------------------


def test_a_window_that_fails_by_its_id_is_captured_by_its_rectangle_and_cannot_be_clicked(
    peek: Program, two: list[int], tmp_path: Path
) -> None:
    """ "Take full screen screenshot then crop to the window bounds (using existing capture path)", and
    "ウィンドウ ID のフォールバックに対応する".
    """
    peek.data("focus", two[0])
    older = peek.data("screenshot", two[0])
    programs = without("maim", f"-i {two[0]}", tmp_path / "bin")
    finished = peek.run("screenshot", two[0], "--json", PEEKABOO_BIN_DIR=programs)
    data, bounds = finished.data, older["bounds"]
    info = read_image_info(Path(data.pop("path")))
    assert info is not None and (info.width, info.height) == (bounds["width"], bounds["height"])
    expected = {"bounds": bounds, "image_width": info.width, "image_height": info.height, "scale": 1.0}
    assert data == {"window_id": two[0], **expected}
    assert "cannot be clicked" in finished.json["messages"][0]
    assert peek.error("click", two[0], 5, 5)["code"] == "STALE_SCREENSHOT"


def test_a_covered_or_minimised_window_is_not_captured_by_its_rectangle(
    peek: Program, open_form: Callable[..., Form], tmp_path: Path
) -> None:
    """ "The screenshot image is the **window content cropped to `bounds`**": not that of another window."""
    below_form = open_form("Below", "+100+100")
    open_form("Above", "+140+140")
    below_id, above_id = ids_of(peek, "Below", "Above")
    peek.data("focus", above_id)
    programs = without("maim", f"-i {below_id}", tmp_path / "bin")
    for argv in (
        ["screenshot", below_id],
        ["screenshot-app-window", "--appName", "Form", "--windowIndex", 1],
    ):
        finished = peek.run(*argv, "--json", PEEKABOO_BIN_DIR=programs)
        assert finished.code == 14, finished.out
    minimise(peek, below_form, below_id)
    assert peek.run("screenshot", below_id, "--json").code == 14


SHADOWS: dict[str, tuple[list[str], int]] = {
    "by its rectangle": (["--includeShadow", "--no-prefer-window-id"], 1),
    "by its rectangle, none wanted": (["--no-prefer-window-id"], 0),
    "by its id": (["--includeShadow"], 0),
}


@pytest.mark.parametrize(("argv", "count"), SHADOWS.values(), ids=SHADOWS.keys())
def test_an_image_without_the_wanted_shadow_says_so(
    mac: FakeMac, mac_peek: Program, argv: list[str], count: int
) -> None:
    """ "実機 macOS で [...] 影あり/なし、png/jpg 切り替えを確認。" """
    finished = mac_peek.run("screenshot-app-window", "--appName", "Form", *argv, "--json")
    assert finished.code == 0, finished.out
    messages = finished.json["messages"]
    assert (len(messages), all("without a shadow" in message for message in messages)) == (count, True)


# what has expired -------------------------------------------------------------------------------------------


def test_an_expired_file_that_cannot_be_deleted_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "削除失敗: `fs.rm` の結果はログ警告に留め、レスポンスは成功のまま。" """
    warnings: list[str] = []

    def refuse(path: Path) -> bool:
        raise PermissionError(1, "Operation not permitted", path)

    monkeypatch.setattr(files, "temporary_folder", lambda: tmp_path)
    monkeypatch.setattr(files, "log_warning", warnings.append)
    (tmp_path / "old.png").write_text("")
    os.utime(tmp_path / "old.png", (0, 0))
    with monkeypatch.context() as patch:
        patch.setattr(files, "_delete_unused", refuse)
        assert files.sweep(600) == 0
    (warning,) = warnings
    assert warning.startswith(f"{tmp_path / 'old.png'} ") and "not be deleted: Operation not perm" in warning
    assert files.sweep(600) == 1
