"""The example scripts, run unchanged on real applications."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from accessible import need_elements
from worlds import PATIENCE_S, ROOT, SINGLE_FILE, Form, clean_environment, need


def start(name: str, folder: Path, display: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    need("python3", "maim")
    return subprocess.Popen(
        ["sh", str(ROOT / "scripts" / name), *arguments],
        env=clean_environment(folder, DISPLAY=display, **variables),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(name: str, folder: Path, display: str, *arguments: str, **variables: str) -> tuple[int, str, str]:
    process = start(name, folder, display, *arguments, **variables)
    out, err = process.communicate(timeout=2 * PATIENCE_S)
    return process.returncode, out, err


def test_wait_and_click_clicks_a_text_or_times_out(form: Form, display: str, tmp_path: Path) -> None:
    need("tesseract")
    code, out, err = run("wait_and_click.sh", tmp_path, display, "Form", "Xylophone", "1")
    assert (code, out) == (22, "")
    assert "waited 1 s for the text 'Xylophone' in a window of 'Form'" in err
    code, out, err = run("wait_and_click.sh", tmp_path, display, "Form", "Sign the book", "30")
    assert code == 0, err
    assert out.startswith("clicked 'Sign the book' in window ")
    form.wait_for_event("sign")


def test_watch_window_reports_each_change_until_it_is_closed(
    form: Form, display: str, tmp_path: Path
) -> None:
    with start("watch_window.sh", tmp_path, display, "Form", "0.2") as process:
        try:
            assert process.stdout and process.stderr
            assert process.stdout.readline().startswith("watching Form")
            form.xdotool("mousemove", "90", "90")  # moving the pointer is no change
            for _ in range(3):  # the first change may be the caret
                form.xdotool("type", "Ada")
                assert "changed: change_" in process.stdout.readline()
            form.close()
            assert process.wait(PATIENCE_S) == 0
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    saved = sorted(path.name for path in tmp_path.glob("change_*.png"))
    assert saved[:3] == ["change_001.png", "change_002.png", "change_003.png"]
    assert not list((tmp_path / "tmp").glob("tmp.*")), "temporary screenshots are deleted"


def test_interrupted_watch_window_leaves_no_screenshot(form: Form, display: str, tmp_path: Path) -> None:
    with start("watch_window.sh", tmp_path, display, "Form", "0.2") as process:
        assert process.stdout and process.stdout.readline().startswith("watching Form")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    assert not list((tmp_path / "tmp").glob("tmp.*"))


FILL = """zenity --forms --add-entry "First name" --add-entry City >filled &
until "$1" "$2" elements zenity --role textbox --json | grep -q '"count": 2'; do sleep 0.1; done
sh "$3" zenity City=Århus "First name=Ada" || exit
sh "$3" zenity Age=36; echo "code $?" >&2
"$1" "$2" click-text zenity OK && wait"""


def test_fill_form_finds_fields_by_their_labels(tmp_path: Path) -> None:
    need_elements("zenity")
    own, script = [sys.executable, str(SINGLE_FILE)], str(ROOT / "scripts" / "fill_form.sh")
    argv = [*own, "desktop", "--", "sh", "-c", FILL, "sh", *own, script]
    environment = clean_environment(tmp_path, TMPDIR="/tmp")  # a socket's path has at most 107 bytes
    done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, timeout=2 * PATIENCE_S)
    assert (tmp_path / "filled").read_text() == "Ada|Århus\n", done.stderr
    assert b"has no text field called: Age\ncode 1\n" in done.stderr


# script and arguments: exit code and part of stderr
FAILURES = {
    "watch_window.sh Missing": (15, "no window is called 'Missing'"),
    "fill_form.sh Missing Name=Ada": (1, "no window is called 'Missing'"),
    "wait_and_click.sh": (2, "usage: "),
    "watch_window.sh": (2, "usage: "),
    "fill_form.sh": (2, "usage: "),
    "agent_form.sh": (2, "usage: "),
}


@pytest.mark.parametrize(("argv", "outcome"), FAILURES.items(), ids=FAILURES)
def test_failed_example_prints_a_message(
    display: str, tmp_path: Path, argv: str, outcome: tuple[int, str]
) -> None:
    code, out, err = run(argv.split()[0], tmp_path, display, *argv.split()[1:])
    assert (code, out) == (outcome[0], "") and outcome[1] in err, err


@pytest.mark.parametrize(
    "name", ["wait_and_click", "watch_window", "fill_form", "agent_form", "keynote_card"]
)
def test_example_without_peekaboo_py_asks_for_it(tmp_path: Path, name: str) -> None:
    script = shutil.copy(ROOT / "scripts" / f"{name}.sh", tmp_path)
    done = subprocess.run(
        ["sh", script, "Form", "Name=Ada"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert done.stderr.endswith("copy it into the folder of peekaboo.py\n")


def test_agent_form_fails_if_its_form_does_not_open(tmp_path: Path) -> None:
    need("wish")
    code, out, err = run("agent_form.sh", tmp_path, ":59999", "Zürich", "engineer")
    assert (code, out) == (1, "") and "the form did not open" in err, err
