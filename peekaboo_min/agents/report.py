"""A run as one HTML page: works offline, runs nothing."""

from __future__ import annotations

import base64
from html import escape
from string import Template

from ..core.models import ImageData
from ..core.text import shown_text
from .run import AgentRun, AgentStep

_SHOWN_WIDTH = 960  # of a screenshot on the page, CSS pixels
# The policy is a second defence behind the escaping: nothing is loaded, nothing runs.
_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$goal</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 992px; padding: 16px; font: 15px/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 0; } p, figure { margin: 4px 0; }
section { border-top: 1px solid #8888; padding: 16px 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; } dd { margin: 0; }
pre { white-space: pre-wrap; font-size: .85rem; background: #8882; padding: 8px; }
svg { display: block; width: 100%; outline: 1px solid #8888; }
svg * { fill: none; stroke-width: 2.5; vector-effect: non-scaling-stroke; }
.halo { stroke: #fff; stroke-width: 5; opacity: .8; }
.mark { stroke: #d6232b; } .would { stroke-dasharray: 6 4; }
.changed { stroke: #1a8f4a; stroke-dasharray: 8 5; }
.problem { color: #d6232b; }
</style>
</head>
<body>
<h1>$goal</h1>
<p><strong>$status</strong>: $message</p>
<p>$word</p>
<dl>
<dt>Model</dt><dd>$model</dd>
<dt>Grid</dt><dd>$grid</dd>
<dt>Started</dt><dd>$started</dd>
<dt>Steps</dt><dd>$steps in $seconds s, $tokens tokens</dd>
</dl>
$sections
<section><details><summary>System prompt</summary><pre>
$system_prompt</pre></details></section>
</body>
</html>
""")
_STEP = Template("""\
<section>
<h2>$title</h2>
<p>$action → $effect</p>
$figure
<p>$window, $seconds s, $tokens tokens</p>
$exchanges
</section>""")
_EXCHANGE = Template("""\
$problem<details><summary>Reply</summary><pre>
$reply</pre></details>
<details><summary>Question</summary><pre>
$prompt</pre></details>""")
_FIGURE = Template("""\
<figure><svg viewBox="0 0 $width $height" style="max-width:${width}px" role="img" aria-label="$label">
<image width="$width" height="$height" href="data:$kind;base64,$data"/>
$overlay</svg></figure>""")


def run_report(run: AgentRun) -> str:
    """The page. Everything that a window, a model or a person wrote is in it as text only."""
    sections = [_step_section(run, step) for step in run.steps]
    if run.final_image:
        sections.append(f"<section>\n<h2>Afterwards</h2>\n{_figure(run.final_image, 'the end')}\n</section>")
    summary = run.summary_data()
    return _PAGE.substitute(
        goal=_text(run.task.goal),
        status=run.status,
        message=_text(run.message),
        word="Done is the model's word; the last screenshot shows what is so."
        if run.status == "done"
        else "",
        model=_text(run.model_used),
        grid=_text(run.grid),
        started=run.started_text + (" (dry run: nothing was touched)" if run.task.dry_run else ""),
        steps=summary["steps"],
        seconds=summary["seconds"],
        tokens=f"{run.tokens_in} + {run.tokens_out}",
        sections="\n".join(sections),
        system_prompt=_text(run.system_prompt),
    )


def _text(text: str) -> str:
    return escape(shown_text(text), quote=True)


def _step_section(run: AgentRun, step: AgentStep) -> str:
    why = step.action.why if step.action else ""
    exchanges = [
        _EXCHANGE.substitute(
            problem=f'<p class="problem">Not used: {_text(each.problem)}</p>\n' if each.problem else "",
            reply=_text(each.reply),
            prompt=_text(each.prompt),
        )
        for each in step.exchanges
    ]
    label = f"before step {step.number}"
    return _STEP.substitute(
        title=f"{step.number}. {_text(why or step.describe_action())}",
        action=_text(step.describe_action()),
        effect=_text(step.effect or "nothing is known"),
        figure=_figure(step.image, label, _overlay(run, step)) if step.image else "<p>no screenshot</p>",
        window=_text(f"{step.window.title!r} of {step.window.app_name}") if step.window else "no window",
        seconds=f"{step.milliseconds / 1000:.1f}",
        tokens=f"{step.tokens_in} + {step.tokens_out}",
        exchanges="\n".join(exchanges),
    )


def _figure(image: ImageData, label: str, overlay: str = "") -> str:
    return _FIGURE.substitute(
        width=image.info.width,
        height=image.info.height,
        kind=image.info.mime_type,
        data=base64.b64encode(image.data).decode("ascii"),
        label=label,
        overlay=overlay,
    )


def _overlay(run: AgentRun, step: AgentStep) -> str:
    """Brackets around the action's place, a line to a drag's end, and what changed, in the image's pixels."""
    drawn = {}
    if step.changed_rect:
        x, y, width, height = step.changed_rect
        drawn["changed"] = f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z"
    if step.pixel and step.image:
        # a large screenshot is shown smaller; the brackets would be too
        a, b, c = (length * max(1.0, step.image.info.width / _SHOWN_WIDTH) for length in (18, 11, 7))
        x, y = step.pixel
        corners = "".join(
            f"M{x + right * a:.1f} {y + down * b:.1f}v{down * c:.1f}h{-right * c:.1f}"
            for right in (-1, 1)
            for down in (-1, 1)
        )
        line = f"M{x:.1f} {y:.1f}L{step.end_pixel.x:.1f} {step.end_pixel.y:.1f}" if step.end_pixel else ""
        drawn["mark would" if run.task.dry_run else "mark"] = corners + line
    return "".join(
        f'<path class="halo" d="{d}"/><path class="{kind}" d="{d}"/>\n' for kind, d in drawn.items()
    )
