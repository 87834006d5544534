"""AT-SPI elements of real GTK applications on a private session bus."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from accessible import group_of, need_elements, session_bus
from samples import error_of, window
from worlds import need, wait_for, x_server

from peekaboo_min.core.errors import ErrorCode, PeekabooError
from peekaboo_min.core.models import Element, Rect, Window
from peekaboo_min.core.settings import forget_environment
from peekaboo_min.desktop.x11.backend import X11Desktop
from peekaboo_min.desktop.x11.elements import _in_reading_order


@pytest.fixture(scope="module")
def desktop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[X11Desktop]:
    """Give this process its own X server, session bus and home."""
    need_elements("zenity")
    folder = tmp_path_factory.mktemp("elements")
    folder.chmod(0o700)
    with x_server() as display, pytest.MonkeyPatch.context() as patch:
        for name, value in {"DISPLAY": display, "XDG_RUNTIME_DIR": str(folder)}.items():
            patch.setenv(name, value)
        with session_bus() as address:
            patch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
            forget_environment()
            yield X11Desktop()
    forget_environment()


def window_of(desktop: X11Desktop, process: subprocess.Popen[str], title: str = "") -> Window:
    def find() -> Optional[Window]:
        windows = desktop.snapshot().windows
        mine = [one for one in windows if one.pid == process.pid and title in (one.title or "")]
        return next((one for one in mine if one.is_focused), None)

    return wait_for(find, f"the window {title!r} of {process.args}")


def elements_of(
    desktop: X11Desktop, window: Window, is_there: Callable[[list[Element]], Any]
) -> list[Element]:
    """Wait for elements: an application registers with AT-SPI a moment after its window opens."""

    def find() -> list[Element]:
        try:
            found = desktop.read_elements(desktop.snapshot().by_id(window.window_id))
        except PeekabooError as e:
            assert e.code is ErrorCode.NO_ELEMENTS
            return []
        return found if is_there(found) else []

    return wait_for(find, "the elements are listed")


def need_gtk(version: str) -> None:
    probe = f"import gi; gi.require_version('Gtk', '{version}')"
    if subprocess.run(["/usr/bin/python3", "-c", probe], capture_output=True).returncode:
        pytest.skip(f"there is no GTK {version} for Python on this machine")


# role, name, left, top, width, height of each element -> their names in reading order
ORDERS = {
    "a field is named by the text before it": ("text Name 0 2 50 20, textbox - 60 0 90 24", "Name, Name"),
    "a name stays": ("text Name 0 2 50 20, textbox Mail 60 0 90 24", "Name, Mail"),
    "a button names nothing": ("button Go 0 2 50 20, textbox - 60 0 90 24", "Go, "),
    "a text names no button": ("text Name 0 2 50 20, button - 60 0 90 24", "Name, "),
    "a combobox names its textbox": ("combobox City 0 0 90 24, textbox - 2 2 60 20", "City, City"),
    "other fields are named, too": (
        "text A 0 0 9 9, combobox - 10 0 9 9, text B 0 10 9 9, slider - 10 10 9 9, text C 0 20 9 9, "
        "spinbutton - 10 20 9 9",
        "A, A, B, B, C, C",
    ),
    "a title is not beside": ("text Title 0 0 50 20, textbox - 0 30 90 20", "Title, "),
    "a row comes before the next": ("button Right 60 0 50 20, button Below 0 30 50 20", "Right, Below"),
    "a row ends at its bottom": ("button Below 0 10 50 20, button Right 60 0 50 20", "Right, Below"),
    "a row has the height of its first": (
        "button A 0 0 50 20, button B 60 8 50 20, button C 30 16 50 20", "A, B, C",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), ORDERS.values(), ids=ORDERS.keys())
def test_elements_are_in_reading_order_with_their_labels(given: str, expected: str) -> None:
    words = [part.split() for part in given.split(", ")]
    fields = [Element(role, name.strip("-"), "", (), Rect(*map(float, box))) for role, name, *box in words]
    assert ", ".join(element.name for element in _in_reading_order(fields)) == expected


GTK4_FORM = """
import gi, json
gi.require_version("Gtk", "4.0")
from gi.repository import GLib, Gtk

def show(application):
    window = Gtk.ApplicationWindow(application=application, title="Four", default_width=300)
    window.set_titlebar(Gtk.HeaderBar())
    box, rows = Gtk.Box(orientation=1, margin_top=9, margin_start=14), Gtk.ListBox()
    for text, is_visible in (("shown", True), ("4711", False)):
        box.append(Gtk.Entry(text=text, visibility=is_visible))
    box.append(Gtk.PasswordEntry(text="sesame"))
    buttons = [Gtk.Button(label=f"Row {number}") for number in range(9)]
    for button in buttons:
        rows.append(button)
    box.append(Gtk.ScrolledWindow(child=rows, height_request=95))
    buttons.append(Gtk.Button(label="Below", halign=Gtk.Align.CENTER))
    box.append(buttons[-1])
    buttons.append(Gtk.Button(label="Framed"))
    box.append(Gtk.Frame(label="Frame", child=buttons[-1]))
    buttons.append(Gtk.Button(label="Page"))
    book = Gtk.Notebook()
    book.append_page(buttons[-1], Gtk.Label(label="First"))
    box.append(book)
    box.append(Gtk.Button(icon_name="edit-copy", tooltip_text="Copy"))
    box.append(Gtk.DropDown.new_from_strings(["apple", "pear"]))
    box.append(Gtk.TextView(buffer=Gtk.TextBuffer(text="one"), height_request=40))
    window.set_child(box)
    window.present()
    def report():
        boxes = {each.get_label(): each.compute_bounds(window)[1].get_center() for each in buttons}
        border = window.get_surface_transform()
        places = {name: [at.x + border.x, at.y + border.y] for name, at in boxes.items()}
        print(json.dumps(places), flush=True)
    GLib.timeout_add(500, report)

application = Gtk.Application(application_id="org.example.Four")
application.connect("activate", show)
application.run([])
"""


def test_gtk_4_elements_have_values_and_places(desktop: X11Desktop) -> None:
    need_gtk("4.0")
    with group_of(["/usr/bin/python3", "-I", "-c", GTK4_FORM]) as process:
        window = window_of(desktop, process)
        assert process.stdout
        places = json.loads(process.stdout.readline())  # printed once it is drawn
        found = elements_of(desktop, window, lambda found: any(one.name == "Below" for one in found))
    values = [(one.value, "multiline" in one.states) for one in found if one.role == "textbox"]
    assert values == [("shown", False), ("", False), ("", False), ("one", True)]
    listed = [(one.name.removesuffix(" Frame"), one.box) for one in found if one.role == "button"]
    buttons = {name: box for name, box in listed if name in places}
    visible = ["Below", "Framed", "Page", "Row 0", "Row 1", "Row 2"]
    assert sorted(buttons) == visible, "rows out of view are left out"
    seen = {(one.role, one.name or one.value) for one in found}
    assert {("tab", "First"), ("button", "Copy"), ("combobox", "apple")} <= seen
    for name in ("Row 0", "Row 1", "Below", "Framed", "Page"):
        middle = buttons[name].centre
        place = [middle.x - window.bounds.x, middle.y - window.bounds.y]
        assert place == pytest.approx(places[name], abs=2), name
    assert buttons["Row 2"].y + buttons["Row 2"].height <= buttons["Below"].y


SCROLLED = """
import gi, sys
gi.require_version("Gtk", sys.argv[1])
from gi.repository import GLib, Gtk
GLib.set_prgname("rows")
names = [f"Row {number}" for number in range(1000)]
window, scrolled = Gtk.Window(title="Rows", default_height=300), Gtk.ScrolledWindow()
if sys.argv[1] == "4.0":
    factory, model = Gtk.SignalListItemFactory(), Gtk.NoSelection(model=Gtk.StringList.new(names))
    factory.connect("setup", lambda _, item: item.set_child(Gtk.Label()))
    factory.connect("bind", lambda _, item: item.get_child().set_label(item.get_item().get_string()))
    scrolled.set_child(Gtk.ListView(model=model, factory=factory))
    window.set_child(scrolled)
else:
    scrolled.add(rows := Gtk.ListBox())
    window.add(scrolled)
    any(rows.add(Gtk.Label(label=name)) for name in names)
    window.show_all()
window.present()
bar = scrolled.get_vadjustment()
def scroll():
    bar.set_value(bar.get_value() + 150)
    return bar.get_value() <= 2000 or print("scrolled", flush=True)
GLib.timeout_add(50, scroll)
GLib.MainLoop().run()
"""


@pytest.mark.parametrize("version", ["3.0", "4.0"])
def test_elements_of_a_scrolled_list_are_the_visible_rows(desktop: X11Desktop, version: str) -> None:
    need_gtk(version)
    with group_of(["/usr/bin/python3", "-I", "-c", SCROLLED, version]) as process:
        window = window_of(desktop, process)
        assert process.stdout and process.stdout.readline() == "scrolled\n"
        found = elements_of(desktop, window, lambda found: len(found) > 10)
    numbers = [int(one.name[4:]) for one in found]
    assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    assert numbers[0] > 50 and len(numbers) < 30


@pytest.mark.parametrize("has_bus", [True, False], ids=["bus", "no bus"])
def test_application_without_a_tree_has_no_elements(
    desktop: X11Desktop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, has_bus: bool
) -> None:
    need("xmessage")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit('a module of the working folder')")
    if not has_bus:
        subprocess.run(["xprop", "-root", "-remove", "AT_SPI_BUS"], check=True)
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/dev/null")
    with group_of(["xmessage", "-title", "no tree", "hello"]) as process:
        titled = lambda: [one for one in desktop.snapshot().windows if one.title == "no tree"]  # noqa: E731
        error = error_of(desktop.read_elements, wait_for(titled, "xmessage")[0])
        assert process.poll() is None
    assert (error.code, "find_text" in error.hint) == (ErrorCode.NO_ELEMENTS, True)
    assert ("there is no accessibility bus" in error.message) is not has_bus


def test_rows_of_the_systems_python_become_elements(
    desktop: X11Desktop, tmp_path: Path, environment: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    python, value = tmp_path / "python3", "x" * 100_000
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$DBUS_SESSION_BUS_ADDRESS" "$@" > $0.argv; cat $0.rows\n')
    python.chmod(0o755)
    rows = [["textbox", "A\nb", value, ["focused"], [1, 2, 3.5, 4]], ["link", "c", "", [], [9, 2, 3, 4]]]
    Path(f"{python}.rows").write_text(json.dumps([rows, ""]))
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS")
    environment(PEEKABOO_BIN_DIR=str(tmp_path))
    shown = window(7, insets=(1, 2, 3, 4), frame=Rect(5, 5, 400, 300), kind="popup")
    link = Element("link", "c", "", (), Rect(9, 2, 3, 4))
    expected = Element("textbox", "A b", value, ("focused",), Rect(1, 2, 3.5, 4))
    assert desktop.read_elements(shown) == [expected, link]
    bus, *options, question = Path(f"{python}.argv").read_text().splitlines()
    assert (bus, options) == (f"unix:path=/run/user/{os.getuid()}/bus", ["-I", "-"])
    given = json.loads(question)
    boxes = {"bounds": [10, 20, 300, 200], "whole": [9, 17, 303, 207], "outer": [5, 5, 400, 300]}
    asked = {"pid": 60, "title": "A", "is_popup": True, "is_focused": False, **boxes}
    assert {name: given[name] for name in asked} == asked


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("ModuleNotFoundError", "MISSING_PROGRAM"),
        ("Namespace Atspi not available", "MISSING_PROGRAM"),
        ("MemoryError", "PROGRAM_FAILED"),
    ],
)
def test_missing_gi_error_names_the_packages(
    desktop: X11Desktop, tmp_path: Path, environment: Callable[..., None], output: str, code: str
) -> None:
    python = tmp_path / "python3"  # fails like a Python without gi
    python.write_text(f"#!/bin/sh\necho {output} >&2\nexit 1\n")
    python.chmod(0o755)
    environment(PEEKABOO_BIN_DIR=str(tmp_path))
    error = error_of(desktop.read_elements, window())
    packages = "apt-get install python3-gi gir1.2-atspi-2.0 at-spi2-core"
    assert (error.code.value, packages in error.hint) == (code, code == "MISSING_PROGRAM")
