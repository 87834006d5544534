"""SCALE THEME [KIND TEXT]... -> a window of Qt 5 with these labels; prints their boxes like gtk.py."""

from __future__ import annotations

import json
import sys
from typing import Any

from PyQt5 import QtCore, QtGui, QtWidgets  # type: ignore[import-not-found,unused-ignore]

scale, theme, *rest = sys.argv[1:]
texts: dict[str, list[str]] = {}
boxes: dict[tuple[str, str], Any] = {}  # functions that return a widget and a rectangle in it
for kind, text in zip(rest[::2], rest[1::2]):
    texts.setdefault(kind, []).append(text)


def boxed(layout: Any, children: list[Any]) -> Any:
    widget = QtWidgets.QWidget()
    for child in children:
        layout.addWidget(child)
    widget.setLayout(layout)
    return widget


def grid(kinds: list[str], columns: int, make: Any) -> Any:
    layout = QtWidgets.QGridLayout()
    made = [(kind, text) for kind in kinds for text in texts[kind]]
    for at, (kind, text) in enumerate(made):
        widget = make(text)
        widget.setEnabled(not kind.startswith("disabled"))
        layout.addWidget(widget, at // columns, at % columns)
        boxes[kind, text] = lambda widget=widget: (widget, widget.rect())
    return boxed(layout, [])


def green_button(text: str) -> Any:
    made = QtWidgets.QPushButton(text)
    made.setStyleSheet("background: #2e7d32; color: white; font-size: 11px; padding: 3px 8px;")
    return made


def title(text: str) -> Any:
    made = QtWidgets.QLabel(text)
    made.setFont(QtGui.QFont(app.font().family(), 20, QtGui.QFont.Bold))
    return made


def tick(text: str) -> Any:
    made = QtWidgets.QCheckBox(text)
    made.setChecked(len(text) % 2 == 0)
    return made


def radio(text: str) -> Any:
    made = QtWidgets.QRadioButton(text)
    made.setChecked(text == texts["radio button"][0])
    return made


def placeholder(text: str) -> Any:
    made = QtWidgets.QLineEdit(placeholderText=text)
    made.setMinimumWidth(190)
    return made


def framed(at: int, child: Any) -> Any:
    text = texts["frame"][at]
    frame = QtWidgets.QGroupBox(text)
    layout = QtWidgets.QVBoxLayout(frame)
    layout.addWidget(child)
    boxes["frame", text] = lambda: (frame, QtCore.QRect(0, 0, frame.width(), child.y()))
    return frame


def menu_bar(window: Any) -> None:
    bar = window.menuBar()
    for text in texts["menu"]:
        action = bar.addMenu(text).menuAction()
        boxes["menu", text] = lambda action=action: (bar, bar.actionGeometry(action))


def tabs(first_page: Any) -> Any:
    made = QtWidgets.QTabWidget()
    bar = made.tabBar()
    for at, text in enumerate(texts["tab"]):
        made.addTab(QtWidgets.QWidget() if at else first_page, text)
        boxes["tab", text] = lambda at=at: (bar, bar.tabRect(at))
    return made


def rows() -> Any:
    made = QtWidgets.QListWidget()
    for kind in ("row", "selected row"):
        for text in texts[kind]:
            item = QtWidgets.QListWidgetItem(text, made)
            boxes[kind, text] = lambda item=item: (made.viewport(), made.visualItemRect(item))
    made.setCurrentItem(item)
    made.setMinimumWidth(made.sizeHintForColumn(0) + 20)
    return made


def report() -> None:
    found = []
    for key in zip(rest[::2], rest[1::2]):
        widget, box = boxes[key]()
        place = widget.mapTo(window, box.topLeft())
        ratio = widget.devicePixelRatioF()
        found.append([ratio * size for size in (place.x(), place.y(), box.width(), box.height())])
    print("BOXES", json.dumps(found), flush=True)


app = QtWidgets.QApplication(["labels"])
app.setStyle("Fusion")
if theme == "dark":
    palette, role = QtGui.QPalette(QtGui.QColor(53, 53, 53)), QtGui.QPalette
    palette.setColor(role.Base, QtGui.QColor(35, 35, 35))
    palette.setColor(role.Highlight, QtGui.QColor(42, 130, 218))
    for each in (role.WindowText, role.ButtonText, role.Text):
        palette.setColor(role.Disabled, each, QtGui.QColor(127, 127, 127))
    palette.setColor(role.Disabled, role.Light, QtGui.QColor(53, 53, 53))  # else a shadow below the text
    app.setPalette(palette)
window = QtWidgets.QMainWindow(windowTitle="Labels")
menu_bar(window)
upright, level = QtWidgets.QVBoxLayout, QtWidgets.QHBoxLayout
ticks = framed(0, grid(["tick box", "disabled tick box"], 2, tick))
radios = framed(1, grid(["radio button"], 2, radio))
entries = framed(2, grid(["placeholder"], 3, placeholder))
below = boxed(upright(), [boxed(level(), [ticks, radios]), entries])
window.setCentralWidget(
    boxed(
        upright(),
        [
            grid(["title"], 1, title),
            tabs(grid(["label", "disabled label"], 4, QtWidgets.QLabel)),
            boxed(level(), [below, rows()]),
            grid(["button", "disabled button"], 5, QtWidgets.QPushButton),
            grid(["green button"], 6, green_button),
        ],
    )
)
window.show()
QtCore.QTimer.singleShot(1000, report)
app.exec_()
