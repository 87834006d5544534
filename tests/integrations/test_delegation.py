"""PEEKABOO_CLI_PATH: the MCP tools image and list through another command line, ours or a scripted one."""

from __future__ import annotations

import base64
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_server
import pytest
from answers import refused, seen
from fake_ai import picture
from fakemac import FakeMac, image_size
from in_process import InProcessProgram
from macs import fake_mac, mac_environment
from mcp_server import Server, is_alive, pids_in, serving
from worlds import ROOT, wait_for

from peekaboo_min.system.images import sniff_image

# Records its argv, environment and stdin, and answers with the files that the test has written.
SCRIPTED = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word"; done > {folder}/argv
env > {folder}/environment
cat > {folder}/stdin
[ -e {folder}/hook ] && . {folder}/hook
cat {folder}/stderr >&2
cat {folder}/stdout
exit $(cat {folder}/code)
"""
HANGS = "trap '' TERM INT HUP\necho $$ >> {pids}\nsleep 600 &\necho $! >> {pids}\nwait\n"
# The shipped server, but for its patience with another command line.
IMPATIENT = (
    "from peekaboo_min.integrations import peekaboo_cli; from peekaboo_min.frontends import server; "
    "peekaboo_cli._LIST_S = peekaboo_cli._IMAGE_S = 3; raise SystemExit(server.serve())"
)


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


class Scripted:
    """A command line that follows a script, and the server that asks it."""

    def __init__(self, folder: Path, server: Server, environment: dict[str, str]) -> None:
        self.folder = folder
        self.server = server
        self.environment = environment

    def call(
        self, tool: str, answer: Any, code: int = 0, stderr: str = "", **arguments: Any
    ) -> dict[str, Any]:
        """One call of a tool, which that command line answers with a document or with any text."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        for name, content in (("stdout", text), ("stderr", stderr), ("code", str(code))):
            (self.folder / name).write_text(content, encoding="utf-8")
        (self.folder / "argv").unlink(missing_ok=True)
        self._log_start = len(self.log_lines())
        return self.server.call(tool, **arguments)

    @property
    def argv(self) -> list[str]:
        return (self.folder / "argv").read_text(encoding="utf-8").split("\0")[:-1]

    def log_lines(self) -> list[tuple[str, str]]:
        return [
            (each["level"], each["msg"])
            for each in map(json.loads, (self.folder / "log").read_text().splitlines())
        ]

    def logged(self) -> list[tuple[str, str]]:
        """Level and text of each line since the call."""
        return self.log_lines()[self._log_start :]


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripted]:
    folder = tmp_path_factory.mktemp("scripted")
    path = executable(folder / "other peekaboo", SCRIPTED.format(folder=shlex.quote(str(folder))))
    with fake_mac(folder) as mac:
        environment = mac_environment(mac, PEEKABOO_CLI_PATH=str(path), PEEKABOO_LOG_LEVEL="debug")
        with serving("package", environment) as server:
            server.shake_hands()
            one = Scripted(folder, server, environment)
            one.call("list", apps())  # takes the status
            yield one


def success(**data: Any) -> dict[str, Any]:
    return {"success": True, "data": data, "debug_logs": []}


def apps() -> dict[str, Any]:
    return success(applications=[])


def windows() -> dict[str, Any]:
    return success(windows=[], target_application_info={"app_name": "Safari", "pid": 77})


def saved(*paths: Path) -> dict[str, Any]:
    return success(
        saved_files=[{"path": str(path), "mime_type": "image/png", "item_label": path.stem} for path in paths]
    )


@pytest.fixture
def image_file(tmp_path: Path) -> Path:
    (tmp_path / "shot.png").write_bytes(picture())
    return tmp_path / "shot.png"


# argv ---

JSON = "--json-output"
TAIL = ["--path", "/p/a.png", "--format", "png", "--capture-focus", "background", JSON]
IMAGE_ARGUMENTS = {
    "screens": ({}, ["--mode", "screen", *TAIL]),
    "a window": ({"app": "Safari"}, ["--app", "Safari", "--mode", "window", *TAIL]),
    "all windows": ({"app": "Safari", "mode": "multi"}, ["--app", "Safari", "--mode", "multi", *TAIL]),
    "a title": (
        {"app": "TextEdit", "window_specifier": {"title": "http://x:8080/a b"}},
        ["--app", "TextEdit", "--mode", "window", "--window-title", "http://x:8080/a b", *TAIL],
    ),
    "an index of zero": (
        {"app": "Preview", "window_specifier": {"index": 0}},
        ["--app", "Preview", "--mode", "window", "--window-index", "0", *TAIL],
    ),
    "jpg in the foreground": (
        {"app": "PID:663", "format": "jpg", "capture_focus": "foreground"},
        ["--app", "PID:663", "--mode", "window", *TAIL[:3], "jpg", "--capture-focus", "foreground", JSON],
    ),
    "values that begin with a dash": (
        {"app": "-rf", "window_specifier": {"title": "--json-output"}},
        ["--app=-rf", "--mode", "window", "--window-title=--json-output", *TAIL],
    ),
    "a title with quotes, a newline and a smile": (
        {"app": "Notes", "window_specifier": {"title": "\"'$(x)`\n😀"}},
        ["--app", "Notes", "--mode", "window", "--window-title", "\"'$(x)`\n😀", *TAIL],
    ),
    "a window by its id": ({"window_id": 42}, ["--mode", "window", "--window-id", "42", *TAIL]),
}


@pytest.mark.parametrize(("arguments", "argv"), IMAGE_ARGUMENTS.values(), ids=IMAGE_ARGUMENTS.keys())
def test_image_passes_the_originals_arguments_in_its_order(
    scripted: Scripted, arguments: Any, argv: list[str]
) -> None:
    scripted.call("image", saved(Path("/p/a.png")), path="/p/a.png", **arguments)
    assert scripted.argv == ["image", *argv]
    assert (scripted.folder / "stdin").read_bytes() == b""


LIST_ARGUMENTS = {
    "applications": ({}, ["apps", "--json-output"]),
    "windows": ({"app": "Safari"}, ["windows", "--app", "Safari", "--json-output"]),
    "details": (
        {"app": "Safari", "include_window_details": ["ids", "bounds"]},
        ["windows", "--app", "Safari", "--include-details", "ids,bounds", "--json-output"],
    ),
    "no details": (
        {"app": "Safari", "include_window_details": []},
        ["windows", "--app", "Safari", "--json-output"],
    ),
    "a dash": ({"app": "--help"}, ["windows", "--app=--help", "--json-output"]),
}


@pytest.mark.parametrize(("arguments", "argv"), LIST_ARGUMENTS.values(), ids=LIST_ARGUMENTS.keys())
def test_list_passes_the_originals_arguments_in_its_order(
    scripted: Scripted, arguments: Any, argv: list[str]
) -> None:
    answer = scripted.call("list", windows() if "app" in arguments else apps(), **arguments)
    assert (answer["isError"], scripted.argv) == (False, ["list", *argv])


def test_without_a_path_a_private_folder_is_named(scripted: Scripted, image_file: Path) -> None:
    scripted.call("image", saved(image_file), app="Safari")
    folder = Path(scripted.argv[scripted.argv.index("--path") + 1])
    assert (folder.is_relative_to(scripted.folder / "tmp"), folder.stat().st_mode & 0o777) == (True, 0o700)


def test_the_home_folder_is_expanded_for_a_program_that_would_not(scripted: Scripted) -> None:
    scripted.call("image", saved(Path("/p/a.png")), path="~/a.png")
    assert scripted.argv[scripted.argv.index("--path") + 1] == str(scripted.folder / "home" / "a.png")


def test_what_policy_forbids_is_not_delegated(scripted: Scripted) -> None:
    stop = scripted.folder / "home/Library/Caches/peekaboo_min/STOP"
    stop.parent.mkdir(parents=True, exist_ok=True)
    stop.touch()
    try:
        answer = scripted.call("image", saved(Path("/p/a.png")), app="Safari", capture_focus="foreground")
    finally:
        stop.unlink()
    assert (answer["isError"], (scripted.folder / "argv").exists()) == (True, False)
    assert refused(answer)["code"] == "POLICY_DENIED"


def test_the_status_and_bad_arguments_ask_nobody(scripted: Scripted) -> None:
    """ "Validate MCP input against the tool's Zod schema. If invalid, log error with Pino and return MCP
    error ToolResponse." Only then: "Construct command-line arguments for Swift peekaboo CLI".
    """
    for arguments in (
        {"item_type": "server_status"},
        {"item_type": "application_windows"},
        {"include_window_details": ["ids"]},
    ):
        scripted.call("list", apps(), **arguments)
        assert not (scripted.folder / "argv").exists()
    for arguments in (
        {"app": "Safari", "window_specifier": {"title": " "}},
        {"mode": "screen", "window_specifier": {"index": 0}},
        {"mode": "multi"},
    ):
        answer = scripted.call("image", saved(Path("/p/a.png")), **arguments)
        assert refused(answer)["code"] == "INVALID_ARGUMENT"
        assert not (scripted.folder / "argv").exists()


def test_no_child_inherits_the_variable(scripted: Scripted) -> None:
    scripted.call("list", apps())
    names = [line.split("=")[0] for line in (scripted.folder / "environment").read_text().splitlines()]
    assert ("PEEKABOO_CLI_PATH" in names, "PEEKABOO_BIN_DIR" in names) == (False, True)


# its output ---


def test_rows_of_applications_are_handed_on_as_they_are(scripted: Scripted) -> None:
    safari = {"app_name": "Safari", "bundle_id": "com.apple.Safari", "pid": 501}
    rows = [{**safari, "is_active": True, "window_count": 3}]
    assert seen(scripted.call("list", success(applications=rows))) == {"application_list": rows}


def test_rows_of_windows_are_handed_on_with_short_bounds(scripted: Scripted) -> None:
    row = {"window_title": "Apple", "window_id": 67, "window_index": 0, "is_on_screen": True}
    info = {"app_name": "Safari", "pid": 501, "bundle_id": "com.apple.Safari"}
    reply = success(
        windows=[{**row, "bounds": {"x": 0, "y": -1, "width": 800, "height": 600}}, row],
        target_application_info=info,
    )
    assert seen(scripted.call("list", reply, app="Safari")) == {
        "window_list": [{**row, "bounds": {"x": 0, "y": -1, "w": 800, "h": 600}}, row],
        "target_application_info": info,
    }


def test_rows_of_saved_files_are_handed_on_with_their_paths_in_the_text(
    scripted: Scripted, image_file: Path
) -> None:
    window = {"window_title": "A", "window_id": 7, "window_index": 0}
    rows = [{"path": str(image_file), "item_label": "Main", **window, "mime_type": "image/png"}]
    answer = scripted.call("image", success(saved_files=rows), app="Safari")
    assert seen(answer) == {"saved_files": rows}
    assert str(image_file) in answer["content"][0]["text"]


def test_titles_from_another_program_are_cleaned_as_ours_are(scripted: Scripted) -> None:
    row = {"window_title": "safe\u202etxt.exe\x1b[2J", "window_index": 0}
    reply = success(windows=[row], target_application_info={"app_name": "A", "pid": 1})
    (cleaned,) = seen(scripted.call("list", reply, app="A"))["window_list"]
    assert cleaned == {**row, "window_title": "safe txt.exe [2J"}


def test_images_are_read_from_the_files_that_it_saved(scripted: Scripted, tmp_path: Path) -> None:
    """ "metadata?: { item_label?: string, window_title?: string, window_id?: number, source_path?: string }".
    A click needs more, and only where the returned image has the file's own pixels.
    """
    paths = [tmp_path / "one.png", tmp_path / "two.png"]
    for path, width in zip(paths, (30, 40)):
        path.write_bytes(picture("png", width, 20))
    reply = saved(*paths)
    clickable = {"window_title": "A", "window_id": 7, "scale": 2, "screenshot_id": "abc"}
    reply["data"]["saved_files"][0].update(clickable, image_width=30, image_height=20)
    reply["data"]["saved_files"][1].update(clickable, image_width=400, image_height=200)
    answer = scripted.call("image", reply, return_data=True, path=str(tmp_path))
    assert [each["path"] for each in seen(answer)["saved_files"]] == [str(path) for path in paths]
    of_both = {"mime_type": "image/png", "image_height": 20, "window_title": "A", "window_id": 7}
    assert seen(answer)["images"] == [
        {**of_both, **clickable, "item_label": "one", "image_width": 30, "source_path": str(paths[0])},
        {**of_both, "item_label": "two", "image_width": 40, "source_path": str(paths[1])},
    ]
    assert [base64.b64decode(each["data"]) for each in answer["content"][1:]] == [
        path.read_bytes() for path in paths
    ]
    assert [each["mimeType"] for each in answer["content"][1:]] == ["image/png", "image/png"]


def test_its_messages_stand_in_the_answer(scripted: Scripted, image_file: Path) -> None:
    answer = scripted.call(
        "image", {**saved(image_file), "messages": ["The window was hidden.", "It is shown now."]}
    )
    assert "note: The window was hidden.\nnote: It is shown now.\n" in answer["content"][0]["text"]
    assert seen(answer) == {"saved_files": saved(image_file)["data"]["saved_files"]}


def test_its_stderr_is_logged_as_a_warning_and_its_debug_logs_at_debug(scripted: Scripted) -> None:
    scripted.call("list", {**apps(), "debug_logs": ["first", "second: ä"]}, stderr="look out\nthere\n")
    lines = scripted.logged()
    warnings = [text for level, text in lines if level == "warn"]
    assert [text.partition("-stderr] ")[2] for text in warnings] == ["look out", "there"]
    assert [line for line in lines if "swift_log" in line[1]] == [
        ("debug", "backend=swift swift_log=first"),
        ("debug", "backend=swift swift_log=second: ä"),
    ]
    (command,) = [text for level, text in lines if level == "debug" and "command line: " in text]
    assert json.loads(command.split(": ", 1)[1])[1:] == ["list", "apps", "--json-output"]


@pytest.mark.parametrize("code", [0, 1, 18])
def test_its_error_is_relayed_with_message_code_and_details(scripted: Scripted, code: int) -> None:
    error = {
        "code": "APP_NOT_FOUND",
        "message": "No application 'Zzz'.",
        "details": "Available applications: A, B",
    }
    reply = {"success": False, "error": error, "debug_logs": ["looked everywhere"]}
    assert refused(scripted.call("list", reply, code, app="Zzz")) == {
        "code": "APP_NOT_FOUND",
        "said": "No application 'Zzz'. (Available applications: A, B)",
    }
    assert ("debug", "backend=swift swift_log=looked everywhere") in scripted.logged()


# What it writes, where it does not succeed: the tool, its output, its exit code.
EXECUTION_ERRORS: list[tuple[str, Any, int]] = [
    ("list", "", 1),
    ("list", "Segmentation fault", 139),
    ("list", apps(), 3),
    ("list", {"success": False}, 0),
]
# What it writes that is not the specification's JSON, with exit code 0.
INVALID_OUTPUTS: list[tuple[str, Any]] = [
    *(
        ("list", text)
        for text in ("", "Hello", json.dumps(apps()) * 2, json.dumps(apps())[:-5], [], 5, "null")
    ),
    ("list", {"data": {"applications": []}}),
    ("list", {"success": True}),
    *(("list", {"success": True, "data": data}) for data in (None, [1], "x")),
    ("list", {"success": False, "error": "oh"}),
    ("list", {**apps(), "debug_logs": 5}),
    ("list", {**apps(), "messages": 5}),
    ("list", success(windows=[])),
    ("list", success(applications=["Safari"])),
    ("list app", success(target_application_info={})),
    ("list app", success(windows=[])),
    ("list app", success(windows=["A"], target_application_info={"app_name": "A", "pid": 1})),
    ("image", success()),
    ("image", success(saved_files=["/a.png"])),
    *(("image data", saved(Path(path))) for path in ("/no/such.png", "/proc/self/mem", "/a\0b")),
    ("image data", saved(ROOT / "pyproject.toml")),
]
FAILURES = [
    *((*failure, "SWIFT_CLI_EXECUTION_ERROR") for failure in EXECUTION_ERRORS),
    *((*failure, 0, "SWIFT_CLI_INVALID_OUTPUT") for failure in INVALID_OUTPUTS),
]
CALLS = {"list": {}, "list app": {"app": "Safari"}, "image": {}, "image data": {"return_data": True}}


@pytest.mark.parametrize(("call", "answer", "code", "name"), FAILURES)
def test_invalid_output_is_reported_with_the_specifications_code(
    scripted: Scripted, call: str, answer: Any, code: int, name: str
) -> None:
    reply = refused(scripted.call(call.split()[0], answer, code, **CALLS[call]))
    assert reply["code"] == name
    assert [text for level, text in scripted.logged() if "Traceback" in text or "unexpected" in text] == []


@pytest.mark.parametrize("code", [0, 1])
def test_control_characters_in_what_it_reports_are_cleaned(scripted: Scripted, code: int) -> None:
    error = {"code": "X", "message": "No '\u202etxt\x1b[2J'."}
    for reply in ({"success": False, "error": error}, "No '\u202etxt\x1b[2J'."):
        said = refused(scripted.call("list", reply, code))["said"]
        assert "No ' txt [2J'." in said and said.isprintable()


def test_a_failure_without_a_document_is_reported_with_its_output(scripted: Scripted) -> None:
    reply = refused(scripted.call("list", "", 5, stderr="dyld: Library not loaded\n"))
    assert reply["said"] == (
        "the peekaboo command line failed with exit code 5. "
        "Next step: see its output: dyld: Library not loaded"
    )
    assert [text for level, text in scripted.logged() if level == "error"] == [
        "the peekaboo command line failed with exit code 5: ",
        "refused: SWIFT_CLI_EXECUTION_ERROR: the peekaboo command line failed with exit code 5",
    ]


def test_after_a_failure_the_next_call_is_answered(scripted: Scripted) -> None:
    assert scripted.call("list", "garbage")["isError"] is True
    assert seen(scripted.call("list", apps())) == {"application_list": []}


# hanging and missing command lines ---


@pytest.fixture(scope="module")
def mac(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeMac]:
    with fake_mac(tmp_path_factory.mktemp("mac")) as each:
        yield each


@contextmanager
def delegating(mac: FakeMac, path: Path, form: str = "package", **variables: str) -> Iterator[Server]:
    with serving(form, mac_environment(mac, PEEKABOO_CLI_PATH=str(path), **variables)) as server:
        server.shake_hands()
        yield server


@pytest.fixture
def pids(scripted: Scripted, tmp_path: Path) -> Iterator[Path]:
    """Makes that command line hang; its processes are noted here."""
    (scripted.folder / "hook").write_text(HANGS.format(pids=shlex.quote(str(tmp_path / "pids"))))
    yield tmp_path / "pids"
    (scripted.folder / "hook").unlink()


def test_a_command_line_that_hangs_is_killed_with_all_that_it_started(
    scripted: Scripted, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(mcp_server.FORMS, "impatient", ["-c", IMPATIENT])
    with serving("impatient", scripted.environment) as server:
        server.shake_hands()
        numbers = [
            server.start_call("list"),
            server.start_call("list", app="Safari"),
            server.start_call("image"),
        ]
        assert [refused(server.answer_to(one)["result"])["code"] for one in numbers] == ["TIMEOUT"] * 3
    assert [pid for pid in pids_in(pids, 6) if is_alive(pid)] == []


def test_a_cancelled_call_kills_it_at_once(scripted: Scripted, pids: Path) -> None:
    number = scripted.server.start_call("image")
    started = pids_in(pids)
    scripted.server.send("notifications/cancelled", {"requestId": number}, is_request=False)
    wait_for(
        lambda: not any(map(is_alive, started)), "it is dead", 30
    )  # of itself it would be given up after 45


def test_a_path_that_is_not_executable_is_ignored_with_a_warning_until_it_is_one(
    mac: FakeMac, tmp_path: Path
) -> None:
    path = tmp_path / "peekaboo"
    with delegating(mac, path, PEEKABOO_LOG_FILE=str(tmp_path / "log")) as server:

        def lists_safari() -> bool:
            return "com.apple.Safari" in json.dumps(server.call("list"))

        assert lists_safari()
        path.write_text("#!/bin/sh\necho garbage\n")
        assert lists_safari()
        path.unlink()
        path.mkdir()
        assert lists_safari()
        path.rmdir()
        executable(path, "#!/bin/sh\necho garbage\n")
        assert refused(server.call("list"))["code"] == "SWIFT_CLI_INVALID_OUTPUT"
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    warnings = [
        line["msg"] for line in lines if "PEEKABOO_CLI_PATH" in line["msg"] and line["level"] == "warn"
    ]
    assert warnings == [f"PEEKABOO_CLI_PATH names {path}, which is not an executable: not used"] * 3


def test_the_shell_never_uses_it(mac: FakeMac, tmp_path: Path) -> None:
    path = executable(tmp_path / "other", f"#!/bin/sh\necho used >> {shlex.quote(str(tmp_path / 'used'))}\n")
    shell = InProcessProgram(mac_environment(mac, PEEKABOO_CLI_PATH=str(path)))
    for argv in (
        ["list", "apps"],
        ["list", "windows", "--app", "Form"],
        ["image", "--app", "Form", "--path", tmp_path / "a.png"],
    ):
        assert shell.run(*argv).code == 0
    assert not (tmp_path / "used").exists()


# our own command line ---


@pytest.fixture(scope="module")
def direct(mac: FakeMac) -> Iterator[Server]:
    with serving("package", mac_environment(mac)) as server:
        server.shake_hands()
        server.call("list")  # takes the status
        yield server


@pytest.fixture(scope="module")
def through_ours(mac: FakeMac) -> Iterator[Server]:
    """A server whose other command line is our own, in its single file."""
    argv = [sys.executable, str(ROOT / "scripts" / "peekaboo.py")]
    path = executable(mac.folder / "own-peekaboo", f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
    with delegating(mac, path) as server:
        server.call("list")  # takes the status
        yield server


LISTS = {
    "applications": {},
    "all details": {"app": "Safari", "include_window_details": ["off_screen", "bounds", "ids"]},
}


@pytest.mark.parametrize("arguments", LISTS.values(), ids=LISTS.keys())
def test_our_own_command_line_lists_what_the_server_lists(
    direct: Server, through_ours: Server, arguments: Any
) -> None:
    assert seen(through_ours.call("list", **arguments)) == seen(direct.call("list", **arguments))


IMAGES = {
    "a jpg": {"app": "Calculator", "format": "jpg"},
    "all windows": {"app": "Safari", "mode": "multi"},
    "a title": {"app": "TextEdit", "window_specifier": {"title": "letter"}},
    "a window by its id": {"window_id": 1050},
    "shrunk": {"app": "Calculator", "max_dimension": 100},
}


@pytest.mark.parametrize("arguments", IMAGES.values(), ids=IMAGES.keys())
def test_our_own_command_line_captures_what_the_server_captures(
    direct: Server, through_ours: Server, tmp_path: Path, arguments: Any
) -> None:
    def taken(server: Server, folder: str) -> Any:
        path = tmp_path / folder / f"a.{arguments.get('format', 'png')}"
        answer = server.call("image", return_data=True, path=str(path), **arguments)
        rows = seen(answer)["saved_files"]
        sizes = [image_size(Path(each["path"])) for each in rows]
        images = [sniff_image(base64.b64decode(each["data"])) for each in answer["content"][1:]]
        changing = ("path", "source_path", "screenshot_id")
        names = [Path(each["path"]).name for each in rows]
        described = [{key: value for key, value in each.items() if key not in changing} for each in rows]
        # a smaller copy for the model has a coordinate record of its own in the server that captured it only
        returned = [{**each, "scale": 0, **dict.fromkeys(changing)} for each in seen(answer)["images"]]
        return described, returned, names, sizes, images

    assert taken(through_ours, "ours") == taken(direct, "direct")


REFUSALS = {
    "an unknown app": ("image", {"app": "Zzzz"}),
    "an ambiguous app": ("list", {"app": "Ca"}),
    "a title with a dash": ("image", {"app": "Safari", "window_specifier": {"title": "--no such page"}}),
    "an app with a dash": ("list", {"app": "-x"}),
}


@pytest.mark.parametrize(("tool", "arguments"), REFUSALS.values(), ids=REFUSALS.keys())
def test_our_own_command_line_refuses_with_the_servers_codes(
    direct: Server, through_ours: Server, tool: str, arguments: Any
) -> None:
    assert (
        refused(through_ours.call(tool, **arguments))["code"]
        == refused(direct.call(tool, **arguments))["code"]
    )


def test_a_foreground_capture_through_our_own_command_line_raises_the_window(
    through_ours: Server, mac: FakeMac
) -> None:
    mac.activate("Terminal")
    answer = through_ours.call(
        "image", app="Calculator", capture_focus="foreground", path=str(mac.folder / "front.png")
    )
    assert (answer["isError"], mac.front_window()["id"]) == (False, 1050)  # type: ignore[index]
