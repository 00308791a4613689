import PushModel

/// Settling: the other statement that every push passes.
struct PostgresSettling {
    let owner: Digest16
    let limits: PostgresLimits
    let counts: OwedCounts

    /// Steps of which no two name one push. If a call has two steps for one push, they are made one after the
    /// other.
    static func rounds(_ steps: [StoredSettlement]) -> [[Int]] {
        var rounds: [[Int]] = []
        var seen: [PushID: Int] = [:]
        for (index, step) in steps.enumerated() {
            let round = seen[step.id, default: 0]
            seen[step.id] = round + 1
            if round == rounds.count { rounds.append([]) }
            rounds[round].append(index)
        }
        return rounds
    }

    /// Two statements for each round: one for steps that put off, one for steps that end.
    func settlement(_ steps: [StoredSettlement], _ rounds: [[Int]], now: UnixTime) -> [Query] {
        rounds.flatMap { round in
            // By mark, so that two processes lock the rows of `marks` in the same order.
            let own = round.map { steps[$0] }.sorted { ($0.mark ?? Self.least) < ($1.mark ?? Self.least) }
            var queries: [Query] = []
            let ends = own.filter { $0.step == .settle || $0.step == .withdraw }
            let stays = own.filter { $0.step != .settle && $0.step != .withdraw }
            if !stays.isEmpty { queries.append(putOff(stays)) }
            if !ends.isEmpty { queries.append(ending(ends, now: now)) }
            return queries
        }
    }

    private static let least = Digest16(high: 0, low: 0)
    /// The mark of an accepted push is not touched unless the push is older; then the mark's time starts
    /// again.
    private static let young = Duration.seconds(60)

    private func ending(_ steps: [StoredSettlement], now: UnixTime) -> Query {
        Query(OutboxSQL.settle) { query in
            query.add(owner)
            query.add(limits.aheadMilliseconds)
            query.add(digests: steps.map(\.id.value))
            query.add(int64s: steps.map(\.epoch))
            query.add(int16s: steps.map { Int($0.first?.rawValue ?? 0) })
            query.add(bools: steps.map { $0.step == .withdraw })
            query.add(bools: steps.map { now.since($0.id.acceptedAt) > Self.young })
        }
    }

    private func putOff(_ steps: [StoredSettlement]) -> Query {
        Query(OutboxSQL.putOff) { query in
            var times: [UnixTime] = []
            var attempts: [Int] = []
            var lanes: [String] = []
            var parked: [Bool] = []
            for step in steps {
                if case .retry(let notBefore, let attempt, let lane, let isParked) = step.step {
                    times.append(notBefore)
                    attempts.append(attempt)
                    lanes.append(lane.description)
                    parked.append(isParked)
                } else {
                    times.append(.distantPast)
                    attempts.append(0)
                    lanes.append("")
                    parked.append(true)
                }
            }
            query.add(owner)
            query.add(digests: steps.map(\.id.value))
            query.add(int64s: steps.map(\.epoch))
            query.add(bools: steps.map { $0.step != .park })
            query.add(times: times)
            query.add(int32s: attempts)
            query.add(texts: lanes)
            query.add(bools: parked)
            query.add(int16s: steps.map { Int($0.first?.rawValue ?? 0) })
        }
    }

    /// Which steps counted, and what they did to our counts.
    struct Settled {
        var counted: [Bool]
        var gone: [String: (rows: Int, bytes: Int)] = [:]
        var parked: [String: Int] = [:]
    }

    /// Reads the results of ``settlement(_:_:now:)``.
    func settled(
        _ steps: [StoredSettlement], _ rounds: [[Int]], _ results: ArraySlice<Rows>
    ) throws(PostgresFault) -> Settled {
        var settled = Settled(counted: Array(repeating: false, count: steps.count))
        var results = results
        for round in rounds {
            let places = Dictionary(uniqueKeysWithValues: round.map { (steps[$0].id.value, $0) })
            let isEnding = round.map { steps[$0].step == .settle || steps[$0].step == .withdraw }
            if isEnding.contains(false), let rows = results.popFirst() {
                for row in 0..<rows.count {
                    if let place = places[try rows.digest(row, 0)] { settled.counted[place] = true }
                    if rows.bool(row, 1) { settled.parked[rows.text(row, 2), default: 0] -= 1 }
                    if rows.bool(row, 3) { settled.parked[rows.text(row, 4), default: 0] += 1 }
                }
            }
            if isEnding.contains(true), let rows = results.popFirst() {
                for row in 0..<rows.count {
                    if let place = places[try rows.digest(row, 0)] { settled.counted[place] = true }
                    if rows.bool(row, 1) { settled.parked[rows.text(row, 2), default: 0] -= 1 }
                    let gone = settled.gone[rows.text(row, 2)] ?? (0, 0)
                    settled.gone[rows.text(row, 2)] = (gone.rows + 1, gone.bytes + Int(try rows.int(row, 3)))
                }
            }
        }
        return settled
    }

    /// Takes over what the settled rows did, once their commit stands.
    func note(_ settled: Settled) {
        for (lane, gone) in settled.gone { counts.add(lane, rows: -gone.rows, bytes: -gone.bytes) }
        if !settled.gone.isEmpty { counts.noteDeletedPushes() }
        for (lane, count) in settled.parked { counts.park(lane, by: count) }
        // Another process took them: our count of them is too high.
        if settled.counted.contains(false) { counts.doubt() }
    }

    /// Settles without feedback, all calls that wait in one exchange: no record is touched.
    func settle(_ jobs: [Job], _ session: PostgresSession) throws(PostgresFault) -> [@Sendable () -> Void] {
        var steps: [StoredSettlement] = []
        var latest = UnixTime.distantPast
        var calls: [(count: Int, answer: @Sendable ([Bool]) -> Void)] = []
        for job in jobs {
            guard case .settle(let own, let now, let answer) = job.work else { continue }
            steps += own
            latest = max(latest, now)
            calls.append((own.count, answer))
        }
        let rounds = Self.rounds(steps)
        let results = try session.run(settlement(steps, rounds, now: latest), commits: true)
        let settled = try settled(steps, rounds, results[...])
        note(settled)
        var at = 0
        return calls.map { call in
            let own = Array(settled.counted[at..<(at + call.count)])
            at += call.count
            return { call.answer(own) }
        }
    }

    func setAside(
        _ pushes: [StoredSettlement], _ session: PostgresSession
    ) throws(PostgresFault) -> [Bool] {
        let rows = try session.run([asideQuery(pushes)], commits: true)[0]
        var moved: Set<Digest16> = []
        for row in 0..<rows.count {
            moved.insert(try rows.digest(row, 0))
            let lane = rows.text(row, 1)
            if rows.bool(row, 2) { counts.park(lane, by: -1) }
            counts.park(Aside.text(lane), by: 1)
        }
        return pushes.map { moved.contains($0.id.value) }
    }

    func asideQuery(_ pushes: [StoredSettlement]) -> Query {
        Query(OutboxSQL.setAside) { query in
            query.add(owner)
            query.add(digests: pushes.map(\.id.value))
            query.add(int64s: pushes.map(\.epoch))
            query.add(Aside.prefix)
            query.add(limits.aheadMilliseconds)
        }
    }
}
