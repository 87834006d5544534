"""Show the main job: an MCP client lists windows, clicks, types, and takes screenshots before and after."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

from peekaboo_min.agents.mcp_client import McpClient, ToolAnswer, own_server
from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.settings import forget_environment
from peekaboo_min.system.process import run_program
from peekaboo_min.system.programs import own_command
from peekaboo_min.tools.status import doctor

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "demo-output"
REPORT = OUTPUT / "report.jsonl"
SERVER_LOG = OUTPUT / "server.log"
IMAGES = (OUTPUT / "before.jpg", OUTPUT / "after.jpg", OUTPUT / "clicked.png")

# DejaVu Sans, the only font of a minimal machine, has all of these letters
VISITOR = "Zoë Müller — Łódź, Αθήνα, Київ"

# the variables that choose the agent's model; the demo ignores our other variables
MODEL_VARIABLES = (
    "PEEKABOO_AI_PROVIDERS",
    "PEEKABOO_OLLAMA_BASE_URL",
    "PEEKABOO_AI_TIMEOUT",
    "PEEKABOO_AI_MAX_TOKENS",
    "PEEKABOO_AI_GRID",
)

INSIDE = "--inside"  # this process runs on the desktop that an earlier one started
FORM_S = 10.0
CALL_S = 12.0
READING_S = 30.0
AGENT_S = 300.0


def main() -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    try:
        show_the_main_job()
        return 0
    except PeekabooError as e:
        return failed(f"{e.message}; {e.hint or f'see {SERVER_LOG}'}", e.code.exit_code)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), 1
        )  # the reader has closed the pipe; Python's last flush must not fail
        return 1
    except OSError as e:
        return failed(
            f"{e.filename or 'a file'}: {e.strerror or e}; check that it is readable and writable", 1
        )
    except Exception as e:
        (OUTPUT / "traceback.txt").write_text(traceback.format_exc(), encoding="utf-8")
        return failed(f"unexpected {type(e).__name__}; please report it with {OUTPUT / 'traceback.txt'}", 1)


def failed(sentence: str, code: int) -> int:
    print(f"demo: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def show_the_main_job() -> None:
    model_variables = take_out_our_settings()
    make_output_folder()
    is_real = "--my-screen" in sys.argv or platform.system() == "Darwin"
    if not is_real and INSIDE not in sys.argv:
        os.environ.update(model_variables)
        argv = [*own_command(), "desktop", "--", sys.executable, os.path.abspath(__file__), INSIDE]
        os.execv(argv[0], argv)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    # the own desktop deletes this folder of its own, even if the demo is killed
    parent = None if is_real else os.environ["XDG_RUNTIME_DIR"]
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as folder:
        # keep state and temporary files here, too: the home may be read-only, and the demo leaves nothing
        os.environ.update(XDG_STATE_HOME=folder, TMPDIR=folder, PEEKABOO_LOG_FILE=str(SERVER_LOG))
        forget_environment()
        if is_real:
            look_at_the_real_screen()
        else:
            use_a_screen_of_our_own(model_variables)


def take_out_our_settings() -> dict[str, str]:
    """Remove our variables from the environment; return the variables that choose the agent's model."""
    ours = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PEEKABOO_")}
    return {name: value for name, value in ours.items() if name in MODEL_VARIABLES}


def make_output_folder() -> None:
    try:
        OUTPUT.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=OUTPUT):
            pass
        for path in (REPORT, SERVER_LOG, *IMAGES):  # from an earlier demo
            path.unlink(missing_ok=True)
    except OSError as e:
        message = f"the folder {OUTPUT} cannot be written: {e.strerror}"
        raise PeekabooError(ErrorCode.FILE_IO_ERROR, message, hint="make it yours, or remove it") from e


def look_at_the_real_screen() -> None:
    """List the windows of a person's own screen and take a screenshot of it; touch nothing."""
    with own_server({"PEEKABOO_READONLY": "1"}) as client:
        list_and_capture(client)
    show("the demo does not act on your screen")


def list_and_capture(client: McpClient) -> None:
    try:
        windows = ask(client, "list_windows")
    except PeekabooError as e:
        if e.code not in (ErrorCode.NO_GUI_SESSION, ErrorCode.TIMEOUT) or platform.system() == "Darwin":
            raise
        message = f"the display {os.environ.get('DISPLAY')!r} (the variable DISPLAY) does not answer"
        hint = "to run the demo on a screen of its own, leave out --my-screen"
        raise PeekabooError(ErrorCode.NO_GUI_SESSION, message, hint=hint) from e
    show(windows.text.splitlines()[0])
    for window in windows.data["windows"]:
        show(f"  {window['window_id']}  {window['owner_name']}  {window['title']}")
    for saved in ask(client, "image", path=str(OUTPUT / "screen.png")).data["saved_files"]:
        show(f"took a screenshot of {saved['item_label']}: {saved['path']}")


def use_a_screen_of_our_own(model_variables: dict[str, str]) -> None:
    doctor()  # raises an error that lists everything that is missing
    run_program(["tesseract", "--version"], timeout_s=FORM_S)
    open_form()
    with own_server({"PEEKABOO_AI_PROVIDERS": "ocr"}) as client:
        click_a_word(client, sign_the_book(client))
    ask_the_agent(model_variables)


def open_form() -> None:
    """Open the form; it ends with the desktop."""
    script = str(ROOT / "scripts" / "demo_form.tcl")
    argv = ["wish", script, "-name", "Form", "--", str(REPORT), "Visitor book", "+120+90"]
    try:
        form = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        is_ready = awaited_event("ready", form) is not None
    except FileNotFoundError:
        is_ready = False
    if not is_ready:
        hint = "install it again: sudo apt-get install --reinstall tk"
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, "wish did not open the demo's form", hint=hint)


def sign_the_book(client: McpClient) -> int:
    """Fill in the form by pixels of its screenshot; return the window's id."""
    windows = ask(client, "list_windows").data["windows"]
    window_id = next((window["window_id"] for window in windows if window["title"] == "Visitor book"), None)
    if window_id is None:
        hint = "run `peekaboo-min doctor` to see what is missing"
        raise PeekabooError(ErrorCode.WINDOW_NOT_FOUND, "list_windows did not find the form", hint=hint)
    show(f"list_windows: {len(windows)} window(s); the form is {window_id}")

    before, after, clicked = IMAGES
    shot = ask(client, "take_window_screenshot", window_id=window_id)
    before.write_bytes(shot.images[0])
    show(f"take_window_screenshot: {shot.data['image_width']}x{shot.data['image_height']} pixels")

    def click(widget: str) -> dict[str, Any]:
        x, y = centre(widget)
        answer = ask(client, "click", window_id=window_id, x=x, y=y, verify=True)
        show(f"click {widget} at pixel {x},{y}: {answer.text.splitlines()[0]}")
        return dict(answer.data["pixel"])

    click("name")
    ask(client, "type_text", window_id=window_id, text=VISITOR)
    ask(client, "press_key", window_id=window_id, key="tab")
    ask(client, "type_text", window_id=window_id, text="zoe@example.org")
    show("type_text, press_key tab, type_text")
    click("agree")
    pixel = click("sign")

    after.write_bytes(ask(client, "take_window_screenshot", window_id=window_id).images[0])
    signed = event("sign")
    expected = {"event": "sign", "name": VISITOR, "mail": "zoe@example.org", "notes": "", "agreed": 1}
    if signed != expected:
        message = f"the application received something else: {json.dumps(signed, ensure_ascii=False)}"
        raise PeekabooError(ErrorCode.PROGRAM_FAILED, message, hint=f"see {after} and {SERVER_LOG}")
    show(f"the application confirms: {json.dumps(signed, ensure_ascii=False)}")
    mark(after, clicked, pixel)
    show(f"screenshots: {before}, {after}, the last click marked: {clicked}")
    return int(window_id)


def click_a_word(client: McpClient, window_id: int) -> None:
    """Read the screenshot and click a word in it, without model, key or network."""
    answer = ask(client, "analyze", READING_S, image_path=str(IMAGES[1]), question="What does it say?")
    show(f"analyze, by {answer.data['model_used']}: {' / '.join(answer.text.splitlines()[:3])} ...")
    hit = ask(client, "find_text", READING_S, window_id=window_id, text="Details").data
    if not hit["found"]:
        hint = "install its English data again: sudo apt-get install --reinstall tesseract-ocr-eng"
        raise PeekabooError(
            ErrorCode.PROGRAM_FAILED, "tesseract did not read the word Details in the form", hint=hint
        )
    word = hit["found"][0]
    show(f"find_text Details: at pixel {word['x']},{word['y']}")
    ask(client, "click", window_id=window_id, x=word["x"], y=word["y"], screenshot_id=hit["screenshot_id"])
    event("opened")
    show("the application confirms: its dialog is open")


def ask_the_agent(model_variables: dict[str, str]) -> None:
    """Let a model do the job by itself, if one is configured."""
    if model_variables.get("PEEKABOO_AI_PROVIDERS", "").strip().lower() in ("", "ocr"):
        show("to let a model go on: PEEKABOO_AI_PROVIDERS=ollama/qwen3-vl:8b sh scripts/demo.sh")
        return
    folder = OUTPUT / "agent-run"
    shutil.rmtree(folder, ignore_errors=True)  # from an earlier demo; a run needs a new folder
    goal = "Fill in Ankara as the city and Engineer as the profession, tick the box, and confirm."
    argv = [*own_command(), "agent", "--app", "Form", "--goal", goal, "--run-folder", str(folder)]
    environment = {**os.environ, **model_variables}
    try:
        code = subprocess.run(argv, stdin=subprocess.DEVNULL, env=environment, timeout=AGENT_S).returncode
    except subprocess.TimeoutExpired:
        code = 1
    if code:
        show("note: the agent did not reach its goal, for the reason above; all the rest of the demo worked")
    if (folder / "report.html").exists():
        show(f"the agent's report: {folder / 'report.html'}")


def ask(client: McpClient, name: str, limit_s: float = CALL_S, **arguments: Any) -> ToolAnswer:
    """Call a tool. Raises the tool's own error, and TIMEOUT."""
    with at_most(limit_s, name):
        answer = client.call(name, arguments)
    if error := answer.error:
        raise PeekabooError(error.code, f"{name}: {error.message}", hint=error.hint or f"see {SERVER_LOG}")
    return answer


@contextmanager
def at_most(limit_s: float, name: str) -> Iterator[None]:
    def on_alarm(_number: int, _frame: object) -> None:
        hint = f"try again, and see {SERVER_LOG}"
        raise PeekabooError(ErrorCode.TIMEOUT, f"{name} did not answer within {limit_s:g} seconds", hint=hint)

    signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def show(text: str) -> None:
    print(text, flush=True)


def events() -> list[dict[str, Any]]:
    """Return the form's reports without the last line, which may be incomplete."""
    lines = REPORT.read_text(encoding="utf-8").split("\n")[:-1] if REPORT.exists() else []
    return [json.loads(line) for line in lines]


def awaited_event(name: str, form: Optional[subprocess.Popen[bytes]] = None) -> Optional[dict[str, Any]]:
    """Wait for the newest event of that name; None if it does not come in time, or the form ends."""
    deadline = time.monotonic() + FORM_S
    while time.monotonic() < deadline:
        has_ended = form is not None and form.poll() is not None
        matches = [entry for entry in events() if entry["event"] == name]
        if matches or has_ended:
            return matches[-1] if matches else None
        time.sleep(0.05)
    return None


def event(name: str) -> dict[str, Any]:
    entry = awaited_event(name)
    if entry is None:
        message = f"the form did not report {name} within {FORM_S:g} seconds"
        raise PeekabooError(ErrorCode.TIMEOUT, message, hint=f"see {REPORT} and {SERVER_LOG}")
    return entry


def centre(widget: str) -> tuple[int, int]:
    """Return the centre of a widget from the form's own report."""
    layouts = [entry for entry in events() if entry["event"] == "layout"]
    place = [entry for entry in layouts if entry["widget"] == widget][-1]
    return place["x"] + place["width"] // 2, place["y"] + place["height"] // 2


def mark(source: Path, target: Path, pixel: dict[str, Any]) -> None:
    """Copy an image and draw a circle around a pixel."""
    x, y = pixel["x"], pixel["y"]
    circle = ["-draw", f"circle {x},{y} {x + 16},{y}"]
    drawing = ["-fill", "none", "-stroke", "#d1312b", "-strokewidth", "3", *circle]
    run_program(["convert", str(source), *drawing, str(target)], timeout_s=CALL_S)


if __name__ == "__main__":
    sys.exit(main())
