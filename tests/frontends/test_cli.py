"""The command line: bad input, exit codes, JSON, help, environment, files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from worlds import PATIENCE_S, Finished, Program, bare_x_server, both_forms, need, wait_for

from peekaboo_min import __version__
from peekaboo_min.tools.table import COMMANDS

UNUSED_DISPLAY = ":64999"
NEXT_STEP = "; "


@pytest.fixture(scope="module")
def empty_display() -> Iterator[str]:
    with bare_x_server("640x480x24") as name:
        yield name


def assert_is_refused(finished: Finished, code: str, exit_code: int, message: str) -> None:
    assert (finished.code, finished.err) == (exit_code, "")
    assert set(finished.json) == {"success", "error", "debug_logs"}
    assert set(finished.error) == {"code", "message", "details"}
    assert finished.error["code"] == code and message in finished.error["message"]
    assert NEXT_STEP in finished.error["message"]


def assert_fails(program: Program, argv: list[str], code: str, exit_code: int, message: str) -> None:
    """Check the error as text on stderr and as one JSON document on stdout."""
    text = program.run(*argv)
    assert (text.code, text.out) == (exit_code, "")
    assert text.err.startswith("peekaboo-min: ") and message in text.err and "Traceback" not in text.err
    assert NEXT_STEP in text.err and "\x1b" not in text.err
    assert_is_refused(program.run("--json", *argv), code, exit_code, message)


# argv => part of the message; the code is always INVALID_ARGUMENT
USAGE = """
nothing-known                    => there is no command 'nothing-known'; see peekaboo-min --help
wndows                           => 'wndows'; did you mean peekaboo-min windows?
exec image --app Form            => '--app' is not an option; use one of
list foo                         => there is no command 'list foo'; the commands are list apps, list windows
windows --frob                   => --frob
click-text Sign                  => the following arguments are required: TEXT; usage: peekaboo-min click-text
type 7 a -- b                    => 'b' is left over; put a text of several words in quotes
click-text Form Sign the book    => 'the book' is left over; put a text of several words in quotes
screenshot Form out.png          => 'out.png' is left over; did you mean --path out.png?
screenshot --app Form            => give the window's id or name without an option, as the first argument
wait-for Form                    => 'Form' is left over; did you mean --app Form?
wait-for --app Form --timeout 3  => '--timeout' is not an option; did you mean --timeout-s?
agent goal                       => 'goal' is left over; did you mean --goal goal?
open gedit                       => 'gedit' is left over; did you mean --app gedit?
open /tmp/a.txt                  => '/tmp/a.txt' is left over; did you mean --path /tmp/a.txt?
list window                      => did you mean peekaboo-min list windows?
serve                            => to serve MCP on stdio, run peekaboo-min without a command
config emacs                     => 'emacs' is not one of claude-code, claude-desktop
config cursor --env NOT_SET      => the environment variable NOT_SET is not set here
config codex --env FOO=bar       => write FOO=bar peekaboo-min config codex --env FOO
windows --jsn                    => use one of --app, --all, --json-output, --help, or put
press ctrl+s                     => required: KEY; usage: peekaboo-min press WINDOW KEY
click 120 48 Form                => argument Y: 'Form' is not a number; usage: peekaboo-min click WINDOW X Y
type 7 -hello                    => or put -- before text that starts with -
image --app -x                   => the value of --app begins with a dash; write --app=-x
list                             => `list` needs a subcommand
                                 => no command was given
image --path ~nosuchuser/a.png   => is not a valid path
list windows                     => --app
windows --json=1                 => --json
image --mode all                 => screen, window, multi, frontmost
list windows --app x --include-details ids,size => 'size'
focus 7 seven                    => 'seven' is left over
image --window-id 7 --window-title a => more than one of window title, index and id
click 7 nan 1                    => 'nan'
click 7 1 1 --clicks 4           => clicks is 4; give a number from 1 to 3
click 7 1 1 --button side        => left, right, middle
type 7 ''                        => the text is empty
wait-for --window-id 7 --still --timeout-s 601 => timeout_s is 601; give a number from 1 to 600
press 7 Retrun                   => use a-z, 0-9, f1-f20, return
press 7 a --modifiers hyper      => 'hyper'
image --max-dimension 0          => max
image --path a.webp              => .png or .jpg
"""
ODD_USAGE = [
    (["type", "7", "a\x1b[31m"], "control character"),
    (["type", "7", "x" * 20_001], "20000"),
    (["click", "7", "1", "\x1b[2J\udcff"], "is not a number"),
]

# argv => error code => part of the message, on an empty display
ON_A_DISPLAY = """
screenshot 7                     => WINDOW_NOT_FOUND => there is no window 7; list the windows again
focus 0x1F                       => WINDOW_NOT_FOUND => there is no window 31
click -5 -1 -.5                  => WINDOW_NOT_FOUND => there is no window -5
type 7 -- --json                 => WINDOW_NOT_FOUND => there is no window 7
type 7 -- -h                     => WINDOW_NOT_FOUND => window 7
press --modifiers cmd,shift --verify 7 - => WINDOW_NOT_FOUND => window 7
image --mode frontmost           => WINDOW_NOT_FOUND => no window on the screen
image --app Zoë                  => APP_NOT_FOUND    => no running application is called 'Zoë'
image --app ' '                  => INVALID_ARGUMENT => the app's name is empty
image --mode multi               => INVALID_ARGUMENT => needs an app
list windows --app PID:999999    => APP_NOT_FOUND => no application has the process id 999999; list
list windows --app PID:me        => INVALID_ARGUMENT => PID:501
image --screen-index 9           => INVALID_ARGUMENT => there is no screen 9
image --path file/shot.png       => FILE_IO_ERROR    => file
image --path file                => FILE_IO_ERROR    => file is a file, not a folder; choose another path
image --path /proc/shots         => FILE_IO_ERROR    => /proc/shots
image --path notes.png           => FILE_IO_ERROR    => is not an image
image --path link.png            => FILE_IO_ERROR    => is not an image
image --path pipe.png            => FILE_IO_ERROR    => is not an image
analyze shot.png ?               => AI_NOT_CONFIGURED => AI_PROVIDERS environment variable; for example
"""
ODD_ON_A_DISPLAY = [
    (["image", "--path", f"{'x' * 300}.png"], "FILE_IO_ERROR", "name too long"),
    (["type", str(2**70), "x"], "WINDOW_NOT_FOUND", str(2**70)),
    (["image", "--app", "\x1b[2J\udcff"], "APP_NOT_FOUND", "is called"),  # not UTF-8
]
EXIT_CODES = {
    "AI_NOT_CONFIGURED": 1,
    "INVALID_ARGUMENT": 2,
    "WINDOW_NOT_FOUND": 15,
    "FILE_IO_ERROR": 17,
    "APP_NOT_FOUND": 18,
}


def rows(table: str) -> list[Any]:
    """Return a table's rows, the first column split like a shell line."""
    cells = [[cell.strip() for cell in line.split("=>")] for line in table.strip("\n").splitlines()]
    return [(shlex.split(argv), *others) for argv, *others in cells]


@pytest.mark.parametrize(("argv", "message"), [*rows(USAGE), *ODD_USAGE], ids=lambda cell: str(cell)[:60])
def test_bad_usage_is_refused_before_the_display_is_used(
    forked: Program, argv: list[str], message: str
) -> None:
    assert_is_refused(forked.run("--json", *argv), "INVALID_ARGUMENT", 2, message)


@pytest.mark.parametrize(
    ("argv", "code", "message"), [*rows(ON_A_DISPLAY), *ODD_ON_A_DISPLAY], ids=lambda cell: str(cell)[:60]
)
def test_failure_has_a_code_a_next_step_and_changes_no_file(
    forked: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_display: str,
    argv: list[str], code: str, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for name, text in {"file": "file", "notes.png": "my notes"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.png").symlink_to("notes.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert_fails(forked.having(DISPLAY=empty_display), argv, code, EXIT_CODES[code], message)
    kept = [(tmp_path / name).read_text() for name in ("file", "notes.png", "link.png")]
    assert (kept, (tmp_path / "pipe.png").is_fifo()) == (["file", "my notes", "my notes"], True)
    folders = {"file", "notes.png", "link.png", "pipe.png", "home", "state", "tmp"}
    assert {path.name for path in tmp_path.iterdir()} == folders


DISPLAYS = {
    "": "DISPLAY is not set",
    UNUSED_DISPLAY: f"DISPLAY is '{UNUSED_DISPLAY}': No such file or directory",
    "no display": "DISPLAY is 'no display'",
    "127.0.0.1:999.7": "DISPLAY is '127.0.0.1:999.7': Connection refused",
}


@pytest.mark.parametrize(
    ("display", "argv"),
    [("", "windows"), ("", "list apps"), ("", "image"), *((name, "windows") for name in [*DISPLAYS][1:])],
)
def test_missing_display_is_an_error_with_a_next_step(forked: Program, display: str, argv: str) -> None:
    program = forked.having(DISPLAY=display) if display else forked
    assert_fails(program, argv.split(), "NO_GUI_SESSION", 1, "set DISPLAY to a running X server")
    assert program.run(*argv.split()).err.splitlines()[1:] == [f"  {DISPLAYS[display]}"]


def test_display_that_hangs_is_a_timeout(forked: Program) -> None:
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
        errors = [json.loads(process.communicate(timeout=PATIENCE_S)[0])["error"] for process in running]
    finally:
        server.kill()
        server.wait()
    assert [process.returncode for process in running] == [22, 22]
    assert [(error["code"], "did not" in error["message"]) for error in errors] == [("TIMEOUT", True)] * 2


BAD_VARIABLES = {
    "PEEKABOO_TTL_SECONDS": "abc -1 1.5 nan",
    "PEEKABOO_READONLY": "maybe",
    "PEEKABOO_AI_TIMEOUT": "inf soon",
    "PEEKABOO_DESKTOP": "windows",
}


@pytest.mark.parametrize(("name", "values"), BAD_VARIABLES.items())
def test_bad_variable_is_an_error_except_with_help(
    forked: Program, empty_display: str, name: str, values: str
) -> None:
    for value in values.split():
        finished = forked.having(**{name: value}).run("windows", "--json", DISPLAY=empty_display)
        assert_is_refused(finished, "INVALID_ARGUMENT", 2, f"{name} is '{value}'")
        assert forked.having(**{name: value}).run("windows", "--help").code == 0


def test_empty_variable_counts_as_unset(forked: Program, empty_display: str) -> None:
    empty = dict.fromkeys(BAD_VARIABLES, "")
    assert forked.data("windows", DISPLAY=empty_display, **empty) == {"windows": []}


def test_doctor_names_folders_log_and_variables_without_effect(
    forked: Program, tmp_path: Path, empty_display: str
) -> None:
    program, log = forked.having(DISPLAY=empty_display), str(tmp_path / "the server.log")
    variables = {"PEEKABOO_READ_ONLY": "1", "PEEKABOO_READONLY": "1", "PEEKABOO_LOG_LEVEL": "bogus"}
    data = program.data("doctor", PEEKABOO_LOG_FILE=log, **variables)
    found = {check["name"]: check["found"] for check in data["checks"]}
    assert (found["server's log"], data["log_file"]) == (log, log)
    assert [name for name in found if "PEEKABOO" in name] == ["PEEKABOO_READ_ONLY", "PEEKABOO_LOG_LEVEL"]
    assert found["PEEKABOO_READ_ONLY"].startswith("has no effect")
    assert found["PEEKABOO_LOG_LEVEL"].endswith("; info is used")
    shown = program.run("doctor").out
    for name in ("temporary folder", "state folder", "server's log"):
        assert f"ok      {name}: /" in shown


def test_doctor_names_the_missing_gi_module_and_its_package(
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


def test_wayland_session_causes_a_warning(forked: Program, tmp_path: Path, empty_display: str) -> None:
    session = {"DISPLAY": empty_display, "WAYLAND_DISPLAY": "wayland-0"}
    limitation = "a Wayland session: only programs that run through XWayland can be seen"
    warning = f"{limitation}; log in to an X11 session"
    for argv in (["windows"], ["image", "--path", str(tmp_path / "shot.png")]):
        assert forked.having(**session).run(*argv, "--json").json["messages"] == [warning]
        assert forked.run(*argv, "--json", DISPLAY=empty_display).json["messages"] == []
    assert warning in forked.error("doctor", **session)["details"]


# the envelope -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    ["-j windows", "windows --json", "windows --json-output --all -j", "-j list apps", "list --json apps"],
)
def test_json_is_one_document_wherever_the_flag_is(forked: Program, empty_display: str, argv: str) -> None:
    finished = forked.run(*argv.split(), DISPLAY=empty_display)
    data = {"applications": []} if "apps" in argv else finished.data if "all" in argv else {"windows": []}
    expected = {"success": True, "data": data, "messages": [], "debug_logs": finished.json["debug_logs"]}
    assert (finished.code, finished.json, finished.err) == (0, expected, "")
    assert all(isinstance(line, str) for line in expected["debug_logs"])


@both_forms
def test_version_and_help_have_a_json_form(program: Program) -> None:
    assert program.run("--version") == Finished(0, f"{__version__}\n", "")
    assert program.data("--version") == {"version": __version__}
    assert program.data("help")["help"] == program.run("--help").out.rstrip()


# help -------------------------------------------------------------------------------------------------------


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
    assert forked.run("help", "click").out.startswith("usage: peekaboo-min click ")


HELP_ANYWHERE = {
    "click": "click --help|-h click|click -h|click 7 --help|click 7 --button --help|click 7 1 -h 1 --json=1",
    "list windows": "list windows --app Form --help|list --help windows",
    "list": "list --help|list --app Form -h",
    "exec": "exec image --help|exec -h -- --version",
}


@pytest.mark.parametrize(("name", "lines"), HELP_ANYWHERE.items())
def test_help_flag_works_anywhere_before_two_dashes(forked: Program, name: str, lines: str) -> None:
    expected = forked.run("help", *name.split())
    for line in lines.split("|"):
        assert forked.run(*line.split()) == expected, line
    assert (expected.code, expected.err) == (0, "")


def test_version_flag_works_anywhere_before_two_dashes(forked: Program) -> None:
    for line in ("-V", "version", "click 7 --version", "image --app -V", "list --version"):
        assert forked.run(*line.split()) == Finished(0, f"{__version__}\n", ""), line
    assert __version__ not in forked.run("list", "--", "--version").err


# streams, locale, imports -----------------------------------------------------------------------------------


def test_stdin_is_never_read(forked: Program, tmp_path: Path, empty_display: str) -> None:
    (tmp_path / "stdin").write_text("windows\n" * 100)
    with open(tmp_path / "stdin") as f:
        for argv in (["windows", "-j"], ["type", "7", "x"], ["nonsense"]):
            start(forked, argv, stdin=f, DISPLAY=empty_display)
        assert os.lseek(f.fileno(), 0, os.SEEK_CUR) == 0


def start(
    program: Program,
    argv: list[str],
    closing: str = "",
    stdout: int = -1,
    stdin: Any = None,
    **variables: str,
) -> tuple[int, bytes]:
    """Run under a shell with some streams closed; return exit code and stderr."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *program.words, *argv],
        env={**program.environment, **variables},
        stdin=stdin or subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("argv", [["--help"], ["windows", "--json"], ["nonsense", "--json"]])
def test_closed_pipe_on_stdout_is_no_error(forked: Program, empty_display: str, argv: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = start(forked, argv, stdout=writer, DISPLAY=empty_display)
    os.close(writer)
    assert done == (2 if argv[0] == "nonsense" else 0, b"")


@both_forms
@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_code(program: Program, closing: str) -> None:
    code, err = start(program, ["nonsense"], closing)
    assert (code, b"Traceback" in err) == (2, False)


def test_image_to_a_closed_stdout_does_not_crash(forked: Program, empty_display: str) -> None:
    assert start(forked, ["image", "--path", "-"], ">&-", DISPLAY=empty_display) == (0, b"")


def test_full_disk_behind_stdout_is_reported_without_a_traceback(forked: Program) -> None:
    code, err = start(forked, ["--help"], ">/dev/full")
    assert code != 0 and err.startswith(b"peekaboo-min: the output could not be written: ")


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
    assert_fails(program, ["Zoë😀"], "INVALID_ARGUMENT", 2, "there is no command 'Zoë😀'")


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


# files that stay --------------------------------------------------------------------------------------------


def test_files_are_written_only_into_our_folders(
    program: Program, tmp_path: Path, empty_display: str
) -> None:
    need("maim")
    program.data("image", DISPLAY=empty_display)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_dir()}
    ours = {"state/peekaboo_min", "state/peekaboo_min/bytecode", f"tmp/peekaboo_min-{os.getuid()}"}
    assert found - ours == {"home", "state", "tmp"}


WAITING = """#!/bin/sh
[ "$1" != --version ] || exit 1
pwd > "$1/started.new"
mv "$1/started.new" "$1/started"
while [ ! -e "$1/go" ]; do sleep 0.05; done
echo done > result.txt
"""


def test_clean_keeps_the_folder_of_a_running_exec(forked: Program, tmp_path: Path) -> None:
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


@pytest.mark.leaves(".*/log")
@pytest.mark.parametrize("argv", ["clean", "clean --all"])
@pytest.mark.parametrize(
    "name", ["home/.bashrc", "tmp/OURS/log", "tmp/OURS/logs/log", "state/peekaboo_min/log"]
)
def test_clean_never_deletes_the_file_named_by_the_log_variable(
    forked: Program, tmp_path: Path, argv: str, name: str
) -> None:
    path = tmp_path / name.replace("OURS", f"peekaboo_min-{os.getuid()}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("my own")
    (tmp_path / "tmp" / "link").symlink_to(path.parent)
    for named in (path, tmp_path / "tmp" / "link" / path.name):
        forked.data(*argv.split(), PEEKABOO_LOG_FILE=str(named))
        assert path.read_text() == "my own"


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
    stop.unlink()
    assert kept() == []
    assert [path for name in ("tmp", "state", "home") for path in (tmp_path / name).iterdir()] == []
