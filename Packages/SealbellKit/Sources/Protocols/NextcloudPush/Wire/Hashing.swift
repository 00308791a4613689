import Crypto
package import PushModel

extension TokenHash {
    /// Of a push token as it is sent: no letter's case is changed, and no digits are read.
    package init(of token: Secret) {
        let digest = token.reveal { SHA512.hash(bufferPointer: $0) }
        // SHA-512 has 64 bytes.
        self = digest.withUnsafeBytes { TokenHash($0)! }
    }

    /// 128 lower-case digits.
    package var hex: [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return withBytes { bytes in bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] } }
    }
}

extension DeviceIdentifier {
    /// Of the text that a server makes of a cloud id and the number of an app password (§4.2).
    package init(hashing preimage: UnsafeRawBufferPointer) {
        let digest = SHA512.hash(bufferPointer: preimage)
        // SHA-512 has 64 bytes.
        self = digest.withUnsafeBytes { DeviceIdentifier($0)! }
    }
}

/// SHA-512 of texts that begin alike: their beginning, which a stranger may have made long, is hashed once.
struct SharedBeginning {
    private var state = SHA512()

    init(_ beginning: [UInt8]) { beginning.withUnsafeBytes { state.update(bufferPointer: $0) } }

    func identifier(endingWith rest: [UInt8]) -> DeviceIdentifier {
        var whole = state
        rest.withUnsafeBytes { whole.update(bufferPointer: $0) }
        // SHA-512 has 64 bytes.
        return whole.finalize().withUnsafeBytes { DeviceIdentifier($0)! }
    }
}

extension SHA512 {
    fileprivate static func hash(bufferPointer bytes: UnsafeRawBufferPointer) -> SHA512Digest {
        var hash = SHA512()
        hash.update(bufferPointer: bytes)
        return hash.finalize()
    }
}
