"""The fake Mac refuses what a real Mac refuses, if no test of the product shows it (fact sheet 6.3)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from fakemac import FakeMac
from worlds import PATIENCE_S

JXA = ("osascript", "-l", "JavaScript", "-")
CG = "ObjC.import('CoreGraphics'), "
AX = "ObjC.import('ApplicationServices'), $.AXUIElementCopyAttributeValue(ObjC.castRefToObject("
SHAPE = """var KN = Application('com.apple.Keynote'); KN.activate(); KN.documents.push(KN.Document({}));
var doc = KN.documents[0], slide = doc.slides[0]; slide.shapes.push(KN.Shape({width: 300})); """
BIND = "ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']])"
POSTED = """ObjC.import('CoreGraphics');
function mouse(type, x, button) {
  $.CGEventPost(0, $.CGEventCreateMouseEvent(null, type, $.CGPointMake(x, 210), button));
}
function key(code, flags, text) { [true, false].forEach(function (down) {
  var event = $.CGEventCreateKeyboardEvent(null, code, down), data = text &&
    $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
  if (text) $.CGEventKeyboardSetUnicodeString(event, text.length, data.bytes);
  if (flags !== undefined) $.CGEventSetFlags(event, flags);
  $.CGEventPost(0, event);
}) }
"""


def run(mac: FakeMac, *argv: str, stdin: str = "") -> str:
    """Return stdout and stderr of a fake program."""
    done = subprocess.run(
        [str(mac.bin_dir / argv[0]), *argv[1:]], input=stdin, capture_output=True, text=True,
        timeout=PATIENCE_S, env=mac.env(), cwd=mac.folder,
    )  # fmt: skip
    return done.stdout + done.stderr


# an expression, and a part of its value or of the error
SCRIPTS = {
    "typeof $.CGMainDisplayID + typeof $.NSScreen": "undefinedundefined",  # not imported
    "[typeof setTimeout, typeof require, typeof process, typeof Buffer, typeof URL]": "undefined," * 4,
    CG + "ObjC.deepUnwrap($.CGWindowListCopyWindowInfo(17, 0))": "undefined",
    CG + "typeof $.CGPreflightScreenCaptureAccess": "undefined",  # not bound
    CG + "$.CGWindowListCopyWindowInfo($.kCGNoSuchName, 0)": "argument 1 is undefined",
    CG + "$.CGPointMake(0 / 0, 1)": "CGPointMake: x is NaN",
    AX + "$.AXUIElementCreateApplication(410)), $('AXTitle'), Ref())": "Ref has incompatible type",
    SHAPE + "slide.shapes[0].id()": "(-1728)",
    SHAPE + "slide.shapes.push(KN.Shape({shapeType: 'rectangle'}))": "(-1700)",
    SHAPE + "slide.shapes[0].backgroundFillType = 'none'": "(-10006)",
}


@pytest.mark.parametrize(("script", "answer"), SCRIPTS.items())
def test_script_gets_the_answer_of_a_mac(tmp_path: Path, script: str, answer: str) -> None:
    source = f"String(eval({json.dumps(script)}))"
    assert answer in run(FakeMac(tmp_path), *JXA, stdin=source)


# a script that types into TextEdit, whose text is "eggs\nmilk", and the text afterwards
TYPED = {
    "key(0, 0, 'caf\u00e9')": "eggs\nmilka",  # not bound
    BIND + "; key(0, 0, 'abcdefghijklmnopqrstuvwxyz')": "eggs\nmilkabcdefghijklmnopqrst",
    BIND + "; key(0, 0, '\\ud83d'); key(0, 0, '\\ude00')": "eggs\nmilk\ufffd\ufffd",
    BIND + "; key(0, 0, 'a\\nb')": "eggs\nmilkab",
    BIND + "; key(0, 0x100000); key(0, undefined, 'lost'); key(0, 0, 'kept')": "kept",  # Command stays
}


@pytest.mark.parametrize(("script", "text"), TYPED.items())
def test_text_typed_without_bytes_or_flags_is_damaged(tmp_path: Path, script: str, text: str) -> None:
    mac = FakeMac(tmp_path)
    mac.activate("TextEdit")
    run(mac, *JXA, stdin=f"{POSTED} {script}; ''")
    assert mac.widget(1030, "text")["value"] == text


def test_impossible_events_are_dropped(tmp_path: Path) -> None:
    mac = FakeMac(tmp_path)
    wrong_button, no_points = "mouse(25, 900, 0); ", "mouse(1, 900, 0); mouse(2, 950, 0); "
    without_own_flags = "key(123, 0x40000); key(115, 0x100000); key(117, 0x80000); ''"
    run(mac, *JXA, stdin=POSTED + wrong_button + no_points + without_own_flags)
    assert {event["kind"] for event in mac.events()} - {"activate", "raise", "lost"} == {"dropped"}


# arguments and the error
PROGRAMS = {
    "screencapture -x -D 3 s.png": "Invalid display specified. Only 2 displays available.",  # an id
    "screencapture -x -a -o -l 1081 s.png": "could not create image from window\n",  # on another Space
    "xcrun swiftc a.swift -o a": "<unknown>:0: error: unable to load standard library",
    "osascript -": "(-2741)\n",  # an AppleScript that no Mac was asked about
}


@pytest.mark.parametrize(("argv", "error"), PROGRAMS.items())
def test_program_fails_like_on_a_mac(tmp_path: Path, argv: str, error: str) -> None:
    mac = FakeMac(tmp_path)
    mac.tools("good")
    assert error in run(mac, *argv.split(), stdin="do shell script")
