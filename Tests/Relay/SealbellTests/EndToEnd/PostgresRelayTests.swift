import AtRest
import Foundation
import PostgresStore
import PushModel
import PushTesting
import SQLiteStore
import Simulators
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

/// A stage whose relays share a database of the tests' own server.
struct PostgresStage: Sendable {
    let stage: RelayStage
    let url: String
    let cluster: PostgresCluster

    /// The configuration's text with this store.
    var text: String { Self.text(url) }
    var keysFile: String { stage.state + "/storage.keys" }
    var database: String { String(url.split(separator: "/").last ?? "") }

    static func text(_ url: String) -> String {
        RelayStage.text + "store: { url: \"\(url)\" }\n"
    }

    static func with(
        keys: Bool = true, _ body: (PostgresStage) async throws -> Void
    ) async throws {
        let cluster = try await PostgresCluster.shared
        let url = try await cluster.freshDatabase()
        try await RelayStage.with(text(url)) { stage in
            let here = PostgresStage(stage: stage, url: url, cluster: cluster)
            if keys { _ = try KeyFile.create(here.keysFile, .live) }
            try await body(here)
        }
    }

    /// A command line in the state directory.
    func run(_ arguments: String...) async -> CommandRun { await .of(arguments, in: stage.state) }

    /// What a relay says that does not start.
    func refusal() async throws -> String {
        do {
            try await stage.run { _ in }
        } catch let failure as CommandFailure {
            return failure.lines.joined(separator: "\n")
        }
        return ""
    }

    /// - Parameter migrationPatience: how long another process's change of the schema is waited for.
    func engine(
        migrationPatience: Duration = PostgresLimits().migrationPatience
    ) async throws -> PostgresStore {
        var limits = PostgresLimits()
        limits.connections = 2
        limits.migrationPatience = migrationPatience
        return try await PostgresStore(
            try PostgresAddress(url), owner: OwnerID(Digest16(high: 6, low: World.live.random())),
            limits: limits, world: .live)
    }
}

@Suite("A relay on PostgreSQL", .timeLimit(.minutes(30)))
struct PostgresRelayTests {
    @Test("What one relay accepted the next one sends, and it knows the registrations")
    func restart() async throws {
        try await PostgresStage.with { here in
            let stage = here.stage
            var met: (DemoServer, DemoApp)?
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                let (server, phone) = try await relay.join(.apns)
                met = (server, phone)
                _ = try await server.notify(DemoApp.message(1, "owed"), [phone], relay)
                #expect(try await relay.owed() == 1)
            }
            let (server, phone) = try #require(met)
            stage.apns.turn { $0.shutdownUntil = nil }
            try await stage.run { relay in
                try await relay.drained()
                #expect(try await server.notify(DemoApp.message(2, "new"), [phone], relay).apple == 1)
                try await relay.drained()
            }
            #expect(stage.apns.deliveries().count == 2)
        }
    }

    @Test("Two relays at once: each serves the other's registrations, and a key comes into use at both")
    func two() async throws {
        try await PostgresStage.with { here in
            let stage = here.stage
            try await stage.run { first in
                let (server, phone) = try await first.join(.apns)
                try await stage.run { second in
                    #expect(try await server.notify(DemoApp.message(1, "a"), [phone], second).apple == 1)
                    #expect(try await server.notify(DemoApp.message(2, "b"), [phone], first).apple == 1)
                    let person = try Operator(second)
                    let rotated = await person.run("keys", "rotate-storage", "--file", here.keysFile)
                    #expect(rotated.status == .done, "\(rotated.err)")
                    #expect(try await server.notify(DemoApp.message(3, "c"), [phone], first).apple == 1)
                    let dropped = await person.run(
                        "keys", "rotate-storage", "--drop-old", "--file", here.keysFile)
                    #expect(dropped.status == .done, "\(dropped.err)")
                    #expect(try KeyFile.read(here.keysFile).seal.map(\.number) == [2])
                    #expect(try await server.notify(DemoApp.message(4, "d"), [phone], second).apple == 1)
                }
                try await first.drained()
            }
            #expect(stage.apns.deliveries().count == 4)
        }
    }

    @Test("Without storage keys none are made: several relays would each make their own")
    func noKeys() async throws {
        try await PostgresStage.with(keys: false) { here in
            let refusal = try await here.refusal()
            #expect(refusal.contains("sealbell keys new storage"))
            #expect(!FileManager.default.fileExists(atPath: here.keysFile))
        }
    }

    @Test("Another key file, a newer schema, half a schema: each its own words, and nothing is overwritten")
    func refused() async throws {
        try await PostgresStage.with { here in
            try await here.stage.run { relay in _ = try await relay.server() }
            let sql = "SELECT count(*), sum(hashtext(key::text || body::text)::int8) FROM records"
            let before = try await here.cluster.execute(sql, database: here.database)
            let right = try #require(FileManager.default.contents(atPath: here.keysFile))
            unlink(here.keysFile)
            _ = try KeyFile.create(here.keysFile, .live)
            #expect(try await here.refusal().contains("The key file does not fit this store"))
            let checked = await here.run("store", "check", here.url, "--keys", here.keysFile)
            #expect(checked.status == .configuration)
            try right.write(to: URL(filePath: here.keysFile))
            #expect(
                await here.run("store", "check", here.url, "--all", "--keys", here.keysFile).status == .done)

            try await here.cluster.execute(
                "INSERT INTO migrations VALUES (99, 'of the future', true, now(), now())",
                database: here.database)
            #expect(try await here.refusal().contains("newer Sealbell"))
            let newer = await here.run("store", "check", here.url, "--keys", here.keysFile)
            #expect(newer.status == .configuration && newer.lines.contains { $0.contains("newer Sealbell") })
            try await here.cluster.execute(
                "DELETE FROM migrations WHERE number = 99; UPDATE migrations SET finished_at = NULL",
                database: here.database)
            // For half a minute a relay takes it for another one's that is at it; then it says this sentence.
            let unfinished = await #expect(throws: StoreError.self) {
                try await here.engine(migrationPatience: .milliseconds(300)).close()
            }
            #expect(unfinished?.sentence.contains("started but not finished") == true)
            #expect(try await here.cluster.execute(sql, database: here.database) == before)
            try await here.cluster.execute(
                "UPDATE migrations SET finished_at = now()", database: here.database)
            try await here.stage.run { _ in }
        }
    }

    @Test("A changed row is named by table and key; the rest opens, and the relay goes on without it")
    func corrupted() async throws {
        try await PostgresStage.with { here in
            try await here.stage.run { relay in
                let server = try await relay.server()
                _ = try await relay.phone(.apns, of: server)
            }
            try await here.cluster.execute(
                """
                UPDATE records SET body = set_byte(body, length(body) - 1, get_byte(body, length(body) - 1) # 1)
                WHERE space = 'zulip-main/device'
                """, database: here.database)
            let told = await here.run("store", "check", here.url, "--all", "--keys", here.keysFile)
            #expect(told.status == .failed)
            let faults = told.lines.filter { $0.hasPrefix("FAULT") }
            #expect(faults.count == 1 && faults[0].contains("records, zulip-main/device, key "))
            try await here.stage.run { relay in
                let owed = try await relay.owed()
                #expect(owed == 0)
            }
        }
    }

    @Test("No password in a URL: neither in the configuration nor on a command line, and none is repeated")
    func password() async throws {
        let folder = try TemporaryFolder()
        for url in [
            "postgresql://u:hunter2@h/db", "postgres://u@h/db?password=hunter2",
            "postgresql://u@h/db?sslpassword=hunter2"
        ] {
            let run = await CommandRun.of(
                ["store", "copy", "--from", url, "--to", "sqlite:x"], in: folder.path)
            #expect(run.status == .usage && !run.lines.joined().contains("hunter2"))
            #expect(run.lines.joined().contains("No password in a URL"))
        }
    }

    @Test("A password from its file opens the database; a wrong one is told as such")
    func passwordFile() async throws {
        let cluster = try await PostgresCluster.start(PostgresCluster.Options(password: "right-4711"))
        let url = try await cluster.freshDatabase()
        let store = "store: { url: \"\(url)\", password_file: state/password }\n"
        try await RelayStage.with(RelayStage.text + store) { stage in
            _ = try KeyFile.create(stage.state + "/storage.keys", .live)
            try writeFile(stage.state + "/password", Array("wrong-4711\n".utf8), replacing: true)
            let failure = await #expect(throws: CommandFailure.self) { try await stage.run { _ in } }
            #expect(failure?.lines.joined().contains("refuses us") == true)
            #expect(failure?.lines.joined().contains("4711") == false)
            try writeFile(stage.state + "/password", Array("right-4711\n".utf8), replacing: true)
            try await stage.run { relay in _ = try await relay.server() }
            #expect(!stage.log.all.joined().contains("4711"))
        }
        await cluster.end()
    }
}

@Suite("sealbell store copy, between SQLite and PostgreSQL", .timeLimit(.minutes(30)))
struct PostgresCopyTests {
    @Test(
        "There and back: owed pushes are delivered by the other relay, registrations are known, digests agree"
    )
    func thereAndBack() async throws {
        let cluster = try await PostgresCluster.shared
        let url = try await cluster.freshDatabase()
        try await RelayStage.with { stage in
            let here = PostgresStage(stage: stage, url: url, cluster: cluster)
            var met: (DemoServer, DemoApp)?
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                let (server, phone) = try await relay.join(.apns)
                met = (server, phone)
                for number in 1...3 {
                    _ = try await server.notify(DemoApp.message(Int64(number), "owed"), [phone], relay)
                }
            }
            let (server, phone) = try #require(met)
            let copied = await here.run("store", "copy", "--from", "sqlite:relay.sqlite", "--to", url)
            #expect(copied.status == .done, "\(copied.lines)")
            let ours = await here.run(
                "store", "check", "sqlite:relay.sqlite", "--all", "--keys", here.keysFile)
            let theirs = await here.run("store", "check", url, "--all", "--keys", here.keysFile)
            func digests(_ lines: [String]) -> [String] {
                lines.compactMap { $0.firstMatch(of: #/(records|pushes|marks|settings): (.*digest .*)/#) }
                    .map { String($0.0) }
            }
            #expect(digests(ours.lines).count == 4 && digests(ours.lines) == digests(theirs.lines))
            // The old store is closed, the new one serves.
            #expect(try await here.refusal().contains("copied to another one"))
            try await stage.run(here.text) { relay in
                // Taken over at its start. Each look is a request of its own, so nothing spins.
                try await asked(for: "an outbox of three") { try await relay.owed() == 3 }
                let answer = try await server.notify(DemoApp.message(4, "new"), [phone], relay)
                #expect(answer.status == 200)
            }
            // A repeat that is sent while it moves is known there too.
            let back = await here.run("store", "copy", "--from", url, "--to", "sqlite:back.sqlite")
            #expect(back.status == .done, "\(back.lines)")
            #expect(try await PostgresStage(stage: stage, url: url, cluster: cluster).closed())
            stage.apns.turn { $0.shutdownUntil = nil }
            let last = RelayStage.text + "store: { url: \"sqlite:back.sqlite\" }\n"
            try await stage.run(last) { relay in
                try await relay.drained()
                #expect(try await server.notify(DemoApp.message(5, "last"), [phone], relay).apple == 1)
                try await relay.drained()
            }
            #expect(stage.apns.deliveries().count == 5)
        }
    }

    @Test("A relay that serves from a database is noticed, on either side, and goes on serving")
    func served() async throws {
        try await PostgresStage.with { here in
            try await here.stage.run { relay in
                let out = await here.run("store", "copy", "--from", here.url, "--to", "sqlite:new.sqlite")
                #expect(out.status == .unavailable && out.lines.contains { $0.contains("A relay serves") })
                _ = try await relay.server()
            }
            let into = await here.run("store", "copy", "--from", "sqlite:new.sqlite", "--to", here.url)
            #expect(into.status == .failed && into.lines.contains { $0.contains("holds something else") })
            try await here.stage.run { _ in }
            let out = await here.run("store", "copy", "--from", here.url, "--to", "sqlite:new.sqlite")
            #expect(out.status == .done, "\(out.lines)")
        }
    }

    @Test("A relay that slept through a copy of its store finds it closed to leases, pushes and records")
    func sleeper() async throws {
        try await PostgresStage.with { here in
            let sleeper = try await here.engine()
            try await StoreCopyTests.fill(sleeper, records: 20, pushes: 6)
            // A lease that is over at once: from here on it is asleep.
            try await sleeper.renew(for: .zero)
            let source = try await here.engine()
            let target = try SQLiteStore(
                path: here.stage.folder.path + "/moved.sqlite", owner: OwnerID(Digest16(high: 1, low: 3)),
                world: .live)
            let copy = try await StoreCopier(source: source, target: target, world: .live) { _ in }.run()
            let now = World.live.now()
            let push = StoredPush(
                row: 0, id: PushID(at: now, random: 1, 2), lane: StoreCopyTests.lane, pushClass: .normal,
                origin: Digest16(high: 1, low: 1), record: nil, touchedAt: now, notBefore: now,
                custodyEnds: now + .seconds(60), attempt: 0, epoch: 0, parked: false, mark: nil, sealed: [1])
            let record = try #require(try await sleeper.records(after: [], limit: 1).rows.first)
            let closed = StoreError(.moved)
            await #expect(throws: closed) { try await sleeper.renew(for: .seconds(20)) }
            await #expect(throws: closed) { try await sleeper.accept([push], changes: [], now: now) }
            await #expect(throws: closed) {
                try await sleeper.accept([push], changes: [.put(record, if: .any)], now: now)
            }
            await #expect(throws: closed) { try await sleeper.apply([.put(record, if: .any)], now: now) }
            await #expect(throws: closed) {
                try await sleeper.apply([.delete(record.key, if: .any)], now: now)
            }
            await #expect(throws: closed) { try await source.takeOver([StoreCopyTests.lane], limit: 10) }
            let left = try await StoreDigest.of(source, cutoff: now - .seconds(600))
            #expect(left == copy.digest, "nothing came or went")
            // Reopened, it goes on as if it had never been copied.
            try await source.bar(false)
            try await sleeper.renew(for: .seconds(20))
            guard case .committed = try await sleeper.accept([push], changes: [], now: now) else {
                Issue.record("the push was refused")
                return
            }
            await sleeper.close()
            await source.close()
            try target.close()
        }
    }

    @Test("Every kind of row, cut off in the middle and taken up again, in both directions")
    func everyRow() async throws {
        try await PostgresStage.with { here in
            let folder = here.stage.folder.path
            let source = try SQLiteStore(
                path: folder + "/a.sqlite", owner: OwnerID(Digest16(high: 1, low: 1)), world: .live)
            try await StoreCopyTests.fill(source, records: 3_300, pushes: 900)
            let cutoff = World.live.now() - .seconds(600)
            let before = try await StoreDigest.of(source, cutoff: cutoff)
            for commits in [0, 2, 4, 6, 5] {
                let target = try await here.engine()
                let cut = CutUpkeep(target, commits: commits, of: [.put, .fill])
                let copier = StoreCopier(source: source, target: cut, world: .live) { _ in }
                await #expect(throws: StoreCopier.Refusal.self) { _ = try await copier.run() }
                await target.close()
            }
            let target = try await here.engine()
            let copier = StoreCopier(source: source, target: target, world: .live) { _ in }
            #expect(try await copier.run().digest == before)
            #expect(try await StoreDigest.of(target, cutoff: cutoff) == before)
            #expect(try await target.lastRevision() >= source.lastRevision())
            // And back, into a fresh file.
            let again = try SQLiteStore(
                path: folder + "/b.sqlite", owner: OwnerID(Digest16(high: 1, low: 2)), world: .live)
            let back = StoreCopier(source: target, target: again, world: .live) { _ in }
            #expect(try await back.run().digest == before)
            await target.close()
            try again.close()
            try source.close()
            // Anyone who starts there takes over what is owed, and knows what has ended.
            let keeper = try await here.engine()
            try await keeper.put(setting: StoreSetting.copiedTo, to: nil)
            try await keeper.bar(false)
            try await keeper.renew(for: .seconds(20))
            var taken = 0
            for _ in 0..<10 { taken += try await keeper.takeOver([StoreCopyTests.lane], limit: 1_000) }
            #expect(taken == before.pushes.count)
            await keeper.close()
        }
    }
}

extension PostgresStage {
    /// Whether no relay starts on it.
    func closed() async throws -> Bool {
        do { try await stage.run(text) { _ in } } catch let failure as CommandFailure {
            return failure.lines.joined().contains("copied to another one")
        }
        return false
    }
}
