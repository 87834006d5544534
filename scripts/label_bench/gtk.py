"""VERSION SCALE THEME [KIND TEXT]... -> a window of GTK 3.0 or 4.0 with these labels; prints their boxes.

It prints `BOXES [[x, y, width, height], ...]`, in the order of the labels, in pixels of the window.
"""

from __future__ import annotations

import json
import sys
from itertools import count
from typing import Any

import gi  # type: ignore[import-not-found,import-untyped,unused-ignore]

version, scale, theme, *rest = sys.argv[1:]
gi.require_version("Gtk", version)
gi.require_version("Gdk", version)
from gi.repository import Gdk, Gio, GLib, Gtk  # type: ignore[import-not-found,unused-ignore]  # noqa: E402

IS_4 = version == "4.0"
STYLE = b"""
.green { background: #2e7d32; color: white; font-size: 11px; text-shadow: none; }
.title { font-size: 20pt; font-weight: bold; }
"""
texts: dict[str, list[str]] = {}
widgets: dict[tuple[str, str], Any] = {}
for kind, text in zip(rest[::2], rest[1::2]):
    texts.setdefault(kind, []).append(text)


def boxed(vertical: bool, children: list[Any]) -> Any:
    box = Gtk.Box(orientation=Gtk.Orientation(int(vertical)), spacing=8)
    for child in children:
        box.append(child) if IS_4 else box.pack_start(child, False, False, 0)
    return box


def filled(container: Any, child: Any) -> Any:
    container.set_child(child) if IS_4 else container.add(child)
    return container


def grid(kinds: list[str], columns: int, make: Any, spacing: int = 10) -> Any:
    made = Gtk.Grid(column_spacing=spacing, row_spacing=6, margin_start=6, margin_top=4, margin_bottom=4)
    places = count()
    for kind in kinds:
        for text in texts[kind]:
            widget = widgets[kind, text] = make(kind, text)
            at = next(places)
            made.attach(widget, at % columns, at // columns, 1, 1)
    return made


def button(kind: str, text: str) -> Any:
    made = Gtk.Button(label=text, sensitive=kind != "disabled button")
    if kind == "green button":
        made.get_style_context().add_class("green")
    return made


def label(kind: str, text: str) -> Any:
    made = Gtk.Label(label=text, xalign=0, sensitive=kind != "disabled label")
    if kind == "title":
        made.get_style_context().add_class("title")
    return made


def tick(kind: str, text: str) -> Any:
    made = Gtk.CheckButton(label=text, sensitive=kind != "disabled tick box")
    made.set_active(len(text) % 2 == 0)
    return made


def radio(kind: str, text: str) -> Any:
    first = widgets.get((kind, texts[kind][0]))
    if not IS_4:
        return Gtk.RadioButton.new_with_label_from_widget(first, text)
    made = Gtk.CheckButton(label=text, active=first is None)
    made.set_group(first)
    return made


def menu_bar() -> Any:
    bar = Gtk.MenuBar()
    for text in texts["menu"]:
        widgets["menu", text] = Gtk.MenuItem(label=text)
        bar.append(widgets["menu", text])
    return bar


def menu_bar_4() -> Any:
    model, entries = Gio.Menu(), Gio.Menu()
    entries.append("Entry", "app.none")
    for text in texts["menu"]:
        model.append_submenu(text, entries)
    bar = Gtk.PopoverMenuBar.new_from_model(model)
    child = bar.get_first_child()
    for text in texts["menu"]:
        widgets["menu", text], child = child, child.get_next_sibling()
    return bar


def tabs(first_page: Any) -> Any:
    book = Gtk.Notebook()
    for text in texts["tab"]:
        widgets["tab", text] = Gtk.Label(label=text)
        book.append_page(first_page, widgets["tab", text])
        first_page = Gtk.Label(label="-")
    return book


def rows() -> Any:
    made = Gtk.ListBox()
    for kind in ("row", "selected row"):
        for text in texts[kind]:
            widgets[kind, text] = Gtk.Label(label=text, xalign=0, margin_start=6, margin_end=6)
            (made.append if IS_4 else made.add)(widgets[kind, text])
    made.select_row(made.get_row_at_index(len(texts["row"])))
    return filled(Gtk.Frame(), made)


def framed(at: int, child: Any) -> Any:
    text = texts["frame"][at]
    widgets["frame", text] = Gtk.Label(label=text)
    return filled(Gtk.Frame(label_widget=widgets["frame", text]), child)


def box_of(window: Any, widget: Any) -> list[float]:
    if IS_4:
        box = widget.compute_bounds(window)[1]
        sizes = [box.get_x(), box.get_y(), box.get_width(), box.get_height()]
    else:
        place = widget.translate_coordinates(window, 0, 0)
        sizes = [*place, widget.get_allocated_width(), widget.get_allocated_height()]
    return [size * window.get_scale_factor() for size in sizes]


def report(window: Any) -> None:
    keys = list(zip(rest[::2], rest[1::2]))
    print("BOXES", json.dumps([box_of(window, widgets[key]) for key in keys]), flush=True)


Gtk.init_check() if IS_4 else Gtk.init_check([])
settings = Gtk.Settings.get_default()
settings.props.gtk_application_prefer_dark_theme = theme == "dark"
settings.props.gtk_enable_animations = False
if scale in ("1.25", "1.5"):  # GDK_SCALE can only be whole
    settings.props.gtk_xft_dpi = int(96 * 1024 * float(scale))
provider = Gtk.CssProvider()
provider.load_from_data(STYLE)
if IS_4:
    Gtk.StyleContext.add_provider_for_display(Gdk.Display.get_default(), provider, 600)
else:
    Gtk.StyleContext.add_provider_for_screen(Gdk.Screen.get_default(), provider, 600)
window = Gtk.Window(title="Labels")
first_page = grid(["label", "disabled label"], 4, label, spacing=30)
ticks, radios = grid(["tick box", "disabled tick box"], 2, tick), grid(["radio button"], 2, radio)
entries = grid(["placeholder"], 2, lambda _, text: Gtk.Entry(placeholder_text=text, width_chars=22))
below = boxed(True, [boxed(False, [framed(0, ticks), framed(1, radios)]), framed(2, entries)])
filled(
    window,
    boxed(
        True,
        [
            menu_bar_4() if IS_4 else menu_bar(),
            grid(["title"], 1, label),
            tabs(first_page),
            boxed(False, [below, rows()]),
            grid(["button", "disabled button"], 5, button),
            grid(["green button"], 6, button),
        ],
    ),
)
window.present() if IS_4 else window.show_all()
window.set_focus(None)  # a focused entry may hide its placeholder
GLib.timeout_add(1000, report, window)
GLib.MainLoop().run()
