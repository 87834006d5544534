// one JSON request on stdin -> one JSON reply on stdout, exit 0
//
// Request:
//   {"window": {"id", "pid", "x", "y", "width", "height", "is_popup"}, "steps": [{"do": ...}, ...],
//    "stop_file": a file that ends the steps as soon as it exists, or "",
//    "release": steps that release the keys and buttons that a killed act left pressed,
//    "record": a file to delete once nothing is held}
// Checks that this process may post events; runs "release"; checks that the user holds no button or modifier key; runs the steps.
// When a check fails or the stop file appears, skips all other steps, and runs the latest "release" of the completed steps.
//
// Steps that check (x and y are screen points):
//   window_at x y     A press there would reach the window, and the window still has its place and size.
//   pointer_at x y    The pointer arrives there within 200 ms.
//   has_keyboard      A key would reach the window, and the stop file does not exist.
//   has_layout        The input source is a keyboard layout: an input method would compose other text from the keys.
// Steps that post events (flags are CGEventFlags; button is 0, 1 or 2):
//   mouse type x y button flags    Posts a mouse event of this CGEventType. A press has a "number", counted from 1, and "clicks": 2
//                                  for the second press of a double click. A drag has "dx" and "dy".
//                                  With "no_source", the event has no event source, otherwise a private one.
//   wheel vertical horizontal      Scrolls by lines. Positive numbers scroll up and left.
//   key is_down code flags         Presses or releases the key "code". With "character": the key that types it while the flags
//                                  "held" are set, if the layout has one.
//   type text                      Checks has_keyboard, then types each UTF-16 unit with its own key. With "code", types the whole
//                                  text with that one key.
//   select_source                  Selects the input source "id"; without "id", the user's keyboard layout for ASCII.
// Every step may have "ms", a pause after it, and "release", the steps that release all that is held after this step.
//
// Reply:
//   {"ok", "step": number of completed steps, "pointer": {"x", "y"}|null,
//    "is_certain": false if an overlay or an open menu may have received a press instead of the window,
//    "code": error code, or null if only the pointer did not arrive, "message", "reached_id": the window in the way|null,
//    "source_id": the input method that has_layout found|null,
//    "released": true if the steps ended early and something was released}
import AppKit
import ApplicationServices
import Carbon
import CoreGraphics
import Foundation

let menuLayer = 101  // kCGPopUpMenuWindowLevel
let lastTypingKey: UInt16 = 50  // higher codes are keys without text, and the numeric pad
let smallestWindow = 50.0  // points; applications keep many smaller, invisible windows
let typedSeconds = 0.004  // between the events of a text; not measured
let sliceSeconds = 0.05  // during a pause, checks the stop file this often
let answerSeconds: Float = 0.5  // for one accessibility call
let maxAncestors = 20  // keeps a query short if a tree is very large
let dock = "com.apple.dock"
// Events may be lost if the process ends right after it posted them. enigo waits 20 ms for each event (enigo#329).
let (settleSeconds, minSettleSeconds, maxSettleSeconds) = (0.02, 0.06, 0.5)

struct Failure: Error {
    let code: String?
    let message: String
    var reachedID: Int?
    var sourceID: String?
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
    let character: String?, text: String?, id: String?
    let release: [Step]?

    var point: CGPoint { CGPoint(x: x, y: y) }
    var eventFlags: CGEventFlags { CGEventFlags(rawValue: flags ?? 0) }
}

struct Request: Decodable {
    let window: Target!
    let stopFile: String, record: String?
    let release: [Step]?, steps: [Step]
}

// Swift 6 refuses global variables. Only the main thread uses these.
final class Shared: @unchecked Sendable {
    var hungPids: Set<pid_t> = []  // applications that did not answer in time; they are not asked again
    var isCertain = true  // false once an overlay or an open menu may have received a press
    var pointer: CGPoint?  // its last known position
    var source: CGEventSource?
    var settledAt: Date?  // when the last posted event should have arrived
    var pressesBefore: Int64 = 0  // mouse presses that the system counted before ours
    var layouts: [UInt64: [String: CGKeyCode]] = [:]
}
let shared = Shared()

// Checks, some of which accessibility.js documents:

struct Window {
    let id: Int
    let pid: pid_t
    let app: String
    let title: String?
    let layer: Int
    let alpha: Double
    let frame: CGRect

    init?(_ info: [String: Any]) {
        guard let id = info["kCGWindowNumber"] as? Int, let pid = info["kCGWindowOwnerPID"] as? Int,
            let layer = info["kCGWindowLayer"] as? Int, let alpha = info["kCGWindowAlpha"] as? Double,
            let bounds = info["kCGWindowBounds"] as? [String: Double],
            let x = bounds["X"], let y = bounds["Y"], let width = bounds["Width"], let height = bounds["Height"]
        else { return nil }
        (self.id, self.pid, self.layer, self.alpha) = (id, pid_t(pid), layer, alpha)
        frame = CGRect(x: x, y: y, width: width, height: height)
        app = info["kCGWindowOwnerName"] as? String ?? ""
        title = info["kCGWindowName"] as? String
    }

    var name: String { "window \(id) of \(app.isEmpty ? "an unknown application" : app)" }

    var isLarge: Bool { alpha > 0 && frame.width >= smallestWindow && frame.height >= smallestWindow }
    var isOrdinary: Bool { layer == 0 && isLarge }
}

// Lists the windows on the screen, front to back. Throws if the screen is locked: events posted then are lost.
func listOnScreen() throws -> [Window] {
    guard let session = CGSessionCopyCurrentDictionary() as? [String: Any],
        let list = CGWindowListCopyWindowInfo([.optionOnScreenOnly, .excludeDesktopElements], kCGNullWindowID) as? [[String: Any]]
    else { throw Failure(code: "NO_GUI_SESSION", message: "there is no GUI session") }
    let isLocked = session["CGSSessionScreenIsLocked"] as? Bool ?? false
    let isOnConsole = session["kCGSSessionOnConsoleKey"] as? Bool ?? true
    if isLocked || !isOnConsole { throw Failure(code: "SCREEN_LOCKED", message: "the screen is locked") }
    return list.compactMap(Window.init)
}

func isNear(_ a: Double, _ b: Double, within: Double = 2) -> Bool { abs(a - b) <= within }

// Allows a difference of two points: accessibility and the window server round frames differently.
func isSameFrame(_ a: CGRect, _ b: CGRect) -> Bool {
    isNear(Double(a.minX), Double(b.minX)) && isNear(Double(a.minY), Double(b.minY))
        && isNear(Double(a.width), Double(b.width)) && isNear(Double(a.height), Double(b.height))
}

// Asks the window server which window a press there reaches; it skips windows that let clicks through. Returns nil if that
// window is not in the list. In a program without NSApplication, the window server may not answer.
func windowHit(at point: CGPoint, _ windows: [Window]) -> Window? {
    // this function measures y upwards
    let flipped = CGPoint(x: point.x, y: CGDisplayBounds(CGMainDisplayID()).height - point.y)
    let id = MainActor.assumeIsolated { NSWindow.windowNumber(at: flipped, belowWindowWithWindowNumber: 0) }
    return windows.first { $0.id == id }
}

// Throws unless a press at this point reaches the target. Clears isCertain if that is doubtful.
func checkWindow(_ target: Target, at point: CGPoint) throws {
    let windows = try listOnScreen()
    guard let current = windows.first(where: { $0.id == target.id }) else {
        throw Failure(code: "WINDOW_NOT_FOUND", message: "window \(target.id) is no longer on the screen")
    }
    guard isSameFrame(current.frame, target.frame) else {
        throw Failure(code: "STALE_SCREENSHOT", message: "window \(target.id) has just moved or changed its size")
    }
    if windows.contains(where: { $0.id != target.id && isOpenMenu($0) }) { shared.isCertain = false }
    for window in windows where window.alpha > 0 && window.frame.contains(point) {
        if window.id == target.id { return }
        // an overlay larger than the target may let clicks through, which the list of windows does not show
        let isOverlay = window.layer != 0 && window.frame.contains(current.frame)
        if let hit = isOverlay ? windowHit(at: point, windows) : window {
            if hit.id == target.id { return }
            let message = "window \(target.id) is covered by \(hit.name) at that point"
            throw Failure(code: "WINDOW_COVERED", message: message, reachedID: hit.id)
        }
        if NSRunningApplication(processIdentifier: window.pid)?.bundleIdentifier != dock { shared.isCertain = false }
    }
    throw Failure(code: "WINDOW_COVERED", message: "that point is outside window \(target.id)")
}

// Returns nil if the element does not have the attribute or its application does not answer.
func attribute(_ element: AXUIElement, _ name: String, _ pid: pid_t) -> CFTypeRef? {
    if shared.hungPids.contains(pid) { return nil }
    var value: CFTypeRef?
    let error = AXUIElementCopyAttributeValue(element, name as CFString, &value)
    if error == .cannotComplete { shared.hungPids.insert(pid) }  // it is gone, or did not answer in time
    return error == .success ? value : nil
}

func extent(of element: AXUIElement, _ pid: pid_t) -> CGRect? {
    var origin = CGPoint.zero
    var size = CGSize.zero
    guard let position = attribute(element, "AXPosition", pid), CFGetTypeID(position) == AXValueGetTypeID(),
        let dimensions = attribute(element, "AXSize", pid), CFGetTypeID(dimensions) == AXValueGetTypeID(),
        AXValueGetValue(position as! AXValue, .cgPoint, &origin), AXValueGetValue(dimensions as! AXValue, .cgSize, &size)
    else { return nil }
    return CGRect(origin: origin, size: size)
}

// Returns the window that accessibility reports as focused, or `front` if it reports none; nil if that window is not in the list.
// Finds the window by its frame and then its title, because accessibility has no window numbers; exactly one must match.
func focusedWindow(_ target: Target, _ windows: [Window], _ front: Window?) -> Window? {
    let pid = target.pid
    guard let value = attribute(AXUIElementCreateApplication(pid), "AXFocusedWindow", pid),
        CFGetTypeID(value) == AXUIElementGetTypeID()
    else { return front }
    let element = value as! AXUIElement
    guard let frame = extent(of: element, pid) else { return nil }
    // the window server lists an Open or Save panel under another process
    var matches = windows.filter { ($0.pid == pid || $0.id == target.id) && isSameFrame($0.frame, frame) }
    if matches.count > 1 {
        let title = attribute(element, "AXTitle", pid) as? String
        matches = matches.filter { $0.title == title }
    }
    return matches.count == 1 ? matches[0] : nil
}

func isFrontmost(_ pid: pid_t) -> Bool {
    let live = attribute(AXUIElementCreateApplication(pid), "AXFrontmost", pid) as? Bool
    return live ?? (NSWorkspace.shared.frontmostApplication?.processIdentifier == pid)
}

func panelWithKeys(_ pid: pid_t, _ windows: [Window]) -> Window? {
    var owner: pid_t = 0
    guard let value = attribute(AXUIElementCreateSystemWide(), "AXFocusedApplication", 0),
        CFGetTypeID(value) == AXUIElementGetTypeID(),
        AXUIElementGetPid(value as! AXUIElement, &owner) == .success, owner != pid
    else { return nil }
    return windows.first { $0.pid == owner && $0.layer > 0 && $0.isLarge }
}

func isOpenMenu(_ window: Window) -> Bool {
    guard window.layer == menuLayer, window.alpha > 0 else { return false }
    var nextElement: AXUIElement?
    let (app, frame) = (AXUIElementCreateApplication(window.pid), window.frame)
    guard !shared.hungPids.contains(window.pid),
        AXUIElementCopyElementAtPosition(app, Float(frame.midX), Float(frame.midY), &nextElement) == .success
    else { return true }
    for _ in 0..<maxAncestors {
        guard let element = nextElement else { break }
        if attribute(element, "AXRole", window.pid) as? String == "AXMenu" { return true }
        if let extent = extent(of: element, window.pid), isSameFrame(extent, frame) { return true }
        nextElement = attribute(element, "AXParent", window.pid)
            .flatMap { CFGetTypeID($0) == AXUIElementGetTypeID() ? ($0 as! AXUIElement) : nil }
    }
    return shared.hungPids.contains(window.pid)
}

// Throws unless a key posted now reaches the target.
func checkKeyboard(_ target: Target, _ stopFile: String) throws {
    try checkNotStopped(stopFile)
    // AppKit's frontmost application does not change before the run loop turns
    RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.001))
    let windows = try listOnScreen()
    func lost(to window: Window?) -> Failure {
        let message = "\(window?.name ?? "another application") has the keyboard focus"
        return Failure(code: "FOCUS_LOST", message: message, reachedID: window?.id)
    }
    if let panel = panelWithKeys(target.pid, windows) { throw lost(to: panel) }
    let isInFront = isFrontmost(target.pid)
    let pid = isInFront ? target.pid : NSWorkspace.shared.frontmostApplication?.processIdentifier
    let front = windows.first { $0.pid == pid && $0.isOrdinary }
    guard isInFront, let pid = pid else { throw lost(to: pid == target.pid ? nil : front) }
    // an open menu receives every key
    let menu = windows.first { $0.pid == pid && isOpenMenu($0) }
    if menu != nil || target.isPopup {
        if let menu = menu, target.isPopup, menu.id == target.id { return }
        throw lost(to: menu ?? front)
    }
    let candidates = windows.filter { $0.layer >= 0 && $0.layer < menuLayer && $0.alpha > 0 }
    let focused = focusedWindow(target, candidates, front)
    if focused?.id != target.id { throw lost(to: focused) }
}

// Throws if the user holds a mouse button or a modifier key, in the hardware's own state. Caps lock does not count.
func checkNothingHeld() throws {
    let buttons: [CGMouseButton] = [.left, .right, .center]
    let isButton = buttons.contains { CGEventSource.buttonState(.hidSystemState, button: $0) }
    let modifiers: CGEventFlags = [.maskShift, .maskControl, .maskAlternate, .maskCommand]
    if isButton || !CGEventSource.flagsState(.hidSystemState).intersection(modifiers).isEmpty {
        let held = isButton ? "mouse button" : "modifier key"
        throw Failure(code: "WINDOW_BLOCKED", message: "a \(held) is held down")
    }
}

// Posting is asynchronous, so waits up to 200 ms for the pointer to arrive.
func checkPointer(at point: CGPoint) throws {
    for _ in 0..<20 {
        guard let location = CGEvent(source: nil)?.location else { break }
        shared.pointer = location
        if isNear(Double(location.x), Double(point.x), within: 1) && isNear(Double(location.y), Double(point.y), within: 1) { return }
        Thread.sleep(forTimeInterval: 0.01)
    }
    throw Failure(code: nil, message: "the pointer did not arrive")
}

func checkNotStopped(_ stopFile: String) throws {
    if FileManager.default.fileExists(atPath: stopFile) { throw Failure(code: "POLICY_DENIED", message: "the stop file exists") }
}

// Checks this process before its first event, because without the permission the system drops events silently. Either of the two
// calls may wrongly return false.
func checkAccess() throws {
    guard AXIsProcessTrusted() || CGPreflightPostEventAccess() else {
        throw Failure(code: "PERMISSION_DENIED_ACCESSIBILITY", message: "mouse and keyboard cannot be used")
    }
    // for all elements of this process: how long a call waits for a hung application
    AXUIElementSetMessagingTimeout(AXUIElementCreateSystemWide(), answerSeconds)
    // a private source does not add the modifier keys that the user holds down
    shared.source = CGEventSource(stateID: .privateState)
    shared.source?.localEventsSuppressionInterval = 0
    for type: CGEventType in [.leftMouseDown, .rightMouseDown, .otherMouseDown] {
        shared.pressesBefore += Int64(CGEventSource.counterForEventType(.hidSystemState, eventType: type))
    }
}

typealias Key = (code: CGKeyCode, flags: CGEventFlags)

// Returns [character: key code] while these modifiers are held. Without dead keys.
func layout(for flags: CGEventFlags) -> [String: CGKeyCode] {
    if let known = shared.layouts[flags.rawValue] { return known }
    var codes: [String: CGKeyCode] = [:]
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
            if error == 0 && length == 1 && units[0] >= 32 { codes[String(utf16CodeUnits: units, count: 1)] = code }
        }
    }
    shared.layouts[flags.rawValue] = codes
    return codes
}

// Returns the key that types a character, or nil if the layout has none. A layout may have other letters while Command is held.
func findKey(_ character: String, held: CGEventFlags) -> Key? {
    for flags: CGEventFlags in held.contains(.maskCommand) ? [.maskCommand, [], .maskShift] : [[], .maskShift] {
        if let code = layout(for: flags)[character] { return (code, held.union(flags)) }
    }
    return nil
}

// Returns the key of a "key" step. If the layout has no key for its character, the code is the character's place on a US keyboard,
// which macOS uses for Cyrillic layouts too.
func key(for step: Step) -> Key {
    let key = step.character.flatMap { findKey($0, held: CGEventFlags(rawValue: step.held)) }
    return key ?? (step.code ?? 0, step.eventFlags)
}

func text(_ key: CFString, of source: TISInputSource) -> String {
    TISGetInputSourceProperty(source, key).map { Unmanaged<NSString>.fromOpaque($0).takeUnretainedValue().description } ?? ""
}

func checkLayout() throws {
    guard let source = TISCopyCurrentKeyboardInputSource()?.takeRetainedValue() else { return }
    if text(kTISPropertyInputSourceType, of: source) == "TISTypeKeyboardLayout" { return }
    let id = text(kTISPropertyInputSourceID, of: source)
    throw Failure(code: "WINDOW_BLOCKED", message: "the input method \(id) would compose other text from the keys", sourceID: id)
}

func selectSource(_ id: String?) {
    let wanted = id.map { [kTISPropertyInputSourceID as String: $0] as CFDictionary }
    let sources = wanted.flatMap { TISCreateInputSourceList($0, false)?.takeRetainedValue() as? [TISInputSource] }
    let source = id == nil ? TISCopyCurrentASCIICapableKeyboardLayoutInputSource()?.takeRetainedValue() : sources?.first
    if let source = source { TISSelectInputSource(source) }
    shared.layouts = [:]
}

func sleep(_ seconds: TimeInterval) { Thread.sleep(forTimeInterval: seconds) }

func post(_ created: CGEvent?, _ flags: CGEventFlags) throws {
    guard let event = created else {
        throw Failure(code: "INTERNAL_SWIFT_ERROR", message: "the system created no event")
    }
    event.flags = flags
    event.post(tap: .cghidEventTap)
    shared.settledAt = max(Date(), shared.settledAt ?? Date()).addingTimeInterval(settleSeconds)
}

func postMouse(_ step: Step) throws {
    let (type, button) = (CGEventType(rawValue: step.type) ?? .null, CGMouseButton(rawValue: step.button ?? 0) ?? .left)
    let eventSource = step.noSource == true ? nil : shared.source
    let event = CGEvent(mouseEventSource: eventSource, mouseType: type, mouseCursorPosition: step.point, mouseButton: button)
    // macOS 27 may ignore the first press of a process unless its number follows the system's last one
    let number = step.number.map { shared.pressesBefore + $0 }
    let fields: [(CGEventField, Int64?)] = [
        (.mouseEventNumber, number), (.mouseEventClickState, step.clicks), (.mouseEventDeltaX, step.dx), (.mouseEventDeltaY, step.dy),
    ]
    for case let (field, value?) in fields { event?.setIntegerValueField(field, value: value) }
    if let dx = step.dx, let dy = step.dy {  // deskflow sets the deltas as doubles, too (OSXScreen.mm)
        event?.setDoubleValueField(.mouseEventDeltaX, value: Double(dx))
        event?.setDoubleValueField(.mouseEventDeltaY, value: Double(dy))
    }
    try post(event, step.eventFlags)
}

func postKey(_ code: CGKeyCode, _ isDown: Bool, _ flags: CGEventFlags, _ text: String = "") throws {
    let event = CGEvent(keyboardEventSource: shared.source, virtualKey: code, keyDown: isDown)
    let units = Array(text.utf16)
    if !units.isEmpty { event?.keyboardSetUnicodeString(stringLength: units.count, unicodeString: units) }
    try post(event, flags)
}

// Sends both the key and its text, because programs read either. Presses no modifier keys; the flags are enough for text.
func type(_ text: String, with key: Key) throws {
    try postKey(key.code, true, key.flags, text)
    sleep(typedSeconds)
    try postKey(key.code, false, [], text)
    sleep(typedSeconds)
}

func typeText(_ step: Step) throws {
    if let code = step.code { return try type(step.text ?? "", with: (code, [])) }
    for unit in (step.text ?? "").utf16.map({ String(utf16CodeUnits: [$0], count: 1) }) {
        try type(unit, with: findKey(unit, held: []) ?? (0, []))
    }
}

func execute(_ step: Step, _ request: Request) throws {
    switch step.do {
    case "window_at": try checkWindow(request.window, at: step.point)
    case "pointer_at": try checkPointer(at: step.point)
    case "has_keyboard": try checkKeyboard(request.window, request.stopFile)
    case "has_layout": try checkLayout()
    case "select_source": selectSource(step.id)
    case "mouse": try postMouse(step)
    case "wheel":
        let event = CGEvent(
            scrollWheelEvent2Source: shared.source, units: .line, wheelCount: 2, wheel1: step.vertical, wheel2: step.horizontal, wheel3: 0)
        try post(event, [])
    case "key":
        let (code, flags) = key(for: step)
        try postKey(code, step.isDown, step.isDown ? flags : step.eventFlags)
    case "type":
        try checkKeyboard(request.window, request.stopFile)
        try typeText(step)
    default: throw Failure(code: "INVALID_ARGUMENT", message: "there is no step \(step.do)")
    }
}

func runRelease(_ steps: [Step], _ request: Request) throws {
    for step in steps {
        try execute(step, request)
        sleep((step.ms ?? 0) / 1000)
    }
}

func pause(_ seconds: Double, _ stopFile: String) throws {
    for left in stride(from: seconds, to: 0, by: -sliceSeconds) {
        sleep(min(left, sliceSeconds))
        try checkNotStopped(stopFile)
    }
}

let decoder = JSONDecoder()
decoder.keyDecodingStrategy = .convertFromSnakeCase
let request = try decoder.decode(Request.self, from: FileHandle.standardInput.readToEnd() ?? Data())
var completed = 0
var release: [Step] = []
var failure: Failure?
do {
    try checkAccess()
    try runRelease(request.release ?? [], request)
    try checkNothingHeld()
    for step in request.steps {
        try execute(step, request)
        release = step.release ?? release
        completed += 1
        try pause((step.ms ?? 0) / 1000, request.stopFile)
    }
} catch let reason as Failure {
    failure = reason
    try runRelease(release, request)
}
try? FileManager.default.removeItem(atPath: request.record ?? "")
if let end = shared.settledAt { sleep(min(max(end.timeIntervalSinceNow, minSettleSeconds), maxSettleSeconds)) }
let position: Any = shared.pointer.map { ["x": Double($0.x), "y": Double($0.y)] } ?? NSNull()
let reply: [String: Any] = [
    "ok": failure == nil, "step": completed, "pointer": position, "is_certain": shared.isCertain, "code": failure?.code ?? NSNull(),
    "message": failure?.message ?? "", "reached_id": failure?.reachedID ?? NSNull(), "source_id": failure?.sourceID ?? NSNull(),
    "released": failure != nil && !release.isEmpty,
]
let output = try JSONSerialization.data(withJSONObject: reply, options: [.sortedKeys])
try FileHandle.standardOutput.write(contentsOf: output + Data("\n".utf8))
