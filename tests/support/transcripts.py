"""Run transcripts: what a desktop in memory shows, a command, and all that the command then does.

A file has sections, each with a new desktop: `== title`, then changes of the desktop, divided by `; `, and
commands. `=>` and the lines with two spaces show a command's output, without the usual lines, and its
effects: acts, captures except a single PNG, audit log, and duration on the desktop's clock. An entry of the
audit log has the application's names only if they are not those of the window.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable

from in_process import InProcessProgram
from samples import app, window
from scripted import ScriptedDesktop, picture, plain, scripted_desktop
from tk_windows import audit
from worlds import Program, clean_environment

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Delivery, Display, Element, Handler, Point, RecognisedText, Rect, Window
from peekaboo_min.system.programs import mcp_version

FOLDER = Path(__file__).parent.parent / "automation" / "transcripts"
# commands of one kind, which a transcript runs together: `$ each pointer keys`
GROUPS = {
    "pointer": ["click 7 10 20", "scroll 7 10 20 down", "drag 7 10 20 40 50", "move 7 10 20"],
    "keys": ["type 7 abc", "press 7 ctrl+a"],
    "label": ["click-text 7 Save"],
    "focus": ["focus 7"],
    "foreground": ["image --app Notes --capture-focus foreground"],
    "open": ["open --app Notes"],
}
_VOLATILE = [
    (r"\b[0-9a-f]{16}\b", "SHOT"),
    (r"\d{8}-\d{6}-[0-9a-f]{6}|(?<=peekaboo_)[0-9a-f]{12}", "NEW"),
    (r"(?<=package mcp: )\S+|(?<=^Version: )\S+", "VERSION"),
    (r"(?<=peekaboo_min-)\d+", "UID"),
    (r"\.0(?=[,}])", ""),
    (r"FOLDER/tmp/peekaboo_min-UID", "TMP"),
]
_USUAL = [
    "Captured 1 image(s):",
    "note: without a path the files are temporary: they are kept for 10 minutes",
    "without a path the files are temporary: they are kept for 10 minutes",
    "the file is temporary: it is kept for 10 minutes",
]


def sections(files: str = "*.txt") -> dict[str, list[str]]:
    """Return the lines of each section of the files, by `file: title`."""
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.glob(files)):
        for part in path.read_text("utf-8").split("\n== ")[1:]:
            title, *lines = part.rstrip().splitlines()
            assert found.setdefault(f"{path.stem}: {title}", lines) is lines, f"two sections {title}"
    return found


class Player:
    """Plays a section: changes its desktop, runs its commands, and returns the lines with real outcomes."""

    def __init__(self, desk: ScriptedDesktop, shell: Program, folder: Path) -> None:
        self._desk, self._shell, self._folder = desk, shell, folder
        self._variables: dict[str, str] = {}

    def play(self, lines: list[str]) -> list[str]:
        played: list[str] = []
        for line in lines:
            command = line[2:].partition(" => ")[0]
            if line.startswith("$ each "):
                played += self._play_each(command[5:])
            elif line.startswith("$ "):
                played += _lines(command, *self._run(command))
            elif not line.startswith("  "):
                played.append(line)
                for change in line.split("; "):
                    self._change(change)
        return played

    def _play_each(self, text: str) -> list[str]:
        """Run commands and return their names by error code and effects; `done` is an act that succeeds."""
        names: dict[str, list[str]] = {}
        for name, command in _commands(text):
            outcome, effects = self._run(f"{command} --json")
            code = re.search(r'"code": "(\w+)"', outcome[0])
            result = "; ".join(filter(None, [code[1], effects])) if code else "done" if effects else "no act"
            names.setdefault(result, []).append(name)
        if len(names) == 1:
            return [f"$ each {text} => {next(iter(names))}"]
        return [f"$ each {text}", *(f"  {', '.join(some)}: {result}" for result, some in names.items())]

    def _run(self, command: str) -> tuple[list[str], str]:
        """Run a command and return its output and the effects."""
        desk, start, logged = self._desk, self._desk.now, len(audit(self._shell))
        desk.done.clear()
        desk.captured.clear()
        windows = {each.window_id: each for each in desk.scene.windows}
        words = shlex.split(self._real(command))
        for number, word in enumerate(words):
            if word.startswith("["):  # steps
                words[number] = str(self._folder / "steps.json")
                Path(words[number]).write_text(word, "utf-8")
        finished = self._shell.run(*words, **self._variables)
        texts = [_compact(finished.json)] if "--json" in command else [finished.out, finished.err]
        outcome = [line for text in texts for line in text.splitlines() if line and line not in _USUAL]
        if finished.code:
            number = max(i for i, line in enumerate(outcome) if i == 0 or line.startswith("peekaboo-min: "))
            outcome[number] = f"exit {finished.code}: {outcome[number].replace('peekaboo-min: ', '', 1)}"
        outcome = [self._steady(line) for line in outcome]
        captured = ", ".join(f"{number} {kind}" for kind, number in desk.captured.items())
        effects = [f"did: {', '.join(desk.done)}"] * bool(desk.done)
        effects += [f"captured: {captured}"] * (captured not in ("", "1 png"))
        effects += [f"logged: {_entry(entry, windows)}" for entry in audit(self._shell)[logged:]]
        effects += [f"took {desk.now - start:.1f} s"] * (desk.now - start > 0.3)
        left_out = [f"... {len(outcome) - 6} more", *outcome[-3:]]
        return outcome if len(outcome) < 20 else outcome[:3] + left_out, self._steady("; ".join(effects))

    def _real(self, text: str) -> str:
        return text.replace("FOLDER", str(self._folder))

    def _steady(self, line: str) -> str:
        line = line.replace(str(self._folder), "FOLDER")
        for pattern, name in _VOLATILE:
            line = re.sub(pattern, name, line)
        return line

    def _change(self, line: str) -> None:
        delayed = re.match(r"after ([\d.]+) s: (.*)", line)
        during = re.match(r"at the (act|rectangle|tree): (.*)", line)
        if delayed:
            self._desk.after(float(delayed[1]), partial(self._change, delayed[2]))
        elif during:
            self._desk.during[during[1]].append(partial(self._change, during[2]))
        else:
            verb, *words = shlex.split(self._real(line), comments=True)
            plain_words = [word for word in words if not re.match(r"\w+=", word)]
            named = dict(word.split("=", 1) for word in words if re.match(r"\w+=", word))
            change: Callable[..., None] = getattr(self, f"_{verb}")
            change(*plain_words, **{name: _value(name, text) for name, text in named.items()})

    def _window(self, number: str, **values: Any) -> None:
        if self._desk.scene.find(int(number)):
            self._desk.change(int(number), **values)
        else:
            self._desk.show(window(int(number), **values), *self._desk.scene.windows)

    def _front(self, number: str) -> None:
        first = self._desk.scene.by_id(int(number))
        self._desk.show(first, *(each for each in self._desk.scene.windows if each != first))

    def _close(self, *numbers: str) -> None:
        self._desk.show(*(each for each in self._desk.scene.windows if str(each.window_id) not in numbers))

    def _scene(self, **values: Any) -> None:
        self._desk.scene = self._desk.scene._replace(**values)

    def _desk_is(self, **values: Any) -> None:
        self._desk.__dict__.update(values)

    def _app(self, name: str, **values: Any) -> None:
        self._scene(apps=(*self._desk.scene.apps, app(name, **values)))

    def _display(self, number: str, name: str, bounds: str, scale: float = 1.0) -> None:
        display = Display(int(number), _value("name", name), Rect(*ast.literal_eval(bounds)), scale)
        self._scene(displays=(*self._desk.scene.displays, display))

    def _looks(self, *names: str) -> None:
        self._desk.looks = [_look(name) for name in names]

    def _text(self, text: str, place: str, confidence: float = 0.9) -> None:
        box = Rect(*ast.literal_eval(place), 10 * len(text), 20)
        self._desk.lines = [*self._desk.lines, RecognisedText(text, box, confidence)]

    def _texts(self, count: str, text: str, place: str) -> None:
        x, y = ast.literal_eval(place)
        for number in range(int(count)):
            self._text(text, f"{x + 70 * (number % 12)},{y + 45 * (number // 12)}")

    def _element(self, role: str, name: str, place: str, value: str = "", states: str = "") -> None:
        x, y = ast.literal_eval(place)
        box = Rect(10 + x, 20 + y, 10 * len(name), 20)
        found = Element(role, name, value, tuple(states.split(",")) if states else (), box)
        self._desk.elements = [*self._desk.elements, found]

    def _elements(self, error: str) -> None:
        self._desk.elements = _look(error)

    def _no_texts(self) -> None:
        self._desk.lines, self._desk.elements = [], []

    def _delivery(self, delivered: Any, **values: Any) -> None:
        self._desk.delivery = Delivery(ast.literal_eval(delivered), **values)

    def _refusal(self, code: str, message: str, hint: str = "") -> None:
        self._desk.delivery = lambda: PeekabooError(ErrorCode(code), message, hint)

    def _handler(self, name: str, entry: str = "", bundle_id: Any = None) -> None:
        self._desk.handler = Handler(name, entry, bundle_id)

    def _file(self, name: str, content: str, mode: int = 0o644) -> None:
        (self._folder / name).write_bytes(
            content.encode("latin-1").decode("unicode_escape").encode("latin-1")
        )
        (self._folder / name).chmod(mode)

    def _link(self, name: str, target: str) -> None:
        (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / name).symlink_to(target)

    def _folder_named(self, name: str) -> None:
        for _, each in _commands(name) if "{" in name else [("", name)]:
            (self._folder / each).mkdir(parents=True)

    def _screenshot(self, *arguments: str) -> None:
        assert self._shell.run("screenshot", *arguments).code == 0

    def _set(self, **variables: Any) -> None:
        self._variables = {name: str(value) for name, value in variables.items()}


def _lines(command: str, outcome: list[str], effects: str) -> list[str]:
    """Return a command with its output and effects, in one line if they are short."""
    first = f"$ {command} => {' | '.join(line.strip() for line in outcome)}"
    is_long = len(outcome) > 3 and len(first) > 220
    shown = [f"$ {command}", *(f"  {line}" for line in outcome)] if is_long else [first]
    if effects and len(shown[-1]) + len(effects) < 220:
        return [*shown[:-1], f"{shown[-1]} | {effects}"]
    return [*shown, f"  {effects}"] if effects else shown


def _entry(entry: dict[str, Any], windows: dict[int, Window]) -> str:
    """Return an entry of the audit log; its window as a number if it has the names of that window."""
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry.pop("time"))
    assert entry.pop("pid") == os.getpid()
    window = windows.get(entry.get("window_id", 0))
    names = ["app", "bundle_id", "window_pid"]
    words = [entry.pop("action")]
    if window and [entry.get(name) for name in names] == [window.app_name, window.bundle_id, window.pid]:
        words.append(str(entry.pop("window_id")))
        entry = {name: value for name, value in entry.items() if name not in names}
    return " ".join([*words, *(f"{name}={_place(value)}" for name, value in entry.items())])


def _compact(document: dict[str, Any]) -> str:
    """Return the data and the error of a reply in JSON, and the messages that are not usual."""
    assert document["success"] is ("error" not in document)
    parts = {**document.get("data", {}), "messages": [], **document.get("error", {})}
    parts["messages"] = [each for each in document.get("messages", []) if each not in _USUAL]
    left_out = [name for name in ("messages", "details") if not parts.get(name)]
    return json.dumps(
        {name: _place(value) for name, value in parts.items() if name not in left_out}, ensure_ascii=False
    )


def _place(value: Any) -> Any:
    """Return rectangles and points in a value as `x,y widthxheight` and `x,y`."""
    if isinstance(value, list):
        return [_place(each) for each in value]
    if not isinstance(value, dict):
        return value
    x, y, width, height = (f"{value.get(name, 0):g}" for name in ("x", "y", "width", "height"))
    place = f"{x},{y} {width}x{height}" if "width" in value else f"{x},{y}" if "x" in value else ""
    others = {name: _place(each) for name, each in value.items() if name not in ("x", "y", "width", "height")}
    return {"at": place, **others} if place and others else place or others


def _commands(text: str) -> list[tuple[str, str]]:
    """Return names and commands of groups, or of all that braces stand for: `open --path a.{app,sh}`."""
    braces = re.fullmatch(r"(.*)\{(.*)\}(.*)", text)
    if braces:
        return [(part, f"{braces[1]}{part}{braces[3]}") for part in braces[2].split(",")]
    return [(command.split()[0], command) for name in text.split() for command in GROUPS[name]]


def _value(name: str, text: str) -> Any:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = ast.literal_eval(f'"{text}"')
    kinds: dict[str, Any] = {"bounds": Rect, "frame": Rect, "point": Point}
    return kinds[name](*value) if name in kinds else value


def _look(name: str) -> Any:
    """Return a capture: `A` or another part, `300x200` of one shade, `300x200:5`, `!CODE` for an error."""
    if name.startswith("!"):
        return PeekabooError(ErrorCode(name[1:]), "it failed")
    size = re.fullmatch(r"(\d+)x(\d+)(?::(\d+))?", name)
    return plain(int(size[1]), int(size[2]), int(size[3] or 255)) if size else picture(name)


def _write() -> None:
    """Replace the outcomes in all files by the real ones; then read the difference before you commit it."""
    mcp_version()  # without mcp, the outcome of doctor would be another one
    for path in FOLDER.glob("*.txt"):
        parts = [path.read_text("utf-8").split("\n== ")[0].rstrip()]
        for title, lines in sections(path.name).items():
            with TemporaryDirectory() as folder, scripted_desktop() as desk:
                shell = InProcessProgram(clean_environment(Path(folder)))
                played = Player(desk, shell, Path(folder)).play(lines)
            parts.append("\n".join([f"== {title.partition(': ')[2]}", *played]).rstrip())
        path.write_text("\n".join(parts) + "\n", "utf-8")


if __name__ == "__main__":
    _write()
