"""The shell examples that people copy: each run as it stands, on real applications."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from worlds import PATIENCE_S, ROOT, Form, clean_environment, need


def start(name: str, folder: Path, display: str, *arguments: str) -> subprocess.Popen:
    need("sh", "python3", "maim")
    return subprocess.Popen(
        ["sh", str(ROOT / "scripts" / name), *arguments],
        env=clean_environment(folder, DISPLAY=display),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(name: str, folder: Path, display: str, *arguments: str) -> tuple[int, str, str]:
    process = start(name, folder, display, *arguments)
    out, err = process.communicate(timeout=2 * PATIENCE_S)
    return process.returncode, out, err


def test_a_text_is_waited_for_and_clicked(form: Form, display: str, tmp_path: Path) -> None:
    need("tesseract")
    code, out, err = run("wait_and_click.sh", tmp_path, display, "Form", "Sign the book", "30")
    assert (code, err) == (0, ""), err
    assert out.startswith("clicked 'Sign the book' in window ")
    form.wait_for_event("sign")


def test_a_text_that_does_not_come_ends_the_wait(form: Form, display: str, tmp_path: Path) -> None:
    need("tesseract")
    code, out, err = run("wait_and_click.sh", tmp_path, display, "Form", "Xylophone", "1")
    assert (code, out) == (1, "")
    assert "'Xylophone' in a window of 'Form' did not come within 1 s" in err


def test_a_watched_window_is_reported_at_each_change_until_it_is_closed(
    open_form: Any, display: str, tmp_path: Path
) -> None:
    form: Form = open_form()
    with start("watch_window.sh", tmp_path, display, "Form", "0.2") as process:
        try:
            assert process.stdout and process.stderr
            assert process.stdout.readline().startswith("watching window ")
            form.xdotool("mousemove", "90", "90")  # a pointer elsewhere is no change
            for _ in range(3):  # the first may be a caret's
                form.xdotool("type", "Ada")
                assert "changed: change_" in process.stdout.readline()
            form.close()
            assert process.wait(PATIENCE_S) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    saved = sorted(path.name for path in tmp_path.glob("change_*.png"))
    assert saved[:3] == ["change_001.png", "change_002.png", "change_003.png"]
    assert not list((tmp_path / "tmp").glob("tmp.*")), "its own screenshots are deleted"


def test_without_a_window_the_examples_end_with_a_message(display: str, tmp_path: Path) -> None:
    for name, *arguments in (("watch_window.sh", "Nobody"), ("fill_form.sh", "Nobody", "Name=Ada")):
        code, out, err = run(name, tmp_path, display, *arguments)
        assert (code, out) == (1, "") and "no running application is called 'Nobody'" in err, err


def test_without_arguments_the_examples_show_their_usage(display: str, tmp_path: Path) -> None:
    for name in ("wait_and_click.sh", "watch_window.sh", "fill_form.sh", "click_word.sh", "agent_form.sh"):
        code, out, err = run(name, tmp_path, display)
        assert (code, out, err.startswith("usage: ")) == (2, "", True)
