import PushModel

/// Rules for what ends with a registration.
extension EngineConformance {
    static var endings: [ConformanceCase] {
        [
            ConformanceCase("a registration that ends takes along what is owed to it", taken),
            ConformanceCase("a change that is refused, or renews, ends nothing that is owed", kept),
            ConformanceCase("a push of a registration that has ended is not written", late),
            ConformanceCase("an owner hears of what another's commit has ended", told)
        ]
            + (1...4 as ClosedRange<UInt64>).map { seed in
                ConformanceCase("what is owed follows its registration, whatever happens (seed \(seed))") {
                    var model = EndingModel(seed: seed)
                    try await model.run($0)
                }
            }
    }

    /// A push that was made from a registration with that address.
    static func push(
        _ number: UInt64, of record: UInt64, at address: UInt64? = 7, _ rig: EngineRig, parked: Bool = false,
        mark: UInt64? = nil
    ) -> StoredPush {
        var push = Samples.push(number, rig, parked: parked, mark: mark)
        (push.record, push.address) = (Samples.digest(record), address.map(Samples.digest))
        return push
    }

    private static func taken(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let told = Noted<[PushID]>([])
        engine.ended.hear { ids in told.change { $0 += ids } }
        var gone = Samples.record(1, version: 9, address: nil)
        gone.state = .tombstone
        let ways: [StoredChange] = [
            .delete(Samples.digest(1), if: .any), .expire(Samples.digest(1), at: now, if: .any),
            .put(gone, if: .any), .put(Samples.record(1, address: 8), if: .any)
        ]
        _ = try await engine.apply([.put(Samples.record(2, address: 7), if: .any)], now: now)
        let others = [push(901, of: 2, rig), push(902, of: 2, rig, parked: true), Samples.push(903, rig)]
        _ = try await Samples.accept(others, engine, rig)
        for (index, way) in ways.enumerated() {
            let first = UInt64(index * 10)
            _ = try await engine.apply([.put(Samples.record(1, address: 7), if: .any)], now: now)
            let pushes = [
                push(first, of: 1, rig, mark: 50), push(first + 1, of: 1, rig, parked: true, mark: 51)
            ]
            let admissions = try await Samples.accept(pushes, engine, rig)
            try expect(try await engine.load().rows == 5, "owed, \(index)")
            // Also by feedback.
            if index % 2 == 0 {
                _ = try await engine.apply([way], now: now)
            } else {
                _ = try await engine.settle([], feedback: [way], now: now)
            }
            try expect(try await engine.load().rows == 3, "what it was owed is gone, \(index)")
            try expect(told.value == [pushes[0].id], "whoever may hold it has been told, \(index)")
            told.change { $0 = [] }
            for (push, admission) in zip(pushes, admissions) {
                let step = try Samples.step(push, admission, .settle)
                let settled = try await engine.settle([step], feedback: [], now: now)
                try expect(settled == [false], "no word of it counts any more, \(index)")
            }
        }
        let claimed = try await engine.claim(Samples.lane, due: now, limit: 10)
        try expect(claimed.map(\.id) == [others[1].id], "another's is still there")
    }

    private static func kept(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        let told = Noted<[PushID]>([])
        engine.ended.hear { ids in told.change { $0 += ids } }
        _ = try await engine.apply([.put(Samples.record(1, address: 7), if: .any)], now: now)
        let pushes = [
            push(1, of: 1, rig), push(2, of: 1, rig, parked: true), push(3, of: 1, at: nil, rig)
        ]
        _ = try await Samples.accept(pushes, engine, rig)
        let refused: [StoredChange] = [
            .delete(Samples.digest(1), if: .any), .put(Samples.record(5), if: .revision(99))
        ]
        try expect(try await engine.apply(refused, now: now) == .refused(index: 1), "all or none")
        _ = try await engine.apply([.put(Samples.record(1, touched: 2_000, address: 7), if: .any)], now: now)
        let stale = Condition.madeFrom(touchedAt: UnixTime(milliseconds: 1_999), address: nil)
        _ = try await engine.settle([], feedback: [.expire(Samples.digest(1), at: now, if: stale)], now: now)
        try expect(try await engine.load().rows == 3 && told.value.isEmpty, "nothing ends")
        _ = try await engine.apply([.put(Samples.record(1, address: 8), if: .any)], now: now)
        try expect(try await engine.load().rows == 1, "what names no address follows its registration")
        _ = try await engine.apply([.delete(Samples.digest(1), if: .any)], now: now)
        try expect(try await engine.load().rows == 0, "to its end")
    }

    private static func late(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let now = rig.clock.now
        _ = try await engine.apply([.put(Samples.record(1, address: 7), if: .any)], now: now)
        func admitted(_ number: UInt64, at address: UInt64? = 7, mark: UInt64? = nil) async throws -> Bool {
            let pushes = [
                push(number, of: 1, at: address, rig, mark: mark ?? number), Samples.push(number + 500, rig)
            ]
            let admissions = try await Samples.accept(pushes, engine, rig)
            guard case .owed = admissions[1] else { return false }
            if case .owed = admissions[0] { return true }
            try expect(admissions[0] == .gone, "and is said to be gone")
            return false
        }
        try expect(try await admitted(1), "while it stands")
        _ = try await engine.apply([.put(Samples.record(1, address: 8), if: .any)], now: now)
        try expect(try await !admitted(2), "not to the address that it had before")
        try expect(try await admitted(3, at: 8), "to the one that it has")
        try expect(try await admitted(4, at: nil), "or where nobody knows")
        _ = try await engine.apply([.delete(Samples.digest(1), if: .any)], now: now)
        try expect(try await !admitted(5, at: 8), "not once it is gone")
        try expect(try await !admitted(6, at: nil), "whatever it says")
        _ = try await engine.apply([.put(Samples.record(1, address: 8), if: .any)], now: now)
        try expect(try await admitted(7, at: 8, mark: 5), "what was not written left no mark")
    }

    private static func told(_ rig: EngineRig) async throws {
        guard rig.isShared else { return }
        let theirs = try await rig.first(Samples.theirs)
        try await theirs.renew(for: .seconds(20))
        let ours = try await rig.next(theirs, Samples.ours)
        try await ours.renew(for: .seconds(20))
        let now = rig.clock.now
        let told = Noted<[PushID]>([])
        theirs.ended.hear { ids in told.change { $0 += ids } }
        _ = try await ours.apply([.put(Samples.record(1, address: 7), if: .any)], now: now)
        let pushes = [push(1, of: 1, rig), push(2, of: 1, rig, parked: true), Samples.push(3, rig)]
        _ = try await Samples.accept(pushes, theirs, rig)
        _ = try await ours.apply([.delete(Samples.digest(1), if: .any)], now: now)
        for _ in 0..<3 { try await theirs.renew(for: .seconds(20)) }
        try expect(told.value == [pushes[0].id], "of what it may hold, once")
        try expect(try await theirs.load().rows == 1, "and counts what is left")
        let claimed = try await theirs.claim(Samples.lane, due: now, limit: 5)
        try expect(claimed.isEmpty, "what was parked is gone")
    }
}

/// Registrations come, change and go at random, while pushes are made from them, wait, are retried and end. A
/// model says what must be stored.
struct EndingModel {
    private struct Registration {
        var isLive = false
        var address: UInt64 = 0
        /// All that it ever named.
        var addresses: Set<UInt64> = []
        var touched: Int64 = 0
    }

    private struct Owed {
        var push: StoredPush
        var row: Int64
        var epoch: Int64
        var registration: Int
        var parked: Bool
    }

    private var random: SeededRandom
    private var registrations = [Registration](repeating: Registration(), count: 4)
    private var owed: [PushID: Owed] = [:]
    private var ended: Set<PushID> = []
    private var next: UInt64 = 0
    private var steps: [String] = []

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    private mutating func roll(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    mutating func run(_ rig: EngineRig) async throws {
        let engine = try await rig.first(Samples.ours)
        let told = Noted<Set<PushID>>([])
        engine.ended.hear { ids in told.change { $0.formUnion(ids) } }
        for step in 0..<120 {
            rig.clock.advance(by: .milliseconds(1))
            try await take(engine, rig)
            let rows = try await engine.load().rows
            try expect(
                rows == owed.count, "step \(step): \(rows) rows for \(owed.count), \(steps.suffix(12))")
            try expect(told.value == ended, "step \(step): told of others, \(steps.suffix(12))")
            let keys = registrations.indices.map { Samples.digest(UInt64($0)) }
            let found = try await engine.find(keys, now: rig.clock.now)
            for (record, model) in zip(found, registrations) {
                try expect((record?.state == .live) == model.isLive, "step \(step), \(steps.suffix(12))")
            }
        }
    }

    private mutating func take(_ engine: any Engine, _ rig: EngineRig) async throws {
        let one = roll(registrations.count)
        switch roll(10) {
        case 0, 1, 2: try await register(one, engine, rig)
        case 3: try await end(one, engine, rig)
        case 4, 5, 6: try await notify(one, engine, rig)
        case 7: try await answer(engine, rig)
        case 8: try await refuse(engine, rig)
        default: try await claim(engine, rig)
        }
    }

    /// For the first time, again, or with another token.
    private mutating func register(_ one: Int, _ engine: any Engine, _ rig: EngineRig) async throws {
        let address = UInt64(100 + 2 * one + roll(2))
        let touched = rig.clock.now.milliseconds
        steps.append("register \(one) at \(address)")
        let record = Samples.record(UInt64(one), touched: touched, address: address)
        _ = try await engine.apply([.put(record, if: .any)], now: rig.clock.now)
        if registrations[one].address != address { drop(one) }
        (registrations[one].isLive, registrations[one].address) = (true, address)
        registrations[one].addresses.insert(address)
        registrations[one].touched = touched
    }

    private mutating func end(_ one: Int, _ engine: any Engine, _ rig: EngineRig) async throws {
        steps.append("end \(one)")
        let key = Samples.digest(UInt64(one))
        var tombstone = Samples.record(UInt64(one))
        tombstone.state = .tombstone
        let change: StoredChange = roll(2) == 0 ? .delete(key, if: .any) : .put(tombstone, if: .any)
        _ = try await engine.apply([change], now: rig.clock.now)
        registrations[one].isLive = false
        drop(one)
    }

    /// From the registration as it is, or as it was.
    private mutating func notify(_ one: Int, _ engine: any Engine, _ rig: EngineRig) async throws {
        // A role makes a push from what it has found.
        let addresses = registrations[one].addresses.sorted()
        guard !addresses.isEmpty else { return }
        next += 1
        let address = addresses[roll(addresses.count)]
        let parked = roll(3) == 0
        var push = EngineConformance.push(
            next, of: UInt64(one), at: address, rig, parked: parked, mark: next)
        push.touchedAt = UnixTime(milliseconds: registrations[one].touched)
        steps.append("push \(next) of \(one) at \(address)\(parked ? ", parked" : "")")
        let stands = registrations[one].isLive && registrations[one].address == address
        guard owed.count < EngineConformance.rowBound - 2 else { return }
        switch try await Samples.accept([push], engine, rig)[0] {
        case .owed(let row, let epoch):
            try expect(stands, "owed to nobody, \(steps.suffix(12))")
            owed[push.id] = Owed(push: push, row: row, epoch: epoch, registration: one, parked: parked)
        case .gone: try expect(!stands, "refused without a reason, \(steps.suffix(12))")
        case .repeated: throw ConformanceFault(description: "a repeat of nothing, \(steps.suffix(12))")
        }
    }

    private mutating func some() -> Owed? {
        let ids = owed.keys.sorted()
        return ids.isEmpty ? nil : owed[ids[roll(ids.count)]]
    }

    private mutating func settlement(_ one: Owed, _ step: Settlement.Step) -> StoredSettlement {
        StoredSettlement(
            row: one.row, id: one.push.id, epoch: one.epoch, mark: one.push.mark, step: step, first: .retry)
    }

    /// It is accepted, or waits: in memory, or in the store.
    private mutating func answer(_ engine: any Engine, _ rig: EngineRig) async throws {
        guard let one = some(), let lane = LaneName(Samples.lane) else { return }
        let isEnd = roll(3) == 0
        let parked = roll(2) == 0
        steps.append("answer \(one.push.id.text.suffix(4)): \(isEnd ? "end" : parked ? "parked" : "held")")
        let retry = Settlement.Step.retry(notBefore: rig.clock.now, attempt: 1, lane: lane, parked: parked)
        let settled = try await engine.settle(
            [settlement(one, isEnd ? .settle : retry)], feedback: [], now: rig.clock.now)
        try expect(settled == [true], "it is ours, \(steps.suffix(12))")
        if isEnd { owed[one.push.id] = nil } else { owed[one.push.id]?.parked = parked }
    }

    /// Its token is dead, which ends the registration unless it has changed since.
    private mutating func refuse(_ engine: any Engine, _ rig: EngineRig) async throws {
        guard let one = some() else { return }
        steps.append("refuse \(one.push.id.text.suffix(4)) of \(one.registration)")
        let made = Condition.madeFrom(touchedAt: one.push.touchedAt, address: one.push.address)
        let word = StoredChange.expire(
            Samples.digest(UInt64(one.registration)), at: rig.clock.now, if: made)
        _ = try await engine.settle([settlement(one, .settle)], feedback: [word], now: rig.clock.now)
        owed[one.push.id] = nil
        let registration = registrations[one.registration]
        guard registration.isLive, registration.touched <= one.push.touchedAt.milliseconds else { return }
        registrations[one.registration].isLive = false
        drop(one.registration)
    }

    private mutating func claim(_ engine: any Engine, _ rig: EngineRig) async throws {
        steps.append("claim")
        for push in try await engine.claim(Samples.lane, due: rig.clock.now, limit: 3) {
            try expect(owed[push.id] != nil, "what has ended is given out, \(steps.suffix(12))")
            owed[push.id]?.row = push.row
            owed[push.id]?.epoch = push.epoch
            owed[push.id]?.parked = false
        }
    }

    private mutating func drop(_ one: Int) {
        for (id, push) in owed where push.registration == one {
            if !push.parked { ended.insert(id) }
            owed[id] = nil
        }
    }
}
