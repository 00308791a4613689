import PushModel
@testable import RSAKeys
import Testing
import WireFormats

@Suite("RSA keys", .timeLimit(.minutes(30)))
struct RSAKeyTests {
    private static let pair = Result { try RSAPrivateKey.generate() }
    private let message = Array("ciphertext".utf8)

    private func key() throws -> RSAPrivateKey { try Self.pair.get() }

    private func publicKey(_ text: String) -> RSAPublicKey? {
        Array(text.utf8).withUnsafeBytes { try? RSAPublicKey(pem: $0) }
    }

    @Test("A public key is read from PEM of any line ends and widths, and written in OpenSSL's")
    func pem() throws {
        let key = try key().publicKey
        let text = key.pem
        #expect(text.utf8.count == RSAForm.publicPEMBytes)
        let lines = text.split(separator: "\n").map(String.init)
        let base64 = lines.dropFirst().dropLast().joined()
        let first = try #require(lines.first)
        let last = try #require(lines.last)
        let spellings = [
            text, String(text.dropLast()), text.replacing("\n", with: "\r\n"), text + "\n\n",
            "\(first)\n\(base64)\n\(last)", "\(first)\r\(base64.prefix(76))\r\(base64.dropFirst(76))\r\(last)"
        ]
        for spelling in spellings { #expect(publicKey(spelling) == key) }
        #expect(try RSAPublicKey(der: key.der) == key)
    }

    @Test("Whatever is no such PEM is refused, and so is a cut one at every length")
    func malformedPEM() throws {
        let text = try key().publicKey.pem
        let bad = [
            "", "(null)", " " + text, "x" + text, text + "x",
            text.replacing("PUBLIC KEY", with: "RSA PUBLIC KEY"),
            text.replacing("MII", with: "M II"), text.replacing("MII", with: "M-I"), text + text,
            text.replacing("-----BEGIN PUBLIC KEY-----\n", with: "-----BEGIN PUBLIC KEY-----"),
            text.replacing("\n-----END", with: "=\n-----END"), String(repeating: "A", count: 10_000)
        ]
        for spelling in bad { #expect(publicKey(spelling) == nil, "\(spelling.prefix(40))") }
        // The last character is the newline, which may be missing.
        for count in 0..<(text.utf8.count - 1) { #expect(publicKey(String(text.prefix(count))) == nil) }
    }

    @Test("A key of another size or spelling is refused")
    func otherKeys() throws {
        let der = try key().publicKey.der
        for count in 0..<der.count { #expect((try? RSAPublicKey(der: Array(der.prefix(count)))) == nil) }
        #expect((try? RSAPublicKey(der: der + [0])) == nil)
        // The bare PKCS#1 key within.
        #expect((try? RSAPublicKey(der: Array(der.dropFirst(24)))) == nil)
        var even = der
        even[der.count - 6] &= 0xFE
        #expect((try? RSAPublicKey(der: even)) == nil, "an even modulus")
    }

    @Test("A signature verifies over its message, and over the digest of it, and over nothing else")
    func signatures() throws {
        let key = try key()
        let signature = try withBytes(message) { (bytes) throws(RSAError) in try key.sign(bytes) }
        // By `printf ciphertext | sha512sum`.
        let digest = try Hex.decode(
            Array(
                ("75530a613e35a6e5be303fc09c02db6da00dcb4920e1e3b1af8cb59733fe8d12"
                    + "485586d05a4aab9bdf913111c142dc5133e41590fde9eff14d01473d0a777724").utf8))
        let overDigest = signature.withUnsafeBytes { signature in
            digest.withUnsafeBytes { key.publicKey.isValid(signature, overDigest: $0) }
        }
        #expect(overDigest)
        let hashedTwice = signature.withUnsafeBytes { signature in
            digest.withUnsafeBytes { key.publicKey.isValid(signature, over: $0) }
        }
        #expect(!hashedTwice)
        let valid = signature.withUnsafeBytes { signature in
            message.withUnsafeBytes { key.publicKey.isValid(signature, over: $0) }
        }
        #expect(valid)
        for at in [0, 100, 255] {
            var changed = signature
            changed[at] ^= 1
            #expect(
                !changed.withUnsafeBytes { changed in
                    message.withUnsafeBytes { key.publicKey.isValid(changed, over: $0) }
                })
        }
        for count in [0, 255, 257] {
            let other = [UInt8](repeating: 1, count: count)
            #expect(
                !other.withUnsafeBytes { other in
                    message.withUnsafeBytes { key.publicKey.isValid(other, over: $0) }
                })
        }
    }

    @Test(
        "A given digest is checked with what OpenSSL has signed, and a check that fails lets nothing verify")
    func givenDigest() throws {
        #expect(RSAPublicKey.verifiesDigests)
        let other = String(GivenDigest.knownSignature.reversed())
        #expect(!GivenDigest.check(knownKey: GivenDigest.knownKey, knownSignature: other))
        #expect(!GivenDigest.check(knownKey: "AAAA", knownSignature: GivenDigest.knownSignature))
        let short = [UInt8](repeating: 0, count: 63)
        #expect(short.withUnsafeBytes { GivenDigest.sha512($0) } == nil)
    }

    @Test(
        "What is encrypted opens with the same padding, up to the last byte that fits",
        arguments: RSAPadding.allCases)
    func encryption(_ padding: RSAPadding) throws {
        let key = try key()
        for count in [0, 1, padding.plaintextBytes] {
            let plain = Secret([UInt8](repeating: 7, count: count))
            let sealed = try key.publicKey.encrypt(plain, padding: padding)
            #expect(sealed.count == RSAForm.blockBytes)
            let opened = try withBytes(sealed) { (bytes) throws(RSAError) in
                try key.decrypt(bytes, padding: padding)
            }
            #expect(opened == plain)
        }
        let long = Secret([UInt8](repeating: 7, count: padding.plaintextBytes + 1))
        #expect(throws: RSAError(.plaintextTooLong)) { try key.publicKey.encrypt(long, padding: padding) }
    }

    @Test("A ciphertext of another key or length does not open with OAEP, and says no more")
    func foreign() throws {
        let (key, other) = (try key(), try RSAPrivateKey.generate())
        let sealed = try other.publicKey.encrypt(Secret("x".utf8), padding: .oaepSHA1)
        for bytes in [sealed, Array(sealed.dropLast()), sealed + [0], []] {
            #expect(throws: RSAError(.ciphertextDoesNotOpen)) {
                try withBytes(bytes) { (bytes) throws(RSAError) in
                    try key.decrypt(bytes, padding: .oaepSHA1)
                }
            }
        }
    }

    @Test("A private key is kept as PKCS#8 PEM and comes back")
    func privatePEM() throws {
        let key = try key()
        let again = try RSAPrivateKey(pem: key.pem)
        #expect(again.publicKey == key.publicKey)
        #expect(throws: RSAError(.malformedRSAKey)) { try RSAPrivateKey(pem: Secret("no key".utf8)) }
        #expect(throws: RSAError(.malformedRSAKey)) {
            try RSAPrivateKey(pem: Secret(key.publicKey.pem.utf8))
        }
    }
}
