import PushModel

/// The rules for several owners on one store.
extension EngineConformance {
    static var shared: [ConformanceCase] {
        [
            ConformanceCase("what a living owner has parked is nobody else's", parkedOfTheLiving),
            ConformanceCase("lanes that were not named keep what dead owners left", namedLanes),
            ConformanceCase("what is let go is there for whoever has its lane", lettingGo),
            ConformanceCase("a member joins, stays and leaves", membership),
            ConformanceCase("a member that dies is told of for a minute, and joins anew", deadMember)
        ]
    }

    private static let otherLane = "acme-talk/apns/production"
    private static let group = GroupName(unchecked: "main")

    private static func parkedOfTheLiving(_ rig: EngineRig) async throws {
        guard rig.isShared else { return }
        let other = try await rig.first(Samples.theirs)
        try await other.renew(for: .seconds(20))
        let ours = try await rig.next(other, Samples.ours)
        try await ours.renew(for: .seconds(60))
        _ = try await Samples.accept([Samples.push(1, rig, parked: true)], other, rig)
        // An engine may wait for a renewal before it tells the others its sums.
        try await other.renew(for: .seconds(20))
        let now = rig.clock.now
        try expect(try await ours.claim(Samples.lane, due: now, limit: 5).isEmpty, "not to be claimed")
        try expect(try await ours.nextDue(Samples.lane) == nil, "not due here")
        let load = try await ours.load()
        try expect(load.rows == 1 && load.lanes.isEmpty, "counted as owed, not as waiting for us")
        try expect(try await other.load().lanes == [Samples.lane: 1], "it waits for its owner")
        rig.clock.advance(by: .seconds(21))
        _ = try await ours.takeOver([Samples.lane], limit: 10)
        try expect(try await ours.nextDue(Samples.lane) == now, "due here once its owner is dead")
        try expect(try await ours.load().lanes == [Samples.lane: 1], "and counted")
        let claimed = try await ours.claim(Samples.lane, due: rig.clock.now, limit: 5)
        try expect(claimed.count == 1, "and claimed")
    }

    private static func namedLanes(_ rig: EngineRig) async throws {
        guard rig.isShared else { return }
        let dead = try await rig.first(Samples.theirs)
        try await dead.renew(for: .seconds(20))
        var stranger = Samples.push(2, rig)
        stranger.lane = otherLane
        _ = try await Samples.accept([Samples.push(1, rig), stranger], dead, rig)
        let ours = try await rig.next(dead, Samples.ours)
        try await ours.renew(for: .seconds(600))
        let third = try await rig.next(ours, OwnerID(Samples.digest(3)))
        try await third.renew(for: .seconds(600))
        rig.clock.advance(by: .seconds(21))
        try expect(try await ours.takeOver([Samples.lane], limit: 10) == 1, "that of our lane alone")
        try expect(try await ours.takeOver([], limit: 10) == 0, "none without lanes")
        try expect(
            try await third.takeOver([Samples.lane, otherLane], limit: 10) == 1, "the other finds its own")
        let claimed = try await third.claim(otherLane, due: rig.clock.now, limit: 10)
        try expect(claimed.map(\.id) == [stranger.id], "and can send it")
    }

    private static func lettingGo(_ rig: EngineRig) async throws {
        let ours = try await rig.first(Samples.ours)
        try await ours.renew(for: .seconds(60))
        var stranger = Samples.push(2, rig, parked: true)
        stranger.lane = otherLane
        var held = Samples.push(3, rig)
        held.lane = otherLane
        let pushes = [Samples.push(1, rig, parked: true), stranger, held]
        let admissions = try await Samples.accept(pushes, ours, rig)
        let old = try Samples.step(stranger, admissions[1], .settle)
        let count = try await ours.letGo(besides: [Samples.lane], limit: 10)
        guard rig.isShared else { return try expect(count == 0, "there is nobody to leave it to") }
        try expect(count == 1, "what is parked in another lane goes, and nothing else")
        try expect(try await ours.letGo(besides: [Samples.lane], limit: 10) == 0, "once")
        let now = rig.clock.now
        try expect(try await ours.settle([old], feedback: [], now: now) == [false], "with a new epoch")
        let heir = try await rig.next(ours, Samples.theirs)
        try await heir.renew(for: .seconds(60))
        try expect(try await heir.takeOver([otherLane], limit: 10) == 1, "found though its owner lives")
        let claimed = try await heir.claim(otherLane, due: now, limit: 10)
        try expect(claimed.map(\.id) == [stranger.id], "and can be sent")
    }

    private static func membership(_ rig: EngineRig) async throws {
        let start = ContinuousClock.now
        let ours = try await rig.first(Samples.ours)
        var theirs: (any Engine)?
        if rig.isShared { theirs = try await rig.next(ours, Samples.theirs) }
        let first = try await ours.enrol(in: [group, .relays], for: .seconds(20))
        try expect(Set(first.map(\.group)) == [group, .relays] && first.count == 2, "in both, alone")
        try expect(first.allSatisfy { $0.isUs && $0.owner == Samples.ours && !$0.hasLeft }, "it is us")
        rig.clock.advance(by: .seconds(5))
        let again = try await ours.enrol(in: [group], for: .seconds(20))
        try expect(again.count == 1 && again[0].joinedAgo >= .seconds(5), "since then")
        try expect(nearly(again[0].aliveFor, .seconds(20), since: start), "alive for the span")
        guard let theirs else { return }
        let seen = try await theirs.enrol(in: [group], for: .seconds(20))
        try expect(seen.count == 2 && seen.count { $0.isUs } == 1, "each sees both")
        try expect(seen.first { $0.isUs }?.owner == Samples.theirs, "and itself")
        rig.clock.advance(by: .seconds(3))
        _ = try await ours.enrol(in: [], for: .seconds(20))
        rig.clock.advance(by: .seconds(2))
        let left = try await theirs.enrol(in: [group], for: .seconds(20)).first { !$0.isUs }
        try expect(left?.hasLeft == true, "it has left")
        try expect(nearly(left?.aliveFor, .seconds(-2), since: start), "two seconds ago")
    }

    /// A server's own clock goes on while the test's stands still: by the time that has really passed, and a
    /// second for rounding.
    ///
    /// - Parameter start: when the span began, or earlier.
    private static func nearly(
        _ span: Duration?, _ wanted: Duration, since start: ContinuousClock.Instant
    ) -> Bool {
        guard let span else { return false }
        let slack = start.duration(to: .now) + .seconds(1)
        return (wanted - slack...wanted + slack).contains(span)
    }

    private static func deadMember(_ rig: EngineRig) async throws {
        guard rig.isShared else { return }
        let start = ContinuousClock.now
        let dead = try await rig.first(Samples.theirs)
        _ = try await dead.enrol(in: [group], for: .seconds(20))
        let ours = try await rig.next(dead, Samples.ours)
        _ = try await ours.enrol(in: [group], for: .seconds(200))
        rig.clock.advance(by: .seconds(30))
        let seen = try await ours.enrol(in: [group], for: .seconds(200)).first { !$0.isUs }
        try expect(seen?.hasLeft == false, "it has not left")
        try expect(nearly(seen?.aliveFor, .seconds(-10), since: start), "dead for ten seconds")
        let back = try await dead.enrol(in: [group], for: .seconds(20)).first { $0.isUs }
        try expect(nearly(back?.joinedAgo, .zero, since: start), "it has joined anew")
        try expect(nearly(back?.aliveFor, .seconds(20), since: start), "for the span")
        rig.clock.advance(by: .seconds(81))
        let rest = try await ours.enrol(in: [group], for: .seconds(200))
        try expect(rest.allSatisfy(\.isUs), "forgotten after a minute")
    }
}
