import Primitives
package import PushModel
import Secp256k1Keys
import Synchronization

/// The relay of this protocol, which Marmot calls the notification server: from wrap to wake in the order of
/// docs/conformance/marmot.md, cheap steps before those on the curve.
///
/// It answers nobody, keeps nothing but digests in memory, and yields pushes that no store takes.
package final class MarmotRelay: SilentRole {
    package typealias Inbound = MarmotInbound
    package typealias Reply = Never
    package typealias Failure = MarmotError
    package typealias Held = MarmotHeld
    package typealias Judged = VolatileVerdict<MarmotHeld>

    private let serving: MarmotServing
    private let publicKeys: [XOnlyKey]
    private let kept: Remembered
    private let world: World

    /// What a relay remembers, and since when. It outlives the relay if another replaces it.
    private final class Remembered: Sendable {
        let memory: Mutex<RelayMemory>
        let start: ContinuousClock.Instant

        init(_ serving: MarmotServing, _ start: ContinuousClock.Instant) {
            memory = Mutex(RelayMemory(serving))
            self.start = start
        }

        func release(_ held: RelayMemory.Reservation) { memory.withLock { $0.release(held) } }
    }

    /// - Parameter old: the relay that this one replaces, as after a reload: this one knows what the old one
    ///   has seen, and spent budgets stay spent.
    package init(_ serving: MarmotServing, replacing old: MarmotRelay? = nil, world: World) {
        self.serving = serving
        self.world = world
        publicKeys = serving.keys.map(\.publicKey)
        kept = old?.kept ?? Remembered(serving, world.instant())
        if old != nil { kept.memory.withLock { $0.adopt(serving) } }
    }

    /// The outcome table applies unchanged: there is no registration that an answer could end.
    package static func override(_ answer: Answer) -> Outcome? { nil }

    package func release(_ held: MarmotHeld) { kept.release(held.reservation) }

    /// Keys in memory, of all tables; their number is always bounded.
    package var remembered: Int { kept.memory.withLock(\.keys) }

    /// Forgets what is over. A busy server does so without this call.
    package func forget() {
        let now = elapsed
        kept.memory.withLock { $0.forget(at: now) }
    }

    /// What to subscribe to: wraps for any of our keys, as far back as NIP-59 allows their dates to be.
    ///
    /// - Parameters:
    ///   - limit: 0 asks for no stored events.
    ///   - slack: how much further back, to allow for slow clocks.
    package func subscription(
        limit: Int? = nil, slack: Duration = MarmotLimits.clockSlack
    ) -> NostrFilter {
        let back = MarmotLimits.backdating + slack
        let since = max(0, world.now().seconds - back.components.seconds)
        return .wraps(for: publicKeys, since: since, limit: limit)
    }

    /// Judges one wrap.
    ///
    /// - Returns: the pushes, and how many chunks led to none and why.
    /// - Throws: why the wrap wakes nobody. The sender gets no answer; the caller counts the code.
    package func receive(_ inbound: MarmotInbound) async throws(MarmotError) -> VolatileVerdict<MarmotHeld> {
        let wrap = inbound.event
        // 1 and 2
        let addressee = try GiftWrap.addressee(of: wrap, among: publicKeys)
        if inbound.arrival == .stored, serving.backlog == .liveOnly { throw MarmotError(.tooOld) }
        if wrap.hasExpired(at: world.now().seconds) { throw MarmotError(.tooOld) }
        try GiftWrap.verify(wrap)
        // 3 and 4
        var held = RelayMemory.Reservation(wrap: Self.key(wrap.id))
        let visit = RelayMemory.Visit(
            relay: inbound.relay, relays: serving.relays, members: inbound.members, now: elapsed)
        if let refusal = kept.memory.withLock({ $0.begin(held.wrap, visit) }) {
            throw MarmotError(refusal)
        }
        do throws(MarmotError) {
            return try open(inbound, with: pairs(from: addressee), &held, visit)
        } catch {
            if error.code == .overBudget { kept.release(held) }
            throw error
        }
    }

    /// Our key pairs, the wrap's first, because a token is usually for the same key.
    private func pairs(from addressee: XOnlyKey) -> [Secp256k1KeyPair] {
        serving.keys.filter { $0.publicKey == addressee } + serving.keys.filter { $0.publicKey != addressee }
    }

    /// Steps 5 to 8.
    private func open(
        _ inbound: MarmotInbound, with pairs: [Secp256k1KeyPair], _ held: inout RelayMemory.Reservation,
        _ visit: RelayMemory.Visit
    ) throws(MarmotError) -> VolatileVerdict<MarmotHeld> {
        let opened = try GiftWrap.open(inbound.event, with: pairs[0])
        try checkAge(of: opened.event, inbound.arrival)
        let trigger = try TriggerContent(reading: opened.event, formats: serving.formats)
        let digests = trigger.chunks.map { SHA256.hash($0) }
        // For the other formats the specifications ask for no such key, and two members who write at the same
        // time share their tokens. Digests of chunks of one size serve as well as the chunks, and are much
        // shorter.
        let content =
            trigger.format == .pushV1 ? Self.key(SHA256.hash(digests.flatMap(\.self))) : nil
        let (rumor, sender) = (Self.key(opened.event.id), Self.key(opened.event.pubkey.bytes))
        var reserved = held
        let refusal = kept.memory.withLock {
            $0.admit(rumor: rumor, content: content, sender: sender, &reserved, visit)
        }
        held = reserved
        if let refusal { throw MarmotError(refusal) }
        return try wake(trigger, digests.map(Self.key), pairs, held, visit)
    }

    private func checkAge(of trigger: NostrEvent, _ arrival: MarmotInbound.Arrival) throws(MarmotError) {
        let span: Duration
        switch (arrival, serving.backlog) {
        case (.live, _): return
        case (.stored, .liveOnly): throw MarmotError(.tooOld)
        case (.stored, .grace(let grace)): span = grace
        // A wrap that a listening server would have received counts as received, even if a little late.
        case (.missed(let away), _):
            guard isRemembered(trigger) else { throw MarmotError(.tooOld) }
            span = MarmotLimits.backlogGrace + min(away, MarmotLimits.absence)
        }
        let age = world.now().seconds - trigger.createdAt
        guard age <= span.components.seconds, age >= -MarmotLimits.clockSkew.components.seconds else {
            throw MarmotError(.tooOld)
        }
    }

    /// Whether this memory existed when the trigger was made: for an earlier trigger, a process that has
    /// ended may have woken somebody already. Triggers have times in whole seconds: one of the second in
    /// which the memory began may be older.
    private func isRemembered(_ trigger: NostrEvent) -> Bool {
        let began = world.now() - kept.start.duration(to: world.instant())
        return UnixTime(seconds: trigger.createdAt) >= began
    }

    /// Step 9: every chunk, however many do not open. Their number and the budget of attempts limit the cost
    /// of a trigger (decision 0019).
    private func wake(
        _ trigger: TriggerContent, _ keys: [Digest16], _ pairs: [Secp256k1KeyPair],
        _ held: RelayMemory.Reservation, _ visit: RelayMemory.Visit
    ) throws(MarmotError) -> VolatileVerdict<MarmotHeld> {
        let now = world.now()
        var held = held
        var pushes: [VolatilePush] = []
        var seen = Seen()
        var counts: [Chunk: Int] = [.decoy: trigger.unusable]
        for (chunk, key) in zip(trigger.chunks, keys) {
            switch judge(chunk, trigger.format, key, pairs, &seen, visit) {
            case .wakes(let message, let device, let delay):
                held.devices.append(device)
                // A wake stands for a message, whatever its priority at Apple.
                pushes.append(
                    VolatilePush(
                        message: message, pushClass: .normal, notBefore: delay.map { now + $0 },
                        custodyEnds: now + (delay ?? .zero) + MarmotLimits.custody))
            case .not(let why): counts[why, default: 0] += 1
            }
        }
        // Nobody was woken because a budget was spent: a redelivery may succeed.
        if pushes.isEmpty, counts[.overBudget, default: 0] > 0, counts[.covered] == nil {
            throw MarmotError(.overBudget)
        }
        let notes = Chunk.allCases.compactMap { why in
            counts[why].flatMap { $0 > 0 ? NoteCount(why.note, $0) : nil }
        }
        return VolatileVerdict(pushes: pushes, notes: notes, held: MarmotHeld(reservation: held))
    }

    /// Why a chunk leads to no push.
    package enum Chunk: Sendable, Hashable, CaseIterable {
        /// Does not open, or holds no device token. A decoy is meant to be like this.
        case decoy
        /// Was already in the same trigger, or is for a device that was.
        case repeated
        /// The device was woken a moment ago and will be woken once more, which covers this chunk too.
        case covered
        case overBudget
        /// Is for a push service that the instance does not serve.
        case unserved

        package var note: NoteCode {
            switch self {
            case .decoy: NoteCode("marmot.decoy")
            case .repeated: NoteCode("marmot.token-repeated")
            case .covered: NoteCode("marmot.token-covered")
            case .overBudget: NoteCode("marmot.token-over-budget")
            case .unserved: NoteCode("marmot.token-unserved")
            }
        }
    }

    private enum Found {
        /// - `after`: the delay.
        case wakes(ProviderMessage, device: Digest16, after: Duration?)
        case not(Chunk)
    }

    /// What one trigger has used so far.
    private struct Seen {
        var chunks: Set<Digest16> = []
        var devices: Set<Digest16> = []
    }

    private func judge(
        _ chunk: Secret, _ format: TokenFormat, _ key: Digest16, _ pairs: [Secp256k1KeyPair],
        _ seen: inout Seen, _ visit: RelayMemory.Visit
    ) -> Found {
        guard seen.chunks.insert(key).inserted else { return .not(.repeated) }
        guard kept.memory.withLock({ $0.charge(encryptedToken: key, visit) }) else {
            return .not(.overBudget)
        }
        let target: DeviceTarget
        do throws(MarmotError) {
            target = try decrypt(chunk, format, pairs, visit)
        } catch {
            // A charge for a decoy stays, because the attempt was made.
            guard error.code == .overBudget else { return .not(.decoy) }
            kept.memory.withLock { $0.refund(encryptedToken: key) }
            return .not(.overBudget)
        }
        guard target.platform == .fcm ? serving.servesFCM : serving.topic != nil else {
            return .not(.unserved)
        }
        let message = serving.wake.message(for: target, topic: serving.topic ?? "", at: world.now())
        guard let message else {
            return .not(.decoy)
        }
        let device = Self.key(target.digest)
        guard seen.devices.insert(device).inserted else { return .not(.repeated) }
        let turn = kept.memory.withLock { memory in
            let turn = memory.wake(deviceToken: device, visit)
            if turn == nil { memory.refund(encryptedToken: key) }
            return turn
        }
        switch turn {
        case nil: return .not(.overBudget)
        case .covered?: return .not(.covered)
        case .now?: return .wakes(message, device: device, after: nil)
        case .later(let milliseconds)?:
            return .wakes(message, device: device, after: .milliseconds(milliseconds))
        }
    }

    /// Tries each of our keys in turn: a wrap for the new key may hold tokens for the old one.
    private func decrypt(
        _ chunk: Secret, _ format: TokenFormat, _ pairs: [Secp256k1KeyPair], _ visit: RelayMemory.Visit
    ) throws(MarmotError) -> DeviceTarget {
        for pair in pairs {
            guard kept.memory.withLock({ $0.chargeAttempt(visit) }) else {
                throw MarmotError(.overBudget)
            }
            do {
                return try TokenBox.decrypt(chunk, format, with: pair)
            } catch {
                guard error.code == .tokenDoesNotOpen else { throw error }
            }
        }
        throw MarmotError(.tokenDoesNotOpen)
    }

    /// Milliseconds since this relay began, by the monotonic clock.
    private var elapsed: Int64 { kept.start.duration(to: world.instant()).wholeMilliseconds }

    /// The first half of 32 bytes is enough for a key, because nobody can choose them freely.
    private static func key(_ bytes: [UInt8]) -> Digest16 {
        bytes.withUnsafeBytes { Digest16($0[0, 16]) } ?? Digest16(high: 0, low: 0)
    }
}

/// What a relay has noted for one wrap; ``MarmotRelay/release(_:)`` needs it.
package struct MarmotHeld: Sendable {
    let reservation: RelayMemory.Reservation
}
