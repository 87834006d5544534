"""The vision agent: see -> decide -> act -> verify, by our own MCP server."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Optional

from ..ai.client import ModelChoice, choose_model, choose_provider, parse_providers
from ..automation.policy import check_may_act
from ..core.errors import ErrorCode, PeekabooError
from ..core.models import Result
from ..core.settings import settings_with_env_file
from ..system.process import exit_hooks, exit_if_signalled
from .loop import AgentLoop, AgentOrder
from .mcp_client import talk_to_own_server
from .planner import AGENT_SYSTEM_PROMPT, AgentStop
from .report import run_report
from .run import AgentRun, keep_run
from .target import ACTING_TOOLS, LOOKING_TOOLS


class AgentInterrupted(BaseException):
    """A signal tells us to end; raised in the main thread, so that the server ends and the report is written first."""


def run_vision_agent(
    *,
    goal: Annotated[str, "what shall be reached, in your words"],
    app: Annotated[Optional[str], "the app to act in: name, bundle id, PID:n or a part of the name"] = None,
    window_id: Annotated[Optional[int], "or the window to begin with, from `windows`"] = None,
    window_title: Annotated[
        Optional[str], "begin with the app's window of this title, or with this in it"
    ] = None,
    model: Annotated[
        Optional[str],
        "PROVIDER or PROVIDER/MODEL, such as openai/gpt-5.4-mini; default: the first operational one",
    ] = None,
    max_steps: Annotated[int, "stop after so many steps; default 25"] = 25,
    max_seconds: Annotated[float, "stop after so many seconds; default 120"] = 120.0,
    confidence: Annotated[
        Optional[float], "0 to 1: stop when the model is less sure of an action than this"
    ] = None,
    dry_run: Annotated[bool, "ask for one action and mark it in the report; touch nothing"] = False,
    run_folder: Annotated[
        Optional[str], "a new folder for the pictures and the report; default: peekaboo-run-TIME here"
    ] = None,
    confirm: Annotated[bool, "ask y or n on this terminal before each act"] = False,
) -> Result:
    """Lets a vision model reach a goal in one app: it looks at a picture of the window, does one thing, and looks again.
    The pictures of that app's windows are sent to the model. Each step is kept in a folder, with a report as one page. The
    model answers in pixels of the picture: choose one that can. Needs the Python package mcp; keys may stand in `.env`.

    Example: peekaboo-min agent --goal "Sign the book as Ada" --app Form --model openai/gpt-5.4-mini
    leaves peekaboo-run-TIME/report.html, run.json, step_001.jpg, step_001.json, ...
    """
    settings_with_env_file(Path.cwd())
    _check_order(goal, app, window_id, window_title, max_steps, max_seconds, confidence)
    if confirm and not (sys.stdin and sys.stdin.isatty()):
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, "--confirm asks on a terminal, and stdin is none", hint="leave it out"
        )
    if not dry_run:
        check_may_act("agent")
    choice = _agent_model(model)
    order = AgentOrder(
        goal,
        choice,
        app,
        window_id,
        window_title,
        max_steps,
        max_seconds,
        confidence,
        dry_run,
        confirm,
        run_folder,
    )
    run = AgentRun(goal, choice.name, dry_run, system_prompt=AGENT_SYSTEM_PROMPT)
    with _report_before_leaving(run):
        failure = _serve_and_run(order, run)
    where = f"the report: {run.report_path}" if run.folder else ""
    if failure:
        raise PeekabooError(
            failure.code, failure.message, failure.hint, "\n".join(filter(None, [failure.details, where]))
        )
    return Result(f"{run.message}\n{where}", run.summary_data())


def _check_order(
    goal: str,
    app: Optional[str],
    window_id: Optional[int],
    title: Optional[str],
    steps: int,
    seconds: float,
    confidence: Optional[float],
) -> None:
    problem = ""
    if not goal.strip():
        problem = "the goal is empty"
    elif (app is None) == (window_id is None):
        problem = "name the app (--app) or the window (--window-id), one of them"
    elif title is not None and app is None:
        problem = "--window-title goes with --app"
    elif steps < 1 or not seconds > 0 or not math.isfinite(seconds):
        problem = "--max-steps and --max-seconds must be above 0"
    elif confidence is not None and not 0 <= confidence <= 1:
        problem = "--confidence is a number from 0 to 1"
    if problem:
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, problem, hint="see peekaboo-min agent --help")


def _agent_model(name: Optional[str]) -> ModelChoice:
    if name is None:
        return choose_provider()
    named = parse_providers(name)
    if len(named) != 1:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"{name[:60]!r} is not one model", hint="name it as PROVIDER/MODEL"
        )
    return choose_model(named[0].provider, named[0].model)


@contextmanager
def _report_before_leaving(run: AgentRun) -> Iterator[None]:
    """However the block ends, the report is written; a signal ends this process only then. A second one ends it at once."""

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
            keep_run(run, run_report(run))
        exit_if_signalled()


def _serve_and_run(order: AgentOrder, run: AgentRun) -> Optional[PeekabooError]:
    """The run, with a server that offers no more than it needs; return what stopped it."""
    names = LOOKING_TOOLS if order.is_dry else (*LOOKING_TOOLS, *ACTING_TOOLS)
    failure: Optional[PeekabooError] = None
    try:
        talk_to_own_server(
            {"PEEKABOO_TOOLS": ",".join(names)}, lambda server: AgentLoop(order, run, server).work()
        )
    except PeekabooError as e:
        failure = e
    if failure:
        run.status = failure.status if isinstance(failure, AgentStop) else "failed"
        run.message = failure.sentence()
    return failure
