"""The fake open, ps, sw_vers, launchctl and defaults (the fact sheet F, A8)."""

from __future__ import annotations

import os
from typing import Any, Optional

from .programs import Exit
from .world import Folder, State, post, settle


def open_(folder: Folder, state: State, argv: list[str]) -> int:
    """Open like `open -b` and `open -a`; every form activates the app."""
    option, name, *targets = argv
    keys = {"-b": ["bundle_id"], "-a": ["name", "path"]}[option]
    app = next((item for item in state["apps"] if name in [item[key] for key in keys]), None)
    if app is None:
        raise Exit(1, f"Unable to find application named '{name}'")
    for target in targets:
        if ":" not in target and not os.path.exists(target):
            raise Exit(1, f"The file {target} does not exist.")
        post(folder, {"do": "open_target", "target": target, "bundle_id": app["bundle_id"]})
    if not targets:
        post(folder, {"do": "launch", "bundle_id": app["bundle_id"], "by": "open"})
    settle(folder)
    return 0


def sw_vers(folder: Folder, state: State, argv: list[str]) -> int:
    if argv != ["-productVersion"]:
        raise Exit(1, "fakemac: only `sw_vers -productVersion` is simulated")
    print(state["system"]["version"])
    return 0


def launchctl(folder: Folder, state: State, argv: list[str]) -> int:
    if argv != ["managername"]:
        raise Exit(64, "fakemac: only `launchctl managername` is simulated")
    print("Aqua" if state["session"]["gui"] else "Background")
    return 0


def process_rows(state: State) -> list[dict[str, Any]]:
    known = [row["pid"] for row in state["processes"]]
    apps = [app for app in state["apps"] if app["pid"] is not None and app["pid"] not in known]
    programs = [(app["pid"], f"{app['path']}/Contents/MacOS/{app['name']}") for app in apps]
    return [*state["processes"], *({"pid": pid, "ppid": 1, "comm": comm} for pid, comm in programs)]


def ps(folder: Folder, state: State, argv: list[str]) -> int:
    """List all processes; the process that started us appears as the python of Terminal's shell."""
    if argv not in (["-axwwo", "pid=,ppid=,comm="], ["-axo", "pid=,ppid=,comm="]):
        raise Exit(1, "fakemac: only `ps -axwwo pid=,ppid=,comm=` is simulated, and without ww")
    width: Optional[int] = None if "ww" in argv[0] else 79  # if no stream is a terminal
    leaf = next(row for row in state["processes"] if row.get("this_is_us"))
    for row in [*process_rows(state), {**leaf, "pid": os.getppid()}]:
        print(f"{row['pid']:>5} {row['ppid']:>5} {row['comm']:>5}"[:width])
    return 0


LAYOUTS = {"us": "US", "azerty": "French", "german": "German", "dvorak": "Dvorak"}


def defaults(folder: Folder, state: State, argv: list[str]) -> int:
    if argv[:1] != ["read"] or len(argv) != 3:
        raise Exit(64, "fakemac: only `defaults read DOMAIN KEY` is simulated")
    layout = LAYOUTS.get(state["keyboard"]["layout"])
    if argv[1:] != ["com.apple.HIToolbox", "AppleCurrentKeyboardLayoutInputSourceID"] or layout is None:
        raise Exit(1, f"The domain/default pair of ({argv[1]}, {argv[2]}) does not exist")
    print(f"com.apple.keylayout.{layout}")
    return 0


PROGRAMS = {"open": open_, "sw_vers": sw_vers, "launchctl": launchctl, "ps": ps, "defaults": defaults}
