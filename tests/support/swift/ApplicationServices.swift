// A stand-in for Apple's ApplicationServices: the umbrella re-exports CoreGraphics and has the Accessibility check.
@_exported import CoreGraphics

public func AXIsProcessTrusted() -> Bool { FakeMac.granted("accessibility") }
