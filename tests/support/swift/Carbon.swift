// A stand-in for Apple's Carbon: the keyboard's layout, as TextInputSources.h, UnicodeUtilities.h and CFData.h have it.
@_exported import CoreGraphics
import Foundation

public typealias OptionBits = UInt32
public typealias OSStatus = Int32
public typealias CFDictionary = [String: Any]
public typealias CFArray = NSArray
public final class TISInputSource {
    let id: NSString
    init(_ id: String = "") { self.id = NSString(string: id) }
}
public final class CFData {}
public struct UCKeyboardLayout {}

public let kTISPropertyUnicodeKeyLayoutData: String! = "TISPropertyUnicodeKeyLayoutData"
public let kTISPropertyInputSourceID: String! = "TISPropertyInputSourceID"
public let kTISPropertyInputSourceType: String! = "TISPropertyInputSourceType"
public let kUCKeyActionDown = 0
public let cmdKey = 0x100
public let shiftKey = 0x200

private let data = CFData()
private let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)
private let keys = FakeMac.object(FakeMac.object(FakeMac.state()["keyboard"])["keys"])

public func TISCopyCurrentKeyboardLayoutInputSource() -> Unmanaged<TISInputSource>! { .passRetained(TISInputSource()) }

public func TISCopyCurrentKeyboardInputSource() -> Unmanaged<TISInputSource>! {
    (FakeMac.object(FakeMac.state()["keyboard"])["source"] as? String).map { .passRetained(TISInputSource($0)) }
}

public func TISCopyCurrentASCIICapableKeyboardLayoutInputSource() -> Unmanaged<TISInputSource>! {
    .passRetained(TISInputSource("com.apple.keylayout.US"))
}

public func TISCreateInputSourceList(_ filter: CFDictionary!, _ all: Bool) -> Unmanaged<CFArray>! {
    .passRetained(NSArray(array: [TISInputSource(filter[kTISPropertyInputSourceID] as! String)]))
}

@discardableResult
public func TISSelectInputSource(_ source: TISInputSource!) -> OSStatus {
    FakeMac.append(["do": "select_source", "id": source.id.description, "t": Date().timeIntervalSince1970 * 1000])
    return 0
}

private let (layout, method) = (NSString(string: "TISTypeKeyboardLayout"), NSString(string: "TISTypeKeyboardInputMode"))

/// NULL where a layout has no such data.
public func TISGetInputSourceProperty(_ source: TISInputSource!, _ key: String!) -> UnsafeMutableRawPointer! {
    if key == kTISPropertyInputSourceID { return Unmanaged.passRetained(source.id).toOpaque() }
    if key == kTISPropertyInputSourceType {
        return Unmanaged.passRetained(source.id.description.contains("keylayout") ? layout : method).toOpaque()
    }
    return keys.isEmpty ? nil : Unmanaged.passUnretained(data).toOpaque()
}

public func CFDataGetBytePtr(_ data: CFData!) -> UnsafePointer<UInt8>! { UnsafePointer(bytes) }

public func LMGetKbdType() -> UInt8 { 40 }

public func UCKeyTranslate(
    _ layout: UnsafePointer<UCKeyboardLayout>!, _ code: UInt16, _ action: UInt16, _ modifiers: UInt32, _ keyboard: UInt32,
    _ options: OptionBits, _ deadKeys: UnsafeMutablePointer<UInt32>!, _ most: Int, _ length: UnsafeMutablePointer<Int>!,
    _ text: UnsafeMutablePointer<UniChar>!
) -> OSStatus {
    let made = keys["\(code)"] as? [String] ?? ["", "", ""]
    let units = Array(made[modifiers & UInt32(cmdKey >> 8) != 0 ? 2 : modifiers & UInt32(shiftKey >> 8) != 0 ? 1 : 0].utf16)
    length.pointee = units.count
    for (place, unit) in units.enumerated() { text[place] = unit }
    return 0
}
