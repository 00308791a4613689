import PushModel
package import Secp256k1Keys
import WireFormats

/// Writes our inner events: rumors that the caller puts into MLS messages (docs/conformance/marmot.md).
package enum GossipEvent {
    /// 447 of a tag profile: asks for everybody's tokens and lists one's own.
    ///
    /// - Parameter tokens: of one format; in `mip05` exactly one.
    /// - Parameter nonce: 32 hex digits; written in `seed` only.
    package static func request(
        _ tokens: [GossipToken], nonce: String?, author: XOnlyKey, at createdAt: Int64
    ) -> NostrEvent {
        var tags = tokens.map { $0.tag() }
        if let nonce { tags.append(["nonce", nonce]) }
        return rumor(NostrKind.tokenRequest, tags, author, createdAt)
    }

    /// 448 of a tag profile; several if one would be too large for a group message. They are cut between
    /// leaves, because readers take what a list says about a leaf as complete.
    ///
    /// A leaf whose tokens alone would be too large is left out; its owner can send them.
    package static func lists(
        _ listed: [ListedToken], answering request: GossipReference, _ profile: GossipProfile,
        author: XOnlyKey, at createdAt: Int64
    ) -> [NostrEvent] {
        var references: [[String]] = []
        if let id = request.id { references.append(["e", Hex.encode(id)]) }
        if profile == .seed, let nonce = request.nonce { references.append(["responding_to", nonce]) }
        return parts(listed, leaf: \.leaf, size: { tagBytes($0.token.tag(leaf: $0.leaf)) }).map { part in
            rumor(
                NostrKind.tokenList, part.map { $0.token.tag(leaf: $0.leaf) } + references, author, createdAt)
        }
    }

    /// 449 of `seed`: one's complete new set.
    package static func update(_ tokens: [GossipToken], author: XOnlyKey, at createdAt: Int64) -> NostrEvent {
        rumor(NostrKind.tokenUpdateOrRemoval, tokens.map { $0.tag() }, author, createdAt)
    }

    /// 450 of `seed`, 449 of `mip05`: withdraws all of one's tokens.
    package static func removal(
        _ profile: GossipProfile, author: XOnlyKey, at createdAt: Int64
    ) -> NostrEvent {
        rumor(
            profile == .seed ? NostrKind.tokenRemoval : NostrKind.tokenUpdateOrRemoval, [], author, createdAt)
    }

    /// 447 of `push-v1`: one's own records, or, without any, a request.
    package static func records(
        _ records: [PushRecord], author: XOnlyKey, at createdAt: Int64
    ) -> NostrEvent {
        json(NostrKind.tokenRequest, records, .tokens, author, createdAt)
    }

    /// 448 of `push-v1`; several if one would be too large, cut between leaves.
    package static func recordLists(
        _ records: [PushRecord], author: XOnlyKey, at createdAt: Int64
    ) -> [NostrEvent] {
        parts(
            records, most: MarmotLimits.recordsOfList, leaf: \.key.leaf,
            size: { _ in MarmotLimits.recordBytes }
        ).map { json(NostrKind.tokenList, $0, .tokens, author, createdAt) }
    }

    /// 449 of `push-v1`.
    package static func recordRemovals(
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

    private static func tagBytes(_ tag: [String]) -> Int { tag.reduce(8) { $0 + $1.utf8.count + 3 } }

    /// Cuts entries into runs that fit into a group message, and never within a leaf.
    private static func parts<Entry>(
        _ entries: [Entry], most: Int = .max, leaf: (Entry) -> UInt32, size: (Entry) -> Int
    ) -> [[Entry]] {
        var leaves: [(leaf: UInt32, entries: [Entry])] = []
        for entry in entries.sorted(by: { leaf($0) < leaf($1) }) {
            if leaves.last?.leaf != leaf(entry) { leaves.append((leaf(entry), [])) }
            leaves[leaves.count - 1].entries.append(entry)
        }
        var parts: [[Entry]] = []
        var bytes = 0
        for (_, entries) in leaves {
            let more = entries.reduce(0) { $0 + size($1) }
            guard more <= MarmotLimits.gossipEventBytes, entries.count <= most else { continue }
            let isFull =
                bytes + more > MarmotLimits.gossipEventBytes
                || (parts.last?.count ?? 0) + entries.count > most
            if parts.isEmpty || isFull {
                parts.append([])
                bytes = 0
            }
            parts[parts.count - 1] += entries
            bytes += more
        }
        return parts
    }
}
