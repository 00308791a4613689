import PushModel

extension EngineConformance {
    static var outbox: [ConformanceCase] {
        [
            ConformanceCase("an accepted push is owed until settled, once", settling),
            ConformanceCase("a retry waits parked until it is due", retrying),
            ConformanceCase("claim goes by class, then round robin over origins", turns),
            ConformanceCase("a claim for calls leaves what is below them", classes),
            ConformanceCase(
                "what a dead process owed is taken over, and its word no longer counts", takeover),
            ConformanceCase("a claim voids what was said of the push before", claimVoids),
            ConformanceCase(
                "a claim gives out only what is ours then, and a later take-over leaves it",
                claimsBeforeTakeover),
            ConformanceCase("what stands as in memory is parked when its owner reclaims", reclaims),
            ConformanceCase("a live owner keeps its pushes", liveOwner),
            ConformanceCase("the outbox refuses what is beyond its bound, and writes none of it", bounds),
            ConformanceCase("one of several apps fills no more than its share of the outbox", share),
            ConformanceCase("custody ends for parked pushes", custody)
        ]
    }

    static var marks: [ConformanceCase] {
        [
            ConformanceCase("a repeat meets the owed push, and its first outcome once settled", repeats),
            ConformanceCase("a repeat is known after reopening", repeatsAfterReopening),
            ConformanceCase("a mark ends after ten minutes, and at once when withdrawn", markEnds)
        ]
    }

    private static func settling(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let push = Samples.push(1, rig)
        let admission = try await Samples.accept([push], engine, rig)[0]
        let step = try Samples.step(push, admission, .settle)
        var stale = step
        stale.epoch += 1
        var foreign = step
        foreign.id = PushID(Samples.digest(4242))
        let refused = try await engine.settle([stale, foreign], feedback: [], now: rig.clock.now)
        try expect(refused == [false, false], "another epoch or id changes nothing")
        try expect(try await engine.load().rows == 1, "still owed")
        try expect(try await engine.settle([step], feedback: [], now: rig.clock.now) == [true], "settled")
        try expect(try await engine.settle([step], feedback: [], now: rig.clock.now) == [false], "only once")
        let load = try await engine.load()
        try expect(load.rows == 0 && load.bytes == 0, "nothing remains")
    }

    private static func retrying(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let push = Samples.push(1, rig)
        let admission = try await Samples.accept([push], engine, rig)[0]
        guard let lane = LaneName(Samples.lane) else { return }
        let due = rig.clock.now + .seconds(30)
        let retry = Settlement.Step.retry(notBefore: due, attempt: 1, lane: lane, parked: true)
        let step = try Samples.step(push, admission, retry, first: .retry)
        try expect(try await engine.settle([step], feedback: [], now: rig.clock.now) == [true], "ours")
        try expect(try await engine.nextDue(Samples.lane) == due, "the lane knows when")
        let early = try await engine.claim(Samples.lane, due: rig.clock.now, limit: 5)
        try expect(early.isEmpty, "not before its time")
        let claimed = try await engine.claim(Samples.lane, due: due, limit: 5)
        try expect(claimed.map(\.id) == [push.id] && claimed[0].attempt == 1, "then it comes, once")
        try expect(try await engine.claim(Samples.lane, due: due, limit: 5).isEmpty, "it is in memory now")
        try expect(try await engine.nextDue(Samples.lane) == nil, "nothing waits")
    }

    private static func turns(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        var pushes = (0..<20 as Range<UInt64>).map { Samples.push($0, rig, origin: 1, parked: true) }
        pushes += (20..<23 as Range<UInt64>).map { Samples.push($0, rig, origin: 2, parked: true) }
        pushes.append(Samples.push(30, rig, pushClass: .urgent, origin: 1, parked: true))
        pushes.append(Samples.push(31, rig, pushClass: .background, origin: 3, parked: true))
        _ = try await Samples.accept(pushes, engine, rig)
        let claimed = try await engine.claim(Samples.lane, due: rig.clock.now, limit: 7)
        try expect(claimed.count == 7 && claimed.first?.pushClass == .urgent, "urgent first")
        let small = claimed.count { $0.origin == pushes[20].origin }
        try expect(small == 3, "the small origin has its turns beside the large one")
        var total = claimed.count
        // Ends: each round takes at least one, or is the last.
        while true {
            let more = try await engine.claim(Samples.lane, due: rig.clock.now, limit: 7)
            if more.isEmpty { break }
            total += more.count
        }
        try expect(total == pushes.count, "each is claimed once")
    }

    private static func classes(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let pushes = [
            Samples.push(1, rig, pushClass: .background, origin: 1, parked: true),
            Samples.push(2, rig, pushClass: .normal, origin: 1, parked: true),
            Samples.push(3, rig, pushClass: .urgent, origin: 2, parked: true),
            Samples.push(4, rig, pushClass: .normal, origin: 2, parked: true)
        ]
        _ = try await Samples.accept(pushes, engine, rig)
        let now = rig.clock.now
        let calls = try await engine.claim(Samples.lane, due: now, limit: 5, classes: .urgent ... .urgent)
        try expect(calls.map(\.id) == [pushes[2].id], "the call, and nothing below it")
        let none = try await engine.claim(Samples.lane, due: now, limit: 5, classes: .urgent ... .urgent)
        try expect(none.isEmpty, "there is no other")
        let messages = try await engine.claim(Samples.lane, due: now, limit: 5, classes: .urgent ... .normal)
        try expect(Set(messages.map(\.id)) == [pushes[1].id, pushes[3].id], "the messages, of both origins")
        try expect(try await engine.load().lanes[Samples.lane] == 1, "one is still parked")
        let rest = try await engine.claim(Samples.lane, due: now, limit: 5)
        try expect(rest.map(\.id) == [pushes[0].id], "and the rest is there for whoever asks for all")
    }

    private static func takeover(_ rig: EngineRig) async throws {
        let dead = try await rig.first(Samples.theirs)
        try await dead.renew(for: .seconds(20))
        let pushes = [Samples.push(1, rig), Samples.push(2, rig, parked: true)]
        let admissions = try await Samples.accept(pushes, dead, rig)
        let ours = try await rig.next(dead, Samples.ours)
        try await ours.renew(for: .seconds(60))
        rig.clock.advance(by: .seconds(21))
        _ = try await ours.takeOver([Samples.lane], limit: 10)
        try expect(try await ours.takeOver([Samples.lane], limit: 10) == 0, "taken over once")
        let now = rig.clock.now
        let claimed = try await ours.claim(Samples.lane, due: now, limit: 10)
        try expect(Set(claimed.map(\.id)) == Set(pushes.map(\.id)), "both are ours now")
        let old = try zip(pushes, admissions).map { try Samples.step($0, $1, .settle) }
        try expect(
            try await ours.settle(old, feedback: [], now: now) == [false, false], "the old epoch is void")
        if rig.isShared {
            let late = try await dead.settle(old, feedback: [], now: now)
            try expect(late == [false, false], "and so is the dead owner's word")
        }
        let new = claimed.map {
            StoredSettlement(
                row: $0.row, id: $0.id, epoch: $0.epoch, mark: $0.mark, step: .settle, first: .accepted)
        }
        try expect(try await ours.settle(new, feedback: [], now: now) == [true, true], "ours counts")
    }

    /// Lanes run while thousands are taken over in rounds: a push that is claimed between two rounds must be
    /// ours, or its settlement changes nothing and the next round hands it out again.
    private static func claimsBeforeTakeover(_ rig: EngineRig) async throws {
        let dead = try await rig.first(Samples.theirs)
        try await dead.renew(for: .seconds(20))
        let parked = (0..<12 as Range<UInt64>).map { Samples.push($0, rig, parked: $0 % 3 != 0) }
        _ = try await Samples.accept(parked, dead, rig)
        let ours = try await rig.next(dead, Samples.ours)
        try await ours.renew(for: .seconds(600))
        rig.clock.advance(by: .seconds(21))
        let now = rig.clock.now
        var given: [PushID] = []
        // Ends: each round takes over some pushes, or is one of the last two.
        for round in 0..<12 {
            let waiting = try await ours.load().lanes[Samples.lane] ?? 0
            let claimed = try await ours.claim(Samples.lane, due: now, limit: round == 0 ? 100 : 2)
            try expect(claimed.count == (round == 0 ? waiting : min(2, waiting)), "as many as load counts")
            given += claimed.map(\.id)
            // While these are being sent, others are taken over.
            _ = try await ours.takeOver([Samples.lane], limit: 3)
            let steps = claimed.map {
                StoredSettlement(
                    row: $0.row, id: $0.id, epoch: $0.epoch, mark: $0.mark, step: .settle, first: .accepted)
            }
            let counted = try await ours.settle(steps, feedback: [], now: now)
            try expect(counted.allSatisfy(\.self), "what was given out is ours to settle")
        }
        try expect(given.count == parked.count && Set(given).count == given.count, "each is given out once")
        try expect(try await ours.load().rows == 0, "nothing remains")
    }

    /// A push whose parking got no answer is parked again after it has come back to memory.
    private static func claimVoids(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let push = Samples.push(1, rig)
        let admission = try await Samples.accept([push], engine, rig)[0]
        let park = try Samples.step(push, admission, .park)
        let now = rig.clock.now
        try expect(try await engine.settle([park], feedback: [], now: now) == [true], "parked")
        let claimed = try await engine.claim(Samples.lane, due: now, limit: 5)
        try expect(claimed.count == 1, "in memory again")
        try expect(try await engine.settle([park], feedback: [], now: now) == [false], "the old word is void")
        try expect(try await engine.claim(Samples.lane, due: now, limit: 5).isEmpty, "nobody gets it twice")
        let end = StoredSettlement(
            row: claimed[0].row, id: push.id, epoch: claimed[0].epoch, mark: nil, step: .settle,
            first: .accepted)
        try expect(try await engine.settle([end], feedback: [], now: now) == [true], "the new one counts")
    }

    private static func reclaims(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let pushes = [
            Samples.push(1, rig), Samples.push(2, rig), Samples.push(3, rig, parked: true)
        ]
        let admissions = try await Samples.accept(pushes, engine, rig)
        let old = try Samples.step(pushes[0], admissions[0], .settle)
        let now = rig.clock.now
        try expect(try await engine.reclaim(limit: 1) == 1, "no more than the limit")
        try expect(try await engine.reclaim(limit: 10) == 1, "then the other")
        try expect(try await engine.reclaim(limit: 10) == 0, "and no more")
        try expect(try await engine.settle([old], feedback: [], now: now) == [false], "with a new epoch")
        try expect(try await engine.load().lanes[Samples.lane] == 3, "all wait in the store")
        let claimed = try await engine.claim(Samples.lane, due: now, limit: 10)
        try expect(Set(claimed.map(\.id)) == Set(pushes.map(\.id)), "and come back")
    }

    private static func liveOwner(_ rig: EngineRig) async throws {
        guard rig.isShared else { return }
        let other = try await rig.first(Samples.theirs)
        // A server's own clock goes on meanwhile, so the test leaves a minute.
        try await other.renew(for: .seconds(600))
        _ = try await Samples.accept([Samples.push(1, rig)], other, rig)
        let ours = try await rig.next(other, Samples.ours)
        rig.clock.advance(by: .seconds(540))
        try expect(
            try await ours.takeOver([Samples.lane], limit: 10) == 0, "alive by the engine's clock")
        try await other.renew(for: .seconds(600))
        rig.clock.advance(by: .seconds(120))
        try expect(try await ours.takeOver([Samples.lane], limit: 10) == 0, "renewed")
    }

    private static func bounds(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let many = (0..<UInt64(rowBound) + 1).map { Samples.push($0, rig) }
        do {
            _ = try await engine.accept(many, changes: [], now: rig.clock.now)
            throw ConformanceFault(description: "more was taken than the bound")
        } catch let error as StoreError {
            try expect(error.code == .full, "full is said as full")
        }
        try expect(try await engine.load().rows == 0, "none of it was written")
        _ = try await Samples.accept(Array(many.dropLast()), engine, rig)
        try expect(try await engine.load().rows == rowBound, "up to the bound")
    }

    private static func share(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        rig.share.set(apps: 2)
        let half = rowBound / 2
        func pushes(_ numbers: Range<Int>, lane: String) -> [StoredPush] {
            numbers.map { number in
                var push = Samples.push(UInt64(number), rig)
                push.lane = lane
                return push
            }
        }
        func isFull(_ pushes: [StoredPush], at other: (any Engine)? = nil) async throws -> Bool {
            do {
                _ = try await (other ?? engine).accept(pushes, changes: [], now: rig.clock.now)
                return false
            } catch {
                try expect(error.code == .full, "full is said as full")
                return true
            }
        }
        // Both of an app's lanes count, and a push that changes its lane stays its app's.
        let first = pushes(0..<half - 1, lane: Samples.lane)
        let admissions = try await Samples.accept(first, engine, rig)
        let other = pushes(100..<102, lane: "acme-chat/fcm/production")
        try expect(try await isFull(other), "one app fills no more than its share, by whatever lane")
        try expect(try await !isFull([other[0]]), "and up to its share")
        guard let sandbox = LaneName("acme-chat/apns/sandbox") else { return }
        let moved = try Samples.step(
            first[0], admissions[0],
            .retry(notBefore: rig.clock.now, attempt: 1, lane: sandbox, parked: false))
        _ = try await engine.settle([moved], feedback: [], now: rig.clock.now)
        try expect(try await isFull([other[1]]), "a push that went on in another lane is still its app's")
        try expect(
            try await !isFull(pushes(200..<200 + half - 1, lane: "acme-talk/apns/production")),
            "another app has its own")
        let ended = try Samples.step(first[1], admissions[1], .settle)
        _ = try await engine.settle([ended], feedback: [], now: rig.clock.now)
        try expect(try await !isFull([other[1]]), "what has ended is room")
        let last = pushes(300..<301, lane: Samples.lane)
        try expect(try await isFull(last), "and is filled again")
        // If processes share the store, each counts its own.
        let next = rig.isShared ? engine : try await rig.next(engine, Samples.theirs)
        try expect(try await isFull(last, at: next), "counted anew when the store is opened")
        rig.share.set(apps: 1)
        try expect(try await !isFull(last, at: next), "a single app has everything")
        try expect(try await next.load().rows == rowBound, "all that was taken stands")
    }

    private static func custody(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        var brief = Samples.push(1, rig, parked: true)
        brief.custodyEnds = rig.clock.now + .seconds(60)
        _ = try await Samples.accept([brief, Samples.push(2, rig, parked: true)], engine, rig)
        rig.clock.advance(by: .seconds(61))
        let ended = try await engine.endCustody(before: rig.clock.now, limit: 10)
        try expect(ended == [Samples.lane: 1], "the brief one ends, and is counted by lane")
        let load = try await engine.load()
        try expect(load.rows == 1 && load.lanes == [Samples.lane: 1], "the other stays")
    }

    private static func repeats(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let push = Samples.push(1, rig, mark: 1)
        let admission = try await Samples.accept([push], engine, rig)[0]
        let again = Samples.push(2, rig, mark: 1)
        let whileOwed = try await Samples.accept([again], engine, rig)
        try expect(whileOwed == [.repeated(of: push.id, first: nil)], "while owed, without an outcome")
        try expect(try await engine.load().rows == 1, "the repeat is not written")
        let step = try Samples.step(push, admission, .settle, first: .unregistered)
        _ = try await engine.settle([step], feedback: [], now: rig.clock.now)
        let settled = try await Samples.accept([again, Samples.push(3, rig, mark: 2)], engine, rig)
        try expect(settled[0] == .repeated(of: push.id, first: .unregistered), "settled, with its outcome")
        try expect(try await engine.load().rows == 1, "the other item of the call is taken")
    }

    private static func repeatsAfterReopening(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let pushes = [Samples.push(1, rig, mark: 1), Samples.push(2, rig, mark: 2)]
        let admissions = try await Samples.accept(pushes, engine, rig)
        let step = try Samples.step(pushes[0], admissions[0], .settle, first: .rejected)
        _ = try await engine.settle([step], feedback: [], now: rig.clock.now)
        let next = try await rig.next(engine, Samples.theirs)
        let again = [Samples.push(3, rig, mark: 1), Samples.push(4, rig, mark: 2)]
        let answers = try await Samples.accept(again, next, rig)
        try expect(answers[0] == .repeated(of: pushes[0].id, first: .rejected), "the settled one")
        try expect(answers[1] == .repeated(of: pushes[1].id, first: nil), "the owed one")
    }

    private static func markEnds(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let pushes = [Samples.push(1, rig, mark: 1), Samples.push(2, rig, mark: 2)]
        let admissions = try await Samples.accept(pushes, engine, rig)
        let steps = [
            try Samples.step(pushes[0], admissions[0], .settle),
            try Samples.step(pushes[1], admissions[1], .withdraw)
        ]
        _ = try await engine.settle(steps, feedback: [], now: rig.clock.now)
        let withdrawn = Samples.push(3, rig, mark: 2)
        guard case .owed = try await Samples.accept([withdrawn], engine, rig)[0] else {
            throw ConformanceFault(description: "a withdrawn push's mark was still held")
        }
        rig.clock.advance(by: .seconds(599))
        let held = try await Samples.accept([Samples.push(4, rig, mark: 1)], engine, rig)[0]
        try expect(held == .repeated(of: pushes[0].id, first: .accepted), "held for ten minutes")
        // Marks go in generations of two minutes.
        rig.clock.advance(by: .seconds(180))
        guard case .owed = try await Samples.accept([Samples.push(5, rig, mark: 1)], engine, rig)[0] else {
            throw ConformanceFault(description: "a mark was held without end")
        }
    }
}
