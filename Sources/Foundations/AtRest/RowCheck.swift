import Primitives
package import PushModel

/// Whether rows open with a key file and are what they say, without using the store.
package struct RowCheck: Sendable {
    /// What is wrong with a row. Nothing of the row's content is in it.
    package enum Fault: Sendable, Hashable {
        /// It names a seal key that the file does not have.
        case unknownKey(UInt32)
        /// Changed bytes, or bytes of another row.
        case doesNotOpen
        /// It opens, and holds something else than this program writes there.
        case doesNotRead
    }

    private let sealer: Sealer
    private let digests: Digests
    private let services: PushServices

    package init(_ keys: AtRestKeys, _ world: World, services: PushServices = .standard) {
        sealer = Sealer(keys: keys, random: RandomStream(world))
        digests = Digests(lookup: keys.lookup)
        self.services = services
    }

    /// `nil` for a sound one. An expired record has no body any more.
    package func fault(of record: StoredRecord) -> Fault? {
        if case .expired = record.state, record.body.isEmpty { return nil }
        let opened: Result<Secret, Sealer.Fault>
        do throws(Sealer.Fault) {
            opened = .success(try SealedStore.open(record, with: sealer))
        } catch { opened = .failure(error) }
        return check(record.body, opened) { bytes in
            guard let content = StoredCodec.readRecord(bytes) else { return false }
            // A body begins with its own names, which must be those of its row.
            guard Space(text: record.space).keepsNames else { return content.name.count == 0 }
            return digests.digest(RecordKey(Space(text: record.space), content.name)) == record.key
        }
    }

    /// `nil` for a sound one.
    package func fault(of push: StoredPush) -> Fault? {
        let opened = SealedStore.withPlace(push) { place -> Result<Secret, Sealer.Fault> in
            do throws(Sealer.Fault) { return .success(try sealer.open(push.sealed, with: place)) } catch {
                return .failure(error)
            }
        }
        return check(push.sealed, opened) { StoredCodec.readPush($0, services) != nil }
    }

    private func check(
        _ sealed: [UInt8], _ opened: Result<Secret, Sealer.Fault>, _ reads: (UnsafeRawBufferPointer) -> Bool
    ) -> Fault? {
        switch opened {
        case .success(let plain): return plain.reveal(reads) ? nil : .doesNotRead
        case .failure(.unknownKey): return .unknownKey(Sealer.number(of: sealed) ?? 0)
        case .failure(.doesNotOpen): return .doesNotOpen
        }
    }
}
