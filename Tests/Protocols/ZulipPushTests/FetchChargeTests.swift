import PushModel
import PushTesting
import Synchronization
import Testing
import WireFormats

@testable import ZulipPush

/// What a stranger can make a relay ask of hosts and name servers.
@Suite("What makes a Zulip relay fetch", .timeLimit(.minutes(30)))
struct FetchChargeTests {
    private static let now = UnixTime(seconds: 1_800_000_000)

    /// A host that answers when the test says so.
    private static func slowHost(_ isOpen: Noted<Bool>) -> ScriptedWeb {
        ScriptedWeb { _ in
            await isOpen.until(for: "a host that answers") { $0 }
            return WebAnswer(404)
        }
    }

    private func verify(_ bench: RealmRig, _ host: String) async -> TestAnswer {
        await bench.relay.post(.verifyChallenge, [("hostname", host), ("access_token", "tok-1")])
    }

    @Test("A host that is being asked is not asked again meanwhile, and others are")
    func oneForEachHost() async throws {
        let isOpen = Noted(false)
        let web = Self.slowHost(isOpen)
        let bench = try await RealmRig(now: Self.now, web: web)
        let second = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
        #expect(await bench.signUp(second, host: "other.example.org").status == 200)
        for host in ["chat.example.org", "other.example.org"] {
            #expect(await bench.relay.post(.transfer, [("hostname", host)]).status == 200)
        }
        async let first = verify(bench, "chat.example.org")
        await web.requests.until { $0.count == 1 }
        let refused = await verify(bench, "chat.example.org")
        #expect(refused.status == 429 && refused.json["retry-after"]?.int64 == 5)
        #expect(web.requests.value.count == 1)
        async let other = verify(bench, "other.example.org")
        await web.requests.until { $0.count == 2 }
        isOpen.set(true)
        #expect(await first.status == 400)
        #expect(await other.status == 400)
        // It may be asked again.
        #expect(await verify(bench, "chat.example.org").status == 400)
        #expect(web.requests.value.count == 3)
    }

    @Test("Only what is about to ask a host is charged, and what is refused asks nobody")
    func charged() async throws {
        let web = Self.slowHost(Noted(true))
        let left = Mutex(1)
        let relay = try await TestRelay(
            now: Self.now, pairs: [], web: web, mailDomains: MailAnswers(true),
            mayFetch: {
                left.withLock { left in
                    left -= 1
                    return left < 0 ? .seconds(7) : nil
                }
            })
        func signUp(_ mail: String) async -> TestAnswer {
            await relay.post(
                .signUp,
                [
                    ("zulip_org_id", RealmRig.server), ("zulip_org_key", RealmRig.key),
                    ("hostname", "chat.example.org"), ("contact_email", mail)
                ])
        }
        #expect(await signUp("ops@example.org").status == 200)
        #expect(left.withLock { $0 } == 0)
        let verification = [("hostname", "chat.example.org"), ("access_token", "tok-1")]
        // Neither asks anybody: no new domain, no challenge, no such host.
        #expect(await signUp("ops@example.org").status == 200)
        #expect(await relay.post(.verifyChallenge, verification).status == 400)
        #expect(await relay.post(.transfer, [("hostname", "nobody.example.org")]).status == 400)
        #expect(await relay.post(.transfer, [("hostname", "chat.example.org")]).status == 200)
        #expect(left.withLock { $0 } == 0)
        for answer in [
            await relay.post(.verifyChallenge, verification), await signUp("ops@other.example.org")
        ] {
            #expect(answer.status == 429 && answer.json["retry-after"]?.int64 == 7)
        }
        #expect(web.requests.value.count == 0)
    }

    @Test("A head is refused as the whole request would be, and nothing else is")
    func heads() throws {
        let good = RealmRig.basic(RealmRig.server)
        let credentials: [String?] = [
            nil, good, "Basic !", "Basic", "Bearer x", "Basic " + Base64.text(Array("no colon".utf8)),
            "Basic " + Base64.text(Array("ops@example.org:key".utf8)),
            "Basic " + Base64.text(Array(":".utf8)), "basic\t" + good.dropFirst(6)
        ]
        let paths = ZulipPath.allCases.map(\.rawValue) + ["/api/v1/remotes/x", "//api/v1/remotes/push/test"]
        for path in paths {
            for method in ["GET", "POST", "HEAD", "PUT"] {
                for authorization in credentials {
                    func code(_ body: () throws(ZulipError) -> Void) -> ZulipError.Code? {
                        do throws(ZulipError) {
                            try body()
                            return nil
                        } catch { return error.code }
                    }
                    let byHead = code { () throws(ZulipError) in
                        try ZulipInbound.check(method: method, path: path, authorization: authorization)
                    }
                    let byAll = code { () throws(ZulipError) in
                        try withBytes(Array("x".utf8)) { (bytes) throws(ZulipError) in
                            _ = try ZulipInbound.parse(
                                method: method, path: path, authorization: authorization,
                                body: bytes)
                        }
                    }
                    let isOpen = ZulipPath(sent: path)?.isAuthenticated == false
                    // Calls without credentials are refused for their forms as well, which a head has not.
                    #expect(byHead == byAll || isOpen && byHead == nil, "\(method) \(path)")
                }
            }
        }
    }
}
