import Clibsodium
package import PushModel

extension X25519KeyPair {
    /// What both sides can compute and nobody else (RFC 7748, §6.1), 32 bytes.
    ///
    /// - Returns: `nil` for a public key of another length, and for one of small order, with which the
    ///   result would be zero whatever the private key is.
    package func sharedSecret(with publicKey: UnsafeRawBufferPointer) -> Secret? {
        guard publicKey.count == Self.keyBytes else { return nil }
        Sodium.prepare()
        var isUsable = false
        let shared = Secret(count: Self.keyBytes) { out in
            isUsable =
                privateKey.reveal { crypto_scalarmult(out.octets, $0.octets, publicKey.octets) } == 0
        }
        return isUsable ? shared : nil
    }
}
