import MarmotPush
import PushModel
import PushTesting
import Simulators
import Synchronization
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

@Suite("Whether a relay is ready, role by role", .timeLimit(.minutes(30)))
struct ReadinessTests {
    private func health(
        _ relay: RunningRelay, _ instance: String? = nil
    ) async throws -> (status: Int, json: JSONValue?) {
        let answer = try await relay.admin("/health/ready" + (instance.map { "?instance=\($0)" } ?? ""))
        // A refusal is a sentence.
        return (answer.status, try? JSONValue.parse(answer.body))
    }

    @Test("Nostr relays that are out leave Zulip ready, and their return makes Marmot ready too")
    func nostrOut() async throws {
        try await RelayStage.with(MarmotTests.text()) { stage in
            stage.sandbox.nostr.turn { $0.refusesRequests = .error }
            try await stage.run { relay in
                try await asked(for: "a relay that is ready") { try await health(relay).status == 200 }
                let seen = try await health(relay)
                #expect(seen.json?["ready"]?.bool == true && seen.json?["checks"]?["store"]?.bool == true)
                #expect(seen.json?["roles"]?["zulip-main"]?.bool == true)
                #expect(seen.json?["roles"]?["marmot-main"]?.bool == false)
                #expect(try await health(relay, "zulip-main").status == 200)
                #expect(try await health(relay, "marmot-main").status == 503)
                #expect(try await health(relay, "nobody").status == 404)
                stage.sandbox.nostr.turn { $0.refusesRequests = nil }
                stage.sandbox.nostr.killConnections()
                try await asked(for: "a Marmot instance that is ready") {
                    try await health(relay, "marmot-main").status == 200
                }
            }
        }
    }

    @Test("A store that fails takes Zulip's readiness, and leaves Marmot its own")
    func storeOut() async throws {
        let fault = FailingEngine.Fault()
        try await RelayStage.running(MarmotTests.text(), engine: { FailingEngine($0, fault) }) { relay in
            try await asked(for: "a Marmot instance that is ready") {
                try await health(relay, "marmot-main").status == 200
            }
            fault.set(.unavailable)
            try await asked(for: "a relay that is not ready") { try await health(relay).status == 503 }
            // The relay as a whole may have been out for another reason, a moment before.
            try await asked(for: "a Zulip instance that is not ready") {
                try await health(relay, "zulip-main").status == 503
            }
            #expect(try await health(relay, "marmot-main").status == 200)
            fault.set(nil)
            try await asked(for: "a relay that is ready") { try await health(relay).status == 200 }
        }
    }

    @Test("While the store owes an answer, status shows the rest and does not wait for it")
    func storeSilent() async throws {
        let gate = LoadGate()
        try await RelayStage.running(
            engine: { GatedLoads($0, gate) }, spans: { $0.spans.watch.patience = .seconds(1) }
        ) { relay in
            defer { gate.open() }
            try await asked(for: "a relay that is ready") { try await health(relay).status == 200 }
            gate.shut()
            await gate.signal.until(for: "a look at the store that is held") { gate.held > 0 }
            try await asked(for: "a store that is known to be silent") {
                try await health(relay).json?["checks"]?["store"]?.bool == false
            }
            let status = try JSONValue.parse(try await relay.admin("/status").body)
            #expect(status["outbox"]?["rows"] == .null && status["origins"] == .null)
            #expect(status["lanes"]?.array?.isEmpty == false)
            gate.open()
            try await asked(for: "a relay that is ready again") { try await health(relay).status == 200 }
        }
    }

    @Test("A relay whose every role is out is not ready")
    func alone() async throws {
        let text = MarmotTests.text().split(separator: "\n", omittingEmptySubsequences: false)
            .filter { !$0.contains("zulip-main") }.joined(separator: "\n")
        try await RelayStage.with(text) { stage in
            stage.sandbox.nostr.turn { $0.refusesRequests = .error }
            try await stage.run { relay in
                try await asked(for: "a store that is well") {
                    try await health(relay).json?["checks"]?["store"]?.bool == true
                }
                #expect(try await health(relay).status == 503)
            }
        }
    }
}

/// Holds the store's answers about what is owed while it is shut.
private final class LoadGate: Sendable {
    private let state = Mutex((isShut: false, held: 0))
    let signal = Signal()

    var held: Int { state.withLock { $0.held } }

    func shut() { state.withLock { $0.isShut = true } }

    func open() {
        state.withLock { $0.isShut = false }
        signal.changed()
    }

    func pass() async {
        let isShut = state.withLock { state in
            if state.isShut { state.held += 1 }
            return state.isShut
        }
        guard isShut else { return }
        signal.changed()
        await signal.until(for: "a gate that opens") { state.withLock { !$0.isShut } }
    }
}

private final class GatedLoads: ForwardingEngine {
    let base: any Engine
    private let gate: LoadGate

    init(_ engine: any Engine, _ gate: LoadGate) { (base, self.gate) = (engine, gate) }

    func load() async throws(StoreError) -> (rows: Int, bytes: Int, lanes: [String: Int]) {
        await gate.pass()
        return try await base.load()
    }
}
