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

    /// Time-varying: it does not change before the main run loop turns (the header says so).
    public var frontmostApplication: NSRunningApplication? {
        if frontmost == nil {
            frontmost = pid_t(FakeMac.number(FakeMac.state()["frontmost_pid"]))
            RunLoop.current.perform { self.frontmost = nil }
        }
        return frontmost.flatMap { NSRunningApplication(processIdentifier: $0) }
    }
}
