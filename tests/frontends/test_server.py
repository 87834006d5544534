"""The server over raw JSON-RPC: lifetime, log, tools, results, resources."""

from __future__ import annotations

import base64
import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import anyio
import pytest
from answers import refused, seen
from fake_ai import FakeAI, picture
from fakemac import FakeMac
from macs import mac_environment
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp_server import FORMS, SLOW, Server, assert_all_dead, initialized, is_alive, pids_in, serving
from worlds import PATIENCE_S, Form, clean_environment, executable, wait_for

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.frontends import serve
from peekaboo_min.frontends.server import PeekabooServer, _as_error, _resource_content
from peekaboo_min.system.saved_images import note_saved


@pytest.fixture(scope="module")
def shared(display: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start one initialized server for tests that change nothing in it."""
    folder = tmp_path_factory.mktemp("server")
    with initialized("package", clean_environment(folder, DISPLAY=display)) as server:
        server.call("list")  # consumes the status text, which is sent once
        yield server


SLOW_CALL: dict[str, Any] = {"tool": "image", "app": "Form"}  # times out after 45 seconds
SOON_S = 30


@pytest.fixture
def slow_world(tmp_path: Path, display: str) -> dict[str, str]:
    """Return an environment whose programs record their pids and hang for longer than SOON_S."""
    maim, delegate = tmp_path / "bin" / "maim", tmp_path / "bin" / "other_peekaboo"
    for path in (maim, delegate):
        executable(path, SLOW.format(pids=tmp_path / "pids"))
    variables = {"PEEKABOO_BIN_DIR": str(maim.parent), "PEEKABOO_CLI_PATH": str(delegate)}
    return clean_environment(tmp_path, DISPLAY=display, **variables)


def assert_only_messages(server: Server) -> None:
    for line in server.lines:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0" and ("id" in message or "method" in message), line


@pytest.mark.parametrize("form_name", FORMS)
def test_server_initializes_and_ends_with_its_stdin(tmp_path: Path, display: str, form_name: str) -> None:
    with serving(form_name, clean_environment(tmp_path, DISPLAY=display)) as server:
        answer = server.shake_hands()
        assert (answer["serverInfo"]["name"], answer["serverInfo"]["version"]) == ("PeekabooMCP", "0.1.0")
        first, _, rest = answer["instructions"].partition("\n")
        assert len(first) <= 200 and len(rest) <= 1300 and NO_PROVIDER in rest
        wanted = {"desktop", "app", "window", "screenshot", "GUI", "mouse", "keyboard", "click", "type"}
        assert wanted <= {*re.findall(r"\w+", first)}
        assert {*answer["capabilities"]} - {"experimental"} == {"tools", "resources"}
        assert server.ask("tools/list")["result"]["tools"]
        assert server.end() == 0
        assert server.errors == ""
        assert_only_messages(server)


ABOUT = "io.modelcontextprotocol"
MODERN = {
    "_meta": {
        f"{ABOUT}/protocolVersion": "2026-07-28",
        f"{ABOUT}/clientInfo": {"name": "test", "version": "1"},
        f"{ABOUT}/clientCapabilities": {},
    }
}


def test_discover_is_answered_before_the_sdk_is_imported_and_like_by_the_sdk(tmp_path: Path) -> None:
    """@ai-sdk/mcp waits a second for it, then sends initialize. Clients may keep both answers 5 minutes."""
    (tmp_path / "mcp.py").write_text("import time; time.sleep(600)")
    environment = clean_environment(tmp_path)
    with serving("package", {**environment, "PYTHONPATH": str(tmp_path)}) as server:
        early = server.ask("server/discover", MODERN)["result"]
    with serving("package", environment) as server:
        for _ in range(2):  # a client may repeat it before it sends initialize
            assert server.ask("server/discover", MODERN)["result"] == early
        assert server.shake_hands()["protocolVersion"] == "2025-11-25"
        assert "error" in server.ask("server/discover", MODERN), "the SDK answers after initialize"
    with serving("package", environment) as server:
        old = {"_meta": {**MODERN["_meta"], f"{ABOUT}/protocolVersion": "1999-01-01"}}
        assert "error" in server.ask("server/discover", old)
        listed = server.ask("tools/list", MODERN)["result"]
        assert server.ask("server/discover", MODERN)["result"] == early
    assert [(kept["ttlMs"], kept["cacheScope"]) for kept in (early, listed)] == [(300_000, "private")] * 2


START = b'"server/discover", "2026-07-28"'
JUNK = (
    START,
    b"[" * 100_000 + START,
    b"[%s]" % START,
    b'{"server/discover": "2026-07-28"}',
    b"",
    b"{}",
    b"[1]",
    b"null",
    b"\xff\xfe",
    b'{"jsonrpc": "2.0", "id": 1, "method":' + b"[" * 100_000,
)


def test_junk_on_stdin_does_not_end_the_server(tmp_path: Path) -> None:
    with serving("package", clean_environment(tmp_path)) as server:
        server.process.stdin.write(b"\n".join(JUNK) + b"\n")  # type: ignore[union-attr]
        server.shake_hands()
        server.process.stdin.write(b"\n".join(JUNK) + b"\n")  # type: ignore[union-attr]
        assert server.ask("ping")["result"] == {}
        assert_only_messages(server)


# odd values that a model or client may send
ODD: tuple[Any, ...] = (
    *("", " ", "a\0b", "\x1b[2J\u202e", "-", "~nosuchuser/x.png", "a/../../x.png", "PID:-1", "x" * 100_000),
    *("1e999", -1, 0.5, 2**64, 10**400, 1e308, True, [], {}, [[]], {"type": "x"}, [None] * 50),
)


def test_tools_refuse_odd_arguments_as_expected_errors(tmp_path: Path, display: str) -> None:
    """Try every value for every parameter, except in tools that open apps or send mail."""
    log = tmp_path / "log"
    environment = clean_environment(tmp_path, DISPLAY=display, PEEKABOO_LOG_FILE=str(log))
    with initialized("package", environment) as server:
        for tool in server.ask("tools/list")["result"]["tools"]:
            if tool["name"] in ("open", "send_email"):
                continue
            names = tool["inputSchema"]["properties"]
            usual = {"window_id": 7, "timeout_s": 0.1, "x": 1, "y": 1, "to_x": 2, "to_y": 2}
            usual |= {"text": "a", "key": "a", "question": "?", "direction": "up", "image_path": "/a.png"}
            for name in names:
                for value in ODD:
                    given = {**{key: usual[key] for key in names if key in usual}, name: value}
                    answer = server.call(tool["name"], **given)
                    code = (answer.get("_meta") or {}).get("backend_error_code")
                    assert code != "INTERNAL_ERROR", (tool["name"], name, str(value)[:20])
        assert "isError" in server.call("image", return_data=True, max_dimension=64)
        assert "error" in server.ask("no/such/method")
        assert_only_messages(server)
        assert server.errors == ""
    assert "unexpected" not in log.read_text(), "no internal error"


def test_cancelled_call_kills_only_its_programs(tmp_path: Path, slow_world: dict[str, str]) -> None:
    with initialized("package", slow_world) as server:
        number = server.start_call(**SLOW_CALL)
        pids = pids_in(tmp_path / "pids")
        assert server.ask("ping")["result"] == {}
        server.send("notifications/cancelled", {"requestId": number, "reason": "enough"}, is_request=False)
        wait_for(lambda: not any(map(is_alive, pids)), "the programs are dead", SOON_S)
        assert refused(server.call("press_key", window_id=7, key="nonsense"))["code"] == "INVALID_ARGUMENT"
        assert [json.loads(line).get("id") for line in server.lines].count(number) == 0


ENDINGS: list[tuple[str, Callable[[Server], Any], str, int]] = [
    *((form, lambda server: server.process.stdin.close(), "stdin ended", 0) for form in FORMS),
    ("package", lambda server: server.process.send_signal(signal.SIGTERM), "ended by SIGTERM", 0),
    ("package", lambda server: server.process.send_signal(signal.SIGINT), "ended by SIGINT", 0),
    ("single file", lambda server: server.process.send_signal(signal.SIGHUP), "ended by SIGHUP", 129),
]


@pytest.mark.parametrize(("form_name", "end", "line", "code"), ENDINGS)
def test_end_of_stdin_or_a_signal_ends_the_server_and_its_programs(
    form_name: str, tmp_path: Path, slow_world: dict[str, str], end: Any, line: str, code: int
) -> None:
    # spec: "Implement graceful shutdown on SIGINT, SIGTERM (e.g., await server.close(); logger.flush();
    # process.exit(0);)."
    with initialized(form_name, {**slow_world, "PEEKABOO_LOG_FILE": str(tmp_path / "log")}) as server:
        server.start_call(**SLOW_CALL)
        server.start_call("list", item_type="running_applications")
        pids = pids_in(tmp_path / "pids", 4)
        end(server)
        assert (server.wait(SOON_S), server.errors) == (code, "")
        assert f'"{line}"' in (tmp_path / "log").read_text()
        assert_all_dead(pids)
        assert_only_messages(server)


@pytest.mark.parametrize("closing", ["<&-", ">&- </dev/null"])
def test_closed_stream_is_reported_in_one_sentence(tmp_path: Path, closing: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, *FORMS["package"]],
        env=clean_environment(tmp_path),
        capture_output=True,
        timeout=PATIENCE_S,
    )
    message = b"peekaboo-min: stdin or stdout is closed; an MCP client must keep both open\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", message)


def test_server_on_a_terminal_prints_a_hint(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        with serving("single file", clean_environment(tmp_path), theirs, sys.executable) as server:
            hint = "serves MCP on stdio and waits for a client; for commands see peekaboo-min --help"
            wait_for(lambda: hint in server.errors, "the hint is on stderr")
            log = tmp_path / "tmp" / "peekaboo-mcp.log"
            wait_for(lambda: log.exists() and "serves" in log.read_text("utf-8"), "the server is ready")
            server.process.send_signal(signal.SIGINT)
            assert (server.wait(), server.lines) == (0, [])
    finally:
        os.close(ours)
        os.close(theirs)


def test_log_is_json_for_the_owner_and_holds_no_typed_text(tmp_path: Path, display: str) -> None:
    log = tmp_path / "deep" / "log"
    variables = {"PEEKABOO_LOG_FILE": str(log), "PEEKABOO_LOG_LEVEL": "debug"}
    with initialized("package", clean_environment(tmp_path, DISPLAY=display, **variables)) as server:
        server.call("type_text", window_id=7, text="my secret words")
        server.call("click", window_id=7, x="my secret words", y=1)
        assert server.end() == 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all({"time", "level", "pid", "msg"} <= set(line) for line in lines)
    assert lines[0]["msg"] == "PeekabooMCP 0.1.0 serves"
    errors = [line["msg"].split(": ")[1:3] for line in lines if line["level"] == "error"]
    assert errors == [["WINDOW_NOT_FOUND", "there is no window 7"], ["INVALID_ARGUMENT", "click"]]
    assert "my secret words" not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_log_goes_to_stderr_too_with_info_for_an_unknown_level(tmp_path: Path) -> None:
    variables = {"PEEKABOO_CONSOLE_LOGGING": "true", "PEEKABOO_LOG_LEVEL": "bogus"}
    with initialized("package", clean_environment(tmp_path, **variables)) as server:
        assert server.end() == 0
        assert_only_messages(server)
    assert "peekaboo-min: PEEKABOO_LOG_LEVEL: 'bogus' is not one of trace, " in server.errors
    log = (tmp_path / "tmp" / "peekaboo-mcp.log").read_text().splitlines()
    assert [json.loads(line)["level"] for line in log] == ["info", "warn", "info"]
    assert [line for line in server.errors.splitlines() if line[0] == "{"] == log


NO_PROVIDER = "No AI provider is configured"
READ_ONLY_TOOLS = """list_windows take_window_screenshot image find_text find_elements wait_for list
    screenshot_app_window analyze"""


@pytest.mark.parametrize(
    ("name", "value", "can_act", "names"),  # the tools that are offered on X11 without mail
    [
        ("PEEKABOO_TOOLS", "capture, click, keynote", True, "image list screenshot_app_window click analyze"),
        ("PEEKABOO_TOOLS", "image, list_windows,", False, "list_windows image"),
        ("PEEKABOO_READONLY", "1", False, READ_ONLY_TOOLS),
    ],
)
def test_variables_choose_the_tools(
    tmp_path: Path, display: str, name: str, value: str, can_act: bool, names: str
) -> None:
    variables = {"DISPLAY": display, "PEEKABOO_AI_PROVIDERS": "ocr", name: value}
    with serving("package", clean_environment(tmp_path, **variables)) as server:
        text = server.shake_hands()["instructions"]
        shown = [part in text for part in ("mouse and keyboard", "is read-only", NO_PROVIDER)]
        assert shown == [can_act, not can_act, False]
        assert [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]] == names.split()
        hidden = server.call("type_text", window_id=7, text="a")
        assert refused(hidden)["said"].startswith("there is no tool called 'type_text'")


@pytest.mark.parametrize(
    ("form_name", "name", "value"),
    [("package", "PEEKABOO_TOOLS", "clik"), ("single file", "PEEKABOO_TTL_SECONDS", "abc")],
)
def test_bad_variable_prevents_the_start(form_name: str, tmp_path: Path, name: str, value: str) -> None:
    with serving(form_name, clean_environment(tmp_path, **{name: value})) as server:
        assert (server.wait(), server.lines) == (2, [])
        assert server.errors.startswith("peekaboo-min: ") and name in server.errors
        assert server.errors.count("\n") == 1


@pytest.fixture
def window_id(shared: Server, form: Form) -> int:
    def find() -> list[int]:
        windows = seen(shared.call("list_windows"))["windows"]
        return [window["window_id"] for window in windows if window["title"] == form.title]

    return wait_for(find, "the form is listed")[0]


def test_empty_arguments_of_strict_clients_count_as_absent(shared: Server) -> None:
    # spec: "app: z.string().optional().describe("Optional. [...] If omitted, captures screen(s). Uses fuzzy
    # matching.")"
    left_out = {"app": "", "path": "", "question": None, "window_id": 0, "max_dimension": 0}
    assert len(seen(shared.call("image", **left_out))["saved_files"]) == 1


def test_unexpected_error_sends_no_traceback() -> None:
    error = _as_error(ZeroDivisionError("/home/ada/secret"), "click")
    assert (error.code_name, error.message) == ("INTERNAL_ERROR", "click failed unexpectedly")


def test_status_works_without_programs_and_holds_no_key(tmp_path: Path, display: str) -> None:
    (tmp_path / "bin").mkdir()
    names = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    keys = {name: f"secret-{name}" for name in names}
    environment = clean_environment(tmp_path, DISPLAY=display, PEEKABOO_BIN_DIR=str(tmp_path / "bin"), **keys)
    with initialized("package", environment) as server:
        status = server.call("list", item_type="server_status")
        assert "secret" not in json.dumps(status)
        assert (status["isError"], "Name: PeekabooMCP" in status["content"][0]["text"]) == (False, True)


def test_status_names_the_problems_while_a_program_hangs(mac: FakeMac) -> None:
    """Share the two seconds of server_status among its checks."""
    providers = "ollama/llava:latest, openai/gpt-5.4-mini"
    nowhere = {"PEEKABOO_AI_PROVIDERS": providers, "PEEKABOO_OLLAMA_BASE_URL": "http://127.0.0.1:9"}
    with initialized("package", mac_environment(mac, **nowhere)) as server:
        mac.hang("osascript")
        try:
            started = time.monotonic()
            status = server.call("list", item_type="server_status")["content"][0]["text"]
            assert time.monotonic() - started < PATIENCE_S / 4
        finally:
            mac.heal()
    _, problems = status.split("Problems:\n")
    assert "- display: osascript did not finish within" in problems
    assert "- ollama/llava:latest: " in problems and "OPENAI_API_KEY is not set" in problems


def test_first_start_on_a_mac_works_while_its_helper_is_compiled(own_mac: FakeMac) -> None:
    mac = own_mac
    mac.tools("slow")
    with initialized("package", mac_environment(mac, PEEKABOO_LOG_LEVEL="debug")) as server:
        wait_for(lambda: mac.calls("xcrun"), "a compiler is started", PATIENCE_S / 2)
        server.call("press_key", window_id=1080, key="escape")
        assert [event["key"] for event in mac.events("key")] == ["escape"]
        lines = [json.loads(line) for line in (mac.folder / "log").read_text().splitlines()]
        assert server.end() == 0
    assert "input by JXA" in [line["msg"] for line in lines]
    assert not [line for line in lines if line["level"].lower() in ("warn", "warning", "error")]


def test_server_deletes_expired_images(mac: FakeMac) -> None:
    with initialized("package", mac_environment(mac, PEEKABOO_TTL_SECONDS="1")) as server:
        answer = server.call("screenshot_app_window", appName="Calculator")
        assert "it is kept for 1 second" in answer["content"][0]["text"]
        path = Path(answer["structuredContent"]["path"])
        wait_for(lambda: not path.exists(), "the image is deleted", PATIENCE_S / 2)


def save_image(server: Server, path: Path) -> str:
    """Save a screenshot with the server; return its URI."""
    assert seen(server.call("image", path=str(path)))["saved_files"][0]["path"] == str(path)
    return path.as_uri()


def listed_uris(server: Server) -> list[str]:
    return [resource["uri"] for resource in server.ask("resources/list")["result"]["resources"]]


@pytest.mark.parametrize(("ttl", "pause_s"), [("0", 60), ("5", 5), ("600", 60)])
def test_pause_between_two_sweeps_is_never_zero_even_if_one_fails(
    environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch, ttl: str, pause_s: int
) -> None:
    def sleep(seconds: float) -> None:
        raise EOFError(seconds)

    def fail() -> None:
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, "the folder is not ours")

    environment(PEEKABOO_TTL_SECONDS=ttl)
    monkeypatch.setattr(serve, "sweep", fail)
    monkeypatch.setattr(serve, "time", SimpleNamespace(sleep=sleep))
    with pytest.raises(EOFError, match=f"^{pause_s}$"):
        serve._sweep_regularly()


def test_resource_is_the_screenshot_named_by_the_result(tmp_path: Path, display: str, form: Form) -> None:
    # spec: "`content` (text/resource)", "MCP リソース返却"
    with initialized("package", clean_environment(tmp_path, DISPLAY=display)) as server:
        answer = server.call("screenshot_app_window", appName="Form", format="jpg")
        assert [part["type"] for part in answer["content"]] == ["text"], "some clients fail on a link"
        path, uri = Path(seen(answer)["path"]), seen(answer)["uri"]
        (resource,) = server.ask("resources/list")["result"]["resources"]
        about = {"uri": uri, "mimeType": "image/jpeg"}
        assert resource == {**about, "name": path.name, "size": path.stat().st_size}
        (content,) = server.ask("resources/read", {"uri": uri})["result"]["contents"]
        assert content == {**about, "blob": base64.b64encode(path.read_bytes()).decode()}
        path.unlink()
        assert listed_uris(server) == []


def test_resources_are_the_newest_50_first(shared: Server, tmp_path: Path) -> None:
    names = [f"{number} ä.png" for number in range(52)]
    uris = [save_image(shared, tmp_path / "images" / name) for name in [*names, names[9]]]
    newest_first = [*reversed(uris)]
    assert listed_uris(shared) == newest_first[:43] + newest_first[44:51]
    (tmp_path / "images" / names[9]).unlink()
    assert listed_uris(shared)[0] == newest_first[1]
    (content,) = shared.ask("resources/read", {"uri": uris[0]})["result"]["contents"]
    assert base64.b64decode(content["blob"]) == (tmp_path / "images" / names[0]).read_bytes()


# shell lines that replace a resource's file
SWAPS = (
    "rm a.png",
    "rm a.png; cp other.png a.png",
    "rm a.png; ln -s other.png a.png",
    "mv a.png b.png; ln -s b.png a.png",
    "rm a.png; mkfifo a.png",
    "echo secret > a.png",
)


@pytest.mark.parametrize("swap", SWAPS)
def test_replaced_resource_file_is_refused(shared: Server, tmp_path: Path, swap: str) -> None:
    uri = save_image(shared, tmp_path / "a.png")
    (tmp_path / "other.png").write_bytes((tmp_path / "a.png").read_bytes())
    subprocess.run(["sh", "-c", swap], cwd=tmp_path, check=True)
    error = shared.ask("resources/read", {"uri": uri})["error"]
    message = f"{tmp_path}/a.png was deleted, or is not the image that was saved; take the screenshot again"
    assert (error["code"], error["message"]) == (-32602, message)


def test_other_files_are_not_resources(shared: Server, tmp_path: Path) -> None:
    save_image(shared, tmp_path / "a.png")
    (tmp_path / "other.png").write_bytes((tmp_path / "a.png").read_bytes())
    for path in ("other.png", "images/../other.png", "a.png/../other.png", "a.png%00", "..%2fother.png"):
        error = shared.ask("resources/read", {"uri": f"file://{tmp_path}/{path}"})["error"]
        assert error["code"] == -32602 and error["message"].startswith("there is no resource file://"), path
    for uri in ("", "a.png", "file:///etc/passwd", "http://127.0.0.1/a.png", "x" * 100_000):
        assert shared.ask("resources/read", {"uri": uri})["error"]["code"] == -32602, uri[:20]


def test_resource_that_no_message_can_carry_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(picture() + bytes(11_000_000))
    note_saved([path])
    with pytest.raises(ResourceNotFoundError, match="is too large for a message; capture it with a max_dim"):
        _resource_content(path.as_uri())


def test_resource_whose_name_is_not_utf_8_is_listed(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.png")
    path.write_bytes(picture())
    note_saved([path])
    newest, *_ = anyio.run(PeekabooServer("").list_resources)
    assert newest.name == "caf\ufffd.png"


def start_with_token(server: Server, tool: str, **arguments: Any) -> int:
    return server.send("tools/call", {"name": tool, "arguments": arguments, "_meta": {"progressToken": "T"}})


def reported(server: Server) -> list[dict[str, Any]]:
    messages = [json.loads(line) for line in list(server.lines)]
    return [message["params"] for message in messages if message.get("method") == "notifications/progress"]


@pytest.mark.parametrize("form_name", FORMS)
def test_progress_is_reported_while_a_model_thinks(tmp_path: Path, display: str, form_name: str) -> None:
    may_answer = threading.Event()

    def think(_request: Any) -> str:
        assert may_answer.wait(PATIENCE_S)
        return "A screen."

    with FakeAI({"ollama/qwen3-vl:8b": True}, think) as ai:
        environment = clean_environment(tmp_path, DISPLAY=display, **ai.env("ollama", "qwen3-vl:8b"))
        with initialized(form_name, environment) as server:
            number = start_with_token(server, "image", question="Is it a screen?")
            wait_for(lambda: len(reported(server)) >= 3, "progress is reported")
            may_answer.set()
            answer = server.answer_to(number)["result"]
            assert "A screen." in answer["content"][0]["text"]
            rows = reported(server)
            assert [row["progress"] for row in rows] == list(range(1, len(rows) + 1))
            assert {row["progressToken"] for row in rows} == {"T"}
            assert rows[-1]["message"] == "asking ollama/qwen3-vl:8b"
            assert json.loads(server.lines[-1])["id"] == number, "nothing follows the answer"


def test_progress_is_sent_only_with_a_token(shared: Server, window_id: int) -> None:
    shared.call("wait_for", window_id=window_id, still=True)
    assert reported(shared) == []
    shared.answer_to(start_with_token(shared, "wait_for", window_id=window_id, title="Visitor"))
    shared.answer_to(start_with_token(shared, "wait_for", window_id=window_id, still=True))
    still = f"waiting for window {window_id} to stop changing: window {window_id}"
    assert [row["message"] for row in reported(shared)][:1] == [still]
