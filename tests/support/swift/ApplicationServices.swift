// A stand-in for Apple's ApplicationServices: CoreGraphics again, and the part of accessibility that is about windows.
// Names, labels and error numbers: AXUIElement.h, AXValue.h, AXError.h. CF types are Swift's own here, as Linux has none.
@_exported import CoreGraphics
import Foundation

public typealias CFString = String
public typealias CFTypeRef = Any
public typealias CFTypeID = UInt

public enum AXError: Int32 {
    case success = 0
    case failure = -25200, illegalArgument = -25201, invalidUIElement = -25202, cannotComplete = -25204
    case attributeUnsupported = -25205, actionUnsupported = -25206, notImplemented = -25208
    case apiDisabled = -25211, noValue = -25212
}

public enum AXValueType: UInt32 {
    case illegal = 0, cgPoint, cgSize, cgRect
}

public final class AXUIElement {
    let pid: pid_t?
    let window: Int?
    let isItem: Bool  // in the middle of a menu
    init(pid: pid_t? = nil, window: Int? = nil, isItem: Bool = false) { (self.pid, self.window, self.isItem) = (pid, window, isItem) }
}

public final class AXValue {
    let numbers: [Double]
    let type: AXValueType
    init(_ type: AXValueType, _ numbers: [Double]) { (self.type, self.numbers) = (type, numbers) }
}

private var timeout: Double = 90  // how long Apple's own is, is not in the facts: longer than any test waits

public func AXIsProcessTrusted() -> Bool {
    let answers = FakeMac.object(FakeMac.state()["switches"])["trust_preflight"] as? String
    return FakeMac.granted("accessibility") && answers == "agrees"
}
public func AXUIElementCreateApplication(_ pid: pid_t) -> AXUIElement { AXUIElement(pid: pid) }
public func AXUIElementCreateSystemWide() -> AXUIElement { AXUIElement() }
public func AXUIElementGetTypeID() -> CFTypeID { 1 }
public func AXValueGetTypeID() -> CFTypeID { 2 }
public func CFGetTypeID(_ value: CFTypeRef) -> CFTypeID { value is AXUIElement ? 1 : value is AXValue ? 2 : 0 }

/// For every element of this process, when it is set on the system-wide one.
@discardableResult
public func AXUIElementSetMessagingTimeout(_ element: AXUIElement, _ seconds: Float) -> AXError {
    if element.pid == nil { timeout = Double(seconds) }
    return .success
}

public func AXUIElementGetPid(_ element: AXUIElement, _ pid: UnsafeMutablePointer<pid_t>) -> AXError {
    guard let known = element.pid else { return .illegalArgument }
    pid.pointee = known
    return .success
}

public func AXUIElementCopyElementAtPosition(
    _ application: AXUIElement, _ x: Float, _ y: Float, _ element: UnsafeMutablePointer<AXUIElement?>
) -> AXError {
    guard AXIsProcessTrusted() else { return .apiDisabled }
    let world = FakeMac.state()
    guard FakeMac.object(world["switches"])["position_test"] as? String == "works" else { return .cannotComplete }
    guard let window = FakeMac.windowAt(CGPoint(x: Double(x), y: Double(y)), world) else { return .noValue }
    let pid = pid_t(FakeMac.number(window["pid"]))
    guard application.pid == nil || application.pid == pid else { return .noValue }
    let isItem = FakeMac.number(window["layer"]) == 101
    element.pointee = AXUIElement(pid: pid, window: Int(FakeMac.number(window["id"])), isItem: isItem)
    return .success
}

public func AXUIElementCopyAttributeValue(
    _ element: AXUIElement, _ attribute: CFString, _ value: UnsafeMutablePointer<CFTypeRef?>
) -> AXError {
    guard AXIsProcessTrusted() else { return .apiDisabled }
    if element.pid == nil && attribute == "AXFocusedApplication" {
        let world = FakeMac.state()
        let panel = FakeMac.shownWindows(world).first { $0["takes_keys"] as? Bool == true }
        let told = FakeMac.number(panel?["pid"] ?? world["frontmost_pid"])
        let mode = FakeMac.object(world["switches"])["focused_application"] as? String
        if mode == "silent" { return .noValue }
        value.pointee = AXUIElement(pid: mode == "stale" ? 420 : pid_t(told))
        return .success
    }
    guard let pid = element.pid, let app = FakeMac.app(pid) else { return .cannotComplete }
    if app["hung"] as? Bool == true {
        FakeMac.append(["do": "note", "kind": "asked_in_vain", "t": Date().timeIntervalSince1970 * 1000])
        Thread.sleep(forTimeInterval: timeout)
        return .cannotComplete
    }
    let world = FakeMac.state()
    if element.window == nil && attribute == "AXFrontmost" {
        value.pointee = pid_t(FakeMac.number(world["frontmost_pid"])) == pid
        return .success
    }
    if element.window == nil {
        guard attribute == "AXFocusedWindow" else { return .attributeUnsupported }
        guard FakeMac.object(world["session"])["locked"] as? Bool != true else { return .noValue }
        let focused = FakeMac.shownWindows(world).first { window in
            let layer = FakeMac.number(window["layer"])
            let owner = FakeMac.number(window["pid"])
            let asker = FakeMac.app(pid_t(owner))?["panels_of"] ?? owner  // of an Open or Save panel
            let isKey = layer >= 0 && layer < 20 && window["never_key"] as? Bool != true
            return pid_t(FakeMac.number(asker)) == pid && isKey
                && FakeMac.number(window["alpha"]) > 0 && FakeMac.bounds(window).width >= 50
        }
        guard let window = focused else { return .noValue }
        value.pointee = AXUIElement(pid: pid, window: Int(FakeMac.number(window["id"])))
        return .success
    }
    let found = FakeMac.objects(world["windows"]).first { Int(FakeMac.number($0["id"])) == element.window }
    guard let window = found else { return .invalidUIElement }
    let bounds = FakeMac.bounds(window, "ax_bounds")
    if element.isItem {
        guard attribute == "AXParent" else { return .attributeUnsupported }
        value.pointee = AXUIElement(pid: pid, window: element.window)
        return .success
    }
    switch attribute {
    case "AXPosition": value.pointee = AXValue(.cgPoint, [Double(bounds.minX), Double(bounds.minY)])
    case "AXSize": value.pointee = AXValue(.cgSize, [Double(bounds.width), Double(bounds.height)])
    case "AXRole": value.pointee = window["ax_role"] as? String ?? (FakeMac.number(window["layer"]) == 101 ? "AXMenu" : "AXWindow")
    case "AXTitle": value.pointee = window["title"] as? String ?? ""
    default: return .attributeUnsupported
    }
    return .success
}

public func AXValueGetValue(_ value: AXValue, _ type: AXValueType, _ pointer: UnsafeMutableRawPointer) -> Bool {
    guard value.type == type else { return false }
    switch type {
    case .cgPoint: pointer.assumingMemoryBound(to: CGPoint.self).pointee = CGPoint(x: value.numbers[0], y: value.numbers[1])
    case .cgSize: pointer.assumingMemoryBound(to: CGSize.self).pointee = CGSize(width: value.numbers[0], height: value.numbers[1])
    default: return false
    }
    return true
}
