package import PushModel

/// A store that notes look-ups and repeats, and can be made to fail.
package final class StoreSpy: ForwardingRegistry, ForwardingOutbox {
    private struct State {
        var lookups: [[String]] = []
        var isOut = false
        var repeats = 0
        var ends = 0
        var tallies = 0
    }

    private let state = Noted(State())
    private let base: any Registry & Outbox
    package var registry: any Registry { base }
    package var outbox: any Outbox { base }

    package init(_ base: any Registry & Outbox) { self.base = base }

    /// None: with a monotonic clock that stands still, as the bench's does, every wall clock is doubted.
    package var clock: DoubtedClock? { nil }
    /// Spaces of the keys of each look-up so far, one list for each call.
    package var lookups: [[String]] { state.value.lookups }
    package func forget() { state.change { $0.lookups = [] } }

    /// Returns once there were this many look-ups since the last ``forget()``.
    package func lookups(atLeast count: Int, file: String = #fileID, line: Int = #line) async {
        await state.until(for: "look-up \(count)", file: file, line: line) { $0.lookups.count >= count }
    }

    /// From now on every call fails.
    package func goOut() { state.change { $0.isOut = true } }
    package func comeBack() { state.change { $0.isOut = false } }

    /// How often records were counted.
    package var tallies: Int { state.value.tallies }

    /// Pushes that the outbox had already seen.
    package var repeats: Int { state.value.repeats }

    /// Returns once the outbox has seen this many repeats.
    package func repeats(atLeast count: Int, file: String = #fileID, line: Int = #line) async {
        await state.until(for: "repeat \(count)", file: file, line: line) { $0.repeats >= count }
    }

    /// Returns once answers of push services have changed this many records.
    package func ends(atLeast count: Int, file: String = #fileID, line: Int = #line) async {
        await state.until(for: "end \(count)", file: file, line: line) { $0.ends >= count }
    }

    private func note(_ accepted: Accepted) {
        guard case .committed(let admissions) = accepted else { return }
        let new = admissions.count { if case .repeated = $0 { true } else { false } }
        state.change { $0.repeats += new }
    }

    private func check() throws(StoreError) {
        if state.value.isOut { throw StoreError(.unavailable) }
    }

    package func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        state.change { $0.lookups.append(keys.map(\.space.text)) }
        try check()
        return try await base.find(keys)
    }

    package func find(
        _ keys: [RecordKey], seeing count: Int
    ) async throws(StoreError) -> (records: [Record?], sights: [RecordSight?]) {
        state.change { $0.lookups.append(keys.map(\.space.text)) }
        try check()
        return try await base.find(keys, seeing: count)
    }

    /// Noted like a call that names the records that were seen.
    package func find(
        _ keys: [RecordKey], while sights: [RecordSight]
    ) async throws(StoreError) -> [Record?]? {
        let seen = sights.map(\.row.space)
        state.change { $0.lookups.append(seen + keys.map(\.space.text)) }
        try check()
        return try await base.find(keys, while: sights)
    }

    package func page(
        _ index: RecordIndex, after revision: UInt64, limit: Int
    ) async throws(StoreError) -> [Record] {
        try check()
        return try await base.page(index, after: revision, limit: limit)
    }

    package func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        try check()
        return try await base.apply(changes)
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try check()
        return try await base.purge(before: before, limit: limit)
    }

    package func tally(
        _ owners: [RecordKey], weighing: Bool
    ) async throws(StoreError) -> [RecordTally] {
        state.change { $0.tallies += 1 }
        try check()
        return try await base.tally(owners, weighing: weighing)
    }

    package func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int {
        try check()
        return try await base.forget(owner: owner, limit: limit)
    }

    // MARK: outbox

    package func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        try check()
        let accepted = try await base.accept(acceptance)
        note(accepted)
        return accepted
    }

    package func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool] {
        let settled = try await base.settle(settlements, feedback: feedback)
        state.change { $0.ends += feedback.count }
        return settled
    }
}
