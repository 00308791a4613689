package import PushModel
import Synchronization

/// Which lane of a pair an address belongs to, learned from acceptances (decision 0051).
///
/// A room of the core holds address → side of the pair, written at the first acceptance, and once a month
/// after it. It belongs to the registration of the accepted push and is deleted with it; a record without an
/// acceptance for three months is deleted too. Its name is made of app and address; its body holds neither.
/// An address that was never accepted is tried in the pair's first lane and, when the answer is that it may
/// be elsewhere, once in the other, as part of the first attempt.
package enum Environments {
    static let space = Space.learned
    /// How long it is known without an acceptance.
    static let life = Duration.seconds(90 * 86_400)
    /// The age at which an acceptance writes it again: so only one push a month pays for it.
    static let fresh = Duration.seconds(30 * 86_400)

    /// app ‖ 0 ‖ address. The app's name cannot hold a zero byte.
    package static func key(app: ConfiguredName, address: Secret) -> RecordKey {
        let name = Array(app.text.utf8) + [0]
        let secret = Secret(count: name.count + address.count) { out in
            out.copyBytes(from: name)
            address.reveal { bytes in
                UnsafeMutableRawBufferPointer(rebasing: out[name.count...]).copyMemory(from: bytes)
            }
        }
        return RecordKey(space, secret)
    }

    static func record(_ key: RecordKey, _ side: LanePair.Side, now: UnixTime) -> Record {
        Record(key: key, touchedAt: now, expiresAt: now + life, body: Secret([side.rawValue]))
    }

    /// Whether an acceptance should write it again.
    static func isOld(_ record: Record, now: UnixTime) -> Bool { now.since(record.touchedAt) >= fresh }

    static func read(_ record: Record) -> LanePair.Side? {
        record.body.reveal { bytes in bytes.count == 1 ? LanePair.Side(rawValue: bytes[0]) : nil }
    }
}

extension DeliveryCore {
    enum Learned {
        case nothing
        case change(Change)
        /// The same push goes on in that lane, as part of its first attempt.
        case goesOn(any LaneHandle)
        /// The same for a volatile push.
        case goesOnInMemory(any VolatileLane)
    }

    /// Whether an answer may mean that its push is to go on in the other lane: ``learned(from:for:)`` tells.
    func mayGoOn(_ answer: Answer, _ entry: LaneQueue.Entry) -> Bool {
        guard !entry.environmentKnown, answer.reason.meaning.contains(.mayBeElsewhere),
            let pair = pair(for: entry.push)
        else { return false }
        return Self.mayBeElsewhere(answer, entry.push.lane, pair)
    }

    /// Whether an answer to it may teach something: its environment is neither named nor known.
    func mayTeach(_ entry: LaneQueue.Entry) -> Bool {
        !entry.environmentKnown && pair(for: entry.push) != nil
    }

    /// What an answer teaches about the environment of its address.
    func learned(from answer: Answer, for entry: LaneQueue.Entry) async -> Learned {
        guard !entry.environmentKnown, let pair = pair(for: entry.push) else { return .nothing }
        if entry.push.isVolatile { return learnedInMemory(from: answer, for: entry, pair) }
        let lane = entry.push.lane
        let key = Environments.key(app: lane.app, address: entry.push.message.address)
        if answer.outcome.isAccepted {
            let now = world.now()
            return .change(
                .putBeside(
                    Environments.record(key, lane == pair.first ? .first : .other, now: now),
                    registration: entry.push.record, notTouchedAfter: now - Environments.fresh))
        }
        guard Self.mayBeElsewhere(answer, lane, pair) else { return .nothing }
        do {
            // Learned while this push was under way, an address may be the other lane's all the same.
            let known = try await registry.find([key]).first.flatMap { $0 }.flatMap(Environments.read)
            guard known != .first else { return .nothing }
        } catch {
            // At worst the other lane is asked in vain. Believing the first lane alone would cost the push
            // and its registration, if the address belongs to the other.
            journal.note("environment unknown", [.lane: lane, .code: ErrorCode(error)], level: .warning)
        }
        return self.lane(pair.other).map { .goesOn($0) } ?? .nothing
    }

    /// `nil` when its lane has no other, and for a push that names its environment itself.
    private func pair(for push: OwedPush) -> LanePair? {
        guard push.message.environment == nil else { return nil }
        return table.withLock { $0.apps.pair(of: push.lane) }
    }

    /// Whether the address may be the other lane's. An address that we refuse ourselves belongs to no
    /// environment.
    private static func mayBeElsewhere(_ answer: Answer, _ lane: LaneName, _ pair: LanePair) -> Bool {
        answer.reason.meaning.contains(.mayBeElsewhere) && answer.fate != .local && lane == pair.first
    }

    /// What is known of an address that the push service does not know any more.
    func unlearned(of push: OwedPush, _ judged: Judgement) -> [Change] {
        guard judged.first == .unregistered, push.isDurable, pair(for: push) != nil else {
            return []
        }
        return [.delete(Environments.key(app: push.lane.app, address: push.message.address), if: .any)]
    }

    /// Not even a digest of a volatile push's address reaches the store.
    private func learnedInMemory(
        from answer: Answer, for entry: LaneQueue.Entry, _ pair: LanePair
    ) -> Learned {
        let (lane, address) = (entry.push.lane, entry.push.message.address)
        if answer.outcome.isAccepted {
            volatile.learn(lane == pair.first ? .first : .other, app: lane.app, address: address)
            return .nothing
        }
        guard Self.mayBeElsewhere(answer, lane, pair) else { return .nothing }
        return volatileLane(pair.other).map { .goesOnInMemory($0) } ?? .nothing
    }
}
