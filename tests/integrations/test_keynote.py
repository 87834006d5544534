"""The Keynote tools on a fake Keynote, checked by its document."""

from __future__ import annotations

import copy
import fcntl
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Callable, Optional
from unittest.mock import ANY

import pytest
from fake_ai import picture
from fakemac import FakeMac, image_size, labels, pixel, shape_colour
from in_process import InProcessProgram
from worlds import PATIENCE_S, ROOT, Program, need, wait_for

from peekaboo_min.core.errors import PeekabooError
from peekaboo_min.core.settings import forget_environment
from peekaboo_min.integrations import keynote
from peekaboo_min.system.saved_images import saved_images

CENTRED = {"x": 384, "y": 378, "width": 1152, "height": 324}
OPEN: tuple[str, dict[str, Any]] = ("open_keynote", {})
DRAW = ("draw_rectangle", CENTRED)
SIZE = "SLIDE_SIZE: width=1920, height=1080"
READY = "KEYNOTE_READY: slide=1, slide_width=1920, slide_height=1080"
DONE = ["KEYNOTE_READY", "RECTANGLE_OK", "TEXT_OK", "SCREENSHOT_SAVED"]
NO_RECTANGLE = "INVALID_ARGUMENT: no rectangle was drawn; call draw_rectangle first"
NONE_OPEN = "WINDOW_NOT_FOUND: no Keynote document is open; call open_keynote first"


def write(text: str) -> tuple[str, dict[str, Any]]:
    return ("add_text_in_keynote", {"text": text})


def statuses(answers: Sequence[str]) -> list[str]:
    return [answer.split(":")[0] for answer in answers]


def answer_of(tool: str, arguments: dict[str, Any]) -> str:
    try:
        return str(getattr(keynote, tool)(**arguments).text)
    except PeekabooError as e:
        return f"{e.code.value}: {e.sentence()}"


class Caller:
    """The tools on a fake Mac. Only files keep state between two uses of `call`."""

    def __init__(self, mac: FakeMac) -> None:
        self.mac = mac
        self.environment = {**mac.env(), "PYTHONPATH": str(ROOT)}
        self.shell = InProcessProgram(self.environment)
        (mac.folder / "tmp").mkdir(exist_ok=True)

    def call(
        self,
        *calls: tuple[str, dict[str, Any]],
        seconds: float = 60,
        is_server: bool = False,
        **variables: str,
    ) -> list[str]:
        """Run the calls like one process; return each text, or `CODE: sentence`.

        seconds: Keynote's timeout. is_server: ignore the state that other processes left.
        """
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self.environment, **variables}.items():
                patch.setenv(name, value)
            patch.chdir(self.mac.folder)
            patch.setattr(tempfile, "tempdir", None)  # read TMPDIR again
            patch.setattr(keynote, "KEYNOTE_S", seconds)
            patch.setattr(keynote, "_is_in_memory", False)
            forget_environment()
            if is_server:
                keynote.keep_deck_in_memory()
            answers = [answer_of(*call) for call in calls]
        forget_environment()
        return answers

    @property
    def documents(self) -> list[dict[str, Any]]:
        return list(self.mac.state()["keynote"]["documents"])

    def shapes(self, document: int = 0) -> list[dict[str, Any]]:
        """Return position, size and text of the shapes on slide 1."""
        return [
            {**shape["position"], **{key: shape[key] for key in ("width", "height", "object_text")}}
            for shape in self.documents[document]["slides"][0]["shapes"]
        ]

    def scripts(self) -> list[str]:
        """Return the scripts that ran, in order."""
        requests = [call["request"] for call in self.mac.calls("osascript")]
        return [json.loads(request)["do"] if request else "export" for request in requests]


@pytest.fixture
def caller(mac: FakeMac) -> Caller:
    return Caller(mac)


def change_front(mac: FakeMac, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the front document from outside, like a user."""
    mac.update(lambda state: change(state["keynote"]["documents"][0]))


# the whole workflow ---


def test_keynote_shell_commands_draw_and_write_across_processes(mac: FakeMac, tmp_path: Path) -> None:
    caller, shell = Caller(mac), Caller(mac).shell
    opened = shell.data("keynote", "open")
    document = mac.state()["keynote"]["documents"][0]
    size = {"slide_width": 1920, "slide_height": 1080}
    assert opened == {"slide": 1, **size, "document_id": document["id"], "bundle_id": "com.apple.Keynote"}
    image, own_id = tmp_path / "new" / "folders" / "slide.png", f"{document['id']}/1/1"
    argvs = [("size",), ("rectangle", *CENTRED.values()), ("text", "Grüße ¦ from the shell 👋")]
    assert [shell.run("keynote", *argv).out for argv in (*argvs, ("screenshot", image))] == [
        f"{SIZE}\n",
        f"RECTANGLE_OK: id={own_id}, x=384, y=378, width=1152, height=324\n",
        f"TEXT_OK: id={own_id}, characters=24\n",
        f"SCREENSHOT_SAVED: path={image}\n",
    ]
    assert caller.shapes() == [{**CENTRED, "object_text": "Grüße | from the shell 👋"}]
    assert image.read_bytes().startswith(b"\x89PNG") and image_size(image) == (1920, 1080)
    assert pixel(image, 390, 384) == shape_colour(1) != pixel(image, 370, 384)
    assert [label["text"] for label in labels(image)] == ["Grüße | from the shell 👋"]


def test_keynote_that_is_not_installed_is_not_asked_for(caller: Caller, mac: FakeMac) -> None:
    """Send nothing: macOS would ask the user where Keynote is."""
    mac.keynote(installed=[])
    assert caller.call(OPEN) == ["APP_NOT_FOUND: Keynote is not installed; get it in the App Store"]
    assert caller.scripts() == ["find"]


@pytest.mark.parametrize(
    "installed", [["com.apple.iWork.Keynote"], ["com.apple.Keynote", "com.apple.iWork.Keynote"]]
)
def test_keynote_version_that_is_installed_is_used_by_every_call(
    caller: Caller, mac: FakeMac, installed: list[str]
) -> None:
    mac.keynote(installed=installed[::-1])
    answers = caller.call(OPEN, DRAW, write("x"), ("screenshot_slide", {"path": "slide.png"}))
    assert statuses(answers) == DONE
    assert list((mac.folder / "tmp").rglob("slides_*")) == [], "the exported deck is not left behind"
    (document,) = caller.documents
    assert (document["bundle_id"], document["theme"], document["current_slide"]) == (installed[0], "White", 1)
    assert document["slides"][0]["base_layout"] == "Blank"
    kinds = ("launch", "activate", "keynote_make_document")
    assert [event["kind"] for event in mac.events(*kinds)] == list(kinds)
    assert [event["bundle_id"] for event in mac.events("launch")] == installed[:1]


# documents ---


def open_another(mac: FakeMac) -> None:
    another = {**mac.state()["keynote"]["documents"][0], "id": "ANOTHER", "name": "An\nother"}
    mac.update(lambda state: state["keynote"]["documents"].insert(0, another))


def test_keynote_screenshot_selects_a_deck_if_none_was_opened(caller: Caller, mac: FakeMac) -> None:
    mac.keynote(restores_a_deck=True)
    caller.call(OPEN)
    (deck,) = mac.home.rglob("keynote*.json")
    deck.unlink()
    log, path = mac.folder / "agent.log", str(mac.folder / "slide.png")
    caller.call(("screenshot_slide", {"path": path}), PEEKABOO_AGENT_LOG=str(log))
    assert "[server] using the open document 'Quarterly Results'" in log.read_text()
    open_another(mac)
    assert caller.call(DRAW)[0].startswith("RECTANGLE_OK: id=F0000000-FOREIGN/1/1, ")


def test_keynote_uses_an_open_deck_and_remembers_its_id(caller: Caller, mac: FakeMac) -> None:
    mac.keynote(restores_a_deck=True)
    warning = READY.replace("KEYNOTE_READY", "KEYNOTE_READY_WITH_WARNING")
    warned = f"{warning}, note=using the open document 'Quarterly Results'"
    assert caller.call(OPEN, OPEN) == [warned, READY]
    assert caller.documents[0]["slides"][0]["base_layout"] == "Title", "the user's deck keeps its layout"

    open_another(mac)
    path = mac.folder / "slide.png"
    drawn = caller.call(DRAW, write("kept"), ("screenshot_slide", {"path": str(path)}))[0]
    assert drawn.startswith("RECTANGLE_OK: id=F0000000-FOREIGN/1/1, ")
    assert (len(caller.shapes(0)), len(caller.shapes(1))) == (0, 1)
    assert [label["text"] for label in labels(path)] == ["kept"]
    assert caller.call(OPEN)[0].endswith("note=using the open document 'An other'")


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"themes": ["Weiß"]}, "theme is named 'White' so the default theme is used"),
        ({"layouts": ["Leer"]}, "layout is named Blank so slide 1 keeps its placeholders"),
        ({"has_layouts": False}, "layout is named Blank so slide 1 keeps its placeholders"),
        (
            {"themes": [], "layouts": []},
            "theme is named 'White' so the default theme is used; no layout is named Blank so slide 1 keeps "
            "its placeholders",
        ),
    ],
)
def test_keynote_open_notes_a_missing_theme_or_layout(
    caller: Caller, mac: FakeMac, changes: dict[str, Any], note: str
) -> None:
    mac.keynote(**changes)
    assert caller.call(OPEN) == [f"{READY.replace('READY', 'READY_WITH_WARNING', 1)}, note=no {note}"]
    assert (caller.documents[0]["width"], caller.documents[0]["height"]) == (1920, 1080)


def test_keynote_always_new_leaves_an_open_deck_unchanged(caller: Caller, mac: FakeMac) -> None:
    mac.keynote(restores_a_deck=True)
    assert caller.call(OPEN, DRAW, OPEN, KEYNOTE_DOCUMENT_MODE="always_new")[::2] == [READY, READY]
    shapes = [(document["name"], len(document["slides"][0]["shapes"])) for document in caller.documents]
    assert shapes == [("Untitled 2", 0), ("Untitled", 1), ("Quarterly Results", 0)]
    front = caller.documents[0]["id"]
    assert caller.call(OPEN, DRAW)[1].startswith(f"RECTANGLE_OK: id={front}/1/1,"), "the front deck is used"


def test_keynote_unknown_document_mode_is_refused(caller: Caller) -> None:
    expected = f"KEYNOTE_DOCUMENT_MODE is '{'often' * 8}'; set it to reuse_or_create or always_new"
    assert caller.call(OPEN, KEYNOTE_DOCUMENT_MODE="often" * 9) == [f"INVALID_ARGUMENT: {expected}"]


def test_keynote_second_open_forgets_the_rectangle(caller: Caller) -> None:
    caller.call(OPEN)
    change_front(caller.mac, lambda deck: deck.update(slides=deck["slides"] * 2, current_slide=2))
    answers = caller.call(OPEN, DRAW, OPEN, write("x"))
    assert (answers[2], len(caller.documents), caller.documents[0]["current_slide"]) == (READY, 1, 1)
    assert answers[3] == NO_RECTANGLE


def test_keynote_server_starts_without_a_rectangle(caller: Caller) -> None:
    # spec: "If `SERVER_STATE["last_rectangle_id"]` is missing: return `ERROR` instructing caller to draw a
    # rectangle first."
    caller.call(OPEN, DRAW, write("from the shell"))
    none, drawn = caller.call(write("x"), DRAW, is_server=True)
    assert none == NO_RECTANGLE and drawn.startswith("RECTANGLE_OK: id=")
    assert caller.scripts()[-3:] == ["find", "open", "draw"], "the server uses the open document"
    answers = caller.call(OPEN, write("x"), DRAW, write("by the server"), is_server=True)
    assert answers[1] == NO_RECTANGLE and answers[3].startswith("TEXT_OK: id=")
    assert [shape["object_text"] for shape in caller.shapes()] == ["from the shell", "", "by the server"]
    assert caller.call(write("the shell again"))[0].startswith("TEXT_OK: "), "the shell's file is kept"
    assert caller.shapes()[0]["object_text"] == "the shell again"


def test_keynote_open_holds_the_input_lock(caller: Caller, mac: FakeMac) -> None:
    mac.keynote(ready_after_ms=9000)
    opening = caller.shell.start("keynote", "open")
    try:
        wait_for(lambda: mac.events("launch"), "Keynote is being opened")
        (lock,) = mac.bin_dir.rglob("input-macos.lock")
        with open(lock) as f, pytest.raises(BlockingIOError):
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        opening.kill()
        opening.communicate()
        for process in mac.running():
            os.kill(process["pid"], signal.SIGKILL)


def test_keynote_invalid_state_file_is_ignored(caller: Caller, mac: FakeMac) -> None:
    caller.call(OPEN)
    (file,) = mac.home.rglob("keynote.json")
    for text in ("{}", "[]", "no JSON", '{"bundle_id": "x", "rectangle": 1}'):
        file.write_text(text)
        assert caller.call(write("x"), ("get_slide_size", {})) == [NO_RECTANGLE, SIZE]
    file.unlink()
    mac.set("keynote.documents", [])
    assert caller.call(DRAW) == [NONE_OPEN]
    assert len(mac.events("launch")) == len(mac.events("activate")) == 1


def test_keynote_reports_a_closed_document_and_a_quit_app(caller: Caller, mac: FakeMac) -> None:
    mac.keynote(auto_quits=True)
    caller.call(OPEN, DRAW)
    mac.set("keynote.documents.0.id", "OTHER")
    gone = "WINDOW_NOT_FOUND: the Keynote document was closed; call open_keynote again"
    assert caller.call(DRAW, write("x"), ("get_slide_size", {})) == [gone] * 3
    mac.set("keynote.documents", [])
    # Keynote has no window and quits after the first call: facts E5
    assert caller.call(DRAW, DRAW) == [gone, "APP_NOT_FOUND: Keynote is not running; call open_keynote first"]
    assert caller.call(OPEN, DRAW)[0] == READY, "although the old connection is invalid (-609)"


def test_keynote_open_waits_for_a_starting_keynote(caller: Caller, mac: FakeMac) -> None:
    mac.keynote(ready_after_ms=3000)
    assert caller.call(OPEN) == [READY]


# the rectangle and its text ---


def test_keynote_rectangle_outside_the_slide_is_refused_before_drawing(caller: Caller, mac: FakeMac) -> None:
    wrong = [(-1, 0, 9, 9), (0, -1, 9, 9), (0, 0, 1921, 9), (0, 0, 9, 1081), (9, 9, 0, 9), (9, 9, 9, 0)]
    answers = caller.call(DRAW, OPEN, *(("draw_rectangle", dict(zip(CENTRED, numbers))) for numbers in wrong))
    hint = "keep x, y, x+width and y+height within the slide, which is 1920x1080"
    problem = "x={}, y={}, width={}, height={} is not a rectangle on the slide"
    refusals = [f"INVALID_ARGUMENT: {problem.format(*numbers)}; {hint}" for numbers in wrong]
    assert answers == [NONE_OPEN, READY, *refusals]
    assert (caller.scripts(), caller.shapes()) == (["find", "open"] * 2, [])
    for numbers in ((0, 0, 1920, 1080), (1919, 1079, 1, 1)):
        assert statuses(caller.call(("draw_rectangle", dict(zip(CENTRED, numbers))))) == ["RECTANGLE_OK"]
    mac.set("keynote.documents.0.height", 699.6)
    size, drawn = caller.call(("get_slide_size", {}), DRAW)
    assert size == "SLIDE_SIZE: width=1920, height=700"
    assert drawn.startswith("INVALID_ARGUMENT"), "it must fit the last measured slide size"


def test_keynote_slide_of_a_fractional_size_is_drawn_on_to_its_edge(caller: Caller, mac: FakeMac) -> None:
    caller.call(OPEN)
    mac.set("keynote.documents.0.width", 1023.6)
    assert caller.call(OPEN) == [READY.replace("1920", "1024")]
    at_edge = ("draw_rectangle", {**CENTRED, "x": 0, "width": 1024})
    assert statuses(caller.call(at_edge, is_server=True)) == ["RECTANGLE_OK"]


def test_keynote_data_notes_a_change_that_keynote_made(caller: Caller, mac: FakeMac) -> None:
    """Keep the note out of the text, which the specification fixes."""
    shell = caller.shell
    mac.keynote(moves_shapes_by=7.5)
    shell.run("keynote", "open")
    drawn, note = shell.data("keynote", "rectangle", 384, 378, 1152, 324), "384,378 1152x324 was requested"
    assert (drawn["y"], drawn["note"]) == (385.5, f"Keynote moved or resized it; {note}")
    assert shell.run("keynote", "rectangle", 384, 378, 1152, 324).out.endswith(", height=324\n")
    for kept, note in (("a\rb", None), ("a\r\nb", None), ("a", "Keynote stored 1 characters")):
        mac.fail("osascript", exit=0, stdout=json.dumps({"text": kept}) + "\n", times=1)
        written = shell.data("keynote", "text", "a\nb")
        assert (written["characters"], written.get("note")) == (3, note)
    shell.data("keynote", "text", "found")
    assert [shape["object_text"] for shape in caller.shapes()] == ["", "found"]


def test_keynote_text_is_written_unchanged_or_refused(caller: Caller) -> None:
    odd = "\"quoted\" \\n $(x) `y` %s {z} ¦¦ 'a' 👩‍💻\nsecond\r\nline\rend"
    odd += "x" * 10_000
    refused = ("\0", "\ud800", "\x1b", "\x7f")
    answers = caller.call(OPEN, DRAW, write(odd), *(write(f"a{character}b") for character in refused))
    assert answers[2].endswith(f"/1/1, characters={len(odd) - 1}")
    wrong = "INVALID_ARGUMENT: the text contains {!r}; remove control characters"
    assert answers[3:] == [wrong.format(character) for character in refused]
    assert caller.scripts() == ["find", "open", "draw", "text"]
    written = odd.replace("¦", "|").replace("\r\n", "\n").replace("\r", "\n")
    assert caller.shapes() == [{**CENTRED, "object_text": written}]


BELOW = {"x": 10, "y": 10, "width": 50, "height": 50}
Shapes = list[dict[str, Any]]


# the user's change to a small shape (0) and ours (1) above it; index of the shape with our text
@pytest.mark.parametrize(
    ("change", "index"),
    [
        pytest.param(lambda shapes: None, 1, id="nothing"),
        pytest.param(lambda shapes: shapes.pop(0), 0, id="the lower is deleted"),
        pytest.param(lambda shapes: shapes[1]["position"].update(y=378.4), 1, id="ours is rounded"),
        pytest.param(lambda shapes: shapes.append(shapes.pop(0)), 0, id="another took its index"),
        pytest.param(lambda shapes: shapes.append(copy.deepcopy(shapes[1])), 1, id="a copy is made of it"),
        pytest.param(lambda shapes: shapes.insert(0, copy.deepcopy(shapes[1])), None, id="a copy is below"),
        pytest.param(lambda shapes: shapes[1]["position"].update(x=386), None, id="ours is moved"),
        pytest.param(lambda shapes: shapes[1].update(height=150), None, id="ours is resized"),
        pytest.param(lambda shapes: shapes.clear(), None, id="all are deleted"),
    ],
)
def test_keynote_text_is_written_only_into_our_rectangle(
    caller: Caller, mac: FakeMac, change: Callable[[Shapes], Any], index: Optional[int]
) -> None:
    caller.call(OPEN, ("draw_rectangle", BELOW), DRAW)
    change_front(mac, lambda deck: change(deck["slides"][0]["shapes"]))
    gone = "WINDOW_NOT_FOUND: the rectangle is no longer at its place on slide 1; call draw_rectangle again"
    answers = [answer.partition("/")[2] or answer for answer in caller.call(write("first"), write("ours"))]
    assert answers == ([gone] * 2 if index is None else ["1/2, characters=5", "1/2, characters=4"])
    texts = [shape["object_text"] for shape in caller.shapes()]
    assert texts == ["ours" if n == index else "" for n in range(len(texts))]


# the image ---


def test_keynote_image_is_written_only_to_the_given_path(
    caller: Caller, mac: FakeMac, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = mac.folder / "notes.png"
    notes.write_text("not a picture")
    target = mac.folder / "a" / "b.PNG"
    calls = [("screenshot_slide", {"path": path}) for path in ("", "slide.jpg", str(notes), " ", "~/c.png")]
    no_name = "neither the path nor SCREENSHOT_PATH names a PNG file; name a file that ends in .png"
    no_image = f"{notes} exists and is not an image; it was left unchanged; choose another path"
    refusals = [*[f"INVALID_ARGUMENT: {no_name}"] * 2, f"FILE_IO_ERROR: {no_image}"]
    assert caller.call(OPEN, *calls[:3])[1:] == refusals
    assert notes.read_text() == "not a picture" and "export" not in caller.scripts()
    real, link = mac.folder / "real.png", mac.home / "c.png"
    real.write_bytes(picture())
    real.chmod(0o640)
    link.symlink_to(real)
    assert caller.call(*calls[3:], SCREENSHOT_PATH=str(target)) == [
        f"SCREENSHOT_SAVED: path={target}",
        f"SCREENSHOT_SAVED: path={link}",
    ]
    assert image_size(target) == image_size(real) == (1920, 1080) and link.is_symlink()
    modes = [path.stat().st_mode & 0o777 for path in (target, real)]
    assert modes == [0o600, 0o640], "an existing file keeps its permissions"
    assert [path for path, _ in saved_images()][:2] == [real, target], "a server offers them"
    (mac.folder / ".env").write_text(f"SCREENSHOT_PATH={mac.folder / 'd.png'}\n")
    monkeypatch.chdir(mac.folder)
    assert caller.shell.run("keynote", "screenshot", "").out == f"SCREENSHOT_SAVED: path={mac.folder}/d.png\n"


def test_keynote_image_shows_only_the_first_slide(caller: Caller, mac: FakeMac) -> None:
    caller.call(OPEN, DRAW, write("first"))
    change_front(mac, lambda deck: deck["slides"].extend([{**deck["slides"][0], "shapes": []}] * 2))
    path = mac.folder / "slide.png"
    export = ("screenshot_slide", {"path": str(path)})
    mac.set("keynote.exports_below", True)
    assert caller.call(export) == [f"SCREENSHOT_SAVED: path={path}"]
    assert [label["text"] for label in labels(path)] == ["first"]
    path.unlink()
    mac.set("keynote.damages_slide", 1)
    damaged = "CAPTURE_FAILED: Keynote exported no complete image of slide 1; try again"
    mac.fail("osascript", exit=0, when=["bundleId"], times=1)  # no image at all
    assert caller.call(export, export) == [damaged] * 2
    mac.set("keynote.documents.0.slides.0.skipped", True)
    skipped = "slide 1 is skipped, and Keynote does not export skipped slides; unskip it in Keynote"
    assert caller.call(export) == [f"CAPTURE_FAILED: {skipped}"]
    assert not path.exists()


@pytest.mark.parametrize(("seconds", "answer"), [(109, "SCREENSHOT_SAVED"), (111, "TIMEOUT")])
def test_keynote_export_times_out_before_it_is_killed(
    caller: Caller, mac: FakeMac, seconds: int, answer: str
) -> None:
    mac.keynote(export_takes_s=seconds)  # the script's timeout is shorter than the runner's
    assert keynote.KEYNOTE_S == 120
    shown = caller.call(OPEN, ("screenshot_slide", {"path": str(mac.folder / "slide.png")}), seconds=120)
    assert shown[1].split(":")[0] == answer
    assert caller.scripts().count("export") == 1


# refusals ---


def test_keynote_without_automation_names_the_app_and_the_setting(caller: Caller, mac: FakeMac) -> None:
    mac.deny("automation", "com.apple.Keynote")
    (answer,) = caller.call(OPEN, seconds=8)  # it fails at once: the wait for a starting Keynote is longer
    code, problem = "PERMISSION_DENIED_AUTOMATION", "Terminal lacks the Automation permission"
    assert answer.startswith(f"{code}: Keynote cannot be controlled: {problem}")
    assert "?Privacy_Automation" in answer


def test_keynote_times_out_without_consent(caller: Caller, mac: FakeMac) -> None:
    mac.ask("automation", "com.apple.Keynote")
    (answer,) = caller.call(OPEN, seconds=2)
    assert answer == f"TIMEOUT: Keynote: osascript did not finish within 2 seconds and was killed{NEXT}"
    assert mac.running() == []


NEXT = "; close any dialog in Keynote, answer any question from macOS, then call open_keynote again"


def test_keynote_failed_export_is_reported_with_the_next_step(caller: Caller, mac: FakeMac) -> None:
    caller.call(OPEN)
    error = "0:5: execution error: Keynote got an error: Connection is invalid. (-609)"
    mac.fail("osascript", stderr=error, when=["bundleId"])
    answers = caller.call(("screenshot_slide", {"path": "x.png"}))
    assert answers == [f"APP_NOT_FOUND: Keynote: the application quit before it answered{NEXT}"]
    assert list((mac.folder / "tmp").rglob("slides_*")) == []


def test_keynote_acts_are_audited_and_can_be_forbidden(caller: Caller, mac: FakeMac) -> None:
    shot = ("screenshot_slide", {"path": "x.png"})
    caller.call(OPEN, DRAW, ("get_slide_size", {}), write("a secret"), shot)
    (path,) = mac.home.rglob("audit.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    document = caller.documents[0]["id"]
    acts = {
        "open_keynote": {"mode": "reuse_or_create"},
        "draw_rectangle": {"document": document, **CENTRED},
        "add_text_in_keynote": {"id": f"{document}/1/1", "characters": 8},
        "screenshot_slide": {"document": document, "path": str(mac.folder / "x.png")},
    }
    app = {"time": ANY, "pid": ANY, "app": "Keynote", "bundle_id": "com.apple.Keynote"}
    assert lines == [{**app, "action": action, **fields} for action, fields in acts.items()]
    assert not any("secret" in file.read_text() for file in (path, path.with_name("keynote.json")))
    scripts = caller.scripts()
    for rule, value in {"READONLY": "1", "DENY_APPS": "com.apple.key*", "ALLOW_APPS": "Safari"}.items():
        variables: Any = {f"PEEKABOO_{rule}": value}
        answers = caller.call(DRAW, write("x"), ("get_slide_size", {}), shot, OPEN, **variables)
        answers += caller.call(DRAW, ("get_slide_size", {}), shot, is_server=True, **variables)
        assert statuses(answers) == ["POLICY_DENIED"] * 8
    assert caller.scripts() == scripts + ["find"] * 12, "a refusal sends nothing to Keynote"
    assert len(path.read_text().splitlines()) == len(acts), "refused acts are not audited"


@pytest.mark.parametrize(
    ("rule", "is_allowed"), [("DENY_APPS", False), ("ALLOW_APPS", True)], ids=["denied", "allowed"]
)
@pytest.mark.parametrize("name", ["Keynote Creator Studio", "Keynote", "com.apple.Keynote"])
def test_keynote_is_denied_and_allowed_by_each_of_its_names(
    caller: Caller, rule: str, is_allowed: bool, name: str
) -> None:
    variables: Any = {f"PEEKABOO_{rule}": name}
    assert statuses(caller.call(OPEN, **variables)) == ["KEYNOTE_READY" if is_allowed else "POLICY_DENIED"]


def test_keynote_is_used_by_one_call_at_a_time(caller: Caller, mac: FakeMac) -> None:
    caller.call(OPEN)
    running = [caller.shell.start("keynote", "rectangle", 100 * n, 10, 50, 50) for n in range(4)]
    answers = [process.communicate(timeout=2 * PATIENCE_S)[0].decode() for process in running]
    assert sorted(answer.split(",")[0][-4:] for answer in answers) == ["/1/1", "/1/2", "/1/3", "/1/4"]
    (lock,) = mac.bin_dir.rglob("keynote.lock")
    with open(lock) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        busy = "TIMEOUT: another peekaboo is using Keynote; try again in a moment"
        assert caller.call(DRAW, seconds=1) == [busy]


def test_keynote_example_script_leaves_a_card(mac: FakeMac, tmp_path: Path) -> None:
    need("python3")
    argv = [str(ROOT / "scripts" / "keynote_card.sh"), "-- Ada's 36th | birthday", "card.png"]
    done = subprocess.run(argv, env=mac.env(), cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert statuses(done.stdout.splitlines()) == DONE
    assert Caller(mac).shapes() == [{**CENTRED, "object_text": "-- Ada's 36th | birthday"}]
    assert image_size(tmp_path / "card.png") == (1920, 1080)


def test_keynote_needs_a_mac(program: Program) -> None:
    error = program.error("keynote", "rectangle", 1, 2, 3, 4, PEEKABOO_DESKTOP="x11")
    assert error["code"] == "UNSUPPORTED_PLATFORM"
    assert error["message"] == "Keynote runs on a Mac only; run it on a Mac"
    assert program.error("keynote", "rectangle", 1, 2, "ten", 4)["code"] == "INVALID_ARGUMENT"
