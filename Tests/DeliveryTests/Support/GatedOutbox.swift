import PushModel
import PushTesting
import Synchronization

/// An outbox with a switch on each of its calls.
final class GatedOutbox: ForwardingOutbox {
    struct Faults: Sendable {
        var accept: StoreError.Code?
        var settle: StoreError.Code?
        var renew: StoreError.Code?
        var claim: StoreError.Code?
        var nextDue: StoreError.Code?
        /// These are done, and their answers lost: so many.
        var lostAccepts = 0
        var lostClaims = 0
    }

    let outbox: any Outbox
    private let faults = Mutex(Faults())
    /// Settlements that the store refuses, with all that it is told at once.
    private let refused = Mutex<(@Sendable (Settlement) -> Bool)?>(nil)
    let isCut = Mutex(false)
    let trace: Trace
    /// Pushes that have ended.
    let ended = AwaitedCount()
    /// Pushes given back, or put off into the store.
    let parked = AwaitedCount()
    /// Retries that stay in memory.
    let retried = AwaitedCount()
    /// Settlements that changed nothing, for the push was no longer ours.
    let foreign = AwaitedCount()
    /// Calls that the store has taken in.
    let accepts = AwaitedCount()
    let claims = AwaitedCount()
    /// Pushes that claims have brought.
    let claimed = AwaitedCount()
    /// Looks for what dead processes left.
    let looks = AwaitedCount()
    /// What is asked at each look.
    let looking = Mutex(Hook())
    let refusals = AwaitedCount()
    /// How often the store was asked what it owes.
    let counts = AwaitedCount()
    /// Anyone who asks what the store owes waits for it, while there is one.
    let countGate = Mutex<AwaitedCount?>(nil)
    /// Awaited before each look for what dead processes left; with how many there were.
    private let takingOver: (@Sendable (GatedOutbox, Int) async -> Void)?

    init(
        _ inner: any Outbox, trace: Trace, takingOver: (@Sendable (GatedOutbox, Int) async -> Void)? = nil
    ) {
        outbox = inner
        self.trace = trace
        self.takingOver = takingOver
    }

    func set(_ change: (inout Faults) -> Void) { faults.withLock { change(&$0) } }

    func refuse(_ isRefused: (@Sendable (Settlement) -> Bool)?) { refused.withLock { $0 = isRefused } }

    /// As if the process had been killed: nothing reaches the store any more.
    func cut() {
        isCut.withLock { $0 = true }
        set {
            $0 = Faults(accept: .unavailable, settle: .unavailable, renew: .unavailable, claim: .unavailable)
        }
    }

    private func check(_ door: KeyPath<Faults, StoreError.Code?>) throws(StoreError) {
        guard let code = faults.withLock({ $0[keyPath: door] }) else { return }
        refusals.add()
        throw StoreError(code)
    }

    private func lose(_ door: WritableKeyPath<Faults, Int>) throws(StoreError) {
        let isLost = faults.withLock { faults in
            guard faults[keyPath: door] > 0 else { return false }
            faults[keyPath: door] -= 1
            return true
        }
        if isLost { throw StoreError(.uncertain) }
    }

    func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        try check(\.accept)
        let accepted = try await outbox.accept(acceptance)
        trace.add("accepted")
        accepts.add()
        try lose(\.lostAccepts)
        return accepted
    }

    func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool] {
        try check(\.settle)
        if let isRefused = refused.withLock(\.self), settlements.contains(where: isRefused) {
            refusals.add()
            throw StoreError(.unavailable)
        }
        let ours = try await outbox.settle(settlements, feedback: feedback)
        trace.add("settled")
        for (settlement, isOurs) in zip(settlements, ours) {
            guard isOurs else {
                foreign.add()
                continue
            }
            switch settlement.step {
            case .settle, .withdraw: ended.add()
            case .park, .retry(_, _, _, parked: true): parked.add()
            case .retry: retried.add()
            }
        }
        return ours
    }

    func claim(
        _ lane: LaneName, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [OwedPush] {
        try check(\.claim)
        defer { claims.add() }
        let claimed = try await outbox.claim(lane, due: due, limit: limit, classes: classes)
        self.claimed.add(claimed.count)
        if !claimed.isEmpty { try lose(\.lostClaims) }
        return claimed
    }

    func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime? {
        try check(\.nextDue)
        return try await outbox.nextDue(lane)
    }

    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int] {
        try check(\.settle)
        return try await outbox.endCustody(before: before, limit: limit)
    }

    func renew(for span: Duration) async throws(StoreError) {
        try check(\.renew)
        try await outbox.renew(for: span)
    }

    func takeOver(_ lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try check(\.claim)
        looking.withLock(\.call)?()
        await takingOver?(self, looks.count)
        defer { looks.add() }
        return try await outbox.takeOver(lanes, limit: limit)
    }

    func letGo(besides lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try check(\.claim)
        return try await outbox.letGo(besides: lanes, limit: limit)
    }

    func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try check(\.renew)
        return try await outbox.enrol(in: groups, for: span)
    }

    func reclaim(limit: Int) async throws(StoreError) -> Int {
        try check(\.claim)
        return try await outbox.reclaim(limit: limit)
    }

    func load() async throws(StoreError) -> OutboxLoad {
        counts.add()
        let load = try await outbox.load()
        await countGate.withLock(\.self)?.wait(for: 1)
        return load
    }
}

/// What a test wants done in the middle of something.
struct Hook: Sendable {
    var call: (@Sendable () -> Void)?
}
