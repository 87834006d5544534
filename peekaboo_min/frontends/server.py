"""The MCP server: translates between the protocol and the tools."""

from __future__ import annotations

import functools
import itertools
import json
import threading
from base64 import b64encode
from mimetypes import guess_type
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import CallToolResult, Resource, Tool, ToolAnnotations
from pydantic import ConfigDict, Field, ValidationError, create_model

from .. import __version__
from ..core.call import use_cancel_token, use_progress_reporter
from ..core.errors import ErrorCode, PeekabooError, invalid
from ..core.log import log_debug, log_error
from ..core.models import Result
from ..core.settings import settings
from ..core.text import encodable, outgoing_data
from ..desktop.select import this_desktop
from ..system.saved_images import read_saved_image, saved_images
from ..tools.status import SERVER_NAME, initial_status
from ..tools.table import TOOLS, Effect, Row, offered_tools
from .arguments import given_arguments, read_signature

# Claude Code ends the connection at a message above 16 MB; Codex hangs at 24 MB.
_VALUE_CAP = 200_000  # characters of a text, and of one value of the data
_SHOWS_STATUS = ("image", "analyze", "list")
# Claude Code loads these at its start; of the others, it shows a model only the names before a search
_LOOP = ("list_windows", "take_window_screenshot", "click", "click_text", "type_text", "press_key")
_FIVE_MINUTES = CacheHint(ttl_ms=300_000)  # private, because the tools depend on the environment
# a model cannot export a variable; its user can change the configuration
_HOW_TO_SET_DISPLAY = (
    'set DISPLAY in this server\'s configuration, like "env": {"DISPLAY": ":0"}, then restart the server; '
    "`peekaboo-min config CLIENT` in a terminal of the desktop prints one that works"
)
_HINT_NAMES = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")
_HINTS = {  # destructive and idempotent mean nothing for a read-only tool
    Effect.LOOKS: (True, None, None, False),
    Effect.ASKS: (True, None, None, True),
    Effect.SAVES: (False, False, True, False),
    Effect.SETS: (False, False, True, False),
    Effect.ACTS: (False, True, False, True),
    Effect.SENDS: (False, True, False, True),
}


class PeekabooServer(MCPServer):
    """Answers every call; errors become text for the model. Raises INVALID_ARGUMENT for bad settings."""

    def __init__(self, instructions: str) -> None:
        super().__init__(
            SERVER_NAME,
            version=__version__,
            instructions=instructions,
            cache_hints={"tools/list": _FIVE_MINUTES, "server/discover": _FIVE_MINUTES},
            subscriptions=False,
        )
        for method in ("prompts/list", "prompts/get"):  # the SDK announces prompts even if there are none
            self._lowlevel_server._request_handlers.pop(method)
        self._tools = {tool.name: tool for tool in offered_tools()}
        self._models = {name: _arguments_model(tool) for name, tool in self._tools.items()}
        self._has_sent_status = False

    async def list_tools(self) -> list[Tool]:
        return [_listed_tool(tool, self._models[name]) for name, tool in self._tools.items()]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> CallToolResult:
        log_debug(f"call {name} ({', '.join(sorted(arguments))})")
        async with anyio.create_task_group() as group:
            group.start_soon(_beat, context, reports := [name])
            use_progress_reporter(reports.append)
            message = await self._message(name, arguments)
            group.cancel_scope.cancel()
        return CallToolResult.model_validate(message)

    async def list_resources(self) -> list[Resource]:
        return [
            Resource(uri=path.as_uri(), name=encodable(path.name), mime_type=guess_type(path)[0], size=size)
            for path, size in itertools.islice(saved_images(), 50)
        ]

    async def read_resource(self, uri: Any, context: Any = None) -> list[ReadResourceContents]:
        return [await anyio.to_thread.run_sync(_resource_content, str(uri))]

    async def _message(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        tool = self._tools.get(name)
        try:
            if tool is None:
                known = f"the tools are {', '.join(self._tools)}"
                raise invalid(f"there is no tool called {name[:60]!r}", known)
            result = await _run(tool, self._models[name], arguments)
        except Exception as e:
            has_result_grammar = tool is not None and tool.group in ("keynote", "mail")
            return error_message(_as_error(e, name), has_result_grammar)
        if result.failure:
            _as_error(result.failure, name)
        message = success_message(result)
        is_status = arguments.get("item_type") == "server_status"
        if name in _SHOWS_STATUS and not (self._has_sent_status or is_status or result.failure):
            self._has_sent_status = True
            message["content"][0]["text"] += initial_status()
            if "structuredContent" in message:
                message["structuredContent"]["summary"] += initial_status()
        return message


async def _beat(context: Any, reports: list[str]) -> None:
    """Report the job's last progress message every second; the SDK sends it if the client gave a token."""
    for count in itertools.count(1):
        await anyio.sleep(1.0)
        await context.report_progress(count, None, reports[-1])


async def _run(tool: Row, arguments_model: Any, arguments: dict[str, Any]) -> Result:
    """Run a tool in a thread; a cancelled call kills its programs. Raises ValidationError, PeekabooError."""
    function = tool.load()
    given = arguments_model.model_validate(given_arguments(read_signature(function), arguments))
    token = threading.Event()
    use_cancel_token(token)
    try:
        # drop the schema's defaults: if no format is given, the function takes it from the path
        arguments = {name: value for name, value in given if name in given.model_fields_set}
        work = functools.partial(tool.call, function, arguments)
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except BaseException:
        token.set()
        raise


def _arguments_model(tool: Row) -> Any:
    config = ConfigDict(extra="forbid", allow_inf_nan=False)
    fields: dict[str, Any] = {}
    for parameter in read_signature(tool.load()).parameters:
        default = ... if parameter.is_required else parameter.default
        fields[parameter.name] = parameter.annotation, Field(default, description=parameter.help)
    return create_model(tool.name, __config__=config, **fields)


def _listed_tool(tool: Row, arguments_model: Any) -> Tool:
    hints: dict[str, Any] = dict(zip(_HINT_NAMES, _HINTS[tool.effect]))
    return Tool(
        name=tool.name,
        title=tool.title,
        description=" ".join(read_signature(tool.load()).description.split()),
        input_schema=plain_schema(arguments_model.model_json_schema()),
        annotations=ToolAnnotations(**hints),
        _meta={"anthropic/alwaysLoad": True} if tool.name in _LOOP and settings().always_load else None,
    )


def _resource_content(uri: str) -> ReadResourceContents:
    try:
        image = read_saved_image(uri)
        if len(image.data) > 11_000_000:  # Claude Code ends the connection at 16 MB of base64
            message = f"{image.source_path} is too large for a message"
            raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, "capture it with a max_dimension")
    except PeekabooError as e:
        log_error(f"resources/read failed: {e.message}")
        raise ResourceNotFoundError(encodable(e.sentence())) from e
    return ReadResourceContents(image.data, image.info.mime_type)


def _as_error(error: Exception, name: str) -> PeekabooError:
    if isinstance(error, ValidationError):
        rows = [(".".join(map(str, row["loc"])), row["msg"]) for row in error.errors()[:5]]
        problems = "; ".join(f"{parameter or 'arguments'}: {problem}" for parameter, problem in rows)
        names = ", ".join(parameter.name for parameter in read_signature(TOOLS[name].load()).parameters)
        error = invalid(f"{name}: {problems}", f"call it again with arguments that match its schema: {names}")
    if isinstance(error, PeekabooError):
        log_error(f"{name[:60]} failed: {error.code_name}: {error.message} {error.details}".rstrip())
        if error.code is ErrorCode.NO_GUI_SESSION and "DISPLAY" in this_desktop().variables:
            error.hint = _HOW_TO_SET_DISPLAY
        return error
    log_error(f"{name}: unexpected {type(error).__name__}: {error}", exc_info=True)
    return PeekabooError(ErrorCode.INTERNAL_ERROR, f"{name} failed unexpectedly")


def outgoing_text(text: str, cap: int = _VALUE_CAP) -> str:
    """Return the text cut to `cap` characters and encodable as UTF-8."""
    return encodable(text if len(text) <= cap else f"{text[:cap]}... (cut)")


def success_message(result: Result) -> dict[str, Any]:
    """Return a reply of text, with images or with structured content; with both, clients drop the images.

    A failed result becomes an error. The text and images of the finished part follow it.
    """
    images = _images(result)
    notes = [f"note: {message}" for message in result.messages]
    if left_out := len(result.images) - len(images):
        notes.append(f"note: {left_out} image(s) were left out, because the result would be too large")
    data = {} if result.is_text_only else outgoing_data(result.data)
    for name, value in data.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(text) > _VALUE_CAP:  # a value that is not a string is cut as JSON text
            data[name] = outgoing_text(text)
            notes.append(f"note: {name} is cut, because it was too large")

    # a model's answer is the result's text and a part of its data: show it once
    shown = {key: value for key, value in data.items() if result.data[key] != result.text}
    head = result.summary if data and len(shown) == len(data) else result.text
    summary, text = ("\n".join(map(outgoing_text, [first, *notes])) for first in (head, result.text))
    if data and not result.is_text_enough:
        compact = json.dumps(shown, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text = f"{summary}\n{compact}"
    content = [{"type": "text", "text": text}, *images]
    message: dict[str, Any] = {"content": content, "isError": False}
    if result.is_text_only and "note" in result.data:
        message["_meta"] = {"note": result.data["note"]}
    if data and not images:
        message["structuredContent"] = {"summary": summary, **data}
    if result.failure:
        error = error_message(result.failure)
        return {**message, **error, "content": [*error["content"], *content]}
    return message


def _images(result: Result) -> list[dict[str, Any]]:
    images: list[dict[str, Any]] = []
    size = 0
    for image in result.images:
        size += len(image.data) * 4 // 3
        if size > 10_000_000 and images:
            break
        encoded = b64encode(image.data).decode("ascii")
        images.append({"type": "image", "data": encoded, "mimeType": image.info.mime_type})
    return images


def error_message(error: PeekabooError, has_result_grammar: bool = False) -> dict[str, Any]:
    """Return an error: `CODE: what is wrong. Next step: ...`, or `ERROR: ...` for a result grammar."""
    name = encodable(error.code_name)[:100]
    text = error.message_for_model("ERROR" if has_result_grammar else name)
    parts = {"message": outgoing_text(error.message, 2_000), "next_step": outgoing_text(error.hint, 2_000)}
    return {
        "content": [{"type": "text", "text": outgoing_text(text, 4_000)}],
        "isError": True,
        # for programs: the text's parts, so that nobody has to split it
        "_meta": {"backend_error_code": name, **parts},
    }


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove titles, references and null alternatives, which strict clients refuse, from a JSON schema."""
    shared = schema.pop("$defs", {})

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            node = {"additionalProperties": False, **shared[node.pop("$ref").split("/")[-1]], **node}
        node = {key: plain(value) for key, value in node.items() if key != "title" or isinstance(value, dict)}
        if choices := ([choice for choice in node.pop("anyOf", []) if choice != {"type": "null"}]):
            node = {**(choices[0] if len(choices) == 1 else {"anyOf": choices}), **node}
        if node.get("default", "") is None:
            node.pop("default")  # an optional argument is left out, not sent as null
        return node

    result: dict[str, Any] = plain({**schema, "additionalProperties": False})
    return result
