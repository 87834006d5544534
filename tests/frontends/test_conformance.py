"""Server messages conform to each protocol version; tools/list is pinned.

mcp_types has the models of each version, generated from the protocol's schemas. They ignore unknown keys, and
the versions up to 2025-11-25 share one set. So each message must also come back from its model unchanged, and
tables here list the features that older versions lack.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Optional

import pytest
from fake_ai import FakeAI
from fakemac import FakeMac
from jsonschema import Draft202012Validator
from macs import mac_environment
from mcp_server import Server, initialized
from mcp_types import methods
from mcp_types._v2025_11_25 import JSONRPCErrorResponse as OldError
from mcp_types._v2026_07_28 import JSONRPCErrorResponse as NewError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter
from worlds import clean_environment

PINNED = Path(__file__).with_name("tools_list.json")
Message = dict[str, Any]

# the first version with each kind of content; clients refuse unknown kinds
CONTENT_SINCE = {"text": "2024-11-05", "image": "2024-11-05", "resource_link": "2025-06-18"}


class Recorded(Server):
    """A session in one protocol version. It records the method of each request."""

    def __init__(self, environment: dict[str, str], version: str) -> None:
        super().__init__("package", environment)
        self.version = version
        self._methods: dict[int, str] = {}
        self.listed: list[Message] = []
        self.answers: dict[str, Message] = {}

    def send(self, method: str, params: Optional[Message] = None, is_request: bool = True) -> int:
        about: Message = {"progressToken": 7} if method == "tools/call" else {}
        if self.version in MODERN_PROTOCOL_VERSIONS:
            prefix = "io.modelcontextprotocol"
            about[f"{prefix}/protocolVersion"] = self.version
            about[f"{prefix}/clientInfo"] = {"name": "test", "version": "1"}
            about[f"{prefix}/clientCapabilities"] = {}
        number = super().send(method, {**(params or {}), "_meta": about}, is_request)
        if is_request:
            self._methods[number] = method
        return number

    @property
    def messages(self) -> list[Message]:
        return [json.loads(line) for line in self.lines]

    def problems_of(self, message: Message) -> list[str]:
        """Check a server message against this version's models; return the problems."""
        if message.get("jsonrpc") != "2.0":
            return [f"no JSON-RPC: {message}"]
        if "method" in message:
            return mismatches(methods.SERVER_NOTIFICATIONS.get((message["method"], self.version)), message)
        if "error" in message:
            return mismatches(NewError if self.version in MODERN_PROTOCOL_VERSIONS else OldError, message)
        method = self._methods[message["id"]]
        kinds = [part["type"] for part in message["result"].get("content", [])]
        foreign = [kind for kind in kinds if CONTENT_SINCE[kind] > self.version]
        extra = [key for key in message if key not in ("jsonrpc", "id", "result")]
        problems = mismatches(methods.SERVER_RESULTS.get((method, self.version)), message["result"])
        return [*problems, *(f"{method}: {kind} is not of this version" for kind in foreign), *extra]


def mismatches(model: Any, message: Any) -> list[str]:
    """Return the problem if a message does not come back from its model unchanged."""
    if model is None:
        return [f"unknown to this version: {message}"]
    adapter = TypeAdapter(model)
    again = adapter.dump_python(
        adapter.validate_python(message, by_name=False), by_alias=True, mode="json", exclude_unset=True
    )
    return [] if again == message else [f"{message} came back as {again}"]


@pytest.fixture(scope="module")
def gmail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with an OAuth client; this offers the mail tool."""
    folder = tmp_path_factory.mktemp("gmail")
    (folder / "credentials.json").write_text("{}")
    return folder


@pytest.fixture(scope="module", params=KNOWN_PROTOCOL_VERSIONS)
def session(request: pytest.FixtureRequest, mac: FakeMac, ai: FakeAI, gmail: Path) -> Iterator[Recorded]:
    """Request each kind of reply once: text, images, links, tool and protocol errors, empty lists."""
    version = request.param
    environment = mac_environment(mac, **ai.env("ollama", "llava:latest"), PEEKABOO_GMAIL_FOLDER=str(gmail))
    with closing(Recorded(environment, version)) as session:
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            assert session.shake_hands(version)["protocolVersion"] == version
            session.ask("ping")
        else:
            assert version in session.ask("server/discover")["result"]["supportedVersions"]
        session.listed = session.ask("tools/list")["result"]["tools"]
        for method in ("resources/list", "resources/templates/list", "prompts/list"):
            session.ask(method)
        calls = {
            name: session.start_call(tool, **arguments)
            for name, (tool, arguments, _) in calls_of(version).items()
        }
        session.answers = {name: session.answer_to(number)["result"] for name, number in calls.items()}
        session.ask("resources/list")  # lists the file of "a file"
        session.ask("resources/read", {"uri": session.answers["a file"]["structuredContent"]["uri"]})
        session.ask("no/such/method")
        session.ask("resources/read", {"uri": "file:///no/such/resource"})
        session.ask("prompts/get", {"name": "no such prompt"})
        session.ask("tools/call")
        assert (session.end(), session.errors) == (0, "")
        yield session


MULTI = {"app": "Safari", "mode": "multi", "return_data": True, "max_dimension": 64}
CALLS: dict[str, tuple[str, Message, str]] = {
    # name: tool, arguments, the first word of an error
    "a list": ("list", {"app": "Safari", "include_window_details": ["ids", "bounds"]}, ""),
    "a picture": ("take_window_screenshot", {"window_id": 1090}, ""),
    "a file": ("screenshot_app_window", {"appName": "Calculator"}, ""),
    "an app that is not there": ("image", {"app": "Zzzz"}, "APP_NOT_FOUND"),
    "a bad argument": ("click", {"window_id": "x"}, "INVALID_ARGUMENT"),
    "an unknown tool": ("no_such_tool", {}, "INVALID_ARGUMENT"),
}
# the older versions share the models of the newest one with a handshake; it alone gets these calls
MORE_CALLS: dict[str, tuple[str, Message, str]] = {
    "text alone": ("list", {"item_type": "server_status"}, ""),
    "pictures": ("image", MULTI, ""),
    "an analysis": ("image", {"app": "Calculator", "max_dimension": 64, "question": "?"}, ""),
    "a program": ("peekaboo_exec", {"args": ["--version"]}, ""),
    "a found text": ("find_text", {"window_id": 1090, "text": "Search"}, ""),
    "a refusal by its grammar": ("send_email", {"to": "nobody", "subject": "s", "body": "b"}, "ERROR"),
}
HAVE_OWN_MODELS = (HANDSHAKE_PROTOCOL_VERSIONS[-1], *MODERN_PROTOCOL_VERSIONS)


def calls_of(version: str) -> dict[str, tuple[str, Message, str]]:
    return {**CALLS, **MORE_CALLS} if version in HAVE_OWN_MODELS else CALLS


def test_every_message_conforms_to_the_protocol(session: Recorded) -> None:
    assert len(session.messages) >= 14
    assert [problem for message in session.messages for problem in session.problems_of(message)] == []
    # an error instead of an image would conform, too
    errors = {
        name: answer["isError"] * answer["content"][0]["text"].partition(":")[0]
        for name, answer in session.answers.items()
    }
    assert errors == {name: error for name, (_, _, error) in calls_of(session.version).items()}


NOT_ON_X11 = """peekaboo_exec open_keynote get_slide_size draw_rectangle add_text_in_keynote screenshot_slide
    send_email"""  # the last needs an OAuth client


def in_lines(tool: Message) -> dict[str, str]:
    """Flatten a listed tool: one line per key, one per parameter with its help first."""
    tool = json.loads(json.dumps(tool, sort_keys=True))
    parameters = tool["inputSchema"].pop("properties")
    helps = {name: parameter.pop("description") for name, parameter in parameters.items()}
    lines = {f"({name})": f"{helps[name]} {parameter}" for name, parameter in parameters.items()}
    return {**{key: str(value) for key, value in tool.items() if key != "name"}, **lines}


def as_document(tools: list[Message]) -> str:
    """Return the listed tools; a line that several tools have is shown once, with their names."""
    listed = {tool["name"]: in_lines(tool) for tool in tools}
    having: dict[tuple[str, str], list[str]] = {}
    for name, lines in listed.items():
        for line in lines.items():
            having.setdefault(line, []).append(name)
    shared = {" ".join(line): " ".join(names) for line, names in having.items() if names[1:]}
    own = {
        name: {key: lines[key] for key in lines if not having[key, lines[key]][1:]}
        for name, lines in listed.items()
    }
    return json.dumps({"of several tools": shared, **own}, ensure_ascii=False, indent=1) + "\n"


@pytest.fixture(scope="module")
def on_mac(mac: FakeMac, gmail: Path) -> list[Message]:
    with initialized("package", mac_environment(mac, PEEKABOO_GMAIL_FOLDER=str(gmail))) as server:
        return server.ask("tools/list")["result"]["tools"]


def test_tools_list_on_a_mac_is_the_pinned_one_always(session: Recorded, on_mac: list[Message]) -> None:
    """Quote the specification in the descriptions and parameter help of image, analyze and list."""
    document = as_document(on_mac)
    is_pinned = document == PINNED.read_text(encoding="utf-8")
    assert is_pinned, f"tools/list changed; if intended, replace {PINNED.name} with:\n{document}"
    assert session.listed == on_mac


def test_tools_list_on_x11_is_that_of_a_mac_without_its_features(
    display: str, tmp_path: Path, on_mac: list[Message]
) -> None:
    environment = clean_environment(tmp_path, DISPLAY=display, PEEKABOO_ALWAYS_LOAD="0")
    with initialized("single file", environment) as server:
        tools = server.ask("tools/list")["result"]["tools"]
    listed = {tool["name"]: in_lines(tool) for tool in tools}
    expected = {tool["name"]: in_lines(tool) for tool in on_mac if tool["name"] not in NOT_ON_X11.split()}
    always_loaded = [name for name, tool in expected.items() if tool.pop("_meta", None)]
    assert listed == expected
    sizes = {tool["name"]: size_of(tool) for tool in tools}
    assert sum(sizes.values()) <= min(21_000, 1_050 * len(sizes)), "the definitions are too long for a model"
    assert always_loaded == LOOP.split()
    prefix = '{"name":"mcp__peekaboo__","description":"","input_schema":}'  # as Claude Code sends them
    assert sum(size_of(tool, prefix) for tool in tools if tool["name"] in always_loaded) <= 5_000, sizes


LOOP = "list_windows take_window_screenshot click click_text type_text press_key"


def size_of(tool: Message, prefix: str = "") -> int:
    schema = json.dumps(tool["inputSchema"], ensure_ascii=False, separators=(",", ":"))
    return len(prefix + tool["name"] + tool["description"] + schema)


def schemas_in(schema: Any) -> list[Message]:
    """Return every nested schema; property names are not schemas."""
    found: list[Message] = []
    json.loads(json.dumps(schema), object_hook=lambda part: found.append(part) or part)
    return [part for part in found if isinstance(part.get("type"), str)]


def test_tools_list_has_valid_and_plain_schemas(on_mac: list[Message]) -> None:
    """Serve strict clients, and clients that show a model only the descriptions."""
    assert sum(map(size_of, on_mac)) <= 21_000
    for tool in on_mac:
        Draft202012Validator.check_schema(tool["inputSchema"])
        for schema in schemas_in(tool["inputSchema"]):
            place = f"{tool['name']}: {schema}"
            is_step = tool["name"] == "run_steps" and "properties" not in schema
            assert schema["type"] != "object" or schema["additionalProperties"] is is_step, place
            assert schema["type"] != "array" or schema["items"], place
            if "default" in schema:
                assert Draft202012Validator(schema).is_valid(schema["default"]), place
                assert "default" in schema["description"].lower(), place
