import Primitives
import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// What the relay refuses and what follows from what it takes.
@Suite("Zulip relay", .timeLimit(.minutes(30)))
struct ZulipRelayTests {
    private static let other = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let otherRealm = "a74ead24-d964-44aa-ae4e-b1114d22ffe6"

    @Test(
        "Origin B learns nothing of origin A's registrations: same answer, same look-ups, ten thousand times")
    func privacy() async throws {
        let bench = try await RealmRig()
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
        #expect(await bench.reportRealm(Self.otherRealm, by: Self.other).status == 200)
        let known = try await bench.register("ab12", timestamp: bench.now.seconds)
        let unknown = TokenID(token: Secret("cd34".utf8))
        // Anyone who is known to own a realm needs one look-up; the first call made it known.
        _ = await bench.notify([unknown], realm: Self.otherRealm, by: Self.other)
        bench.relay.store.forget()
        let hit = await bench.notify([known], realm: Self.otherRealm, by: Self.other)
        let miss = await bench.notify([unknown], realm: Self.otherRealm, by: Self.other)
        #expect(hit.status == miss.status)
        #expect(hit.json["delete_token_ids"]?.array?.count == miss.json["delete_token_ids"]?.array?.count)
        for round in 0..<10_000 {
            let id = round.isMultiple(of: 2) ? known : unknown
            let answer = await bench.notify([id], realm: Self.otherRealm, by: Self.other)
            guard answer.status == 200, answer.json["delete_token_ids"]?[0]?.string == id.text else {
                Issue.record("round \(round) differs")
                return
            }
        }
        // Every call made the same one look-up.
        #expect(Set(bench.relay.store.lookups).count == 1)
        #expect(bench.relay.store.lookups.count == 10_002)
        #expect(bench.relay.services.sends.isEmpty)
    }

    @Test("A foreign realm is refused before anything is looked at")
    func foreignRealm() async throws {
        let bench = try await RealmRig()
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
        let answer = await bench.notify([TokenID(1)], by: Self.other)
        #expect(answer.status == 403)
        #expect(answer.code == "REMOTE_REALM_SERVER_MISMATCH_ERROR")
    }

    @Test("More than a thousand items, or ten thousand, are refused before any look-up of devices")
    func tooManyItems() async throws {
        let bench = try await RealmRig()
        for count in [1_001, 10_000] {
            let items = Array(repeating: RealmRig.item("AAAAAAAAAAE="), count: count)
            bench.relay.store.forget()
            let answer = await bench.notify(raw: RealmRig.body(items))
            #expect(answer.status == 400)
            #expect(bench.relay.store.lookups == [["zulip-main/server"]])
        }
        let items = (0..<1_000).map { RealmRig.item(TokenID(UInt64($0)).text) }
        #expect(
            await bench.notify(raw: RealmRig.body(items)).json["delete_token_ids"]?.array?.count == 1_000)
    }

    @Test("A payload larger than the push service takes fails the call, and nothing is sent")
    func oversize() async throws {
        let bench = try await RealmRig()
        let id = try await bench.register("ab12", timestamp: bench.now.seconds)
        let answer = await bench.notify(
            raw: RealmRig.body([
                RealmRig.item(id.text), RealmRig.item(id.text, data: String(repeating: "A", count: 4_096))
            ]))
        #expect(answer.status == 400)
        #expect(bench.relay.services.sends.isEmpty)
    }

    @Test("Cut at every length, a notify body is refused with 400 and changes nothing")
    func truncated() async throws {
        let bench = try await RealmRig()
        let id = try await bench.register("ab12", timestamp: bench.now.seconds)
        let body = Array(RealmRig.body([RealmRig.item(id.text)]).utf8)
        for length in 0..<body.count {
            let answer = await bench.relay.ask(
                "POST", ZulipPath.notify.rawValue, authorization: RealmRig.basic(RealmRig.server),
                body: Array(body[..<length]))
            #expect(answer.status == 400, "length \(length)")
        }
        #expect(bench.relay.services.sends.isEmpty)
    }

    @Test(
        "Items of a wrong form fail the whole call",
        arguments: [
            RealmRig.fcm(#""AAAAAAAAAAF=""#, #""high""#, #"{"push_key_id":1,"encrypted_data":"QUJD"}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, #""high""#, #"{"push_key_id":-1,"encrypted_data":"QUJD"}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, #""high""#, #"{"push_key_id":1.0,"encrypted_data":"QUJD"}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, #""high""#, #"{"push_key_id":1,"encrypted_data":"QU-D"}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, #""high""#, #"{"push_key_id":1,"encrypted_data":"A"}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, #""high""#, #"{"push_key_id":1,"encrypted_data":""}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, "1", #"{"push_key_id":1,"encrypted_data":"QUJD"}"#),
            RealmRig.fcm("1", #""high""#, #"{"push_key_id":1,"encrypted_data":"QUJD"}"#),
            RealmRig.fcm(#""AAAAAAAAAAE=""#, #""high""#, "[]"),
            RealmRig.item("AAAAAAAAAAE=", extra: #","aps":null"#),
            RealmRig.item("AAAAAAAAAAE=", extra: #","aps":[{}]"#),
            RealmRig.item("AAAAAAAAAAE=", extra: #","aps":"default""#),
            RealmRig.item("AAAAAAAAAAE=", extra: #","aps":{"a":1,}"#),
            RealmRig.item("AAAAAAAAAAE=", extra: #","aps":{"a":"\ud800"}"#),
            "[]", "null", "7"
        ])
    func wrongItems(item: String) async throws {
        let bench = try await RealmRig()
        let answer = await bench.notify(raw: RealmRig.body([item]))
        #expect(answer.status == 400)
        #expect(answer.code == "BAD_REQUEST")
    }

    @Test("Legacy calls that register or test get one documented error, after authentication")
    func legacy() async throws {
        let bench = try await RealmRig()
        for path in [ZulipPath.legacyRegister, .legacyTest] {
            let answer = await bench.relay.ask(
                "POST", path.rawValue, authorization: RealmRig.basic(RealmRig.server),
                body: Array("{}".utf8))
            #expect(answer.status == 400 && answer.code == "BAD_REQUEST")
            #expect(await bench.relay.ask("POST", path.rawValue).status == 401)
        }
        #expect(await bench.relay.ask("GET", ZulipPath.notify.rawValue).status == 405)
        #expect(await bench.relay.ask("POST", "/api/v1/remotes/x").status == 404)
    }

    @Test("A store that is out is a 503 that says when to come back, never a success")
    func storeOut() async throws {
        let bench = try await RealmRig()
        bench.relay.store.goOut()
        #expect(await bench.notify([TokenID(1)]).status == 503)
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 503)
    }

    @Test("A realm that another server reports first cannot be taken")
    func realmOwner() async throws {
        let bench = try await RealmRig()
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
        let answer = await bench.reportRealm(RealmRig.realm, by: Self.other)
        #expect(answer.status == 400)
        #expect(answer.json["msg"]?.string == "Duplicate registration detected.")
    }

    @Test("Analytics answers exactly the realms sent, echoes the highest ids, and marks those left out")
    func analytics() async throws {
        let bench = try await RealmRig()
        let status = await bench.relay.ask(
            "GET", ZulipPath.analyticsStatus.rawValue, authorization: RealmRig.basic(RealmRig.server))
        #expect(status.json["last_realm_count_id"]?.int64 == 12)
        #expect(status.json["last_installation_count_id"]?.int64 == 0)
        _ = try await bench.register("ab12", timestamp: bench.now.seconds)
        let next = await bench.reportRealm(Self.otherRealm, by: RealmRig.server)
        #expect(next.json["realms"]?.object?.names == [Self.otherRealm])
        let key = bench.relay.keys.realm(try #require(UUIDText(RealmRig.realm)))
        let left = try #require(try await bench.relay.record(key).flatMap { ZulipRealm(body: $0.body) })
        #expect(left.isLocallyDeleted)
        let extra = await bench.relay.post(
            .analytics,
            [
                ("realm_counts", "[]"), ("installation_counts", "[]"),
                ("realms", #"[{"uuid":"\#(Self.otherRealm)","x":1}]"#)
            ],
            authorization: RealmRig.basic(RealmRig.server))
        #expect(extra.status == 400)
    }

    @Test("An answer waits three seconds at most, and counts by first outcomes")
    func plan() async throws {
        let bench = try await RealmRig()
        let id = try await bench.register("ab12", timestamp: bench.now.seconds)
        let body = Array(RealmRig.body([RealmRig.item(id.text), RealmRig.item("AAAAAAAAAAE=")]).utf8)
        let inbound = try withBytes(body) { (bytes) throws(ZulipError) in
            try ZulipInbound.parse(
                method: "POST", path: ZulipPath.notify.rawValue,
                authorization: RealmRig.basic(RealmRig.server), body: bytes)
        }
        let verdict = try await bench.relay.relay.receive(inbound)
        guard case .afterFirstAttempt(let deadline, let compose) = verdict.reply else {
            Issue.record("the answer does not wait")
            return
        }
        #expect(deadline == .seconds(3))
        #expect(verdict.pushes.count == 1 && verdict.pushes[0].custodyEnds == bench.now + .seconds(86_400))
        let rows: [(FirstOutcome, sent: Int64, dead: Int)] = [
            (.known(.accepted), 1, 1), (.pending, 1, 1), (.known(.unregistered), 0, 2),
            (.known(.retry), 0, 1), (.known(.rejected), 0, 1), (.known(.misconfigured), 0, 1),
            (.dropped, 0, 1)
        ]
        for (outcome, sent, dead) in rows {
            let json = try JSONValue.parse(compose([outcome]).body())
            #expect(json["apple_successfully_sent_count"]?.int64 == sent)
            #expect(json["android_successfully_sent_count"]?.int64 == 0)
            #expect(json["delete_token_ids"]?.array?.count == dead)
            #expect(json["realm_push_status"]?["can_push"]?.bool == true)
        }
    }

    @Test("A provider's word is read as this protocol reads it")
    func overrides() {
        let at = UnixTime(seconds: 1)
        func read(_ reason: Reason) -> Outcome? { ZulipRelay.override(Answer(.rejected, reason, sentAt: at)) }
        #expect(read(.deviceTokenNotForTopic) == .unregistered(since: nil))
        #expect(read(.senderIdMismatch) == .rejected)
        #expect(read(.invalidRegistrationToken) == .rejected)
        #expect(read(.unregisteredFCM) == nil)
        #expect(read(.topicDisallowed) == nil)
    }

    @Test("Every error code has a status of the 4xx or 503 and an envelope")
    func envelopes() throws {
        for code in ZulipError.Code.allCases {
            let answer = ZulipErrorAnswer(ZulipError(code))
            #expect((400..<500).contains(answer.status) || answer.status == 503)
            let json = try JSONValue.parse(answer.body)
            #expect(json["result"]?.string == "error")
            #expect(json["code"]?.string == answer.wireCode)
            #expect((answer.wireCode == nil) == (code == .wrongMethod))
        }
    }
}
