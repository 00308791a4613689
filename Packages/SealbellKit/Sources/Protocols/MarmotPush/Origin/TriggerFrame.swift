import PushModel

/// How large a trigger becomes on its way into a frame, told before anything is encrypted
/// (docs/conformance/marmot.md): NIP-44 pads in steps and base64 adds a third, twice.
struct TriggerFrame: Sendable {
    /// Bytes of `["EVENT",…]` that a relay takes.
    var frameBytes = MarmotLimits.commonFrameBytes
    /// Characters of a content that a relay takes.
    var contentBytes = Int.max

    /// The tightest of several relays' limits.
    init(_ relays: some Sequence<RelayInformation>) {
        for relay in relays {
            frameBytes = min(frameBytes, relay.maxMessageBytes ?? .max)
            contentBytes = min(contentBytes, relay.maxContentCharacters ?? .max)
        }
    }

    init() {}

    /// Whether a trigger of so many tokens of so many bytes together fits.
    func takes(_ format: TokenFormat, tokens: Int, bytes: Int, _ path: GiftWrap.Path) -> Bool {
        guard let size = Self.size(format, tokens: tokens, bytes: bytes, path) else { return false }
        return size.frame <= frameBytes && size.content <= contentBytes
    }

    /// - Returns: how many tokens of `each` bytes fit, `most` at most; 0 where not even one does.
    func room(_ format: TokenFormat, each bytes: Int, upTo most: Int, _ path: GiftWrap.Path) -> Int {
        (1...max(1, most)).last { takes(format, tokens: $0, bytes: $0 * bytes, path) } ?? 0
    }

    /// - Returns: bytes of the frame and of the wrap's content; `nil` when a layer is more than readers read.
    static func size(
        _ format: TokenFormat, tokens: Int, bytes: Int, _ path: GiftWrap.Path
    ) -> (frame: Int, content: Int)? {
        // In an event the quotes of the seed's JSON array are escaped: \"…\" and a comma for each token.
        let content =
            format == .seed ? 2 * bytes + 4 * tokens + max(0, tokens - 1) + 2 : (bytes + 2) / 3 * 4
        var inner = emptyEvent(NostrKind.trigger, format.triggerTags, isSigned: path == .direct) + content
        guard inner <= MarmotLimits.layerBytes else { return nil }
        if path == .sealed {
            inner = emptyEvent(NostrKind.seal, [], isSigned: true) + payload(inner)
            guard inner <= MarmotLimits.layerBytes else { return nil }
        }
        let wrapped = payload(inner)
        let tags = [["p", String(repeating: "0", count: 64)]]
        let frame = #"["EVENT",]"#.utf8.count + emptyEvent(NostrKind.giftWrap, tags, isSigned: true)
        return (frame + wrapped, wrapped)
    }

    /// Characters of a NIP-44 payload.
    private static func payload(_ count: Int) -> Int {
        (65 + 2 + NIP44.paddedCount(count) + 2) / 3 * 4
    }

    /// Bytes of an event without content, as ``NostrEvent/serialized()`` writes it.
    private static func emptyEvent(_ kind: Int, _ tags: [[String]], isSigned: Bool) -> Int {
        // Two values of 64 characters, and created_at, which has ten digits until the year 2286.
        let fixed = #"{"id":"","pubkey":"","created_at":,"kind":,"tags":[],"content":""}"#.utf8.count + 138
        let inTags = tags.reduce(max(0, tags.count - 1)) { sum, tag in
            sum + 2 + max(0, tag.count - 1) + tag.reduce(0) { $0 + $1.utf8.count + 2 }
        }
        return fixed + String(kind).utf8.count + inTags + (isSigned ? #","sig":"""#.utf8.count + 128 : 0)
    }
}

extension TokenFormat {
    /// Most items of a trigger that we write (docs/conformance/marmot.md).
    public var batch: Int {
        switch self {
        case .seed: MarmotLimits.seedBatch
        case .mip05Short: MarmotLimits.shortBatch
        case .mip05Long, .pushV1: MarmotLimits.longBatch
        }
    }

    /// Fewest items of a trigger that we write.
    var leastItems: Int { self == .seed ? MarmotLimits.seedLeastItems : 1 }

    /// How many decoys a trigger gets: random bytes in every format, and never somebody's real token,
    /// which would wake a stranger and tie two groups together (docs/conformance/marmot.md).
    var decoys: ClosedRange<Int> {
        switch self {
        case .seed, .pushV1: 2...5
        case .mip05Short, .mip05Long: 3...5
        }
    }
}
