import PushModel
import PushTesting
import Testing
import ZulipPush

@testable import RelayProgram

@Suite("An origin over PostgreSQL", .timeLimit(.minutes(30)))
struct PostgresOriginTests {
    @Test("A phone that joined is notified by the next process on the database")
    func restart() async throws {
        try await PostgresStage.with { here in
            let text = RunningOrigin.both() + "store: { url: \"\(here.url)\" }\n"
            var kept: OriginPhone?
            try await here.stage.run(text) { relay in
                let running = RunningOrigin(relay: relay, origin: relay)
                kept = try await OriginPhone(.apns, .zap, running, key: try await running.begin())
            }
            var phone = try #require(kept)
            try await here.stage.run(text) { relay in
                let running = RunningOrigin(relay: relay, origin: relay)
                try await phone.move(to: running)
                let id = try await running.notify("Dinner is ready")
                #expect(try await phone.opened(1).count == 1)
                #expect(try await running.became(of: id) == ["accepted"])
                // It forgets itself, and nobody is left.
                #expect(try await phone.played.forget(0) == [200])
                _ = try await running.notify("Anybody?", devices: 0)
            }
        }
    }
}
