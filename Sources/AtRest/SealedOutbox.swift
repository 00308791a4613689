import Primitives
package import PushModel

extension SealedStore: Outbox {
    package func digest(ofOrigin origin: Secret, at instance: ConfiguredName) -> Digest16 {
        digests.digest(origin: origin, at: instance)
    }

    /// Seals each push once; what is handed over in memory is the push as it came, never unsealed.
    package func accept(_ acceptance: Acceptance) async throws(StoreError) -> Accepted {
        let now = world.now()
        let rows = seal(acceptance, now)
        switch try await engine.accept(rows, changes: acceptance.changes.map(stored), now: now) {
        case .refused(let index):
            return .refused(index: index)
        case .committed(let admissions):
            guard admissions.count == rows.count else { throw StoreError(.corrupt) }
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
        var occurrences: [Digest16: Int] = [:]
        for item in acceptance.items {
            let push = item.push
            let from: Digest16
            if let origin, origin.name == push.origin {
                from = origin.digest
            } else {
                from = digests.digest(origin: push.origin, at: acceptance.instance)
                origin = (push.origin, from)
            }
            if lane?.name != item.lane { lane = (item.lane, item.lane.description) }
            var row = StoredPush(
                row: 0, id: PushID(at: now, random: random.next(), random.next()), lane: lane?.text ?? "",
                pushClass: push.pushClass, origin: from, record: push.record.map(digests.digest),
                touchedAt: push.touchedAt, notBefore: now, custodyEnds: push.custodyEnds, attempt: 0,
                epoch: 0,
                parked: item.parked, mark: mark(push, from, &occurrences, acceptance.items.count), sealed: [])
            row.sealed = Self.withPlace(row) { place in
                sealer.seal(
                    atMost: StoredCodec.size(push, instance: acceptance.instance), with: place
                ) {
                    StoredCodec.write(push, instance: acceptance.instance, to: $0)
                }
            }
            rows.append(row)
        }
        return rows
    }

    private func mark(
        _ push: Push, _ origin: Digest16, _ occurrences: inout [Digest16: Int], _ count: Int
    ) -> Digest16? {
        guard let identity = push.repeatIdentity else { return nil }
        let mark = digests.mark(origin: origin, identity: identity, occurrence: 0)
        guard count > 1 else { return mark }
        let occurrence = occurrences[mark, default: 0]
        occurrences[mark] = occurrence + 1
        return occurrence == 0
            ? mark : digests.mark(origin: origin, identity: identity, occurrence: occurrence)
    }

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
        return try await engine.settle(steps, feedback: feedback.map(stored), now: world.now())
    }

    /// A row that does not open is settled, so that it cannot come again, and said in the journal.
    package func claim(
        _ lane: LaneName, due: UnixTime, limit: Int
    ) async throws(StoreError) -> [OwedPush] {
        let rows = try await engine.claim(lane.description, due: due, limit: limit)
        var pushes: [OwedPush] = []
        pushes.reserveCapacity(rows.count)
        var broken: [StoredSettlement] = []
        for row in rows {
            if let (instance, message) = open(row) {
                pushes.append(owed(row, row: row.row, epoch: row.epoch, lane: lane, instance, message))
            } else {
                broken.append(
                    StoredSettlement(
                        row: row.row, id: row.id, epoch: row.epoch, mark: row.mark, step: .settle, first: nil)
                )
            }
        }
        if !broken.isEmpty {
            journal.note(
                "owed pushes do not open",
                [.lane: lane, .count: broken.count, .code: ErrorCode(StoreError(.corrupt))], level: .error)
            _ = try await engine.settle(broken, feedback: [], now: world.now())
        }
        return pushes
    }

    package func nextDue(_ lane: LaneName) async throws(StoreError) -> UnixTime? {
        try await engine.nextDue(lane.description)
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [LaneName: Int] {
        Self.lanes(try await engine.endCustody(before: before, limit: limit))
    }

    package func renew(for span: Duration) async throws(StoreError) { try await engine.renew(for: span) }

    package func takeOver(limit: Int) async throws(StoreError) -> Int {
        try await engine.takeOver(limit: limit)
    }

    package func reclaim(limit: Int) async throws(StoreError) -> Int {
        try await engine.reclaim(limit: limit)
    }

    package func load() async throws(StoreError) -> OutboxLoad {
        let load = try await engine.load()
        return OutboxLoad(rows: load.rows, bytes: load.bytes, lanes: Self.lanes(load.lanes))
    }

    private static func lanes(_ counts: [String: Int]) -> [LaneName: Int] {
        var lanes: [LaneName: Int] = [:]
        for (text, count) in counts { if let lane = LaneName(text) { lanes[lane] = count } }
        return lanes
    }

    private func open(_ row: StoredPush) -> (ConfiguredName, ProviderMessage)? {
        let opened = Self.withPlace(row) { place -> Result<Secret, Sealer.Fault> in
            do throws(Sealer.Fault) { return .success(try sealer.open(row.sealed, with: place)) } catch {
                return .failure(error)
            }
        }
        guard case .success(let plain) = opened else { return nil }
        return plain.reveal { StoredCodec.readPush($0) }
    }

    private func owed(
        _ row: StoredPush, row handle: Int64, epoch: Int64, lane: LaneName, _ instance: ConfiguredName,
        _ message: ProviderMessage
    ) -> OwedPush {
        OwedPush(
            id: row.id, row: handle, lane: lane, pushClass: row.pushClass, origin: row.origin,
            record: row.record, touchedAt: row.touchedAt, notBefore: row.notBefore,
            custodyEnds: row.custodyEnds, attempt: row.attempt, epoch: epoch, mark: row.mark,
            instance: instance, message: message)
    }

    /// The columns that never change bind the sealed one to its row. The lane may change (DESIGN §4, learning
    /// an address's environment) and is left out.
    private static func withPlace<Result>(
        _ row: StoredPush, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        withUnsafeBytes(
            of: (
                UInt64(0x7075_7368_6573_2F31), row.id.value.high, row.id.value.low, row.origin.high,
                row.origin.low, row.record?.high ?? 0, row.record?.low ?? 0, row.touchedAt.milliseconds,
                row.custodyEnds.milliseconds, UInt64(row.pushClass.rawValue)
            ), body)
    }
}
