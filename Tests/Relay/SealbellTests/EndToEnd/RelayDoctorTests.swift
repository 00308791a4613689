import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import ZulipPush

@testable import RelayProgram

@Suite("What the doctor hears of a running relay", .timeLimit(.minutes(30)))
struct RelayDoctorTests {
    private func look(_ stage: RelayStage, _ text: String? = nil) async throws -> [Finding] {
        var shell = Shell(facts: facts(), world: .live, out: { _ in }, err: { _ in })
        shell.waitPatiently()
        return await RelayChecks(try stage.configuration(text), shell).check()
    }

    @Test("Lanes, alerts, the last reload, a changed file: what is wrong, and what to do")
    func relay() async throws {
        try await RelayStage.with { stage in
            #expect(try await look(stage).map(\.sentence) == ["No relay serves from this state directory."])
            try await stage.run { relay in
                _ = try Operator(relay)
                let well = try await look(stage)
                #expect(well.allSatisfy { $0.severity == .good && $0.area == .relay } && well.count == 2)
                #expect(well[0].sentence.contains("version \(Release.version)"))
                #expect(well[1].sentence.hasPrefix("None of 3 is halted"))
                let (server, phone) = try await relay.join(.apns)
                stage.apns.revoke(keyID: "F6G7H8I9J0")
                _ = try await server.notify(.test(time: 1), [phone], relay)
                var seen: [Finding] = []
                // One refusal is no halt yet, and a push that is under way as a probe does not wait.
                try await asked(for: "a halted lane whose push waits") {
                    seen = try await look(stage)
                    return seen.contains {
                        $0.subject == "acme/apns/production" && $0.sentence.contains("1 push waits")
                    }
                }
                let finding = seen.first { $0.subject == "acme/apns/production" }
                #expect(finding?.severity == .fault, "\(seen)")
                #expect(finding?.sentence.contains("halted (InvalidProviderToken, 20") == true, "\(seen)")
                #expect(!seen.contains { $0.subject == "acme/apns/sandbox" }, "\(seen)")
                #expect(Findings(seen).status == .failed, "\(seen)")
                // Behind the relay's back.
                let file = try #require(try stage.configuration().file)
                try writeFile(file, Array(RelayStage.text.utf8), replacing: true)
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSinceNow: 3_600)], ofItemAtPath: file)
                #expect(
                    try await look(stage).contains {
                        $0.subject == file && $0.severity == .warning && $0.sentence.contains("SIGHUP")
                    })
                // Nor is a credential that was exchanged where it lies; the storage keys are watched.
                for (path, isTold) in [("apps.acme.apns.key_file", true), ("store.keys", false)] {
                    let named = try #require(try stage.configuration().files.first { $0.path == path })
                    let subject = "\(path) (\(named.file))"
                    #expect(try await !look(stage).contains { $0.subject == subject })
                    if isTold { try writeFile(named.file, Array("another".utf8), replacing: true) }
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSinceNow: 3_600)], ofItemAtPath: named.file)
                    let told = try await look(stage).filter { $0.subject == subject }
                    #expect(told.map(\.severity) == (isTold ? [.warning] : []))
                }
                relay.relay.reloads.note(.refused(ErrorCode("configuration")), at: World.live.now())
                #expect(
                    try await look(stage).contains {
                        $0.subject == "reload" && $0.sentence.contains("refused (configuration)")
                    })
            }
        }
    }

    @Test("An alert of the store is a fault, others are warnings, and a wrong token is told")
    func alerts() async throws {
        let fault = FailingEngine.Fault()
        let text = RelayStage.text.replacing(
            "admin: { bind: \"127.0.0.1:0\" }", with: "admin: { bind: \"127.0.0.1:0\", token_file: token }")
        try await RelayStage.with(
            text,
            prepare: { try writeFile($0 + "/token", Array("one token of an operator".utf8), replacing: true) }
        ) { stage in
            try await stage.run(engine: { FailingEngine($0, fault) }) { relay in
                _ = try Operator(relay)
                try await asked(for: "a relay that is well") {
                    try await look(stage).allSatisfy { $0.severity == .good }
                }
                fault.set(.unavailable)
                try await asked(for: "a relay with an alert") {
                    try await look(stage).contains { $0.subject == "store_failing" && $0.severity == .fault }
                }
                fault.set(nil)
            }
        }
    }

    @Test("A trusted proxy that names its clients by no address is told")
    func unreadClients() async throws {
        try await RelayStage.running { relay in
            _ = try Operator(relay)
            for value in ["203.0.113.7:51234", "unknown", "unknown"] {
                _ = try await relay.door().ask(
                    "GET", "/api/v1/remotes/",
                    headers: [(name: "X-Forwarded-For", value: Secret(value.utf8))])
            }
            let told = try await look(relay.stage).filter { $0.subject == "listeners.public" }
            #expect(told.map(\.severity) == [.warning] && told[0].sentence.contains("of 2 requests"))
        }
    }

    @Test("A relay that is gone without a farewell is told")
    func stale() async throws {
        try await RelayStage.with { stage in
            let gone = Process()
            gone.executableURL = URL(filePath: "/bin/true")
            try gone.run()
            gone.waitUntilExit()
            try RunFile(urls: [:], ca: nil, publicKeys: [:], apps: [:], pid: gone.processIdentifier)
                .write(state: stage.state)
            let seen = try await look(stage)
            #expect(seen.map(\.severity) == [.warning] && seen[0].sentence.contains("without a farewell"))
        }
    }
}
