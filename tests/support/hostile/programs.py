"""A folder of programs of which any one can be made to fail, while a server runs that uses it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

FAULTS = ("missing", "hung", "killed", "garbage", "empty", "fail", "half", "late", "not a program", "noise")

# what a fault does; $real is the program itself
_SHIM = """#!/bin/sh
read -r fault < {fault_file} || fault=none
case $fault in
none) exec {real} "$@" ;;
hung) exec sleep 600 ;;
killed) kill -9 $$ ;;
garbage) printf '\\377\\000\\033[2J {{"x": 1e999}} 0x0 garbage\\n'; exit 0 ;;
empty) exit 0 ;;
fail) echo 'something is wrong' >&2; exit 3 ;;
half) {real} "$@" > {fault_file}.out; code=$?; size=$(wc -c < {fault_file}.out)
    head -c $((size / 2)) {fault_file}.out; rm -f {fault_file}.out
    for last in "$@"; do :; done; last=${{last#*:}}
    [ ! -f "$last" ] || truncate -s $(($(wc -c < "$last") / 2)) "$last"
    exit $code ;;
late) sleep 0.7; exec {real} "$@" ;;
noise) echo 'Warning: something nobody asked for' >&2; exec {real} "$@" ;;
esac
"""


def x11_programs() -> tuple[str, ...]:
    """All that the X11 side says it runs, as far as this machine has it."""
    from peekaboo_min.desktop.x11.backend import X11Desktop

    names = dict.fromkeys((*X11Desktop.needs, *X11Desktop.uses))
    return tuple(name for name in names if shutil.which(name))


class FaultyPrograms:
    """PEEKABOO_BIN_DIR with all that the X11 side runs; those of `faulty` can be broken."""

    def __init__(self, folder: Path, faulty: Sequence[str] = ()) -> None:
        folder.mkdir()
        self.folder, self.faults = folder, folder.parent / "faults"
        self.faults.mkdir(exist_ok=True)
        self.variables = {"PEEKABOO_BIN_DIR": str(folder)}
        known = x11_programs()
        for program in known:
            real = shutil.which(program) or ""
            if program in (faulty or known):
                self._write(program, real)
            else:
                (folder / program).symlink_to(real)

    def _write(self, program: str, real: str) -> None:
        fault_file = self.faults / program
        fault_file.write_text("none\n")
        path = self.folder / program
        path.write_text(_SHIM.format(fault_file=fault_file, real=real))
        path.chmod(0o755)

    def set(self, program: str, fault: str) -> None:
        """Break one program, or mend it with `none`."""
        path, away = self.folder / program, self.folder / f".{program}-away"
        if fault == "missing":
            os.replace(path, away)
            return
        if away.exists():
            os.replace(away, path)
        path.chmod(0o644 if fault == "not a program" else 0o755)
        (self.faults / program).write_text(f"{'none' if fault == 'not a program' else fault}\n")
