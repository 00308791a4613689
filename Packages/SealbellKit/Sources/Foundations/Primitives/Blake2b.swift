package import PushModel

/// BLAKE2b without a key (RFC 7693), over several parts as if they were one.
package enum Blake2b {
    /// - Returns: 32 bytes.
    package static func digest32(_ parts: [UnsafeRawBufferPointer]) -> Secret {
        digest32 { hash in
            for part in parts { hash.update(part) }
        }
    }

    /// Hashes what `fill` puts in, without a list of it. For hot paths.
    ///
    /// - Returns: 32 bytes.
    package static func digest32(_ fill: (borrowing KeyedHash) -> Void) -> Secret {
        Secret(count: 32) { KeyedHash.hash(key: nil, into: $0, fill) }
    }
}
