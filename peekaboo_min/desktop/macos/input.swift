// one JSON request on stdin -> one JSON answer on stdout, exit 0
//   {"do":"preflight"} -> {"ok":true,"accessibility":b,"post_event":b,"screen_recording":b}
//   {"do":"move","window":W,"x":n,"y":n}; points are screen points
//   {"do":"click","window":W,"x":n,"y":n,"button":"left","clicks":1,"flags":0}; button left, right or middle; clicks 1 to 3
//   {"do":"scroll","window":W,"x":n,"y":n,"direction":"down","amount":3}; up, down, left or right; amount 1 to 50
//   {"do":"drag","window":W,"x":n,"y":n,"to_x":n,"to_y":n,"button":"left"}
//       -> {"ok":true,"pointer":{"x":n,"y":n},"done":n,"is_certain":b}. done: how many clicks, notches, drags or arrivals there
//          were before something else came under the pointer, 0 where the pointer did not get there. is_certain: no overlay or
//          open menu leaves a doubt whom they reached
//   {"do":"type","window":W,"text":"...","stop_file":"...","delay_ms":0}  -> {"ok":true,"sent":n}, in characters
//   {"do":"press","window":W,"key_code":n,"flags":n,"hold_ms":0,"repeat":1,"stop_file":"..."}  -> {"ok":true,"sent":n}, in presses; flags are
//       CGEventFlags bits
//   refused -> {"ok":false,"code":"...","message":"...","sent":n,"reached_id":n|null}, and nothing was posted after `sent`
//   W is {"id","pid","x","y","width","height","is_popup"}, more is ignored: what must be under the pointer, or have the
//   keyboard, right before each press, notch or piece of text, or nothing is posted
import AppKit
import ApplicationServices
import CoreGraphics
import Foundation

let menuLayer = 101  // kCGPopUpMenuWindowLevel
let linesANotch: Int32 = 3
let dragSteps = 15  // an application follows a drag only through several points
let holdStepMs = 50  // so often the stop file is looked at while a key is held
let piece = 20  // UTF-16 units an event: what applications are known to read
let answerSeconds: Float = 0.5
let dock = "com.apple.dock"
var hungPids: Set<pid_t> = []

struct Refusal: Error {
    let code: String
    let message: String
    var sent = 0
    var reachedID: Int?
}

struct Target: Decodable {
    let id: UInt32
    let pid: Int32
    let x: Double, y: Double, width: Double, height: Double
    let isPopup: Bool

    enum CodingKeys: String, CodingKey {
        case id, pid, x, y, width, height, isPopup = "is_popup"
    }

    var frame: CGRect { CGRect(x: x, y: y, width: width, height: height) }
}

struct Request: Decodable {
    let act: String
    let window: Target?
    let x: Double?, y: Double?, toX: Double?, toY: Double?
    let button: String?, direction: String?, text: String?, stopFile: String?
    let clicks: Double?, amount: Double?, delayMs: Double?, holdMs: Double?, repeats: Double?, keyCode: Double?, flags: Double?

    enum CodingKeys: String, CodingKey {
        case act = "do", window, x, y, toX = "to_x", toY = "to_y", button, direction, text, stopFile = "stop_file", clicks, amount
        case delayMs = "delay_ms", holdMs = "hold_ms", repeats = "repeat", keyCode = "key_code", flags
    }
}

func invalid(_ field: String) -> Refusal {
    Refusal(code: "INVALID_ARGUMENT", message: "\(field) is missing or wrong")
}

func need<T>(_ value: T?, _ field: String) throws -> T {
    guard let value = value else { throw invalid(field) }
    return value
}

func need(_ value: Double?, _ field: String, in range: ClosedRange<Int>) throws -> Int {
    guard let value = value, let number = Int(exactly: value), range.contains(number) else { throw invalid(field) }
    return number
}

func flags(of request: Request) throws -> CGEventFlags {
    try CGEventFlags(rawValue: UInt64(need(request.flags, "flags", in: 0...4_294_967_295)))
}

// Without access the system drops every post and reports nothing, so ask in this process, before the first one. One of
// the two answers may be a false no.
func openSource() throws -> CGEventSource {
    guard AXIsProcessTrusted() || CGPreflightPostEventAccess() else {
        throw Refusal(
            code: "PERMISSION_DENIED_ACCESSIBILITY",
            message: "mouse and keyboard events are not allowed without Accessibility access")
    }
    // An application that hangs holds each call for this long, so it is asked once. Set for all elements of this process.
    AXUIElementSetMessagingTimeout(AXUIElementCreateSystemWide(), answerSeconds)
    // A private source does not inherit the modifier keys that somebody is holding down.
    guard let source = CGEventSource(stateID: .privateState) else {
        throw Refusal(code: "INTERNAL_SWIFT_ERROR", message: "the system made no event source")
    }
    source.localEventsSuppressionInterval = 0
    return source
}

// looking last ---------------------------------------------------------------------------------------------------------

struct Window {
    let id: Int
    let pid: pid_t
    let app: String
    let title: String?
    let layer: Int
    let alpha: Double
    let frame: CGRect

    init?(_ about: [String: Any]) {
        guard let id = about["kCGWindowNumber"] as? Int, let pid = about["kCGWindowOwnerPID"] as? Int,
            let layer = about["kCGWindowLayer"] as? Int, let alpha = about["kCGWindowAlpha"] as? Double,
            let bounds = about["kCGWindowBounds"] as? [String: Double],
            let x = bounds["X"], let y = bounds["Y"], let width = bounds["Width"], let height = bounds["Height"]
        else { return nil }
        (self.id, self.pid, self.layer, self.alpha) = (id, pid_t(pid), layer, alpha)
        frame = CGRect(x: x, y: y, width: width, height: height)
        app = about["kCGWindowOwnerName"] as? String ?? ""
        title = about["kCGWindowName"] as? String
    }

    var name: String { "window \(id) of \(app.isEmpty ? "an unknown application" : app)" }

    // A window that a person would call one: an app may keep invisible or tiny ones in front of it.
    var isOrdinary: Bool { layer == 0 && alpha > 0 && frame.width >= 50 && frame.height >= 50 }
}

// The windows on the screen, front to back. Nothing that is posted to a locked screen arrives.
func look() throws -> [Window] {
    guard let session = CGSessionCopyCurrentDictionary() as? [String: Any],
        let list = CGWindowListCopyWindowInfo([.optionOnScreenOnly, .excludeDesktopElements], kCGNullWindowID) as? [[String: Any]]
    else { throw Refusal(code: "NO_GUI_SESSION", message: "there is no GUI session") }
    let isLocked = session["CGSSessionScreenIsLocked"] as? Bool ?? false
    let isOnConsole = session["kCGSSessionOnConsoleKey"] as? Bool ?? true
    if isLocked || !isOnConsole { throw Refusal(code: "SCREEN_LOCKED", message: "the screen is locked") }
    return list.compactMap(Window.init)
}

func isNear(_ a: Double, _ b: Double, within: Double = 2) -> Bool { abs(a - b) <= within }

// Two points apart at most: accessibility and the window server round frames differently.
func isSameFrame(_ a: CGRect, _ b: CGRect) -> Bool {
    isNear(Double(a.minX), Double(b.minX)) && isNear(Double(a.minY), Double(b.minY))
        && isNear(Double(a.width), Double(b.width)) && isNear(Double(a.height), Double(b.height))
}

// Whose element accessibility finds at a point; nil where it cannot tell.
func pidAt(_ point: CGPoint) -> pid_t? {
    var found: AXUIElement?
    var pid: pid_t = 0
    let everything = AXUIElementCreateSystemWide()
    guard AXUIElementCopyElementAtPosition(everything, Float(point.x), Float(point.y), &found) == .success,
        let element = found, AXUIElementGetPid(element, &pid) == .success
    else { return nil }
    return pid
}

// An overlay as large as a whole window may let clicks through: the Dock's does, others are not in the list of windows.
func letsThrough(_ over: Window, _ target: Window, _ point: CGPoint) -> Bool? {
    if NSRunningApplication(processIdentifier: over.pid)?.bundleIdentifier == dock { return true }
    guard let pid = pidAt(point), over.pid != target.pid else { return nil }
    return pid == target.pid
}

// Throws unless a press at this point reaches the target; returns whether that is certain.
func checkReached(_ target: Target, _ point: CGPoint) throws -> Bool {
    let windows = try look()
    guard let now = windows.first(where: { $0.id == Int(target.id) }) else {
        throw Refusal(code: "WINDOW_NOT_FOUND", message: "window \(target.id) is no longer on the screen")
    }
    guard isSameFrame(now.frame, target.frame) else {
        throw Refusal(code: "STALE_SCREENSHOT", message: "window \(target.id) moved or changed its size just now")
    }
    var isCertain = !windows.contains { $0.layer == menuLayer && $0.alpha > 0 && $0.id != now.id }
    for window in windows where window.alpha > 0 && window.frame.contains(point) {
        if window.id == now.id { return isCertain }
        let isOverlay = window.layer != 0 && window.frame.contains(now.frame)
        switch isOverlay ? letsThrough(window, now, point) : false {
        case true?: continue
        case nil: isCertain = false
        case false?:
            throw Refusal(
                code: "WINDOW_COVERED", message: "window \(now.id) is covered by \(window.name) there", reachedID: window.id)
        }
    }
    throw Refusal(code: "WINDOW_COVERED", message: "that point is outside window \(now.id)")
}

func attribute(_ element: AXUIElement, _ name: String, _ pid: pid_t) -> CFTypeRef? {
    if hungPids.contains(pid) { return nil }
    var value: CFTypeRef?
    let error = AXUIElementCopyAttributeValue(element, name as CFString, &value)
    if error == .cannotComplete { hungPids.insert(pid) }  // gone, or it did not answer in time
    return error == .success ? value : nil
}

func extent(of element: AXUIElement, _ pid: pid_t) -> CGRect? {
    var origin = CGPoint.zero
    var size = CGSize.zero
    guard let place = attribute(element, "AXPosition", pid), CFGetTypeID(place) == AXValueGetTypeID(),
        let area = attribute(element, "AXSize", pid), CFGetTypeID(area) == AXValueGetTypeID(),
        AXValueGetValue(place as! AXValue, .cgPoint, &origin), AXValueGetValue(area as! AXValue, .cgSize, &size)
    else { return nil }
    return CGRect(origin: origin, size: size)
}

// The window that accessibility calls focused. It knows no window numbers: the frame tells windows apart, then the title.
// nil where it cannot tell, or where that leaves two.
func focusedWindow(_ pid: pid_t, _ windows: [Window]) -> Window? {
    guard let value = attribute(AXUIElementCreateApplication(pid), "AXFocusedWindow", pid),
        CFGetTypeID(value) == AXUIElementGetTypeID()
    else { return nil }
    let element = value as! AXUIElement
    guard let frame = extent(of: element, pid) else { return nil }
    var found = windows.filter { $0.pid == pid && isSameFrame($0.frame, frame) }
    if found.count > 1 {
        let title = attribute(element, "AXTitle", pid) as? String
        found = found.filter { $0.title == title }
    }
    return found.count == 1 ? found[0] : nil
}

// Throws unless a key that is posted now goes to the target.
func checkKeyboard(_ target: Target, sent: Int) throws {
    // what AppKit tells of the frontmost app does not change before the run loop turns
    RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.001))
    let windows: [Window]
    do {
        windows = try look()
    } catch var refusal as Refusal {
        refusal.sent = sent
        throw refusal
    }
    let pid = NSWorkspace.shared.frontmostApplication?.processIdentifier
    func lost(_ window: Window?) -> Refusal {
        let message = "the keyboard is with \(window?.name ?? "another application")"
        return Refusal(code: "FOCUS_LOST", message: message, sent: sent, reachedID: window?.id)
    }
    let front = windows.first { $0.pid == pid && $0.isOrdinary }
    let menu = windows.first { $0.pid == pid && $0.layer == menuLayer && $0.alpha > 0 }
    guard let pid = pid, pid == target.pid else { throw lost(front) }
    // an open menu takes every key
    if menu != nil || target.isPopup {
        if let menu = menu, target.isPopup, menu.id == Int(target.id) { return }
        throw lost(menu ?? front)
    }
    let own = windows.filter { $0.layer >= 0 && $0.layer < menuLayer && $0.alpha > 0 }
    let focused = focusedWindow(pid, own) ?? front
    if focused?.id != Int(target.id) { throw lost(focused) }
}

// posting --------------------------------------------------------------------------------------------------------------

func post(_ made: CGEvent?, _ flags: CGEventFlags, pause: TimeInterval) throws {
    guard let event = made else {
        throw Refusal(code: "INTERNAL_SWIFT_ERROR", message: "the system made no event")
    }
    event.flags = flags
    event.post(tap: .cghidEventTap)
    Thread.sleep(forTimeInterval: pause)
}

// 30 ms: AppKit drops clicks that come faster than its event loop turns.
func postMouse(
    _ source: CGEventSource, _ type: CGEventType, _ point: CGPoint, _ button: CGMouseButton, _ clickState: Int,
    _ flags: CGEventFlags
) throws {
    let event = CGEvent(mouseEventSource: source, mouseType: type, mouseCursorPosition: point, mouseButton: button)
    event?.setIntegerValueField(.mouseEventClickState, value: Int64(clickState))
    try post(event, flags, pause: 0.03)
}

func postKey(_ source: CGEventSource, _ code: CGKeyCode, _ flags: CGEventFlags, _ units: [UniChar], hold: () -> Void = {}) throws {
    for down in [true, false] {
        let event = CGEvent(keyboardEventSource: source, virtualKey: code, keyDown: down)
        if !units.isEmpty {
            event?.keyboardSetUnicodeString(stringLength: units.count, unicodeString: units)
        }
        try post(event, flags, pause: 0.008)
        if down { hold() }
    }
}

func isThere(_ now: CGPoint, _ point: CGPoint) -> Bool {
    isNear(Double(now.x), Double(point.x), within: 1) && isNear(Double(now.y), Double(point.y), within: 1)
}

// Posting is asynchronous: give the pointer up to 200 ms to arrive, then say where it is.
func moved(_ source: CGEventSource, to point: CGPoint) throws -> CGPoint {
    try postMouse(source, .mouseMoved, point, .left, 0, [])
    for _ in 0..<20 {
        guard let now = CGEvent(source: nil)?.location, !isThere(now, point) else { break }
        Thread.sleep(forTimeInterval: 0.01)
    }
    guard let now = CGEvent(source: nil)?.location else {
        throw Refusal(code: "INTERNAL_SWIFT_ERROR", message: "the pointer cannot be read back")
    }
    return now
}

// Moves the pointer over the window, then does `act` there a number of times, as long as the window stays under it.
func atPointer(_ request: Request, _ times: Int, _ act: (CGEventSource, CGPoint, Int) throws -> Void) throws -> [String: Any] {
    let place = try CGPoint(x: need(request.x, "x"), y: need(request.y, "y"))
    let expected = try need(request.window, "window")
    let source = try openSource()
    _ = try checkReached(expected, place)
    let pointer = try moved(source, to: place)
    var (done, isCertain) = (0, true)
    while isThere(pointer, place) && done < times {
        do {
            // the pointer's arrival, or the act before, may have changed what is there
            isCertain = try checkReached(expected, place) && isCertain
        } catch let refusal as Refusal {
            if done == 0 { throw refusal }
            break
        }
        done += 1
        try act(source, place, done)
    }
    let point = ["x": Double(pointer.x), "y": Double(pointer.y)]
    return ["ok": true, "pointer": point, "done": done, "is_certain": isCertain]
}

struct Button {
    let number: CGMouseButton
    let down: CGEventType, up: CGEventType, dragged: CGEventType
}

let buttons = [
    "left": Button(number: .left, down: .leftMouseDown, up: .leftMouseUp, dragged: .leftMouseDragged),
    "right": Button(number: .right, down: .rightMouseDown, up: .rightMouseUp, dragged: .rightMouseDragged),
    "middle": Button(number: .center, down: .otherMouseDown, up: .otherMouseUp, dragged: .otherMouseDragged),
]

func click(_ request: Request) throws -> [String: Any] {
    let button = try need(buttons[request.button ?? ""], "button")
    let flags = try flags(of: request)
    return try atPointer(request, need(request.clicks, "clicks", in: 1...3)) { source, place, count in
        try postMouse(source, button.down, place, button.number, count, flags)
        try postMouse(source, button.up, place, button.number, count, flags)
    }
}

func scroll(_ request: Request) throws -> [String: Any] {
    let wheels: [String: (Int32, Int32)] = ["up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)]
    let (vertical, horizontal) = try need(wheels[request.direction ?? ""], "direction")
    return try atPointer(request, need(request.amount, "amount", in: 1...50)) { source, _, _ in
        let event = CGEvent(
            scrollWheelEvent2Source: source, units: .line, wheelCount: 2, wheel1: vertical * linesANotch,
            wheel2: horizontal * linesANotch, wheel3: 0)
        try post(event, [], pause: 0.02)
    }
}

func drag(_ request: Request) throws -> [String: Any] {
    let button = try need(buttons[request.button ?? ""], "button")
    let end = try CGPoint(x: need(request.toX, "to_x"), y: need(request.toY, "to_y"))
    return try atPointer(request, 1) { source, start, _ in
        try postMouse(source, button.down, start, button.number, 1, [])
        for step in 1...dragSteps {
            let part = Double(step) / Double(dragSteps)
            let point = CGPoint(
                x: Double(start.x) + Double(end.x - start.x) * part, y: Double(start.y) + Double(end.y - start.y) * part)
            try? postMouse(source, button.dragged, point, button.number, 1, [])  // the button must come up again
        }
        try postMouse(source, button.up, end, button.number, 1, [])
    }
}

// What goes out at once: a key, or characters; a grapheme cluster that is longer than a piece goes whole.
func pieces(of text: String, most: Int) -> [(code: CGKeyCode, units: [UniChar], length: Int)] {
    let keys: [Character: CGKeyCode] = ["\n": 36, "\r": 36, "\r\n": 36, "\t": 48, "\u{8}": 51]
    var made: [(code: CGKeyCode, units: [UniChar], length: Int)] = []
    var chunk = ""
    func flush() {
        if !chunk.isEmpty { made.append((0, Array(chunk.utf16), chunk.unicodeScalars.count)) }
        chunk = ""
    }
    for character in text {
        let code = keys[character]
        if code != nil || chunk.utf16.count + character.utf16.count > most { flush() }
        if let code = code { made.append((code, [], character.unicodeScalars.count)) } else { chunk.append(character) }
    }
    flush()
    return made
}

func isStopped(_ file: String) -> Bool { FileManager.default.fileExists(atPath: file) }

func stopped(sent: Int) -> Refusal {
    Refusal(code: "POLICY_DENIED", message: "the stop file is there", sent: sent)
}

func typeText(_ request: Request) throws -> [String: Any] {
    let text = try need(request.text, "text")
    let stopFile = try need(request.stopFile, "stop_file")
    let delay = try need(request.delayMs, "delay_ms", in: 0...1000)
    let expected = try need(request.window, "window")
    let source = try openSource()
    var sent = 0
    for part in pieces(of: text, most: delay > 0 ? 1 : piece) {
        if sent > 0 { Thread.sleep(forTimeInterval: Double(delay) / 1000) }
        try checkKeyboard(expected, sent: sent)
        if isStopped(stopFile) { throw stopped(sent: sent) }
        try postKey(source, part.code, [], part.units)
        sent += part.length
    }
    return ["ok": true, "sent": sent]
}

func press(_ request: Request) throws -> [String: Any] {
    let code = try CGKeyCode(need(request.keyCode, "key_code", in: 0...65535))
    let flags = try flags(of: request)
    let holdMs = try need(request.holdMs, "hold_ms", in: 0...10000)
    let repeats = try need(request.repeats, "repeat", in: 1...100)
    let stopFile = try need(request.stopFile, "stop_file")
    let expected = try need(request.window, "window")
    let source = try openSource()
    for sent in 0..<repeats {
        try checkKeyboard(expected, sent: sent)
        if isStopped(stopFile) { throw stopped(sent: sent) }
        try postKey(source, code, flags, []) {
            for left in stride(from: holdMs, to: 0, by: -holdStepMs) where !isStopped(stopFile) {
                Thread.sleep(forTimeInterval: Double(min(left, holdStepMs)) / 1000)
            }
        }
        if holdMs > 0 && isStopped(stopFile) { throw stopped(sent: sent + 1) }
    }
    return ["ok": true, "sent": repeats]
}

func answer(_ input: Data) throws -> [String: Any] {
    let request: Request
    do {
        request = try JSONDecoder().decode(Request.self, from: input)
    } catch DecodingError.typeMismatch(_, let about), DecodingError.valueNotFound(_, let about), DecodingError.dataCorrupted(let about) {
        throw invalid(about.codingPath.first?.stringValue ?? "the request")
    } catch DecodingError.keyNotFound(let key, let about) {
        throw invalid((about.codingPath.first ?? key).stringValue)
    }
    switch request.act {
    case "preflight":
        return ["ok": true, "accessibility": AXIsProcessTrusted(), "post_event": CGPreflightPostEventAccess(),
                "screen_recording": CGPreflightScreenCaptureAccess()]
    case "move": return try atPointer(request, 1) { _, _, _ in }
    case "click": return try click(request)
    case "scroll": return try scroll(request)
    case "drag": return try drag(request)
    case "type": return try typeText(request)
    case "press": return try press(request)
    default: throw invalid("do")
    }
}

let reply: [String: Any]
do {
    reply = try answer(FileHandle.standardInput.readToEnd() ?? Data())
} catch let refusal as Refusal {
    let reached: Any = refusal.reachedID ?? NSNull()
    reply = ["ok": false, "code": refusal.code, "message": refusal.message, "sent": refusal.sent, "reached_id": reached]
}
let output = try JSONSerialization.data(withJSONObject: reply, options: [.sortedKeys])
try FileHandle.standardOutput.write(contentsOf: output + Data("\n".utf8))
