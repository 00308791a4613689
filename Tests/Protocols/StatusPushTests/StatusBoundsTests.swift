import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// What a peer may register, times what it may ask.
@Suite("A Status relay at the sum of all bounds", .timeLimit(.minutes(30)))
struct StatusBoundsTests {
    private static let server = samplePair(1)
    private static let asker = samplePair(3)

    /// As a registration that fills a message: its lists have as many entries as that carries.
    private static func fat(
        _ client: SampleClient, _ installation: String, entries: Int = 2_200, bytes: Int = 64
    ) -> PushNotificationRegistration {
        var registration = client.registration(1, installation)
        registration.allowFromContactsOnly = true
        registration.allowedKeyList = (0..<entries).map { number in
            Secret((0..<bytes).map { UInt8(truncatingIfNeeded: $0 &+ number) })
        }
        return registration
    }

    private static func query(_ people: [Secret], by asker: Secp256k1KeyPair = Self.asker) -> Secret {
        MetadataMessage.wrap(PushNotificationQuery(publicKeys: people).encoded(), .query, by: asker)
    }

    /// The messages of an answer as they travel, and the infos in them.
    private static func told(
        _ reply: StatusReply?, _ world: World
    ) throws -> (messages: [WakuMessage], info: [PushNotificationQueryInfo]) {
        guard let reply else { return ([], []) }
        var info: [PushNotificationQueryInfo] = []
        var messages: [WakuMessage] = []
        for message in reply.messages(by: server) {
            let payload = WakuPayload.sealAsymmetric(
                message, to: reply.recipient, signer: server, world)
            messages.append(
                WakuMessage(
                    payload: payload, contentTopic: reply.topic.contentTopic, timestamp: .max))
            let metadata = try MetadataMessage(reading: message)
            #expect(metadata.type == .queryResponse && metadata.signer == server.point)
            let response = try PushNotificationQueryResponse(reading: metadata.payload)
            #expect(response.success)
            info += response.info
        }
        return (messages, info)
    }

    @Test("A key that is named 64 times is answered once, in as many messages as a node carries")
    func everyKeyOnce() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let client = SampleClient(samplePair(2), at: Self.server.point)
            for phone in ["one", "two"] { try await rig.keep(Self.fat(client, phone), of: client.person) }
            let people = [Secret](repeating: client.person, count: StatusLimits.queriedKeys)
            let (messages, info) = try Self.told(await rig.receive(Self.query(people)), rig.world)
            #expect(messages.allSatisfy { $0.encoded().count <= StatusLimits.carriedBytes })
            for phone in ["one", "two"] {
                let own = info.filter { $0.installationID == Secret(phone.utf8) }
                let entries = own.flatMap(\.allowedKeyList).map { $0.hexDigits.word }
                // Each part has all that a reader wants but the other entries.
                #expect(own.allSatisfy { $0.grant.count == 65 && $0.publicKey == client.person })
                #expect(entries.count == 2_200 && own.allSatisfy { $0.accessToken.count == 0 })
            }
        }
    }

    @Test("More keys than are looked up, empty and odd ones are answered as far as the bound goes")
    func manyKeys() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let client = SampleClient(samplePair(2), at: Self.server.point)
            try await rig.keep(client.registration(1), of: client.person)
            let strangers = (0..<200).map { number in
                Secret([UInt8](repeating: UInt8(number), count: StatusLimits.hashBytes))
            }
            let odd = [Secret([]), Secret([1]), Secret([UInt8](repeating: 1, count: 65))]
            let junk = [Secret](repeating: Secret([]), count: 3_000)
            for people in [[client.person] + strangers, odd + junk + [client.person]] {
                let (messages, info) = try Self.told(await rig.receive(Self.query(people)), rig.world)
                #expect(messages.count == 1 && info.count == 1)
            }
            let beyond = try Self.told(await rig.receive(Self.query(strangers + [client.person])), rig.world)
            #expect(beyond.info.isEmpty)
        }
    }

    @Test("Four phones with seven hundred contacts each are all told, to whoever is one of them")
    func manyContacts() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let (owner, asker) = (samplePair(2), samplePair(4))
            let client = SampleClient(owner, at: Self.server.point)
            for phone in 0..<4 {
                var registration = Self.fat(client, "phone \(phone)", entries: 699)
                registration.allowedKeyList.append(
                    StatusBox.seal(registration.accessToken, from: owner, to: asker.point, rig.world))
                try await rig.keep(registration, of: client.person)
            }
            let (messages, info) = try Self.told(await rig.receive(Self.query([client.person])), rig.world)
            #expect(messages.allSatisfy { $0.encoded().count <= StatusLimits.carriedBytes })
            let found = info.compactMap { one -> String? in
                guard
                    case .token(let found)? = Coordinates.judge(
                        one, reader: asker, target: owner.point, server: Self.server.point)
                else { return nil }
                return found.installationID.word
            }
            #expect(found.sorted() == (0..<4).map { "phone \($0)" })
        }
    }

    @Test("Where there is no room for all, those that registered last are told, and no more than a budget")
    func budget() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let client = SampleClient(samplePair(2), at: Self.server.point)
            for phone in 0..<20 {
                try await rig.keep(Self.fat(client, "phone \(phone)"), of: client.person)
            }
            let (messages, info) = try Self.told(await rig.receive(Self.query([client.person])), rig.world)
            #expect(messages.reduce(0) { $0 + $1.payload.count } <= StatusLimits.answerBytes + (64 << 10))
            #expect(info.first?.installationID.word == "phone 19")
        }
    }

    @Test(
        "Whatever is registered, and however often it is asked for, a node carries each answer",
        arguments: 0..<4)
    func sizes(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let rig = try await StatusRig(identity: Self.server)
        let (server, clients) = (Self.server, (0..<4).map { samplePair(UInt64(10 + $0)) })
        var people: [Secret] = []
        for key in clients {
            let client = SampleClient(key, at: server.point)
            people.append(client.person)
            for phone in 0..<Int.random(in: 0...5, using: &random) {
                let entries = [0, 1, 700, 1_500, 2_200].randomElement(using: &random) ?? 0
                let bytes = [0, 28, 29, 64, 73, 74].randomElement(using: &random) ?? 0
                var registration = Self.fat(client, "phone \(phone)", entries: entries, bytes: bytes)
                registration.installationID = Secret(
                    [UInt8](
                        repeating: UInt8(ascii: "i") + UInt8(phone), count: StatusLimits.installationBytes))
                registration.allowFromContactsOnly = Bool.random(using: &random)
                try await rig.keep(registration, of: client.person)
            }
        }
        let asked = (0..<Int.random(in: 1...300, using: &random)).compactMap { _ in
            people.randomElement(using: &random)
        }
        let (query, world) = (Self.query(asked), rig.world)
        try await rig.running { rig in
            let (messages, info) = try Self.told(await rig.receive(query), world)
            #expect(messages.allSatisfy { $0.encoded().count <= StatusLimits.carriedBytes }, "seed \(seed)")
            #expect(info.allSatisfy { $0.accessToken.count == 0 || $0.allowedKeyList.isEmpty })
        }
    }

    @Test("A registration is read once, however often a request names it, and all reports arrive")
    func repeatedNames() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let client = SampleClient(samplePair(2), at: Self.server.point)
            try await rig.keep(Self.fat(client, "phone"), of: client.person)
            var entry = PushNotification()
            entry.publicKey = client.person
            entry.installationID = Secret("phone".utf8)
            entry.type = .message
            // As long as a name may be, or longer: nobody has registered it.
            var stranger = entry
            stranger.publicKey = Secret([UInt8](repeating: 7, count: 140 << 10))
            let entries = [PushNotification](repeating: entry, count: StatusLimits.notifications - 1)
            let request = PushNotificationRequest(
                requests: entries + [stranger], messageID: Secret([UInt8](repeating: 1, count: 1_024)))
            let wrapped = MetadataMessage.wrap(request.encoded(), .request, by: Self.asker)
            rig.store.forget()
            let reply = try #require(await rig.receive(wrapped))
            let names = rig.store.lookups.flatMap(\.self).count { $0.hasSuffix("/reg") }
            #expect(names == 2)
            var reports = 0
            for message in reply.messages(by: Self.server) {
                #expect(message.count <= StatusLimits.carriedData)
                let metadata = try MetadataMessage(reading: message)
                reports += try PushNotificationResponse(reading: metadata.payload).reports.count
            }
            #expect(reports == StatusLimits.notifications - 1)
        }
    }

    @Test(
        "A request of more than a thousand, or without an id, gets silence before anything is looked up",
        arguments: [(1_001, 32), (16_000, 32), (1, 0), (1, 1_025)])
    func refusedRequests(count: Int, idBytes: Int) async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let entry = changing(PushNotification()) { $0.type = .message }
            let request = PushNotificationRequest(
                requests: [PushNotification](repeating: entry, count: count),
                messageID: Secret([UInt8](repeating: 1, count: idBytes)))
            rig.store.forget()
            let reply = await rig.receive(MetadataMessage.wrap(request.encoded(), .request, by: Self.asker))
            #expect(reply == nil && rig.store.lookups.isEmpty)
        }
    }

    @Test("Requests of empty entries use up nobody's share")
    func emptyEntries() async throws {
        try await StatusRig(identity: Self.server).running { rig in
            let client = SampleClient(samplePair(2), at: Self.server.point)
            try await rig.keep(client.registration(1), of: client.person)
            for number in 0..<70 {
                let request = PushNotificationRequest(
                    requests: [PushNotification](repeating: PushNotification(), count: 1_000),
                    messageID: Secret([1, UInt8(number)]))
                let wrapped = MetadataMessage.wrap(request.encoded(), .request, by: Self.asker)
                let reply = await rig.receive(wrapped)
                #expect(reply != nil)
            }
        }
    }

    @Test("As many as may read at one time do, the others in turn, and what fails gives its turn back")
    func turns() async throws {
        let (turns, atOnce) = (Turns(2), Noted((now: 0, most: 0)))
        await withTaskGroup(of: Void.self) { tasks in
            for number in 0..<20 {
                tasks.addTask {
                    do throws(StatusError) {
                        try await turns.taking { () throws(StatusError) in
                            atOnce.change { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
                            await Task.yield()
                            atOnce.change { $0.now -= 1 }
                            if number.isMultiple(of: 2) { throw StatusError(.overloaded) }
                        }
                    } catch {
                        #expect(error == StatusError(.overloaded))
                    }
                }
            }
        }
        #expect(atOnce.value.now == 0 && (1...2).contains(atOnce.value.most))
    }
}
