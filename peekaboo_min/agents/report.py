"""A run as one HTML page: works offline, runs nothing."""

from __future__ import annotations

import base64
import json
import math
import re
from html import escape
from typing import Optional

from ..ai.grid import ASSUMED
from ..core.models import ImageData, ImageInfo
from ..core.text import shown_text
from .run import AgentRun, AgentStep

_UNSURE_BELOW = 0.5
_SHOWN_WIDTH = 640  # of a screenshot beside another, CSS pixels
_FENCED = re.compile(r"\A\s*```(?:json)?\s*(\{.*\})\s*```\s*\Z", re.DOTALL)
# a second defence behind the escaping: nothing is loaded, nothing runs
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """\
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2327; --soft: #5c6770; --line: #d8dde1;
  --box: #f5f7f8; --mark: #d6232b; --good: #19713c; --warn: #fff3d6; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15191c; --ink: #e4e8ea; --soft: #9aa5ad; --line: #343b40;
    --box: #1e2428; --mark: #ff5a60; --good: #62c98c; --warn: #44371a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 24px 16px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: 0 0 8px; }
h2 { font-size: 1.08rem; margin: 0; }
p { margin: 4px 0; }
section { border-top: 1px solid var(--line); padding: 18px 0; }
figure { margin: 8px 0; min-width: 0; }
figcaption, .soft, summary { color: var(--soft); font-size: .88rem; }
.status { padding: 1px 10px; border: 1px solid var(--mark); border-radius: 12px; color: var(--mark); }
.status.good { border-color: var(--good); color: var(--good); }
.warnings { background: var(--warn); border-left: 4px solid #d99a1c; padding: 8px 12px; margin: 12px 0; }
.pair { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); }
.film { display: flex; gap: 8px; overflow-x: auto; padding: 4px 0 12px; }
.film a { flex: 0 0 132px; color: var(--soft); font-size: .8rem; text-decoration: none; line-height: 1.3; }
.film svg { height: 84px; }
.images { position: absolute; width: 0; height: 0; }
.shot { display: block; width: 100%; background: var(--box); outline: 1px solid var(--line); }
.shot g { fill: none; stroke-linecap: round; }
.shot g * { vector-effect: non-scaling-stroke; }
.halo { stroke: #fff; stroke-width: 5; opacity: .8; }
.mark { stroke: #d6232b; stroke-width: 2.5; }
.would { stroke-dasharray: 6 4; }
.changed { stroke: #1a8f4a; stroke-width: 3; stroke-dasharray: 8 5; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 12px 0; }
dt { color: var(--soft); } dd { margin: 0; }
pre { margin: 4px 0; padding: 8px 10px; background: var(--box); border: 1px solid var(--line);
  white-space: pre-wrap; font: 12.5px/1.45 ui-monospace, monospace; }
summary { cursor: pointer; }
.problem { color: var(--mark); }"""
_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def run_report(run: AgentRun) -> str:
    """The page. Everything that a window, a model or a person wrote is in it as text only."""
    good = "good" if run.status in ("done", "dry_run") else "bad"
    warnings = "".join(f"<p>{_text(each)}</p>" for each in run_warnings(run))
    body = [
        f'<svg class="images" aria-hidden="true"><defs>{_images(run)}</defs></svg>',
        f"<h1>{_text(run.task.goal)}</h1>",
        f'<p><span class="status {good}">{run.status}</span> {_text(run.message)}</p>',
        f'<div class="warnings">{warnings}</div>' if warnings else "",
        _final_shot(run),
        f'<nav class="film">{"".join(map(_film_frame, run.steps))}</nav>',
        _facts(run),
        *(_step_section(run, step) for step in run.steps),
        f"<section>{_folded('System prompt', run.system_prompt)}</section>",
    ]
    title = _text(run.task.goal[:80])
    return _PAGE.format(policy=_POLICY, title=title, style=_STYLE, body="\n".join(filter(None, body)))


def run_warnings(run: AgentRun) -> list[str]:
    """What a person should look at, whatever the run's status says."""
    acts = [step for step in run.steps if step.action and step.action.is_input]
    refused = [str(step.number) for step in acts if step.refusal]
    unsure = [
        f"{step.number} ({step.action.confidence:g})"
        for step in run.steps
        if step.action and step.action.confidence is not None and step.action.confidence < _UNSURE_BELOW
    ]
    unused = sum(bool(each.problem) for step in run.steps for each in step.exchanges)
    warnings = {
        f"actions that were refused: step {', '.join(refused)}": refused,
        f"the model was not sure of step {', '.join(unsure)}": unsure,
        f"{unused} of the model's replies could not be used": unused,
        "no action had a visible effect": acts and run.status == "done" and not any(s.changed for s in acts),
        run.grid: ASSUMED in run.grid,
    }
    return [text for text, holds in warnings.items() if holds]


def _text(text: str) -> str:
    return escape(shown_text(text), quote=True)


def _folded(title: str, text: str) -> str:
    # a newline right after <pre> would be dropped
    return f"<details><summary>{title}</summary>\n<pre>\n{_text(text)}</pre></details>" if text else ""


def _facts(run: AgentRun) -> str:
    times = run.times
    shares = (
        f"{run.summary_data()['seconds']:g} s: the model {times.model / 1000:.1f}, looking "
        f"{times.look / 1000:.1f}, acting {(times.act - times.settle) / 1000:.1f}, waiting for effects "
        f"{times.settle / 1000:.1f}"
    )
    facts = {
        "Model": run.model_used,
        "Places": run.grid,
        "Started": run.started_text + (" (dry run: nothing was touched)" if run.task.dry_run else ""),
        "Steps": str(len(run.steps)),
        "Time": shares,
        "Tokens": f"{run.tokens_in} in, {run.tokens_out} out",
        "Cost": "" if run.cost is None else f"{run.cost:g}, as the vendor's answers state it",
    }
    rows = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts.items() if value)
    return f"<dl>{rows}</dl>\n{_folded('Run it again', run.task.command(run.model_used))}"


# the screenshots: each is in the page once, and shown where it is used ---


def _images(run: AgentRun) -> str:
    named: list[tuple[str, Optional[ImageData]]] = [("final", run.final_image)]
    for step in run.steps:
        named += [(f"image-{step.number}", step.image), (f"detail-{step.number}", step.detail)]
    return "".join(_image(name, image) for name, image in named if image)


def _image(name: str, image: ImageData) -> str:
    data, info = base64.b64encode(image.data).decode("ascii"), image.info
    url = f"data:{info.mime_type};base64,{data}"
    return f'<image id="{name}" width="{info.width}" height="{info.height}" href="{url}"/>'


def _shot(name: str, info: ImageInfo, label: str, overlay: str = "") -> str:
    return (
        f'<svg class="shot" viewBox="0 0 {info.width} {info.height}" style="max-width:{info.width}px" '
        f'role="img" aria-label="{_text(label)}"><use href="#{name}"/>{overlay}</svg>'
    )


def _figure(shot: str, caption: str) -> str:
    return f"<figure>{shot}<figcaption>{_text(caption)}</figcaption></figure>"


def _final_shot(run: AgentRun) -> str:
    shown = [(f"image-{step.number}", step.image) for step in run.steps] + [("final", run.final_image)]
    for name, image in reversed(shown):
        if image:
            return _figure(_shot(name, image.info, "the window at the end"), "At the end")
    return ""


def _film_frame(step: AgentStep) -> str:
    shot = _shot(f"image-{step.number}", step.image.info, "") if step.image else ""
    return f'<a href="#step-{step.number}">{shot}{step.number}. {_text(step.describe_action())}</a>'


def _step_section(run: AgentRun, step: AgentStep) -> str:
    action = step.action
    done = step.describe_action()
    title = action.why if action and action.why else done
    parts = [f"{done} → {step.effect}" if step.effect else done]
    if action and action.confidence is not None:
        parts.append(f"confidence {action.confidence:g}")
    times = f"model {step.times.model:.0f} ms, look {step.times.look:.0f} ms, act {step.times.act:.0f} ms"
    window = f"window {step.window.window_id} of {step.window.app_name}" if step.window else "no window"
    lines = [
        f"<h2>{step.number}. {_text(title)}</h2>",
        f'<p class="{"problem" if step.refusal else "done"}">{_text(" · ".join(parts))}</p>',
        f'<div class="pair">{_shots(run, step)}</div>',
        f'<p class="soft">{_text(window)} · {times} · {step.tokens_in} + {step.tokens_out} tokens</p>',
    ]
    for each in step.exchanges:
        if each.problem:
            lines.append(f'<p class="problem">Not used: {_text(each.problem)}</p>')
        lines += [_folded("Reply", _without_nulls(each.reply)), _folded("Question", each.prompt)]
    return f'<section id="step-{step.number}">\n' + "\n".join(filter(None, lines)) + "\n</section>"


def _without_nulls(reply: str) -> str:
    """A reply for people: JSON, fenced or not, indented and without what is null; anything else as it is."""
    try:
        data = json.loads(_FENCED.sub(r"\1", reply))
    except (ValueError, RecursionError):
        return reply
    if not isinstance(data, dict):
        return reply
    used = {name: value for name, value in data.items() if value is not None}
    return json.dumps(used, indent=2, ensure_ascii=False)


def _shots(run: AgentRun, step: AgentStep) -> str:
    """Before, with the action marked; after, with what changed; and what was shown enlarged."""
    if step.image is None:
        return "<p>no screenshot</p>"
    title = (step.window.title if step.window else None) or "the window"
    name, label = f"image-{step.number}", f"before step {step.number}"
    shown = [_figure(_shot(name, step.image.info, label, _mark(step, run.task.dry_run)), title)]
    if step.detail:
        shot = _shot(f"detail-{step.number}", step.detail.info, "the part that the model asked for")
        shown.append(_figure(shot, "enlarged"))
    following = run.steps[step.number] if step.number < len(run.steps) else None
    after, name = (following.image, f"image-{step.number + 1}") if following else (run.final_image, "final")
    if step.changed and after:
        shot = _shot(name, after.info, f"after step {step.number}", _changed_outline(step, after.info))
        shown.append(_figure(shot, "afterwards"))
    return "".join(shown)


def _changed_outline(step: AgentStep, info: ImageInfo) -> str:
    rect = step.changed_rect
    if rect is None or step.image is None or step.image.info != info:
        return ""
    x, y = max(0.0, rect.x - 3), max(0.0, rect.y - 3)
    width, height = min(info.width - x, rect.width + 6), min(info.height - y, rect.height + 6)
    box = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
    return f'<g class="halo">{box}</g><g class="changed">{box}</g>'


def _mark(step: AgentStep, is_dry: bool) -> str:
    """Brackets around the place of an action, in the screenshot's pixels: what is there stays visible."""
    if step.pixel is None or step.action is None:
        return ""
    kind, start, end = step.action.kind, step.pixel, step.end_pixel
    # a large screenshot is shown smaller; the brackets would be too
    size = max(1.0, step.image.info.width / _SHOWN_WIDTH) if step.image else 1.0
    a, b, c = (f"{length * size:g}" for length in (18, 11, 16))
    path = f"M-{a} -{b}V-{c}H-{b}M{b} -{c}H{a}V-{b}M{a} {b}V{c}H{b}M-{b} {c}H-{a}V{b}"
    if kind == "zoom" and end:
        path = f"M0 0H{end.x - start.x:g}V{end.y - start.y:g}H0Z"
    elif kind == "drag" and end:
        path += _arrow(end.x - start.x, end.y - start.y, size)
    elif kind == "scroll":
        dx, dy = {"up": (0, -1), "down": (0, 1), "left": (-1, 0)}.get(step.action.direction, (1, 0))
        path += _arrow(48 * size * dx, 48 * size * dy, size)
    drawn = f'<path transform="translate({start.x:.1f} {start.y:.1f})" d="{path}"/>'
    would = " would" if is_dry else ""
    return f'<g class="halo">{drawn}</g><g class="mark{would}">{drawn}</g>'


def _arrow(x: float, y: float, size: float) -> str:
    """From beside the brackets to a place that is so far from their middle."""
    angle = math.atan2(y, x)

    def at(distance: float, turn: float = 0.0) -> str:
        return f"{distance * math.cos(angle + turn):.1f} {distance * math.sin(angle + turn):.1f}"

    def behind(turn: float) -> str:
        head = 12 * size
        return f"{x - head * math.cos(angle + turn):.1f} {y - head * math.sin(angle + turn):.1f}"

    return f"M{at(22 * size)}L{x:.1f} {y:.1f}M{behind(0.5)}L{x:.1f} {y:.1f}L{behind(-0.5)}"
