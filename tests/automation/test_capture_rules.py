"""Rules of `image` and window screenshots: all or nothing, foreground, rectangle fallback, file names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from tk_windows import FORM_COLOUR, pixels_of, programs_by, window_titled
from worlds import Form, Program, wait_for

from peekaboo_min.system import files
from peekaboo_min.system.bitmaps import read_image_info


@pytest.fixture
def mac_peek(mac: FakeMac) -> Program:
    return InProcessProgram(mac_environment(mac))


def ids_of(peek: Program, *titles: str) -> list[int]:
    return [window_titled(peek, title)["window_id"] for title in titles]


def failing_maim(options: str, folder: Path) -> dict[str, str]:
    """Return variables that make maim fail if its arguments contain `options`."""
    return programs_by(folder, f'case " $* " in *" {options} "*) exit 1;; esac', "maim")


def colour(entry: dict[str, Any], x: float, y: float) -> bytes:
    return pixels_of(Path(entry["path"]), f"1x1+{x:g}+{y:g}")


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def two(peek: Program, open_form: Callable[..., Form]) -> list[int]:
    open_form("First", "+20+20")
    open_form("Second", "+660+20")
    return ids_of(peek, "First", "Second")


def test_failed_multi_leaves_and_replaces_no_file(peek: Program, two: list[int], tmp_path: Path) -> None:
    folder = tmp_path / "all"
    multi = ["image", "--app", "Form", "--mode", "multi", "--path"]
    peek.data(*multi, folder / "m.png")
    old = {name: (folder / name).read_bytes() for name in below(folder)}
    assert len(old) == 2
    peek.data("clean")
    peek.data("focus", two[0])
    for number, window_id in enumerate(two):
        broken = failing_maim(f"-i {window_id}", tmp_path / f"bin{number}")
        for path in (folder / "m.png", tmp_path / "new" / "er" / "m.png", tmp_path / "folder"):
            error = peek.error(*multi, path, **broken)
            assert error["code"] == "CAPTURE_FAILED"
    assert {name: (folder / name).read_bytes() for name in below(folder)} == old
    assert not (tmp_path / "new").exists() and not (tmp_path / "folder").exists()
    assert [below(path) for path in (tmp_path / "tmp").iterdir()] == [[]]


@pytest.mark.parametrize("stem", ["s" * 240, "日" * 80])
def test_multi_keeps_the_ends_of_long_names(peek: Program, two: list[int], tmp_path: Path, stem: str) -> None:
    for end in ("_before", "_after"):
        if len(f"{stem}{end}.png".encode()) <= 255:
            path = tmp_path / "all" / f"{stem}{end}.png"
            peek.data("image", "--app", "Form", "--mode", "multi", "--path", path)
    names = below(tmp_path / "all")
    assert (len(names), max(len(name.encode()) for name in names) <= 255) == (4, True)
    for end in ("_before_window0_", "_before_window1_", "_after_window0_", "_after_window1_"):
        assert sum(end in name for name in names) == 1, end


def test_path_of_an_unsupported_image_format_is_refused(peek: Program, tmp_path: Path) -> None:
    for name in ("x.bmp", "x.TIFF", "x.tif", "x.heic", "x.gif", "x.webp", "x.pdf"):
        path = str(tmp_path / name)
        for argv, variables in (["--path", path], {}), ([], {"PEEKABOO_DEFAULT_SAVE_PATH": path}):
            finished = peek.run("image", *argv, "--json", **variables)
            assert (finished.code, finished.error["code"]) == (2, "INVALID_ARGUMENT"), name
            assert ".png or .jpg" in finished.error["message"]
        assert not Path(path).exists()
    (tmp_path / "x.bmp").mkdir()
    for path in (f"{tmp_path}/x.bmp", f"{tmp_path}/y.tiff/"):
        (entry,) = peek.data("image", "--path", path)["saved_files"]
        assert Path(entry["path"]).parent == Path(path)


UNGRANTED = (
    "image --app Safari --window-title Start",
    "image --app Safari --window-title unknown",
    "image --app Calculator --capture-focus foreground",
    "image --app Safari --window-title Start --capture-focus foreground",
    "image --app Calculator --mode screen --capture-focus foreground",
    "image --app Safari --mode multi",
    "image",
    "screenshot-app-window --appName Safari --windowIndex 7",
    "screenshot 999",
    "find-text 999 Save",
    "list windows --app Safari",
)


def test_screen_recording_is_checked_first(mac: FakeMac, mac_peek: Program, tmp_path: Path) -> None:
    """ "The CLI must proactively check for Screen Recording permission before attempting any capture or
    window listing that requires it (e.g., reading window titles via CGWindowListCopyWindowInfo)."
    """
    mac.activate("Terminal")
    mac.deny("screen_recording")
    before = len(mac.events())
    for command in UNGRANTED:
        argv = command.split()
        path = ["--path", tmp_path / "new" / "a.png"] if argv[0] in ("image", "screenshot") else []
        finished = mac_peek.run(*argv, *path, "--json")
        assert (finished.code, "Screen Recording" in finished.error["message"]) == (11, True), command
        assert len(mac.events()) == before, command
        assert (mac.calls("screencapture"), (tmp_path / "new").exists()) == ([], False), command
    left = below(mac.folder / "tmp")
    assert [name for name in left if name.endswith((".png", ".json"))] == []


def minimise(peek: Program, form: Form) -> int:
    """Minimise the form's window and return its id."""
    (window_id,) = ids_of(peek, form.title)
    form.xdotool("windowminimize", "--sync", str(window_id))
    wait_for(lambda: window_titled(peek, form.title)["is_minimised"], "it is minimised")
    return window_id


@pytest.mark.parametrize(("argv", "index"), [(["--window-title", "Hidden"], 0), (["--window-index", "1"], 1)])
def test_foreground_restores_a_minimised_window(
    peek: Program, open_form: Callable[..., Form], argv: list[str], index: int
) -> None:
    """ "'foreground': bring target to front before capture." """
    form = open_form("Hidden", "+20+20")
    open_form("Shown", "+660+20")
    ids_of(peek, "Shown")
    minimise(peek, form)
    (entry,) = peek.data("image", "--app", "Form", *argv, "--capture-focus", "foreground")["saved_files"]
    assert (entry["window_title"], entry["window_index"]) == ("Hidden", index)
    assert colour(entry, 2, 2) == FORM_COLOUR  # the window is painted, not only mapped


@pytest.mark.parametrize("mode", ["window", "multi", "screen"])
def test_foreground_restores_the_only_window(peek: Program, form: Form, mode: str) -> None:
    """ "'foreground': bring target to front before capture.", in every mode."""
    window_id = minimise(peek, form)
    argv = ["image", "--app", "Form", "--mode", mode]
    if mode != "screen":
        assert peek.error(*argv)["code"] == "WINDOW_NOT_FOUND"
    (entry,) = peek.data(*argv, "--capture-focus", "foreground")["saved_files"]
    assert entry.get("window_title") == (None if mode == "screen" else form.title)
    row = window_titled(peek, form.title)
    assert (row["window_id"], row["is_on_screen"], row["is_focused"]) == (window_id, True, True)
    left, top = (row["bounds"]["x"], row["bounds"]["y"]) if mode == "screen" else (0, 0)
    assert colour(entry, left + 2, top + 2) == FORM_COLOUR


def test_image_of_another_apps_window_is_refused(mac_peek: Program) -> None:
    error = mac_peek.error("image", "--app", "Terminal", "--window-id", 1050)
    assert error["code"] == "INVALID_ARGUMENT"
    assert "window 1050 belongs to Calculator" in error["message"]
    (entry,) = mac_peek.data("image", "--app", "calc", "--window-id", 1050)["saved_files"]
    assert entry["window_id"] == 1050


@pytest.mark.parametrize(
    ("hidden", "argv"), [("app", []), ("window", ["--window-title", "Calculator"])], ids=["app", "window"]
)
def test_foreground_shows_what_a_mac_hides(
    mac: FakeMac, mac_peek: Program, hidden: str, argv: list[str]
) -> None:
    """ "Activates app using NSRunningApplication.activate(options: [.activateIgnoringOtherApps])." """
    mac.activate("Terminal")
    if hidden == "app":
        mac.update(
            lambda state: [app.update(hidden=True) for app in state["apps"] if app["name"] == "Calculator"]
        )
    else:
        mac.change_window(1050, {"minimised": True})
    argv = ["image", "--app", "Calculator", *argv, "--capture-focus", "foreground"]
    (entry,) = mac_peek.data(*argv)["saved_files"]
    assert (entry["window_id"], entry["window_index"]) == (1050, 0)
    assert (mac.front_window() or {})["id"] == 1050


def test_foreground_screen_is_captured_without_a_window(mac: FakeMac, mac_peek: Program) -> None:
    """ "Multi-Screen (--mode screen): Enumerates CGGetActiveDisplayList, captures each display"."""
    mac.close_window(1050)
    argv = ["image", "--app", "Calculator", "--capture-focus", "foreground"]
    finished = mac_peek.run(*argv, "--mode", "screen", "--json")
    assert finished.code == 0, finished.out
    assert [row["item_label"] for row in finished.data["saved_files"]] == ["Display 1 / Main", "Display 2"]
    _kept, message = finished.json["messages"]
    assert message.startswith("captured Display 1 / Main, Display 2; in front is window ")
    assert "the 'Calculator' process is running" in message
    assert mac_peek.error(*argv)["code"] == "WINDOW_NOT_FOUND"


# xdotool commands before and after each maim run (number n) of the 600x400 window; number of runs with them
RACES: dict[str, tuple[str, str, int]] = {
    "resized once": ("windowsize --sync ID 720 480", "", 1),
    "moved once": ("", "windowmove ID 500 300", 1),
    "moved each time": ("", "windowmove ID $((300 + 9 * n)) 200", 99),
    "resized and back each time": ("windowsize --sync ID 900 600", "windowsize --sync ID 600 400", 99),
}


@pytest.mark.parametrize(("before", "after", "times"), RACES.values(), ids=RACES.keys())
def test_screenshot_of_a_moving_window_is_repeated_or_refused(
    peek: Program, form: Form, tmp_path: Path, before: str, after: str, times: int
) -> None:
    (window_id,) = ids_of(peek, form.title)
    form.xdotool("windowsize", "--sync", str(window_id), "600", "400")
    kept = peek.data("screenshot", window_id)
    count, id_words = tmp_path / "count", str(window_id)
    steps = [f"$xdotool {act}".replace("ID", id_words) if act else "" for act in (before, after)]
    script = (
        f"xdotool={shutil.which('xdotool')}; n=$(cat {count} 2>/dev/null || echo 1)\n"
        f'case "$*" in *-i*) [ $n -le {times} ];; *) false;; esac || exec $real "$@"\n'
        f"echo $((n + 1)) > {count}\n"
        # xdotool --sync returns before a window manager has moved the window
        f"place() {{ $xdotool getwindowgeometry {window_id}; }}\n"
        'act() { [ $# -gt 0 ] || return; old=$(place); "$@"; until [ "$(place)" != "$old" ]; do :; done; }\n'
        f'act {steps[0]} >&2\n$real "$@"\ncode=$?\nact {steps[1]} >&2\nexit $code\n'
    )
    peek.environment.update(programs_by(tmp_path / "bin", script, "maim"))
    if times == 1:
        data = peek.data("screenshot", window_id)
        bounds = window_titled(peek, form.title)["bounds"]
        assert data["bounds"] == bounds != kept["bounds"]
        assert (data["image_width"], data["image_height"]) == (bounds["width"], bounds["height"])
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
        if error["code"] != "STALE_SCREENSHOT":  # the size differs from the screenshot with that id
            assert error["code"] == "CAPTURE_FAILED", argv
            assert "keeps moving" in error["message"] and "wait_for" in error["message"]
    assert (below(tmp_path / "tmp"), (tmp_path / "new.png").exists()) == (left, False)


LOOK = ["osascript", "screencapture"]
# Acts right before each capture, and the programs that the screenshot starts.
MAC_RACES: dict[str, tuple[list[tuple[str, list[int]]], list[str]]] = {
    "resized once": ([("AXSize", [600, 450])], 2 * LOOK),
    "moved, which needs no repeat": ([("AXPosition", [300, 200])], LOOK),
    "resized each time": (
        [("AXSize", [600, 450]), ("AXSize", [640, 480]), ("AXSize", [600, 450])],
        [*3 * LOOK, "osascript"],
    ),
}


@pytest.mark.parametrize(("acts", "programs"), MAC_RACES.values(), ids=MAC_RACES.keys())
def test_screenshot_of_a_resized_window_is_repeated_on_a_mac(
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


def test_screenshot_by_rectangle_can_be_clicked(peek: Program, form: Form, tmp_path: Path) -> None:
    """ "Take full screen screenshot then crop to the window bounds (using existing capture path)", and
    "ウィンドウ ID のフォールバックに対応する".
    """
    (window_id,) = ids_of(peek, form.title)
    broken = failing_maim(f"-i {window_id}", tmp_path / "bin")
    data = peek.data("screenshot", window_id, **broken)
    info = read_image_info(Path(data["path"]))
    assert info is not None and info[1:] == (data["bounds"]["width"], data["bounds"]["height"])
    peek.data("click", window_id, *form.centre("agree"), "--screenshot-id", data["screenshot_id"])
    assert form.wait_for_event("toggle")["value"] == 1


@pytest.mark.parametrize("act", ["windowmove ID 300 200", "windowraise OTHER"])
def test_screenshot_by_rectangle_of_a_window_that_changes_fails(
    peek: Program, open_form: Callable[..., Form], tmp_path: Path, act: str
) -> None:
    open_form("First", "+20+20")
    open_form("Other", "+60+60")
    window_id, other_id = ids_of(peek, "First", "Other")
    peek.data("focus", window_id)
    script = (
        (
            'case "$*" in *-i*) exit 1;; esac\n'
            f"look() {{ xprop -root _NET_CLIENT_LIST_STACKING; xdotool getwindowgeometry {window_id}; }}\n"
            f'old=$(look); xdotool {act}; until [ "$(look)" != "$old" ]; do :; done'
        )
        .replace("ID", str(window_id))
        .replace("OTHER", str(other_id))
    )
    assert peek.run("screenshot", window_id, **programs_by(tmp_path / "bin", script, "maim")).code == 14


def test_screenshot_by_rectangle_of_a_window_beyond_the_screen_fails(
    peek: Program, form: Form, tmp_path: Path
) -> None:
    (window_id,) = ids_of(peek, form.title)
    form.xdotool("windowmove", str(window_id), "-150", "100")
    wait_for(lambda: window_titled(peek, form.title)["bounds"]["x"] < 0, "it has moved")
    broken = failing_maim(f"-i {window_id}", tmp_path / "bin")
    assert peek.error("screenshot", window_id, **broken)["code"] == "CAPTURE_FAILED"


def test_screenshot_by_rectangle_of_a_covered_window_fails(
    peek: Program, open_form: Callable[..., Form], tmp_path: Path
) -> None:
    """ "The screenshot image is the **window content cropped to `bounds`**", not another window."""
    below_form = open_form("Below", "+100+100")
    open_form("Above", "+140+140")
    below_id, above_id = ids_of(peek, "Below", "Above")
    peek.data("focus", above_id)
    broken = failing_maim(f"-i {below_id}", tmp_path / "bin")
    by_app = ["screenshot-app-window", "--appName", "Form", "--windowIndex", 1]
    for argv in (["screenshot", below_id], by_app):
        assert peek.run(*argv, "--json", **broken).code == 14, argv
    minimise(peek, below_form)
    assert peek.run("screenshot", below_id, "--json").code == 14


@pytest.mark.parametrize(
    ("options", "count"),
    [("--includeShadow --no-prefer-window-id", 1), ("--no-prefer-window-id", 0), ("--includeShadow", 0)],
)
def test_missing_shadow_is_reported(mac_peek: Program, options: str, count: int) -> None:
    """ "実機 macOS で [...] 影あり/なし、png/jpg 切り替えを確認。" """
    argv = ["screenshot-app-window", "--appName", "Form", *options.split(), "--json"]
    messages = mac_peek.run(*argv).json["messages"][1:]  # the first message gives the file's lifetime
    assert (len(messages), all("without a shadow" in message for message in messages)) == (count, True)


def test_sweep_warns_of_files_that_it_cannot_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "削除失敗: `fs.rm` の結果はログ警告に留め、レスポンスは成功のまま。" """
    warnings: list[str] = []
    monkeypatch.setattr(files, "temporary_folder", lambda: tmp_path)
    monkeypatch.setattr(files, "log_warning", warnings.append)
    (tmp_path / "old.png").write_text("")
    os.utime(tmp_path / "old.png", (0, 0))
    with monkeypatch.context() as patch:
        patch.setattr(files, "_delete_unused", lambda _: os.unlink("/proc/1/status"))
        assert files.sweep(600) == 0
    (warning,) = warnings
    assert warning.startswith(f"{tmp_path / 'old.png'} ") and "not be deleted: " in warning
    assert files.sweep(600) == 1
