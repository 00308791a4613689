import AtRest
import Foundation
import PushModel
import PushTesting
import SQLiteStore
import Simulators
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("sealbell store copy", .timeLimit(.minutes(30)))
struct StoreCopyTests {
    static let lane = "acme/apns/production"

    /// A command line in a folder.
    private func run(_ folder: String, _ arguments: String...) async -> CommandRun {
        await .of(arguments, in: folder)
    }

    private func open(_ path: String, _ number: UInt64 = 1) throws -> SQLiteStore {
        try SQLiteStore(path: path, owner: OwnerID(Digest16(high: 8, low: number)), world: .live)
    }

    /// Records of every state, owed pushes, ended ones with their marks, under a key file.
    private func fill(_ path: String, _ keyFile: String, records: Int, pushes: Int) async throws {
        let engine = try open(path)
        let keys = try KeyFile.create(keyFile, .live)
        try await Self.fill(engine, keys, records: records, pushes: pushes)
        try engine.close()
    }

    static func fill(
        _ engine: any Engine, _ keys: AtRestKeys = .generate(.live), records: Int, pushes: Int
    ) async throws {
        let store = try await SealedStore(engine: engine, keys: keys, world: .live)
        let space = Space(core: "copied")
        let now = World.live.now()
        func key(_ number: Int) -> RecordKey { RecordKey(space, Secret("n\(number)".utf8)) }
        _ = try await store.apply(
            (0..<records).map { number in
                .put(
                    Record(
                        key: key(number), owner: number % 2 == 0 ? key(-1) : nil,
                        address: number % 3 == 0 ? key(-2) : nil, version: UInt64.max - UInt64(number),
                        state: number % 5 == 0 ? .tombstone : .live, touchedAt: now,
                        body: Secret("body \(number)".utf8)), if: .any)
            })
        _ = try await store.apply([.expire(key(1), at: now, if: .any)])
        let items = (0..<pushes).map { number in
            StoredPush(
                row: 0, id: PushID(at: now, random: UInt64(number), 1), lane: lane, pushClass: .normal,
                origin: Digest16(high: 1, low: 1), record: nil, touchedAt: now, notBefore: now,
                custodyEnds: now + .seconds(3600), attempt: number % 3, epoch: 0, parked: number % 2 == 0,
                mark: Digest16(high: 7, low: UInt64(number)), sealed: Array("sealed \(number)".utf8))
        }
        guard case .committed(let admitted) = try await engine.accept(items, changes: [], now: now) else {
            throw FileFault.broken
        }
        // A third of them have ended, and left their marks.
        let ended = zip(items, admitted).compactMap { item, admission -> StoredSettlement? in
            guard case .owed(let row, let epoch) = admission, row % 3 == 0 else { return nil }
            return StoredSettlement(
                row: row, id: item.id, epoch: epoch, mark: item.mark, step: .settle, first: .accepted)
        }
        _ = try await engine.settle(ended, feedback: [], now: now)
    }

    private func digest(_ path: String) async throws -> StoreDigest {
        let reader = try SQLiteReader(path, World.live.instant)
        return try await StoreDigest.of(reader, cutoff: World.live.now() - .seconds(600))
    }

    @Test("Everything goes: records of every state, owed pushes, marks; nobody starts on the old one")
    func everything() async throws {
        let folder = try TemporaryFolder()
        let (old, new) = (folder.path + "/old.sqlite", folder.path + "/new.sqlite")
        try await fill(old, folder.path + "/storage.keys", records: 2_500, pushes: 1_200)
        let before = try await digest(old)
        #expect(before.records.count == 2_500 && before.pushes.count == 800 && before.marks.count == 400)
        let copied = await run(
            folder.path, "store", "copy", "--from", "sqlite:old.sqlite", "--to", "sqlite:new.sqlite")
        #expect(copied.status == .done, "\(copied.err)")
        #expect(copied.err.contains { $0.wholeMatch(of: #/1000 records copied, \d+ %/#) != nil })
        #expect(copied.err.contains { $0.contains(" of 3300 rows of the target compared, ") })
        #expect(try await digest(new) == before)
        #expect(try await digest(old) == before, "the source is as it was")

        let keys = try KeyFile.read(folder.path + "/storage.keys")
        let source = try open(old)
        await #expect(throws: StoreError(.moved)) {
            _ = try await SealedStore(engine: source, keys: keys, world: .live)
        }
        try source.close()
        // The target takes the owed ones over from an owner that nobody is, and knows the repeats.
        let target = try open(new, 2)
        let store = try await SealedStore(engine: target, keys: keys, world: .live, upkeep: target)
        let lanes = [try #require(LaneName(Self.lane))]
        #expect(try await store.takeOver(lanes, limit: 10_000) == 800)
        #expect(try await target.load().lanes == [Self.lane: 800])
        let now = World.live.now()
        let again = StoredPush(
            row: 0, id: PushID(at: now, random: 9, 9), lane: Self.lane, pushClass: .normal,
            origin: Digest16(high: 1, low: 1), record: nil, touchedAt: now, notBefore: now,
            custodyEnds: now, attempt: 0, epoch: 0, parked: true, mark: Digest16(high: 7, low: 2),
            sealed: [1])
        guard case .committed(let admitted) = try await target.accept([again], changes: [], now: now),
            case .repeated(_, let first)? = admitted.first
        else {
            Issue.record("an ended push is not known by its mark")
            return
        }
        #expect(first == .accepted)
        // Revisions go on above the old ones.
        let last = try await target.lastRevision()
        #expect(last >= 2_501)
        try target.close()

        let twice = await run(
            folder.path, "store", "copy", "--from", "sqlite:old.sqlite", "--to", "sqlite:new.sqlite")
        #expect(twice.status == .done && twice.out.contains { $0.contains("nothing was changed") })
        let other = await run(
            folder.path, "store", "copy", "--from", "sqlite:old.sqlite", "--to", "sqlite:third.sqlite")
        #expect(other.status == .failed && other.err.contains { $0.contains("store reopen") })
        let reopened = await run(folder.path, "store", "reopen", "sqlite:old.sqlite")
        #expect(reopened.status == .done)
        let back = try open(old)
        _ = try await SealedStore(engine: back, keys: keys, world: .live)
        try back.close()
    }

    @Test("Cut off after any number of commits, the same command goes on, and the rows are the same")
    func resumes() async throws {
        let folder = try TemporaryFolder()
        let old = folder.path + "/old.sqlite"
        try await fill(old, folder.path + "/storage.keys", records: 9_500, pushes: 600)
        let before = try await digest(old)
        for commits in [0, 1, 2, 3, 7, 13, 14, 15, 16, 17] {
            let path = folder.path + "/new-\(commits).sqlite"
            let source = try open(old)
            try await source.put(setting: StoreSetting.copiedTo, to: nil)
            let target = try open(path, 2)
            let cut = CutUpkeep(target, commits: commits, of: [.put, .fill])
            let first = StoreCopier(source: source, target: cut, world: .live) { _ in }
            await #expect(throws: StoreCopier.Refusal.store(StoreError(.unavailable), isSource: false)) {
                _ = try await first.run()
            }
            try source.close()
            try target.close()
            // Half of a copy takes no relay; an untouched one is only empty.
            if commits > 0 {
                let half = try open(path, 3)
                let keys = try KeyFile.read(folder.path + "/storage.keys")
                await #expect(throws: StoreError(.unfinished)) {
                    _ = try await SealedStore(engine: half, keys: keys, world: .live)
                }
                try half.close()
            }
            let again = await run(
                folder.path, "store", "copy", "--from", "sqlite:old.sqlite", "--to", "sqlite:\(path)",
                "--json")
            #expect(again.status == .done, "\(again.err)")
            #expect(try await digest(path) == before)
            let told = try JSONValue.parse(Array(again.out.joined().utf8))
            let moved = try #require(told["moved"]?.string.flatMap { Int($0) })
            #expect(commits < 4 || moved < before.records.count, "it begins where the first ended")
        }
    }

    @Test("A target that holds something, a source that is served, half a copy as a source: nothing changes")
    func refusals() async throws {
        let folder = try TemporaryFolder()
        let (old, new) = (folder.path + "/old.sqlite", folder.path + "/new.sqlite")
        try await fill(old, folder.path + "/storage.keys", records: 10, pushes: 3)
        try await fill(new, folder.path + "/other.keys", records: 1, pushes: 0)
        let (before, standing) = (try await digest(old), try await digest(new))
        func copy(_ from: String, _ to: String) async -> CommandRun {
            await run(folder.path, "store", "copy", "--from", from, "--to", to)
        }
        let full = await copy("sqlite:old.sqlite", "sqlite:new.sqlite")
        #expect(full.status == .failed && full.err.contains { $0.contains("holds something else") })
        let served = try open(old)
        let busy = await copy("sqlite:old.sqlite", "sqlite:third.sqlite")
        #expect(busy.status == .unavailable && busy.err.contains { $0.contains("A relay serves from it") })
        try served.close()
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/third.sqlite"))
        let absent = await copy("sqlite:none.sqlite", "sqlite:third.sqlite")
        #expect(absent.status == .failed)
        #expect(!FileManager.default.fileExists(atPath: folder.path + "/none.sqlite"))
        #expect(await copy("sqlite:old.sqlite", "sqlite:old.sqlite").status == .usage)
        #expect(await copy("relay.sqlite", "sqlite:third.sqlite").status == .usage)
        let half = try open(old)
        try await half.put(setting: StoreSetting.filledFrom, to: [1])
        try half.close()
        let halved = await copy("sqlite:old.sqlite", "sqlite:third.sqlite")
        #expect(halved.status == .failed && halved.err.contains { $0.contains("half of a copy") })
        #expect(try await digest(old) == before)
        #expect(try await digest(new) == standing)
    }

    @Test("A newer schema on either side is refused, and stays as it is")
    func newerSchema() async throws {
        let folder = try TemporaryFolder()
        let (old, new) = (folder.path + "/old.sqlite", folder.path + "/new.sqlite")
        try await fill(old, folder.path + "/storage.keys", records: 2, pushes: 1)
        try await fill(new, folder.path + "/other.keys", records: 0, pushes: 0)
        for (path, other) in [(old, "third"), (new, "fourth")] {
            let store = try open(path)
            try store.close()
            try await addMigration(path)
            let before = try await dump(path)
            let told = await run(
                folder.path, "store", "copy", "--from", "sqlite:\(path)", "--to", "sqlite:\(other).sqlite")
            #expect(told.status == .configuration)
            #expect(told.err.contains { $0.contains("newer Sealbell") })
            let checked = await run(
                folder.path, "store", "check", "sqlite:\(path)", "--keys", folder.path + "/storage.keys")
            #expect(checked.status == .configuration)
            let after = try await dump(path)
            #expect(after == before && before.contains("9 of the future"))
        }
    }

    private func addMigration(_ path: String) async throws {
        _ = try python(
            path, "db.execute(\"INSERT INTO grdb_migrations VALUES ('9 of the future')\"); db.commit()")
    }

    /// Everything that stands in a database, as SQL.
    private func dump(_ path: String) async throws -> String {
        try python(path, "print('\\n'.join(db.iterdump()))")
    }

    private func python(_ path: String, _ line: String) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c", "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \(line); db.close()",
            path
        ]
        let pipe = try PrivatePipe()
        process.standardOutput = pipe.writing
        try process.run()
        try pipe.writing.close()
        let said = try pipe.reading.readToEnd() ?? Data()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: said, as: UTF8.self)
    }

    @Test("From one relay to the next: owed pushes are delivered by it, and it knows the registrations")
    func endToEnd() async throws {
        try await RelayStage.with { stage in
            var phone: DemoApp?
            var server: DemoServer?
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                let (origin, device) = try await relay.join(.apns)
                (server, phone) = (origin, device)
                _ = try await origin.notify(DemoApp.message(1, "owed"), [device], relay)
                #expect(try await relay.owed() == 1)
            }
            let (origin, device) = (try #require(server), try #require(phone))
            // There, and back again.
            for (from, to) in [("relay", "moved"), ("moved", "back")] {
                let copied = await run(
                    stage.state, "store", "copy", "--from", "sqlite:\(from).sqlite", "--to",
                    "sqlite:\(to).sqlite")
                #expect(copied.status == .done, "\(copied.err)")
            }
            await #expect(throws: CommandFailure.self) { try await stage.run { _ in } }
            stage.apns.turn { $0.shutdownUntil = nil }
            try await stage.run(RelayStage.text + "store: { url: \"sqlite:back.sqlite\" }\n") { relay in
                try await relay.drained()
                #expect(try await origin.notify(DemoApp.message(2, "new"), [device], relay).status == 200)
                try await relay.drained()
            }
            #expect(stage.apns.deliveries().count == 2)
        }
    }
}

@Suite("sealbell store check", .timeLimit(.minutes(30)))
struct StoreCheckTests {
    private func check(_ stage: RelayStage, _ arguments: String...) async throws -> CommandRun {
        let keys = try stage.configuration().store.keysFile
        return await .of(
            ["store", "check", "sqlite:relay.sqlite", "--keys", keys] + arguments, in: stage.state)
    }

    @Test("A sound store, a changed record, a changed push, a lost key, another key file: each its own words")
    func faults() async throws {
        try await RelayStage.with { stage in
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                let (server, phone) = try await relay.join(.apns)
                _ = try await server.notify(DemoApp.message(1, "owed"), [phone], relay)
                let beside = try await check(stage, "--all")
                #expect(beside.status == .done, "\(beside.lines)")
            }
            let sound = try await check(stage, "--all")
            #expect(sound.status == .done && sound.lines.contains { $0.contains("owed pushes: 1, digest") })
            #expect(try await check(stage).status == .done)

            let path = stage.state + "/relay.sqlite"
            let engine = try SQLiteStore(path: path, owner: OwnerID(Digest16(high: 1, low: 9)), world: .live)
            let record = try #require(try await engine.records(after: [], limit: 1).rows.first)
            let push = try #require(try await engine.pushes(after: [], limit: 1).rows.first).push
            var body = record.body
            body[body.count - 1] ^= 1
            var sealed = push.sealed
            sealed[3] = 77
            #expect(
                try await engine.reseal([
                    .record(record.key, revision: record.revision, body: body),
                    .push(row: push.row, id: push.id, sealed: sealed)
                ]) == 2)
            try engine.close()
            let told = try await check(stage, "--all")
            #expect(told.status == .failed)
            let words = told.lines.filter { $0.hasPrefix("FAULT") }
            #expect(words.count == 2)
            let hex = Hex.encode(record.key.bytes)
            #expect(
                words.contains { $0.contains("records, \(record.space), key \(hex): The row does not open") })
            #expect(words.contains { $0.contains("outbox, push \(push.id.text)") && $0.contains("key 77") })

            let mended = try SQLiteStore(
                path: path, owner: OwnerID(Digest16(high: 1, low: 9)), world: .live)
            _ = try await mended.reseal([
                .record(record.key, revision: record.revision, body: record.body),
                .push(row: push.row, id: push.id, sealed: push.sealed)
            ])
            try mended.close()
            #expect(try await check(stage, "--all").status == .done)
            let keys = try stage.configuration().store.keysFile
            let right = try #require(FileManager.default.contents(atPath: keys))
            unlink(keys)
            _ = try KeyFile.create(keys, .live)
            let foreign = try await check(stage, "--all")
            #expect(foreign.status == .configuration)
            #expect(foreign.lines.filter { $0.hasPrefix("FAULT") }.count == 1, "not one line for each row")
            try right.write(to: URL(filePath: keys))
            let again = try await check(stage, "--all")
            let digests = again.lines.filter { $0.contains("digest") && !$0.contains("marks") }
            #expect(
                again.status == .done && digests == sound.lines.filter(digests.contains),
                "nothing is overwritten")
        }
    }
}
