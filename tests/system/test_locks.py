"""A lock is held as long as a program that acts under it runs, whatever became of us."""

from __future__ import annotations

from contextlib import ExitStack

from samples import error_of

from peekaboo_min.core.errors import ErrorCode
from peekaboo_min.system.files import file_lock, held_locks
from peekaboo_min.system.process import running


def test_file_lock_is_kept_by_the_program_that_inherits_it() -> None:
    with ExitStack() as programs:
        with file_lock("input-test.lock", 1.0, "the mouse"):
            programs.enter_context(running(["sleep", "600"], b"", pass_fds=held_locks()))
        again = error_of(file_lock("input-test.lock", 0.1, "the mouse").__enter__)
    assert (again.code, held_locks()) == (ErrorCode.TIMEOUT, ())
