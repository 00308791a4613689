package import PushModel
package import Secp256k1Keys

/// The origin: anyone who sends a message into a group wakes the others' devices. A value; it sends nothing,
/// and what it returns is for the caller to publish, as `MarmotPublisher` of the product `MarmotPublishing`
/// does it.
///
/// Best effort: the message comes first, and whatever becomes of a trigger never delays or fails it.
package struct MarmotOriginRoutine: Sendable {
    /// What the caller has learned of servers and relays; all of it may be absent.
    package struct Directory: Sendable {
        /// The newest valid list of kind 10050 of each server.
        package var lists: [XOnlyKey: RelayList] = [:]
        /// Relays' own words about their limits (NIP-11).
        package var information: [String: RelayInformation] = [:]
        /// Relays that an app was built with, for servers of which no list was found.
        package var fallbacks: [XOnlyKey: [String]] = [:]

        /// Nothing has been learned yet.
        package init() {}
    }

    /// One event to publish, to all of these relays.
    package struct Trigger: Sendable {
        /// Key of the notification server that it is for.
        package let server: XOnlyKey
        /// What its tokens are encrypted in: one trigger has one format.
        package let format: TokenFormat
        /// Kind 1059, by a key that signs nothing else.
        package let wrap: NostrEvent
        /// `wss` addresses, each once.
        package let relays: [String]
    }

    /// What to publish for one message.
    package struct Notification: Sendable {
        /// At least one for each server and format.
        package var triggers: [Trigger] = []
        /// Servers of which no usable relay is known: fetch their lists of kind 10050, by these relays where
        /// there are any, and notify anew.
        package var unreachable: [XOnlyKey: [String]] = [:]
    }

    private let directory: Directory
    private let seedPath: GiftWrap.Path

    /// - Parameter seedPath: whether triggers of the seed text are sealed, as its prose says, or signed and
    ///   straight in the wrap, as it draws them. Triggers of the other formats are always sealed.
    package init(_ directory: Directory, seedPath: GiftWrap.Path = .sealed) {
        self.directory = directory
        self.seedPath = seedPath
    }

    /// Tokens to wake: of active leaves, without those of the sender's own account
    /// (docs/conformance/marmot.md), at most as many as one wake takes.
    ///
    /// Of a group with more the first of each leaf come first: whoever says many of their own, or invents
    /// some for silent leaves, takes no place from others' phones.
    package static func choose(
        from tokens: GroupTokens, in view: some GroupView, sender: XOnlyKey, now: UnixTime
    ) -> [GossipToken] {
        let live = tokens.live(in: view, at: now).filter { $0.member != sender }
        let all = live.map(\.token)
        guard all.fitting() < all.count else { return all }
        var known: [UInt32: Int] = [:]
        let places = live.map { one in
            known[one.leaf, default: 0] += 1
            return known[one.leaf, default: 0]
        }
        let order = live.indices.sorted { (places[$0], $0) < (places[$1], $1) }.map { all[$0] }
        return Array(order.prefix(order.fitting()))
    }

    /// Makes triggers for these tokens: by server and format, with decoys, shuffled, each in a frame that its
    /// relays take, each by keys of its own (docs/conformance/marmot.md).
    ///
    /// - Parameter tokens: what ``MarmotDevice/tokensToWake(at:)`` returned, of one group.
    /// - Throws: `.tooMuchContent` only if a frame outgrew what was reckoned, which is a bug of ours.
    package func notify(
        _ tokens: [GossipToken], now: UnixTime, using generator: inout some RandomNumberGenerator
    ) throws(MarmotError) -> Notification {
        var notification = Notification()
        var groups: [Group] = []
        for token in tokens {
            if let at = groups.firstIndex(where: { $0.server == token.server && $0.format == token.format }) {
                if !groups[at].tokens.contains(where: { $0.isSame(as: token) }) {
                    groups[at].tokens.append(token)
                }
            } else {
                groups.append(Group(server: token.server, format: token.format, tokens: [token]))
            }
        }
        for group in groups {
            let path = group.format == .seed ? seedPath : .sealed
            let relays = relays(of: group, path)
            guard !relays.isEmpty else {
                notification.unreachable[group.server, default: []] += group.hints
                continue
            }
            let frame = TriggerFrame(relays.compactMap { directory.information[$0] })
            let items = group.tokens.map(\.box).shuffled(using: &generator)
            for batch in TriggerBatch.triggers(items, group.format, frame, path, using: &generator) {
                let wrap = try wrap(batch, group, path, relays, now: now, using: &generator)
                notification.triggers.append(
                    Trigger(server: group.server, format: group.format, wrap: wrap, relays: relays))
            }
        }
        return notification
    }

    private struct Group {
        let server: XOnlyKey
        let format: TokenFormat
        var tokens: [GossipToken]

        var hints: [String] { RelayList.usable(tokens.lazy.compactMap(\.relayHint)) }
    }

    /// Where a group's triggers go (docs/conformance/marmot.md): by `push-v1` the owners' hints come first,
    /// by `mip05` the server's own list, and the seed text knows that list alone.
    private func relays(of group: Group, _ path: GiftWrap.Path) -> [String] {
        let list = directory.lists[group.server]?.relays
        // A list may be empty: then nothing stands in for it but what owners say.
        let own = list ?? RelayList.usable(directory.fallbacks[group.server] ?? [])
        let wanted: [String] =
            switch GossipProfile(group.format) {
            case .seed: own
            case .mip05: list?.isEmpty ?? true && !group.hints.isEmpty ? group.hints : own
            case .pushV1: group.hints.isEmpty ? own : group.hints
            }
        return roomy(wanted, named: own, group, path)
    }

    /// The relays of which no document makes frames small. The tightest one cuts the frames of all, so that a
    /// single relay could have an event made for each token: one that takes less than half of a full trigger,
    /// and not the whole group, is left out where another takes more. What the server or the app itself names
    /// is the measure, so that nobody's hint pushes those out (decision 0121).
    private func roomy(
        _ wanted: [String], named own: [String], _ group: Group, _ path: GiftWrap.Path
    ) -> [String] {
        let longest = group.tokens.map(\.box.count).max() ?? 0
        let full = TriggerFrame().room(group.format, each: longest, upTo: group.format.batch, path)
        let enough = max(1, min(full / 2, group.tokens.count + group.format.decoys.upperBound))
        let rooms = wanted.map { address in
            guard let information = directory.information[address] else { return enough }
            // A relay that wants work done for each event is none for us.
            guard information.minPowDifficulty == nil else { return 0 }
            return TriggerFrame([information]).room(group.format, each: longest, upTo: enough, path)
        }
        let relays = zip(wanted, rooms)
        let measure =
            relays.filter { own.contains($0.0) && $0.1 > 0 }.map(\.1).max() ?? rooms.max() ?? 0
        // A relay that takes no frame with one token is none for us either.
        return relays.filter { $0.1 >= max(1, measure) }.map(\.0)
    }

    private func wrap(
        _ batch: [Secret], _ group: Group, _ path: GiftWrap.Path, _ relays: [String], now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) throws(MarmotError) -> NostrEvent {
        let content = try TriggerContent(group.format, batch).serialized()
        let author = generator.keyPair()
        // A trigger bears the true time, so that a server can tell an old one; wrap and seal do not.
        let inner: NostrEvent
        switch path {
        case .sealed:
            let rumor = NostrEvent.rumor(
                kind: NostrKind.trigger, createdAt: now.seconds, tags: group.format.triggerTags,
                content: content, author: author.publicKey)
            inner = try GiftWrap.seal(
                rumor, by: author, to: group.server, layer(now, MarmotLimits.backdating, &generator))
        case .direct:
            inner = .signed(
                kind: NostrKind.trigger, createdAt: now.seconds, tags: group.format.triggerTags,
                content: content, by: author, auxiliary: generator.bytes(32))
        }
        let limits = relays.compactMap { directory.information[$0]?.createdAtLowerLimit }
        let back = limits.reduce(MarmotLimits.backdating, min)
        return try GiftWrap.wrap(
            inner, by: generator.keyPair(), to: group.server, layer(now, back, &generator))
    }

    private func layer(
        _ now: UnixTime, _ back: Duration, _ generator: inout some RandomNumberGenerator
    ) -> GiftWrap.Layer {
        GiftWrap.Layer(
            createdAt: max(0, (now - generator.span(upTo: back)).seconds),
            nonce: generator.bytes(NIP44.nonceBytes), auxiliary: generator.bytes(32))
    }
}

extension GossipToken {
    /// What it takes of ``MarmotLimits/tokenBytesOfWake``.
    var wakeBytes: Int { box.count + (relayHint?.utf8.count ?? 0) }
}

extension [GossipToken] {
    /// How many of them, from the first on, one wake takes by ``MarmotLimits/tokensOfWake`` and
    /// ``MarmotLimits/tokenBytesOfWake``.
    func fitting() -> Int {
        var room = MarmotLimits.tokenBytesOfWake
        let over = prefix(MarmotLimits.tokensOfWake).firstIndex { token in
            room -= token.wakeBytes
            return room < 0
        }
        return over ?? Swift.min(count, MarmotLimits.tokensOfWake)
    }
}
