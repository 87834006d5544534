"""`agent --native` on real X11, with a fake of each vendor that refuses what the vendor refuses."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import warm_python
from fake_ai import picture
from fake_native import NativeAI, Seen, Step, Turn
from worlds import PATIENCE_S, Finished, Form, clean_environment, without_text_recognition

from peekaboo_min.agents.planner import NativePlanner
from peekaboo_min.agents.run import AgentStep, AgentStop
from peekaboo_min.ai.client import choose_model
from peekaboo_min.ai.native import conversation_with
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.models import ImageData, ImageInfo, Rect, Window
from peekaboo_min.core.settings import settings

MODELS = {
    "toolset": "anthropic/claude-opus-5-5",
    "older tool": "anthropic/claude-sonnet-4-6",
    "openai": "openai/gpt-5.4",
    "gemini": "gemini/gemini-3.5-flash",
}
WITH_CHECKS = ("openai", "gemini")
COMMAND = ("-W", "error", "-m", "peekaboo_min", "agent", "--native", "--app", "Form")


class NativeAgent:
    """`peekaboo-min agent --native` in a folder of its own."""

    def __init__(self, folder: Path, display: str, ai: NativeAI) -> None:
        self.folder, self.ai = folder, ai
        self.run_folder = folder / "run"
        environment = clean_environment(folder, DISPLAY=display)
        self._environment = without_text_recognition(folder / "programs", environment)

    def argv(self, *more: str) -> list[str]:
        return [
            warm_python.python(),
            *COMMAND,
            "--goal",
            "Sign the book",
            "--run-folder",
            str(self.run_folder),
            *more,
        ]

    def environment(self, name: str) -> dict[str, str]:
        provider, _, model = MODELS.get(name, name).partition("/")
        return {**self._environment, **self.ai.env(provider, model)}

    def run(self, name: str, *more: str) -> Finished:
        done = subprocess.run(
            self.argv(*more),
            env=self.environment(name),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=2 * PATIENCE_S,
            encoding="utf-8",
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def run_on_terminal(self, name: str, answers: str, *more: str) -> Finished:
        """With a person who gives these answers."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            self.argv("--confirm", *more),
            env=self.environment(name),
            cwd=self.folder,
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        try:
            os.write(ours, answers.encode())
            out, err = process.communicate(timeout=2 * PATIENCE_S)
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)
        return Finished(process.returncode, out, err)

    @property
    def status(self) -> str:
        return str(self.saved("run.json")["status"])

    def saved(self, name: str) -> dict[str, Any]:
        return json.loads((self.run_folder / name).read_text("utf-8"))

    def files_with(self, text: str) -> list[str]:
        """Whatever the run left behind that holds a text."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return [str(path) for path in files if text.encode() in path.read_bytes()]


@pytest.fixture
def native_ai() -> Iterator[NativeAI]:
    with NativeAI() as ai:
        yield ai


@pytest.fixture
def agent(tmp_path: Path, display: str, native_ai: NativeAI) -> NativeAgent:
    return NativeAgent(tmp_path, display, native_ai)


def on(form: Form, widget: str, kind: str = "click", **more: Any) -> Step:
    def move(seen: Seen) -> Step:
        x, y = form.centre(widget)
        return kind, {"x": x, "y": y, **more}

    return move


@pytest.mark.parametrize("name", MODELS)
def test_it_fills_in_the_form_through_the_vendors_tool(agent: NativeAgent, form: Form, name: str) -> None:
    agree, sign = form.centre("agree"), form.centre("sign")
    both: list[Any] = [("click", dict(zip("xy", place))) for place in (agree, sign)]
    agent.ai.moves = [
        on(form, "name"),
        ("type", {"text": "Ada"}),
        on(form, "notes"),
        ("type", {"text": "\n".join(map(str, range(40)))}),
        on(form, "notes", "scroll", direction="up", amount=4),
        on(form, "notes", "drag", x2=200, y2=190),
        on(form, "agree", "move"),
        Turn(both, text="I agree and sign."),
        on(form, "sign"),
        "The book is signed.",
    ]
    done = agent.run(name)
    assert done.code == 0, done.err
    assert agent.status == "done" and agent.ai.moves == []
    signed = form.wait_for_event("sign")
    assert (signed["name"], signed["agreed"]) == ("Ada", 1) and "39" in signed["notes"]
    assert len(form.events("sign")) == 1, "the second call of a turn was answered, and not done"
    assert "Not executed" in agent.ai.seen[8].text
    assert len([event for event in form.events("click") if event["button"] == 4]) == 4
    effects = [agent.saved(f"step_{number:03d}.json")["effect"] for number in (5, 6)]
    assert effects == ["the window changed"] * 2
    saved = agent.saved("run.json")
    assert "by its vendor's computer-use tool" in saved["grid"] and "--native" in saved["command"]
    assert (agent.run_folder / "replay.sh").exists()


@pytest.mark.parametrize("name", MODELS)
def test_no_key_is_left_in_logs_report_or_folder(agent: NativeAgent, form: Form, name: str) -> None:
    """Not even when an endpoint repeats it as an action and in an error."""
    provider = MODELS[name].partition("/")[0]
    key = str(agent.ai.keys[provider])
    agent.ai.moves = [
        on(form, "name"),
        Turn([("type", {"text": key})], text=f"I type {key}."),
        f"Done: {key}",
    ]
    done = agent.run(name)
    assert done.code == 0, done.err
    assert key not in done.out + done.err and agent.files_with(key) == []
    assert "type" in done.err and form.events("key"), "it was typed, masked"


@pytest.mark.parametrize("name", WITH_CHECKS)
def test_a_safety_check_declines_the_action_without_a_person(
    agent: NativeAgent, form: Form, name: str
) -> None:
    x, y = form.centre("sign")
    agent.ai.moves = [Turn([("click", {"x": x, "y": y})], checks=["This signs a contract."])]
    done = agent.run(name, "--json-output")
    assert done.code == 1 and done.error["code"] == "CANCELLED"
    assert "This signs a contract" in done.error["message"] and "--confirm" in done.error["message"]
    assert agent.status == "declined" and form.events("click") == []
    assert len(agent.ai.requests) == 1, "nothing was acknowledged"


@pytest.mark.parametrize("name", WITH_CHECKS)
def test_a_person_consents_to_a_safety_check_or_declines_it(
    agent: NativeAgent, form: Form, name: str
) -> None:
    agree, sign = form.centre("agree"), form.centre("sign")
    agent.ai.moves = [
        Turn([("click", dict(zip("xy", agree)))], checks=["Is this your name?"]),
        Turn([("screenshot", {})], checks=["May I look?"]),
        Turn([("click", dict(zip("xy", sign)))], checks=["This signs a contract."]),
    ]
    done = agent.run_on_terminal(name, "y\ny\nn\n")
    assert done.code == 1 and agent.status == "declined"
    assert done.err.count("[y/n]") == 3, "once for each, the action and its check together"
    for question in ("Is this your name?", "May I look?", "This signs a contract."):
        assert question in done.err
    assert [each["widget"] for each in form.events("click")] == ["agree"]
    assert [request.status for request in agent.ai.requests] == [200, 200, 200], "both were acknowledged"


def test_zoom_shows_the_part_and_then_the_window(agent: NativeAgent, form: Form) -> None:
    agent.ai.moves = [("zoom", {"x": 20, "y": 30, "x2": 220, "y2": 130}), on(form, "agree"), "Done."]
    done = agent.run("toolset")
    assert done.code == 0, done.err
    part, window = agent.ai.requests[1].images[-2:]
    assert (part.width, part.height) == (200, 100) and window.width > 300
    assert form.wait_for_event("toggle")["value"] == 1


def test_an_unusable_call_is_answered_with_the_reason_once(agent: NativeAgent, form: Form) -> None:
    agent.ai.moves = [("click", {"x": 9999, "y": 5}), on(form, "agree"), ("click", {}), ("click", {})]
    done = agent.run("toolset")
    assert done.code == 1 and agent.status == "confused"
    assert "outside the grid" in agent.ai.seen[1].text and form.wait_for_event("toggle")["value"] == 1


def test_a_question_is_no_end_and_two_end_the_run(agent: NativeAgent, form: Form) -> None:
    agent.ai.moves = ["Shall I sign it?", "UNSURE: there is no such button."]
    done = agent.run("openai")
    assert done.code == 1 and agent.status == "unsure", done.err


def test_a_report_without_any_effect_is_doubted(agent: NativeAgent, form: Form) -> None:
    agent.ai.moves = [("press", {"key": "f5"}), "It is signed.", "It is signed."]
    done = agent.run("openai")
    assert done.code == 1 and agent.status == "not_confirmed", done.err
    assert "You reported that the goal is reached" in agent.ai.seen[2].text


def test_a_dry_run_does_nothing(agent: NativeAgent, form: Form) -> None:
    agent.ai.moves = [on(form, "sign")]
    done = agent.run("gemini", "--dry-run")
    assert done.code == 0 and agent.status == "dry_run" and form.events("click") == []


@pytest.mark.parametrize(
    "name, more, problem",
    [
        ("ollama/qwen3-vl:8b", (), "no computer-use tool for ollama/qwen3-vl:8b"),
        ("openai/gpt-4o", (), "without --native"),
        ("openai/gpt-5.4", ("--confidence", "0.5"), "--native excludes --confidence"),
    ],
)
def test_what_cannot_be_asked_natively_is_refused_before_anything_starts(
    agent: NativeAgent, name: str, more: tuple[str, ...], problem: str
) -> None:
    done = agent.run(name, *more)
    assert done.code == 2 and problem in done.err
    assert agent.ai.questions == [] and not agent.run_folder.exists()


@pytest.fixture
def decide(native_ai: NativeAI, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A planner's action for a screenshot of this size, and its step."""

    def decide(name: str, width: int, height: int) -> tuple[Any, AgentStep]:
        provider, _, model = MODELS[name].partition("/")
        for variable, value in {**native_ai.env(provider, model), "TMPDIR": str(tmp_path)}.items():
            monkeypatch.setenv(variable, value)
        settings.cache_clear()
        step = AgentStep(1, window=Window(7, "Form", 1, "A title", Rect(0, 0, width, height)))
        step.image = ImageData(picture("png", width, height), ImageInfo("png", width, height))
        planner = NativePlanner("Do it", choose_model(provider, model), conversation_with(provider, model))
        return planner.decide(step, [], 5, time.monotonic() + PATIENCE_S), step

    yield decide
    settings.cache_clear()


def test_an_unusable_action_with_a_safety_check_ends_the_run(native_ai: NativeAI, decide: Any) -> None:
    """Asking again would acknowledge the check."""
    native_ai.moves = [Turn([("click", {"x": 999, "y": 1})], checks=["Sure?"])]
    with pytest.raises(AgentStop) as caught:
        decide("openai", 64, 48)
    assert caught.value.status == "confused" and "outside the grid" in caught.value.message
    assert len(native_ai.requests) == 1


@pytest.mark.parametrize("name", MODELS)
def test_a_large_screenshot_is_fitted_and_a_click_mapped_back(
    native_ai: NativeAI, decide: Any, name: str
) -> None:
    native_ai.moves = [
        lambda seen: ("click", {"x": round(seen.image.width * 0.75), "y": round(seen.image.height * 0.25)})
    ]
    action, step = decide(name, 3200, 2000)
    (sent,) = native_ai.requests[0].images
    assert sent.width < 3200 and abs(sent.width / sent.height - 1.6) < 0.01
    pixel = step.pixel_of(action.place)
    assert pixel is not None and abs(pixel.x - 2400) < 4 and abs(pixel.y - 500) < 4
    if name == "older tool":
        (tool,) = native_ai.requests[0].body["tools"]
        assert (tool["display_width_px"], tool["display_height_px"]) == (sent.width, sent.height)


def test_what_the_vendor_rejects_is_shown_with_the_way_without_its_tool(
    native_ai: NativeAI, decide: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "newer", "gemini/gemini-4-flash")
    native_ai.models["gemini/gemini-4-flash"] = True
    with pytest.raises(PeekabooError) as caught:
        decide("newer", 64, 48)
    assert "Computer Use is not supported" in caught.value.message
    assert "without --native" in (caught.value.hint or "")
