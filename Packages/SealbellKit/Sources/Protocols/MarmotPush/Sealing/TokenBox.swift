import Primitives
public import PushModel
public import Secp256k1Keys
import WireFormats

/// The destination of a push: the content of an encrypted token.
public struct DeviceTarget: Sendable {
    /// The push service, by the byte in front of the token.
    public enum Platform: UInt8, Sendable, Hashable, CaseIterable {
        /// Apple's service.
        case apns = 1
        /// Google's service.
        case fcm = 2

        /// As the seed text writes it.
        public var name: String { self == .apns ? "apns" : "fcm" }
    }

    /// Which push service has the token.
    public let platform: Platform
    /// APNs: the raw bytes from the system. FCM: the registration token's text.
    public let token: Secret

    /// An Apple device, by the bytes that the system gave the app (32 today).
    ///
    /// - Throws: `.malformedToken` for no bytes, for more than ``MarmotLimits/deviceTokenBytes``, and for 64
    ///   or more that are all hexadecimal digits: that is the token's text, which belongs to ``apns(hex:)``.
    public static func apns(bytes: Secret) throws(MarmotError) -> DeviceTarget {
        guard hex(bytes) == nil else { throw MarmotError(.malformedToken) }
        return try DeviceTarget(.apns, token: bytes)
    }

    /// The same from its text of two hexadecimal digits a byte, in either case.
    ///
    /// - Throws: `.malformedToken` for any other text, and in the cases of ``apns(bytes:)``.
    public static func apns(hex text: Secret) throws(MarmotError) -> DeviceTarget {
        guard let bytes = text.reveal({ Hex.secret($0) }) else { throw MarmotError(.malformedToken) }
        return try apns(bytes: bytes)
    }

    /// A device at FCM, by its registration token's text.
    ///
    /// - Throws: `.malformedToken` for an empty token, one longer than ``MarmotLimits/deviceTokenBytes``, or
    ///   one with a character that tokens never have (docs/conformance/marmot.md).
    public static func fcm(_ token: Secret) throws(MarmotError) -> DeviceTarget {
        try DeviceTarget(.fcm, token: token)
    }

    /// The bytes behind hexadecimal digits, if there are so many that they cannot be anything else.
    static func hex(_ token: Secret) -> Secret? {
        token.reveal { $0.count >= MarmotLimits.textualTokenBytes ? Hex.secret($0) : nil }
    }

    /// From the content of a token; apps use ``apns(bytes:)``, ``apns(hex:)`` and ``fcm(_:)``.
    ///
    /// - Throws: `.malformedToken`.
    package init(_ platform: Platform, token: Secret) throws(MarmotError) {
        guard (1...MarmotLimits.deviceTokenBytes).contains(token.count),
            platform == .apns || token.reveal({ $0.allSatisfy(Self.isOfFCM) })
        else { throw MarmotError(.malformedToken) }
        self.platform = platform
        self.token = token
    }

    private static func isOfFCM(_ character: UInt8) -> Bool {
        switch character {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x3A, 0x5F: true
        default: false
        }
    }

    /// SHA-256 of platform byte ‖ token, which budgets and fingerprints use (§5.2 step 9, §4.2).
    public var digest: [UInt8] {
        token.reveal { token in
            withUnsafeBytes(of: platform.rawValue) { SHA256.hash(joining: [$0, token]) }
        }
    }
}

/// The encrypted token: ephemeral X (32 bytes) ‖ nonce (12) ‖ ciphertext with authenticator
/// (docs/conformance/marmot.md).
public enum TokenBox {
    /// Nonce of one box, random.
    public static let nonceBytes = 12

    /// Encrypts a device token for a server's key.
    ///
    /// - Parameter ephemeral: a pair for this token and group only. `nonce`: 12 random bytes.
    /// - Parameter padding: random bytes after the token up to the format's size, ``paddingBytes(_:_:)`` of
    ///   them.
    /// - Throws: `.tooMuchContent` if the format has no room; `.malformedKey` for a nonce or padding of
    ///   another length.
    public static func encrypt(
        _ target: DeviceTarget, to server: XOnlyKey, _ format: TokenFormat, ephemeral: Secp256k1KeyPair,
        nonce: [UInt8], padding: [UInt8]
    ) throws(MarmotError) -> Secret {
        guard let expected = paddingBytes(target, format) else { throw MarmotError(.tooMuchContent) }
        guard nonce.count == nonceBytes, padding.count == expected else { throw MarmotError(.malformedKey) }
        let plain = plaintext(target, format, padding)
        let key = key(format, ephemeral.sharedX(with: server))
        return Secret(count: plain.count + TokenFormat.overheadBytes) { out in
            out.copyBytes(from: ephemeral.publicKey.bytes + nonce)
            plain.reveal { plain in
                key.reveal { key in
                    nonce.withUnsafeBytes { nonce in
                        ChaCha20Poly1305.seal(
                            plain, key: key, nonce: nonce,
                            into: UnsafeMutableRawBufferPointer(rebasing: out[44...]))
                    }
                }
            }
        }
    }

    /// Encrypts with a fresh pair, nonce and padding.
    package static func encrypt(
        _ target: DeviceTarget, to server: XOnlyKey, _ format: TokenFormat, world: World
    ) throws(MarmotError) -> Secret {
        guard let padding = paddingBytes(target, format) else { throw MarmotError(.tooMuchContent) }
        return try encrypt(
            target, to: server, format, ephemeral: .generate(world), nonce: world.randomBytes(nonceBytes),
            padding: world.randomBytes(padding))
    }

    /// How many bytes of padding follow this token; `nil` if the format has no room for it.
    public static func paddingBytes(_ target: DeviceTarget, _ format: TokenFormat) -> Int? {
        guard let size = format.plaintextBytes else { return 0 }
        let left = size - 3 - target.token.count
        return left >= 0 ? left : nil
    }

    /// Opens an encrypted token.
    ///
    /// - Parameter box: ``TokenFormat/tokenBytes`` bytes, where the format has one length.
    /// - Throws: `.tokenDoesNotOpen` for a wrong length, an invalid point, or a wrong key;
    ///   `.unknownPlatform`, `.malformedToken` for the content.
    public static func decrypt(
        _ box: Secret, _ format: TokenFormat, with pair: Secp256k1KeyPair
    ) throws(MarmotError) -> DeviceTarget {
        try box.reveal { (box) throws(MarmotError) in try decrypt(box, format, with: pair) }
    }

    /// Opens an encrypted token.
    ///
    /// - Parameter box: the bytes themselves, for whoever holds more than one in a piece of memory.
    /// - Throws: `.tokenDoesNotOpen`, `.unknownPlatform`, `.malformedToken`, as above.
    public static func decrypt(
        _ box: UnsafeRawBufferPointer, _ format: TokenFormat, with pair: Secp256k1KeyPair
    ) throws(MarmotError) -> DeviceTarget {
        let isOfLength =
            format.tokenBytes.map { box.count == $0 }
            ?? (box.count > TokenFormat.overheadBytes && box.count <= TokenFormat.longestSeedTokenBytes)
        guard isOfLength, let ephemeral = XOnlyKey(box[0, 32]) else { throw MarmotError(.tokenDoesNotOpen) }
        let key = key(format, pair.sharedX(with: ephemeral))
        let plain = try Secret(count: box.count - TokenFormat.overheadBytes) { (out) throws(MarmotError) in
            let isOpen = key.reveal { key in
                ChaCha20Poly1305.open(box[44, box.count - 44], key: key, nonce: box[32, 12], into: out)
            }
            guard isOpen else { throw MarmotError(.tokenDoesNotOpen) }
        }
        return try plain.reveal { (plain) throws(MarmotError) in
            format.plaintextBytes == nil ? try textual(plain) : try sized(plain)
        }
    }

    /// The box's key, derived from the raw shared X.
    package static func key(_ format: TokenFormat, _ shared: Secret) -> Secret {
        let prk = format.salt.map { HKDF256.extract(salt: $0, input: shared) } ?? shared
        return HKDF256.expand(prk, info: format.info, count: ChaCha20Poly1305.keyBytes)
    }

    // MARK: plaintext

    private static func plaintext(_ target: DeviceTarget, _ format: TokenFormat, _ padding: [UInt8]) -> Secret
    {
        let count = target.token.count
        let head =
            format.plaintextBytes == nil
            ? Array(target.platform.name.utf8) + [0]
            : [target.platform.rawValue, UInt8(count >> 8), UInt8(count & 255)]
        return Secret(count: head.count + count + padding.count) { out in
            out.copyBytes(from: head)
            target.token.reveal {
                UnsafeMutableRawBufferPointer(rebasing: out[head.count...]).copyMemory(from: $0)
            }
            UnsafeMutableRawBufferPointer(rebasing: out[(head.count + count)...]).copyBytes(from: padding)
        }
    }

    /// Platform byte ‖ length (2 bytes) ‖ token ‖ padding, which is ignored.
    private static func sized(_ plain: UnsafeRawBufferPointer) throws(MarmotError) -> DeviceTarget {
        guard let platform = DeviceTarget.Platform(rawValue: plain[0]) else {
            throw MarmotError(.unknownPlatform)
        }
        let count = Int(plain[1]) << 8 | Int(plain[2])
        guard count > 0, count <= plain.count - 3 else { throw MarmotError(.malformedToken) }
        let token = Secret(copying: plain[3, count])
        return try DeviceTarget(platform, token: platform == .apns ? raw(token) : token)
    }

    /// `apns` or `fcm` ‖ NUL ‖ token: split at the first NUL, because an APNs token may contain others.
    private static func textual(_ plain: UnsafeRawBufferPointer) throws(MarmotError) -> DeviceTarget {
        guard let split = plain.firstIndex(of: 0) else { throw MarmotError(.malformedToken) }
        let name = plain[0, split]
        let token = plain[split + 1, plain.count - split - 1]
        if bytes(name, equal: "fcm") { return try DeviceTarget(.fcm, token: Secret(copying: token)) }
        guard bytes(name, equal: "apns") else { throw MarmotError(.unknownPlatform) }
        return try DeviceTarget(.apns, token: raw(Secret(copying: token)))
    }

    /// The seed text leaves open whether an APNs token is written raw or as hex, and an app may confuse the
    /// two: what can only be hex is read as hex (docs/conformance/marmot.md).
    private static func raw(_ token: Secret) -> Secret { DeviceTarget.hex(token) ?? token }
}
