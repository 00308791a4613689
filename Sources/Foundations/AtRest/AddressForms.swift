import Primitives
import PushModel
import Synchronization

/// The form in which the store has the addresses of registrations, one of two (decision 0107). Kept in the
/// store under ``StoreSetting/form``; absent: the former.
enum AddressForm: UInt8, Sendable {
    /// As earlier versions write them, with all instances' in one space, as long as a relay of such a version
    /// may be alive on the store: it would take an address in another form for a different address.
    case former = 0
    /// By instance; records in the former form are being moved.
    case moving = 1
    /// By instance; all records have been moved.
    case own = 2

    init(_ value: [UInt8]?) { self = value?.first.flatMap { AddressForm(rawValue: $0) } ?? .former }

    static func name(_ owner: OwnerID) -> String {
        StoreSetting.forms + UUIDDigits.text(high: owner.value.high, low: owner.value.low)
    }
}

extension RecordKey {
    /// The same address in its instance's own space.
    ///
    /// - Parameter room: a room of that instance.
    func ownAddress(_ room: Space) -> RecordKey {
        guard space == .formerAddresses, let space = room.addresses else { return self }
        return RecordKey(space, name)
    }

    fileprivate var isAddress: Bool { space == .formerAddresses || space.isAddresses }
}

extension SealedStore {
    func lookAtForm() async throws(StoreError) {
        let form = AddressForm(try await settings.setting(StoreSetting.form))
        addressForm.withLock { $0 = form }
    }

    /// The same changes with addresses in the form that the store now uses. A stored record keeps its form as
    /// long as its address is the same: for an engine the other form is a different address, and pushes that
    /// are owed to a registration end when its address changes.
    func placed(_ changes: [Change]) async throws(StoreError) -> [Change] {
        var places: [(at: Int, record: Record, address: RecordKey)] = []
        for (at, change) in changes.enumerated() {
            guard case .put(let record, _) = change, let address = record.address, address.isAddress else {
                continue
            }
            places.append((at, record, address.ownAddress(record.key.space)))
        }
        guard !places.isEmpty else { return changes }
        let form = addressForm.withLock { $0 }
        var standing: [Digest16: Digest16] = [:]
        if form != .own {
            let found = try await records.find(
                places.map { digests.digest($0.record.key) }, now: UnixTime(milliseconds: .min))
            for row in found { if let row, let address = row.address { standing[row.key] = address } }
        }
        var changes = changes
        for (at, record, own) in places {
            guard case .put(_, let condition) = changes[at] else { continue }
            var record = record
            record.address = own
            if form != .own, let former = own.formerAddress {
                let stands = standing[digests.digest(record.key)]
                let isFormer =
                    stands == digests.digest(former)
                    || (form == .former && stands != digests.digest(own))
                if isFormer { record.address = former }
            }
            changes[at] = .put(record, if: condition)
        }
        return changes
    }

    /// Whether a registration has, in the other form, the address that it had when a push was made of it.
    func hasRenamed(_ address: Digest16?, _ record: StoredRecord?) -> Bool {
        guard let address, let record, record.state == .live, record.address != address,
            let content = content(of: record), let key = content.address
        else { return false }
        let own = key.ownAddress(Space(text: record.space))
        return digests.digest(own) == address || own.formerAddress.map(digests.digest) == address
    }

    /// Takes pushes once more that were refused only because the address of their registration took the
    /// other form between its look-up and their commit.
    func takenAgain(
        _ rows: inout [StoredPush], _ admissions: [StoredAdmission]
    ) async throws(StoreError) -> [StoredAdmission] {
        let gone = rows.indices.filter { admissions[$0] == .gone && rows[$0].address != nil }
        let keys = gone.compactMap { rows[$0].record }
        guard !keys.isEmpty, keys.count == gone.count else { return admissions }
        let found = try await records.find(keys, now: UnixTime(milliseconds: .min))
        var again: [Int] = []
        for (index, record) in zip(gone, found) where hasRenamed(rows[index].address, record) {
            rows[index].address = record?.address
            again.append(index)
        }
        guard !again.isEmpty else { return admissions }
        let answer = try await outbox.accept(again.map { rows[$0] }, changes: [], now: doubted.now.judged)
        guard case .committed(let more) = answer, more.count == again.count else {
            throw StoreError(.corrupt)
        }
        var admissions = admissions
        for (index, admission) in zip(again, more) { admissions[index] = admission }
        return admissions
    }

    /// A record's row with its address in its instance's own space; `nil` where it needs no such change, or
    /// does not open.
    func moved(_ row: StoredRecord) -> StoredRecord? {
        let space = Space(text: row.space)
        guard let former = row.address, space.keepsNames, let content = content(of: row),
            let key = content.address, key.space == .formerAddresses, digests.digest(key) == former
        else { return nil }
        let own = key.ownAddress(space)
        guard own.space != key.space else { return nil }
        return seal(
            Record(
                key: RecordKey(space, content.name), owner: content.owner, address: own,
                version: row.version, state: row.state, touchedAt: row.touchedAt, expiresAt: row.expiresAt,
                revision: row.revision, body: content.body))
    }

    private func content(of row: StoredRecord) -> StoredCodec.RecordBody? {
        guard !row.body.isEmpty else { return nil }
        do throws(Sealer.Fault) {
            return try Self.open(row, with: sealer).body.reveal { StoredCodec.readRecord($0) }
        } catch { return nil }
    }
}
