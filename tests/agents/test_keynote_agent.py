"""The Keynote agent with models that draw, err and lie, checked by Keynote's document and the agent's log."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import mcp.client.stdio  # noqa: F401  # it keeps the stderr of its first import
import pytest
from fake_ai import FakeAI, script
from fakemac import FakeMac
from in_process import InProcessProgram
from worlds import ROOT, Finished

from peekaboo_min.agents import mcp_client
from peekaboo_min.agents.keynote_agent import KEYNOTE_QUERY
from peekaboo_min.agents.mcp_client import ToolAnswer, own_server
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.settings import settings_with_env_file
from peekaboo_min.integrations.keynote import KEYNOTE_S

LOG_LINE = re.compile(
    r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\](\[client\]\[run_id=[0-9a-f]{6}\]|\[server\](\[tool=\w+\])?) (.+)"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder for the agent, which runs in this process; its server is a child."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def run_agent(mac: FakeMac, *argv: str, **variables: str) -> Finished:
    environment = {**mac.env(), "PYTHONPATH": str(ROOT), **variables}
    return InProcessProgram(environment).run("keynote-agent", *argv, "--json-output")


def log_lines(folder: Path) -> list[tuple[str, str]]:
    """(client, server or the server's tool; text) of each line; every line has the form."""
    found = [
        LOG_LINE.fullmatch(line) for line in (folder / "logs" / "agent.log").read_text("utf-8").splitlines()
    ]
    assert all(found)
    return [("client" if "client" in each[1] else each[2] or "server", each[3]) for each in found if each]


DONE = "FINAL_ANSWER: [done]"
OPEN = "FUNCTION_CALL: open_keynote"
TOO_WIDE = "FUNCTION_CALL: draw_rectangle|384|378|9000|324"
DRAW = "FUNCTION_CALL: draw_rectangle|384|378|1152|324"


def write(text: str) -> str:
    return f"FUNCTION_CALL: add_text_in_keynote|{text.replace('|', '¦')}"


def test_keynote_agent_draws_writes_and_logs_each_call(mac: FakeMac, folder: Path) -> None:
    text = 'Hello | "MCP" on macOS, Grüße 👋 {tools_description}'
    (folder / "logs").mkdir()
    (folder / ".env").write_text(
        'GEMINI_API_KEY="AIza-secret-of-env"  # a comment\nexport KEYNOTE_THEME=Gradient\nLOG_LEVEL=debug\n'
        f"SCREENSHOT_PATH={folder / 'slide.png'}\n"
        "GEMINI_BASE_URL=http://127.0.0.1:9/\nPEEKABOO_BIN_DIR=/nowhere\nPEEKABOO_READONLY=1\n"
    )
    replies = [OPEN, TOO_WIDE, DRAW, write(text), "FUNCTION_CALL: screenshot_slide|", DONE]
    with FakeAI(brain=script(replies)) as ai:
        ai.keys["gemini"] = "AIza-secret-of-env"
        done = run_agent(mac, text, GEMINI_BASE_URL=ai.url)
        questions = ai.questions
    assert done.code == 0, done.err
    document = mac.state()["keynote"]["documents"][0]
    (shape,) = document["slides"][0]["shapes"]
    assert (shape["position"], shape["width"], shape["height"]) == ({"x": 384, "y": 378}, 1152, 324)
    assert (document["theme"], shape["object_text"]) == ("Gradient", text)
    answers = ["KEYNOTE_READY", "ERROR", "RECTANGLE_OK", "TEXT_OK", "SCREENSHOT_SAVED"]
    calls = [(each["call"], each["answer"].split(":")[0]) for each in done.data["calls"]]
    assert calls == list(zip(replies, answers))
    assert len(questions) == 6, "the model is not asked after FINAL_ANSWER"
    assert all(each.prompt.startswith(KEYNOTE_QUERY + text) and not each.images for each in questions)
    system = questions[0].system
    assert "3. draw_rectangle(x: integer" in system and "{tools_description}" not in system
    lines = log_lines(folder)
    tools = ["open_keynote", *["draw_rectangle"] * 2, "add_text_in_keynote", "screenshot_slide"]
    assert [source for source, _ in lines if "tool=" in source] == [f"[tool={tool}]" for tool in tools]
    logged = [text for source, text in lines if source == "client" and text.startswith("LLM => ")]
    assert logged == [f"LLM => {each}" for each in replies]
    assert lines[-1][1].startswith("summary: done in 6 turns with gemini/")
    assert ("client", "FUNCTION_CALL parsed: draw_rectangle|384|378|1152|324") in lines
    assert [text for source, text in lines if source == "server" and text.startswith("osascript draw -> {")]
    everything = (folder / "logs" / "agent.log").read_text("utf-8") + done.out + done.err
    assert "AIza-secret" not in everything
    assert {path.name for path in folder.iterdir()} == {".env", "logs", "slide.png"}


def test_keynote_settings_read_the_example_env_file(
    environment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text((ROOT / ".env.example").read_text("utf-8"))
    # the environment counts more than the file, and an empty variable is an unset one
    environment(KEYNOTE_THEME="Black", SCREENSHOT_PATH="")
    now = settings_with_env_file()
    assert (now.gemini_key, now.log_level, now.keynote_theme) == ("your-key-here", "INFO", "Black")
    assert now.screenshot_path == "/tmp/mcp_keynote_slide.png"
    assert now.keynote_document_mode == "reuse_or_create"


LIES = [
    "I have drawn a beautiful rectangle with fake-openai-key-0123456789.\n"
    "[2026-01-01T00:00:00Z][server][tool=draw_rectangle] args={} -> OK",
    "FUNCTION_CALL: delete_everything|/",
    "FUNCTION_CALL: draw_rectangle|ten|10|10|10",
    "FUNCTION_CALL: add_text_in_keynote|A|B",
    "FUNCTION_CALL: add_text_in_keynote|too early",
    "Let me start:\n```\nFUNCTION_CALL: open_keynote\nFUNCTION_CALL: draw_rectangle|1|1|10|10\n"
    "FINAL_ANSWER: [done]\n```",
    "**FUNCTION_CALL: screenshot_slide|../slide.png**",
    "FUNCTION_CALL: get_slide_size |",
]
ANSWERS = [
    "Your reply contains neither a FUNCTION_CALL nor a FINAL_ANSWER line. "
    "Respond with exactly one such line and nothing else.",
    "Unknown tool delete_everything. Available: "
    "open_keynote, get_slide_size, draw_rectangle, add_text_in_keynote, screenshot_slide",
    "ERROR: draw_rectangle: x is 'ten', not a valid integer; write only digits",
    "ERROR: add_text_in_keynote: it takes 1 parameter(s): text; you gave 2; write ¦ where a text contains |",
    "ERROR: no rectangle was drawn. Next step: call draw_rectangle first",
    "KEYNOTE_READY: slide=1, slide_width=1920, slide_height=1080",
    "SCREENSHOT_SAVED: path={folder}/../slide.png",
    "SLIDE_SIZE: width=1920, height=1080",
]


def test_keynote_agent_corrects_a_model_that_lies_in_eight_turns(mac: FakeMac, folder: Path) -> None:
    with FakeAI(brain=script(LIES)) as ai:
        variables = {**ai.env("openai", "gpt-5.4-mini"), "PEEKABOO_AI_PROVIDERS": ""}
        done = run_agent(mac, "x", "--model", "openai/gpt-5.4-mini", **variables)
        prompts = [each.prompt for each in ai.questions]
    assert (done.code, done.error["code"]) == (1, "AI_PROVIDER_ERROR")
    assert done.error["message"].startswith("the model gave no FINAL_ANSWER in 8 turns; see ")
    answers = [line[6:] for line in done.error["details"].splitlines() if line.startswith("   => ")]
    assert answers == [each.replace("{folder}", str(folder)) for each in ANSWERS]
    assert len(prompts) == 8
    assert [answer in prompt for answer, prompt in zip(answers, prompts[1:])] == [True] * 7
    lines = log_lines(folder)
    assert "LLM => I have drawn a beautiful rectangle with ***.\\n[2026" in lines[3][1]
    assert "openai-key" not in str(lines) + done.out + done.err
    tools = ("add_text_in_keynote", "open_keynote", "screenshot_slide", "get_slide_size")
    assert [source for source, _ in lines if "tool=" in source] == [f"[tool={each}]" for each in tools]
    assert [each["slides"][0]["shapes"] for each in mac.state()["keynote"]["documents"]] == [[]]
    assert lines[-1][1].startswith("summary: failed after 8 turn(s): AI_PROVIDER_ERROR: ")


def run_script(mac: FakeMac, replies: list[str], *argv: str) -> tuple[Finished, list[str]]:
    """Run the agent with a model that gives these replies; return the model's prompts, too."""
    with FakeAI(brain=script(replies)) as ai:
        done = run_agent(mac, *argv, **ai.env("gemini", "gemini-3.6-flash"))
        return done, [each.prompt for each in ai.questions]


def shape_texts(mac: FakeMac) -> list[str]:
    documents = mac.state()["keynote"]["documents"]
    return [shape["object_text"] for shape in documents[0]["slides"][0]["shapes"]] if documents else []


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param([], id="nothing"),
        pytest.param([OPEN, DRAW, write("Hello"), write("Hello again")], id="overwritten"),
    ],
)
def test_keynote_agent_corrects_a_model_done_too_early_once(
    mac: FakeMac, folder: Path, calls: list[str]
) -> None:
    """ "Stop when the text has been placed inside the rectangle and respond with: FINAL_ANSWER: [done]" """
    missing = "no call after RECTANGLE_OK returned TEXT_OK for the text"
    done, prompts = run_script(mac, [*calls, DONE, DONE], "Hello")
    assert (done.code, done.error["code"]) == (1, "AI_PROVIDER_ERROR")
    assert done.error["message"].startswith(f"the model reports that it is done, but {missing}; see ")
    corrected = [f"It is not done: {missing}. Draw the rectangle" in prompt for prompt in prompts]
    assert corrected == [*[False] * (len(calls) + 1), True]


def test_keynote_agent_does_not_write_into_an_old_rectangle(mac: FakeMac, folder: Path) -> None:
    """ "No manual calls from client after `FINAL_ANSWER`", and "The rectangle and text appear on Keynote
    slide 1."
    """
    environment = {**mac.env(), "PYTHONPATH": str(ROOT)}
    for argv in (["open"], ["rectangle", 10, 10, 50, 50], ["text", "kept"]):
        InProcessProgram(environment).data("keynote", *argv)
    done, _ = run_script(mac, [write("Hello"), OPEN, DONE, DRAW, write("Hello"), DONE], "Hello")
    assert done.code == 0, done.err
    assert done.data["calls"][0]["answer"].startswith("ERROR: no rectangle was drawn")
    assert shape_texts(mac) == ["kept", "Hello"]
    assert done.data["text"] == "Hello"


TEXT = "Hello from MCP on macOS."
QUERY = "Draw a card and write a greeting into it."
ASKED = "Create a rectangle in Keynote slide 1 and write this exact text inside it: "


@pytest.mark.parametrize(
    ("argv", "written", "prompt", "text"),
    [
        (["--max-iterations", "4"], TEXT, ASKED + TEXT, TEXT),
        (["--new", "--query", QUERY], "Hi ¦ there", QUERY, "Hi | there"),
        (["a\nb\n"], "a b", f"{ASKED}a b", "a b"),
    ],
)
def test_keynote_agent_takes_a_text_or_a_query(
    mac: FakeMac, folder: Path, argv: list[str], written: str, prompt: str, text: str
) -> None:
    """ "Example query to seed the run (the client may override this)", "Keep everything on a single line; do
    not insert newlines in arguments."
    """
    mac.keynote(restores_a_deck=True)
    done, prompts = run_script(mac, [OPEN, DRAW, write(written), DONE], *argv)
    assert (done.code, prompts[0], done.data["text"], shape_texts(mac)) == (0, prompt, text, [text])
    assert len(mac.state()["keynote"]["documents"]) == 1 + ("--new" in argv)
    source, summary = log_lines(folder)[-1]
    pattern = rf"summary: done in 4 turns with gemini/[\w.-]+: wrote {re.escape(repr(text))}"
    assert source == "client" and re.fullmatch(pattern, summary)


@pytest.mark.parametrize(
    ("argv", "variables", "code", "message"),
    [
        ([" "], {}, "INVALID_ARGUMENT", "the text is empty; give the text to write"),
        (["", "--query", "y"], {}, "INVALID_ARGUMENT", "TEXT and --query exclude each other"),
        (["x", "--max-iterations", "0"], {}, "INVALID_ARGUMENT", "max_iterations is 0"),
        (["x", "--max-iterations", "51"], {}, "INVALID_ARGUMENT", "max_iterations is 51"),
        (["x", "--model", "unknown/x"], {}, "INVALID_ARGUMENT", "there is no provider 'unknown'"),
        (["x"], {"PEEKABOO_READONLY": "1"}, "POLICY_DENIED", "keynote-agent is refused: PEEKABOO_R"),
        (["x"], {"PEEKABOO_DESKTOP": "x11"}, "UNSUPPORTED_PLATFORM", "Keynote runs on a Mac only"),
    ],
)
def test_keynote_agent_refuses_before_it_starts_a_server(
    mac: FakeMac, folder: Path, argv: list[str], variables: dict[str, str], code: str, message: str
) -> None:
    done = run_agent(mac, *argv, **variables)
    assert done.error["code"] == code and done.error["message"].startswith(message)
    assert list(folder.iterdir()) == []


def test_keynote_agent_without_mcp_says_how_to_get_it(mac: FakeMac, folder: Path) -> None:
    argv = [sys.executable, "-S", "-m", "peekaboo_min", "keynote-agent", "x"]
    environment = {**mac.env(), "PYTHONPATH": str(ROOT), "GEMINI_API_KEY": "k"}
    done = subprocess.run(argv, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and f"pip install {ROOT}" in done.stderr and "Traceback" not in done.stderr


def test_keynote_tools_over_mcp_have_errors_with_codes(
    mac: FakeMac, environment: Callable[..., None]
) -> None:
    environment(**mac.env(), PEEKABOO_TOOLS="capture")
    with own_server({"PEEKABOO_TOOLS": "keynote"}) as server:
        first = server.call("add_text_in_keynote", {"text": "x"})
        wrong = server.call("draw_rectangle", {"x": "ten", "y": 378, "width": 1152, "height": 324})
        ready = server.call("open_keynote", {})
    message, _, next_step = ANSWERS[4].removeprefix("ERROR: ").partition(". Next step: ")
    assert first.error and (first.text, first.error.code) == (ANSWERS[4], ErrorCode.INVALID_ARGUMENT)
    assert (first.error.message, first.error.hint) == (message, next_step)
    assert wrong.error and wrong.text == wrong.error.message_for_model("ERROR")
    assert ready == ToolAnswer(ANSWERS[5], {})


INITIALIZED = """
import json, sys
request = json.loads(sys.stdin.readline())
result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
          "serverInfo": {"name": "silent", "version": "1"}}
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.stdin.read()", "our own MCP server did not start: "),
        (INITIALIZED, "the MCP server failed in list_tools: "),
    ],
)
def test_mcp_client_gives_up_a_server_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, program: str, message: str
) -> None:
    assert mcp_client._LONGEST_CALL_S > KEYNOTE_S
    monkeypatch.setattr(mcp_client, "_LONGEST_CALL_S", 1.0)
    monkeypatch.setattr(mcp_client, "own_command", lambda: [sys.executable, "-c", program])
    with pytest.raises(PeekabooError, match=message) as caught, own_server({}) as server:
        server.tools()
    assert caught.value.code is ErrorCode.PROGRAM_FAILED
