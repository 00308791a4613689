import HTTPIngress
import PushModel
import PushTesting
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// What strangers at the public listener can take from everybody else.
@Suite("The public listener under attack", .timeLimit(.minutes(30)))
struct ListenerTests {
    /// Strangers who begin a body of the largest kind and do not end it.
    private func begin(
        _ count: Int, at relay: RunningRelay, sending bytes: Int, _ fields: (Int) -> String
    ) async throws -> [Stranger] {
        let port = try relay.door().port
        var strangers: [Stranger] = []
        for index in 0..<count {
            let stranger = try await Stranger.connect(to: port)
            stranger.send(
                "POST /api/v1/remotes/server/analytics HTTP/1.1\r\nHost: t\r\n\(fields(index))"
                    + "Content-Length: \(ZulipLimits.analyticsBodyBytes)\r\n\r\n")
            stranger.send(String(repeating: "a", count: bytes))
            strangers.append(stranger)
        }
        return strangers
    }

    /// Made up, and of the right form.
    static func credentials(_ index: Int) -> String {
        let id = UUIDText(version4From: UInt64(index), 7).text
        let text = Base64.text(Array("\(id):\(String(repeating: "k", count: 64))".utf8))
        return "Authorization: Basic \(text)\r\n"
    }

    @Test("Large bodies without credentials are refused by their heads, and hold nothing")
    func headsDecide() async throws {
        try await RelayStage.running(spans: { $0.spans.ingress.bufferedBytes = 1 << 20 }) { relay in
            let server = try await relay.server()
            let strangers = try await begin(5, at: relay, sending: 256 << 10) { _ in "" }
            for stranger in strangers { #expect(await stranger.status() == 401) }
            #expect(try await relay.ask(server.origin.analytics(realms: [server.realm])).status == 200)
            for stranger in strangers { stranger.close() }
        }
    }

    @Test("Bodies of one client take that client's share of the listener's memory, whatever they show")
    func clientShare() async throws {
        try await RelayStage.running(spans: { $0.spans.ingress.bufferedBytes = 4 << 20 }) { relay in
            let server = try await relay.server()
            let strangers = try await begin(6, at: relay, sending: 1 << 20) {
                "X-Forwarded-For: 203.0.113.7\r\n" + Self.credentials($0)
            }
            // One of them fits into the share.
            try await asked(for: "five answers") { strangers.count(where: \.hasHeard) >= 5 }
            for stranger in strangers where stranger.hasHeard { #expect(await stranger.status() == 429) }
            #expect(try await relay.ask(server.origin.analytics(realms: [server.realm])).status == 200)
            for stranger in strangers { stranger.close() }
        }
    }

    @Test("Where large bodies have taken all they may, small ones are taken, and an operator hears of it")
    func smallBodies() async throws {
        try await RelayStage.running(spans: { $0.spans.ingress.bufferedBytes = 4 << 20 }) { relay in
            let (server, phone) = try await relay.join(.apns)
            let strangers = try await begin(12, at: relay, sending: 1 << 20) {
                "X-Forwarded-For: 203.0.113.\($0)\r\n" + Self.credentials($0)
            }
            // Three of them fit into the three quarters that large bodies may hold.
            try await asked(for: "nine answers") { strangers.count(where: \.hasHeard) >= 9 }
            #expect(strangers.count(where: \.hasHeard) < 12)
            let answer = try await server.notify(DemoApp.message(1, "hello"), [phone], relay)
            #expect(answer.status == 200 && answer.apple == 1)
            try await asked(for: "an alert") {
                let status = try JSONValue.parse(try await relay.admin("/status").body)
                let kinds = status["alerts"]?.array?.compactMap { $0["alert"]?.string } ?? []
                return kinds.contains("door_strained")
            }
            for stranger in strangers { stranger.close() }
        }
    }
}
