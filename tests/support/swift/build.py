"""Compile a Swift source against stand-ins for Apple's modules, on Linux.

    python3 tests/support/swift/build.py compile SOURCE -o OUT --state FOLDER

OUT runs like the program that a Mac's own `swiftc SOURCE -o OUT` makes, on the fake Mac in FOLDER;
each start is noted in FOLDER/calls.jsonl as the program "swift-helper".
A warning is an error. The compiler's own words go to stderr, its exit code is ours.
What was compiled once is kept in /tmp, keyed by the sources and the compiler.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

HERE = Path(__file__).resolve().parent
# In the order in which they import each other.
MODULES = {
    "CoreGraphics": ["CoreGraphics.swift", "FakeMac.swift"],
    "ApplicationServices": ["ApplicationServices.swift"],
    "AppKit": ["AppKit.swift"],
    "Carbon": ["Carbon.swift"],
}
OPTIONS = ["-swift-version", "5", "-warnings-as-errors"]
COMPILE_TIMEOUT_S = 300
CALL_NAME = "swift-helper"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["compile"])
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", dest="out", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True, help="the fake Mac's folder, with desktop.json")
    options = parser.parse_args(argv)
    if not shutil.which("swiftc"):
        print("there is no swiftc on PATH", file=sys.stderr)
        return 127
    try:
        program = compiled(options.source)
    except subprocess.CalledProcessError as error:
        print(f"{shlex.join(error.cmd)} failed: {error.stderr or ''}", file=sys.stderr)
        return error.returncode
    write_launcher(options.out, program, options.state)
    return 0


def compiled(source: Path) -> Path:
    """Return the program compiled from a source, or from the cache."""
    modules = built("modules", stub_sources(), build_modules)
    sources = [source, *stub_sources()]
    return built("program", sources, lambda folder: build_program(folder, source, modules)) / "program"


def stub_sources() -> list[Path]:
    return [HERE / name for names in MODULES.values() for name in names]


def built(kind: str, sources: list[Path], build: Callable[[Path], None]) -> Path:
    """Return a cached folder. It is a link that is renamed into place, so that of two processes one wins."""
    # whatever TMPDIR a test has: a compilation takes seconds
    cache = Path("/tmp") / f"peekaboo-swift-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    if cache.stat().st_uid != os.getuid():
        raise SystemExit(f"{cache} belongs to another user")
    key = hashlib.sha256(compiler_version())
    for source in [Path(__file__), *sources]:
        key.update(source.read_bytes() + b"\0")
    link = cache / f"{kind}-{key.hexdigest()[:16]}"
    if not link.exists():
        # Never rename it: a swiftc in a chroot writes full paths into its output.
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=cache))
        try:
            build(folder)
        except BaseException:
            shutil.rmtree(folder)
            raise
        new = folder / "link"
        new.symlink_to(folder)
        os.replace(new, link)
    return link.resolve()


@functools.cache
def compiler_version() -> bytes:
    # a swiftc in a chroot may not see the folder that the caller stands in; some leave files of their own
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment, closed = {**os.environ, "TMPDIR": folder}, subprocess.DEVNULL
        asked = ["swiftc", "--version"]
        return subprocess.run(
            asked, cwd=folder, env=environment, stdin=closed, capture_output=True, check=True, timeout=60
        ).stdout


def build_modules(folder: Path) -> None:
    for name, sources in MODULES.items():
        for source in sources:
            shutil.copy(HERE / source, folder)
        form = ["-parse-as-library", "-module-name", name, "-whole-module-optimization", "-I", "."]
        module = ["-emit-module", "-emit-module-path", f"{name}.swiftmodule"]
        swiftc(folder, [*form, *module, "-c", *sources, "-o", f"{name}.o"])


def build_program(folder: Path, source: Path, modules: Path) -> None:
    shutil.copy(source, folder)  # a swiftc in a chroot sees the temporary folder, not every other one
    objects = [str(modules / f"{name}.o") for name in MODULES]
    swiftc(folder, ["-I", str(modules), source.name, *objects, "-o", "program"])
    # a user's own build may take the compiler's default mode
    swiftc(folder, ["-swift-version", "6", "-typecheck", "-I", str(modules), source.name])


def swiftc(folder: Path, arguments: list[str]) -> None:
    command, limit_s = ["swiftc", *OPTIONS, *arguments], COMPILE_TIMEOUT_S
    # some compilers leave files in the temporary folder
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": sys.stderr}
    environment = {**os.environ, "TMPDIR": str(folder)}
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=limit_s, **pipes)


def write_launcher(out: Path, program: Path, state: Path) -> None:
    """Write a program that records its start in calls.jsonl, like the other fake programs, and then runs the
    real one.

    Meanwhile the tests' settler settles what the program posts: the stand-in modules only read the world.
    """
    folder, real = shlex.quote(str(state.resolve())), shlex.quote(str(program))
    call = f'{{"program": "{CALL_NAME}", "argv": [], "stdin": null, "pid": %s, "t": %s}}'
    text = (
        f"#!/bin/sh\nprintf '{call}\\n' $$ \"$(date +%s%3N)\" >> {folder}/calls.jsonl\n"
        # opened for both, so that it waits for no reader
        f"printf '%s %s\\n' $$ {folder} 1<>{folder}/settler\n"
        f'cd /tmp && FAKEMAC_FOLDER={folder} exec {real} "$@"\n'  # a chroot may not see the caller's folder
    )
    new = out.with_name(f"{out.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    os.replace(new, out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
