"""The vision agent: observe, decide, act, verify, through our MCP server."""

from __future__ import annotations

import math
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Optional

from ..ai.client import ModelChoice, choose_model, choose_provider
from ..ai.grid import ASSUMED, describe_unit
from ..automation.policy import check_may_act
from ..core.call import pause
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.models import Result
from ..core.settings import settings, settings_with_env_file, without_secrets
from ..core.text import clean_text
from ..system.ending import exit_hooks, exit_if_signalled
from ..system.files import write_privately
from .actions import Action
from .mcp_client import McpClient, own_server
from .planner import Planner, model_check
from .report import run_report
from .run import AgentRun, AgentStep, AgentStop, doubt_about, new_run_folder, save
from .target import ACTING_TOOLS, LOOKING_TOOLS, AgentTarget

_WAIT_S, _WAIT_FOR_TEXT_S = 1.0, 10.0  # if the model gives no seconds; the prompt promises 1 s


def run_vision_agent(
    *,
    goal: Annotated[Optional[str], "the goal to reach, in your own words"] = None,
    app: Annotated[Optional[str], "the app to act in: name, bundle id, PID:n or a part of the name"] = None,
    window_id: Annotated[Optional[int], "or the id of the window to start with, from `windows`"] = None,
    window_title: Annotated[
        Optional[str], "or a part of its title; with --app, only that app's windows are searched"
    ] = None,
    model: Annotated[
        Optional[str],
        "PROVIDER or PROVIDER/MODEL, such as openai/gpt-5.4-mini; default: the first operational provider",
    ] = None,
    max_steps: Annotated[int, "stop after this many steps; default 25"] = 25,
    max_seconds: Annotated[float, "start no step or call after this many seconds; default 120"] = 120.0,
    confidence: Annotated[Optional[float], "0 to 1: stop if the model is less confident than this"] = None,
    dry_run: Annotated[bool, "ask for one action and mark it in the report; touch nothing"] = False,
    run_folder: Annotated[
        Optional[str], "a new folder for the screenshots and the report; default: peekaboo-run-TIME here"
    ] = None,
    confirm: Annotated[bool, "ask y or n on this terminal before each action"] = False,
    check_model: Annotated[
        bool,
        "instead of a run, measure the model's coordinate grid with a synthetic image; report what to set",
    ] = False,
) -> Result:
    """Let a vision model reach a goal in one app, step by step: a screenshot, one action, and again.

    The model's vendor receives the screenshots of the app's windows and the texts of their elements. The
    model may open applications, documents and addresses, and then goes on in the opened window. Each step is
    saved in a folder, with a report as one HTML page. Needs the Python package mcp; keys may be in `.env`.

    Example: peekaboo-min agent --goal "Sign the book as Ada" --app Form --model openai/gpt-5.4-mini
    writes peekaboo-run-TIME/report.html, run.json, step_001.jpg, ...
    """
    settings_with_env_file()
    goal, problem = (goal or "").strip(), ""
    if check_model:
        others = any((goal, app, window_id, window_title, dry_run))
        problem = "--check-model excludes goal, app, window and --dry-run" if others else ""
    elif not goal:
        problem = "the goal is empty"
    elif app is None and window_id is None and not (window_title or "").strip():
        problem = "name the app (--app), the window (--window-id) or its title (--window-title)"
    elif window_id is not None and (app is not None or window_title is not None):
        problem = "--window-id excludes --app and --window-title"
    elif max_steps < 1 or not 0 < max_seconds < math.inf:
        problem = "--max-steps and --max-seconds must be above 0"
    elif not 0 <= (confidence or 0) <= 1:
        problem = "--confidence must be from 0 to 1"
    elif confirm and not (sys.stdin and sys.stdin.isatty()):
        problem = "--confirm needs a terminal, and stdin is not one"
    if problem:
        raise invalid(problem, hint="see peekaboo-min agent --help")
    if not (dry_run or check_model):
        check_may_act("agent")
    choice = _choose(model)
    if check_model:
        return model_check(choice)
    run = AgentRun(
        goal, choice.name, app, window_id, window_title, max_steps, max_seconds, confidence, dry_run, confirm
    )
    _run_and_report(run, choice, run_folder)
    data = run.summary_data()
    return Result(f"{run.message}\nthe report: {data['report']}", data)


def _choose(model: Optional[str]) -> ModelChoice:
    if not (model or settings().ai_providers):
        hint = "name one, such as --model openai/gpt-5.4-mini, or set PEEKABOO_AI_PROVIDERS"
        raise PeekabooError(ErrorCode.AI_NOT_CONFIGURED, "no model is chosen", hint)
    return choose_model(model) if model else choose_provider()


def _run_and_report(run: AgentRun, choice: ModelChoice, run_folder: Optional[str]) -> None:
    # a signal ends the process after the report is written; a second signal ends it at once
    def unwind() -> None:
        exit_hooks.remove(unwind)
        run.status, run.message = "interrupted", "a signal ended the run"
        raise KeyboardInterrupt  # unwinds the main thread, which ends the server and writes the report

    exit_hooks.append(unwind)
    try:
        with own_server({"PEEKABOO_TOOLS": LOOKING_TOOLS if run.dry_run else ACTING_TOOLS}) as server:
            AgentLoop(run, choice, server).work(run_folder)
    except PeekabooError as e:
        run.status = e.status if isinstance(e, AgentStop) else "failed"
        run.message = e.sentence()
        if run.folder:
            e.details = f"{e.details}\nthe report: {run.folder / 'report.html'}".strip()
        raise
    finally:
        if unwind in exit_hooks:
            exit_hooks.remove(unwind)
        if run.folder:
            save(run.folder / "run", run.as_data())
            write_privately(run.folder / "report.html", run_report(run))
        exit_if_signalled()


class AgentLoop:
    """The steps of one run."""

    def __init__(self, run: AgentRun, choice: ModelChoice, server: McpClient) -> None:
        self._run = run
        self._target = AgentTarget(server)
        self._planner = Planner(run, choice)
        run.grid = describe_unit(choice.model)
        run.deadline = time.monotonic() + run.max_seconds

    def work(self, run_folder: Optional[str]) -> None:
        """Choose the window, take steps, set the run's status. Raises AgentStop or another PeekabooError."""
        run = self._run
        owner = self._target.choose(run)
        if not run.dry_run:  # before any screenshot is sent; the server checks again before each act
            check_may_act("agent", owner.name, owner.bundle_id)
        run.folder = new_run_folder(run_folder)
        if ASSUMED in run.grid:
            print(f"{run.model_used}: {ASSUMED}", file=sys.stderr, flush=True)
        try:
            run.status = self._take_steps(run.folder)
        except PeekabooError:
            self._observe_final_state()
            raise
        self._observe_final_state()

    def _take_steps(self, folder: Path) -> str:
        for number in range(1, self._run.max_steps + 1):
            self._run.check_time()
            step = AgentStep(number)
            self._run.steps.append(step)
            started_at = time.monotonic()
            try:
                status = self._take(step)
            except PeekabooError as e:
                step.effect = step.effect or e.message
                raise
            finally:
                step.milliseconds = round((time.monotonic() - started_at) * 1000)
                step.save(folder / f"step_{number:03d}")
                _show_progress(step)
            if status:
                return status
        message = f"the goal was not reached in {self._run.max_steps} step(s)"
        raise AgentStop("limit", ErrorCode.TIMEOUT, message, "see the report, then raise --max-steps")

    def _observe_final_state(self) -> None:
        last = self._run.steps[-1].action if self._run.steps else None
        if last and last.is_act and not self._run.dry_run:
            self._run.final = AgentStep(len(self._run.steps) + 1)
            with suppress(PeekabooError):  # the window may have closed
                self._target.observe(self._run.final)

    def _take(self, step: AgentStep) -> str:
        run = self._run
        if step.number == 1 and not run.dry_run:
            self._target.focus()
        run.check_time()
        self._target.observe(step)
        run.check_time()
        self._target.read_elements(step)
        step.action = step.pixel_action = action = self._planner.decide(step)
        if step.grid and step.image:
            step.pixel_action = action.in_pixels(step.grid, step.image.info.width, step.image.info.height)
        self._check_is_sure(step, action)
        if action.kind == "done":
            return self._check_claim(step)
        if action.is_act and run.dry_run:
            step.effect = "not performed: this is a dry run"
            run.message = f"dry run: the model would {step.describe_action()}"
            return "dry_run"
        run.check_time()
        if not action.is_act:
            self._wait(step, action)
            return ""
        if run.confirm:
            self._ask_person(step, action.why)
        self._target.act(step)
        if action.is_last and step.is_delivered:
            return self._check_claim(step)
        run.doubt = ""
        return ""

    def _check_is_sure(self, step: AgentStep, action: Action) -> None:
        problem, least = "", self._run.confidence or 0
        if action.confidence is not None and action.confidence < least:
            described = step.describe_action(shows_text=False)
            problem = f"is not sure enough of `{described}`: {action.confidence:g} is below {least:g}"
        elif [past.action and past.action.kind for past in self._run.steps[-2:]] == ["noop", "noop"]:
            problem = "does not know what to do"
        if problem:
            hint = "see the report, and state the goal more clearly"
            raise AgentStop("unsure", ErrorCode.AI_PROVIDER_ERROR, f"the model {problem}", hint)

    def _check_claim(self, step: AgentStep) -> str:
        """Return `done`, or an empty text to ask the model again. Raises AgentStop at the second doubt."""
        doubt = doubt_about(self._run.steps)
        if doubt and self._run.doubt:
            message = f"not confirmed: the model reports that the goal is reached, but {doubt}"
            hint = "look at the last screenshot in the report"
            raise AgentStop("not_confirmed", ErrorCode.AI_PROVIDER_ERROR, message, hint)
        self._run.doubt = doubt
        self._run.message = "" if doubt else "the model reports that the goal is reached"
        step.effect = step.effect or (f"asked again: {doubt}" if doubt else self._run.message)
        return "" if doubt else "done"

    def _wait(self, step: AgentStep, action: Action) -> None:
        text = "" if self._run.dry_run else action.values.get("text", "")
        seconds = action.values.get("seconds", _WAIT_FOR_TEXT_S if text else _WAIT_S)
        seconds = max(0.0, min(seconds, self._run.deadline - time.monotonic()))
        step.effect = "waited"
        if text and step.window:
            step.effect = self._target.wait_for(step.window.window_id, text, seconds)
        else:
            pause(seconds)
        self._target.follow()

    def _ask_person(self, step: AgentStep, why: str) -> None:
        """Ask on the terminal, and raise AgentStop unless the answer is y. The wait extends the deadline."""
        started_at = time.monotonic()
        where = f"{step.window.title!r} of {step.window.app_name}" if step.window else ""
        question = clean_text(without_secrets(f"{step.describe_action()} in {where} ({why})"), 100_000)
        print(f"{question}? [y/n] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            message, hint = "the action was declined; nothing more was done", "state the goal more clearly"
            raise AgentStop("declined", ErrorCode.CANCELLED, message, hint)
        self._run.deadline += time.monotonic() - started_at


def _show_progress(step: AgentStep) -> None:
    # typed text stays in the report
    why = f" ({step.action.why})" if step.action and step.action.why else ""
    spent = f"[{step.milliseconds / 1000:.1f} s, {step.tokens_in}+{step.tokens_out} tokens]"
    line = f"step {step.number}: {step.describe_action(shows_text=False)}{why} -> {step.effect} {spent}"
    print(clean_text(without_secrets(line), 600), file=sys.stderr, flush=True)
