"""The fake xcode-select, xcrun and swiftc, with and without the command line tools (the fact sheet C3)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .programs import Exit
from .world import Folder, State, post

NO_TOOLS = "xcode-select: note: No developer tools were found, requesting install."
NO_FOLDER = "xcode-select: error: unable to get active developer directory"
BROKEN_SDK = "error: this SDK is not supported by the compiler"
DIALOG = "The command requires the command line developer tools. Would you like to install the tools now?"
NO_SDK = "<unknown>:0: error: unable to load standard library for target 'arm64-apple-macosx15.0'"
BUILDER = Path(__file__).resolve().parent.parent / "swift" / "build.py"
SLOW_S = 60


def xcode_select(folder: Folder, state: State, argv: list[str]) -> int:
    if argv != ["-p"]:
        raise Exit(1, "xcode-select: error: invalid argument")
    if state["developer_tools"] == "none":
        raise Exit(2, NO_FOLDER)
    print(Path(folder) / "Library" / "Developer" / "CommandLineTools")
    return 0


def xcrun(folder: Folder, state: State, argv: list[str]) -> int:
    if state["developer_tools"] == "none":
        install_dialog(folder)
    has_sdk = argv[:2] == ["--sdk", "macosx"]
    words = argv[2:] if has_sdk else argv
    if words[:1] != ["swiftc"]:
        raise Exit(72, f'xcrun: error: unable to find utility "{" ".join(words[:1])}"')
    # xcrun sets SDKROOT for its program if an SDK was requested
    return swift_driver(folder, state, words[1:], has_sdk)


def install_dialog(folder: Folder) -> None:
    """Open a dialog on the user's screen, like the xcrun shim without the tools."""
    post(folder, {"do": "dialog", "text": DIALOG})
    raise Exit(1, NO_TOOLS)


def swiftc(folder: Folder, state: State, argv: list[str]) -> int:
    """Fail like the driver at its own path, which has no SDK."""
    return swift_driver(folder, state, argv, has_sdk=False)


def swift_driver(folder: Folder, state: State, argv: list[str], has_sdk: bool) -> int:
    tools = state["developer_tools"]
    if tools == "none":
        install_dialog(folder)
    if not has_sdk:
        raise Exit(1, NO_SDK)
    if tools == "broken":
        raise Exit(1, f"<unknown>:0: {BROKEN_SDK}")
    if tools == "slow":
        time.sleep(SLOW_S)
    if tools == "killed":  # by endpoint security, each time it starts
        with open(argv[argv.index("-o") + 1], "w") as program:
            program.write("#!/bin/sh\nkill -9 $$\n")
        return 0
    return compile_for_real(folder, argv)


def compile_for_real(folder: Folder, argv: list[str]) -> int:
    """Compile with a Linux swiftc against stub modules; see tests/support/swift/build.py."""
    source, target = next(word for word in argv if word.endswith(".swift")), argv[argv.index("-o") + 1]
    search = os.environ.get("FAKEMAC_HOST_PATH", "") + os.pathsep + os.defpath + os.pathsep + "/usr/local/bin"
    if shutil.which("swiftc", path=search) is None or not BUILDER.exists():
        raise Exit(1, "fakemac: error: there is no real swiftc on this machine to compile with")
    command = [sys.executable, str(BUILDER), source, target, str(folder)]
    return subprocess.run(command, env={"PATH": search, "HOME": os.environ.get("HOME", "/")}).returncode


PROGRAMS = {"xcode-select": xcode_select, "xcrun": xcrun, "swiftc": swiftc}
