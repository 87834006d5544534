"""run_program and running with real programs, and signals to this process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextvars import copy_context
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Callable

import pytest
from mcp_server import SLOW, assert_all_dead, is_alive, pids_in
from samples import error_of
from worlds import PATIENCE_S, ROOT, Program, executable, wait_for

from peekaboo_min.core.call import in_parallel, pause, time_budget, uninterrupted, use_cancel_token
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.system.process import Completed, end_all_programs, run_program, running
from peekaboo_min.system.programs import find_programs


def sh(script: str, *arguments: str, timeout_s: float = PATIENCE_S, **options: Any) -> Completed:
    return run_program(["sh", "-c", script, "sh", *arguments], timeout_s=timeout_s, **options)


def failure(script: str, *arguments: str, **options: Any) -> PeekabooError:
    return error_of(sh, script, *arguments, **options)


def python(script: str, *arguments: str) -> tuple[int, str]:
    """Run a script with our modules in its own process; return its exit code and output."""
    # a file, not a pipe: a program that a test leaves running would keep a pipe open
    argv, environment = [sys.executable, "-c", script, *arguments], {**os.environ, "PYTHONPATH": str(ROOT)}
    with TemporaryFile("w+") as out:
        code = subprocess.call(argv, env=environment, stdout=out, stderr=out, timeout=PATIENCE_S)
        out.seek(0)
        return code, out.read()


def test_program_gets_no_more_time_than_the_shortest_budget_around_it() -> None:
    with time_budget(0.0), time_budget(60.0):
        error = failure("exit 1")
    assert error.sentence() == "the call timed out; increase the timeout and try again"


MUCH = bytes(range(256)) * 40_000
ARGUMENTS = ["a b", "$(echo x)", "*", ";ls", "-n", "", "Zoë 日本", "line\nline", "'\"\\"]
ARGUMENTS_OUT = "".join(f"{argument}\0" for argument in ARGUMENTS).encode()
RUNS: dict[str, tuple[list[str], bytes, Completed]] = {
    "no shell reads arguments": (["printf", "%s\\0", *ARGUMENTS], b"", Completed(0, ARGUMENTS_OUT, "")),
    "closed if not given": (["cat"], b"", Completed(0, b"", "")),
    "much, with much output at once": (["cat"], MUCH, Completed(0, MUCH, "")),
    "read in part": (["head", "-c", "5"], b"x" * 5_000_000, Completed(0, b"xxxxx", "")),
    "stdout and stderr are kept apart": (["sh"], b"echo out; echo err >&2", Completed(0, b"out\n", "err\n")),
}


@pytest.mark.parametrize(("argv", "stdin", "done"), RUNS.values(), ids=RUNS.keys())
def test_run_program_passes_arguments_and_input_on(argv: list[str], stdin: bytes, done: Completed) -> None:
    assert run_program(argv, timeout_s=PATIENCE_S, stdin=stdin) == done


def test_run_program_starts_a_session_and_keeps_the_end_of_stderr() -> None:
    much = "head -c 200000 /dev/zero | tr '\\0' x >&2; echo end >&2"
    done = sh(f"echo $$; ps -o pgid= -p $$; ps -o sess= -p $$; {much}")
    pid, group, session = done.text.split()
    assert (group, session) == (pid, pid)
    assert done.stderr.endswith("xxxend\n") and len(done.stderr) == 65536


STUBBORN = (
    "trap '' TERM INT HUP; echo $$ >> $1; "
    "sh -c 'trap \"\" TERM; echo $$ >> $1; while :; do sleep 1; done' sh $1 & "
)


def test_run_program_timeout_kills_the_whole_group(tmp_path: Path) -> None:
    leaders = ["wait", "while :; do sleep 1; done", "exec >&- 2>&-; while :; do sleep 1; done"]
    pids = tmp_path / "pids"
    for error in in_parallel(lambda leader: failure(STUBBORN + leader, str(pids), timeout_s=2), leaders):
        assert error.code is ErrorCode.TIMEOUT
        assert error.message == "sh did not finish within 2 seconds and was killed"
    assert_all_dead(pids_in(pids, 6))


@pytest.mark.parametrize("left_behind", ["sleep 600", "sh -c 'while :; do echo more; sleep 0.01; done'"])
def test_run_program_is_not_held_by_a_grandchild(tmp_path: Path, left_behind: str) -> None:
    # held by it, the call would end with TIMEOUT
    script = f"{left_behind} & echo $! >> $1; head -c 300000 /dev/zero"
    done = sh(script, str(tmp_path / "pids"))
    assert (done.code, done.stdout.count(b"\0")) == (0, 300_000), "the output just before the end is kept"
    assert_all_dead(pids_in(tmp_path / "pids", 1))


def test_run_program_leaves_a_daemon_if_allowed(tmp_path: Path) -> None:
    done = sh("sleep 600 & echo $! >> $1", str(tmp_path / "pids"), leaves_daemon=True)
    (pid,) = pids_in(tmp_path / "pids", 1)
    try:
        assert (done, is_alive(pid)) == (Completed(0, b"", ""), True)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_run_program_kills_a_daemon_that_does_not_start_in_time(tmp_path: Path) -> None:
    error = failure(STUBBORN + "wait", str(tmp_path / "pids"), leaves_daemon=True, timeout_s=2)
    assert error.code is ErrorCode.TIMEOUT
    assert_all_dead(pids_in(tmp_path / "pids"))


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_run_program_stops_output_at_the_cap(tmp_path: Path, stream: str) -> None:
    """Read little more than the cap."""
    error = failure(f"exec head -c 2000000000 /dev/zero | tee $1 {stream}", str(tmp_path / "written"))
    assert (error.code, error.hint) == (ErrorCode.PROGRAM_FAILED, "request less output")
    assert (tmp_path / "written").stat().st_size < 1_000_000_000


def test_run_program_reports_exit_codes_and_the_programs_own_message() -> None:
    assert [sh("exit 1", accept=(0, 1)).code, sh("exit 77", accept=None).code] == [1, 77]
    # a real-time signal may have no name
    assert [sh(f"kill -{number} $$", accept=None).code for number in (9, 40)] == [-9, -40]
    error = failure("echo out; seq 999 >&2; echo broken >&2; exit 3")
    ends = (error.details[-10:], len(error.details))
    assert (error.code, *ends) == (ErrorCode.PROGRAM_FAILED, "999\nbroken", 2000)
    assert error.message == "sh failed with exit code 3"


@pytest.mark.parametrize(
    ("argument", "code"),
    [
        ("a\0b", ErrorCode.INVALID_ARGUMENT),
        ("a\ud800b", ErrorCode.INVALID_ARGUMENT),
        ("x" * 20_000_000, ErrorCode.PROGRAM_FAILED),
    ],
    ids=["a NUL", "half a character", "too long"],
)
def test_run_program_refuses_an_impossible_argument(tmp_path: Path, argument: str, code: ErrorCode) -> None:
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


@pytest.mark.parametrize(
    ("limit", "most", "stdin", "error"),
    [
        ("RLIMIT_FSIZE", "1000", b"x" * 5000, "FILE_IO_ERROR .*File too large"),
        ("RLIMIT_NOFILE", "used", b"", "PROGRAM_FAILED .*Too many open files"),
    ],
)
def test_run_program_reports_an_exhausted_machine(limit: str, most: str, stdin: bytes, error: str) -> None:
    _, out = python(LIMITED.format(limit=limit, most=most, stdin=stdin))
    assert re.match(error, out) and "Traceback" not in out


def test_missing_program_is_an_error_with_a_next_step() -> None:
    error = error_of(run_program, ["no-such-program"], timeout_s=PATIENCE_S)
    assert error.code is ErrorCode.MISSING_PROGRAM
    assert error.sentence() == "the program no-such-program is not installed; install it, or put it on PATH"


def test_find_program_searches_only_its_folder(environment: Callable[..., None], tmp_path: Path) -> None:
    executable(tmp_path / "mine", "echo mine")
    executable(tmp_path / "broken", "#!/no/such/interpreter\n")
    (tmp_path / "text").write_text("not a program")
    (tmp_path / "folder").mkdir()
    assert list(find_programs("true"))
    environment(PEEKABOO_BIN_DIR=str(tmp_path))
    assert run_program(["mine"], timeout_s=PATIENCE_S).text == "mine\n"
    assert [list(find_programs(name)) for name in ("true", "text", "folder", "gone")] == [[]] * 4
    (tmp_path / "text").chmod(0o755)
    executable(tmp_path / "denied", f"#!{tmp_path}\n")
    broken = [str(tmp_path / name) for name in ("broken", "text", "denied")]
    errors = [error_of(run_program, [path], timeout_s=PATIENCE_S).code for path in broken]
    assert errors == [ErrorCode.MISSING_PROGRAM] * 3


def cancelled(token: threading.Event, work: Callable[..., PeekabooError], *arguments: Any) -> ErrorCode:
    """Return the code of the error of a call that `token` cancels; run it in a copied context."""
    use_cancel_token(token)
    return work(*arguments).code


def test_run_program_is_not_started_after_cancelling(tmp_path: Path) -> None:
    token, context = threading.Event(), copy_context()
    threading.Timer(0.1, token.set).start()
    assert context.run(cancelled, token, error_of, pause, 600) is ErrorCode.CANCELLED
    assert context.run(cancelled, token, failure, "touch $1", tmp_path / "there") is ErrorCode.CANCELLED
    assert list(tmp_path.iterdir()) == []


def test_uninterrupted_program_runs_after_cancelling_and_past_the_time_budget() -> None:
    def run(token: threading.Event) -> str:
        use_cancel_token(token)
        token.set()
        with time_budget(0), uninterrupted():
            return sh("echo restored").text

    assert copy_context().run(run, threading.Event()) == "restored\n"


def test_run_program_does_not_pass_peekaboo_cli_path_on(environment: Callable[..., None]) -> None:
    environment(PEEKABOO_CLI_PATH="/bin/true", PEEKABOO_READONLY="1", MORE="less")
    script = "echo ${PEEKABOO_CLI_PATH-unset} ${PEEKABOO_READONLY-unset} $MORE"
    assert sh(script, environment={"MORE": "more"}).text == "unset 1 more\n"


@pytest.mark.parametrize(
    ("path", "given"), [(".:/usr/bin::x/y:~/b:/bin:", "/usr/bin:/bin"), (".", os.defpath), ("", os.defpath)]
)
def test_program_gets_absolute_paths_only(environment: Callable[..., None], path: str, given: str) -> None:
    environment(PATH=path)
    assert sh('echo "$PATH"').text == f"{given}\n"


def test_running_reads_its_input_and_dies_with_the_block(tmp_path: Path) -> None:
    script = f"cat >$1.input; {STUBBORN} wait"
    argv, path = ["sh", "-c", script, "sh", str(tmp_path / "pids")], tmp_path / "pids.input"
    with pytest.raises(ZeroDivisionError), running(argv, b"x" * 100_000):
        wait_for(lambda: path.exists() and path.stat().st_size == 100_000, "stdin is read")
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


def test_program_finishes_its_last_line_when_we_are_killed(tmp_path: Path) -> None:
    """Survive a closed stdout: a press must be followed by its release."""
    path = tmp_path / "done"
    python(OUTLIVED.format(path=str(path)))
    wait_for(path.exists, "the line is finished")


SIGNALS = [("package", signal.SIGINT), ("package", signal.SIGHUP), ("single file", signal.SIGTERM)]


@pytest.mark.parametrize(("program", "number"), SIGNALS, indirect=["program"])
def test_signal_ends_a_command_and_its_programs(
    program: Program, tmp_path: Path, display: str, number: signal.Signals
) -> None:
    maim = executable(tmp_path / "bin" / "maim", SLOW.format(pids=tmp_path / "pids"))
    variables = {"PEEKABOO_BIN_DIR": str(maim.parent), "DISPLAY": display}
    with program.start("image", "--json-output", **variables) as process:
        children = pids_in(tmp_path / "pids")
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

TWO_STARTS = """
import os, signal, subprocess, sys, threading, time
from peekaboo_min.core.call import in_parallel
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


@pytest.mark.parametrize(
    ("script", "runs", "programs"),
    [(ENDING_US, 5, 1), (TWO_STARTS, 1, 2)],
    ids=["as soon as it starts", "by another thread"],
)
def test_signal_ends_starting_programs(tmp_path: Path, script: str, runs: int, programs: int) -> None:
    for number in range(1, runs + 1):
        assert python(script, str(tmp_path / "pids"))[0] == 143
        assert_all_dead(pids_in(tmp_path / "pids", programs * number))


FAILING_HOOK = """
from peekaboo_min.system import ending, process
process._START_S = 0.1
ending.starting.add(0)  # this start is stuck
ending.exit_hooks += [lambda: 1 / 0, lambda: print("put back", flush=True)]
ending.call_exit_hooks()
"""


def test_exit_hook_that_fails_does_not_stop_the_next_hook() -> None:
    code, out = python(FAILING_HOOK)
    assert (code, out.splitlines()[-1]) == (0, "put back")


def test_end_of_all_programs_kills_what_outlives_its_grace(tmp_path: Path) -> None:
    sleep = "sleep 600 & echo $! >$0"
    with running(["sh", "-c", sleep, str(tmp_path / "pid")], b""), uninterrupted(0.5):
        children = pids_in(tmp_path / "pid", 1)
        with running(["sh", "-c", "sleep 0.2; exit 5"], b"") as quick, running(["sleep", "9"], b"") as slow:
            end_all_programs()
            assert [quick.end().code, slow.end().code] == [5, -signal.SIGKILL]
            assert_all_dead(children)


LEFT_BEHIND = """
import sys
from peekaboo_min.core.call import uninterrupted
from peekaboo_min.system import ending, process
ending.end_cleanly_on_signals()
script = 'sleep 600 & echo $! > $0; kill -TERM $PPID; sleep 0.2'
with uninterrupted():
    process.run_program(["sh", "-c", script, sys.argv[1]], timeout_s=60, leaves_daemon=True)
"""


def test_signal_does_not_end_the_daemon_of_an_uninterrupted_program(tmp_path: Path) -> None:
    code, _ = python(LEFT_BEHIND, str(tmp_path / "pid"))
    (pid,) = pids_in(tmp_path / "pid", 1)
    try:
        assert code == 128 + signal.SIGTERM and is_alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
