import PushModel
public import Secp256k1Keys
import WireFormats

/// Inner events as ours are written: rumors for the caller to put into MLS messages
/// (docs/conformance/marmot.md).
public enum GossipEvent {
    /// 447 of a tag profile: asks for everybody's tokens and tells one's own.
    ///
    /// - Parameter tokens: of one format; in `mip05` exactly one.
    /// - Parameter nonce: 32 hex digits; `seed` alone writes it.
    public static func request(
        _ tokens: [GossipToken], nonce: String?, author: XOnlyKey, at createdAt: Int64
    ) -> NostrEvent {
        var tags = tokens.map { $0.tag() }
        if let nonce { tags.append(["nonce", nonce]) }
        return rumor(NostrKind.tokenRequest, tags, author, createdAt)
    }

    /// 448 of a tag profile; several when one would be too large for a group message.
    public static func lists(
        _ listed: [ListedToken], answering request: GossipReference, _ profile: GossipProfile,
        author: XOnlyKey, at createdAt: Int64
    ) -> [NostrEvent] {
        var references: [[String]] = []
        if let id = request.id { references.append(["e", Hex.encode(id)]) }
        if profile == .seed, let nonce = request.nonce { references.append(["responding_to", nonce]) }
        let tags = listed.map { $0.token.tag(leaf: $0.leaf) }
        return parts(tags, size: { $0.reduce(8) { $0 + $1.utf8.count + 3 } })
            .map { rumor(NostrKind.tokenList, $0 + references, author, createdAt) }
    }

    /// 449 of `seed`: one's complete new set.
    public static func update(_ tokens: [GossipToken], author: XOnlyKey, at createdAt: Int64) -> NostrEvent {
        rumor(NostrKind.tokenUpdateOrRemoval, tokens.map { $0.tag() }, author, createdAt)
    }

    /// 450 of `seed`, 449 of `mip05`: none of one's tokens hold any longer.
    public static func removal(
        _ profile: GossipProfile, author: XOnlyKey, at createdAt: Int64
    ) -> NostrEvent {
        rumor(
            profile == .seed ? NostrKind.tokenRemoval : NostrKind.tokenUpdateOrRemoval, [], author, createdAt)
    }

    /// 447 of `push-v1`: one's own records, or, with none, a request.
    public static func records(
        _ records: [PushRecord], author: XOnlyKey, at createdAt: Int64
    ) -> NostrEvent {
        json(NostrKind.tokenRequest, records, .tokens, author, createdAt)
    }

    /// 448 of `push-v1`; several when one would be too large.
    public static func recordLists(
        _ records: [PushRecord], author: XOnlyKey, at createdAt: Int64
    ) -> [NostrEvent] {
        parts(records, most: MarmotLimits.recordsOfList, size: { _ in MarmotLimits.recordBytes })
            .map { json(NostrKind.tokenList, $0, .tokens, author, createdAt) }
    }

    /// 449 of `push-v1`.
    public static func recordRemovals(
        _ records: [PushRecord], author: XOnlyKey, at createdAt: Int64
    ) -> NostrEvent {
        json(NostrKind.tokenUpdateOrRemoval, records, .removals, author, createdAt)
    }

    private static func json(
        _ kind: Int, _ records: [PushRecord], _ list: PushRecord.List, _ author: XOnlyKey, _ at: Int64
    ) -> NostrEvent {
        .rumor(
            kind: kind, createdAt: at, tags: [["v", PushRecord.version]],
            content: PushRecord.writeList(records, list), author: author)
    }

    private static func rumor(
        _ kind: Int, _ tags: [[String]], _ author: XOnlyKey, _ createdAt: Int64
    ) -> NostrEvent {
        .rumor(kind: kind, createdAt: createdAt, tags: tags, content: Secret([]), author: author)
    }

    /// Cuts entries into runs that a group message has room for.
    private static func parts<Entry>(
        _ entries: [Entry], most: Int = .max, size: (Entry) -> Int
    ) -> [[Entry]] {
        var parts: [[Entry]] = []
        var bytes = 0
        for entry in entries {
            let more = size(entry)
            let isFull = bytes + more > MarmotLimits.gossipEventBytes || (parts.last?.count ?? 0) >= most
            if parts.isEmpty || isFull {
                parts.append([])
                bytes = 0
            }
            parts[parts.count - 1].append(entry)
            bytes += more
        }
        return parts
    }
}
