"""The fake xcode-select, xcrun and swiftc, with and without the command line tools (the fact sheet C3)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

from .programs import Exit
from .world import Folder, State, post

NO_TOOLS = "xcode-select: note: No developer tools were found, requesting install.\nChoose an option in the dialog to download the command line developer tools."  # noqa: E501
BROKEN_SDK = "error: this SDK is not supported by the compiler (the SDK is built with 'Apple Swift version 6.2', while this compiler is 'Apple Swift version 5.8.1'). Please select a toolchain which matches the SDK."  # noqa: E501
NO_SDK = "<unknown>:0: error: unable to load standard library for target 'arm64-apple-macosx15.0'"
BUILDER = Path(__file__).resolve().parent.parent / "swift" / "build.py"
SLOW_S = 60


def devdir(folder: Folder) -> Path:
    return Path(folder) / "Library" / "Developer" / "CommandLineTools"


def xcode_select(folder: Folder, state: State, argv: list[str]) -> int:
    if argv not in (["-p"], ["--print-path"]):
        raise Exit(1, "xcode-select: error: invalid argument")
    if state["developer_tools"] == "none":
        raise Exit(
            2,
            "xcode-select: error: unable to get active developer directory, use `sudo xcode-select --switch path/to/Xcode.app` to set one (or see `man xcode-select`)",  # noqa: E501
        )
    print(devdir(folder))
    return 0


def xcrun(folder: Folder, state: State, argv: list[str]) -> int:
    if state["developer_tools"] == "none":
        install_dialog(folder)
    words, has_sdk = list(argv), False
    if words[:1] == ["--sdk"]:
        if words[1:2] != ["macosx"]:
            raise Exit(72, f'xcrun: error: SDK "{" ".join(words[1:2])}" cannot be located')
        words, has_sdk = words[2:], True
    if words[:1] in (["--find"], ["-f"]) and words[1:] == ["swiftc"]:
        print(devdir(folder) / "usr" / "bin" / "swiftc")
        return 0
    if words[:1] == ["swiftc"]:  # xcrun sets SDKROOT for what it runs, when it was asked for an SDK
        return swift_driver(folder, state, words[1:], has_sdk)
    if words == ["--show-sdk-path"]:
        print(devdir(folder) / "SDKs" / "MacOSX.sdk")
        return 0
    raise Exit(
        72,
        f'xcrun: error: unable to find utility "{words[-1] if words else ""}", not a developer tool or in PATH',  # noqa: E501
    )


def install_dialog(folder: Folder) -> None:
    """What an xcrun shim does without the tools: it opens a dialog on the user's screen."""
    post(
        folder,
        {
            "do": "dialog",
            "text": "The command requires the command line developer tools. Would you like to install the tools now?",  # noqa: E501
        },
    )
    raise Exit(1, NO_TOOLS)


def swiftc(folder: Folder, state: State, argv: list[str]) -> int:
    """By its own path the driver has no SDK, but for `-sdk PATH` or SDKROOT."""
    return swift_driver(folder, state, argv, "-sdk" in argv or bool(os.environ.get("SDKROOT")))


def swift_driver(folder: Folder, state: State, argv: list[str], has_sdk: bool) -> int:
    tools = state["developer_tools"]
    if tools == "none":
        install_dialog(folder)
    if "--version" in argv or "-version" in argv:
        version = state.get("swift_version", "6.1")
        print(
            f"swift-driver version: 1.120.5 Apple Swift version {version} (swiftlang-6.1.0.110.21 clang-1700.0.13.3)\nTarget: arm64-apple-macosx15.0"  # noqa: E501
        )
        return 0
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
    """By a Linux swiftc against stand-ins for Apple's modules, which tests/support/swift/build.py knows."""
    sources = [word for word in argv if word.endswith(".swift")]
    if "-o" not in argv or len(sources) != 1:
        raise Exit(1, "fakemac: swiftc SOURCE.swift -o OUT is what is simulated")
    search = os.environ.get("FAKEMAC_HOST_PATH", "") + os.pathsep + os.defpath + os.pathsep + "/usr/local/bin"
    if shutil.which("swiftc", path=search) is None or not BUILDER.exists():
        raise Exit(1, "fakemac: error: there is no real swiftc on this machine to compile with")
    command = [
        sys.executable,
        str(BUILDER),
        "compile",
        sources[0],
        "-o",
        argv[argv.index("-o") + 1],
        "--state",
        str(folder),
    ]
    return subprocess.run(command, env={"PATH": search, "HOME": os.environ.get("HOME", "/")}).returncode


PROGRAMS: dict[str, Callable[[Folder, State, list[str]], int]] = {
    "xcode-select": xcode_select,
    "xcrun": xcrun,
    "swiftc": swiftc,
}
