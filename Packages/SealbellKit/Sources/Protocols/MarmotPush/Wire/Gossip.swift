package import PushModel
import Secp256k1Keys
import WireFormats

/// The content of an inner event of kind 447 to 450 (docs/conformance/marmot.md): parsed and bounded, not yet
/// verified.
///
/// MLS tells the sender and the leaf; the event is never trusted for them.
package enum Gossip: Sendable {
    /// 447 of the tag profiles: the sender's tokens, and a request for everybody's. In `seed` there may be no
    /// tokens.
    case request(GossipProfile, own: [GossipToken], GossipReference)
    /// 448 of the tag profiles. `unusable`: entries that were ignored.
    case list(GossipProfile, [ListedToken], answering: GossipReference, unusable: Int)
    /// 449 of `seed`: the sender's complete new set.
    case update([GossipToken])
    /// 449 of `mip05`, 450 of `seed`: these of the sender's tokens, or, when `nil`, all of them.
    case removal([Secret]?)
    /// 447 of `push-v1` with an empty list.
    case recordRequest(GossipReference)
    /// 447, 448 and 449 of `push-v1`, entry by entry; `nil` for a malformed one.
    case records([PushRecord?], isList: Bool)

    /// Recognises the profile from the event and takes it apart.
    ///
    /// - Parameter event: a rumor, as it came out of the MLS message.
    /// - Throws: `.wrongKind`; `.malformedGossip` for a signature, a wrong id, or a form that no profile has;
    ///   `.unknownVersion` for JSON of another version; `.tooLarge` for more tokens than allowed.
    package init(reading event: NostrEvent) throws(MarmotError) {
        guard (NostrKind.tokenRequest...NostrKind.tokenRemoval).contains(event.kind) else {
            throw MarmotError(.wrongKind)
        }
        // Inner events stay unsigned, so that a leaked one proves nothing (MIP-03).
        guard event.signature == nil, event.hasRightID else { throw MarmotError(.malformedGossip) }
        if event.content.count > 0 {
            self = try Self.readRecords(event)
            return
        }
        let tokens = event.tags.filter { $0.first == "token" }
        // A token in hex identifies the seed text: base64 of a token ends with =, so it is never hex.
        let isHex = tokens.isEmpty ? nil : tokens.contains { $0.count > 1 && Self.isHex($0[1]) }
        switch event.kind {
        case NostrKind.tokenRequest: self = try Self.readRequest(event, tokens, isHex)
        case NostrKind.tokenList: self = try Self.readList(event, tokens, isHex)
        case NostrKind.tokenUpdateOrRemoval:
            if tokens.isEmpty, event.tags.isEmpty {
                self = .removal(nil)
            } else {
                // In mip05 a 449 has no tags: an event with base64 in its tags belongs to neither profile.
                guard isHex == true else { throw MarmotError(.malformedGossip) }
                self = .update(try Self.readSet(tokens, .seed))
            }
        default: self = .removal(try Self.readRemoved(tokens))
        }
    }

    // MARK: tags

    private static func readRequest(
        _ event: NostrEvent, _ tokens: [[String]], _ isHex: Bool?
    ) throws(MarmotError) -> Gossip {
        let nonce = event.tag("nonce")
        let reference = GossipReference(id: event.id, nonce: nonce)
        if isHex == true { return .request(.seed, own: try readSet(tokens, .seed), reference) }
        if tokens.isEmpty {
            // Somebody without push of their own may still want to wake others: the nonce identifies the
            // profile.
            guard nonce != nil else { throw MarmotError(.malformedGossip) }
            return .request(.seed, own: [], reference)
        }
        // One token for each leaf, and no other tag, as mdk 0.8 reads it.
        guard event.tags.count == 1 else { throw MarmotError(.malformedGossip) }
        return .request(.mip05, own: try readSet(tokens, .mip05), reference)
    }

    private static func readList(
        _ event: NostrEvent, _ tokens: [[String]], _ isHex: Bool?
    ) throws(MarmotError) -> Gossip {
        guard !tokens.isEmpty, tokens.count <= MarmotLimits.listedTokens else {
            throw MarmotError(tokens.isEmpty ? .malformedGossip : .tooLarge)
        }
        let references = event.tags.filter { $0.first == "e" }
        let id = references.first.flatMap {
            $0.count > 1 ? LowerHex.decode(Array($0[1].utf8), count: 32) : nil
        }
        if isHex == true {
            let reference = GossipReference(id: id, nonce: event.tag("responding_to"))
            let entries = tokens.map { try? listed($0, .seed) }  // A bad entry voids itself.
            return .list(
                .seed, entries.compactMap { $0 }, answering: reference,
                unusable: entries.count { $0 == nil })
        }
        guard references.count == 1, id != nil, event.tags.count == tokens.count + 1 else {
            throw MarmotError(.malformedGossip)
        }
        var entries: [ListedToken] = []
        var leaves: Set<UInt32> = []
        for tag in tokens {
            let entry = try listed(tag, .mip05)
            guard leaves.insert(entry.leaf).inserted else { throw MarmotError(.malformedGossip) }
            entries.append(entry)
        }
        return .list(.mip05, entries, answering: GossipReference(id: id, nonce: nil), unusable: 0)
    }

    /// What a leaf says about itself: all of it or nothing.
    private static func readSet(
        _ tags: [[String]], _ profile: GossipProfile
    ) throws(MarmotError) -> [GossipToken] {
        guard tags.count <= MarmotLimits.tokensOfLeaf else { throw MarmotError(.tooLarge) }
        var tokens: [GossipToken] = []
        for tag in tags { tokens.append(try token(tag, profile)) }
        return tokens
    }

    private static func readRemoved(_ tags: [[String]]) throws(MarmotError) -> [Secret]? {
        guard !tags.isEmpty else { return nil }
        guard tags.count <= MarmotLimits.tokensOfLeaf else { throw MarmotError(.tooLarge) }
        var boxes: [Secret] = []
        for tag in tags {
            guard tag.count > 1, let box = hexBox(tag[1]) else { throw MarmotError(.malformedGossip) }
            boxes.append(box)
        }
        return boxes
    }

    private static func listed(_ tag: [String], _ profile: GossipProfile) throws(MarmotError) -> ListedToken {
        guard tag.count >= 4, let last = tag.last, let leaf = leafIndex(last) else {
            throw MarmotError(.malformedGossip)
        }
        return ListedToken(leaf: leaf, token: try token(Array(tag.dropLast()), profile))
    }

    /// `["token", token, server]`, and in `mip05` a relay hint.
    private static func token(_ tag: [String], _ profile: GossipProfile) throws(MarmotError) -> GossipToken {
        guard tag.count >= 3, let server = XOnlyKey(hex: tag[2]) else { throw MarmotError(.malformedGossip) }
        if profile == .seed {
            guard tag.count == 3, let box = hexBox(tag[1]) else { throw MarmotError(.malformedGossip) }
            return try GossipToken(.seed, box: box, server: server)
        }
        guard tag.count <= 4, let box = base64Box(tag[1]) else { throw MarmotError(.malformedGossip) }
        let hint = tag.count == 4 ? tag[3] : nil
        // The 280-byte format has no place for a hint.
        let format: TokenFormat =
            hint == nil && box.count == TokenFormat.shortTokenBytes ? .mip05Short : .mip05Long
        return try GossipToken(format, box: box, server: server, relayHint: hint)
    }

    /// A decimal number without sign and leading zeros.
    private static func leafIndex(_ text: String) -> UInt32? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let value = UInt32(text) else {
            return nil
        }
        return String(value) == text ? value : nil
    }

    private static func isHex(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count.isMultiple(of: 2)
            && text.utf8.allSatisfy { Hex.value(ofDigit: $0) != nil }
    }

    private static func hexBox(_ text: String) -> Secret? {
        guard text.utf8.count <= 2 * TokenFormat.longestSeedTokenBytes else { return nil }
        return (try? Hex.decode(text.utf8)).map { Secret($0) }  // No hex is no token.
    }

    private static func base64Box(_ text: String) -> Secret? {
        guard text.utf8.count <= MarmotLimits.encodedTokenBytes else { return nil }
        return (try? Base64.decode(text)).map { Secret($0) }  // No base64 is no token.
    }

    // MARK: JSON

    private static func readRecords(_ event: NostrEvent) throws(MarmotError) -> Gossip {
        guard event.kind != NostrKind.tokenRemoval else { throw MarmotError(.malformedGossip) }
        let isRemoval = event.kind == NostrKind.tokenUpdateOrRemoval
        let entries = try PushRecord.readList(event.content, isRemoval ? .removals : .tokens)
        if event.kind == NostrKind.tokenRequest, entries.isEmpty {
            return .recordRequest(GossipReference(id: event.id, nonce: nil))
        }
        return .records(entries, isList: event.kind == NostrKind.tokenList)
    }
}
