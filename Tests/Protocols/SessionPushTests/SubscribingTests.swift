import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("Subscribing to Session's relay", .timeLimit(.minutes(30)))
struct SubscribingTests {
    private let alice: PeerAccount
    private let group: PeerAccount

    init() throws {
        alice = try PeerAccount(seed: 1)
        group = try PeerAccount(seed: 2, prefix: 3)
    }

    private func error(_ answer: JSONValue) -> Int64? { answer["error"]?.int64 }
    private func rig(_ policy: SessionPolicy = SessionPolicy()) async throws -> SessionRig {
        try await SessionRig(policy: policy)
    }

    // MARK: renewal

    @Test("A newer signature changes everything, and is an update")
    func renewal() async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
        call.at += 1
        call.namespaces = [-400, 3]
        call.wantsData = false
        call.key = String(repeating: "77", count: 32)
        #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
        let known = try await rig.subscriptions()
        #expect(known.count == 1)
        #expect(known[0].namespaces == [-400, 3])
        #expect(!known[0].wantsData)
        #expect(PeerAccount.hex(known[0].encryptionKey) == call.key)
        #expect(known[0].signedAt == call.at)
    }

    @Test("An older signature changes nothing, and is told so")
    func older() async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        _ = try await rig.ask("/subscribe", call.subscribe)
        let before = try await rig.records().map(\.revision)
        call.at -= 1
        call.namespaces = [5]
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(try await rig.records().map(\.revision) == before)
        #expect(try await rig.subscriptions()[0].namespaces == [0, 2])
    }

    @Test("Within one second the later call counts: the key of a device is not signed")
    func sameSecond() async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        _ = try await rig.ask("/subscribe", call.subscribe)
        call.key = String(repeating: "77", count: 32)
        #expect(try await rig.ask("/subscribe", call.subscribe)["updated"]?.bool == true)
        #expect(PeerAccount.hex(try await rig.subscriptions()[0].encryptionKey) == call.key)
    }

    @Test("Account, service and token tell subscriptions apart")
    func unique() async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        for change in [
            { _ in }, { $0.token = String(repeating: "b2", count: 32) }, { $0.service = "apns-sandbox" },
            { $0.service = "firebase" }, { $0 = PeerCall(group) }
        ] as [(inout PeerCall) -> Void] {
            change(&call)
            #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
        }
        #expect(try await rig.subscriptions().count == 5)
    }

    @Test("A subscription ends when its signature is 14 days old")
    func expiry() async throws {
        let rig = try await rig()
        _ = try await rig.ask("/subscribe", PeerCall(alice).subscribe)
        rig.advance(by: SessionLimits.signatureLife - .seconds(1))
        #expect(try await rig.subscriptions().count == 1)
        rig.advance(by: .seconds(1))
        #expect(try await rig.subscriptions().isEmpty)
    }

    // MARK: time

    @Test(
        "Signatures hold from just above 14 days ago to just below a day ahead",
        arguments: [
            (-1_209_599, true), (-1_209_600, false), (86_399, true), (86_400, false),
            (-1_700_000_000, false), (-1_700_000_001, false), (1_000_000_000_000, false)
        ])
    func window(offset: Int64, isTaken: Bool) async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        call.at += offset
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == (isTaken ? nil : 4))
    }

    @Test(
        "The end of a subscription is signed within a day of now, both ends included",
        arguments: [(-86_400, true), (-86_401, false), (86_400, true), (86_401, false)])
    func unsubscribeWindow(offset: Int64, isTaken: Bool) async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        call.at += offset
        #expect(error(try await rig.ask("/unsubscribe", call.unsubscribe)) == (isTaken ? nil : 4))
    }

    @Test("Times at the ends of 64 bits are refused", arguments: [Int64.min, Int64.max])
    func extremes(at: Int64) async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        call.at = at
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(error(try await rig.ask("/unsubscribe", call.unsubscribe)) == 4)
    }

    // MARK: leaving

    @Test("What was signed before the end of a subscription does not come alive")
    func delayedSubscribe() async throws {
        let rig = try await rig()
        let call = PeerCall(alice)
        _ = try await rig.ask("/subscribe", call.subscribe)
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        var earlier = call
        earlier.at -= 1
        #expect(error(try await rig.ask("/subscribe", earlier.subscribe)) == 4)
        rig.advance(by: SessionLimits.sameSecond + .seconds(1))
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(try await rig.subscriptions().isEmpty)
        var later = call
        later.at += 1
        #expect(try await rig.ask("/subscribe", later.subscribe)["added"]?.bool == true)
    }

    @Test("The end may come before the subscription that it ends")
    func endFirst() async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == false)
        call.at -= 5
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        // A later end holds off what was signed before it, an earlier one no more than it did.
        rig.advance(by: .seconds(15))
        call.at += 20
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == false)
        call.at -= 10
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == false)
        call.at += 11
        #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
    }

    @Test("A tombstone keeps no token, and goes when nothing can be held off any more")
    func tombstone() async throws {
        let rig = try await rig()
        let call = PeerCall(alice)
        _ = try await rig.ask("/unsubscribe", call.unsubscribe)
        #expect(try await rig.records().isEmpty)
        let record = try #require(try await rig.ends().first)
        #expect(record.state == .tombstone)
        #expect(record.owner == nil && record.address == nil)
        let content = alice.id.bytes.reveal { Array($0) } + Array(call.token.utf8)
        #expect(record.key.name.count == 32)
        #expect(record.body.count < content.count)
        rig.advance(by: SessionLimits.signatureLife)
        #expect(try await rig.ends().isEmpty)
    }

    @Test("An end that was signed earlier ends a newer subscription too, and holds it off")
    func earlierEnd() async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        call.at += 4
        let newer = call.subscribe
        _ = try await rig.ask("/subscribe", newer)
        call.at -= 4
        #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        #expect(error(try await rig.ask("/subscribe", newer)) == 4)
    }

    // MARK: who signs

    @Test("Nobody else's key subscribes or unsubscribes an account")
    func otherKey() async throws {
        let rig = try await rig()
        _ = try await rig.ask("/subscribe", PeerCall(alice).subscribe)
        var call = PeerCall(alice)
        call.signer = try PeerAccount(seed: 3)
        call.at += 1
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(error(try await rig.ask("/unsubscribe", call.unsubscribe)) == 4)
        // The stranger's own key beside the account's id.
        call.others = [("session_ed25519", .string(PeerAccount.hex(call.signer.pair.publicKey.bytes)))]
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(try await rig.subscriptions()[0].signedAt == SessionRig.now.seconds)
    }

    @Test(
        "Points of small order and what is no point are no keys",
        arguments: [
            String(repeating: "0", count: 64), "01" + String(repeating: "0", count: 62),
            "ec" + String(repeating: "f", count: 60) + "7f",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            String(repeating: "f", count: 64)
        ])
    func weakKeys(key: String) async throws {
        let rig = try await rig()
        var call = PeerCall(alice)
        call.others = [("session_ed25519", .string(key))]
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        // The same as a group's id: its signature cannot hold.
        call = PeerCall(group)
        call.others = [
            ("pubkey", .string("03" + key)), ("signature", .string(String(repeating: "0", count: 128)))
        ]
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
        #expect(try await rig.records().isEmpty)
    }

    /// Token of a key of its own, with the owner's signature, as members of an element.
    private func delegated(
        _ call: inout PeerCall, flags: UInt8, prefix: UInt8, signedBy owner: PeerAccount
    ) throws {
        let member = try PeerAccount(seed: 9, prefix: 3)
        let token = [prefix, flags, 0, 0] + member.pair.publicKey.bytes.reveal { Array($0) }
        call.signer = member
        call.others = [
            ("subaccount", .string(Hex.encode(token))),
            ("subaccount_sig", .string(PeerAccount.hex(owner.sign(token))))
        ]
    }

    @Test(
        "A subaccount needs the right to read, the account's prefix or any, and the owner's signature",
        arguments: [
            (1, 3, true), (15, 3, true), (9, 5, true), (0, 3, false), (6, 3, false), (1, 5, false),
            (8, 3, false)
        ]
            as [(UInt8, UInt8, Bool)])
    func subaccounts(flags: UInt8, prefix: UInt8, isTaken: Bool) async throws {
        let rig = try await rig()
        var call = PeerCall(group)
        try delegated(&call, flags: flags, prefix: prefix, signedBy: group)
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == (isTaken ? nil : 4))
        #expect(error(try await rig.ask("/unsubscribe", call.unsubscribe)) == (isTaken ? nil : 4))
        try delegated(&call, flags: flags, prefix: prefix, signedBy: alice)
        #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 4)
    }

    @Test("Half of a subaccount is malformed, and null for both is none")
    func halfSubaccount() async throws {
        let rig = try await rig()
        var call = PeerCall(group)
        try delegated(&call, flags: 1, prefix: 3, signedBy: group)
        let whole = call.others
        for half in whole {
            call.others = [half]
            #expect(error(try await rig.ask("/subscribe", call.subscribe)) == 1)
        }
        call.signer = group
        call.others = whole.map { ($0.0, .null) }
        #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
    }

    @Test("Without its switch the withdrawn subkey is as good as absent")
    func subkeySwitch() async throws {
        let row = try #require(
            try VectorFile.read(VectorFile.own("Vectors/session.json")).json["subscribe"]?.array?
                .first { $0["id"]?.string == "legacy-subkey-carry" })
        let body = Array(try #require(row["body"]?.string).utf8)
        #expect(error(try await rig().ask("/subscribe", body)) == 4)
        let rig = try await rig(SessionPolicy(takesSubkeys: true))
        #expect(try await rig.ask("/subscribe", body)["added"]?.bool == true)
        #expect(try await rig.subscriptions()[0].isLocal)
        #expect(rig.notes.value.contains(NoteCode("session.subkey")))
    }

    @Test(
        "A subkey tag of whatever form says nothing where the account itself has signed",
        arguments: [
            .string(String(repeating: "03", count: 36)), .string("00"), .string(""), .bool(true),
            .array([.null]), .object([:])
        ] as [JSONValue])
    func strayTag(tag: JSONValue) async throws {
        for policy in [SessionPolicy(), SessionPolicy(takesSubkeys: true)] {
            let rig = try await rig(policy)
            var call = PeerCall(alice)
            call.others = [("subkey_tag", tag)]
            #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
            #expect(try await rig.ask("/unsubscribe", call.unsubscribe)["removed"]?.bool == true)
        }
    }

    // MARK: bounds

    @Test("Whoever signs has so many subscriptions at most, and renews those that there are")
    func tooMany() async throws {
        let rig = try await SessionRig()
        var calls = (0...SessionLimits.subscriptionsPerSigner).map { index in
            var call = PeerCall(alice)
            call.token = String(repeating: String(0x10 + index, radix: 16), count: 32)
            return call
        }
        let extra = calls.removeLast()
        // The account's allowance is for the minute.
        for call in calls {
            rig.pass(.seconds(10))
            #expect(error(try await rig.ask("/subscribe", call.subscribe)) == nil)
        }
        rig.pass(.seconds(60))
        #expect(error(try await rig.ask("/subscribe", extra.subscribe)) == 4)
        calls[0].at += 1
        #expect(try await rig.ask("/subscribe", calls[0].subscribe)["updated"]?.bool == true)
        #expect(try await rig.ask("/unsubscribe", calls[1].unsubscribe)["removed"]?.bool == true)
        #expect(error(try await rig.ask("/subscribe", extra.subscribe)) == nil)
    }

    @Test("An address pays until a key is proved, and then its signer does")
    func tolls() async throws {
        let rig = try await SessionRig()
        let call = PeerCall(alice)
        var forged = call
        forged.signer = group
        _ = try await rig.ask("/subscribe", call.subscribe.serialized(), from: 7)
        _ = try await rig.ask("/subscribe", forged.subscribe.serialized(), from: 8)
        #expect(rig.tolls.value.map(\.allowance.name) == ["signer"])
        func payer(_ call: PeerCall, _ way: SessionInbound.Way) async throws -> Payer? {
            try await rig.relay.toll(of: inbound(call, way), from: ClientKey(7))?.payer
        }
        // The forged call has ended what was known of its signer.
        #expect(try await payer(call, .plain) == .client(ClientKey(7)))
        #expect(try await payer(call, .onion) == .client(ClientKey(7)))
        _ = try await rig.ask("/subscribe", call.subscribe.serialized(), from: 7)
        for way in [SessionInbound.Way.plain, .onion] {
            guard case .peer? = try await payer(call, way) else {
                Issue.record("not as its signer")
                continue
            }
        }
        #expect(try await payer(PeerCall(group), .onion) == .client(ClientKey(7)))
        #expect(try await rig.relay.toll(of: .notified(.sample(alice)), from: ClientKey(7)) == nil)
    }

    private func inbound(_ call: PeerCall, _ way: SessionInbound.Way) throws -> SessionInbound {
        try withBytes(call.subscribe.serialized()) {
            try SessionCallBody(.subscribe, by: way, $0).elements[0].get()
        }
    }

    @Test("Where a node's part is used up, phones that are known go on, and so do those behind other nodes")
    func nonsense() async throws {
        let rig = try await SessionRig()
        func ask(_ call: PeerCall, from node: UInt64) async throws -> Int64? {
            error(try await rig.ask("/subscribe", call.subscribe.serialized(), by: .onion, from: node))
        }
        var call = PeerCall(alice)
        #expect(try await ask(call, from: 7) == nil)
        rig.useUp(SessionAllowances().ofNode, of: .client(ClientKey(7)))
        call.at += 1
        let forged = try PeerAccount(seed: 8)
        #expect(try await ask(call, from: 7) == nil)
        #expect(try await ask(PeerCall(forged), from: 7) == 3)
        #expect(try await ask(PeerCall(forged), from: 8) == nil)
        // Somebody else names the phone's key, and from then on it pays as its node again.
        var other = call
        other.signer = group
        #expect(try await ask(other, from: 8) == 4)
        call.at += 1
        #expect(try await ask(call, from: 7) == 3)
        #expect(try await ask(call, from: 9) == nil)
    }

    @Test("A signer who asks too often hears to try again")
    func allowance() async throws {
        let rig = try await SessionRig(tolled: { toll in toll.allowance.name == "signer" ? .seconds(9) : nil
        })
        #expect(error(try await rig.ask("/subscribe", PeerCall(alice).subscribe)) == 3)
        #expect(error(try await rig.ask("/unsubscribe", PeerCall(alice).unsubscribe)) == 3)
        #expect(try await rig.records().isEmpty)
    }

    @Test("A store that is out is said to be, and nothing is half done")
    func storeOut() async throws {
        let rig = try await SessionRig()
        rig.store.goOut()
        #expect(error(try await rig.ask("/subscribe", PeerCall(alice).subscribe)) == 3)
    }

    @Test("Services are those that the instance has an app for, and Huawei's is refused by name")
    func services() async throws {
        let rig = try await SessionRig(services: [.apns])
        var call = PeerCall(alice)
        for (service, code) in [
            ("apns", nil), ("apns-sandbox", 2), ("firebase", 2), ("huawei", 2), ("APNS", 2), ("", 2)
        ]
            as [(String, Int64?)]
        {
            call.service = service
            #expect(error(try await rig.ask("/subscribe", call.subscribe)) == code, "\(service)")
            #expect(error(try await rig.ask("/unsubscribe", call.unsubscribe)) == code, "\(service)")
        }
    }
}
