import AtRest
import Foundation
import PushModel
import Simulators
import Testing
import ZulipPush

@testable import RelayProgram

@Suite("What the doctor sees in a store", .timeLimit(.minutes(30)))
struct StoreDoctorTests {
    private func findings(
        _ configuration: RelayConfiguration, after span: Duration = .zero
    ) -> [Finding] {
        var world = World.live
        world.now = { World.live.now() + span }
        return StoreChecks(configuration, world).check()
    }

    /// Name → content; not of the shared memory, in which every reader of a log marks its place.
    private func files(_ stage: RelayStage) throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: stage.state)
            .filter { !$0.hasSuffix("-shm") }
        return Dictionary(
            uniqueKeysWithValues: names.map { name in
                (name, FileManager.default.contents(atPath: "\(stage.state)/\(name)") ?? Data())
            })
    }

    @Test("Beside a running relay and without one: keys, soundness, what is owed and how old it is")
    func owed() async throws {
        try await RelayStage.with { stage in
            var configuration = try stage.configuration()
            #expect(
                findings(configuration).map(\.sentence) == [
                    "There is no store yet; the first start makes it."
                ])
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                try RunFile(urls: relay.urls, ca: nil, publicKeys: [:], apps: [:]).write(state: stage.state)
                #expect(findings(configuration).contains { $0.sentence == "Nothing is owed." })
                let (server, phone) = try await relay.join(.apns)
                _ = try await server.notify(DemoApp.message(1, "owed"), [phone], relay)
                let seen = findings(configuration)
                #expect(seen.allSatisfy { $0.severity == .good } && seen.count == 3)
                #expect(seen.contains { $0.area == .keys && $0.sentence.contains("open this store") })
                #expect(seen.contains { $0.sentence.contains("1 push (") && $0.sentence.contains("oldest") })
                // Two hours later the same would mean that a lane does not drain.
                let late = findings(configuration, after: .seconds(7200))
                #expect(late.contains { $0.severity == .warning && $0.sentence.contains("for 2 h") })
                configuration.limits.outboxRows = 1
                #expect(Findings(findings(configuration)).status == .failed)
                configuration.limits.outboxRows = 2_000_000
                // As where another state directory's relay has this store.
                unlink(stage.state + "/" + RunFile.name)
                #expect(!findings(configuration).contains { $0.sentence.contains("no relay is running") })
            }
            unlink(stage.state + "/" + RunFile.name)
            let before = try files(stage)
            let stopped = findings(configuration)
            #expect(stopped.filter { $0.severity != .good }.map(\.sentence).count == 1)
            #expect(stopped.contains { $0.sentence.contains("no relay is running") })
            #expect(try files(stage) == before, "the doctor changes nothing")
            configuration.apps[0].apns = nil
            let stranded = findings(configuration).filter { $0.subject.hasPrefix("acme/apns/") }
            #expect(stranded.count == 1 && stranded[0].sentence.contains("no longer in the configuration"))
        }
    }

    @Test(
        "A store that was copied elsewhere, or is half of a copy, is a fault; what it owes is not told"
    )
    func barred() async throws {
        try await RelayStage.with { stage in
            try await stage.run { relay in _ = try await relay.server() }
            let configuration = try stage.configuration()
            for (name, code) in [
                (StoreSetting.copiedTo, StoreError.Code.moved), (StoreSetting.filledFrom, .unfinished)
            ] {
                func set(_ value: [UInt8]?) async throws {
                    let held = try await StorePlace(configuration.store.engine).hold(makes: false, .live)
                    try await held.store.put(setting: name, to: value)
                    await held.close()
                }
                try await set([1])
                let seen = findings(configuration)
                let faults = seen.filter { $0.severity == .fault }
                #expect(faults.map(\.sentence) == ["\(StoreError(code).sentence) [\(code.rawValue)]"])
                #expect(!seen.contains { $0.subject == "outbox" } && Findings(seen).status == .failed)
                try await set(nil)
                #expect(findings(configuration).allSatisfy { $0.severity == .good })
            }
        }
    }

    @Test("A sample that holds the whole store says so, and counts nothing twice")
    func sample() async throws {
        try await RelayStage.with { stage in
            try await stage.run { relay in
                let server = try await relay.server()
                for _ in 0..<40 { _ = try await relay.phone(.apns, of: server) }
            }
            let out = Lines()
            let shell = Shell(facts: facts(), world: .live, out: { out.add($0) }, err: { out.add($0) })
            let keys = try stage.configuration().store.keysFile
            func check(_ more: String...) async throws -> String {
                let line = ["store", "check", "sqlite:" + (try stage.database()), "--keys", keys] + more
                let before = out.all.count
                #expect(await Sealbell.run(line, shell) == .done)
                return try #require(out.all[before...].first { $0.contains("records and") })
            }
            let sampled = try await check()
            #expect(sampled.contains("All ") && sampled.contains(" open."), "\(sampled)")
            let whole = try await check("--all")
            #expect(sampled == whole)
        }
    }

    @Test("Keys of another store, a damaged file and a file of something else are faults that end with 1")
    func faults() async throws {
        try await RelayStage.with { stage in
            try await stage.run { relay in
                let server = try await relay.server()
                for _ in 0..<40 { _ = try await relay.phone(.apns, of: server) }
            }
            let configuration = try stage.configuration()
            let path = try stage.database()
            #expect(findings(configuration).allSatisfy { $0.severity == .good })
            unlink(configuration.store.keysFile)
            _ = try KeyFile.create(configuration.store.keysFile, .live)
            let foreign = findings(configuration)
            #expect(foreign.filter { $0.severity == .fault }.map(\.area) == [.keys])
            #expect(Findings(foreign).status == .failed)
            var bytes = try #require(FileManager.default.contents(atPath: path))
            #expect(bytes.count > 32_768)
            // All of one page behind the first four, which hold the schema.
            bytes.replaceSubrange(20_480..<24_576, with: Data(repeating: 0x5A, count: 4096))
            try bytes.write(to: URL(filePath: path))
            let damaged = findings(configuration).filter { $0.area == .store && $0.severity == .fault }
            #expect(damaged.count == 1)
            try Data("this is no database, and it is long enough to be looked at".utf8)
                .write(to: URL(filePath: path))
            let none = findings(configuration)
            #expect(none.map(\.severity) == [.fault] && Findings(none).status == .failed)
            try Data().write(to: URL(filePath: path))
            #expect(findings(configuration).allSatisfy { $0.severity == .good }, "made, and never written")
        }
    }
}
