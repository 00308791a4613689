import Foundation
import PushModel
import PushTesting
import SealbellKit
import Simulators
import Testing
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("Why no push has arrived, asked by what an operator has", .timeLimit(.minutes(30)))
struct WeekOfPushesTests {
    @Test("The process before has an answer, by what the server calls the device; without token or realm")
    func restart() async throws {
        try await RelayStage.with { stage in
            var cast: (server: DemoServer, phone: DemoApp)?
            try await stage.run { relay in
                let (server, phone) = try await relay.join(.apns)
                #expect(try await server.notify(.test(time: 1), [phone], relay).apple == 1)
                try await relay.drained()
                cast = (server, phone)
            }
            let (server, phone) = try #require(cast)
            #expect(try await stage.bodies(of: "core/history").count == 1, "a stop writes what was counted")
            try await stage.run { relay in
                let person = try Operator(relay)
                let line = ["why", "--realm", server.realm.uuid, "--token-id", phone.tokenID.text]
                let told = await person.run(line)
                #expect(told.status == .done)
                #expect(told.out.first?.contains("of zulip-main is live") == true)
                #expect(told.out.dropFirst().contains { $0.contains("1 handed to the push service") })
                #expect(try await server.notify(.test(time: 2), [phone], relay).apple == 1)
                try await relay.drained()
                let json = try await person.json(
                    "why", "--realm", server.realm.uuid, "--token-id", phone.tokenID.text)
                let pushes = try #require(json["registrations"]?[0]?["pushes"]?.array)
                #expect(pushes.reduce(0) { $0 + ($1["count"]?.int64 ?? 0) } == 2, "both processes' pushes")
                let said = (told.out + told.err + stage.log.all).joined()
                #expect(!said.contains(phone.token))
                // A stranger's device, and words that name nothing.
                let other = "0ec3eedd-6233-4c5e-a000-b9942be3494e"
                let none = await person.run(
                    "why", "--realm", other, "--token-id", phone.tokenID.text)
                #expect(none.status == .failed && none.out.first?.hasPrefix("unknown") == true)
                #expect(none.out.last?.hasPrefix("what next ") == true)
                for wrong in [
                    ["why"], ["why", "--realm", other], ["why", "--token-id", "x"],
                    ["why", "--realm", "x", "--device-id", "1"],
                    ["why", "019a5c3e-7d41-7c22-9f0e-3b1d2a4c5e6f", "--realm", other, "--device-id", "1"]
                ] { #expect(await person.run(wrong).status == .usage, "\(wrong)") }
            }
        }
    }

    @Test("A token in a file and the app's support code name the same registrations, at every instance")
    func names() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let (one, two) = (try await relay.server(), try await relay.server("two.acme.example"))
            let token = DemoApp.token(.apns)
            let phone = try await relay.phone(.apns, of: one, token: token)
            _ = try await relay.phone(.apns, of: two, token: token.uppercased())
            let other = try await relay.phone(.fcm, of: two)
            #expect(try await one.notify(.test(time: 1), [phone], relay).apple == 1)
            try await relay.drained()
            try writeFile(relay.stage.folder.path + "/token.txt", Array("\(token)\n".utf8), replacing: true)
            let byToken = try await person.json("why", "--token", "token.txt")
            let registrations = try #require(byToken["registrations"]?.array)
            #expect(registrations.count == 2)
            let counts = registrations.map { $0["pushes"]?.array?.count ?? 0 }
            #expect(counts.sorted() == [0, 1])
            let now = World.live.now()
            let device = try DeviceToken.apns(hex: token)
            let code = device.supportCode(at: now).lowercased()
            let byCode = try await person.json("why", "--code", code)
            #expect(byCode["whole"]?.bool == true)
            func ids(_ answer: JSONValue) -> Set<String> {
                Set((answer["registrations"]?.array ?? []).compactMap { $0["registration"]?.string })
            }
            #expect(ids(byCode) == ids(byToken) && ids(byCode).count == 2)
            let old = device.supportCode(at: now - .seconds(2 * 86_400))
            #expect(ids(try await person.json("why", "--code", old)).count == 2, "for 72 hours")
            for days in [4, 5, -1] {
                let wrong = device.supportCode(at: now - .seconds(days * 86_400))
                #expect(await person.run("why", "--code", wrong).status == .failed, "\(days)")
            }
            let google = try DeviceToken.fcm(other.token).supportCode(at: now)
            #expect(ids(try await person.json("why", "--code", google)).count == 1)
            // Lines in a span, and the latest of them.
            let lines = await person.run("why", "--code", code, "--since", "2h", "--last", "1")
            #expect(lines.status == .done && lines.out.count == 4)
            let none = await person.run("why", "--token", "token.txt", "--until", "2026-01-01")
            #expect(none.out.contains { $0.contains("in that time") })
            for wrong in [
                ["--code", "abc"], ["--code", code, "--account", "x"], ["--since", "2h"],
                ["--code", code, "--since", "yesterday"], ["--code", code, "--last", "0"]
            ] { #expect(await person.run(["why"] + wrong).status == .usage, "\(wrong)") }
            #expect(await person.run("why", "--token", "missing.txt").status == .configuration)
            let said = (lines.out + none.out + relay.stage.log.all).joined()
            #expect(!said.lowercased().contains(token.lowercased()) && !said.contains(other.token))
            #expect(!said.contains(code) && !said.contains(code.uppercased()))
        }
    }

    @Test("Refusals have the service's word; to forget a device leaves no history in any file")
    func forgotten() async throws {
        try await RelayStage.with { stage in
            var cast: (server: DemoServer, phone: DemoApp)?
            try await stage.run { relay in
                let person = try Operator(relay)
                let (server, phone) = try await relay.join(.fcm)
                cast = (server, phone)
                stage.fcm.turn { $0.unavailableShare = 1 }
                _ = try await server.notify(.test(time: 1), [phone], relay)
                let line = ["why", "--realm", server.realm.uuid, "--token-id", phone.tokenID.text]
                let put = await person.run(line)
                #expect(put.out.contains { $0.contains("tries put off (UNAVAILABLE)") }, "\(put.out)")
                stage.fcm.turn { $0.unavailableShare = 0 }
                try await relay.drained()
                #expect(await person.run(line).out.contains { $0.contains("handed to the push service") })
            }
            let (server, phone) = try #require(cast)
            let bodies = try await stage.bodies(of: "core/history")
            #expect(bodies.count == 1)
            try await stage.run { relay in
                let person = try Operator(relay)
                let gone = await person.run(
                    "forget", "device", "--realm", server.realm.uuid, "--token-id",
                    phone.tokenID.text)
                #expect(gone.status == .done)
                let none = await person.run(
                    "why", "--realm", server.realm.uuid, "--token-id", phone.tokenID.text)
                #expect(none.status == .failed)
            }
            #expect(try await stage.bodies(of: "core/history").isEmpty)
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
                let (server, phone) = try await relay.join(.apns)
                #expect(try await server.notify(.test(time: 1), [phone], relay).apple == 1)
                try await relay.drained()
            }
            #expect(try await stage.bodies(of: "core/history").count == 1)
            try await stage.run(off) { relay in
                let person = try Operator(relay)
                let server = try await relay.server("other.acme.example")
                let phone = try await relay.phone(.apns, of: server)
                #expect(try await server.notify(.test(time: 1), [phone], relay).apple == 1)
                let told = await person.run(
                    "why", "--realm", server.realm.uuid, "--token-id", phone.tokenID.text)
                #expect(told.out.contains { $0.contains("turned off") })
            }
            #expect(try await stage.bodies(of: "core/history").isEmpty)
        }
    }
}
