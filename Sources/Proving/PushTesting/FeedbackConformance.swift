import PushModel

/// What feedback about a push may end.
extension EngineConformance {
    static var feedback: [ConformanceCase] {
        [
            ConformanceCase("a word about a push ends what it was made from, and nothing newer", word)
        ]
    }

    private static func word(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let key = Samples.digest(1)
        /// Whether feedback about a push, made from the registration as it was at 1,000 with the address 7,
        /// ends the stored registration.
        func ends(
            touched: Int64 = 1_000, at address: UInt64? = 7, of named: UInt64? = 7
        ) async throws -> Bool {
            _ = try await engine.apply(
                [.put(Samples.record(1, touched: touched, address: address), if: .any)], now: now)
            let made = Condition.madeFrom(
                touchedAt: UnixTime(milliseconds: 1_000), address: named.map(Samples.digest))
            _ = try await engine.settle([], feedback: [.expire(key, at: now, if: made)], now: now)
            return try await engine.find([key], now: now)[0]?.state == .expired(at: now)
        }
        try expect(try await ends(), "as it was")
        try expect(try await ends(touched: 999), "not touched since")
        try expect(try await !ends(touched: 1_001), "renewed since, at the same address")
        try expect(try await !ends(at: 8), "at another address, though no clock tells them apart")
        try expect(try await !ends(touched: 1, at: 8), "nor by a clock that is behind")
        try expect(try await !ends(at: nil), "at none")
        try expect(try await ends(at: 8, of: nil), "where nobody knows the address its time counts")
        try expect(try await !ends(touched: 1_001, at: 8, of: nil), "and nothing newer ends by it")
        _ = try await engine.apply([.delete(key, if: .any)], now: now)
        let made = Condition.madeFrom(touchedAt: now, address: Samples.digest(7))
        let applied = try await engine.apply([.expire(key, at: now, if: made)], now: now)
        try expect(applied == .committed, "where there is none it ends nothing")
        try expect(try await engine.find([key], now: now) == [nil], "and makes none")
    }
}
