"""Fixtures of all tests: an X server, forms, fake Macs, fake models, our program; no test leaves files.

A plain name (`form`, `mac`, `ai`) is new for each test; `shared_...` is one for all tests of a file.
"""

from __future__ import annotations

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
from worlds import Form, Program, clean_environment, program_words, wait_for, x_server

from peekaboo_min.core.settings import forget_environment


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "leaves(*patterns): files that the test leaves; see leftovers.py")
    config.addinivalue_line("markers", "mac: on a Mac it asks that Mac, elsewhere a fake one")


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Home and temporary folder of the session: other programs may use the real ones meanwhile."""
    folder = tmp_path_factory.mktemp("session")
    with pytest.MonkeyPatch.context() as patch:
        # for what tests call in this very process
        for name, variable in (("home", "HOME"), ("tmp", "TMPDIR"), ("state", "XDG_STATE_HOME")):
            (folder / name).mkdir()
            patch.setenv(variable, str(folder / name))
        patch.setenv("GSK_RENDERER", "cairo")  # as headless.x_server sets it, late
        patch.setattr(tempfile, "tempdir", None)  # read TMPDIR again
        yield folder


@pytest.fixture(scope="module", autouse=True)
def watched_folders(own_home: Path) -> Iterator[None]:
    watch(own_home)
    yield
    forget_watched()


_newest: list[Leftovers] = []  # of the test that runs


@pytest.fixture(autouse=True)
def nothing_is_left(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Fails the test that leaves a file, a process, a thread or a changed environment; see leftovers.py."""
    _newest[:] = [Leftovers(tmp_path_factory.getbasetemp())]
    yield
    marker = request.node.get_closest_marker("leaves")
    found = _newest[0].found(*(marker.args if marker else ()))
    if found:
        pytest.fail("the test left " + "; ".join(found), pytrace=False)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Sets variables, as if this process had started with them."""

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
    """The package, with `@both_forms` the single file too; a test adds DISPLAY where it needs one."""
    return Program(program_words(getattr(request, "param", "package")), clean_environment(tmp_path))


@pytest.fixture
def on_x11(program: Program, display: str) -> Program:
    """The same on the session's display; the package's commands run in this process."""
    is_package = list(program.words) == program_words("package")
    return (InProcessProgram(program.environment) if is_package else program).having(DISPLAY=display)


@pytest.fixture
def open_form(display: str, tmp_path: Path) -> Iterator[Callable[..., Form]]:
    """Opens a form on the session's display; all are closed at the end, and gone."""
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
    """The id of the form's window."""

    def find() -> list[int]:
        windows = on_x11.data("windows")["windows"]
        return [
            one["window_id"] for one in windows if one["title"] == form.title and one["bounds"]["width"] > 300
        ]

    return wait_for(find, "the form's window is listed")[0]


@pytest.fixture(scope="module")
def shared_form(display: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Form]:
    form = Form(display, tmp_path_factory.mktemp("form") / "report.jsonl")
    yield form
    form.close()


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
