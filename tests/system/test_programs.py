"""A program is known by its answer: others of its name, real ones further along PATH, what is remembered."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from worlds import Form, Program, clean_environment, need, program_words, wait_for

REFUSING = 'echo "$0: ImageMagick is not installed here, xdotool version, xclip, v1" >&2; exit 1'
HANGING = "trap '' TERM; sleep 60"
X_TOOLS = ("maim", "xdotool", "xclip", "convert", "tesseract")


@pytest.fixture(params=["package"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """Our program as a package; what the single file embeds is the same module."""
    return Program(program_words(request.param), clean_environment(tmp_path, knows_programs=False))


in_both_forms = pytest.mark.parametrize("program", ["package", "single file"], indirect=True)


@pytest.fixture(autouse=True)
def needs_the_programs() -> None:
    need(*X_TOOLS)


def write_program(path: Path, script: str) -> Path:
    """A program that runs `script`, and notes in PATH.log how it was called."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$*" >> "$0.log"\n{script}\n')
    path.chmod(0o755)
    return path


def calls(path: Path) -> list[str]:
    log = Path(f"{path}.log")
    return log.read_text().splitlines() if log.exists() else []


def real(name: str) -> str:
    """The real program, where another of its name may stand first on PATH."""
    return next(path for path in (f"/usr/bin/{name}", shutil.which(name)) if path and os.path.exists(path))


def first_on_path(folder: Path) -> str:
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def only(folder: Path, *names: str) -> Path:
    """A folder for PEEKABOO_BIN_DIR with these real programs."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).symlink_to(real(name))
    return folder


def memory(tmp_path: Path) -> Path:
    return tmp_path / "state" / "peekaboo_min" / "programs.json"


@in_both_forms
def test_what_has_only_the_name_is_passed_over_and_asked_once(
    on_x11: Program, form: Form, form_window: int, tmp_path: Path
) -> None:
    strangers = [write_program(tmp_path / "bin" / name, REFUSING) for name in X_TOOLS]
    peek = on_x11.having(PATH=first_on_path(tmp_path / "bin"))
    peek.data("screenshot", form_window)
    peek.data("click", form_window, *form.centre("name"))
    peek.data("type", form_window, "Zoë 日本")
    picture = tmp_path / "shot.jpg"
    peek.data("image", "--app", "Form", "--path", picture, "--format", "jpg")
    assert picture.read_bytes()[:2] == b"\xff\xd8"
    found = wait_for(lambda: peek.data("find-text", form_window, "Name")["found"], "the word is found")
    assert found
    assert {one.name: calls(one) for one in strangers} == {
        name: ["--version" if name in ("maim", "xdotool", "tesseract") else "-version"] for name in X_TOOLS
    }


@pytest.mark.parametrize(
    ("name", "package", "words"),
    [
        ("maim", "maim", ("image", "--mode", "screen")),
        ("xdotool", "xdotool", ("press", "ID", "a")),
        ("xclip", "xclip", ("type", "ID", "日本")),
        ("convert", "imagemagick", ("find-text", "ID", "Name")),
        ("tesseract", "tesseract-ocr", ("find-text", "ID", "Name")),
    ],
)
def test_where_only_another_program_has_the_name_its_package_is_named(
    on_x11: Program, form_window: int, tmp_path: Path, name: str, package: str, words: tuple[str, ...]
) -> None:
    folder = only(tmp_path / "bin", *(one for one in X_TOOLS if one != name))
    stranger = write_program(folder / name, REFUSING)
    argv = [str(form_window) if word == "ID" else word for word in words]
    error = on_x11.error(*argv, PEEKABOO_BIN_DIR=str(folder))
    assert (error["code"], error["message"]) == (
        "MISSING_PROGRAM",
        f"the program {name} is not installed: {stranger} is another program of that name, or broken; "
        f"install it: sudo apt-get install {package}",
    )


def test_a_program_that_hangs_is_passed_over_and_not_waited_for_again(
    on_x11: Program, tmp_path: Path
) -> None:
    stranger = write_program(tmp_path / "bin" / "maim", HANGING)
    peek = on_x11.having(PATH=first_on_path(tmp_path / "bin"))
    peek.data("image")
    peek.data("image")
    assert calls(stranger) == ["--version"]


def test_a_file_that_cannot_be_started_is_passed_over(on_x11: Program, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "maim").write_text("#!/no/such/interpreter\n")
    (tmp_path / "bin" / "maim").chmod(0o755)
    on_x11.data("image", PATH=first_on_path(tmp_path / "bin"))


def test_a_program_is_asked_again_only_when_its_file_changes(on_x11: Program, tmp_path: Path) -> None:
    path = tmp_path / "bin" / "maim"
    peek = on_x11.having(PATH=first_on_path(tmp_path / "bin"))
    for _ in range(2):
        write_program(path, f'exec {real("maim")} "$@"')
        os.utime(path, (1, 1))
        peek.data("image")
        peek.data("image")
    assert calls(path).count("--version") == 1
    os.utime(path, (2, 2))
    peek.data("image")
    assert calls(path).count("--version") == 2
    write_program(path, REFUSING)
    asked = len(calls(path))
    peek.data("image")
    assert calls(path)[asked:] == ["--version"]


def test_a_broken_program_that_works_now_is_taken_though_its_file_is_the_same(
    on_x11: Program, tmp_path: Path
) -> None:
    folder = only(tmp_path / "bin", *(one for one in X_TOOLS if one != "maim"))
    write_program(folder / "maim", f'. "{tmp_path}/library" && exec {real("maim")} "$@"')
    peek = on_x11.having(PEEKABOO_BIN_DIR=str(folder))
    assert peek.error("image")["code"] == "MISSING_PROGRAM"
    (tmp_path / "library").write_text("true\n")
    peek.data("image")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "null",
        "[" * 100_000,
        '{"%s": 7}',
        '{"%s": [1, 2]}',
        '{"%s": [1, 2, 3, 4]}',
        "\udcff",
    ],
    ids=lambda text: text[:12].encode("ascii", "replace").decode() or "empty",
)
def test_a_damaged_memory_is_made_anew(on_x11: Program, tmp_path: Path, text: str) -> None:
    memory(tmp_path).parent.mkdir()
    memory(tmp_path).write_bytes(text.replace("%s", real("maim")).encode("utf-8", "surrogateescape"))
    on_x11.data("image")
    assert real("maim") in json.loads(memory(tmp_path).read_text())


def test_the_memory_is_for_its_owner_only(on_x11: Program, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        on_x11.data("image")
    finally:
        os.umask(old)
    path = memory(tmp_path)
    assert [oct(stat.S_IMODE(one.stat().st_mode)) for one in (path.parent, path)] == ["0o700", "0o600"]
    assert {one.name for one in path.parent.iterdir()} - {"bytecode"} == {path.name}


def test_where_nothing_can_be_remembered_everything_works(on_x11: Program, tmp_path: Path) -> None:
    (tmp_path / "occupied").write_text("a file, where the folder would be")
    stranger = write_program(tmp_path / "bin" / "maim", REFUSING)
    variables = {"PATH": first_on_path(tmp_path / "bin"), "XDG_STATE_HOME": str(tmp_path / "occupied")}
    on_x11.data("image", **variables)
    on_x11.data("image", **variables)
    assert calls(stranger) == ["--version"] * 2  # each process asks for itself


def test_magick_is_taken_where_convert_is_not(on_x11: Program, form_window: int, tmp_path: Path) -> None:
    folder = only(tmp_path / "bin", *(one for one in X_TOOLS if one != "convert"))
    stranger = write_program(folder / "convert", REFUSING)
    magick = write_program(folder / "magick", f'exec {real("convert")} "$@"')
    on_x11.data("find-text", form_window, "Name", PEEKABOO_BIN_DIR=str(folder))
    assert calls(stranger) == ["-version"]
    assert calls(magick)[0] == "-version" and len(calls(magick)) > 1


def lines_of(text: str, name: str) -> str:
    return next(line.strip() for line in text.splitlines() if f" {name}: " in line)


@in_both_forms
def test_doctor_shows_versions_and_what_it_passed_over(on_x11: Program, tmp_path: Path) -> None:
    stranger = write_program(tmp_path / "bin" / "maim", REFUSING)
    finished = on_x11.run("doctor", PATH=first_on_path(tmp_path / "bin"))
    assert finished.code == 0, finished.err
    for name in X_TOOLS:
        words = lines_of(finished.out, name).split()
        assert words[0] == "ok" and os.path.isabs(words[2])
        assert words[3].strip(";")[0].isdigit(), words
    assert lines_of(finished.out, "maim").endswith(
        f"; passed over: {stranger} is another program of that name, or broken"
    )


def test_doctor_says_of_a_stranger_that_it_is_one_and_asks_each_time(on_x11: Program, tmp_path: Path) -> None:
    folder = only(tmp_path / "bin", *(one for one in X_TOOLS if one not in ("convert", "tesseract")))
    convert, tesseract = (write_program(folder / name, REFUSING) for name in ("convert", "tesseract"))
    peek = on_x11.having(PEEKABOO_BIN_DIR=str(folder))
    for _ in range(2):
        finished = peek.run("doctor")
    assert finished.code != 0 and "missing: convert; sudo apt-get install imagemagick" in finished.err
    said = lines_of(finished.err, "convert")
    assert said == f"MISSING convert: not found: {convert} is another program of that name, or broken"
    assert f"{tesseract} is another program of that name" in lines_of(finished.err, "tesseract")
    assert calls(convert) == ["-version"] * 2
