"""Write a run as one HTML page that works offline and contains no scripts."""

from __future__ import annotations

import base64
from html import escape
from string import Template
from typing import Any

from ..core.models import rect_around
from ..core.settings import without_secrets
from ..core.text import shown_text
from .run import AgentRun, AgentStep

# The policy is a second defence behind the escaping: the page loads nothing and runs nothing.
_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$goal</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 992px; padding: 16px; font: 15px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 0; } p, figure { margin: 4px 0; }
section { border-top: 1px solid #8888; padding: 16px 0; }
pre { white-space: pre-wrap; font-size: .85rem; background: #8882; padding: 8px; }
svg { display: block; width: 100%; outline: 1px solid #8888; }
svg * { fill: none; stroke-width: 3; vector-effect: non-scaling-stroke; }
.behind { opacity: .5; } .mark { stroke: #d6232b; } .would { stroke-dasharray: 6 4; }
.changed { stroke: #1a8f4a; stroke-dasharray: 8 5; }
.problem { color: #d6232b; }
</style>
</head>
<body>
<h1>$goal</h1>
<p><strong>$status</strong>: $message</p>
<p>Trust the screenshots, not the model's claims.</p>
<p>Model $model_used: $grid. Started $started.
$steps steps in $seconds s, $tokens_in + $tokens_out tokens.</p>
$sections
<section><details><summary>System prompt</summary><pre>
$system_prompt</pre></details></section>
</body>
</html>
""")
_STEP = Template("""\
<section>
<h2>$title</h2>
<p>$described → $effect</p>
$figure
<p>$where, $milliseconds ms, $tokens_in + $tokens_out tokens</p>
$replies
</section>""")
_EXCHANGE = Template("""\
<p class="problem">$problem</p><details><summary>Reply</summary><pre>
$reply</pre></details>
<details><summary>Question</summary><pre>
$prompt</pre></details>""")
# In screen points. Behind a menu or dialog, the page shows the last screenshots of its parent windows.
_FIGURE = Template("""\
<figure><svg viewBox="$box" style="max-width:${width}px">
$behind<image id="shot$number" $place href="data:$image"/>
<g transform="$to_points">$marks</g></svg></figure>""")


def run_report(run: AgentRun) -> str:
    """Return the page. Text from windows, the model and the user is escaped."""
    sections = [_step_section(run, step) for step in run.steps]
    if run.final and run.final.image:
        sections.append(f"<section>\n<h2>Afterwards</h2>\n{_figure(run, run.final)}\n</section>")
    status = "the model reports done" if run.status == "done" else run.status
    return _PAGE.substitute(_as_texts({**run.as_data(), "status": status}), sections="\n".join(sections))


def _as_texts(data: dict[str, Any]) -> dict[str, str]:
    return {name: escape(shown_text(without_secrets(str(value)))) for name, value in data.items()}


def _step_section(run: AgentRun, step: AgentStep) -> str:
    described, why = step.describe_action(), step.action.why if step.action else ""
    texts = {
        **step.as_data(),
        "title": f"{step.number}. {why or described}",
        "described": described,
        "where": f"{step.window.title!r} of {step.window.app_name}" if step.window else "no window",
    }
    return _STEP.substitute(
        _as_texts(texts),
        figure=_figure(run, step) if step.image else "<p>no screenshot</p>",
        replies="\n".join(_EXCHANGE.substitute(_as_texts(vars(exchange))) for exchange in step.exchanges),
    )


def _marks(step: AgentStep, is_dry_run: bool) -> str:
    # in pixels of the image: a frame around the change, a cross at each point
    marks = []
    if step.changed_rect:
        x, y, width, height = map(round, step.changed_rect)
        marks.append(f'<rect class="changed" x="{x}" y="{y}" width="{width}" height="{height}"/>')
    action, kind = step.pixel_action, "mark would" if is_dry_run else "mark"
    points = [f"{x:.0f} {y:.0f}" for x, y in (action.points if action else ())]
    marks += [f'<path class="{kind}" d="M{point}m-14 0h28m-14 -14v28"/>' for point in points]
    return "\n".join(marks)


def _figure(run: AgentRun, step: AgentStep) -> str:
    assert step.image and step.window
    bounds = box = step.window.bounds
    behind, parent_id = "", step.window.parent_id
    for earlier in reversed(run.steps[: step.number - 1]):
        if earlier.image and earlier.window and earlier.window.window_id == parent_id:
            behind = f'<use class="behind" href="#shot{earlier.number}"/>\n{behind}'
            box, parent_id = rect_around([box, earlier.window.bounds]), earlier.window.parent_id
    return _FIGURE.substitute(
        box=" ".join(map(str, box)),
        width=box.width,
        behind=behind,
        number=step.number,
        place=" ".join(f'{name}="{value:g}"' for name, value in bounds._asdict().items()),
        image=f"{step.image.info.mime_type};base64,{base64.b64encode(step.image.data).decode('ascii')}",
        to_points=f"translate({bounds.x:g} {bounds.y:g}) scale({bounds.width / step.image.info.width:g})",
        marks=_marks(step, run.dry_run),
    )
