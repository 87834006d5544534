"""Real desktops for tests: an X server, a window manager, a compositor and applications."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Callable

from mcp_server import Client, Reply
from worlds import PATIENCE_S, bare_x_server, clean_environment, group_of, need_optional, wait_for, x_server

# without a configuration i3 opens a wizard; this one has no bar and no lock screen
_I3_CONFIG = "font pango:DejaVu Sans 8\nfocus_follows_mouse no\nfloating_modifier Mod4\nexec touch {ready}\n"


class RealDesktop:
    """An X server, its window manager, an MCP server that acts on it, and a test's applications."""

    def __init__(self, display: str, window_manager: str, folder: Path) -> None:
        self.display, self.window_manager, self.folder = display, window_manager, folder
        self.environment = clean_environment(
            folder, DISPLAY=display, PEEKABOO_LOG_FILE=str(folder / "log"), NO_AT_BRIDGE="1", GTK_CSD="0"
        )
        self.client = Client("package", self.environment)
        self.client.shake_hands()
        self._applications: list[subprocess.Popen[str]] = []
        # the window manager's own bar
        self._own_ids = {one["window_id"] for one in self.windows()}

    def start(self, *words: Any, **variables: str) -> subprocess.Popen[str]:
        """Start an application; close_applications ends it."""
        process = subprocess.Popen(
            [str(word) for word in words], env={**self.environment, **variables}, cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        self._applications.append(process)
        return process

    def output(self, process: subprocess.Popen[str]) -> str:
        """Wait until an application ends by itself; return its stdout."""
        return process.communicate(timeout=PATIENCE_S)[0]

    def close_applications(self) -> None:
        for process in self._applications:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()
            if process.stdout:
                process.stdout.close()
        self._applications.clear()
        wait_for(
            lambda: {one["window_id"] for one in self.windows()} <= self._own_ids, "all windows are closed"
        )

    def windows(self) -> Any:
        return self.client.call("list_windows").data.get("windows", [])

    def window(self, is_it: Callable[[dict[str, Any]], bool], why: str) -> dict[str, Any]:
        """Wait for the first listed window that matches, and return it."""
        return wait_for(lambda: next(filter(is_it, self.windows()), None), f"{why} is listed")

    def window_titled(self, part: str) -> dict[str, Any]:
        return self.window(lambda one: part in one["title"], f"a window titled {part!r}")

    def popup(self, known: set[int]) -> dict[str, Any]:
        """Wait for a popup that is not among the known windows, and return it."""
        return self.window(
            lambda one: one["window_id"] not in known and one.get("kind") == "popup", "the popup"
        )

    def call(self, tool: str, window: dict[str, Any], **arguments: Any) -> Reply:
        return self.client.call(tool, window_id=window["window_id"], **arguments)

    def done(self, tool: str, window: dict[str, Any], **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed, and deliver if it acts; return its data."""
        reply = self.call(tool, window, **arguments)
        assert not reply.code and reply.data.get("delivered", True) is True, (
            f"{tool}: {reply.code} {reply.text}"
        )
        return reply.data

    def click(self, window: dict[str, Any], x: float, y: float) -> dict[str, Any]:
        shot = self.done("take_window_screenshot", window)
        return self.done("click", window, x=x, y=y, screenshot_id=shot["screenshot_id"])

    def run(self, *words: str) -> bytes:
        """Run another X program on the desktop; return its stdout."""
        return subprocess.run(words, env=self.environment, capture_output=True, timeout=PATIENCE_S).stdout

    def go_to_workspace(self, number: int) -> None:
        """Switch to a workspace; a test's applications open on 1."""
        if self.window_manager == "i3":
            self.run("i3-msg", f"workspace number {number}")
        else:
            self.run("xdotool", "set_desktop", str(number - 1))

    def close(self) -> None:
        self.close_applications()
        self.client.end()
        self.client.close()


@contextmanager
def real_desktop(
    folder: Path, window_manager: str = "openbox", compositor: bool = True
) -> Iterator[RealDesktop]:
    """Start a desktop; end it and everything on it with the block."""
    config, ready = folder / "i3.conf", folder / "ready"
    config.write_text(_I3_CONFIG.format(ready=ready))
    manager = ["i3", "-c", str(config)]
    if window_manager == "openbox":
        manager = ["openbox", "--startup", f"touch {ready}"]
    with ExitStack() as stack:
        if compositor:
            display = stack.enter_context(x_server())
        else:
            display = stack.enter_context(bare_x_server())
            own = {"DISPLAY": display, "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder)}
            stack.enter_context(group_of(manager, {**os.environ, **own}))
            wait_for(ready.exists, f"{window_manager} is ready")
        desktop = RealDesktop(display, window_manager, folder)
        desktop.environment["XDG_RUNTIME_DIR"] = str(folder)
        stack.callback(desktop.close)
        yield desktop


BROWSER_OPTIONS = (
    "--no-sandbox", "--test-type", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--password-store=basic",
)  # fmt: skip


def need_browser() -> str:
    """Return the path of an installed Chromium; scripts/test.sh installs one only if apt has it."""
    return need_optional("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def settled(look: Callable[[], Any], seconds: float = 0.3) -> Any:
    """Return the value once it stays the same for this time."""
    last, since = look(), time.monotonic()
    while time.monotonic() - since < seconds:
        now = look()
        if now != last:
            last, since = now, time.monotonic()
    return last
