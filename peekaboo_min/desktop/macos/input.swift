// one JSON request on stdin -> one JSON answer on stdout, exit 0
//   {"do":"preflight"}                                        -> {"ok":true,"accessibility":b,"post_event":b,"screen_recording":b}
//   {"do":"move","x":n,"y":n}                                 -> {"ok":true,"pointer":{"x":n,"y":n}}, read back, screen points
//   {"do":"click","x":n,"y":n,"button":"left","clicks":1}     -> the same; button left, right or middle; clicks 1, 2 or 3
//   {"do":"type","text":"..."}                                -> {"ok":true}
//   {"do":"press","key_code":n,"flags":n}                     -> {"ok":true}; flags are CGEventFlags bits
//   refused                                                   -> {"ok":false,"code":"...","message":"..."}, and nothing was posted
import ApplicationServices
import CoreGraphics
import Foundation

struct Refusal: Error {
    let code: String
    let message: String
}

// A field that is missing or of another type is nil; each act says which fields it needs.
struct Request: Decodable {
    let act: String?, button: String?, text: String?
    let x: Double?, y: Double?
    let clicks: Int?
    let keyCode: UInt16?
    let flags: UInt32?

    enum CodingKeys: String, CodingKey {
        case act = "do", button, text, x, y, clicks, keyCode = "key_code", flags
    }

    init(from decoder: Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        act = try? fields.decode(String.self, forKey: .act)
        button = try? fields.decode(String.self, forKey: .button)
        text = try? fields.decode(String.self, forKey: .text)
        x = try? fields.decode(Double.self, forKey: .x)
        y = try? fields.decode(Double.self, forKey: .y)
        clicks = try? fields.decode(Int.self, forKey: .clicks)
        keyCode = try? fields.decode(UInt16.self, forKey: .keyCode)
        flags = try? fields.decode(UInt32.self, forKey: .flags)
    }
}

func invalid(_ message: String) -> Refusal {
    Refusal(code: "INVALID_ARGUMENT", message: message)
}

// Without access the system drops every post and reports nothing, so ask in this process, before the first one.
func openSource() throws -> CGEventSource {
    guard AXIsProcessTrusted() && CGPreflightPostEventAccess() else {
        throw Refusal(code: "PERMISSION_DENIED_ACCESSIBILITY", message: "mouse and keyboard events are not allowed without Accessibility access")
    }
    // A private source does not inherit the modifier keys that somebody is holding down.
    guard let source = CGEventSource(stateID: .privateState) else {
        throw Refusal(code: "INTERNAL_SWIFT_ERROR", message: "the system made no event source")
    }
    source.localEventsSuppressionInterval = 0
    return source
}

func post(_ made: CGEvent?, _ flags: CGEventFlags, pause: TimeInterval) throws {
    guard let event = made else {
        throw Refusal(code: "INTERNAL_SWIFT_ERROR", message: "the system made no event")
    }
    event.flags = flags
    event.post(tap: .cghidEventTap)
    Thread.sleep(forTimeInterval: pause)
}

// 30 ms: AppKit drops clicks that come faster than its event loop turns.
func postMouse(_ source: CGEventSource, _ type: CGEventType, _ point: CGPoint, _ button: CGMouseButton, _ clickState: Int64) throws {
    let event = CGEvent(mouseEventSource: source, mouseType: type, mouseCursorPosition: point, mouseButton: button)
    event?.setIntegerValueField(.mouseEventClickState, value: clickState)
    try post(event, [], pause: 0.03)
}

func postKey(_ source: CGEventSource, _ code: CGKeyCode, _ flags: CGEventFlags, _ units: [UniChar]) throws {
    for down in [true, false] {
        let event = CGEvent(keyboardEventSource: source, virtualKey: code, keyDown: down)
        if !units.isEmpty {
            event?.keyboardSetUnicodeString(stringLength: units.count, unicodeString: units)
        }
        try post(event, flags, pause: 0.008)
    }
}

func target(_ request: Request) throws -> CGPoint {
    guard let x = request.x, let y = request.y, x.isFinite, y.isFinite else { throw invalid("x and y must be finite numbers") }
    return CGPoint(x: x, y: y)
}

// Posting is asynchronous: give the pointer up to 200 ms to arrive, then say where it is.
func pointer(near point: CGPoint) throws -> [String: Any] {
    for _ in 0..<20 {
        guard let now = CGEvent(source: nil)?.location else { break }
        if abs(now.x - point.x) <= 1 && abs(now.y - point.y) <= 1 { break }
        Thread.sleep(forTimeInterval: 0.01)
    }
    guard let now = CGEvent(source: nil)?.location else {
        throw Refusal(code: "INTERNAL_SWIFT_ERROR", message: "the pointer cannot be read back")
    }
    return ["ok": true, "pointer": ["x": Double(now.x), "y": Double(now.y)]]
}

func move(_ request: Request) throws -> [String: Any] {
    let point = try target(request)
    try postMouse(openSource(), .mouseMoved, point, .left, 0)
    return try pointer(near: point)
}

func click(_ request: Request) throws -> [String: Any] {
    let buttons: [String: (CGMouseButton, CGEventType, CGEventType)] = [
        "left": (.left, .leftMouseDown, .leftMouseUp),
        "right": (.right, .rightMouseDown, .rightMouseUp),
        "middle": (.center, .otherMouseDown, .otherMouseUp),
    ]
    let point = try target(request)
    guard let (button, down, up) = buttons[request.button ?? ""] else { throw invalid("button must be left, right or middle") }
    guard let clicks = request.clicks, (1...3).contains(clicks) else { throw invalid("clicks must be 1, 2 or 3") }
    let source = try openSource()
    try postMouse(source, .mouseMoved, point, .left, 0)
    for state in 1...Int64(clicks) {
        try postMouse(source, down, point, button, state)
        try postMouse(source, up, point, button, state)
    }
    return try pointer(near: point)
}

// 20 UTF-16 units an event is what applications are known to read; a longer grapheme cluster goes whole.
func typeText(_ request: Request) throws -> [String: Any] {
    guard let text = request.text else { throw invalid("text must be a string") }
    let keys: [Character: CGKeyCode] = ["\n": 36, "\r": 36, "\r\n": 36, "\t": 48, "\u{8}": 51]
    let source = try openSource()
    var chunk: [UniChar] = []
    func flush() throws {
        if !chunk.isEmpty { try postKey(source, 0, [], chunk) }
        chunk = []
    }
    for character in text {
        let code = keys[character]
        if code != nil || chunk.count + character.utf16.count > 20 { try flush() }
        if let code = code { try postKey(source, code, [], []) } else { chunk += Array(character.utf16) }
    }
    try flush()
    return ["ok": true]
}

func press(_ request: Request) throws -> [String: Any] {
    guard let code = request.keyCode else { throw invalid("key_code must be a whole number from 0 to 65535") }
    guard let flags = request.flags else { throw invalid("flags must be a whole number from 0 to 4294967295") }
    try postKey(openSource(), code, CGEventFlags(rawValue: UInt64(flags)), [])
    return ["ok": true]
}

func answer(_ input: Data) throws -> [String: Any] {
    guard let request = try? JSONDecoder().decode(Request.self, from: input) else { throw invalid("the request must be one JSON object") }
    switch request.act {
    case "preflight":
        return ["ok": true, "accessibility": AXIsProcessTrusted(), "post_event": CGPreflightPostEventAccess(),
                "screen_recording": CGPreflightScreenCaptureAccess()]
    case "move": return try move(request)
    case "click": return try click(request)
    case "type": return try typeText(request)
    case "press": return try press(request)
    default: throw invalid("do must be preflight, move, click, type or press")
    }
}

let reply: [String: Any]
do {
    reply = try answer(FileHandle.standardInput.readToEnd() ?? Data())
} catch let refusal as Refusal {
    reply = ["ok": false, "code": refusal.code, "message": refusal.message]
}
let output = try JSONSerialization.data(withJSONObject: reply, options: [.sortedKeys])
try FileHandle.standardOutput.write(contentsOf: output + Data("\n".utf8))
