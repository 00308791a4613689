import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// The clients and two of our relays, each over a store of its own, with delivery running.
@Suite("Status conversations with relays", .timeLimit(.minutes(30)))
struct RelayConversationTests {
    /// Two relays and what carries messages between everybody.
    private struct Network {
        var random = SeededRandom(seed: 61)
        let keys: [Secp256k1KeyPair]
        let rigs: [StatusRig]
        var isDown = [false, false]
        var now = StatusRig.now
        private var history: [WakuMessage] = []
        /// Of people whom the relays were asked about: topic and key.
        private var followed: [(topic: String, key: Secret)] = []

        init(_ rigs: [StatusRig], _ keys: [Secp256k1KeyPair]) {
            (self.rigs, self.keys) = (rigs, keys)
        }

        mutating func follow(_ person: PublicPoint) {
            let topic = WakuTopic.query(of: StatusHash.person(person))
            followed.append((topic.contentTopic, TopicKey.derive(from: topic)))
        }

        mutating func publish(_ messages: [WakuMessage]) async -> [WakuMessage] {
            history += messages
            var answers: [WakuMessage] = []
            for message in messages {
                for place in keys.indices where !isDown[place] {
                    let known = followed.filter { $0.topic == message.contentTopic }.map(\.key)
                    answers += await rigs[place].take(message, keys: known)
                }
            }
            return answers
        }

        mutating func settle(_ device: inout StatusInstallation) async -> [StatusInstallation.Event] {
            var events: [StatusInstallation.Event] = []
            for _ in 0..<20 {
                let messages = device.due(now: now, using: &random)
                if messages.isEmpty { return events }
                for answer in await publish(messages) where device.topics.contains(answer.contentTopic) {
                    if let event = device.receive(answer, now: now) { events.append(event) }
                }
            }
            return events
        }

        mutating func settle(
            _ origin: inout StatusOriginRoutine, for span: Duration = .zero
        ) async -> [StatusDispatch] {
            var settled: [StatusDispatch] = []
            let end = now + span
            for _ in 0..<60 {
                let work = origin.due(now: now, using: &random)
                settled += work.settled
                for topic in work.histories {
                    for message in history where message.contentTopic == topic {
                        origin.receive(message, now: now)
                    }
                    origin.readHistory(of: topic)
                }
                for answer in await publish(work.messages) where origin.topics.contains(answer.contentTopic) {
                    origin.receive(answer, now: now)
                }
                guard let next = origin.nextDeadline, next <= end else { break }
                now = max(now, next)
            }
            return settled
        }

        mutating func forgetHistory() { history = [] }

        func sent(_ place: Int) -> [APNsMessage] { rigs[place].services.sent.compactMap(\.message.apns) }
        var sent: [APNsMessage] { sent(0) + sent(1) }
    }

    private static func phone(_ network: inout Network) throws -> StatusInstallation {
        var device = StatusInstallation(key: Draw.keyPair(&network.random), using: &network.random)
        device.use(
            try StatusDeviceToken.apns(
                Secret(String(repeating: "a5", count: 32).utf8), topic: "im.example.chat"))
        try device.apply(StatusSettings())
        try device.use(servers: network.keys.map(\.point))
        device.switchOn()
        network.follow(device.key.point)
        return device
    }

    private static func message(_ byte: UInt8) -> StatusNotification {
        StatusNotification(
            messageID: Secret([UInt8](repeating: byte, count: 32)), .direct, content: Secret("hello".utf8))
    }

    private func withNetwork(_ body: @escaping @Sendable (inout Network) async throws -> Void) async throws {
        var random = SeededRandom(seed: 62)
        let keys = [Draw.keyPair(&random), Draw.keyPair(&random)]
        let first = try await StatusRig(identity: keys[0], seed: 1)
        let second = try await StatusRig(identity: keys[1], seed: 2)
        try await first.running { first in
            try await second.running { second in
                var network = Network([first, second], keys)
                try await body(&network)
            }
        }
    }

    @Test("A phone registers at two relays, a sender finds it, and the push is opened on the phone")
    func wholeWay() async throws {
        try await withNetwork { network in
            var bob = try Self.phone(&network)
            #expect(await network.settle(&bob) == network.keys.map { .registered($0.point) })
            var alice = StatusOriginRoutine(key: Draw.keyPair(&network.random))
            alice.isSending = true
            _ = try alice.notify(Self.message(1), to: [bob.key.point], now: network.now)
            let settled = await network.settle(&alice)
            #expect(settled.map(\.outcome) == [.taken(installations: 1, failed: 0)])
            #expect(network.sent.count == 1)
            let payload = try #require(network.sent.first).payload
            #expect(!payload.reveal { String(decoding: $0, as: UTF8.self) }.contains("hello"))
            let inbox = StatusInbox(using: &network.random)
            let action = inbox.open(try DeliveredData(delivered: payload), accounts: [bob])
            guard case .show(let message) = action else {
                Issue.record("shown")
                return
            }
            #expect(message.author == alice.key.point)
            #expect(message.content.map { $0 == Secret("hello".utf8) } == true)
        }
    }

    @Test("One relay is silent: the other pushes, once")
    func failover() async throws {
        try await withNetwork { network in
            var bob = try Self.phone(&network)
            _ = await network.settle(&bob)
            network.isDown[0] = true
            var alice = StatusOriginRoutine(key: Draw.keyPair(&network.random))
            alice.isSending = true
            for byte in 1...4 {
                _ = try alice.notify(Self.message(UInt8(byte)), to: [bob.key.point], now: network.now)
            }
            let settled = await network.settle(&alice, for: .seconds(4))
            #expect(settled.count == 4)
            #expect(settled.allSatisfy { $0.outcome == .taken(installations: 1, failed: 0) })
            #expect(network.sent(0).isEmpty && network.sent(1).count == 4)
        }
    }

    @Test("A wrong token is asked for again; a relay that was away is brought level")
    func wrongToken() async throws {
        try await withNetwork { network in
            var bob = try Self.phone(&network)
            let settings = changing(StatusSettings()) { $0.contacts = [Draw.keyPair(&network.random).point] }
            try bob.apply(settings)
            _ = await network.settle(&bob)
            var alice = StatusOriginRoutine(key: Draw.keyPair(&network.random))
            alice.isSending = true
            _ = try alice.notify(Self.message(1), to: [bob.key.point], now: network.now)
            _ = await network.settle(&alice)
            // A contact leaves: another token. One relay does not hear of it, nor does the sender.
            network.isDown[1] = true
            try bob.apply(StatusSettings())
            _ = await network.settle(&bob)
            network.forgetHistory()
            #expect(bob.servers.map(\.condition) == [.registered, .waiting])
            network.now = network.now + .seconds(30)
            network.isDown[1] = false
            #expect(await network.settle(&bob) == [.registered(network.keys[1].point)])
            _ = try alice.notify(Self.message(2), to: [bob.key.point], now: network.now)
            let settled = await network.settle(&alice, for: .seconds(60))
            #expect(settled.map(\.outcome) == [.taken(installations: 1, failed: 0)])
            #expect(network.sent.count == 2)
        }
    }

    @Test("A phone that is switched off is forgotten by both relays")
    func off() async throws {
        try await withNetwork { network in
            var bob = try Self.phone(&network)
            _ = await network.settle(&bob)
            bob.switchOff()
            #expect(await network.settle(&bob) == network.keys.map { .unregistered($0.point) })
            #expect(bob.isForgotten)
            var alice = StatusOriginRoutine(key: Draw.keyPair(&network.random))
            alice.isSending = true
            _ = try alice.notify(Self.message(1), to: [bob.key.point], now: network.now)
            let settled = await network.settle(&alice, for: .seconds(120))
            // What the contact code told is no longer so.
            #expect(settled.map(\.outcome) == [.taken(installations: 0, failed: 1)])
            #expect(network.sent.isEmpty)
        }
    }
}
