"""Rules of `image` and window screenshots: all or nothing, foreground, rectangle fallback, warnings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable

import pytest
from samples import error_of
from scripted import ScriptedDesktop
from tk_windows import FORM_COLOUR, pixels_of, programs_by, window_titled
from worlds import Form, OpenForm, Program, wait_for

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.system import files
from peekaboo_min.system.image_files import whole_image
from peekaboo_min.tools.capture_tools import image
from peekaboo_min.tools.look_tools import take_window_screenshot


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


@pytest.mark.parametrize("words", ["--window-title Hidden", "--window-index 1"])
def test_foreground_restores_a_minimised_window(peek: Program, open_form: OpenForm, words: str) -> None:
    """ "'foreground': bring target to front before capture." """
    form = open_form("Hidden", "+20+20")
    open_form("Shown", "+660+20")
    ids_of(peek, "Shown")
    form.xdotool("windowminimize", "--sync", str(window_titled(peek, "Hidden")["window_id"]))
    wait_for(lambda: window_titled(peek, "Hidden")["is_minimised"], "it is minimised")
    argv = ["image", "--app", "Form", *words.split(), "--capture-focus", "foreground"]
    (entry,) = peek.data(*argv)["saved_files"]
    assert entry["window_title"] == "Hidden"
    assert colour(entry, 2, 2) == FORM_COLOUR  # the window is painted, not only mapped


def test_screenshot_of_a_window_that_is_hidden_meanwhile_is_refused(
    peek: Program, form_id: int, tmp_path: Path
) -> None:
    hidden = f'xwininfo -id {form_id} | grep -q "Map State: IsUn"'
    hiding = f'$real "$@"; xdotool windowminimize {form_id}; until {hidden}; do sleep 0.01; done'
    error = peek.error("screenshot", form_id, **programs_by(tmp_path / "bin", hiding, "maim"))
    assert error["code"] == "CAPTURE_FAILED"


def test_rectangle_screenshot_can_be_clicked(peek: Program, form: Form, form_id: int, tmp_path: Path) -> None:
    """ "Take full screen screenshot then crop to the window bounds (using existing capture path)", and
    "ウィンドウ ID のフォールバックに対応する".
    """
    data = peek.data("screenshot", form_id, **failing_maim(f"-i {form_id}", tmp_path / "bin"))
    info = whole_image(Path(data["path"]).read_bytes())
    assert info and info[1:] == (data["bounds"]["width"], data["bounds"]["height"])
    assert {colour(data, 1, 1), colour(data, info.width - 2, info.height - 2)} == {FORM_COLOUR}
    peek.data("click", form_id, *form.centre("agree"), "--screenshot-id", data["screenshot_id"])
    assert form.wait_for_event("toggle")["value"] == 1


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


def test_returned_image_is_also_saved_at_the_default_path(
    desk: ScriptedDesktop, environment: Callable[..., None], tmp_path: Path
) -> None:
    environment(PEEKABOO_DEFAULT_SAVE_PATH=str(tmp_path / "kept.png"))
    image(app="Notes", return_data=True)
    assert whole_image((tmp_path / "kept.png").read_bytes()) is not None


def test_image_tool_brings_the_app_to_the_front_if_requested(desk: ScriptedDesktop) -> None:
    image(app="Notes", capture_focus="foreground", return_data=True)
    assert "focus" in desk.done


def test_screenshot_for_a_model_is_a_jpeg(desk: ScriptedDesktop) -> None:
    take_window_screenshot(7)
    assert desk.captured == {"jpg": 1}


def test_screenshot_of_a_region_needs_the_screenshot_that_it_names(desk: ScriptedDesktop) -> None:
    take_window_screenshot(7)
    assert error_of(take_window_screenshot, 7, [0, 0, 9, 9], "0" * 16).code is ErrorCode.STALE_SCREENSHOT
