import Clibsodium
public import PushModel

/// HMAC with SHA-256 (RFC 2104), over several parts as if they were one.
public enum HMAC256 {
    public static let codeBytes = 32

    /// Writes the code, 32 bytes, into memory of the caller.
    package static func code(
        key: UnsafeRawBufferPointer, _ parts: [UnsafeRawBufferPointer],
        into out: UnsafeMutableRawBufferPointer
    ) {
        precondition(out.count == codeBytes)
        Sodium.prepare()
        if parts.reduce(0, { $0 + $1.count }) >= SHA256.bulkBytes { return bulk(key: key, parts, into: out) }
        var state = crypto_auth_hmacsha256_state()
        // The state holds both key blocks.
        defer { sodium_memzero(&state, MemoryLayout<crypto_auth_hmacsha256_state>.size) }
        _ = crypto_auth_hmacsha256_init(&state, key.octets, key.count)
        for part in parts { _ = crypto_auth_hmacsha256_update(&state, part.octets, UInt64(part.count)) }
        _ = crypto_auth_hmacsha256_final(&state, out.octets)
    }

    /// The definition itself, so that the long part goes through the faster hash (decision 0032).
    private static func bulk(
        key: UnsafeRawBufferPointer, _ parts: [UnsafeRawBufferPointer],
        into out: UnsafeMutableRawBufferPointer
    ) {
        let block = 64
        withUnsafeTemporaryAllocation(byteCount: block + codeBytes, alignment: 8) { pad in
            defer { sodium_memzero(pad.baseAddress!, pad.count) }
            sodium_memzero(pad.baseAddress!, pad.count)
            if key.count > block {
                _ = crypto_hash_sha256(pad.octets, key.octets, UInt64(key.count))
            } else {
                pad.copyMemory(from: key)
            }
            for at in 0..<block { pad[at] ^= 0x36 }
            let inner = SHA256.bulk([UnsafeRawBufferPointer(rebasing: pad[..<block])] + parts)
            UnsafeMutableRawBufferPointer(rebasing: pad[block...]).copyBytes(from: inner)
            for at in 0..<block { pad[at] ^= 0x36 ^ 0x5C }
            _ = crypto_hash_sha256(out.octets, pad.octets, UInt64(pad.count))
        }
    }

    /// - Parameter key: of any length.
    /// - Returns: 32 bytes.
    public static func code(key: Secret, _ message: UnsafeRawBufferPointer) -> Secret {
        Secret(count: codeBytes) { out in key.reveal { code(key: $0, [message], into: out) } }
    }
}

/// HKDF with SHA-256 (RFC 5869), its two steps apart: some protocols skip the first.
public enum HKDF256 {
    /// Step 1 (§2.2). - Returns: a pseudorandom key of 32 bytes.
    public static func extract(salt: [UInt8], input: Secret) -> Secret {
        Secret(count: HMAC256.codeBytes) { out in
            salt.withUnsafeBytes { salt in
                input.reveal { HMAC256.code(key: salt, [$0], into: out) }
            }
        }
    }

    /// Step 2 (§2.3).
    ///
    /// - Parameter count: 1 to 8160 bytes; another is a bug of ours.
    public static func expand(_ prk: Secret, info: [UInt8], count: Int) -> Secret {
        precondition((1...255 * HMAC256.codeBytes).contains(count))
        return Secret(count: count) { out in
            prk.reveal { prk in
                info.withUnsafeBytes { info in expand(prk, info, into: out) }
            }
        }
    }

    private static func expand(
        _ prk: UnsafeRawBufferPointer, _ info: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer
    ) {
        withUnsafeTemporaryAllocation(byteCount: HMAC256.codeBytes, alignment: 8) { block in
            var filled = 0
            var counter: UInt8 = 1
            while filled < out.count {
                let before = UnsafeRawBufferPointer(
                    rebasing: UnsafeRawBufferPointer(block)[..<(min(filled, 32))])
                withUnsafeBytes(of: counter) { HMAC256.code(key: prk, [before, info, $0], into: block) }
                let part = min(HMAC256.codeBytes, out.count - filled)
                out.baseAddress!.advanced(by: filled).copyMemory(from: block.baseAddress!, byteCount: part)
                filled += part
                counter &+= 1
            }
            sodium_memzero(block.baseAddress!, block.count)
        }
    }
}
