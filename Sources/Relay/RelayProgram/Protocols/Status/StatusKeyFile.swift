import PushModel
import Secp256k1Keys
import StatusPush
import WireFormats

/// The private key of a push notification server.
enum StatusKeyFile: Secp256k1KeyFile {
    typealias Fault = Secp256k1KeyFault<Self>
    static let command = "status"
    static func publicText(_ pair: Secp256k1KeyPair) -> String { publicText(pair.point) }

    // MARK: Public keys, as apps write them

    /// `0x04` and 128 hex digits.
    static func publicText(_ point: PublicPoint) -> String { "0x" + Hex.encode(point.uncompressed) }

    /// A key in that form, or compressed; `0x` may be left out, and `04` where 128 digits follow.
    static func point(_ text: String) -> PublicPoint? {
        let digits = text.hasPrefix("0x") || text.hasPrefix("0X") ? text.dropFirst(2) : text[...]
        let bare = 2 * (PublicPoint.uncompressedBytes - 1)
        // What is no hex is no key.
        guard let bytes = try? Hex.decode(Array((digits.utf8.count == bare ? "04" : "").utf8) + digits.utf8)
        else { return nil }
        return bytes.withUnsafeBytes { PublicPoint($0) }
    }
}

extension FileContent {
    static let statusKey = StatusKeyFile.content("a Status key")
}
