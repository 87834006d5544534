"""The command line: bad input, exit codes, the JSON envelope, help, and what its environment may do to it."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from worlds import (
    PATIENCE_S,
    Finished,
    Form,
    Program,
    both_forms,
    clean_environment,
    need,
    program_words,
    wait_for,
    x_server,
)

from peekaboo_min.frontends.tools import COMMANDS, TOOLS

FOLDER = "{folder}"  # in a row: the test's own folder
NOBODY = ":64999"  # a display that no X server serves


def finish(process: subprocess.Popen, seconds: float = PATIENCE_S) -> Finished:
    out, err = process.communicate(timeout=seconds)
    return Finished(process.returncode, out.decode("utf-8"), err.decode("utf-8"))


@dataclass(frozen=True)
class TwoForms:
    """Both forms side by side: the package answers people, the single file answers programs."""

    package: Program
    single_file: Program

    def fails(self, words: list[str], code: str, exit_code: int, message: str, **variables: str) -> None:
        """The error as text on stderr, and as one JSON document on stdout; nothing besides."""
        text = self.package.run(*words, **variables)
        document = self.single_file.run("--json", *words, **variables)
        assert (text.code, text.out) == (exit_code, "")
        assert text.err.startswith("peekaboo-min: ") and message in text.err and "Traceback" not in text.err
        assert "; " in text.err, "the next step is missing"
        assert_is_refused(document, code, exit_code, message)


def assert_is_refused(finished: Finished, code: str, exit_code: int, message: str) -> None:
    assert (finished.code, finished.err) == (exit_code, "")
    assert set(finished.json) == {"success", "error", "debug_logs"}
    assert set(finished.error) == {"code", "message", "details"}
    assert finished.error["code"] == code and message in finished.error["message"]
    assert "; " in finished.error["message"], "the next step is missing"


@pytest.fixture
def two_forms(tmp_path: Path) -> TwoForms:
    environment = clean_environment(tmp_path)
    return TwoForms(*(Program(program_words(form), environment) for form in ("package", "single file")))


@pytest.fixture
def forked_forms(forked: Program) -> TwoForms:
    return TwoForms(forked, forked)


EXIT_CODES = {
    "INVALID_ARGUMENT": 2,
    "WINDOW_NOT_FOUND": 15,
    "FILE_IO_ERROR": 17,
    "APP_NOT_FOUND": 18,
}

# name -> arguments, a part of the message; all are INVALID_ARGUMENT
USAGE: dict[str, tuple[list[str], str]] = {
    "an unknown command": (["nothing-known"], "there is no command 'nothing-known'; see peekaboo-min --help"),
    "a command with a slip": (["wndows"], "'wndows'; did you mean peekaboo-min windows?"),
    "a tool's name": (["take_window_screenshot", "7"], "did you mean peekaboo-min screenshot?"),
    "a tool's name, of Keynote": (["get_slide_size"], "did you mean peekaboo-min keynote size?"),
    "another program's option":
        (["exec", "image", "--app", "Form"], "'--app' is not an option; put -- before a text"),
    "an unknown command of a group": (["list", "fonts"], "list apps, list windows"),
    "an unknown option": (["windows", "--frob"], "--frob"),
    "a text without its window":
        (["click-text", "Sign"], "'Sign' is not a whole number; see peekaboo-min click-text"),
    "a text that looks like a request for help":
        (["type", "7", "-h"], "'-h' is not an option; put -- before a text"),
    "a text too many after the dashes": (["type", "7", "a", "--", "b"], "unrecognized arguments: b; see"),
    "a text that begins with a dash": (["type", "7", "-hello"], "is not an option; put -- before a text"),
    "an option's value that begins with a dash":
        (["image", "--app", "-x"], "the value of --app begins with a dash; write --app=-x"),
    "a group alone": (["list"], "`list` needs a subcommand"),
    "nothing but the flag": ([], "no command was given"),
    "a path at nobody's home": (["image", "--path", "~nosuchuser/a.png"], "cannot be a path"),
    "an argument missing": (["type", "7"], "TEXT"),
    "a required option missing": (["list", "windows"], "--app"),
    "an option's value missing": (["image", "--app"], "--app"),
    "a value for a flag of all commands": (["windows", "--json=1"], "--json"),
    "a word that is no choice": (["image", "--mode", "all"], "screen, window, multi, frontmost"),
    "a detail that is none": (["list", "windows", "--app", "x", "--include-details", "ids,size"], "'size'"),
    "a window that is no number": (["focus", "seven"], "'seven' is not a whole number"),
    "a window of 6000 digits": (["focus", "0x" + "f" * 6000], "is not a whole number"),
    "a window that is named twice":
        (["image", "--window-id", "7", "--window-title", "a"], "several of a window's title, index and id"),
    "a pixel that is NaN": (["click", "7", "nan", "1"], "'nan'"),
    "a pixel that is infinite": (["click", "7", "1", "-inf"], "'-inf'"),
    "a pixel beyond all numbers": (["click", "7", "1e400", "1"], "'1e400'"),
    "four clicks": (["click", "7", "1", "1", "--clicks", "4"], "clicks is 4; give a number from 1 to 3"),
    "a button that is none": (["click", "7", "1", "1", "--button", "side"], "left, right, middle"),
    "an empty text": (["type", "7", ""], "the text is empty"),
    "a text with an escape character": (["type", "7", "a\x1b[31m"], "control character"),
    "a wait that is too long":
        (["wait-for", "--window-id", "7", "--still", "--timeout-s", "46"],
         "timeout_s is 46; give a number from 1 to 45"),
    "a text that is too long": (["type", "7", "x" * 20_001], "20000"),
    "a key name with a slip": (["press", "7", "Retrun"], "known are a-z, 0-9, f1-f20, return"),
    "a modifier that is none": (["press", "7", "a", "--modifiers", "hyper"], "'hyper'"),
    "an image of no size": (["image", "--max-dimension", "0"], "max"),
    "a kind of image that we do not write": (["image", "--path", f"{FOLDER}/a.webp"], ".png or .jpg"),
    "an image that would not be what its name says":
        (["screenshot", "7", "--path", f"{FOLDER}/a.gif"], ".png or .jpg"),
}  # fmt: skip

# name -> arguments, the error's code, a part of the message; on a display that is there and empty
ON_A_DISPLAY: dict[str, tuple[list[str], str, str]] = {
    "an unknown window":
        (["screenshot", "7"], "WINDOW_NOT_FOUND", "there is no window 7; list the windows again"),
    "a file name that no file system takes":
        (["image", "--path", f"{FOLDER}/{'x' * 300}.png"], "FILE_IO_ERROR", "name too long"),
    "a hexadecimal window": (["focus", "0x1F"], "WINDOW_NOT_FOUND", "there is no window 31"),
    "a negative window": (["click", "-5", "-1", "-.5"], "WINDOW_NOT_FOUND", "there is no window -5"),
    "a window beyond all ids": (["type", str(2**70), "x"], "WINDOW_NOT_FOUND", str(2**70)),
    "a text that looks like a flag":
        (["type", "7", "--", "--json"], "WINDOW_NOT_FOUND", "there is no window 7"),
    "a request for help after the dashes": (["type", "7", "--", "-h"], "WINDOW_NOT_FOUND", "window 7"),
    "a process id without end": (["image", "--app", "PID:" + "1" * 5000], "APP_NOT_FOUND", "PID:111"),
    "the options first":
        (["press", "--modifiers", "cmd,shift", "--verify", "7", "-"], "WINDOW_NOT_FOUND", "window 7"),
    "an unknown app": (["image", "--app", "Zoë"], "APP_NOT_FOUND", "no running application is called 'Zoë'"),
    "an empty app": (["image", "--app", " "], "INVALID_ARGUMENT", "the app's name is empty"),
    "a mode without its app": (["image", "--mode", "multi"], "INVALID_ARGUMENT", "needs an app"),
    "a process id that is none": (["list", "windows", "--app", "PID:me"], "INVALID_ARGUMENT", "PID:501"),
    "a screen that is not there":
        (["image", "--screen-index", "9"], "INVALID_ARGUMENT", "there is no screen 9"),
    "nothing in front": (["image", "--mode", "frontmost"], "WINDOW_NOT_FOUND", "no window on the screen"),
    "a path below a file": (["image", "--path", f"{FOLDER}/file/shot.png"], "FILE_IO_ERROR", "file"),
    "a file in a folder's place":
        (["image", "--path", f"{FOLDER}/file"], "FILE_IO_ERROR",
         "file is a file, not a folder; choose another path"),
    "a folder below a file": (["image", "--path", f"{FOLDER}/file/shots"], "FILE_IO_ERROR", "file"),
    "a path where nothing is written":
        (["image", "--path", "/proc/shot.png"], "FILE_IO_ERROR", "/proc/shot.png"),
    "a folder where nothing is written": (["image", "--path", "/proc/shots"], "FILE_IO_ERROR", "/proc/shots"),
    "a file that is no image":
        (["image", "--path", f"{FOLDER}/notes.png"], "FILE_IO_ERROR", "is not an image"),
    "a link to a file that is no image":
        (["image", "--path", f"{FOLDER}/link.png"], "FILE_IO_ERROR", "is not an image"),
    "a pipe": (["image", "--path", f"{FOLDER}/pipe.png"], "FILE_IO_ERROR", "is not an image"),
}  # fmt: skip


@pytest.mark.parametrize("row", USAGE.values(), ids=USAGE.keys())
def test_bad_usage_is_refused_before_anything_is_asked(
    forked: Program, tmp_path: Path, row: tuple[list[str], str]
) -> None:
    arguments = [argument.replace(FOLDER, str(tmp_path)) for argument in row[0]]
    assert_is_refused(forked.run("--json", *arguments), "INVALID_ARGUMENT", 2, row[1])


def test_a_message_that_is_a_sentence_is_joined_to_the_next_step_by_one_sign(forked: Program) -> None:
    message = forked.error("analyze", "shot.png", "What does it say?")["message"]
    assert "Set the PEEKABOO_AI_PROVIDERS environment variable; for example " in message


@pytest.fixture(scope="module")
def empty_display() -> Any:
    with x_server(with_window_manager=False, screen="640x480x24") as name:
        yield name


@pytest.mark.parametrize("row", ON_A_DISPLAY.values(), ids=ON_A_DISPLAY.keys())
def test_what_is_not_there_or_cannot_be_written_is_an_error_with_the_next_step(
    forked_forms: TwoForms, tmp_path: Path, empty_display: str, row: tuple[list[str], str, str]
) -> None:
    arguments, code, message = row
    (tmp_path / "file").write_text("file")
    (tmp_path / "notes.png").write_text("my notes")
    (tmp_path / "link.png").symlink_to("notes.png")
    os.mkfifo(tmp_path / "pipe.png")
    arguments = [argument.replace(FOLDER, str(tmp_path)) for argument in arguments]
    forked_forms.fails(arguments, code, EXIT_CODES[code], message, DISPLAY=empty_display)
    kept = [(tmp_path / name).read_text() for name in ("file", "notes.png", "link.png")]
    assert (kept, (tmp_path / "pipe.png").is_fifo()) == (["file", "my notes", "my notes"], True)
    assert [
        path
        for path in tmp_path.rglob("*.png")
        if path.is_file() and path.name not in ("notes.png", "link.png")
    ] == []


@pytest.mark.parametrize(
    ("display", "words"),
    [
        (None, ["windows"]),
        (None, ["list", "apps"]),
        (None, ["image"]),
        (NOBODY, ["windows"]),
        ("no display", ["image"]),
    ],
)
def test_without_a_display_the_error_says_how_to_get_one(
    two_forms: TwoForms, display: Any, words: list[str]
) -> None:
    variables = {} if display is None else {"DISPLAY": display}
    two_forms.fails(words, "NO_GUI_SESSION", 1, "set DISPLAY to a running X server", **variables)
    details = {
        None: "DISPLAY is not set",
        NOBODY: f"DISPLAY is '{NOBODY}': No such file or directory",
        "no display": "DISPLAY is 'no display'",
    }
    assert two_forms.package.run(*words, **variables).err.splitlines()[1:] == [f"  {details[display]}"]


def test_a_hung_display_is_given_up_in_time(forked: Program) -> None:
    need("Xvfb")
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer)], pass_fds=[writer], stderr=subprocess.DEVNULL
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as f:
            display = f":{f.readline().strip()}"
        server.send_signal(signal.SIGSTOP)
        running = [forked.start("--json", word, DISPLAY=display) for word in ("windows", "image")]
        finished = [finish(one) for one in running]
    finally:
        server.kill()
        server.wait()
    assert [(one.code, one.error["code"]) for one in finished] == [(22, "TIMEOUT")] * 2
    assert all("did not" in each.error["message"] for each in finished)


BAD_VARIABLES = {
    "PEEKABOO_TTL_SECONDS": ["abc", "-1", "1.5", "nan"],
    "PEEKABOO_READONLY": ["maybe"],
    "PEEKABOO_AI_TIMEOUT": ["inf", "soon"],
    "PEEKABOO_DESKTOP": ["windows"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD_VARIABLES.items() for value in values]
)
def test_a_bad_variable_is_named(forked: Program, empty_display: str, name: str, value: str) -> None:
    variables = {"DISPLAY": empty_display, name: value}
    finished = forked.run("windows", "--json", **variables)
    assert_is_refused(finished, "INVALID_ARGUMENT", 2, f"{name} is '{value}'")


def test_doctor_names_our_folders_and_the_log(forked: Program, tmp_path: Path, empty_display: str) -> None:
    log = tmp_path / "the server.log"
    data = forked.data("doctor", DISPLAY=empty_display, PEEKABOO_LOG_FILE=str(log))
    found = {check["name"]: check["found"] for check in data["checks"]}
    assert (found["server's log"], data["log_file"]) == (str(log), str(log))
    lines = forked.run("doctor", DISPLAY=empty_display).out.splitlines()
    names = ("temporary folder", "state folder", "server's log")
    assert [name for name in names if any(line.startswith(f"ok      {name}: /") for line in lines)] == list(
        names
    )


def test_doctor_names_a_variable_that_has_no_effect(forked: Program, empty_display: str) -> None:
    data = forked.data("doctor", DISPLAY=empty_display, PEEKABOO_READ_ONLY="1", PEEKABOO_READONLY="1")
    found = {check["name"]: check["found"] for check in data["checks"] if "PEEKABOO" in check["name"]}
    assert list(found) == ["PEEKABOO_READ_ONLY"] and found["PEEKABOO_READ_ONLY"].startswith("has no effect")


def test_doctor_says_what_a_python_without_gi_lacks(
    forked: Program, tmp_path: Path, empty_display: str
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("maim", "xdotool", "xclip", "convert"):
        need(name)
        (folder / name).symlink_to(str(shutil.which(name)))
    (folder / "python3").write_text("#!/bin/sh\nexit 1\n")
    (folder / "python3").chmod(0o700)
    done = forked.run("doctor", DISPLAY=empty_display, PEEKABOO_BIN_DIR=str(folder))
    assert done.code == 0, done.err
    problem = f"-       python3's gi: {folder}/python3 has no gi with Atspi (only for elements)"
    assert f"{problem}\n        install it: sudo apt-get install python3-gi " in done.out


def test_under_wayland_what_looks_warns_that_it_sees_x11_alone(forked: Program, empty_display: str) -> None:
    session = {"DISPLAY": empty_display, "WAYLAND_DISPLAY": "wayland-0"}
    warning = (
        "a Wayland session: only programs that run through XWayland can be seen; log in to an X11 session"
    )
    for words in (["windows"], ["image"]):
        assert forked.run(*words, "--json", **session).json["messages"] == [warning]
        assert forked.run(*words, "--json", DISPLAY=empty_display).json["messages"] == []
    assert warning in forked.error("doctor", **session)["details"]


def test_help_works_with_bad_variables_all_the_same(forked: Program) -> None:
    assert (
        forked.run("windows", "--help", **{name: values[0] for name, values in BAD_VARIABLES.items()}).code
        == 0
    )


def test_an_empty_variable_is_an_unset_one(forked: Program, empty_display: str) -> None:
    empty = dict.fromkeys(BAD_VARIABLES, "")
    assert forked.data("windows", DISPLAY=empty_display, **empty) == {"windows": []}


# the envelope -----------------------------------------------------------------------------------------------


WITH_THE_FLAG = [
    "-j windows",
    "windows --json",
    "windows --json-output --all -j",
    "-j list apps",
    "list --json apps",
]


@pytest.mark.parametrize("words", WITH_THE_FLAG)
def test_the_envelope_is_one_document_wherever_the_flag_stands(
    two_forms: TwoForms, empty_display: str, words: str
) -> None:
    program = two_forms.single_file if words.startswith("-j") else two_forms.package
    finished = program.run(*words.split(), DISPLAY=empty_display)
    data = {"applications": []} if "apps" in words else finished.data if "all" in words else {"windows": []}
    expected = {"success": True, "data": data, "messages": [], "debug_logs": finished.json["debug_logs"]}
    assert (finished.code, finished.json, finished.err) == (0, expected, "")
    assert all(isinstance(line, str) for line in expected["debug_logs"])


@both_forms
def test_the_version_and_help_are_documents_too_where_that_is_asked(program: Program) -> None:
    from peekaboo_min import __version__

    assert program.run("--version") == Finished(0, f"{__version__}\n", "")
    assert program.data("--version") == {"version": __version__}
    assert program.data("help")["help"] == program.run("--help").out.rstrip()


def test_without_the_flag_people_get_text(forked: Program, empty_display: str) -> None:
    finished = forked.run("windows", DISPLAY=empty_display)
    assert finished == Finished(0, "0 window(s), front to back:\n", "")


# help -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example(forked: Program, name: str) -> None:
    finished = forked.run(*name.split(), "--help")
    assert (finished.code, finished.err) == (0, "")
    assert finished.out.startswith(f"usage: peekaboo-min {name}")
    same = [other for other, place in COMMANDS.items() if place == COMMANDS[name]]
    assert any(f"example:\n  peekaboo-min {other}" in finished.out for other in same)


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_the_overview_names_every_command(two_forms: TwoForms, word: str) -> None:
    finished = (two_forms.single_file if word == "-h" else two_forms.package).run(word)
    assert (finished.code, finished.err) == (0, "")
    listed = re.findall(r"^  ([a-z].*?)  +\S", finished.out, re.M)
    assert listed == list(COMMANDS)


def test_help_shows_what_may_be_chosen(forked: Program) -> None:
    shown = forked.run("scroll", "--help").out
    assert "DIRECTION               {up,down,left,right} down shows" in shown
    assert "find-text WINDOW_ID [TEXT] [options]" in forked.run("find-text", "--help").out


def test_help_fits_80_columns_and_names_commands_not_tools(forked: Program) -> None:
    texts = [forked.run(*name.split(), "--help").out.partition("\nexample:")[0] for name in COMMANDS]
    texts += [forked.run("--help").out, forked.run("list", "--help").out]
    assert [line for text in texts for line in text.splitlines() if len(line) > 79] == []
    tools = {tool.name for tool in TOOLS if "_" in tool.name}
    # MCP's own group name is a name in the shell as well
    assert sorted(tools & set(re.findall(r"\w+", " ".join(texts)))) == []


def test_help_is_had_before_a_command_and_right_after_it(forked: Program) -> None:
    program = forked
    asked = (["click", "--help"], ["-h", "click"], ["help", "click"])
    texts = {program.run(*words).out for words in asked}
    assert len(texts) == 1 and texts.pop().startswith("usage: peekaboo-min click ")
    for words in (["type", "-h"], ["help", "type"]):
        assert program.run(*words).out.startswith("usage: peekaboo-min type "), words
    assert "list apps" in program.run("list", "--help").out


# the surroundings -------------------------------------------------------------------------------------------


def test_stdin_is_never_read(forked: Program, tmp_path: Path, empty_display: str) -> None:
    (tmp_path / "stdin").write_text("windows\n" * 100)
    with open(tmp_path / "stdin") as f:
        for words in (["windows", "-j"], ["type", "7", "x"], ["nonsense"]):
            subprocess.run(
                [*forked.words, *words],
                env={**forked.environment, "DISPLAY": empty_display},
                stdin=f,
                capture_output=True,
                timeout=PATIENCE_S,
            )
        assert os.lseek(f.fileno(), 0, os.SEEK_CUR) == 0


@pytest.mark.parametrize("words", [["--help"], ["windows", "--json"], ["nonsense", "--json"]])
def test_a_reader_that_goes_away_is_no_error(
    two_forms: TwoForms, empty_display: str, words: list[str]
) -> None:
    program = two_forms.package
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*program.words, *words],
        env={**program.environment, "DISPLAY": empty_display},
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (2 if words[0] == "nonsense" else 0, b"")


@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_code(two_forms: TwoForms, closing: str) -> None:
    program = two_forms.single_file if len(closing) > 4 else two_forms.package
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" nonsense {closing}', "sh", *program.words],
        env=program.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)


def test_an_image_for_a_closed_stdout_is_no_crash(forked: Program, empty_display: str) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" image --path - >&-', "sh", *forked.words],
        env={**forked.environment, "DISPLAY": empty_display},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_behind_stdout_is_reported_without_a_traceback(forked: Program) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*forked.words, "--help"],
            env=forked.environment,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=PATIENCE_S,
        )
    assert (done.returncode != 0, b"Traceback" in done.stderr) == (True, False)


def on_a_terminal(program: Program, *words: str, **variables: str) -> tuple[int, str]:
    """The exit code of a command on a terminal of its own, and what the terminal got."""
    ours, terminal = os.openpty()
    with subprocess.Popen(
        [*program.words, *words],
        env={**program.environment, **variables},
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
    ) as process:  # fmt: skip
        os.close(terminal)
        shown = b""
        try:
            while select.select([ours], [], [], PATIENCE_S)[0]:
                shown += os.read(ours, 1 << 16)
        except OSError:  # EIO: the last writer has closed it
            return process.wait(PATIENCE_S), shown.decode("utf-8").replace("\r\n", "\n")
        finally:
            os.close(ours)
            process.kill()
    pytest.fail(f"{words} does not end: {shown!r}")


@both_forms
def test_the_bare_command_on_a_terminal_is_help(program: Program) -> None:
    code, shown = on_a_terminal(program)
    assert code == 0 and shown == program.run("--help").out
    assert "`config` prints what your MCP client needs" in shown


LOCALES = {
    "C": {"LC_ALL": "C"},
    "POSIX": {"LC_ALL": "POSIX", "LANG": ""},
    "unknown": {"LC_ALL": "xx_YY.ISO-8859-1"},
    "another encoding of Python's": {"PYTHONIOENCODING": "latin-1"},
}


@pytest.mark.parametrize("locale", LOCALES.values(), ids=LOCALES.keys())
def test_text_beyond_ascii_survives_every_locale(two_forms: TwoForms, locale: dict[str, str]) -> None:
    two_forms.fails(["Zoë😀"], "INVALID_ARGUMENT", 2, "there is no command 'Zoë😀'", **locale)


# urllib.parse alone is what pathlib imports
HEAVY = {
    "mcp",
    "pydantic",
    "anyio",
    "asyncio",
    "urllib.request",
    "http",
    "email",
    "ssl",
    "concurrent",
}


@both_forms
def test_a_command_imports_nothing_of_mcp_and_nothing_slow(
    program: Program, tmp_path: Path, empty_display: str
) -> None:
    words = [program.words[0], "-X", "importtime", *program.words[1:], "windows", "--json"]
    done = subprocess.run(
        words,
        env={**program.environment, "DISPLAY": empty_display},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        encoding="utf-8",
    )
    assert json.loads(done.stdout)["success"]
    imported = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "selectors" in imported
    assert sorted(imported & HEAVY) == []


def test_every_command_works_where_mcp_cannot_be_imported(forked: Program, tmp_path: Path) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text(
        "raise ModuleNotFoundError('No module named mcp', name='mcp')"
    )
    path = f"{tmp_path}{os.pathsep}{forked.environment['PYTHONPATH']}"
    finished = forked.run("doctor", "--json", PYTHONPATH=path, DISPLAY=NOBODY)
    assert (finished.code, finished.error["code"]) == (1, "NO_GUI_SESSION")
    assert forked.run("--help", PYTHONPATH=path).code == 0


def test_an_image_is_not_written_over_a_folder(forked: Program, open_form: Any, tmp_path: Path) -> None:
    form: Form = open_form()
    program = forked.having(DISPLAY=form.display)
    (window_id,) = wait_for(
        lambda: [one["window_id"] for one in program.data("windows", "--app", "Form")["windows"]],
        "the form is listed",
    )
    error = program.error("screenshot", window_id, "--path", tmp_path)
    assert (error["code"], "is a folder" in error["message"]) == ("FILE_IO_ERROR", True)


@both_forms
def test_nothing_is_written_but_in_our_folders(program: Program, tmp_path: Path, empty_display: str) -> None:
    need("maim")
    program.data("image", DISPLAY=empty_display)
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_dir())
    ours = {"state/peekaboo_min", "state/peekaboo_min/bytecode", f"tmp/peekaboo_min-{os.getuid()}"}
    assert set(found) - ours == {"home", "state", "tmp"}


WAITING = """#!/bin/sh
[ "$1" != --version ] || exit 1
pwd > "$1/started.new"
mv "$1/started.new" "$1/started"
while [ ! -e "$1/go" ]; do sleep 0.05; done
echo done > result.txt
"""


def test_clean_spares_the_folder_of_a_running_exec(forked: Program, tmp_path: Path) -> None:
    (tmp_path / "waiting").write_text(WAITING)
    (tmp_path / "waiting").chmod(0o700)
    delegate = str(tmp_path / "waiting")
    with forked.start("exec", "--json-output", "--", tmp_path, PEEKABOO_CLI_PATH=delegate) as process:
        wait_for((tmp_path / "started").exists, "the program is started")
        folder = Path((tmp_path / "started").read_text().strip())
        try:
            assert forked.data("clean") == {"deleted": 0}
        finally:
            (tmp_path / "go").write_text("")
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err, json.loads(out)["data"]["exit_code"]) == (0, b"", 0)
    assert (folder / "result.txt").read_text() == "done\n"
    assert forked.data("clean") == {"deleted": 1}
    assert not folder.exists()


def test_clean_all_leaves_nothing_but_what_is_the_users(forked: Program, empty_display: str) -> None:
    need("maim")
    home = Path(forked.environment["HOME"]).parent
    log = home / "tmp" / "peekaboo-mcp.log"
    log.write_text("a line")
    gmail = home / "state" / "peekaboo_min" / "gmail"
    gmail.mkdir(parents=True, mode=0o700)
    gmail.parent.chmod(0o700)
    for name in ("token.json", "credentials.json"):
        (gmail / name).write_text("{}")
    forked.data("image", DISPLAY=empty_display)
    assert forked.data("clean", "--all")["kept"] == [str(gmail)]
    left = [path for name in ("tmp", "state", "home") for path in (home / name).rglob("*") if path.is_file()]
    assert left == [gmail / "credentials.json"]
    (gmail / "credentials.json").unlink()
    gmail.rmdir()
    stop = gmail.parent / "STOP"
    stop.write_text("")
    assert forked.data("clean", "--all")["kept"] == [str(stop)]
    stop.unlink()
    own_log = home / "home" / "own.log"
    own_log.write_text("a line")
    assert forked.data("clean", "--all", PEEKABOO_LOG_FILE="~/own.log")["kept"] == []
    assert not own_log.exists()
    own_log.mkdir()
    (own_log / "a note").write_text("no log")
    assert forked.data("clean", "--all", PEEKABOO_LOG_FILE="~/own.log")["kept"] == [str(own_log)]
    (own_log / "a note").unlink()
    own_log.rmdir()
    assert forked.data("clean", "--all")["kept"] == []
    assert [path for name in ("tmp", "state", "home") for path in (home / name).iterdir()] == []
