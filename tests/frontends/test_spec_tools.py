"""The specified tools over MCP: rows, refusals and status."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from answers import APPLICATIONS, ROWS, SAFARI, TITLES, Answer, files_in, kept_by, pictures_of, refused, seen
from fake_ai import FakeAI, picture, script
from fakemac import FakeMac, image_size
from macs import mac_environment
from mcp_server import Server, initialized
from worlds import executable

from peekaboo_min import __version__
from peekaboo_min.system.image_files import sniff_image

NOT_CONFIGURED = (
    "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable."
)
NEEDS_APP = "For 'application_windows', 'app' identifier is required."
NO_FORMAT = "Unsupported image format: none. Supported formats: .png, .jpg, .jpeg, .webp"
NOT_APPLICABLE = "'app' and 'include_window_details' not applicable for 'server_status'."
ONE_PROVIDER = "ollama/llava:latest"
A_PNG = {"image_path": "/a.png", "question": "?"}
CALCULATOR: dict[str, Any] = {"app": "Calculator", "max_dimension": 64, "return_data": True}


def status_text(providers: str) -> str:
    return (
        "\n\n--- Peekaboo MCP Server Status ---\nName: PeekabooMCP\n"
        f"Version: {__version__}\nConfigured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


@pytest.fixture(scope="module")
def server(mac: FakeMac, ai: FakeAI) -> Iterator[Server]:
    """Start a server on the fake Mac with a model and a `peekaboo` that runs shell lines."""
    executable(mac.bin_dir / "peekaboo", 'eval "$1"')
    (mac.folder / "a.png").write_bytes(picture())
    with initialized("package", mac_environment(mac, **ai.env("ollama", "llava:latest"))) as started:
        started.call("list")  # consumes the status text, which is sent once
        yield started


SPECIFIED = [
    ("list", {"item_type": "application_windows"}, NEEDS_APP),
    ("list", {"app": " "}, NEEDS_APP),
    ("list", {"include_window_details": ["ids"]}, "'include_window_details' only for 'application_windows'."),
    ("list", {"item_type": "server_status", "app": "Safari"}, NOT_APPLICABLE),
    ("list", {"item_type": "server_status", "include_window_details": ["ids"]}, NOT_APPLICABLE),
    ("analyze", {"image_path": "/a", "question": "?"}, NO_FORMAT),
]


@pytest.mark.parametrize(("tool", "arguments", "text"), SPECIFIED)
def test_refusal_has_the_specified_text(server: Server, tool: str, arguments: Any, text: str) -> None:
    assert refused(server.call(tool, **arguments)) == {"code": "INVALID_ARGUMENT", "said": text}


CLICK: dict[str, Any] = {"window_id": 7, "x": 1, "y": 1}
SAFARI_APP = {"app": "Safari"}
NEXT = "Next step: call it again with arguments that match its schema: window_id, x"
INVALID = [
    ("click", {**CLICK, "btn": "right"}, f"click: btn: Extra inputs are not permitted. {NEXT}"),
    ("click", {"window_id": 7, "x": 1}, "click: y:"),
    ("click", {**CLICK, "button": "side"}, "click: button:"),
    ("click", {**CLICK, "x": float("nan")}, "click: x:"),
    ("type_text", {"window_id": 7, "text": ["a"]}, "type_text: text:"),
    ("focus_window", {"window_id": None}, "focus_window: window_id:"),
    ("clik", {}, "there is no tool called 'clik'"),
    # spec: "Specifies which window for 'window' mode. Defaults to main/frontmost of target app."
    ("image", {**SAFARI_APP, "window_specifier": {"title": "a", "index": 0}}, "image: window_specifier"),
    ("image", {**SAFARI_APP, "window_specifier": {"index": -1}}, "image: window_specifier"),
    ("image", {"capture_focus": "auto"}, "image: capture_focus:"),
    ("peekaboo_exec", {"args": []}, ""),
    ("peekaboo_exec", {"args": "list apps"}, "peekaboo_exec: args:"),
    ("peekaboo_exec", {"args": ["x"], "timeout_seconds": 0}, "timeout_seconds"),
    ("peekaboo_exec", {"args": ["x"], "timeout_seconds": 3601}, "timeout_seconds"),
    ("peekaboo_exec", {"args": ["x"], "max_attachments": -1}, "max_attachments"),
    ("peekaboo_exec", {"args": ["x"], "cwd": "/no/such/folder"}, "cwd /no/such/folder is not a folder"),
]
TWO = "name one of them: Calendar (com.apple.iCal, PID:440), Calculator (com.apple.calculator, PID:450)"
NO_WINDOW = "the 'Notes' process is running, but no capturable windows were found. Next step: open one"
REFUSALS = [
    *((tool, arguments, f"INVALID_ARGUMENT: {message}") for tool, arguments, message in INVALID),
    ("image", {"app": "Ca"}, f"AMBIGUOUS_APP_IDENTIFIER: 'Ca' matches 2 applications. Next step: {TWO}"),
    ("focus_window", {"window_id": 7}, "WINDOW_NOT_FOUND: there is no window 7. Next step: list the windows"),
    ("image", {"app": "Notes"}, "WINDOW_NOT_FOUND:"),
    ("analyze", {**A_PNG, "provider_config": {"type": "openai"}}, "AI_NOT_CONFIGURED: Provider 'openai'"),
    ("screenshot_app_window", {"appName": "Ca"}, "ProcessNotFound:"),
    ("screenshot_app_window", {"appName": "Notes"}, f"NoWindow: {NO_WINDOW}"),
]


@pytest.mark.parametrize(("tool", "arguments", "message"), REFUSALS, ids=lambda cell: str(cell)[:60])
def test_refusal_names_the_problem_and_captures_nothing(
    server: Server, mac: FakeMac, tool: str, arguments: dict[str, Any], message: str
) -> None:
    before = (len(mac.calls("screencapture")), kept_by(mac))
    error = refused(server.call(tool, **arguments))
    text = f"{error['code']}: {error['said']}"
    assert text.startswith(message) and ". Next step: " in text
    assert "pydantic" not in text and "Traceback" not in text
    assert (len(mac.calls("screencapture")), kept_by(mac)) == before


DETAILS: list[dict[str, Any]] = [
    {"window_id": 1012, "bounds": {"x": 200, "y": 60, "w": 1000, "h": 700}, "is_on_screen": True},
    {"window_id": 1004, "bounds": {"x": 120, "y": 120, "w": 900, "h": 640}, "is_on_screen": True},
    {"window_id": 1005, "bounds": {"x": 500, "y": 300, "w": 500, "h": 300}, "is_on_screen": False},
]


def test_list_returns_the_specified_rows_with_the_requested_details(server: Server) -> None:
    assert seen(server.call("list", item_type="running_applications")) == {"application_list": APPLICATIONS}
    everything = [{**row, **details} for row, details in zip(ROWS, DETAILS)]
    requested = {"item_type": "application_windows", "app": "safari"}
    for details, rows in (([], ROWS[:2]), (["off_screen", "bounds", "ids"], everything)):
        data = seen(server.call("list", **requested, include_window_details=details))
        assert data == {"window_list": rows, "target_application_info": SAFARI}


def test_list_server_status_is_only_text(server: Server) -> None:
    answer = server.call("list", item_type="server_status")
    (block,) = answer["content"]
    assert answer == {"content": [block], "isError": False}
    assert block["text"].startswith(status_text("ollama/llava:latest").strip() + "\n\nok      ")
    checks, _, problems = block["text"].partition("\n\nProblems:\n")
    well = [line[8:] for line in checks.splitlines() if line.startswith("ok")]
    assert problems and not [check for check in well if check in problems]  # on a busy machine, not "none"


@pytest.mark.parametrize(
    ("providers", "shown", "tool", "arguments"),
    [
        ("", "None Configured. Set PEEKABOO_AI_PROVIDERS ENV.", "list", {}),
        (ONE_PROVIDER, ONE_PROVIDER, "analyze", {"image_path": "~/a.png", "question": "?"}),
        (f" ,{ONE_PROVIDER} ;; openai/x,", f"{ONE_PROVIDER}, openai/x", "image", CALCULATOR),
    ],
)
def test_status_is_appended_once_to_the_first_success(
    mac: FakeMac, ai: FakeAI, providers: str, shown: str, tool: str, arguments: dict[str, Any]
) -> None:
    (mac.home / "a.png").write_bytes(picture())
    variables = {**ai.env("ollama", "llava:latest"), "PEEKABOO_AI_PROVIDERS": providers}
    with initialized("package", mac_environment(mac, **variables)) as server:
        status = server.call("list", item_type="server_status")  # does not count as the first
        others = [server.call("list_windows"), server.call("list", app="no app of that name")]
        ai.fail_with("empty")  # the image is saved, but the question fails
        others.append(server.call("image", app="Form", question="?", path=str(mac.folder / "kept.png")))
        ai.heal()
        first, again = (server.call(tool, **arguments) for _ in range(2))
    assert "Server Status" in str(status) and "Server Status" not in str([*others, again])
    text = first["content"][0]["text"]
    assert text.endswith(status_text(shown)) and text.count("Server Status") == 1
    assert first.get("structuredContent", {"summary": text})["summary"].endswith(status_text(shown))


# the last two are reduced to a model's image size
RETURNED: dict[str, list[tuple[str, str, int, int]]] = {
    '{"app": "Form"}': [("Form", "image/png", 960, 720)],
    '{"app": "Form", "format": "jpg", "max_dimension": 48}': [("Form", "image/jpeg", 48, 36)],
    '{"app": "Safari", "mode": "multi"}': [
        ("Start Page", "image/png", 1281, 897),
        ("Bug 12/34: crash in usr/bin", "image/png", 1271, 904),
    ],
    "{}": [("Display 1 / Main", "image/png", 1356, 847), ("Display 2", "image/png", 1429, 804)],
}


@pytest.mark.parametrize(("arguments", "rows"), RETURNED.items(), ids=RETURNED)
def test_returned_image_is_listed_and_leaves_no_file(
    server: Server, mac: FakeMac, arguments: str, rows: list[tuple[str, str, int, int]]
) -> None:
    before = kept_by(mac)
    answer = server.call("image", return_data=True, **json.loads(arguments))
    data, sent = seen(answer), [sniff_image(picture) for picture in pictures_of(answer)]
    keys = ("item_label", "mime_type", "image_width", "image_height")
    assert [tuple(image[key] for key in keys) for image in data["images"]] == rows
    assert [(info.mime_type, info.width, info.height) for info in sent if info] == [row[1:] for row in rows]
    assert [part["mimeType"] for part in answer["content"][1:]] == [row[1] for row in rows]
    assert (data["saved_files"], kept_by(mac)) == ([], before)


def test_image_with_data_and_a_path_is_saved_and_returned(server: Server, tmp_path: Path) -> None:
    # spec: "metadata?: { item_label?: string, window_title?: string, window_id?: number, source_path?:
    # string }"
    path = tmp_path / "new" / "form.png"
    answer = server.call("image", app="Form", return_data=True, path=str(path))
    (entry,) = seen(answer)["images"]
    (row,) = seen(answer)["saved_files"]
    shared = {key: row[key] for key in ("item_label", "window_title", "window_id")}
    assert entry.items() >= {**shared, "source_path": str(path)}.items()
    assert (row["path"], image_size(path), len(pictures_of(answer))) == (str(path), (960, 720), 1)
    assert path.stat().st_mode & 0o777 == 0o600, "the saved file is private"
    named = server.call("image", app="Form", path=str(tmp_path / "form.jpeg"))
    assert "note: " not in named["content"][0]["text"], "the schema's default is not a wish for png"
    assert sniff_image((tmp_path / "form.jpeg").read_bytes()) == ("jpg", 960, 720), "by its name"


@pytest.fixture
def brain(ai: FakeAI) -> Iterator[FakeAI]:
    """Let a test set the model's replies; restore them at the end."""
    usual = ai.brain
    yield ai
    ai.brain = usual
    ai.heal()


def test_image_with_a_question_is_answered_and_not_saved(server: Server, mac: FakeMac, brain: FakeAI) -> None:
    brain.brain = script(["A form."])
    before = kept_by(mac)
    data = seen(server.call("image", app="Form", question="Is it a form?"))
    (shown,) = data.pop("images")  # with the keys that a click needs
    assert (shown["window_id"], len(shown["screenshot_id"]), "path" in shown) == (1090, 16, False)
    assert data == {"saved_files": [], "analysis_text": "A form.", "model_used": "ollama/llava:latest"}
    (sent,) = brain.questions[-1].images
    assert (sent.real_type, sent.width, sent.height) == ("image/png", 960, 720)
    assert "Is it a form?" in brain.questions[-1].prompt
    assert kept_by(mac) == before


def test_image_with_a_question_is_saved_if_requested(server: Server, brain: FakeAI, tmp_path: Path) -> None:
    brain.brain = script(["Again.", "Still a form."])
    data = seen(server.call("image", app="Form", question="?", path=str(tmp_path / "form.png")))
    assert (data["saved_files"][0]["path"], data["analysis_text"]) == (str(tmp_path / "form.png"), "Again.")
    assert files_in(tmp_path) == ["form.png"]
    answer = server.call("image", app="Form", question="?", return_data=True)
    assert (seen(answer)["analysis_text"], len(pictures_of(answer))) == ("Still a form.", 1)


def test_image_of_several_windows_has_an_answer_per_window(server: Server, brain: FakeAI) -> None:
    brain.brain = script(["Bookmarks.", "A bug report."])
    data = seen(server.call("image", app="Safari", mode="multi", question="Is it a form?"))
    first, second = (f'Analysis for "{title}":\n' for title in TITLES[:2])
    assert data["analysis_text"] == f"{first}Bookmarks.\n\n{second}A bug report."


def test_image_of_a_failed_question_is_kept_with_a_path(server: Server, mac: FakeMac, brain: FakeAI) -> None:
    brain.fail_with("empty", times=None)
    before = kept_by(mac)
    assert refused(server.call("image", app="Form", question="Is it a form?"))["code"] == "AI_PROVIDER_ERROR"
    assert kept_by(mac) == before
    logged = (mac.folder / "log").stat().st_size
    failed = server.call("image", app="Form", question="Is it a form?", path=str(mac.folder / "kept.png"))
    assert failed["isError"] and str(mac.folder / "kept.png") in failed["content"][1]["text"]
    assert (mac.folder / "kept.png").is_file()
    assert b'"image failed: AI_PROVIDER_ERROR: ' in (mac.folder / "log").read_bytes()[logged:]


def test_analyze_returns_the_text_and_its_model(server: Server, brain: FakeAI, mac: FakeMac) -> None:
    brain.brain = script(["Two lines:\nA and B."])
    answer = server.call("analyze", image_path=str(mac.folder / "a.png"), question="Which letters?")
    (block,) = answer["content"]
    text, _, document = block["text"].rpartition("\n")
    assert (answer["isError"], text) == (False, "Two lines:\nA and B.")
    assert answer["structuredContent"] == {"summary": text, "analysis_text": text, **json.loads(document)}
    counts = {"seconds": ANY, "tokens_in": ANY, "tokens_out": ANY}
    assert json.loads(document) == {"model_used": "ollama/llava:latest", **counts}
    assert "Which letters?" in brain.questions[-1].prompt


@pytest.mark.parametrize(
    ("model", "used"), [("hf.co/someone/vision:q4", "hf.co/someone/vision:q4"), (" ", "llava:latest")]
)
def test_analyze_uses_the_chosen_model_or_the_configured_one(
    server: Server, brain: FakeAI, mac: FakeMac, model: str, used: str
) -> None:
    # spec: "model: z.string().optional() [...] If omitted, uses model from server's AI_PROVIDERS".
    brain.brain = script(["yes"])
    arguments = {"image_path": str(mac.folder / "a.png"), "question": "?"}
    answer = server.call("analyze", **arguments, provider_config={"type": "ollama", "model": model})
    assert answer["structuredContent"]["model_used"] == f"ollama/{used}"


def test_question_without_a_model_is_refused_and_logged_as_an_error(own_mac: FakeMac) -> None:
    with initialized("package", mac_environment(own_mac)) as server:
        error = refused(server.call("image", question="?", app="Form"))
    assert error["code"] == "AI_NOT_CONFIGURED" and error["said"].startswith(NOT_CONFIGURED)
    logged = [json.loads(line) for line in (own_mac.folder / "log").read_text().splitlines()]
    assert ("error", NOT_CONFIGURED) in [(line["level"], line["msg"]) for line in logged]


def run(server: Server, line: str, **arguments: Any) -> Answer:
    """Call peekaboo_exec with a shell line; the fake `peekaboo` runs it."""
    return server.call("peekaboo_exec", args=[line], **arguments)


def files(folder: Path) -> Path:
    """Create a folder of images, one without an image suffix."""
    folder.mkdir()
    kinds = {"a.png": "png", "b.jpg": "jpeg", "c.jpeg": "jpeg", "d.gif": "gif", "e.webp": "webp"}
    for name, kind in {**kinds, "f.PNG": "png", "picture.txt": "png"}.items():
        (folder / name).write_bytes(picture(kind))
    (folder / "text.png").write_text("no picture")
    return folder


def attached(answer: Answer) -> list[str]:
    data = seen(answer)
    names = "".join(f" [{name}]" for name in data["attachments"])
    text = answer["content"][0]["text"]
    assert text.startswith("exit code 0\n") and f":{names}" in text
    assert len(pictures_of(answer)) == len(data["attachments"])
    return data["attachments"]


# shell line: data that is not the default; a number or broken JSON is no document
METADATA: dict[str, dict[str, Any]] = {
    "echo '{not json'": {"stdout": "{not json\n"},
    "echo 5": {"stdout": "5\n"},
    "echo '[1, 2]'": {"json": [1, 2]},
    """printf ' \n{"a": "b"}'""": {"json": {"a": "b"}},
}


@pytest.mark.parametrize(("line", "expected"), METADATA.items(), ids=METADATA)
def test_exec_returns_output_code_and_json(server: Server, mac: FakeMac, line: str, expected: Any) -> None:
    usual = {"stdout": ANY, "stderr": "", "exit_code": 0, "attachments": [], "cwd": ANY, "version": ANY}
    data = seen(run(server, line))
    assert {"stdout": ANY, **data} == {**usual, "program": f"{mac.bin_dir}/peekaboo", **expected}


def test_exec_passes_arguments_unchanged_without_a_shell(server: Server, tmp_path: Path) -> None:
    argv = ["$HOME", "a b", "-x", "", "'", "*", "ä", f"$(touch {tmp_path}/x) \"'\\", "x" * 10_000]
    answer = server.call("peekaboo_exec", args=["shift; printf '%s\\n' \"$@\"", *argv])
    assert seen(answer)["stdout"] == "".join(f"{word}\n" for word in argv)
    assert files_in(tmp_path) == []


def test_exec_runs_in_a_private_temporary_folder(server: Server, mac: FakeMac) -> None:
    line = f"pwd; stat -c %a .; cat; {sys.executable} -m peekaboo_min clean >&2; ls -d $PWD"
    first, second = (seen(run(server, line)) for _ in range(2))
    assert first["cwd"] != second["cwd"] and Path(first["cwd"]).is_relative_to(mac.folder / "tmp")
    assert first["stdout"] == f"{first['cwd']}\n700\n{first['cwd']}\n", "`clean` keeps it"


def test_exec_runs_in_the_given_folder_and_attaches_changed_images(server: Server, tmp_path: Path) -> None:
    folder = files(tmp_path / "mine")
    assert attached(run(server, "pwd > where; rm c.jpeg", cwd=str(folder))) == []
    assert (folder / "where").read_text() == f"{folder}\n"
    os.utime(folder / "b.jpg", (1, 1))
    assert attached(run(server, "cp a.png new.png; touch b.jpg", cwd=str(folder))) == ["b.jpg", "new.png"]


def test_exec_detects_images_by_content_and_skips_links(server: Server, tmp_path: Path) -> None:
    source = shlex.quote(str(files(tmp_path / "files")))
    links = f"ln -s {source}/a.png link.png; ln -s {source} linked; mkfifo pipe.png"
    answer = run(server, f"cp {source}/* .; mkdir -p deep/er; cp {source}/a.png deep/er/z.png; {links}")
    assert attached(answer) == ["a.png", "b.jpg", "c.jpeg", "d.gif", "deep/er/z.png", "e.webp", "f.PNG"]
    kinds = [sniff_image(image) for image in pictures_of(answer)]
    assert [kind.mime_type for kind in kinds if kind] == [part["mimeType"] for part in answer["content"][1:]]


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (None, 8)])
def test_exec_attaches_no_more_than_the_limit(server: Server, tmp_path: Path, limit: Any, count: int) -> None:
    source = shlex.quote(str(files(tmp_path / "files")))
    given = {} if limit is None else {"max_attachments": limit}
    answer = run(server, f"for i in 0 1 2 3 4 5 6 7 8 9; do cp {source}/a.png $i.png; done", **given)
    assert attached(answer) == [f"{number}.png" for number in range(count)]
    assert f" {10 - count} more not attached" in answer["content"][0]["text"]
