import AdminIngress
import Foundation
import NextcloudPush
import PushModel
import SessionPush
import Simulators
import StatusPush
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

@Suite("Forgetting on an operator's word", .timeLimit(.minutes(30)))
struct ForgetTests {
    /// Names of files that still hold any 24 bytes in a row of what was forgotten.
    private static func holders(_ stage: RelayStage, _ row: [UInt8]) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: stage.state).filter { name in
            guard let bytes = FileManager.default.contents(atPath: "\(stage.state)/\(name)") else {
                return false
            }
            return stride(from: 0, to: max(1, row.count - 24), by: 8).contains {
                bytes.range(of: Data(row[$0..<min($0 + 24, row.count)])) != nil
            }
        }
    }

    @Test("An origin goes with its host, realms and devices, out of every file; another origin stays")
    func origin() async throws {
        try await RelayStage.with { stage in
            var kept: (server: DemoServer, phone: DemoApp)?
            var gone: DemoServer?
            try await stage.run { relay in
                let server = try await relay.server()
                for _ in 0..<3 { _ = try await relay.phone(.apns, of: server) }
                _ = try await relay.phone(.fcm, of: server)
                let other = try await relay.server("other.acme.example")
                kept = (other, try await relay.phone(.apns, of: other))
                gone = server
            }
            let before = try await stage.bodies(of: "zulip-main/device")
            let servers = try await stage.bodies(of: "zulip-main/server")
            #expect(before.count == 5 && servers.count == 2)
            let (server, (other, phone)) = (try #require(gone), try #require(kept))
            try await stage.run { relay in
                let person = try Operator(relay)
                #expect(await person.run("forget", "origin", server.host).status == .usage, "not said twice")
                let nobody = await person.run("forget", "origin", "nobody.example", "--yes")
                #expect(nobody.status == .failed)
                let forgotten = await person.run("forget", "origin", server.host, "--yes")
                #expect(forgotten.status == .done)
                #expect(forgotten.out == ["Forgotten: 1 origin, 1 host, 1 realm, 4 devices."])
                #expect(await person.run("forget", "origin", server.origin.id, "--yes").status == .failed)
                #expect(try await relay.ask(server.origin.analyticsStatus()).status == 401)
                #expect(try await other.notify(.test(time: 1), [phone], relay).apple == 1)
                // The host name is free again.
                try await DemoServer(server.host).join(relay)
            }
            let devices = try await stage.bodies(of: "zulip-main/device")
            let origins = try await stage.bodies(of: "zulip-main/server")
            #expect(devices.count == 1 && origins.count == 2)
            let lost = (before + servers).filter { !(devices + origins).contains($0) }
            #expect(lost.count == 5)
            for row in lost { #expect(try Self.holders(stage, row).isEmpty) }
        }
    }

    @Test("An address goes with every registration that any origin made of it, however it was spelled")
    func address() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let (one, two) = (try await relay.server(), try await relay.server("two.acme.example"))
            let token = DemoApp.token(.apns)
            let first = try await relay.phone(.apns, of: one, token: token)
            // As an app without the kit may spell it.
            var second = try DemoApp(.apns, relay.bouncerKey, token: token)
            try second.spell(token.uppercased(), bundle: "org.acme.chat")
            #expect(try await two.register(second, relay).status == 200)
            let bystander = try await relay.phone(.apns, of: two)
            let android = try await relay.phone(.fcm, of: two)
            // An acceptance teaches the environment of the address.
            #expect(try await one.notify(.test(time: 1), [first], relay).apple == 1)
            try await relay.drained()
            let forgotten = try await person.json("forget", "address", input: token + "\n")
            #expect(forgotten["devices"]?.int64 == 2 && forgotten["environments"]?.int64 == 1)
            let dead = try await one.notify(.test(time: 2), [first], relay).dead
            #expect(dead == [first.tokenID.text])
            let other = try await two.notify(.test(time: 2), [second, bystander, android], relay)
            #expect(other.dead == [second.tokenID.text])
            #expect(other.apple == 1 && other.android == 1)
            let again = await person.run("forget", "address", input: token)
            #expect(again.status == .failed)
            #expect(again.out == ["Forgotten: 0 devices, 0 environments."])
            let google = await person.run("forget", "address", input: android.token)
            #expect(google.out.first?.hasPrefix("Forgotten: 1 device") == true)
            #expect(await person.run("forget", "address", input: "").status == .usage)
            let said = (again.out + google.out + relay.stage.log.all).joined()
            #expect(!said.contains(token) && !said.contains(android.token))
        }
    }

    @Test("No protocol registers an address that is too long for an operator to name")
    func bounds() {
        let longest = [
            ZulipLimits.tokenCharacters, NextcloudLimits.tokenBytes, SessionLimits.tokenBytes.upperBound,
            StatusLimits.deviceTokenBytes
        ]
        #expect(longest.max() == DeskLimits.addressBytes)
        // Each of its characters may be two in a body.
        #expect(2 * DeskLimits.addressBytes < AdminCall.bodyLimitBytes)
    }

    @Test("The longest address goes as any other; a longer one is refused, and takes nothing along")
    func longest() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let server = try await relay.server()
            let long = String(repeating: "cB7_", count: ZulipLimits.tokenCharacters / 4)
            let phone = try await relay.phone(.fcm, of: server, token: long)
            let bystander = try await relay.phone(.fcm, of: server)
            for input in [long + "a", "\n\n\(long)a", String(repeating: " ", count: 65) + long] {
                let refused = await person.run("forget", "address", input: input)
                #expect(refused.status == .usage && refused.out == [])
                #expect(!refused.err.joined().contains("cB7_"))
            }
            let json: (name: String, value: Secret) = ("Content-Type", Secret("application/json".utf8))
            for (address, status) in [(long + "a", 400), (String(repeating: "\\\"", count: 4_096), 200)] {
                let body = Secret("{\"address\":\"\(address)\"}".utf8)
                let answer = try await relay.door("admin").ask(
                    "POST", ForgetDesk.addressPath, headers: [json], body: body)
                #expect(answer.status == status)
            }
            let forgotten = await person.run("forget", "address", input: "\r\n \(long)\r\n")
            #expect(forgotten.out == ["Forgotten: 1 device, 0 environments."])
            let told = try await server.notify(.test(time: 1), [phone, bystander], relay)
            #expect(told.dead == [phone.tokenID.text] && told.android == 1)
        }
    }

    @Test("One device goes by realm and token id; a wrong name changes nothing")
    func device() async throws {
        try await RelayStage.running { relay in
            let person = try Operator(relay)
            let server = try await relay.server()
            let phones = [
                try await relay.phone(.apns, of: server), try await relay.phone(.apns, of: server)
            ]
            let realm = server.realm.uuid
            let id = phones[0].tokenID.text
            for (realm, id) in [(realm, "AAAAAAAAAAA="), ("x", id), (realm, "x"), (server.origin.id, id)] {
                let wrong = await person.run(
                    "forget", "device", "--realm", realm, "--token-id", id)
                #expect(wrong.status == .failed, "\(realm) \(id)")
            }
            #expect(try await server.notify(.test(time: 1), phones, relay).apple == 2)
            let gone = await person.run("forget", "device", "--realm", realm, "--token-id", id)
            #expect(gone.status == .done && gone.out == ["Forgotten: 1 device."])
            let answer = try await server.notify(.test(time: 2), phones, relay)
            #expect(answer.apple == 1 && answer.dead == [id])
            // It comes back by registering.
            #expect(try await server.register(phones[0], relay).status == 200)
            #expect(try await server.notify(.test(time: 3), phones, relay).apple == 2)
        }
    }
}
