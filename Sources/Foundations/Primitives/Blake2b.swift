package import PushModel

/// BLAKE2b without a key (RFC 7693), over several parts as if they were one.
package enum Blake2b {
    /// - Returns: 32 bytes.
    package static func digest32(_ parts: [UnsafeRawBufferPointer]) -> Secret {
        Secret(count: 32) { out in
            KeyedHash.hash(key: nil, into: out) { hash in
                for part in parts { hash.update(part) }
            }
        }
    }
}
