"""Every printed configuration: read and started as its client does, in a foreign folder, it lists windows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any, Callable

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from worlds import ROOT, SINGLE_FILE, Finished, ForeignFolder, Form, clean_environment, need_optional

CLIENTS = ("claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode")
ODD = 'Grüße an 😀 "alle"'
# as a console script stands in an environment whose path a #! line cannot hold
CONSOLE_SCRIPT = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
from peekaboo_min.frontends.cli import main
sys.exit(main())
"""


def make_environment(folder: Path, with_mcp: bool = True) -> Path:
    """A virtual environment with what this one has; its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = folder / "lib" / version / "site-packages"
    if with_mcp:
        (site / "all.pth").write_text(
            "\n".join(path for path in sys.path if path.endswith("site-packages")), encoding="utf-8"
        )
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


FORMS: dict[str, Callable[[Path], list[Any]]] = {
    "package": lambda folder: [sys.executable, "-m", "peekaboo_min"],
    "console script": lambda folder: [install(folder)],
    "single file": copied_file,
}


def config(words: list[Any], environment: dict[str, str], *more: str) -> Finished:
    done = subprocess.run(
        [*map(str, words), "config", *more],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        encoding="utf-8",
    )
    return Finished(done.returncode, done.stdout, done.stderr)


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


CASES = [
    *((client, "single file") for client in CLIENTS),
    ("claude-desktop", "package"),
    ("codex", "console script"),
]


@pytest.mark.parametrize(("client", "form_name"), CASES, ids=["-".join(one) for one in CASES])
def test_what_is_printed_starts_a_server_that_lists_windows(
    tmp_path: Path, environment: dict[str, str], display: str, form: Form, client: str, form_name: str
) -> None:
    terminal = {**environment, "DISPLAY": display}
    done = config(
        FORMS[form_name](tmp_path / ODD), terminal, client, "--env", "TMPDIR", "--env", "LANG,XDG_STATE_HOME"
    )
    assert done.code == 0, done.err
    assert "note: put this into " in done.err and "note: put" not in done.out
    block = block_of(client, done.out)
    foreign = ForeignFolder(tmp_path / "foreign")
    launcher = {
        name: terminal[name] for name in ("HOME", "PATH", "TMPDIR", "LANG", "XDG_STATE_HOME", "XAUTHORITY")
    }
    assert form.title in start(client, block, launcher, foreign.path, listed_titles)
    assert foreign.executed() == []


CODEX = r"""[mcp_servers.peekaboo]
command = ".*/bin/python[\d.]*"
args = ["/.*/peekaboo_min/__main__.py"]
startup_timeout_sec = 60
env = { DISPLAY = ":7" }
env_vars = ["XAUTHORITY", "SOME_KEY"]
"""


def test_codex_forwards_what_it_would_filter_and_its_file_holds_no_key(environment: dict[str, str]) -> None:
    terminal = {**environment, "DISPLAY": ":7", "SOME_KEY": "secret"}
    done = config(FORMS["package"](Path()), terminal, "codex", "--env", "SOME_KEY")
    pattern = (
        CODEX.replace("[mcp", r"\[mcp")
        .replace('["', r'\["')
        .replace('"]', r'"\]')
        .replace("peekaboo]", r"peekaboo\]")
    )
    assert re.fullmatch(pattern, done.out), done.out
    assert "secret" not in done.out + done.err


def in_the_clients_words(client: str, words: list[str]) -> tuple[list[str], dict[str, str]]:
    """(argv, env) of `CLIENT mcp add ...`, and that it is in the order which that client wants."""
    if client == "vscode":
        assert words[:2] == ["code", "--add-mcp"]
        block = json.loads(words[2])
        assert block.pop("name") == "peekaboo"
        return [block["command"], *block["args"]], block["env"]
    flag = "-e" if client == "gemini" else "--env"
    values = dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == flag)
    if client == "gemini":
        assert words[:5] == ["gemini", "mcp", "add", "-s", "user"]
        return words[words.index("peekaboo") + 1 :], values
    # --env takes all words that follow: the name comes before it
    assert words[:3] == [client.split("-")[0], "mcp", "add"] and words.index("peekaboo") < words.index(flag)
    return words[words.index("--") + 1 :], values


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "vscode"])
def test_the_clients_own_command_says_the_same_as_its_file(
    tmp_path: Path, environment: dict[str, str], client: str
) -> None:
    done = config(copied_file(tmp_path / ODD), {**environment, "DISPLAY": ":7"}, client)
    block = block_of(client, done.out)
    (command,) = re.findall(r"^note: or run: (.*)$", done.err, re.M)
    argv, values = in_the_clients_words(client, shlex.split(command))
    forwarded = {name: environment[name] for name in block.get("env_vars", ())}
    assert (argv, values) == ([block["command"], *block["args"]], {**block["env"], **forwarded})


def test_a_key_is_left_to_the_shell_in_the_clients_own_command(environment: dict[str, str]) -> None:
    terminal = {**environment, "DISPLAY": ":7", "SOME_KEY": "se cret"}
    done = config(FORMS["package"](Path()), terminal, "claude-code", "--env", "SOME_KEY")
    assert '--env SOME_KEY="$SOME_KEY" --' in done.err and "se cret" not in done.err
    assert "the value of SOME_KEY: let nobody else read that file" in done.err
    assert block_of("claude-code", done.out)["env"] == {"DISPLAY": ":7", "SOME_KEY": "se cret"}


def test_json_holds_the_same(environment: dict[str, str]) -> None:
    words, terminal = FORMS["package"](Path()), {**environment, "DISPLAY": ":7"}
    plain, told = (
        config(words, terminal, "claude-code"),
        config(words, terminal, "claude-code", "--json").json,
    )
    assert sorted(told["data"]) == ["client", "command", "file", "text"]
    assert told["data"]["text"] + "\n" == plain.out
    assert [f"note: {one}" for one in told["messages"]] == plain.err.splitlines()
    assert told["messages"][1] == f"or run: {told['data']['command']}"


FILES = {
    "claude-desktop": (
        "~/.config/Claude/claude_desktop_config.json",
        "~/Library/Application Support/Claude/",
    ),
    "vscode": ("~/.config/Code/User/mcp.json", "~/Library/Application Support/Code/User/mcp.json"),
}


@pytest.mark.parametrize("client", FILES)
def test_each_system_has_its_own_paths_and_a_mac_no_display(environment: dict[str, str], client: str) -> None:
    terminal = {**environment, "DISPLAY": ":7"}
    linux = config(FORMS["package"](Path()), terminal, client, "--json").data
    mac = config(FORMS["package"](Path()), {**terminal, "PEEKABOO_DESKTOP": "macos"}, client, "--json").data
    assert linux["file"].startswith(FILES[client][0]) and mac["file"].startswith(FILES[client][1])
    assert "DISPLAY" in linux["text"] and "DISPLAY" not in mac["text"]


def test_without_a_display_it_says_so(environment: dict[str, str]) -> None:
    done = config(FORMS["package"](Path()), environment, "cursor")
    assert (
        done.code == 0 and "note: DISPLAY is not set here: run this in a terminal of the desktop" in done.err
    )


REFUSED = {
    "unset": (
        ["cursor", "--env", "NOT_SET_AT_ALL"],
        "the environment variable NOT_SET_AT_ALL is not set here",
    ),
    "a value": (["cursor", "--env", "A=b"], "'A=b' is not the name of a variable"),
    "a client": (["emacs"], "'emacs' is not one of claude-code, claude-desktop"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_printed_is_refused(environment: dict[str, str], case: str) -> None:
    words, message = REFUSED[case]
    done = config(FORMS["package"](Path()), environment, *words)
    assert (done.code, done.out) == (2, "") and message in done.err


@pytest.mark.parametrize("form_name", ["package", "single file"])
def test_a_python_without_mcp_is_never_printed(
    tmp_path: Path, environment: dict[str, str], form_name: str
) -> None:
    python = make_environment(tmp_path / "venv", with_mcp=False)
    words = [python, SINGLE_FILE] if form_name == "single file" else [python, "-m", "peekaboo_min"]
    # here it finds mcp by a variable that no client passes on
    (site,) = (path for path in sys.path if (Path(path) / "mcp").is_dir() and Path(path) != ROOT)
    done = config(words, {**environment, "PYTHONPATH": os.pathsep.join([str(ROOT), site])}, "cursor")
    assert (done.code, done.out) == (2, "")
    assert f"{python} lacks the package mcp: the server would not start; " in done.err
    assert ("uv run " if form_name == "single file" else "uv tool install ") in done.err


def test_an_interpreter_in_uvs_cache_is_never_printed(tmp_path: Path, environment: dict[str, str]) -> None:
    python = make_environment(tmp_path / "uv cache" / "environments-v2" / "peekaboo-1f2e")
    file = shutil.copy(SINGLE_FILE, tmp_path / "peekaboo.py")
    done = config([python, file], {**environment, "UV": "/opt/uv/uv"}, "cursor")
    block = block_of("cursor", done.out)
    assert [block["command"], *block["args"]] == ["/opt/uv/uv", "run", "--script", str(file)]
    without_uv = config(
        [python, file], {**environment, "PATH": "/nowhere", "PEEKABOO_BIN_DIR": str(tmp_path)}, "cursor"
    )
    assert without_uv.code == 2 and "is in a cache that may be cleaned" in without_uv.err
    # neither this environment nor the checkout's folder: both may hold the record of an installation
    shutil.copytree(ROOT / "peekaboo_min", tmp_path / "copy" / "peekaboo_min")
    bare = make_environment(tmp_path / "uv cache" / "environments-v2" / "bare-1f2e", with_mcp=False)
    words = [bare, "-m", "peekaboo_min"]
    variables = {**environment, "UV": "/opt/uv/uv", "PYTHONPATH": str(tmp_path / "copy")}
    not_installed = config(words, variables, "cursor")
    assert not_installed.code == 2 and "this package is not installed" in not_installed.err


def test_the_form_for_uv_starts(
    tmp_path: Path, environment: dict[str, str], display: str, form: Form
) -> None:
    uv = need_optional("uv")
    folder = tmp_path / ODD
    folder.mkdir()
    file = shutil.copy(SINGLE_FILE, folder / "peekaboo.py")
    own = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    terminal = {**environment, **own, "DISPLAY": display}
    asked = [word for name in ("TMPDIR", "XDG_STATE_HOME", *own) for word in ("--env", name)]
    done = config([uv, "run", "--script", file], terminal, "codex", *asked)
    assert done.code == 0, done.err
    block = block_of("codex", done.out)
    assert [block["command"], *block["args"]] == [uv, "run", "--script", str(file)]
    foreign = ForeignFolder(tmp_path / "foreign")
    assert form.title in start("codex", block, terminal, foreign.path, listed_titles)
    assert foreign.executed() == []


def test_a_server_without_a_display_says_where_to_set_it(tmp_path: Path, environment: dict[str, str]) -> None:
    done = config(
        FORMS["package"](Path()), environment, "cursor", "--env", "TMPDIR", "--env", "XDG_STATE_HOME"
    )

    async def said(session: ClientSession) -> str:
        answer = await session.call_tool("list_windows", {})
        assert answer.is_error
        return answer.content[0].text

    text = start("cursor", block_of("cursor", done.out), {}, tmp_path, said)
    assert text.startswith("NO_GUI_SESSION: ") and "set DISPLAY in this server's configuration" in text
    shell = subprocess.run(
        [sys.executable, "-m", "peekaboo_min", "windows"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "set DISPLAY to a running X server" in shell.stderr and "configuration" not in shell.stderr
