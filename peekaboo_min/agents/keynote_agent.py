"""The Keynote agent: a model draws by calling our server's MCP tools."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Optional

from ..ai.client import ModelChoice, ask_model, choose_model
from ..automation.policy import check_may_act
from ..core.errors import ErrorCode, PeekabooError, check_range, file_errors, invalid
from ..core.log import write_agent_line
from ..core.models import Result
from ..core.settings import settings_with_env_file, without_secrets
from ..core.text import clean_text
from ..desktop.select import this_desktop
from ..integrations.keynote import check_is_mac
from ..system.programs import native_source
from .mcp_client import McpClient, own_server

# Models wrap the line in markdown although the prompt forbids it: quotes, bullets, fences, emphasis.
_ACTION_LINE = re.compile(
    r"^[ \t>]*(?:[-*+] |\d+[.)] )?(?P<mark>[`*_]*)(?P<keyword>FUNCTION_CALL|FINAL_ANSWER):(?P<rest>[^\r\n]*)",
    re.MULTILINE,
)

KEYNOTE_QUERY = "Create a rectangle in Keynote slide 1 and write this exact text inside it: "
NO_CALL_FOUND = (
    "Your reply contains neither a FUNCTION_CALL nor a FINAL_ANSWER line. "
    "Respond with exactly one such line and nothing else."
)
MISSING = "no call after RECTANGLE_OK returned TEXT_OK for the text"
NOT_DONE = (
    f"It is not done: {MISSING}. Draw the rectangle, write the text into it with add_text_in_keynote, "
    "then respond with FINAL_ANSWER: [done]"
)


@dataclass
class DrawingRun:
    """One run of the agent, with its log."""

    query: str
    text: Optional[str]  # the text that the rectangle must contain at the end; None accepts any text
    choice: ModelChoice
    log_path: Path
    run_id: str = field(default_factory=lambda: os.urandom(3).hex())
    turns: list[dict[str, str]] = field(default_factory=list)  # call: the model's line; answer: the result

    def log(self, text: str) -> None:
        write_agent_line(self.log_path, f"[client][run_id={self.run_id}]", text)

    def show(self, text: str) -> None:
        """Log the text, and print it as progress."""
        self.log(text)
        print(clean_text(without_secrets(text), 500), file=sys.stderr, flush=True)

    def add_turn(self, line: str, answer: str, label: str = "not called") -> None:
        """Show and store the model's line and its answer: a tool's result, or why no tool was called."""
        self.show(f"{label}: {answer}")
        self.turns.append({"call": line, "answer": answer})

    def transcript(self) -> str:
        lines = (f"{n}. {turn['call']}\n   => {turn['answer']}" for n, turn in enumerate(self.turns, 1))
        return without_secrets("\n".join(lines))

    def written_text(self) -> Optional[str]:
        """Return the newest text in this run's rectangles; None if there is none, or not the required one."""
        texts: dict[str, str] = {}  # by the ids of this run's rectangles
        for turn in self.turns:
            success = re.match(r"(RECTANGLE_OK|TEXT_OK): id=([^,]*)", turn["answer"])
            if success and success[1] == "RECTANGLE_OK":
                texts[success[2]] = ""
            elif success and success[2] in texts:
                # the tool writes | for ¦
                texts[success[2]] = turn["call"].partition("|")[2].replace("¦", "|")
        required = self.text and self.text.replace("¦", "|")
        return next((text for text in reversed(texts.values()) if text and required in (None, text)), None)


def run_keynote_agent(
    text: Annotated[
        Optional[str], "the exact text to write into the rectangle; default: Hello from MCP on macOS."
    ] = None,
    *,
    query: Annotated[
        Optional[str], "the whole task in your own words, instead of TEXT; any written text is accepted"
    ] = None,
    model: Annotated[
        Optional[str], "PROVIDER or PROVIDER/MODEL, such as openai/gpt-5.4-mini; default: gemini"
    ] = None,
    max_iterations: Annotated[int, "stop after this many replies of the model, 1 to 50; default 8"] = 8,
    new: Annotated[bool, "draw in a new document, like KEYNOTE_DOCUMENT_MODE=always_new"] = False,
) -> Result:
    """Let a model open Keynote, draw a rectangle on slide 1 and write a text into it, only by MCP calls.

    Needs the model's key, in the environment or in `.env` of this folder, and the Python package mcp.

    Example: peekaboo-min keynote-agent "Hello from MCP on macOS."
    writes logs/agent.log, with every prompt, reply, call and result
    """
    check_is_mac()
    configured = settings_with_env_file()
    check_may_act("keynote-agent", "Keynote")
    check_range("max_iterations", max_iterations, 1, 50)
    if text is not None and query is not None:
        raise invalid("TEXT and --query exclude each other", hint="put the text into the query")
    if text is None and query is None:
        text = "Hello from MCP on macOS."  # the example of the specification
    if not (query or text or "").strip():
        raise invalid("the text is empty", hint="give the text to write, or omit it")
    line = " ".join(text.splitlines()) if text else None  # a FUNCTION_CALL is one line
    choice, log_path = choose_model(model or "gemini"), Path("logs/agent.log").absolute()
    run = DrawingRun(query or f"{KEYNOTE_QUERY}{line}", line, choice, log_path)
    variables = {
        "PEEKABOO_TOOLS": "keynote",
        "PEEKABOO_AGENT_LOG": str(log_path),
        "PEEKABOO_LOG_LEVEL": configured.log_level,
        "KEYNOTE_THEME": configured.keynote_theme,
        "KEYNOTE_DOCUMENT_MODE": "always_new" if new else configured.keynote_document_mode,
        "SCREENSHOT_PATH": configured.screenshot_path,
    }
    with file_errors(log_path.parent):
        log_path.parent.mkdir(exist_ok=True)
    try:
        with own_server(variables) as server:
            _converse_with_model(run, server, max_iterations)
    except PeekabooError as e:
        run.log(f"summary: failed after {len(run.turns)} turn(s): {e.code_name}: {e.sentence()}")
        raise
    summary = f"done in {len(run.turns) + 1} turns with {choice.name}: wrote {run.written_text()!r}"
    run.log(f"summary: {summary}")
    calls = [{name: without_secrets(text) for name, text in turn.items()} for turn in run.turns]
    data = {"run_id": run.run_id, "model_used": choice.name, "text": run.written_text(), "calls": calls}
    text = without_secrets(f"{summary}\n{run.transcript()}\nlog: {log_path}")
    return Result(text, {**data, "log": str(log_path)})


def _converse_with_model(run: DrawingRun, server: McpClient, max_iterations: int) -> None:
    tools = server.tools()
    schemas: dict[str, dict[str, Any]] = {tool.name: tool.input_schema for tool in tools}
    run.show(f"tools listed: {', '.join(schemas)}")
    template = native_source("agents/keynote_prompt.md")  # the specification's prompt
    system = template.replace("{tools_description}", _describe_tools(tools))
    run.log(f"model {run.choice.name}, system prompt: {system}")
    was_corrected, problem = False, f"the model gave no FINAL_ANSWER in {max_iterations} turns"
    for _ in range(max_iterations):
        prompt = run.query
        if run.turns:
            prompt += f"\n\nYour calls so far, with their results:\n{run.transcript()}"
            prompt += "\n\nRespond with the next single line."
        run.log(f"prompt: {prompt}")
        text = ask_model(this_desktop(), [], prompt, choice=run.choice, system=system).text
        run.show(f"LLM => {text}")
        keyword, rest = read_reply(text)
        if keyword == "FUNCTION_CALL":
            _call_tool(run, server, schemas, rest)
        elif not keyword:
            run.add_turn(f"(you replied) {clean_text(text)}", NO_CALL_FOUND)
        else:
            run.log(f"FINAL_ANSWER parsed: {rest}")
            if run.written_text():
                return
            if was_corrected:
                problem = f"the model reports that it is done, but {MISSING}"
                break
            was_corrected = True
            run.add_turn(f"FINAL_ANSWER: {clean_text(rest)}", NOT_DONE)
    hint = f"see {run.log_path}, or use another model"
    raise PeekabooError(ErrorCode.AI_PROVIDER_ERROR, problem, hint, details=run.transcript())


def _describe_tools(tools: list[Any]) -> str:
    lines = []
    for number, tool in enumerate(tools, 1):
        properties = tool.input_schema.get("properties", {}).items()
        parameters = [f"{name}: {schema['type']} ({schema['description']})" for name, schema in properties]
        lines.append(f"{number}. {tool.name}({', '.join(parameters)}) - {tool.description}")
    return "\n".join(lines)


def read_reply(reply: str) -> tuple[str, str]:
    """Return keyword and rest of the first FUNCTION_CALL or FINAL_ANSWER line, or two empty texts."""
    line = _ACTION_LINE.search(reply)
    if not line:
        return "", ""
    rest: str = line["rest"]
    if line["mark"]:
        rest = rest.rstrip().removesuffix(line["mark"][::-1])
    return line["keyword"], rest.lstrip()


def _call_tool(run: DrawingRun, server: McpClient, schemas: dict[str, dict[str, Any]], call: str) -> None:
    run.log(f"FUNCTION_CALL parsed: {call}")
    line = f"FUNCTION_CALL: {call}"
    name, *values = call.split("|")
    name = name.strip()
    if name not in schemas:
        return run.add_turn(line, f"Unknown tool {clean_text(name, 60)}. Available: {', '.join(schemas)}")
    try:
        arguments = convert_arguments(values, schemas[name])
    except PeekabooError as e:
        return run.add_turn(line, f"ERROR: {name}: {e.sentence()}")
    run.add_turn(line, server.call(name, arguments).text, "tool result")


def convert_arguments(values: list[str], schema: dict[str, Any]) -> dict[str, Any]:
    """Convert the parts of a FUNCTION_CALL by the tool's inputSchema. Raises INVALID_ARGUMENT."""
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    if values == [""] and not properties:  # `open_keynote|`
        values = []
    if not len(schema.get("required", ())) <= len(values) <= len(properties):
        names = "|".join(properties) or "none"
        hint = "write ¦ where a text contains |" if len(values) > len(properties) > 0 else ""
        raise invalid(f"it takes {len(properties)} parameter(s): {names}; you gave {len(values)}", hint)
    arguments: dict[str, Any] = dict(zip(properties, values))
    for name, value in arguments.items():
        kind = properties[name].get("type")
        if kind in ("integer", "number"):
            try:
                number = float(value)
                if kind == "integer" and number % 1:
                    raise ValueError
                is_whole = kind == "integer" or name in ("x", "y", "width", "height")
                arguments[name] = round(number) if is_whole else number
            except (ValueError, OverflowError):  # OverflowError: infinity
                raise invalid(f"{name} is {value[:40]!r}, not a valid {kind}", "write only digits") from None
    return arguments
