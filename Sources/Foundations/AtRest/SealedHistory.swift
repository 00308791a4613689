package import PushModel

/// So many pushes of one registration that met one end.
package struct RegistrationCount: Sendable, Hashable {
    /// The store's digest of the registration.
    package var registration: Digest16
    package var event: RegistrationEvent
    package var reason: String
    package var count: UInt32
    package var last: UnixTime

    package init(
        registration: Digest16, event: RegistrationEvent, reason: String, count: UInt32, last: UnixTime
    ) {
        self.registration = registration
        self.event = event
        self.reason = reason
        self.count = count
        self.last = last
    }
}

/// Histories of registrations, as records that stand beside them (decision 0144): sealed like all others, and
/// gone in the commit that deletes or expires their registration.
extension SealedStore {
    /// What all histories may take together.
    package struct HistoryBounds: Sendable {
        package var histories = 100_000
        /// Of their sealed bodies.
        package var bytes = 64 << 20
        package init() {}
    }

    /// Registrations of one commit: it holds the writer for some milliseconds.
    private static let historiesPerCommit = 256
    /// Another relay on the same store may have written the same history meanwhile.
    private static let historyTries = 3
    /// Between a push and the end of its history; the hour in which it fell comes on top.
    private static let historyLife = Duration.seconds(7 * 86_400 + 3_600)

    /// The owner of all histories, by which they are counted. No record stands under it.
    package static var historyOwner: RecordKey { RecordKey(.history, Secret("all".utf8)) }

    static func historyName(_ registration: Digest16) -> RecordKey {
        RecordKey(.history, Secret(registration.bytes))
    }

    /// Counts pushes into the histories of their registrations. Of those that have ended nothing is written.
    ///
    /// - Returns: how many histories were written.
    /// - Throws: what the store says; some commits may then have been made, and the counts of those that
    ///   certainly were not are in `left`.
    package func count(
        _ counts: [RegistrationCount], left: inout [RegistrationCount]
    ) async throws(StoreError) -> Int {
        let all = [Digest16: [RegistrationCount]](grouping: counts, by: \.registration)
        var names = all.keys.sorted()
        var written = 0
        while !names.isEmpty {
            let some = Array(names.prefix(Self.historiesPerCommit))
            do throws(StoreError) {
                written += try await count(some, all)
            } catch {
                // Where the store's answer was lost, these counts may stand already.
                if error.code == .uncertain { names.removeFirst(some.count) }
                left = names.flatMap { all[$0] ?? [] }
                throw error
            }
            names.removeFirst(some.count)
        }
        return written
    }

    private func count(
        _ names: [Digest16], _ counts: [Digest16: [RegistrationCount]]
    ) async throws(StoreError) -> Int {
        let keys = names.map(Self.historyName)
        for _ in 0..<Self.historyTries {
            let time = doubted.now
            let now = time.judged
            let rows = try await records.find(names + keys.map(digests.digest), now: now)
            guard rows.count == 2 * names.count else { throw StoreError(.corrupt) }
            var changes: [StoredChange] = []
            for (place, name) in names.enumerated() where rows[place]?.state == .live {
                let old = rows[names.count + place]
                var history = RegistrationHistory()
                if let known = old.flatMap({ open($0, asked: keys[place]) }) {
                    history = known.body.reveal { RegistrationHistory($0) } ?? history
                }
                for count in counts[name] ?? [] {
                    history.add(count.event, count.reason, count.count, last: time.believed(count.last))
                }
                changes.append(put(history, keys[place], beside: name, over: old, at: time))
            }
            guard !changes.isEmpty else { return 0 }
            // Refused: a registration has ended since, or another relay wrote. The next look sees either.
            if case .committed = try await records.apply(changes, now: now) { return changes.count }
        }
        throw StoreError(.unavailable)
    }

    /// Over exactly what was read: each write of a history is touched later than the one before.
    ///
    /// Its times are in clear, so they say no more than the hour. They are those that are believed, and the
    /// store's where this clock is behind it: the history is all relays', and must end neither by a clock
    /// that is ahead of theirs nor by one that is behind.
    private func put(
        _ history: RegistrationHistory, _ key: RecordKey, beside registration: Digest16,
        over old: StoredRecord?, at time: DoubtedClock.Reading
    ) -> StoredChange {
        let hour = UnixTime(seconds: RegistrationHistory.hour(of: time.latest) * 3_600)
        let touched = old.map { max(hour, $0.touchedAt + .milliseconds(1)) } ?? hour
        let record = Record(
            key: key, owner: Self.historyOwner, touchedAt: touched, expiresAt: hour + Self.historyLife,
            body: Secret(history.trimmed(at: time.judged, latest: time.latest).bytes))
        return .put(
            seal(record, beside: registration),
            if: .besideLive(touchedNotAfter: old?.touchedAt ?? .distantPast))
    }

    /// What is known of a registration; `nil`: nothing.
    package func history(of registration: Digest16) async throws(StoreError) -> RegistrationHistory? {
        let found = try await find([Self.historyName(registration)])
        guard let record = found.first ?? nil else { return nil }
        let time = doubted.now
        return record.body.reveal { RegistrationHistory($0) }?
            .trimmed(at: time.judged, latest: time.latest)
    }

    /// Deletes the histories that were written longest ago until the others are within the bounds.
    ///
    /// - Returns: how many went.
    package func boundHistories(_ bounds: HistoryBounds = HistoryBounds()) async throws(StoreError) -> Int {
        let owner = digests.digest(Self.historyOwner)
        guard var tally = try await records.tally([owner], weighing: true).first else { return 0 }
        var gone = 0
        while tally.records > bounds.histories || tally.bytes > bounds.bytes {
            let oldest = try await records.page(
                .owner(owner), after: 0, limit: Self.historiesPerCommit, now: UnixTime(milliseconds: .min))
            guard !oldest.isEmpty else { break }
            var changes: [StoredChange] = []
            for row in oldest where tally.records > bounds.histories || tally.bytes > bounds.bytes {
                changes.append(.delete(row.key, if: .any))
                tally.records -= 1
                tally.bytes -= row.body.count
            }
            _ = try await records.apply(changes, now: doubted.now.judged)
            gone += changes.count
        }
        return gone
    }
}
