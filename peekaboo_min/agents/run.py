"""A run of the vision agent: screenshots, replies and actions in a folder."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Optional

from .. import __version__
from ..ai.grid import Grid
from ..automation.listing import window_data
from ..core.errors import ErrorCode, PeekabooError, file_errors
from ..core.models import ImageData, Point, Rect, Window, as_plain
from ..system.files import asked_path, write_privately
from .actions import Action


class AgentStop(PeekabooError):
    """The run ends here, without its goal; `status` goes into run.json."""

    def __init__(self, status: str, code: ErrorCode, message: str, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.status = status


@dataclass(frozen=True)
class AgentTask:
    """What a run has to reach, where, and its limits; as run_vision_agent has them."""

    goal: str
    app: Optional[str] = None
    window_id: Optional[int] = None
    window_title: Optional[str] = None
    max_steps: int = 25
    max_seconds: float = 120.0
    confidence: Optional[float] = None
    dry_run: bool = False
    run_folder: Optional[str] = None
    confirm: bool = False


@dataclass
class Exchange:
    """A question to the model and its reply. `problem`: why that could not be used; empty when it could."""

    prompt: str
    reply: str = ""
    problem: str = ""


@dataclass
class AgentStep:
    """One step, filled in as it proceeds; an interrupted one stays incomplete."""

    number: int
    window: Optional[Window] = None
    """None when the app shows no window."""
    image: Optional[ImageData] = None
    """The screenshot of the window."""
    screenshot_id: str = ""
    elements: list[dict[str, Any]] = field(default_factory=list)
    """As find_elements has them, with x and y as pixels of `image`; empty where the app offers none."""
    grid: Optional[Grid] = None
    """The grid over that image, in which the model counts; None before it was asked."""
    exchanges: list[Exchange] = field(default_factory=list)
    action: Optional[Action] = None
    pixel: Optional[Point] = None
    """Where the action's place is, in pixels of `image`."""
    end_pixel: Optional[Point] = None
    """Where a drag ends."""
    point: Optional[Point] = None
    """`pixel` as a screen point."""
    effect: str = ""
    refusal: str = ""
    """The code of the error that prevented the action."""
    is_delivered: bool = True
    """False: another window got it, or it was refused."""
    changed: Optional[bool] = None
    """Whether the action changed the window; None: not known, or nothing was done."""
    changed_rect: Optional[Rect] = None
    """Where, in pixels of `image`."""
    milliseconds: int = 0
    """How long the step took, with the model and the wait for an effect."""
    tokens_in: int = 0
    tokens_out: int = 0

    def pixel_of(self, place: Optional[Point]) -> Optional[Point]:
        """A place in the model's grid as a pixel of `image`."""
        if place is None or self.grid is None or self.image is None:
            return None
        return self.grid.pixel_of(place, self.image.info.width, self.image.info.height)

    def describe_action(self, shows_text: bool = True) -> str:
        """The action for people: places in pixels of `image`, whatever the model counts in."""
        return self.action.describe(shows_text, self.pixel, self.end_pixel) if self.action else "no action"

    @property
    def history_line(self) -> str:
        """The action in the model's own numbers, with its effect, for its next prompt."""
        action = self.action.describe() if self.action else "no action"
        return f"{self.number}. {action} -> {self.effect}"

    @property
    def stem(self) -> str:
        """Of its files."""
        return f"step_{self.number:03d}"

    def as_data(self) -> dict[str, Any]:
        left_out = ("number", "window", "image", "elements", "action")
        plain = {name: as_plain(value) for name, value in asdict(self).items() if name not in left_out}
        info = self.image.info if self.image else None
        return {
            "step": self.number,
            "image": f"{self.stem}.jpg" if info else None,
            "image_width": info.width if info else 0,
            "image_height": info.height if info else 0,
            "window": window_data(self.window) if self.window else None,
            "action": _action_data(self.action) if self.action else None,
            **plain,
        }


def _action_data(action: Action) -> dict[str, Any]:
    """The action as our schema has it, without what it does not use; its places are the model's own."""
    data = {"action": action.kind, **action.values, "done": action.is_last, "why": action.why}
    return data if action.confidence is None else {**data, "confidence": action.confidence}


@dataclass
class AgentRun:
    """A whole run. `folder` is made with the first step; None until then."""

    task: AgentTask
    model_used: str
    status: str = "failed"
    """done, not_confirmed, dry_run, limit, stuck, unsure, confused, declined, interrupted or failed."""
    message: str = ""
    folder: Optional[Path] = None
    steps: list[AgentStep] = field(default_factory=list)
    started: float = field(default_factory=time.time)
    system_prompt: str = ""
    grid: str = ""
    """In which grid the model was asked, and why, as a sentence."""
    final_image: Optional[ImageData] = None
    """The window after the last action, where that was not looked at in a step."""

    @property
    def report_path(self) -> Optional[Path]:
        return self.folder / "report.html" if self.folder else None

    @property
    def started_text(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(self.started))

    @property
    def tokens_in(self) -> int:
        return sum(step.tokens_in for step in self.steps)

    @property
    def tokens_out(self) -> int:
        return sum(step.tokens_out for step in self.steps)

    def summary_data(self) -> dict[str, Any]:
        """The command's result."""
        return {
            "status": self.status,
            "steps": len(self.steps),
            "run_folder": str(self.folder) if self.folder else None,
            "report": str(self.report_path) if self.folder else None,
            "grid": self.grid,
            "seconds": round(time.time() - self.started, 1),
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
        }

    def as_data(self) -> dict[str, Any]:
        return {
            **self.summary_data(),
            "task": asdict(self.task),
            "message": self.message,
            "model_used": self.model_used,
            "started": self.started_text,
            "version": __version__,
            "system_prompt": self.system_prompt,
        }


def new_run_folder(asked: Optional[str]) -> Path:
    """Make the folder of a run (0700): the one asked for, else `peekaboo-run-TIME` in the working folder.

    Raises FILE_IO_ERROR, also for a folder that is not empty.
    """
    if asked:
        path = asked_path(asked)
        with file_errors(path):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if any(path.iterdir()):
                raise PeekabooError(ErrorCode.FILE_IO_ERROR, f"{path} is not empty", hint="name a new folder")
        return path
    time_text = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    with file_errors(asked_path(".")):
        return Path(tempfile.mkdtemp(prefix=f"peekaboo-run-{time_text}-", dir=asked_path(".")))


def save_step(run: AgentRun, step: AgentStep) -> None:
    """Write a step into the run's folder: step_001.jpg and step_001.json. Raises FILE_IO_ERROR."""
    assert run.folder is not None
    if step.image:
        write_privately(run.folder / f"{step.stem}.jpg", step.image.data)
    write_privately(run.folder / f"{step.stem}.json", _as_text(step.as_data()))


def save_run(run: AgentRun, report: str) -> None:
    """Write run.json, report.html and the last screenshot into the run's folder. Raises FILE_IO_ERROR."""
    assert run.folder is not None
    if run.final_image:
        write_privately(run.folder / "final.jpg", run.final_image.data)
    write_privately(run.folder / "run.json", _as_text(run.as_data()))
    write_privately(run.folder / "report.html", report)


def _as_text(data: dict[str, Any]) -> str:
    # ASCII: a reply may contain a lone surrogate, which UTF-8 cannot encode
    return json.dumps(data, indent=2) + "\n"
