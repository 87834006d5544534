"""Write runs and recorded acts as one HTML page, offline and without scripts."""

from __future__ import annotations

import base64
import json
import re
import time
from contextlib import suppress
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Annotated, Any, Callable, Optional

from ..automation.capture import Subject, for_client, take_image, wait_until_painted
from ..automation.policy import check_may_act
from ..core.errors import PeekabooError, file_errors, invalid
from ..core.log import log_warning
from ..core.models import ImageData, Point, Rect, Result, Window, rect_around
from ..core.settings import settings, without_secrets
from ..core.text import shown_text
from ..desktop.images import load_image
from ..desktop.select import this_desktop
from ..system.files import absolute_path, write_privately
from ..system.programs import native_source
from .actions import Action
from .run import AgentRun, AgentStep

_MOST_ACTS = 200  # a page of 400 screenshots is about 50 MB
_RING = "m-14 0h28m-14 -14v28a14 14 0 1 0 0 -28a14 14 0 1 0 0 28"  # a ring and a cross


@cache
def _template(name: str) -> Template:
    """Return the part of report.html after the comment with this name."""
    _, *parts = re.split(r"<!-- (\w+) -->\n", native_source("agents/report.html"))
    return Template(dict(zip(parts[::2], parts[1::2]))[name].rstrip("\n"))


def run_report(run: AgentRun) -> str:
    """Return the page of a run. All text from windows, the model and the user is escaped."""
    sections = [_step_section(run, step) for step in run.steps]
    if run.final and run.final.image:
        sections.append(f"<section>\n<h2>Afterwards</h2>\n{_figure(run, run.final)}\n</section>")
    status = "the model reports done" if run.status == "done" else run.status
    texts = _as_texts({**run.as_data(), "status": status})
    facts = _template("facts" if run.model_used else "record_facts").substitute(texts)
    return _template("page").substitute(texts, sections="\n".join(sections), facts=facts) + "\n"


def _as_texts(data: dict[str, Any]) -> dict[str, str]:
    return {name: escape(shown_text(without_secrets(str(value)))) for name, value in data.items()}


def _step_section(run: AgentRun, step: AgentStep) -> str:
    described, why = step.describe_action(), step.action.why if step.action else ""
    after, exchange_part = step.image_after, _template("exchange")
    texts = {
        **step.as_data(),
        "title": f"{step.number}. {why or described}",
        "described": described,
        "tokens": f", {step.tokens_in} + {step.tokens_out} tokens" if step.exchanges else "",
        "where": f"{step.window.title!r} of {step.window.app_name}" if step.window else "no window",
    }
    return _template("step").substitute(
        _as_texts(texts),
        figure=_figure(run, step) if step.image else "<p>no screenshot</p>",
        figure_after=_template("after").substitute(image=_data_of(after)) if after else "",
        replies="\n".join(exchange_part.substitute(_as_texts(vars(exchange))) for exchange in step.exchanges),
    )


def _marks(step: AgentStep, is_dry_run: bool) -> str:
    # in pixels of the image: a frame around the change, a cross at each point
    marks = []
    if step.changed_rect:
        x, y, width, height = map(round, step.changed_rect)
        marks.append(f'<rect class="changed" x="{x}" y="{y}" width="{width}" height="{height}"/>')
    action, kind = step.pixel_action, "mark would" if is_dry_run else "mark"
    points = [f"{x:.0f} {y:.0f}" for x, y in (action.points if action else ())]
    marks += [f'<path class="{kind}" d="M{point}{_RING}"/>' for point in points]
    return "\n".join(marks)


def _figure(run: AgentRun, step: AgentStep) -> str:
    # in screen points; draw a menu or dialog over the last screenshots of its parent windows
    assert step.image and step.window
    bounds = box = step.window.bounds
    behind, parent_id = "", step.window.parent_id
    for earlier in reversed(run.steps[: step.number - 1]):
        if earlier.image and earlier.window and earlier.window.window_id == parent_id:
            behind = f'<use class="behind" href="#shot{earlier.number}"/>\n{behind}'
            box, parent_id = rect_around([box, earlier.window.bounds]), earlier.window.parent_id
    return _template("figure").substitute(
        box=" ".join(map(str, box)),
        width=box.width,
        behind=behind,
        number=step.number,
        place=" ".join(f'{name}="{value:g}"' for name, value in bounds._asdict().items()),
        image=_data_of(step.image),
        to_points=f"translate({bounds.x:g} {bounds.y:g}) scale({bounds.width / step.image.info.width:g})",
        marks=_marks(step, run.dry_run),
    )


def _data_of(image: ImageData) -> str:
    return f"{image.info.mime_type};base64,{base64.b64encode(image.data).decode('ascii')}"


def recorded_call(tool: str, function: Callable[..., Result], arguments: dict[str, Any]) -> Result:
    """Call a tool that acts, and keep the call in the folder of PEEKABOO_RECORD.

    Raises the errors of the tool, and FILE_IO_ERROR before the act if the folder cannot be used.
    """
    path = _new_record(absolute_path(settings().record_folder))
    if not path:
        log_warning(f"PEEKABOO_RECORD has {_MOST_ACTS} acts; this one is not recorded")
        return function(**arguments)
    step = AgentStep(int(path.stem.rpartition("_")[2]), effect="it failed unexpectedly; see the log")
    step.window, step.image = _look(arguments.get("window_id"))
    start = time.monotonic()
    try:
        result = function(**arguments)
        step.effect = result.text
        step.note(result.data)
        step.pixel_action = _action_in_pixels(step, tool, result.data)
        _, step.image_after = _look(arguments.get("window_id", result.data.get("window_id")), is_after=True)
        return result
    except PeekabooError as e:
        step.effect = e.code_name  # a message may quote the screen, and so a text typed before
        raise
    finally:
        step.milliseconds = round((time.monotonic() - start) * 1000)
        step.pixel_action = step.pixel_action or Action(tool)
        try:
            step.save(path)
        except PeekabooError as e:  # the act is done; after an error the caller would repeat it
            log_warning(f"the act could not be recorded: {e.message}")


def _new_record(folder: Path) -> Optional[Path]:
    """Create the next act's file, which no other process gets; return None after _MOST_ACTS."""
    with file_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, _MOST_ACTS + 1):
            path = folder / f"act_{number:03d}.json"
            with suppress(FileExistsError):
                path.touch(mode=0o600, exist_ok=False)
                return path
    return None


def _look(window_id: Any, is_after: bool = False) -> tuple[Optional[Window], Optional[ImageData]]:
    """Return a window and its screenshot; None for a window in which no act is allowed."""
    desktop = this_desktop()
    try:
        window = desktop.snapshot().by_id(window_id)
        check_may_act("record", window.app_name, window.bundle_id)
        if is_after:
            wait_until_painted(desktop, window)
        return window, for_client(desktop, take_image(desktop, Subject(window=window), "jpg")).content
    except PeekabooError:  # the window may have closed
        return None, None


def _action_in_pixels(step: AgentStep, tool: str, data: dict[str, Any]) -> Action:
    values: dict[str, Any] = {}
    for prefix, name in (("", "point"), ("to_", "to_point")):
        if name in data and step.window and step.image:
            place = Rect(*Point(**data[name]), 0, 0)
            pixel = place.in_image_of(step.window.bounds, step.image.info.width)
            values.update({f"{prefix}x": round(pixel.x), f"{prefix}y": round(pixel.y)})
    return Action(tool, values)


def report(folder: Annotated[str, "the folder that PEEKABOO_RECORD named"]) -> Result:
    """Write a page with the acts that PEEKABOO_RECORD kept: screenshots before and after, and the outcome.

    Example: peekaboo-min report FOLDER
    writes FOLDER/report.html
    """
    path = absolute_path(folder)
    files = sorted(path.glob("act_*.json"))
    if not files:
        raise invalid(f"{path} holds no recorded acts", "set PEEKABOO_RECORD to a folder, then act")
    steps = [_recorded_step(number, file) for number, file in enumerate(files, 1)]
    started = min(file.stat().st_mtime for file in files)
    run = AgentRun("Recorded acts", "", status="recorded", steps=steps, started=started)
    run.message = f"{len(steps)} act(s)"
    write_privately(path / "report.html", run_report(run))
    data = {"report": str(path / "report.html"), "steps": len(steps)}
    return Result(f"{len(steps)} act(s): {data['report']}", data)


def _recorded_step(number: int, path: Path) -> AgentStep:
    with file_errors(path):
        content = path.read_bytes()
    step = AgentStep(number, effect="the process ended during this act")
    if not content:
        return step
    try:
        data = json.loads(content)
        step.effect, step.milliseconds = data["effect"], data["milliseconds"]
        step.pixel_action = Action(**data["pixel_action"])
        if data["image"]:
            step.window = Window(**{**data["window"], "bounds": Rect(**data["window"]["bounds"])})
            step.image = load_image(path.with_suffix(".jpg"))
            step.changed_rect = Rect(**data["changed_rect"]) if data["changed_rect"] else None
    except (ValueError, KeyError, TypeError) as e:
        raise invalid(f"{path} is not a recorded act: {e!r}") from e
    after = path.with_name(f"{path.stem}_after.jpg")
    step.image_after = load_image(after) if after.exists() else None
    return step
