package import PushModel

/// An engine that passes everything on; what a test wants to see, it writes itself.
package protocol ForwardingEngine: Engine {
    var base: any Engine { get }
}

extension ForwardingEngine {
    package func find(_ keys: [Digest16], now: UnixTime) async throws(StoreError) -> [StoredRecord?] {
        try await base.find(keys, now: now)
    }

    package func page(
        _ index: StoredIndex, after: UInt64, limit: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord] {
        try await base.page(index, after: after, limit: limit, now: now)
    }

    package func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        try await base.apply(changes, now: now)
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await base.purge(before: before, limit: limit)
    }

    package func tally(_ owners: [Digest16]) async throws(StoreError) -> [RecordTally] {
        try await base.tally(owners)
    }

    package func forget(owner: Digest16, limit: Int) async throws(StoreError) -> Int {
        try await base.forget(owner: owner, limit: limit)
    }

    package func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        try await base.accept(pushes, changes: changes, now: now)
    }

    package func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        try await base.settle(steps, feedback: feedback, now: now)
    }

    package func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        try await base.claim(lane, due: due, limit: limit, classes: classes)
    }

    package func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        try await base.nextDue(lane)
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        try await base.endCustody(before: before, limit: limit)
    }

    package func renew(for span: Duration) async throws(StoreError) { try await base.renew(for: span) }

    package func takeOver(_ lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await base.takeOver(lanes, limit: limit)
    }

    package func letGo(besides lanes: [String], limit: Int) async throws(StoreError) -> Int {
        try await base.letGo(besides: lanes, limit: limit)
    }

    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try await base.enrol(in: groups, for: span)
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int { try await base.reclaim(limit: limit) }

    package func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        try await base.load()
    }

    package func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try await base.setAside(pushes)
    }

    package func lastTime(_ step: LastTime) async throws(StoreError) -> UnixTime? {
        try await base.lastTime(step)
    }

    package func setting(_ name: String) async throws(StoreError) -> [UInt8]? {
        try await base.setting(name)
    }

    package func settle(setting name: String, to value: [UInt8]) async throws(StoreError) -> [UInt8] {
        try await base.settle(setting: name, to: value)
    }
}
