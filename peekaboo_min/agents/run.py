"""Data of a vision agent's run: steps, status and run folder."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional

from .. import __version__
from ..ai.grid import Grid
from ..core.errors import ErrorCode, PeekabooError, file_errors
from ..core.models import ImageData, Point, Rect, Window, as_plain
from ..core.settings import without_secrets
from ..system.files import absolute_path, write_privately
from .actions import Action

NO_SCREENSHOT = "none"  # the server rejects this id; "" would mean the window's newest screenshot


class AgentStop(PeekabooError):
    """The end of a run that has not reached its goal. `status` goes into run.json."""

    def __init__(self, status: str, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.status = status


@dataclass
class Exchange:
    """All text sent to the model, and its reply."""

    prompt: str
    reply: str = ""
    problem: str = ""  # why the reply is unusable; empty if it was used


@dataclass
class AgentStep:
    """One step of a run, filled in while it proceeds."""

    number: int
    window: Optional[Window] = None
    image: Optional[ImageData] = None
    image_after: Optional[ImageData] = None  # only for acts that PEEKABOO_RECORD keeps
    screenshot_id: str = NO_SCREENSHOT
    elements: dict[str, Any] = field(default_factory=dict)
    grid: Optional[Grid] = None
    exchanges: list[Exchange] = field(default_factory=list)
    action: Optional[Action] = None  # in the model's grid
    pixel_action: Optional[Action] = None  # the same in pixels of the image
    point: Optional[Point] = None  # of the pointer, on the screen
    effect: str = ""
    is_delivered: bool = True  # False if another window received the action, or if it was refused
    changed: Optional[bool] = None  # None if unknown or not done
    changed_rect: Optional[Rect] = None  # in pixels of the image
    milliseconds: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def note(self, data: dict[str, Any]) -> None:
        """Store the pointer's position and the changed part of the window, from an act's result."""
        if "point" in data:
            self.point = Point(**data["point"])
        if "changed_rect" in data and self.image:
            rect = dict(data["changed_rect"])
            factor = self.image.info.width / rect.pop("image_width")
            self.changed_rect = Rect(**rect).scaled(factor)

    def save(self, path: Path) -> None:
        """Write `path`.json, and the images as `path`.jpg and `path`_after.jpg. Raises FILE_IO_ERROR."""
        for suffix, image in (("", self.image), ("_after", self.image_after)):
            if image:
                write_privately(path.with_name(f"{path.stem}{suffix}.jpg"), image.data)
        save(path, self.as_data())

    def describe_action(self, shows_text: bool = True) -> str:
        return self.pixel_action.describe(shows_text) if self.pixel_action else "no action"

    def as_data(self) -> dict[str, Any]:
        excluded = ("elements", "image_after")
        plain = {name: as_plain(value) for name, value in asdict(self).items() if name not in excluded}
        return {**plain, "image": as_plain(self.image.info) if self.image else None}


def doubt_about(steps: Sequence[AgentStep]) -> str:
    """Return why the model's claim that the goal is reached is doubtful; empty if it is credible."""
    acts = [(step, step.action) for step in steps if step.action and step.action.is_act]
    if not acts:
        return ""
    for index, (step, action) in enumerate(acts):
        retries = [later for later, later_action in acts[index + 1 :] if later_action.kind == action.kind]
        if not any(attempt.is_delivered for attempt in (step, *retries)):
            return f"your action `{action.describe()}` failed: {step.effect}"
    last, action = acts[-1]
    if action.is_last and not last.changed:
        return f"your last action, `{action.describe()}`, was delivered, but {last.effect}"
    return "" if any(step.changed for step, _ in acts) else "none of your actions had a visible effect"


@dataclass
class AgentRun:
    """One run: the options of run_vision_agent and the results."""

    goal: str
    model_used: str
    app: Optional[str] = None
    window_id: Optional[int] = None
    window_title: Optional[str] = None
    max_steps: int = 25
    max_seconds: float = 120.0
    confidence: Optional[float] = None
    dry_run: bool = False
    confirm: bool = False
    deadline: float = math.inf  # monotonic; no step or call starts later
    status: str = "failed"  # done, not_confirmed, dry_run, limit, unsure, confused, declined, interrupted
    message: str = ""
    doubt: str = ""  # about the model's claim that the goal is reached; empty again after the next act
    folder: Optional[Path] = None  # created before the first step; None until then
    steps: list[AgentStep] = field(default_factory=list)
    final: Optional[AgentStep] = None  # a screenshot after the last action; None if there was no act
    started: float = field(default_factory=time.time)
    system_prompt: str = ""
    grid: str = ""  # a sentence with the model's grid and how it was chosen

    def check_time(self) -> None:
        """Raise AgentStop if the time limit is reached."""
        if time.monotonic() >= self.deadline:
            message = f"the time limit of {self.max_seconds:g} s was reached before the goal"
            raise AgentStop("limit", ErrorCode.TIMEOUT, message, "see the report, then raise --max-seconds")

    def summary_data(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "steps": len(self.steps),
            "run_folder": str(self.folder) if self.folder else None,
            "report": str(self.folder / "report.html") if self.folder else None,
            "grid": self.grid,
            "seconds": round(time.time() - self.started, 1),
            "tokens_in": sum(step.tokens_in for step in self.steps),
            "tokens_out": sum(step.tokens_out for step in self.steps),
        }

    def as_data(self) -> dict[str, Any]:
        excluded = ("deadline", "folder", "steps", "final")
        options = {name: value for name, value in vars(self).items() if name not in excluded}
        started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.started))
        return {**options, **self.summary_data(), "started": started, "version": __version__}


def new_run_folder(requested: Optional[str]) -> Path:
    """Create the folder (0700), by default `peekaboo-run-TIME`, which must be new. Raises FILE_IO_ERROR."""
    name = time.strftime("peekaboo-run-%Y%m%dT%H%M%SZ-", time.gmtime()) + os.urandom(3).hex()
    path = absolute_path(requested or name)
    with file_errors(path):
        path.mkdir(mode=0o700, parents=True)
    return path


def save(path: Path, data: dict[str, Any]) -> None:
    """Write `path`.json. Raises FILE_IO_ERROR."""
    # ASCII: a reply may contain a lone surrogate, which UTF-8 cannot encode
    write_privately(path.with_suffix(".json"), without_secrets(json.dumps(data, indent=2)) + "\n")
