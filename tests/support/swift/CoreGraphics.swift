// A stand-in for Apple's CoreGraphics: the same names and labels, acting on the folder of a fake Mac.
// Names, raw values and optionality: the SDK's CGEvent.h, CGEventSource.h, CGEventTypes.h, CGRemoteOperation.h.
// Only what exists on every SDK from 13 to 26 is here, so a call that is obsolete on a newer one does not compile.
import Foundation

public typealias CGKeyCode = UInt16
public typealias UniChar = UInt16
public typealias CFTimeInterval = Double

public enum CGMouseButton: UInt32 {
    case left = 0, right, center
}

public enum CGEventType: UInt32 {
    case null = 0, leftMouseDown, leftMouseUp, rightMouseDown, rightMouseUp, mouseMoved, leftMouseDragged, rightMouseDragged
    case keyDown = 10, keyUp, flagsChanged
    case scrollWheel = 22, tabletPointer, tabletProximity, otherMouseDown, otherMouseUp, otherMouseDragged
    case tapDisabledByTimeout = 0xFFFF_FFFE, tapDisabledByUserInput = 0xFFFF_FFFF
}

public struct CGEventFlags: OptionSet {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }
    public static let maskNonCoalesced = CGEventFlags(rawValue: 0x100)
    public static let maskAlphaShift = CGEventFlags(rawValue: 0x10000)
    public static let maskShift = CGEventFlags(rawValue: 0x20000)
    public static let maskControl = CGEventFlags(rawValue: 0x40000)
    public static let maskAlternate = CGEventFlags(rawValue: 0x80000)
    public static let maskCommand = CGEventFlags(rawValue: 0x100000)
    public static let maskNumericPad = CGEventFlags(rawValue: 0x200000)
    public static let maskHelp = CGEventFlags(rawValue: 0x400000)
    public static let maskSecondaryFn = CGEventFlags(rawValue: 0x800000)
}

public enum CGEventField: UInt32 {
    case mouseEventNumber = 0, mouseEventClickState, mouseEventPressure, mouseEventButtonNumber, mouseEventDeltaX, mouseEventDeltaY
    case mouseEventInstantMouser, mouseEventSubtype, keyboardEventAutorepeat, keyboardEventKeycode, keyboardEventKeyboardType
    case eventTargetProcessSerialNumber = 39, eventTargetUnixProcessID, eventSourceUnixProcessID, eventSourceUserData
    case eventSourceUserID, eventSourceGroupID, eventSourceStateID
}

public enum CGScrollEventUnit: UInt32 {
    case pixel = 0, line
}

public enum CGEventTapLocation: UInt32 {
    case cghidEventTap = 0, cgSessionEventTap, cgAnnotatedSessionEventTap
}

public enum CGEventSourceStateID: Int32 {
    case privateState = -1, combinedSessionState = 0, hidSystemState = 1
}

public final class CGEventSource {
    public let sourceStateID: CGEventSourceStateID
    public var localEventsSuppressionInterval: CFTimeInterval = 0.25
    public init?(stateID: CGEventSourceStateID) { sourceStateID = stateID }

    private class var postedIsHeld: Bool { FakeMac.object(FakeMac.state()["switches"])["posted_is_held"] as? Bool == true }

    /// What a person holds, and perhaps what was posted; of the session's state also what is stuck in it.
    public class func flagsState(_ stateID: CGEventSourceStateID) -> CGEventFlags {
        let keyboard = FakeMac.object(FakeMac.state()["keyboard"])
        let pressed = postedIsHeld ? FakeMac.number(keyboard["pressed_flags"]) : 0
        let session = stateID == .hidSystemState ? 0 : FakeMac.number(keyboard["session_flags"])
        return CGEventFlags(rawValue: UInt64(FakeMac.number(keyboard["held_flags"])) | UInt64(pressed) | UInt64(session))
    }
    public class func buttonState(_ stateID: CGEventSourceStateID, button: CGMouseButton) -> Bool {
        let mouse = FakeMac.object(FakeMac.state()["mouse"])
        let held = mouse["held"] as? [NSNumber] ?? []
        return held.contains { $0.uint32Value == button.rawValue }
            || postedIsHeld && FakeMac.object(mouse["down"])["\(button.rawValue)"] != nil
    }
    public class func counterForEventType(_ stateID: CGEventSourceStateID, eventType: CGEventType) -> UInt32 {
        UInt32(FakeMac.number(FakeMac.object(FakeMac.object(FakeMac.state()["mouse"])["presses"])["\(eventType.rawValue)"]))
    }
}

public final class CGEvent {
    public var type: CGEventType = .null
    public lazy var location: CGPoint = FakeMac.pointer()  // asked for late: it waits for the world to settle
    // An event without assigned flags carries some, so that a forgotten `flags = []` shows in the event line.
    public var flags: CGEventFlags = .maskNonCoalesced
    private let source: CGEventSource?
    private var fields: [CGEventField: Int64] = [:]
    private var doubles: [CGEventField] = []
    private var unicode: [UniChar]?
    private var wheel: (unit: CGScrollEventUnit, lines: [Int32])?

    public init?(source: CGEventSource?) {
        self.source = source
    }

    public convenience init?(mouseEventSource source: CGEventSource?, mouseType: CGEventType, mouseCursorPosition: CGPoint, mouseButton: CGMouseButton) {
        self.init(source: source)
        type = mouseType
        location = mouseCursorPosition
        fields[.mouseEventButtonNumber] = Int64(mouseButton.rawValue)
    }

    public convenience init?(keyboardEventSource source: CGEventSource?, virtualKey: CGKeyCode, keyDown: Bool) {
        self.init(source: source)
        type = (54...63).contains(virtualKey) ? .flagsChanged : keyDown ? .keyDown : .keyUp
        fields[.keyboardEventKeycode] = Int64(virtualKey)
    }

    public convenience init?(
        scrollWheelEvent2Source source: CGEventSource?, units: CGScrollEventUnit, wheelCount: UInt32, wheel1: Int32, wheel2: Int32,
        wheel3: Int32
    ) {
        self.init(source: source)
        type = .scrollWheel
        wheel = (units, Array([wheel1, wheel2, wheel3].prefix(Int(wheelCount))))
    }

    public func setIntegerValueField(_ field: CGEventField, value: Int64) { fields[field] = value }
    public func setDoubleValueField(_ field: CGEventField, value: Double) { doubles.append(field) }
    public func getIntegerValueField(_ field: CGEventField) -> Int64 { fields[field] ?? 0 }

    public func keyboardSetUnicodeString(stringLength: Int, unicodeString: UnsafePointer<UniChar>?) {
        unicode = Array(UnsafeBufferPointer(start: unicodeString, count: stringLength))
    }

    public func post(tap: CGEventTapLocation) {
        guard FakeMac.granted("accessibility") else { return }  // silently, as a Mac does
        var line: [String: Any] = [
            "type": Int(type.rawValue), "flags": Int(flags.rawValue), "tap": Int(tap.rawValue),
            "source_state": Int((source?.sourceStateID ?? .combinedSessionState).rawValue),
            "suppression_s": source?.localEventsSuppressionInterval ?? 0.25,
            "t": Date().timeIntervalSince1970 * 1000, "idle_ms": FakeMac.idleMs,
        ]
        if type == .keyDown || type == .keyUp || type == .flagsChanged {
            line["keycode"] = Int(getIntegerValueField(.keyboardEventKeycode))
            line["unicode"] = unicode.map { String(decoding: $0, as: UTF16.self) } ?? ""
        } else if let (unit, lines) = wheel {
            line["unit"] = Int(unit.rawValue)
            line["wheel"] = lines.map { Int($0) }
        } else {
            line["x"] = Double(location.x)
            line["y"] = Double(location.y)
            line["button"] = Int(getIntegerValueField(.mouseEventButtonNumber))
            line["clickState"] = Int(getIntegerValueField(.mouseEventClickState))
            let others: [CGEventField: String] = [.mouseEventNumber: "number", .mouseEventDeltaX: "dx", .mouseEventDeltaY: "dy"]
            for (field, name) in others { line[name] = fields[field].map { Int($0) } }
            if doubles == [.mouseEventDeltaX, .mouseEventDeltaY] { line["doubles"] = true }
            FakeMac.pointerWillMove()
        }
        FakeMac.append(line)
        FakeMac.hasPosted()
    }
}

public func CGPreflightScreenCaptureAccess() -> Bool { FakeMac.granted("screen_recording") }
public func CGPreflightPostEventAccess() -> Bool {
    let answers = FakeMac.object(FakeMac.state()["switches"])["post_event_preflight"] as? String
    return FakeMac.granted("accessibility") && answers == "agrees"
}

public func CGMainDisplayID() -> UInt32 { UInt32(FakeMac.number(mainDisplay()["id"])) }
/// Of the main one only.
public func CGDisplayBounds(_ display: UInt32) -> CGRect { FakeMac.bounds(mainDisplay()) }
private func mainDisplay() -> [String: Any] { FakeMac.objects(FakeMac.state()["displays"]).first { $0["main"] as? Bool == true } ?? [:] }

public typealias CGWindowID = UInt32
public let kCGNullWindowID: CGWindowID = 0

public struct CGWindowListOption: OptionSet {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public static let optionOnScreenOnly = CGWindowListOption(rawValue: 1)
    public static let excludeDesktopElements = CGWindowListOption(rawValue: 16)
}

/// A CFArray on a Mac, and NULL without a GUI session. Titles of others need Screen Recording.
public func CGWindowListCopyWindowInfo(_ option: CGWindowListOption, _ relativeToWindow: CGWindowID) -> Any? {
    let world = FakeMac.state()
    let session = FakeMac.object(world["session"])
    guard session["gui"] as? Bool != false else { return nil }
    precondition(option.contains(.optionOnScreenOnly), "the others are not simulated: their order is not documented")
    let recording = FakeMac.granted("screen_recording")
    let windows = FakeMac.shownWindows(world).filter { !option.contains(.excludeDesktopElements) || $0["desktop"] as? Bool != true }
    return windows.map { window -> [String: Any] in
        let bounds = FakeMac.bounds(window)
        let pid = Int(FakeMac.number(window["pid"]))
        var info: [String: Any] = [
            "kCGWindowNumber": Int(FakeMac.number(window["id"])), "kCGWindowOwnerPID": pid,
            "kCGWindowLayer": Int(FakeMac.number(window["layer"])), "kCGWindowAlpha": FakeMac.number(window["alpha"]),
            "kCGWindowIsOnscreen": true,
            "kCGWindowBounds": [
                "X": Double(bounds.minX), "Y": Double(bounds.minY), "Width": Double(bounds.width), "Height": Double(bounds.height),
            ],
        ]
        info["kCGWindowOwnerName"] = FakeMac.app(Int32(pid))?["name"] as? String ?? FakeMac.object(world["other_owners"])["\(pid)"]
        if recording, let title = window["title"] as? String, !title.isEmpty { info["kCGWindowName"] = title }
        return info
    }
}

/// A CFDictionary on a Mac; the key of the lock is there only while it is locked.
public func CGSessionCopyCurrentDictionary() -> Any? {
    let session = FakeMac.object(FakeMac.state()["session"])
    guard session["gui"] as? Bool != false else { return nil }
    var known: [String: Any] = [:]
    if let isOnConsole = session["on_console"] as? Bool { known["kCGSSessionOnConsoleKey"] = isOnConsole }  // it is not documented to be always present
    if session["locked"] as? Bool == true { known["CGSSessionScreenIsLocked"] = true }
    return known
}
