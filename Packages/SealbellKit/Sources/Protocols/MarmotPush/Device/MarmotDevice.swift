public import PushModel
public import SealbellKit
import Secp256k1Keys
import WireFormats

/// One phone in one group: tells the group its encrypted token, and learns the others'.
///
/// There is no server of its own to register at: its calls are `hear`, which stands, and `say`, application
/// messages of the MLS group. It wants the group at each start and after each commit (``group``); nothing is
/// due before. A push of this protocol has no content: it wakes the app, which fetches its groups.
///
/// Told ``use(token:)`` with `nil`, it takes its own token back, and wakes others all the same: of a new
/// group it then asks for the others' tokens.
///
/// Spec: "Gossip Protocol", docs/conformance/marmot.md.
public struct MarmotDevice: PushDevice {
    /// The group as it stands now; what is known of leaves that are gone is forgotten at once. A group of
    /// another id than before begins anew.
    public var group: MarmotGroup? { didSet { changed(from: oldValue) } }

    let setup: MarmotSetup
    var leaf: MarmotLeaf
    /// The group that all below is about; empty before there was one.
    var groupID: [UInt8] = []
    /// Whether the group was asked for everybody's tokens.
    var hasAsked = false
    /// What is to be said, the oldest first.
    var owed: [Owed] = []
    /// What ``status(at:)`` said last, and since when.
    var (state, since): (DeviceStatus.State, UnixTime?) = (.none, nil)
    private var targets: [DeviceTarget]?
    /// Whether the group is to be told of a token that is new, or is no more.
    private var isToTell = false
    /// Whether it is to be asked for everybody's tokens although it was.
    private var isToAsk = false
    private var hearID: UInt64?
    private var nextID: UInt64
    /// The app could not do what it was asked; nothing is asked of it before.
    private var restUntil: UnixTime?
    private var line = TimeLine()

    /// A rumor that the group has not got.
    struct Owed: Sendable {
        let rumor: Secret
        /// Others' tokens, which another member may tell as well: said once, and not kept.
        let isAnswer: Bool
        /// It also asks for the others' tokens.
        let asks: Bool
        /// All tokens of this leaf, by tags: the group goes by the last one in MLS order. Records of
        /// `push-v1` go by a date of their own.
        let isSet: Bool
        /// The group has a later set already: it is not said again, and not kept.
        var isOutdated = false
        var call: UInt64?
        /// Since when ``call`` is under way.
        var askedAt = UnixTime.distantPast

        init(_ event: NostrEvent, rumor: Secret) {
            self.rumor = rumor
            isAnswer = event.kind == NostrKind.tokenList
            asks = event.kind == NostrKind.tokenRequest
            // What no reader would take is no set.
            isSet =
                switch try? Gossip(reading: event) {
                case .request(_, let own, _): !own.isEmpty
                case .update, .removal: true
                case .list, .recordRequest, .records, nil: false
                }
        }

        /// A clock that was set back must not put it off.
        func isLost(_ now: UnixTime) -> Bool {
            let age = now.since(askedAt)
            return call != nil && (age >= MarmotLimits.sayLife || age <= .zero - MarmotLimits.sayLife)
        }
    }

    /// The leaf after ``kept``, or one that has come into a group.
    ///
    /// - Parameter kept: at most ``MarmotLimits/deviceKeptBytes``.
    /// - Throws: `.malformedKept` for what ``kept`` has not written, also when it was another account's.
    public init(
        _ setup: MarmotSetup, keeping kept: Secret?, using generator: inout some RandomNumberGenerator
    ) throws(DeviceError) {
        self.setup = setup
        // From a place of its own, so that a call of an earlier run is none of this one's.
        nextID = UInt64.random(in: 0...UInt64.max >> 1, using: &generator)
        leaf = MarmotLeaf(setup.settings, identity: setup.identity, now: .distantPast)
        if let kept { try restore(kept) }
    }

    // MARK: what the user wants

    /// The token that the system gave; the group learns it encrypted to the notification server.
    ///
    /// - Parameter token: `nil`: no pushes, or the group is about to be left; the group is told once.
    /// - Throws: `.wrongService` for a token that a device of this platform must not register, above all one
    ///   of FCM on an Apple device; `.malformedToken`; `.tooMany` when the format has no room for it.
    public mutating func use(token: DeviceToken?) throws(DeviceError) {
        try use(tokens: token.map { [$0] } ?? [])
    }

    /// Tokens of an app that has several for the sake of redundancy; the group then knows these and no
    /// others.
    ///
    /// - Parameter tokens: `seed` has room for ``MarmotLimits/tokensOfLeaf``, one for each token and server;
    ///   the other formats for one. None: as ``use(token:)`` with `nil`.
    /// - Throws: as ``use(token:)``; nothing has changed then.
    public mutating func use(tokens: [DeviceToken]) throws(DeviceError) {
        var found: [DeviceTarget] = []
        for token in tokens {
            guard setup.settings.platform.pushService == (token.service == .apns ? .apns : .fcm) else {
                throw DeviceError(.wrongService, MarmotErrorCode.foreignPushService.rawValue)
            }
            do throws(MarmotError) {
                let target =
                    try token.service == .apns
                    ? DeviceTarget.apns(bytes: token.bytes) : DeviceTarget.fcm(token.text)
                if !found.contains(where: { $0.digest == target.digest }) { found.append(target) }
            } catch { throw DeviceError(.malformedToken, error.codeText) }
        }
        guard found.isEmpty || leaf.hasRoom(for: found) else {
            throw DeviceError(.tooMany, MarmotErrorCode.tooMuchContent.rawValue)
        }
        (targets, isToTell) = (found, true)
    }

    // MARK: calls

    /// Calls to make now: a `hear` once a run, and a `say` for each rumor that the group has not got. What is
    /// not said is said again after 15 s, and by the next run; what was not answered, after an hour.
    public mutating func due(
        at now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> [Call] {
        guard let targets, let group, !isResting(now) else { return [] }
        restUntil = nil
        for place in owed.indices.reversed() where owed[place].isLost(now) { unsaid(place) }
        let moment = line.moment(now)
        var calls: [Call] = []
        if hearID == nil {
            let call = Call(
                id: id(), .hear(group: groupID, kinds: MarmotLimits.gossipKinds), isStanding: true)
            hearID = call.id
            calls.append(call)
        }
        if isToTell {
            isToTell = false
            tell(targets, group, moment, &generator)
        }
        if isToAsk {
            isToAsk = false
            owe(leaf.ask(in: group, now: moment, using: &generator).events)
        }
        owe(leaf.due(at: moment, in: group, using: &generator).events)
        for place in sayable {
            let call = Call(id: id(), .say(group: groupID, rumor: owed[place].rumor))
            (owed[place].call, owed[place].askedAt) = (call.id, now)
            calls.append(call)
        }
        mark(now)
        return calls
    }

    /// Takes what came of a call: `.taken`, of a `hear` also each message that the group brought (`.group`),
    /// as MLS proved it. Anything else is `.none`; of a `hear` it says that nothing is heard any more.
    public mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        if call.id == hearID {
            switch answer {
            case .taken: break
            case .group(let rumor, let sender, let epoch, let index):
                hear(rumor, sender, MessageOrder(epoch: epoch, index: index), now, &generator)
            case .http, .waku, .events, .relays, .none:
                hearID = nil
                restUntil = now + MarmotLimits.callPause
            }
            return
        }
        guard let place = owed.firstIndex(where: { $0.call == call.id }) else { return }
        if case .taken = answer {
            if owed.remove(at: place).isSet { outdateSets(before: place) }
        } else {
            unsaid(place)
            restUntil = now + MarmotLimits.callPause
        }
        mark(now)
    }

    private mutating func hear(
        _ rumor: Secret, _ sender: UInt32, _ order: MessageOrder, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) {
        // What is no event is a member's noise.
        guard let group, let event = try? NostrEvent.parse(rumor, .rumor) else { return }
        let message = GroupMessage(event, senderLeaf: sender, order: order)
        _ = leaf.receive(message, in: group, now: line.moment(now), using: &generator)
        mark(now)
    }

    // MARK: for tools

    /// Takes an application message of the group without a `hear`, for whoever reads the group once and says
    /// nothing.
    package mutating func heard(
        _ rumor: Secret, leaf sender: UInt32, epoch: UInt64, index: UInt64, at now: UnixTime
    ) {
        var generator = SystemRandomNumberGenerator()
        hear(rumor, sender, MessageOrder(epoch: epoch, index: index), now, &generator)
    }

    /// The group is asked for everybody's tokens by the next ``due(at:using:)``, although it was before; not
    /// in the `mip05` texts, which have no such request.
    package mutating func askAgain() { isToAsk = true }

    /// Tokens in force, by their leaves.
    package func tokens(at now: UnixTime) -> [GroupTokens.Live] {
        group.map { leaf.tokens.live(in: $0, at: now) } ?? []
    }

    /// Tokens to wake for a message that this account has sent, for ``MarmotOrigin`` and the
    /// publisher: at most ``MarmotLimits/tokensOfWake`` and ``MarmotLimits/tokenBytesOfWake``. Of a group
    /// with more, one of each leaf comes before any leaf's second.
    public func tokensToWake(at now: UnixTime) -> [GossipToken] {
        guard let group else { return [] }
        return MarmotOriginRoutine.choose(
            from: leaf.tokens, in: group, sender: setup.identity.publicKey, now: now)
    }

    /// When to call ``due(at:using:)`` without anything having happened.
    public var nextDue: UnixTime? {
        guard targets != nil, group != nil else { return nil }
        let isWaiting = hearID == nil || isToTell || isToAsk || !sayable.isEmpty
        let lost = owed.lazy.filter { $0.call != nil }.map { $0.askedAt + MarmotLimits.sayLife }.min()
        let said = line.time(leaf.nextDeadline(from: line.moment))
        let next = isWaiting ? .distantPast : lost.map { min($0, said) } ?? said
        return restUntil.map { max($0, next) } ?? next
    }

    /// Whether the group knows no token of this phone, and was told so.
    public var isGone: Bool {
        !hasOwnToken && !isToTell && !owed.contains { !$0.isAnswer }
    }

    // MARK: parts

    private mutating func tell(
        _ targets: [DeviceTarget], _ group: MarmotGroup, _ moment: Moment,
        _ generator: inout some RandomNumberGenerator
    ) {
        if targets.isEmpty {
            owe(leaf.optOut(in: group, now: moment, using: &generator).events)
            if !hasAsked { owe(leaf.ask(in: group, now: moment, using: &generator).events) }
        } else {
            let occasion: MarmotLeaf.Occasion = hasAsked ? .started : .joined
            // The tokens have room, and are of this platform: it was looked at when they were given.
            let due = try? leaf.register(targets, occasion, in: group, now: moment, using: &generator)
            owe(due?.events ?? [])
        }
        hasAsked = true
    }

    private mutating func owe(_ events: [NostrEvent]) {
        for event in events {
            owed.append(Owed(event, rumor: event.serialized()))
        }
        // An app that says nothing for months: the newest counts.
        owed.removeFirst(max(0, owed.count - MarmotLimits.owedRumors))
    }

    /// Places in ``owed`` of what is to be said now. A set waits while a later one is under way, so that it
    /// does not come behind it.
    private var sayable: [Int] {
        let last = owed.lastIndex { $0.isSet && $0.call != nil } ?? 0
        return owed.indices.filter { owed[$0].call == nil && !(owed[$0].isSet && $0 < last) }
    }

    /// The group has a later set: said again behind it, an earlier one would count, as the token of a phone
    /// that was logged out since.
    private mutating func outdateSets(before place: Int) {
        for earlier in owed.indices.prefix(place).reversed() where owed[earlier].isSet {
            if owed[earlier].call == nil { drop(earlier) } else { owed[earlier].isOutdated = true }
        }
    }

    /// Nobody has heard it.
    private mutating func unsaid(_ place: Int) {
        // Others answer too: a list that comes late is noise.
        if owed[place].isAnswer || owed[place].isOutdated { drop(place) } else { owed[place].call = nil }
    }

    /// Is not said again; the others' tokens are still asked for.
    private mutating func drop(_ place: Int) {
        if owed.remove(at: place).asks { isToAsk = true }
    }

    /// Whether the group was told a token of this leaf. Another device of the account is another leaf.
    var hasOwnToken: Bool {
        func isOwn(_ entry: LeafTokens) -> Bool {
            entry.member == setup.identity.publicKey && !entry.tokens.isEmpty
        }
        guard let group else { return leaf.tokens.leaves.values.contains(where: isOwn) }
        return leaf.tokens.leaves[group.ownLeaf].map(isOwn) ?? false
    }

    private mutating func changed(from old: MarmotGroup?) {
        guard let group else { return }
        if group.groupID != groupID {
            leaf = MarmotLeaf(setup.settings, identity: setup.identity, now: .distantPast)
            (owed, hasAsked, hearID, isToTell) = ([], false, nil, targets != nil)
            groupID = group.groupID
        }
        let gone = leaf.tokens.leaves.filter { group.member(ofLeaf: $0.key) != $0.value.member }
        _ = leaf.removed(leaves: gone.keys)
        // Readded at another leaf: the group knows nothing of it.
        if let old, old.ownLeaf != group.ownLeaf { isToTell = targets != nil }
    }

    private mutating func id() -> UInt64 {
        nextID &+= 1
        return nextID
    }

    /// A clock that was set back must not put it off.
    private func isResting(_ now: UnixTime) -> Bool {
        guard let restUntil else { return false }
        return restUntil > now && restUntil.since(now) <= MarmotLimits.callPause
    }
}
