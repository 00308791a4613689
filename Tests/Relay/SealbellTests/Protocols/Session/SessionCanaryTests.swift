import Foundation
import PushModel
import PushTesting
import SessionPush
import Simulators
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

@Suite("What a Session relay was told is told to nobody", .timeLimit(.minutes(30)))
struct SessionCanaryTests {
    private static let stray = CanaryCast.word("stray")
    private static let client = "2001:db8:c0ff:ee00::beef"

    /// Requests that are refused, with canaries in every place.
    private static func wrong(_ relay: RunningRelay, _ element: String) async throws {
        let headers = [
            (name: "X-Forwarded-For", value: Secret(client.utf8)),
            (name: "X-\(stray)", value: Secret(stray.utf8)),
            (name: "Content-Type", value: Secret("text/\(stray)".utf8))
        ]
        let bodies = [
            #"{"\#(stray)":"\#(stray)"}"#, String(element.dropLast(element.count / 2)), "[\(stray)]",
            element.replacing("\"apns\"", with: "\"\(stray)\""),
            element.replacing("\"token\"", with: "\"\(stray)\""), stray
        ]
        for body in bodies {
            for path in ["/subscribe", "/unsubscribe", "/oxen/v4/lsrpc?\(stray)=\(stray)", "/\(stray)"] {
                let answer = try await relay.session(path, Secret(body.utf8), headers: headers)
                #expect(!answer.text.contains(stray))
            }
            let head = #"{"method":"POST","endpoint":"/\#(stray)","headers":{"\#(stray)":"\#(stray)"}}"#
            let reply = try await relay.onion("l\(head.utf8.count):\(head)\(body.utf8.count):\(body)e")
            #expect(!reply.contains(stray))
        }
    }

    private static func said(_ relay: RunningRelay) async throws -> [Said] {
        let refused = try await relay.session("/subscribe", Secret("{}".utf8))
        let pages = ["/metrics", "/status", "/", "/health/ready", "/health/live", "/session/statistics"]
        return try await relay.said(pages: pages) + [("a stranger's answer", Data(refused.body))]
    }

    @Test("No canary of a subscription, a message or a refused call is in log, metrics, pages or files")
    func operation() async throws {
        try await RelayStage.with(RelayStage.session()) { stage in
            // What is accepted stays owed, in the outbox.
            stage.apns.turn { $0.shutdownUntil = .distantFuture }
            stage.fcm.turn { $0.unavailableShare = 1 }
            try await stage.run { relay in
                let network = stage.sandbox.session
                let phones = (try SessionPhone(.apns), try SessionPhone(.firebase))
                var canaries = [Canary("stray", Self.stray), Canary("client", Self.client)]
                var elements: [String] = []
                for phone in [phones.0, phones.1] {
                    let call = try #require(try phone.bodies().first)
                    let element = call.body.reveal { String(decoding: $0, as: UTF8.self) }
                    elements.append(element)
                    let json = try JSONValue.parse(Array(element.utf8))
                    for field in ["pubkey", "session_ed25519", "enc_key"] {
                        canaries += try Canary.hex(field, try #require(json[field]?.string))
                    }
                    let signature = try Base64.decode(try #require(json["signature"]?.string))
                    canaries += [Canary("signature", signature), Canary("token", phone.token)]
                    let answer = try await relay.session("/subscribe", call.body)
                    #expect(answer.text.contains("added"))
                }
                try await network.watch(2)
                let message = CanaryCast.word("message")
                let hashes = [
                    network.store(message, for: phones.0), network.store(message, for: phones.1)
                ]
                canaries += hashes.map { Canary("hash", $0) } + [Canary("message", message)]
                try await relay.until("notified", reaches: 2)
                try await asked(for: "two owed pushes") { try await relay.owed() == 2 }
                try await Self.wrong(relay, elements[0])
                try relay.writeRunFile()
                let said = try await Self.said(relay)
                #expect(said.contains { $0.place.hasSuffix("-wal") })
                // The search can find: the configuration's own words are there.
                let known = Canary("word", "session.")
                #expect(said.contains { $0.place == "/metrics" && known.isIn($0.bytes) })
                canaries.expectNone(in: said)
            }
        }
    }
}

@Suite("What others get of a Session relay", .timeLimit(.minutes(30)))
struct SessionPrivacyTests {
    @Test("A push service learns neither account nor message, and equal messages look different")
    func services() async throws {
        try await RelayStage.running(RelayStage.session()) { relay in
            let network = relay.stage.sandbox.session
            for service in [SessionService.apns, .firebase] {
                let phone = try SessionPhone(service)
                let arrivals =
                    service == .apns
                    ? relay.stage.apns.subscribe(token: phone.token)
                    : relay.stage.fcm.subscribe(address: phone.token)
                #expect(try await phone.subscribe(at: relay, by: .xchacha20) == [.added])
                try await network.watch(service == .apns ? 1 : 2)
                let id = phone.account.bytes.reveal { Hex.encode(Array($0)) }
                var bodies: [[UInt8]] = []
                for text in ["a", "a", String(repeating: "a", count: 60)] {
                    // Of a server that makes hashes in another way: by its own, equal messages are one.
                    let other = String(Base64.text(World.live.randomBytes(32)).prefix(43))
                    let hash = network.store(text, for: phone, hash: other)
                    let delivery = try await arrivals.next("a push")
                    #expect(delivery.collapseID == nil)
                    for canary in try Canary.hex("account", id) + [Canary("hash", hash)] {
                        #expect(!canary.isIn(Data(delivery.body)), "\(canary.name)")
                    }
                    bodies.append(delivery.body)
                }
                #expect(Set(bodies).count == 3)
                #expect(Set(bodies.map(\.count)).count == 1, "short messages have one size")
            }
        }
    }

    @Test("A storage node is shown neither token nor enc_key")
    func nodes() throws {
        let phone = try SessionPhone(.firebase)
        let call = try #require(try phone.bodies().first)
        let body = try call.body.reveal { (bytes) throws(SessionError) in
            try SessionCallBody(.subscribe, by: .onion, bytes)
        }
        guard case .success(.subscribe(let form, by: _))? = body.elements.first else {
            Issue.record("no subscription")
            return
        }
        let subscription = SessionSubscription(form, app: configured("acme"))
        let record = subscription.record(
            SessionRecordNames(configured("main")), bundle: nil, now: World.live.now())
        let shown = try #require(MonitorRequest(record)).serialized().reveal { Data($0) }
        let json = try JSONValue.parse(call.body.reveal { Array($0) })
        let canaries =
            try Canary.hex("enc_key", try #require(json["enc_key"]?.string))
            + [Canary("token", phone.token)]
        for canary in canaries { #expect(!canary.isIn(shown), "\(canary.name)") }
        let signature = try Base64.decode(try #require(json["signature"]?.string))
        #expect(Canary("signature", signature).isIn(shown), "the search can find")
    }
}
