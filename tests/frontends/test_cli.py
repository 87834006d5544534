"""The command line: bad input, exit codes, the JSON envelope, help, and what its environment may do to it."""

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
from worlds import PATIENCE_S, Finished, Program, both_forms, need, wait_for, x_server

from peekaboo_min import __version__
from peekaboo_min.frontends.tools import COMMANDS, TOOLS

NOBODY = ":64999"  # a display that no X server serves
NEXT_STEP = "; "


@pytest.fixture(scope="module")
def empty_display() -> Iterator[str]:
    with x_server(with_window_manager=False, screen="640x480x24") as name:
        yield name


def assert_is_refused(finished: Finished, code: str, exit_code: int, message: str) -> None:
    assert (finished.code, finished.err) == (exit_code, "")
    assert set(finished.json) == {"success", "error", "debug_logs"}
    assert set(finished.error) == {"code", "message", "details"}
    assert finished.error["code"] == code and message in finished.error["message"]
    assert NEXT_STEP in finished.error["message"]


def assert_fails(program: Program, words: list[str], code: str, exit_code: int, message: str) -> None:
    """The error as text on stderr, and as one JSON document on stdout; nothing besides."""
    text = program.run(*words)
    assert (text.code, text.out) == (exit_code, "")
    assert text.err.startswith("peekaboo-min: ") and message in text.err and "Traceback" not in text.err
    assert NEXT_STEP in text.err and "\x1b" not in text.err
    assert_is_refused(program.run("--json", *words), code, exit_code, message)


# words => a part of the message; all are INVALID_ARGUMENT
USAGE = """
nothing-known                    => there is no command 'nothing-known'; see peekaboo-min --help
wndows                           => 'wndows'; did you mean peekaboo-min windows?
take_window_screenshot 7         => did you mean peekaboo-min screenshot?
get_slide_size                   => did you mean peekaboo-min keynote size?
exec image --app Form            => '--app' is not an option; put -- before a text
list fonts                       => list apps, list windows
windows --frob                   => --frob
click-text Sign                  => the following arguments are required: TEXT; see peekaboo-min click-text
type 7 a -- b                    => unrecognized arguments: b; see
type 7 -hello                    => is not an option; put -- before a text
image --app -x                   => the value of --app begins with a dash; write --app=-x
list                             => `list` needs a subcommand
                                 => no command was given
image --path ~nosuchuser/a.png   => cannot be a path
list windows                     => --app
windows --json=1                 => --json
image --mode all                 => screen, window, multi, frontmost
list windows --app x --include-details ids,size => 'size'
focus 7 seven                    => unrecognized arguments: seven
image --window-id 7 --window-title a => several of a window's title, index and id
click 7 nan 1                    => 'nan'
click 7 1 1 --clicks 4           => clicks is 4; give a number from 1 to 3
click 7 1 1 --button side        => left, right, middle
type 7 ''                        => the text is empty
wait-for --window-id 7 --still --timeout-s 46 => timeout_s is 46; give a number from 1 to 45
press 7 Retrun                   => known are a-z, 0-9, f1-f20, return
press 7 a --modifiers hyper      => 'hyper'
image --max-dimension 0          => max
image --path a.webp              => .png or .jpg
"""
ODD_USAGE = [
    (["type", "7", "a\x1b[31m"], "control character"),
    (["type", "7", "x" * 20_001], "20000"),
    (["click", "7", "1", "\x1b[2J\udcff"], "is not a number"),
]

# words => the error's code => a part of the message; on a display that is there and empty
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
    (["image", "--app", "\x1b[2J\udcff"], "APP_NOT_FOUND", "is called"),  # bytes that are no UTF-8
]
EXIT_CODES = {
    "AI_NOT_CONFIGURED": 1,
    "INVALID_ARGUMENT": 2,
    "WINDOW_NOT_FOUND": 15,
    "FILE_IO_ERROR": 17,
    "APP_NOT_FOUND": 18,
}


def rows(table: str) -> list[Any]:
    """The rows of a table, their first column split as a shell does it."""
    cells = [[cell.strip() for cell in line.split("=>")] for line in table.strip("\n").splitlines()]
    return [(shlex.split(words), *others) for words, *others in cells]


@pytest.mark.parametrize(("words", "message"), [*rows(USAGE), *ODD_USAGE], ids=lambda cell: str(cell)[:60])
def test_usage_that_is_bad_is_refused_before_anything_is_asked(
    forked: Program, words: list[str], message: str
) -> None:
    assert_is_refused(forked.run("--json", *words), "INVALID_ARGUMENT", 2, message)


@pytest.mark.parametrize(
    ("words", "code", "message"), [*rows(ON_A_DISPLAY), *ODD_ON_A_DISPLAY], ids=lambda cell: str(cell)[:60]
)
def test_failure_has_a_code_a_next_step_and_replaces_nothing(
    forked: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_display: str,
    words: list[str], code: str, message: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    for name, text in {"file": "file", "notes.png": "my notes"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "link.png").symlink_to("notes.png")
    os.mkfifo(tmp_path / "pipe.png")
    assert_fails(forked.having(DISPLAY=empty_display), words, code, EXIT_CODES[code], message)
    kept = [(tmp_path / name).read_text() for name in ("file", "notes.png", "link.png")]
    assert (kept, (tmp_path / "pipe.png").is_fifo()) == (["file", "my notes", "my notes"], True)
    folders = {"file", "notes.png", "link.png", "pipe.png", "home", "state", "tmp"}
    assert {path.name for path in tmp_path.iterdir()} == folders


DISPLAYS = {
    "": "DISPLAY is not set",
    NOBODY: f"DISPLAY is '{NOBODY}': No such file or directory",
    "no display": "DISPLAY is 'no display'",
    "127.0.0.1:999.7": "DISPLAY is '127.0.0.1:999.7': Connection refused",
}


@pytest.mark.parametrize(
    ("display", "words"),
    [("", "windows"), ("", "list apps"), ("", "image"), *((name, "windows") for name in [*DISPLAYS][1:])],
)
def test_display_that_is_missing_is_an_error_with_a_next_step(
    forked: Program, display: str, words: str
) -> None:
    program = forked.having(DISPLAY=display) if display else forked
    assert_fails(program, words.split(), "NO_GUI_SESSION", 1, "set DISPLAY to a running X server")
    assert program.run(*words.split()).err.splitlines()[1:] == [f"  {DISPLAYS[display]}"]


def test_display_that_hangs_is_given_up_in_time(forked: Program) -> None:
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
def test_variable_that_is_bad_is_named_but_not_by_help(
    forked: Program, empty_display: str, name: str, values: str
) -> None:
    for value in values.split():
        finished = forked.having(**{name: value}).run("windows", "--json", DISPLAY=empty_display)
        assert_is_refused(finished, "INVALID_ARGUMENT", 2, f"{name} is '{value}'")
        assert forked.having(**{name: value}).run("windows", "--help").code == 0


def test_variable_that_is_empty_is_an_unset_one(forked: Program, empty_display: str) -> None:
    empty = dict.fromkeys(BAD_VARIABLES, "")
    assert forked.data("windows", DISPLAY=empty_display, **empty) == {"windows": []}


def test_doctor_names_our_folders_the_log_and_what_has_no_effect(
    forked: Program, tmp_path: Path, empty_display: str
) -> None:
    program, log = forked.having(DISPLAY=empty_display), str(tmp_path / "the server.log")
    data = program.data("doctor", PEEKABOO_LOG_FILE=log, PEEKABOO_READ_ONLY="1", PEEKABOO_READONLY="1")
    found = {check["name"]: check["found"] for check in data["checks"]}
    assert (found["server's log"], data["log_file"]) == (log, log)
    assert [name for name in found if "PEEKABOO" in name] == ["PEEKABOO_READ_ONLY"]
    assert found["PEEKABOO_READ_ONLY"].startswith("has no effect")
    shown = program.run("doctor").out
    for name in ("temporary folder", "state folder", "server's log"):
        assert f"ok      {name}: /" in shown


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


def test_wayland_is_warned_of_where_x11_alone_is_seen(
    forked: Program, tmp_path: Path, empty_display: str
) -> None:
    session = {"DISPLAY": empty_display, "WAYLAND_DISPLAY": "wayland-0"}
    sight = "a Wayland session: only programs that run through XWayland can be seen"
    warning = f"{sight}; log in to an X11 session"
    for words in (["windows"], ["image", "--path", str(tmp_path / "shot.png")]):
        assert forked.having(**session).run(*words, "--json").json["messages"] == [warning]
        assert forked.run(*words, "--json", DISPLAY=empty_display).json["messages"] == []
    assert warning in forked.error("doctor", **session)["details"]


# the envelope -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    ["-j windows", "windows --json", "windows --json-output --all -j", "-j list apps", "list --json apps"],
)
def test_json_is_one_document_wherever_the_flag_stands(
    forked: Program, empty_display: str, words: str
) -> None:
    finished = forked.run(*words.split(), DISPLAY=empty_display)
    data = {"applications": []} if "apps" in words else finished.data if "all" in words else {"windows": []}
    expected = {"success": True, "data": data, "messages": [], "debug_logs": finished.json["debug_logs"]}
    assert (finished.code, finished.json, finished.err) == (0, expected, "")
    assert all(isinstance(line, str) for line in expected["debug_logs"])


@both_forms
def test_json_holds_the_version_and_help_too(program: Program) -> None:
    assert program.run("--version") == Finished(0, f"{__version__}\n", "")
    assert program.data("--version") == {"version": __version__}
    assert program.data("help")["help"] == program.run("--help").out.rstrip()


def test_text_is_what_people_get_without_the_flag(forked: Program, empty_display: str) -> None:
    finished = forked.run("windows", DISPLAY=empty_display)
    assert finished == Finished(0, "0 window(s), front to back:\n", "")


# help -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_fits_80_columns_and_has_an_example(forked: Program, name: str) -> None:
    finished = forked.run(*name.split(), "--help")
    assert (finished.code, finished.err) == (0, "")
    assert finished.out.startswith(f"usage: peekaboo-min {name}")
    same = [other for other, place in COMMANDS.items() if place == COMMANDS[name]]
    assert any(f"example:\n  peekaboo-min {other}" in finished.out for other in same)
    assert_is_for_shells(finished.out.partition("\nexample:")[0])


def assert_is_for_shells(text: str) -> None:
    """It fits, and names no tools but those whose name is the command's, too."""
    assert [line for line in text.splitlines() if len(line) > 79] == []
    tools = {tool.name for tool in TOOLS if "_" in tool.name}
    assert sorted(tools & set(re.findall(r"\w+", text))) == []


def test_help_introduces_every_command_by_a_whole_sentence(forked: Program) -> None:
    finished = forked.run("--help")
    assert (finished.code, finished.err) == (0, "")
    assert finished.out == forked.run("-h").out == forked.run("help").out
    assert_is_for_shells(finished.out)
    assert_is_for_shells(forked.run("list", "--help").out)
    unwrapped = re.sub(r"\n {10,}", " ", finished.out)
    commands = dict(re.findall(r"^  ([a-z].*?)  +(\S.*)$", unwrapped, re.M))
    assert list(commands) == list(COMMANDS)
    for name, sentence in commands.items():
        assert sentence.count("(") == sentence.count(")"), (name, sentence)
        assert not re.search(r"(,| like| and| or| the)$", sentence), (name, sentence)
        assert len(sentence) <= 140, (name, sentence)


def test_help_shows_choices_before_a_command_or_after_it(forked: Program) -> None:
    assert "DIRECTION               {up,down,left,right} down shows" in forked.run("scroll", "--help").out
    assert "find-text WINDOW_ID [TEXT] [options]" in forked.run("find-text", "--help").out
    assert "list apps" in forked.run("list", "--help").out
    for words in ("click --help", "-h click", "help click", "click -h"):
        assert forked.run(*words.split()).out == forked.run("help", "click").out, words
    assert forked.run("help", "click").out.startswith("usage: peekaboo-min click ")


# the surroundings -------------------------------------------------------------------------------------------


def test_stdin_is_never_read(forked: Program, tmp_path: Path, empty_display: str) -> None:
    (tmp_path / "stdin").write_text("windows\n" * 100)
    with open(tmp_path / "stdin") as f:
        for words in (["windows", "-j"], ["type", "7", "x"], ["nonsense"]):
            start(forked, words, stdin=f, DISPLAY=empty_display)
        assert os.lseek(f.fileno(), 0, os.SEEK_CUR) == 0


def start(
    program: Program,
    words: list[str],
    closing: str = "",
    stdout: int = -1,
    stdin: Any = None,
    **variables: str,
) -> tuple[int, bytes]:
    """The exit code and stderr of a process that a shell starts with some streams closed."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", *program.words, *words],
        env={**program.environment, **variables},
        stdin=stdin or subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [["--help"], ["windows", "--json"], ["nonsense", "--json"]])
def test_reader_that_goes_away_is_no_error(forked: Program, empty_display: str, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = start(forked, words, stdout=writer, DISPLAY=empty_display)
    os.close(writer)
    assert done == (2 if words[0] == "nonsense" else 0, b"")


@both_forms
@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_change_no_exit_code(program: Program, closing: str) -> None:
    code, err = start(program, ["nonsense"], closing)
    assert (code, b"Traceback" in err) == (2, False)


def test_closed_stdout_for_an_image_is_no_crash(forked: Program, empty_display: str) -> None:
    assert start(forked, ["image", "--path", "-"], ">&-", DISPLAY=empty_display) == (0, b"")


def test_full_disk_behind_stdout_is_reported_without_a_traceback(forked: Program) -> None:
    code, err = start(forked, ["--help"], ">/dev/full")
    assert code != 0 and err.startswith(b"peekaboo-min: the output could not be written: ")


@both_forms
def test_command_line_without_words_on_a_terminal_is_help(program: Program) -> None:
    ours, terminal = os.openpty()
    words = ["timeout", "--foreground", str(PATIENCE_S), *program.words]
    with subprocess.Popen(words, env=program.environment, stdin=terminal, stdout=terminal) as process:
        os.close(terminal)
        shown = b""
        with suppress(OSError):  # EIO: the last writer has closed it
            while more := os.read(ours, 1 << 16):
                shown += more
    os.close(ours)
    text = shown.decode("utf-8").replace("\r\n", "\n")
    assert (process.returncode, text) == (0, program.run("--help").out)
    assert "`config` prints what your MCP client needs" in text


@both_forms
@pytest.mark.parametrize(
    "locale", ["LC_ALL=C", "LC_ALL=POSIX", "LC_ALL=xx_YY.ISO-8859-1", "PYTHONIOENCODING=latin-1"]
)
def test_text_beyond_ascii_survives_every_locale(program: Program, locale: str) -> None:
    name, _, value = locale.partition("=")
    program = program.having(**{name: value}, LANG="")
    assert_fails(program, ["Zoë😀"], "INVALID_ARGUMENT", 2, "there is no command 'Zoë😀'")


# urllib.parse alone is what pathlib imports
HEAVY = {"mcp", "pydantic", "anyio", "asyncio", "urllib.request", "http", "email", "ssl", "concurrent"}


@both_forms
def test_import_of_a_command_is_of_nothing_slow(program: Program, empty_display: str) -> None:
    by_time = Program([program.words[0], "-X", "importtime", *program.words[1:]], program.environment)
    finished = by_time.run("windows", "--json", DISPLAY=empty_display)
    assert finished.json["success"]
    imported = {line.rsplit("|", 1)[-1].strip() for line in finished.err.splitlines() if "|" in line}
    assert "selectors" in imported
    assert sorted(imported & HEAVY) == []


# what stays -------------------------------------------------------------------------------------------------


def test_files_are_written_into_our_folders_alone(
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


def test_clean_all_leaves_nothing_but_what_is_the_users(
    forked: Program, tmp_path: Path, empty_display: str
) -> None:
    def left() -> list[Path]:
        paths = [path for name in ("tmp", "state", "home") for path in (tmp_path / name).rglob("*")]
        return [path for path in paths if path.is_file() or not list(path.iterdir())]

    need("maim")
    (tmp_path / "tmp" / "peekaboo-mcp.log").write_text("a line")
    gmail = tmp_path / "gmail"
    gmail.mkdir(mode=0o700)
    state = tmp_path / "state" / "peekaboo_min"
    forked = forked.having(PEEKABOO_GMAIL_FOLDER=str(gmail))
    for name in ("token.json", "credentials.json"):
        (gmail / name).write_text("{}")
    own_log = tmp_path / "home" / "own.log"
    own_log.write_text("a line")
    forked.data("image", DISPLAY=empty_display)
    assert forked.data("clean", "--all", PEEKABOO_LOG_FILE="~/own.log")["kept"] == []
    assert left() == [tmp_path / "tmp" / "peekaboo-mcp.log"]
    assert forked.data("clean", "--all")["kept"] == []
    assert (left(), os.listdir(gmail)) == ([], ["credentials.json"])
    stop = state / "STOP"
    state.mkdir(parents=True)
    stop.write_text("")
    own_log.mkdir()
    (own_log / "a note").write_text("no log")
    assert forked.data("clean", "--all", PEEKABOO_LOG_FILE="~/own.log")["kept"] == [str(own_log), str(stop)]
    assert left() == [stop, own_log / "a note"]
    stop.unlink()
    shutil.rmtree(own_log)
    assert forked.data("clean", "--all")["kept"] == []
    assert [path for name in ("tmp", "state", "home") for path in (tmp_path / name).iterdir()] == []
