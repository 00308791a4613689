package import PushModel

extension PostgresStore: StoredOutbox {
    package var ended: EndedPushes { core.endings.told }

    package func accept(
        _ pushes: [StoredPush], changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        if pushes.isEmpty {
            return switch try await apply(changes, now: now) {
            case .committed: .committed([])
            case .refused(let index): .refused(index: index)
            }
        }
        let bytes = pushes.reduce(0) { $0 + $1.sealed.count }
        guard core.counts.reserve(pushes) else { throw StoreError(.full) }
        do throws(StoreError) {
            let accepted = try await write(pushes, bytes, changes, now: now)
            giveBack(pushes, accepted)
            return accepted
        } catch {
            // Pushes that may have been written are counted until the doubt is resolved.
            if error.code != .uncertain { core.counts.release(pushes) }
            throw error
        }
    }

    private func write(
        _ pushes: [StoredPush], _ bytes: Int, _ changes: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> StoredAccepted {
        guard changes.isEmpty else {
            let runs = ChangeCall.runs(changes)
            let answer = try await core.change {
                ChangeCall(pushes: pushes, runs: runs, now: now, answer: $0)
            }
            switch answer {
            case .refused(let index): return .refused(index: index)
            case .committed(let admissions): return .committed(admissions)
            case .settled, .removed: throw StoreError(.corrupt)
            }
        }
        let core = core
        let outcome: Result<[StoredAdmission], StoreError> = await withCheckedContinuation { continuation in
            core.add(
                .accept(pushes: pushes) { continuation.resume(returning: .success($0)) }, .accept,
                rows: pushes.count, bytes: bytes
            ) { continuation.resume(returning: .failure($0)) }
        }
        return .committed(try outcome.get())
    }

    /// Room that was reserved for pushes that already existed or were refused.
    private func giveBack(_ pushes: [StoredPush], _ accepted: StoredAccepted) {
        switch accepted {
        case .refused: core.counts.release(pushes)
        case .committed(let admissions):
            core.counts.release(
                zip(pushes, admissions).compactMap { push, admission in
                    if case .owed = admission { return nil }
                    return push
                })
        }
    }

    package func settle(
        _ steps: [StoredSettlement], feedback: [StoredChange], now: UnixTime
    ) async throws(StoreError) -> [Bool] {
        guard feedback.isEmpty else {
            let runs = ChangeCall.runs(feedback)
            let answer = try await core.change {
                ChangeCall(steps: steps, runs: runs, isEach: true, now: now, answer: $0)
            }
            guard case .settled(let counted) = answer else { throw StoreError(.corrupt) }
            return counted
        }
        guard !steps.isEmpty else { return [] }
        let core = core
        let outcome: Result<[Bool], StoreError> = await withCheckedContinuation { continuation in
            core.add(
                .settle(steps: steps, now: now) { continuation.resume(returning: .success($0)) }, .settle,
                rows: steps.count
            ) { continuation.resume(returning: .failure($0)) }
        }
        return try outcome.get()
    }

    package func setAside(_ pushes: [StoredSettlement]) async throws(StoreError) -> [Bool] {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.settling.setAside(pushes, session)
        }
    }

    package func claim(
        _ lane: String, due: UnixTime, limit: Int, classes: ClosedRange<PushClass>
    ) async throws(StoreError) -> [StoredPush] {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.claiming.claim(lane, due: due, limit: limit, classes: classes, session)
        }
    }

    package func nextDue(_ lane: String) async throws(StoreError) -> UnixTime? {
        try await core.single(.read) { [core] session throws(PostgresFault) in
            try core.claiming.nextDue(lane, session)
        }
    }

    package func endCustody(before: UnixTime, limit: Int) async throws(StoreError) -> [String: Int] {
        try await core.single(.bulk) { [core] session throws(PostgresFault) in
            try core.claiming.endCustody(before: before, limit: limit, session)
        }
    }
}
