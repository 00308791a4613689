import Delivery
import Foundation
import MarmotPush
import PushModel
import PushTesting
import Simulators
import Synchronization
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// Nobody asks for metrics or status here, unless a test says so: an alert hangs on nobody's asking.
@Suite("What an operator is told without asking", .timeLimit(.minutes(30)))
struct AlertMonitorTests {
    /// Waits for a line of the log.
    private func told(
        _ phase: String, _ alert: String, _ subject: String = "", _ stage: RelayStage
    ) async throws {
        let name = subject.isEmpty ? "" : ",\"note\":\"\(subject)"
        try await asked(for: "\(alert) \(phase)") {
            stage.log.all.contains {
                $0.contains("\"event\":\"alert \(phase)\"") && $0.contains("\"alert\":\"\(alert)\"")
                    && (name.isEmpty || $0.contains(name))
            }
        }
    }

    @Test(
        "A store that is away, and one that takes no writes, are told though nobody asks, and their end too")
    func store() async throws {
        for reads in [true, false] {
            let fault = FailingEngine.Fault()
            try await RelayStage.running(engine: { FailingEngine($0, fault) }) { relay in
                // A relay that finds no store at all does not start.
                try await asked(for: "a relay that is ready") {
                    try await relay.admin("/health/ready").status == 200
                }
                fault.set(.unavailable, reads: reads)
                try await told("raised", "store_failing", "", relay.stage)
                fault.set(nil)
                try await told("cleared", "store_failing", "", relay.stage)
            }
        }
    }

    @Test("A store that takes everything but outcomes is told with its cause, and unready; both end")
    func outcomes() async throws {
        let fault = FailingEngine.Fault()
        try await RelayStage.with { stage in
            try await stage.run(
                engine: { FailingEngine($0, fault) }, spans: { $0.limits.renewEvery = .milliseconds(200) }
            ) { relay in
                let (server, phone) = try await relay.join(.apns)
                fault.set(settling: .unavailable)
                #expect(try await server.notify(.test(time: 1), [phone], relay).status == 200)
                try await told("raised", "store_failing", "", stage)
                let status = String(decoding: try await relay.admin("/status").body, as: UTF8.self)
                #expect(status.contains("outcomes of 1 push (unavailable)"))
                #expect(try await relay.admin("/health/ready").status == 503)
                fault.set(settling: nil)
                try await told("cleared", "store_failing", "", stage)
                #expect(try await relay.admin("/health/ready").status == 200)
                try await relay.drained()
                #expect(stage.apns.counters.doubles == 0)
            }
        }
    }

    @Test("A disk is told of while pushes are accepted still, and its end when there is room to spare")
    func disk() async throws {
        let free = Noted(DiskSpace.low)
        let looks = AwaitedCount()
        /// Whatever the watch had begun to judge by then, it has judged by the new figure since.
        func set(_ bytes: Int64) async {
            free.set(bytes)
            // Each look asks for two places; the one under way may have asked for both before.
            await looks.wait(for: looks.count + 6)
        }
        try await RelayStage.with { stage in
            func lines(_ event: String) -> Int {
                stage.log.all.count { $0.contains(event) && $0.contains("\"alert\":\"disk_low\"") }
            }
            try await stage.run(
                spans: {
                    $0.freeBytes = { _ in
                        looks.add()
                        return free.value
                    }
                }
            ) { relay in
                await set(DiskSpace.low)
                #expect(lines("alert raised") == 0)
                free.set(DiskSpace.low - 1)
                try await told("raised", "disk_low", "", stage)
                let (server, phone) = try await relay.join(.apns)
                #expect(try await server.notify(.test(time: 1), [phone], relay).status == 200)
                await set(DiskSpace.enough - 1)
                #expect(lines("alert cleared") == 0)
                free.set(DiskSpace.enough)
                try await told("cleared", "disk_low", "", stage)
            }
        }
    }

    @Test("An outbox that fills is told though nobody asks, by its rows and by its bytes")
    func outbox() async throws {
        let text = RelayStage.text + "limits: { outbox: { rows: 1000 } }\n"
        try await RelayStage.with(text) { stage in
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run(spans: { $0.spans.zulipReply = .milliseconds(50) }) { relay in
                let server = try await relay.server()
                var phones: [DemoApp] = []
                for _ in 0..<20 { phones.append(try await relay.phone(.apns, of: server)) }
                for id in 1...Int64(41) {
                    #expect(try await server.notify(DemoApp.message(id, "m"), phones, relay).status == 200)
                }
                try await told("raised", "outbox_filling", "", stage)
            }
        }
    }

    @Test("A reload that mends a credential ends its lane's alert, once something is accepted")
    func mended() async throws {
        try await RelayStage.running { relay in
            let (server, phone) = try await relay.join(.apns)
            relay.stage.apns.revoke(keyID: "F6G7H8I9J0")
            _ = try await server.notify(.test(time: 1), [phone], relay)
            try await told("raised", "lane_halted", "acme/apns/production", relay.stage)
            try relay.stage.replaceAPNsKey()
            try relay.relay.reload(relay.stage.configuration())
            try await told("cleared", "lane_halted", "acme/apns/production", relay.stage)
            try await relay.drained()
            let status = try JSONValue.parse(try await relay.admin("/status").body)
            #expect(status["alerts"]?.array?.isEmpty == true)
            // Not by the gauge, which all relays of a test process share.
        }
    }

    @Test("Pushes that grew too old are told, lane by lane, and a push that is owed too long")
    func tooOld() async throws {
        let text = RelayStage.text + "alerts: { overdue_minutes: 1 }\n"
        try await RelayStage.with(text) { stage in
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run(spans: { $0.spans.zulipReply = .milliseconds(50) }) { relay in
                let (server, phone) = try await relay.join(.apns)
                _ = try await server.notify(.test(time: 1), [phone], relay)
            }
            // What it owes grows old while relays come and go; a clock is believed for six hours.
            for hours in [5, 10, 15, 20, 25] {
                var late = World.live
                late.now = { World.live.now() + .seconds(hours * 3_600) }
                try await stage.run(spans: { $0.world = late }) { _ in
                    if hours == 5 { try await told("raised", "push_overdue", "", stage) }
                    if hours == 25 { try await told("raised", "custody_ended", "acme/apns/", stage) }
                }
            }
        }
    }

    @Test("A Marmot instance that hears nobody is told after a minute, and that it hears again")
    func unheard() async throws {
        try await RelayStage.with(MarmotTests.text()) { stage in
            stage.sandbox.nostr.turn { $0.refusesRequests = .error }
            try await stage.run(spans: { $0.spans.watch.unheardAfter = .milliseconds(200) }) { _ in
                try await told("raised", "instance_unheard", "marmot-main", stage)
                stage.sandbox.nostr.turn { $0.refusesRequests = nil }
                stage.sandbox.nostr.killConnections()
                try await told("cleared", "instance_unheard", "marmot-main", stage)
            }
        }
    }

    @Test("A Nostr relay that refuses the relay list is told by name, and that it took it later")
    func listRefused() async throws {
        try await RelayStage.with(MarmotTests.text()) { stage in
            stage.sandbox.nostr.turn { $0.refusesEvents = .blocked }
            try await stage.run { _ in
                try await told("raised", "instance_refused", "marmot-main/127.0.0.1", stage)
                stage.sandbox.nostr.turn { $0.refusesEvents = nil }
                stage.sandbox.nostr.killConnections()
                try await told("cleared", "instance_refused", "marmot-main/127.0.0.1", stage)
            }
        }
    }
}
