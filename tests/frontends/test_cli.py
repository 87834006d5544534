"""The command line: bad input, exit codes, JSON, help, environment, files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import ANY

import pytest
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from worlds import PATIENCE_S, Finished, Program, bare_x_server, both_forms, executable, need

from peekaboo_min import __version__
from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.core.models import ImageInfo
from peekaboo_min.frontends import cli
from peekaboo_min.system.image_files import whole_image
from peekaboo_min.tools.table import COMMANDS

UNUSED_DISPLAY = ":64999"
NEXT_STEP = "; "


@pytest.fixture(scope="module")
def empty_display() -> Iterator[str]:
    with bare_x_server("640x480x24") as name:
        yield name


def assert_is_refused(finished: Finished, code: ErrorCode, message: str) -> None:
    assert (finished.code, finished.err) == (code.exit_code, "")
    assert set(finished.json) == {"success", "error", "debug_logs"}
    assert set(finished.error) == {"code", "message", "details"}
    assert finished.error["code"] == code
    assert message in finished.error["message"] and NEXT_STEP in finished.error["message"]


def assert_fails(program: Program, argv: list[str], code: ErrorCode, message: str) -> None:
    """Check the error as text on stderr and as one JSON document on stdout."""
    text = program.run(*argv)
    assert (text.code, text.out) == (code.exit_code, "")
    assert text.err.startswith("peekaboo-min: ") and message in text.err and NEXT_STEP in text.err
    assert "Traceback" not in text.err and "\x1b" not in text.err
    assert_is_refused(program.run("--json", *argv), code, message)


# argv | message, then without a window on the display: argv | code | message
TABLES = Path(__file__).with_name("usage_errors.txt").read_text(encoding="utf-8").split("\n\n")
USAGE, ON_A_DISPLAY = ([line.split(" | ") for line in table.splitlines()] for table in TABLES)
USAGE += [["click 7 1 \x1b[2J\udcff", "is not a number"]]
ON_A_DISPLAY += [
    [f"type {2**70} x", "WINDOW_NOT_FOUND", str(2**70)],
    ["image --app \x1b[2J\udcff", "APP_NOT_FOUND", "is called"],  # not UTF-8
    ["run-steps \x1b[2J", "FILE_IO_ERROR", "No such file"],
    [f"image --path {'x' * 300}.png", "FILE_IO_ERROR", "name too long"],
]


@pytest.mark.parametrize(("line", "message"), USAGE, ids=lambda cell: ascii(cell)[:60])
def test_bad_usage_is_refused_before_the_display_is_used(forked: Program, line: str, message: str) -> None:
    assert_is_refused(forked.run("--json", *line.split()), ErrorCode.INVALID_ARGUMENT, message)


@pytest.mark.parametrize(("line", "code", "message"), ON_A_DISPLAY, ids=lambda cell: ascii(cell)[:60])
def test_failure_has_a_code_a_next_step_and_changes_no_file(
    forked: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_display: str,
    line: str, code: str, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for name in ("file", "notes.png"):
        (tmp_path / name).write_text("my notes")
    (tmp_path / "link.png").symlink_to("notes.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert_fails(forked.having(DISPLAY=empty_display), line.split(), ErrorCode(code), message)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    assert kept == dict.fromkeys(("file", "notes.png", "link.png"), "my notes")
    assert (tmp_path / "pipe.png").is_fifo()
    assert {path.name for path in tmp_path.iterdir()} - {*kept} == {"pipe.png", "home", "state", "tmp"}


@pytest.mark.parametrize(
    ("display", "argv", "detail"),
    [
        ("", "windows", "DISPLAY is not set"),
        ("", "image", "DISPLAY is not set"),
        (UNUSED_DISPLAY, "windows", f"DISPLAY is '{UNUSED_DISPLAY}': No such file or directory"),
        ("no display", "windows", "DISPLAY is 'no display'"),
        ("127.0.0.1:999.7", "windows", "DISPLAY is '127.0.0.1:999.7': Connection refused"),
    ],
)
def test_missing_display_has_a_next_step(forked: Program, display: str, argv: str, detail: str) -> None:
    program = forked.having(DISPLAY=display)
    assert_fails(program, [argv], ErrorCode.NO_GUI_SESSION, "set DISPLAY to a running X server")
    finished = program.run(argv)
    assert (finished.code, finished.err.splitlines()[1:]) == (1, [f"  {detail}"])


BAD_VARIABLES = {
    "PEEKABOO_TTL_SECONDS": "abc -1 1.5 nan",
    "PEEKABOO_READONLY": "maybe",
    "PEEKABOO_AI_TIMEOUT": "inf soon",
    "PEEKABOO_DESKTOP": "windows",
}


@pytest.mark.parametrize(("name", "values"), BAD_VARIABLES.items())
def test_bad_variable_stops_all_but_help(forked: Program, empty_display: str, name: str, values: str) -> None:
    for value in values.split():
        program = forked.having(DISPLAY=empty_display, **{name: value})
        message = f"{name} is '{value}'"
        assert_is_refused(program.run("windows", "--json"), ErrorCode.INVALID_ARGUMENT, message)
        assert program.run("windows", "--help").code == 0


def test_empty_variable_counts_as_unset(forked: Program, empty_display: str) -> None:
    empty = dict.fromkeys(BAD_VARIABLES, "")
    assert forked.data("windows", DISPLAY=empty_display, **empty) == {"windows": []}


def test_doctor_names_the_servers_log(forked: Program, tmp_path: Path, empty_display: str) -> None:
    log = str(tmp_path / "the server.log")
    data = forked.data("doctor", DISPLAY=empty_display, PEEKABOO_LOG_FILE=log)
    assert (data["log_file"], data["platform"]) == (log, "x11")


def test_doctor_names_the_package_of_missing_gi(forked: Program, tmp_path: Path, empty_display: str) -> None:
    python = executable(tmp_path / "bin" / "python3", 'case "$*" in *Atspi*) exit 1 ;; esac')
    for name in ("maim", "xdotool", "xclip", "convert"):
        need(name)
        (python.parent / name).symlink_to(str(shutil.which(name)))
    done = forked.run("doctor", DISPLAY=empty_display, PEEKABOO_BIN_DIR=str(python.parent))
    assert done.code == 0, done.err
    problem = f"-       python3's gi: {python} has no gi with Atspi (only for elements)"
    assert f"{problem}\n        install it: sudo apt-get install python3-gi " in done.out
    assert re.search("; optional and missing: .*python3's gi", done.out.splitlines()[-1])


def test_wayland_session_causes_a_warning(forked: Program, tmp_path: Path, empty_display: str) -> None:
    session = {"DISPLAY": empty_display, "WAYLAND_DISPLAY": "wayland-0"}
    limitation = "a Wayland session: only programs that run through XWayland can be seen"
    warning = f"{limitation}; use `peekaboo-min desktop`, or log in to an X11 session"
    for argv in (["windows"], ["image", "--path", str(tmp_path / "shot.png")]):
        assert forked.having(**session).run(*argv, "--json").json["messages"] == [warning]
        assert forked.run(*argv, "--json", DISPLAY=empty_display).json["messages"] == []
    error = forked.error("doctor", **session)
    assert error["message"] == "missing: display; choose Xorg or X11 at the login screen"
    assert error["code"] == "NO_GUI_SESSION" and warning in error["details"]


@pytest.mark.parametrize("line", ["-j list apps", "list --json apps", "list apps --json-output -j"])
def test_json_is_one_document_wherever_the_flag_is(forked: Program, empty_display: str, line: str) -> None:
    finished = forked.run(*line.split(), DISPLAY=empty_display)
    expected = {"success": True, "data": {"applications": []}, "messages": [], "debug_logs": ANY}
    assert (finished.code, finished.json, finished.err) == (0, expected, "")


@both_forms
def test_version_and_help_have_a_json_form(program: Program) -> None:
    assert program.run("--version") == Finished(0, f"{__version__}\n", "")
    assert program.data("--version") == {"version": __version__}
    assert program.data("help")["help"] == program.run("--help").out.rstrip()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_fits_80_columns_and_has_an_example(forked: Program, name: str) -> None:
    finished = forked.run(*name.split(), "--help")
    assert (finished.code, finished.err) == (0, "")
    assert finished.out.startswith(f"usage: peekaboo-min {name}")
    same = [other for other, row in COMMANDS.items() if row.function == COMMANDS[name].function]
    assert any(f"example:\n  peekaboo-min {other}" in finished.out for other in same)
    assert "  -h, --help " in finished.out
    assert lines_over_79_columns(finished.out.partition("\nexample:")[0]) == []


def lines_over_79_columns(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > 79]


def test_command_may_be_called_by_the_name_of_its_mcp_tool(forked: Program, empty_display: str) -> None:
    for name in ("windows", "list_windows"):
        finished = forked.run(name, DISPLAY=empty_display)
        assert finished == Finished(0, "0 window(s), front to back:\n", "")


def test_help_lists_every_command_with_a_whole_sentence(forked: Program) -> None:
    finished = forked.having(FORCE_COLOR="1").run("--help")  # Python 3.14 colours its help
    assert (finished.code, finished.err) == (0, "")
    assert finished.out == forked.run("-h").out == forked.run("help").out
    assert lines_over_79_columns(finished.out + forked.run("list", "--help").out) == []
    unwrapped = re.sub(r"\n {10,}", " ", finished.out)
    commands = dict(re.findall(r"^  ([a-z].*?)  +(\S.*)$", unwrapped, re.M))
    assert list(commands) == list(COMMANDS)
    for name, sentence in commands.items():
        assert sentence.count("(") == sentence.count(")"), (name, sentence)
        assert not re.search(r"(,| like| and| or| the)$", sentence), (name, sentence)
        assert len(sentence) <= 140, (name, sentence)


def test_help_shows_choices_and_can_precede_the_command(forked: Program) -> None:
    assert "DIRECTION               {up,down,left,right} down shows" in forked.run("scroll", "--help").out
    assert "find-text WINDOW [TEXT] [options]" in forked.run("find-text", "--help").out
    assert "list apps" in forked.run("list", "--help").out
    assert "sets to false: capture" in forked.run("screenshot-app-window", "--help").out
    assert forked.run("help", "click").out.startswith("usage: peekaboo-min click ")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("-h click", "click"),
        ("click 7 --button --help", "click"),
        ("click 7 1 -h 1 --json=1", "click"),
        ("list --help windows", "list windows"),
        ("list --app Form -h", "list"),
        ("exec -h -- --version", "exec"),
        ("click -V -h", "click"),
    ],
)
def test_help_flag_works_anywhere_before_two_dashes(forked: Program, line: str, name: str) -> None:
    finished = forked.run(*line.split())
    assert finished == forked.run("help", *name.split())
    assert (finished.code, finished.err) == (0, "")


def test_version_flag_works_anywhere_before_two_dashes(forked: Program) -> None:
    for line in ("-V", "version", "image --app -V"):
        assert forked.run(*line.split()) == Finished(0, f"{__version__}\n", ""), line
    assert forked.run("list", "--", "--version").out == ""


def in_shell(program: Program, line: str, **variables: str) -> Program:
    """Run a shell line in which "$@" is the program and its arguments."""
    return Program(["sh", "-c", line, "sh", *program.words], {**program.environment, **variables})


@pytest.mark.parametrize("line", ["windows -j", "type 7 x", "nonsense"])
def test_stdin_is_never_read(forked: Program, tmp_path: Path, empty_display: str, line: str) -> None:
    (tmp_path / "stdin").write_text("windows\n" * 100)
    reading = in_shell(forked, f'exec <{tmp_path}/stdin; "$@" >/dev/null; cat', DISPLAY=empty_display)
    assert reading.run(*line.split()).out == "windows\n" * 100


def test_steps_that_stdin_does_not_hold_are_refused(forked: Program, tmp_path: Path) -> None:
    (tmp_path / "deep").write_text("[" * 100_000)
    for source in ("<&-", f"<{tmp_path}/deep"):
        done = in_shell(forked, f'exec "$@" {source}').run("run-steps", "-")
        assert done.code == 2 and "- is not JSON: " in done.err, source


CLOSED = [("--help", 0), ("windows --json", 0), ("nonsense --json", 2), ("nonsense", 2)]


@pytest.mark.parametrize(("line", "code"), CLOSED)
def test_closed_pipe_on_stdout_or_stderr_is_no_error(
    forked: Program, empty_display: str, line: str, code: int
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environment = {**forked.environment, "DISPLAY": empty_display}
    argv = [*forked.words, *line.split()]
    stderr = subprocess.PIPE if "--" in line else writer
    done = subprocess.run(argv, env=environment, stdout=writer, stderr=stderr, timeout=PATIENCE_S)
    os.close(writer)
    assert (done.returncode, done.stderr or b"") == (code, b"")


@both_forms
@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_code(program: Program, closing: str) -> None:
    done = in_shell(program, f'exec "$@" {closing}').run("nonsense")
    assert done.code == 2 and "Traceback" not in done.err


def test_doctor_asks_for_no_permission_if_stdin_is_closed(forked: Program) -> None:
    done = in_shell(forked, 'exec "$@" <&-').run("doctor", "--request")
    assert done.code == 2 and "run it yourself, in a terminal" in done.err


def test_image_to_a_closed_stdout_does_not_crash(forked: Program, empty_display: str) -> None:
    done = in_shell(forked, 'exec "$@" >&-', DISPLAY=empty_display).run("image", "--path", "-")
    assert (done.code, done.err) == (0, "")


def test_escape_sequence_in_a_path_is_not_printed(
    forked: Program, tmp_path: Path, empty_display: str
) -> None:
    done = forked.run("image", "--path", tmp_path / "\x1b[2J.png", DISPLAY=empty_display)
    assert done.code == 0 and "\ufffd[2J.png" in done.out
    (row,) = forked.data("image", "--path", tmp_path / "\udce9.png", DISPLAY=empty_display)["saved_files"]
    assert row["path"] == f"{tmp_path}/\ufffd.png"


def test_piped_image_is_the_only_one_and_leaves_no_file(
    forked: Program, tmp_path: Path, empty_display: str, mac: FakeMac
) -> None:
    piped = in_shell(forked, f'exec "$@" >{tmp_path}/image', DISPLAY=empty_display)
    for options, info in (
        ([], ImageInfo("png", 640, 480)),
        (["--format", "jpg"], ImageInfo("jpg", 640, 480)),
    ):
        assert piped.run("image", "--path", "-", *options) == Finished(0, "", "")
        assert whole_image((tmp_path / "image").read_bytes()) == info
    question = forked.run("image", "--path", "-", "--question", "?", DISPLAY=empty_display)
    assert "stdout cannot carry both an image and an answer; save the image as a file" in question.err
    on_mac = InProcessProgram(mac_environment(mac))
    window = in_shell(on_mac, f'exec "$@" >{tmp_path}/window').run("screenshot", 1090, "--path", "-")
    assert (window.code, whole_image((tmp_path / "window").read_bytes()) is not None) == (0, True)
    two = on_mac.run("image", "--path", "-")
    problem = "peekaboo-min: stdout takes one image, not 2; name one screen or window, or a folder\n"
    assert two == Finished(2, "", problem)
    assert [
        path for folder in (tmp_path / "tmp", mac.folder / "tmp") for path in folder.rglob("peekaboo_*.*")
    ] == []


def test_bug_is_one_json_document_and_in_text_a_traceback(
    forked: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "run_command", lambda *_: 1 / 0)
    done = forked.run("windows", "--json")
    message = "ZeroDivisionError: division by zero; please report this bug, with its details"
    assert (done.code, done.error) == (1, {"code": "INTERNAL_ERROR", "message": message, "details": ANY})
    assert "in main\n" in done.error["details"]
    with pytest.raises(ZeroDivisionError):
        forked.run("windows")


@pytest.mark.parametrize("line", ["--help", "image --path -"])
def test_full_disk_behind_stdout_is_reported_without_a_traceback(
    forked: Program, empty_display: str, line: str
) -> None:
    done = in_shell(forked, 'exec "$@" >/dev/full', DISPLAY=empty_display).run(*line.split())
    problem = "peekaboo-min: the output could not be written: No space left on device\n"
    assert done == Finished(1, "", problem)


def test_image_is_not_written_to_a_terminal(forked: Program) -> None:
    ours, terminal = os.openpty()
    done = in_shell(forked, f'exec "$@" >{os.ttyname(terminal)}').run("image", "--path", "-")
    for descriptor in (ours, terminal):
        os.close(descriptor)
    assert done.code == 2 and "an image cannot be written to a terminal" in done.err


@both_forms
def test_no_arguments_on_a_terminal_prints_help(program: Program) -> None:
    ours, terminal = os.openpty()
    argv = ["timeout", "--foreground", str(PATIENCE_S), *program.words]
    with subprocess.Popen(argv, env=program.environment, stdin=terminal, stdout=terminal) as process:
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # EIO: the last writer has closed it
            while more := os.read(ours, 1 << 16):
                shown += more
    os.close(ours)
    text = shown.decode("utf-8").replace("\r\n", "\n")
    assert (process.returncode, text) == (0, program.run("--help").out)
    assert "`doctor` checks this machine" in text


@both_forms
@pytest.mark.parametrize(
    "locale", ["LC_ALL=C", "LC_ALL=POSIX", "LC_ALL=xx_YY.ISO-8859-1", "PYTHONIOENCODING=latin-1"]
)
def test_text_beyond_ascii_survives_every_locale(program: Program, locale: str) -> None:
    name, _, value = locale.partition("=")
    program = program.having(**{name: value}, LANG="")
    assert_fails(program, ["Zoë😀"], ErrorCode.INVALID_ARGUMENT, "there is no command 'Zoë😀'")


# not urllib.parse: pathlib imports it
HEAVY = {"mcp", "pydantic", "anyio", "asyncio", "urllib.request", "http", "email", "ssl", "concurrent"}


@both_forms
def test_command_imports_no_slow_module(program: Program, empty_display: str) -> None:
    by_time = Program([program.words[0], "-X", "importtime", *program.words[1:]], program.environment)
    finished = by_time.run("windows", "--json", DISPLAY=empty_display)
    assert finished.json["success"]
    imported = {line.rsplit("|", 1)[-1].strip() for line in finished.err.splitlines() if "|" in line}
    assert "selectors" in imported
    assert sorted(imported & HEAVY) == []


@pytest.mark.leaves(".*/credentials[.]json")
def test_clean_all_keeps_the_mail_client_in_our_state_folder(forked: Program, tmp_path: Path) -> None:
    client = tmp_path / "state" / "peekaboo_min" / "gmail" / "credentials.json"
    client.parent.mkdir(parents=True)
    client.touch()
    forked.data("clean", "--all", PEEKABOO_GMAIL_FOLDER=str(client.parent))
    assert client.exists(), "the user saved it there"


@pytest.mark.leaves(".*/log")
@pytest.mark.parametrize("argv", ["clean", "clean --all"])
@pytest.mark.parametrize(
    "name", ["home/.bashrc", "tmp/OURS/log", "tmp/OURS/logs/log", "state/peekaboo_min/log"]
)
def test_clean_never_deletes_the_users_log(forked: Program, tmp_path: Path, argv: str, name: str) -> None:
    path = tmp_path / name.replace("OURS", f"peekaboo_min-{os.getuid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("my own")
    (tmp_path / "tmp" / "link").symlink_to(path.parent)
    for named in (path, tmp_path / "tmp" / "link" / path.name):
        forked.data(*argv.split(), PEEKABOO_LOG_FILE=str(named))
        assert path.read_text() == "my own"
    assert "is yours to delete" in forked.run("clean", "--all", PEEKABOO_LOG_FILE=str(path)).out


def test_clean_all_leaves_only_the_users_files(forked: Program, tmp_path: Path, empty_display: str) -> None:
    def left() -> list[Path]:
        paths = [path for name in ("tmp", "state", "home") for path in (tmp_path / name).rglob("*")]
        return [path for path in paths if path.is_file() or not list(path.iterdir())]

    def kept() -> list[str]:  # without the locks of this user's other processes
        return [path for path in forked.data("clean", "--all")["kept"] if path.startswith(str(tmp_path))]

    need("maim")
    gmail = tmp_path / "gmail"
    gmail.mkdir(mode=0o700)
    state = tmp_path / "state" / "peekaboo_min"
    forked = forked.having(PEEKABOO_GMAIL_FOLDER=str(gmail))
    for name in ("token.json", "credentials.json"):
        (gmail / name).write_text("{}")
    for suffix in ("", ".1", ".2"):
        (tmp_path / "tmp" / f"peekaboo-mcp.log{suffix}").write_text("a line")
    forked.data("image", DISPLAY=empty_display)
    assert kept() == []
    assert (left(), os.listdir(gmail)) == ([], ["credentials.json"])
    stop = state / "STOP"
    state.mkdir(parents=True)
    stop.write_text("")
    assert kept() == [str(stop)]
    assert left() == [stop]
    (tmp_path / "log.1").write_text("the user's")
    text = forked.run("clean", "--all", PEEKABOO_LOG_FILE=str(tmp_path / "log")).out
    assert str(stop) in text and "is yours to delete" in text
    assert (tmp_path / "log.1").exists()
    stop.unlink()
    assert kept() == []
    assert [path for name in ("tmp", "state", "home") for path in (tmp_path / name).iterdir()] == []
