"""A run folder as one HTML page: works offline, runs nothing."""

from __future__ import annotations

import base64
import re
from html import escape

from .run import AgentRun, AgentStep

# Replaced in the page: control characters, direction characters, lone surrogates and noncharacters.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """\
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2327; --soft: #5c6770; --line: #d8dde1;
  --box: #f5f7f8; --mark: #d6232b; --good: #19713c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15191c; --ink: #e4e8ea; --soft: #9aa5ad; --line: #343b40;
    --box: #1e2428; --mark: #ff5a60; --good: #62c98c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1200px; padding: 24px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; margin: 0 0 8px; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 0 0 4px; overflow-wrap: anywhere; }
.status { display: inline-block; padding: 0 10px; border: 1px solid var(--mark); border-radius: 12px;
  color: var(--mark); }
.status.good { border-color: var(--good); color: var(--good); }
.facts, .times { color: var(--soft); font-size: .88rem; }
section { border-top: 1px solid var(--line); padding: 18px 0; display: grid; gap: 18px;
  grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); }
@media (max-width: 820px) { section { grid-template-columns: minmax(0, 1fr); } }
.screenshot { position: relative; align-self: start; width: fit-content; max-width: 100%;
  border: 1px solid var(--line); line-height: 0; }
.screenshot img { max-width: 100%; height: auto; }
.screenshot svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.mark { fill: none; stroke: var(--mark); stroke-width: 3; }
.mark.would { stroke-dasharray: 6 4; }
.mark.under { stroke: #fff; stroke-width: 6; opacity: .75; }
pre { margin: 4px 0; padding: 8px 10px; background: var(--box); border: 1px solid var(--line);
  border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 12.5px/1.45 ui-monospace, monospace; }
summary { cursor: pointer; color: var(--soft); }
.problem { color: var(--mark); }"""


def run_report(run: AgentRun) -> str:
    """The page. Everything that a window, a model or a person wrote is in it as text only."""
    status_class = "status good" if run.status in ("done", "dry_run") else "status"
    facts = [
        f"{len(run.steps)} step(s)",
        f"{run.summary_data()['seconds']:g} s",
        f"{run.sum_of('tokens_in')} + {run.sum_of('tokens_out')} tokens",
        run.model_used,
        run.grid,
        run.started_text,
        "dry run: nothing was touched" if run.task.dry_run else "",
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            # a second defence behind the escaping: nothing is loaded, nothing runs
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_shown_text(run.task.goal[:80])}</title>",
            f"<style>\n{_STYLE}\n</style>",
            "</head>",
            "<body>",
            f"<h1>{_shown_text(run.task.goal)}</h1>",
            f'<p><span class="{status_class}">{run.status}</span> {_shown_text(run.message)}</p>',
            f'<p class="facts">{_shown_text(" · ".join(fact for fact in facts if fact))}</p>',
            _folded("System prompt", run.system_prompt),
            *(_step_section(step, run.task.dry_run) for step in run.steps),
            "</body>",
            "</html>",
            "",
        ]
    )


def _shown_text(text: str) -> str:
    return escape(_UNSHOWN.sub("\ufffd", text), quote=True)


def _folded(title: str, text: str) -> str:
    # a newline right after <pre> would be dropped
    return f"<details><summary>{title}</summary>\n<pre>\n{_shown_text(text)}</pre></details>" if text else ""


def _step_section(step: AgentStep, is_dry: bool) -> str:
    action = step.action
    lines: list[str] = [f"<h2>{step.number}. {_shown_text(step.describe_action())}</h2>"]
    if action and action.why:
        lines.append(f"<p>{_shown_text(action.why)}</p>")
    if step.effect:
        lines.append(f"<p><strong>{_shown_text(step.effect)}</strong></p>")
    lines.append(f'<p class="times">{_shown_text(_times_text(step))}</p>')
    for reply in step.exchanges:
        lines.append(f"<pre>\n{_shown_text(reply.reply)}</pre>")
        if reply.problem:
            lines.append(f'<p class="problem">Not used: {_shown_text(reply.problem)}</p>')
    lines += [_folded("Prompt", each.prompt) for each in step.exchanges]
    return "\n".join(
        ["<section>", _marked_screenshot(step, is_dry), "<div>", *filter(None, lines), "</div>", "</section>"]
    )


def _times_text(step: AgentStep) -> str:
    window = (
        f"window {step.window.window_id} of {step.window.app_name}: {step.window.title}"
        if step.window
        else "no window"
    )
    parts = [window]
    if step.point:
        parts.append(f"screen point {step.point.x:g},{step.point.y:g}")
    if step.action and step.action.confidence is not None:
        parts.append(f"confidence {step.action.confidence:g}")
    parts.append(f"model {step.model_ms:.0f} ms, look {step.look_ms:.0f} ms, act {step.act_ms:.0f} ms")
    parts.append(f"{step.tokens_in} + {step.tokens_out} tokens")
    return " · ".join(parts)


def _marked_screenshot(step: AgentStep, is_dry: bool) -> str:
    """The screenshot with a mark at the click, which the page draws in the screenshot's pixels."""
    if step.image is None:
        return "<div>no screenshot</div>"
    info = step.image.info
    data = base64.b64encode(step.image.data).decode("ascii")
    return (
        f'<div class="screenshot"><img alt="the window before step {step.number}" '
        f'width="{info.width}" height="{info.height}" src="data:{info.mime_type};base64,{data}">'
        f"{_mark(step, info.width, info.height, is_dry)}</div>"
    )


def _mark(step: AgentStep, width: int, height: int, is_dry: bool) -> str:
    if step.pixel is None:
        return ""
    x, y = round(step.pixel.x, 1), round(step.pixel.y, 1)
    horizontal = f"M{x - 20:g} {y:g}H{x - 6:g}M{x + 6:g} {y:g}H{x + 20:g}"
    vertical = f"M{x:g} {y - 20:g}V{y - 6:g}M{x:g} {y + 6:g}V{y + 20:g}"
    drawn = "".join(
        f'<g class="{kind}"><circle cx="{x:g}" cy="{y:g}" r="13"/><path d="{horizontal}{vertical}"/></g>'
        for kind in ("mark under", "mark would" if is_dry else "mark")
    )
    return f'<svg viewBox="0 0 {width} {height}" aria-label="the click at {x:g},{y:g}">{drawn}</svg>'
