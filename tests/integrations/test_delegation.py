"""PEEKABOO_CLI_PATH: image and list through another command line."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import mcp_server
import pytest
from answers import pictures_of, refused, seen
from fake_ai import picture
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import fake_mac, mac_environment
from mcp_server import Server, initialized, is_alive, pids_in
from worlds import ROOT, executable, wait_for

from peekaboo_min.automation.image import ImageRequest
from peekaboo_min.core.models import Result
from peekaboo_min.integrations.peekaboo_cli import image_by_cli

# records its argv; replies with the files that the test wrote
SCRIPTED = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word"; done > {folder}/argv
[ -e {folder}/hook ] && . {folder}/hook
cat {folder}/stderr >&2
cat {folder}/stdout
exit $(cat {folder}/code)
"""
HANGS = "trap '' TERM INT HUP\necho $$ >> {pids}\nsleep 600 &\necho $! >> {pids}\nwait\n"
# the shipped server, with shorter timeouts than its 30 s for list and 45 s for image
IMPATIENT = (
    "from peekaboo_min.integrations import peekaboo_cli as cli; from peekaboo_min.frontends import serve; "
    "assert (cli._LIST_S, cli._IMAGE_S) == (30, 45); "
    "cli._LIST_S, cli._IMAGE_S = 2.5, 3.5; raise SystemExit(serve.serve())"
)


@dataclass
class Scripted:
    """A scripted command line, and the server that runs it."""

    folder: Path
    server: Server
    environment: dict[str, str]

    def call(self, tool: str, answer: Any, code: int = 0, stderr: str = "", **arguments: Any) -> Any:
        """Call a tool; the command line replies with `answer`, as JSON unless it is a string."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        for name, content in (("stdout", text), ("stderr", stderr), ("code", str(code))):
            (self.folder / name).write_text(content, encoding="utf-8")
        (self.folder / "argv").unlink(missing_ok=True)
        self._log_start = len((self.folder / "log").read_text())
        return self.server.call(tool, **arguments)

    @property
    def argv(self) -> list[str]:
        """Return the argv of the call; empty if there was no call."""
        path = self.folder / "argv"
        return path.read_text(encoding="utf-8").split("\0")[:-1] if path.exists() else []

    def logged(self) -> list[tuple[str, str]]:
        """Return level and text of each log line since the call."""
        lines = map(json.loads, (self.folder / "log").read_text()[self._log_start :].splitlines())
        return [(line["level"], line["msg"]) for line in lines]


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripted]:
    folder = tmp_path_factory.mktemp("scripted")
    path = executable(folder / "other peekaboo", SCRIPTED.format(folder=shlex.quote(str(folder))))
    with fake_mac(folder) as mac:
        environment = mac_environment(mac, PEEKABOO_CLI_PATH=str(path), PEEKABOO_LOG_LEVEL="debug")
        with initialized("package", environment) as server:
            started = Scripted(folder, server, environment)
            started.call("list", apps())  # consumes the status text
            yield started


def success(**data: Any) -> dict[str, Any]:
    return {"success": True, "data": data, "error": None, "debug_logs": []}


def apps(*rows: Any) -> dict[str, Any]:
    return success(applications=list(rows))


INFO = {"app_name": "Safari", "pid": 77}


def windows(*rows: Any) -> dict[str, Any]:
    return success(windows=list(rows), target_application_info=INFO)


def saved(*paths: Path) -> dict[str, Any]:
    rows = [{"path": str(path), "mime_type": "image/png", "item_label": path.stem} for path in paths]
    return success(saved_files=rows)


# argv ---

ODD = "\"'$(touch x)`\\\n😀"
WINDOW = ["--app", "A", "--mode", "window"]
INDEX, LISTED = ["--mode", "window", "--window-index"], ["windows", "--app", "A", "--include-details"]


@pytest.mark.parametrize(
    ("tool", "arguments", "argv"),
    [
        ("image", {}, ["--mode", "screen"]),
        ("image", {"app": "-f", "window_specifier": {"index": 0}}, ["--app=-f", *INDEX, "0"]),
        ("image", {"app": "A", "format": "jpg", "capture_focus": "foreground"}, WINDOW),
        ("image", {"app": "A", "window_specifier": {"title": "-x"}}, [*WINDOW, "--window-title=-x"]),
        ("image", {"app": "A", "window_specifier": {"title": ODD}}, [*WINDOW, "--window-title", ODD]),
        ("image", {"window_id": 42}, ["--mode", "window", "--window-id", "42"]),
        ("image", {"max_dimension": 9}, ["--mode", "screen", "--max-dimension", "9"]),
        ("list", {}, ["apps"]),
        ("list", {"app": "--help"}, ["windows", "--app=--help"]),
        ("list", {"app": "A", "include_window_details": ["ids", "bounds"]}, [*LISTED, "ids,bounds"]),
    ],
)
def test_delegation_passes_the_originals_arguments_in_order(
    scripted: Scripted, tool: str, arguments: dict[str, Any], argv: list[str]
) -> None:
    data = {**saved(Path("/p/a.png"))["data"], **apps()["data"], **windows()["data"]}
    path = {"image": {"path": "/p/a.png"}, "list": {}}[tool]
    answer = scripted.call(tool, success(**data), **path, **arguments)
    kind, focus = arguments.get("format", "png"), arguments.get("capture_focus", "background")
    tail = ["--path", "/p/a.png", "--format", kind, "--capture-focus", focus] * (tool == "image")
    assert answer["isError"] is False and scripted.argv == [tool, *argv, *tail, "--json-output"]


def test_delegation_passes_an_absolute_path(scripted: Scripted, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    scripted.call("image", saved(tmp_path / "a.png"), app="Safari")
    folder = Path(scripted.argv[scripted.argv.index("--path") + 1])
    assert (folder.is_relative_to(scripted.folder / "tmp"), folder.stat().st_mode & 0o777) == (True, 0o700)
    scripted.call("image", saved(Path("/p/a.jpg")), path="~/a.jpg")
    path = str(scripted.folder / "home" / "a.jpg")
    assert scripted.argv[-7:-1] == ["--path", path, "--format", "jpg", "--capture-focus", "background"]


@pytest.mark.parametrize(
    ("name", "kind"), [("a.JPEG", "jpg"), ("a.jpg", "jpg"), ("a.png", "png"), ("folder", "png")]
)
def test_delegated_image_goes_to_the_default_path_in_the_format_of_its_name(
    scripted: Scripted, environment: Callable[..., None], tmp_path: Path, name: str, kind: str
) -> None:
    scripted.call("image", saved())
    environment(PEEKABOO_DEFAULT_SAVE_PATH=str(tmp_path / name))
    program = scripted.environment["PEEKABOO_CLI_PATH"]
    result = image_by_cli(program, ImageRequest(), "background", returns_data=False)
    options = ["--path", str(tmp_path / name), "--format", kind, "--capture-focus", "background"]
    assert scripted.argv == ["image", "--mode", "screen", *options, "--json-output"]
    assert result == Result("Captured 0 image(s). Saved files:", {"saved_files": []})


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("list", {"item_type": "server_status"}, None),
        ("list", {"item_type": "application_windows"}, "INVALID_ARGUMENT"),
        ("list", {"include_window_details": ["ids"]}, "INVALID_ARGUMENT"),
        ("image", {"mode": "multi"}, "INVALID_ARGUMENT"),
        ("image", {"app": "Safari", "capture_focus": "foreground"}, "POLICY_DENIED"),
    ],
)
def test_delegation_skips_refused_calls_and_the_status(
    scripted: Scripted, tool: str, arguments: Any, code: Any
) -> None:
    # spec: "Validate MCP input [...]. If invalid, log error with Pino and return MCP error ToolResponse."
    stop = scripted.folder / "home/Library/Caches/peekaboo_min/STOP"
    stop.parent.mkdir(parents=True, exist_ok=True)
    stop.touch()
    answer = scripted.call(tool, apps(), **arguments)
    stop.unlink()
    assert scripted.argv == ([] if code else ["--version"])
    assert (refused(answer)["code"] if answer["isError"] else None) == code


# its output ---

ROW = {"window_title": "Apple", "window_id": 67, "window_index": 0, "is_on_screen": True}
SAFARI = {"app_name": "Safari", "pid": 501, "is_active": True, "window_count": 3}
PLACE = {"x": 0, "y": -1}
LONG = {**ROW, "window_title": "safe\u202etxt.exe\x1b[2J", "bounds": {**PLACE, "width": 800, "height": 600}}
SHORT = {**ROW, "window_title": "safe txt.exe [2J", "bounds": {**PLACE, "w": 800, "h": 600}}


@pytest.mark.parametrize(
    ("answer", "arguments", "data"),
    [
        (apps(SAFARI), {}, {"application_list": [SAFARI]}),
        ({**apps(SAFARI), "messages": None, "debug_logs": None}, {}, {"application_list": [SAFARI]}),
        (windows(LONG, ROW), {"app": "A"}, {"window_list": [SHORT, ROW], "target_application_info": INFO}),
    ],
)
def test_delegation_returns_rows_without_control_characters(
    scripted: Scripted, answer: Any, arguments: Any, data: Any
) -> None:
    assert seen(scripted.call("list", answer, **arguments)) == data


def test_delegation_reads_images_from_the_saved_files(scripted: Scripted, tmp_path: Path) -> None:
    # spec: "metadata?: { item_label?: string, window_title?: string, window_id?: number, source_path?: string
    # }". A click needs more keys, and only if the returned image has the file's pixels.
    paths = [tmp_path / "one.png", tmp_path / "two\u200b.png"]
    for path, width in zip(paths, (30, 40)):
        path.write_bytes(picture("png", width, 20))
    reply = saved(*paths)
    clickable = {"window_title": "A", "window_id": 7, "scale": 2, "screenshot_id": "abc"}
    reply["data"]["saved_files"][0].update(clickable, image_width=30, image_height=20)
    reply["data"]["saved_files"][1].update(clickable, item_label="two", image_width=400, image_height=200)
    reply["messages"] = ["The window was hidden.", "x" * 1001]
    answer = scripted.call("image", reply, return_data=True, path=str(tmp_path))
    assert f"note: The window was hidden.\nnote: {'x' * 1000}\n" in answer["content"][0]["text"]
    assert [str(path) in answer["content"][0]["text"] for path in paths] == [True, True]
    assert seen(answer)["saved_files"] == reply["data"]["saved_files"]
    shared = {"mime_type": "image/png", "image_height": 20, "window_title": "A", "window_id": 7}
    assert seen(answer)["images"] == [
        {**shared, **clickable, "item_label": "one", "image_width": 30, "source_path": str(paths[0])},
        {**shared, "item_label": "two", "image_width": 40, "source_path": str(paths[1])},
    ]
    assert pictures_of(answer) == [path.read_bytes() for path in paths]
    assert [part["mimeType"] for part in answer["content"][1:]] == ["image/png", "image/png"]


def test_delegation_logs_stderr_and_the_debug_logs(scripted: Scripted) -> None:
    scripted.call("list", {**apps(), "debug_logs": ["first", "second: ä"]}, stderr="look out\nthere\n")
    lines = scripted.logged()
    warnings = [text for level, text in lines if level == "warn"]
    assert [text.partition("-stderr] ")[2] for text in warnings] == ["look out", "there"]
    logs = [("debug", f"backend=swift swift_log={text}") for text in ("first", "second: ä")]
    assert [line for line in lines if "swift_log" in line[1]] == logs
    (command,) = [text for level, text in lines if level == "debug" and "command line: " in text]
    assert json.loads(command.split(": ", 1)[1])[1:] == ["list", "apps", "--json-output"]


def test_delegation_leaves_a_question_to_our_own_code(scripted: Scripted) -> None:
    scripted.call("image", success(), question="What is this?")
    assert scripted.argv == []


@pytest.mark.parametrize("code", [0, 1, 18])
def test_delegation_relays_an_error_with_its_details(scripted: Scripted, code: int) -> None:
    error = {
        "code": "APP_NOT_FOUND",
        "message": "No application\u202e 'Zzz'.",
        "details": "Available applications: A, B\x1b",
    }
    reply = {"success": False, "data": None, "error": error, "debug_logs": ["looked"]}
    answer = refused(scripted.call("list", reply, code, app="Zzz"))
    text = "No application  'Zzz'. (Available applications: A, B)"
    assert answer == {"code": "APP_NOT_FOUND", "said": text}
    assert ("debug", "backend=swift swift_log=looked") in scripted.logged()


def test_delegation_logs_each_line_of_stderr_at_once(scripted: Scripted, tmp_path: Path) -> None:
    # spec: "If any data is received on Swift CLI's stderr, log it immediately with Pino at warn level"
    wait = f"printf 'one\ntw' >&2; until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo o >&2\n"
    scripted.call("list", apps())
    hook = executable(scripted.folder / "hook", wait)
    number = scripted.server.start_call("list")
    wait_for(lambda: any("-stderr] one" in text for _, text in scripted.logged()), "the line is logged")
    (tmp_path / "go").touch()
    scripted.server.answer_to(number)
    hook.unlink()
    shown = [text.partition("-stderr] ")[2] for level, text in scripted.logged() if level == "warn"]
    assert shown == ["one", "two"]


GARBAGE = ["", "No '\u202etxt\x1b[2J'.", json.dumps(apps())[:-5], [], {"data": {"applications": []}}]


@pytest.mark.parametrize(
    ("call", "answer", "code"),
    [
        ("list", "", 1),
        ("list", "Segmentation fault\u202e\x1b[2J", 139),
        ("list", apps(), 3),
        ("list", {"success": False}, 0),
        # not the specified JSON
        *(("list", answer, None) for answer in GARBAGE),
        ("list", {"success": True}, None),
        ("list", "[" * 99_999, None),
        ("list", {"success": False, "error": "oh"}, None),
        ("list", success(windows=[]), None),
        ("list", apps("Safari"), None),
        ("list app", success(windows=[]), None),
        ("image", success(), None),
        *(("image data", saved(path), None) for path in (Path("/no/such.png"), ROOT / "pyproject.toml")),
    ],
)
def test_delegation_reports_an_invalid_output_with_its_code(
    scripted: Scripted, call: str, answer: Any, code: Any
) -> None:
    tool, _, more = call.partition(" ")
    arguments = {"": {}, "app": {"app": "Safari"}, "data": {"return_data": True}}[more]
    reply = refused(scripted.call(tool, answer, code or 0, **arguments))
    name = "SWIFT_CLI_INVALID_OUTPUT" if code is None else "SWIFT_CLI_EXECUTION_ERROR"
    assert reply["code"] == name and reply["said"].isprintable()
    errors = [text for level, text in scripted.logged() if level == "error"]
    assert not any("Traceback" in text or "unexpected" in text for text in errors)
    assert len(errors) == 2 or code is not None, "the failure and the refusal are logged"


def test_delegation_reports_a_failure_with_its_output(scripted: Scripted) -> None:
    invalid = refused(scripted.call("list", "oh", stderr="first\n" * 40 + "look\nout\n"))["said"]
    assert invalid.startswith("the peekaboo command line's output is not valid: oh; stderr: ")
    assert "first look out. Next" in invalid, "the end of stderr is shown"
    last = "dyld: Library not loaded: " + "x" * 274
    reply = refused(scripted.call("list", "", 5, stderr="-" * 300 + f"{last}\n"))
    failed = "the peekaboo command line failed with exit code 5"
    assert reply["said"] == f"{failed} ({last})"
    assert [text for level, text in scripted.logged() if level == "error"] == [
        f"{failed}: ",
        f"list failed: SWIFT_CLI_EXECUTION_ERROR: {failed} {last}",
    ]


# hanging and missing command lines ---


@pytest.fixture
def pids(scripted: Scripted, tmp_path: Path) -> Iterator[Path]:
    """Make the command line hang; yield the file of its pids."""
    (scripted.folder / "hook").write_text(HANGS.format(pids=shlex.quote(str(tmp_path / "pids"))))
    yield tmp_path / "pids"
    (scripted.folder / "hook").unlink()


def test_delegation_kills_a_hanging_command_and_its_children(
    scripted: Scripted, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mcp_server.FORMS, "impatient", ["-c", IMPATIENT])
    with initialized("impatient", scripted.environment) as server:
        calls = [server.start_call("list"), server.start_call("list", app="A"), server.start_call("image")]
        answers = [refused(server.answer_to(call)["result"]) for call in calls]
    assert [answer["code"] for answer in answers] == ["TIMEOUT"] * 3
    assert ["within 3.5 s" in answer["said"] for answer in answers] == [False, False, True]
    assert [pid for pid in pids_in(pids, 6) if is_alive(pid)] == []


def test_delegation_warns_until_the_path_is_executable(shared_mac: FakeMac, tmp_path: Path) -> None:
    path = tmp_path / "peekaboo"
    log = {"PEEKABOO_LOG_FILE": str(tmp_path / "log")}
    with initialized("package", mac_environment(shared_mac, PEEKABOO_CLI_PATH=str(path), **log)) as server:
        server.call("list")
        path.touch()
        server.call("list")
        path.unlink()
        path.mkdir()
        assert "com.apple.Safari" in json.dumps(server.call("list"))
        path.rmdir()
        executable(path, "#!/bin/sh\necho garbage\n")
        assert refused(server.call("list"))["code"] == "SWIFT_CLI_INVALID_OUTPUT"
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    warnings = [line["msg"] for line in lines if line["level"] == "warn" and "PEEKABOO" in line["msg"]]
    assert warnings == [f"PEEKABOO_CLI_PATH names {path}, which is not an executable: not used"] * 3


def test_delegation_is_never_used_by_the_shell(shared_mac: FakeMac, tmp_path: Path) -> None:
    path = executable(tmp_path / "other", f"#!/bin/sh\necho used >> {shlex.quote(str(tmp_path / 'used'))}\n")
    shell = InProcessProgram(mac_environment(shared_mac, PEEKABOO_CLI_PATH=str(path)))
    image = ["image", "--app", "Form", "--path", tmp_path / "a.png"]
    for argv in (["list", "apps"], ["list", "windows", "--app", "Form"], image):
        assert shell.run(*argv).code == 0
    assert not (tmp_path / "used").exists()


# our own command line ---


def test_delegation_to_our_file_answers_like_the_server(shared_mac: FakeMac, tmp_path: Path) -> None:
    argv = [sys.executable, str(ROOT / "scripts" / "peekaboo.py")]
    path = executable(tmp_path / "own-peekaboo", f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
    image, answers = str(tmp_path / "a.png"), []
    for delegate in ("", str(path)):
        with initialized("package", mac_environment(shared_mac, PEEKABOO_CLI_PATH=delegate)) as server:
            server.call("list")  # consumes the status text
            details = ["off_screen", "bounds", "ids"]
            listed = seen(server.call("list", app="Safari", include_window_details=details))
            taken = seen(server.call("image", app="Safari", mode="multi", path=image, return_data=True))
            # only the capturing server has a coordinate record of the model's smaller copy
            images = [{**row, "scale": 0} for row in taken["images"]]
            rows = [{**row, "screenshot_id": ""} for row in (*taken["saved_files"], *images)]
            answers.append((listed, rows, refused(server.call("list", app="-x"))["code"]))
    assert answers[0] == answers[1]
