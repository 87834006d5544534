"""Fixtures for all tests: an X server, forms, fake Macs, fake models, the program, and a check for leftovers.

A plain name (`form`, `mac`, `ai`) is new for each test; `shared_...` lives as long as its test file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from fake_ai import FakeAI
from fakemac import FakeMac
from in_process import InProcessProgram
from leftovers import Leftovers, forget_watched, watch
from macs import fake_mac
from worlds import KEPT_VARIABLES, Form, Program, clean_environment, program_words, wait_for, x_server

from peekaboo_min.core.settings import forget_environment


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "leaves(*patterns): files that the test leaves; see leftovers.py")
    config.addinivalue_line("markers", "mac: runs on the real Mac if there is one, else on a fake")


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Replace the user's home, umask and environment, also for programs that tests start."""
    folder = tmp_path_factory.mktemp("session")
    os.umask(0o022)
    with pytest.MonkeyPatch.context() as patch:
        for name in {*os.environ}:
            if not KEPT_VARIABLES.fullmatch(name):
                patch.delenv(name)
        for name, value in clean_environment(folder).items():
            patch.setenv(name, value)
        patch.delenv("PYTHONPATH")
        patch.setattr(tempfile, "tempdir", None)  # read TMPDIR again
        yield folder


@pytest.fixture(scope="module", autouse=True)
def watched_folders(own_home: Path) -> Iterator[None]:
    watch(own_home)
    yield
    forget_watched()


_newest: list[Leftovers] = []  # of the running test


@pytest.fixture(autouse=True)
def nothing_is_left(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Fail a test that leaves a file, a process, a thread or a changed environment; see leftovers.py."""
    _newest[:] = [Leftovers(tmp_path_factory.getbasetemp())]
    yield
    marker = request.node.get_closest_marker("leaves")
    found = _newest[0].found(*(marker.args if marker else ()))
    if found:
        pytest.fail("the test left " + "; ".join(found), pytrace=False)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Set variables as if this process had started with them."""

    def start(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        forget_environment()

    start()
    yield start
    monkeypatch.undo()
    forget_environment()


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    with x_server() as name:
        for leftovers in _newest:
            leftovers.accept_processes()
        yield name


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Program:
    """Return the package, or with `@both_forms` also the single file; a test adds DISPLAY if it needs it."""
    return Program(program_words(getattr(request, "param", "package")), clean_environment(tmp_path))


@pytest.fixture
def on_x11(program: Program, display: str) -> Program:
    """Return `program` on the session's display; the package's commands run in this process."""
    is_package = list(program.words) == program_words("package")
    return (InProcessProgram(program.environment) if is_package else program).having(DISPLAY=display)


@pytest.fixture
def open_form(display: str, tmp_path: Path) -> Iterator[Callable[..., Form]]:
    """Open forms on the session's display; close them after the test."""
    forms: list[Form] = []

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
def form_window(on_x11: Program, form: Form) -> Any:
    def find() -> list[int]:
        windows = on_x11.data("windows")["windows"]
        return [
            one["window_id"] for one in windows if one["title"] == form.title and one["bounds"]["width"] > 300
        ]

    return wait_for(find, "the form's window is listed")[0]


@pytest.fixture
def mac(tmp_path: Path) -> Iterator[FakeMac]:
    with fake_mac(tmp_path / "mac") as fake:
        yield fake


@pytest.fixture(scope="module")
def shared_mac(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeMac]:
    with fake_mac(tmp_path_factory.mktemp("mac")) as fake:
        yield fake


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    with FakeAI() as fake:
        yield fake


@pytest.fixture(scope="module")
def shared_ai() -> Iterator[FakeAI]:
    with FakeAI() as fake:
        yield fake
