"""Fixtures of the front ends: one fake Mac and one fake model for a file, as servers are slow to start."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fake_ai import FakeAI
from fakemac import FakeMac
from macs import fake_mac
from worlds import PATIENCE_S, ROOT, Finished, Program, clean_environment, program_words

# A Python that has loaded the command line, and forks for each command: the start is what costs.
_FORK_SERVER = """
import json, os, sys, traceback
from peekaboo_min.frontends import cli, commands
for name in ("list apps", "image", "doctor", "click"):
    commands.COMMANDS[name]
for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if not child:
        for number, path in ((1, task["out"]), (2, task["err"])):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(task["environment"])
        sys.argv = ["peekaboo-min", *task["arguments"]]
        try:
            cli.run()
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def mac(shared_mac: FakeMac) -> FakeMac:
    return shared_mac


@pytest.fixture(scope="module")
def ai(shared_ai: FakeAI) -> FakeAI:
    return shared_ai


@pytest.fixture
def own_mac(tmp_path: Path) -> Iterator[FakeMac]:
    """For a test that changes the Mac's permissions, behaviour or order of windows."""
    with fake_mac(tmp_path / "mac") as fake:
        yield fake


@dataclass(frozen=True)
class ForkedProgram(Program):
    """The package's command line, each command in a process of its own that is forked, not started.

    For what the interpreter's start has no part in: not for locales, closed streams or imports.
    """

    folder: Path
    server: subprocess.Popen

    def run(self, *arguments: Any, timeout_s: float = 2 * PATIENCE_S, **variables: str) -> Finished:
        out, err = self.folder / "stdout", self.folder / "stderr"
        environment = {**self.environment, **variables}
        task = {"arguments": list(map(str, arguments)), "environment": environment}
        self.server.stdin.write(json.dumps({**task, "out": str(out), "err": str(err)}) + "\n")
        self.server.stdin.flush()
        assert select.select([self.server.stdout], [], [], timeout_s)[0], f"{arguments} hangs"
        code = int(self.server.stdout.readline())
        return Finished(code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def fork_server() -> Iterator[subprocess.Popen]:
    words = [sys.executable, "-W", "error", "-c", _FORK_SERVER]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, encoding="utf-8") as process:
        yield process
        process.stdin.close()


@pytest.fixture
def forked(fork_server: subprocess.Popen, tmp_path: Path) -> ForkedProgram:
    folder = tmp_path / "streams"
    folder.mkdir()
    return ForkedProgram(program_words("package"), clean_environment(tmp_path), folder, fork_server)
