import PushModel
import Testing
import WireFormats
import ZulipPush

/// Who may sign up, and how a host name changes hands (fact sheet §5.2, DESIGN §5).
@Suite("Zulip sign-up", .timeLimit(.minutes(1)))
struct SignUpTests {
    private static let now = UnixTime(seconds: 1_800_000_000)

    /// A host that shows one secret to whoever asks.
    private struct Host: WebFetch {
        let secret: String

        func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
            guard request.url == "https://chat.example.org/api/v1/zulip-services/verify/tok-1/",
                request.publicAddressesOnly
            else { throw WebError(.unreachable) }
            let body = #"{"result":"success","msg":"","verification_secret":"\#(secret)"}"#
            return WebAnswer(status: 200, retryAfter: nil, body: Secret(body.utf8))
        }
    }

    private struct NoMail: MailDomains {
        func takesMail(_ domain: String) async -> Bool { false }
    }

    @Test("An invitation admits one sign-up of its host, and no other host")
    func invitation() async throws {
        let bench = try await RelayBench(now: Self.now, admission: .invitation)
        #expect(await bench.signUp(RelayBench.server, host: "chat.example.org").status == 400)
        let change = try #require(
            ZulipInvitation.change("Chat.Example.org", instance: TestRelay.instance, now: Self.now))
        #expect(try await bench.relay.store.apply([change]) == .committed)
        #expect(await bench.signUp(RelayBench.server, host: "other.example.org").status == 400)
        #expect(await bench.signUp(RelayBench.server, host: "chat.example.org").json["created"]?.bool == true)
        // It is used up; the server itself may still update.
        let second = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
        #expect(await bench.signUp(second, host: "chat.example.org:8443").status == 400)
        #expect(
            await bench.signUp(RelayBench.server, host: "chat.example.org").json["created"]?.bool == false)
    }

    @Test("An invitation ends after seven days")
    func oldInvitation() async throws {
        let bench = try await RelayBench(now: Self.now, admission: .invitation)
        let eightDaysAgo = Self.now - .seconds(8 * 86_400)
        let change = try #require(
            ZulipInvitation.change("chat.example.org", instance: TestRelay.instance, now: eightDaysAgo))
        #expect(try await bench.relay.store.apply([change]) == .committed)
        #expect(await bench.signUp(RelayBench.server, host: "chat.example.org").status == 400)
    }

    @Test("An allow-list admits its hosts and no others")
    func allowList() async throws {
        let bench = try await RelayBench(now: Self.now, admission: .allowList(["chat.example.org"]))
        #expect(await bench.signUp(RelayBench.server, host: "evil.example.org").status == 400)
        #expect(await bench.signUp(RelayBench.server, host: "chat.example.org").status == 200)
    }

    @Test("A mail domain that takes no mail is refused where the operator asks for the look-up")
    func mail() async throws {
        let bench = try await RelayBench(now: Self.now, mailDomains: NoMail())
        #expect(await bench.signUp(RelayBench.server, host: "chat.example.org").status == 400)
    }

    @Test("A host that shows the secret gets a new key, and the old key dies")
    func transfer() async throws {
        let bench = try await RelayBench(now: Self.now, web: Host(secret: "wrong"))
        let fields = [("hostname", "chat.example.org"), ("access_token", "tok-1")]
        #expect(await bench.relay.post(.verifyChallenge, fields).status == 400)
        let challenge = await bench.relay.post(.transfer, [("hostname", "chat.example.org")])
        #expect(challenge.json["verification_secret"]?.string?.utf8.count == 64)
        #expect(await bench.relay.post(.verifyChallenge, fields).status == 400)
        #expect(await bench.relay.post(.transfer, [("hostname", "nobody.example.org")]).status == 400)
        for token in ["", "../x", "a/b", "a?b", "a%2F", String(repeating: "a", count: 129)] {
            let answer = await bench.relay.post(
                .verifyChallenge, [("hostname", "chat.example.org"), ("access_token", token)])
            #expect(answer.status == 400)
        }
    }
}
