import HTTPIngress
import PushModel
import PushTesting
import Testing

@Suite("When a listener looks at deadlines, and when it rests", .timeLimit(.minutes(30)))
struct SweepRestTests {
    private let limits = patientLimits { $0.strainLasts = .seconds(600) }

    private func isSweeping(_ clock: ManualClock) -> Bool {
        clock.untilNext.map { $0 <= limits.sweep } ?? false
    }

    /// Lets time pass until it rests.
    private func rests(_ clock: ManualClock, at place: SourceLocation = #_sourceLocation) async throws {
        for _ in 0..<100 where isSweeping(clock) { try await clock.pass(limits.sweep) }
        #expect(clock.untilNext == limits.restSweep, sourceLocation: place)
    }

    @Test("A connection begins the looks, a kept one keeps them, and they end when the last has gone")
    func connection() async throws {
        let (clock, load) = (ManualClock(), Signal())
        try await withListener(limits: limits, world: clock.world(seed: 1), load: load) { listener, port in
            await clock.sleepers(atLeast: 1)
            #expect(clock.untilNext == limits.restSweep)
            let (first, second) = (try await RawClient.connect(port), try await RawClient.connect(port))
            await load.until { listener.load.connections == 2 }
            await clock.sleepers(atLeast: 1)
            #expect(isSweeping(clock))
            try await first.send(post("/echo", "one"))
            #expect(try await first.answer().text == "one")
            for _ in 0..<50 { try await clock.pass(limits.sweep) }
            #expect(isSweeping(clock))
            first.close()
            await load.until { listener.load.connections == 1 }
            for _ in 0..<10 { try await clock.pass(limits.sweep) }
            #expect(isSweeping(clock))
            second.close()
            await load.until { listener.load.connections == 0 }
            try await rests(clock)
        }
    }

    @Test("A client that comes after a long rest is cut at its deadline as ever")
    func deadline() async throws {
        let (clock, load) = (ManualClock(), Signal())
        var limits = limits
        limits.head = .seconds(5)
        try await withListener(limits: limits, world: clock.world(seed: 1), load: load) { listener, port in
            for _ in 0..<10 { try await clock.pass(limits.restSweep) }
            let slow = try await RawClient.connect(port)
            try await slow.send("GET /ec")
            await load.until { listener.load.connections == 1 }
            var hasHeard = false
            let began = clock.elapsed
            for _ in 0..<500 where !hasHeard {
                try await clock.pass(.seconds(1))
                hasHeard = slow.hasHeard
            }
            #expect(try await slow.answer().status == 408)
            #expect(clock.elapsed - began >= .seconds(5))
            slow.close()
        }
    }

    @Test("A stop is not kept waiting by a rest")
    func stop() async throws {
        let clock = ManualClock()
        try await withListener(limits: limits, world: clock.world(seed: 1)) { _, _ in
            await clock.sleepers(atLeast: 1)
        }
        #expect(clock.sleeping == 0 && clock.elapsed == .zero)
    }
}
