"""run_program and running with real programs; what a signal to us does to those programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextvars import copy_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Callable, Optional

import pytest
from samples import error_of
from worlds import PATIENCE_S, ROOT, Program, wait_for

from peekaboo_min.core.cancellation import CancelToken, in_parallel, pause, use_cancel_token
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.system.process import Completed, run_program, running
from peekaboo_min.system.programs import find_program


def sh(script: str, *arguments: str, timeout_s: float = PATIENCE_S, **options: Any) -> Completed:
    return run_program(["sh", "-c", script, "sh", *arguments], timeout_s=timeout_s, **options)


def failure(script: str, *arguments: str, **options: Any) -> PeekabooError:
    return error_of(sh, script, *arguments, **options)


def is_alive(pid: int) -> bool:
    """False for a zombie, too: what was killed may have nobody who buries it."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")


def pids_in(path: Path, count: int) -> list[int]:
    """The pids that a script noted, once there are so many."""

    def noted() -> Optional[list[int]]:
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [int(line) for line in lines] if len(lines) >= count else None

    return wait_for(noted, f"{count} programs note their pids")


def assert_all_dead(pids: Sequence[int]) -> None:
    wait_for(lambda: not any(map(is_alive, pids)), f"{pids} are dead")


def python(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that runs our modules."""
    argv = [sys.executable, "-c", script, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # files, not pipes: what a test leaves running would keep those open
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        done = subprocess.run(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, timeout=PATIENCE_S
        )
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(argv, done.returncode, out.read(), err.read())


def test_arguments_arrive_as_they_are_and_no_shell_reads_them() -> None:
    arguments = ["a b", "$(echo x)", "*", ";ls", "-n", "", "Zoë 日本", "line\nline", "'\"\\"]
    done = run_program(["printf", "%s\\0", *arguments], timeout_s=PATIENCE_S)
    assert done == Completed(0, b"".join(argument.encode() + b"\0" for argument in arguments), "")


MUCH = bytes(range(256)) * 40_000
INPUTS: dict[str, tuple[list[str], bytes, Completed]] = {
    "closed where none is given": (["cat"], b"", Completed(0, b"", "")),
    "much, with much output at once": (["cat"], MUCH, Completed(0, MUCH, "")),
    "left unread": (["true"], MUCH, Completed(0, b"", "")),
    "read in part": (["head", "-c", "5"], b"x" * 5_000_000, Completed(0, b"xxxxx", "")),
    "stdout and stderr are kept apart": (
        ["sh"], b"echo out; echo err >&2", Completed(0, b"out\n", "err\n"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("argv", "stdin", "done"), INPUTS.values(), ids=INPUTS.keys())
def test_input_reaches_a_program(argv: list[str], stdin: bytes, done: Completed) -> None:
    assert run_program(argv, timeout_s=PATIENCE_S, stdin=stdin) == done


def test_a_program_leads_a_process_group_and_a_session_of_its_own() -> None:
    pid, group, session = sh("echo $$; ps -o pgid= -p $$; ps -o sess= -p $$").text.split()
    assert (group, session) == (pid, pid)


STUBBORN = (
    "trap '' TERM INT HUP; echo $$ >> $1; "
    "sh -c 'trap \"\" TERM; echo $$ >> $1; while :; do sleep 1; done' sh $1 & "
)


def test_a_timeout_kills_the_whole_group_whatever_it_ignores(tmp_path: Path) -> None:
    leaders = ["wait", "while :; do sleep 1; done", "exec >&- 2>&-; while :; do sleep 1; done"]
    pids = tmp_path / "pids"
    for error in in_parallel(lambda leader: failure(STUBBORN + leader, str(pids), timeout_s=2), leaders):
        assert error.code is ErrorCode.TIMEOUT
        assert error.message == "sh did not end within 2 seconds and was killed"
    assert_all_dead(pids_in(pids, 6))


@pytest.mark.parametrize("left_behind", ["sleep 600", "sh -c 'while :; do echo more; sleep 0.01; done'"])
def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_us(tmp_path: Path, left_behind: str) -> None:
    # held by it, the call would end with TIMEOUT
    done = sh(f"{left_behind} & echo $! >> $1; echo said", str(tmp_path / "pids"))
    assert (done.code, done.text.replace("more\n", "")) == (0, "said\n")
    assert_all_dead(pids_in(tmp_path / "pids", 1))


def test_what_was_said_just_before_the_end_is_read_whole() -> None:
    assert len(sh("sleep 600 & head -c 300000 /dev/zero").stdout) == 300_000


def test_a_daemon_may_live_on_where_that_is_wanted(tmp_path: Path) -> None:
    done = sh("sleep 600 & echo $! >> $1", str(tmp_path / "pids"), leaves_daemon=True)
    (pid,) = pids_in(tmp_path / "pids", 1)
    try:
        assert (done, is_alive(pid)) == (Completed(0, b"", ""), True)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_program_that_writes_without_end_is_stopped_by_the_cap(tmp_path: Path) -> None:
    """And little more than the cap is read of it."""
    error = failure("exec head -c 2000000000 /dev/zero | tee $1", str(tmp_path / "written"))
    assert (error.code, error.hint) == (ErrorCode.PROGRAM_FAILED, "request less output")
    assert (tmp_path / "written").stat().st_size < 1_000_000_000


def test_of_much_on_stderr_the_end_is_kept() -> None:
    done = sh("head -c 200000 /dev/zero | tr '\\0' x >&2; echo the end >&2")
    assert done.stderr.endswith("xxxthe end\n") and len(done.stderr) == 65536


EXITS = {
    "0 is fine": ("exit 0", (0,), 0),
    "1 is fine where it is accepted": ("exit 1", (0, 1), 1),
    "any is fine with None": ("exit 77", None, 77),
    "a signal is a negative code": ("kill -KILL $$", None, -9),
    "a real-time signal, which may have no name, too": ("kill -40 $$", None, -40),
}


@pytest.mark.parametrize(("script", "accept", "code"), EXITS.values(), ids=EXITS.keys())
def test_exit_codes_are_told(script: str, accept: Optional[Sequence[int]], code: int) -> None:
    assert sh(script, accept=accept).code == code


def test_another_exit_code_is_an_error_with_the_programs_own_words() -> None:
    error = failure("echo out; echo broken >&2; exit 3")
    assert (error.code, error.message, error.details) == (
        ErrorCode.PROGRAM_FAILED,
        "sh failed with exit code 3",
        "broken",
    )


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ("a\0b", ErrorCode.INVALID_ARGUMENT),
        ("a\ud800b", ErrorCode.INVALID_ARGUMENT),
        ("x" * 20_000_000, ErrorCode.PROGRAM_FAILED),
    ],
    ids=["a NUL", "half a character", "too long"],
)
def test_an_argument_that_cannot_be_passed_is_refused_and_nothing_runs(
    tmp_path: Path, argument: str, code: ErrorCode
) -> None:
    assert failure("touch $1", str(tmp_path / "there"), argument).code is code
    assert list(tmp_path.iterdir()) == []


LIMITED = """
import os, resource
from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.system.process import run_program
run_program(["true"], timeout_s=60)
used = len(os.listdir("/proc/self/fd"))
resource.setrlimit(resource.{limit}, ({most}, {most}))
try:
    run_program(["cat"], timeout_s=60, stdin={stdin})
except PeekabooError as e:
    print(e.code_name, e.message)
"""
LIMITS = {
    "a full disk for the input": ("RLIMIT_FSIZE", "1000", b"x" * 5000, "FILE_IO_ERROR", "File too large"),
    "no descriptor left": ("RLIMIT_NOFILE", "used", b"", "PROGRAM_FAILED", "Too many open files"),
}


@pytest.mark.parametrize(("limit", "most", "stdin", "code", "reason"), LIMITS.values(), ids=LIMITS.keys())
def test_a_machine_that_has_no_more_is_an_error_with_its_reason(
    limit: str, most: str, stdin: bytes, code: str, reason: str
) -> None:
    done = python(LIMITED.format(limit=limit, most=most, stdin=stdin))
    assert (done.stdout.split()[:1], done.stderr) == ([code], "") and reason in done.stdout


def test_a_missing_program_is_reported_with_the_next_step() -> None:
    error = error_of(run_program, ["no-such-program"], timeout_s=PATIENCE_S)
    assert error.code is ErrorCode.MISSING_PROGRAM
    assert error.sentence() == "the program no-such-program is not installed; install it, or put it on PATH"


def test_the_folder_for_programs_is_the_only_place_that_is_searched(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    assert find_program("true")
    (tmp_path / "mine").write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "mine").chmod(0o700)
    (tmp_path / "text").write_text("not a program")
    (tmp_path / "folder").mkdir()
    environment(PEEKABOO_BIN_DIR=str(tmp_path))
    assert run_program(["mine"], timeout_s=PATIENCE_S).text == "mine\n"
    assert [find_program(name) for name in ("true", "text", "folder", "gone")] == [None] * 4


def test_a_file_that_is_no_program_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o700)
    error = error_of(run_program, [str(tmp_path / "broken")], timeout_s=PATIENCE_S)
    assert error.code is ErrorCode.MISSING_PROGRAM


def under(token: CancelToken, work: Callable[[], PeekabooError]) -> ErrorCode:
    """The code of the error of work() where `token` cancels it."""

    def run() -> ErrorCode:
        use_cancel_token(token)
        return work().code

    return copy_context().run(run)


def test_cancelling_kills_the_whole_group(tmp_path: Path) -> None:
    path, token = tmp_path / "pids", CancelToken()
    threading.Thread(target=lambda: pids_in(path, 2) and token.cancel()).start()
    code = under(token, lambda: failure(STUBBORN + "wait", str(path), timeout_s=600))
    assert code is ErrorCode.CANCELLED
    assert_all_dead(pids_in(path, 2))


def test_a_cancelled_call_does_not_wait_and_starts_no_program(tmp_path: Path) -> None:
    token = CancelToken()
    threading.Timer(0.1, token.cancel).start()
    assert under(token, lambda: error_of(pause, 600)) is ErrorCode.CANCELLED
    assert under(token, lambda: failure("touch $1", str(tmp_path / "there"))) is ErrorCode.CANCELLED
    assert list(tmp_path.iterdir()) == []


def test_another_command_line_is_not_handed_on_to_children(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    environment(PEEKABOO_CLI_PATH="/bin/true", PEEKABOO_READONLY="1")
    said = sh(
        "echo ${PEEKABOO_CLI_PATH-unset} ${PEEKABOO_READONLY-unset} $MORE", environment={"MORE": "more"}
    ).text
    assert said == "unset 1 more\n"
    path = tmp_path / "said"
    with running(["sh", "-c", "echo ${PEEKABOO_CLI_PATH-unset} >$0; sleep 600", str(path)], b""):
        assert wait_for(lambda: path.exists() and path.read_text(), "it says something") == "unset\n"


def test_a_background_program_reads_its_input_and_dies_with_the_block(tmp_path: Path) -> None:
    script = f"cat >$1.input; {STUBBORN} wait"
    with (
        pytest.raises(ZeroDivisionError),
        running(["sh", "-c", script, "sh", str(tmp_path / "pids")], b"x" * 100_000),
    ):
        path = tmp_path / "pids.input"
        wait_for(lambda: path.exists() and path.stat().st_size == 100_000, "it has read all")
        pids = pids_in(tmp_path / "pids", 2)
        raise ZeroDivisionError
    assert_all_dead(pids)


OUTLIVED = """
import os, signal
from peekaboo_min.system.process import running
script = "read go; echo reached; read more; echo more; touch $0"
with running(["sh", "-c", script, {path!r}], None) as program:
    program.ask("go", lambda answer: "reached" in answer)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_program_that_we_talk_to_does_its_last_line_also_when_we_are_killed(tmp_path: Path) -> None:
    """What it prints then reaches nobody, which must not end it between a press and the release."""
    path = tmp_path / "done"
    python(OUTLIVED.format(path=str(path)))
    wait_for(path.exists, "it did all of its line")


SLOW = """#!/bin/sh
[ "$1" != -version ] || {{ echo "${{0##*/}} 1.1"; exit; }}
trap '' TERM INT HUP
echo $$ >> {pids}
sleep 600 &
echo $! >> {pids}
wait
"""


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name
)
def test_a_signal_ends_a_command_and_all_that_it_runs(
    program: Program, tmp_path: Path, display: str, number: signal.Signals
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    pids = tmp_path / "pids"
    (programs / "maim").write_text(SLOW.format(pids=pids))
    (programs / "maim").chmod(0o700)
    with program.start("image", "--json-output", PEEKABOO_BIN_DIR=str(programs), DISPLAY=display) as process:
        children = pids_in(pids, 2)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, out, err) == (128 + number, b"", b"")
    assert_all_dead(children)


ENDING_US = """
import sys
from peekaboo_min.system.ending import end_cleanly_on_signals
from peekaboo_min.system.process import run_program
end_cleanly_on_signals()
script = 'echo $$ >> $0; kill -TERM $PPID; exec sleep 600'
run_program(['sh', '-c', script, sys.argv[1]], timeout_s=600)
"""


def test_a_program_that_ends_us_as_soon_as_it_starts_does_not_outlive_us(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    for round_number in range(1, 6):
        assert python(ENDING_US, str(pids)).returncode == 128 + signal.SIGTERM
        assert_all_dead(pids_in(pids, round_number))


STARTED_AT_THE_END = """
import os, subprocess, sys, threading, time
from peekaboo_min.system import process

class Slow(subprocess.Popen):
    def __init__(self, argv, **options):
        super().__init__(argv, **options)
        started.set()  # it runs, and is not registered yet
        time.sleep(1)

started = threading.Event()
subprocess.Popen = Slow
argv = ["sh", "-c", 'echo $$ > $0; exec sleep 600', sys.argv[1]]
threading.Thread(target=process.run_program, args=[argv], kwargs={"timeout_s": 600}, daemon=True).start()
started.wait()
process.end_all_programs()
os._exit(0)
"""


def test_what_is_being_started_when_the_server_ends_does_not_outlive_it(tmp_path: Path) -> None:
    assert python(STARTED_AT_THE_END, str(tmp_path / "pid")).returncode == 0
    assert_all_dead(pids_in(tmp_path / "pid", 1))


FAILING_HOOK = """
from peekaboo_min.system import ending
ending.exit_hooks += [lambda: 1 / 0, lambda: print("put back", flush=True)]
ending.call_exit_hooks()
"""


def test_a_hook_that_fails_at_our_end_does_not_keep_the_next_one_from_its_work() -> None:
    done = python(FAILING_HOOK)
    assert (done.returncode, done.stdout) == (0, "put back\n")


LEFT_BEHIND = """
import sys
from peekaboo_min.core.cancellation import uninterrupted
from peekaboo_min.system import ending, process
ending.end_cleanly_on_signals()
script = 'sleep 600 & echo $! > $0; kill -TERM $PPID; sleep 0.2'
with uninterrupted():
    process.run_program(["sh", "-c", script, sys.argv[1]], timeout_s=60, leaves_daemon=True)
"""


def test_a_signal_leaves_alone_what_an_uninterrupted_program_left_behind(tmp_path: Path) -> None:
    done = python(LEFT_BEHIND, str(tmp_path / "pid"))
    (pid,) = pids_in(tmp_path / "pid", 1)
    try:
        assert done.returncode == 128 + signal.SIGTERM and is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


TWO_STARTS = """
import os, signal, subprocess, sys, threading, time
from peekaboo_min.core.cancellation import in_parallel
from peekaboo_min.system import ending, process

class Slow(subprocess.Popen):
    def __init__(self, argv, **options):
        super().__init__(argv, **options)
        started.wait()  # both programs run, and neither is registered yet
        if argv[-1] == "late":
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

started = threading.Barrier(2)
subprocess.Popen = Slow
ending.end_cleanly_on_signals()
script = 'echo $$ >> $0; exec sleep 600'
argv = ["sh", "-c", script, sys.argv[1]]
in_parallel(lambda name: process.run_program([*argv, name], timeout_s=600), ["early", "late"])
"""


def test_a_program_that_another_thread_is_starting_does_not_outlive_us(tmp_path: Path) -> None:
    assert python(TWO_STARTS, str(tmp_path / "pids")).returncode == 128 + signal.SIGTERM
    assert_all_dead(pids_in(tmp_path / "pids", 2))
