"""The example scripts, run unchanged on real applications."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from accessible import need_elements
from worlds import PATIENCE_S, ROOT, SINGLE_FILE, Form, Program, clean_environment, need


def example(name: str, folder: Path, display: str) -> Program:
    need("python3", "maim")
    return Program(["setsid", "sh", str(ROOT / "scripts" / name)], clean_environment(folder, DISPLAY=display))


def line_of(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout
    return process.stdout.readline().decode()


def test_wait_and_click_clicks_a_text_or_times_out(form: Form, display: str, tmp_path: Path) -> None:
    need("tesseract")
    script = example("wait_and_click.sh", tmp_path, display)
    late = script.run("Form", "Xylophone", "1", folder=tmp_path)
    assert (late.code, late.out) == (22, "")
    assert "waited 1 s for the text 'Xylophone' in a window of 'Form'" in late.err
    done = script.run("Form", "Sign the book", "30", folder=tmp_path)
    assert done.code == 0 and done.out.startswith("clicked 'Sign the book' in window "), done.err
    form.wait_for_event("sign")


@pytest.fixture
def watching(form: Form, display: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start watch_window.sh for the form."""
    with example("watch_window.sh", tmp_path, display).start("Form", "0.2", folder=tmp_path) as process:
        assert line_of(process).startswith("watching Form")
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_watch_window_reports_each_change_until_it_is_closed(
    form: Form, watching: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    form.xdotool("mousemove", "90", "90")  # moving the pointer is no change
    for _ in range(3):  # the first change may be the caret
        form.xdotool("type", "Ada")
        assert "changed: change_" in line_of(watching)
    form.close()
    assert watching.wait(PATIENCE_S) == 0
    saved = sorted(path.name for path in tmp_path.glob("change_*.png"))
    assert saved[:3] == ["change_001.png", "change_002.png", "change_003.png"]
    assert not list((tmp_path / "tmp").glob("tmp.*")), "temporary screenshots are deleted"


def test_interrupted_watch_window_leaves_no_image(watching: subprocess.Popen[bytes], tmp_path: Path) -> None:
    os.killpg(watching.pid, signal.SIGINT)
    assert watching.wait(PATIENCE_S) == 130
    assert not list((tmp_path / "tmp").glob("tmp.*"))


FILL = """zenity --forms --add-entry "First name" --add-entry City >filled &
until "$1" "$2" elements zenity --role textbox --json | grep -q '"count": 2'; do sleep 0.1; done
sh "$3" zenity City=Århus "First name=Ada" || exit
sh "$3" zenity Age=36; echo "code $?" >&2
"$1" "$2" click-text zenity OK && wait"""


def test_fill_form_finds_fields_by_their_labels(tmp_path: Path) -> None:
    need_elements("zenity")
    own, script = [sys.executable, str(SINGLE_FILE)], str(ROOT / "scripts" / "fill_form.sh")
    environment = clean_environment(tmp_path, TMPDIR="/tmp")  # a socket's path has at most 107 bytes
    argv = ["desktop", "--", "sh", "-c", FILL, "sh", *own, script]
    done = Program(own, environment).run(*argv, folder=tmp_path)
    assert (tmp_path / "filled").read_text() == "Ada|Århus\n", done.err
    assert "has no text field called: Age\ncode 1\n" in done.err


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("watch_window.sh Missing", 15, "no window is called 'Missing'"),
        ("fill_form.sh Missing Name=Ada", 1, "no window is called 'Missing'"),
        ("wait_and_click.sh", 2, "usage: "),
        ("watch_window.sh", 2, "usage: "),
        ("fill_form.sh", 2, "usage: "),
        ("agent_form.sh", 2, "usage: "),
    ],
)
def test_failed_example_prints_why(display: str, tmp_path: Path, line: str, code: int, message: str) -> None:
    name, *arguments = line.split()
    done = example(name, tmp_path, display).run(*arguments, folder=tmp_path)
    assert (done.code, done.out) == (code, "") and message in done.err


@pytest.mark.parametrize(
    "name", ["wait_and_click", "watch_window", "fill_form", "agent_form", "keynote_card"]
)
def test_example_without_peekaboo_py_asks_for_it(tmp_path: Path, name: str) -> None:
    script = shutil.copy(ROOT / "scripts" / f"{name}.sh", tmp_path)
    done = Program(["sh", script], dict(os.environ)).run("Form", "Name=Ada")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.endswith("copy it into the folder of peekaboo.py\n")


def test_agent_form_fails_if_its_form_does_not_open(tmp_path: Path) -> None:
    need("wish")
    done = example("agent_form.sh", tmp_path, ":59999").run("Zürich", "engineer", folder=tmp_path)
    assert (done.code, done.out) == (1, "") and "the form did not open" in done.err
