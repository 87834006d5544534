// The folder of a fake Mac, as the stand-in modules see it: desktop.json (read), events.jsonl and pointer.json (written).
import Foundation

public enum FakeMac {
    private static let folder = ProcessInfo.processInfo.environment["FAKEMAC_FOLDER"]!
    private static var before = CGPoint.zero
    private static var movedAt = Date.distantPast

    public static func granted(_ permission: String) -> Bool {
        object(read("desktop.json")["permissions"])[permission] as? String == "granted"
    }

    /// CGEventPost is asynchronous: for some milliseconds (here: many) the pointer is read where it was.
    public static func pointer() -> CGPoint {
        if Date().timeIntervalSince(movedAt) < 0.045 { return before }
        let point = read("pointer.json")
        return CGPoint(x: number(point["x"]), y: number(point["y"]))
    }

    /// A locked screen takes no events, and the pointer stays on a display: as tests/support/fakemac settles it.
    public static func movePointer(to point: CGPoint) {
        let desktop = read("desktop.json")
        let session = object(desktop["session"])
        guard session["locked"] as? Bool != true && session["gui"] as? Bool != false else { return }
        before = pointer()
        movedAt = Date()
        let reached = onDisplay(point, desktop["displays"] as? [[String: Any]] ?? [])
        let data = try! JSONSerialization.data(withJSONObject: ["x": Double(reached.x), "y": Double(reached.y)])
        try! data.write(to: URL(fileURLWithPath: folder + "/pointer.json"), options: .atomic)
    }

    public static func append(_ line: [String: Any]) {
        var data = try! JSONSerialization.data(withJSONObject: line, options: [.sortedKeys])
        data.append(10)
        let file = open(folder + "/events.jsonl", O_WRONLY | O_APPEND | O_CREAT, 0o600)
        precondition(file >= 0 && data.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == data.count)
        close(file)
    }

    private static func onDisplay(_ point: CGPoint, _ displays: [[String: Any]]) -> CGPoint {
        var nearest = point, distance = Double.infinity
        for display in displays where display["active"] as? Bool != false {
            let bounds: [Double] = (display["bounds"] as? [Any] ?? []).map(number)
            let x: Double = clamp(Double(point.x), bounds[0], bounds[2]), y: Double = clamp(Double(point.y), bounds[1], bounds[3])
            let away: Double = hypot(x - Double(point.x), y - Double(point.y))
            if away < distance { (nearest, distance) = (CGPoint(x: x, y: y), away) }
        }
        return nearest
    }

    private static func clamp(_ value: Double, _ start: Double, _ length: Double) -> Double {
        value >= start && value < start + length ? value : min(max(value, start), start + length - 1)
    }

    private static func number(_ value: Any?) -> Double { (value as? NSNumber)?.doubleValue ?? 0 }

    private static func object(_ value: Any?) -> [String: Any] { value as? [String: Any] ?? [:] }

    private static func read(_ name: String) -> [String: Any] {
        guard let data = FileManager.default.contents(atPath: folder + "/" + name) else { return [:] }
        return object(try? JSONSerialization.jsonObject(with: data))
    }
}
