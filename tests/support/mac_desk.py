"""A fake Mac with our command line, for behaviour that only a Mac has."""

from __future__ import annotations

from typing import Any, Optional

from fakemac import FakeMac
from in_process import InProcessProgram
from worlds import ROOT, Finished

from peekaboo_min.core.models import Act, Delivery, Point, Window
from peekaboo_min.desktop.macos.backend import MacDesktop

PANELS = "com.apple.appkit.xpc.openAndSavePanelService"
PANES = {11: ("Screen Recording", "Privacy_ScreenCapture"), 12: ("Accessibility", "Privacy_Accessibility")}
STARTED = {"do": "started", "program": "osascript"}


class Desk:
    """A fake Mac: `run` and its variants use the command line, `backend` the Desktop below it.

    The backend needs the fake Mac's environment in this process; the fixture `desk` sets it.
    """

    def __init__(self, mac: FakeMac) -> None:
        self.mac, self.backend = mac, MacDesktop()
        self.program = InProcessProgram({**mac.env(), "PYTHONPATH": str(ROOT)})
        self.stop_file = mac.home / "Library" / "Caches" / "peekaboo_min" / "STOP"

    def run(self, *words: Any, **variables: Any) -> Finished:
        return self.program.run(*words, "--json", **variables)

    def data(self, *words: Any, **variables: Any) -> dict[str, Any]:
        return self.run(*words, **variables).data

    def refusal(self, *words: Any, **variables: Any) -> tuple[int, str]:
        """Run a command that fails; check that it left no image; return exit code and error code."""
        finished = self.run(*words, **variables)
        assert finished.error["message"], finished.out
        assert self.images_left() == []
        return finished.code, finished.error["code"]

    def windows(self, *words: Any) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.data("windows", *words)["windows"]
        return listed

    def window(self, window_id: int) -> Window:
        return next(one for one in self.backend.snapshot().windows if one.window_id == window_id)

    def act(self, window_id: int, kind: str, *points: tuple[float, float], **fields: Any) -> Delivery:
        act = Act(kind, tuple(Point(*one) for one in points), **fields)
        return self.backend.act(self.window(window_id), act, self.stop_file)

    def images_left(self) -> list[str]:
        return [path.name for path in (self.mac.folder / "tmp").rglob("*") if path.suffix in (".png", ".jpg")]

    def captures(self) -> list[list[str]]:
        """Return the arguments of every screencapture without the file's path."""
        return [call["argv"][:-1] for call in self.mac.calls("screencapture")]

    def clicks(self) -> list[tuple[Any, ...]]:
        """Return window, widget, button, count and point of every click that arrived."""
        names = ("window", "widget", "button", "count", "x", "y")
        return [tuple(one[name] for name in names) for one in self.mac.events("click")]

    def keys(self) -> list[str]:
        return [one["key"] for one in self.mac.events("key")]

    def posted(self) -> list[dict[str, Any]]:
        """Return every posted mouse and keyboard event, whatever its effect."""
        return [one for one in self.mac.raw_events() if "type" in one]

    def focused_id(self) -> Optional[int]:
        window = self.mac.front_window()
        return window["id"] if window else None


def widget(name: str, kind: str, *rect: int, **more: Any) -> dict[str, Any]:
    """Return a widget of a fake window; rect: x, y, width and height in points of the window."""
    return {"name": name, "kind": kind, "rect": list(rect), **more}


def change_app(mac: FakeMac, app: str, **values: Any) -> None:
    mac.update(lambda state: next(one for one in state["apps"] if one["name"] == app).update(values))


def add_app(mac: FakeMac, name: str, pid: Optional[int] = None, **values: Any) -> None:
    app = {"pid": pid, "name": name, "bundle_id": "", "policy": 0, "path": "", "hidden": False, **values}
    mac.update(lambda state: state["apps"].append(app))


def check_permission_error(finished: Finished, exit_code: int) -> None:
    """Check that a permission error names the application, the pane, its address and the restart."""
    pane, address = PANES[exit_code]
    message = finished.error["message"]
    assert f"Terminal lacks the {pane} permission" in message
    assert f"switch Terminal on in System Settings > Privacy & Security > {pane} (open " in message
    assert f'open "x-apple.systempreferences:com.apple.preference.security?{address}"' in message
    assert message.endswith("quit and reopen Terminal")
