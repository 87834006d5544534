// A stand-in for Apple's Carbon: the keyboard's layout, as TextInputSources.h, UnicodeUtilities.h and CFData.h have it.
@_exported import CoreGraphics
import Foundation

public typealias OptionBits = UInt32
public typealias OSStatus = Int32
public final class TISInputSource {}
public final class CFData {}
public struct UCKeyboardLayout {}

public let kTISPropertyUnicodeKeyLayoutData: String! = "TISPropertyUnicodeKeyLayoutData"
public let kUCKeyActionDown = 0
public let cmdKey = 0x100
public let shiftKey = 0x200

private let data = CFData()
private let bytes = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)
private let keys = FakeMac.object(FakeMac.object(FakeMac.state()["keyboard"])["keys"])

public func TISCopyCurrentKeyboardLayoutInputSource() -> Unmanaged<TISInputSource>! { .passRetained(TISInputSource()) }

/// NULL where a layout has no such data.
public func TISGetInputSourceProperty(_ source: TISInputSource!, _ key: String!) -> UnsafeMutableRawPointer! {
    keys.isEmpty ? nil : Unmanaged.passUnretained(data).toOpaque()
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
