import PushModel
import Synchronization

/// Registry and outbox in one dictionary, without ciphers: what the relay's own tests need of a store, and a
/// record of the look-ups that were made.
final class TestStore: Registry, Outbox {
    private struct State {
        var records: [String: Record] = [:]
        var revision: UInt64 = 0
        var rows: Int64 = 0
        var lookups: [[String]] = []
        var isOut = false
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> UnixTime

    init(now: @escaping @Sendable () -> UnixTime) { self.now = now }

    /// Spaces of the keys of each look-up so far, one list for each call.
    var lookups: [[String]] { state.withLock(\.lookups) }
    func forgetLookups() { state.withLock { $0.lookups = [] } }
    /// From now on every call fails.
    func goOut() { state.withLock { $0.isOut = true } }
    var count: Int { state.withLock(\.records.count) }
    func record(_ key: RecordKey) -> Record? { state.withLock { $0.records[Self.name(key)] } }

    private static func name(_ key: RecordKey) -> String {
        key.space.text + "/" + key.name.reveal { $0.map { String($0, radix: 16) }.joined(separator: ".") }
    }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        let now = now()
        let (isOut, found) = state.withLock { state in
            state.lookups.append(keys.map(\.space.text))
            return (
                state.isOut,
                keys.map { state.records[Self.name($0)].flatMap { $0.expiresAt > now ? $0 : nil } }
            )
        }
        if isOut { throw StoreError(.unavailable) }
        return found
    }

    func page(_ index: RecordIndex, after revision: UInt64, limit: Int) async throws(StoreError) -> [Record] {
        state.withLock { state in
            let matching = state.records.values.filter { record in
                guard record.revision > revision else { return false }
                switch index {
                case .space(let space): return record.key.space == space
                case .owner(let key): return record.owner.map(Self.name) == Self.name(key)
                case .address(let key): return record.address.map(Self.name) == Self.name(key)
                }
            }
            return Array(matching.sorted { $0.revision < $1.revision }.prefix(limit))
        }
    }

    func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        switch try await accept(Acceptance(instance: ConfiguredName("test")!, items: [], changes: changes)) {
        case .committed: .committed
        case .refused(let index): .refused(index: index)
        }
    }

    func purge(before: UnixTime, limit: Int) async throws(StoreError) -> Int { 0 }

    // MARK: outbox

    func digest(ofOrigin origin: Secret, at instance: ConfiguredName) -> Digest16 {
        Digest16(high: 0, low: origin.reveal { $0.reduce(7) { $0 &* 31 &+ UInt64($1) } })
    }

    func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        let outcome = state.withLock { state -> Accepted? in
            if state.isOut { return nil }
            let before = state.records
            for (index, change) in acceptance.changes.enumerated() where !Self.make(change, &state) {
                state.records = before
                return .refused(index: index)
            }
            let admissions = acceptance.items.map { item -> Admission in
                state.rows += 1
                return .owed(owed(item, row: state.rows, instance: acceptance.instance))
            }
            return .committed(admissions)
        }
        guard let outcome else { throw StoreError(.unavailable) }
        return outcome
    }

    func settle(_ settlements: [Settlement], feedback: [Change]) async throws(StoreError) -> [Bool] {
        state.withLock { state in
            for change in feedback { _ = Self.make(change, &state) }
            return settlements.map { _ in true }
        }
    }

    func claim(_ lane: LaneName, due: UnixTime, limit: Int) async throws(StoreError) -> [OwedPush] { [] }
    func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime? { nil }
    func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int] { [:] }
    func renew(for span: Duration) async throws(StoreError) {}
    func takeOver(limit: Int) async throws(StoreError) -> Int { 0 }
    func load() async throws(StoreError) -> OutboxLoad { OutboxLoad(rows: 0, bytes: 0, lanes: [:]) }

    private func owed(_ item: Acceptance.Item, row: Int64, instance: ConfiguredName) -> OwedPush {
        let push = item.push
        return OwedPush(
            id: PushID(Digest16(high: 0x7000, low: UInt64(row))), row: row, lane: item.lane,
            pushClass: push.pushClass, origin: digest(ofOrigin: push.origin, at: instance),
            record: push.record.map(Self.digest), touchedAt: push.touchedAt, notBefore: .distantPast,
            custodyEnds: push.custodyEnds, attempt: 0, epoch: 1, mark: nil, instance: instance,
            message: push.message)
    }

    /// FNV-1a over the name: enough to tell a test's records apart.
    private static func digest(_ key: RecordKey) -> Digest16 {
        let hash = name(key).utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01B3
        }
        return Digest16(high: 1, low: hash)
    }

    private static func make(_ change: Change, _ state: inout State) -> Bool {
        switch change {
        case .put(var record, let condition):
            guard holds(condition, state.records[name(record.key)]) else { return false }
            state.revision += 1
            record.revision = state.revision
            state.records[name(record.key)] = record
        case .expire(let key, let at, let condition):
            guard holds(condition, state.records[name(key)]) else { return false }
            state.records[name(key)]?.state = .expired(at: at)
        case .expireStored(let stored, let at, let limit):
            for (name, record) in state.records
            where digest(record.key) == stored && record.touchedAt <= limit {
                state.records[name]?.state = .expired(at: at)
            }
        case .expireAddress: break
        case .delete(let key, let condition):
            guard holds(condition, state.records[name(key)]) else { return false }
            state.records[name(key)] = nil
        }
        return true
    }

    private static func holds(_ condition: Condition, _ record: Record?) -> Bool {
        switch condition {
        case .any: true
        case .absent: record == nil
        case .revision(let revision): record?.revision == revision
        case .versionBelow(let version): record.map { $0.version < version } ?? true
        case .touchedNotAfter(let limit): record.map { $0.touchedAt <= limit } ?? true
        }
    }
}
