public import PushModel
import Primitives
import WireFormats

/// The first eight bytes of SHA-256 over a device token as given (§2). On every wire: base64, 12 characters.
public struct TokenID: Sendable, Hashable {
    /// Big-endian.
    public let value: UInt64

    /// An id of eight bytes that are known, big-endian.
    public init(_ value: UInt64) { self.value = value }

    /// The id of a token. No case folding: the token counts byte for byte.
    public init(token: Secret) {
        value = SHA256.hash(token)[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads the wire form; `nil` unless it is canonical base64 of exactly eight bytes.
    public init?(_ text: UnsafeRawBufferPointer) {
        guard text.count == 12 else { return nil }
        var word: UInt64 = 0
        do throws(FormatError) {
            try withUnsafeMutableBytes(of: &word) { (raw) throws(FormatError) in
                try Base64.decode(text, into: raw)
            }
        } catch {
            return nil
        }
        value = UInt64(bigEndian: word)
    }

    /// Reads the wire form from text.
    public init?(_ text: String) {
        guard let id = withBytes(Array(text.utf8), { TokenID($0) }) else { return nil }
        self = id
    }

    /// Eight bytes, big-endian.
    package var bytes: [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }

    /// The wire form.
    public var text: String { Base64.text(bytes) }

    /// As databases of deployed servers hold it (§2).
    public var signed: Int64 { Int64(bitPattern: value) }
}
