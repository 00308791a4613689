import AtRest
import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("sealbell keys rotate-storage", .timeLimit(.minutes(30)))
struct RotateStorageTests {
    @Test("Beside a relay that serves: registrations and owed pushes go on, and the old key may go")
    func rotates() async throws {
        try await RelayStage.with { stage in
            let path = try stage.configuration().store.keysFile
            var phone: DemoApp?
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            try await stage.run { relay in
                let person = try Operator(relay)
                let server = try await relay.server()
                phone = try await relay.phone(.apns, of: server)
                let first = try #require(phone)
                _ = try await server.notify(DemoApp.message(1, "before"), [first], relay)
                let rotated = await person.run("keys", "rotate-storage", "--file", path)
                #expect(rotated.status == .done, "\(rotated.err)")
                #expect(rotated.out.count == 1 && rotated.out[0].contains("key 2"))
                #expect(try KeyFile.read(path).seal.map(\.number) == [2, 1])
                let again = await person.run("keys", "rotate-storage", "--file", path)
                #expect(again.status == .done && (try? KeyFile.read(path).seal.count) == 2)
                _ = try await server.notify(DemoApp.message(2, "after"), [first], relay)
                let dropped = await person.run("keys", "rotate-storage", "--drop-old", "--file", path)
                #expect(dropped.status == .done, "\(dropped.err)")
                #expect(try KeyFile.read(path).seal.map(\.number) == [2])
                #expect(try await relay.owed() == 2)
            }
            // With the new key alone the next relay knows the phone, and sends what was owed.
            stage.apns.turn { $0.shutdownUntil = nil }
            try await stage.run { relay in try await relay.drained() }
            let opened = try stage.apns.deliveries().map { try #require(phone).open($0) }
            #expect(opened.count == 2)
        }
    }

    @Test("What --drop-old says it took out of a file is what it took out of that file")
    func dropsFromACopy() async throws {
        try await RelayStage.with { stage in
            let path = try stage.configuration().store.keysFile
            let copy = path + ".copy"
            try await stage.run { relay in
                let person = try Operator(relay)
                #expect(await person.run("keys", "rotate-storage", "--file", path).status == .done)
                try FileManager.default.copyItem(atPath: path, toPath: copy)
                let first = await person.run("keys", "rotate-storage", "--drop-old", "--file", path)
                #expect(first.out == ["Dropped seal key 1 from \(path)."])
                try await asked(for: "a relay that holds the new key alone") {
                    let status = try JSONValue.parse(try await relay.admin(SealKeyDesk.path).body)
                    return status["held"]?.array?.count == 1
                }
                let second = await person.run("keys", "rotate-storage", "--drop-old", "--file", copy)
                #expect(second.out == ["Dropped seal key 1 from \(copy)."], "\(second.err)")
                #expect(try KeyFile.read(copy).seal.map(\.number) == [2])
                let third = await person.run("keys", "rotate-storage", "--drop-old", "--file", copy)
                #expect(third.status == .done && third.out == ["\(copy) had no older key."])
            }
        }
    }

    @Test("A relay of another store, such as a rehearsal, neither adds a key to a file nor drops one")
    func anotherStore() async throws {
        try await RelayStage.with { stage in
            let own = try stage.configuration().store.keysFile
            let (fresh, rotated) = (stage.folder.path + "/fresh.keys", stage.folder.path + "/rotated.keys")
            for path in [fresh, rotated] { _ = try KeyFile.create(path, .live) }
            _ = try KeyFile.change(rotated) { keys throws(KeyFileError) in
                guard let keys = keys.rotated(.live) else { throw KeyFileError(.malformed) }
                return keys
            }
            try await stage.run { relay in
                let person = try Operator(relay)
                for more in [[], ["--drop-old"]] {
                    let done = await person.run(["keys", "rotate-storage", "--file", own] + more)
                    #expect(done.status == .done, "\(done.err)")
                }
                // The newest key has the number 2 in both stores, and this one needs no other.
                for (path, numbers, more) in [
                    (rotated, [2, 1], ["--drop-old"]), (rotated, [2, 1], []), (fresh, [1], [])
                ] as [(String, [UInt32], [String])] {
                    let refused = await person.run(
                        ["keys", "rotate-storage", "--wait", "0", "--file", path] + more)
                    #expect(refused.status == .configuration, "\(refused.err)")
                    #expect(refused.err.last?.contains("another store's") == true, "\(refused.err)")
                    #expect(try KeyFile.read(path).seal.map(\.number) == numbers)
                }
            }
        }
    }

    @Test("Without a relay the key waits in the file; a file of another store is refused, and told")
    func others() async throws {
        try await RelayStage.with { stage in
            let path = try stage.configuration().store.keysFile
            try await stage.run { relay in
                let person = try Operator(relay)
                let right = try #require(FileManager.default.contents(atPath: path))
                unlink(path)
                _ = try KeyFile.create(path, .live)
                let refused = await person.run("keys", "rotate-storage", "--file", path)
                #expect(refused.status == .configuration)
                #expect(refused.err.contains { $0.contains("does not open the store") })
                try right.write(to: URL(filePath: path))
                unlink(stage.state + "/" + RunFile.name)
                let alone = await person.run("keys", "rotate-storage", "--file", path)
                #expect(alone.status == .done && alone.err.contains { $0.contains("when it starts") })
                #expect(try KeyFile.read(path).seal.count == 2)
                let missing = await person.run("keys", "rotate-storage", "--file", path + ".none")
                #expect(missing.status == .configuration)
            }
        }
    }
}
