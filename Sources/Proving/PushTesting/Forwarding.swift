package import PushModel

/// A registry that passes every call on; a test replaces the calls that it wants to see or to break.
package protocol ForwardingRegistry: Registry {
    var registry: any Registry { get }
}

extension ForwardingRegistry {
    package var clock: DoubtedClock? { registry.clock }

    package func digest(of name: RecordKey) -> Digest16 { registry.digest(of: name) }

    package func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        try await registry.find(keys)
    }

    package func find(
        _ keys: [RecordKey], seeing count: Int
    ) async throws(StoreError) -> (records: [Record?], sights: [RecordSight?]) {
        try await registry.find(keys, seeing: count)
    }

    package func find(
        _ keys: [RecordKey], while sights: [RecordSight]
    ) async throws(StoreError) -> [Record?]? {
        try await registry.find(keys, while: sights)
    }

    package func page(
        _ index: RecordIndex, after revision: UInt64, limit: Int
    ) async throws(StoreError) -> [Record] {
        try await registry.page(index, after: revision, limit: limit)
    }

    package func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        try await registry.apply(changes)
    }

    package func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int {
        try await registry.purge(before: before, limit: limit)
    }

    package func tally(
        _ owners: [RecordKey], weighing: Bool
    ) async throws(StoreError) -> [RecordTally] {
        try await registry.tally(owners, weighing: weighing)
    }

    package func forget(owner: RecordKey, limit: Int) async throws(StoreError) -> Int {
        try await registry.forget(owner: owner, limit: limit)
    }
}

/// The same for an outbox.
package protocol ForwardingOutbox: Outbox {
    var outbox: any Outbox { get }
}

extension ForwardingOutbox {
    package func digest(ofOrigin origin: Secret, at instance: ConfiguredName) -> Digest16 {
        outbox.digest(ofOrigin: origin, at: instance)
    }

    package func reference(of id: PushID) -> PushID { outbox.reference(of: id) }

    package func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        try await outbox.accept(acceptance)
    }

    package func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool] {
        try await outbox.settle(settlements, feedback: feedback)
    }

    package func claim(
        _ lane: LaneName, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [OwedPush] {
        try await outbox.claim(lane, due: due, limit: limit, classes: classes)
    }

    package func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime? {
        try await outbox.nextDue(lane)
    }

    package var ended: EndedPushes { outbox.ended }

    package func renew(for span: Duration) async throws(StoreError) { try await outbox.renew(for: span) }

    package func enrol(in groups: [GroupName], for span: Duration) async throws(StoreError) -> [Member] {
        try await outbox.enrol(in: groups, for: span)
    }

    package func takeOver(_ lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try await outbox.takeOver(lanes, limit: limit)
    }

    package func letGo(besides lanes: [LaneName], limit: Int) async throws(StoreError) -> Int {
        try await outbox.letGo(besides: lanes, limit: limit)
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await outbox.reclaim(limit: limit)
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int] {
        try await outbox.endCustody(before: before, limit: limit)
    }

    package func load() async throws(StoreError) -> OutboxLoad { try await outbox.load() }
}

/// The same for an engine.
package protocol ForwardingEngine: Engine {
    var base: any Engine { get }
}

extension ForwardingEngine {
    package func find(
        _ keys: [Digest16], often: Int, now: UnixTime
    ) async throws(StoreError) -> [StoredRecord?] {
        try await base.find(keys, often: often, now: now)
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

    package func tally(_ owners: [Digest16], weighing: Bool) async throws(StoreError) -> [RecordTally] {
        try await base.tally(owners, weighing: weighing)
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

    package var ended: EndedPushes { base.ended }

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

    package func setRecordsAside(_ records: [SeenRecord]) async throws(StoreError) -> Int {
        try await base.setRecordsAside(records)
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
