public import PushModel

/// An account's id: a prefix and a key, 33 bytes (§2).
public struct AccountID: Sendable {
    /// 33 bytes: a prefix and a key of 32.
    public let bytes: Secret

    /// - Returns: `nil` unless there are exactly 33 bytes.
    public init?(_ bytes: Secret) {
        guard bytes.count == SessionLimits.accountBytes else { return nil }
        self.bytes = bytes
    }

    /// Of a person, whose key is an X25519 key; all other prefixes precede an Ed25519 key.
    package static let personPrefix: UInt8 = 0x05

    package var prefix: UInt8 { bytes.reveal { $0[0] } }

    /// The 32 bytes behind the prefix.
    package var key: Secret {
        bytes.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[1...])) }
    }

    /// Takes time that depends on lengths alone.
    public static func == (left: AccountID, right: AccountID) -> Bool { left.bytes == right.bytes }
}
