"""Printed client configurations start a server that lists windows."""

from __future__ import annotations

import json
import re
import shutil
import sys
import venv
from pathlib import Path
from typing import Any, Callable

import anyio
import pytest
from answers import refused
from in_process import InProcessProgram
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_server import initialized
from worlds import (
    ROOT,
    SINGLE_FILE,
    X_PROGRAMS,
    Finished,
    ForeignFolder,
    Form,
    Program,
    clean_environment,
    executable,
    need,
)

CLIENTS = ("claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode")
ODD = 'Grüße an 😀 "alle"'
# the form of a console script if a #! line cannot hold the environment's path
CONSOLE_SCRIPT = f"""'''exec' "{sys.executable}" "$0" "$@"
' '''
import sys
sys.path.insert(0, "{ROOT}")
from peekaboo_min.frontends.cli import start
start()
"""


def make_environment(folder: Path, with_mcp: bool = True) -> Path:
    """Create a virtual environment with this one's packages; return its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "lib" / version / "site-packages"
    if with_mcp:
        paths = [path for path in sys.path if path.endswith("site-packages")]
        (site / "all.pth").write_text("\n".join(paths), encoding="utf-8")
    return folder / "bin" / "python"


def console_script(folder: Path) -> list[Any]:
    """Create a console script in an oddly named folder; return its argv."""
    return [executable(folder / "bin" / "peekaboo-min", CONSOLE_SCRIPT)]


def copied_file(folder: Path) -> list[Any]:
    """Copy the single file into an oddly named folder; return its argv."""
    folder.mkdir()
    return [make_environment(folder / "venv"), shutil.copy(SINGLE_FILE, folder / "peekaboo-min")]


PACKAGE = [sys.executable, "-m", "peekaboo_min"]
FORMS: list[Callable[[Path], list[Any]]] = [lambda folder: PACKAGE, console_script, copied_file]


def config(argv: list[Any], environment: dict[str, str], *more: str) -> Finished:
    return Program([*map(str, argv)], environment).run("config", *more)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return a terminal's environment. The clients inherit this process's shorter PATH."""
    made = clean_environment(tmp_path, DISPLAY="", XAUTHORITY=str(tmp_path / "Xauthority"))
    monkeypatch.setenv("HOME", made["HOME"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return made


def block_of(client: str, text: str) -> dict[str, Any]:
    """Parse a client's configuration and return the server's block."""
    if client == "codex":
        tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
        return tomllib.loads(text)["mcp_servers"]["peekaboo"]
    return json.loads(text)["servers" if client == "vscode" else "mcpServers"]["peekaboo"]


def start(
    client: str, block: Any, inherited: dict[str, str], folder: Path, talk: Callable[[ClientSession], Any]
) -> Any:
    """Start a server by the block and return talk(session). inherited: the client's environment."""
    passed = inherited if client in ("claude-code", "gemini", "vscode") else {}  # these pass all of it on
    forwarded = {name: inherited[name] for name in block.get("env_vars", ()) if name in inherited}
    environment = {**passed, **forwarded, **block.get("env", {})}
    server = StdioServerParameters(command=block["command"], args=block["args"], env=environment, cwd=folder)

    async def session() -> Any:
        with anyio.fail_after(60):
            async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as peer:
                await peer.initialize()
                return await talk(peer)

    return anyio.run(session)


async def listed_titles(session: ClientSession) -> list[str]:
    answer = await session.call_tool("list_windows", {})
    assert not answer.is_error, answer.content
    return [window["title"] for window in answer.structured_content["windows"]]


@pytest.mark.parametrize(("client", "argv_of"), [*zip(("claude-code", "codex", "cursor"), FORMS)])
def test_config_starts_a_server_that_lists_windows(
    tmp_path: Path, environment: dict[str, str], display: str, form: Form, client: str, argv_of: Any
) -> None:
    terminal = {**environment, "DISPLAY": display}
    passed = ["--env", "TMPDIR", "--env", "LANG,XDG_STATE_HOME"]
    done = config(argv_of(tmp_path / ODD), terminal, client, *passed)
    assert done.code == 0, done.err
    assert "note: put this into " in done.err and "note: put" not in done.out
    block = block_of(client, done.out)
    foreign = ForeignFolder(tmp_path / "foreign")
    names = ("HOME", "PATH", "TMPDIR", "LANG", "XDG_STATE_HOME", "XAUTHORITY")
    launcher = {name: terminal[name] for name in names}
    assert form.title in start(client, block, launcher, foreign.path, listed_titles)
    assert foreign.executed() == []


def test_config_names_a_console_script_by_its_absolute_path(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (script,) = console_script(tmp_path / "venv")
    done = Program(["bin/peekaboo-min"], environment).run("config", "cursor", folder=tmp_path / "venv")
    assert block_of("cursor", done.out)["command"] == str(script)


def test_config_desktop_starts_a_server_with_a_desktop(tmp_path: Path, environment: dict[str, str]) -> None:
    need(*X_PROGRAMS)
    done = config(PACKAGE, environment, "claude-code", "--desktop", "--env", "HOME")
    block = block_of("claude-code", done.out)
    assert (block["args"][-1], block["env"]) == ("desktop", {"HOME": environment["HOME"]})
    assert "DISPLAY" not in done.err
    launcher = {name: environment[name] for name in ("HOME", "PATH", "TMPDIR", "XDG_STATE_HOME")}
    assert start("claude-code", block, launcher, tmp_path, listed_titles) == []


def test_config_of_each_client_and_system_is_the_pinned_one(environment: dict[str, str]) -> None:
    there = InProcessProgram({**environment, "DISPLAY": ":7", "SOME_KEY": "se cret"})
    shown = ""
    on_mac = ("claude-desktop", "codex", "vscode")  # the others are as on X11, without its variables
    for system, client in [*zip(["x11"] * 6, CLIENTS), *zip(["macos"] * 3, on_mac)]:
        done = there.run("config", client, "--env", "SOME_KEY", PEEKABOO_DESKTOP=system)
        printed = re.sub(r"\n(?: +(?! |\"env)|(?=}))", " ", done.out)  # indented JSON in two lines
        shown += f"{system}, exit code {done.code}:\n{printed}{done.err}\n"
    paths = {"AUTHORITY": environment["XAUTHORITY"], "PYTHON": sys.executable, "CHECKOUT": str(ROOT)}
    for name, path in paths.items():
        shown = shown.replace(path, name)
    pinned = Path(__file__).with_name("client_configs.txt").read_text(encoding="utf-8")
    assert shown == pinned, f"if the change is intended, write this:\n{shown}"


@pytest.mark.parametrize(
    ("argv", "advice"), [(PACKAGE[1:], "uv tool install "), ([str(SINGLE_FILE)], "uv run ")]
)
def test_config_needs_a_python_with_mcp(
    tmp_path: Path, environment: dict[str, str], argv: list[str], advice: str
) -> None:
    python = make_environment(tmp_path / "venv", with_mcp=False)
    done = config([python, *argv], environment, "cursor")
    assert (done.code, done.out) == (2, "") and advice in done.err
    assert f"MCP needs the package mcp 2; {python} has none; " in done.err


CACHES = "/u/uv/archive-v0/x /u/uv/environments-v2/x /u/uv/builds-v0/.tmp /p/pipx/.cache/x /h/.cache/pipx/x"
LASTING = "/u/environments/x /p/pipx/venvs/x /opt/archive-v/x /h/.cache/x"


@pytest.mark.parametrize(
    ("prefix", "is_cache"),
    [*((name, True) for name in CACHES.split()), *((name, False) for name in LASTING.split())],
)
def test_config_refuses_an_interpreter_in_a_cache(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, prefix: str, is_cache: bool
) -> None:
    monkeypatch.setattr(sys, "prefix", prefix)
    done = InProcessProgram({**environment, "UV": "/opt/uv"}).run("config", "cursor")
    refusal = f"this Python is in a cache that may be cleaned: {prefix}; install it with `uv tool install` or"
    assert (done.code, refusal in done.err) == (2 * is_cache, is_cache)


def test_config_of_a_file_in_a_cache_needs_uv(tmp_path: Path, environment: dict[str, str]) -> None:
    python = make_environment(tmp_path / "uv cache" / "environments-v2" / "peekaboo-1f2e")
    done = config([python, SINGLE_FILE], environment, "cursor")
    assert (done.code, done.out) == (2, "") and "save the file somewhere permanent" in done.err
    done = config([python, SINGLE_FILE], {**environment, "UV": "/opt/uv"}, "cursor")
    block = block_of("cursor", done.out)
    assert [block["command"], *block["args"]] == ["/opt/uv", "run", "--script", str(SINGLE_FILE)]


def test_config_without_a_display_notes_how_to_set_it(tmp_path: Path, environment: dict[str, str]) -> None:
    done = config(PACKAGE, environment, "cursor")
    assert "note: DISPLAY is not set here: run this in a terminal of the desktop, or with --" in done.err
    assert block_of("cursor", done.out)["env"].keys() == {"XAUTHORITY"}
    with initialized("package", clean_environment(tmp_path)) as server:
        error = refused(server.call("list_windows"))
    assert error["code"] == "NO_GUI_SESSION" and "set DISPLAY in this server's configuration" in error["said"]
