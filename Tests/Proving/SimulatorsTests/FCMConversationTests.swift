import NIOHTTP1
import NIOPosix
import PushModel
import PushTesting
import Testing
import WebClient

@testable import Simulators

@Suite("The simulated FCM over TLS", .timeLimit(.minutes(30)))
struct FCMConversationTests {
    private struct Stage {
        let clock = ManualClock()
        let account: ServiceAccount
        let authority: CertificateAuthority
        let simulator: FCMSimulator
        let port: Int
        let group = MultiThreadedEventLoopGroup.singleton

        init(_ change: (inout FCMSimulatorConfiguration) -> Void = { _ in }) async throws {
            account = try ServiceAccount()
            authority = try CertificateAuthority()
            var configuration = FCMSimulatorConfiguration(accounts: [account.registration])
            change(&configuration)
            let clock = clock
            simulator = try FCMSimulator(
                configuration, authority: authority, eventLoopGroup: group, now: { clock.now })
            simulator.register(FCMJudgeTests.token, as: FCMDevice(project: "acme-chat"))
            port = try await simulator.start()
        }

        func form() throws -> [UInt8] {
            let now = clock.now.seconds
            let assertion = try account.assertion([
                "iss": .string(account.email), "scope": .string(FCMTokens.scope),
                "aud": .string(simulator.tokenURI ?? ""), "iat": .number(now), "exp": .number(now + 3600)
            ])
            return Array("grant_type=\(FCMTokens.grantType)&assertion=\(assertion)".utf8)
        }

        func askToken() async throws -> LocalCall.Answer {
            try await PlainClient.ask(
                port: port, trusting: authority, .POST, "/token",
                headers: [("content-type", "application/x-www-form-urlencoded")], body: try form())
        }

        func bearer() async throws -> String {
            "Bearer " + (try await askToken().tree?["access_token"]?.text ?? "")
        }

        func send(_ bearer: String, _ body: String = FCMConversationTests.message) async throws
            -> LocalCall.Answer
        {
            try await PlainClient.ask(
                port: port, trusting: authority, .POST, "/v1/projects/acme-chat/messages:send",
                headers: [("authorization", bearer), ("content-type", "application/json")],
                body: Array(body.utf8))
        }
    }

    static let message =
        #"{"message":{"token":""# + FCMJudgeTests.token
        + #"","data":{"k":"v"},"android":{"priority":"HIGH","ttl":"60s"}}}"#

    @Test("An access token is to be had and a message to be sent, over HTTP/1.1")
    func plain() async throws {
        let stage = try await Stage { $0.isPlainOnly = true }
        let granted = try await stage.askToken()
        #expect(granted.status == 200)
        #expect(granted.tree?["expires_in"]?.integer == 3599)
        #expect(granted.tree?["token_type"]?.text == "Bearer")
        let answer = try await stage.send("Bearer " + (granted.tree?["access_token"]?.text ?? ""))
        #expect(answer.status == 200)
        let delivery = try #require(stage.simulator.deliveries().first)
        #expect(answer.tree?["name"]?.text == delivery.id)
        #expect(delivery.id.hasPrefix("projects/acme-chat/messages/"))
        #expect(delivery.priority == 10)
        #expect(delivery.expirationSeconds == stage.clock.now.seconds + 60)
        #expect(stage.simulator.counters.tokensIssued == 1)
        await stage.simulator.stop()
    }

    @Test("The same over HTTP/2, a hundred streams being offered")
    func multiplexed() async throws {
        let stage = try await Stage()
        let bearer = try await stage.bearer()
        let client = try await RawHTTP2Client.connect(
            port: stage.port, trusting: stage.authority, group: stage.group)
        var watch = Sightings(client)
        try await client.send(
            [
                (":method", "POST"), (":scheme", "https"), (":authority", "localhost"),
                (":path", "/v1/projects/acme-chat/messages:send"), ("authorization", bearer),
                ("content-type", "application/json")
            ], body: Array(Self.message.utf8))
        let answer = try await watch.answer()
        #expect(answer.status == 200)
        guard case .settings(let values) = watch.all.first else {
            Issue.record("SETTINGS must come first.")
            return
        }
        #expect(values[3] == 100)
        stage.simulator.goAway()
        try await watch.next { $0 == .goAway(last: 1, code: 0, debug: "") }
        await stage.simulator.stop()
    }

    @Test("validate_only judges all and stores nothing")
    func validateOnly() async throws {
        let stage = try await Stage()
        let bearer = try await stage.bearer()
        let body = Self.message.replacing(#"{"message""#, with: #"{"validate_only":true,"message""#)
        #expect(try await stage.send(bearer, body).status == 200)
        #expect(stage.simulator.counters.accepted == 0)
        #expect(stage.simulator.deliveries().isEmpty)
        await stage.simulator.stop()
    }

    @Test("An access token ends by the simulated clock, or is revoked before")
    func expiry() async throws {
        let stage = try await Stage()
        let bearer = try await stage.bearer()
        stage.clock.advance(by: .seconds(3599))
        let expired = try await stage.send(bearer)
        #expect(expired.status == 401)
        #expect(expired.text.contains("ACCESS_TOKEN_EXPIRED"))
        let next = try await stage.bearer()
        #expect(try await stage.send(next).status == 200)
        stage.simulator.revokeAccessTokens()
        let revoked = try await stage.send(next)
        #expect(revoked.status == 401)
        #expect(!revoked.text.contains("ACCESS_TOKEN_EXPIRED"))
        await stage.simulator.stop()
    }

    @Test("The token endpoint fails in every way that was asked for")
    func tokenFaults() async throws {
        let stage = try await Stage()
        stage.simulator.turn { $0.tokenFault = .serverError }
        #expect(try await stage.askToken().status == 500)
        stage.simulator.turn { $0.tokenFault = .tooMany(.seconds(7)) }
        let tooMany = try await stage.askToken()
        #expect(tooMany.status == 429)
        #expect(tooMany["retry-after"] == ["7"])
        stage.simulator.turn { $0.tokenFault = .noExpiry }
        let endless = try await stage.askToken()
        #expect(endless.status == 200)
        #expect(endless.tree?["expires_in"] == nil)
        stage.simulator.turn { $0.tokenFault = .oversized(bytes: 20_000) }
        #expect(try await stage.askToken().body.count > 20_000)
        stage.simulator.turn {
            $0.tokenFault = .none
            $0.tokenDelay = .milliseconds(80)
        }
        let clock = ContinuousClock()
        let start = clock.now
        #expect(try await stage.askToken().status == 200)
        #expect(clock.now - start >= .milliseconds(80))
        await stage.simulator.stop()
    }

    @Test("429 carries Retry-After as seconds, as a date, or not at all")
    func retryAfter() async throws {
        let stage = try await Stage { $0.knobs.projectMinuteLimit = 0 }
        let bearer = try await stage.bearer()
        #expect(try await stage.send(bearer)["retry-after"] == ["60"])
        stage.simulator.turn { $0.retryAfter = .date(secondsAhead: 90) }
        // 1,800,000,090 s after the epoch; the date is from `date -u -d @1800000090`.
        #expect(try await stage.send(bearer)["retry-after"] == ["Fri, 15 Jan 2027 08:01:30 GMT"])
        stage.simulator.turn { $0.retryAfter = .off }
        let last = try await stage.send(bearer)
        #expect(last.status == 429)
        #expect(last["retry-after"].isEmpty)
        #expect(last.text.contains("QUOTA_EXCEEDED"))
        await stage.simulator.stop()
    }

    @Test("Shares of 500 and 503, and HTML for what the front end does not know")
    func failures() async throws {
        let stage = try await Stage()
        let bearer = try await stage.bearer()
        stage.simulator.turn { $0.errorShare = 1 }
        #expect(try await stage.send(bearer).status == 500)
        stage.simulator.turn {
            $0.errorShare = 0
            $0.unavailableShare = 1
        }
        #expect(try await stage.send(bearer).status == 503)
        stage.simulator.turn { $0.unavailableShare = 0 }
        let page = try await PlainClient.ask(port: stage.port, trusting: stage.authority, .GET, "/fcm/send")
        #expect(page["content-type"] == ["text/html; charset=UTF-8"])
        await stage.simulator.stop()
    }
}
