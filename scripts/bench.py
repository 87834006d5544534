"""What we add to the bare programs, as ratios measured in one run, on an X11 screen of its own."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable

from headless import x_server

from peekaboo_min.agents.mcp_client import McpClient, open_own_server
from peekaboo_min.agents.run import own_time_text

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from fake_ai import FakeAI, script  # noqa: E402

ROUNDS = 15
STARTS = 20
AGENT_STEPS = 8


def milliseconds(work: Callable[[], Any]) -> float:
    """The median time of `work`, after one round to warm up."""
    times: list[float] = []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[1:])


def cpu_milliseconds(words: list[str]) -> float:
    """The least processor time of a command and of what it starts: no other program's work is in it."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (usage.ru_utime + usage.ru_stime) * 1000

    times: list[float] = []
    for _ in range(STARTS):
        before = used()
        command(words)()
        times.append(used() - before)
    return min(times)


def command(words: list[str]) -> Callable[[], None]:
    return lambda: (
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) and None
    )


def ours(*words: str) -> Callable[[], None]:
    return command([sys.executable, "-m", "peekaboo_min", *words])


def tool(client: McpClient, name: str, **arguments: Any) -> Callable[[], None]:
    def call() -> None:
        answer = client.call(name, arguments)
        assert not answer.is_error, answer.text

    return call


def bare(*commands: list[str]) -> Callable[[], None]:
    def run() -> None:
        for words in commands:
            command(words)()

    return run


def main() -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ.update(
            DISPLAY=stack.enter_context(x_server()), TMPDIR=str(folder), XDG_STATE_HOME=str(folder)
        )
        os.environ["PYTHONPATH"] = str(ROOT)
        report = folder / "report.jsonl"
        form = subprocess.Popen(
            ["wish", str(ROOT / "scripts/demo_form.tcl"), "-name", "Form", "--", str(report)]
        )
        stack.callback(form.wait)
        stack.callback(form.kill)
        while not report.exists() or "ready" not in report.read_text():
            time.sleep(0.05)
        client = stack.enter_context(open_own_server({}))
        measure(client)
        measure_agent(folder, report)
    return 0


def measure_agent(folder: Path, report: Path) -> None:
    """A run of the vision agent with a model that answers at once: what is left is our own time."""
    places = [
        json.loads(line)
        for line in report.read_text().splitlines()
        if '"agree"' in line and '"layout"' in line
    ]
    tick = {
        "action": "click",
        "x": places[-1]["x"] + 9,
        "y": places[-1]["y"] + 9,
        "done": False,
        "why": "tick",
    }
    done = {"action": "done", "done": True, "why": "measured"}
    with FakeAI(brain=script([json.dumps(one) for one in [*[tick] * AGENT_STEPS, done]])) as model:
        words = ["agent", "--app", "Form", "--goal", "tick the box", "--run-folder", str(folder / "run")]
        environment = {**os.environ, **model.env("openai", "gpt-5.4-mini")}
        subprocess.run(
            [sys.executable, "-m", "peekaboo_min", *words], env=environment, check=True, capture_output=True
        )
    print(own_time_text(folder / "run"))


def measure(client: McpClient) -> None:
    windows = client.call("list_windows", {}).data["windows"]
    window = str(next(one["window_id"] for one in windows if one["title"] == "Visitor book"))
    client.call("take_window_screenshot", {"window_id": int(window)})
    tree, root = ["xwininfo", "-root", "-tree"], ["xprop", "-root", "_NET_ACTIVE_WINDOW"]
    listing = [tree, root, *(["xprop", "-id", str(one["window_id"]), "WM_NAME"] for one in windows)]
    screenshot = ["maim", "--hidecursor", "-f", "jpg", "-i", window, "/dev/null"]
    click = ["xdotool", "mousemove", "--", "200", "200", "click", "--delay", "0", "1"]
    floor = cpu_milliseconds([sys.executable, "-c", "pass"])
    starts = {
        "the package": ["-m", "peekaboo_min"],
        "the single file": [str(ROOT / "scripts" / "peekaboo.py")],
    }
    for name, words in starts.items():
        own = cpu_milliseconds([sys.executable, *words, "--version"])
        print(
            f"{name} starts in {own / floor:.1f}x the time of a bare `python -c pass` ({floor:.0f} ms of CPU)"
        )
    rows: dict[str, tuple[Callable[[], None], Callable[[], None], Callable[[], None]]] = {
        "list windows": (bare(*listing), ours("windows"), tool(client, "list_windows")),
        "screenshot of a window": (
            bare(*listing, screenshot),
            ours("screenshot", window),
            tool(client, "take_window_screenshot", window_id=int(window)),
        ),
        "click": (
            bare(*listing, ["xdpyinfo"], click),
            ours("click", window, "5", "5"),
            tool(client, "click", window_id=int(window), x=5, y=5),
        ),
    }
    print(f"{'':<22}{'bare commands':>16}{'shell':>16}{'server':>16}")
    for name, works in rows.items():
        base, shell, server = (milliseconds(work) for work in works)
        print(
            f"{name:<22}{base:>13.1f} ms"
            f"{shell:>8.1f} ms {shell / base:>3.1f}x{server:>8.1f} ms {server / base:>3.1f}x"
            f"   the server adds {server - base:+.1f} ms"
        )


if __name__ == "__main__":
    sys.exit(main())
