import PushTesting
import Simulators
import StatusPush
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

@Suite("Status relays one after the other on one network", .timeLimit(.minutes(30)))
struct StatusRestartTests {
    @Test("What one has reported as failed the next does not send, although the node's store hands it out")
    func failedBefore() async throws {
        try await RelayStage.with(RelayStage.status()) { stage in
            let node = stage.sandbox.waku.node
            var (cast, _) = try await Self.failed(on: stage)
            let arrivals = stage.apns.subscribe(token: cast.token)
            try await stage.run { relay in
                try await relay.listens()
                // Registration and request, out of the store.
                try await asked(for: "the store's messages") {
                    try await Self.waku(relay, "received") ?? 0 >= 2
                }
                // Asked again as senders do, which shows that it can be sent.
                node.inject(cast.request())
                try await asked(for: "one more") { try await Self.waku(relay, "received") ?? 0 >= 3 }
                // Answered are the old registration, as outdated, and this request.
                try await asked(for: "a report") { try await Self.waku(relay, "published") ?? 0 >= 2 }
                _ = try await arrivals.next("a push")
                #expect(try await relay.status("requests")?.int64 == 1)
                try await relay.drained()
            }
            // The relay has ended, and had taken in whatever it heard.
            #expect(stage.apns.deliveries().count == 1)
        }
    }

    @Test("A query out of the store for which nobody waits any more is not answered; a later one is")
    func staleQuery() async throws {
        try await RelayStage.with(RelayStage.status()) { stage in
            let node = stage.sandbox.waku.node
            var kept: StatusCast?
            try await stage.run { relay in
                try await relay.listens()
                var cast = try StatusCast(at: try relay.statusKey(), .apns)
                node.inject(cast.registration())
                try await relay.statusReaches(1, "registered")
                kept = cast
            }
            var cast = try #require(kept)
            var old = cast.query()
            old.timestamp -= 300 * 1_000_000_000
            stage.sandbox.waku.network.archive(old, on: WakuNodeSimulator.pubsubTopic)
            try await stage.run { relay in
                try await relay.listens()
                try await asked(for: "a query that is passed over") {
                    try await relay.admin("/metrics").text.contains(
                        #"sealbell_status_messages_total{instance="main",outcome="stale"} 1"#)
                }
                node.inject(cast.query())
                try await relay.statusReaches(1, "queries")
                #expect(try await relay.status("queries")?.int64 == 1)
            }
        }
    }

    @Test("Nor does the next when the node's cache hands it out as if it were new")
    func failedBeforeInCache() async throws {
        try await RelayStage.with(RelayStage.status()) { stage in
            let node = stage.sandbox.waku.node
            var (cast, request) = try await Self.failed(on: stage)
            // As if the one before had it from the store, and had ended before it read the cache.
            stage.sandbox.waku.network.forget()
            // The network passes on nothing twice.
            request.timestamp -= 1
            let arrivals = stage.apns.subscribe(token: cast.token)
            try await stage.run { relay in
                try await relay.listens()
                try await asked(for: "no gap") { try await relay.status("waku")?["gap"]?.bool == false }
                node.inject(request)
                try await asked(for: "the kept message") { try await Self.waku(relay, "received") ?? 0 >= 1 }
                node.inject(cast.request())
                _ = try await arrivals.next("a push")
                try await asked(for: "a report") { try await Self.waku(relay, "published") ?? 0 >= 1 }
                #expect(try await relay.status("requests")?.int64 == 1)
                try await relay.drained()
            }
            #expect(stage.apns.deliveries().count == 1)
        }
    }

    /// A relay that reports a request as failed, and ends.
    ///
    /// - Returns: who is registered there, and the request; push services are well again.
    private static func failed(
        on stage: RelayStage
    ) async throws -> (cast: StatusCast, request: SimulatedWakuMessage) {
        let node = stage.sandbox.waku.node
        var kept: (cast: StatusCast, request: SimulatedWakuMessage)?
        try await stage.run { relay in
            try await relay.listens()
            // So that all of it comes live.
            try await asked(for: "no gap") { try await relay.status("waku")?["gap"]?.bool == false }
            var cast = try StatusCast(at: try relay.statusKey(), .apns)
            node.inject(cast.registration())
            try await relay.statusReaches(1, "registered")
            stage.apns.turn { $0.errorShare = 1 }
            let request = cast.request()
            node.inject(request)
            // The answers to both.
            try await asked(for: "a report") { try await waku(relay, "published") ?? 0 >= 2 }
            // Withdrawn, so it was reported as failed.
            #expect(try await relay.owed() == 0)
            kept = (cast, request)
        }
        stage.apns.turn { $0.errorShare = 0 }
        return try #require(kept)
    }

    private static func waku(_ relay: RunningRelay, _ name: String) async throws -> Int64? {
        try await relay.status("waku")?[name]?.int64
    }
}
