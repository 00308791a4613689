import Primitives
public import PushModel
public import Secp256k1Keys
import WireFormats

/// Kinds of events that this protocol uses.
public enum NostrKind {
    /// NIP-59: a rumor, encrypted to one reader and signed by its author.
    public static let seal = 13
    /// 446, a trigger: the encrypted tokens of phones to wake.
    public static let trigger = 446
    /// 447: a member asks the group for its tokens.
    public static let tokenRequest = 447
    /// A list of tokens, which answers 447.
    public static let tokenList = 448
    /// The seed text: own tokens; MIP-05: they are removed.
    public static let tokenUpdateOrRemoval = 449
    /// The seed text: own tokens are removed.
    public static let tokenRemoval = 450
    /// What an owner signs of a token in `push-v1`; never published.
    public static let ownerProof = 451
    /// NIP-59: a seal, encrypted by a key that signs nothing else.
    public static let giftWrap = 1059
    /// NIP-17: at which relays a key is to be written to.
    public static let relayList = 10050
    /// NIP-42: who answers a relay's challenge.
    public static let authentication = 22242
}

/// An event of Nostr (NIP-01), with or without a signature.
///
/// Parsed and bounded, not yet verified: ``isSigned`` tells whether its author signed it.
public struct NostrEvent: Sendable {
    /// 32 bytes. For a parsed event the id that it states, else the computed one.
    public let id: [UInt8]
    /// Who wrote it, 32 bytes.
    public let pubkey: XOnlyKey
    /// Seconds since 1970, not negative.
    public let createdAt: Int64
    /// 0 to 65535.
    public let kind: Int
    /// Each at least its name; bounded by ``MarmotLimits``.
    public let tags: [[String]]
    /// UTF-8.
    public let content: Secret
    /// 64 bytes; `nil` for a rumor (NIP-59).
    public let signature: [UInt8]?
    /// Whether it could be read only more leniently than the specifications allow.
    package let isLoose: Bool

    init(
        id: [UInt8]? = nil, pubkey: XOnlyKey, createdAt: Int64, kind: Int, tags: [[String]], content: Secret,
        signature: [UInt8]? = nil, isLoose: Bool = false
    ) {
        self.isLoose = isLoose
        self.id =
            id ?? Self.id(of: pubkey, createdAt: createdAt, kind: kind, tags: tags, content: content)
        self.pubkey = pubkey
        self.createdAt = createdAt
        self.kind = kind
        self.tags = tags
        self.content = content
        self.signature = signature
    }

    /// Makes an event and signs it.
    ///
    /// - Parameter auxiliary: 32 random bytes (BIP-340).
    public static func signed(
        kind: Int, createdAt: Int64, tags: [[String]] = [], content: Secret, by pair: Secp256k1KeyPair,
        auxiliary: [UInt8]
    ) -> NostrEvent {
        let id = id(of: pair.publicKey, createdAt: createdAt, kind: kind, tags: tags, content: content)
        return NostrEvent(
            id: id, pubkey: pair.publicKey, createdAt: createdAt, kind: kind, tags: tags, content: content,
            signature: pair.sign(id, auxiliary: auxiliary))
    }

    /// Makes an event without a signature (NIP-59).
    public static func rumor(
        kind: Int, createdAt: Int64, tags: [[String]] = [], content: Secret, author: XOnlyKey
    ) -> NostrEvent {
        NostrEvent(pubkey: author, createdAt: createdAt, kind: kind, tags: tags, content: content)
    }

    /// Whether the id is the digest of the other fields (NIP-01).
    public var hasRightID: Bool {
        id == Self.id(of: pubkey, createdAt: createdAt, kind: kind, tags: tags, content: content)
    }

    /// Whether the id is right and the author signed it.
    public var isSigned: Bool {
        guard let signature, hasRightID else { return false }
        return pubkey.verifies(signature, of: id)
    }

    /// Whether it has expired (NIP-40). A time that is not a number is ignored.
    ///
    /// - Parameter now: seconds since 1970.
    public func hasExpired(at now: Int64) -> Bool {
        tag("expiration").flatMap { Int64($0) }.map { $0 <= now } ?? false
    }

    /// First value of the first tag with this name.
    public func tag(_ name: String) -> String? {
        tags.first { $0.count > 1 && $0[0] == name }?[1]
    }

    /// Whether any tag with this name has this first value.
    public func hasTag(_ name: String, _ value: String) -> Bool {
        tags.contains { $0.count > 1 && $0[0] == name && $0[1] == value }
    }

    /// SHA-256 of the array `[0, pubkey, created_at, kind, tags, content]` (NIP-01): no white space, and only
    /// the short escapes and, for other control characters, `\u00xx`.
    ///
    /// - Returns: 32 bytes.
    public static func id(
        of pubkey: XOnlyKey, createdAt: Int64, kind: Int, tags: [[String]], content: Secret
    ) -> [UInt8] {
        var head = JSONWriter(reserving: 160)
        head.beginArray()
        head.int(0)
        head.string(pubkey.hex)
        head.int(createdAt)
        head.int(Int64(kind))
        head.tags(tags)
        return EventText.escaped(content).reveal { content in
            head.bytes.withUnsafeBytes { head in
                withUnsafeBytes(of: (UInt8(0x2C), UInt8(0x22))) { opening in
                    withUnsafeBytes(of: (UInt8(0x22), UInt8(0x5D))) { closing in
                        SHA256.hash(joining: [head, opening, content, closing])
                    }
                }
            }
        }
    }

    /// The event as a JSON object: members in the order of NIP-01's example, `sig` only if there is one.
    public func serialized() -> Secret {
        let content = EventText.escaped(content)
        var head = JSONWriter(reserving: 320)
        head.beginObject()
        head.member("id", Hex.encode(id))
        head.member("pubkey", pubkey.hex)
        head.member("created_at", createdAt)
        head.member("kind", Int64(kind))
        head.key("tags")
        head.tags(tags)
        let before = head.bytes + Array(",\"content\":\"".utf8)
        let after = Array((signature.map { "\",\"sig\":\"\(Hex.encode($0))\"}" } ?? "\"}").utf8)
        return Secret(count: before.count + content.count + after.count) { out in
            out.copyBytes(from: before)
            content.reveal { content in
                UnsafeMutableRawBufferPointer(rebasing: out[before.count...]).copyMemory(from: content)
            }
            UnsafeMutableRawBufferPointer(rebasing: out[(before.count + content.count)...])
                .copyBytes(from: after)
        }
    }
}

extension JSONWriter {
    mutating func tags(_ tags: [[String]]) {
        beginArray()
        for tag in tags {
            beginArray()
            for value in tag { string(value) }
            endArray()
        }
        endArray()
    }
}

/// The text between a JSON string's quotes.
enum EventText {
    /// The content as JSON writes it; unchanged if it needs no escape, as with base64 and hex.
    static func escaped(_ content: Secret) -> Secret {
        content.reveal { raw in
            let plain = PlainText.run(raw, from: 0)
            guard plain < raw.count else { return content }
            var extra = 0
            for byte in raw[plain...] { extra += growth(byte) }
            guard extra > 0 else { return content }
            var writer = JSONWriter(reserving: raw.count + extra + 2)
            writer.string(utf8: raw)
            let quoted = writer.takeSecret()
            return quoted.reveal { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[1..<$0.count - 1])) }
        }
    }

    /// How many bytes longer an escaped byte is.
    @inline(__always)
    private static func growth(_ byte: UInt8) -> Int {
        switch byte {
        case 0x22, 0x5C, 0x08, 0x09, 0x0A, 0x0C, 0x0D: 1
        case 0x00..<0x20: 5
        default: 0
        }
    }
}
