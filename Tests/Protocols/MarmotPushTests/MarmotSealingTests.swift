import MarmotPush
import Primitives
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WireFormats

/// Boxes and wraps open with the right key and untouched, and in no other case (docs/conformance/marmot.md).
@Suite("Marmot sealing")
struct MarmotSealingTests {
    // MARK: NIP-44

    private static let key = Secret([UInt8](repeating: 9, count: 32))
    private static let nonce = [UInt8](repeating: 5, count: NIP44.nonceBytes)

    private func opens(_ payload: Secret, _ key: Secret = MarmotSealingTests.key) -> MarmotError.Code? {
        MarmotSupport.code { () throws(MarmotError) in _ = try NIP44.decrypt(payload, key: key) }
    }

    @Test("A payload that is cut at any length, or changed in any byte, does not open")
    func payloadDamage() throws {
        let payload = try NIP44.encrypt(Secret("x".utf8), key: Self.key, nonce: Self.nonce)
        #expect(opens(payload) == nil)
        for count in 0..<payload.count {
            #expect(opens(payload.reveal { Secret($0.prefix(count)) }) == .doesNotOpen)
        }
        let bytes = try payload.reveal { try Base64.decode($0) }
        for changed in bytes.withEachChanged() {
            #expect(opens(Secret(Base64.encode(changed))) == .doesNotOpen)
        }
        #expect(opens(payload, Secret([UInt8](repeating: 8, count: 32))) == .doesNotOpen)
        #expect(opens(payload, Secret([1])) == .malformedKey)
        #expect(opens(payload.reveal { Secret([0x23] + $0.dropFirst()) }) == .doesNotOpen)
        #expect(opens(payload.reveal { Secret($0 + [0x0A]) }) == .doesNotOpen)
    }

    /// A payload with a right authenticator over whatever stands in `padded`.
    private func payload(padded: [UInt8]) throws -> Secret {
        let keys = NIP44.messageKeys(Self.key, Self.nonce)
        let (cipher, start, code) = keys.reveal {
            (Secret($0[0..<32]), Array($0[32..<44]), Secret($0[44..<76]))
        }
        let body = try ChaCha20.apply(Secret(padded), key: cipher, nonce: start)
        let signed = Self.nonce + body.reveal { Array($0) }
        let mac = signed.withUnsafeBytes { HMAC256.code(key: code, $0) }
        return Secret(Base64.encode([2] + signed + mac.reveal { Array($0) }))
    }

    @Test("A length that does not belong to the padding is refused, although the key fits")
    func padding() throws {
        let zeros = [UInt8](repeating: 0, count: 70_000)
        #expect(opens(try payload(padded: [0, 1] + zeros[..<32])) == nil)
        #expect(opens(try payload(padded: [0, 32] + zeros[..<32])) == nil)
        let refused: [(head: [UInt8], zeros: Int)] = [
            ([0, 33], 32), ([0, 32], 64), ([0, 0], 32), ([0, 1], 31), ([0xFF, 0xFF], 32), ([0, 0], 64),
            // The long form of a text that the short form could tell, and one beyond its padding.
            ([0, 0, 0, 0, 0, 1], 32), ([0, 0, 0, 0, 0xFF, 0xFF], 65_536), ([0, 0, 0, 1, 0, 1], 65_536),
            ([0, 0, 0xFF, 0xFF, 0xFF, 0xFF], 32)
        ]
        for (head, count) in refused {
            #expect(opens(try payload(padded: head + zeros.prefix(count))) == .doesNotOpen)
        }
        #expect(opens(try payload(padded: [0, 0, 0, 1, 0, 0] + zeros[..<65_536])) == nil)
    }

    @Test("Texts beyond the prefix, empty texts and payloads beyond a frame are not made")
    func lengths() {
        func code(_ count: Int, _ prefix: NIP44.Prefix) -> MarmotError.Code? {
            MarmotSupport.code { () throws(MarmotError) in
                _ = try NIP44.encrypt(
                    Secret(count: count) { _ in }, key: Self.key, nonce: Self.nonce, prefix: prefix)
            }
        }
        #expect(code(0, .short) == .tooMuchContent && code(0, .long) == .tooMuchContent)
        #expect(code(65_535, .short) == nil && code(65_536, .short) == .tooMuchContent)
        #expect(code(65_536, .long) == nil && code(1, .long) == nil)
        #expect(code(200_000, .long) == .tooMuchContent && code(1 << 20, .long) == .tooMuchContent)
        let short = [UInt8](repeating: 0, count: 31)
        #expect(
            MarmotSupport.code { () throws(MarmotError) in
                _ = try NIP44.encrypt(Secret([1]), key: Self.key, nonce: short)
            } == .malformedKey)
    }

    // MARK: tokens

    private static let apns = [UInt8](0..<32)

    @Test("A token goes through the box, fresh each time", arguments: TokenFormat.allCases)
    func tokens(format: TokenFormat) throws {
        let world = MarmotSupport.world()
        let server = Secp256k1KeyPair.generate(world)
        for target in [
            try DeviceTarget(.apns, token: Secret(Self.apns)),
            try DeviceTarget(.fcm, token: Secret("abc:APA91b-_.Z".utf8)),
            try DeviceTarget(.apns, token: Secret([0]))
        ] {
            let box = try TokenBox.encrypt(target, to: server.publicKey, format, world: world)
            let again = try TokenBox.encrypt(target, to: server.publicKey, format, world: world)
            let read = try TokenBox.decrypt(box, format, with: server)
            #expect(read.platform == target.platform && read.token == target.token)
            #expect(format.tokenBytes == nil || box.count == format.tokenBytes)
            // Neither ephemeral key nor nonce nor anything behind them repeats.
            #expect(box.reveal { Array($0[..<32]) } != again.reveal { Array($0[..<32]) })
            #expect(box.reveal { Array($0[32..<44]) } != again.reveal { Array($0[32..<44]) })
        }
    }

    @Test(
        "A box that is cut at any length, changed in any part, of another format or key does not open",
        arguments: TokenFormat.allCases)
    func tokenDamage(format: TokenFormat) throws {
        let world = MarmotSupport.world()
        let server = Secp256k1KeyPair.generate(world)
        let target = try DeviceTarget(.apns, token: Secret(Self.apns))
        let box = try TokenBox.encrypt(target, to: server.publicKey, format, world: world)
        func code(_ box: Secret, _ format: TokenFormat, _ pair: Secp256k1KeyPair) -> MarmotError.Code? {
            MarmotSupport.code { () throws(MarmotError) in _ = try TokenBox.decrypt(box, format, with: pair) }
        }
        for count in 0..<box.count {
            #expect(code(box.reveal { Secret($0.prefix(count)) }, format, server) == .tokenDoesNotOpen)
        }
        for index in [0, 31, 32, 43, 44, box.count - 17, box.count - 16, box.count - 1] {
            var changed = box.reveal { Array($0) }
            changed[index] ^= 1
            #expect(code(Secret(changed), format, server) == .tokenDoesNotOpen, "\(index)")
        }
        for other in TokenFormat.allCases where other != format {
            #expect(code(box, other, server) == .tokenDoesNotOpen)
        }
        #expect(code(box, format, .generate(world)) == .tokenDoesNotOpen)
        #expect(code(box, format, server) == nil)
    }

    @Test("A token that a format has no room for, or that is none, is not boxed")
    func noRoom() throws {
        for (format, most) in [(TokenFormat.mip05Short, 217), (.mip05Long, 1_021), (.pushV1, 1_021)] {
            let fits = try DeviceTarget(.apns, token: Secret([UInt8](repeating: 1, count: most)))
            let over = try DeviceTarget(.apns, token: Secret([UInt8](repeating: 1, count: most + 1)))
            #expect(TokenBox.paddingBytes(fits, format) == 0 && TokenBox.paddingBytes(over, format) == nil)
            let key = try MarmotSupport.pair(3).publicKey
            #expect(
                MarmotSupport.code { () throws(MarmotError) in
                    _ = try TokenBox.encrypt(over, to: key, format, world: MarmotSupport.world())
                } == .tooMuchContent)
        }
        func code(_ platform: DeviceTarget.Platform, _ token: [UInt8]) -> MarmotError.Code? {
            MarmotSupport.code { () throws(MarmotError) in
                _ = try DeviceTarget(platform, token: Secret(token))
            }
        }
        #expect(code(.apns, []) == .malformedToken && code(.fcm, []) == .malformedToken)
        for text in ["a b", "a/b", "a\u{0}", "\u{E9}", "a\n"] {
            #expect(code(.fcm, Array(text.utf8)) == .malformedToken)
        }
        #expect(code(.apns, [UInt8](repeating: 1, count: 4_096)) == nil)
        #expect(code(.apns, [UInt8](repeating: 1, count: 4_097)) == .malformedToken)
    }

    @Test("An APNs token is made of bytes or of hexadecimal digits, each by name")
    func spelling() throws {
        let bytes = (0..<32).map { UInt8($0 * 7 & 0xFF) }
        let text = Secret(Hex.encode(bytes).utf8)
        let capitals = Secret(Hex.encode(bytes).uppercased().utf8)
        #expect(try DeviceTarget.apns(bytes: Secret(bytes)).token == Secret(bytes))
        #expect(try DeviceTarget.apns(hex: text).token == Secret(bytes))
        #expect(try DeviceTarget.apns(hex: capitals).token == Secret(bytes))
        func code(_ make: () throws(MarmotError) -> DeviceTarget) -> MarmotError.Code? {
            MarmotSupport.code { () throws(MarmotError) in _ = try make() }
        }
        #expect(code { () throws(MarmotError) in try .apns(bytes: text) } == .malformedToken)
        #expect(code { () throws(MarmotError) in try .apns(bytes: capitals) } == .malformedToken)
        #expect(code { () throws(MarmotError) in try .apns(hex: Secret(bytes)) } == .malformedToken)
        #expect(code { () throws(MarmotError) in try .apns(hex: Secret("abc".utf8)) } == .malformedToken)
        #expect(code { () throws(MarmotError) in try .apns(hex: Secret([])) } == .malformedToken)
        #expect(try DeviceTarget.fcm(Secret("a:b-c".utf8)).platform == .fcm)
        #expect(code { () throws(MarmotError) in try .fcm(Secret("a b".utf8)) } == .malformedToken)
    }

    @Test(
        "Text in the place of an APNs token's bytes reaches Apple as the bytes",
        arguments: TokenFormat.allCases)
    func textForBytes(format: TokenFormat) throws {
        let bytes = (0..<32).map { UInt8($0 * 7 & 0xFF) }
        let server = try MarmotSupport.pair(3)
        let wrong = try DeviceTarget(.apns, token: Secret(Hex.encode(bytes).utf8))
        let box = try TokenBox.encrypt(wrong, to: server.publicKey, format, world: MarmotSupport.world())
        #expect(try TokenBox.decrypt(box, format, with: server).token == Secret(bytes))
    }

    @Test("A token's digest goes by platform and token, and a box prints nothing of either")
    func digests() throws {
        let apns = try DeviceTarget(.apns, token: Secret([0x41, 0x42]))
        let fcm = try DeviceTarget(.fcm, token: Secret([0x41, 0x42]))
        #expect(apns.digest == SHA256.hash([1, 0x41, 0x42]) && fcm.digest == SHA256.hash([2, 0x41, 0x42]))
        #expect(!"\(fcm)".contains("AB") && !String(reflecting: fcm).contains("AB"))
    }
}
