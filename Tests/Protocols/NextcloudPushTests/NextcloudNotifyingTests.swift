import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

@Suite("Notifying through the Nextcloud relay", .timeLimit(.minutes(30)))
struct NextcloudNotifyingTests {
    private let alice = PeerUser.alice

    @Test("What is sent names app, class, lives and origin as the sheet has them")
    func pushes() async throws {
        let rig = try await NextcloudRelayRig.make()
        let (phone, robot) = (alice.device(1), alice.device(2))
        try await rig.running { rig in
            await rig.register(phone)
            await rig.register(robot, token: "fcm:token")
            let answer = await rig.notify([
                phone.entry(1, type: "voip"), phone.entry(2, priority: "normal"),
                phone.entry(3, type: "background", priority: "normal"),
                robot.entry(4, token: "fcm:token", type: "voip"), robot.entry(5, token: "fcm:token")
            ])
            #expect(answer.failed == 0 && answer.unknown == [])
            await rig.services.sent(atLeast: 5)
            let now = rig.world.now()
            func sent(_ pushClass: PushClass, _ service: PushService) throws -> OwedPush {
                try #require(
                    rig.services.sent.first { $0.pushClass == pushClass && $0.message.service == service })
            }
            let call = try sent(.urgent, .apns)
            #expect(call.message.apns?.topic == "org.acme.talk.voip" && call.message.apns?.priority == 10)
            #expect(call.message.apns?.expiration == now + .seconds(60))
            #expect(call.custodyEnds == now + .seconds(60))
            let alert = try sent(.normal, .apns)
            #expect(alert.message.apns?.priority == 5 && alert.message.apns?.pushType == .alert)
            #expect(alert.custodyEnds == now + .seconds(86_400))
            let payload = try #require(alert.message.apns?.payload.reveal { try? JSONValue.parse($0) })
            #expect(payload["aps"]?["mutable-content"]?.int64 == 1)
            #expect(payload["aps"]?["alert"]?["loc-key"]?.string == "NEW_NOTIFICATION")
            let withdrawal = try sent(.background, .apns)
            let content = try #require(withdrawal.message.apns?.payload.reveal { try? JSONValue.parse($0) })
            #expect(content["aps"]?.object?.names == ["content-available"])
            #expect(withdrawal.message.apns?.expiration == now + .seconds(86_400))
            let ring = try sent(.urgent, .fcm)
            #expect(ring.message.fcm?.app == NextcloudRelayRig.talk && ring.message.fcm?.ttl == .seconds(60))
            let data = try #require(ring.message.fcm?.data.reveal { try? JSONValue.parse($0) })
            #expect(data.object?.names == ["subject", "signature"])
        }
    }

    @Test("An app's own alert is what its devices show")
    func fallback() async throws {
        let aps = Array(#"{"mutable-content":1,"alert":{"title":"Acme"}}"#.utf8)
        let apps = NextcloudApps([
            NextcloudApp(name: NextcloudRelayRig.talk, bundle: "org.acme.talk", hasFCM: false, aps: aps)
        ])
        let rig = try await NextcloudRelayRig(apps: apps)
        let device = alice.device(1)
        try await rig.running { rig in
            await rig.register(device, token: PeerDevice.alertToken, userAgent: nil)
            #expect(await rig.notify([device.entry(1, token: PeerDevice.alertToken)]).failed == 0)
            await rig.services.sent(atLeast: 1)
            let payload = rig.services.sent.first?.message.apns?.payload.reveal { try? JSONValue.parse($0) }
            let own = try JSONValue.parse(aps)
            #expect(payload?["aps"] == own)
        }
    }

    @Test("A dead VoIP token leaves the alerts alone, and calls ring through them")
    func deadVoIP() async throws {
        try await NextcloudRelayRig.registered { rig, device in
            rig.end(PeerDevice.voipToken)
            #expect(await rig.notify([device.entry(1, type: "voip")]).failed == 0)
            await rig.store.ends(atLeast: 1)
            #expect(
                await rig.notify([device.entry(2, type: "voip"), device.entry(3)]).failed == 0)
            await rig.services.sent(atLeast: 3)
            let later = rig.services.sent.suffix(2).compactMap(\.message.apns)
            let alert = APNsMessage.canonical(Secret(PeerDevice.alertToken.utf8))
            #expect(later.allSatisfy { $0.token == alert && $0.pushType == .alert })
        }
    }

    @Test("A dead alert token is told once, to the server alone, and its rows go with the answer")
    func deadAlert() async throws {
        let rig = try await NextcloudRelayRig.make(policy: NextcloudPolicy(unknownPerAnswer: 0))
        let device = alice.device(1)
        try await rig.running { rig in
            await rig.register(device)
            rig.end(PeerDevice.alertToken)
            #expect(await rig.notify([device.entry(1)]).failed == 0)
            await rig.store.ends(atLeast: 1)
            let forged = device.entry(2, signedBy: .stranger)
            let before = try await rig.revisions()
            #expect(await rig.notify([forged]).unknown == [device.id])
            #expect(try await rig.revisions() == before, "a stranger ends nobody's rows")
            let answer = await rig.notify([device.entry(3), device.entry(4, type: "voip")])
            #expect(answer.unknown == [device.id, device.id] && answer.failed == 2)
            #expect(try await rig.revisions().isEmpty)
            #expect(rig.services.sent.count == 1)
            #expect(await rig.register(device).status == 200, "it may come back")
        }
    }

    @Test("A registration that came since a token's end is known is not ended by it")
    func revived() async throws {
        try await NextcloudRelayRig.registered { rig, device in
            rig.end(PeerDevice.alertToken)
            await rig.notify([device.entry(1)])
            await rig.store.ends(atLeast: 1)
            rig.advance(by: .seconds(1))
            let token = String(repeating: "C3", count: 32)
            await rig.register(device, token: token)
            #expect(await rig.notify([device.entry(2, token: token)]).failed == 0)
        }
    }

    @Test("A topic that does not fit ends no registration: it may be our own fault")
    func wrongTopic() async throws {
        try await NextcloudRelayRig.registered { rig, device in
            rig.services.answer(PeerDevice.alertToken) { _ in
                Answer(.misconfigured(.target), .deviceTokenNotForTopic, sentAt: NextcloudRelayRig.now)
            }
            await rig.notify([device.entry(1)])
            await rig.services.sent(atLeast: 1)
            #expect(await rig.notify([device.entry(2)]).failed == 0)
            let alert = try await rig.record(rig.keys.alert(device.identifier))
            #expect(alert?.state == .live)
        }
        #expect(
            NextcloudRelay.override(
                Answer(.misconfigured(.target), .deviceTokenNotForTopic, sentAt: NextcloudRelayRig.now))
                == nil)
    }

    @Test("Identifiers without a row are told a few an answer and a few an hour; ended ones do not count")
    func cap() async throws {
        let rig = try await NextcloudRelayRig.make(
            policy: NextcloudPolicy(unknownPerAnswer: 3, unknownPerHour: 300))
        let entries = (1...8).map { alice.device($0).entry($0) }
        let first = await rig.notify(entries)
        #expect(first.unknown?.count == 3 && first.failed == 8)
        #expect(await rig.notify(Array(entries.suffix(4))).unknown?.count == 2, "two of five a minute")
        #expect(await rig.notify([alice.device(9).entry(9)]).unknown == [])
        #expect(try await rig.revisions().isEmpty, "nothing is written for an identifier that is not known")
        let ended = alice.device(99)
        try await rig.running { rig in
            await rig.register(ended)
            rig.end(PeerDevice.alertToken)
            await rig.notify([ended.entry(1)])
            await rig.store.ends(atLeast: 1)
            let fresh = (10...12).map { alice.device($0).entry($0) }
            #expect(await rig.notify([ended.entry(2)] + fresh).unknown == [ended.id])
        }
    }

    @Test("A repeat from anywhere meets its mark, and is no failure")
    func replay() async throws {
        try await NextcloudRelayRig.registered { rig, device in
            let entry = device.entry(1)
            #expect(await rig.notify([entry, entry]).failed == 0)
            let again = await rig.ask(
                "POST", "/other/notifications",
                body: Form([("notifications[]", Array(entry.utf8))]).encoded(), from: 7)
            #expect(again.status == 200 && again.failed == 0)
            #expect(await rig.notify([device.entry(2)]).failed == 0)
            await rig.services.sent(atLeast: 2)
            #expect(rig.services.sent.count == 2)
        }
    }

    @Test("One bad entry spoils no other, whatever is wrong with it", arguments: BadEntry.allCases)
    func badEntry(_ bad: BadEntry) async throws {
        try await NextcloudRelayRig.registered { rig, device in
            let answer = await rig.notify([
                device.entry(1), try bad.make(device), device.entry(2)
            ])
            #expect(answer.status == 200 && answer.failed == 1 && answer.unknown == [])
            await rig.services.sent(atLeast: 2)
            #expect(rig.services.sent.count == 2)
        }
    }

    enum BadEntry: CaseIterable {
        case noJSON, list, number, empty, noHash, numberForID, numberForType, shortSignature, longSubject
        case foreign, identifierOf32, identifierInHex, urlAlphabet, huge, invalidUTF8

        func make(_ device: PeerDevice) throws -> String {
            let good = device.entry(9)
            func swapped(_ name: String, _ json: String) throws -> String {
                var object = try #require(try JSONValue.parse(Array(good.utf8)).object)
                object[name] = try JSONValue.parse(Array(json.utf8))
                return String(decoding: JSONValue.object(object).serialized(), as: UTF8.self)
            }
            switch self {
            case .noJSON: return "{\"deviceIdentifier\":"
            case .list: return "[\(good)]"
            case .number: return "17"
            case .empty: return ""
            case .noHash: return #"{"deviceIdentifier":"\#(device.id)","subject":"x","signature":"y"}"#
            case .numberForID: return try swapped("deviceIdentifier", "5")
            case .numberForType: return try swapped("type", "1")
            case .shortSignature: return try swapped("signature", "\"AAAA\"")
            case .longSubject:
                return try swapped("subject", "\"" + String(repeating: "AAAA", count: 128) + "\"")
            case .foreign: return device.entry(9, signedBy: .stranger)
            case .identifierOf32:
                return try swapped(
                    "deviceIdentifier", "\"" + Base64.text([UInt8](repeating: 1, count: 32)) + "\"")
            case .identifierInHex:
                return try swapped("deviceIdentifier", "\"" + String(repeating: "ab", count: 64) + "\"")
            case .urlAlphabet:
                return try swapped(
                    "signature", "\"" + String(repeating: "-", count: 342) + "==\"")
            case .huge: return try swapped("more", "\"" + String(repeating: "x", count: 20_000) + "\"")
            case .invalidUTF8: return good.replacing("high", with: "hi\\ud800gh")
            }
        }
    }

    @Test("An entry without type is an alert, one without priority a normal one, an unknown type an alert")
    func defaults() async throws {
        try await NextcloudRelayRig.registered { rig, device in
            let answer = await rig.notify([
                device.entry(1, type: nil, priority: nil), device.entry(2, type: "video")
            ])
            #expect(answer.failed == 0)
            await rig.services.sent(atLeast: 2)
            let sent = rig.services.sent.compactMap(\.message.apns)
            #expect(sent.allSatisfy { $0.pushType == .alert } && Set(sent.map(\.priority)) == [5, 10])
        }
    }

    @Test("A subscription key is asked for where one is configured, before anything else is looked at")
    func subscription() async throws {
        let policy = NextcloudPolicy(subscriptionKeys: [Secret("key-a".utf8), Secret("key-b".utf8)])
        let rig = try await NextcloudRelayRig.make(policy: policy)
        let device = alice.device(1)
        try await rig.running { rig in
            await rig.register(device)
            let entry = device.entry(1)
            for key in [nil, "", "key-c", "key-a "] {
                let refused = await rig.notify([entry], subscriptionKey: key)
                #expect(refused.status == 401 && refused.unknown == nil)
            }
            #expect(await rig.notify([entry], subscriptionKey: "key-b").failed == 0)
        }
    }

    @Test("A source that asks too often hears 429 without the two members")
    func tooOften() async throws {
        let rig = try await NextcloudRelayRig.make()
        for _ in 0..<6_000 { #expect(await rig.notify(["no entry"]).status == 200) }
        let refused = await rig.notify(["no entry"])
        #expect(refused.status == 429 && refused.json["unknown"] == nil && refused.json["failed"] == nil)
    }

    @Test("An app that is gone from the configuration fails its devices and ends none of them")
    func appGone() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(1)
        await rig.register(device)
        let other = try NextcloudRelay(
            instance: NextcloudRelayRig.instance, apps: NextcloudApps([]), registry: rig.store, web: nil,
            world: rig.world)
        let body = Form([("notifications[0]", Array(device.entry(1).utf8))]).encoded()
        let inbound = try withBytes(body) { (bytes) throws(NextcloudError) in
            try NextcloudInbound.parse(method: "POST", path: "/notifications", body: bytes)
        }
        let verdict = try await other.receive(inbound)
        #expect(verdict.pushes.isEmpty && verdict.changes.isEmpty)
        guard case .now(.judged(let unknown, let failed)) = verdict.reply else {
            Issue.record("another reply")
            return
        }
        #expect(unknown.isEmpty && failed == 1)
    }

    @Test("A batch is asked once and so waits for a store; a registration is refused, and changes nothing")
    func held() async throws {
        let rig = try await NextcloudRelayRig.make()
        let device = alice.device(1)
        let form = Form([("notifications[]", Array(device.entry(1).utf8))])
        let batch = try withBytes(form.encoded()) { (bytes) throws(NextcloudError) in
            try NextcloudInbound.parse(method: "POST", path: "/notifications", body: bytes)
        }
        #expect(NextcloudRelay.isAskedOnce(batch))
        rig.store.goOut()
        #expect(await rig.register(device).status == 503)
        rig.store.comeBack()
        #expect(try await rig.revisions().isEmpty)
    }

    @Test("Thirteen thousand entries in one call are judged, each of its own, and none twice")
    func large() async throws {
        let rig = try await NextcloudRelayRig.make()
        let devices = [alice.device(1), PeerUser.bob.device(2)]
        for device in devices { await rig.register(device) }
        // A few signatures serve all: what repeats is met by its mark.
        let entries = devices.flatMap { device in (1...5).map { device.entry($0) } }
        let bad = devices[0].entry(6, signedBy: .stranger)
        let body = (0..<13_000).map { $0.isMultiple(of: 1_000) ? bad : entries[$0 % 10] }
        try await rig.running { rig in
            let answer = await rig.notify(body)
            #expect(answer.status == 200 && answer.failed == 13 && answer.unknown == [])
            await rig.services.sent(atLeast: 10)
            #expect(rig.services.sent.count == 10)
        }
    }

    @Test("A call of many different entries and devices is answered whole, and each is sent")
    func different() async throws {
        let rig = try await NextcloudRelayRig.make()
        let devices = (1...40).map { alice.device($0) }
        let body = devices.flatMap { device in (1...20).map { device.entry($0) } }
        try await rig.running { rig in
            for device in devices { await rig.register(device) }
            let answer = await rig.notify(body)
            #expect(answer.failed == 0 && answer.unknown == [])
            // One phone is sent a few at once, and more at each tick.
            try await asked(for: "all of them sent") {
                rig.pass(.milliseconds(100))
                return rig.services.sent.count >= 800
            }
            #expect(rig.services.sent.count == 800)
        }
    }

    @Test("However many devices a call names, what stands of one of them is read at one moment")
    func together() async throws {
        let rig = try await NextcloudRelayRig.make()
        // Alerts and calls in turn, so that no round number of devices fills a look-up.
        let entries = (1...700).map { number in
            let name = Base64.text((0..<64).map { UInt8(truncatingIfNeeded: number >> ($0 % 8)) ^ UInt8($0) })
            return #"{"deviceIdentifier":"\#(name)","pushTokenHash":"","subject":"","signature":"","#
                + #""type":"\#(number.isMultiple(of: 3) ? "alert" : "voip")"}"#
        }
        #expect(await rig.notify(entries).failed == 700)
        let lookups = rig.store.lookups
        #expect(lookups.count > 1 && lookups.allSatisfy { $0.count <= 1_000 })
        #expect(lookups.allSatisfy { $0.first == rig.keys.pinSpace.text }, "each begins with a pin")
    }

    @Test("Where nothing may be told of identifiers without a row, nothing is")
    func untold() async throws {
        for policy in [NextcloudPolicy(unknownPerAnswer: 0), NextcloudPolicy(unknownPerHour: 0)] {
            let rig = try await NextcloudRelayRig.make(policy: policy)
            let answer = await rig.notify([alice.device(1).entry(1)])
            #expect(answer.unknown == [] && answer.failed == 1)
        }
    }

    @Test("The pace of a push is that of the key that is pinned, so each user of a call has one of their own")
    func origins() async throws {
        let rig = try await NextcloudRelayRig.make(pushesPerMinute: 2)
        let devices = [alice.device(1), PeerUser.bob.device(2)]
        for device in devices { await rig.register(device) }
        try await rig.running { rig in
            let entries = [
                devices[0].entry(1), devices[0].entry(2), devices[0].entry(3), devices[1].entry(1),
                devices[1].entry(2)
            ]
            #expect(await rig.notify(entries).failed == 0)
            await rig.services.sent(atLeast: 4)
            #expect(rig.services.sent.count == 4, "Alice's third waits, and nothing of Bob's")
            #expect(Set(rig.services.sent.map(\.record)).count == 2)
        }
    }

    @Test("A call takes of its client's share by its size, before anything is looked up", arguments: [1, 200])
    func priced(_ count: Int) async throws {
        let rig = try await NextcloudRelayRig.make()
        let entry = alice.device(1).entry(1)
        let body = Form((0..<count).map { ("notifications[\($0)]", Array(entry.utf8)) }).encoded()
        let inbound = try withBytes(body) { (bytes) throws(NextcloudError) in
            try NextcloudInbound.parse(method: "POST", path: "/notifications", body: bytes)
        }
        let toll = try #require(await rig.relay.toll(of: inbound, from: ClientKey(1)))
        #expect(toll.allowance.name == "notifications" && toll.payer == .client(ClientKey(1)))
        #expect(toll.units == (count == 1 ? 1 : 1 + body.count / (20 << 10)))
        #expect(rig.store.lookups.isEmpty)
    }
}
