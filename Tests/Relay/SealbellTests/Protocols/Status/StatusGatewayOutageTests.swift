import PushModel
import PushTesting
import Simulators
import StatusPush
import Synchronization
import Testing

@testable import RelayProgram

@Suite("Status with an external gorush, and a store that is out for a moment", .timeLimit(.minutes(30)))
struct StatusGatewayOutageTests {
    @Test("A request of which gorush has sent nothing may come again byte for byte, when the store is back")
    func reopened() async throws {
        try await GorushDouble.with { gorush in
            let keys = ", gorush: { url: \"http://127.0.0.1:\(gorush.port)\" }"
            let gate = WriteGate { !gorush.calls.isEmpty }
            try await RelayStage.with(RelayStage.status(keys)) { stage in
                let node = stage.sandbox.waku.node
                try await stage.run(engine: { GatedEngine($0, gate) }) { relay in
                    try await relay.listens()
                    var cast = try StatusCast(at: try relay.statusKey(), .apns)
                    node.inject(cast.registration())
                    try await relay.statusReaches(1, "registered")
                    gorush.turnOnce(.other(500, "{}"))
                    let request = cast.request()
                    node.inject(request)
                    try await asked(for: "a store that has refused a write") { gate.refused == 1 }
                    try await asked(for: "a request that may come again") { gate.written > 0 }
                    // The same bytes, in another message of the network.
                    var again = request
                    again.timestamp += 1_000_000
                    node.inject(again)
                    try await asked(for: "a second call") { gorush.calls.count == 2 }
                }
            }
        }
    }
}

/// Refuses one write, once it is due, and counts those behind it.
private final class WriteGate: Sendable {
    private let isDue: @Sendable () -> Bool
    private let counts = Mutex((refused: 0, written: 0))

    init(isDue: @escaping @Sendable () -> Bool) { self.isDue = isDue }

    var refused: Int { counts.withLock { $0.refused } }
    var written: Int { counts.withLock { $0.written } }

    func check() throws(StoreError) {
        guard isDue() else { return }
        let isFirst = counts.withLock { counts in
            defer { counts.refused = 1 }
            return counts.refused == 0
        }
        if isFirst { throw StoreError(.unavailable) }
    }

    func wrote() { counts.withLock { $0.written += $0.refused } }
}

private final class GatedEngine: ForwardingEngine {
    let base: any Engine
    private let gate: WriteGate

    init(_ engine: any Engine, _ gate: WriteGate) { (base, self.gate) = (engine, gate) }

    func apply(_ changes: [StoredChange], now: UnixTime) async throws(StoreError) -> Applied {
        let puts = changes.contains { if case .put = $0 { true } else { false } }
        guard puts else { return try await base.apply(changes, now: now) }
        try gate.check()
        let applied = try await base.apply(changes, now: now)
        gate.wrote()
        return applied
    }
}
