import CSodium
package import PushModel

/// BLAKE2b without a key (RFC 7693), over several parts as if they were one.
package enum Blake2b {
    /// - Returns: 32 bytes.
    package static func digest32(_ parts: [UnsafeRawBufferPointer]) -> Secret {
        Sodium.prepare()
        return Secret(count: 32) { out in
            // The C type asks for an alignment of 64, which only an explicit allocation grants.
            withUnsafeTemporaryAllocation(byteCount: crypto_generichash_statebytes(), alignment: 64) { room in
                let state = OpaquePointer(room.baseAddress!)
                _ = crypto_generichash_init(state, nil, 0, out.count)
                for part in parts { _ = crypto_generichash_update(state, part.octets, UInt64(part.count)) }
                _ = crypto_generichash_final(state, out.octets, out.count)
                sodium_memzero(room.baseAddress!, room.count)
            }
        }
    }
}
