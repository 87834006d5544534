"""The Keynote agent: a model that draws, line by line, through our server."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Optional

from ..ai.client import ModelChoice, ask_model, choose_model, parse_providers
from ..automation.policy import check_may_act
from ..core.errors import ErrorCode, PeekabooError, file_error
from ..core.models import Result
from ..core.settings import Settings, settings, settings_with_env_file
from ..core.text import clean_text
from ..desktop.select import this_desktop
from ..integrations.keynote import check_is_mac
from ..integrations.keynote_state import write_agent_line
from .function_call import FinalAnswer, FunctionCall, convert_arguments, read_reply
from .mcp_client import McpClient, OfferedTool, talk_to_own_server

_MOST_ITERATIONS = 50
_DEFAULT_PROVIDER = "gemini"
_AGENT_LOG = Path("logs") / "agent.log"


@dataclass(frozen=True)
class DrawingStep:
    """One turn: the call that the model asked for (or what it said instead), and what came of it."""

    call: str
    answer: str
    has_written: bool = False
    """True when this call placed the text."""


@dataclass
class DrawingRun:
    """One run of the agent. Every line of its log says `client` and the run's id."""

    query: str
    choice: ModelChoice
    log_path: Path
    max_iterations: int
    run_id: str = field(default_factory=lambda: os.urandom(3).hex())
    steps: list[DrawingStep] = field(default_factory=list)

    def note(self, text: str) -> None:
        for key in (settings().gemini_key, settings().openai_key, settings().anthropic_key):
            text = text.replace(key, "***") if key else text
        write_agent_line(f"client][run_id={self.run_id}", text, self.log_path)

    def show(self, text: str) -> None:
        """Into the log, and for the person who waits."""
        self.note(text)
        print(clean_text(text, 500), file=sys.stderr, flush=True)

    def transcript(self) -> str:
        return "\n".join(f"{n}. {step.call}\n   => {step.answer}" for n, step in enumerate(self.steps, 1))


def run_keynote_agent(
    text: Annotated[str, "the exact text to write into the rectangle; one line"],
    model: Annotated[
        Optional[str], "PROVIDER or PROVIDER/MODEL, for instance openai/gpt-5.4-mini; default: gemini"
    ] = None,
    max_iterations: Annotated[int, "stop after so many replies of the model, 1 to 50; default 8"] = 8,
) -> Result:
    """Lets a model open Keynote, draw a rectangle on slide 1 and write a text into it, by MCP calls alone. Needs the
    model's key, in the environment or in `.env` of this folder, and the Python package mcp.

    Example: peekaboo-min keynote-agent "Hello from MCP on macOS."
    leaves logs/agent.log, which tells every prompt, reply, call and result
    """
    check_is_mac()
    own = settings_with_env_file(Path.cwd())
    check_may_act("keynote-agent", "Keynote")
    if not 1 <= max_iterations <= _MOST_ITERATIONS:
        message = f"max_iterations is {max_iterations}"
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint=f"it is 1 to {_MOST_ITERATIONS}")
    run = DrawingRun(keynote_query(_one_line(text)), _chosen_model(model), _new_log_path(), max_iterations)
    try:
        _run_with_server(run, own)
    except PeekabooError as e:
        run.note(f"summary: failed after {len(run.steps)} turn(s): {e.code_name}: {e.sentence()}")
        raise
    run.note(f"summary: done in {len(run.steps) + 1} turns with {run.choice.name}")
    return Result(
        f"done by {run.choice.name}:\n{run.transcript()}\nlog: {run.log_path}",
        {
            "run_id": run.run_id,
            "model_used": run.choice.name,
            "calls": [{"call": step.call, "answer": step.answer} for step in run.steps],
            "log": str(run.log_path),
        },
    )


def _one_line(text: str) -> str:
    if not text.strip():
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, "the text is empty", hint="give the text to write")
    if len(text.splitlines()) > 1:
        message = "a FUNCTION_CALL is one line, and so must the text be"
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint="use `keynote text` for several lines")
    return text


def _chosen_model(name: Optional[str]) -> ModelChoice:
    named = parse_providers(name or _DEFAULT_PROVIDER)
    if len(named) != 1:
        raise PeekabooError(
            ErrorCode.INVALID_ARGUMENT, f"{name!r} is not one model", hint="name it as PROVIDER/MODEL"
        )
    return choose_model(named[0].provider, named[0].model)


def _new_log_path() -> Path:
    path = _AGENT_LOG.absolute()
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as e:
        raise file_error(path.parent, e) from e
    return path


def _run_with_server(run: DrawingRun, own: Settings) -> None:
    """The whole conversation. The server runs meanwhile, as a child that knows the log and Keynote's settings."""
    variables = {
        "PEEKABOO_TOOLS": "keynote",
        "PEEKABOO_AGENT_LOG": str(run.log_path),
        "PEEKABOO_LOG_LEVEL": own.log_level,
        "KEYNOTE_THEME": own.keynote_theme,
        "KEYNOTE_DOCUMENT_MODE": own.keynote_document_mode,
        "SCREENSHOT_PATH": own.screenshot_path,
    }
    talk_to_own_server(variables, lambda server: _converse_with_model(run, server))


def _converse_with_model(run: DrawingRun, server: McpClient) -> None:
    """One reply a turn, one call a reply, until FINAL_ANSWER; nothing is called that the model did not ask for.

    Raises AI_NOT_CONFIGURED, AI_PROVIDER_ERROR.
    """
    tools = {tool.name: tool for tool in server.tools()}
    run.show(f"tools listed: {', '.join(tools)}")
    system = keynote_system_prompt("\n".join(_tool_line(n, tool) for n, tool in enumerate(tools.values(), 1)))
    run.note(f"model {run.choice.name}, system prompt: {system}")
    for _ in range(run.max_iterations):
        prompt = keynote_turn_prompt(run.query, run.transcript())
        run.note(f"prompt: {prompt}")
        answer = ask_model(this_desktop(), [], prompt, choice=run.choice, system=system)
        run.show(f"LLM => {answer.text}")
        reply = read_reply(answer.text)
        if isinstance(reply, FinalAnswer):
            run.note(f"FINAL_ANSWER parsed: {reply.text}")
            return _check_written(run)
        run.steps.append(_take_step(run, server, tools, reply, answer.text))
    message = f"the model did not come to its FINAL_ANSWER in {run.max_iterations} turns"
    raise PeekabooError(
        ErrorCode.AI_PROVIDER_ERROR,
        message,
        hint=f"see {run.log_path}, or use another model",
        details=run.transcript(),
    )


def _check_written(run: DrawingRun) -> None:
    if not any(step.has_written for step in run.steps):
        message = "the model says that it is done, but it wrote no text"
        raise PeekabooError(
            ErrorCode.AI_PROVIDER_ERROR,
            message,
            hint=f"see {run.log_path}, or use another model",
            details=run.transcript(),
        )


def _tool_line(number: int, tool: OfferedTool) -> str:
    properties = tool.schema.get("properties", {})
    parameters = ", ".join(
        f"{name}: {schema.get('type', 'string')} ({schema.get('description', '')})"
        for name, schema in properties.items()
    )
    return f"{number}. {tool.name}({parameters}) - {tool.description}"


def _take_step(
    run: DrawingRun,
    server: McpClient,
    tools: dict[str, OfferedTool],
    reply: Optional[FunctionCall],
    said: str,
) -> DrawingStep:
    """Call what the reply asks for. What cannot be called is not an error of ours: the model reads why."""
    if reply is None:
        run.note(f"no FUNCTION_CALL parsed: {NO_CALL_FOUND}")
        return DrawingStep(f"(you said) {clean_text(said)}", NO_CALL_FOUND)
    run.note(f"FUNCTION_CALL parsed: {reply.text}")
    line = f"FUNCTION_CALL: {reply.text}"
    if reply.name not in tools:
        return _refused(
            run, line, f"Unknown tool {clean_text(reply.name, 60)}. Available: {', '.join(tools)}"
        )
    try:
        arguments = convert_arguments(reply, tools[reply.name].schema)
    except PeekabooError as e:
        return _refused(run, line, f"ERROR: {e.sentence()}")
    answer = server.call(reply.name, arguments)
    result = (
        f"ERROR: {answer.text}" if answer.is_error and not answer.text.startswith("ERROR:") else answer.text
    )
    run.show(f"tool result: {result}")
    return DrawingStep(line, result, has_written=result.startswith("TEXT_OK:"))


def _refused(run: DrawingRun, line: str, why: str) -> DrawingStep:
    run.show(f"not called: {why}")
    return DrawingStep(line, why)


# The Keynote agent's, as its specification has it.
KEYNOTE_SYSTEM_PROMPT = """\
You are a macOS Keynote drawing agent that must accomplish a concrete UI goal by calling MCP tools.
Your job: open Keynote, draw ONE rectangle centered on slide 1, and write the user-provided text inside that rectangle.
You MUST accomplish this ONLY by calling the available tools. Do NOT describe what you will do. Do NOT emit explanations.

Rules:
- You must respond with EXACTLY ONE SINGLE LINE each turn, in one of these formats:
  1) FUNCTION_CALL: function_name|param1|param2|...
  2) FINAL_ANSWER: [done]
- Never output anything before or after that one line. No markdown. No prose.
- Begin by calling open_keynote (or, if available, get_slide_size after opening) to discover slide dimensions.
- Then call draw_rectangle with numeric slide coordinates (not pixels). If you know the slide size, choose a centered \
rectangle that is ~60% of slide width and ~30% of slide height.
  Let W=slide_width and H=slide_height:
    rect_width = round(0.6*W)
    rect_height = round(0.3*H)
    x = round((W - rect_width)/2)
    y = round((H - rect_height)/2)
- Then call add_text_in_keynote with the EXACT text the user asked you to write (no quotes, no extra words).
- If any tool returns an ERROR, adjust parameters and retry at most once.
- Never call the same tool twice with the same parameters.
- Parameter formatting:
  * Numbers: plain (no commas, no units).
  * Strings: do not include the '|' character. If input text contains '|', replace it with '¦'.
  * Keep everything on a single line; do not insert newlines in arguments.
- Stop when the text has been placed inside the rectangle and respond with: FINAL_ANSWER: [done]

Available tools:
{tools_description}

Remember: only use FUNCTION_CALL or FINAL_ANSWER lines. Nothing else.
"""

# What `keynote-agent TEXT` asks for; DEFAULT_QUERY is the specification's example of it.
KEYNOTE_QUERY = "Create a rectangle in Keynote slide 1 and write this exact text inside it: {text}"
DEFAULT_QUERY = KEYNOTE_QUERY.replace("{text}", "Hello from MCP on macOS.")

_TRANSCRIPT_TEXT = """\
{query}

What you did so far, and what came of it:
{steps}

What is the next single line?"""

NO_CALL_FOUND = "Your reply held neither a FUNCTION_CALL nor a FINAL_ANSWER line. Respond with exactly one such line and nothing else."


def keynote_system_prompt(tools_description: str) -> str:
    return KEYNOTE_SYSTEM_PROMPT.replace("{tools_description}", tools_description)


def keynote_query(text: str) -> str:
    return KEYNOTE_QUERY.replace("{text}", text)


def keynote_turn_prompt(query: str, steps: str) -> str:
    """The user's prompt of one turn; `steps` is the transcript, empty in the first turn."""
    if not steps:
        return query
    head, tail = _TRANSCRIPT_TEXT.split("{query}")
    return f"{head}{query}{tail.replace('{steps}', steps)}"
