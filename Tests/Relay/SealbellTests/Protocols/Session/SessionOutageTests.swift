import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Testing
import WebClient

@testable import RelayProgram

@Suite("A Session relay whose store is out for longer than calls are held", .timeLimit(.minutes(30)))
struct SessionOutageTests {
    @Test("What storage nodes tell meanwhile arrives once, when the store is back")
    func outage() async throws {
        let fault = FailingEngine.Fault()
        try await RelayStage.with(RelayStage.session()) { stage in
            try await stage.run(
                hold: .milliseconds(50), engine: { FailingEngine($0, fault) },
                spans: { $0.spans.swarm.takeAgain = .milliseconds(50) }
            ) { relay in
                let phone = try SessionPhone(.apns)
                let arrivals = stage.apns.subscribe(token: phone.token)
                #expect(try await phone.subscribe(at: relay) == [.added])
                try await stage.sandbox.session.watch(1)
                fault.set(.unavailable)
                stage.sandbox.session.store("held up", for: phone)
                try await relay.until("notifications", reaches: 3)
                try await asked(for: "a notice that the store has refused") {
                    try await relay.admin("/metrics").text.split(separator: "\n").contains { line in
                        line.hasPrefix("sealbell_session_notices_total") && line.contains("overloaded")
                    }
                }
                fault.set(nil)
                #expect(try phone.message(try await arrivals.next("a push")).text == "held up")
                try await relay.drained()
                #expect(stage.apns.deliveries().count == 1)
            }
        }
    }
}
