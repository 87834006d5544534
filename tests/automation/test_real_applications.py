"""Acts on real applications, checked by the output, files and pages of the applications.

GTK (zenity, mousepad), terminals and Chromium; under openbox and under i3, whose frames hide the clients and
have their own class; with and without a compositor; on two workspaces.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest
from desktops import BROWSER_OPTIONS, RealDesktop, need_browser, real_desktop, settled
from tk_windows import clipboard, copy
from worlds import X_PROGRAMS, need, need_optional, wait_for

UNICODE = "Zoë Ångström — 日本"
PAGE = """<!doctype html><meta charset="utf-8"><title>Acts</title>
<style>body{margin:0;width:4000px;height:6000px;font:20px sans-serif}
button,input,select,div{position:absolute;left:40px;width:300px;height:40px;margin:0;font-size:20px}</style>
<input id="range" type="range" style="top:140px" value="0"><button id="far" style="top:2000px">Far</button>
<select id="fruit" style="top:340px"><option>apple<option>pear<option>plum</select>
<input id="text" value="old text" style="top:540px">
<script>
const seen = {};
const tell = (event, value) => { seen[event] = value; document.title = "Acts " + JSON.stringify(seen) };
range.oninput = () => tell("range", Number(range.value));
far.onclick = () => tell("far", scrollY);
fruit.onchange = () => tell("fruit", fruit.value);
text.oninput = () => tell("text", text.value);
onscroll = () => tell("scroll", [scrollX, scrollY]);
addEventListener("load", () => setTimeout(() => tell("ready", true), 200));
</script>"""


def start_terminal(on: RealDesktop, title: str, *options: str) -> dict[str, Any]:
    """Start an xterm and return its window."""
    on.start("xterm", "-T", title, *options, "-e", "sleep", "600")
    return on.window_titled(title)


@pytest.fixture(scope="module", params=["openbox", "i3"])
def desktop(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealDesktop]:
    """Yield a desktop with openbox and a compositor, then one with i3 alone."""
    manager: str = request.param
    need(*X_PROGRAMS, "zenity", "mousepad", "xterm", manager)
    with real_desktop(tmp_path_factory.mktemp(manager), manager, manager == "openbox") as started:
        yield started


@pytest.fixture
def on(desktop: RealDesktop) -> Iterator[RealDesktop]:
    yield desktop
    desktop.go_to_workspace(1)
    desktop.close_applications()


# for tests that do not depend on window frames
on_openbox = pytest.mark.parametrize("desktop", ["openbox"], indirect=True)


@pytest.fixture(scope="module")
def bare_desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealDesktop]:
    """Yield openbox without a compositor: a covered window has no pixels there."""
    need(*X_PROGRAMS, "xterm")
    with real_desktop(tmp_path_factory.mktemp("bare"), compositor=False) as started:
        yield started


@pytest.fixture
def bare(bare_desktop: RealDesktop) -> Iterator[RealDesktop]:
    yield bare_desktop
    bare_desktop.close_applications()


@on_openbox
@pytest.mark.parametrize("layout", ["us", "de", "ru"])
def test_type_into_a_gtk_field_works_with_any_keyboard_layout(on: RealDesktop, layout: str) -> None:
    """A German layout cannot type ^ or ` with one key, a Russian one no Latin letters."""
    need("setxkbmap")
    text = f"{''.join(map(chr, range(33, 127)))} {UNICODE}"
    copy(on.environment, "the user's — text".encode())
    zenity = on.start("zenity", "--entry", "--title", "A name", "--entry-text", "old text")
    window = on.window_titled("A name")
    on.run("setxkbmap", layout)
    try:
        on.done("press_key", window, key="ctrl+a")
        on.done("type_text", window, text=text)
        on.done("press_key", window, key="w")
        on.done("press_key", window, key="return")
        assert on.output(zenity) == f"{text}w\n"
    finally:
        on.run("setxkbmap", "us")
    assert clipboard(on.environment) == "the user's — text".encode()


def _open_editor(on: RealDesktop) -> tuple[dict[str, Any], Path]:
    path = on.folder / f"note{len(list(on.folder.glob('note*')))}.txt"
    path.write_text("first")
    on.start("mousepad", path)
    return on.window_titled(path.name), path


@on_openbox
def test_drag_in_gtk_with_a_moved_pointer_is_not_confirmed(on: RealDesktop) -> None:
    """GTK receives XInput events, whose positions the RECORD extension does not report."""
    editor, _ = _open_editor(on)
    drag = {"x": 60, "y": 150, "to_x": 300, "to_y": 150}
    on.done("take_window_screenshot", editor)
    assert on.done("drag", editor, **drag)["delivered"]
    person = on.start("sh", "-c", "while :; do xdotool mousemove_relative -- 3 0; sleep 0.01; done")
    reply = on.call("drag", editor, **drag)
    person.kill()
    assert reply.code or reply.data["delivered"] is None


def test_acts_on_a_window_with_a_modal_dialog_are_refused(on: RealDesktop) -> None:
    editor, path = _open_editor(on)
    on.done("press_key", editor, key="ctrl+shift+s")
    dialog = on.window_titled("Save As")
    assert (dialog["kind"], dialog["is_modal"], dialog["parent_id"]) == ("dialog", True, editor["window_id"])
    shot = on.call("take_window_screenshot", editor)  # refused without a compositor, since it is covered
    place = {"x": 40, "y": 60, "screenshot_id": shot.data.get("screenshot_id")}
    acts = {"type_text": {"text": "stray"}, "press_key": {"key": "escape"}, "click": place}
    for tool in [*acts][: 2 if shot.code else 3]:
        reply = on.call(tool, editor, **acts[tool])
        assert reply.code == "WINDOW_BLOCKED" and str(dialog["window_id"]) in reply.text, reply
    target = path.with_name(f"saved-{path.name}")
    on.done("press_key", dialog, key="ctrl+a")
    on.done("type_text", dialog, text=str(target))
    on.done("press_key", dialog, key="return")
    wait_for(lambda: target.exists() and target.read_text() == "first", "the editor saves")
    assert path.read_text() == "first"


def test_click_text_works_in_an_open_menu(on: RealDesktop) -> None:
    need("tesseract")
    editor, path = _open_editor(on)
    known = {one["window_id"] for one in on.windows()}
    on.done("press_key", editor, key="alt+f")
    menu = on.popup(known)
    assert menu["parent_id"] == editor["window_id"]
    wait_for(lambda: not on.call("click_text", menu, text="Save As").code, "the entry is shown and clicked")
    dialog = on.window_titled("Save As")
    on.done("press_key", dialog, key="escape")
    wait_for(lambda: "Save As" not in {one["title"] for one in on.windows()}, "the dialog is closed")
    assert path.read_text() == "first"


@pytest.mark.parametrize("words", ["xterm -u8", "konsole --nofork", "urxvt", "st", "qterminal"])
def test_type_any_text_into_a_terminal(on: RealDesktop, words: str) -> None:
    name, *options = words.split()
    need_optional(name)
    copy(on.environment, b"mine")
    target = on.folder / "typed.txt"
    target.unlink(missing_ok=True)
    command = ["sh", "-c", f"cat > {target}"]
    terminal = on.start(
        name,
        *options,
        "-e",
        *([shlex.join(command)] if name == "qterminal" else command),
        QT_QPA_PLATFORM="xcb",
    )
    window = on.window(lambda one: name in one["owner_name"].lower(), "the terminal")
    wait_for(target.exists, "its shell is up")
    on.done("type_text", window, text=f"plain\n{UNICODE}\n")
    on.done("press_key", window, key="ctrl+d")
    terminal.wait(20)
    assert target.read_text() == f"plain\n{UNICODE}\n"
    assert clipboard(on.environment) == b"mine"


def test_screenshot_of_a_window_on_another_workspace_is_refused(on: RealDesktop) -> None:
    window = start_terminal(on, "Far away", "-bg", "#102030")
    on.done("take_window_screenshot", window)
    on.go_to_workspace(2)
    start_terminal(on, "Near", "-bg", "#d0e0f0")
    reply = on.call("take_window_screenshot", window)
    assert reply.code in ("CAPTURE_FAILED", "WINDOW_NOT_FOUND") and not reply.images
    on.go_to_workspace(3)
    assert on.client.call("wait_for", app=f"PID:{window['pid']}", closed=True, timeout_s=1).code == "TIMEOUT"
    on.done("focus_window", window)
    assert on.done("take_window_screenshot", window)["window_id"] == window["window_id"]


def test_screenshot_of_a_covered_window_is_refused(bare: RealDesktop) -> None:
    below = start_terminal(bare, "Below", "-bg", "#102030", "-geometry", "60x20+50+50")
    bare.done("take_window_screenshot", below)
    above = start_terminal(bare, "Above", "-bg", "#d0e0f0", "-geometry", "60x20+90+90")
    bare.done("focus_window", above)
    reply = bare.call("take_window_screenshot", below)
    assert reply.code == "CAPTURE_FAILED" and not reply.images
    bare.done("take_window_screenshot", above)
    bare.done("focus_window", below)
    bare.done("take_window_screenshot", below)


REPORTER = """fconfigure stdout -buffering line
wm title . Reporter
wm geometry . 300x200+100+100
bind . <Button> {puts "%b at %x %y"}
bind . <F12> exit
"""
Reported = tuple[dict[str, Any], Callable[[], list[str]]]
PLACE = {"x": 100, "y": 50}


@pytest.fixture
def reporter(bare: RealDesktop) -> Reported:
    """Return the window of REPORTER and a function that ends it by F12 and returns its output lines."""
    (bare.folder / "reporter.tcl").write_text(REPORTER)
    program = bare.start("wish", bare.folder / "reporter.tcl", "-name", "Reporter")
    window = bare.window_titled("Reporter")
    bare.done("take_window_screenshot", window)

    def seen() -> list[str]:
        bare.run("xdotool", "windowfocus", "--sync", str(window["window_id"]), "key", "F12")
        return bare.output(program).splitlines()

    return window, seen


def test_click_with_rearranged_buttons_presses_the_named_one(bare: RealDesktop, reporter: Reported) -> None:
    need("xmodmap")
    window, seen = reporter
    bare.run("xmodmap", "-e", "pointer = 2 3 1 5 4")
    try:
        bare.done("click", window, **PLACE)
        bare.done("click", window, **PLACE, button="right")
        bare.done("scroll", window, **PLACE, direction="down", amount=1)
    finally:
        bare.run("xmodmap", "-e", "pointer = 1 2 3 4 5")
    assert seen() == [f"{button} at 100 50" for button in (1, 3, 5)]


@pytest.mark.parametrize("put_away", ["xdotool windowminimize --sync {}", "wmctrl -i -r {} -b add,shaded"])
def test_click_brings_a_window_back(bare: RealDesktop, reporter: Reported, put_away: str) -> None:
    need("wmctrl")
    window, seen = reporter
    bare.run(*put_away.format(window["window_id"]).split())
    wait_for(lambda: bare.window_titled("Reporter")["is_minimised"], "it is minimised")
    refused = bare.call("take_window_screenshot", window)
    assert refused.code == "CAPTURE_FAILED" and "focus it first" in refused.text
    bare.done("click", window, **PLACE)
    back = bare.window_titled("Reporter")
    assert (back["is_minimised"], back["bounds"]) == (False, window["bounds"])  # openbox animates it
    assert seen() == ["1 at 100 50"]


Page = tuple[dict[str, Any], Callable[[str], Any]]


@pytest.fixture
def page(on: RealDesktop) -> Page:
    """Return the Chromium window with PAGE and a function that reads an event's last value from its title."""
    path = on.folder / "page.html"
    path.write_text(PAGE, "utf-8")
    on.start(
        need_browser(), *BROWSER_OPTIONS, "--kiosk", f"--user-data-dir={on.folder / 'browser'}",
        f"--app=file://{path}",
    )  # fmt: skip

    def seen(event: str) -> Any:
        titles = [one["title"] for one in on.windows() if one["title"].startswith("Acts {")]
        return json.loads(titles[0].removeprefix("Acts ")).get(event) if titles else None

    wait_for(lambda: seen("ready"), "the page is loaded")
    return on.window_titled("Acts {"), seen


def wait_for_value(seen: Callable[[str], Any], event: str, is_it: Callable[[Any], bool]) -> None:
    wait_for(lambda: (value := seen(event)) is not None and is_it(value), f"{event}, not {seen(event)}")


def test_click_drag_and_type_in_a_browser(on: RealDesktop, page: Page) -> None:
    window, seen = page
    known = {one["window_id"] for one in on.windows()}
    on.click(window, 190, 360)
    popup = on.popup(known)
    assert popup["parent_id"] == window["window_id"]
    on.click(popup, 60, popup["bounds"]["height"] / 2)
    wait_for_value(seen, "fruit", lambda fruit: fruit == "pear")
    on.done("drag", window, x=50, y=160, to_x=260, to_y=160)
    wait_for_value(seen, "range", lambda value: 60 <= value <= 90)
    on.click(window, 190, 560)
    on.done("press_key", window, key="ctrl+a")
    on.done("type_text", window, text=f"{UNICODE} 100%")
    wait_for_value(seen, "text", lambda text: text == f"{UNICODE} 100%")


@on_openbox
def test_scroll_in_a_browser_reaches_a_text_to_click(on: RealDesktop, page: Page) -> None:
    window, seen = page
    on.done("take_window_screenshot", window)
    while not on.call("find_text", window, text="Far").data["found"]:
        on.done("scroll", window, x=600, y=400, direction="down", amount=8)
        top = settled(lambda: seen("scroll"))[1]
        assert top < 3000, "the button does not appear"
    on.done("click_text", window, text="Far")
    wait_for_value(seen, "far", lambda top: top > 1000)
