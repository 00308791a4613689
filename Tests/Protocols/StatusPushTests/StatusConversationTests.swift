import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

@Suite("What a Status relay says to one message", .timeLimit(.minutes(30)))
struct StatusConversationTests {
    private static let server = samplePair(1)
    private static let sender = samplePair(3)
    private static let slack = Duration.seconds(40)
    private static let followed: UInt32 = 0x0102_0304
    private static let topicKey = Secret([UInt8](repeating: 7, count: StatusLimits.keyBytes))
    private static let otherKey = Secret([UInt8](repeating: 8, count: StatusLimits.keyBytes))
    private static var own: UInt32 { WakuTopic.partitioned(of: server.point).id }

    /// What a step asks for, without its value.
    private enum Kind: Equatable {
        case findKeys, judge, handOver, publish
        case end(isTaken: Bool)

        init(_ next: StatusConversation.Next) {
            switch next {
            case .findKeys: self = .findKeys
            case .judge: self = .judge
            case .handOver: self = .handOver
            case .publish: self = .publish
            case .end(let isTaken): self = .end(isTaken: isTaken)
            }
        }
    }

    private struct Seen: Equatable {
        let kind: Kind
        let outcome: StatusOutcome?

        init(_ kind: Kind, _ outcome: StatusOutcome? = nil) { (self.kind, self.outcome) = (kind, outcome) }
        init(_ step: StatusConversation.Step) { self.init(Kind(step.next), step.outcome) }
    }

    private static func conversation(
        _ rig: StatusRig, heardSince: UnixTime = .distantPast
    ) -> StatusConversation {
        StatusConversation(with: rig.relay, heardSince: heardSince, clockSlack: slack)
    }

    private static let query = MetadataMessage.wrap(
        PushNotificationQuery(publicKeys: [StatusHash.person(samplePair(2).point)]).encoded(), .query,
        by: sender)

    /// A message as it travels, sealed to the server, or to a topic by its key.
    private static func message(
        _ wrapped: Secret, key: Secret? = nil, ago: Duration = .zero, _ world: World
    ) -> WakuMessage {
        let payload =
            key.map { WakuPayload.sealSymmetric(wrapped, key: $0, signer: sender, world) }
            ?? WakuPayload.sealAsymmetric(wrapped, to: server.point, signer: sender, world)
        return WakuMessage(
            payload: payload, contentTopic: WakuTopic.contentTopic(of: key == nil ? own : followed),
            timestamp: (StatusRig.now - ago).milliseconds * 1_000_000)
    }

    // MARK: Opening

    @Test("What is another process's is left to it, and nothing of it is looked at")
    func elsewhere() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let step = Self.conversation(rig).begin(
            Self.message(Self.query, rig.world), on: Self.own, isFromStore: false, isOurs: false)
        #expect(Seen(step) == Seen(.end(isTaken: false), .elsewhere))
    }

    @Test("The server's own key is tried on its own topics alone, and a topic's keys after it")
    func opening() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let conversation = Self.conversation(rig)
        func begin(_ message: WakuMessage, on topic: UInt32) -> StatusConversation.Step {
            conversation.begin(message, on: topic, isFromStore: false, isOurs: true)
        }
        let personal = WakuTopic.personal(of: Self.server.point).id
        for topic in [Self.own, personal] {
            #expect(Seen(begin(Self.message(Self.query, rig.world), on: topic)) == Seen(.judge))
        }
        // To our key, on a topic that is none of ours.
        #expect(Seen(begin(Self.message(Self.query, rig.world), on: Self.followed)) == Seen(.findKeys))
        for topic in [Self.followed, Self.own] {
            let step = begin(Self.message(Self.query, key: Self.topicKey, rig.world), on: topic)
            guard case .findKeys(let unopened) = step.next else {
                Issue.record("a message that opens without its topic's key")
                continue
            }
            let closed = Seen(.end(isTaken: true), .refused(.doesNotOpen))
            #expect(Seen(unopened.open(with: [])) == closed)
            #expect(Seen(unopened.open(with: [Self.otherKey])) == closed)
            #expect(Seen(unopened.open(with: [Self.otherKey, Self.topicKey])) == Seen(.judge))
            #expect(Seen(unopened.storeFailed()) == Seen(.end(isTaken: false), .storeSilent))
        }
    }

    @Test("Of what opens with one key and has a wrong form, that is what is counted")
    func malformed() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let payload = WakuPayload.sealAsymmetric(
            Secret([0xFF]), to: Self.server.point, ephemeral: .generate(rig.world),
            iv: rig.world.randomBytes(16))
        let message = WakuMessage(payload: payload, contentTopic: "", timestamp: 0)
        let step = Self.conversation(rig).begin(message, on: Self.own, isFromStore: false, isOurs: true)
        guard case .findKeys(let unopened) = step.next else {
            Issue.record("a body of one byte was read")
            return
        }
        let seen = Seen(unopened.open(with: [Self.otherKey]))
        #expect(seen == Seen(.end(isTaken: true), .refused(.malformedPayload)))
    }

    @Test("A long message is tried with fewer keys")
    func tries() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let people = (0..<4_000).map { number in
            Secret((0..<StatusLimits.hashBytes).map { UInt8(truncatingIfNeeded: $0 &+ number) })
        }
        let query = MetadataMessage.wrap(
            PushNotificationQuery(publicKeys: people).encoded(), .query, by: Self.sender)
        let message = Self.message(query, key: Self.topicKey, rig.world)
        let tries = StatusLimits.triedBytes / message.payload.count
        let step = Self.conversation(rig).begin(message, on: Self.followed, isFromStore: false, isOurs: true)
        guard case .findKeys(let unopened) = step.next else {
            Issue.record("a message that opens without its topic's key")
            return
        }
        // The right key stands behind so many others.
        for (others, kind) in [(tries - 1, Kind.judge), (tries, .end(isTaken: true))] {
            let keys = [Secret](repeating: Self.otherKey, count: others) + [Self.topicKey]
            #expect(Kind(unopened.open(with: keys).next) == kind)
        }
    }

    @Test("What is for no server, and what is no message, goes no further")
    func foreign() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let answer = MetadataMessage.wrap(Secret([8, 1]), .queryResponse, by: Self.sender)
        let empty = MetadataMessage.wrap(Secret([]), .registration, by: Self.sender)
        let rows: [(wrapped: Secret, outcome: StatusOutcome)] = [
            (answer, .foreign), (empty, .refused(.malformedMessage)),
            (Secret([0xFF, 0xFF]), .refused(.malformedMessage))
        ]
        for row in rows {
            let step = Self.conversation(rig).begin(
                Self.message(row.wrapped, rig.world), on: Self.own, isFromStore: false, isOurs: true)
            #expect(Seen(step) == Seen(.end(isTaken: true), row.outcome))
        }
    }

    // MARK: From the store

    @Test("A query from the store for whose answer nobody waits is passed over; one that comes live is not")
    func stale() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let last = StatusLimits.lateAnswer + Self.slack
        let late = Seen(.end(isTaken: true), .stale)
        let rows: [(ago: Duration, isFromStore: Bool, seen: Seen)] = [
            (last, true, Seen(.judge)), (last + .milliseconds(1), true, late),
            (last + .milliseconds(1), false, Seen(.judge)), (.seconds(86_400), false, Seen(.judge))
        ]
        for row in rows {
            let step = Self.conversation(rig).begin(
                Self.message(Self.query, ago: row.ago, rig.world), on: Self.own,
                isFromStore: row.isFromStore, isOurs: true)
            #expect(Seen(step) == row.seen, "\(row)")
        }
    }

    @Test("What the store has, or was published before this process heard the network, may have been taken")
    func stored() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let request = MetadataMessage.wrap(
            PushNotificationRequest(requests: [], messageID: Secret([1])).encoded(), .request,
            by: Self.sender)
        let rows: [(ago: Duration, isFromStore: Bool, isStored: Bool)] = [
            (.zero, false, false), (.milliseconds(1), false, true), (.zero, true, true),
            (.seconds(86_400), true, true)
        ]
        for row in rows {
            let step = Self.conversation(rig, heardSince: StatusRig.now).begin(
                Self.message(request, ago: row.ago, rig.world), on: Self.own, isFromStore: row.isFromStore,
                isOurs: true)
            guard case .judge(let question) = step.next else {
                Issue.record("a request that is not judged: \(row)")
                continue
            }
            #expect(question.inbound.isStored == row.isStored && !question.isRegistration, "\(row)")
        }
    }

    // MARK: Answers

    /// The question that a message is.
    private static func question(
        _ wrapped: Secret, _ rig: StatusRig
    ) throws -> StatusConversation.Question {
        let step = conversation(rig).begin(
            message(wrapped, rig.world), on: own, isFromStore: false, isOurs: true)
        guard case .judge(let question) = step.next else { throw StatusError(.malformedMessage) }
        return question
    }

    @Test("A refusal is answered or not as its kind says; only what the store could not take comes again")
    func refusals() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let client = SampleClient(samplePair(2), at: Self.server.point)
        let registration = try Self.question(client.wrapped(client.registration(1), rig.world), rig)
        let query = try Self.question(Self.query, rig)
        #expect(registration.isRegistration && !query.isRegistration)
        let rows: [(question: StatusConversation.Question, code: StatusError.Code, kind: Kind)] = [
            (registration, .outdatedVersion, .publish), (registration, .overloaded, .publish),
            (registration, .doesNotOpen, .end(isTaken: true)),
            (registration, .rateLimited, .end(isTaken: true)), (query, .overloaded, .end(isTaken: false)),
            (query, .rateLimited, .end(isTaken: true))
        ]
        for row in rows {
            let step = row.question.refused(StatusError(row.code))
            #expect(Seen(step) == Seen(row.kind, .refused(row.code)), "\(row.code)")
        }
        #expect(Seen(query.taken(nil)) == Seen(.end(isTaken: true), .taken))
    }

    @Test("An answer leaves message by message, each signed and sealed when the one before has left")
    func order() async throws {
        let rig = try await StatusRig(identity: Self.server)
        let question = try Self.question(Self.query, rig)
        // Each fills more than half of a message.
        let infos = (1...3).map { number in
            var info = PushNotificationQueryInfo()
            info.version = UInt64(number)
            info.grant = Secret([UInt8](repeating: 1, count: StatusLimits.responseBytes / 2))
            return info
        }
        let reply = StatusReply(
            to: Self.sender.point,
            .query(PushNotificationQueryResponse(info: infos, messageID: Secret([5]), success: true)))
        var step = question.taken(reply)
        #expect(step.outcome == .taken)
        for number in 1...3 {
            guard case .publish(let publication) = step.next else {
                Issue.record("\(number - 1) messages of an answer of three")
                return
            }
            let message = try #require(publication.sealed())
            #expect(message.contentTopic == WakuTopic.partitioned(of: Self.sender.point).contentTopic)
            #expect(message.timestamp == StatusRig.now.milliseconds * 1_000_000)
            let opened = try WakuPayload.openAsymmetric(message.payload, with: Self.sender)
            #expect(opened.signer == Self.server.point)
            let inside = try MetadataMessage(reading: opened.data)
            let part = try PushNotificationQueryResponse(reading: inside.payload)
            #expect(part.info.map(\.version) == [UInt64(number)])
            // The node does not take it: the others stay here.
            #expect(Seen(publication.failed()) == Seen(.end(isTaken: true), .unanswered))
            step = publication.published()
            #expect(step.outcome == nil)
        }
        #expect(Seen(step) == Seen(.end(isTaken: true)))
    }

    // MARK: A gateway

    @Test("What a gateway did not take is reported, dead tokens end, and what was not sent may come again")
    func gateway() async throws {
        let rig = try await StatusRig(identity: Self.server, policy: StatusPolicy(delivery: .gateway))
        let client = SampleClient(samplePair(2), at: Self.server.point)
        let phones = ["one", "two"]
        let entries = phones.map { phone in
            var entry = PushNotification()
            entry.accessToken = client.registration(1, phone).accessToken
            entry.chatID = Secret([UInt8](repeating: 8, count: 64))
            entry.publicKey = client.person
            entry.installationID = Secret(phone.utf8)
            entry.type = .message
            return entry
        }
        let request = PushNotificationRequest(
            requests: entries, messageID: Secret([UInt8](repeating: 7, count: 32)))
        let wrapped = MetadataMessage.wrap(request.encoded(), .request, by: Self.sender)
        try await rig.running { rig in
            for phone in phones { try await rig.keep(client.registration(1, phone), of: client.person) }
            let question = try Self.question(wrapped, rig)
            let step = question.taken(await rig.receive(wrapped))
            guard case .handOver(let handover) = step.next else {
                Issue.record("pushes that no gateway was given")
                return
            }
            #expect(step.outcome == .taken && handover.pushes.count == 2)
            let rows: [(failed: Set<Int>, dead: Set<Int>, isReopened: Bool)] = [
                ([], [], false), ([0], [], false), ([0, 1], [], true), ([0, 1], [1], true),
                ([0, 1], [0, 1], false)
            ]
            for row in rows {
                let changes = handover.changes(failed: row.failed, dead: row.dead)
                #expect(changes.ends.count == row.dead.count, "\(row)")
                #expect((changes.reopening != nil) == row.isReopened, "\(row)")
                let settled = handover.settled(failed: row.failed, dead: row.dead)
                guard case .publish(let publication) = settled.next else {
                    Issue.record("no answer: \(row)")
                    continue
                }
                #expect(settled.outcome == nil)
                let message = try #require(publication.sealed())
                let opened = try WakuPayload.openAsymmetric(message.payload, with: Self.sender)
                let inside = try MetadataMessage(reading: opened.data)
                let response = try PushNotificationResponse(reading: inside.payload)
                let expected = [0, 1].map { place -> PushNotificationReport.Fault in
                    row.dead.contains(place)
                        ? .notRegistered : row.failed.contains(place) ? .internalError : .unknown
                }
                #expect(response.reports.map(\.error) == expected, "\(row)")
            }
        }
    }
}
