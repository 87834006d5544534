"""The fake Mac refuses like a real Mac (fact sheet 6.3), as far as no test of the product shows it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fakemac import FakeMac
from worlds import PATIENCE_S, ROOT

POST = """ObjC.import('CoreGraphics');
function mouse(type, x, y, button) {
  var event = $.CGEventCreateMouseEvent(null, type, $.CGPointMake(x, y), button || 0);
  $.CGEventSetIntegerValueField(event, 0, 1); $.CGEventSetIntegerValueField(event, 1, 1);
  $.CGEventSetFlags(event, 0); $.CGEventPost(0, event); delay(0.05);
}
function key(code, flags, text) { [true, false].forEach(function (down) {
  var event = $.CGEventCreateKeyboardEvent(null, code, down);
  if (text) {
    var units = $(text).dataUsingEncoding($.NSUTF16LittleEndianStringEncoding);
    $.CGEventKeyboardSetUnicodeString(event, text.length, units.bytes);
  }
  if (flags !== undefined) $.CGEventSetFlags(event, flags);
  $.CGEventPost(0, event);
}) }
"""
REBIND = (
    "ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);"
)
AX_BINDINGS = "ObjC.import('ApplicationServices')" + "".join(
    f", ObjC.bindFunction('{name}', {signature})"
    for name, signature in {
        "AXUIElementCreateApplication": ["id", ["int"]],
        "AXUIElementCopyAttributeValue": ["int", ["id", "id", "id*"]],
        "AXUIElementPerformAction": ["int", ["id", "id"]],
    }.items()
)
DECK = (
    "var KN = Application('com.apple.Keynote'); KN.activate();"
    "KN.documents.push(KN.Document({width: 1920, height: 1080}));"
    "var doc = KN.documents[0], slide = doc.slides[0];"
)
SHAPE = DECK + "slide.shapes.push(KN.Shape({position: {x: 10, y: 20}, width: 300, height: 100}));"


@pytest.fixture
def mac(tmp_path: Path) -> FakeMac:
    return FakeMac(tmp_path)


def run(mac: FakeMac, program: str, *argv: Any, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(mac.bin_dir / program), *map(str, argv)]
    pipes: dict[str, Any] = {"input": stdin, "capture_output": True, "text": True}
    return subprocess.run(command, **pipes, timeout=PATIENCE_S, env=mac.env(), cwd=mac.folder)


def jxa(mac: FakeMac, source: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return run(mac, "osascript", "-l", "JavaScript", "-", *argv, stdin=source)


ERRORS = {
    "throw new Error('boom')": "execution error: Error: Error: boom (-2700)\n",
    "throw new Error('')": "execution error: Error: Error (-2700)\n",
    "throw 'plain text (-1712)'": "execution error: Error: plain text (-1712) (-2700)\n",
    "function run( {": "-: syntax error: Error on line 1: SyntaxError:",
    "({a: 1})": "fakemac strict: the script did not return a string\n",
}


def test_osascript_errors_have_the_real_texts(mac: FakeMac) -> None:
    assert {source: jxa(mac, source).stderr[: len(start)] for source, start in ERRORS.items()} == ERRORS


# A script and its result on the default fake Mac; an error is its number or a part of its text.
FACTS: dict[str, tuple[str, Any]] = {
    # must come first, before any import
    "no import, no name": ("[typeof $.CGMainDisplayID, typeof $.NSScreen]", ["undefined", "undefined"]),
    "node's own names": (
        "[typeof setTimeout, typeof require, typeof process, typeof Buffer, typeof URL]", ["undefined"] * 5,
    ),
    "a bare CF ref": (
        "(ObjC.import('CoreGraphics'), typeof ObjC.deepUnwrap($.CGWindowListCopyWindowInfo(17, 0)))",
        "undefined",
    ),
    "an undefined argument": ("$.CGWindowListCopyWindowInfo($.kCGNoSuchName, 0)", "argument 1 is undefined"),
    "not a number": ("$.CGPointMake(0 / 0, 1)", "CGPointMake: x is NaN"),
    "a bridged string": (
        "[String($('x')), $('x').js, $().isNil(), $('x').isNil()]", ["[id __NSCFString]", "x", True, False],
    ),
    "a preflight that is not bound": ("typeof $.CGPreflightScreenCaptureAccess", "undefined"),
    "an untyped Ref": (
        "(ObjC.import('ApplicationServices'), $.AXUIElementCopyAttributeValue(ObjC.castRefToObject("
        "$.AXUIElementCreateApplication(410)), $('AXTitle'), Ref()))",
        "Ref has incompatible type",
    ),
    "64-bit integers": (
        "(ObjC.import('AppKit'), app => [typeof $.NSWorkspace.sharedWorkspace.runningApplications.count,"
        " typeof app.activationPolicy, typeof app.processIdentifier])"
        "($.NSWorkspace.sharedWorkspace.frontmostApplication)",
        ["string", "string", "number"],
    ),
    "AX: no such attribute": (
        "(" + AX_BINDINGS + ", read($.AXUIElementCreateApplication(410), 'AXNothing')[0])", -25205,
    ),
    "AX values are only described": (
        "read(windowsOf(410).objectAtIndex(0), 'AXPosition')[1].description.js",
        "{value = x:120.000000 y:120.000000 type",
    ),
    "AX: many attributes, one of them missing": (
        "(ObjC.bindFunction('AXUIElementCopyMultipleAttributeValues',"
        " ['int', ['id', 'id', 'unsigned int', 'id*']]),"
        " many(windowsOf(410).objectAtIndex(0), ['AXRole', 'AXValue'], 0))",
        [0, "AXWindow", "<AXValue 0x600003c2> {value = error:-25205 type = kAXValueAXErrorType}"],
    ),
}  # fmt: skip
HARNESS = """
function read(element, name) { var out = Ref(); return [$.AXUIElementCopyAttributeValue(element, $(name),
out), out[0]] }
function windowsOf(pid) { return read($.AXUIElementCreateApplication(pid), 'AXWindows')[1] }
function many(element, names, options) {
  var out = Ref(), code = $.AXUIElementCopyMultipleAttributeValues(element, $(names), options, out);
  return code ? [code] : [code, out[0].objectAtIndex(0).js, out[0].objectAtIndex(1).description.js];
}
function tried(f) { try { return f() } catch (e) { return e.errorNumber || String(e) } };
"""


def test_bridge_answers_and_refuses_like_a_mac(mac: FakeMac) -> None:
    tries = ", ".join(f"tried(() => {source})" for source, _ in FACTS.values())
    done = jxa(mac, f"{HARNESS} JSON.stringify([{tries}])")
    assert (done.returncode, done.stderr) == (0, "")
    answers = dict(zip(FACTS, json.loads(done.stdout)))
    texts = {name: expected for name, (_, expected) in FACTS.items() if isinstance(expected, str)}
    assert [name for name, text in texts.items() if text not in str(answers[name])] == []
    rest = {name: expected for name, (_, expected) in FACTS.items() if name not in texts}
    assert {name: answers[name] for name in rest} == rest


# A script that types into TextEdit, and the text afterwards; before, it is "eggs\nmilk".
TYPED = {
    "an a without rebind": ("key(0, 0, 'caf\u00e9')", "eggs\nmilka"),
    "20 units an event": (
        REBIND + "key(0, 0, 'abcdefghijklmnopqrstuvwxyz')",
        "eggs\nmilkabcdefghijklmnopqrst",
    ),
    "half a surrogate pair is no character": (
        REBIND + "key(0, 0, '\U0001f600'.slice(0, 1)); key(0, 0, '\U0001f600'.slice(1))",
        "eggs\nmilk\ufffd\ufffd",
    ),
    "a newline is lost": (REBIND + "key(0, 0, 'a\\nb')", "eggs\nmilkab"),
    "a Command flag leaks": (
        REBIND + "key(0, 0x100000); key(0, undefined, 'lost'); key(0, 0, 'kept')",
        "kept",
    ),
}


@pytest.mark.parametrize(("script", "expected"), TYPED.values(), ids=TYPED.keys())
def test_typing_needs_the_rebind_and_zero_flags(mac: FakeMac, script: str, expected: str) -> None:
    mac.activate("TextEdit")
    jxa(mac, f"{POST} {script}; 'x'")
    assert mac.widget(1030, "text")["value"] == expected


def test_impossible_events_are_dropped(mac: FakeMac) -> None:
    wrong_button = "mouse(1, 900, 210, 1); mouse(2, 900, 210, 1); mouse(25, 900, 210, 0);"
    no_points_between = "mouse(1, 900, 300); mouse(2, 950, 300);"
    chords_without_their_flags = "key(123, 0x40000); key(115, 0x100000); key(117, 0x80000);"
    jxa(mac, POST + wrong_button + no_points_between + chords_without_their_flags + "'x'")
    assert {event["kind"] for event in mac.events()} - {"activate", "raise", "lost"} == {"dropped"}


WINDOW, NO_WINDOW = ("screencapture", "-x", "-a", "-o", "-l"), "could not create image from window\n"
NO_SDK = "<unknown>:0: error: unable to load standard"
REFUSED_PROGRAMS: dict[str, tuple[list[str], int, str]] = {
    "an unknown flag": (["screencapture", "-Z", "s.png"], 1, "screencapture: illegal option -- Z\nusage"),
    "no file": (["screencapture", "-x", "-l", "1090"], 1, "screencapture: no file specified\n"),
    "a display's id": (["screencapture", "-x", "-D", "3", "s.png"], 1, "Invalid display specified. Only 2"),
    "an unknown window": ([*WINDOW, "9999", "s.png"], 1, NO_WINDOW),
    "a window on another Space": ([*WINDOW, "1081", "s.png"], 1, NO_WINDOW),
    "a compiler without an SDK": (["xcrun", "swiftc", "a.swift", "-o", "a"], 1, NO_SDK),
    "another SDK": (["xcrun", "--sdk", "iphoneos", "swiftc", "--version"], 72, "xcrun: error"),
    "sips: no image": (["sips", "-z", "9", "9", "a.png"], 0, "Warning: a.png not a valid file"),
    "open: no such name": (["open", "-a", "X"], 1, "Unable to find application named 'X'\n"),
    "open: no such file": (["open", "/nowhere"], 1, "The file /nowhere does not exist.\n"),
}


@pytest.mark.parametrize(("words", "code", "stderr"), REFUSED_PROGRAMS.values(), ids=REFUSED_PROGRAMS.keys())
def test_programs_fail_with_the_real_codes_and_texts(
    mac: FakeMac, words: list[str], code: int, stderr: str
) -> None:
    mac.tools("good")
    done = run(mac, *words)
    assert (done.returncode, done.stdout, done.stderr[: len(stderr)]) == (code, "", stderr), done.stderr


REFUSED_BY_KEYNOTE = {
    "slide.shapes[0].id()": -1728,
    "doc.slideSize()": -1728,
    "doc.masterSlides.byName('Blank').name()": -1728,
    "slide.shapes.push(KN.Shape({shapeType: 'rectangle'}))": -1700,
    "slide.shapes[0].backgroundFillType = 'none'": -10006,
    "slide.shapes[0].objectText.alignment = 'center'": -10006,
    "slide.shapes[7].width()": -1719,
    "KN.documents.byId('nope').width()": -1728,
    "slide.shapes[0].width = 'wide'": -1700,
    "slide.shapes.push({width: 5})": -1700,
}


def test_keynote_refuses_names_outside_its_dictionary(mac: FakeMac) -> None:
    tries = "".join(
        f"try {{ {source}; numbers.push('accepted') }} catch (error) {{ numbers.push(error.errorNumber) }}\n"
        for source in REFUSED_BY_KEYNOTE
    )
    done = jxa(mac, f"{SHAPE} var numbers = []; {tries}; JSON.stringify(numbers)")
    assert dict(zip(REFUSED_BY_KEYNOTE, json.loads(done.stdout))) == REFUSED_BY_KEYNOTE


EXPORT = (ROOT / "peekaboo_min" / "integrations" / "keynote_export.applescript").read_text("utf-8")


@pytest.mark.parametrize(
    "source", [EXPORT.replace("image format:PNG", "image format:JPEG"), "do shell script"]
)
def test_applescript_runs_only_the_export_script(mac: FakeMac, source: str) -> None:
    assert run(mac, "osascript", "-", stdin=source).stderr.endswith("(-2741)\n")
