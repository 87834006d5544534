"""The MCP tools through the SDK's own stdio client, against a real window on X11."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from worlds import PATIENCE_S, ROOT, Form, clean_environment, need, wait_for, x_server

from peekaboo_min.system.images import sniff_image

BACKGROUND = (0xF4, 0xF1, 0xEA)


def document(result: Any) -> dict[str, Any]:
    """The JSON in a result's text: its last line, but for the status that stands below once."""
    return json.loads(result.content[0].text.split("\n\n---")[0].split("\n")[-1])


class Session:
    """An open session of the SDK's client in a thread of its own, called from ordinary code."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._is_open = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._hold(),))
        self._thread.start()
        assert self._is_open.wait(PATIENCE_S), "the server did not answer"

    async def _hold(self) -> None:
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        words = StdioServerParameters(
            command=sys.executable, args=["-m", "peekaboo_min"], env=self._environment, cwd=str(ROOT)
        )
        async with stdio_client(words) as (reader, writer), ClientSession(reader, writer) as session:
            self.greeting = await session.initialize()
            self._session = session
            self._is_open.set()
            await self._done.wait()

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(40)

    def call(self, tool: str, **arguments: Any) -> Any:
        return self._wait(self._session.call_tool(tool, arguments))

    def data(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The JSON of a call that succeeds."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content[0].text
        return document(result)

    def refusal(self, tool: str, **arguments: Any) -> str:
        result = self.call(tool, **arguments)
        assert result.is_error, result.content[0].text
        return result.content[0].text

    def pictures(self, tool: str, **arguments: Any) -> list[tuple[str, bytes]]:
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content[0].text
        return [(one.mime_type, base64.b64decode(one.data)) for one in result.content[1:]]

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(PATIENCE_S)
        self._loop.close()


@contextmanager
def session_on(display: str, folder: Path, **variables: str) -> Iterator[Session]:
    session = Session(clean_environment(folder, DISPLAY=display, **variables))
    try:
        yield session
    finally:
        session.close()


@pytest.fixture(scope="module")
def session(display: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with session_on(display, tmp_path_factory.mktemp("session")) as one:
        yield one


def window_of(session: Session, form: Form) -> dict[str, Any]:
    def find() -> list[dict[str, Any]]:
        return [one for one in session.data("list_windows")["windows"] if one["title"] == form.title]

    return wait_for(find, "the form is listed")[0]


@pytest.fixture
def window(session: Session, form: Form) -> dict[str, Any]:
    return window_of(session, form)


def pixels(data: bytes, *places: tuple[int, int]) -> list[tuple[int, int, int]]:
    """The colours of a picture at some places, as ImageMagick decodes it."""
    need("convert")
    wanted = "\\n".join(f"%[pixel:p{{{x},{y}}}]" for x, y in places)
    done = subprocess.run(
        ["convert", "-", "-depth", "8", "-format", wanted, "info:"], input=data, capture_output=True
    )
    lines = done.stdout.decode().split("\n")
    return [
        tuple(int(float(one)) for one in line[line.index("(") + 1 :].rstrip(")").split(",")[:3])
        for line in lines
    ]  # type: ignore


def is_near(colour: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    return all(abs(one - two) <= 6 for one, two in zip(colour, other))


# the loop ---------------------------------------------------------------------------------------------------


def test_the_photograph_is_the_window_and_a_click_by_it_arrives(
    session: Session, window: dict[str, Any], form: Form
) -> None:
    result = session.call("take_window_screenshot", window_id=window["window_id"])
    shot = document(result)
    (picture,) = result.content[1:]
    data = base64.b64decode(picture.data)
    info = sniff_image(data)
    assert info is not None and (picture.mime_type, info.kind) == ("image/jpeg", "jpg")
    assert (info.width, info.height) == (shot["image_width"], shot["image_height"])
    bounds = window["bounds"]
    assert (info.width, info.height, shot["scale"]) == (bounds["width"], bounds["height"], 1.0)
    assert (result.structured_content, len(data) < 700_000) == (None, True)
    corners = [(2, 2), (info.width - 3, 2), (2, info.height - 3), (info.width - 3, info.height - 3)]
    assert all(is_near(colour, BACKGROUND) for colour in pixels(data, *corners))
    assert not is_near(pixels(data, form.centre("notes"))[0], BACKGROUND)

    x, y = form.centre("agree")
    answer = session.data("click", window_id=window["window_id"], x=x, y=y, verify=True)
    assert form.wait_for_event("toggle")["value"] == 1
    assert (answer["delivered"], answer["clamped"], answer["changed"]) == (True, False, True)


def test_text_and_keys_arrive_and_a_form_is_filled_in(
    session: Session, window: dict[str, Any], form: Form
) -> None:
    window_id = window["window_id"]
    session.pictures("take_window_screenshot", window_id=window_id)
    session.data("click", window_id=window_id, x=form.centre("name")[0], y=form.centre("name")[1])
    assert session.data("type_text", window_id=window_id, text="Zoë")["characters"] == 3
    assert session.data("press_key", window_id=window_id, key="tab") == {
        "window_id": window_id,
        "key": "tab",
        "delivered": True,
        "changed": None,
    }
    session.data("type_text", window_id=window_id, text="zoe@example.org")
    session.data("press_key", window_id=window_id, key="a", modifiers=["ctrl"])
    session.data("click", window_id=window_id, x=form.centre("sign")[0], y=form.centre("sign")[1], clicks=1)
    signed = form.wait_for_event("sign")
    assert (signed["name"], signed["mail"]) == ("Zoë", "zoe@example.org")


def test_calls_at_once_do_not_disturb_one_another(session: Session, window: dict[str, Any]) -> None:
    calls = [
        session._session.call_tool("take_window_screenshot", {"window_id": window["window_id"]})
        for _ in range(5)
    ]

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*calls)

    results = session._wait(all_at_once())
    ids = {document(one)["screenshot_id"] for one in results}
    assert (len(ids), [one.is_error for one in results]) == (5, [False] * 5)


# image ------------------------------------------------------------------------------------------------------


# list -------------------------------------------------------------------------------------------------------


# a large screen ---------------------------------------------------------------------------------------------


def test_a_large_window_is_shrunk_for_the_model_and_its_pixels_still_hit(tmp_path: Path) -> None:
    with x_server(screen="2560x1600x24") as display, session_on(display, tmp_path) as session:
        form = Form(display, tmp_path / "report.jsonl", place="2400x1500+40+40")
        try:
            window = window_of(session, form)
            assert window["bounds"]["width"] >= 2300
            result = session.call("take_window_screenshot", window_id=window["window_id"])
            shot = document(result)
            data = base64.b64decode(result.content[1].data)
            info = sniff_image(data)
            assert info is not None and (info.width, info.height) == (
                shot["image_width"],
                shot["image_height"],
            )
            assert max(info.width, info.height) <= 1568
            assert (info.width * info.height <= 1_150_000, len(data) <= 700_000) == (True, True)
            x, y = form.centre("agree")
            session.data("click", window_id=window["window_id"], x=x * shot["scale"], y=y * shot["scale"])
            assert form.wait_for_event("toggle")["value"] == 1
            screens = session.pictures("image", return_data=True)
            sizes = [sniff_image(picture) for _, picture in screens]
            assert all(one and max(one.width, one.height) <= 1568 for one in sizes)
            assert [len(picture) <= 700_000 for _, picture in screens] == [True]
        finally:
            form.close()
