import PushModel
import Synchronization

/// Records in a dictionary: what a judgement costs without a store.
final class HeldRecords: Registry {
    private let records = Mutex<[String: [[UInt8]: Record]]>([:])
    let clock: DoubtedClock? = nil

    func find(_ keys: [RecordKey]) async throws(StoreError) -> [Record?] {
        records.withLock { records in
            keys.map { key in records[key.space.text]?[key.name.reveal { Array($0) }] }
        }
    }

    /// Conditions are not looked at: nobody else writes.
    func apply(_ changes: [Change]) async throws(StoreError) -> Applied {
        records.withLock { records in
            for case .put(let record, _) in changes {
                records[record.key.space.text, default: [:]][record.key.name.reveal { Array($0) }] = record
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
