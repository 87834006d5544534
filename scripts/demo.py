"""The main job, shown: an MCP client lists windows, photographs one, clicks, types, and photographs again."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List

from headless import x_server

from peekaboo_min.mcp_client import McpClient, ToolAnswer, open_own_server

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "demo-output"
VISITOR = "Ada Lovelace — 日本 😀"


def main() -> int:
    OUTPUT.mkdir(exist_ok=True)
    if os.environ.get("DISPLAY") or platform.system() == "Darwin":
        return look_at_the_real_screen()
    with ExitStack() as stack:
        os.environ["DISPLAY"] = stack.enter_context(x_server())
        report = OUTPUT / "report.jsonl"
        report.unlink(missing_ok=True)
        form = subprocess.Popen(
            ["wish", str(ROOT / "scripts" / "demo_form.tcl"), "-name", "Form", "--", str(report), "Visitor book", "+120+90"]
        )
        stack.callback(form.wait)
        stack.callback(form.kill)
        wait_for_event(report, "ready")
        client = stack.enter_context(open_own_server({"PEEKABOO_AI_PROVIDERS": "ocr"}))
        window_id = sign_the_book(client, report)
        click_a_word(client, report, window_id)
        ask_the_agent()
    return 0


def look_at_the_real_screen() -> int:
    """A person's own screen: photograph it, list its windows, touch nothing."""
    with open_own_server({"PEEKABOO_READONLY": "1"}) as client:
        windows = ask(client, "list_windows")
        print(windows.text.splitlines()[0])
        for one in windows.data["windows"]:
            print(f"  {one['window_id']}  {one['owner_name']}  {one['title']}")
        shots = ask(client, "image", path=str(OUTPUT / "screen.png"))
        for one in shots.data["saved_files"]:
            print(f"photographed {one['item_label']}: {one['path']}")
    print("a real screen is only looked at; the whole demo runs where DISPLAY is not set")
    return 0


def sign_the_book(client: McpClient, report: Path) -> int:
    """Fill in the form by pixels of its photograph, and return the window's id."""
    windows = ask(client, "list_windows").data["windows"]
    window = next(one for one in windows if one["title"] == "Visitor book")
    say(f"list_windows: {len(windows)} window(s); the form is {window['window_id']}")

    before = ask(client, "take_window_screenshot", window_id=window["window_id"])
    (OUTPUT / "before.jpg").write_bytes(before.images[0])
    say(f"take_window_screenshot: {before.data['image_width']}x{before.data['image_height']} pixels")

    clicked: List[Dict[str, Any]] = []

    def click(widget: str) -> None:
        x, y = centre(report, widget)
        answer = ask(client, "click", window_id=window["window_id"], x=x, y=y, verify=True)
        clicked.append(answer.data["pixel"])
        say(f"click {widget} at pixel {x},{y}: {answer.text.splitlines()[0]}")

    click("name")
    ask(client, "type_text", window_id=window["window_id"], text=VISITOR)
    ask(client, "press_key", window_id=window["window_id"], key="tab")
    ask(client, "type_text", window_id=window["window_id"], text="ada@example.org")
    say("type_text, press_key tab, type_text")
    click("agree")
    click("sign")

    after = ask(client, "take_window_screenshot", window_id=window["window_id"])
    (OUTPUT / "after.jpg").write_bytes(after.images[0])
    mark(OUTPUT / "after.jpg", OUTPUT / "clicked.png", clicked[-1])

    signed = wait_for_event(report, "sign")
    expected = {"event": "sign", "name": VISITOR, "mail": "ada@example.org", "notes": "", "agreed": 1}
    if signed != expected:
        raise SystemExit(f"the application received something else: {signed}")
    say(f"the application confirms: {json.dumps(signed, ensure_ascii=False)}")
    say(f"pictures: {OUTPUT / 'before.jpg'}, {OUTPUT / 'after.jpg'}, the last click marked: {OUTPUT / 'clicked.png'}")
    return int(window["window_id"])


def click_a_word(client: McpClient, report: Path, window_id: int) -> None:
    """Read the picture and click a word in it: with no model, no key, no network."""
    told = ask(client, "analyze", image_path=str(OUTPUT / "after.jpg"), question="What does it say?")
    say(f"analyze, by {told.data['model_used']}: {' / '.join(told.text.splitlines()[:3])} ...")
    hit = ask(client, "find_text", window_id=window_id, text="Details").data
    word = hit["found"][0]
    say(f"find_text Details: at pixel {word['x']},{word['y']}")
    ask(client, "click", window_id=window_id, x=word["x"], y=word["y"], screenshot_id=hit["screenshot_id"])
    wait_for_event(report, "opened")
    say("the application confirms: its dialog is open")


def ask_the_agent() -> None:
    """A model does the job by itself, where one is configured."""
    if not os.environ.get("PEEKABOO_AI_PROVIDERS", "").strip() or os.environ["PEEKABOO_AI_PROVIDERS"] == "ocr":
        say("with a model it goes on by itself: PEEKABOO_AI_PROVIDERS=ollama/qwen3-vl:8b sh scripts/demo.sh")
        return
    shutil.rmtree(OUTPUT / "agent-run", ignore_errors=True)  # of an earlier demo; a run wants a new folder
    goal = "Fill in Ankara as the city and Engineer as the profession, tick the box, and confirm."
    words = [sys.executable, "-m", "peekaboo_min", "agent", "--app", "Form", "--goal", goal]
    subprocess.run([*words, "--run-folder", str(OUTPUT / "agent-run")], check=False)
    say(f"the agent's report: {OUTPUT / 'agent-run' / 'report.html'}")


def ask(client: McpClient, name: str, **arguments: Any) -> ToolAnswer:
    answer = client.call(name, arguments)
    if answer.is_error:
        raise SystemExit(f"{name}: {answer.text}")
    return answer


def say(text: str) -> None:
    print(text, flush=True)


def events(report: Path) -> List[Dict[str, Any]]:
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()] if report.exists() else []


def wait_for_event(report: Path, event: str) -> Dict[str, Any]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = [one for one in events(report) if one["event"] == event]
        if found:
            return found[-1]
        time.sleep(0.05)
    raise SystemExit(f"the form never reported {event}")


def centre(report: Path, widget: str) -> "tuple[int, int]":
    """The middle of a widget, as the form itself tells it."""
    place = [one for one in events(report) if one["event"] == "layout" and one["widget"] == widget][-1]
    return place["x"] + place["width"] // 2, place["y"] + place["height"] // 2


def mark(source: Path, target: Path, pixel: Dict[str, Any]) -> None:
    x, y = pixel["x"], pixel["y"]
    circle = f"circle {x},{y} {x + 16},{y}"
    words = ["convert", str(source), "-fill", "none", "-stroke", "#d1312b", "-strokewidth", "3", "-draw", circle]
    subprocess.run([*words, str(target)], check=True)


if __name__ == "__main__":
    sys.exit(main())
