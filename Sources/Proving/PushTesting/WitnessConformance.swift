import PushModel

/// Rules besides those for records and pushes: time, what ends with a registration, what does not open.
extension EngineConformance {
    static var witnesses: [ConformanceCase] {
        [
            ConformanceCase("the store's own last time only rises, but by an operator's word", lastTime),
            ConformanceCase("what stands beside a registration needs it alive, and goes with it", beside),
            ConformanceCase("what is set aside is never given out, and its custody ends", aside),
            ConformanceCase("a clock that leaps makes nobody dead who renewed in time", leap)
        ]
    }

    private static func lastTime(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        try expect(try await engine.lastTime(.look) == nil, "nobody has worked on it")
        let early = rig.clock.now
        let late = early + .seconds(60)
        try expect(try await engine.lastTime(.raise(late)) == late, "raised")
        try expect(try await engine.lastTime(.raise(early)) == late, "an earlier one changes nothing")
        let next = try await rig.next(engine, Samples.theirs)
        try expect(try await next.lastTime(.look) == late, "it outlives the process")
        try expect(try await next.lastTime(.set(early)) == early, "an operator's word may be earlier")
        try expect(try await next.lastTime(.look) == early, "and stands")
    }

    private static func beside(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let registration = Samples.record(1)
        var learned = Samples.record(2, touched: 2_000)
        learned.address = registration.key
        func put(_ bound: Int64 = 5_000) async throws -> Bool {
            let condition = Condition.besideLive(touchedNotAfter: UnixTime(milliseconds: bound))
            return try await engine.apply([.put(learned, if: condition)], now: now) == .committed
        }
        func stands() async throws -> Bool { try await engine.find([learned.key], now: now)[0] != nil }
        try expect(try await !put(), "no registration stands")
        _ = try await engine.apply([.put(registration, if: .any)], now: now)
        try expect(try await put(), "now one does")
        try expect(try await !put(1_999), "touched later than that")
        try expect(try await put(2_000), "touched just then")
        _ = try await engine.apply([.deleteBeside([Samples.digest(77)])], now: now)
        try expect(try await stands(), "another's is no matter")
        _ = try await engine.apply(
            [.expire(registration.key, at: now, if: .any), .deleteBeside([registration.key])], now: now)
        try expect(try await !stands(), "it goes with its registration")
        try expect(try await !put(), "and does not come back beside one that has expired")
        let feedback: [StoredChange] = [
            .put(learned, if: .besideLive(touchedNotAfter: now)), .put(Samples.record(3), if: .any),
            .deleteBeside([Samples.digest(3)])
        ]
        _ = try await engine.settle([], feedback: feedback, now: now)
        let found = try await engine.find([learned.key, Samples.digest(3)], now: now)
        try expect(found[0] == nil && found[1] != nil, "each feedback stands for itself")
        learned.address = nil
        try expect(try await put(), "without a registration only its own age counts")
    }

    private static func aside(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let pushes = [Samples.push(1, rig, parked: true, mark: 1), Samples.push(2, rig, parked: true)]
        _ = try await Samples.accept(pushes, engine, rig)
        let claimed = try await engine.claim(Samples.lane, due: now, limit: 10)
        let broken = claimed.filter { $0.id == pushes[0].id }.map {
            StoredSettlement(
                row: $0.row, id: $0.id, epoch: $0.epoch, mark: $0.mark, step: .park, first: nil)
        }
        var stale = broken[0]
        stale.epoch -= 1
        try expect(try await engine.setAside([stale]) == [false], "not at another epoch")
        try expect(try await engine.setAside(broken) == [true], "set aside")
        let load = try await engine.load()
        try expect(load.rows == 2 && load.lanes == [Aside.text(Samples.lane): 1], "counted as what it is")
        _ = try await engine.reclaim(limit: 10)
        let again = try await engine.claim(Samples.lane, due: now + .seconds(3_600), limit: 10)
        try expect(again.map(\.id) == [pushes[1].id], "the other comes back, this one does not")
        let repeated = try await Samples.accept([Samples.push(3, rig, mark: 1)], engine, rig)[0]
        guard case .owed = repeated else {
            throw ConformanceFault(description: "a repeat of what nobody sends is a new push")
        }
        rig.clock.advance(by: .seconds(86_401))
        let ended = try await engine.endCustody(before: rig.clock.now, limit: 10)
        try expect(ended[Aside.text(Samples.lane)] == 1, "its custody ends")
    }

    private static func leap(_ rig: EngineRig) async throws {
        guard rig.isShared else { return }
        let other = try await rig.first(Samples.theirs)
        let ours = try await rig.next(other, Samples.ours)
        try await other.renew(for: .seconds(20))
        try await ours.renew(for: .seconds(20))
        _ = try await Samples.accept([Samples.push(1, rig), Samples.push(2, rig, parked: true)], other, rig)
        rig.clock.advance(by: .seconds(4))
        // As when a standby whose clock is ahead takes over.
        rig.clock.skewWall(by: .seconds(17))
        try expect(try await ours.takeOver([Samples.lane], limit: 10) == 0, "it renewed four seconds ago")
        let ended = try await ours.endCustody(before: rig.clock.now + .seconds(90_000), limit: 10)
        try expect(ended.isEmpty, "nor does its custody end here")
        rig.clock.advance(by: .seconds(17))
        try expect(try await ours.takeOver([Samples.lane], limit: 10) == 2, "until it has not for a lease")
    }
}
