"""The vision agent: see -> decide -> act -> verify, through our own server."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Optional

from ..ai.client import ModelChoice, choose_named_model, choose_provider
from ..automation.policy import check_may_act
from ..core.errors import PeekabooError, invalid
from ..core.models import Result
from ..core.settings import settings_with_env_file
from ..system.process import exit_hooks, exit_if_signalled
from .loop import AgentLoop
from .mcp_client import own_server
from .model_check import model_check
from .report import run_report
from .run import AgentRun, AgentStop, AgentTask, save_run
from .target import ACTING_TOOLS, LOOKING_TOOLS


class AgentInterrupted(BaseException):
    """A signal ends the run; raised in the main thread, so that server and report are finished first."""


def run_vision_agent(
    *,
    goal: Annotated[Optional[str], "the goal to reach, in your own words"] = None,
    app: Annotated[Optional[str], "the app to act in: name, bundle id, PID:n or a part of the name"] = None,
    window_id: Annotated[Optional[int], "or the window to start with, from `windows`"] = None,
    window_title: Annotated[
        Optional[str], "or its title, or a part of it; with --app, of that app's windows"
    ] = None,
    model: Annotated[
        Optional[str],
        "PROVIDER or PROVIDER/MODEL, such as openai/gpt-5.4-mini; default: the first operational one",
    ] = None,
    max_steps: Annotated[int, "stop after this many steps; default 25"] = 25,
    max_seconds: Annotated[float, "stop after this many seconds; default 120"] = 120.0,
    confidence: Annotated[
        Optional[float], "0 to 1: stop when the model is less sure of an action than this"
    ] = None,
    dry_run: Annotated[bool, "ask for one action and mark it in the report; touch nothing"] = False,
    run_folder: Annotated[
        Optional[str], "a new folder for the screenshots and the report; default: peekaboo-run-TIME here"
    ] = None,
    confirm: Annotated[bool, "ask y or n on this terminal before each action"] = False,
    check_model: Annotated[
        bool,
        "instead of a run: report, by one synthetic image, in which grid the model clicks, and what to set",
    ] = False,
) -> Result:
    """Lets a vision model reach a goal in one app: it looks at a screenshot of the window, takes one action,
    and looks again. The model gets the screenshots of that app's windows, and the texts of their elements. It
    may open applications, documents and addresses, and goes on there. Each step is saved in a folder, with a
    report as one page. Needs the Python package mcp; keys may be in `.env`.

    Example: peekaboo-min agent --goal "Sign the book as Ada" --app Form --model openai/gpt-5.4-mini
    leaves peekaboo-run-TIME/report.html, run.json, step_001.jpg, ...
    """
    settings_with_env_file(Path.cwd())
    if check_model:
        if any((goal, app, window_id, window_title, dry_run)):
            raise invalid("--check-model starts no run", hint="give it alone, or with --model")
        return model_check(_choose(model))
    task = AgentTask(
        goal=goal or "",
        app=app,
        window_id=window_id,
        window_title=window_title,
        max_steps=max_steps,
        max_seconds=max_seconds,
        confidence=confidence,
        dry_run=dry_run,
        run_folder=run_folder,
        confirm=confirm,
    )
    _check_task(task)
    if not dry_run:
        check_may_act("agent")
    choice = _choose(model)
    run = AgentRun(task, choice.name)
    with _report_before_exit(run):
        failure = _serve_and_run(run, choice)
    where = f"the report: {run.report_path}" if run.folder else ""
    if failure:
        details = "\n".join(filter(None, [failure.details, where]))
        raise PeekabooError(failure.code, failure.message, failure.hint, details)
    return Result(f"{run.message}\n{where}", run.summary_data())


def _check_task(task: AgentTask) -> None:
    """Raises INVALID_ARGUMENT for a task that cannot be run."""
    problem = ""
    if not task.goal.strip():
        problem = "the goal is empty"
    elif task.app is None and task.window_id is None and not (task.window_title or "").strip():
        problem = "name the app (--app), the window (--window-id) or its title (--window-title)"
    elif task.window_id is not None and (task.app is not None or task.window_title is not None):
        problem = "--window-id names the window; --app and --window-title exclude it"
    elif task.max_steps < 1 or not task.max_seconds > 0 or not math.isfinite(task.max_seconds):
        problem = "--max-steps and --max-seconds must be above 0"
    elif task.confidence is not None and not 0 <= task.confidence <= 1:
        problem = "--confidence is a number from 0 to 1"
    if problem:
        raise invalid(problem, hint="see peekaboo-min agent --help")
    if task.confirm and not (sys.stdin and sys.stdin.isatty()):
        raise invalid("--confirm needs a terminal, and stdin is not one", hint="omit --confirm")


def _choose(model: Optional[str]) -> ModelChoice:
    return choose_provider() if model is None else choose_named_model(model)


@contextmanager
def _report_before_exit(run: AgentRun) -> Iterator[None]:
    """Write the report, however the block ends. A signal ends the process after that, a second at once."""

    def unwind() -> None:
        exit_hooks.remove(unwind)
        run.status, run.message = "interrupted", "a signal ended the run"
        raise AgentInterrupted

    exit_hooks.append(unwind)
    try:
        yield
    except Exception as e:
        run.message = run.message or f"{type(e).__name__}: {e}"
        raise
    finally:
        if unwind in exit_hooks:
            exit_hooks.remove(unwind)
        if run.folder:
            save_run(run, run_report(run))
        exit_if_signalled()


def _serve_and_run(run: AgentRun, choice: ModelChoice) -> Optional[PeekabooError]:
    """The run, with a server that offers no more than it needs; returns the error that stopped it."""
    variables = {"PEEKABOO_TOOLS": LOOKING_TOOLS if run.task.dry_run else ACTING_TOOLS}
    try:
        with own_server(variables) as server:
            AgentLoop(run, choice, server).work()
    except PeekabooError as e:
        run.status = e.status if isinstance(e, AgentStop) else "failed"
        run.message = e.sentence()
        return e
    return None
