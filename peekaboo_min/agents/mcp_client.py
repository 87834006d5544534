"""Talk to an MCP server over stdio, without async."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import child_environment
from ..system.programs import how_to_install, own_command

_LONGEST_CALL_S = 150.0  # Keynote's own limit is 120


@dataclass(frozen=True)
class ToolAnswer:
    """A tool's answer: `data` is the JSON in its text (empty when there is none), images are bytes."""

    text: str
    data: dict[str, Any]
    images: tuple[bytes, ...]
    is_error: bool
    code: str = ""
    """The error's code, from `_meta.backend_error_code`."""

    def error(self) -> PeekabooError:
        """The server's error as ours, to be raised."""
        code = ErrorCode(self.code) if self.code in ErrorCode.__members__ else ErrorCode.INTERNAL_ERROR
        message, _, hint = self.text.removeprefix(f"{self.code}: ").partition(". Next step: ")
        return PeekabooError(code, message, hint)


@dataclass(frozen=True)
class OfferedTool:
    """A tool as the server lists it."""

    name: str
    description: str
    schema: dict[str, Any]


class McpClient:
    """The SDK's client of a server, called from a program without async."""

    def __init__(self, portal: Any, client: Any) -> None:
        self._portal = portal
        self._client = client

    def tools(self) -> list[OfferedTool]:
        """The tools that the server offers. Raises PROGRAM_FAILED."""
        listed = self._request("list_tools")
        return [OfferedTool(tool.name, tool.description or "", tool.input_schema) for tool in listed.tools]

    def call(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call a tool. A tool's own error is an answer. Raises PROGRAM_FAILED."""
        answer = self._request("call_tool", name, arguments)
        text = "\n".join(block.text for block in answer.content if block.type == "text")
        images = tuple(base64.b64decode(block.data) for block in answer.content if block.type == "image")
        code = str((answer.meta or {}).get("backend_error_code", ""))
        return ToolAnswer(
            text, _data_in(text, answer.structured_content), images, bool(answer.is_error), code
        )

    def _request(self, method: str, *arguments: Any) -> Any:
        """The client's answer. Raises PROGRAM_FAILED for a server that died or does not answer in time."""
        from mcp import MCPError

        try:
            return self._portal.call(getattr(self._client, method), *arguments)
        except (MCPError, OSError) as e:
            message = f"the MCP server failed in {arguments[0] if arguments else method}: {e}"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint="see its log") from e


def _data_in(text: str, structured: Any) -> dict[str, Any]:
    """The data of an answer: its structured content, else the JSON in the last line of its text."""
    if structured is not None:
        return dict(structured)
    last_line = text.rpartition("\n")[2]
    if last_line.startswith("{"):
        with suppress(ValueError):
            return dict(json.loads(last_line))
    return {}


@contextmanager
def own_server(extra_environment: dict[str, str]) -> Iterator[McpClient]:
    """Our own server as a child while the `with` block runs, whose exceptions pass through unchanged.

    Raises INVALID_ARGUMENT without the package mcp, PROGRAM_FAILED for a server that does not start or dies.
    """
    failure: Optional[BaseException] = None
    try:
        with _session(extra_environment) as client:
            try:
                yield client
            except BaseException as e:  # the client's task groups would wrap it in a group
                failure = e
    except ModuleNotFoundError as e:
        message = "the agent is an MCP client and needs the package mcp, and Python 3.10 or newer"
        raise PeekabooError(ErrorCode.INVALID_ARGUMENT, message, hint=how_to_install()) from e
    except Exception as e:
        if not failure:  # after a failure the server's end adds nothing
            message = f"our own MCP server did not start, or died: {type(e).__name__}"
            hint = "see its output above, and its log"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint=hint) from e
    if failure:
        raise failure


@contextmanager
def _session(extra_environment: dict[str, str]) -> Iterator[McpClient]:
    """A session with our own server, which ends when its stdin is closed."""
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters

    argv = own_command()
    environment = {**child_environment(), **extra_environment}
    parameters = StdioServerParameters(command=argv[0], args=argv[1:], env=environment)
    client = Client(parameters, read_timeout_seconds=_LONGEST_CALL_S, mode="legacy")  # one question, not two
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield McpClient(portal, client)
