import Crypto
import CryptoExtras
import PushModel

/// A SHA-512 digest whose message nobody here knows (decision 0068).
///
/// swift-crypto takes its own digest types alone and gives them no public initialiser, so the 64 bytes are
/// read as one. Whether that is what they are is looked at once in a process, before the first use.
enum GivenDigest {
    /// False: nothing verifies over a given digest.
    static let isSound = check(knownKey: knownKey, knownSignature: knownSignature)

    /// `nil` unless there are 64 bytes, and the check has passed.
    static func sha512(_ bytes: UnsafeRawBufferPointer) -> SHA512Digest? { isSound ? cast(bytes) : nil }

    private typealias Words = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

    private static func cast(_ bytes: UnsafeRawBufferPointer) -> SHA512Digest? {
        guard bytes.count == RSAForm.digestBytes, hasLayoutOfBytes else { return nil }
        var words: Words = (0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &words) { $0.copyMemory(from: bytes) }
        return unsafeBitCast(words, to: SHA512Digest.self)
    }

    /// Plain memory of the same size and alignment, so that the cast cannot trap, nor count references that
    /// are none.
    private static var hasLayoutOfBytes: Bool {
        _isPOD(SHA512Digest.self) && MemoryLayout<SHA512Digest>.size == MemoryLayout<Words>.size
            && MemoryLayout<SHA512Digest>.stride == MemoryLayout<Words>.stride
            && MemoryLayout<SHA512Digest>.alignment == MemoryLayout<Words>.alignment
    }

    /// Whether a given digest is the one that the library makes itself, byte for byte, and verifies what
    /// OpenSSL has signed, and nothing else.
    static func check(knownKey: String, knownSignature: String) -> Bool {
        let made = SHA512.hash(data: Array("abc".utf8))
        let bytes = made.withUnsafeBytes { Array($0) }
        var other = bytes
        other[63] ^= 1
        guard bytes.count == RSAForm.digestBytes, let given = bytes.withUnsafeBytes({ cast($0) }),
            let wrong = other.withUnsafeBytes({ cast($0) }),
            given.withUnsafeBytes({ Array($0) }) == bytes, wrong.withUnsafeBytes({ Array($0) }) == other,
            let der = raw(knownKey), let signed = raw(knownSignature),
            let key = try? _RSA.Signing.PublicKey(derRepresentation: der)  // Then it is not sound.
        else { return false }
        let signature = _RSA.Signing.RSASignature(rawRepresentation: signed)
        return key.isValidSignature(signature, for: given, padding: .insecurePKCS1v1_5)
            && !key.isValidSignature(signature, for: wrong, padding: .insecurePKCS1v1_5)
    }

    /// The known key.
    static var publicKey: RSAPublicKey? { raw(knownKey).flatMap { try? RSAPublicKey(der: $0) } }

    private static func raw(_ base64: String) -> [UInt8]? {
        let pem = "-----BEGIN KNOWN-----\n\(base64)\n-----END KNOWN-----"
        return Array(pem.utf8).withUnsafeBytes { PEMText.der($0, label: "KNOWN") }?.reveal { Array($0) }
    }

    /// Made by `openssl genrsa 2048`; its private half was thrown away.
    static let knownKey = """
        MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA3suUSlg4cQnP5U3sTdZwEks1X6PyP/TiLNoGnz08YSps
        9IxbjGcrjuxeutydPFVKHvd89h7e55WGr8LKBcI62N/q2dLp7V9T78dskWgPqSEkM5jj5cOL11cdYmjx+panWZeG
        YNIJwBFiKUWLtFAckadfSBvd7SgmUxZJPnHd2lZpvZS7/AilJLqtpciOJ71K2l1Lyn0yTtd3f94cEUFj3Zi9/D0y
        tWsaRGolcEJpmXdlTPWa2yrNBdD2joOkkY3ZZUqmkhmgxSW/8/oBFLEIwpYEtfyCy+0e9vbEPCLy4hcyOVMMacFU
        po81fMIV6pxtwZ0up5Iol+DduSfhrbRXtQIDAQAB
        """
    /// Of `abc`, by `openssl dgst -sha512 -sign`.
    static let knownSignature = """
        3ljiyZNLIbn9UWOG+L3nXXvX+qdCZ4EKKD1ewCar/xePBJE/PzKY5f7MbniWqQghu7FLqvU0lQB7Ag8oWpF9wUI6
        Juj8aSvyf1+asQzZ6/rw7XH5S0xZoLfmO2XZTKU9SqmpAVxnEhZPW2kAznXT+yTWmfLuWE3w9WLzBHPHXoAc/oNg
        BGKScj5VJqz8aakFPXecV3LFxfp1tmqWdBR9m1awC5rec5vWilhPuuwYiVjpBEy+MrMh2y3XmD+eDmDnS0JA/Hmu
        9PDLNEZpkTnzQEFO5rZKkRjM/xaaoOTyLjJfokl9uRzK5utGkeSUnuXt0vQ+/x1/SRivICnDk507OA==
        """
}
