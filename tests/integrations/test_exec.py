"""peekaboo_exec and `exec`: program, output, exit code, timeout."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from answers import seen
from fake_ai import picture
from fakemac import FakeMac
from in_process import InProcessProgram
from macs import mac_environment
from mcp_server import initialized
from worlds import Program, executable

from peekaboo_min import __version__
from peekaboo_min.core.call import in_parallel

# a peekaboo with a fixed version that runs its first argument as a shell line
BREWED = """#!/bin/sh
[ "$1" = --version ] && echo "Peekaboo 9.8.7" && exit 0
exec sh -c "$1"
"""


@pytest.fixture
def shell(mac: FakeMac, tmp_path: Path) -> Program:
    path = executable(tmp_path / "cli" / "peekaboo", BREWED)
    return InProcessProgram(mac_environment(mac, PEEKABOO_CLI_PATH=os.path.relpath(path)))


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("echo out; echo err >&2; exit 3", 3, "out\n", "err\n"),
        ("echo x; kill -9 $$", 137, "x\n", ""),
        ("true", 0, "", ""),
        ("printf 'a\\033b\\r\\n'", 0, "a\ufffdb\n", ""),
        ("head -c 100000 /dev/zero | tr '\\0' x", 0, "x" * 100_000, ""),
    ],
    ids=str,
)
def test_exec_returns_exit_code_stdout_and_stderr(
    shell: Program, line: str, code: int, out: str, err: str
) -> None:
    # spec: "Collect `stdout`, `stderr`, `exit_code`"
    done = shell.run("exec", "--", line)
    assert (done.code, done.out, done.err) == (code, out, err)


@pytest.mark.parametrize(("line", "found"), [("echo; echo '[1]'", [1]), ("echo '{'", None)])
def test_exec_reads_json_if_it_is_valid(shell: Program, line: str, found: Any) -> None:
    assert shell.data("exec", "--json", "--", line).get("json") == found


def test_exec_prints_an_image_unchanged(shell: Program, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    with shell.start("exec", "--", f"cat {shlex.quote(str(tmp_path))}/a.png") as process:
        assert process.communicate()[0] == picture()


def test_exec_of_a_program_that_deletes_itself_has_its_output(shell: Program, tmp_path: Path) -> None:
    path = tmp_path / "cli" / "peekaboo"
    data = shell.data("exec", "--json", "--", f"rm {shlex.quote(str(path))}; echo done")
    assert (data["stdout"], data["version"]) == ("done\n", f"unknown: the program {path} is not installed")


def test_exec_names_the_program_and_its_version(shell: Program, mac: FakeMac, tmp_path: Path) -> None:
    # spec: "Add `peekaboo --version` to environment capability probe (helps tool selection)"
    data = shell.data("exec", "--json", "--", "true", "hunter2")
    path = str(tmp_path / "cli" / "peekaboo")
    assert (data["program"], data["version"]) == (path, "Peekaboo 9.8.7")
    (log,) = mac.home.rglob("audit.jsonl")
    audited = json.loads(log.read_text())
    del audited["time"], audited["pid"]
    assert audited == {"action": "exec", "program": path, "command": "true", "arguments": 2}
    assert shell.data("exec", "--json", "--", f": {'secret' * 9}")["exit_code"] == 0
    assert "secret" * 7 not in log.read_text(), "only the start of the first argument is recorded"
    ours = InProcessProgram(mac_environment(mac)).data("exec", "--json", "--", "--version")
    assert (ours["version"], ours["stdout"]) == (__version__, f"{__version__}\n")
    assert f"{path} Peekaboo 9.8.7" in shell.run("doctor").out


def test_exec_keeps_the_output_from_before_a_timeout(shell: Program, tmp_path: Path) -> None:
    # spec: "`timeout_seconds` (optional) `number`: process timeout"
    (tmp_path / "a.png").write_bytes(picture())
    (tmp_path / "work").mkdir()
    line = f"echo halfway; echo err >&2; cat {shlex.quote(str(tmp_path))}/a.png >b.png; exec sleep 600"
    argv = ["exec", "--timeout-seconds", "3", "--cwd", tmp_path / "work"]
    done, as_json = in_parallel(
        lambda options: shell.run(*argv, *options), [["--", line], ["--json", "--", line]]
    )
    assert (done.code, done.out) == (22, "halfway\n")
    left = f"note: new images in {tmp_path / 'work'}: [b.png]\n"
    assert done.err.startswith(f"err\n{left}peekaboo-min: peekaboo did not finish within 3")
    assert as_json.error["code"] == "TIMEOUT" and as_json.json["data"]["stdout"] == "halfway\n"
    assert as_json.json["data"]["exit_code"] is None
    hint = "; raise timeout_seconds, or check whether a dialog is waiting"
    assert as_json.error["message"].endswith(hint) and as_json.json["messages"] == [left[6:-1]]


def test_exec_returns_output_if_an_image_cannot_be_attached(mac: FakeMac, tmp_path: Path) -> None:
    # spec: "Collect `stdout`, `stderr`, `exit_code`"
    (tmp_path / "work").mkdir()
    for name in ("work/old.png", "work/a2.png", "a.png", "a10.png", "a2.png"):
        (tmp_path / name).write_bytes(picture("png", 64, 48, padding=100_000))
    (tmp_path / "large.png").write_bytes(picture("png", 3000, 3000))
    path = executable(tmp_path / "cli" / "peekaboo", BREWED)
    with initialized("package", mac_environment(mac, PEEKABOO_CLI_PATH=str(path))) as server:
        mac.fail("sips", exit=13, stderr="no")
        work = tmp_path / "work"
        line = (
            f"cp {tmp_path}/*.png {work}; ln -s a.png {work}/link.png; truncate -s 60000000 {work}/huge.jpg; "
        )
        line += "head -c 50000 /dev/zero | tr '\\0' x"
        answer = server.call("peekaboo_exec", args=[line], cwd=str(work))
        assert (seen(answer)["exit_code"], seen(answer)["attachments"]) == (0, ["a2.png", "a10.png", "a.png"])
        assert seen(answer)["stdout"] == "x" * 50_000
        text = answer["content"][0]["text"]
        left = f"new images in {work}: [a2.png] [a10.png] [a.png], 1 more not attached"
        assert text.startswith(f"exit code 0\nnote: {left}\n")


def test_exec_without_a_valid_peekaboo_cli_path_runs_the_built_in_one(mac: FakeMac, tmp_path: Path) -> None:
    # spec: "If PEEKABOO_CLI_PATH is not set or invalid, the server will fall back to a bundled path"
    environment = mac_environment(mac, PEEKABOO_CLI_PATH=str(tmp_path / "nothing"))
    problem = f"PEEKABOO_CLI_PATH names {tmp_path / 'nothing'}, which is not an executable"
    with initialized("package", environment) as server:
        assert seen(server.call("peekaboo_exec", args=["--version"]))["stdout"] == f"{__version__}\n"
        # spec: "`peekaboo permissions check`"
        assert seen(server.call("peekaboo_exec", args=["permissions", "check"]))["exit_code"] == 0
        server.call("list")  # consumes the status text
        assert seen(server.call("list"))["application_list"]
        status = server.call("list", item_type="server_status")["content"][0]["text"]
        problems = status.partition("\n\nProblems:\n")[2].splitlines()
        assert f"- peekaboo: {problem} (only for peekaboo_exec); correct it, or unset it" in problems
    assert problem in InProcessProgram(environment).run("doctor").out
