"""The Keynote agent: a model that draws, line by line, through our server."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NamedTuple, Optional

from ..ai.client import ModelChoice, ask_model, choose_named_model
from ..automation.policy import check_may_act
from ..core.errors import ErrorCode, PeekabooError, check_range, file_errors, invalid
from ..core.log import write_agent_line
from ..core.models import Result
from ..core.settings import Settings, settings_with_env_file, without_secrets
from ..core.text import clean_text
from ..desktop.select import this_desktop
from ..integrations.keynote import check_is_mac
from .keynote_protocol import Drawing, FunctionCall, convert_arguments, read_reply
from .mcp_client import McpClient, OfferedTool, own_server

_MAX_ITERATIONS = 50
_DEFAULT_MODEL = "gemini"
_AGENT_LOG = Path("logs") / "agent.log"


class Turn(NamedTuple):
    """The call that the model asked for, or its reply without one; and the answer to it."""

    call: str
    answer: str


@dataclass
class DrawingRun:
    """One run of the agent. Each of its log lines has `client` and the run's id."""

    query: str
    text: Optional[str]
    """What the rectangle must hold at the end; None where any text will do."""
    choice: ModelChoice
    log_path: Path
    max_iterations: int
    run_id: str = field(default_factory=lambda: os.urandom(3).hex())
    turns: list[Turn] = field(default_factory=list)
    drawing: Drawing = field(default_factory=Drawing)

    def log(self, text: str) -> None:
        write_agent_line(self.log_path, f"client][run_id={self.run_id}", text)

    def show(self, text: str) -> None:
        """Log the text, and print it as progress."""
        self.log(text)
        print(clean_text(without_secrets(text), 500), file=sys.stderr, flush=True)

    def refuse(self, line: str, why: str) -> None:
        """The model's line calls nothing; it is answered with the reason."""
        self.show(f"not called: {why}")
        self.turns.append(Turn(line, why))

    def failure(self, message: str) -> PeekabooError:
        hint = f"see {self.log_path}, or use another model"
        return PeekabooError(ErrorCode.AI_PROVIDER_ERROR, message, hint, details=self.transcript())

    def transcript(self) -> str:
        return "\n".join(f"{n}. {turn.call}\n   => {turn.answer}" for n, turn in enumerate(self.turns, 1))


def run_keynote_agent(
    text: Annotated[
        Optional[str], "the exact text to write into the rectangle; default: Hello from MCP on macOS."
    ] = None,
    *,
    query: Annotated[
        Optional[str], "the whole task in your own words, instead of TEXT; any text that is written counts"
    ] = None,
    model: Annotated[
        Optional[str], "PROVIDER or PROVIDER/MODEL, for instance openai/gpt-5.4-mini; default: gemini"
    ] = None,
    max_iterations: Annotated[int, "stop after this many replies of the model, 1 to 50; default 8"] = 8,
) -> Result:
    """Lets a model open Keynote, draw a rectangle on slide 1 and write a text into it, by MCP calls alone.
    Needs the model's key, in the environment or in `.env` of this folder, and the Python package mcp.

    Example: peekaboo-min keynote-agent "Hello from MCP on macOS."
    leaves logs/agent.log, which has every prompt, reply, call and result
    """
    check_is_mac()
    configured = settings_with_env_file(Path.cwd())
    check_may_act("keynote-agent", "Keynote")
    check_range("max_iterations", max_iterations, 1, _MAX_ITERATIONS)
    wanted, notes = _wanted_text(text, query)
    choice, log_path = choose_named_model(model or _DEFAULT_MODEL), _AGENT_LOG.absolute()
    run = DrawingRun(query or KEYNOTE_QUERY + str(wanted), wanted, choice, log_path, max_iterations)
    with file_errors(log_path.parent):
        log_path.parent.mkdir(exist_ok=True)
    try:
        _run_with_server(run, configured)
    except PeekabooError as e:
        run.log(f"summary: failed after {len(run.turns)} turn(s): {e.code_name}: {e.sentence()}")
        raise
    return _drawing_result(run, notes)


def _drawing_result(run: DrawingRun, notes: list[str]) -> Result:
    """The summary of a complete run, also written into the log."""
    written = run.text or next(reversed(run.drawing.texts.values()))
    messages = [*notes, *run.drawing.warnings()]
    summary = f"done in {len(run.turns) + 1} turns with {run.choice.name}: wrote {written!r}"
    run.log("; ".join([f"summary: {summary}", *(f"warning: {message}" for message in messages)]))
    data = {
        "run_id": run.run_id,
        "model_used": run.choice.name,
        "text": written,
        "calls": [turn._asdict() for turn in run.turns],
        "log": str(run.log_path),
    }
    text = f"{summary}\n{run.transcript()}\nlog: {run.log_path}"
    return Result(text, data, messages=tuple(messages))


def _wanted_text(text: Optional[str], query: Optional[str]) -> tuple[Optional[str], list[str]]:
    """The exact text to write, None where a query asks for any; and what was changed in it."""
    if query is not None:
        if text is not None:
            raise invalid("TEXT and --query exclude each other", hint="put the text into the query")
        if not query.strip():
            raise invalid("the query is empty", hint="describe what to draw and write, or omit --query")
        return None, []
    if text is None:
        return DEFAULT_TEXT, []
    if not text.strip():
        raise invalid("the text is empty", hint="give the text to write")
    lines = text.splitlines()
    note = "line breaks in the text became spaces, because a FUNCTION_CALL is one line"
    return " ".join(lines), [note] if len(lines) > 1 else []


def _run_with_server(run: DrawingRun, configured: Settings) -> None:
    """The whole conversation, with our server as a child that gets the log and Keynote's settings."""
    variables = {
        "PEEKABOO_TOOLS": "keynote",
        "PEEKABOO_AGENT_LOG": str(run.log_path),
        "PEEKABOO_LOG_LEVEL": configured.log_level,
        "KEYNOTE_THEME": configured.keynote_theme,
        "KEYNOTE_DOCUMENT_MODE": configured.keynote_document_mode,
        "SCREENSHOT_PATH": configured.screenshot_path,
    }
    with own_server(variables) as server:
        _converse_with_model(run, server)


def _converse_with_model(run: DrawingRun, server: McpClient) -> None:
    """One reply per turn, one call per reply, until FINAL_ANSWER; only what the model asks for is called.

    Raises AI_NOT_CONFIGURED, AI_PROVIDER_ERROR.
    """
    tools = {tool.name: tool for tool in server.tools()}
    run.show(f"tools listed: {', '.join(tools)}")
    lines = [_tool_line(number, tool) for number, tool in enumerate(tools.values(), 1)]
    system = KEYNOTE_SYSTEM_PROMPT.replace("{tools_description}", "\n".join(lines))
    run.log(f"model {run.choice.name}, system prompt: {system}")
    was_corrected = False
    for _ in range(run.max_iterations):
        prompt = keynote_turn_prompt(run.query, run.transcript())
        run.log(f"prompt: {prompt}")
        text = ask_model(this_desktop(), [], prompt, choice=run.choice, system=system).text
        run.show(f"LLM => {text}")
        reply = read_reply(text)
        if reply is None:
            run.refuse(f"(you replied) {clean_text(text)}", NO_CALL_FOUND)
        elif isinstance(reply, FunctionCall):
            _call_tool(run, server, tools, reply)
        else:
            run.log(f"FINAL_ANSWER parsed: {reply.text}")
            missing = run.drawing.missing(run.text)
            if not missing:
                return
            if was_corrected:
                raise run.failure(f"the model reports that it is done, but {missing}")
            was_corrected = True
            run.refuse(f"FINAL_ANSWER: {clean_text(reply.text)}", NOT_DONE.format(missing))
    raise run.failure(f"the model gave no FINAL_ANSWER in {run.max_iterations} turns")


def _tool_line(number: int, tool: OfferedTool) -> str:
    properties = tool.schema.get("properties", {})
    parameters = ", ".join(
        f"{name}: {schema.get('type', 'string')} ({schema.get('description', '')})"
        for name, schema in properties.items()
    )
    return f"{number}. {tool.name}({parameters}) - {tool.description}"


def _call_tool(run: DrawingRun, server: McpClient, tools: dict[str, OfferedTool], call: FunctionCall) -> None:
    """Call what the model asks for. An impossible call is not an error here: the model gets the reason."""
    run.log(f"FUNCTION_CALL parsed: {call.text}")
    line = f"FUNCTION_CALL: {call.text}"
    if call.name not in tools:
        return run.refuse(line, f"Unknown tool {clean_text(call.name, 60)}. Available: {', '.join(tools)}")
    try:
        arguments = convert_arguments(call, tools[call.name].schema)
    except PeekabooError as e:
        return run.refuse(line, f"ERROR: {e.sentence()}")
    answer = server.call(call.name, arguments).text
    run.show(f"tool result: {answer}")
    run.drawing.note(answer, arguments.get("text", ""))
    run.turns.append(Turn(line, answer))


# As in the Keynote agent's specification.
KEYNOTE_SYSTEM_PROMPT = """\
You are a macOS Keynote drawing agent that must accomplish a concrete UI goal by calling MCP tools.
Your job: open Keynote, draw ONE rectangle centered on slide 1, and write the user-provided text inside that \
rectangle.
You MUST accomplish this ONLY by calling the available tools. Do NOT describe what you will do. Do NOT emit \
explanations.

Rules:
- You must respond with EXACTLY ONE SINGLE LINE each turn, in one of these formats:
  1) FUNCTION_CALL: function_name|param1|param2|...
  2) FINAL_ANSWER: [done]
- Never output anything before or after that one line. No markdown. No prose.
- Begin by calling open_keynote (or, if available, get_slide_size after opening) to discover slide dimensions.
- Then call draw_rectangle with numeric slide coordinates (not pixels). If you know the slide size, choose a \
centered rectangle that is ~60% of slide width and ~30% of slide height.
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

# With this text the query is the specification's example.
KEYNOTE_QUERY = "Create a rectangle in Keynote slide 1 and write this exact text inside it: "
DEFAULT_TEXT = "Hello from MCP on macOS."

NO_CALL_FOUND = (
    "Your reply contains neither a FUNCTION_CALL nor a FINAL_ANSWER line. "
    "Respond with exactly one such line and nothing else."
)

NOT_DONE = (
    "It is not done: {}. Draw the rectangle, write the text into it by add_text_in_keynote, "
    "then respond with FINAL_ANSWER: [done]"
)


def keynote_turn_prompt(query: str, steps: str) -> str:
    """The user's prompt of one turn; `steps` is the transcript, empty in the first turn."""
    if not steps:
        return query
    done = f"What you did so far, with the results:\n{steps}"
    return f"{query}\n\n{done}\n\nWhat is the next single line?"
