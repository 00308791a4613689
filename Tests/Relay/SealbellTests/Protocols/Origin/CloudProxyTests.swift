import HTTPIngress
import PushModel
import PushTesting
import RSAKeys
import Synchronization
import Testing
import WireFormats

@testable import RelayProgram

/// A proxy that a phone has named, and that answers as it is told.
private final class PlayedProxy: HTTPFace {
    let name = configured("proxy")
    let routes = [HTTPRoute(.prefix("/proxy/"), bodyLimitBytes: 1 << 20)]
    /// How many entries each call had.
    let calls = Noted<[Int]>([])
    /// Of the next calls; then it takes everything.
    let script = Noted<[HTTPOutbound]>([])

    func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        let count = inbound.withBody { $0.count { $0 == UInt8(ascii: "&") } + 1 }
        calls.change { $0.append(count) }
        var next: HTTPOutbound?
        script.change { next = $0.isEmpty ? nil : $0.removeFirst() }
        return next ?? Self.answer()
    }

    static func answer(unknown: [String] = []) -> HTTPOutbound {
        let ids = unknown.map { "\"\($0)\"" }.joined(separator: ",")
        return HTTPOutbound(200, .json, Array(#"{"unknown":[\#(ids)],"failed":0}"#.utf8))
    }

    static func serving(_ body: (PlayedProxy, String) async throws -> Void) async throws {
        let proxy = PlayedProxy()
        try await proxy.serving { port in try await body(proxy, "http://localhost:\(port)/proxy/") }
    }
}

/// What an origin does with the answers of a proxy, over real sockets.
@Suite("An origin's calls to proxies", .timeLimit(.minutes(30)))
struct CloudProxyTests {
    private static let push = "/ocs/v2.php/apps/notifications/api/v2/push"
    private static let notifications = "/ocs/v2.php/apps/notifications/api/v2/notifications"

    /// - Returns: the form of a phone's registration.
    private static func form(_ proxy: String) throws -> Secret {
        let fields: [(name: String, value: [UInt8])] = [
            ("pushTokenHash", Array(String(repeating: "ab", count: 64).utf8)),
            ("devicePublicKey", Array(try RSAPrivateKey.generate().publicKey.pem.utf8)),
            ("proxyServer", Array(proxy.utf8))
        ]
        return Secret(Form(fields).encoded())
    }

    private static func notify(_ running: RunningOrigin, _ text: String, devices: Int64 = 1) async throws
        -> String
    {
        let sent = try await running.desk(.notify, ["user": CloudDoorTests.user, "text": text])
        #expect(sent["devices"]?.int64 == devices)
        return try #require(sent["id"]?.string)
    }

    private static func nothingIsOwed(_ running: RunningOrigin) async throws {
        try await asked(for: "nothing owed") { try await running.origin.owed() == 0 }
    }

    @Test("It asks again when the proxy wants time, in smaller parts if it must, forgets who is unknown")
    func answers() async throws {
        try await CloudDoorTests.run { running, password in
            try await PlayedProxy.serving { proxy, url in
                let joined = try await CloudDoorTests.ask(
                    running, password, "POST", Self.push, body: try Self.form(url))
                #expect(joined.status == 201)
                let device = try #require(joined.json["data"]?["deviceIdentifier"]?.string)

                proxy.script.change {
                    $0 = [
                        HTTPOutbound(503, .json, [], headers: [(name: "retry-after", value: "1")])
                    ]
                }
                var ids = [try await Self.notify(running, "first")]
                try await Self.nothingIsOwed(running)
                #expect(proxy.calls.value == [1, 1])
                for text in ["second", "third"] { ids.append(try await Self.notify(running, text)) }
                try await Self.nothingIsOwed(running)
                #expect(proxy.calls.value == [1, 1, 1, 1])

                // Three withdrawals are too many for one call.
                proxy.script.change { $0 = [HTTPOutbound(413, .json, [])] }
                let list = ids.map { "\"\($0)\"" }.joined(separator: ",")
                let body = #"{"user":"\#(CloudDoorTests.user)","ids":[\#(list)]}"#
                #expect(try await running.deskJSON(.withdraw, body)["devices"]?.int64 == 3)
                try await Self.nothingIsOwed(running)
                #expect(Array(proxy.calls.value.prefix(5)) == [1, 1, 1, 1, 3])
                #expect(proxy.calls.value.dropFirst(5).sorted() == [1, 2])
                let left = try await CloudDoorTests.ask(running, password, "GET", Self.notifications)
                #expect(left.json["data"]?.array?.isEmpty == true)

                // For good.
                proxy.script.change { $0 = [HTTPOutbound(403, .json, [])] }
                _ = try await Self.notify(running, "refused")
                try await Self.nothingIsOwed(running)
                #expect(proxy.calls.value.count == 8)

                proxy.script.change { $0 = [PlayedProxy.answer(unknown: ["x", device])] }
                _ = try await Self.notify(running, "the last")
                try await Self.nothingIsOwed(running)
                _ = try await Self.notify(running, "nobody", devices: 0)
                #expect(proxy.calls.value.count == 9)
            }
        }
    }

    @Test("Texts stand apart: each is read by its number, and goes with its deletion")
    func texts() async throws {
        try await CloudDoorTests.run { running, password in
            try await PlayedProxy.serving { _, url in
                let form = try Self.form(url)
                _ = try await CloudDoorTests.ask(running, password, "POST", Self.push, body: form)
                for number in 1...27 { _ = try await Self.notify(running, "text \(number)") }
                let ask = { (method: String, path: String) in
                    try await CloudDoorTests.ask(running, password, method, Self.notifications + path)
                }
                let texts = try await ask("GET", "").json["data"]?.array ?? []
                let subjects = texts.compactMap { $0["subject"]?.string }
                #expect(subjects == (3...27).reversed().map { "text \($0)" })
                #expect(try await ask("GET", "/2").json["data"]?["subject"]?.string == "text 2")
                #expect(try await ask("DELETE", "/2").status == 200)
                #expect(try await ask("GET", "/2").status == 404)
                #expect(try await ask("GET", "/1").status == 200)
                #expect(try await ask("DELETE", "").status == 200)
                #expect(try await ask("GET", "/1").status == 404)
                #expect(try await ask("GET", "").json["data"]?.array?.isEmpty == true)
            }
        }
    }

    @Test("A phone may not lead the server to its neighbours, unless the operator says so")
    func neighbours() async throws {
        try await CloudDoorTests.run(", nextcloud: { allow_local_proxies: false }") { running, password in
            for url in ["http://localhost:1/x", "https://10.0.0.1/", "https://cloud.internal/"] {
                let answer = try await CloudDoorTests.ask(
                    running, password, "POST", Self.push, body: try Self.form(url))
                #expect(answer.status == 400)
                #expect(answer.json["data"]?["message"]?.string == "INVALID_PROXY_SERVER")
            }
            _ = try await Self.notify(running, "nobody", devices: 0)
        }
    }
}
