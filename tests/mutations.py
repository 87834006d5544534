"""Is every shipped line held by a test? `python tests/mutations.py [PART OF A NAME...]` breaks them, one at a time.

Each mutation is made in a copy of the tree in a temporary folder, and the test files that should see it run there, the
likeliest tests first (`--near`: those alone, in a third of the time). Prints a table, caught or survived, and the counts;
exits 1 when fewer than 97 of 100 are caught. A test that fails without any mutation is left out, so that only a mutation
can be what is caught; what is caught is a test that fails twice, never a collection error, a fixture that cannot be made
(a source that does not compile) or the end of the time: such a mutation is "unclear". `--log FILE` appends each result as
a line of JSON. The test that caught a mutation before, by that file or by caught.jsonl beside this one, runs first: it is
only a hint, `--log tests/caught.jsonl` renews it. Mutations that change nothing a caller can see are not tried: ARGUED
says why, one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("peekaboo_min", "tests", "scripts", "pyproject.toml")
MACOS, SWIFT, CONTRACT, KEYNOTE = (
    "tests/desktop/test_macos.py",
    "tests/desktop/test_swift.py",
    "tests/desktop/test_desktop_contract.py",
    "tests/integrations/test_keynote.py",
)
HINTS = ROOT / "tests" / "caught.jsonl"
AT_ONCE = 2
TESTS_FAILED = 1  # pytest's exit code; 2 to 5 are its own troubles
LONGEST_S = 400
ENOUGH = 0.97


@dataclass(frozen=True)
class Mutation:
    """A text of a shipped file that is replaced, and the test files that should notice."""

    name: str
    file: str
    old: str
    new: str
    near: str
    """Words of the tests that run first, because they are the likeliest to notice."""
    tests: tuple[str, ...]


def _in(
    file: str, near: str, *changes: tuple[str, str, str], tests: tuple[str, ...] = (MACOS,)
) -> list[Mutation]:
    return [Mutation(name, f"peekaboo_min/{file}", old, new, near, tests) for name, old, new in changes]


MUTATIONS: list[Mutation] = [
    *_in(
        "desktop/macos/window_list.js",
        "window_list or front_to_back or screen_recording or apps_are or overlay or integers or session or menu or locked or told_apart or false_no",
        ("the reference is not cast", "const cast = ObjC.castRefToObject(list);\n    if (isNil(cast)) return null;", "const cast = list;"),
        ("no framework is imported", "ObjC.import('ApplicationServices');\n", ""),
        ("one preflight is asked for acts", "return Boolean($.AXIsProcessTrusted()) || Boolean(", "return Boolean("),
        ("the other preflight is asked for acts", " || Boolean($.CGPreflightPostEventAccess());", ";"),
        ("the on-screen bit is 2", "const ON_SCREEN_ONLY = 1;", "const ON_SCREEN_ONLY = 2;"),
        ("the option is a name that the bridge has not", "const ON_SCREEN_ONLY = 1;", "const ON_SCREEN_ONLY = $.kCGWindowListOptionOnScreenOnly;"),
        ("desktop elements are listed", "const WITHOUT_DESKTOP = 16;", "const WITHOUT_DESKTOP = 0;"),
        ("menus are of another layer", "const MENU_LAYER = 101;", "const MENU_LAYER = 3;"),
        ("no loop where the array is not unwrapped", "if (!Array.isArray(windows)) {", "if (false) {"),
        ("a list that throws ends the script", "try {\n        windows = ObjC.deepUnwrap(cast);\n    } catch (e) { /* some systems unwrap the items, but not the array */ }", "windows = ObjC.deepUnwrap(cast);"),
        ("null is not nil", "return value === null || value === undefined || (typeof", "return (typeof"),
        ("windows of every layer are ordinary", "return w.layer === 0 && w.alpha > 0 && w.bounds.width", "return w.alpha > 0 && w.bounds.width"),
        ("transparent windows are ordinary", "w.layer === 0 && w.alpha > 0 && w.bounds.width >= 50", "w.layer === 0 && w.bounds.width >= 50"),
        ("tiny windows are ordinary", " && w.bounds.width >= 50 && w.bounds.height >= 50", ""),
        ("recording is always allowed", "return Boolean($.CGPreflightScreenCaptureAccess()) || titled.size > 1;", "return true;"),
        ("one titled app is enough", "titled.size > 1;", "titled.size > 0;"),
        ("recording is never allowed", "return Boolean($.CGPreflightScreenCaptureAccess()) || titled.size > 1;", "return false;"),
        ("the preflight is not bound", "ObjC.bindFunction('CGPreflightScreenCaptureAccess', ['bool', []]);\n", ""),
        ("bounds by width", "width: Number(b.Width)", "width: Number(b.width)"),
        ("bounds by x", "x: Number(b.X)", "x: Number(b.x)"),
        ("the title is assumed", "w.kCGWindowName === undefined ? null : w.kCGWindowName", "w.kCGWindowName.trim()"),
        ("every window is on the screen", "on_screen: Boolean(w.kCGWindowIsOnscreen)", "on_screen: true"),
        ("the lock is not read", " || Boolean(Number(about.CGSSessionScreenIsLocked || 0));", ";"),
        ("another user's session is ours", "onConsole === undefined || Boolean(Number(onConsole))", "true"),
        ("frames differ by a hundred points and are the same", "Math.abs(a[key] - b[key]) <= 2", "Math.abs(a[key] - b[key]) <= 100"),
        ("no console key is another user's session", "onConsole === undefined || Boolean(Number(onConsole))", "Boolean(Number(onConsole))"),
        ("a window reaches one point further", "b.x <= point.x && point.x < b.x + b.width", "b.x <= point.x && point.x <= b.x + b.width"),
        ("what has the same edges is not enclosed", "return outer.x <= b.x && outer.y <= b.y", "return outer.x < b.x && outer.y < b.y"),
        ("frames that are rounded differ", "Math.abs(a[key] - b[key]) <= 2", "a[key] === b[key]"),
        ("nobody in front ends the script", "return isNil(app) ? null : Number(app.processIdentifier);", "return Number(app.processIdentifier);"),
        ("a protected window is any window", "is_protected: Number(w.kCGWindowSharingState) === 0,", "is_protected: false,"),
        tests=(MACOS, SWIFT),
    ),
    *_in(
        "desktop/macos/snapshot.js",
        "front_to_back or apps_are_listed or displays_are_listed or integers or menus_and_sheets or hang or modal or "
        "without_a_name or told_apart or locked_screen or bundle_id",
        ("the policy is a number", "Number(app.activationPolicy) === 0", "app.activationPolicy === 0"),
        ("every app is a regular one", "Number(app.activationPolicy) === 0", "true"),
        ("the name is read from nil", "const name = textOf(app.localizedName);", "const name = app.localizedName.js;"),
        ("bundle ids are read from nil", "textOf(app.bundleIdentifier)", "app.bundleIdentifier.js"),
        ("every window is counted", "w.pid === pid && isOrdinary(w)).length", "w.pid === pid).length"),
        ("the origin is not flipped", "const y = mainHeight - Number(frame.origin.y) - height;", "const y = Number(frame.origin.y);"),
        ("the focused screen's height", "if (i === 0) mainHeight = height;", "mainHeight = Number($.NSScreen.mainScreen.frame.size.height);"),
        ("the scale is 2", "scale: Number(screen.backingScaleFactor)", "scale: 2"),
        ("an array is returned", "return JSON.stringify({\n        windows: windows", "return ({\n        windows: windows"),
        ("only what is on the screen", ".filter(w => !seen.has(w.id))", ".filter(w => false)"),
        ("bundle ids are left out", "bundleIds.get(w.pid) || null", "null"),
        ("every window of the menu layer is a popup", " || !regular.has(w.pid)) continue;", ") continue;"),
        ("a popup belongs to nothing", "parent_id: owner ? owner.id : null});\n    }\n}", "parent_id: null});\n    }\n}"),
        ("dialogs are not asked for", "if (frontmost !== null) markModal(frontmost, windows);", ""),
        ("modal dialogs are windows", "markDialog(window, null);", ""),
        ("sheets are windows", "markDialog(windowOf(sheet, own, pid), window);", ""),
        ("nobody is minimised", "if (window) window.is_minimised = true;", ""),
        ("everybody away is minimised", "if (!Number(plainAttribute(element, 'AXMinimized', pid))) continue;", ""),
        ("an application may take its time", "limitAccessibility(ANSWER_S);", ""),
        ("all applications may take their time", "if (Date.now() < until) markMinimised", "markMinimised"),
        ("no session is an empty list", "if (onScreen === null) return JSON.stringify({windows: null});", ""),
        ("the screen is never locked", "is_locked: locked,", "is_locked: false,"),
        ("who has ended is listed", "if (pid < 0 || app.terminated || name === null) continue;", "if (name === null) continue;"),
        ("nobody is active", "is_active: pid === frontmost,", "is_active: false,"),
        ("an invisible menu is a popup", " || w.alpha <= 0 || !regular", " || !regular"),
        ("a menu belongs to a window that is away", "one.pid === w.pid && one.on_screen && isOrdinary(one)", "one.pid === w.pid && one.id !== w.id"),
        ("menus are asked about as dialogs", "w.layer >= 0 && w.layer < MENU_LAYER && w.alpha > 0);\n    if (own.length < 2)", "w.layer >= 0 && w.alpha > 0);\n    if (own.length < 2)"),
        ("a sheet belongs to nothing", "markDialog(windowOf(sheet, own, pid), window);", "markDialog(windowOf(sheet, own, pid), null);"),
        ("any display has no name", "name: textOf(screen.localizedName) || '',", "name: '',"),
        tests=(MACOS, CONTRACT),
    ),
    *_in(
        "desktop/macos/accessibility.js",
        "raised or declined or two_windows or hang or sheet or title or modal or tells_apart",
        ("the value comes through an untyped reference", "ObjC.bindFunction('AXUIElementCopyAttributeValue', ['int', ['id', 'id', 'id*']]);", "ObjC.bindFunction('AXUIElementCopyAttributeValue', ['int', ['id', 'id', 'id']]);"),
        ("an app that hangs is asked again", "if (error === CANNOT_COMPLETE) hungPids.add(pid);", ""),
        ("the timeout is one element's", "$.AXUIElementSetMessagingTimeout($.AXUIElementCreateSystemWide(), seconds);", ""),
        ("titles do not matter", "found = found.filter(w => w.title === title);", ""),
        ("the first of two is meant", "return found.length === 1 ? found[0] : null;", "return found[0] || null;"),
        ("every child is a sheet", ".filter(one => plainAttribute(one, 'AXRole', pid) === 'AXSheet')", ""),
        ("no child is a sheet", "=== 'AXSheet'", "=== 'AXDrawer'"),
        ("any window is meant", "return frame && isSameFrame(frame, target);", "return true;"),
        ("titles do not tell windows of one frame apart", "if (found.length < 2) return found;", "return found;"),
        ("a sheet cannot be meant", ".concat(...windows.map(w => sheetsOf(w, target.pid).map(sheet => [sheet, w])))", ""),
        ("places and sizes are swapped", "{x: place[0], y: place[1], width: extent[0], height: extent[1]}", "{x: extent[0], y: extent[1], width: place[0], height: place[1]}"),
        ("nothing is left of the main display", "/[xw]:(-?[\\d.]+) [yh]:(-?[\\d.]+)/", "/[xw]:([\\d.]+) [yh]:([\\d.]+)/"),
        ("another application's window is meant", "windows.filter(w => w.pid === pid && isSameFrame(w.bounds, frame))", "windows.filter(w => isSameFrame(w.bounds, frame))"),
        ("no attribute is an answer", "return error === 0 && !isNil(value[0]) ? value[0] : null;", "return value[0];"),
        tests=(MACOS, SWIFT),
    ),
    *_in(
        "desktop/macos/focus.js",
        "raised or declined or two_windows or minimised or comes_forward or title_bar or sheet or hangs_is_focused or slow_activation or by_itself",
        ("two windows of one frame are one", "if (found.length !== 1) return found.length;", "if (!found.length) return 0;"),
        ("the app is not brought forward by accessibility", "$.AXUIElementSetAttributeValue(element, $('AXFrontmost'), $(true));", ""),
        ("a minimised window stays so", "$.AXUIElementSetAttributeValue(element, $('AXMinimized'), $(false));", ""),
        ("no AXRaise", "$.AXUIElementPerformAction(element, $('AXRaise'));\n    $.AXUIElementSetAttributeValue(element, $('AXMain'), $(true));", ""),
        ("accessibility is always granted", "const trusted = mayAct();", "const trusted = true;"),
        ("an app that hangs holds the focus", "limitAccessibility(ANSWER_S);", ""),
        ("the run loop does not turn", "$.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.05));", ""),
        ("a title bar is always free", "return Boolean(top) && top.id === target.id;", "return true;"),
        ("no application is activated", "app.activateWithOptions(3);", ""),
        ("no window is made the main one", "$.AXUIElementSetAttributeValue(element, $('AXMain'), $(true));", ""),
        ("what is invisible covers a title bar", "w => w.alpha > 0 && holds(", "w => holds("),
        ("the Dock covers every title bar", " && !(w.layer !== 0 && encloses(w.bounds, target))", ""),
        ("every application is active", "is_active: frontmostPid() === target.pid,", "is_active: true,"),
        ("every window is in front", "is_front: Boolean(front) && front.id === target.id,", "is_front: true,"),
    ),
    *_in(
        "desktop/macos/elements.js",
        "element or table or on_demand or stops_answering",
        ("secrets are told", "const hasValue = !isSecret && ", "const hasValue = "),
        ("what is outside is listed", "const inside = box && intersection(box, clip);", "const inside = box;"),
        ("a scroll area does not clip", "scrolls ? inside : clip", "clip"),
        ("what an empty group holds is left out", "if (depth >= MOST_DEPTH || (scrolls && !inside)) return;", "if (depth >= MOST_DEPTH || !inside) return;"),
        ("there is no end", "if (search.found.length >= MOST_ELEMENTS ||", "if ("),
        ("a missing value is a text", "return ['string', 'number', 'boolean'].includes(typeof found) ? String(found) : '';", "return String(found);"),
        ("labels are not read", "own || labelOf(about, pid) || plain", "own || plain"),
        ("placeholders are not read", " || plain(about.AXPlaceholderValue)", ""),
        ("a tooltip is no name", " || plain(about.AXHelp)", ""),
        ("nothing is checked", "states.push('checked')", "states.length"),
        ("everything is enabled", "if (plain(about.AXEnabled) && !isYes(about.AXEnabled)) states.push('disabled');", ""),
        ("nothing has the focus", "if (isYes(about.AXFocused)) states.push('focused');", ""),
        ("everything is expanded", "['1', 'true'].includes(opened) ? 'expanded' : 'collapsed'", "'expanded'"),
        ("no tab is selected", " || (role === 'tab' && isYes(about.AXValue))", ""),
        ("subroles do not matter", "SUBROLES[subrole] || ROLES", "ROLES"),
        ("a window's own buttons are listed", "WINDOW_BUTTONS.includes(subrole) ? undefined : ", ""),
        ("images without a name are listed", "(isText || HOLD_OTHERS.includes(role)) && !name", "isText && !name"),
        ("an app is not asked for its tree", "$.AXUIElementSetAttributeValue(app, $('AXManualAccessibility'), $(true)) === 0", "false"),
        ("a menu has no elements", "if (target.is_popup) return menuAt(target);", ""),
        ("the first of two alike is read", "found.length === 1 ? found[0][0] : null", "found.length ? found[0][0] : null"),
        ("a sheet's window is read", "found[0][0] : null", "found[0][1] : null"),
        ("access is always granted", "!== API_DISABLED", "!== 1"),
        ("an application may take its time", "limitAccessibility(ANSWER_S);", ""),
        ("an app that hangs is asked on", "if (error === CANNOT_COMPLETE) hungPids.add(pid);", ""),
        ("the rows that are seen are not asked for", "[about.AXVisibleRows, about.AXChildren]", "[about.AXChildren]"),
        ("an app has its tree at once", "$.NSThread.sleepForTimeInterval(WAKE_S);", ""),
        ("a menu is what is under the pointer", "element = attribute(element, 'AXParent', target.pid);", "element = null;"),
        ("the window itself is an element", "if (role !== undefined && inside && depth > 0) {", "if (role !== undefined && inside) {"),
        ("outlines are not opened", "plain(about.AXExpanded) || plain(about.AXDisclosing)", "plain(about.AXExpanded)"),
        ("a row is not selected", "isYes(about.AXSelected) || (role", "(role"),
    ),
    *_in(
        "desktop/macos/handler.js",
        "opens or opened or guessed",
        ("every file in a folder is an application", "if (/\\.app$/.test(file)) paths", "paths"),
        ("applications have no ids", "bundle_id: id, path", "bundle_id: null, path"),
        ("an id is read from nil", "textOf(bundle.bundleIdentifier)", "bundle.bundleIdentifier.js"),
        ("a path is an address", "kind === 'url' ? $.NSURL", "kind !== 'app' ? $.NSURL"),
        ("nothing opens it, and that is not noticed", "isNil(url) ? null : about(", "about("),
        ("a person's own applications are not known", ", '~/Applications'];", "];"),
        ("a folder of the home is not found", "$(name).stringByExpandingTildeInPath", "$(name)"),
        ("the Finder is not installed", "const paths = [FINDER];", "const paths = [];"),
    ),
    *_in(
        "desktop/macos/read_text.js",
        "letters or calculators",
        ("no language is detected", "    request.automaticallyDetectsLanguage = true;", "    "),
        ("text is found upside down", "y: 1 - y - (box.origin.y + box.size.height) * height,", "y: box.origin.y,"),
        ("the text is read in a hurry", "= characters ? 1 : 0;", "= 1;"),
        ("characters are read as words", "= characters ? 1 : 0;", "= 0;"),
        ("characters are looked for in the whole image", "if (characters) request.regionOfInterest", "request.unused"),
        ("the place in a part is the place in the image", "x: x + box.origin.x * width,", "x: box.origin.x,"),
        ("parts do not overlap", "const OVERLAP = 1 / 16;", "const OVERLAP = 0;"),
        ("everything is certain", "confidence: Number(best.confidence),", "confidence: 1,"),
    ),
    *_in(
        "desktop/macos/permissions.js",
        "permissions or told_apart or another_users",
        ("accessibility is always granted", "accessibility: mayAct()", "accessibility: true"),
        ("the screen is never locked", "is_locked: Boolean(locked)", "is_locked: false"),
        ("there is always a session", "has_session: locked !== null && onScreen !== null", "has_session: true"),
        ("screenshots are always allowed", "screen_recording: canRecord(onScreen || []),", "screen_recording: true,"),
    ),
    *_in(
        "desktop/macos/automation.js",
        "keynote_may",
        ("a refusal is not known", "answers.includes(DENIED) ? false : ", ""),
        ("it is asked with a dialog", "ANY, ANY, false)", "ANY, ANY, true)"),
        ("the older Keynote is not asked about", "['com.apple.Keynote', 'com.apple.iWork.Keynote'].map", "['com.apple.Keynote'].map"),
        ("what nobody allowed is allowed", "answers.includes(0) ? true : null", "true"),
    ),
    *_in(
        "desktop/macos/probe.js",
        "every_fact or report_says or contradicts or missing_grant or probe_compiles",
        ("the probe converts before it looks", "{policy: typeof policy, count: typeof count,", "{policy: typeof Number(policy), count: typeof Number(count),"),
        ("the probe's text is not rebound", "ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);\n", ""),
        ("the probe's text is big-endian", "$.NSUTF16LittleEndianStringEncoding", "$.NSUTF16BigEndianStringEncoding"),
        ("the probe asks itself who is responsible", "Number($.responsibility_get_pid_responsible_for_pid(asked.pid))", "asked.pid"),
        ("the probe's axes are swapped", "[WHEEL_1, WHEEL_2].map", "[WHEEL_2, WHEEL_1].map"),
    ),
    *_in(
        "desktop/macos/input.js",
        "jxa",
        ("no click state", "$.CGEventSetIntegerValueField(event, CLICK_STATE, clickState);", ""),
        ("the wrong field for the click state", "const CLICK_STATE = 1;", "const CLICK_STATE = 3;"),
        ("flags are not set", "$.CGEventSetFlags(event, flags);", ""),
        ("a click has no modifiers", "button.down, point, button.number, count, request.flags);", "button.down, point, button.number, count, 0);"),
        ("events inherit held modifiers", "const source = $.CGEventSourceCreate(PRIVATE_STATE);", "const source = $.CGEventSourceCreate(0);"),
        ("nothing is posted", "$.CGEventPost(HID_TAP, event);", ""),
        ("the pointer is not moved first", "postMouse(source, MOVED, point, 0, 0, 0);", ""),
        ("access is not asked for", "if (!mayAct()) {", "if (false) {"),
        ("either preflight's no blocks", "if (!mayAct()) {", "if (!$.AXIsProcessTrusted() || !$.CGPreflightPostEventAccess()) {"),
        ("the Unicode string is not rebound", "ObjC.bindFunction('CGEventKeyboardSetUnicodeString', ['void', ['void *', 'unsigned long', 'void *']]);", ""),
        ("surrogate pairs are split", "function characters(text) {", "function characters(text) {\n    return text.split('');"),
        ("40 units in an event", "const PIECE = 20;", "const PIECE = 40;"),
        ("big-endian units", "$.NSUTF16LittleEndianStringEncoding", "$.NSUTF16BigEndianStringEncoding"),
        ("a newline is text", "'\\n': 36, ", ""),
        ("right is left", "right: {number: 1, down: 3, up: 4, dragged: 7}", "right: {number: 0, down: 1, up: 2, dragged: 6}"),
        ("no pause after an event", "$.CGEventPost(HID_TAP, event);\n    sleep(pauseSeconds);", "$.CGEventPost(HID_TAP, event);"),
        ("the hand does not look before it moves", "    checkReached(request.window, point);\n    const answer", "    const answer"),
        ("the hand does not look before it presses", "answer.is_certain = checkReached(request.window, point) && answer.is_certain;", ""),
        ("a moved window is clicked", "if (!isSameFrame(now.bounds, target)) {", "if (false) {"),
        ("what covers is clicked", "if (passes === false) {", "if (false) {"),
        ("every overlay lets clicks through", "? letsThrough(w, now, point) : false;", "? true : false;"),
        ("no overlay lets clicks through", "if (isDock(over.pid)) return true;", ""),
        ("an overlay of the same app is no doubt", "if (pid === null || over.pid === target.pid) return null;", "if (pid === null) return null;"),
        ("a doubt is none", "if (passes === null) isCertain = false;", ""),
        ("an open menu is no doubt", "let isCertain = !windows.some(w => w.layer === MENU_LAYER && w.alpha > 0 && w.id !== target.id);", "let isCertain = true;"),
        ("a closed window is clicked", "if (!now) throw refusal('WINDOW_NOT_FOUND'", "if (!now) return true; if (false) throw refusal('WINDOW_NOT_FOUND'"),
        ("a second click goes anywhere", "if (!reason.refused || answer.done === 0) throw reason;\n            return answer;", ""),
        ("a pointer that is elsewhere presses", "if (!isNear(answer.pointer, point)) return answer;", ""),
        ("a locked screen is acted on", "if (locked) throw", "if (false) throw"),
        ("the focus is not looked at", "        checkKeyboard(request.window, sent);\n        if (isStopped(request)) throw stopped(sent);\n        postKey", "        if (isStopped(request)) throw stopped(sent);\n        postKey"),
        ("a key goes to anybody", "        checkKeyboard(request.window, sent);\n        if (isStopped(request)) throw stopped(sent);\n        // key codes", "        // key codes"),
        ("any window of the app is the one", "if (!focused || focused.id !== target.id) throw lost(focused);", ""),
        ("another app is the one", "if (pid !== target.pid) throw lost(front);", ""),
        ("a menu does not take keys", "const menu = windows.find(w => w.pid === pid && w.layer === MENU_LAYER && w.alpha > 0);", "const menu = null;"),
        ("accessibility does not tell the focus", "focusedWindow(pid, own) || front", "front"),
        ("the run loop does not turn", "$.NSRunLoop.currentRunLoop.runUntilDate($.NSDate.dateWithTimeIntervalSinceNow(0.001));", ""),
        ("the stop file is not looked at", "return $.NSFileManager.defaultManager.fileExistsAtPath($(request.stop_file));", "return false;"),
        ("nothing is counted", "sent += piece.length;", ""),
        ("a wheel turns the other way", "up: [1, 0], down: [-1, 0]", "up: [-1, 0], down: [1, 0]"),
        ("a wheel to the left turns right", "left: [0, 1], right: [0, -1]", "left: [0, -1], right: [0, 1]"),
        ("a wheel counts pixels", "const LINE_UNIT = 1;", "const LINE_UNIT = 0;"),
        ("a notch is a line", "const LINES_A_NOTCH = 3;", "const LINES_A_NOTCH = 1;"),
        ("a wheel turns all at once", "atPointer(request, request.amount, source", "atPointer(request, 1, source"),
        ("a drag has no points between", "for (let step = 1; step <= DRAG_STEPS; step++) {", "for (let step = DRAG_STEPS; step <= DRAG_STEPS; step++) {"),
        ("a drag is a move", "postMouse(source, button.dragged, point", "postMouse(source, MOVED, point"),
        ("a drag ends where it began", "postMouse(source, button.up, end, button.number, 1, 0);", "postMouse(source, button.up, start, button.number, 1, 0);"),
        ("the button stays down", "postMouse(source, button.up, end, button.number, 1, 0);", ""),
        ("a key is not held", "if (down && hold) hold();", ""),
        ("a held key is not stopped", "left > 0 && !isStopped(request)", "left > 0"),
        ("a key is not repeated", "sent < request.repeat; sent++", "sent < 1; sent++"),
        ("a text has no pauses", "if (sent) sleep(request.delay_ms / 1000);", ""),
        ("a text with pauses goes in pieces", "request.delay_ms ? 1 : PIECE", "PIECE"),
        ("a chord of another layout is held", "if (isElsewhere && request.hold_ms) {", "if (false) {"),
        ("a wrong field is taken", "if (!isRight(request[name])) throw invalid(name);", ""),
        ("every object has acts", "typeof value === 'string' && Object.keys(table).includes(value)", "value in table"),
        ("the layout is not looked up", "const isElsewhere = layout !== '' && !request.layouts.includes(layout);", "const isElsewhere = false;"),
        ("every layout is another", "const isElsewhere = layout !== '' && !request.layouts.includes(layout);", "const isElsewhere = request.character !== undefined;"),
        ("the person is locked out", "$.CGEventSourceSetLocalEventsSuppressionInterval(source, 0);", ""),
        ("an app may take its time", "limitAccessibility(ANSWER_S);", ""),
        ("transparent windows cover", "if (w.alpha <= 0 || !holds(w.bounds, point)) continue;", "if (!holds(w.bounds, point)) continue;"),
        ("a pointer far away is there", "Math.abs(now.x - point.x) <= 1 && Math.abs(now.y - point.y) <= 1", "Math.abs(now.x - point.x) <= 100 && Math.abs(now.y - point.y) <= 100"),
        ("the pointer is not waited for", "for (let i = 0; i < 20 && !isNear(now, point); i++) {", "for (let i = 0; i < 0; i++) {"),
        ("a point outside the window is clicked", "throw refusal('WINDOW_COVERED', `that point is outside window ${target.id}`);", "return false;"),
        ("units are counted, not characters", "length: Array.from(chunk).length", "length: chunk.length"),
        ("the stop file during a hold is forgotten", "if (request.hold_ms && isStopped(request)) throw stopped(sent + 1);", ""),
        ("half a character is a text", "typeof value === 'string' && !/[\\ud800-\\udfff]/u.test(value)", "typeof value === 'string'"),
        ("a pause may be endless", "delay_ms: whole(0, 1000),", "delay_ms: whole(0, 1e9),"),
        ("a key is repeated for ever", "repeat: whole(1, 100),", "repeat: whole(1, 1e9),"),
        ("no window is a window", "w => w !== null && typeof w === 'object' && whole", "w => typeof w === 'object' && whole"),
        ("another menu takes the keys", "if (menu && target.is_popup && menu.id === target.id) return;", "if (menu && target.is_popup) return;"),
        ("the modifiers of a character are not held", "{using: request.using}", "{using: []}"),
        ("a wheel turns without pauses", "lines[0], lines[1], 0), 0, 0.02);", "lines[0], lines[1], 0), 0, 0);"),
        ("keys come without pauses", "post(event, flags, 0.008);", "post(event, flags, 0);"),
        ("a lock in the middle tells nothing went out", "throw Object.assign(reason, {sent: sent});", "throw reason;"),
        ("one preflight answers for both", "post_event: Boolean($.CGPreflightPostEventAccess()),", "post_event: Boolean($.AXIsProcessTrusted()),"),
        ("an invisible menu takes the keys", "const menu = windows.find(w => w.pid === pid && w.layer === MENU_LAYER && w.alpha > 0);", "const menu = windows.find(w => w.pid === pid && w.layer === MENU_LAYER);"),
        tests=(SWIFT, MACOS),
    ),
    *_in(
        "desktop/macos/input.swift",
        "not jxa",
        ("Swift: no click state", "event?.setIntegerValueField(.mouseEventClickState, value: Int64(clickState))", "_ = clickState"),
        ("Swift: flags are not set", "event.flags = flags", "_ = flags"),
        ("Swift: access is not asked for", "guard AXIsProcessTrusted() || CGPreflightPostEventAccess() else", "guard AXIsProcessTrusted() || true else"),
        ("Swift: either preflight's no blocks", "guard AXIsProcessTrusted() || CGPreflightPostEventAccess() else", "guard AXIsProcessTrusted() && CGPreflightPostEventAccess() else"),
        ("Swift: an inherited event source", "stateID: .privateState", "stateID: .combinedSessionState"),
        ("Swift: the person is locked out", "source.localEventsSuppressionInterval = 0", "source.localEventsSuppressionInterval = 0.25"),
        ("Swift: 40 units in an event", "let piece = 20", "let piece = 40"),
        ("Swift: down and up are swapped", "for down in [true, false]", "for down in [false, true]"),
        ("Swift: the hand does not look before it moves", "_ = try checkReached(expected, place)", ""),
        ("Swift: the hand does not look before it presses", "isCertain = try checkReached(expected, place) && isCertain", "isCertain = try isCertain || checkReached(expected, place)"),
        ("Swift: a moved window is clicked", "guard isSameFrame(now.frame, target.frame) else", "guard isSameFrame(now.frame, now.frame) else"),
        ("Swift: every overlay lets clicks through", "switch isOverlay ? letsThrough(window, now, point) : false {", "switch isOverlay ? Optional(true) : false {"),
        ("Swift: no overlay lets clicks through", "if NSRunningApplication(processIdentifier: over.pid)?.bundleIdentifier == dock { return true }", ""),
        ("Swift: an overlay of the same app is no doubt", "guard let pid = pidAt(point), over.pid != target.pid else { return nil }", "guard let pid = pidAt(point) else { return nil }"),
        ("Swift: an open menu is no doubt", "var isCertain = !windows.contains { $0.layer == menuLayer && $0.alpha > 0 && $0.id != now.id }", "var isCertain = true"),
        ("Swift: transparent windows cover", "for window in windows where window.alpha > 0 && window.frame.contains(point)", "for window in windows where window.frame.contains(point)"),
        ("Swift: an app that hangs is asked again", "if error == .cannotComplete { hungPids.insert(pid) }", ""),
        ("Swift: an app may take its time", "AXUIElementSetMessagingTimeout(AXUIElementCreateSystemWide(), answerSeconds)", ""),
        ("Swift: titles do not matter", "found = found.filter { $0.title == title }", "found = found.filter { $0.title == title || true }"),
        ("Swift: the run loop does not turn", "RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.001))", ""),
        ("Swift: another app is the one", "guard let pid = pid, pid == target.pid else", "guard let pid = pid else"),
        ("Swift: any window of the app is the one", "if focused?.id != Int(target.id) { throw lost(focused) }", "_ = focused"),
        ("Swift: a menu does not take keys", "$0.pid == pid && $0.layer == menuLayer && $0.alpha > 0 }", "$0.pid == pid && $0.layer == -menuLayer }"),
        ("Swift: accessibility does not tell the focus", "focusedWindow(pid, own) ?? front", "own.isEmpty ? nil : front"),
        ("Swift: the stop file is not looked at", "{ FileManager.default.fileExists(atPath: file) }", "{ file.isEmpty }"),
        ("Swift: nothing is counted", "sent += part.length", "sent += part.length * 0"),
        ("Swift: a locked screen is acted on", 'if isLocked || !isOnConsole { throw', 'if isLocked && !isOnConsole { throw'),
        ("Swift: a second click goes anywhere", "if done == 0 { throw refusal }\n            break", "if done == 0 { throw refusal }"),
        ("Swift: a wheel turns the other way", '"up": (1, 0), "down": (-1, 0)', '"up": (-1, 0), "down": (1, 0)'),
        ("Swift: the wheels are swapped", "wheel1: vertical * linesANotch,\n            wheel2: horizontal * linesANotch", "wheel1: horizontal * linesANotch,\n            wheel2: vertical * linesANotch"),
        ("Swift: a wheel counts pixels", "units: .line", "units: .pixel"),
        ("Swift: a drag has no points between", "for step in 1...dragSteps {", "for step in dragSteps...dragSteps {"),
        ("Swift: a drag is a move", "postMouse(source, button.dragged, point", "postMouse(source, .mouseMoved, point"),
        ("Swift: the button stays down", "try postMouse(source, button.up, end, button.number, 1, [])", "_ = end"),
        ("Swift: a key is not held", "if down { hold() }", "if !down { hold() }"),
        ("Swift: a key is not repeated", "for sent in 0..<repeats {", "for sent in 0..<min(repeats, 1) {"),
        ("Swift: a text has no pauses", "if sent > 0 { Thread.sleep(forTimeInterval: Double(delay) / 1000) }", ""),
        ("Swift: a text with pauses goes in pieces", "most: delay > 0 ? 1 : piece", "most: piece"),
        ("Swift: a wrong number is taken", "let number = Int(exactly: value), range.contains(number) else", "let number = Optional(Int(value)), range.contains(number) else"),
        ("Swift: any number is taken", "let number = Int(exactly: value), range.contains(number) else", "let number = Int(exactly: value), number == number else"),
        ("Swift: a pointer that is elsewhere presses", "while isThere(pointer, place) && done < times {", "while done < times {"),
        ("Swift: sizes do not matter", "\n        && isNear(Double(a.width), Double(b.width)) && isNear(Double(a.height), Double(b.height))", ""),
        ("Swift: frames that are rounded differ", "within: Double = 2) -> Bool", "within: Double = 0) -> Bool"),
        ("Swift: tiny windows are ordinary", " && frame.width >= 50 && frame.height >= 50 }", " }"),
        ("Swift: invisible windows are ordinary", "var isOrdinary: Bool { layer == 0 && alpha > 0 &&", "var isOrdinary: Bool { layer == 0 &&"),
        ("Swift: no console key is another user's session", 'session["kCGSSessionOnConsoleKey"] as? Bool ?? true', 'session["kCGSSessionOnConsoleKey"] as? Bool ?? false'),
        ("Swift: a point outside the window is clicked", "throw Refusal(code: \"WINDOW_COVERED\", message: \"that point is outside window \\(now.id)\")", "return false"),
        ("Swift: the pointer is not waited for", "for _ in 0..<20 {", "for _ in 0..<0 {"),
        ("Swift: a pointer far away is there", "isNear(Double(now.x), Double(point.x), within: 1) && isNear(Double(now.y), Double(point.y), within: 1)", "isNear(Double(now.x), Double(point.x), within: 100) && isNear(Double(now.y), Double(point.y), within: 100)"),
        ("Swift: clusters are counted, not characters", "Array(chunk.utf16), chunk.unicodeScalars.count)", "Array(chunk.utf16), chunk.count)"),
        ("Swift: a held key is not stopped", "by: -holdStepMs) where !isStopped(stopFile) {", "by: -holdStepMs) {"),
        ("Swift: the stop file during a hold is forgotten", "if holdMs > 0 && isStopped(stopFile) { throw stopped(sent: sent + 1) }", ""),
        ("Swift: no pause after a mouse event", "pause: 0.03)", "pause: 0)"),
        ("Swift: keys come without pauses", "pause: 0.008)", "pause: 0)"),
        ("Swift: a wheel turns without pauses", "pause: 0.02)", "pause: 0)"),
        ("Swift: one preflight answers for both", '"post_event": CGPreflightPostEventAccess(),', '"post_event": AXIsProcessTrusted(),'),
        ("Swift: another menu takes the keys", "if let menu = menu, target.isPopup, menu.id == Int(target.id) { return }", "if menu != nil, target.isPopup { return }"),
        ("Swift: a lock in the middle tells nothing went out", "refusal.sent = sent\n", "refusal.sent = 0\n"),
        ("Swift: whatever is at the point lets clicks through", "return pid == target.pid\n", "return pid != over.pid || pid == target.pid\n"),
        ("Swift: a pause may be endless", 'need(request.delayMs, "delay_ms", in: 0...1000)', 'need(request.delayMs, "delay_ms", in: 0...1_000_000)'),
        ("Swift: a key is repeated for ever", 'need(request.repeats, "repeat", in: 1...100)', 'need(request.repeats, "repeat", in: 1...1_000_000)'),
        ("Swift: another application's window has the focus", "windows.filter { $0.pid == pid && isSameFrame($0.frame, frame) }", "windows.filter { isSameFrame($0.frame, frame) }"),
        ("Swift: an invisible menu takes the keys", "$0.layer == menuLayer && $0.alpha > 0 }\n    guard let pid", "$0.layer == menuLayer }\n    guard let pid"),
        ("Swift: a private event source is not needed for the wheel", "scrollWheelEvent2Source: source, units", "scrollWheelEvent2Source: nil, units"),
        tests=(SWIFT,),
    ),
    *_in(
        "desktop/macos/backend.py",
        "screenshot or rectangle or displays or told_apart or exact_point or chosen_by or screen_recording or accessibility or front_to_back or thief or without_a_session",
        ("the shadow is captured", 'shadow = [] if with_shadow else ["-o"]', "shadow = []"),
        ("the shutter is heard", '["screencapture", "-x", *options', '["screencapture", *options'),
        ("-D counts from 0", '["-D", str(display.number)]', '["-D", str(display.number - 1)]'),
        ("-R in pixels", "for number in (rect.x, rect.y, rect.width, rect.height))", "for number in (rect.x * 2, rect.y * 2, rect.width * 2, rect.height * 2))"),
        ("-R by corners", "(rect.x, rect.y, rect.width, rect.height))]", "(rect.x, rect.y, rect.x + rect.width, rect.y + rect.height))]"),
        ("alike displays are told by their numbers", "if display.has_twin else", "if False else"),
        ("the main display has a twin too", "has_twin=number > 1 and sizes", "has_twin=sizes"),
        ("only sizes in points are compared", "(display.bounds.width * display.scale, display.bounds.height * display.scale)", "(display.bounds.width, display.bounds.height * display.scale)"),
        ("-D is believed", "if info and (info.width, info.height) != expected:", "if False:"),
        ("the kind is not passed on", '"-t", kind, str(path)]', "str(path)]"),
        ("no permission is asked before a window's capture", "if window.title is None:", "if False:"),
        ("no permission is asked before a display's capture", 'if not _grants()["screen_recording"]:', "if False:"),
        ("an exit code of 0 is success", "if done.code or not path.is_file() or not path.stat().st_size:", "if done.code:"),
        ("an exit code is nothing", "if done.code or not path.is_file() or", "if not path.is_file() or"),
        ("sips takes the width first", '"sips", "-z", str(height), str(width)', '"sips", "-z", str(width), str(height)'),
        ("sips is asked for jpg", '"jpeg" if kind == "jpg" else kind', "kind"),
        ("a locked screen is any failure", 'if grants["is_locked"]:', "if False:"),
        ("no session is an empty list", 'if scene["windows"] is None:\n            raise no_session_error()', 'if scene["windows"] is None:\n            scene["windows"] = []'),
        ("any window of the app has the keyboard", "if window.is_on_screen and window.is_ordinary", "if window.is_on_screen"),
        ("a modal panel has no keyboard", "if window.is_on_screen and window.is_ordinary", "if window.is_on_screen and window.is_ordinary and window.layer == 0"),

        ("a popup is focused", "if window.is_popup:\n            return", "if False:\n            return"),
        ("titles are lost", 'title=title or "" if can_record else title', 'title=""'),
        ("hidden titles are not noticed", 'can_see_titles=scene["can_record"]', "can_see_titles=True"),
        ("any application of that name", 'App(clean_text(row["name"]), bundle_id=row["bundle_id"])', 'App(clean_text(row["name"]))'),
        ("an application by its name", '"-b" if handler.bundle_id else "-a"', '"-a"'),
        ("a failed opener is success", "        if done.code:\n            raise PeekabooError(\n                ErrorCode.PROGRAM_FAILED,\n                f\"{handler", "        if False:\n            raise PeekabooError(\n                ErrorCode.PROGRAM_FAILED,\n                f\"{handler"),
        ("elements in the order of the tree", "return sorted(elements, key=lambda element: (round(element.box.centre.y / _LINE), element.box.x))", "return elements"),
        ("an app that hangs offers nothing", "    if is_hung:\n", "    if False:\n"),
        ("a crash over Keynote takes all along", "if e.code in (ErrorCode.CANCELLED, ErrorCode.MISSING_PROGRAM):", "if True:"),
        ("without a session there are grants", 'if not grants["has_session"]:', "if False:"),
        ("the middle of a window is its title bar", "window.bounds.y + _TITLE_BAR_HALF", "window.bounds.centre.y"),
        ("each press may be held ten seconds", "if hold_ms * repeat > _LONGEST_HOLD_MS:", "if hold_ms > _LONGEST_HOLD_MS:"),
        ("what sips left is believed", " or read_image_info(target) is None:", ":"),
        ("sips cannot fail", "if done.code or not target.is_file() or read", "if not target.is_file() or read"),
        ("text is found by the height", 'Rect(row["x"] * width,', 'Rect(row["x"] * height,'),
        ("a window that is away has the keyboard", "if window.is_on_screen and window.is_ordinary", "if window.is_ordinary"),
        ("a JPEG has the quality that sips likes", 'form += ["-s", "formatOptions", str(quality)]', "pass"),
        ("everything is selected by ctrl", 'KeyChord("a", ("cmd",))', 'KeyChord("a", ("ctrl",))'),
        ("what is unknown is denied", "        return answer\n    except", "        return bool(answer)\n    except"),
        ("another window of the app counts as focused", 'if state["is_active"] and (state["is_front"] or state["matches"] == 1):', 'if state["is_active"]:'),
        ("a title bar is clicked that something covers", ' and state["title_bar_is_free"]:', ":"),
        ("a title bar is clicked without being asked for", "if may_click and state", "if state"),
        tests=(MACOS, CONTRACT),
    ),
    *_in(
        "desktop/macos/input.py",
        "every_key or chord or flags_of_their_own or menu or thief or helper or helper_is_compiled",
        ("a refusal of input is success", 'if not answer["ok"]:', "if False:"),
        ("the helper is never used", 'None if "character" in request else find_helper()', "None"),
        ("chords by place alone", 'request |= {"character": character,', '_ = {"character": character,'),
        ("no press is a delivered one", 'if not answer["done"]:', "if False:"),
        ("a doubtful press is a delivered one", 'Delivery(True if answer["is_certain"] and answer["done"] == times else None, pointer)', "Delivery(True, pointer)"),
        ("what went out is not said", 'message += f"; {sent} {what_went_out}"', "pass"),
        ("return is enter", '"return": 36', '"return": 76'),
        ("a and s are swapped", '"a": 0, "s": 1', '"a": 1, "s": 0'),
        ("cmd is ctrl", '"cmd": 0x100000', '"cmd": 0x40000'),
        ("plus is not shifted", '*(["shift"] if chord.key == "plus" else [])', ""),
        ("arrows have no flags", 'dict.fromkeys(("left", "right", "up", "down"), _FUNCTION | _KEYPAD)', 'dict.fromkeys(("left", "right", "up", "down"), _FUNCTION)'),
        ("page keys have no flags", '"page_up", "page_down", "delete", "insert"), _FUNCTION)', '"page_up", "page_down", "delete", "insert"), 0)'),
        ("f keys have no flags", '{f"f{number}": _FUNCTION for', '{f"f{number}": 0 for'),
        ("German is a US layout", '"US", "ABC"', '"US", "German", "ABC"'),
        ("what went out before a stop is not said", "if sent or code is ErrorCode.FOCUS_LOST:", "if code is ErrorCode.FOCUS_LOST:"),
        ("a part of the clicks is all of them", 'if answer["is_certain"] and answer["done"] == times else None', 'if answer["is_certain"] else None'),
        ("a letter with alt alone is a place", '{"cmd", "ctrl", "alt", "super"}', '{"cmd", "ctrl", "super"}'),
        ("super is not held", '"super": "command down", ', ""),
        ("plus is no character", ', "plus": "+",', ","),
        ("the helper inherits no lock", "            pass_fds=held_locks(),\n        )", "        )"),
    ),
    *_in(
        "desktop/macos/osascript.py",
        "script_error",
        ("a number anywhere is the error's", r'_NUMBER_AT_END = re.compile(r"\((-?\d+)\)\s*$")', r'_NUMBER_AT_END = re.compile(r"\((-?\d+)\)")'),
        ("-1719 is always accessibility", 'elif number == -1719 and "assistive" in details:', "elif number == -1719:"),
        ("the argument is part of the source", '"JavaScript", "-"), json.dumps(argument)]', '"JavaScript"), json.dumps(argument)]'),
        ("a crash is a failed script", "elif exit_code < 0 or exit_code > 128:", "elif False:"),
        ("a Keynote that quits is a failed script", "    -609: (ErrorCode.APP_NOT_FOUND, \"the application quit in the middle\"),\n", ""),
        ("a consent that nobody gave is a failed script", "    -1744: (ErrorCode.PERMISSION_DENIED_AUTOMATION, \"controlling that application was never allowed\"),\n", ""),
        ("a crash behind a shell is a failed script", "elif exit_code < 0 or exit_code > 128:", "elif exit_code < 0:"),
        ("the hand inherits no lock", "        pass_fds=pass_fds,\n    )", "    )"),
        ("the parent alone is the host", "for _ in range(64):", "for _ in range(2):"),
    ),
    *_in(
        "desktop/macos/osascript.py",
        "ancestry or without_screen_recording_nothing",
        ("the innermost bundle", 're.compile(r"^(.*?/([^/]+)\\.app)/")', 're.compile(r"^(.*/([^/]+)\\.app)/")'),
        ("Python is the host", " and not _PYTHONS_OWN.search(command)", ""),
        ("the wrong pane", '("Screen Recording", "Privacy_ScreenCapture")', '("Screen Recording", "Privacy_Accessibility")'),
    ),
    *_in(
        "desktop/macos/swift_helper.py",
        "helper or compiler or developer_tools",
        ("the shim is asked", 'run_program(["xcode-select", "-p"], timeout_s=_ASK_S)\n', "\n"),
        ("the compiler has no SDK", '("xcrun", "--sdk", "macosx", "swiftc")', '("swiftc",)'),
        ("a failure is forgotten", "return time.time() - known.built_at < _RETRY_AFTER_S", "return False"),
        ("a timeout is remembered", "if e.code is ErrorCode.TIMEOUT:", "if False:"),
        ("another compiler is not noticed", "if known.compiler != compiler:", "if False:"),
        ("a lost helper is not noticed", "if known.path:\n        return os.access(known.path, os.X_OK)", "if known.path:\n        return True"),
        ("a lost helper is run", "if known and known.path and os.access(known.path, os.X_OK)", "if known and known.path"),
        ("another source is not noticed", "return built if built.source_digest == _source_digest() else None", "return built"),
        ("an act compiles", "known = last_build()\n    return Path(known.path)", "known = build_helper()\n    return Path(known.path)"),
        ("the compiler is waited for", "timeout_s=_COMPILE_S)", "timeout_s=600)"),
        ("nothing is compiled anew on request", "if known and not is_forced and _is_current", "if known and _is_current"),
        ("the helper of another compiler is in the same place", "{native_source(_SOURCE)}\\0{compiler}", "{native_source(_SOURCE)}"),
        ("the language version is the compiler's", '"-O", "-swift-version", "5", str', '"-O", str'),
    ),
    *_in(
        "integrations/keynote.js",
        "keynote or shape or text or document or theme or idiom or final or starting",
        ("the older Keynote is not known", "['com.apple.Keynote', 'com.apple.iWork.Keynote']", "['com.apple.Keynote']"),
        ("nothing is final", "const FINAL = [-1743, -1744, -1712, NOT_RUNNING, CONNECTION_INVALID];", "const FINAL = [];"),
        ("an unasked consent is tried again", "-1743, -1744, -1712", "-1743, -1712"),
        ("no answer is tried again", "-1743, -1744, -1712", "-1743, -1744"),
        ("a Keynote that quit is tried again", "-1712, NOT_RUNNING, CONNECTION_INVALID]", "-1712, NOT_RUNNING]"),
        ("every error is final", "if (FINAL.includes(e.errorNumber)) throw e;", "throw e;"),
        ("nobody waits", "if (left === 0 || !passing.includes(e.errorNumber)) throw e;", "throw e;"),
        ("every error is waited for", "!passing.includes(e.errorNumber)", "false"),
        ("it is not looked whether anything was made", "const isMade = () => elements.length > count;", "const isMade = () => true;"),
        ("only one idiom is tried", "firstThatWorks([by(push), isMade, by(make), isMade])", "firstThatWorks([by(push), isMade])"),
        ("the last document is used", ": before[0]; // document 1", ": before[before.length - 1]; // document 1"),
        ("always a new document", "asked.always_new || before.length === 0", "true"),
        ("never a new document", "asked.always_new || before.length === 0", "before.length === 0"),
        ("any document is the new one", "KN.documents.id().find(one => !before.includes(one))", "KN.documents.id().slice(-1)[0]"),
        ("the theme is assumed", "theme.exists() && make(", "make("),
        ("the slide keeps its layout", "doc.slides[0][property] = blank;", ""),
        ("an open document loses its layout", "const isBlank = isNew ? makeBlank(doc) : true;", "const isBlank = makeBlank(doc);"),
        ("the size is Keynote's", "documentTheme: theme, width: size.width, height: size.height", "documentTheme: theme"),
        ("slide 1 is not shown", "    doc.currentSlide = doc.slides[0];\n", ""),
        ("an index from 0", "Object.assign({index: index + 1}, place(shape))", "Object.assign({index: index}, place(shape))"),
        ("the first shape is ours", "const index = shapes.length - 1;", "const index = 0;"),
        ("the place is that which was asked for", "place(shape)); // object", "asked); // object"),
        ("the place does not matter", "if (isAt(shapes[i], asked)) alike.push(i + 1);", "alike.push(i + 1);"),
        ("the index alone tells", "alike.includes(asked.index) ? asked.index : alike.length === 1 ? alike[0] : null", "asked.index"),
        ("the index does not matter", "alike.includes(asked.index) ? asked.index : alike.length === 1 ? alike[0] : null", "alike.length ? alike[0] : null"),
        ("what is not running is started", "if (!KN.running()) return {problem: 'not_running'};", ""),
        ("a closed document is not noticed", "if (!KN.documents.id().includes(asked.document_id)) return {problem: 'no_document'};", ""),
        ("a document without its size is none", "patiently([NO_OBJECT, BAD_INDEX, CONNECTION_INVALID]", "patiently([]"),
        ("made, but its answer failed", "firstThatWorks([by(push), isMade, by(make), isMade])", "firstThatWorks([by(push), by(make)])"),
        ("a point's rounding is another place", "Math.abs(found[key] - wanted[key]) <= 1", "found[key] === wanted[key]"),
        ("properties that did not get through are left so", "if (!isAt(shape, asked)) {", "if (false) {"),
        ("the place that did not get through is left so", "        shape.position = wanted.position;\n", ""),
        ("older versions have no layouts", "use('slideLayouts', 'baseLayout'), use('masterSlides', 'baseSlide')", "use('slideLayouts', 'baseLayout')"),
        ("the older Keynote is preferred", "found.length ? found[0] : null", "found.length ? found[found.length - 1] : null"),
        tests=(KEYNOTE,),
    ),
    *_in(
        "integrations/keynote_draw.applescript",
        "idiom or refuses_every_way or applescript",
        ("AppleScript: by name", 'using terms from application id "com.apple.Keynote"', 'using terms from application "Pages"'),
        ("AppleScript: among other elements", "make new shape at end of shapes", "make new shape at end of text items"),
        ("AppleScript: width is height", "width:askedWidth, height:askedHeight", "width:askedHeight, height:askedWidth"),
        ("AppleScript: the index is 1", "set shapeIndex to shapeCount", "set shapeIndex to 1"),
        ("AppleScript: no comparison", "set shapeIndex to i", "set shapeIndex to shapeCount"),
        ("AppleScript: place before width", '(settledX as text) & "|" & (settledY as text)', '(settledY as text) & "|" & (settledX as text)'),
        ("AppleScript: slide 2", "tell slide 1 of document id deckId", "tell slide 2 of document id deckId"),
        ("AppleScript: the drawing gives up early", "with timeout of 110 seconds", "with timeout of 5 seconds"),
        ("AppleScript: width is told as height", "set settledHeight to height of shape shapeIndex", "set settledHeight to width of shape shapeIndex"),
        ("AppleScript: the drawing is anybody's", "tell application id bundleId", 'tell application id "com.apple.Keynote"'),
        tests=(KEYNOTE,),
    ),
    *_in(
        "integrations/keynote_export.applescript",
        "exported or image_is or sandboxed or gives_up",
        ("AppleScript: the export has no timeout of its own", "with timeout of 110 seconds", "with timeout of 600 seconds"),
        ("AppleScript: the export gives up early", "with timeout of 110 seconds", "with timeout of 60 seconds"),
        ("AppleScript: JPEG", "image format:PNG", "image format:JPEG"),
        ("AppleScript: the front document", "export document id deckId to", "export document 1 to"),
        ("AppleScript: the exporter is anybody", "tell application id bundleId", 'tell application id "com.apple.Keynote"'),
        tests=(KEYNOTE,),
    ),
    *_in(
        "integrations/keynote.py",
        "keynote or rectangle or text or exported or sandboxed or image_is or consent or line_breaks or shape",
        ("nothing is exported beside the target", "        _export_slide(deck, target.parent, target)  # a", "        raise  # a"),
        ("every failure is exported again", "if e.code not in (ErrorCode.PROGRAM_FAILED, ErrorCode.CAPTURE_FAILED):", "if False:"),
        ("the exported deck is left behind", "        shutil.rmtree(folder, ignore_errors=True)\n", "        pass\n"),
        ("the last slide is shown", "move_into_place(images[0], target)", "move_into_place(images[-1], target)"),
        ("carriage returns are written", '.replace("¦", "|").replace("\\r\\n", "\\n").replace("\\r", "\\n")', '.replace("¦", "|")'),
        ("a skipped slide is not noticed", '["is_skipped"]:', '["is_skipped"] and False:'),
        ("the other Keynote's terms", "(KEYNOTE_IDS[0], argv[0])", "(KEYNOTE_IDS[0], KEYNOTE_IDS[0])"),
        ("no lock", 'with file_lock("keynote.lock", KEYNOTE_S, "Keynote"):', "if True:"),
        ("a comma is no point", 'text.replace(",", ".")', "text"),
        ("a rectangle anywhere", "if not Rect(0, 0, deck.slide_width, deck.slide_height).encloses(rect):", "if False:"),
        ("any name of a file", 'if target.suffix.lower() != ".png":', "if False:"),
        ("an empty rectangle is one", "if rect.width < 1 or rect.height < 1:", "if False:"),
        ("a text of any length", "if len(text) > _LONGEST_SHAPE_TEXT:", "if False:"),
        ("control characters are written", "    if bad:\n", "    if False:\n"),
        ("whose document it was is forgotten", "before and before.is_ours and before.document_id == document_id", "before and before.document_id == document_id"),
        ("any document is the one that was ours", "before and before.is_ours and before.document_id == document_id", "before and before.is_ours"),
        ("it comes to the front while others type", 'with input_lock("macos"):', "if True:"),
        ("the text is kept, whatever is there", '"" if kept == text else', '"" if True else'),
        ("a rectangle's id changes with its index", '_replace(rectangle_index=written["index"])', "_replace(rectangle_index=written['index'], rectangle_id=f\"{deck.document_id}/1/{written['index']}\")"),
        ("no folder is made for the image", "    prepare_target(target)\n", ""),
        ("every kept line end is another text", "kept = str(written[\"text\"]).replace(\"\\r\\n\", \"\\n\").replace(\"\\r\", \"\\n\")", 'kept = str(written["text"])'),
        ("a damaged slide is shown", "if not images or read_image_info(images[0]) is None:", "if not images:"),
        tests=(KEYNOTE,),
    ),
    *_in(
        "integrations/keynote_deck.py",
        "server_begins or document or deck or finds_its_rectangle",
        ("a server has the deck of another process", "    _server_state[:] = [None]", "    pass"),
        ("any application is a Keynote", "return deck if deck.bundle_id in KEYNOTE_IDS else None", "return deck"),
        ("a deck of another version ends the command", "except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):", "except FileNotFoundError:"),
        tests=(KEYNOTE,),
    ),
    *_in(
        "automation/input.py",
        "menu_over or outside_every or will_not_come",
        ("focus is not looked at", "if window.is_focused and window.is_on_screen:", "if True:"),
        ("a blocked window is acted on", "    if dialog:\n", "    if False:\n"),
        ("a place off the screen is clicked", "if not any(display.bounds.contains(point) for display in scene.displays):", "if False:"),
        tests=(MACOS, CONTRACT),
    ),
    *_in(
        "desktop/matching.py",
        "front_to_back or menu_over",
        ("every window of an app is listed", "return window.is_ordinary and ", "return "),
        ("the Dock's full-screen window covers", "if is_there and not (window.layer != 0 and window.outer.encloses(target.bounds)):", "if is_there:"),
    ),
    *_in(
        "core/models.py",
        "front_to_back or menu_over",
        ("windows of every layer are listed", "            (self.layer == 0 or self.is_modal)\n            and self.alpha > 0", "            self.alpha > 0"),
        ("modal panels above the windows are not listed", "(self.layer == 0 or self.is_modal)", "self.layer == 0"),
        ("transparent windows are listed", "            and self.alpha > 0\n            and not self.is_popup", "            and not self.is_popup"),
        ("tiny windows are listed", "            and min(self.bounds.width, self.bounds.height) >= _SMALLEST_WINDOW\n", ""),
    ),
    *_in(
        "frontends/capture_tools.py",
        "budget or rectangle or shadow or five_errors",
        ("every program has the whole time", "with time_budget(timeoutMs / 1000):", "if True:"),
        ("always by the window's id", "if preferWindowId:", "if True:"),
        ("the scale of a picture with a shadow", "if not has_shadow or image.is_of_rect:", "if True:"),
        ("a missing permission is a failed capture", 'ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "PermissionDenied"',
         'ErrorCode.PERMISSION_DENIED_SCREEN_RECORDING: "CaptureFailed"'),
    ),
    *_in(
        "automation/capture.py",
        "tried_again or told_apart",
        ("one try", "_TRIES = 3", "_TRIES = 1"),
        ("any file is a picture", "    if info is None:",
         '    info = info or ImageInfo("png", 1, 1)\n    if False:'),
    ),
    *_in(
        "automation/coordinates.py",
        "sheet or resized",
        ("a sheet's picture is clicked", "if difference > 0.02 * max(scale_x, scale_y)", "if False"),
        ("a resized window is clicked", "if not record.bounds.has_size_of(window.bounds):", "if False:"),
        tests=(MACOS, CONTRACT),
    ),
]  # fmt: skip


# Equivalent ones: the file and the name of a mutation, and why nobody can notice it.
ARGUED: dict[tuple[str, str], str] = {
    ("accessibility.js", "no attribute is an answer"): "after an error the reference holds nothing, and "
    "every caller takes nothing as null; this is for a bridge that leaves something in it",
    ("elements.js", "the window itself is an element"): "no window, sheet or menu has a role of the table",
    ("input.swift", "Swift: whatever is at the point lets clicks through"): "what is between the two is in "
    "the list, and covers the target by itself",
    ("keynote.js", "the theme is assumed"): "a theme that is not there is refused like any such object, by "
    "every idiom, and the document is made without; the question spares the failures",
    (
        "keynote_draw.applescript",
        "AppleScript: the drawing is anybody's",
    ): "that id is replaced by that of the Keynote in use wherever it stands in the source",
    ("keynote_export.applescript", "AppleScript: the exporter is anybody"): "as in the other AppleScript",
    ("swift_helper.py", "the helper of another compiler is in the same place"): "the manifest names the "
    "compiler, and what is there is deleted before it is compiled anew",
    ("swift_helper.py", "the language version is the compiler's"): "every swiftc up to now takes 5 by itself",
    (
        "keynote_draw.applescript",
        "AppleScript: the index is 1",
    ): "the comparison that follows finds the shape; this "
    "is for a Keynote whose references compare unequal, which nobody has reported",
    (
        "keynote_draw.applescript",
        "AppleScript: no comparison",
    ): "the order is that of creation, so the last shape "
    "is the new one; the comparison is for a Keynote that orders otherwise",
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", help="of a name of a mutation or of its file")
    parser.add_argument("--near", action="store_true", help="run the likeliest tests alone")
    parser.add_argument("--log", type=Path, help="append the results, and run first what caught it before")
    options = parser.parse_args(arguments)
    chosen = [
        one
        for one in MUTATIONS
        if (Path(one.file).name, one.name) not in ARGUED
        and (not options.part or any(part in one.name or part in one.file for part in options.part))
    ]
    caught_by = {**_caught_by(HINTS), **_caught_by(options.log)}
    with tempfile.TemporaryDirectory() as name:
        clean = _copy(ROOT, Path(name) / "clean")  # the tree may be edited meanwhile
        missing = [
            one for one in chosen if (clean / one.file).read_text(encoding="utf-8").count(one.old) != 1
        ]
        for one in missing:
            print(f"{one.name}: its text does not stand exactly once in {one.file}")
        files = sorted({file for one in chosen for file in one.tests})
        failing = [] if options.near else _failing(clean, files)
        print(
            f"without a mutation {len(failing)} tests fail, and are left out",
            *failing,
            sep="\n  ",
            flush=True,
        )

        def judge(one: Mutation) -> str:
            started = time.monotonic()
            runs = [[one.tests[0], "-k", one.near], *([] if options.near else [[file] for file in one.tests])]
            if (one.file, one.name) in caught_by:
                runs.insert(0, [caught_by[one.file, one.name]])
            verdict, by = _try(one, Path(name), runs, failing)
            _report(one, verdict, by, time.monotonic() - started, options.log)
            return verdict

        with ThreadPoolExecutor(AT_ONCE) as pool:
            verdicts = list(pool.map(judge, [one for one in chosen if one not in missing]))
    caught = verdicts.count("caught")
    print(
        f"{caught} of {len(verdicts)} caught, {verdicts.count('unclear')} unclear, {len(ARGUED)} argued"
        + (f"; {len(missing)} could not be made" if missing else "")
    )
    return int(bool(missing) or caught < ENOUGH * len(verdicts))


def _caught_by(log: Optional[Path]) -> dict[tuple[str, str], str]:
    """The test that caught each mutation the last time, by the file and the name of the mutation."""
    lines = log.read_text(encoding="utf-8").splitlines() if log and log.exists() else []
    results = [json.loads(line) for line in lines]
    return {(one["file"], one["name"]): one["by"] for one in results if one["verdict"] == "caught"}


def _report(one: Mutation, verdict: str, by: str, seconds: float, log: Optional[Path]) -> None:
    shown = (
        f"{verdict if verdict == 'caught' else verdict.upper():<8} {Path(one.file).name:<16} {one.name:<50}"
    )
    print(f"{shown} {seconds:4.0f} s  {by.split('::')[-1]}", flush=True)
    if log:
        result = {"file": one.file, "name": one.name, "verdict": verdict, "by": by, "seconds": round(seconds)}
        with log.open("a", encoding="utf-8") as f:
            f.write(json.dumps(result, ensure_ascii=False) + "\n")


def _copy(source: Path, target: Path) -> Path:
    target.mkdir()
    for part in COPIED:
        if (source / part).is_dir():
            shutil.copytree(source / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source / part, target / part)
    return target


def _failing(folder: Path, files: Sequence[str]) -> list[str]:
    said = _run(folder, [*files, "-q"])[1]
    return sorted(set(re.findall(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", said, re.M)))


def _try(
    mutation: Mutation, folder: Path, runs: Sequence[Sequence[str]], failing: Sequence[str]
) -> tuple[str, str]:
    """caught, survived or unclear, and by which test, or why it is unclear."""
    tree = _copy(folder / "clean", Path(tempfile.mkdtemp(dir=folder)) / "tree")
    file = tree / mutation.file
    file.write_text(file.read_text(encoding="utf-8").replace(mutation.old, mutation.new), encoding="utf-8")
    left_out = [word for name in failing for word in ("--deselect", name)]
    unclear = ""
    try:
        for words in runs:
            code, shown = _run(tree, [*words, "-q", "-x", *left_out])
            by = _failed_test(code, shown)
            # once more, alone: a busy machine fails no test twice
            if by and _failed_test(*_run(tree, [by, "-q", "-x"])) == by:
                return "caught", by
            if code:
                unclear = f"{by} failed once" if by else f"pytest ended with {code}: {shown[-300:]}"
        return ("unclear", unclear) if unclear else ("survived", "")
    finally:
        shutil.rmtree(tree.parent, ignore_errors=True)


def _failed_test(code: int, shown: str) -> str:
    """The test that failed by itself; empty when none did, or when it could not begin."""
    found = re.search(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", shown, re.M)
    if code != TESTS_FAILED or not found or "ERROR at setup of" in shown or "ERROR collecting" in shown:
        return ""
    return found.group(1)


def _run(folder: Path, words: Sequence[str]) -> tuple[int, str]:
    """pytest's exit code and output."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LONGEST_S
        )
    except subprocess.TimeoutExpired:
        return -1, "it took too long"
    return done.returncode, done.stdout


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
