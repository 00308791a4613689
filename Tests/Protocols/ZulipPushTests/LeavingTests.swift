import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
@testable import ZulipPush

/// What the relay knows of a server, and what it knows no longer once it need not. The store's own tests show
/// that nothing of a row that was replaced or removed is left in a file; these show that no other row has it.
@Suite("Zulip servers that go, and what is forgotten", .timeLimit(.minutes(30)))
struct LeavingTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private static let other = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let mail = "admin@example.org"

    /// Every name and body of every record, opened with the key.
    private func known(_ bench: RealmRig) async throws -> [UInt8] {
        var bytes: [UInt8] = []
        let rooms = [
            "server", "host", "name", "realm", "device", "challenge", "invitation", "leaving", "vacated",
            "old-key"
        ]
        for room in rooms {
            let space = Space(text: "\(TestRelay.instance.text)/\(room)")
            for record in try await bench.relay.store.page(.space(space), after: 0, limit: 10_000) {
                record.key.name.reveal { bytes += $0 }
                record.body.reveal { bytes += $0 }
            }
        }
        return bytes
    }

    private func knows(_ words: [some Collection<UInt8>], _ bench: RealmRig) async throws -> [Bool] {
        let bytes = try await known(bench)
        return words.map { bytes.firstRange(of: $0) != nil }
    }

    private func hash(_ key: String) -> [UInt8] { SHA256.hash(Array(key.utf8)) }
    private func deactivate(_ bench: RealmRig, _ id: String = RealmRig.server) async -> Int {
        await bench.relay.ask(
            "POST", ZulipPath.deactivate.rawValue, authorization: RealmRig.basic(id), body: Array("{}".utf8)
        ).status
    }

    @Test("Of a server that deactivates itself its id is kept, and by its key it is told so")
    func deactivated() async throws {
        let bench = try await RealmRig(now: Self.now)
        let words = [Array("chat.example.org".utf8), Array(Self.mail.utf8), hash(RealmRig.key)]
        #expect(try await knows(words, bench) == [true, true, true])
        #expect(await deactivate(bench) == 200)
        #expect(try await knows(words, bench) == [false, false, false])
        let id = try #require(UUIDText(RealmRig.server))
        let record = try #require(try await bench.relay.record(bench.relay.keys.server(id)))
        let left = try #require(ZulipServer(body: record.body))
        #expect(
            left.standing == .deactivated && left.id == id && left.hostname.isEmpty && left.mail.count == 0)
        func status(_ key: String) async -> TestAnswer {
            await bench.relay.ask(
                "GET", ZulipPath.analyticsStatus.rawValue,
                authorization: RealmRig.basic(RealmRig.server, key))
        }
        let right = await status(RealmRig.key)
        #expect(right.status == 401 && right.code == "UNAUTHORIZED")
        #expect(right.json["msg"]?.string?.contains("deactivated") == true)
        let wrong = await status(String(repeating: "x", count: 64))
        #expect(wrong.status == 401 && wrong.code == "UNAUTHORIZED")
        #expect(wrong.json["msg"]?.string?.contains("deactivated") == false)
        #expect(await bench.signUp(RealmRig.server, host: "new.example.org").code == "REALM_DEACTIVATED")
        #expect(await deactivate(bench) == 401)
    }

    @Test("The host name of a server that has gone may be taken again, and another's is left alone")
    func hostName() async throws {
        let bench = try await RealmRig(now: Self.now)
        #expect(await bench.signUp(Self.other, host: "chat.example.org").status == 400)
        #expect(await bench.signUp(Self.other, host: "other.example.org").status == 200)
        #expect(await deactivate(bench) == 200)
        let third = "ffc7cc7c-fee5-4adf-9f44-780f9c2ed8c2"
        #expect(await bench.signUp(third, host: "other.example.org").status == 400)
        #expect(await bench.signUp(third, host: "chat.example.org").json["created"]?.bool == true)
    }

    @Test("Of a server whose record a newer version wrote nothing is removed")
    func unreadable() async throws {
        let bench = try await RealmRig(now: Self.now)
        _ = try await bench.register("ab12", timestamp: Self.now.seconds)
        // That version let it come back, while the note of its leaving still stands.
        #expect(await deactivate(bench) == 200)
        try await bench.makeUnreadable(RealmRig.server)
        bench.relay.advance(by: .seconds(60))
        // Ends: each round removes what it counts.
        while try await bench.servers.sweep() > 0 {}
        #expect(try await bench.relay.deviceRevisions().count == 1)
    }

    @Test("Realms and devices of a server that has gone are removed a page at a time, and nobody else's")
    func swept() async throws {
        let bench = try await RealmRig(now: Self.now)
        let foreign = "a74ead24-d964-44aa-ae4e-b1114d22ffe6"
        #expect(await bench.signUp(Self.other, host: "other.example.org").status == 200)
        #expect(await bench.reportRealm(foreign, by: Self.other).status == 200)
        _ = try await bench.register("ff01", timestamp: Self.now.seconds, realm: foreign, by: Self.other)
        var ids: [TokenID] = []
        for number in 0..<300 {
            ids.append(try await bench.register("ab\(1000 + number)", timestamp: Self.now.seconds))
        }
        let realm = try #require(UUIDText(RealmRig.realm))
        // One of them was refused before, and has no names any more.
        let dead = try await bench.relay.deviceKey(realm, ids[0])
        _ = try await bench.relay.store.apply([.expire(dead, at: Self.now, if: .any)])
        #expect(try await bench.servers.sweep() == 0)
        #expect(await deactivate(bench) == 200)
        // Requests that began before still end.
        #expect(try await bench.servers.sweep() == 0)
        bench.relay.advance(by: .seconds(60))
        var pages: [Int] = []
        while true {
            let count = try await bench.servers.sweep()
            if count == 0 { break }
            pages.append(count)
        }
        #expect(pages == [256, 45, 1])
        #expect(try await bench.relay.deviceRevisions().count == 1)
        #expect(try await bench.relay.record(dead) == nil)
        #expect(try await knows([Array("ab1".utf8)], bench) == [false])
        // The realm is unknown again, and may move to another server.
        #expect(await bench.reportRealm(RealmRig.realm, by: Self.other).status == 200)
        #expect(
            await bench.notify([ids[1]], by: Self.other).json["delete_token_ids"]?[0]?.string == ids[1].text)
    }

    @Test("A sweep that the store fails goes on where it was")
    func brokenSweep() async throws {
        let bench = try await RealmRig(now: Self.now)
        _ = try await bench.register("ab01", timestamp: Self.now.seconds)
        #expect(await deactivate(bench) == 200)
        bench.relay.advance(by: .seconds(60))
        bench.relay.store.goOut()
        await #expect(throws: StoreError(.unavailable)) { _ = try await bench.servers.sweep() }
        bench.relay.store.comeBack()
        while try await bench.servers.sweep() > 0 {}
        #expect(try await bench.relay.deviceRevisions().isEmpty)
    }

    @Test("An old key, an old contact and an old host name are forgotten when they are replaced")
    func replaced() async throws {
        let bench = try await RealmRig(now: Self.now)
        let words = [Array("chat.example.org".utf8), Array(Self.mail.utf8), hash(RealmRig.key)]
        let key = String(repeating: "n", count: 64)
        let answer = await bench.relay.post(
            .signUp,
            [
                ("zulip_org_id", RealmRig.server), ("zulip_org_key", RealmRig.key),
                ("hostname", "moved.example.org"), ("contact_email", "new@example.org"), ("new_org_key", key)
            ])
        #expect(answer.status == 200)
        // The old key is good until the new one is used.
        #expect(try await knows(words, bench) == [false, false, true])
        #expect(try await knows([hash(key)], bench) == [true])
        let used = await bench.relay.ask(
            "GET", ZulipPath.analyticsStatus.rawValue, authorization: RealmRig.basic(RealmRig.server, key)
        )
        #expect(used.status == 200)
        #expect(try await knows(words, bench) == [false, false, false])
    }

    @Test("A transfer leaves no old key, and of a challenge nothing is ever kept")
    func transferred() async throws {
        let host = SignUpTests.Host()
        let bench = try await RealmRig(now: Self.now, web: host)
        let challenge = await bench.relay.post(.transfer, [("hostname", "chat.example.org")])
        let secret = try #require(challenge.json["verification_secret"]?.string)
        let words = [Array(secret.utf8), hash(RealmRig.key)]
        #expect(try await knows(words, bench) == [false, true])
        host.show(secret)
        let verified = await bench.relay.post(
            .verifyChallenge, [("hostname", "chat.example.org"), ("access_token", "tok-1")])
        #expect(verified.status == 200)
        #expect(try await knows(words, bench) == [false, false])
    }

    @Test("An invitation that was used is forgotten, and so is a token that was refused")
    func usedUp() async throws {
        let bench = try await RealmRig(now: Self.now, admission: .invitation)
        #expect(try await bench.servers.invite("chat.example.org") != nil)
        #expect(await bench.signUp(RealmRig.server, host: "chat.example.org").status == 200)
        let invitations = Space(TestRelay.instance, "invitation")
        #expect(try await bench.relay.store.page(.space(invitations), after: 0, limit: 9).isEmpty)

        #expect(await bench.reportRealm(RealmRig.realm, by: RealmRig.server).status == 200)
        let token = "abcdef0123456789"
        let id = try await bench.register(token, timestamp: Self.now.seconds)
        #expect(try await knows([Array(token.utf8)], bench) == [true])
        bench.relay.services.answer(token, with: StubServices.Upstream(status: 410, word: "Unregistered"))
        try await bench.relay.running { _ in _ = await bench.notify([id]) }
        #expect(try await knows([Array(token.utf8)], bench) == [false])
    }

    @Test("A suspended server keeps what it needs to come back")
    func suspended() async throws {
        let bench = try await RealmRig(now: Self.now)
        let id = try #require(UUIDText(RealmRig.server))
        #expect(try await bench.servers.set(suspended: true, id) == .done)
        #expect(try await knows([hash(RealmRig.key), Array(Self.mail.utf8)], bench) == [true, true])
        #expect(try await bench.servers.set(suspended: false, id) == .done)
        #expect(await bench.reportRealm(RealmRig.realm, by: RealmRig.server).status == 200)
    }
}
