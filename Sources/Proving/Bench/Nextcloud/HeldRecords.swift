import PushModel
import Synchronization

/// Records in a dictionary: what a judgement costs without a store.
final class HeldRecords: Registry {
    private let records = Mutex<[String: [Name: Record]]>([:])
    let clock: DoubtedClock? = nil
    func digest(of _: RecordKey) -> Digest16 { Digest16(high: 0, low: 0) }

    /// Hashed in one piece, so that the look-ups stay small beside what is measured.
    private struct Name: Hashable {
        let bytes: [UInt8]

        init(_ key: RecordKey) { bytes = key.name.reveal { Array($0) } }

        func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }
    }

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        records.withLock { records in
            keys.map { key in records[key.space.text]?[Name(key)] }
        }
    }

    /// Conditions are not looked at: nobody else writes.
    func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        records.withLock { records in
            for case .put(let record, _) in changes {
                records[record.key.space.text, default: [:]][Name(record.key)] = record
            }
        }
        return .committed
    }

    func page(_: RecordIndex, after _: UInt64, limit _: Int) async throws(StoreError) -> [Record] { [] }
    func purge(before _: UnixTime, limit _: Int) async throws(StoreError) -> Int { 0 }
    func forget(owner _: RecordKey, limit _: Int) async throws(StoreError) -> Int { 0 }
    func tally(_ owners: [RecordKey]) async throws(StoreError) -> [RecordTally] {
        owners.map { _ in RecordTally.none }
    }
}
