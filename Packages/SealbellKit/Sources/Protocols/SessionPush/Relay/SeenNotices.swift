import Primitives
import PushModel
import Synchronization

/// What a notice says besides the message's name, so that reports can be compared.
struct NoticeContent: Sendable, Hashable {
    /// The message matches its hash.
    let isProved: Bool
    /// Of both times.
    private let frame: UInt32
    /// Of the message; 0: it is absent. A proved message is identified by its hash.
    private let data: UInt32

    /// - Parameter key: of this process, so that nobody can construct two contents with one digest.
    init(_ notice: StorageNotice, key: Secret) {
        let isProved = StorageHash.fits(notice)
        self.isProved = isProved
        frame = Self.short(key) { hash in
            withUnsafeBytes(of: (notice.timestamp.milliseconds, notice.expiry.milliseconds)) {
                hash.update($0)
            }
        }
        if isProved {
            data = 1
        } else if let bytes = notice.data, bytes.count > 0 {
            data = Self.short(key) { hash in bytes.reveal { hash.update($0) } } | 2
        } else {
            data = 0
        }
    }

    private static func short(_ key: Secret, _ fill: (borrowing KeyedHash) -> Void) -> UInt32 {
        UInt32(truncatingIfNeeded: KeyedHash.digest16(key: key, fill).low)
    }

    /// Whether it says nothing that the other report did not say.
    func repeats(_ other: NoticeContent) -> Bool {
        frame == other.frame && (data == other.data || data == 0)
    }
}

/// Messages that were lately reported: every member of a swarm reports the same one.
///
/// A report is a repeat if it agrees with the first report of its message. A report that differs is taken
/// too, once from each node, because one of the two is false and the relay cannot tell which. So a node that
/// lies about a message hides nothing that the others say, and costs a phone one more push
/// (docs/decisions/0097).
///
/// Two generations, so that an entry lives for one to two lifetimes (§10.4) however many messages come. They
/// go by the wall clock, which is read for each message anyway. A clock set forward ends a lifetime early,
/// and the store's marks still recognise what is forgotten too early; a clock set back ends it at once, so
/// that no entry lasts for ever.
package final class SeenNotices: Sendable {
    private struct Generation {
        /// What the first report of each message said.
        var first: [Digest16: NoticeContent] = [:]
        /// Message and node of reports that did not agree with the first.
        var others: Set<Digest16> = []

        var count: Int { first.count + others.count }
        mutating func removeAll() {
            // Keeps its memory, because the next generation will be as large.
            first.removeAll(keepingCapacity: true)
            others.removeAll(keepingCapacity: true)
        }
    }

    private struct State {
        var young = Generation()
        var old = Generation()
        /// Milliseconds of the wall clock.
        var since: Int64?
    }

    /// ``SessionLimits/seenLife`` in milliseconds.
    private static let life = SessionLimits.seenLife.wholeMilliseconds

    private let state = Mutex(State())
    let key: Secret

    package init() { key = Secret(World.live.randomBytes(32)) }

    /// False if it was reported before.
    func enter(_ notice: StorageNotice, says content: NoticeContent, now: UnixTime) -> Bool {
        let name = name(notice)
        return state.withLock { state in
            Self.turn(&state, now.milliseconds)
            guard let first = state.young.first[name] ?? state.old.first[name] else {
                state.young.first[name] = content
                return true
            }
            if content.repeats(first) { return false }
            let teller = Self.teller(name, notice.teller)
            return !state.old.others.contains(teller) && state.young.others.insert(teller).inserted
        }
    }

    /// Forgets a report that could not be handed on, so that it may be repeated.
    func leave(_ notice: StorageNotice, says content: NoticeContent) {
        let name = name(notice)
        state.withLock { state in
            if state.young.first[name] == content { state.young.first[name] = nil }
            if state.old.first[name] == content { state.old.first[name] = nil }
            let teller = Self.teller(name, notice.teller)
            state.young.others.remove(teller)
            state.old.others.remove(teller)
        }
    }

    private static func turn(_ state: inout State, _ now: Int64) {
        let age = now - (state.since ?? now)
        if state.since == nil { state.since = now }
        guard state.young.count >= SessionLimits.seenMessages || age < 0 || age >= life else { return }
        swap(&state.young, &state.old)
        state.young.removeAll()
        state.since = now
    }

    private static func teller(_ name: Digest16, _ teller: UInt64) -> Digest16 {
        Digest16(high: name.high, low: name.low ^ teller)
    }

    private func name(_ notice: StorageNotice) -> Digest16 {
        KeyedHash.digest16(key: key) { hash in
            hash.update(notice.account.bytes)
            withUnsafeBytes(of: notice.namespace.bigEndian) { hash.update($0) }
            notice.hash.reveal { hash.update($0) }
        }
    }
}
