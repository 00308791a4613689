import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// Devices that registered with account ids, at the relay (§14.5 to §14.8, §14.15).
@Suite("Zulip relay, with account ids", .timeLimit(.minutes(30)))
struct AccountRelayTests {
    private static let second = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let otherRealm = "a74ead24-d964-44aa-ae4e-b1114d22ffe6"
    private static let day = Duration.seconds(86_400)

    /// A registration call's answer, whatever it is.
    private func ask(
        _ bench: RealmRig, _ account: Int64, _ token: String = "ab12", app: String? = "org.example.app",
        kind: TokenKind = .apns, realm: String = RealmRig.realm, by server: String = RealmRig.server
    ) async throws -> TestAnswer {
        let plain = RegistrationPlaintext(
            kind: kind, token: Secret(token.utf8), timestamp: bench.relay.world.now().seconds,
            appID: kind == .apns ? app : nil)
        let seed = SHA256.hash(Array("\(account) \(token)".utf8))
        let sealed = try RegistrationBox.seal(
            plain, to: bench.pair.publicKey, ephemeral: try X25519KeyPair(privateKey: Secret(seed)))
        return await bench.relay.post(
            .register,
            [
                ("realm_uuid", realm), ("push_account_id", String(account)),
                ("encrypted_push_registration", sealed.reveal { String(decoding: $0, as: UTF8.self) }),
                ("bouncer_public_key", Base64.text(bench.pair.publicKey))
            ], authorization: RealmRig.basic(server))
    }

    private func register(
        _ bench: RealmRig, _ account: Int64, _ token: String = "ab12", kind: TokenKind = .apns,
        realm: String = RealmRig.realm, by server: String = RealmRig.server
    ) async throws -> Int64 {
        let answer = try await ask(bench, account, token, kind: kind, realm: realm, by: server)
        try #require(answer.status == 200)
        return try #require(answer.json["device_id"]?.int64)
    }

    private func notify(
        _ bench: RealmRig, _ ids: [Int64], content: String = "QUJD", realm: String = RealmRig.realm,
        by server: String = RealmRig.server
    ) async -> TestAnswer {
        let items = ids.map { #"{"device_id":\#($0),"encrypted_content":"\#(content)"}"# }
        return await bench.notify(raw: RealmRig.body(items, realm: realm), by: server)
    }

    private func dead(_ answer: TestAnswer) -> [Int64] {
        answer.json["delete_device_ids"]?.array?.compactMap(\.int64) ?? []
    }

    private func stale(
        _ bench: RealmRig, _ query: String = "", by server: String = RealmRig.server,
        realm: String = RealmRig.realm
    ) async -> TestAnswer {
        await bench.relay.ask(
            "GET", ZulipPath.staleDevices.rawValue, query: "realm_uuid=\(realm)" + query,
            authorization: RealmRig.basic(server))
    }

    /// A second server with a realm of its own.
    private func joinSecond(_ bench: RealmRig) async throws {
        try #require(await bench.signUp(Self.second, host: "other.example.org").status == 200)
        try #require(await bench.reportRealm(Self.otherRealm, by: Self.second).status == 200)
    }

    // MARK: numbers

    @Test("Numbers are 63 bits of a hash: not counted, the same for a repeat, and of each realm alone")
    func numbers() async throws {
        let bench = try await RealmRig()
        try await joinSecond(bench)
        var ids: [Int64] = []
        for account in 0..<64 as Range<Int64> { ids.append(try await register(bench, account)) }
        #expect(Set(ids).count == 64 && ids.allSatisfy { $0 > 0 })
        // All bits are used, and the order of registrations is none of the numbers'.
        #expect(ids.reduce(0, |) == .max && ids != ids.sorted() && ids != ids.sorted(by: >))
        #expect(try await register(bench, 63) == ids[63])
        #expect(try await register(bench, 63, "AB12") != ids[63], "the token counts as given")
        let elsewhere = try await register(bench, 63, realm: Self.otherRealm, by: Self.second)
        #expect(!ids.contains(elsewhere))
    }

    @Test("Calls at once for one registration make one row")
    func atOnce() async throws {
        let bench = try await RealmRig()
        let ids = try await withThrowingTaskGroup(of: Int64.self) { group in
            for _ in 0..<8 { group.addTask { try await register(bench, 5) } }
            return try await group.reduce(into: Set<Int64>()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(try await bench.relay.deviceRevisions().count == 1)
    }

    // MARK: notifying

    @Test("The same content to two accounts of one phone is sent to both; the same call again to neither")
    func twoAccounts() async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let ids = [try await register(bench, 1), try await register(bench, 2)]
            for id in ids { #expect(await notify(bench, [id]).status == 200) }
            #expect(relay.services.sends.count == 2)
            for id in ids {
                let again = await notify(bench, [id])
                #expect(again.json["apple_successfully_sent_count"]?.int64 == 1)
            }
            #expect(relay.services.sends.count == 2)
            let accounts = relay.services.sends.compactMap { $0["body"]?["push_account_id"]?.int64 }
            #expect(Set(accounts) == [1, 2])
        }
    }

    @Test("An id that is unknown, foreign or expired looks the same, in answer and in what is looked up")
    func alike() async throws {
        let bench = try await RealmRig()
        try await joinSecond(bench)
        try await bench.relay.running { relay in
            let foreign = try await register(bench, 1, realm: Self.otherRealm, by: Self.second)
            let expired = try await register(bench, 2)
            let uuid = try #require(UUIDText(RealmRig.realm))
            let key = try await relay.accountKey(uuid, expired)
            _ = try await relay.store.apply([.expire(key, at: bench.now, if: .any)])
            // The caller is known from here on.
            _ = await notify(bench, [1])
            var answers: Set<String> = []
            var lookups: Set<[[String]]> = []
            for id in [foreign, expired, 5, 0, -1, .max, .min] {
                relay.store.forget()
                let answer = await notify(bench, [id])
                #expect(dead(answer) == [id] && answer.status == 200)
                let rest = answer.json.without("delete_device_ids").serialized()
                answers.insert(String(decoding: rest, as: UTF8.self))
                lookups.insert(relay.store.lookups)
            }
            #expect(answers.count == 1 && lookups.count == 1)
            #expect(relay.services.sends.isEmpty)
        }
    }

    @Test("v11's item for another kind of phone is refused; the specification's own goes by the row")
    func kinds() async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let id = try await register(bench, 1 << 53 + 1, "fcm-token", kind: .fcm)
            let item =
                #"{"device_id":\#(id),"http_headers":{"apns_priority":10,"apns_push_type":"alert"},"payload":"#
                + #"{"push_account_id":1,"encrypted_data":"QUJD"}}"#
            #expect(await bench.notify(raw: RealmRig.body([item])).code == "BAD_REQUEST")
            #expect(relay.services.sends.isEmpty)
            #expect(await notify(bench, [id]).json["android_successfully_sent_count"]?.int64 == 1)
            let data = relay.services.sends.first?["body"]?["message"]?["data"]
            #expect(data?["push_account_id"]?.string == "9007199254740993")
        }
    }

    @Test("A device id is not a token id: rows of both forms stand beside each other for one phone")
    func bothForms() async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let token = try await bench.register("ab12", timestamp: bench.now.seconds)
            let id = try await register(bench, token.signed)
            #expect(try await relay.deviceRevisions().count == 2)
            // The number that is the token id's own names nobody.
            #expect(dead(await notify(bench, [token.signed])) == [token.signed])
            #expect(await notify(bench, [id]).json["apple_successfully_sent_count"]?.int64 == 1)
            #expect(await bench.notify([token]).json["apple_successfully_sent_count"]?.int64 == 1)
        }
    }

    // MARK: topics

    @Test("Without a default app a blob that names none is refused, and writes nothing")
    func defaultApp() async throws {
        let bench = try await RealmRig()
        #expect(try await ask(bench, 1, app: nil).code == "BAD_REQUEST")
        #expect(try await bench.relay.deviceRevisions().isEmpty)
        #expect(try await ask(bench, 1, "fcm-token", kind: .fcm).status == 200)
    }

    // MARK: bounds, leaving, forgetting

    @Test("Devices with account ids count towards the bounds of realm and server")
    func bounded() async throws {
        var bounds = ZulipBounds()
        bounds.registrationsPerRealm = 3
        let bench = try await RealmRig(bounds: bounds)
        _ = try await bench.register("cd34", timestamp: bench.now.seconds)
        _ = try await register(bench, 1)
        let last = try await register(bench, 2)
        #expect(try await ask(bench, 3).status == 400)
        #expect(try await register(bench, 2) == last, "a repeat takes no room")
    }

    @Test("They go with a server that leaves, and its successor reaches none of them")
    func leaving() async throws {
        let bench = try await RealmRig()
        let id = try await register(bench, 1)
        let left = await bench.relay.ask(
            "POST", ZulipPath.deactivate.rawValue, authorization: RealmRig.basic(RealmRig.server),
            body: Array("{}".utf8))
        try #require(left.status == 200)
        try #require(await bench.signUp(Self.second, host: "chat.example.org").status == 200)
        try #require(await bench.reportRealm(RealmRig.realm, by: Self.second).status == 200)
        #expect(dead(await notify(bench, [id], by: Self.second)) == [id])
        #expect(try await register(bench, 1, by: Self.second) != id)
        bench.relay.advance(by: .seconds(120))
        while try await bench.servers.sweep() > 0 {}
        #expect(try await bench.relay.deviceRevisions().count == 1)
    }

    @Test("The operator finds one by its number, says how it stands, and forgets it")
    func operating() async throws {
        let bench = try await RealmRig()
        let realm = try #require(UUIDText(RealmRig.realm))
        let ids = [try await register(bench, 1), try await register(bench, 2)]
        let live = try #require(try await bench.servers.facts(ofDevice: .number(ids[0]), in: realm))
        #expect(live.expired == nil && live.kind == .apns && live.appID == "org.example.app")
        let key = try await bench.relay.accountKey(realm, ids[0])
        _ = try await bench.relay.store.apply([.expire(key, at: bench.now, if: .any)])
        let gone = try #require(try await bench.servers.facts(ofDevice: .number(ids[0]), in: realm))
        #expect(gone.expired == bench.now && gone.kind == nil && gone.ends == bench.now + Self.day * 42)
        #expect(try await bench.servers.facts(ofDevice: .number(5), in: realm) == nil)
        #expect(try await bench.servers.forgetDevice(realm, .number(ids[0])) == 1)
        #expect(try await bench.servers.forgetDevice(realm, .number(ids[0])) == 0)
        #expect(try await bench.servers.forgetRealm(realm)?.devices == 1)
        #expect(try await bench.relay.deviceRevisions().isEmpty)
    }

    @Test("A refusal of years to come, stamped by a relay whose clock is wrong, shuts no phone out")
    func refusedInYears() async throws {
        let bench = try await RealmRig()
        let realm = try #require(UUIDText(RealmRig.realm))
        let id = try await register(bench, 1)
        let key = try await bench.relay.accountKey(realm, id)
        _ = try await bench.relay.store.apply([.expire(key, at: bench.now + Self.day * 999, if: .any)])
        #expect(try await bench.servers.facts(ofDevice: .number(id), in: realm)?.expired != nil)
        #expect(try await register(bench, 1) == id)
        let facts = try #require(try await bench.servers.facts(ofDevice: .number(id), in: realm))
        #expect(facts.expired == nil && facts.kind == .apns)
    }

    // MARK: the stale list

    @Test("A device is listed from the fourteenth day after its push service refused it until it comes back")
    func staleLife() async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let id = try await register(bench, 1)
            relay.services.answer("ab12", with: StubServices.Upstream(status: 410, word: "Unregistered"))
            #expect(dead(await notify(bench, [id])) == [id])
            relay.services.answer("ab12", with: nil)
            relay.advance(by: Self.day * 14 - .milliseconds(1))
            #expect(await stale(bench).json["device_ids"]?.array?.isEmpty == true)
            relay.advance(by: .milliseconds(1))
            #expect(await stale(bench).json["device_ids"]?[0]?.int64 == id)
            #expect(await stale(bench, "&after=\(id)").json["device_ids"]?.array?.isEmpty == true)
            #expect(await stale(bench, "&after=\(id - 1)").json["device_ids"]?[0]?.int64 == id)
            #expect(try await register(bench, 1) == id)
            #expect(await stale(bench).json["device_ids"]?.array?.isEmpty == true)
        }
    }

    @Test("A page has a thousand ids at most, and tells where the next one begins")
    func stalePages() async throws {
        let bench = try await RealmRig()
        let realm = try #require(UUIDText(RealmRig.realm))
        // A thousand and two, beside live ones, written as registrations and feedback write them.
        let owner = bench.relay.keys.devices(
            of: ZulipTenancy(realm, of: try #require(UUIDText(RealmRig.server)), .byServer))
        var changes: [Change] = []
        for number in 1...1_012 as ClosedRange<Int64> {
            let key = try await bench.relay.accountKey(realm, number)
            let record = Record(
                key: key, owner: owner, version: UInt64(number), touchedAt: bench.now, body: Secret([1]))
            changes.append(.put(record, if: .any))
            if number <= 1_002 { changes.append(.expire(key, at: bench.now - Self.day * 15, if: .any)) }
        }
        _ = try await bench.relay.store.apply(changes)
        let first = await stale(bench).json
        #expect(first["device_ids"]?.array?.count == 1_000 && first["next_after"]?.int64 == 1_000)
        let last = await stale(bench, "&after=1000").json
        #expect(last["device_ids"]?.array?.compactMap(\.int64) == [1_001, 1_002])
        #expect(last["next_after"]?.isNull == true)
        let exact = await stale(bench, "&after=2").json
        #expect(exact["device_ids"]?.array?.count == 1_000 && exact["next_after"]?.isNull == true)
    }

    @Test("It is the realm's owner's alone, and a store that is out is no empty list")
    func staleOwner() async throws {
        let bench = try await RealmRig()
        try await joinSecond(bench)
        #expect(await stale(bench, by: Self.second).code == "REMOTE_REALM_SERVER_MISMATCH_ERROR")
        #expect(await stale(bench, realm: Self.second).code == "MISSING_REMOTE_REALM")
        bench.relay.store.goOut()
        #expect(await stale(bench).status == 503)
    }

    // MARK: keys

    @Test("Uses of a key are counted by day, for 42 days")
    func keyUses() async throws {
        let bench = try await RealmRig()
        let key = Base64.text(bench.pair.publicKey)
        let book = bench.servers
        func uses() async throws -> ZulipKeyUse { try #require(try await book.uses(of: [key]).first) }
        let unused = try await uses()
        #expect(unused.days.isEmpty && unused.since == nil)
        try await book.noteKeys([key])
        #expect(try await uses().since == bench.now)
        _ = try await register(bench, 1)
        _ = try await register(bench, 1)
        _ = try await bench.register("cd34", timestamp: bench.now.seconds)
        #expect(try await ask(bench, 1, app: nil).status == 400, "a refused one is no use")
        #expect(try await uses().days.map(\.count) == [3])
        bench.relay.advance(by: Self.day)
        _ = try await register(bench, 2)
        #expect(try await uses().days.map(\.count) == [3, 1])
        let now = bench.relay.world.now()
        let two = try await uses()
        #expect(two.count(within: 30, of: now) == 4 && two.count(within: 0, of: now) == 1)
        bench.relay.advance(by: Self.day * 30)
        #expect(try await uses().count(within: 30, of: bench.relay.world.now()) == 1)
        bench.relay.advance(by: Self.day * 12)
        #expect(try await uses().days.map(\.count) == [1], "the first day is over")
        // A key that is no longer in the file is forgotten, and begins anew if it comes back.
        try await book.noteKeys([])
        #expect(try await uses().since == nil)
    }
}
