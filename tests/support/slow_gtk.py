"""A GTK text field that is slow to paste; the system's own python3 runs it, which has `gi`.

A line of JSON on stdin, such as {"how": "blocked twice", "pause_s": 0.1}, empties the field and sets how it
pastes, by these words. Each text that the field holds is printed as a line of JSON.

blocked     handles nothing between two requests of a paste
waiting     pauses between two requests of a paste, and handles other events
late        starts to paste after a pause, and handles other events
twice       requests the text, then pastes
deaf        pastes nothing
asking      requests the formats and HTML, and pastes nothing
listening   requests the text of each new owner after a pause, and handles nothing before
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Callable

import gi

gi.require_version("Gdk", "3.0")  # or a newer one is loaded first
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GLib, Gtk  # noqa: E402


class SlowField:
    def __init__(self) -> None:
        self._pause_s, self._how = 0.0, "blocked"
        self._clipboard = Gtk.Clipboard.get(Gdk.SELECTION_CLIPBOARD)
        self._clipboard.connect("owner-change", self._listen)
        self._view = Gtk.TextView()
        self._view.connect("paste-clipboard", self._start_paste)
        self._view.get_buffer().connect("changed", lambda buffer: self._report(buffer.props.text))
        window = Gtk.Window(title="Slow field", default_width=300, default_height=200)
        window.add(self._view)
        window.move(600, 100)
        window.show_all()
        Gdk.event_handler_set(self._handle)
        GLib.io_add_watch(sys.stdin.fileno(), GLib.PRIORITY_DEFAULT, GLib.IO_IN, self._obey)

    def _obey(self, *_: Any) -> bool:
        line = sys.stdin.readline()
        if not line:
            Gtk.main_quit()
            return False
        self._view.get_buffer().set_text("")
        order = json.loads(line)
        self._pause_s, self._how = order["pause_s"], order["how"]
        print(json.dumps({"event": "ready"}), flush=True)
        return True

    def _handle(self, event: Gdk.Event) -> None:
        is_answer = event.type == Gdk.EventType.SELECTION_NOTIFY
        if is_answer and "waiting" in self._how:
            answer = event.copy()
            self._later(lambda: Gtk.main_do_event(answer))
            return
        if is_answer and "blocked" in self._how:
            time.sleep(self._pause_s)
        Gtk.main_do_event(event)

    def _start_paste(self, view: Gtk.TextView) -> None:
        view.stop_emission_by_name("paste-clipboard")
        print(json.dumps({"event": "key"}), flush=True)
        if "asking" in self._how:
            self._clipboard.request_targets(lambda *_: None)
            self._clipboard.request_contents(Gdk.Atom.intern("text/html", False), lambda *_: None)
        elif "late" in self._how:
            self._later(self._paste)
        elif "deaf" not in self._how:
            self._paste()

    def _paste(self) -> None:
        buffer = self._view.get_buffer()
        if "twice" in self._how:
            self._clipboard.request_text(lambda *_: buffer.paste_clipboard(self._clipboard, None, True))
        else:
            buffer.paste_clipboard(self._clipboard, None, True)

    def _listen(self, *_: Any) -> None:
        if "listening" in self._how:
            time.sleep(self._pause_s)
            self._clipboard.request_text(lambda *_: None)

    def _later(self, call: Callable[[], Any]) -> None:
        GLib.timeout_add(round(self._pause_s * 1000), lambda: call() and False)

    def _report(self, text: str) -> None:
        print(json.dumps({"event": "text", "text": text}), flush=True)


if __name__ == "__main__":
    SlowField()
    Gtk.main()
