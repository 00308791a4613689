import PushModel
import Synchronization
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What name servers say of mail domains, as a test sets it.
final class MailAnswers: MailDomains {
    private let state: Mutex<(takes: Bool?, asked: [String])>

    /// - Parameter takes: `nil`: nobody can say.
    init(_ takes: Bool? = nil) { state = Mutex((takes, [])) }

    func set(_ takes: Bool?) { state.withLock { $0.takes = takes } }
    var asked: [String] { state.withLock { $0.asked } }

    func takesMail(_ domain: String) async -> Bool? {
        state.withLock { state in
            state.asked.append(domain)
            return state.takes
        }
    }
}

/// Who may sign up, and how a host name changes hands (docs/conformance/zulip.md, docs/configuration.md).
@Suite("Zulip sign-up", .timeLimit(.minutes(30)))
struct SignUpTests {
    private static let now = UnixTime(seconds: 1_800_000_000)

    /// A host that shows what the test gives it under one access token.
    final class Host: WebFetch {
        private let shown = Mutex<Secret?>(nil)
        private let asked = Mutex(0)

        func show(_ secret: String?) { shown.withLock { $0 = secret.map { Secret($0.utf8) } } }
        var requests: Int { asked.withLock { $0 } }

        func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
            asked.withLock { $0 += 1 }
            guard request.url == "https://chat.example.org/api/v1/zulip-services/verify/tok-1/",
                request.method == .get, request.publicAddressesOnly, request.answerLimitBytes <= 4_096,
                request.deadline <= .seconds(5)
            else { throw WebError(.unreachable) }
            guard let secret = shown.withLock({ $0 }) else {
                return WebAnswer(status: 404, retryAfter: nil, body: Secret([]))
            }
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("result", "success")
            writer.member("verification_secret", utf8: secret)
            writer.endObject()
            return WebAnswer(status: 200, retryAfter: nil, body: writer.takeSecret())
        }
    }

    @Test("An invitation admits one sign-up of its host, and no other host")
    func invitation() async throws {
        let bench = try await RealmRig(now: Self.now, admission: .invitation)
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").status == 400)
        let change = try #require(
            ZulipInvitation.change("Chat.Example.org", instance: TestRelay.instance, now: Self.now))
        #expect(try await bench.relay.store.apply([change]) == .committed)
        #expect(await bench.signUp(RealmRig.server, host: "other.example.org").status == 400)
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").json["created"]?.bool == true)
        // It is used up; the server itself may still update.
        let second = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
        #expect(await bench.signUp(second, host: "chat.example.org:8443").status == 400)
        #expect(
            await bench.signUp(RealmRig.server, host: "chat.example.org").json["created"]?.bool == false)
    }

    @Test("An invitation ends after seven days")
    func oldInvitation() async throws {
        let bench = try await RealmRig(now: Self.now, admission: .invitation)
        let eightDaysAgo = Self.now - .seconds(8 * 86_400)
        let change = try #require(
            ZulipInvitation.change("chat.example.org", instance: TestRelay.instance, now: eightDaysAgo))
        #expect(try await bench.relay.store.apply([change]) == .committed)
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").status == 400)
    }

    @Test("An allow-list admits its hosts and no others")
    func allowList() async throws {
        let bench = try await RealmRig(now: Self.now, admission: .allowList(["chat.example.org"]))
        #expect(await bench.signUp(RealmRig.server, host: "evil.example.org").status == 400)
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").status == 200)
    }

    @Test("A mail domain that takes no mail is refused where the operator asks for the look-up")
    func mail() async throws {
        let bench = try await RealmRig(now: Self.now, mailDomains: MailAnswers(false))
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").status == 400)
    }

    @Test("A mail domain that cannot be looked up now is a 503; only who is let in makes the relay ask")
    func mailUnknown() async throws {
        let domains = MailAnswers()
        let bench = try await RealmRig(
            now: Self.now, admission: .allowList(["chat.example.org"]), mailDomains: domains)
        #expect(await bench.signUp(RealmRig.server, host: "evil.example.org").status == 400)
        #expect(domains.asked.isEmpty)
        let unknown = await bench.signUp(RealmRig.server, host: "chat.example.org")
        #expect(unknown.status == 503 && unknown.code == "SERVICE_UNAVAILABLE")
        domains.set(true)
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").status == 200)
        #expect(domains.asked == ["example.org", "example.org"])
        // The same contact again is nothing new.
        domains.set(false)
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").status == 200)
        let other = await bench.signUp(RealmRig.server, host: "chat.example.org", mail: "a@other.example")
        #expect(other.status == 400 && domains.asked.last == "other.example")
    }

    private static let verification = [("hostname", "chat.example.org"), ("access_token", "tok-1")]

    /// Asks for a transfer of the bench's own host.
    private func challenge(_ bench: RealmRig) async throws -> String {
        let answer = await bench.relay.post(.transfer, [("hostname", "chat.example.org")])
        #expect(answer.status == 200)
        let secret = try #require(answer.json["verification_secret"]?.string)
        #expect(secret.utf8.count == 64)
        return secret
    }

    private func status(_ bench: RealmRig, key: String) async -> Int {
        await bench.relay.ask(
            "GET", ZulipPath.analyticsStatus.rawValue,
            authorization: RealmRig.basic(RealmRig.server, key)
        ).status
    }

    @Test("A host that shows the secret gets a new key once, and the old key dies")
    func transfer() async throws {
        let host = Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        host.show(try await challenge(bench))
        let answer = await bench.relay.post(.verifyChallenge, Self.verification)
        #expect(answer.status == 200)
        #expect(answer.json["zulip_org_id"]?.string == RealmRig.server)
        let key = try #require(answer.json["zulip_org_key"]?.string)
        #expect(key.utf8.count == 64 && key != RealmRig.key)
        #expect(await status(bench, key: RealmRig.key) == 401)
        #expect(await status(bench, key: key) == 200)
        // The realms stayed with the server.
        let call = RealmRig.body([RealmRig.item("AAAAAAAAAAE=")])
        let notify = await bench.relay.ask(
            "POST", ZulipPath.notify.rawValue, authorization: RealmRig.basic(RealmRig.server, key),
            body: Array(call.utf8))
        #expect(notify.status == 200)
        // Each secret serves once, though the host still shows it.
        #expect(await bench.relay.post(.verifyChallenge, Self.verification).status == 400)
        #expect(await status(bench, key: key) == 200)
    }

    @Test("A host that shows another secret, none, or nothing at all changes no key")
    func wrongSecret() async throws {
        let host = Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        let secret = try await challenge(bench)
        for shown in [String(repeating: "0", count: 64), String(secret.dropLast()), secret + "0", "", nil] {
            host.show(shown)
            let answer = await bench.relay.post(.verifyChallenge, Self.verification)
            #expect(answer.status == 400)
            #expect(answer.json["zulip_org_key"] == nil)
            #expect(await status(bench, key: RealmRig.key) == 200)
        }
    }

    @Test("Whoever asks for a transfer meanwhile, and how often, the one that is under way goes on")
    func sideBySide() async throws {
        let host = Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        let first = try await challenge(bench)
        var others: [String] = []
        for _ in 0..<20 { others.append(try await challenge(bench)) }
        #expect(Set(others + [first]).count == 21)
        host.show(first)
        #expect(await bench.relay.post(.verifyChallenge, Self.verification).status == 200)
        // With the key every one of them has ended.
        for secret in [first] + others.suffix(3) {
            host.show(secret)
            #expect(await bench.relay.post(.verifyChallenge, Self.verification).status == 400)
        }
    }

    @Test("A transfer ends after ten minutes")
    func lateTransfer() async throws {
        let host = Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        host.show(try await challenge(bench))
        bench.relay.advance(by: .seconds(600))
        #expect(await bench.relay.post(.verifyChallenge, Self.verification).status == 400)
        host.show(try await challenge(bench))
        bench.relay.advance(by: .seconds(599))
        #expect(await bench.relay.post(.verifyChallenge, Self.verification).status == 200)
    }

    @Test("Without a challenge, a known host or a harmless access token nobody is asked for a secret")
    func unaskedTransfer() async throws {
        let host = Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        host.show("x")
        #expect(await bench.relay.post(.verifyChallenge, Self.verification).status == 400)
        #expect(await bench.relay.post(.transfer, [("hostname", "nobody.example.org")]).status == 400)
        let stranger = [("hostname", "nobody.example.org"), ("access_token", "tok-1")]
        #expect(await bench.relay.post(.verifyChallenge, stranger).status == 400)
        _ = try await challenge(bench)
        for token in ["", "../x", "a/b", "a?b", "a%2F", String(repeating: "a", count: 129)] {
            let answer = await bench.relay.post(
                .verifyChallenge, [("hostname", "chat.example.org"), ("access_token", token)])
            #expect(answer.status == 400)
        }
        #expect(host.requests == 0)
    }

    @Test("A new key counts for a server that is known only: one that is not keeps its first")
    func newKeyAtCreation() async throws {
        let bench = try await RealmRig()
        let id = "e75be68d-8033-4ac4-8465-cf0e9a62de4d"
        let later = String(repeating: "n", count: 64)
        func signUp(_ key: String, _ newKey: String? = nil) async -> TestAnswer {
            await bench.relay.post(
                .signUp,
                [
                    ("zulip_org_id", id), ("zulip_org_key", key), ("hostname", "new.example.org"),
                    ("contact_email", "admin@example.org")
                ] + (newKey.map { [("new_org_key", $0)] } ?? []))
        }
        func isLetIn(_ key: String) async -> Bool {
            await bench.relay.ask(
                "GET", ZulipPath.analyticsStatus.rawValue, authorization: RealmRig.basic(id, key)
            ).status == 200
        }
        let created = await signUp(RealmRig.key, later)
        #expect(created.status == 200 && created.json["created"]?.bool == true)
        #expect(await isLetIn(RealmRig.key))
        #expect(await !isLetIn(later))
        let rotated = await signUp(RealmRig.key, later)
        #expect(rotated.status == 200 && rotated.json["created"]?.bool == false)
        #expect(await isLetIn(later))
        #expect(await !isLetIn(RealmRig.key))
    }

    @Test("A server that deactivates itself is refused everywhere from then on, by key and by transfer")
    func deactivated() async throws {
        let host = Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        host.show(try await challenge(bench))
        let caller = RealmRig.basic(RealmRig.server)
        let done = await bench.relay.ask(
            "POST", ZulipPath.deactivate.rawValue, authorization: caller, body: Array("{}".utf8))
        #expect(done.status == 200)
        for path in ZulipPath.allCases where path.isAuthenticated {
            let answer = await bench.relay.ask(path.method, path.rawValue, authorization: caller)
            #expect(answer.status == 401, "\(path)")
        }
        let again = await bench.signUp(RealmRig.server, host: "chat.example.org")
        #expect(again.status == 401)
        #expect(again.code == "REALM_DEACTIVATED")
        // Its host name is nobody's any more, and the challenge went with it.
        #expect(await bench.relay.post(.verifyChallenge, Self.verification).status == 400)
        #expect(host.requests == 0)
    }

    @Test("A relay that may fetch nothing gives out no challenge")
    func noWeb() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.relay.post(.transfer, [("hostname", "chat.example.org")]).status == 400)
    }

    @Test("A wrong key for a known server is answered with the role, which no text of the error has")
    func roleStaysOut() async throws {
        let bench = try await RealmRig(now: Self.now)
        let answer = await bench.relay.post(
            .signUp,
            [
                ("zulip_org_id", RealmRig.server), ("zulip_org_key", String(repeating: "x", count: 64)),
                ("hostname", "chat.example.org"), ("contact_email", "admin@example.org")
            ])
        #expect(answer.status == 400)
        #expect(answer.code == "INVALID_ZULIP_SERVER")
        #expect(answer.json["role"]?.string == RealmRig.server)
        #expect(
            answer.json["msg"]?.string
                == "Zulip server auth failure: key does not match role \(RealmRig.server)")
        var error = ZulipError(.keyOfOtherServer)
        error.role = Secret(RealmRig.server.utf8)
        var dumped = ""
        dump(error, to: &dumped)
        for text in [
            error.description, error.sentence, error.codeText, "\(error)", String(reflecting: error),
            "\(error as any Error)", dumped
        ] {
            #expect(!text.contains(RealmRig.server))
        }
    }
}
