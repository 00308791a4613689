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

extension RelayStage {
    /// A second instance, `gate`, at a node of its own and in front of a gorush.
    static func statusGate(_ node: WakuNodeSimulator, _ gorush: GorushDouble) throws -> String {
        """
          gate: { protocol: status, apps: [acme], key_file: gate.key,
                  waku: { url: "\(try #require(node.url))" },
                  gorush: { url: "http://127.0.0.1:\(gorush.port)" } }

        """
    }

    /// Makes the key of that instance.
    func makeGateKey() throws -> PublicPoint {
        let pair = Secp256k1KeyPair.generate(.live)
        try StatusKeyFile.text(pair).reveal { try writeFile(folder.path + "/gate.key", $0, replacing: true) }
        return pair.point
    }
}

@Suite("What a Status relay was told is told to nobody", .timeLimit(.minutes(30)))
struct StatusCanaryTests {
    /// Log, pages, what commands say, and every file of the relay's.
    private static func said(_ relay: RunningRelay, push: String) async throws -> [Said] {
        let person = try Operator(relay)
        let why = await person.run("why", push)
        #expect(why.status == .done)
        var shell = Shell(facts: facts(), world: .live, out: { _ in }, err: { _ in })
        shell.waitPatiently()
        let findings = await RelayChecks(try relay.stage.configuration(), shell).check()
        #expect(!findings.isEmpty)
        let said = try await relay.said(pages: [
            "/metrics", "/status", "/", "/health/ready", "/health/live",
            "/status/statistics?instance=main", "/status/statistics?instance=gate"
        ])
        // But for the file of the secret that is looked for.
        return said.filter { $0.place != "status.key" } + [
            ("why", Data((why.out + why.err).joined(separator: "\n").utf8)),
            ("doctor", Data(findings.map { "\($0)" }.joined(separator: "\n").utf8))
        ]
    }

    private static func publish(_ messages: [SimulatedWakuMessage], _ stage: RelayStage) {
        for message in messages { stage.sandbox.waku.node.inject(message) }
    }

    /// Registers, asks and notifies once, and returns the push's own name.
    private static func serve(_ cast: inout StatusCast, _ count: Int64, _ relay: RunningRelay) async throws
        -> String
    {
        let stage = relay.stage
        publish([cast.registration()], stage)
        try await relay.statusReaches(count, "registered")
        // A topic of the person's is heard once it is followed.
        try await relay.statusReaches(2 + 2 * count, "topics")
        publish([cast.query()], stage)
        try await relay.statusReaches(count, "queries")
        let isApple = cast.token.count == 64
        let arrivals =
            isApple ? stage.apns.subscribe(token: cast.token) : stage.fcm.subscribe(address: cast.token)
        publish([cast.request()], stage)
        let delivery = try await arrivals.next("a push")
        try await relay.drained()
        return delivery.id
    }

    /// What the gateway answers with a word in every place.
    private static func gateway(
        _ cast: inout StatusCast, _ word: String, _ gorush: GorushDouble, _ relay: RunningRelay
    ) async throws {
        publish([cast.registration()], relay.stage)
        try await relay.statusReaches(1, "registered", of: "gate")
        for (count, answer) in StatusCast.gatewayAnswers(word).enumerated() {
            gorush.turn(answer)
            publish([cast.request()], relay.stage)
            try await asked(for: "an answer to the sender") {
                // The registration's is the first.
                try await relay.status("waku", of: "gate")?["published"]?.int64 ?? 0 >= Int64(count + 2)
            }
        }
        #expect(gorush.calls.count == StatusCast.gatewayAnswers(word).count)
    }

    @Test("No canary of any message or answer, nor of the key file, is in log, metrics, pages or files")
    func operation() async throws {
        let stray = CanaryCast.word("stray")
        try await GorushDouble.with { gorush in
            try await RelayStage.with(RelayStage.status()) { stage in
                try await stage.withWakuNode { node in
                    let gate = try stage.makeGateKey()
                    try await stage.run(RelayStage.status() + RelayStage.statusGate(node, gorush)) { relay in
                        try await relay.listens()
                        try await relay.listens("gate")
                        try await Self.operation(relay, gate, gorush, stray)
                    }
                }
            }
        }
    }

    private static func operation(
        _ relay: RunningRelay, _ gate: PublicPoint, _ gorush: GorushDouble, _ stray: String
    ) async throws {
        let (stage, server) = (relay.stage, try relay.statusKey())
        var (apple, google) = (try StatusCast(at: server, .apns), try StatusCast(at: server, .fcm))
        var third = try StatusCast(at: gate, .apns)
        let push = try await serve(&apple, 1, relay)
        _ = try await serve(&google, 2, relay)
        try await gateway(&third, stray, gorush, relay)
        // What is not answered stays owed, in the outbox; the sender is told of it after two seconds.
        for service in [stage.apns as any SteeredSimulator, stage.fcm] {
            service.turnConnections { $0.answerDelay = .fixed(.seconds(3_600)) }
        }
        publish([apple.request(), google.request()], stage)
        try await asked(for: "two owed pushes") { try await relay.owed() == 2 }
        let before = try await relay.status("waku")?["received"]?.int64 ?? 0
        let garbage = apple.garbage(stray)
        publish(garbage + third.garbage(stray), stage)
        // But for one on a topic of nobody's, and those of the other instance.
        let taken = Int64(garbage.count - 1)
        try await asked(for: "all of it, taken in") {
            try await relay.status("waku")?["received"]?.int64 ?? 0 >= before + taken
        }
        let key = try String(contentsOfFile: stage.folder.path + "/status.key", encoding: .utf8)
            .split(separator: "\n").joined()
        let said = try await said(relay, push: push)
        #expect(try await relay.owed() == 2)
        for service in [stage.apns as any SteeredSimulator, stage.fcm] {
            service.turnConnections { $0.answerDelay = .none }
            service.killConnections()
        }
        #expect(said.contains { $0.place.hasSuffix("-wal") })
        // The search can find: what is public is there.
        let known = Canary("public key", StatusKeyFile.publicText(server))
        #expect(said.contains { $0.place.hasSuffix("run.json") && known.isIn($0.bytes) })
        let canaries =
            apple.canaries + google.canaries + third.canaries
            + [Canary("a stray word", stray)] + (try Canary.hex("key of the server", key))
        canaries.expectNone(in: said)
    }

    @Test("A key file and a node's address that are refused are refused without their bytes")
    func settings() throws {
        let word = CanaryCast.word("password")
        let folder = try TemporaryFolder()
        for text in [word, String(repeating: "f", count: 64), word + String(repeating: "0", count: 40)] {
            try writeFile(folder.path + "/bad.key", Array(text.utf8), replacing: true)
            do throws(CommandFailure) {
                _ = try StatusKeyFile.read(folder.path + "/bad.key")
                Issue.record("it is taken")
            } catch {
                #expect(!"\(error)".contains(text))
            }
        }
        for peer in ["waku", "gorush"] {
            let text = RelayStage.status(", \(peer): { url: \"http://operator:\(word)@127.0.0.1:8645\" }")
            do {
                _ = try ConfigurationLoader.read(
                    text, file: folder.path + "/sealbell.yaml",
                    ConfigurationRequest(state: folder.path + "/state", isSandbox: true),
                    facts(home: folder.path))
                Issue.record("it is taken")
            } catch {
                #expect(!"\(error)".contains(word))
            }
        }
    }
}
