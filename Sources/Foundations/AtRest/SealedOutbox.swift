import Primitives
package import PushModel
import Synchronization

extension SealedStore: CustodyTaking {
    package func digest(ofOrigin origin: Secret, at instance: ConfiguredName) -> Digest16 {
        digests.digest(origin: origin, at: instance)
    }

    package func reference(of id: PushID) -> PushID { digests.sentAs(id) }

    /// Seals each push once. The push that is handed over in memory is the original, not an unsealed copy.
    package func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        let now = world.now()
        let rows = seal(acceptance, now)
        let changes = acceptance.changes.isEmpty ? [] : stored(acceptance.changes)
        switch try await outbox.accept(rows, changes: changes, now: doubted.now.judged) {
        case .refused(let index):
            return .refused(index: index)
        case .committed(let admissions):
            guard admissions.count == rows.count else { throw StoreError(.corrupt) }
            if !acceptance.changes.isEmpty { news.tell(acceptance.changes, digests.digest) }
            var answers: [Admission] = []
            answers.reserveCapacity(rows.count)
            for index in rows.indices {
                switch admissions[index] {
                case .owed(let row, let epoch):
                    answers.append(
                        .owed(
                            owed(
                                rows[index], row: row, epoch: epoch, lane: acceptance.items[index].lane,
                                acceptance.instance, acceptance.items[index].push.message)))
                case .repeated(let id, let first):
                    answers.append(.repeated(of: id, first: first))
                case .gone: answers.append(.gone)
                }
            }
            return .committed(answers)
        }
    }

    private func seal(_ acceptance: Acceptance, _ now: UnixTime) -> [StoredPush] {
        var rows: [StoredPush] = []
        rows.reserveCapacity(acceptance.items.count)
        // Nearly always one origin and one or two lanes a call.
        var origin: (name: Secret, digest: Digest16)?
        var lane: (name: LaneName, text: String)?
        let items = acceptance.items
        // A call with one push asks for none.
        var occurrences = [Digest16: Int](minimumCapacity: items.count > 1 ? items.count : 0)
        // In their places: an item is large, and so is a push; one that is taken out is copied whole.
        for at in items.indices {
            let (name, record) = (items[at].push.origin, items[at].push.record)
            let message = items[at].push.message
            let from: Digest16
            if let known = items[at].origin {
                from = known
            } else if let origin, origin.name == name {
                from = origin.digest
            } else {
                from = digests.digest(origin: name, at: acceptance.instance)
                origin = (name, from)
            }
            if lane?.name != items[at].lane { lane = (items[at].lane, text(of: items[at].lane)) }
            var row = StoredPush(
                row: 0, id: PushID(ofRowAt: now, random: random.next(), random.next()),
                lane: lane?.text ?? "", pushClass: items[at].push.pushClass,
                origin: items[at].holder ?? from,
                record: items[at].push.recordDigest ?? record.map(digests.digest),
                touchedAt: items[at].push.touchedAt, address: items[at].push.registeredAddress,
                notBefore: max(now, items[at].notBefore ?? now), custodyEnds: items[at].push.custodyEnds,
                attempt: 0, epoch: 0, parked: items[at].parked,
                mark: mark(items[at].push.repeatIdentity, from, &occurrences, items.count), sealed: [])
            row.sealed = Self.withPlace(row) { place in
                sealer.seal(
                    atMost: StoredCodec.size(name, record, message, instance: acceptance.instance),
                    with: place
                ) {
                    StoredCodec.write(name, record, message, instance: acceptance.instance, to: $0)
                }
            }
            rows.append(row)
        }
        return rows
    }

    /// - Parameter identity: the push's ``Push/repeatIdentity``.
    private func mark(
        _ identity: Secret?, _ origin: Digest16, _ occurrences: inout [Digest16: Int], _ count: Int
    ) -> Digest16? {
        guard let identity else { return nil }
        let mark = digests.mark(origin: origin, identity: identity, occurrence: 0)
        // Nearly always the first of its kind: hashed once then.
        guard count > 1, let occurrence = occurrences.updateValue(1, forKey: mark) else { return mark }
        occurrences[mark] = occurrence + 1
        return digests.mark(origin: origin, identity: identity, occurrence: occurrence)
    }
}

extension StoredAdmission {
    fileprivate var isGone: Bool { if case .gone = self { true } else { false } }
}

extension SealedStore: Settling {
    package func settle(
        _ settlements: [Settlement], feedback: [Change]
    ) async throws(StoreError) -> [Bool] {
        var steps: [StoredSettlement] = []
        steps.reserveCapacity(settlements.count)
        for settlement in settlements {
            steps.append(
                StoredSettlement(
                    row: settlement.push.row, id: settlement.push.id, epoch: settlement.push.epoch,
                    mark: settlement.push.mark, step: settlement.step, first: settlement.first))
        }
        let changes = feedback.isEmpty ? [] : stored(feedback)
        return try await outbox.settle(steps, feedback: changes, now: doubted.now.judged)
    }
}

extension SealedStore: LaneClaims {
    /// A row that does not open is set aside, so that it cannot come again, and logged. A row that was sealed
    /// with another key goes back to the store, because the key file may still get that key.
    ///
    /// Rows that the store has given out are passed on, whatever becomes of those that do not open: nobody
    /// else would ask for the good ones again.
    package func claim(
        _ lane: LaneName, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [OwedPush] {
        let rows = try await outbox.claim(lane.description, due: due, limit: limit, classes: classes)
        var pushes: [OwedPush] = []
        pushes.reserveCapacity(rows.count)
        var (broken, closed) = (0, 0)
        let ended = await ended(among: rows)
        for row in rows {
            func step(_ step: Settlement.Step) -> StoredSettlement {
                StoredSettlement(
                    row: row.row, id: row.id, epoch: row.epoch, mark: row.mark, step: step, first: nil)
            }
            guard !ended.contains(row.id) else {
                self.broken.withLock { $0.add(closed: step(.withdraw)) }
                continue
            }
            do throws(Sealer.Fault) {
                let (instance, message) = try open(row)
                pushes.append(owed(row, row: row.row, epoch: row.epoch, lane: lane, instance, message))
            } catch {
                switch error {
                case .doesNotOpen:
                    broken += 1
                    self.broken.withLock { $0.add(aside: step(.park)) }
                case .unknownKey:
                    closed += 1
                    let now = world.now()
                    let later = now + BrokenPushes.wait(of: now.since(row.id.acceptedAt))
                    let retry = Settlement.Step.retry(
                        notBefore: later, attempt: row.attempt, lane: lane, parked: true)
                    self.broken.withLock { $0.add(closed: step(retry)) }
                }
            }
        }
        note("owed pushes do not open and are set aside", broken, lane, .corrupt)
        note("owed pushes are sealed with a key that is not held", closed, lane, .wrongKey)
        if broken + closed + ended.count > 0 { await tellOfBroken() }
        return pushes
    }

    package var ended: EndedPushes { outbox.ended }

    /// Pushes whose registration no longer exists. It ended the pushes that were owed to it, so a push that
    /// is found here was written while it ended, or by a version that left such pushes owed.
    private func ended(among rows: [StoredPush]) async -> Set<PushID> {
        let keys = Array(Set(rows.compactMap(\.record)))
        guard !keys.isEmpty else { return [] }
        // One whose time has passed has not been ended by anybody.
        let always = UnixTime(milliseconds: .min)
        // If the store cannot be asked, the rows that it gave out go on, because nobody else would ask for
        // them again.
        guard let found = try? await records.find(keys, now: always) else { return [] }
        let standing = Dictionary(zip(keys, found), uniquingKeysWith: { first, _ in first })
        return Set(
            rows.filter { row in
                guard let record = row.record.map({ standing[$0] ?? nil }) else { return false }
                return !row.stands(by: record)
            }.map(\.id))
    }

    private func note(_ event: StaticString, _ count: Int, _ lane: LaneName, _ code: StoreError.Code) {
        guard count > 0 else { return }
        journal.note(event, [.lane: lane, .count: count, .code: ErrorCode(StoreError(code))], level: .error)
    }

    package func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime? {
        try await outbox.nextDue(lane.description)
    }

    private func open(_ row: StoredPush) throws(Sealer.Fault) -> (ConfiguredName, ProviderMessage) {
        let plain = try Self.withPlace(row) { place throws(Sealer.Fault) in
            try sealer.open(row.sealed, with: place)
        }
        guard let read = plain.reveal({ StoredCodec.readPush($0, services) }) else { throw .doesNotOpen }
        return read
    }
}

extension SealedStore {
    /// Tells the store what has become of rows that do not open; what it does not take is told again with the
    /// next renewal.
    func tellOfBroken() async {
        let told = broken.withLock { $0 }
        guard !told.isEmpty else { return }
        do throws(StoreError) {
            if !told.aside.isEmpty { _ = try await outbox.setAside(told.aside) }
            if !told.closed.isEmpty {
                _ = try await outbox.settle(told.closed, feedback: [], now: doubted.now.judged)
            }
            broken.withLock { $0.remove(told) }
        } catch {
            journal.note("broken pushes not set aside", [.code: ErrorCode(error)], level: .warning)
        }
    }

    /// Inlined, as the next is: a row that is passed on from a list or a variable is copied whole.
    @inline(__always)
    private func owed(
        _ row: StoredPush, row handle: Int64, epoch: Int64, lane: LaneName, _ instance: ConfiguredName,
        _ message: ProviderMessage
    ) -> OwedPush {
        OwedPush(
            id: row.id, sentAs: digests.sentAs(row.id), row: handle, lane: lane, pushClass: row.pushClass,
            origin: row.origin,
            record: row.record, touchedAt: row.touchedAt, registeredAddress: row.address,
            notBefore: row.notBefore, custodyEnds: row.custodyEnds, attempt: row.attempt, epoch: epoch,
            mark: row.mark,
            instance: instance, message: message)
    }

    /// The columns that never change bind the sealed one to its row. The lane may change (decision 0051,
    /// learning an address's environment) and is left out.
    @inline(__always)
    static func withPlace<Result, Failure: Error>(
        _ row: StoredPush, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let words = (
            UInt64(0x7075_7368_6573_2F31), row.id.value.high, row.id.value.low, row.origin.high,
            row.origin.low, row.record?.high ?? 0, row.record?.low ?? 0, row.touchedAt.milliseconds,
            row.custodyEnds.milliseconds, UInt64(row.pushClass.rawValue)
        )
        return try withUnsafeBytes(of: words) { raw throws(Failure) in try body(raw) }
    }
}
