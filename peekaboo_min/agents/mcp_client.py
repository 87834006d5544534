"""Call our own MCP server over stdio, without async."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Optional

from ..core.errors import ErrorCode, PeekabooError
from ..core.settings import child_environment
from ..system.programs import mcp_version, own_command

_LONGEST_CALL_S = 150.0  # a Keynote tool may take 120 s


class ToolAnswer(NamedTuple):
    """A tool's result."""

    text: str
    data: dict[str, Any]  # may be empty
    images: tuple[bytes, ...] = ()
    error: Optional[PeekabooError] = None  # None for a success


class McpClient(NamedTuple):
    """A synchronous client of one server: anyio's portal and the SDK's client."""

    portal: Any
    client: Any

    def tools(self) -> list[Any]:
        """Return the server's tools as SDK objects. Raises PROGRAM_FAILED."""
        return list(self._request("list_tools").tools)

    def call(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call a tool and return its result, which may be an error. Raises PROGRAM_FAILED."""
        result = self._request("call_tool", name, arguments)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        images = tuple(base64.b64decode(block.data) for block in result.content if block.type == "image")
        # a result with images has its data in the last line of its text
        data = json.loads(text.rpartition("\n")[2]) if images else dict(result.structured_content or {})
        error = None
        if result.is_error:
            code = ErrorCode.__members__.get(result.meta["backend_error_code"], ErrorCode.INTERNAL_ERROR)
            error = PeekabooError(code, result.meta["message"], result.meta["next_step"])
        return ToolAnswer(text, data, images, error)

    def _request(self, method: str, *arguments: Any) -> Any:
        from mcp import MCPError

        try:
            return self.portal.call(getattr(self.client, method), *arguments)
        except (MCPError, OSError) as e:
            message = f"the MCP server failed in {arguments[0] if arguments else method}: {e}"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint="see its log") from e


@contextmanager
def own_server(extra_environment: dict[str, str]) -> Iterator[McpClient]:
    """Run our own server as a child during the block, whose exceptions pass through unchanged.

    Raises INVALID_ARGUMENT if the package mcp is missing, PROGRAM_FAILED if the server does not start.
    """
    mcp_version()
    from anyio.from_thread import start_blocking_portal
    from mcp import Client, StdioServerParameters

    argv = own_command()
    environment = {**child_environment(), **extra_environment}
    parameters = StdioServerParameters(command=argv[0], args=argv[1:], env=environment)
    # legacy: the client starts with one request; otherwise it first asks which protocol the server speaks
    client = Client(parameters, read_timeout_seconds=_LONGEST_CALL_S, mode="legacy")
    with start_blocking_portal() as portal:
        session = portal.wrap_async_context_manager(client)
        try:
            session.__enter__()
        except Exception as e:
            message = f"our own MCP server did not start: {type(e).__name__}"
            raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint="see its stderr above") from e
        try:
            yield McpClient(portal, client)
        finally:  # no `with`: the client's task group would wrap the block's exception in an ExceptionGroup
            with suppress(Exception):
                session.__exit__(None, None, None)
