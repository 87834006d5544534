"""Compile a Swift source against stand-ins for Apple's modules, on Linux: build.py SOURCE OUT STATE.

OUT runs like the program that a Mac's own `swiftc SOURCE -o OUT` makes, on the fake Mac in the folder STATE;
each start is noted in STATE/calls.jsonl as the program "swift-helper". A warning is an error. The compiler
prints to stderr. Compiled programs are kept in /tmp, keyed by the sources and the compiler.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# in the order in which they import each other
MODULES = {
    "CoreGraphics": ["CoreGraphics.swift", "FakeMac.swift"],
    "ApplicationServices": ["ApplicationServices.swift"],
    "AppKit": ["AppKit.swift"],
    "Carbon": ["Carbon.swift"],
}


def main(source: Path, out: Path, state: Path) -> None:
    try:
        write_launcher(out, compiled(source), state)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{shlex.join(error.cmd)} failed with exit code {error.returncode}")


def compiled(source: Path) -> Path:
    """Return the program compiled from a source. Of two processes that compile it, one wins."""
    # whatever TMPDIR a test has: a compilation takes seconds
    cache = Path("/tmp") / f"peekaboo-swift-{os.getuid()}"
    cache.mkdir(mode=0o700, exist_ok=True)
    if cache.stat().st_uid != os.getuid():
        sys.exit(f"{cache} belongs to another user")
    sources = [source, *(HERE / name for names in MODULES.values() for name in names)]
    with tempfile.TemporaryDirectory(dir=cache) as folder:  # some compilers leave files
        key = hashlib.sha256(swiftc(Path(folder), "--version"))
    for each in [Path(__file__), *sources]:
        key.update(each.read_bytes() + b"\0")
    link = cache / key.hexdigest()[:16]
    if not link.exists():
        # never renamed: a swiftc in a chroot writes full paths into its output, and sees only some folders
        made = Path(tempfile.mkdtemp(dir=cache))
        for each in sources:
            shutil.copy(each, made)
        build(made, source.name)
        (made / "link").symlink_to(made)
        os.replace(made / "link", link)
    return link.resolve() / "program"


def build(folder: Path, source: str) -> None:
    strict = ["-swift-version", "5", "-warnings-as-errors", "-I", "."]
    for name, sources in MODULES.items():
        form = ["-parse-as-library", "-module-name", name, "-whole-module-optimization"]
        module = ["-emit-module", "-emit-module-path", f"{name}.swiftmodule"]
        swiftc(folder, *strict, *form, *module, "-c", *sources, "-o", f"{name}.o")
    swiftc(folder, *strict, source, *(f"{name}.o" for name in MODULES), "-o", "program")
    # a user's own build may take the compiler's default mode
    swiftc(folder, "-swift-version", "6", "-warnings-as-errors", "-typecheck", "-I", ".", source)


def swiftc(folder: Path, *arguments: str) -> bytes:
    """Run the compiler in a folder, which is also its temporary folder; return what it prints."""
    command, env = ["swiftc", *arguments], {**os.environ, "TMPDIR": str(folder)}
    pipe, closed = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.run(
        command, cwd=folder, env=env, stdin=closed, stdout=pipe, check=True, timeout=300
    ).stdout


def write_launcher(out: Path, program: Path, state: Path) -> None:
    """Write a program that notes its start in calls.jsonl, like the other fakes, and runs the compiled one.

    Meanwhile the tests' settler settles what the program posts: the stand-in modules only read the world.
    """
    folder = shlex.quote(str(state.resolve()))
    call = '{"program": "swift-helper", "argv": [], "stdin": null, "pid": %s, "t": %s}'
    text = (
        f"#!/bin/sh\nprintf '{call}\\n' $$ \"$(date +%s%3N)\" >> {folder}/calls.jsonl\n"
        # opened for both, so that it waits for no reader
        f"printf '%s %s\\n' $$ {folder} 1<>{folder}/settler\n"
        f'cd /tmp && FAKEMAC_FOLDER={folder} exec {shlex.quote(str(program))} "$@"\n'
    )
    new = out.with_name(f"{out.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    os.replace(new, out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
