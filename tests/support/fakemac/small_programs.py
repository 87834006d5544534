"""The fake open, ps, sw_vers, launchctl and defaults (the fact sheet F, A8)."""

from __future__ import annotations

import os
from typing import Any, Callable, Optional

from .programs import Exit
from .windows import handler_of
from .world import Folder, State, post, settle

Program = Callable[[Folder, State, list[str]], int]


def open_(folder: Folder, state: State, argv: list[str]) -> int:
    """Every form activates the app unless -g."""
    words, targets, app, activate = list(argv), [], None, True
    while words:
        word = words.pop(0)
        if word == "-b":
            bundle = words.pop(0)
            app = next((item for item in state["apps"] if item["bundle_id"] == bundle), None)
            if app is None:
                raise Exit(
                    1,
                    f"LSCopyApplicationURLsForBundleIdentifier() failed while trying to determine the application with bundle identifier {bundle}.",  # noqa: E501
                )
        elif word == "-a":
            name = words.pop(0)
            app = next((item for item in state["apps"] if name in (item["name"], item["path"])), None)
            if app is None:
                raise Exit(1, f"Unable to find application named '{name}'")
        elif word == "-g":
            activate = False
        elif word.startswith("-"):
            raise Exit(1, f"open: illegal option -- {word[1:2]}")
        else:
            targets.append(word)
    if app is None and not targets:
        raise Exit(
            1,
            "Usage: open [-e] [-t] [-f] [-W] [-R] [-n] [-g] [-h] [-s <partial SDK name>][-b <bundle identifier>] [-a <application>] [filenames]",  # noqa: E501
        )
    bundle_id = app["bundle_id"] if app else None
    for target in targets:
        if ":" not in target and not os.path.exists(target):
            raise Exit(1, f"The file {target} does not exist.")
        if app is None and handler_of(state, target) is None:
            raise Exit(1, f"No application knows how to open {target}.")
        post(folder, {"do": "open_target", "target": target, "bundle_id": bundle_id, "activate": activate})
    if app is not None and not targets:
        post(folder, {"do": "launch", "bundle_id": bundle_id, "activate": activate, "by": "open"})
    settle(folder)
    return 0


def sw_vers(folder: Folder, state: State, argv: list[str]) -> int:
    values = {
        "ProductName": "macOS",
        "ProductVersion": state["system"]["version"],
        "BuildVersion": state["system"]["build"],
    }
    asked = {"-" + key[0].lower() + key[1:]: value for key, value in values.items()}
    if not argv:
        print("\n".join(f"{key}:\t\t{value}" for key, value in values.items()))
    elif argv[0].replace("--", "-", 1) in asked:
        print(asked[argv[0].replace("--", "-", 1)])
    else:
        raise Exit(1, f"Usage: sw_vers [--help|--{'|--'.join(asked)}]")
    return 0


def launchctl(folder: Folder, state: State, argv: list[str]) -> int:
    if argv != ["managername"]:
        raise Exit(64, "fakemac: only `launchctl managername` is simulated")
    print("Aqua" if state["session"]["gui"] else "Background")
    return 0


# The fake's own processes are started by whoever is tested; that one stands in the tree as the python of Terminal's shell.  # noqa: E501
def process_rows(state: State) -> list[dict[str, Any]]:
    return [
        *({"pid": row["pid"], "ppid": row["ppid"], "comm": row["comm"]} for row in state["processes"]),
        *(
            {"pid": app["pid"], "ppid": 1, "comm": f"{app['path']}/Contents/MacOS/{app['name']}"}
            for app in state["apps"]
            if app["pid"] is not None and app["pid"] not in [row["pid"] for row in state["processes"]]
        ),
    ]


def as_us(state: State, pid: int) -> Optional[dict[str, Any]]:
    """A real process of this machine is the leaf of the tree."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    leaf = next(row for row in state["processes"] if row.get("this_is_us"))
    return {"pid": pid, "ppid": leaf["ppid"], "comm": leaf["comm"]}


def ps(folder: Folder, state: State, argv: list[str]) -> int:
    columns, pids, everybody = ["pid", "comm"], [], False
    words = list(argv)
    width = 79  # where no stream is a terminal
    while words:
        word = words.pop(0)
        width = None if "ww" in word else width
        if not word.startswith("-"):
            raise Exit(1, "ps: illegal argument: " + word)
        for index, letter in enumerate(word[1:], 1):
            if letter in "op":
                value = word[index + 1 :] or words.pop(0)
                if letter == "o":
                    columns = [column.strip() for column in value.split(",")]
                else:
                    pids += [int(item) for item in value.split(",")]
                break
            if letter not in "axeAww":
                raise Exit(1, f"ps: illegal option -- {letter}")
            everybody = everybody or letter in "xeA"
    rows = {row["pid"]: row for row in process_rows(state)}
    us = as_us(state, os.getppid())
    if us is not None:
        rows[us["pid"]] = us
    wanted = list(rows) if everybody and not pids else pids
    found = [row for row in (rows.get(pid) or as_us(state, pid) for pid in wanted) if row is not None]
    if not all(column.endswith("=") for column in columns):
        print(" ".join(column.rstrip("=").upper().rjust(5) for column in columns))
    for row in found:
        print(
            " ".join(
                str(row[{"command": "comm", "args": "comm", "ucomm": "comm"}.get(name, name)]).rjust(5)
                for name in (column.rstrip("=") for column in columns)
            )[:width]
        )
    return 0 if found else 1


LAYOUT_IDS = {
    layout: f"com.apple.keylayout.{name}"
    for layout, name in {"us": "US", "azerty": "French", "german": "German", "dvorak": "Dvorak"}.items()
}


def defaults(folder: Folder, state: State, argv: list[str]) -> int:
    words = [{"-g": "NSGlobalDomain", "-globalDomain": "NSGlobalDomain"}.get(word, word) for word in argv]
    if words[:1] != ["read"] or len(words) != 3:
        raise Exit(64, "fakemac: only `defaults read DOMAIN KEY` is simulated")
    layout = LAYOUT_IDS.get(state["keyboard"]["layout"])
    known = {"AppleCurrentKeyboardLayoutInputSourceID": layout} if layout else {}
    domain = {**({"com.apple.HIToolbox": known}).get(words[1], {}), **state["defaults"].get(words[1], {})}
    if words[2] not in domain:
        raise Exit(1, f"The domain/default pair of ({words[1]}, {words[2]}) does not exist")
    print(domain[words[2]])
    return 0


PROGRAMS: dict[str, Program] = {
    "open": open_,
    "sw_vers": sw_vers,
    "launchctl": launchctl,
    "ps": ps,
    "defaults": defaults,
}
