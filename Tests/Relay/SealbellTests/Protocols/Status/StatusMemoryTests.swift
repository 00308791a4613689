import AtRest
import Foundation
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import StatusPush
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

#if os(Linux)
@Suite("The memory of an idle Status relay", .timeLimit(.minutes(30)))
struct StatusMemoryTests {
    private struct Running {
        let stage: RelayStage
        let relay: ServedProgram
        let gorush: GorushDouble
        /// Of each instance, `main` and `gate`.
        let keys: [PublicPoint]

        func publish(_ message: SimulatedWakuMessage) { stage.sandbox.waku.node.inject(message) }

        func status(_ instance: String) async throws -> JSONValue {
            try JSONValue.parse(
                try await relay.admin.ask("GET", "/status/statistics?instance=\(instance)").body)
        }

        func reaches(_ least: Int, _ name: String, of instance: String = "main") async throws {
            try await asked(for: "\(least) of \(name)") {
                let status = try await status(instance)
                return (status[name] ?? status["waku"]?[name])?.int64 ?? 0 >= Int64(least)
            }
        }
    }

    /// A relay as a process of its own, whose push services, gorush and nodes are this one's.
    private static func with(_ body: (Running) async throws -> Void) async throws {
        try await GorushDouble.with { gorush in
            try await RelayStage.with(RelayStage.status()) { stage in
                try await stage.withWakuNode { gate in
                    try await with(stage, gate, gorush, body)
                }
            }
        }
    }

    private static func with(
        _ stage: RelayStage, _ gate: WakuNodeSimulator, _ gorush: GorushDouble,
        _ body: (Running) async throws -> Void
    ) async throws {
        _ = try stage.makeGateKey()
        _ = try KeyFile.create(stage.folder.path + "/storage.keys", .live)
        let node = try #require(stage.sandbox.waku.node.url)
        let text =
            RelayStage.status(", waku: { url: \"\(node)\" }")
            + (try RelayStage.statusGate(gate, gorush))
        try await ServedProgram.with(ServedProgram.configuration(text, at: stage), in: stage) { relay in
            let keys = try ["main", "gate"].map { name in
                try #require(relay.file.publicKeys[name]?.first.flatMap { StatusKeyFile.point($0) })
            }
            for instance in ["main", "gate"] {
                try await asked(for: "an instance that listens") {
                    try await relay.admin.ask("GET", "/health/ready?instance=\(instance)").status == 200
                }
            }
            try await body(Running(stage: stage, relay: relay, gorush: gorush, keys: keys))
        }
    }

    /// All that is said in a relay's life, up to the last push.
    private static func life(_ running: Running, _ stray: String) async throws -> [Canary] {
        let stage = running.stage
        var canaries = [Canary("stray", stray)]
        for (count, service) in [DeviceToken.Service.apns, .fcm].enumerated() {
            var cast = try StatusCast(at: running.keys[0], service)
            let arrivals =
                service == .apns
                ? stage.apns.subscribe(token: cast.token) : stage.fcm.subscribe(address: cast.token)
            running.publish(cast.registration())
            try await running.reaches(4 + 2 * count, "topics")
            let received = try await running.status("main")["waku"]?["received"]?.int64 ?? 0
            let garbage = cast.garbage(stray, isInClear: false)
            for message in garbage { running.publish(message) }
            try await running.reaches(Int(received) + garbage.count, "received")
            running.publish(cast.query())
            try await running.reaches(count + 1, "queries")
            running.publish(cast.request())
            _ = try await arrivals.next("a push")
            // Keys of topics are kept for a minute, and no longer than their rows.
            running.publish(cast.renewal())
            canaries += cast.canaries
        }
        var cast = try StatusCast(at: running.keys[1], .apns)
        running.publish(cast.registration())
        try await running.reaches(1, "registered", of: "gate")
        for (count, answer) in StatusCast.gatewayAnswers(stray).enumerated() {
            running.gorush.turn(answer)
            running.publish(cast.request())
            try await running.reaches(count + 2, "published", of: "gate")
        }
        return canaries + cast.canaries
    }

    @Test(
        "Nothing of a message or an answer is in the memory of an idle relay, nor in its log and files",
        .enabled(if: geteuid() == 0 && Program.path != nil, "another process's memory is root's to read"))
    func idle() async throws {
        try await Self.with { running in
            let canaries = try await Self.life(running, CanaryCast.word("stray"))
            try await asked(for: "an empty outbox") { try await running.relay.owed() == 0 }
            await MemoryImage.wait(until: running.relay.program.pid, holdsNoneOf: canaries, looks: 120)
            let image = try MemoryImage(of: running.relay.program.pid)
            #expect(image.count > 1 << 20)
            for hit in image.hits(canaries) { Issue.record("\(hit)") }
            // The search can find: the relay knows its app's bundle id.
            #expect(!image.hits([Canary("bundle id", StatusMember.topic)]).isEmpty)
            var said: [Said] = [("log", Data(await running.relay.log().utf8))]
            said += files(below: running.stage.folder.path)
            #expect(said.contains { $0.place.hasSuffix("relay.sqlite") })
            canaries.expectNone(in: said)
        }
    }
}
#endif
