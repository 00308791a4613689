import PushModel

/// A call that changes records, and what comes with it.
struct ChangeCall: Sendable {
    enum Answer: Sendable {
        case refused(index: Int)
        case committed([StoredAdmission])
        case settled([Bool])
        case removed(Int)
    }

    /// Removing records by an index, a bounded number.
    enum Removal: Sendable {
        case purge(before: UnixTime, limit: Int)
        case forget(owner: Digest16, limit: Int)
    }

    /// Changes that one statement can make.
    enum Run: Sendable {
        /// Distinct keys; the numbers are their places in the call.
        case keyed([(place: Int, change: StoredChange)])
        case beside([Digest16])
    }

    var pushes: [StoredPush] = []
    var steps: [StoredSettlement] = []
    var runs: [Run] = []
    var removal: Removal?
    /// Each change stands for itself; else all or none.
    var isEach = false
    var now: UnixTime
    var answer: @Sendable (Answer) -> Void

    /// Its last write depends on the answer to its first.
    var isAlone: Bool { !pushes.isEmpty || (!isEach && runs.count > 1) }

    /// Divides changes into runs: a later change must see the earlier ones, so no run names a key twice.
    static func runs(_ changes: [StoredChange]) -> [Run] {
        var runs: [Run] = []
        var open: [(place: Int, change: StoredChange)] = []
        var keys: Set<Digest16> = []
        func close() {
            if !open.isEmpty { runs.append(.keyed(open)) }
            open = []
            keys = []
        }
        for (place, change) in changes.enumerated() {
            let key: Digest16
            switch change {
            case .put(let record, _): key = record.key
            case .expire(let named, _, _), .delete(let named, _): key = named
            case .deleteBeside(let keys):
                close()
                runs.append(.beside(keys))
                continue
            }
            if keys.contains(key) { close() }
            keys.insert(key)
            open.append((place, change))
        }
        close()
        return runs
    }
}

/// Changes of records, with pushes or settlements that come with them.
struct PostgresChanging {
    let accepting: PostgresAccepting
    let settling: PostgresSettling
    let counts: OwedCounts
    let endings: PostgresEndings

    func change(_ jobs: [Job], _ session: PostgresSession) throws(PostgresFault) -> [@Sendable () -> Void] {
        var calls: [ChangeCall] = []
        for job in jobs {
            if case .change(let call) = job.work { calls.append(call) }
        }
        if calls.count == 1, calls[0].isAlone {
            let answer = try changeAlone(calls[0], session)
            return [{ [call = calls[0]] in call.answer(answer) }]
        }
        return try changeJoined(calls, session)
    }

    /// All in one exchange: a refusal concerns only the statement that is refused.
    private func changeJoined(
        _ calls: [ChangeCall], _ session: PostgresSession
    ) throws(PostgresFault) -> [@Sendable () -> Void] {
        var queries = [Query(PostgresSQL.begin), Query(RecordSQL.lockRecords)]
        var rounds: [[[Int]]] = []
        var ends: [Int] = []
        for call in calls {
            rounds.append(PostgresSettling.rounds(call.steps))
            queries += settling.settlement(call.steps, rounds[rounds.count - 1], now: call.now)
            queries += call.runs.map { query($0, call) }
            if let ending = endings.ending(call.runs) { queries.append(ending) }
            if let removal = call.removal { queries.append(query(removal)) }
            ends.append(queries.count)
        }
        queries.append(Query(PostgresSQL.commit))
        let results = try session.run(queries, commits: true)
        try Self.checkHead(results[1])
        counts.noteDeletedRecords()
        var answers: [@Sendable () -> Void] = []
        var at = 2
        for (index, call) in calls.enumerated() {
            let own = results[at..<ends[index]]
            if call.removal == nil, endings.ending(call.runs) != nil, let rows = own.last {
                try endings.note(rows, call.runs)
            }
            let answer = try read(call, rounds[index], results[at..<ends[index]])
            answers.append { call.answer(answer) }
            at = ends[index]
        }
        return answers
    }

    /// Without this row no revision can be given, and no record is written: this must not pass for success.
    private static func checkHead(_ locked: Rows) throws(PostgresFault) {
        guard locked.count == 1 else { throw .store(StoreError(.corrupt)) }
    }

    private func read(
        _ call: ChangeCall, _ rounds: [[Int]], _ results: ArraySlice<Rows>
    ) throws(PostgresFault) -> ChangeCall.Answer {
        if call.removal != nil { return .removed(results.last?.changed ?? 0) }
        if call.isEach {
            let settled = try settling.settled(call.steps, rounds, results)
            settling.note(settled)
            return .settled(settled.counted)
        }
        if let run = call.runs.first, let rows = results.first, let place = try refusal(run, rows) {
            return .refused(index: place)
        }
        return .committed([])
    }

    private func refusal(_ run: ChangeCall.Run, _ rows: Rows) throws(PostgresFault) -> Int? {
        guard case .keyed = run, rows.count == 1, !rows.isNull(0, 0) else { return nil }
        return Int(try rows.int(0, 0))
    }

    /// One call, statement by statement: a refusal undoes what the runs before it made.
    private func changeAlone(
        _ call: ChangeCall, _ session: PostgresSession
    ) throws(PostgresFault) -> ChangeCall.Answer {
        let outcome = try session.transaction { session throws(PostgresFault) -> (Int?, Rows?) in
            var opening = [Query(PostgresSQL.begin), Query(RecordSQL.lockRecords)]
            let ending = endings.ending(call.runs)
            for run in call.runs {
                let results = try session.run(opening + [query(run, call)], commits: false)
                guard let rows = results.last else { break }
                if !opening.isEmpty { try Self.checkHead(results[1]) }
                opening = []
                if let place = try refusal(run, rows) {
                    try session.run([Query(PostgresSQL.rollback)], commits: false)
                    return (place, nil)
                }
            }
            var closing = opening
            if let ending { closing.append(ending) }
            let endedAt = ending == nil ? nil : closing.count - 1
            if !call.pushes.isEmpty { closing.append(accepting.acceptance(call.pushes)) }
            let acceptedAt = closing.count - 1
            let results = try session.run(closing + [Query(PostgresSQL.commit)], commits: true)
            if let endedAt { try endings.note(results[endedAt], call.runs) }
            return (nil, call.pushes.isEmpty ? nil : results[acceptedAt])
        }
        if let place = outcome.0 { return .refused(index: place) }
        counts.noteDeletedRecords()
        guard let rows = outcome.1, !call.pushes.isEmpty else { return .committed([]) }
        return .committed(try accepting.finish(call.pushes, rows, session))
    }

    // MARK: statements

    private func query(_ removal: ChangeCall.Removal) -> Query {
        switch removal {
        case .purge(let before, let limit):
            Query(RecordSQL.purge) { query in
                query.add(before)
                query.add(Int64(limit))
            }
        case .forget(let owner, let limit):
            Query(RecordSQL.forget) { query in
                query.add(owner)
                query.add(Int64(limit))
            }
        }
    }

    private func query(_ run: ChangeCall.Run, _ call: ChangeCall) -> Query {
        switch run {
        case .keyed(let changes): query(changes, call)
        case .beside(let keys): Query(RecordSQL.deleteBeside) { $0.add(digests: keys) }
        }
    }

    private func query(_ changes: [(place: Int, change: StoredChange)], _ call: ChangeCall) -> Query {
        let rows = changes.map { ChangeRow($0.change) }
        return Query(RecordSQL.change) { query in
            query.add(call.now)
            query.add(call.isEach)
            query.add(PushModel.Record.expiredLife.wholeMilliseconds)
            query.add(int32s: changes.map(\.place))
            query.add(int16s: rows.map(\.kind))
            query.add(digests: rows.map(\.key))
            query.add(int16s: rows.map(\.condition))
            query.add(int64s: rows.map(\.bound))
            query.add(texts: rows.map(\.space))
            query.add(optionalDigests: rows.map(\.owner))
            query.add(optionalDigests: rows.map(\.address))
            query.add(int64s: rows.map(\.version))
            query.add(int16s: rows.map(\.state))
            query.add(times: rows.map(\.stateAt))
            query.add(times: rows.map(\.touchedAt))
            query.add(times: rows.map(\.expiresAt))
            query.add(blobs: rows.map(\.body))
        }
    }
}

/// A change as the statement takes it.
private struct ChangeRow {
    var kind = 0
    var key: Digest16
    var condition = 0
    var bound: Int64 = 0
    var space = ""
    var owner: Digest16?
    var address: Digest16?
    var version: Int64 = 0
    var state = 0
    var stateAt = UnixTime.distantPast
    var touchedAt = UnixTime.distantPast
    var expiresAt = UnixTime.distantPast
    var body: [UInt8] = []

    init(_ change: StoredChange) {
        switch change {
        case .put(let record, let condition):
            key = record.key
            space = record.space
            owner = record.owner
            address = record.address
            version = PostgresRecords.signed(record.version)
            (state, stateAt) = PostgresRecords.number(record.state)
            touchedAt = record.touchedAt
            expiresAt = record.expiresAt
            body = record.body
            judge(condition)
        case .expire(let name, let at, let condition):
            kind = 1
            key = name
            stateAt = at
            judge(condition)
        case .delete(let name, let condition):
            kind = 2
            key = name
            judge(condition)
        case .deleteBeside:
            // A run of its own; never here.
            key = Digest16(high: 0, low: 0)
            kind = -1
        }
    }

    private mutating func judge(_ test: Condition) {
        switch test {
        case .any: condition = 0
        case .absent: condition = 1
        case .revision(let revision): (condition, bound) = (2, Int64(clamping: revision))
        case .versionBelow(let version): (condition, bound) = (3, PostgresRecords.signed(version))
        case .touchedNotAfter(let time): (condition, bound) = (4, time.milliseconds)
        case .besideLive(let time): (condition, bound) = (5, time.milliseconds)
        case .madeFrom(let time, let named):
            (condition, bound) = (6, time.milliseconds)
            // A put is judged by the address that it names.
            if kind != 0 { address = named }
        }
    }
}
