"""The fake open, pbcopy, pbpaste, ps, system_profiler and other small programs (the fact sheet F, G, C3, D7)."""  # noqa: E501

from __future__ import annotations

import json
import os
import sys
from typing import Any, Callable, Optional

from .programs import Exit
from .text_fields import clipboard_text
from .windows import active_displays
from .world import Folder, State, granted, post, settle

Program = Callable[[Folder, State, list[str], Optional[bytes]], int]


def open_(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    """Every form activates the app unless -g."""
    words, targets, app, activate, hidden = list(argv), [], None, True, False
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
        elif word in ("-g", "-j", "-n", "-u"):
            activate = activate and word not in ("-g", "-j")
            hidden = hidden or word == "-j"
        elif word.startswith("-"):
            raise Exit(1, f"open: illegal option -- {word[1:2]}")
        else:
            targets.append(word)
    for target in targets:
        open_target(folder, target, app, activate)
    if app is not None:
        post(
            folder,
            {
                "do": "launch",
                "bundle_id": app["bundle_id"],
                "activate": activate,
                "hidden": hidden,
                "by": "open",
            },
        )
    elif not targets:
        raise Exit(
            1,
            "Usage: open [-e] [-t] [-f] [-W] [-R] [-n] [-g] [-h] [-s <partial SDK name>][-b <bundle identifier>] [-a <application>] [filenames]",  # noqa: E501
        )
    settle(folder)
    return 0


def open_target(folder: Folder, target: str, app: Any, activate: bool) -> None:
    if ":" in target and not target.startswith("/"):
        post(folder, {"do": "open_url", "url": target, "activate": activate})
    elif not os.path.exists(target):
        raise Exit(1, f"The file {target} does not exist.")
    else:
        post(
            folder,
            {
                "do": "note",
                "kind": "open_file",
                "what": {"path": target, "app": app["name"] if app else None},
            },
        )


def encoding() -> str:
    """Without a UTF-8 locale pbcopy and pbpaste mangle what is not ASCII (facts F)."""
    # The wrapper passes the caller's locale: Python itself sets LC_CTYPE where there is none.
    return "utf-8" if "UTF-8" in os.environ.get("FAKEMAC_LOCALE", "").upper() else "mac_roman"


def pbcopy(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    post(folder, {"do": "clipboard_text", "text": (stdin or b"").decode(encoding(), "replace")})
    settle(folder)
    return 0


def pbpaste(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    sys.stdout.buffer.write((clipboard_text(state) or "").encode(encoding(), "replace"))
    return 0


def sw_vers(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
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


def launchctl(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    if argv != ["managername"]:
        raise Exit(64, "fakemac: only `launchctl managername` is simulated")
    print("Aqua" if state["session"]["gui"] else "Background")
    return 0


def system_profiler(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    """Names of displays; it knows no coordinates (facts F)."""
    if argv != ["SPDisplaysDataType", "-json"]:
        raise Exit(64, "fakemac: only `system_profiler SPDisplaysDataType -json` is simulated")
    screens = [
        {
            "_name": display["name"],
            "_spdisplays_displayID": str(display["id"]),
            "_spdisplays_pixels": f"{round(display['bounds'][2] * display['scale'])} x {round(display['bounds'][3] * display['scale'])}",  # noqa: E501
            "_spdisplays_resolution": f"{display['bounds'][2]} x {display['bounds'][3]} @ 60.00Hz",
            "spdisplays_main": "spdisplays_yes" if display.get("main") else "spdisplays_no",
            "spdisplays_mirror": "spdisplays_off",
            "spdisplays_online": "spdisplays_yes",
        }
        for display in active_displays(state)
    ]
    cards: list[dict[str, Any]] = [
        {"_name": "Apple M2", "spdisplays_ndrvs": screens},
        {"_name": "a GPU without displays"},
    ]
    print(json.dumps({"SPDisplaysDataType": cards}, indent=2))
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


def ps(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    columns, pids, everybody = ["pid", "comm"], [], False
    words = list(argv)
    while words:
        word = words.pop(0)
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
            )
        )
    return 0 if found else 1


def tccutil(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    services = {
        "ScreenCapture": "screen_recording",
        "Accessibility": "accessibility",
        "AppleEvents": "automation",
    }
    if len(argv) < 2 or argv[0] != "reset" or argv[1] not in services:
        raise Exit(
            70, "tccutil: Usage: tccutil reset SERVICE [BUNDLE_ID]"
        )  # Apple's can only reset (facts D7)
    post(folder, {"do": "reset_permission", "permission": services[argv[1]]})
    settle(folder)
    print(
        f"Successfully reset {argv[1]} approval status for {argv[2] if len(argv) > 2 else 'all applications'}"
    )
    return 0


LAYOUT_IDS = {
    layout: f"com.apple.keylayout.{name}"
    for layout, name in {"us": "US", "azerty": "French", "german": "German", "dvorak": "Dvorak"}.items()
}


def defaults(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
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


def ioreg(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    """`ioreg -n Root -d1 -a`: the key is there only while the screen is locked (facts D6)."""
    locked = "<key>CGSSessionScreenIsLocked</key><true/>" if state["session"]["locked"] else ""
    print(
        f'<?xml version="1.0"?>\n<plist version="1.0"><dict><key>IOConsoleUsers</key><array><dict>{locked}</dict></array></dict></plist>'  # noqa: E501
    )
    return 0


def get_window_id(folder: Folder, state: State, argv: list[str], stdin: Optional[bytes]) -> int:
    """smokris/getwindowid: app matched exactly by owner name, title exactly; nothing found is exit 254 (facts G)."""  # noqa: E501
    if len(argv) != 2:
        raise Exit(
            255,
            "usage: GetWindowID <application-bundle-name> <window-title>\n       GetWindowID <application-bundle-name> --list",  # noqa: E501
        )
    names = {app["pid"]: app["name"] for app in state["apps"]}
    mine = [
        window
        for window in state["windows"]
        if names.get(window["pid"]) == argv[0]
        and not window.get("desktop")
        and window["bounds"][2] <= 30 * window["bounds"][3]
    ]
    titled = granted(state, "screen_recording") == "granted"
    if argv[1] == "--list":
        for window in mine:
            title = window["title"] if titled else "(null)"
            print(f'"{title}" size={window["bounds"][2]:g}x{window["bounds"][3]:g} id={window["id"]}')
        return 0 if mine else 254
    found = next((window for window in mine if titled and window["title"] == argv[1]), None)
    if found is None:
        return 254
    print(found["id"])
    return 0


PROGRAMS: dict[str, Program] = {
    "open": open_,
    "pbcopy": pbcopy,
    "pbpaste": pbpaste,
    "sw_vers": sw_vers,
    "launchctl": launchctl,
    "system_profiler": system_profiler,
    "ps": ps,
    "tccutil": tccutil,
    "defaults": defaults,
    "ioreg": ioreg,
    "GetWindowID": get_window_id,
}
