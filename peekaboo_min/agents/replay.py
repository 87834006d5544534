"""A run as a shell script of our own commands, to repeat it without a model."""

from __future__ import annotations

import shlex
from typing import Optional

from ..core.cancellation import in_parallel
from ..core.errors import PeekabooError
from ..core.log import log_info
from ..core.models import Point, RecognisedText
from ..core.text import clean_text
from ..desktop.base import Desktop
from .run import AgentRun, AgentStep, image_file

_SHORTEST_ANCHOR = 3
_SCRIPT = """\
#!/bin/sh
# Repeats a run of peekaboo-min agent without a model, and stops at the first step whose effect is missing.
# The goal was: {goal}
#   sh replay.sh            with peekaboo-min on PATH, or
#   PEEKABOO="python3 peekaboo.py" sh replay.sh
set -eu
app={app}
shot=$(mktemp -d)/window.png
trap 'rm -rf "${{shot%/*}}"' EXIT
peekaboo() {{ ${{PEEKABOO:-peekaboo-min}} "$@"; }}
fail() {{
    echo "step $step: $*" >&2
    exit 1
}}
# the app's window with this title, once it is there; without a title, its open menu or list
window() {{
    if [ -n "$1" ]; then
        answer=$(peekaboo wait-for --app "$app" --title "$1" --json-output) || fail "$answer"
        id=$(echo "$answer" | sed -n 's/.*"window_id": *\\([0-9]*\\).*/\\1/p' | head -n 1)
    else
        answer=$(peekaboo windows --app "$app" --json-output) || fail "$answer"
        popup='/"window_id"/ {{ id = $2 }} /"kind": "popup"/ {{ print id; exit }}'
        id=$(echo "$answer" | tr -d , | awk "$popup")
    fi
    [ -n "$id" ] || fail "the window is not there: $1"
}}
# a screenshot of the size that the run had: pixels below are pixels of it
look() {{
    answer=$(peekaboo screenshot "$id" --path "$shot" --max-dimension "$1" --json-output) || fail "$answer"
    echo "$answer" | grep -q "\\"image_width\\": $2,*$" || fail "the window has another size than in the run"
}}
# one of our commands; `changed`: its effect must be seen
act() {{
    expected=$1
    shift
    answer=$(peekaboo "$@") || fail "$answer"
    [ "$expected" = any ] || echo "$answer" | grep -Eq '"(changed|window_closed)": true' ||
        fail "nothing changed"
}}

{steps}
echo "all steps were repeated"
"""


def replay_script(run: AgentRun, desktop: Desktop) -> str:
    """The script. Clicks are anchored at the text under them where this machine can read it."""
    steps = [step for step in run.steps if _is_repeated(step)]
    anchors = in_parallel(lambda step: _anchor(run, desktop, step), steps)
    blocks = [_block(step, anchor) for step, anchor in zip(steps, anchors)]
    app = next((step.window.app_name for step in steps if step.window), run.task.app or "")
    goal = clean_text(run.task.goal)
    return _SCRIPT.format(goal=goal, app=shlex.quote(app), steps="\n".join(blocks))


def _is_repeated(step: AgentStep) -> bool:
    action = step.action
    is_act = action is not None and (action.is_input or (action.kind == "wait" and action.text))
    return bool(is_act) and step.window is not None and step.image is not None and not step.is_refused


def _anchor(run: AgentRun, desktop: Desktop, step: AgentStep) -> str:
    """The text under a click that stands once in the screenshot; empty where there is none."""
    if not step.pixel or not step.action or step.action.kind != "click" or step.action.modifiers:
        return ""
    assert run.folder is not None
    try:
        return text_under(desktop.read_text(run.folder / image_file(step.number)), step.pixel)
    except PeekabooError as e:
        log_info(f"step {step.number} is replayed by its pixel: {e.message}")
        return ""


def text_under(lines: list[RecognisedText], pixel: Point) -> str:
    """The line of text at a pixel, if it can be found again: it is long enough, and stands there once."""
    found = next((line.text.strip() for line in lines if line.box.contains(pixel)), "")
    if len(found) < _SHORTEST_ANCHOR or clean_text(found) != found:
        return ""
    return found if sum(found.casefold() in line.text.casefold() for line in lines) == 1 else ""


def _block(step: AgentStep, anchor: str) -> str:
    action, window, image = step.action, step.window, step.image
    assert action and window and image
    title = "" if window.is_popup else clean_text(window.title or "")
    edge = max(image.info.width, image.info.height)
    lines = [f"step={step.number} # {clean_text(action.why or action.kind)}", f"window {shlex.quote(title)}"]
    if step.pixel and not anchor:
        lines.append(f"look {edge} {image.info.width}")
    lines.append(_act_line(step, anchor))
    return "\n".join(lines) + "\n"


def _act_line(step: AgentStep, anchor: str) -> str:
    """One of our commands, options first: a text may begin with a dash."""
    action = step.action
    assert action is not None
    place, end = _words(step.pixel), _words(step.end_pixel)
    click = {"--button": action.button, "--clicks": action.clicks}
    modifiers = {"--modifiers": ",".join(action.modifiers)} if action.modifiers else {}
    repeat = {"--repeat": action.repeat} if action.repeat > 1 else {}
    hold = {"--hold-ms": round(action.seconds * 1000)} if action.seconds else {}
    commands: dict[str, tuple[str, dict[str, object], list[str]]] = {
        "click": ("click", {**click, **modifiers}, place),
        "move": ("move", {}, place),
        "drag": ("drag", {"--button": action.button}, [*place, *end]),
        "scroll": ("scroll", {"--amount": action.amount}, [*place, action.direction]),
        "type": ("type", {"--replace": None} if action.replace else {}, [action.text]),
        "press": (
            "press",
            {**repeat, **hold, **modifiers},
            [action.key],
        ),
        "wait": ("wait-for", {"--text": action.text}, []),
    }
    command, options, words = ("click-text", click, [anchor]) if anchor else commands[action.kind]
    options = {**options, "--json-output": None}
    if action.kind not in ("move", "wait"):
        options["--verify"] = None
    flags = [word for name, value in options.items() for word in (name, value) if word is not None]
    quoted = [shlex.quote(str(word)) for word in (command, *flags)]
    tail = ' --window-id "$id"' if action.kind == "wait" else ' -- "$id" '
    return f"act {'changed' if step.changed else 'any'} " + " ".join(quoted) + tail + shlex.join(words)


def _words(pixel: Optional[Point]) -> list[str]:
    return [f"{pixel.x:.2f}", f"{pixel.y:.2f}"] if pixel else []
