// one JSON request on stdin -> one JSON answer on stdout, exit 0
//   {"window": {"id","pid","x","y","width","height","is_popup"}, "stop_file": "...", "steps": [{"do": ...}, ...],
//    "release": what an act that was killed left to do, "record": a file that is deleted once nothing is held}
// Before the first step: may this process post? Then comes "release"; and does nobody hold a mouse button or a modifier key?
// questions, each of which ends the steps where the answer is no:
//   window_at x y       would a press there reach the window, where it was and as large?
//   pointer_at x y      is the pointer there, within 200 ms?
//   has_keyboard        would a key reach the window, and is there no stop file?
// acts, in screen points; flags are CGEventFlags, button 0 to 2:
//   mouse type x y button flags, and of a press: number, clicks (the count of a double click), of a drag dx dy; type: a CGEventType;
//                       no_source: from none, else from a private one
//   wheel vertical horizontal      in lines, positive is up and left
//   key is_down code flags         with a `character`, the key that makes it on this layout, when it goes down with the flags `held`
//   type text                      has_keyboard, then each UTF-16 unit by its key; with "code" all of it by that key, at once
// A step may have "ms", a pause after it that ends at a stop file, and "release": what is to be done from then on where the steps
// end early, until another step has one.
// {"ok", "step": how many are through, "pointer": {"x","y"}|null, "is_certain": no overlay or open menu leaves a doubt whom a press
// reached, "code": null where only the pointer is elsewhere, "message", "reached_id": the window that is in the way|null,
// "released": whether something was}
import AppKit
import ApplicationServices
import Carbon
import CoreGraphics
import Foundation

let menuLayer = 101  // kCGPopUpMenuWindowLevel
let lastTypingKey: UInt16 = 50  // beyond it are keys without text, and the numeric pad
let typedSeconds = 0.004
let slice = 0.05  // so often a pause looks at the stop file
let answerSeconds: Float = 0.5
let mostAncestors = 20
let dock = "com.apple.dock"
// Events of a process that ends at once may be lost: one library gives each 20 ms.
let (settleSeconds, leastSettleSeconds, mostSettleSeconds) = (0.02, 0.06, 0.5)

struct Failure: Error {
    let code: String?
    let message: String
    var reachedID: Int?
}

struct Target: Decodable {
    let id: Int
    let pid: pid_t
    let x: Double, y: Double, width: Double, height: Double
    let isPopup: Bool

    var frame: CGRect { CGRect(x: x, y: y, width: width, height: height) }
}

struct Step: Decodable {
    let `do`: String
    let x: Double!, y: Double!, ms: Double?
    let type: UInt32!, button: UInt32?, number: Int64?, clicks: Int64?, dx: Int64?, dy: Int64?
    let vertical: Int32!, horizontal: Int32!
    let isDown: Bool!, code: CGKeyCode?, flags: UInt64?, held: UInt64!, noSource: Bool?
    let character: String?, text: String?
    let release: [Step]?

    var point: CGPoint { CGPoint(x: x, y: y) }
    var eventFlags: CGEventFlags { CGEventFlags(rawValue: flags ?? 0) }
}

struct Request: Decodable {
    let window: Target!
    let stopFile: String, record: String?
    let release: [Step]?, steps: [Step]
}

var hungPids: Set<pid_t> = []
var isCertain = true
var pointer: CGPoint?
var source: CGEventSource?
var settledAt: Date?
var pressesBefore: Int64 = 0

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

    // As large as what a person would call a window: an app may keep invisible or tiny ones in front of it.
    var isLarge: Bool { alpha > 0 && frame.width >= 50 && frame.height >= 50 }
    var isOrdinary: Bool { layer == 0 && isLarge }
}

// The windows on the screen, front to back. Nothing that is posted to a locked screen arrives.
func look() throws -> [Window] {
    guard let session = CGSessionCopyCurrentDictionary() as? [String: Any],
        let list = CGWindowListCopyWindowInfo([.optionOnScreenOnly, .excludeDesktopElements], kCGNullWindowID) as? [[String: Any]]
    else { throw Failure(code: "NO_GUI_SESSION", message: "there is no GUI session") }
    let isLocked = session["CGSSessionScreenIsLocked"] as? Bool ?? false
    let isOnConsole = session["kCGSSessionOnConsoleKey"] as? Bool ?? true
    if isLocked || !isOnConsole { throw Failure(code: "SCREEN_LOCKED", message: "the screen is locked") }
    return list.compactMap(Window.init)
}

func isNear(_ a: Double, _ b: Double, within: Double = 2) -> Bool { abs(a - b) <= within }

// Two points apart at most: accessibility and the window server round frames differently.
func isSameFrame(_ a: CGRect, _ b: CGRect) -> Bool {
    isNear(Double(a.minX), Double(b.minX)) && isNear(Double(a.minY), Double(b.minY))
        && isNear(Double(a.width), Double(b.width)) && isNear(Double(a.height), Double(b.height))
}

// The window that a press there reaches by the window server's own test, which goes past what lets clicks through; nil where it
// names none of those listed (without an application object it may not answer). It counts upwards.
func hitWindow(_ point: CGPoint, _ windows: [Window]) -> Window? {
    let height = CGDisplayBounds(CGMainDisplayID()).height
    let id = NSWindow.windowNumber(at: CGPoint(x: point.x, y: height - point.y), belowWindowWithWindowNumber: 0)
    return windows.first { $0.id == id }
}

// Throws unless a press at this point reaches the window that is meant; notes where that is not certain.
func checkReached(_ target: Target, _ point: CGPoint) throws {
    let windows = try look()
    guard let now = windows.first(where: { $0.id == target.id }) else {
        throw Failure(code: "WINDOW_NOT_FOUND", message: "window \(target.id) is no longer on the screen")
    }
    guard isSameFrame(now.frame, target.frame) else {
        throw Failure(code: "STALE_SCREENSHOT", message: "window \(target.id) moved or changed its size just now")
    }
    if windows.contains(where: { $0.id != now.id && isOpenMenu($0) }) { isCertain = false }
    for window in windows where window.alpha > 0 && window.frame.contains(point) {
        if window.id == now.id { return }
        // an overlay as large as a whole window may let clicks through, which is not in the list of windows
        let isOverlay = window.layer != 0 && window.frame.contains(now.frame)
        if let hit = isOverlay ? hitWindow(point, windows) : window {
            if hit.id == now.id { return }
            let message = "window \(now.id) is covered by \(hit.name) there"
            throw Failure(code: "WINDOW_COVERED", message: message, reachedID: hit.id)
        }
        if NSRunningApplication(processIdentifier: window.pid)?.bundleIdentifier != dock { isCertain = false }
    }
    throw Failure(code: "WINDOW_COVERED", message: "that point is outside window \(now.id)")
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

// The window that accessibility calls focused, the one in front where it tells none. It knows no window numbers: the frame
// tells windows apart, then the title. nil where that leaves none, or two.
func focusedWindow(_ target: Target, _ windows: [Window], _ front: Window?) -> Window? {
    let pid = target.pid
    guard let value = attribute(AXUIElementCreateApplication(pid), "AXFocusedWindow", pid),
        CFGetTypeID(value) == AXUIElementGetTypeID()
    else { return front }
    let element = value as! AXUIElement
    guard let frame = extent(of: element, pid) else { return nil }
    // an Open or Save panel is a window of another process
    var found = windows.filter { ($0.pid == pid || $0.id == target.id) && isSameFrame($0.frame, frame) }
    if found.count > 1 {
        let title = attribute(element, "AXTitle", pid) as? String
        found = found.filter { $0.title == title }
    }
    return found.count == 1 ? found[0] : nil
}

// Whether an application is in front: by its own live answer, else by AppKit's, which is frozen where no run loop turns.
func isFrontmost(_ pid: pid_t) -> Bool {
    let live = attribute(AXUIElementCreateApplication(pid), "AXFrontmost", pid) as? Bool
    return live ?? (NSWorkspace.shared.frontmostApplication?.processIdentifier == pid)
}

// The panel of another application that has the keyboard, which it may without coming to the front. What is called the focused
// application can be stale: it counts only where it shows such a panel, larger than a menu bar's item.
func panelWithKeys(_ pid: pid_t, _ windows: [Window]) -> Window? {
    var owner: pid_t = 0
    guard let value = attribute(AXUIElementCreateSystemWide(), "AXFocusedApplication", 0),
        CFGetTypeID(value) == AXUIElementGetTypeID(),
        AXUIElementGetPid(value as! AXUIElement, &owner) == .success, owner != pid
    else { return nil }
    return windows.first { $0.pid == owner && $0.layer > 0 && $0.isLarge }
}

// Whether a window of the menus' layer is a menu: menus that were interrupted stay there, and accessibility does not know them.
// Where it cannot tell what is there, it is one.
func isOpenMenu(_ window: Window) -> Bool {
    guard window.layer == menuLayer, window.alpha > 0 else { return false }
    var found: AXUIElement?
    let (app, frame) = (AXUIElementCreateApplication(window.pid), window.frame)
    guard !hungPids.contains(window.pid),
        AXUIElementCopyElementAtPosition(app, Float(frame.midX), Float(frame.midY), &found) == .success
    else { return true }
    for _ in 0..<mostAncestors {
        guard let element = found else { break }
        if attribute(element, "AXRole", window.pid) as? String == "AXMenu" { return true }
        if let extent = extent(of: element, window.pid), isSameFrame(extent, frame) { return true }
        found = attribute(element, "AXParent", window.pid)
            .flatMap { CFGetTypeID($0) == AXUIElementGetTypeID() ? ($0 as! AXUIElement) : nil }
    }
    return hungPids.contains(window.pid)
}

// Throws unless a key that is posted now goes to the window that is meant.
func checkKeyboard(_ target: Target, _ stopFile: String) throws {
    try checkNotStopped(stopFile)
    // what AppKit tells of the frontmost app does not change before the run loop turns
    RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.001))
    let windows = try look()
    func lost(_ window: Window?) -> Failure {
        let message = "the keyboard is with \(window?.name ?? "another application")"
        return Failure(code: "FOCUS_LOST", message: message, reachedID: window?.id)
    }
    if let panel = panelWithKeys(target.pid, windows) { throw lost(panel) }
    let isInFront = isFrontmost(target.pid)
    let pid = isInFront ? target.pid : NSWorkspace.shared.frontmostApplication?.processIdentifier
    let front = windows.first { $0.pid == pid && $0.isOrdinary }
    guard isInFront, let pid = pid else { throw lost(pid == target.pid ? nil : front) }
    // an open menu takes every key
    let menu = windows.first { $0.pid == pid && isOpenMenu($0) }
    if menu != nil || target.isPopup {
        if let menu = menu, target.isPopup, menu.id == target.id { return }
        throw lost(menu ?? front)
    }
    let own = windows.filter { $0.layer >= 0 && $0.layer < menuLayer && $0.alpha > 0 }
    let focused = focusedWindow(target, own, front)
    if focused?.id != target.id { throw lost(focused) }
}

// What a person holds, by the hardware's own state; caps lock does not count.
func checkNothingHeld() throws {
    let buttons: [CGMouseButton] = [.left, .right, .center]
    let isButton = buttons.contains { CGEventSource.buttonState(.hidSystemState, button: $0) }
    let modifiers: CGEventFlags = [.maskShift, .maskControl, .maskAlternate, .maskCommand]
    if isButton || !CGEventSource.flagsState(.hidSystemState).intersection(modifiers).isEmpty {
        let held = isButton ? "mouse button" : "modifier key"
        throw Failure(code: "WINDOW_BLOCKED", message: "a \(held) is held down")
    }
}

// Posting is asynchronous: the pointer gets 200 ms to arrive.
func checkPointer(_ point: CGPoint) throws {
    for _ in 0..<20 {
        guard let now = CGEvent(source: nil)?.location else { break }
        pointer = now
        if isNear(Double(now.x), Double(point.x), within: 1) && isNear(Double(now.y), Double(point.y), within: 1) { return }
        Thread.sleep(forTimeInterval: 0.01)
    }
    throw Failure(code: nil, message: "the pointer is elsewhere")
}

func checkNotStopped(_ stopFile: String) throws {
    if FileManager.default.fileExists(atPath: stopFile) { throw Failure(code: "POLICY_DENIED", message: "the stop file is there") }
}

// Without access the system drops every post and reports nothing, so ask in this process, before the first one. One of
// the two answers may be a false no.
func checkAccess() throws {
    guard AXIsProcessTrusted() || CGPreflightPostEventAccess() else {
        throw Failure(code: "PERMISSION_DENIED_ACCESSIBILITY", message: "mouse and keyboard cannot be used")
    }
    // An application that hangs holds each call for this long, so it is asked once. Set for all elements of this process.
    AXUIElementSetMessagingTimeout(AXUIElementCreateSystemWide(), answerSeconds)
    // A private source does not inherit the modifier keys that somebody is holding down.
    source = CGEventSource(stateID: .privateState)
    source?.localEventsSuppressionInterval = 0
    for type: CGEventType in [.leftMouseDown, .rightMouseDown, .otherMouseDown] {
        pressesBefore += Int64(CGEventSource.counterForEventType(.hidSystemState, eventType: type))
    }
}

// the keyboard's layout ------------------------------------------------------------------------------------------------

typealias Key = (code: CGKeyCode, flags: CGEventFlags)
var layouts: [UInt64: [String: CGKeyCode]] = [:]

// character -> code of the key that makes it while these modifiers are held. A dead key has none.
func layout(with flags: CGEventFlags) -> [String: CGKeyCode] {
    if let known = layouts[flags.rawValue] { return known }
    var keys: [String: CGKeyCode] = [:]
    if let input = TISCopyCurrentKeyboardLayoutInputSource()?.takeRetainedValue(),
        let data = TISGetInputSourceProperty(input, kTISPropertyUnicodeKeyLayoutData),
        let bytes = CFDataGetBytePtr(Unmanaged<CFData>.fromOpaque(data).takeUnretainedValue())
    {
        let table = UnsafeRawPointer(bytes).assumingMemoryBound(to: UCKeyboardLayout.self)
        let state = UInt32((flags.contains(.maskCommand) ? cmdKey : 0) | (flags.contains(.maskShift) ? shiftKey : 0)) >> 8
        for code in (0...lastTypingKey).reversed() {
            var (dead, length, units) = (UInt32(0), 0, [UniChar](repeating: 0, count: 4))
            let error = UCKeyTranslate(
                table, code, UInt16(kUCKeyActionDown), state, UInt32(LMGetKbdType()), 0, &dead, units.count, &length, &units)
            if error == 0 && length == 1 && units[0] >= 32 { keys[String(utf16CodeUnits: units, count: 1)] = code }
        }
    }
    layouts[flags.rawValue] = keys
    return keys
}

// The key that makes a character, nil where the layout has none. Command may change a layout's letters.
func key(of character: String, held: CGEventFlags) -> Key? {
    for flags: CGEventFlags in held.contains(.maskCommand) ? [.maskCommand, [], .maskShift] : [[], .maskShift] {
        if let code = layout(with: flags)[character] { return (code, held.union(flags)) }
    }
    return nil
}

// Where no key makes the character: the place that it has on a US keyboard, as macOS takes it on Cyrillic ones.
func resolved(_ step: Step) -> Key {
    let made = step.character.flatMap { key(of: $0, held: CGEventFlags(rawValue: step.held)) }
    return made ?? (step.code ?? 0, step.eventFlags)
}

// posting --------------------------------------------------------------------------------------------------------------

func sleep(_ seconds: TimeInterval) { Thread.sleep(forTimeInterval: seconds) }

func post(_ made: CGEvent?, _ flags: CGEventFlags) throws {
    guard let event = made else {
        throw Failure(code: "INTERNAL_SWIFT_ERROR", message: "the system made no event")
    }
    event.flags = flags
    event.post(tap: .cghidEventTap)
    settledAt = max(Date(), settledAt ?? Date()).addingTimeInterval(settleSeconds)
}

func postMouse(_ step: Step) throws {
    let (type, button) = (CGEventType(rawValue: step.type) ?? .null, CGMouseButton(rawValue: step.button ?? 0) ?? .left)
    let from = step.noSource == true ? nil : source
    let event = CGEvent(mouseEventSource: from, mouseType: type, mouseCursorPosition: step.point, mouseButton: button)
    // a process's first press is taken only where its number follows the system's last one
    let number = step.number.map { pressesBefore + $0 }
    let fields: [(CGEventField, Int64?)] = [
        (.mouseEventNumber, number), (.mouseEventClickState, step.clicks), (.mouseEventDeltaX, step.dx), (.mouseEventDeltaY, step.dy),
    ]
    for case let (field, value?) in fields { event?.setIntegerValueField(field, value: value) }
    try post(event, step.eventFlags)
}

func postKey(_ code: CGKeyCode, _ isDown: Bool, _ flags: CGEventFlags, _ text: String = "") throws {
    let event = CGEvent(keyboardEventSource: source, virtualKey: code, keyDown: isDown)
    let units = Array(text.utf16)
    if !units.isEmpty { event?.keyboardSetUnicodeString(stringLength: units.count, unicodeString: units) }
    try post(event, flags)
}

// A program may read the text, the key, or both, so that it gets both. The modifiers' own keys are not pressed.
func type(_ key: Key, _ text: String) throws {
    try postKey(key.code, true, key.flags, text)
    sleep(typedSeconds)
    try postKey(key.code, false, [], text)
    sleep(typedSeconds)
}

func typeText(_ step: Step) throws {
    if let code = step.code { return try type((code, []), step.text ?? "") }
    for unit in (step.text ?? "").utf16.map({ String(utf16CodeUnits: [$0], count: 1) }) {
        try type(key(of: unit, held: []) ?? (0, []), unit)
    }
}

// steps ----------------------------------------------------------------------------------------------------------------

func execute(_ step: Step, _ request: Request) throws {
    switch step.do {
    case "window_at": try checkReached(request.window, step.point)
    case "pointer_at": try checkPointer(step.point)
    case "has_keyboard": try checkKeyboard(request.window, request.stopFile)
    case "mouse": try postMouse(step)
    case "wheel":
        let event = CGEvent(
            scrollWheelEvent2Source: source, units: .line, wheelCount: 2, wheel1: step.vertical, wheel2: step.horizontal, wheel3: 0)
        try post(event, [])
    case "key":
        let key = resolved(step)
        try postKey(key.code, step.isDown, step.isDown ? key.flags : step.eventFlags)
    case "type":
        try checkKeyboard(request.window, request.stopFile)
        try typeText(step)
    default: throw Failure(code: "INVALID_ARGUMENT", message: "there is no step \(step.do)")
    }
}

func letGo(_ steps: [Step], _ request: Request) throws {
    for step in steps {
        try execute(step, request)
        sleep((step.ms ?? 0) / 1000)
    }
}

func pause(_ seconds: Double, _ stopFile: String) throws {
    for left in stride(from: seconds, to: 0, by: -slice) {
        sleep(min(left, slice))
        try checkNotStopped(stopFile)
    }
}

let decoder = JSONDecoder()
decoder.keyDecodingStrategy = .convertFromSnakeCase
let request = try decoder.decode(Request.self, from: FileHandle.standardInput.readToEnd() ?? Data())
var count = 0
var held: [Step] = []
var failure: Failure?
do {
    try checkAccess()
    try letGo(request.release ?? [], request)
    try checkNothingHeld()
    for step in request.steps {
        try execute(step, request)
        held = step.release ?? held
        count += 1
        try pause((step.ms ?? 0) / 1000, request.stopFile)
    }
} catch let reason as Failure {
    failure = reason
    try letGo(held, request)
}
try? FileManager.default.removeItem(atPath: request.record ?? "")
if let end = settledAt { sleep(min(max(end.timeIntervalSinceNow, leastSettleSeconds), mostSettleSeconds)) }
let place: Any = pointer.map { ["x": Double($0.x), "y": Double($0.y)] } ?? NSNull()
let answer: [String: Any] = [
    "ok": failure == nil, "step": count, "pointer": place, "is_certain": isCertain, "code": failure?.code ?? NSNull(),
    "message": failure?.message ?? "", "reached_id": failure?.reachedID ?? NSNull(), "released": failure != nil && !held.isEmpty,
]
let output = try JSONSerialization.data(withJSONObject: answer, options: [.sortedKeys])
try FileHandle.standardOutput.write(contentsOf: output + Data("\n".utf8))
