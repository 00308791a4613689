import Primitives
import PushModel
import WireFormats

extension Secret {
    init(hexDigitsOf digest: Digest16) { self.init(Hex.encode(digest.bytes).utf8) }
}

extension AccountID {
    /// - Returns: `nil` unless these are 66 hex digits.
    init?(hexDigits: Secret) {
        guard hexDigits.count == 2 * SessionLimits.accountBytes, let bytes = hexDigits.fromHex else {
            return nil
        }
        self.init(bytes)
    }

    /// A name of the account for the device's own tables.
    func digest(_ key: Secret) -> Digest16 { KeyedHash.digest16(key: key) { $0.update(bytes) } }
}
