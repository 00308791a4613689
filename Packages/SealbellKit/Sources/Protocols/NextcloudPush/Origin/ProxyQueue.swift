public import PushModel
public import SealbellKit

/// Entries on their way to proxies: what is to be sent now, and what is tried again (§4.7, where the
/// deployed server has no second try).
///
/// A state machine without clock, network or disk. ``next(now:)`` says which calls to make,
/// ``settle(_:_:rows:now:using:)`` what their answers mean; one call at a time is under way for each proxy,
/// and a proxy that is slow or away holds up no other. An entry that is sent twice reaches a device once
/// where the proxy remembers signatures.
public struct ProxyQueue: Sendable {
    /// An entry and the moment when it was taken in.
    public struct Waiting: Sendable {
        /// The push, sealed.
        public let entry: SealedEntry
        /// When it was taken in; its life is counted from here.
        public let since: UnixTime

        /// A call rings for a minute; anything else is worth a try for a day.
        public var until: UnixTime {
            since + (entry.kind.form == .voip ? NextcloudLimits.callLife : NextcloudLimits.entryLife)
        }
    }

    /// One request to make. Its answer goes to ``ProxyQueue/settle(_:_:rows:now:using:)`` with the same
    /// number.
    public struct Call: Sendable {
        /// Goes back with the answer; unique in the queue's life.
        public let id: UInt64
        /// What to send to the proxy.
        public let request: HTTPCall
        /// How many entries are in it.
        public let count: Int
    }

    /// Whether an entry is tried again.
    public enum Retries: Sendable, Hashable {
        /// One call, as deployed servers have it.
        case never
        /// After ``NextcloudLimits/backoffLeast``, then twice as long each time.
        case withBackoff
    }

    /// What an answer means.
    public struct Settlement: Sendable {
        /// What the proxy says, and which devices it does not know.
        public let verdict: ProxyVerdict
        /// Number of entries that stay in the queue for another try.
        public let retried: Int
        /// Number of entries that are given up.
        public let lost: Int
    }

    /// How many entries are kept for one proxy, and for all of them; those of calls under way count for the
    /// latter alone.
    package struct Room: Sendable {
        package var perProxy = NextcloudLimits.queuedPerProxy
        package var all = NextcloudLimits.queuedEntries

        package init() {}
    }

    private struct Lane: Sendable {
        var waiting: [Waiting] = []
        /// What the call under way has, and its number.
        var flight: (id: UInt64, entries: [Waiting])?
        var failures = 0
        var pausedUntil: UnixTime?
        /// Smaller after a 413.
        var batch = NextcloudLimits.entriesSentAtOnce
    }

    private let origin: NextcloudOrigin
    private let retries: Retries
    private let room: Room
    private var lanes: [String: Lane] = [:]
    /// The proxies of calls under way, by the call's number.
    private var called: [UInt64: String] = [:]
    /// Entries not yet settled, those of calls under way too.
    public private(set) var count = 0
    private var nextID: UInt64 = 1
    /// Entries that were given up without a call, because there was no room or their time was over.
    public private(set) var dropped = 0

    /// - Parameter waiting: as kept from the last run, ``waiting``.
    public init(_ origin: NextcloudOrigin, retries: Retries = .withBackoff, waiting: [Waiting] = []) {
        self.init(origin, retries: retries, waiting: waiting, room: Room())
    }

    /// As above, with other bounds than those of ``NextcloudLimits``.
    package init(
        _ origin: NextcloudOrigin, retries: Retries = .withBackoff, waiting: [Waiting] = [], room: Room
    ) {
        self.origin = origin
        self.retries = retries
        self.room = room
        for item in waiting { append(item) }
    }

    /// Everything not yet settled, the calls under way too: what to keep over a restart.
    public var waiting: [Waiting] {
        lanes.sorted { $0.key < $1.key }.flatMap { ($0.value.flight?.entries ?? []) + $0.value.waiting }
    }

    /// Proxies of which something is remembered.
    package var remembered: Int { lanes.count }

    /// Takes entries in. Where a proxy's share is full, its oldest go; where everything is full, the oldest
    /// of the proxy that has most.
    public mutating func add(_ entries: [SealedEntry], now: UnixTime) {
        for entry in entries { append(Waiting(entry: entry, since: now)) }
    }

    /// Calls to make now, one for each proxy that is neither busy nor paused.
    public mutating func next(now: UnixTime) -> [Call] {
        var calls: [Call] = []
        for (proxy, lane) in lanes.sorted(by: { $0.key < $1.key }) {
            guard lane.flight == nil, lane.pausedUntil.map({ $0 <= now }) ?? true else { continue }
            var lane = lane
            let live = lane.waiting.filter { $0.until > now }
            drop(lane.waiting.count - live.count)
            let batch = Array(live.prefix(lane.batch))
            lane.waiting = Array(live.dropFirst(batch.count))
            guard !batch.isEmpty else {
                keep(lane, of: proxy, now: now)
                continue
            }
            lane.flight = (nextID, batch)
            lanes[proxy] = lane
            called[nextID] = proxy
            calls.append(Call(id: nextID, request: origin.call(batch.map(\.entry)), count: batch.count))
            nextID += 1
        }
        return calls
    }

    /// When ``next(now:)`` may have something new; `nil` when nothing waits for time alone.
    public var nextDeadline: UnixTime? {
        lanes.values.filter { $0.flight == nil && !$0.waiting.isEmpty }
            .map { $0.pausedUntil ?? .distantPast }.min()
    }

    /// Takes the answer to a call.
    ///
    /// - Parameter rows: registrations, as a ``ProxyVerdict`` wants them.
    /// - Returns: `nil` for a call that is not under way.
    public mutating func settle(
        _ id: UInt64, _ answer: CallAnswer, rows: [RegisteredDevice], now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) -> Settlement? {
        guard let proxy = called.removeValue(forKey: id), var lane = lanes[proxy],
            let sent = lane.flight?.entries
        else { return nil }
        lane.flight = nil
        let verdict = ProxyVerdict(answer, to: sent.map(\.entry), rows: rows)
        let judged = ProxyJudgement(
            verdict, of: answer, to: sent, failures: lane.failures, now: now, using: &generator)
        lane.failures = judged.failures
        if answer.status == 413 { lane.batch = max(1, sent.count / 2) }
        let isRetried = retries == .withBackoff
        lane.pausedUntil = isRetried || !verdict.isLoss ? judged.notBefore : nil
        let kept = isRetried ? judged.again.flatMap(\.self) : []
        lane.waiting = kept + lane.waiting
        count -= sent.count - kept.count
        keep(lane, of: proxy, now: now)
        let lost = verdict.isLoss ? sent.count - kept.count : 0
        return Settlement(verdict: verdict, retried: kept.count, lost: lost)
    }

    // MARK: parts

    private mutating func append(_ item: Waiting) {
        let proxy = item.entry.proxy
        lanes[proxy, default: Lane()].waiting.append(item)
        count += 1
        if lanes[proxy, default: Lane()].waiting.count > room.perProxy { dropOldest(of: proxy) }
        // The longest has the new entry at least.
        guard count > room.all,
            let longest = lanes.max(by: { $0.value.waiting.count < $1.value.waiting.count })?.key
        else { return }
        dropOldest(of: longest)
    }

    private mutating func dropOldest(of proxy: String) {
        lanes[proxy]?.waiting.removeFirst()
        drop(1)
    }

    /// Counts entries that have gone without a call.
    private mutating func drop(_ entries: Int) {
        count -= entries
        dropped += entries
    }

    /// A proxy is remembered while something waits for it, and while it is paused if there are not too many.
    private mutating func keep(_ lane: Lane, of proxy: String, now: UnixTime) {
        let isPaused =
            lane.pausedUntil.map { $0 > now } ?? false && lanes.count < NextcloudLimits.pausedProxies
        let isIdle = lane.waiting.isEmpty && lane.flight == nil
        lanes[proxy] = isIdle && !isPaused ? nil : lane
    }
}

extension ProxyVerdict {
    fileprivate var isLoss: Bool { outcome == .refused || outcome == .unreachable }
}
