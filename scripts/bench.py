"""Measure our overhead over the bare programs, as ratios in Markdown, on desktops of its own.

    python3 scripts/bench.py [PART...]     PART: starts, tools, listings, desktops

Both sides of a ratio are measured alternately, and the minimum of each counts, which excludes other load on
the machine. Starts are compared by processor time, everything else by the clock.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # measure this folder, not an installed copy

from peekaboo_min.agents.mcp_client import McpClient, own_server  # noqa: E402

ROUNDS = 15
WINDOWS = 40
DESKTOPS = (1, 2, 4, 8)
INSIDE = "--inside"  # this process runs on the desktop that an earlier one started
PACKAGE = [sys.executable, str(ROOT / "peekaboo_min" / "__main__.py")]
SINGLE_FILE = [sys.executable, str(ROOT / "scripts" / "peekaboo.py")]
# the smallest server of the SDK, with one tool
FIVE_LINES = """from mcp.server.mcpserver import MCPServer
server = MCPServer("five lines")
@server.tool()
def ping() -> str: return "pong"
server.run("stdio")"""
MANY_WINDOWS = f"""wm withdraw .
for {{set i 0}} {{$i < {WINDOWS}}} {{incr i}} {{
    toplevel .w$i; wm title .w$i "Window $i"; wm geometry .w$i 200x120+[expr $i * 20]+[expr $i * 10]
}}"""
CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}

Work = Callable[[], Any]
Clock = Callable[[], float]


def processor_time() -> float:
    """Return the processor seconds of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def minimum_times(works: Sequence[Work], clock: Clock = time.perf_counter) -> list[float]:
    """Return the minimum milliseconds of each work, measured alternately after one warm-up round."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS + 1):
        for work, milliseconds in zip(works, times):
            started = clock()
            work()
            milliseconds.append((clock() - started) * 1000)
    return [min(milliseconds[1:]) for milliseconds in times]


def row(
    what: str, ours: Work, against: str, bare: Work, goal: float, clock: Clock = time.perf_counter
) -> None:
    own, base = minimum_times([ours, bare], clock)
    print(
        f"| {what} | {own:.0f} ms | {against} | {base:.0f} ms | {own / base:.2f}x | {goal:g}x |", flush=True
    )


def command(*commands: list[str]) -> Work:
    def run() -> None:
        for argv in commands:
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60)

    return run


def tool(client: McpClient, name: str, **arguments: Any) -> Work:
    def call() -> None:
        answer = client.call(name, arguments)
        assert not answer.error, answer.text

    return call


def initialize(argv: list[str]) -> Work:
    """Return a work that starts a server and waits for its answer to `initialize`."""

    def start() -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as server:
            assert server.stdin and server.stdout
            server.stdin.write(json.dumps(HELLO).encode() + b"\n")
            server.stdin.flush()
            assert b"serverInfo" in server.stdout.readline()
            server.kill()

    return start


def main() -> int:
    if INSIDE not in sys.argv:
        argv = [*PACKAGE, "desktop", "--", sys.executable, *sys.argv, INSIDE]
        os.execv(argv[0], argv)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ.update(TMPDIR=str(folder), XDG_STATE_HOME=str(folder))
        os.environ["PYTHONPATH"] = str(ROOT)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # normal starts use cached bytecode
        report = folder / "report.jsonl"
        form = ["wish", str(ROOT / "scripts/demo_form.tcl"), "-name", "Form", "--", str(report)]
        stack.callback(subprocess.Popen(form).kill)
        wait(lambda: report.exists() and "ready" in report.read_text())
        print(f"Measured on {time.strftime('%Y-%m-%d')}: {machine()}\n")
        print("| what | ours | against | theirs | ratio | goal |\n|---|---|---|---|---|---|")
        parts = [part for part in sys.argv[1:] if part != INSIDE] or [
            "starts",
            "tools",
            "listings",
            "desktops",
        ]
        if "starts" in parts:
            measure_starts(folder)
        client = stack.enter_context(own_server({}))
        if "tools" in parts:
            measure_tools(client)
        if "listings" in parts:
            with subprocess.Popen(["wish", "-f", write(folder / "many.tcl", MANY_WINDOWS)]) as many:
                wait(lambda: len(client.call("list_windows", {}).data["windows"]) > WINDOWS)
                measure_listings(client)
                many.kill()
        if "desktops" in parts:
            measure_desktops()
    return 0


def wait(until: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, "a measured program did not start"
        time.sleep(0.05)


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def machine() -> str:
    """Describe the machine: processors, system, Python, load."""
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} processors ({platform.machine()}), Linux, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f} at the start"
    )


def measure_starts(folder: Path) -> None:
    """Measure processor time. A listing starts no program, so all of it is ours."""
    nothing = command([sys.executable, "-c", "pass"])
    listing = command([*PACKAGE, "windows"])
    row("`peekaboo-min windows`", listing, "`python -c pass`", nothing, 5.4, processor_time)
    single = command([*SINGLE_FILE, "windows"])
    row("the single file", single, "the package", listing, 1.25, processor_time)
    anew = command(
        ["env", f"XDG_STATE_HOME={folder}/none", *SINGLE_FILE, "windows"], ["rm", "-rf", f"{folder}/none"]
    )
    row("the single file's first start", anew, "the package", listing, 2.5, processor_time)
    five = initialize([sys.executable, write(folder / "five.py", FIVE_LINES)])
    row("start to `initialize`", initialize(PACKAGE), "a server of five lines", five, 1.1)


def measure_tools(client: McpClient) -> None:
    """Compare tool calls with the bare commands that do the same, including the checks that an act needs."""
    windows = client.call("list_windows", {}).data["windows"]
    window = int(next(window["window_id"] for window in windows if window["title"] == "Visitor book"))
    client.call("take_window_screenshot", {"window_id": window})
    look = [["xwininfo", "-root", "-tree"], ["xprop", "-root", "_NET_ACTIVE_WINDOW"]]
    look += [["xprop", "-id", str(window["window_id"]), "WM_NAME"] for window in windows]
    shot = ["maim", "--hidecursor", "-f", "jpg", "-i", str(window), "/dev/null"]
    press = ["xdotool", "mousemove", "--", "200", "200", "click", "--delay", "0", "1"]
    screenshot = tool(client, "take_window_screenshot", window_id=window)
    row("`take_window_screenshot`", screenshot, "look, `maim`", command(*look, shot), 1.2)
    click = tool(client, "click", window_id=window, x=5, y=5)
    row("`click`", click, "look, `xdotool`, look", command(*look, press, *look), 1.2)


def measure_listings(client: McpClient) -> None:
    tree = command(["xwininfo", "-root", "-tree"])
    listing = tool(client, "list_windows")
    row(f"`list_windows`, {WINDOWS} windows", listing, "`xwininfo -root -tree`", tree, 0.5)
    status = tool(client, "list", item_type="server_status")
    row("`list` of `server_status`", status, "`list_windows`", listing, 1)


@contextmanager
def own_desktop() -> Iterator[dict[str, str]]:
    """Start another desktop; yield the variables of its display."""
    argv = [*PACKAGE, "desktop", "--", "sh", "-c", 'echo "$DISPLAY $XAUTHORITY"; cat']
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as desktop:
        assert desktop.stdout
        yield dict(zip(("DISPLAY", "XAUTHORITY"), desktop.stdout.readline().split()))


def measure_desktops() -> None:
    """Capture N desktops by N processes at once, and compare the rate with one desktop."""
    with ExitStack() as stack:
        desktops = [stack.enter_context(own_desktop()) for _ in range(DESKTOPS[-1])]

        def capture(count: int) -> Work:
            def run() -> None:
                processes = [
                    subprocess.Popen(
                        [*PACKAGE, "image"], env={**os.environ, **desktop}, stdout=subprocess.DEVNULL
                    )
                    for desktop in desktops[:count]
                ]
                assert [process.wait(120) for process in processes] == [0] * count

            return run

        times = minimum_times([capture(count) for count in DESKTOPS])
    for count, milliseconds in zip(DESKTOPS[1:], times[1:]):
        ratio = count * times[0] / milliseconds
        print(
            f"| {count} desktops captured at once | {milliseconds:.0f} ms | one desktop | {times[0]:.0f} ms "
            f"| {ratio:.2f}x as many a second | |"
        )


if __name__ == "__main__":
    sys.exit(main())
