import PushModel
import Synchronization

/// A registry in memory, of which a measurement sees nothing but what is asked of it.
protocol BareRegistry: Registry {}

extension BareRegistry {
    var clock: DoubtedClock? { nil }
    func digest(of _: RecordKey) -> Digest16 { Digest16(high: 0, low: 0) }
    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] { keys.map { _ in nil } }
    /// Nobody writes.
    func apply(_: [Change]) async throws(StoreError) -> Applied { .refused(index: 0) }
    func page(_: RecordIndex, after _: UInt64, limit _: Int) async throws(StoreError) -> [Record] { [] }
    func purge(before _: UnixTime, limit _: Int) async throws(StoreError) -> Int { 0 }
    func forget(owner _: RecordKey, limit _: Int) async throws(StoreError) -> Int { 0 }
    func tally(_ owners: [RecordKey], weighing: Bool) async throws(StoreError) -> [RecordTally] {
        owners.map { _ in RecordTally.none }
    }
}

/// Hashed in one piece, so that the look-ups stay small beside what is measured.
struct RegistryName: Hashable {
    private let bytes: [UInt8]

    init(_ key: RecordKey) { bytes = key.name.reveal { Array($0) } }

    func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
}

/// Records in a dictionary: what a judgement costs without a store.
final class HeldRecords: BareRegistry {
    private let records = Mutex<[String: [RegistryName: Record]]>([:])

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        records.withLock { records in
            keys.map { key in records[key.space.text]?[RegistryName(key)] }
        }
    }

    /// Conditions are not looked at: nobody else writes.
    func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        records.withLock { records in
            for case .put(let record, _) in changes {
                records[record.key.space.text, default: [:]][RegistryName(record.key)] = record
            }
        }
        return .committed
    }
}
