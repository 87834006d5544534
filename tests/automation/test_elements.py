"""Elements by tool and command: pixel positions, short text and data, and clicks at those positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from accessible import elements_of, group_of
from desktops import BROWSER_OPTIONS, need_browser
from fakemac import FakeMac
from macs import mac_environment
from mcp_server import initialized
from samples import window
from worlds import Program, wait_for

from peekaboo_min.core.models import Rect
from peekaboo_min.system.bitmaps import is_caret


def test_elements_print_one_line_each(mac: FakeMac) -> None:
    with initialized("package", mac_environment(mac)) as server:
        answer = server.call("find_elements", window_id=1090, text="entry")
        lines = server.call("find_text", window_id=1090)["content"][0]["text"]
    text, data = answer["content"][0]["text"], answer["structuredContent"]
    assert text.split("\n")[1:] == ['button "New entry" 180,220'] and data["screenshot_id"] in text
    assert [one["name"] for one in data["elements"]] == ["New entry"]
    assert '"New entry" 128,220' in lines.split("\n") and "{" not in lines, "text is enough"


@pytest.mark.parametrize("count", [200, 201])
def test_elements_are_limited_to_200(mac_peek: Program, mac: FakeMac, count: int) -> None:
    widgets = [
        {"name": f"b{at}", "kind": "button", "rect": [at % 20 * 20, at // 20 * 18, 20, 18], "text": f"B{at}"}
        for at in range(count)
    ]
    mac.change_window(1090, {"widgets": widgets})
    reply = mac_peek.data("elements", 1090)
    assert (reply["count"], len(reply["elements"])) == (count, 200)
    assert [one["name"] for one in reply["elements"][:2]] == ["B0", "B1"]
    assert ("the first of 201" in mac_peek.run("elements", 1090).out) == (count > 200)


def test_element_values_are_limited_to_300_characters(mac_peek: Program, mac: FakeMac) -> None:
    fields = [
        {"name": f"f{length}", "kind": "field", "rect": [0, length - 300, 90, 30], "value": "x" * length}
        for length in (300, 340)
    ]
    mac.change_window(1090, {"widgets": fields})
    values = [one["value"] for one in mac_peek.data("elements", 1090)["elements"]]
    assert values == ["x" * 300, "x" * 299 + "…"]
    (only,) = mac_peek.data("elements", 1090, "--text", "x" * 301)["elements"]
    assert only["value"] == "x" * 340


@pytest.mark.parametrize("scale", ["1", "2"])
def test_elements_of_gtk_are_typed_into_and_clicked(on_gtk: Program, scale: str) -> None:
    words = ["zenity", "--entry", "--text", "City", "--entry-text", "Århus"]
    with group_of(words, {**on_gtk.environment, "GDK_SCALE": scale}) as process:
        reply = elements_of(on_gtk, process, "textbox")
        window_id, (field,) = reply["window_id"], reply["elements"]

        def click(element: dict[str, Any], reply: dict[str, Any]) -> None:
            place = element["x"], element["y"]
            on_gtk.data("click", window_id, *place, "--screenshot-id", reply["screenshot_id"])

        assert field["value"] == "Århus"
        click(field, reply)
        on_gtk.data("type", window_id, "Zürich", "--replace")
        assert elements_of(on_gtk, process, "textbox")["elements"][0]["value"] == "Zürich"
        reply = elements_of(on_gtk, process, "button")
        click(next(one for one in reply["elements"] if one["name"] == "OK"), reply)
        assert process.communicate(timeout=60)[0] == "Zürich\n"


PAGE = """<!doctype html><title>Join</title><label>Name <input id="name" value="old"></label>
<label><input type="checkbox"> Agree</label><select><option>apple<option>pear</select>
<input type="password" value="sesame" aria-label="Pin"><textarea aria-label="Note">one</textarea>
<div style="height:47px;width:90px;overflow:auto"><button style="height:30px">Up</button><br>
<button style="height:30px" onclick="document.title='pressed'">Half</button><br><button>Away</button></div>
<button>Below</button>"""


def test_elements_of_a_page(  # a longer test name makes the path of Chromium's socket too long
    on_gtk: Program, tmp_path: Path
) -> None:
    program = need_browser()
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    words = [
        program, *BROWSER_OPTIONS, f"--user-data-dir={tmp_path / 'browser'}", f"--app=file://{page}",
        "--force-device-scale-factor=1.5", "--window-size=700,400", "--window-position=40,40",
    ]  # fmt: skip
    # otherwise Chromium has no accessibility tree
    environment = {**on_gtk.environment, "ACCESSIBILITY_ENABLED": "1", "TMPDIR": str(tmp_path)}
    with group_of(words, environment) as process:
        window_id = elements_of(on_gtk, process, "checkbox", "Join")["window_id"]

        def look() -> dict[str, Any]:
            reply = on_gtk.data("elements", window_id)
            return {"shot": reply["screenshot_id"], **{one["name"]: one for one in reply["elements"]}}

        def click(name: str) -> None:
            seen = look()
            on_gtk.data("click", window_id, seen[name]["x"], seen[name]["y"], "--screenshot-id", seen["shot"])

        seen = look()
        assert {"Up", "Half", "Below"} <= seen.keys() and "Away" not in seen
        fields = {name: (seen[name]["value"], seen[name]["states"]) for name in ("Name", "Pin", "Note")}
        assert fields == {"Name": ("old", []), "Pin": ("", []), "Note": ("one", ["multiline"])}
        assert on_gtk.data("elements", window_id, "--role", "combobox")["elements"][0]["value"] == "apple"
        click("Agree")
        wait_for(lambda: "checked" in look()["Agree"]["states"], "the box is checked")
        click("Name")
        on_gtk.data("type", window_id, "Zoë", "--replace")
        wait_for(lambda: look()["Name"]["value"] == "Zoë", "the field contains the typed text")
        click("Half")  # only its upper part is visible
        titles = lambda: [one["title"] for one in on_gtk.data("windows")["windows"]]  # noqa: E731
        wait_for(lambda: "pressed" in titles(), "it was pressed")


@pytest.mark.parametrize(
    ("width", "height", "scale", "expected"),
    [(14, 40, 1, True), (15, 8, 1, False), (8, 41, 1, False), (28, 80, 2, True), (29, 80, 2, False)],
)
def test_caret_is_narrow_and_low(width: int, height: int, scale: int, expected: bool) -> None:
    """Sizes are in pixels; scale: pixels per point."""
    where = window(bounds=Rect(0, 0, 300, 200))
    assert is_caret(Rect(5, 5, width, height), 300 * scale, where) is expected
