// The folder of a fake Mac, as the stand-in modules see it: desktop.json is read, lines are added to events.jsonl.
// A thread of the tests (fakemac/settler.py) settles what is posted; each read waits until it has.
import Foundation

public enum FakeMac {
    private static let folder = ProcessInfo.processInfo.environment["FAKEMAC_FOLDER"]!
    private static var before = CGPoint.zero
    private static var movedAt = Date.distantPast
    private static var hasStarted = false
    private static var postedAt: Date?
    private static var lastPost: Date?
    /// How long the program did nothing after what it posted last: its own pause, not what this bench takes.
    public private(set) static var idleMs = 0.0

    public static func granted(_ permission: String) -> Bool {
        object(state()["permissions"])[permission] as? String == "granted"
    }

    /// CGEventPost is asynchronous: for some milliseconds (here: many) the pointer still reads as before.
    public static func pointer() -> CGPoint {
        if Date().timeIntervalSince(movedAt) < 0.045 { return before }
        let point = object(state()["pointer"])
        return CGPoint(x: number(point["x"]), y: number(point["y"]))
    }

    public static func pointerWillMove() {
        before = pointer()
        movedAt = Date()
    }

    public static func hasPosted() {
        if lastPost == nil { atexit { FakeMac.ends() } }
        (postedAt, lastPost) = (Date(), Date())
    }

    /// What a process posted right before its end may be lost.
    private static func ends() {
        let least = number(object(read()["switches"])["early_exits_dropped_ms"])
        guard let at = lastPost, Date().timeIntervalSince(at) * 1000 < least else { return }
        append(["do": "note", "kind": "lost", "what": ["why": "the process ended too soon"], "t": Date().timeIntervalSince1970 * 1000])
    }

    public static func append(_ line: [String: Any]) {
        var data = try! JSONSerialization.data(withJSONObject: line, options: [.sortedKeys])
        data.append(10)
        let file = open(folder + "/events.jsonl", O_WRONLY | O_APPEND | O_CREAT, 0o600)
        precondition(file >= 0 && data.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == data.count)
        close(file)
    }

    /// The world after everything that was posted so far, and is due by now.
    public static func state() -> [String: Any] {
        if let at = postedAt { (idleMs, postedAt) = (Date().timeIntervalSince(at) * 1000, nil) }
        announce()
        let deadline = Date().addingTimeInterval(20)
        while true {
            let state = read()
            let posted = (try? FileManager.default.attributesOfItem(atPath: folder + "/events.jsonl"))?[.size]
            let now = Date().timeIntervalSince1970 * 1000
            let isDue = objects(state["pending"]).contains { number($0["due"]) <= now }
            if number(posted) == number(state["settled_bytes"]) && !isDue { return state }
            precondition(Date() < deadline, "nobody settles the fake Mac")
            usleep(1000)
        }
    }

    public static func number(_ value: Any?) -> Double { (value as? NSNumber)?.doubleValue ?? 0 }

    public static func object(_ value: Any?) -> [String: Any] { value as? [String: Any] ?? [:] }

    public static func objects(_ value: Any?) -> [[String: Any]] { value as? [[String: Any]] ?? [] }

    public static func app(_ pid: Int32) -> [String: Any]? {
        objects(state()["apps"]).first { $0["pid"] is NSNumber && Int32(number($0["pid"])) == pid }
    }

    /// By accessibility ("ax_bounds") they may be rounded otherwise than by the window server.
    public static func bounds(_ window: [String: Any], _ name: String = "bounds") -> CGRect {
        let numbers = (window[name] as? [Any] ?? window["bounds"] as? [Any] ?? []).map { number($0) }
        return CGRect(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
    }

    /// The window that a press there reaches.
    public static func windowAt(_ point: CGPoint, _ world: [String: Any]) -> [String: Any]? {
        shownWindows(world).first { window in
            number(window["alpha"]) > 0 && window["click_through"] as? Bool != true
                && window["closing"] as? Bool != true && bounds(window).contains(point)
        }
    }

    /// On the screen, front to back: higher layers first.
    public static func shownWindows(_ world: [String: Any]) -> [[String: Any]] {
        let hidden = objects(world["apps"]).filter { $0["hidden"] as? Bool == true && $0["pid"] is NSNumber }.map { number($0["pid"]) }
        let shown = objects(world["windows"]).filter { window in
            if window["minimised"] as? Bool == true || window["on_screen"] as? Bool == false { return false }
            if hidden.contains(number(window["pid"])) { return false }
            return !(window["space"] is NSNumber) || number(window["space"]) == number(world["space"])
        }
        let ordered = shown.enumerated().sorted { a, b in
            let (one, other) = (number(a.element["layer"]), number(b.element["layer"]))
            return one == other ? a.offset < b.offset : one > other
        }
        return ordered.map { $0.element }
    }

    /// Tests can wait for a program's start, which writes a line.
    private static func announce() {
        if hasStarted { return }
        hasStarted = true
        let waits = objects(read()["triggers"]).contains { object($0["on"])["do"] as? String == "started" }
        if waits { append(["do": "started", "program": "swift-helper", "t": Date().timeIntervalSince1970 * 1000]) }
    }

    private static func read() -> [String: Any] {
        guard let data = FileManager.default.contents(atPath: folder + "/desktop.json") else { return [:] }
        return object(try? JSONSerialization.jsonObject(with: data))
    }
}
