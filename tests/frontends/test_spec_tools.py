"""The specified tools over MCP: rows, refusals and status."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from answers import (
    APPLICATIONS,
    Answer,
    files_in,
    kept_by,
    pictures_of,
    refused,
    screen_row,
    seen,
    window_row,
)
from fake_ai import FakeAI, picture, script
from fakemac import FakeMac, image_size, pixel, window_colour
from macs import fake_mac, mac_environment
from mcp_server import Server, is_alive, pids_in, serving
from worlds import Form, clean_environment, wait_for

from peekaboo_min import __version__
from peekaboo_min.system.bitmaps import sniff_image

NOT_CONFIGURED = (
    "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable."
)
NONE_OPERATIONAL = "No configured AI providers in PEEKABOO_AI_PROVIDERS are currently operational."
UNTIDY_PROVIDERS = " ,ollama/llava:latest ;; openai/gpt-5.4-mini,"
NO_PROVIDERS = "None Configured. Set PEEKABOO_AI_PROVIDERS ENV."


def table(text: str) -> list[list[str]]:
    """Split a table into rows; ` => ` separates the columns."""
    return [[cell.strip() for cell in line.split(" =>")] for line in text.strip().splitlines()]


def status_text(providers: str) -> str:
    return (
        "\n\n--- Peekaboo MCP Server Status ---\nName: PeekabooMCP\n"
        f"Version: {__version__}\nConfigured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


# the servers ------------------------------------------------------------------------------------------------

# each server's first replies: three without the status, the first success, the same call again
greetings: dict[str, list[Answer]] = {}


def greet(name: str, server: Server, tool: str, **arguments: Any) -> None:
    server.shake_hands()
    greetings[name] = [
        server.call("list", item_type="server_status"),  # the status itself does not count
        server.call("list_windows"),  # not a specified tool
        server.call("list", app="no app of that name"),  # a failure
        server.call(tool, **arguments),
        server.call(tool, **arguments),
    ]


@pytest.fixture(scope="module")
def server(mac: FakeMac, ai: FakeAI) -> Iterator[Server]:
    """Start a server on the fake Mac with a model and a `peekaboo` that runs shell lines."""
    (mac.bin_dir / "peekaboo").write_text('#!/bin/sh\neval "$1"\n')
    (mac.bin_dir / "peekaboo").chmod(0o755)
    (mac.folder / "a.png").write_bytes(picture())
    with serving("package", mac_environment(mac, **ai.env("ollama", "llava:latest"))) as started:
        greet("server", started, "analyze", image_path=str(mac.folder / "a.png"), question="?")
        yield started


@pytest.fixture(scope="module")
def bare_mac(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeMac]:
    with fake_mac(tmp_path_factory.mktemp("bare")) as started:
        yield started


@pytest.fixture(scope="module")
def bare(bare_mac: FakeMac, ai: FakeAI) -> Iterator[Server]:
    """Start a server with unreachable models, a save folder and no `peekaboo`."""
    environment = mac_environment(
        bare_mac,
        PEEKABOO_AI_PROVIDERS=UNTIDY_PROVIDERS,
        PEEKABOO_OLLAMA_BASE_URL=f"http://127.0.0.1:{ai.refused_port()}",
        PEEKABOO_DEFAULT_SAVE_PATH=str(bare_mac.folder / "shots"),
    )
    folder = bare_mac.folder / "tmp" / f"peekaboo_min-{os.getuid()}"
    folder.mkdir(mode=0o700)
    for name, age_s in {"old.png": 601, "young.png": 300}.items():
        (folder / name).write_bytes(picture())
        os.utime(folder / name, (time.time() - age_s,) * 2)
    with serving("single file", environment) as started:
        greet("bare", started, "image", app="Calculator", return_data=True, max_dimension=64)
        yield started


@pytest.fixture(scope="module")
def linux(display: str, tmp_path_factory: pytest.TempPathFactory, shared_form: Form) -> Iterator[Server]:
    """Start a server on X11 with a form and no model."""
    log = tmp_path_factory.getbasetemp() / "linux.log"
    folder = tmp_path_factory.mktemp("linux")
    environment = clean_environment(folder, DISPLAY=display, PEEKABOO_LOG_FILE=str(log))
    with serving("package", environment) as started:
        greet("linux", started, "list")
        wait_for(lambda: "Visitor book" in json.dumps(started.call("list_windows")), "the form is listed")
        yield started


# refusals ---------------------------------------------------------------------------------------------------

# calls => start of the INVALID_ARGUMENT message (`list`: all of it); some quote the specification
# "Specifies which window for 'window' mode. Defaults to main/frontmost of target app."
INVALID = """
click {"window_id": 7, "x": 1, "y": 1, "btn": "right"}   => click: btn: Extra inputs are not permitted
click {"window_id": 7, "x": 1}                           => click: y:
click {"window_id": 7, "x": 1, "y": 1, "button": "side"} => click: button:
click {"window_id": 7, "x": NaN, "y": 1}                 => click: x:
click {"window_id": 7, "x": 1, "y": 1, "clicks": 4}      => clicks is 4
type_text {}                                             => type_text: window_id:
type_text {"window_id": 7, "text": ["a"]}                => type_text: text:
focus_window {"window_id": null}                         => focus_window: window_id:
clik {}                                                  => there is no tool called 'clik'
image {"app": "x", "window_specifier": {"title": "a", "index": 0}} => image: window_specifier
image {"app": "Safari", "window_specifier": {"index": -1}} => image: window_specifier
image {"app": "Safari", "window_specifier": {"title": " "}} =>
image {"mode": "area"}                                   => image: mode:
image {"capture_focus": "auto"}                          => image: capture_focus:
image {"app": "", "mode": "multi"}                       =>
image {"mode": "window"}                                 =>
image {"app": "Safari", "max_dimension": -1}             => max_dimension
image {"window_specifier": {"title": "Start"}}           => mode screen takes no window title or index
image {"mode": "multi", "app": "Safari", "window_specifier": {"index": 0}, "capture_focus": "foreground"} \
    => mode multi takes no window title or index
list {"item_type": "application_windows"} => For 'application_windows', 'app' identifier is required.
list {"include_window_details": ["bounds"]} => 'include_window_details' only for 'application_windows'.
list {"item_type": "server_status", "app": "Safari"} \
    => 'app' and 'include_window_details' not applicable for 'server_status'.
list {"item_type": "server_status", "include_window_details": ["ids"]} \
    => 'app' and 'include_window_details' not applicable for 'server_status'.
analyze {"image_path": "/a.gif", "question": "?"} \
    => Unsupported image format: .gif. Supported formats: .png, .jpg, .jpeg, .webp
analyze {"image_path": "/a", "question": "?"} \
    => Unsupported image format: none. Supported formats: .png, .jpg, .jpeg, .webp
screenshot_app_window {}                                 =>
screenshot_app_window {"appName": "Form", "timeoutMs": 99} => timeoutMs
screenshot_app_window {"appName": "Form", "timeoutMs": 50001} => timeoutMs
peekaboo_exec {"args": []}                               =>
peekaboo_exec {"args": "list apps"}                      => peekaboo_exec: args:
peekaboo_exec {"args": ["x"], "timeout_seconds": 0}      => timeout_seconds
peekaboo_exec {"args": ["x"], "timeout_seconds": 3601}   => timeout_seconds
peekaboo_exec {"args": ["x"], "max_attachments": -1}     => max_attachments
peekaboo_exec {"args": ["x"], "cwd": "/no/such/folder"}  => cwd /no/such/folder is not a folder
peekaboo_exec {"args": ["a\\u0000b"]}                    =>
"""
REFUSALS = """
focus_window {"window_id": 7} => WINDOW_NOT_FOUND: there is no window 7. Next step: list the windows again
image {"app": "Zzzz"}                                    => APP_NOT_FOUND:
image {"app": "Ca"} => AMBIGUOUS_APP_IDENTIFIER: 'Ca' matches 2 applications. Next step: name one of them: \
Calendar (com.apple.iCal, PID:440), Calculator (com.apple.calculator, PID:450)
image {"app": "Notes"}                                   => WINDOW_NOT_FOUND:
image {"app": "Safari", "window_specifier": {"title": "no such page"}} => WINDOW_NOT_FOUND:
image {"app": "Safari", "window_specifier": {"index": 2}} => WINDOW_NOT_FOUND:
image {"window_id": 999}                                 => WINDOW_NOT_FOUND:
analyze {"image_path": "/a.png", "question": "?", "provider_config": {"type": "openai"}} \
    => AI_NOT_CONFIGURED: Provider 'openai' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration.
analyze {"image_path": "/no/such/file.png", "question": "?"} => FILE_IO_ERROR: /no/such/file.png: No such file
screenshot_app_window {"appName": "Nothing of that name"} => ProcessNotFound:
screenshot_app_window {"appName": "Ca"}                  => ProcessNotFound:
screenshot_app_window {"appName": "Notes"} => NoWindow: the 'Notes' process is running, but no capturable \
windows were found. Next step: open one of its windows, or focus a minimised one
"""


CALLS = [
    *([call, f"INVALID_ARGUMENT: {message}"] for call, message in table(INVALID)),
    *table(REFUSALS),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=lambda cell: cell[:60])
def test_refusal_names_the_problem_and_captures_nothing(
    server: Server, mac: FakeMac, call: str, message: str
) -> None:
    before = (len(mac.calls("screencapture")), kept_by(mac))
    tool, _, arguments = call.partition(" ")
    error = refused(server.call(tool, **json.loads(arguments)))
    text = f"{error['code']}: {error['said']}"
    assert text.startswith(message) and (tool != "list" or text == message)
    assert tool in ("list", "analyze") or ". Next step: " in text
    assert "pydantic" not in text and "Traceback" not in text
    assert (len(mac.calls("screencapture")), kept_by(mac)) == before


# list -------------------------------------------------------------------------------------------------------

SAFARI = {"app_name": "Safari", "pid": 410, "bundle_id": "com.apple.Safari"}
TITLES = ["Start Page", "Bug 12/34: crash in usr/bin", "Downloads"]
ROWS = [{"window_title": title, "window_index": index} for index, title in enumerate(TITLES)]
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


FIRST = {
    "server": "ollama/llava:latest",
    "bare": "ollama/llava:latest, openai/gpt-5.4-mini",
    "linux": NO_PROVIDERS,
}


@pytest.mark.usefixtures("server", "bare", "linux")  # before the test, which leaves them running
@pytest.mark.parametrize(("name", "providers"), FIRST.items())
def test_status_is_appended_once_to_the_first_success(
    request: pytest.FixtureRequest, name: str, providers: str
) -> None:
    request.getfixturevalue(name)
    *before, first, again = greetings[name]
    assert [json.dumps(reply).count("Peekaboo MCP Server Status") for reply in before] == [1, 0, 0]
    text, _, status = first["content"][0]["text"].partition("\n\n---")
    assert f"\n\n---{status}" == status_text(providers)
    if "structuredContent" in first:
        assert first["structuredContent"]["summary"].endswith(f"\n\n---{status}")
    assert "Server Status" not in text + json.dumps(again)
    assert [part["type"] for part in first["content"]] == [part["type"] for part in again["content"]]


# image ------------------------------------------------------------------------------------------------------


def expected_rows(folder: Path) -> dict[str, Any]:
    """Return the expected saved_files for each call's JSON arguments."""
    start = window_row(folder / "a.png", 1012, "Start Page", 0, (2000, 1400), 2.0)
    bug = window_row(folder / "a.png", 1004, "Bug 12/34: crash in usr/bin", 1, (1800, 1280), 2.0)
    both = [
        {**start, "path": str(folder / "a_window0_Start_Page.png")},
        {**bug, "path": str(folder / "a_window1_Bug_12_34_crash_in_usr_bin.png")},
    ]
    form = window_row(folder / "a.png", 1090, "Form", 0, (960, 720), 2.0)  # one image: no suffix
    displays = [
        screen_row(folder / "a_display0_main.png", "Display 1 / Main", (2880, 1800)),
        screen_row(folder / "a_display1.png", "Display 2", (1920, 1080)),
    ]
    form = window_row(folder / "a.png", 1090, "Form", 0, (960, 720), 2.0)
    small = {**start, "image_width": 500, "image_height": 350, "scale": 0.5}
    return {
        "{}": displays,
        '{"app": "Safari"}': [start],
        '{"mode": "screen", "app": "Safari"}': displays,
        '{"mode": "multi", "app": "Safari"}': both,
        '{"mode": "multi", "app": "Form"}': [form],
        '{"app": "Safari", "window_specifier": {"title": "crash in"}}': [bug],
        '{"app": "Safari", "mode": "window", "window_specifier": {"index": 1}}': [bug],
        '{"window_id": 1004}': [{key: value for key, value in bug.items() if key != "window_index"}],
        '{"app": "Safari", "max_dimension": 500}': [small],
    }


@pytest.mark.parametrize("arguments", expected_rows(Path("/")))
def test_image_saved_files_has_a_row_per_image(server: Server, tmp_path: Path, arguments: str) -> None:
    rows = expected_rows(tmp_path)[arguments]
    data = seen(server.call("image", path=str(tmp_path / "a.png"), **json.loads(arguments)))
    assert data == {"saved_files": rows}
    assert files_in(tmp_path) == sorted(Path(row["path"]).name for row in rows)
    sizes = [(row["image_width"], row["image_height"]) for row in rows]
    assert [image_size(Path(row["path"])) for row in rows] == sizes
    for row, (width, height) in zip(rows, sizes):
        if "window_id" in row:
            assert pixel(Path(row["path"]), width // 2, height - 3) == window_colour(row["window_id"])


def test_image_raises_the_window_only_in_the_foreground(server: Server, mac: FakeMac) -> None:
    for focus, front in (("background", 1080), ("foreground", 1050)):
        mac.activate("Terminal")
        answer = server.call(
            "image", app="Calculator", return_data=True, max_dimension=64, capture_focus=focus
        )
        assert (answer["isError"], mac.front_window()["id"]) == (False, front)
    mac.activate("Terminal")


# the last two are reduced to a model's image size
RETURNED = {
    '{"app": "Form"}': ["Form image/png 960 720"],
    '{"app": "Form", "max_dimension": 48}': ["Form image/png 48 36"],
    '{"app": "Form", "format": "jpg", "max_dimension": 48}': ["Form image/jpeg 48 36"],
    '{"app": "Safari", "mode": "multi"}': [
        "Start Page image/png 1281 897",
        "Bug 12/34: crash in usr/bin image/png 1271 904",
    ],
    "{}": ["Display 1 / Main image/png 1356 847", "Display 2 image/png 1429 804"],
}


@pytest.mark.parametrize(("arguments", "rows"), RETURNED.items(), ids=RETURNED)
def test_returned_image_is_listed_and_leaves_no_file(
    server: Server, mac: FakeMac, arguments: str, rows: list[str]
) -> None:
    before = kept_by(mac)
    answer = server.call("image", return_data=True, **json.loads(arguments))
    data = seen(answer)
    keys = ("item_label", "mime_type", "image_width", "image_height")
    listed = [" ".join(str(image[key]) for key in keys) for image in data["images"]]
    infos = filter(None, map(sniff_image, pictures_of(answer)))
    sent = [
        f"{image['item_label']} {info.mime_type} {info.width} {info.height}"
        for image, info in zip(data["images"], infos)
    ]
    assert (data["saved_files"], listed, sent) == ([], rows, rows)
    assert [part["mimeType"] for part in answer["content"][1:]] == [row.split()[-3] for row in rows]
    assert kept_by(mac) == before


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


# a question -------------------------------------------------------------------------------------------------


@pytest.fixture
def brain(ai: FakeAI) -> Iterator[FakeAI]:
    """Let a test set the model's replies; restore them at the end."""
    usual = ai.brain
    yield ai
    ai.brain = usual
    ai.heal()


def test_image_with_a_question_is_answered_and_saved_only_with_a_path(
    server: Server, mac: FakeMac, brain: FakeAI, tmp_path: Path
) -> None:
    brain.brain = script(["A form.", "Again.", "Still a form."])
    before = kept_by(mac)
    data = seen(server.call("image", app="Form", question="Is it a form?"))
    (shown,) = data.pop("images")  # with the keys that a click needs
    assert (shown["window_id"], len(shown["screenshot_id"]), "path" in shown) == (1090, 16, False)
    assert data == {"saved_files": [], "analysis_text": "A form.", "model_used": "ollama/llava:latest"}
    request = brain.questions[-1]
    assert [(image.real_type, image.width, image.height) for image in request.images] == [
        ("image/png", 960, 720)
    ]
    assert ("Is it a form?" in request.prompt, kept_by(mac)) == (True, before)
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


def test_image_with_a_failed_question_is_kept_only_with_a_path(
    server: Server, mac: FakeMac, brain: FakeAI
) -> None:
    brain.fail_with("empty", times=None)
    before = kept_by(mac)
    assert refused(server.call("image", app="Form", question="Is it a form?"))["code"] == "AI_PROVIDER_ERROR"
    assert kept_by(mac) == before
    failed = server.call("image", app="Form", question="Is it a form?", path=str(mac.folder / "kept.png"))
    assert failed["isError"] and str(mac.folder / "kept.png") in failed["content"][1]["text"]
    assert (mac.folder / "kept.png").is_file()


# analyze ----------------------------------------------------------------------------------------------------


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


MODELS = {"hf.co/someone/vision:q4": "hf.co/someone/vision:q4", "": "llava:latest", " ": "llava:latest"}


@pytest.mark.parametrize(("model", "used"), MODELS.items())
def test_analyze_uses_the_chosen_model_or_the_configured_one(
    server: Server, brain: FakeAI, mac: FakeMac, model: str, used: str
) -> None:
    # spec: "model: z.string().optional() [...] If omitted, uses model from server's AI_PROVIDERS".
    brain.brain = script(["yes"])
    chosen = {"type": "ollama", "model": model}
    answer = server.call(
        "analyze", image_path=str(mac.folder / "a.png"), question="?", provider_config=chosen
    )
    assert answer["structuredContent"]["model_used"] == f"ollama/{used}"


@pytest.mark.parametrize(
    ("tool", "target"), [("analyze", {"image_path": "/a.png"}), ("image", {"app": "Form"})]
)
def test_analyze_without_a_model_is_refused_and_logged_as_an_error(
    linux: Server, tmp_path_factory: pytest.TempPathFactory, tool: str, target: dict[str, str]
) -> None:
    error = refused(linux.call(tool, question="?", **target))
    assert (error["code"], error["said"][: len(NOT_CONFIGURED)]) == ("AI_NOT_CONFIGURED", NOT_CONFIGURED)
    log = tmp_path_factory.getbasetemp() / "linux.log"
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert ("error", NOT_CONFIGURED) in [(line["level"], line["msg"]) for line in logged]


def test_analyze_with_unreachable_models_is_refused(bare: Server) -> None:
    error = refused(bare.call("analyze", image_path="/a.png", question="?"))
    assert (error["code"], error["said"][: len(NONE_OPERATIONAL)]) == ("AI_PROVIDER_ERROR", NONE_OPERATIONAL)
    assert "OPENAI_API_KEY is not set" in error["said"]


# screenshot_app_window --------------------------------------------------------------------------------------

# arguments: the app, its rectangle in points, the scale, the image's kind
APP_WINDOWS = table("""
{"appName": "Safari"}                          => Safari 200 60 1000 700 2.0 png
{"bundleId": "com.apple.Safari"}               => Safari 200 60 1000 700 2.0 png
{"appName": "Safari", "windowIndex": 1}        => Safari 120 120 900 640 2.0 png
{"appName": "Safari", "format": "jpg"}         => Safari 200 60 1000 700 2.0 jpg
{"appName": "TextEdit", "windowIndex": 1}      => TextEdit -560 100 480 500 1.0 png
{"appName": "Safari", "preferWindowId": false} => Safari 200 60 1000 700 2.0 png
""")


def saved(answer: Answer) -> dict[str, Any]:
    """Return the data of a success; check the file, and that there is no link: models refuse links."""
    data = seen(answer)
    assert [part["type"] for part in answer["content"]] == ["text"]
    assert "the file is temporary: it is kept for 10 minutes" in answer["content"][0]["text"]
    path = Path(data["path"])
    assert (data["uri"], path.stat().st_mode & 0o777) == (path.as_uri(), 0o600)
    info = sniff_image(path.read_bytes())
    size = tuple(data["rect"][side] * data["scale"] for side in "wh")
    assert info and (info.kind, (info.width, info.height)) == (data["format"], size)
    return data


@pytest.mark.parametrize(("arguments", "row"), APP_WINDOWS)
def test_screenshot_app_window_returns_its_bounds_and_scale(server: Server, arguments: str, row: str) -> None:
    name, *place, scale, kind = row.split()
    rect = dict(zip("xywh", map(int, place)))
    data = saved(server.call("screenshot_app_window", **json.loads(arguments)))
    expected = {"appName": name, "rect": rect, "scale": float(scale), "format": kind}
    assert data == {"path": ANY, "uri": ANY, **expected}


def test_screenshot_app_window_on_x11_is_the_same(linux: Server, shared_form: Form) -> None:
    listed = seen(linux.call("list", app="Form", include_window_details=["bounds"]))["window_list"]
    data = saved(linux.call("screenshot_app_window", appName="form"))
    (rect,) = [row["bounds"] for row in listed if row["window_title"] == shared_form.title]
    assert data == {"path": ANY, "uri": ANY, "appName": "Form", "rect": rect, "scale": 1.0, "format": "png"}
    answer = linux.call("screenshot_app_window", appName="form", includeShadow=True)
    assert saved(answer)["rect"] == rect and "without a shadow" in answer["content"][0]["text"]


@pytest.mark.parametrize("name", ["CaptureFailed", "Timeout", "PermissionDenied"])
def test_screenshot_app_window_uses_the_specified_error_codes(
    server: Server, mac: FakeMac, name: str
) -> None:
    before = kept_by(mac)
    if name == "CaptureFailed":
        mac.fail("screencapture", "could not create image from window")
    elif name == "Timeout":
        mac.hang("screencapture")
    else:
        mac.deny("screen_recording")
    try:
        time_ms = 1200 if name == "Timeout" else 50_000
        error = refused(server.call("screenshot_app_window", appName="Calculator", timeoutMs=time_ms))
    finally:
        mac.heal()
        mac.grant("screen_recording")
    assert (error["code"], kept_by(mac), mac.running()) == (name, before, [])


def test_expired_image_file_is_deleted(bare: Server, bare_mac: FakeMac) -> None:
    folder = bare_mac.folder / "tmp" / f"peekaboo_min-{os.getuid()}"
    wait_for(lambda: not (folder / "old.png").exists(), "the expired image is deleted")
    assert (folder / "young.png").exists()


# peekaboo_exec ----------------------------------------------------------------------------------------------


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


# shell line: stdout, stderr, exit code, JSON document (a number or broken JSON does not count)
METADATA: dict[str, tuple[str, str, int, Any]] = {
    "echo out; echo err >&2; exit 3": ("out\n", "err\n", 3, None),
    "echo '{not json'": ("{not json\n", "", 0, None),
    "echo 5": ("5\n", "", 0, None),
    """echo '{"success": true}'""": (ANY, "", 0, {"success": True}),
    "echo '[1, 2]'": (ANY, "", 0, [1, 2]),
    """printf ' \n{"a": "b"}'""": (ANY, "", 0, {"a": "b"}),
}


@pytest.mark.parametrize(("line", "expected"), METADATA.items(), ids=METADATA)
def test_exec_returns_stdout_stderr_exit_code_and_document(
    server: Server, mac: FakeMac, line: str, expected: Any
) -> None:
    data = seen(run(server, line))
    assert (
        data.pop("stdout", ANY),
        data.pop("stderr"),
        data.pop("exit_code"),
        data.pop("json", None),
    ) == expected
    program = {"program": f"{mac.bin_dir}/peekaboo", "version": ANY}
    assert data == {"attachments": [], "cwd": ANY, **program}


def test_exec_passes_arguments_unchanged_without_a_shell(server: Server, tmp_path: Path) -> None:
    argv = ["$HOME", "a b", "-x", "", "'", "*", "ä", f"$(touch {tmp_path}/x) \"'\\", "x" * 10_000]
    answer = server.call("peekaboo_exec", args=["shift; printf '%s\\n' \"$@\"", *argv])
    assert seen(answer)["stdout"] == "".join(f"{word}\n" for word in argv)
    assert files_in(tmp_path) == []


def test_exec_runs_in_a_private_temporary_folder(server: Server, mac: FakeMac) -> None:
    first, second = (seen(run(server, "pwd; stat -c %a .; cat; echo end")) for _ in range(2))
    assert first["cwd"] != second["cwd"] and Path(first["cwd"]).is_relative_to(mac.folder / "tmp")
    assert first["stdout"] == f"{first['cwd']}\n700\nend\n"


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


def test_killed_exec_returns_its_output_and_images(server: Server, tmp_path: Path) -> None:
    # spec: "Execute with `exec.CommandContext`", "Collect `stdout`, `stderr`, `exit_code`", "Scan `cwd` for
    # images".
    source, pids = shlex.quote(str(files(tmp_path / "files"))), tmp_path / "pids"
    left = f"echo halfway; echo waiting >&2; cp {source}/a.png left.png"
    line = f"trap '' TERM INT; {left}; echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait"
    answer = run(server, line, timeout_seconds=3)
    assert [pid for pid in pids_in(pids) if is_alive(pid)] == []
    error, result, image = answer["content"]
    assert (answer["isError"], answer["_meta"]["backend_error_code"]) == (True, "TIMEOUT")
    assert error["text"].startswith("TIMEOUT: peekaboo did not finish within 3 seconds and was killed")
    state, note, document = result["text"].split("\n")
    assert (state, note.endswith(": [left.png]"), image["type"]) == ("killed", True, "image")
    data = json.loads(document)
    assert (data["exit_code"], data["stdout"], data["stderr"]) == (None, "halfway\n", "waiting\n")


def test_exec_without_a_peekaboo_runs_our_own_command_line(bare: Server) -> None:
    data = seen(bare.call("peekaboo_exec", args=["list", "windows", "--app", "Form", "--json-output"]))
    assert data["json"]["data"]["target_application_info"]["pid"] == 500
    argv = ["image", "--app", "Form", "--path", "form.png", "--json-output"]
    answer = bare.call("peekaboo_exec", args=argv)
    assert (attached(answer), seen(answer)["json"]["success"]) == (["form.png"], True)
