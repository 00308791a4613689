import Primitives
package import PushModel
package import Secp256k1Keys
import WireFormats

/// The routine below ``MarmotDevice``: one leaf of one group, what it knows of everybody's tokens, and what
/// it owes the group. A value; it sends nothing, and what it returns are rumors for the caller to put into
/// MLS messages.
///
/// Nothing here opens a push: a push of this protocol has no content.
package struct MarmotLeaf: Sendable {
    /// What an app is built with.
    package struct Settings: Sendable {
        package let platform: DevicePlatform
        /// The notification server's key, which belongs to the holder of the app's credentials.
        package let server: XOnlyKey
        /// The format that this server takes; it also says how the group is talked to.
        package let format: TokenFormat
        /// A relay of that server, told where the format has a place for it.
        package let relayHint: String?
        /// Further servers that wake this device, for the case that one fails. Each opens a box of its own.
        /// Not in the `mip05` texts, which know one token of a leaf.
        package let furtherServers: [Server]
        /// Which owners' proofs the group takes.
        package let proofs: OwnerProof.Acceptance

        /// A notification server beside the first.
        package struct Server: Sendable {
            package let key: XOnlyKey
            package let relayHint: String?

            package init(key: XOnlyKey, relayHint: String? = nil) {
                self.key = key
                self.relayHint = relayHint
            }
        }

        /// Each once, the first first.
        var servers: [Server] {
            furtherServers.reduce(into: [Server(key: server, relayHint: relayHint)]) { servers, server in
                if !servers.contains(where: { $0.key == server.key }) { servers.append(server) }
            }
        }

        package init(
            platform: DevicePlatform, server: XOnlyKey, format: TokenFormat, relayHint: String? = nil,
            furtherServers: [Server] = [], proofs: OwnerProof.Acceptance = .current
        ) {
            self.furtherServers = furtherServers
            self.platform = platform
            self.server = server
            self.format = format
            self.relayHint = relayHint
            self.proofs = proofs
        }
    }

    /// Why a token is registered now.
    package enum Occasion: Sendable {
        /// The device has come into the group: it also asks for the others' tokens.
        case joined
        /// The app has started, or notifications were switched on: the system's token may be another.
        case started
    }

    /// What a call asks of the caller.
    package struct Due: Sendable {
        /// Rumors to send into the group.
        package var events: [NostrEvent] = []
        /// Leaves whose entries in ``MarmotLeaf/tokens`` changed and are to be saved.
        package var changed: Set<UInt32> = []
    }

    package let settings: Settings
    /// The account's key: author of rumors, signer of owners' proofs.
    let identity: Secp256k1KeyPair
    package internal(set) var tokens: GroupTokens
    /// The user wants no push. Others may still be woken.
    package internal(set) var isOptedOut = false
    var schedule: GossipSchedule
    /// What the system gave, for the next renewal.
    private var targets: [DeviceTarget] = []

    /// - Parameter tokens: as kept from the last run.
    package init(
        _ settings: Settings, identity: Secp256k1KeyPair, tokens: GroupTokens = GroupTokens(), now: UnixTime
    ) {
        self.settings = settings
        self.identity = identity
        self.tokens = tokens
        schedule = GossipSchedule(now: now)
    }

    var author: XOnlyKey { identity.publicKey }

    // MARK: own token

    /// Registers the token that the system gave. To be called at every start: nothing is sent when the group
    /// knows this token already and it is not yet due for renewal.
    ///
    /// - Throws: `.foreignPushService` for a token that a device of this platform must not register, above
    ///   all one of FCM on an Apple device; `.tooMuchContent` when the format has no room for it.
    package mutating func register(
        _ target: DeviceTarget, _ occasion: Occasion, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) throws(MarmotError) -> Due {
        try register([target], occasion, in: view, now: now, using: &generator)
    }

    /// Registers all tokens of the device, as where an app has several for the sake of redundancy (spec,
    /// "Implementation Considerations"): the group then knows these and no others of it. Every server of the
    /// settings gets a box of each.
    ///
    /// - Parameter targets: at least one; `seed` has room for ``MarmotLimits/tokensOfLeaf`` boxes, `push-v1`
    ///   for one of each server, `mip05` for one.
    /// - Throws: `.foreignPushService`, `.tooMuchContent`, as for one; nothing is changed then.
    package mutating func register(
        _ targets: [DeviceTarget], _ occasion: Occasion, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) throws(MarmotError) -> Due {
        let service = settings.platform.pushService
        guard !targets.isEmpty, targets.allSatisfy({ $0.platform == service }) else {
            throw MarmotError(.foreignPushService)
        }
        let targets = targets.reduce(into: [DeviceTarget]()) { kept, target in
            if !kept.contains(where: { $0.digest == target.digest }) { kept.append(target) }
        }
        guard hasRoom(for: targets) else { throw MarmotError(.tooMuchContent) }
        self.targets = targets
        isOptedOut = false
        if occasion == .started, let since = knownSince(targets, view.ownLeaf) {
            if schedule.refreshAt == nil { schedule.refreshAt = since + refreshPeriod(&generator) }
            if !schedule.isRefreshDue(at: now.wall) { return Due() }
        }
        return try announce(targets, asks: occasion == .joined, in: view, now: now, using: &generator)
    }

    func hasRoom(for targets: [DeviceTarget]) -> Bool {
        let isEachShort = targets.allSatisfy { TokenBox.paddingBytes($0, settings.format) != nil }
        let servers = settings.servers.count
        switch GossipProfile(settings.format) {
        case .seed: return isEachShort && targets.count * servers <= MarmotLimits.tokensOfLeaf
        case .mip05: return isEachShort && targets.count * servers == 1
        // A record is found by its owner, leaf, platform and server.
        case .pushV1: return isEachShort && targets.count == 1 && servers <= MarmotLimits.recordsOfLeaf
        }
    }

    /// Asks the group for everybody's tokens, for a device that has none to tell: a desktop, or a phone whose
    /// user wants no push, and who wakes others all the same. To be called after joining, and where the store
    /// was lost.
    ///
    /// - Returns: the request; no event in the `mip05` texts, which have none without a token.
    package func ask(
        in view: some GroupView, now: Moment, using generator: inout some RandomNumberGenerator
    ) -> Due {
        let at = now.wall.seconds
        switch GossipProfile(settings.format) {
        case .seed:
            let nonce = Hex.encode(generator.bytes(MarmotLimits.nonceBytes))
            return Due(events: [GossipEvent.request([], nonce: nonce, author: author, at: at)])
        case .pushV1: return Due(events: [GossipEvent.records([], author: author, at: at)])
        case .mip05: return Due()
        }
    }

    /// Notifications are switched off, or the device is about to leave: says so once, where there was
    /// anything to take back.
    package mutating func optOut(
        in view: some GroupView, now: Moment, using generator: inout some RandomNumberGenerator
    ) -> Due {
        targets = []
        isOptedOut = true
        schedule.refreshAt = nil
        return withdraw(keeping: nil, in: view, now: now, using: &generator)
    }

    /// Encrypts the tokens with fresh keys for this group alone and tells the group.
    private mutating func announce(
        _ targets: [DeviceTarget], asks: Bool, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) throws(MarmotError) -> Due {
        let format = settings.format
        let hasHint = format == .mip05Long || format == .pushV1
        var tokens: [GossipToken] = []
        for target in targets {
            for server in settings.servers {
                let box = try TokenBox.encrypt(
                    target, to: server.key, format, ephemeral: generator.keyPair(),
                    nonce: generator.bytes(TokenBox.nonceBytes),
                    padding: generator.bytes(TokenBox.paddingBytes(target, format) ?? 0))
                tokens.append(
                    try GossipToken(
                        format, box: box, server: server.key, relayHint: hasHint ? server.relayHint : nil))
            }
        }
        var due = withdraw(keeping: GossipProfile(format), in: view, now: now, using: &generator)
        due.events += tell(tokens, targets, asks: asks, in: view, now: now, using: &generator)
        due.changed.insert(view.ownLeaf)
        let next = now.wall + refreshPeriod(&generator)
        let takenAt = targets.first.flatMap { aheadUntil($0.platform, view.ownLeaf, now.wall) }
        schedule.refreshAt = takenAt.map { min($0, next) } ?? next
        return due
    }

    private mutating func tell(
        _ own: [GossipToken], _ targets: [DeviceTarget], asks: Bool, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) -> [NostrEvent] {
        let at = now.wall.seconds
        if settings.format == .pushV1, let target = targets.first {
            let signed = own.map { token in
                let key = PushRecord.Key(
                    member: author, leaf: view.ownLeaf, platform: target.platform, server: token.server)
                return sign(key, Self.fingerprint(target), token, in: view, now: now, using: &generator)
            }
            let owner = author
            let told = tell(signed: signed, in: view) { GossipEvent.records($0, author: owner, at: at) }
            return asks ? told + [GossipEvent.records([], author: author, at: at)] : told
        }
        _ = tokens.replace(
            view.ownLeaf, of: author, with: own, nil, fingerprint: Self.fingerprint(targets), now: now.wall)
        guard settings.format == .seed else {
            return [GossipEvent.request(own, nonce: nil, author: author, at: at)]
        }
        guard asks else { return [GossipEvent.update(own, author: author, at: at)] }
        let nonce = Hex.encode(generator.bytes(MarmotLimits.nonceBytes))
        return [GossipEvent.request(own, nonce: nonce, author: author, at: at)]
    }

    /// Takes back what stands of this leaf, but for the profile and servers in use.
    private mutating func withdraw(
        keeping profile: GossipProfile?, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) -> Due {
        var due = Due()
        guard let own = tokens.leaves[view.ownLeaf], own.member == author else { return due }
        let at = now.wall.seconds
        if let first = own.said?.tokens.first {
            let current = GossipProfile(first.format)
            if current != profile {
                _ = tokens.replace(view.ownLeaf, of: author, with: [], nil, now: now.wall)
                due.events.append(GossipEvent.removal(current, author: author, at: at))
            }
        }
        let kept = profile == .pushV1 ? settings.servers.map(\.key) : []
        let records = own.records.filter { $0.token != nil && !kept.contains($0.key.server) }
        if !records.isEmpty {
            let signed = records.map {
                sign($0.key, $0.fingerprint, nil, in: view, now: now, using: &generator)
            }
            let owner = author
            due.events += tell(signed: signed, in: view) {
                GossipEvent.recordRemovals($0, author: owner, at: at)
            }
        }
        if !due.events.isEmpty { due.changed = [view.ownLeaf] }
        return due
    }

    /// When the group was told these very tokens, in the format and for the servers in use.
    func knownSince(_ targets: [DeviceTarget], _ leaf: UInt32) -> UnixTime? {
        guard let own = tokens.leaves[leaf], own.member == author else { return nil }
        let servers = settings.servers.map(\.key)
        if settings.format == .pushV1, let target = targets.first {
            let fingerprint = Self.fingerprint(target)
            let standing = own.records.filter { $0.token != nil }
            let known = standing.filter {
                $0.fingerprint == fingerprint && servers.contains($0.key.server)
            }
            guard known.count == servers.count, standing.count == known.count else { return nil }
            return known.map { UnixTime(milliseconds: $0.ownerTimestamp) }.min()
        }
        guard let said = own.said, said.fingerprint == Self.fingerprint(targets),
            said.tokens.count == targets.count * servers.count,
            said.tokens.allSatisfy({ $0.format == settings.format && servers.contains($0.server) }),
            Set(said.tokens.map(\.server)).count == servers.count
        else { return nil }
        return said.addedAt
    }

    private static func fingerprint(_ target: DeviceTarget) -> [UInt8] {
        Array(target.digest.prefix(PushRecord.fingerprintBytes))
    }

    /// Of several tokens, in whatever order the app has them.
    private static func fingerprint(_ targets: [DeviceTarget]) -> [UInt8] {
        let digests = targets.map(\.digest).sorted { $0.lexicographicallyPrecedes($1) }
        guard digests.count > 1 else { return targets.first.map(fingerprint) ?? [] }
        return Array(SHA256.hash(digests.flatMap(\.self)).prefix(PushRecord.fingerprintBytes))
    }

    /// 30 days in the seed text, and later texts' random 25 to 35, of which ours stays below the age at which
    /// others forget a token.
    private func refreshPeriod(_ generator: inout some RandomNumberGenerator) -> Duration {
        guard settings.format != .seed else { return MarmotLimits.refresh }
        return MarmotLimits.refreshLeast + generator.span(upTo: MarmotLimits.refreshSpread)
    }

    // MARK: what time asks for

    /// When ``due(at:in:using:)`` should next be called.
    package func nextDeadline(from now: Moment) -> ContinuousClock.Instant {
        schedule.nextDeadline(from: now)
    }

    /// Answers whose random delay is over, the renewal of one's own token, also where a clock that was ahead
    /// has dated it, and once a day the end of old tokens.
    package mutating func due(
        at now: Moment, in view: some GroupView, using generator: inout some RandomNumberGenerator
    ) -> Due {
        var due = Due()
        for waiting in schedule.answers(at: now.instant) {
            due.events += answer(waiting, in: view, now: now)
        }
        if schedule.isRefreshDue(at: now.wall) || isToldAhead(in: view, now.wall), !targets.isEmpty {
            // The tokens had room when they were registered: it fails for no reason that time could mend.
            if let renewed = try? announce(targets, asks: false, in: view, now: now, using: &generator) {
                due.events += renewed.events
                due.changed.formUnion(renewed.changed)
            }
        }
        if schedule.mayPrune(at: now.wall) { due.changed.formUnion(tokens.prune(in: view, now: now.wall)) }
        return due
    }

    /// Whether the group was told the tokens by a clock that was far ahead, and not once more since.
    private func isToldAhead(in view: some GroupView, _ now: UnixTime) -> Bool {
        guard let target = targets.first, let until = aheadUntil(target.platform, view.ownLeaf, now) else {
            return false
        }
        return schedule.refreshAt.map { $0 > until } ?? true
    }

    private func answer(
        _ waiting: GossipSchedule.Pending, in view: some GroupView, now: Moment
    ) -> [NostrEvent] {
        let at = now.wall.seconds
        if waiting.profile == .pushV1 {
            return GossipEvent.recordLists(tokens.records(in: view), author: author, at: at)
        }
        let listed = tokens.live(in: view, at: now.wall)
            .filter { GossipProfile($0.token.format) == waiting.profile }
            .map { ListedToken(leaf: $0.leaf, token: $0.token) }
        return GossipEvent.lists(
            listed, answering: waiting.request, waiting.profile, author: author, at: at)
    }

    /// MLS Remove: everything of these leaves is forgotten at once.
    package mutating func removed(leaves: some Sequence<UInt32>) -> Due {
        Due(changed: tokens.remove(leaves: leaves))
    }
}
