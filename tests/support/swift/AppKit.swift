// A stand-in for Apple's AppKit: which application is in front, as NSWorkspace.h and NSRunningApplication.h have it.
@_exported import CoreGraphics
import Foundation

public final class NSRunningApplication {
    public let processIdentifier: pid_t
    public let bundleIdentifier: String?

    public init?(processIdentifier pid: pid_t) {
        guard let app = FakeMac.app(pid) else { return nil }
        processIdentifier = pid
        bundleIdentifier = app["bundle_id"] as? String
    }
}

public final class NSWorkspace {
    public static let shared = NSWorkspace()
    private var frontmost: pid_t?

    /// Time-varying: it does not change before the main run loop turns (by its header).
    public var frontmostApplication: NSRunningApplication? {
        if frontmost == nil {
            let world = FakeMac.state()
            let frozen = FakeMac.object(world["switches"])["frozen_frontmost_pid"] as? NSNumber
            frontmost = pid_t(FakeMac.number(frozen ?? world["frontmost_pid"]))
            RunLoop.current.perform { self.frontmost = nil }
        }
        return frontmost.flatMap { NSRunningApplication(processIdentifier: $0) }
    }
}

@preconcurrency @MainActor public class NSWindow {
    /// The window that a press there reaches, of any application; y counts upwards from the bottom of the main display (NSWindow.h).
    public class func windowNumber(at point: CGPoint, belowWindowWithWindowNumber below: Int) -> Int {
        let world = FakeMac.state()
        let place = CGPoint(x: point.x, y: CGDisplayBounds(CGMainDisplayID()).height - point.y)
        let hit = FakeMac.windowAt(place, world).map { Int(FakeMac.number($0["id"])) } ?? 0
        return ["zero": 0, "unknown": 999_999][FakeMac.object(world["switches"])["hit_test"] as? String ?? ""] ?? hit
    }
}
