import PushModel
import PushTesting
import Testing

/// An outbox that owes much in one lane, whichever engine holds it.
struct LargeOutbox {
    static let lane = "acme-chat/apns/production"
    let store: any Engine
    let clock: ManualClock

    /// Parked pushes, `count` of each origin in the range; due after `later`.
    func park(_ count: Int, of origins: Range<Int>, later: Duration = .zero) async throws {
        let now = clock.now
        // Those that are put off are others.
        let first = UInt64(later.components.seconds) * 1_000
        let pushes = origins.flatMap { origin in
            (0..<count).map { number in
                StoredPush(
                    row: 0, id: PushID(Digest16(high: UInt64(origin), low: UInt64(number) + first)),
                    lane: Self.lane, pushClass: .normal, origin: Digest16(high: UInt64(origin), low: 1),
                    record: nil, touchedAt: now, notBefore: now + later, custodyEnds: now + .seconds(86_400),
                    attempt: 0, epoch: 1, parked: true, mark: nil, sealed: [1, 2, 3])
            }
        }
        for start in stride(from: 0, to: pushes.count, by: 5_000) {
            let part = Array(pushes[start..<min(start + 5_000, pushes.count)])
            _ = try await store.accept(part, changes: [], now: now)
        }
    }

    func claim(_ limit: Int) async throws -> [StoredPush] {
        try await store.claim(Self.lane, due: clock.now, limit: limit)
    }

    // MARK: what is expected of every engine

    /// However small the claims, they take turns over origins.
    func expectTurns() async throws {
        try await park(300, of: 0..<1)
        try await park(4, of: 1..<5)
        var served: [UInt64] = []
        for _ in 0..<20 { served += try await claim(1).map(\.origin.high) }
        #expect(served == Array(repeating: [0, 1, 2, 3, 4], count: 4).flatMap(\.self))
        #expect(try await claim(3).map(\.origin.high) == [0, 0, 0])
    }

    /// With one origin owing `many`, a claim serves the others whole.
    func expectOthers(beside many: Int) async throws {
        try await park(many, of: 0..<1)
        try await park(3, of: 1..<4)
        let first = try await claim(1_000)
        #expect(first.count == 1_000)
        let counts = Dictionary(grouping: first, by: \.origin.high).mapValues(\.count)
        #expect(counts == [0: 991, 1: 3, 2: 3, 3: 3])
        // They alternate from the first on.
        #expect(Set(first.prefix(4).map(\.origin.high)) == [0, 1, 2, 3])
    }

    /// Origins whose pushes are all in back-off keep nobody else's in the store.
    ///
    /// - Parameter most: claims by which both are there.
    /// - Parameter together: both come with one claim.
    func expectBackoff(within most: Int, together: Bool) async throws {
        try await park(1, of: 0..<1_000, later: .seconds(60))
        try await park(2, of: 999..<1_000)
        var claimed: [StoredPush] = []
        var rounds = 0
        while together ? claimed.isEmpty : claimed.count < 2, rounds < most {
            claimed += try await claim(50)
            rounds += 1
        }
        #expect(claimed.map(\.origin.high) == [999, 999])
        clock.advance(by: .seconds(60))
        var rest = 0
        for _ in 0..<100 { rest += try await claim(50).count }
        #expect(rest == 1_000)
    }

    /// More origins than one claim serves, which is 16, all have their turn, each push once.
    func expectEach() async throws {
        try await park(2, of: 0..<200)
        var ids: [PushID] = []
        for _ in 0..<25 { ids += try await claim(16).map(\.id) }
        #expect(Set(ids).count == 400)
        // Nobody is served a second time before everybody was served once.
        #expect(Set(ids.prefix(200).map(\.value.high)).count == 200)
    }
}
