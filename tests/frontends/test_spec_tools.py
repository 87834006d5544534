"""The specified tools over MCP: descriptions, parameters, rows, refusals and the status, word for word."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
from peekaboo_min.system.images import sniff_image

# what the specification says, word for word -----------------------------------------------------------------

DESCRIPTIONS = {
    "image": (
        "Captures macOS screen content. Targets: entire screen (each display separately), a specific "
        "application window, or all windows of an application. Supports foreground/background capture. "
        "Captured image(s) can be saved to file(s) and/or returned directly as image data. Window "
        "shadows/frames are automatically excluded. Application identification uses intelligent fuzzy "
        "matching."
    ),
    "analyze": (
        "Analyzes an image file using a configured AI model (local Ollama, cloud OpenAI, etc.) and returns "
        "a textual analysis/answer. Requires image path. AI provider selection and model defaults are "
        "governed by the server's AI_PROVIDERS environment variable and client overrides."
    ),
    "list": (
        "Lists system items: all running applications, windows of a specific app, or server status. Allows "
        "specifying window details. App ID uses fuzzy matching."
    ),
}

HELP = {
    "image": {
        "app": (
            "Optional. Target application: name, bundle ID, or partial name. If omitted, captures "
            "screen(s). Uses fuzzy matching."
        ),
        "mode": "Capture mode. Defaults to 'window' if 'app' is provided, otherwise 'screen'.",
        "format": "Output image format. Defaults to 'png'.",
        "return_data": (
            "Optional. If true, image data is returned in response content (one item for 'window' mode, "
            "multiple for 'screen' or 'multi' mode)."
        ),
        "capture_focus": (
            "Optional. Focus behavior. 'background' (default): capture without altering window focus. "
            "'foreground': bring target to front before capture."
        ),
    },
    "analyze": {
        "image_path": "Required. Absolute path to image file (.png, .jpg, .webp) to be analyzed.",
        "question": "Required. Question for the AI about the image.",
        "provider_config": "Optional. Explicit provider/model",
    },
    "list": {
        "item_type": "What to list. 'server_status' returns Peekaboo server info.",
        "app": "Required if 'item_type' is 'application_windows'. Target application. Uses fuzzy matching.",
        "include_window_details": (
            "Optional, for 'application_windows'. Additional window details. Example: ['bounds', 'ids']"
        ),
    },
}

NOT_CONFIGURED = (
    "AI analysis not configured on this server. Set the PEEKABOO_AI_PROVIDERS environment variable."
)
NONE_OPERATIONAL = "No configured AI providers in PEEKABOO_AI_PROVIDERS are currently operational."


def status_text(providers: str) -> str:
    return (
        "\n\n--- Peekaboo MCP Server Status ---\nName: PeekabooMCP\n"
        f"Version: {__version__}\nConfigured AI Providers (from PEEKABOO_AI_PROVIDERS ENV): {providers}\n---"
    )


# the worlds -------------------------------------------------------------------------------------------------


Greeting = dict[str, Any]


def greet(server: Server, tool: str, **arguments: Any) -> Greeting:
    """A server's first answers: three without the status, its first success, and the same call again."""
    before = [
        server.call("list", item_type="server_status"),  # is the status, and does not count
        server.call("list_windows"),  # not of the specification
        server.call("list", app="no app of that name"),  # a failure
    ]
    return {
        "before": before,
        "first": server.call(tool, **arguments),
        "again": server.call(tool, **arguments),
    }


@pytest.fixture(scope="module")
def server(mac: FakeMac, ai: FakeAI) -> Iterator[Server]:
    """The server on the fake Mac, with a model to ask, and a `peekaboo` that is a small shell."""
    (mac.bin_dir / "peekaboo").write_text('#!/bin/sh\neval "$1"\n')
    (mac.bin_dir / "peekaboo").chmod(0o755)
    (mac.folder / "a.png").write_bytes(picture())
    with serving("package", mac_environment(mac, **ai.env("ollama", "llava:latest"))) as one:
        one.shake_hands()
        one.greeting = greet(one, "analyze", image_path=str(mac.folder / "a.png"), question="?")  # type: ignore[attr-defined]
        yield one


@pytest.fixture(scope="module")
def bare_mac(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeMac]:
    with fake_mac(tmp_path_factory.mktemp("bare")) as one:
        yield one


UNTIDY_PROVIDERS = " ,ollama/llava:latest ;; openai/gpt-5.4-mini,"
AGED = {"old.png": 601, "young.png": 300}


@pytest.fixture(scope="module")
def bare(bare_mac: FakeMac, ai: FakeAI) -> Iterator[Server]:
    """A server whose models do not answer, with a folder for pictures, and without a `peekaboo`."""
    environment = mac_environment(
        bare_mac,
        PEEKABOO_AI_PROVIDERS=UNTIDY_PROVIDERS,
        PEEKABOO_OLLAMA_BASE_URL=f"http://127.0.0.1:{ai.refused_port()}",
        PEEKABOO_DEFAULT_SAVE_PATH=str(bare_mac.folder / "shots"),
    )
    folder = bare_mac.folder / "tmp" / f"peekaboo_min-{os.getuid()}"
    folder.mkdir(mode=0o700)
    for name, age in AGED.items():
        (folder / name).write_bytes(picture())
        os.utime(folder / name, (time.time() - age,) * 2)
    with serving("single file", environment) as one:
        one.shake_hands()
        one.greeting = greet(one, "image", app="Calculator", return_data=True, max_dimension=64)  # type: ignore[attr-defined]
        yield one


@pytest.fixture(scope="module")
def linux_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("linux")


@pytest.fixture(scope="module")
def linux(display: str, linux_folder: Path, shared_form: Form) -> Iterator[Server]:
    """The server on X11 with a form, and without any model."""
    environment = clean_environment(
        linux_folder, DISPLAY=display, PEEKABOO_LOG_FILE=str(linux_folder / "log")
    )
    with serving("package", environment) as one:
        one.shake_hands()
        wait_for(lambda: "Visitor book" in json.dumps(one.call("list_windows")), "the form is listed")
        one.greeting = greet(one, "list")  # type: ignore[attr-defined]
        yield one


# tools/list -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tools(server: Server) -> dict[str, Any]:
    return {one["name"]: one for one in server.ask("tools/list")["result"]["tools"]}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_the_description_is_the_specifications_word_for_word(tools: dict[str, Any], name: str) -> None:
    assert tools[name]["description"] == DESCRIPTIONS[name]


@pytest.mark.parametrize("name", HELP)
def test_the_parameters_are_explained_in_the_specifications_words(tools: dict[str, Any], name: str) -> None:
    properties = tools[name]["inputSchema"]["properties"]
    told = {key: properties[key]["description"][: len(words)] for key, words in HELP[name].items()}
    assert told == HELP[name]


# list -------------------------------------------------------------------------------------------------------

SAFARI = {"app_name": "Safari", "pid": 410, "bundle_id": "com.apple.Safari"}
START = {"window_title": "Start Page", "window_index": 0}
BUG = {"window_title": "Bug 12/34: crash in usr/bin", "window_index": 1}
DOWNLOADS = {"window_title": "Downloads", "window_index": 2}
START_BOUNDS = {"x": 200, "y": 60, "w": 1000, "h": 700}
BUG_BOUNDS = {"x": 120, "y": 120, "w": 900, "h": 640}
DOWNLOADS_BOUNDS = {"x": 500, "y": 300, "w": 500, "h": 300}

WINDOW_LISTS = {
    "titles alone": ([], [START, BUG]),
    "ids": (["ids"], [{**START, "window_id": 1012}, {**BUG, "window_id": 1004}]),
    "bounds": (["bounds"], [{**START, "bounds": START_BOUNDS}, {**BUG, "bounds": BUG_BOUNDS}]),
    "off the screen, too": (
        ["off_screen"],
        [
            {**START, "is_on_screen": True},
            {**BUG, "is_on_screen": True},
            {**DOWNLOADS, "is_on_screen": False},
        ],
    ),
    "everything": (
        ["off_screen", "bounds", "ids"],
        [
            {**START, "window_id": 1012, "bounds": START_BOUNDS, "is_on_screen": True},
            {**BUG, "window_id": 1004, "bounds": BUG_BOUNDS, "is_on_screen": True},
            {**DOWNLOADS, "window_id": 1005, "bounds": DOWNLOADS_BOUNDS, "is_on_screen": False},
        ],
    ),
}


def test_the_running_applications_are_rows_of_the_specification(server: Server) -> None:
    assert seen(server.call("list", item_type="running_applications")) == {"application_list": APPLICATIONS}


@pytest.mark.parametrize(("details", "rows"), WINDOW_LISTS.values(), ids=WINDOW_LISTS.keys())
def test_the_windows_of_an_app_are_rows_with_the_asked_details(
    server: Server, details: list[str], rows: list[Any]
) -> None:
    answer = server.call(
        "list", item_type="application_windows", app="safari", include_window_details=details
    )
    assert seen(answer) == {"window_list": rows, "target_application_info": SAFARI}


REFINED = {
    "windows of nobody": (
        {"item_type": "application_windows"},
        "For 'application_windows', 'app' identifier is required.",
    ),
    "windows of a blank": (
        {"item_type": "application_windows", "app": "\t "},
        "For 'application_windows', 'app' identifier is required.",
    ),
    "details of applications": (
        {"item_type": "running_applications", "include_window_details": ["bounds"]},
        "'include_window_details' only for 'application_windows'.",
    ),
    "the status of an app": (
        {"item_type": "server_status", "app": "Safari"},
        "'app' and 'include_window_details' not applicable for 'server_status'.",
    ),
    "the status with details": (
        {"item_type": "server_status", "include_window_details": []},
        "'app' and 'include_window_details' not applicable for 'server_status'.",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), REFINED.values(), ids=REFINED.keys())
def test_a_refinement_is_described_exactly(server: Server, arguments: dict[str, Any], said: str) -> None:
    assert refused(server.call("list", **arguments)) == {"code": "INVALID_ARGUMENT", "said": said}


def test_the_status_begins_with_the_specifications_block_and_is_text_alone(server: Server) -> None:
    answer = server.call("list", item_type="server_status")
    (block,) = answer["content"]
    assert answer == {"content": [block], "isError": False}
    assert block["text"].startswith(status_text("ollama/llava:latest").strip() + "\n\nok      ")
    wanted = [
        "ollama/llava:latest: available",
        "ok      Screen Recording: granted",
        "ok      Accessibility: granted",
    ]
    assert [words for words in wanted if words not in block["text"]] == []


# the status, once -------------------------------------------------------------------------------------------

NO_PROVIDERS = "None Configured. Set PEEKABOO_AI_PROVIDERS ENV."
FIRST = {
    "analyze": ("server", "ollama/llava:latest"),
    "image": ("bare", ANY),
    "list": ("linux", NO_PROVIDERS),
}


@pytest.mark.usefixtures("server", "bare", "linux")  # before the test, which leaves them running
@pytest.mark.parametrize(("fixture", "providers"), FIRST.values(), ids=FIRST.keys())
def test_the_status_is_appended_exactly_once_to_the_first_success(
    request: pytest.FixtureRequest, fixture: str, providers: Any
) -> None:
    greeting = request.getfixturevalue(fixture).greeting
    first, again = greeting["first"], greeting["again"]
    assert [json.dumps(one).count("Peekaboo MCP Server Status") for one in greeting["before"]] == [1, 0, 0]
    text, _, status = first["content"][0]["text"].partition("\n\n---")
    assert "\n\n---" + status == status_text(status.split("ENV): ")[1][:-4])
    assert status.split("ENV): ")[1][:-4] == providers
    if "structuredContent" in first:
        assert first["structuredContent"]["summary"].endswith("\n\n---" + status)
    assert "Server Status" not in text + json.dumps(again)
    assert [one["type"] for one in first["content"]] == [one["type"] for one in again["content"]]


def test_the_status_shows_the_providers_as_a_list_however_they_were_written(bare: Server) -> None:
    text = bare.call("list", item_type="server_status")["content"][0]["text"]
    (line,) = [line for line in text.splitlines() if line.startswith("Configured AI Providers")]
    told = [one.strip() for one in line.split("ENV): ", 1)[1].split(",")]
    assert told == ["ollama/llava:latest", "openai/gpt-5.4-mini"]


# image ------------------------------------------------------------------------------------------------------


def shots(folder: Path) -> dict[str, Any]:
    """For each form of the call, the rows of saved_files."""
    start = window_row(folder / "a.png", 1012, "Start Page", 0, (2000, 1400), 2.0)
    bug = window_row(folder / "a.png", 1004, "Bug 12/34: crash in usr/bin", 1, (1800, 1280), 2.0)
    many = (
        {"path": str(folder / "a_window0_Start_Page.png")},
        {"path": str(folder / "a_window1_Bug_12_34_crash_in_usr_bin.png")},
    )
    displays = [
        screen_row(folder / "a_display0_main.png", "Display 1 / Main", (2880, 1800)),
        screen_row(folder / "a_display1.png", "Display 2", (1920, 1080)),
    ]
    return {
        "without an app the mode is screen": ({}, displays),
        "with an app the mode is window": ({"app": "Safari"}, [start]),
        "screen, though an app is named": ({"mode": "screen", "app": "Safari"}, displays),
        "all windows": ({"mode": "multi", "app": "Safari"}, [{**start, **many[0]}, {**bug, **many[1]}]),
        "by title": ({"app": "Safari", "window_specifier": {"title": "crash in"}}, [bug]),
        "by index": ({"app": "Safari", "mode": "window", "window_specifier": {"index": 1}}, [bug]),
        "by id": ({"window_id": 1004}, [{key: value for key, value in bug.items() if key != "window_index"}]),
        "shrunk": (
            {"app": "Safari", "max_dimension": 500},
            [{**start, "image_width": 500, "image_height": 350, "scale": 0.5}],
        ),
    }


@pytest.mark.parametrize("form", shots(Path("/")))
def test_saved_files_has_a_row_for_each_image(server: Server, tmp_path: Path, form: str) -> None:
    arguments, rows = shots(tmp_path)[form]
    data = seen(server.call("image", path=str(tmp_path / "a.png"), **arguments))
    assert data == {"saved_files": rows}
    assert files_in(tmp_path) == sorted(Path(one["path"]).name for one in rows)
    sizes = [image_size(Path(one["path"])) for one in rows]
    assert sizes == [(one["image_width"], one["image_height"]) for one in rows]
    middle = [
        pixel(Path(one["path"]), one["image_width"] // 2, one["image_height"] - 3)
        for one in rows
        if "window_id" in one
    ]
    assert middle == [window_colour(one["window_id"]) for one in rows if "window_id" in one]


def test_jpg_is_jpg_by_its_name_its_type_and_its_bytes(server: Server, tmp_path: Path) -> None:
    (row,) = seen(server.call("image", app="Calculator", format="jpg", path=str(tmp_path)))["saved_files"]
    assert row == window_row(Path(row["path"]), 1050, "Calculator", 0, (460, 816), 2.0)
    info = sniff_image(Path(row["path"]).read_bytes())
    assert (info and info.kind, Path(row["path"]).suffix) == ("jpg", ".jpg")


REFUSED_IMAGES = {
    "an unknown app": ({"app": "Zzzz"}, "APP_NOT_FOUND"),
    "an ambiguous app": ({"app": "Ca"}, "AMBIGUOUS_APP_IDENTIFIER"),
    "an app without windows": ({"app": "Notes"}, "WINDOW_NOT_FOUND"),
    "an unknown title": (
        {"app": "Safari", "window_specifier": {"title": "no such page"}},
        "WINDOW_NOT_FOUND",
    ),
    "an index beyond the last": ({"app": "Safari", "window_specifier": {"index": 2}}, "WINDOW_NOT_FOUND"),
    "a blank title": ({"app": "Safari", "window_specifier": {"title": " "}}, "INVALID_ARGUMENT"),
    "an index below zero": ({"app": "Safari", "window_specifier": {"index": -1}}, "INVALID_ARGUMENT"),
    "an empty app": ({"app": "", "mode": "multi"}, "INVALID_ARGUMENT"),
    "a mode without its app": ({"mode": "window"}, "INVALID_ARGUMENT"),
    "another mode": ({"mode": "area"}, "INVALID_ARGUMENT"),
    "another format": ({"format": "pdf"}, "INVALID_ARGUMENT"),
    "another focus": ({"capture_focus": "auto"}, "INVALID_ARGUMENT"),
    "an unknown window id": ({"window_id": 999}, "WINDOW_NOT_FOUND"),
    "a size of nothing": ({"app": "Safari", "max_dimension": -1}, "INVALID_ARGUMENT"),
}


@pytest.mark.parametrize(("arguments", "code"), REFUSED_IMAGES.values(), ids=REFUSED_IMAGES.keys())
def test_what_cannot_be_captured_is_refused_and_nothing_is_taken(
    server: Server, mac: FakeMac, arguments: Answer, code: str
) -> None:
    before = (len(mac.calls("screencapture")), kept_by(mac))
    assert refused(server.call("image", **arguments))["code"] == code
    assert (len(mac.calls("screencapture")), kept_by(mac)) == before


SPECIFIED: dict[str, tuple[Answer, str]] = {
    "every screen": ({"mode": "screen"}, "mode screen takes no window title or index"),
    "screens of an app": ({"mode": "screen", "app": "Safari"}, "mode screen takes no window title or index"),
    "all windows": ({"mode": "multi", "app": "Safari"}, "mode multi takes no window title or index"),
    "nothing": ({}, "mode screen takes no window title or index"),
}


@pytest.mark.parametrize("focus", ["background", "foreground"])
@pytest.mark.parametrize(("arguments", "problem"), SPECIFIED.values(), ids=SPECIFIED.keys())
def test_a_window_is_specified_for_the_mode_window_alone(
    server: Server, arguments: Answer, problem: str, focus: str
) -> None:
    """ "Optional. Specifies which window for 'window' mode. Defaults to main/frontmost of target app." """
    for specifier in ({"title": "Start"}, {"index": 0}):
        answer = server.call("image", **arguments, window_specifier=specifier, capture_focus=focus)
        assert refused(answer)["said"].startswith(f"{problem}. Next step: ")


def test_an_ambiguous_app_is_answered_with_its_candidates(server: Server) -> None:
    said = refused(server.call("image", app="Ca"))["said"]
    assert "Calendar (com.apple.iCal, PID:440), Calculator (com.apple.calculator, PID:450)" in said


def test_a_background_capture_moves_nothing_and_a_foreground_one_raises_the_window(
    server: Server, mac: FakeMac
) -> None:
    mac.activate("Terminal")
    server.call("image", app="Calculator", return_data=True, max_dimension=64)
    assert mac.front_window()["id"] == 1080  # type: ignore[index]
    answer = server.call(
        "image", app="Calculator", return_data=True, max_dimension=64, capture_focus="foreground"
    )
    assert (answer["isError"], mac.front_window()["id"]) == (False, 1050)  # type: ignore[index]
    mac.activate("Terminal")


RETURNED = {
    "a window": ({"app": "Form"}, [("Form", "image/png", 960, 720)]),
    "a small picture": ({"app": "Form", "max_dimension": 48}, [("Form", "image/png", 48, 36)]),
    "a jpg": ({"app": "Form", "format": "jpg", "max_dimension": 48}, [("Form", "image/jpeg", 48, 36)]),
    "all windows, within what a model is shown": (
        {"app": "Safari", "mode": "multi"},
        [("Start Page", "image/png", 1281, 897), ("Bug 12/34: crash in usr/bin", "image/png", 1271, 904)],
    ),
    "all screens, within what a model is shown": (
        {},
        [("Display 1 / Main", "image/png", 1356, 847), ("Display 2", "image/png", 1429, 804)],
    ),
}


@pytest.mark.parametrize(("arguments", "rows"), RETURNED.values(), ids=RETURNED.keys())
def test_returned_images_are_listed_with_their_sizes_and_leave_nothing_but_records(
    server: Server, mac: FakeMac, arguments: dict[str, Any], rows: list[Any]
) -> None:
    before = kept_by(mac)
    answer = server.call("image", return_data=True, **arguments)
    data = seen(answer)
    told = [
        (one["item_label"], one["mime_type"], one["image_width"], one["image_height"])
        for one in data["images"]
    ]
    infos = [sniff_image(one) for one in pictures_of(answer)]
    assert (data["saved_files"], told) == ([], rows)
    assert [(one.mime_type, one.width, one.height) for one in infos if one] == [one[1:] for one in rows]
    assert [one["mimeType"] for one in answer["content"][1:]] == [one[1] for one in rows]
    assert kept_by(mac) == before


def test_data_that_has_a_path_is_saved_and_returned(server: Server, tmp_path: Path) -> None:
    """The specification: `metadata?: { item_label?: string, window_title?: string, window_id?: number,
    source_path?: string }`.
    """
    answer = server.call("image", app="Form", return_data=True, path=str(tmp_path / "new" / "form.png"))
    (entry,) = seen(answer)["images"]
    (row,) = seen(answer)["saved_files"]
    assert (
        entry.items()
        >= {
            "item_label": row["item_label"],
            "window_title": row["window_title"],
            "window_id": row["window_id"],
            "source_path": row["path"],
        }.items()
    )
    assert [one["path"] for one in seen(answer)["saved_files"]] == [str(tmp_path / "new" / "form.png")]
    assert image_size(tmp_path / "new" / "form.png") == (960, 720)
    assert len(pictures_of(answer)) == 1


# a question -------------------------------------------------------------------------------------------------


@pytest.fixture
def brain(ai: FakeAI) -> Iterator[FakeAI]:
    """The model, to be given a mind; healthy again at the end."""
    usual = ai.brain
    yield ai
    ai.brain = usual
    ai.heal()


def test_a_image_with_a_question_is_answered_and_leaves_no_file(
    server: Server, mac: FakeMac, brain: FakeAI
) -> None:
    brain.brain = script(["A form."])
    before = kept_by(mac)
    answer = server.call("image", app="Form", question="What is it?")
    data = seen(answer)
    assert data == {"saved_files": [], "analysis_text": "A form.", "model_used": "ollama/llava:latest"}
    asked = brain.questions[-1]
    assert [(one.real_type, one.width, one.height) for one in asked.images] == [("image/png", 960, 720)]
    assert ("What is it?" in asked.prompt, kept_by(mac)) == (True, before)


def test_a_image_with_a_question_and_a_path_is_kept_and_with_data_returned(
    server: Server, brain: FakeAI, tmp_path: Path
) -> None:
    brain.brain = script(["A form.", "Still a form."])
    data = seen(server.call("image", app="Form", question="?", path=str(tmp_path / "form.png")))
    assert ([one["path"] for one in data["saved_files"]], data["analysis_text"]) == (
        [str(tmp_path / "form.png")],
        "A form.",
    )
    assert files_in(tmp_path) == ["form.png"]
    answer = server.call("image", app="Form", question="?", return_data=True)
    assert (seen(answer)["analysis_text"], len(pictures_of(answer))) == ("Still a form.", 1)


def test_several_images_are_answered_each_below_its_name(server: Server, brain: FakeAI) -> None:
    brain.brain = script(["Bookmarks.", "A bug report."])
    data = seen(server.call("image", app="Safari", mode="multi", question="What is it?"))
    blocks = [
        'Analysis for "Start Page":\nBookmarks.',
        'Analysis for "Bug 12/34: crash in usr/bin":\nA bug report.',
    ]
    assert data["analysis_text"] == "\n\n".join(blocks)


def test_a_provider_that_fails_makes_the_call_fail_and_no_image_stays(
    server: Server, mac: FakeMac, brain: FakeAI
) -> None:
    brain.fail_with("empty", times=None)
    before = kept_by(mac)
    assert refused(server.call("image", app="Form", question="What is it?"))["code"] == "AI_PROVIDER_ERROR"
    assert kept_by(mac) == before


# analyze ----------------------------------------------------------------------------------------------------


def test_an_answer_is_the_text_and_stands_in_the_data_with_its_model(
    server: Server, brain: FakeAI, tmp_path: Path
) -> None:
    brain.brain = script(["Two lines:\nA and B."])
    (tmp_path / "a.png").write_bytes(picture())
    answer = server.call("analyze", image_path=str(tmp_path / "a.png"), question="What does it say?")
    (block,) = answer["content"]
    text, _, document = block["text"].rpartition("\n")
    assert (answer["isError"], text) == (False, "Two lines:\nA and B.")
    assert answer["structuredContent"] == {
        "summary": "Two lines:\nA and B.",
        "analysis_text": "Two lines:\nA and B.",
        **json.loads(document),
    }
    assert json.loads(document) == {
        "model_used": "ollama/llava:latest",
        "seconds": ANY,
        "tokens_in": ANY,
        "tokens_out": ANY,
    }
    assert "What does it say?" in brain.questions[-1].prompt


def test_provider_and_model_may_be_chosen(server: Server, brain: FakeAI, tmp_path: Path) -> None:
    brain.brain = script(["yes"])
    (tmp_path / "a.png").write_bytes(picture())
    chosen = {"type": "ollama", "model": "hf.co/someone/vision:q4"}
    answer = server.call("analyze", image_path=str(tmp_path / "a.png"), question="?", provider_config=chosen)
    assert answer["structuredContent"]["model_used"] == "ollama/hf.co/someone/vision:q4"


@pytest.mark.parametrize("blank", ["", " "])
def test_a_blank_model_is_the_configured_one(
    server: Server, brain: FakeAI, tmp_path: Path, blank: str
) -> None:
    """ "model: z.string().optional() [...] If omitted, uses model from server's AI_PROVIDERS"."""
    brain.brain = script(["yes"])
    (tmp_path / "a.png").write_bytes(picture())
    chosen = {"type": "ollama", "model": blank}
    answer = server.call("analyze", image_path=str(tmp_path / "a.png"), question="?", provider_config=chosen)
    assert answer["structuredContent"]["model_used"] == "ollama/llava:latest"


UNSUPPORTED = "Unsupported image format: {}. Supported formats: .png, .jpg, .jpeg, .webp"
REFUSED_ANALYSES = {
    "a format that is none": ({"image_path": "/a.gif"}, "INVALID_ARGUMENT", UNSUPPORTED.format(".gif")),
    "a name without an ending": ({"image_path": "/a"}, "INVALID_ARGUMENT", UNSUPPORTED.format("none")),
    "a provider that is not enabled": (
        {"image_path": "/a.png", "provider_config": {"type": "openai"}},
        "AI_NOT_CONFIGURED",
        "Provider 'openai' is not enabled in server's PEEKABOO_AI_PROVIDERS configuration.",
    ),
    "a file that is not there": (
        {"image_path": "/no/such/file.png"},
        "FILE_IO_ERROR",
        "/no/such/file.png: No such file",
    ),
}


@pytest.mark.parametrize(
    ("arguments", "code", "said"), REFUSED_ANALYSES.values(), ids=REFUSED_ANALYSES.keys()
)
def test_analyze_refuses_in_the_specifications_words(
    server: Server, arguments: Answer, code: str, said: str
) -> None:
    told = refused(server.call("analyze", question="?", **arguments))
    assert (told["code"], told["said"][: len(said)]) == (code, said)


UNCONFIGURED = {
    "analyze": {"image_path": "/a.png", "question": "?"},
    "image": {"app": "Form", "question": "?"},
}


@pytest.mark.parametrize(("tool", "arguments"), UNCONFIGURED.items(), ids=UNCONFIGURED.keys())
def test_a_server_without_a_model_says_so_and_logs_it_as_an_error(
    linux: Server, linux_folder: Path, tool: str, arguments: dict[str, Any]
) -> None:
    told = refused(linux.call(tool, **arguments))
    assert (told["code"], told["said"][: len(NOT_CONFIGURED)]) == ("AI_NOT_CONFIGURED", NOT_CONFIGURED)
    logged = [json.loads(line) for line in (linux_folder / "log").read_text().splitlines()]
    assert ("error", NOT_CONFIGURED) in [(line["level"], line["msg"]) for line in logged]


def test_a_server_whose_models_do_not_answer_says_so(bare: Server) -> None:
    told = refused(bare.call("analyze", image_path="/a.png", question="?"))
    assert (told["code"], told["said"][: len(NONE_OPERATIONAL)]) == ("AI_PROVIDER_ERROR", NONE_OPERATIONAL)
    assert "OPENAI_API_KEY is not set" in told["said"]


# screenshot_app_window --------------------------------------------------------------------------------------

SAFARI_RECT = {"x": 200, "y": 60, "w": 1000, "h": 700}
APP_WINDOWS = {
    "by name": ({"appName": "Safari"}, ("Safari", SAFARI_RECT, 2.0, "png"), (2000, 1400)),
    "by bundle id": ({"bundleId": "com.apple.Safari"}, ("Safari", SAFARI_RECT, 2.0, "png"), (2000, 1400)),
    "by index": (
        {"appName": "Safari", "windowIndex": 1},
        ("Safari", {"x": 120, "y": 120, "w": 900, "h": 640}, 2.0, "png"),
        (1800, 1280),
    ),
    "as jpg": ({"appName": "Safari", "format": "jpg"}, ("Safari", SAFARI_RECT, 2.0, "jpg"), (2000, 1400)),
    "left of the main display": (
        {"appName": "TextEdit", "windowIndex": 1},
        ("TextEdit", {"x": -560, "y": 100, "w": 480, "h": 500}, 1.0, "png"),
        (480, 500),
    ),
    "by its rectangle": (
        {"appName": "Safari", "preferWindowId": False},
        ("Safari", SAFARI_RECT, 2.0, "png"),
        (2000, 1400),
    ),
}


def linked(answer: Answer) -> dict[str, Any]:
    """The data of a success that has one link to its file."""
    data = seen(answer)
    _text, link = answer["content"]
    path = Path(data["path"])
    assert link == {"type": "resource_link", "uri": path.as_uri(), "name": path.name}
    assert (data["uri"], path.stat().st_mode & 0o777) == (path.as_uri(), 0o600)
    return data


@pytest.mark.parametrize(("arguments", "row", "size"), APP_WINDOWS.values(), ids=APP_WINDOWS.keys())
def test_an_app_window_is_answered_with_its_file_its_place_and_its_scale(
    server: Server, arguments: Answer, row: Any, size: Any
) -> None:
    data = linked(server.call("screenshot_app_window", **arguments))
    assert data == {
        "path": ANY,
        "uri": ANY,
        "appName": row[0],
        "rect": row[1],
        "scale": row[2],
        "format": row[3],
    }
    info = sniff_image(Path(data["path"]).read_bytes())
    assert info and (info.kind, info.width, info.height) == (row[3], *size)


def test_an_app_window_on_x11_is_reported_in_the_same_way(linux: Server, shared_form: Form) -> None:
    listed = seen(linux.call("list", app="Form", include_window_details=["bounds"]))["window_list"]
    data = linked(linux.call("screenshot_app_window", appName="form"))
    rect = next(one["bounds"] for one in listed if one["window_title"] == shared_form.title)
    assert data == {"path": ANY, "uri": ANY, "appName": "Form", "rect": rect, "scale": 1.0, "format": "png"}
    info = sniff_image(Path(data["path"]).read_bytes())
    assert info and (info.width, info.height) == (rect["w"], rect["h"])


@contextmanager
def hanging(mac: FakeMac) -> Iterator[None]:
    mac.hang("screencapture")
    yield
    mac.heal()


@contextmanager
def failing(mac: FakeMac) -> Iterator[None]:
    mac.fail("screencapture", "could not create image from window")
    yield
    mac.heal()


@contextmanager
def denied(mac: FakeMac) -> Iterator[None]:
    mac.deny("screen_recording")
    yield
    mac.grant("screen_recording")


@contextmanager
def usual(_mac: FakeMac) -> Iterator[None]:
    yield


SAID_BY_NAME = {
    "neither identifier": (usual, {}, "INVALID_ARGUMENT"),
    "blank identifiers": (usual, {"appName": " ", "bundleId": ""}, "INVALID_ARGUMENT"),
    "too short a time": (usual, {"appName": "Form", "timeoutMs": 0}, "INVALID_ARGUMENT"),
    "another format": (usual, {"appName": "Form", "format": "webp"}, "INVALID_ARGUMENT"),
    "an app that does not run": (usual, {"appName": "Nothing of that name"}, "ProcessNotFound"),
    "a bundle id that does not run": (usual, {"bundleId": "org.example.nothing"}, "ProcessNotFound"),
    "a bundle id that is only begun": (usual, {"bundleId": "com.apple.Saf"}, "ProcessNotFound"),
    "an app that shows no window": (usual, {"appName": "Notes"}, "NoWindow"),
    "an index beyond the last": (usual, {"appName": "Safari", "windowIndex": 2}, "NoWindow"),
    "a capture that fails": (failing, {"appName": "Calculator"}, "CaptureFailed"),
    "a capture that hangs": (hanging, {"appName": "Calculator", "timeoutMs": 1200}, "Timeout"),
    "a missing grant": (denied, {"appName": "Calculator"}, "PermissionDenied"),
}


@pytest.mark.parametrize(("world", "arguments", "name"), SAID_BY_NAME.values(), ids=SAID_BY_NAME.keys())
def test_an_app_window_that_cannot_be_had_is_reported_by_its_documents_name(
    server: Server, mac: FakeMac, world: Any, arguments: dict[str, Any], name: str
) -> None:
    before = kept_by(mac)
    with world(mac):
        told = refused(server.call("screenshot_app_window", **arguments))
    assert (told["code"], kept_by(mac), mac.running()) == (name, before, [])


def test_a_image_lives_its_time_and_no_longer(bare: Server, bare_mac: FakeMac) -> None:
    folder = bare_mac.folder / "tmp" / f"peekaboo_min-{os.getuid()}"
    wait_for(lambda: not (folder / "old.png").exists(), "the server has swept")
    assert (folder / "young.png").exists()


# peekaboo_exec ----------------------------------------------------------------------------------------------

PNG, JPEG, GIF, WEBP = (picture(kind) for kind in ("png", "jpeg", "gif", "webp"))


def run(server: Server, line: str, **arguments: Any) -> Answer:
    """peekaboo_exec of a shell line, which the `peekaboo` of this world runs."""
    return server.call("peekaboo_exec", args=[line], **arguments)


def files(folder: Path) -> Path:
    """A folder of pictures to copy from, with names and without."""
    folder.mkdir()
    for name, data in (
        ("a.png", PNG),
        ("b.jpg", JPEG),
        ("c.jpeg", JPEG),
        ("d.gif", GIF),
        ("e.webp", WEBP),
        ("f.PNG", PNG),
    ):
        (folder / name).write_bytes(data)
    (folder / "text.png").write_text("no picture")
    (folder / "picture.txt").write_bytes(PNG)
    return folder


def attached(answer: Answer) -> list[str]:
    data = seen(answer)
    names = " ".join(f"[{name}]" for name in data["attachments"])
    assert answer["content"][0]["text"].startswith(f"exit code 0: {names or 'no images'}")
    assert len(pictures_of(answer)) == len(data["attachments"])
    return data["attachments"]


BAD_EXEC = {
    "no words": {"args": []},
    "words that are none": {"args": "list apps"},
    "no args at all": {},
    "no time": {"args": ["x"], "timeout_seconds": 0},
    "time below zero": {"args": ["x"], "timeout_seconds": -1},
    "attachments below zero": {"args": ["x"], "max_attachments": -1},
    "a folder that is not there": {"args": ["x"], "cwd": "/no/such/folder"},
    "a file for a folder": {"args": ["x"], "cwd": "/etc/passwd"},
    "a NUL": {"args": ["a\0b"]},
    "an unknown argument": {"args": ["x"], "env": {}},
}


@pytest.mark.parametrize("arguments", BAD_EXEC.values(), ids=BAD_EXEC.keys())
def test_exec_refuses_bad_arguments_and_runs_nothing(server: Server, arguments: dict[str, Any]) -> None:
    assert refused(server.call("peekaboo_exec", **arguments))["code"] == "INVALID_ARGUMENT"


METADATA = {
    "both streams and the code": (
        "echo out; echo err >&2; exit 3",
        {"exit_code": 3, "stdout": "out\n", "stderr": "err\n"},
    ),
    "silence": ("true", {"exit_code": 0, "stdout": "", "stderr": ""}),
    "what only looks like JSON": (
        "echo '{not json'",
        {"exit_code": 0, "stdout": "{not json\n", "stderr": ""},
    ),
    "a number, which is no document": ("echo 5", {"exit_code": 0, "stdout": "5\n", "stderr": ""}),
}


@pytest.mark.parametrize(("line", "metadata"), METADATA.values(), ids=METADATA.keys())
def test_exec_shows_stdout_stderr_and_the_exit_code(
    server: Server, mac: FakeMac, line: str, metadata: dict[str, Any]
) -> None:
    program = {"program": f"{mac.bin_dir}/peekaboo", "version": ANY}
    assert seen(run(server, line)) == {**metadata, "attachments": [], "cwd": ANY, **program}


@pytest.mark.parametrize("document", ['{"success": true}', "[1, 2]", ' \n{"a": "b"}'])
def test_exec_parses_a_json_document(server: Server, document: str) -> None:
    assert seen(run(server, f"printf %s {shlex.quote(document)}"))["json"] == json.loads(document)


def test_exec_passes_every_word_on_as_it_is_and_asks_no_shell(server: Server) -> None:
    words = ["$HOME", "a b", "-x", "", "'", "*", "ä"]
    answer = server.call("peekaboo_exec", args=["shift; printf '%s\\n' \"$@\"", *words])
    assert seen(answer)["stdout"] == "".join(f"{word}\n" for word in words)


def test_exec_works_in_a_private_temporary_folder_of_its_own(server: Server, mac: FakeMac) -> None:
    first, second = (seen(run(server, "pwd; stat -c %a .; cat; echo end")) for _ in range(2))
    assert first["cwd"] != second["cwd"] and Path(first["cwd"]).is_relative_to(mac.folder / "tmp")
    assert first["stdout"] == f"{first['cwd']}\n700\nend\n"


def test_exec_works_in_the_given_folder_and_attaches_what_is_new_or_changed(
    server: Server, tmp_path: Path
) -> None:
    folder = files(tmp_path / "mine")
    assert attached(run(server, "pwd > where; rm c.jpeg", cwd=str(folder))) == []
    assert (folder / "where").read_text() == f"{folder}\n"
    os.utime(folder / "b.jpg", (1, 1))
    assert attached(run(server, "cp a.png new.png; touch b.jpg", cwd=str(folder))) == ["b.jpg", "new.png"]


def test_exec_attaches_images_of_all_kinds_by_their_bytes_from_the_folder_and_below(
    server: Server, tmp_path: Path
) -> None:
    source = shlex.quote(str(files(tmp_path / "files")))
    answer = run(server, f"cp {source}/* .; mkdir -p deep/er; cp {source}/a.png deep/er/z.png")
    assert attached(answer) == ["a.png", "b.jpg", "c.jpeg", "d.gif", "deep/er/z.png", "e.webp", "f.PNG"]
    kinds = [sniff_image(one) for one in pictures_of(answer)]
    assert [one.mime_type for one in kinds if one] == [one["mimeType"] for one in answer["content"][1:]]


def test_exec_follows_no_links(server: Server, tmp_path: Path) -> None:
    source = shlex.quote(str(files(tmp_path / "files")))
    assert attached(
        run(server, f"ln -s {source}/a.png link.png; ln -s {source} linked; cp {source}/a.png real.png")
    ) == ["real.png"]


def test_exec_is_not_held_by_a_pipe_that_is_called_a_image(server: Server) -> None:
    number = server.start_call("peekaboo_exec", args=["mkfifo pipe.png"])
    assert server.answer_to(number)["result"]["isError"] is False


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (2, 2), (None, 8)])
def test_exec_attaches_no_more_than_the_limit_and_says_what_it_left(
    server: Server, tmp_path: Path, limit: Any, count: int
) -> None:
    source = shlex.quote(str(files(tmp_path / "files")))
    answer = run(
        server,
        f"for i in 0 1 2 3 4 5 6 7 8 9; do cp {source}/a.png $i.png; done",
        **({} if limit is None else {"max_attachments": limit}),
    )
    assert attached(answer) == [f"{number}.png" for number in range(count)]
    assert f", {10 - count} more not attached" in answer["content"][0]["text"]


def test_exec_that_takes_too_long_is_killed_with_all_that_it_started(server: Server, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    line = f"trap '' TERM INT; echo $$ >> {pids}; sleep 600 & echo $! >> {pids}; wait"
    assert run(server, line, timeout_seconds=2)["_meta"]["backend_error_code"] == "TIMEOUT"
    assert [pid for pid in pids_in(pids) if is_alive(pid)] == []


def test_exec_that_is_killed_returns_what_it_printed_and_left(server: Server) -> None:
    """ "Execute with `exec.CommandContext`", "Collect `stdout`, `stderr`, `exit_code`", "Scan `cwd` for
    images".
    """
    line = "echo halfway; echo waiting >&2; printf '%b' '" + "".join(f"\\0{byte:03o}" for byte in PNG) + "'"
    answer = run(server, f"{line} > left.png; exec sleep 600", timeout_seconds=3)
    error, result, *images = answer["content"]
    assert (answer["isError"], answer["_meta"]["backend_error_code"]) == (True, "TIMEOUT")
    assert error["text"].startswith("TIMEOUT: peekaboo did not end within 3 seconds and was killed")
    assert result["text"].startswith("killed: [left.png]\n") and [each["type"] for each in images] == [
        "image"
    ]
    data = json.loads(result["text"].split("\n", 1)[1])
    assert (data["exit_code"], data["stdout"], data["stderr"]) == (None, "halfway\n", "waiting\n")


def test_exec_without_a_peekaboo_runs_our_own_command_line(bare: Server) -> None:
    data = seen(bare.call("peekaboo_exec", args=["list", "windows", "--app", "Form", "--json-output"]))
    assert data["json"]["data"]["target_application_info"]["pid"] == 500
    answer = bare.call(
        "peekaboo_exec", args=["image", "--app", "Form", "--path", "form.png", "--json-output"]
    )
    assert (attached(answer), seen(answer)["json"]["success"]) == (["form.png"], True)
