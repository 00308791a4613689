import Foundation
import PushModel
import PushTesting
import SQLiteStore
import Simulators
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("Why no push has arrived, asked by what an operator has", .timeLimit(.minutes(30)))
struct WeekOfPushesTests {
    /// The sealed bodies of all histories, as they stand in the file.
    private static func bodies(_ stage: RelayStage) async throws -> [[UInt8]] {
        guard case .sqlite(let path) = try stage.configuration().store.engine else { throw FileFault.missing }
        let store = try SQLiteStore(path: path, owner: OwnerID(Digest16(high: 1, low: 2)), world: .live)
        let rows = try await store.page(.space("core/history"), after: 0, limit: 100, now: World.live.now())
        try store.close()
        return rows.map(\.body)
    }

    @Test("The process before has an answer, by what the server calls the device; without token or realm")
    func restart() async throws {
        try await RelayStage.with { stage in
            var cast: (server: TestServer, phone: TestPhone)?
            try await stage.run { relay in
                let server = try await relay.server()
                let phone = try await relay.phone(.apns, of: server)
                #expect(try await server.notify(.test(time: 1), [phone], relay).apple == 1)
                try await relay.drained()
                cast = (server, phone)
            }
            let (server, phone) = try #require(cast)
            #expect(try await Self.bodies(stage).count == 1, "a stop writes what was counted")
            try await stage.run { relay in
                let person = try Operator(relay)
                let line = ["why", "--realm", server.realm.uuid, "--token-id", phone.group.tokenID.text]
                let told = await person.run(line)
                #expect(told.status == .done)
                #expect(told.out.first?.contains("of zulip-main is live") == true)
                #expect(told.out.dropFirst().contains { $0.contains("1 handed to the push service") })
                #expect(try await server.notify(.test(time: 2), [phone], relay).apple == 1)
                try await relay.drained()
                let json = try await person.json(
                    "why", "--realm", server.realm.uuid, "--token-id", phone.group.tokenID.text)
                let pushes = try #require(json["registrations"]?[0]?["pushes"]?.array)
                #expect(pushes.reduce(0) { $0 + ($1["count"]?.int64 ?? 0) } == 2, "both processes' pushes")
                let said = (told.out + told.err + stage.log.all).joined()
                #expect(!said.contains(phone.token))
                // A stranger's device, and words that name nothing.
                let other = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
                let none = await person.run(
                    "why", "--realm", other, "--token-id", phone.group.tokenID.text)
                #expect(none.status == .failed && none.out.first?.hasPrefix("unknown") == true)
                for wrong in [
                    ["why"], ["why", "--realm", other], ["why", "--token-id", "x"],
                    ["why", "--realm", "x", "--device-id", "1"],
                    ["why", "019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f", "--realm", other, "--device-id", "1"]
                ] { #expect(await person.run(wrong).status == .usage, "\(wrong)") }
            }
        }
    }

    @Test("Refusals have the service's word; to forget a device leaves no history in any file")
    func forgotten() async throws {
        try await RelayStage.with { stage in
            var cast: (server: TestServer, phone: TestPhone)?
            try await stage.run { relay in
                let person = try Operator(relay)
                let server = try await relay.server()
                let phone = try await relay.phone(.fcm, of: server)
                cast = (server, phone)
                stage.fcm.turn { $0.unavailableShare = 1 }
                _ = try await server.notify(.test(time: 1), [phone], relay)
                let line = ["why", "--realm", server.realm.uuid, "--token-id", phone.group.tokenID.text]
                let put = await person.run(line)
                #expect(put.out.contains { $0.contains("tries put off (UNAVAILABLE)") }, "\(put.out)")
                stage.fcm.turn { $0.unavailableShare = 0 }
                try await relay.drained()
                #expect(await person.run(line).out.contains { $0.contains("handed to the push service") })
            }
            let (server, phone) = try #require(cast)
            let bodies = try await Self.bodies(stage)
            #expect(bodies.count == 1)
            try await stage.run { relay in
                let person = try Operator(relay)
                let gone = await person.run(
                    "forget", "device", "--realm", server.realm.uuid, "--token-id",
                    phone.group.tokenID.text)
                #expect(gone.status == .done)
                let none = await person.run(
                    "why", "--realm", server.realm.uuid, "--token-id", phone.group.tokenID.text)
                #expect(none.status == .failed)
            }
            #expect(try await Self.bodies(stage).isEmpty)
            let names = try FileManager.default.contentsOfDirectory(atPath: stage.state)
            for name in names {
                guard let bytes = FileManager.default.contents(atPath: "\(stage.state)/\(name)") else {
                    continue
                }
                for body in bodies {
                    #expect(bytes.range(of: Data(body[8..<40])) == nil, "\(name)")
                }
            }
        }
    }

    @Test("Turned off, nothing is kept, and what was kept goes")
    func off() async throws {
        try await RelayStage.with { stage in
            let off = RelayStage.text + "history: off\n"
            try await stage.run { relay in
                let server = try await relay.server()
                let phone = try await relay.phone(.apns, of: server)
                #expect(try await server.notify(.test(time: 1), [phone], relay).apple == 1)
                try await relay.drained()
            }
            #expect(try await Self.bodies(stage).count == 1)
            try await stage.run(off) { relay in
                let person = try Operator(relay)
                let server = try await relay.server("other.acme.example")
                let phone = try await relay.phone(.apns, of: server)
                #expect(try await server.notify(.test(time: 1), [phone], relay).apple == 1)
                let told = await person.run(
                    "why", "--realm", server.realm.uuid, "--token-id", phone.group.tokenID.text)
                #expect(told.out.contains { $0.contains("turned off") })
            }
            #expect(try await Self.bodies(stage).isEmpty)
        }
    }
}
