"""What the server sends, against the protocol: every message for each version, the pinned tools/list.

The models of each version come with mcp_types, generated from the protocol's schemas. They ignore what they
do not know, and the versions up to 2025-11-25 share one set: so each message must also come back from its
model unchanged, and what an older version has not is in tables here.
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
from mcp_server import Server, serving
from mcp_types import methods
from mcp_types._v2025_11_25 import JSONRPCErrorResponse as OldError
from mcp_types._v2026_07_28 import JSONRPCErrorResponse as NewError
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    KNOWN_PROTOCOL_VERSIONS,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import TypeAdapter
from worlds import clean_environment

PINNED = Path(__file__).with_name("tools_list.json")
Message = dict[str, Any]

# Kinds of content by the version that brought them; a client refuses a kind that it does not know.
CONTENT_SINCE = {"text": "2024-11-05", "image": "2024-11-05", "resource_link": "2025-06-18"}


class Recorded(Server):
    """A session in one version of the protocol; it keeps which method each answer belongs to."""

    def __init__(self, environment: dict[str, str], version: str) -> None:
        super().__init__("package", environment)
        self.version = version
        self._asked: dict[int, str] = {}
        self.listed: list[Message] = []
        self.answers: dict[str, Message] = {}

    def send(self, method: str, params: Optional[Message] = None, is_request: bool = True) -> int:
        about: Message = {"progressToken": 7} if method == "tools/call" else {}
        if self.version in MODERN_PROTOCOL_VERSIONS:
            own = "io.modelcontextprotocol"
            about[f"{own}/protocolVersion"] = self.version
            about[f"{own}/clientInfo"] = {"name": "test", "version": "1"}
            about[f"{own}/clientCapabilities"] = {}
        number = super().send(method, {**(params or {}), "_meta": about}, is_request)
        if is_request:
            self._asked[number] = method
        return number

    @property
    def messages(self) -> list[Message]:
        return [json.loads(line) for line in self.lines]

    def problems_of(self, message: Message) -> list[str]:
        """What is wrong with a message that was sent, by this version's models."""
        if message.get("jsonrpc") != "2.0":
            return [f"no JSON-RPC: {message}"]
        if "method" in message:
            return unlike(methods.SERVER_NOTIFICATIONS.get((message["method"], self.version)), message)
        if "error" in message:
            return unlike(NewError if self.version in MODERN_PROTOCOL_VERSIONS else OldError, message)
        method = self._asked[message["id"]]
        kinds = [part["type"] for part in message["result"].get("content", [])]
        foreign = [kind for kind in kinds if CONTENT_SINCE[kind] > self.version]
        extra = [key for key in message if key not in ("jsonrpc", "id", "result")]
        told = unlike(methods.SERVER_RESULTS.get((method, self.version)), message["result"])
        return [*told, *(f"{method}: {kind} is not of this version" for kind in foreign), *extra]


def unlike(model: Any, message: Any) -> list[str]:
    """Why a message is not exactly what a model describes: it must come back from it unchanged."""
    if model is None:
        return [f"unknown to this version: {message}"]
    adapter = TypeAdapter(model)
    again = adapter.dump_python(
        adapter.validate_python(message, by_name=False), by_alias=True, mode="json", exclude_unset=True
    )
    return [] if again == message else [f"{message} came back as {again}"]


# one session for each version -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gmail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an OAuth client, so that mail is offered."""
    folder = tmp_path_factory.mktemp("gmail")
    (folder / "credentials.json").write_text("{}")
    return folder


@pytest.fixture(scope="module", params=KNOWN_PROTOCOL_VERSIONS)
def session(request: pytest.FixtureRequest, mac: FakeMac, ai: FakeAI, gmail: Path) -> Iterator[Recorded]:
    """Each kind of answer once: texts, pictures, links, errors of tools and of the protocol, empty lists."""
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
        session.ask("no/such/method")
        session.ask("resources/read", {"uri": "file:///no/such/resource"})
        session.ask("prompts/get", {"name": "no such prompt"})
        session.ask("tools/call")
        assert (session.end(), session.errors) == (0, "")
        yield session


MULTI = {"app": "Safari", "mode": "multi", "return_data": True, "max_dimension": 64}
CALLS: dict[str, tuple[str, Message, bool]] = {
    # name: the tool, its arguments, whether it is refused
    "a list": ("list", {"app": "Safari", "include_window_details": ["ids", "bounds"]}, False),
    "a picture": ("take_window_screenshot", {"window_id": 1090}, False),
    "a file": ("screenshot_app_window", {"appName": "Calculator"}, False),
    "an app that is not there": ("image", {"app": "Zzzz"}, True),
    "a bad argument": ("click", {"window_id": "x"}, True),
    "an unknown tool": ("no_such_tool", {}, True),
}
# The models of the older versions are those of the newest that shakes hands: these need not be asked of each.
MORE_CALLS: dict[str, tuple[str, Message, bool]] = {
    "text alone": ("list", {"item_type": "server_status"}, False),
    "pictures": ("image", MULTI, False),
    "an analysis": ("image", {"app": "Calculator", "max_dimension": 64, "question": "?"}, False),
    "a program": ("peekaboo_exec", {"args": ["--version"]}, False),
    "a found text": ("find_text", {"window_id": 1090, "text": "Search"}, False),
    "a refusal by its grammar": ("send_email", {"to": "nobody", "subject": "s", "body": "b"}, True),
}
HAVE_OWN_MODELS = (HANDSHAKE_PROTOCOL_VERSIONS[-1], *MODERN_PROTOCOL_VERSIONS)


def calls_of(version: str) -> dict[str, tuple[str, Message, bool]]:
    return {**CALLS, **MORE_CALLS} if version in HAVE_OWN_MODELS else CALLS


def test_messages_are_of_the_protocols_shape(session: Recorded) -> None:
    assert len(session.messages) >= 14
    assert [problem for message in session.messages for problem in session.problems_of(message)] == []
    # otherwise an error would conform in a picture's place
    are_refused = {name: answer["isError"] for name, answer in session.answers.items()}
    assert are_refused == {name: is_refused for name, (_, _, is_refused) in calls_of(session.version).items()}


# tools/list -------------------------------------------------------------------------------------------------

NOT_ON_X11 = """peekaboo_exec open_keynote get_slide_size draw_rectangle add_text_in_keynote screenshot_slide
    send_email"""  # the last for want of an OAuth client


def in_lines(tool: Message) -> dict[str, str]:
    """All of a listed tool: a line for each of its keys and for each parameter, with its help first."""
    tool = json.loads(json.dumps(tool, sort_keys=True))
    parameters = tool["inputSchema"].pop("properties")
    helps = {name: parameter.pop("description") for name, parameter in parameters.items()}
    lines = {f"({name})": f"{helps[name]} {parameter}" for name, parameter in parameters.items()}
    return {**{key: str(value) for key, value in tool.items() if key != "name"}, **lines}


def pinned() -> dict[str, Any]:
    pinned: dict[str, Any] = json.loads(PINNED.read_text(encoding="utf-8"))
    return pinned


@pytest.fixture(scope="module")
def on_mac(mac: FakeMac, gmail: Path) -> list[Message]:
    with serving("package", mac_environment(mac, PEEKABOO_GMAIL_FOLDER=str(gmail))) as server:
        server.shake_hands()
        return server.ask("tools/list")["result"]["tools"]


def test_tools_list_on_a_mac_is_the_pinned_one_for_every_version(
    session: Recorded, on_mac: list[Message]
) -> None:
    """The descriptions of image, analyze and list, and the beginnings of their parameters' help, are the
    specification's, word for word.
    """
    listed = {tool["name"]: in_lines(tool) for tool in on_mac}
    document = json.dumps(listed, ensure_ascii=False, indent=1)
    is_pinned = (listed, list(listed)) == (pinned(), list(pinned()))
    assert is_pinned, f"tools/list has changed. If that is meant, {PINNED.name} is now:\n{document}"
    assert session.listed == on_mac


def test_tools_list_on_x11_is_the_pinned_one_but_the_macs(display: str, tmp_path: Path) -> None:
    """And but for words of what X11 does not have; what is kept is said as it is kept here."""
    words = [
        ("macOS screen", "screen"),
        (", super or fn", " or super"),
        (", bundle ID,", ""),
        (" or bundle id", ""),
    ]
    text = PINNED.read_text(encoding="utf-8").replace("for 10 minutes", "for 90 seconds")
    for on_a_mac, here in words:
        text = text.replace(on_a_mac, here)
    environment = clean_environment(tmp_path, DISPLAY=display, PEEKABOO_TTL_SECONDS="90")
    with serving("single file", environment) as server:
        server.shake_hands()
        tools = server.ask("tools/list")["result"]["tools"]
    listed = {tool["name"]: in_lines(tool) for tool in tools}
    sizes = [len(json.dumps(tool, ensure_ascii=False, separators=(",", ":"))) for tool in tools]
    assert sum(sizes) / len(sizes) <= 1080, "it is not longer than a model wants to read"
    assert [tool["name"] for tool in tools if len(tool["description"]) > 2048] == []
    assert listed == {name: tool for name, tool in json.loads(text).items() if name not in NOT_ON_X11.split()}


def schemas_in(schema: Any) -> list[Message]:
    """Each object of a schema that is one itself; the names of properties are no keywords."""
    found: list[Message] = []
    json.loads(json.dumps(schema), object_hook=lambda one: found.append(one) or one)
    return [one for one in found if isinstance(one.get("type"), str)]


def test_tools_list_has_valid_and_plain_schemas(on_mac: list[Message]) -> None:
    """For a strict client, and for one that shows a model the descriptions alone."""
    for tool in on_mac:
        Draft202012Validator.check_schema(tool["inputSchema"])
        for one in schemas_in(tool["inputSchema"]):
            place = f"{tool['name']}: {one}"
            assert one["type"] != "object" or one["additionalProperties"] is False, place
            assert one["type"] != "array" or one["items"], place
            if "default" in one:
                assert Draft202012Validator(one).is_valid(one["default"]), place
                assert "default" in one["description"].lower(), place
