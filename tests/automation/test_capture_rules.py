"""Rules of `image` and window screenshots: all or nothing, foreground, rectangle fallback, file names."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from samples import window
from tk_windows import FORM_COLOUR, pixels_of, programs_by, window_titled
from worlds import Form, OpenForm, Program, wait_for

from peekaboo_min.automation import capture
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.system import files
from peekaboo_min.system.bitmaps import Bitmap
from peekaboo_min.system.image_files import read_image_info


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
def two(peek: Program, open_form: OpenForm) -> list[int]:
    open_form("First", "+20+20")
    open_form("Second", "+660+20")
    return ids_of(peek, "First", "Second")


@pytest.mark.parametrize("failing", [0, 1])
def test_failed_multi_changes_no_file(peek: Program, two: list[int], tmp_path: Path, failing: int) -> None:
    folder, multi = tmp_path / "all", ["image", "--app", "Form", "--mode", "multi", "--path"]
    peek.data(*multi, folder / "m.png")
    old = {name: (folder / name).read_bytes() for name in below(folder)}
    peek.data("clean")
    broken = failing_maim(f"-i {two[failing]}", tmp_path / "bin")
    for path in (folder / "m.png", tmp_path / "new" / "er" / "m.png", tmp_path / "folder"):
        assert peek.error(*multi, path, **broken)["code"] == "CAPTURE_FAILED"
    assert {name: (folder / name).read_bytes() for name in below(folder)} == old
    assert not (tmp_path / "new").exists() and not (tmp_path / "folder").exists()
    assert [below(path) for path in (tmp_path / "tmp").iterdir()] == [[]]


def test_multi_keeps_the_ends_of_long_names(peek: Program, two: list[int], tmp_path: Path) -> None:
    for end in ("_before", "_after"):
        path = tmp_path / "all" / f"{'日' * 80}{end}.png"
        peek.data("image", "--app", "Form", "--mode", "multi", "--path", path)
    names = below(tmp_path / "all")
    assert max(len(name.encode()) for name in names) <= 255
    ends = [re.sub(".*(_[a-z]+_window[0-9]_).*", "\\1", name) for name in names]
    assert sorted(ends) == ["_after_window0_", "_after_window1_", "_before_window0_", "_before_window1_"]


@pytest.mark.parametrize("name", ["x.bmp", "x.TIFF", "x.heic", "x.gif", "x.webp", "x.pdf"])
def test_path_of_an_unsupported_image_format_is_refused(peek: Program, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    assert ".png or .jpg" in peek.error("image", "--path", path)["message"]
    assert ".png or .jpg" in peek.error("image", PEEKABOO_DEFAULT_SAVE_PATH=path)["message"]
    assert not Path(path).exists()


def test_folder_may_be_named_like_an_unsupported_image(peek: Program, tmp_path: Path) -> None:
    (tmp_path / "x.bmp").mkdir()
    for path in (f"{tmp_path}/x.bmp", f"{tmp_path}/y.tiff/"):
        (entry,) = peek.data("image", "--path", path)["saved_files"]
        assert Path(entry["path"]).parent == Path(path)


UNGRANTED = (
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


@pytest.mark.parametrize("command", UNGRANTED)
def test_screen_recording_is_checked_first(shared_mac: FakeMac, tmp_path: Path, command: str) -> None:
    """ "The CLI must proactively check for Screen Recording permission before attempting any capture or
    window listing that requires it (e.g., reading window titles via CGWindowListCopyWindowInfo)."
    """
    shared_mac.activate("Terminal")
    shared_mac.deny("screen_recording")
    before = len(shared_mac.events())
    path = ["--path", tmp_path / "new" / "a.png"] if command.startswith(("image", "screenshot ")) else []
    finished = InProcessProgram(mac_environment(shared_mac)).run(*command.split(), *path, "--json")
    assert finished.code == 11 and "Screen Recording" in finished.error["message"]
    assert len(shared_mac.events()) == before
    assert shared_mac.calls("screencapture") == [] and not (tmp_path / "new").exists()
    left = below(shared_mac.folder / "tmp")
    assert [name for name in left if name.endswith((".png", ".json"))] == []


def minimise(peek: Program, form: Form) -> None:
    form.xdotool("windowminimize", "--sync", str(window_titled(peek, form.title)["window_id"]))
    wait_for(lambda: window_titled(peek, form.title)["is_minimised"], "it is minimised")


@pytest.mark.parametrize("words", ["--window-title Hidden", "--window-index 1"])
def test_foreground_restores_a_minimised_window(peek: Program, open_form: OpenForm, words: str) -> None:
    """ "'foreground': bring target to front before capture." """
    form = open_form("Hidden", "+20+20")
    open_form("Shown", "+660+20")
    ids_of(peek, "Shown")
    minimise(peek, form)
    argv = ["image", "--app", "Form", *words.split(), "--capture-focus", "foreground"]
    (entry,) = peek.data(*argv)["saved_files"]
    assert entry["window_title"] == "Hidden"
    assert colour(entry, 2, 2) == FORM_COLOUR  # the window is painted, not only mapped


@pytest.mark.parametrize("mode", ["window", "multi", "screen"])
def test_foreground_restores_the_only_window(peek: Program, form: Form, mode: str) -> None:
    """ "'foreground': bring target to front before capture.", in every mode."""
    minimise(peek, form)
    argv = ["image", "--app", "Form", "--mode", mode]
    assert mode == "screen" or peek.error(*argv)["code"] == "WINDOW_NOT_FOUND"
    (entry,) = peek.data(*argv, "--capture-focus", "foreground")["saved_files"]
    row = window_titled(peek, form.title)
    assert row["is_on_screen"] and row["is_focused"]
    left, top = (row["bounds"]["x"], row["bounds"]["y"]) if mode == "screen" else (0, 0)
    assert colour(entry, left + 2, top + 2) == FORM_COLOUR


def test_image_of_another_apps_window_is_refused(mac_peek: Program) -> None:
    error = mac_peek.error("image", "--app", "Terminal", "--window-id", 1050)
    assert error["code"] == "INVALID_ARGUMENT" and "window 1050 belongs to Calculator" in error["message"]
    (entry,) = mac_peek.data("image", "--app", "calc", "--window-id", 1050)["saved_files"]
    assert entry["window_id"] == 1050


@pytest.mark.parametrize(
    "words", ["", "--window-title Calculator"], ids=["a hidden app", "a minimised window"]
)
def test_foreground_shows_what_a_mac_hides(mac: FakeMac, mac_peek: Program, words: str) -> None:
    """ "Activates app using NSRunningApplication.activate(options: [.activateIgnoringOtherApps])." """
    mac.activate("Terminal")
    if words:
        mac.change_window(1050, {"minimised": True})
    else:
        mac.update(
            lambda state: [app.update(hidden=True) for app in state["apps"] if app["name"] == "Calculator"]
        )
    argv = ["image", "--app", "Calculator", *words.split(), "--capture-focus", "foreground"]
    (entry,) = mac_peek.data(*argv)["saved_files"]
    assert entry["window_id"] == 1050
    assert (mac.front_window() or {})["id"] == 1050


def test_foreground_screen_is_captured_without_a_window(mac: FakeMac, mac_peek: Program) -> None:
    """ "Multi-Screen (--mode screen): Enumerates CGGetActiveDisplayList, captures each display"."""
    mac.close_window(1050)
    argv = ["image", "--app", "Calculator", "--capture-focus", "foreground", "--json"]
    finished = mac_peek.run(*argv, "--mode", "screen")
    assert [row["item_label"] for row in finished.data["saved_files"]] == ["Display 1 / Main", "Display 2"]
    message = finished.json["messages"][1]
    assert message.startswith("captured Display 1 / Main, Display 2; in front is window ")
    assert "the 'Calculator' process is running" in message
    assert mac_peek.run(*argv).error["code"] == "WINDOW_NOT_FOUND"


def moving_maim(folder: Path, window_id: int, before: str, after: str, times: int = 99) -> dict[str, str]:
    """Return variables that run xdotool commands before and after maim's capture number $n of a window."""
    script = (
        f"ID={window_id}; echo >> {folder}.log; n=$(wc -l < {folder}.log)\n"
        f'[ $n -le {times} ] || exec $real "$@"\n'
        # xdotool --sync returns before a window manager has moved the window
        "at() { xdotool getwindowgeometry $ID; }\n"
        'act() { [ $1 ] || return; old=$(at); xdotool "$@"; until [ "$(at)" != "$old" ]; do :; done; }\n'
        f'act {before} >&2\n$real "$@"\ncode=$?\nact {after} >&2\nexit $code\n'
    )
    return programs_by(folder, script, "maim")


def test_screenshot_is_repeated_after_a_move(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    data = peek.data(
        "screenshot", form_id, **moving_maim(tmp_path / "bin", form_id, "", "windowmove $ID 500 300", 1)
    )
    assert data["bounds"] == window_titled(peek, form.title)["bounds"]
    peek.data("click", form_id, *form.centre("agree"))
    assert form.wait_for_event("toggle")["value"] == 1


def test_screenshot_of_a_window_that_is_hidden_meanwhile_is_refused(
    peek: Program, form_id: int, tmp_path: Path
) -> None:
    hidden = f'xwininfo -id {form_id} | grep -q "Map State: IsUn"'
    hiding = f'$real "$@"; xdotool windowminimize {form_id}; until {hidden}; do sleep 0.01; done'
    error = peek.error("screenshot", form_id, **programs_by(tmp_path / "bin", hiding, "maim"))
    assert error["code"] == "CAPTURE_FAILED"


BLANK, HALF, DRAWN = (Bitmap(2, 3, (bytes([0, 0, 0, shade, 0, 0]),)) for shade in (0, 100, 200))


@pytest.mark.parametrize("shots", [[BLANK, BLANK, DRAWN, DRAWN], [BLANK, HALF, DRAWN, DRAWN]])
def test_restored_window_is_waited_for_until_it_is_painted(
    shots: list[Bitmap], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [*shots]
    monkeypatch.setattr(capture, "take_bitmap", lambda *_: left.pop(0))
    capture.wait_until_painted(X11Desktop(), window())
    assert left == [], "screenshots that were not awaited"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "windowmove $ID $((300 + 9 * n)) 200"),
        ("windowsize --sync $ID 900 600", "windowsize --sync $ID 600 400"),
    ],
    ids=["moved", "resized and back"],
)
def test_screenshot_of_a_window_that_keeps_moving_is_refused(
    peek: Program, form: Form, form_id: int, tmp_path: Path, before: str, after: str
) -> None:
    form.xdotool("windowsize", "--sync", str(form_id), "600", "400")
    region = ["--region", "0,0,50,50", "--screenshot-id", peek.data("screenshot", form_id)["screenshot_id"]]
    left = below(tmp_path / "tmp")
    maim = moving_maim(tmp_path / "bin", form_id, before, after)
    for argv in (
        ["screenshot", form_id],
        ["image", "--app", "Form", "--path", tmp_path / "new.png"],
        ["find-text", form_id, "Name"],
    ):
        error = peek.error(*argv, **maim)
        assert error["code"] == "CAPTURE_FAILED", argv
        assert "keeps moving" in error["message"] and "wait_for" in error["message"]
    # the size may differ from the screenshot with this id
    assert peek.error("screenshot", form_id, *region, **maim)["code"] in (
        "CAPTURE_FAILED",
        "STALE_SCREENSHOT",
    )
    assert below(tmp_path / "tmp") == left and not (tmp_path / "new.png").exists()


@pytest.mark.parametrize(
    ("attribute", "value", "captures"), [("AXSize", [600, 450], 2), ("AXPosition", [300, 200], 1)]
)
def test_screenshot_is_repeated_after_a_resize_on_a_mac(
    mac: FakeMac, mac_peek: Program, attribute: str, value: list[int], captures: int
) -> None:
    act = {"do": "ax_set", "window": 1090, "attribute": attribute, "value": value}
    mac.when({"do": "started", "program": "screencapture"}, act)
    data = mac_peek.data("screenshot", 1090)
    assert [call["program"] for call in mac.calls()] == ["osascript", "screencapture"] * captures
    x, y, width, height = (mac.window(1090) or {})["bounds"]
    assert (data["image_width"], data["image_height"]) == (2 * width, 2 * height)
    assert mac_peek.data("click", 1090, 280, 400)["point"] == {"x": x + 140, "y": y + 200}


def test_rectangle_screenshot_can_be_clicked(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    """ "Take full screen screenshot then crop to the window bounds (using existing capture path)", and
    "ウィンドウ ID のフォールバックに対応する".
    """
    data = peek.data("screenshot", form_id, **failing_maim(f"-i {form_id}", tmp_path / "bin"))
    info = read_image_info(Path(data["path"]))
    assert info and info[1:] == (data["bounds"]["width"], data["bounds"]["height"])
    assert {colour(data, 1, 1), colour(data, info.width - 2, info.height - 2)} == {FORM_COLOUR}
    peek.data("click", form_id, *form.centre("agree"), "--screenshot-id", data["screenshot_id"])
    assert form.wait_for_event("toggle")["value"] == 1


@pytest.mark.parametrize("act", ["windowmove {} 300 200", "windowraise {}"], ids=["moves", "is covered"])
def test_rectangle_that_changes_fails(peek: Program, open_form: OpenForm, tmp_path: Path, act: str) -> None:
    open_form("First", "+20+20")
    open_form("Other", "+60+60")
    window_id, other_id = ids_of(peek, "First", "Other")
    peek.data("focus", window_id)
    script = (
        'case "$*" in *-i*) exit 1;; esac\n'
        f"look() {{ xprop -root _NET_CLIENT_LIST_STACKING; xdotool getwindowgeometry {window_id}; }}\n"
        f"old=$(look); xdotool {act.format(other_id if 'raise' in act else window_id)}\n"
        'until [ "$(look)" != "$old" ]; do :; done'
    )
    error = peek.error("screenshot", window_id, **programs_by(tmp_path / "bin", script, "maim"))
    assert error["code"] == "CAPTURE_FAILED"


def test_rectangle_beyond_the_screen_fails(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    form.xdotool("windowmove", str(form_id), "-150", "100")
    wait_for(lambda: window_titled(peek, form.title)["bounds"]["x"] < 0, "it has moved")
    broken = failing_maim(f"-i {form_id}", tmp_path / "bin")
    assert peek.error("screenshot", form_id, **broken)["code"] == "CAPTURE_FAILED"


@pytest.mark.parametrize(
    ("options", "count"),
    [("--includeShadow --no-prefer-window-id", 1), ("--no-prefer-window-id", 0), ("--includeShadow", 0)],
)
def test_missing_shadow_is_reported(mac_peek: Program, options: str, count: int) -> None:
    """ "実機 macOS で [...] 影あり/なし、png/jpg 切り替えを確認。" """
    finished = mac_peek.run("screenshot-app-window", "--appName", "Form", *options.split(), "--json")
    assert str(finished.json["messages"]).count("without a shadow") == count


def test_sweep_warns_of_files_that_it_cannot_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ "削除失敗: `fs.rm` の結果はログ警告に留め、レスポンスは成功のまま。" """
    warnings: list[str] = []
    monkeypatch.setattr(files, "temporary_folder", lambda: tmp_path)
    monkeypatch.setattr(files, "log_warning", warnings.append)
    monkeypatch.setattr(files, "_delete_unused", lambda _: os.unlink("/proc/1/status"))
    (tmp_path / "old.png").write_text("")
    os.utime(tmp_path / "old.png", (0, 0))
    assert files.sweep(600) == 0
    (warning,) = warnings
    assert warning.startswith(f"{tmp_path / 'old.png'} ") and "not be deleted: " in warning
