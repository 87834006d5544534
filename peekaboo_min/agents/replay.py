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
from .actions import OPENED
from .run import AgentRun, AgentStep, image_file

_SHORTEST_ANCHOR = 3
_SCRIPT = """\
#!/bin/sh
# Repeats a run of peekaboo-min agent without a model, and stops at the first step whose effect is missing.
# The goal was: {goal}
#   sh replay.sh            with peekaboo-min on PATH, or
#   PEEKABOO="python3 peekaboo.py" sh replay.sh
set -eu
shot=$(mktemp -d)/window.png
trap 'rm -rf "${{shot%/*}}"' EXIT
peekaboo() {{ ${{PEEKABOO:-peekaboo-min}} "$@"; }}
fail() {{
    echo "step $step: $*" >&2
    exit 1
}}
# ask COMMAND ARGUMENTS...: one of our commands, whose answer is JSON
ask() {{
    command=$1
    shift
    answer=$(peekaboo "$command" --json-output "$@") ||
        fail "$(echo "$answer" | sed -n 's/^ *"message": //p')"
}}
# window APP TITLE: the app's window, once it is there; without a title, its open menu or list
window() {{
    if [ -n "$2" ]; then
        ask wait-for --app "$1" --title "$2"
        found='/"window_id"/ {{ print $2; exit }}'
    else
        ask windows --app "$1"
        found='/"window_id"/ {{ id = $2 }} /"kind": "popup"/ {{ print id; exit }}'
    fi
    id=$(echo "$answer" | tr -d , | awk "$found")
    [ -n "$id" ] || fail "the window is not there: $2 of $1"
}}
# look LONGEST-SIDE WIDTH: a screenshot of the size that the run had; the pixels below are pixels of it
look() {{
    ask screenshot "$id" --path "$shot" --max-dimension "$1"
    echo "$answer" | tr -d ' ,' | grep -qx '"image_width":'"$2" ||
        fail "the window has another size than in the run"
}}
# act EXPECTED COMMAND...: `changed`, if the window must change
act() {{
    expected=$1
    shift
    ask "$@"
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
    return _SCRIPT.format(goal=clean_text(run.task.goal), steps="\n".join(blocks))


def _is_repeated(step: AgentStep) -> bool:
    action = step.action
    if action is None or step.refusal:
        return False
    if action.kind == "open":
        return True
    is_act = action.is_input or (action.kind == "wait" and action.text)
    return bool(is_act) and step.window is not None and step.image is not None


def _anchor(run: AgentRun, desktop: Desktop, step: AgentStep) -> str:
    """The text under a click, if the screenshot shows it once; empty where there is none."""
    if not step.pixel or not step.action or step.action.kind != "click" or step.action.modifiers:
        return ""
    assert run.folder is not None
    try:
        return text_under(desktop.read_text(run.folder / image_file(step.number)), step.pixel)
    except PeekabooError as e:
        log_info(f"step {step.number} is replayed by its pixel: {e.message}")
        return ""


def text_under(lines: list[RecognisedText], pixel: Point) -> str:
    """The line of text at a pixel, if it can be found again: it is long enough, and no other line has it."""
    found = next((line.text.strip() for line in lines if line.box.contains(pixel)), "")
    if len(found) < _SHORTEST_ANCHOR or clean_text(found) != found:
        return ""
    return found if sum(found.casefold() in line.text.casefold() for line in lines) == 1 else ""


def _block(step: AgentStep, anchor: str) -> str:
    action, window, image = step.action, step.window, step.image
    assert action
    number = f"step={step.number} # {clean_text(action.why or action.kind)}"
    if action.kind == "open":
        # in one word: a name may begin with a dash
        targets = [f"--{name}={getattr(action, name)}" for name in OPENED if getattr(action, name)]
        return f"{number}\n{shlex.join(['ask', 'open', *targets])}\n"
    assert window and image
    title = "" if window.is_popup else clean_text(window.title or "")
    edge = max(image.info.width, image.info.height)
    lines = [number, shlex.join(["window", window.app_name, title])]
    if step.pixel and not anchor:
        lines.append(f"look {edge} {image.info.width}")
    lines.append(_act_line(step, anchor))
    return "\n".join(lines) + "\n"


def _act_line(step: AgentStep, anchor: str) -> str:
    """One of our commands, options first: a text may begin with a dash."""
    action = step.action
    assert action is not None
    place, end = _coordinates(step.pixel), _coordinates(step.end_pixel)
    argv = {
        "click": ["click", *place],
        "move": ["move", *place],
        "drag": ["drag", *place, *end],
        "scroll": ["scroll", *place, action.direction],
        "type": ["type", action.text],
        "press": ["press", action.key],
        "wait": ["wait-for"],
    }[action.kind]
    command, *arguments = ["click-text", anchor] if anchor else argv
    is_wait = action.kind == "wait"
    options = {
        "--button": "" if action.button == "left" else action.button,
        "--clicks": "" if action.clicks == 1 else action.clicks,
        "--modifiers": ",".join(action.modifiers),
        "--amount": action.amount if action.kind == "scroll" else "",
        "--replace": action.replace or "",
        "--repeat": "" if action.repeat == 1 else action.repeat,
        "--hold-ms": round(action.seconds * 1000) if action.seconds and not is_wait else "",
        "--text": action.text if is_wait else "",
        "--verify": "" if is_wait or action.kind == "move" else True,
    }
    line = ["act", "changed" if step.changed else "any", command]
    for name, value in options.items():
        if value != "":
            line += [name] if value is True else [name, str(value)]
    subject = '--window-id "$id"' if is_wait else '-- "$id"'
    return f"{shlex.join(line)} {subject} {shlex.join(arguments)}".rstrip()


def _coordinates(pixel: Optional[Point]) -> list[str]:
    return [f"{pixel.x:.2f}", f"{pixel.y:.2f}"] if pixel else []
