public import PushModel
public import Secp256k1Keys
import WireFormats

/// The device: one leaf of one group, what it knows of everybody's tokens, and what it owes the group. A
/// value; it sends nothing, and what it returns are rumors for the caller to put into MLS messages.
///
/// Nothing here opens a push: a push of this protocol has no content.
public struct MarmotDevice: Sendable {
    /// What an app is built with.
    public struct Settings: Sendable {
        public let platform: DevicePlatform
        /// The notification server's key, which belongs to the holder of the app's credentials.
        public let server: XOnlyKey
        /// The format that this server takes; it also says how the group is talked to.
        public let format: TokenFormat
        /// A relay of that server, told where the format has a place for it.
        public let relayHint: String?
        /// Which owners' proofs the group takes.
        public let proofs: OwnerProof.Acceptance

        public init(
            platform: DevicePlatform, server: XOnlyKey, format: TokenFormat, relayHint: String? = nil,
            proofs: OwnerProof.Acceptance = .current
        ) {
            self.platform = platform
            self.server = server
            self.format = format
            self.relayHint = relayHint
            self.proofs = proofs
        }
    }

    /// Why a token is registered now.
    public enum Occasion: Sendable {
        /// The device has come into the group: it also asks for the others' tokens.
        case joined
        /// The app has started, or notifications were switched on: the system's token may be another.
        case started
    }

    /// What a call asks of the caller.
    public struct Due: Sendable {
        /// Rumors to send into the group.
        public var events: [NostrEvent] = []
        /// Leaves whose entries in ``MarmotDevice/tokens`` changed and are to be saved.
        public var changed: Set<UInt32> = []
    }

    public let settings: Settings
    /// The account's key: author of rumors, signer of owners' proofs.
    let identity: Secp256k1KeyPair
    public internal(set) var tokens: GroupTokens
    /// The user wants no push. Others may still be woken.
    public private(set) var isOptedOut = false
    var schedule: GossipSchedule
    private var target: DeviceTarget?

    /// - Parameter tokens: as kept from the last run.
    public init(
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
    public mutating func register(
        _ target: DeviceTarget, _ occasion: Occasion, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) throws(MarmotError) -> Due {
        guard target.platform == settings.platform.pushService else {
            throw MarmotError(.foreignPushService)
        }
        guard TokenBox.paddingBytes(target, settings.format) != nil else {
            throw MarmotError(.tooMuchContent)
        }
        self.target = target
        isOptedOut = false
        if occasion == .started, let since = knownSince(target, view.ownLeaf) {
            if schedule.refreshAt == nil { schedule.refreshAt = since + refreshPeriod(&generator) }
            if let refreshAt = schedule.refreshAt, now.wall < refreshAt { return Due() }
        }
        return try announce(target, asks: occasion == .joined, in: view, now: now, using: &generator)
    }

    /// Notifications are switched off, or the device is about to leave: says so once, where there was
    /// anything to take back.
    public mutating func optOut(
        in view: some GroupView, now: Moment, using generator: inout some RandomNumberGenerator
    ) -> Due {
        target = nil
        isOptedOut = true
        schedule.refreshAt = nil
        return withdraw(keeping: nil, in: view, now: now, using: &generator)
    }

    /// Encrypts the token with a fresh key for this group alone and tells the group.
    private mutating func announce(
        _ target: DeviceTarget, asks: Bool, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) throws(MarmotError) -> Due {
        let format = settings.format
        let box = try TokenBox.encrypt(
            target, to: settings.server, format, ephemeral: generator.keyPair(),
            nonce: generator.bytes(TokenBox.nonceBytes),
            padding: generator.bytes(TokenBox.paddingBytes(target, format) ?? 0))
        let hasHint = format == .mip05Long || format == .pushV1
        let token = try GossipToken(
            format, box: box, server: settings.server, relayHint: hasHint ? settings.relayHint : nil)
        var due = withdraw(keeping: GossipProfile(format), in: view, now: now, using: &generator)
        due.events += tell(token, target, asks: asks, in: view, now: now, using: &generator)
        due.changed.insert(view.ownLeaf)
        schedule.refreshAt = now.wall + refreshPeriod(&generator)
        return due
    }

    private mutating func tell(
        _ token: GossipToken, _ target: DeviceTarget, asks: Bool, in view: some GroupView, now: Moment,
        using generator: inout some RandomNumberGenerator
    ) -> [NostrEvent] {
        let at = now.wall.seconds
        let fingerprint = Self.fingerprint(target)
        guard token.format != .pushV1 else {
            let key = PushRecord.Key(
                member: author, leaf: view.ownLeaf, platform: target.platform, server: token.server)
            let record = sign(key, fingerprint, token, in: view, now: now, using: &generator)
            _ = tokens.apply(record, group: view.groupID)
            let own = GossipEvent.records([record], author: author, at: at)
            return asks ? [own, GossipEvent.records([], author: author, at: at)] : [own]
        }
        _ = tokens.replace(
            view.ownLeaf, of: author, with: [token], nil, fingerprint: fingerprint, now: now.wall)
        guard token.format == .seed else {
            return [GossipEvent.request([token], nonce: nil, author: author, at: at)]
        }
        guard asks else { return [GossipEvent.update([token], author: author, at: at)] }
        let nonce = Hex.encode(generator.bytes(MarmotLimits.nonceBytes))
        return [GossipEvent.request([token], nonce: nonce, author: author, at: at)]
    }

    /// Takes back what stands of this leaf, but for the profile and server in use.
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
        let records = own.records.filter {
            $0.token != nil && !(profile == .pushV1 && $0.key.server == settings.server)
        }
        if !records.isEmpty {
            var removals: [PushRecord] = []
            for record in records {
                let removal = sign(record.key, record.fingerprint, nil, in: view, now: now, using: &generator)
                _ = tokens.apply(removal, group: view.groupID)
                removals.append(removal)
            }
            due.events.append(GossipEvent.recordRemovals(removals, author: author, at: at))
        }
        if !due.events.isEmpty { due.changed = [view.ownLeaf] }
        return due
    }

    /// Signs a record later than any that stands under its key, whatever the clock says.
    private func sign(
        _ key: PushRecord.Key, _ fingerprint: [UInt8], _ token: GossipToken?, in view: some GroupView,
        now: Moment, using generator: inout some RandomNumberGenerator
    ) -> PushRecord {
        let last = tokens.leaves[key.leaf]?.records.first { $0.key == key }?.ownerTimestamp ?? 0
        return OwnerProof.sign(
            key, fingerprint: fingerprint, token: token,
            ownerTimestamp: max(now.wall.milliseconds, last &+ 1), group: view.groupID, by: identity,
            auxiliary: generator.bytes(32))
    }

    /// When the group was told this very token, in the format and for the server in use.
    private func knownSince(_ target: DeviceTarget, _ leaf: UInt32) -> UnixTime? {
        guard let own = tokens.leaves[leaf], own.member == author else { return nil }
        let fingerprint = Self.fingerprint(target)
        if settings.format == .pushV1 {
            let record = own.records.first {
                $0.token != nil && $0.fingerprint == fingerprint && $0.key.server == settings.server
            }
            return record.map { UnixTime(milliseconds: $0.ownerTimestamp) }
        }
        guard let said = own.said, said.fingerprint == fingerprint, let token = said.tokens.first,
            token.server == settings.server, token.format == settings.format
        else { return nil }
        return said.addedAt
    }

    private static func fingerprint(_ target: DeviceTarget) -> [UInt8] {
        Array(target.digest.prefix(PushRecord.fingerprintBytes))
    }

    /// 30 days in the seed text, and later texts' random 25 to 35, of which ours stays below the age at which
    /// others forget a token.
    private func refreshPeriod(_ generator: inout some RandomNumberGenerator) -> Duration {
        guard settings.format != .seed else { return MarmotLimits.refresh }
        return MarmotLimits.refreshLeast + generator.span(upTo: MarmotLimits.refreshSpread)
    }

    // MARK: what time asks for

    /// When ``due(at:in:using:)`` should next be called.
    public func nextDeadline(from now: Moment) -> ContinuousClock.Instant { schedule.nextDeadline(from: now) }

    /// Answers whose random delay is over, the renewal of one's own token, and once a day the end of old
    /// tokens.
    public mutating func due(
        at now: Moment, in view: some GroupView, using generator: inout some RandomNumberGenerator
    ) -> Due {
        var due = Due()
        for waiting in schedule.answers(at: now.instant) {
            due.events += answer(waiting, in: view, now: now)
        }
        if let refreshAt = schedule.refreshAt, refreshAt <= now.wall, let target {
            // The token had room when it was registered, so this fails for no reason that time could mend.
            if let renewed = try? announce(target, asks: false, in: view, now: now, using: &generator) {
                due.events += renewed.events
                due.changed.formUnion(renewed.changed)
            }
        }
        if schedule.mayPrune(at: now.wall) { due.changed.formUnion(tokens.prune(in: view, now: now.wall)) }
        return due
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
    public mutating func removed(leaves: some Sequence<UInt32>) -> Due {
        Due(changed: tokens.remove(leaves: leaves))
    }
}
