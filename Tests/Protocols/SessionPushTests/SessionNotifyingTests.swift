import PushModel
import PushTesting
import SessionPush
import Testing
import WireFormats

@Suite("Messages of storage servers", .timeLimit(.minutes(30)))
struct SessionNotifyingTests {
    private let alice: PeerAccount
    private let group: PeerAccount
    private let key = String(repeating: "5c", count: 32)

    init() throws {
        alice = try PeerAccount(seed: 1)
        group = try PeerAccount(seed: 2, prefix: 3)
    }

    /// A relay with one subscription for each call.
    private func rig(
        _ calls: [PeerCall], _ policy: SessionPolicy = SessionPolicy(), aps: [UInt8]? = nil
    ) async throws -> SessionRig {
        let rig = try await SessionRig(policy: policy, aps: aps)
        for call in calls {
            #expect(try await rig.ask("/subscribe", call.subscribe)["added"]?.bool == true)
        }
        return rig
    }

    /// What a relay makes of a message, without handing it on.
    private func pushes(_ rig: SessionRig, _ push: StorageNotice) async throws -> [Push] {
        try await rig.relay.receive(.notified(push)).pushes
    }

    @Test("Each device that asked for the namespace gets it, sealed with its own key")
    func devices() async throws {
        var second = PeerCall(alice)
        second.service = "firebase"
        second.token = String(repeating: "Fb:", count: 30)
        second.key = String(repeating: "77", count: 32)
        var third = PeerCall(alice)
        third.token = String(repeating: "c3", count: 32)
        third.namespaces = [2]
        let rig = try await rig([PeerCall(alice), second, third, PeerCall(group)])
        try await rig.running { [second] rig in
            try await rig.notify(.sample(alice))
            await rig.services.sent(atLeast: 2)
            let sent = rig.services.sent.map(\.message)
            #expect(sent.count == 2)
            let apple = try #require(sent.first { $0.apns != nil })
            let google = try #require(sent.first { $0.fcm != nil })
            #expect(try OpenedPush(apple, key: key).data == Array("sealed for the account".utf8))
            #expect(try OpenedPush(google, key: second.key).data == Array("sealed for the account".utf8))
            #expect(throws: (any Error).self) { try OpenedPush(google, key: key) }
        }
    }

    @Test("Devices of one account get as much of a message as each asked for, under a nonce of its own")
    func shares() async throws {
        let calls = [(0xA1, true), (0xB2, false), (0xC3, true), (0xD4, false)].map { digits, wantsData in
            var call = PeerCall(alice)
            call.token = String(repeating: String(digits, radix: 16), count: 32)
            call.wantsData = wantsData
            return call
        }
        let rig = try await rig(calls)
        for (hash, count, data) in [("s", 100, true), ("l", 2_501, false)] {
            let bytes = [UInt8](repeating: 0x3C, count: count)
            let sent = try await pushes(
                rig, .sample(alice, hash: String(repeating: hash, count: 43), data: bytes))
            #expect(sent.count == 4)
            var nonces: Set<String> = []
            for push in sent {
                let apple = try #require(push.message.apns)
                let wantsData = apple.token.reveal { $0.first == 0x61 || $0.first == 0x63 }
                let opened = try OpenedPush(push.message, key: key)
                #expect(opened.data == (wantsData && data ? bytes : nil))
                #expect(opened.metadata["l"]?.int64 == (wantsData ? Int64(count) : nil))
                #expect(opened.metadata["B"]?.bool == (wantsData && !data ? true : nil))
                let body = try apple.payload.reveal { try JSONValue.parse($0) }
                nonces.insert(String(try #require(body["enc_payload"]?.string).prefix(32)))
            }
            #expect(nonces.count == 4)
        }
    }

    @Test("What a node tells again, and what other members of the swarm tell, is sent once")
    func duplicates() async throws {
        let rig = try await rig([PeerCall(alice)])
        #expect(try await pushes(rig, .sample(alice)).count == 1)
        #expect(try await pushes(rig, .sample(alice)).isEmpty)
        #expect(try await pushes(rig, .sample(alice, data: nil)).isEmpty)
        // Another message, and the same hash elsewhere.
        #expect(try await pushes(rig, .sample(alice, hash: String(repeating: "x", count: 43))).count == 1)
        #expect(try await pushes(rig, .sample(alice, namespace: 2)).count == 1)
    }

    @Test("The filter knows a message for one lifetime to two")
    func generations() async throws {
        let rig = try await rig([PeerCall(alice)])
        #expect(try await pushes(rig, .sample(alice)).count == 1)
        rig.pass(SessionLimits.seenLife)
        #expect(try await pushes(rig, .sample(alice)).isEmpty)
        rig.pass(SessionLimits.seenLife)
        #expect(try await pushes(rig, .sample(alice, hash: String(repeating: "y", count: 43))).count == 1)
        #expect(try await pushes(rig, .sample(alice)).count == 1)
    }

    @Test("What the filter has forgotten meets the mark of its push")
    func marks() async throws {
        let rig = try await rig([PeerCall(alice)])
        try await rig.running { rig in
            try await rig.notify(.sample(alice))
            await rig.services.sent(atLeast: 1)
            rig.relay.release(.sample(alice))
            try await rig.notify(.sample(alice))
            try await rig.notify(.sample(alice, hash: String(repeating: "y", count: 43)))
            await rig.services.sent(atLeast: 2)
            #expect(rig.services.sent.count == 2)
        }
    }

    @Test("A message that the store could not take may be told of again")
    func released() async throws {
        let rig = try await rig([PeerCall(alice)])
        rig.store.goOut()
        await #expect(throws: SessionError.self) { try await rig.relay.receive(.notified(.sample(alice))) }
        rig.store.comeBack()
        #expect(try await pushes(rig, .sample(alice)).count == 1)
        rig.relay.release(.sample(alice))
        #expect(try await pushes(rig, .sample(alice)).count == 1)
    }

    @Test("The filter has a bound, and forgets the oldest half")
    func bound() async throws {
        let rig = try await SessionRig()
        for index in 0...SessionLimits.seenMessages {
            let hash = String(repeating: "0", count: 40) + String(index)
            _ = try await rig.relay.receive(.notified(.sample(alice, hash: hash)))
        }
        // The first generation is the old one now, and still known.
        let first = try await rig.relay.receive(
            .notified(.sample(alice, hash: String(repeating: "0", count: 41))))
        #expect(first.notes == [NoteCode("session.duplicate")])
    }

    // MARK: what is sent

    @Test("A message of up to 2,500 bytes goes along, a longer one is only described")
    func lengths() async throws {
        let rig = try await rig([PeerCall(alice)])
        for (count, isIncluded) in [(1, true), (2_500, true), (2_501, false), (76_800, false)] {
            let data = [UInt8](repeating: 0xA5, count: count)
            let push = try #require(
                try await pushes(
                    rig, .sample(alice, hash: String(repeating: "h", count: 40) + String(count), data: data)
                ).first)
            let opened = try OpenedPush(push.message, key: key)
            #expect(opened.data == (isIncluded ? data : nil))
            #expect(opened.metadata["l"]?.int64 == Int64(count))
            #expect(opened.metadata["B"]?.bool == (isIncluded ? nil : true))
            #expect(push.message.apns?.payload.count ?? .max <= 4_096)
        }
    }

    @Test("The largest push of the largest fallback stays within what Apple takes")
    func largest() async throws {
        let aps = Array(
            #"{"alert":{"body":"\#(String(repeating: "x", count: 300))"},"mutable-content":1}"#.utf8)
        let rig = try await rig([PeerCall(alice)], aps: Array(aps))
        let data = [UInt8](repeating: 1, count: 2_500)
        // A fallback that is too large takes the message's place, and the push still goes out.
        let push = try #require(
            try await pushes(rig, .sample(alice, hash: String(repeating: "h", count: 99), data: data)).first)
        #expect(push.message.apns?.payload.count ?? .max <= 4_096)
        let opened = try OpenedPush(push.message, key: key)
        #expect(opened.data == nil)
        #expect(opened.metadata["B"]?.bool == true)
    }

    @Test("Without data, or with none, neither length nor message is there")
    func withoutData() async throws {
        var call = PeerCall(alice)
        call.wantsData = false
        let rig = try await rig([call])
        let silent = try #require(try await pushes(rig, .sample(alice)).first)
        #expect(try OpenedPush(silent.message, key: key).metadata["l"] == nil)
        call.wantsData = true
        call.at += 1
        _ = try await rig.ask("/subscribe", call.subscribe)
        for (index, data) in [nil, []].enumerated() as EnumeratedSequence<[[UInt8]?]> {
            let hash = String(repeating: "n", count: 42) + String(index)
            let push = try #require(try await pushes(rig, .sample(alice, hash: hash, data: data)).first)
            let opened = try OpenedPush(push.message, key: key)
            #expect(opened.data == nil)
            #expect(opened.metadata["l"] == nil && opened.metadata["B"] == nil)
        }
    }

    @Test("Apple gets the service's environment, an alert of ours or the app's, and the message's expiry")
    func apple() async throws {
        var sandbox = PeerCall(alice)
        sandbox.service = "apns-sandbox"
        let rig = try await rig([PeerCall(alice), sandbox])
        let messages = try await pushes(rig, .sample(alice)).compactMap(\.message.apns)
        #expect(messages.map(\.environment) == [.production, .sandbox])
        let message = messages[0]
        #expect(message.topic == SessionRig.bundle)
        #expect(message.priority == 10)
        #expect(message.pushType == .alert)
        #expect(message.collapseID == nil)
        #expect(message.expiration == SessionRig.now + .seconds(86_400))
        let body = try message.payload.reveal { try JSONValue.parse($0) }
        #expect(body["aps"]?["category"]?.string == "SECRET")
        #expect(body["aps"]?["badge"]?.int64 == 1)
        #expect(body["spns"]?.int64 == 1)
        let own = try await self.rig([PeerCall(alice)], aps: Array(#"{"alert":"You have mail"}"#.utf8))
        let other = try #require(try await pushes(own, .sample(alice)).first?.message.apns)
        #expect(
            try other.payload.reveal { try JSONValue.parse($0) }["aps"]?["alert"]?.string == "You have mail")
    }

    @Test(
        "Google is asked to hurry for what people read, or for all by the operator's word",
        arguments: [(0, true), (11, true), (2, false), (-11, false), (12, false)] as [(Int16, Bool)])
    func google(namespace: Int16, isHigh: Bool) async throws {
        var call = PeerCall(alice)
        call.service = "firebase"
        call.namespaces = [Int(namespace)]
        for policy in [SessionPolicy(), SessionPolicy(fcmHigh: .always)] {
            let rig = try await rig([call], policy)
            let push = try #require(try await pushes(rig, .sample(alice, namespace: namespace)).first)
            let message = try #require(push.message.fcm)
            #expect(message.priority == (isHigh || policy.fcmHigh == .always ? .high : .normal))
            #expect(message.ttl == .seconds(86_400))
            #expect(push.pushClass == (isHigh ? .normal : .background))
            let data = try message.data.reveal { try JSONValue.parse($0) }
            #expect(data.object?.names == ["enc_payload", "spns"])
            #expect(data["spns"]?.string == "1")
            #expect(try OpenedPush(push.message, key: key).metadata["n"]?.int64 == Int64(namespace))
        }
    }

    @Test("A push is owed until its message is gone, and never longer than 14 days")
    func custody() async throws {
        let rig = try await rig([PeerCall(alice)])
        let month = try #require(try await pushes(rig, .sample(alice, lasts: .seconds(30 * 86_400))).first)
        #expect(month.custodyEnds == SessionRig.now + SessionLimits.custody)
        #expect(month.message.apns?.expiration == SessionRig.now + SessionLimits.custody)
        let brief = StorageNotice.sample(alice, hash: String(repeating: "b", count: 43), lasts: .seconds(20))
        #expect(try await pushes(rig, brief).first?.custodyEnds == SessionRig.now + .seconds(20))
        let gone = StorageNotice.sample(alice, hash: String(repeating: "g", count: 43), lasts: .zero)
        let verdict = try await rig.relay.receive(.notified(gone))
        #expect(verdict.pushes.isEmpty)
        #expect(verdict.notes == [NoteCode("session.expired")])
    }

    @Test("A hash that is no visible text is not passed on", arguments: ["\"", "\\", "\n", "é", "\u{0}"])
    func oddHash(character: String) async throws {
        let rig = try await rig([PeerCall(alice)])
        let push = StorageNotice.sample(alice, hash: String(repeating: "h", count: 40) + character)
        let verdict = try await rig.relay.receive(.notified(push))
        #expect(verdict.pushes.isEmpty)
        #expect(verdict.notes == [NoteCode("session.odd-hash")])
    }

    // MARK: ends

    @Test("A token that the push service calls dead ends its subscription alone")
    func deadToken() async throws {
        var other = PeerCall(alice)
        other.token = String(repeating: "b2", count: 32)
        let rig = try await rig([PeerCall(alice), other])
        try await rig.running { [other] rig in
            rig.services.answer(other.token) { _ in
                Answer(.unregistered(since: nil), .unregisteredAPNs, sentAt: rig.world.now())
            }
            try await rig.notify(.sample(alice))
            await rig.services.sent(atLeast: 2)
            await rig.store.ends(atLeast: 1)
            #expect(try await rig.subscriptions().map { $0.token }.count == 1)
            try await rig.notify(.sample(alice, hash: String(repeating: "z", count: 43)))
            await rig.services.sent(atLeast: 3)
            #expect(rig.services.sent.count == 3)
            // A newer signature brings it back.
            var newer = other
            newer.at += 1
            #expect(try await rig.ask("/subscribe", newer.subscribe)["added"]?.bool == true)
        }
    }

    @Test("Nobody hears of an account without subscriptions, or of an app that is gone")
    func unwanted() async throws {
        let rig = try await rig([PeerCall(alice)])
        #expect(
            try await rig.relay.receive(.notified(.sample(group))).notes == [NoteCode("session.unwanted")])
        let bare = SessionRelay(
            instance: SessionRig.instance, apps: SessionApps([:]), registry: rig.store, world: rig.world)
        let notes = try await bare.receive(.notified(.sample(alice))).notes
        #expect(Set(notes) == [NoteCode("session.unwanted"), NoteCode("session.app-gone")])
    }

    @Test("The dictionary form says the same, sorted, where the message does not go along")
    func dictionary() async throws {
        let rig = try await rig([PeerCall(alice)], SessionPolicy(metadata: .deployed))
        let push = try #require(
            try await pushes(rig, .sample(alice, namespace: 2, data: [UInt8](repeating: 1, count: 2_501)))
                .first)
        let plain = try OpenedPush.plain(push.message, key: key)
        try plain.reveal { plain in
            let end = try #require(plain.lastIndex { $0 != 0 })
            var list = BencodeReader(UnsafeRawBufferPointer(rebasing: plain[...end]), .strict)
            try list.beginList()
            #expect(try list.nextElement())
            try list.beginDictionary()
            #expect(try list.find("#"))
            #expect(try list.readString().count == 43)
            #expect(try list.find("B"))
            #expect(try list.readInteger().int64 == 1)
            #expect(try list.find("l"))
            #expect(try list.readInteger().int64 == 2_501)
            #expect(try list.find("n"))
            #expect(try list.readInteger().int64 == 2)
            try list.endDictionary()
            #expect(try !list.nextElement())
            try list.end()
        }
    }
}
