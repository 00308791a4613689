import Foundation
import PushModel
import PushTesting
import SQLiteStore
import Simulators
import Testing
import WebClient
import WireFormats
@testable import ZulipPush
@testable import RelayProgram

@Suite("What a relay has been told is told to nobody", .timeLimit(.minutes(30)))
struct CanaryTests {
    /// An operator's token, and sign-up by invitation, so that both have canaries.
    static let text = RelayStage.text.replacing(
        "admin: { bind: \"127.0.0.1:0\" }", with: "admin: { bind: \"127.0.0.1:0\", token_file: admin.token }"
    ).replacing("sign_up: open", with: "sign_up: invite")
    static let token = CanaryCast.word("") + CanaryCast.word("") + CanaryCast.word("")

    static func prepare(_ folder: String) throws {
        try writeFile(folder + "/admin.token", Array(token.utf8), replacing: true)
    }

    /// Everything that the relay has written or says to strangers.
    private static func said(_ relay: RunningRelay) async throws -> [Said] {
        var said: [Said] = [("log", Data(relay.stage.log.all.joined().utf8))]
        for page in ["/metrics", "/status", "/", "/health/ready"] {
            said.append((page, Data(try await relay.admin(page).body)))
        }
        let stranger = DemoServer("stranger.example.org")
        for call in [stranger.origin.analyticsStatus(), stranger.origin.signUp(hostname: "?", mail: "?")] {
            said.append(("a stranger's answer", Data(try await relay.ask(call).body)))
        }
        return said + files(below: relay.stage.state)
    }

    private static func ask(_ call: CanaryCall, _ relay: RunningRelay) async throws -> LocalCall.Answer {
        let answer = try await relay.door(call.listener).ask(call)
        #expect(call.statuses.contains(answer.status), "\(call.name) \(call.path)")
        return answer
    }

    @Test("No canary of any request is in log, metrics, pages, answers of others or files of the store")
    func operation() async throws {
        try await RelayStage.with(Self.text, prepare: Self.prepare) { stage in
            // What is accepted now stays owed, in the outbox.
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            stage.fcm.turn { $0.unavailableShare = 1 }
            try await stage.run { relay in
                var cast = try CanaryCast(bouncerKey: relay.bouncerKey)
                try cast.read(stage.folder.path, public: relay.bouncerKey)
                for call in cast.invitations(token: Self.token) { _ = try await Self.ask(call, relay) }
                for call in try cast.life() {
                    let answer = try await Self.ask(call, relay)
                    let json = try JSONValue.parse(answer.body)
                    if let secret = json["verification_secret"]?.string {
                        try cast.learn("verification secret", secret)
                    }
                    if let half = call.half { _ = try await Self.ask(half, relay) }
                }
                for call in cast.leftovers() + cast.wrong() + cast.operation(token: Self.token)
                    + [cast.leave()]
                {
                    _ = try await Self.ask(call, relay)
                }
                for bytes in cast.broken() {
                    // Some are not worth an answer.
                    if let answer = try? await relay.door().send(bytes) { #expect(answer.status >= 400) }
                }
                #expect(try await relay.owed() == 2)
                try relay.writeRunFile()
                let said = try await Self.said(relay)
                #expect(
                    said.contains { $0.place.hasSuffix("-wal") } && said.contains { $0.place == "run.json" })
                // The search can find: what is public is there.
                let known = Canary("public key", relay.bouncerKey)
                #expect(said.contains { $0.place == "run.json" && known.isIn($0.bytes) })
                // But for the files whose secrets are looked for.
                cast.canaries.expectNone(
                    in: said.filter { $0.place != "storage.keys" && !$0.place.hasPrefix("sandbox/") })
            }
        }
    }

    @Test("What was settled and what has expired is in no file any more, whatever key one holds")
    func forgetting() async throws {
        try await RelayStage.with { stage in
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            var phone: DemoApp?
            var server: DemoServer?
            try await stage.run { relay in
                let (joined, made) = try await relay.join(.apns)
                _ = try await joined.notify(DemoApp.message(1, "settled"), [made], relay)
                #expect(try await relay.owed() == 1)
                (server, phone) = (joined, made)
            }
            let (owed, device) = try await Self.sealedRows(stage)
            let before = files(below: stage.state)
            for row in owed + [device] {
                #expect(before.contains { $0.bytes.range(of: Data(row)) != nil })
            }
            stage.apns.turn { $0.shutdownUntil = nil }
            let (joined, made) = (try #require(server), try #require(phone))
            let stream = stage.apns.subscribe(token: made.token)
            try await stage.run { relay in
                let arrivals = stream
                let delivery = try await arrivals.next("a delivery")
                #expect(try made.open(delivery).body == DemoApp.message(1, "settled"))
                try await relay.drained()
                stage.apns.unregister(made.token, since: World.live.now())
                let dead = try await joined.notify(.test(time: 1), [made], relay).dead
                #expect(dead == [made.tokenID.text])
                try await relay.drained()
            }
            let after = files(below: stage.state)
            #expect(after.contains { $0.place.hasSuffix(".sqlite") })
            for (index, row) in (owed + [device]).enumerated() {
                for (place, bytes) in after where Self.shares(bytes, with: row) {
                    Issue.record("row \(index) is still in \(place)")
                }
            }
        }
    }

    /// Whether any 24 bytes in a row of what was forgotten are left: a page that was cut counts too.
    private static func shares(_ bytes: Data, with row: [UInt8]) -> Bool {
        stride(from: 0, to: max(1, row.count - 24), by: 8).contains {
            bytes.range(of: Data(row[$0..<min($0 + 24, row.count)])) != nil
        }
    }

    /// The sealed columns as they stand in the file: those of the outbox, and the device's record.
    private static func sealedRows(_ stage: RelayStage) async throws -> ([[UInt8]], [UInt8]) {
        let owed = try await stage.opened { store in
            _ = try await store.takeOver([], limit: 10)
            var owed: [[UInt8]] = []
            for lane in try await store.load().lanes.keys {
                owed += try await store.claim(lane, due: .distantFuture, limit: 10).map(\.sealed)
            }
            return owed
        }
        #expect(owed.count == 1)
        return (owed, try #require(try await stage.bodies(of: "zulip-main/device").first))
    }
}
