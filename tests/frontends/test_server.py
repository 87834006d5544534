"""The server over raw JSON-RPC: handshake, purity, cancellation, signals, schemas, shapes of results."""

from __future__ import annotations

import base64
import json
import os
import pty
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_server import FORMS, VERSIONS, Server, assert_all_dead, is_alive, pids_in, serving
from worlds import PATIENCE_S, Form, clean_environment, need, wait_for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def shared(folder: Path, display: str) -> Iterator[Server]:
    """One server, shaken hands with, for what changes nothing in it."""
    with serving("package", clean_environment(folder, DISPLAY=display)) as server:
        server.shake_hands()
        server.call("list")  # takes the status text, which comes once
        yield server


SLOW = """#!/bin/sh
[ "$1" != -version ] || {{ echo "${{0##*/}} 1.1"; exit; }}
trap '' TERM INT HUP
echo $$ >> {pids}
sleep 600 &
echo $! >> {pids}
wait
"""


SLOW_CALL: dict[str, Any] = {"tool": "image", "app": "Form"}  # of itself given up after 45 seconds
SOON_S = 30


@pytest.fixture
def slow_world(tmp_path: Path, display: str) -> dict[str, str]:
    """An environment whose programs note their pids and do not end. What SLOW_CALL runs
    is given up of itself so late that whatever ends it within SOON_S was something else.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("maim", "other_peekaboo"):
        (programs / name).write_text(SLOW.format(pids=tmp_path / "pids"))
        (programs / name).chmod(0o700)
    delegate = str(programs / "other_peekaboo")
    return clean_environment(
        tmp_path, DISPLAY=display, PEEKABOO_BIN_DIR=str(programs), PEEKABOO_CLI_PATH=delegate
    )


def assert_only_messages(server: Server) -> None:
    for line in server.lines:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0" and ("id" in message or "method" in message), line


# life -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_the_protocol_is_shaken_hands_on(tmp_path: Path, display: str, version: str) -> None:
    form = list(FORMS)[VERSIONS.index(version) % 2]
    with serving(form, clean_environment(tmp_path, DISPLAY=display), python=sys.executable) as server:
        answer = server.shake_hands(version)
        assert (answer["protocolVersion"], answer["serverInfo"]["name"]) == (version, "PeekabooMCP")
        assert answer["serverInfo"]["version"]
        assert 200 < len(answer["instructions"]) <= 1500
        assert "tools" in answer["capabilities"]
        assert server.ask("tools/list")["result"]["tools"]
        assert server.end() == 0
        assert server.errors == ""
        assert_only_messages(server)


def test_only_messages_stand_on_stdout_while_tools_run(shared: Server) -> None:
    shared.call("list_windows")
    shared.call("take_window_screenshot", window_id=7)
    shared.call("image", return_data=True, max_dimension=64)
    shared.call("press_key", window_id=7, key="nonsense")
    shared.call("no_such_tool")
    assert "error" in shared.ask("no/such/method")
    assert_only_messages(shared)
    assert shared.errors == ""


def test_a_cancelled_call_kills_its_programs_at_once_and_the_next_call_works(
    tmp_path: Path, slow_world: dict[str, str]
) -> None:
    with serving("package", slow_world) as server:
        server.shake_hands()
        number = server.start_call(**SLOW_CALL)
        pids = pids_in(tmp_path / "pids")
        assert server.ask("ping")["result"] == {}
        server.send("notifications/cancelled", {"requestId": number, "reason": "enough"}, is_request=False)
        wait_for(lambda: not any(map(is_alive, pids)), "the programs are dead", SOON_S)
        refused = server.call("press_key", window_id=7, key="nonsense")
        assert refused["_meta"]["backend_error_code"] == "INVALID_ARGUMENT"
        assert [json.loads(line).get("id") for line in server.lines].count(number) == 0


@pytest.mark.parametrize("form_name", FORMS)
def test_the_end_of_stdin_in_the_middle_of_a_call_ends_everything(
    form_name: str, tmp_path: Path, slow_world: dict[str, str]
) -> None:
    with serving(form_name, slow_world, python=sys.executable) as server:
        server.shake_hands()
        server.start_call(**SLOW_CALL)
        server.start_call("list", item_type="running_applications")
        pids = pids_in(tmp_path / "pids", 4)
        assert server.end(SOON_S) == 0
        assert_all_dead(pids)
        assert_only_messages(server)
        assert "Traceback" not in server.errors


@pytest.mark.parametrize(
    ("form_name", "number"),
    [
        ("package", signal.SIGTERM),
        ("package", signal.SIGINT),
        ("single file", signal.SIGHUP),
    ],
)
def test_a_signal_ends_the_server_and_all_that_it_runs(
    form_name: str, tmp_path: Path, slow_world: dict[str, str], number: signal.Signals
) -> None:
    """ "Implement graceful shutdown on SIGINT, SIGTERM (e.g., await server.close(); logger.flush();
    process.exit(0);)."
    """
    environment = {**slow_world, "PEEKABOO_LOG_FILE": str(tmp_path / "log")}
    with serving(form_name, environment, python=sys.executable) as server:
        server.shake_hands()
        server.start_call(**SLOW_CALL)
        pids = pids_in(tmp_path / "pids")
        server.process.send_signal(number)
        assert server.wait(SOON_S) == (128 + number if number == signal.SIGHUP else 0)
        assert f'"ended by {number.name}"' in (tmp_path / "log").read_text()
        assert_all_dead(pids)
        assert server.errors == ""


@pytest.mark.parametrize("closing", ["<&-", ">&- </dev/null"])
def test_a_closed_stream_is_reported_in_one_sentence(tmp_path: Path, closing: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, *FORMS["package"]],
        env=clean_environment(tmp_path),
        capture_output=True,
        timeout=PATIENCE_S,
    )
    message = b"peekaboo-min: an MCP client must hold stdin and stdout open\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", message)


def test_a_terminal_reads_what_this_is(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        with serving("single file", clean_environment(tmp_path), theirs, sys.executable) as server:
            hint = "serves MCP on stdio and waits for a client; for commands see peekaboo-min --help"
            wait_for(lambda: hint in server.errors, "the hint stands on stderr")
            server.process.send_signal(signal.SIGINT)
            assert (server.wait(), server.lines) == (0, [])
    finally:
        os.close(ours)
        os.close(theirs)


# the log ----------------------------------------------------------------------------------------------------


def test_the_log_is_json_lines_for_the_owner_only_and_holds_no_typed_text(
    tmp_path: Path, display: str
) -> None:
    log = tmp_path / "deep" / "log"
    environment = clean_environment(
        tmp_path, DISPLAY=display, PEEKABOO_LOG_FILE=str(log), PEEKABOO_LOG_LEVEL="debug"
    )
    with serving("package", environment) as server:
        server.shake_hands()
        server.call("type_text", window_id=7, text="my secret words")
        server.call("click", window_id=7, x="my secret words", y=1)
        assert server.end() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all({"time", "level", "pid", "msg"} <= set(line) for line in lines)
    assert [line["msg"] for line in lines[:1]] == ["PeekabooMCP 0.1.0 serves"]
    assert "my secret words" not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_link_in_the_logs_place_is_not_followed(tmp_path: Path, display: str) -> None:
    environment = clean_environment(tmp_path, DISPLAY=display)
    (tmp_path / "victim").write_text("mine\n")
    (tmp_path / "tmp" / "peekaboo-mcp.log").symlink_to(tmp_path / "victim")
    with serving("package", environment) as server:
        server.shake_hands()
        assert server.call("list", item_type="server_status")["isError"] is False
        assert server.end() == 0
        assert "no log: cannot write" in server.errors
    assert (tmp_path / "victim").read_text() == "mine\n"


def test_the_console_may_be_logged_to_besides_the_default_file_and_stdout_stays_pure(
    tmp_path: Path, display: str
) -> None:
    with serving(
        "package", clean_environment(tmp_path, DISPLAY=display, PEEKABOO_CONSOLE_LOGGING="true")
    ) as server:
        server.shake_hands()
        assert server.end() == 0
        assert "serves" in server.errors
        assert_only_messages(server)
    assert "serves" in (tmp_path / "tmp" / "peekaboo-mcp.log").read_text()


# which tools ------------------------------------------------------------------------------------------------

ACTING = {"focus_window", "click", "type_text", "press_key"}
CAPTURE = {"image", "list"}
DESKTOP = {"list_windows", "take_window_screenshot"} | ACTING

CHOICES = {
    "a group and a single tool": (
        {"PEEKABOO_TOOLS": "capture, click"},
        lambda names: names >= CAPTURE and names & DESKTOP == {"click"},
    ),
    "single tools": (
        {"PEEKABOO_TOOLS": "image, list_windows"},
        lambda names: names == {"image", "list_windows"},
    ),
    "read-only": (
        {"PEEKABOO_READONLY": "1"},
        lambda names: names >= CAPTURE | (DESKTOP - ACTING) and not names & ACTING,
    ),
}


@pytest.mark.parametrize(("variables", "is_right"), CHOICES.values(), ids=CHOICES.keys())
def test_the_environment_chooses_the_tools(
    tmp_path: Path, display: str, variables: dict[str, str], is_right: Any
) -> None:
    with serving("package", clean_environment(tmp_path, DISPLAY=display, **variables)) as server:
        server.shake_hands()
        names = {one["name"] for one in server.ask("tools/list")["result"]["tools"]}
        assert is_right(names), names
        assert server.call("wrong_name")["isError"] is True
        if "click" not in names:
            refused = server.call("click", window_id=7, x=1, y=1)
            assert (refused["isError"], refused["_meta"]["backend_error_code"]) == (True, "INVALID_ARGUMENT")


@pytest.mark.parametrize(
    ("form_name", "variables"),
    [("package", {"PEEKABOO_TOOLS": "clik"}), ("single file", {"PEEKABOO_TTL_SECONDS": "abc"})],
)
def test_a_bad_variable_keeps_the_server_from_starting_and_is_named(
    form_name: str, tmp_path: Path, variables: dict[str, str]
) -> None:
    done = subprocess.run(
        [sys.executable, *FORMS[form_name]],
        env=clean_environment(tmp_path, **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        encoding="utf-8",
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("peekaboo-min: ") and next(iter(variables)) in done.stderr
    assert done.stderr.count("\n") == 1


# arguments --------------------------------------------------------------------------------------------------

CLICK = {"window_id": 7, "x": 1, "y": 1}
BAD_ARGUMENTS = {
    "an unknown one": ("click", {**CLICK, "btn": "right"}, "btn: Extra inputs are not permitted"),
    "a missing one": ("click", {"window_id": 7, "x": 1}, "y: "),
    "all missing": ("type_text", {}, "window_id: "),
    "a word for a number": ("click", {**CLICK, "x": "left"}, "x: "),
    "a fraction for an id": ("focus_window", {"window_id": 7.5}, "window_id: "),
    "a list for a text": ("type_text", {"window_id": 7, "text": ["a"]}, "text: "),
    "a list without end": ("focus_window", {"window_id": "[" * 100_000}, "window_id: "),
    "a number for a text": ("type_text", {"window_id": 7, "text": 5}, "text: "),
    "null for what is required": ("focus_window", {"window_id": None}, "window_id: "),
    "a word that is no choice": ("click", {**CLICK, "button": "side"}, "button: "),
    "NaN": ("click", {**CLICK, "x": float("nan")}, "x"),
    "infinity": ("click", {**CLICK, "y": float("inf")}, "y"),
    "four clicks": ("click", {**CLICK, "clicks": 4}, "clicks is 4"),
    "a specifier of both kinds": (
        "image",
        {"app": "x", "window_specifier": {"title": "a", "index": 0}},
        "window_specifier",
    ),
    "a specifier of no kind": ("image", {"app": "x", "window_specifier": {"name": "a"}}, "window_specifier"),
    "a size of nothing": ("image", {"max_dimension": -1}, "max_dimension"),
    "an unknown tool": ("clik", {}, "there is no tool called 'clik'"),
}


@pytest.mark.parametrize(("tool", "arguments", "said"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS.keys())
def test_bad_arguments_are_refused_with_the_parameter_and_the_reason(
    shared: Server, tool: str, arguments: dict[str, Any], said: str
) -> None:
    result = shared.call(tool, **arguments)
    (block,) = result["content"]
    assert {**result, "content": 0} == {
        "content": 0,
        "isError": True,
        "_meta": {"backend_error_code": "INVALID_ARGUMENT"},
    }
    assert block["type"] == "text" and block["text"].startswith("INVALID_ARGUMENT: ")
    assert said in block["text"] and ". Next step: " in block["text"]
    assert "pydantic" not in block["text"] and "Traceback" not in block["text"]


def test_null_stands_for_an_optional_argument_that_is_not_given(shared: Server) -> None:
    result = shared.call("list", item_type=None, app=None, include_window_details=None)
    assert result["isError"] is False


def test_what_strict_clients_leave_out_by_blanks_and_zeros_is_absent(shared: Server) -> None:
    """ "app: z.string().optional().describe("Optional. [...] If omitted, captures screen(s). Uses fuzzy
    matching.")"
    """
    left_out = {"app": "", "path": "", "question": "", "window_id": 0, "max_dimension": 0}
    result = shared.call("image", **left_out)
    assert (result["isError"], len(result["structuredContent"]["saved_files"])) == (False, 1)
    assert shared.call("list", app="")["structuredContent"]["application_list"] is not None


def test_the_list_of_tools_is_not_longer_than_a_model_wants_to_read(shared: Server) -> None:
    tools = shared.ask("tools/list")["result"]["tools"]
    lengths = [len(json.dumps(tool, ensure_ascii=False, separators=(",", ":"))) for tool in tools]
    assert sum(lengths) / len(tools) <= 1100, lengths
    assert [tool["name"] for tool in tools if len(tool["description"]) > 2048] == []


# shapes of results ------------------------------------------------------------------------------------------


@pytest.fixture
def window_id(shared: Server, form: Form) -> int:
    def find() -> list[int]:
        windows = shared.call("list_windows")["structuredContent"]["windows"]
        return [one["window_id"] for one in windows if one["title"] == form.title]

    return wait_for(find, "the form is listed")[0]


def test_a_text_result_holds_the_same_in_both_its_parts(shared: Server, window_id: int) -> None:
    for result in (
        shared.call("list_windows"),
        shared.call("list"),
        shared.call("list", app="Form", include_window_details=["ids", "bounds", "off_screen"]),
        shared.call("focus_window", window_id=window_id),
        shared.call("press_key", window_id=window_id, key="escape"),
    ):
        (block,) = result["content"]
        assert set(result) == {"content", "structuredContent", "isError"} and result["isError"] is False
        summary, _, document = block["text"].partition("\n")
        assert {"summary": summary, **json.loads(document)} == result["structuredContent"]


def test_an_image_result_is_one_text_and_the_images_and_nothing_structured(
    shared: Server, window_id: int
) -> None:
    result = shared.call("take_window_screenshot", window_id=window_id)
    assert set(result) == {"content", "isError"} and result["isError"] is False
    text, picture = result["content"]
    assert (text["type"], picture["type"], picture["mimeType"]) == ("text", "image", "image/jpeg")
    assert base64.b64decode(picture["data"]).startswith(b"\xff\xd8\xff")
    said = json.loads(text["text"].split("\n", 1)[1])
    assert set(said) == {"window_id", "bounds", "image_width", "image_height", "scale", "screenshot_id"}


def test_an_error_is_text_with_its_code_beside_it(shared: Server) -> None:
    assert shared.call("focus_window", window_id=7) == {
        "content": [
            {
                "type": "text",
                "text": "WINDOW_NOT_FOUND: there is no window 7. Next step: list the windows again",
            }
        ],
        "isError": True,
        "_meta": {"backend_error_code": "WINDOW_NOT_FOUND"},
    }


def test_what_nobody_expected_is_no_traceback_to_the_model(tmp_path: Path, display: str) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "maim").write_text(
        "#!/bin/sh\n[ $1 = --version ] && echo v1.1 || echo what this program never said before\n"
    )
    (programs / "maim").chmod(0o700)
    for name in ("xdotool", "xclip", "convert"):
        need(name)
        (programs / name).symlink_to(str(shutil.which(name)))
    environment = clean_environment(tmp_path, DISPLAY=display, PEEKABOO_BIN_DIR=str(programs))
    with serving("single file", environment) as server:
        server.shake_hands()
        result = server.call("image", mode="screen")
        assert result["isError"] is True, result
        assert result["_meta"]["backend_error_code"] in ("INTERNAL_ERROR", "CAPTURE_FAILED"), result
        assert "Traceback" not in result["content"][0]["text"]
        assert server.ask("ping")["result"] == {}


def test_the_status_is_reported_where_no_program_of_the_desktop_is_there(
    tmp_path: Path, display: str
) -> None:
    (tmp_path / "bin").mkdir()
    keys = {
        name: f"secret-{name}"
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    }
    environment = clean_environment(tmp_path, DISPLAY=display, PEEKABOO_BIN_DIR=str(tmp_path / "bin"), **keys)
    with serving("package", environment) as server:
        server.shake_hands()
        status = server.call("list", item_type="server_status")
        assert "secret" not in json.dumps(status)
        assert (status["isError"], "Name: PeekabooMCP" in status["content"][0]["text"]) == (False, True)
