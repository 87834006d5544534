"""Fixtures: an X server for the session, a form and a program for each test, and a watch on what tests leave behind."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Callable, Iterator

import pytest
from worlds import Form, Program, clean_environment, program_words, wait_for, x_server


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_outside() -> Iterator[None]:
    """A test that writes outside its temporary folder fails the session."""
    watched = [Path.home() / ".local/state/peekaboo_min", Path.home() / "Library"]
    watched += [Path(tempfile.gettempdir()) / "peekaboo-mcp.log"]

    def stamp() -> "list[object]":
        return [(path, path.stat().st_mtime_ns) if path.exists() else path for path in watched]

    before = stamp()
    with tempfile.TemporaryDirectory() as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", state)  # for what tests call in this very process
        yield
    assert stamp() == before, "a test wrote into the real home or the real temporary folder"


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    with x_server() as name:
        yield name


@pytest.fixture(params=["package", "single file"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """Our program in both forms; a test adds DISPLAY where it needs one."""
    return Program(program_words(request.param), clean_environment(tmp_path))


@pytest.fixture
def on_x11(program: Program, display: str) -> Program:
    return program.having(DISPLAY=display)


@pytest.fixture
def open_form(display: str, tmp_path: Path) -> Iterator[Callable[..., Form]]:
    """Opens a form on the session's display; all are closed at the end, and gone."""
    forms = []

    def open_one(title: str = "Visitor book", place: str = "+60+60") -> Form:
        forms.append(Form(display, tmp_path / f"report{len(forms)}.jsonl", title, place))
        return forms[-1]

    yield open_one
    for form in forms:
        form.close()


@pytest.fixture
def form(open_form: Callable[..., Form]) -> Form:
    return open_form()


@pytest.fixture
def form_window(on_x11: Program, form: Form) -> int:
    """The id of the form's window."""

    def find() -> "list[int]":
        windows = on_x11.data("windows")["windows"]
        return [one["window_id"] for one in windows if one["title"] == form.title and one["bounds"]["width"] > 300]

    return wait_for(find, "the form's window is listed")[0]
