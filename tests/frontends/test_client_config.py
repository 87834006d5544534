"""Every printed configuration: read and started as its client does, in a foreign folder, it lists windows."""

from __future__ import annotations

import json
import shutil
import sys
import venv
from pathlib import Path
from typing import Any, Callable

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from worlds import ROOT, SINGLE_FILE, Finished, ForeignFolder, Form, Program, clean_environment

CLIENTS = ("claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode")
ODD = 'Grüße an 😀 "alle"'
# as a console script stands in an environment whose path a #! line cannot hold
CONSOLE_SCRIPT = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
from peekaboo_min.frontends.cli import start
start()
"""


def make_environment(folder: Path, with_mcp: bool = True) -> Path:
    """A virtual environment with what this one has; its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "lib" / version / "site-packages"
    if with_mcp:
        paths = [path for path in sys.path if path.endswith("site-packages")]
        (site / "all.pth").write_text("\n".join(paths), encoding="utf-8")
    return folder / "bin" / "python"


def install(folder: Path) -> Path:
    """The package in an environment of its own; its console script, quoted as pip does it."""
    folder = folder.with_name(folder.name.replace('"', ""))
    python = make_environment(folder)
    (site,) = folder.glob("lib/*/site-packages")
    shutil.copytree(
        ROOT / "peekaboo_min", site / "peekaboo_min", ignore=shutil.ignore_patterns("__pycache__")
    )
    script = folder / "bin" / "peekaboo-min"
    script.write_text(CONSOLE_SCRIPT.format(python=python), encoding="utf-8")
    script.chmod(0o755)
    return script


def copied_file(folder: Path) -> list[Any]:
    """The single file in a folder and an environment with an odd name."""
    folder.mkdir()
    return [make_environment(folder / "venv"), shutil.copy(SINGLE_FILE, folder / "peek a boo.py")]


PACKAGE = [sys.executable, "-m", "peekaboo_min"]
FORMS: dict[str, Callable[[Path], list[Any]]] = {
    "package": lambda folder: PACKAGE,
    "console script": lambda folder: [install(folder)],
    "single file": copied_file,
}


def config(words: list[Any], environment: dict[str, str], *more: str) -> Finished:
    return Program([*map(str, words)], environment).run("config", *more)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A terminal's environment; the clients, started by this process, know only the short one."""
    made = clean_environment(tmp_path, DISPLAY="", XAUTHORITY=str(tmp_path / "Xauthority"))
    monkeypatch.setenv("HOME", made["HOME"])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return made


def block_of(client: str, text: str) -> dict[str, Any]:
    """The server's block of a configuration, by that client's rules."""
    if client == "codex":
        tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
        return tomllib.loads(text)["mcp_servers"]["peekaboo"]
    return json.loads(text)["servers" if client == "vscode" else "mcpServers"]["peekaboo"]


def start(
    client: str,
    block: dict[str, Any],
    own: dict[str, str],
    folder: Path,
    talk: Callable[[ClientSession], Any],
) -> Any:
    """What talk(session) returns, of a server started by the block. own: the client's own environment."""
    passed = own if client in ("claude-code", "gemini", "vscode") else {}  # these pass all of it on
    forwarded = {name: own[name] for name in block.get("env_vars", ()) if name in own}
    environment = {**passed, **forwarded, **block.get("env", {})}
    words = StdioServerParameters(command=block["command"], args=block["args"], env=environment, cwd=folder)

    async def session() -> Any:
        with anyio.fail_after(60):
            async with stdio_client(words) as (reader, writer), ClientSession(reader, writer) as one:
                await one.initialize()
                return await talk(one)

    return anyio.run(session)


async def listed_titles(session: ClientSession) -> list[str]:
    answer = await session.call_tool("list_windows", {})
    assert not answer.is_error, answer.content
    return [one["title"] for one in answer.structured_content["windows"]]


CASES = [(client, list(FORMS)[number % 3]) for number, client in enumerate(CLIENTS)]


@pytest.mark.parametrize(("client", "form_name"), CASES, ids=["-".join(one) for one in CASES])
def test_config_starts_a_server_that_lists_windows(
    tmp_path: Path, environment: dict[str, str], display: str, form: Form, client: str, form_name: str
) -> None:
    terminal = {**environment, "DISPLAY": display}
    passed = ["--env", "TMPDIR", "--env", "LANG,XDG_STATE_HOME"]
    done = config(FORMS[form_name](tmp_path / ODD), terminal, client, *passed)
    assert done.code == 0, done.err
    assert "note: put this into " in done.err and "note: put" not in done.out
    block = block_of(client, done.out)
    foreign = ForeignFolder(tmp_path / "foreign")
    names = ("HOME", "PATH", "TMPDIR", "LANG", "XDG_STATE_HOME", "XAUTHORITY")
    launcher = {name: terminal[name] for name in names}
    assert form.title in start(client, block, launcher, foreign.path, listed_titles)
    assert foreign.executed() == []


@pytest.mark.parametrize("client", ["codex", "claude-code"])
def test_config_holds_a_key_only_where_it_is_not_forwarded(environment: dict[str, str], client: str) -> None:
    terminal = {**environment, "DISPLAY": ":7", "SOME_KEY": "se cret"}
    done = config(PACKAGE, terminal, client, "--env", "SOME_KEY")
    block = block_of(client, done.out)
    usual = {"DISPLAY": ":7", "XAUTHORITY": environment["XAUTHORITY"]}
    note = "the value of SOME_KEY: let nobody else read that file"
    assert block["args"] == [str(ROOT / "peekaboo_min" / "__main__.py")]
    assert "se cret" not in done.err
    if client == "codex":  # it filters what it passes on, and waits 10 s for a server otherwise
        assert (block["startup_timeout_sec"], block["env_vars"], block["env"]) == (60, ["SOME_KEY"], usual)
        assert "se cret" not in done.out and note not in done.err
    else:
        assert block["env"] == {**usual, "SOME_KEY": "se cret"} and note in done.err


FILES = {
    "claude-desktop": [".config/Claude/claude_desktop_config.json", "Library/Application Support/Claude/"],
    "vscode": [".config/Code/User/mcp.json", "Library/Application Support/Code/User/mcp.json"],
}


@pytest.mark.parametrize("client", FILES)
def test_config_has_each_systems_paths_and_for_a_mac_no_display(
    environment: dict[str, str], client: str
) -> None:
    terminal = {**environment, "DISPLAY": ":7"}
    for system, path in zip(("x11", "macos"), FILES[client]):
        there = {**terminal, "PEEKABOO_DESKTOP": system}
        plain, told = config(PACKAGE, there, client), config(PACKAGE, there, client, "--json")
        data = told.data
        assert (set(data), f"{data['text']}\n") == ({"client", "file", "text"}, plain.out)
        assert [f"note: {message}" for message in told.json["messages"]] == plain.err.splitlines()
        assert data["file"].startswith(f"~/{path}")
        assert ("DISPLAY" in data["text"]) is (system == "x11")


REFUSED = {
    "cursor --env NOT_SET_AT_ALL": "the environment variable NOT_SET_AT_ALL is not set here",
    "emacs": "'emacs' is not one of claude-code, claude-desktop",
}


@pytest.mark.parametrize(("words", "message"), REFUSED.items(), ids=REFUSED)
def test_config_refuses_what_cannot_be_printed(environment: dict[str, str], words: str, message: str) -> None:
    done = config(PACKAGE, environment, *words.split())
    assert (done.code, done.out) == (2, "") and message in done.err


@pytest.mark.parametrize("form_name", ["package", "single file"])
def test_config_never_prints_a_python_without_mcp(
    tmp_path: Path, environment: dict[str, str], form_name: str
) -> None:
    python = make_environment(tmp_path / "venv", with_mcp=False)
    words = [python, SINGLE_FILE] if form_name == "single file" else [python, "-m", "peekaboo_min"]
    done = config(words, environment, "cursor")
    assert (done.code, done.out) == (1, "")
    assert f"{python} needs the package mcp 2, and has none; " in done.err
    assert ("uv run " if form_name == "single file" else "uv tool install ") in done.err


def test_config_never_prints_an_interpreter_in_a_cache(tmp_path: Path, environment: dict[str, str]) -> None:
    python = make_environment(tmp_path / "uv cache" / "environments-v2" / "peekaboo-1f2e")
    done = config([python, "-m", "peekaboo_min"], environment, "cursor")
    assert (done.code, done.out) == (2, "")
    assert "is in a cache that may be cleaned: " in done.err and "`uv tool install`" in done.err

    done = config([python, SINGLE_FILE], environment, "cursor")
    assert (done.code, done.out) == (2, "") and "save the file somewhere lasting" in done.err
    done = config([python, SINGLE_FILE], {**environment, "UV": "/opt/uv"}, "cursor")
    block = block_of("cursor", done.out)
    assert [block["command"], *block["args"]] == ["/opt/uv", "run", "--script", str(SINGLE_FILE)]


def test_config_without_a_display_says_where_to_set_it(tmp_path: Path, environment: dict[str, str]) -> None:
    done = config(PACKAGE, environment, "cursor", "--env", "TMPDIR", "--env", "XDG_STATE_HOME")
    assert "note: DISPLAY is not set here: run this in a terminal of the desktop" in done.err

    async def said(session: ClientSession) -> str:
        answer = await session.call_tool("list_windows", {})
        assert answer.is_error
        return answer.content[0].text

    text = start("cursor", block_of("cursor", done.out), {}, tmp_path, said)
    assert text.startswith("NO_GUI_SESSION: ") and "set DISPLAY in this server's configuration" in text
