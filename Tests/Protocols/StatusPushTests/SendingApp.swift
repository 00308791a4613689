import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing

/// A sender in an app with its node, and the network.
struct SendingApp {
    var world = StatusWorld()
    let key: Secp256k1KeyPair
    var origin: StatusOrigin
    /// The `follow` calls that were made in this run.
    var follows: [Call] = []
    var settled: [Settled] = []
    /// What the node was asked to publish, taken or not, and contact codes that were looked for.
    var (published, histories) = (0, 0)
    /// Whether the node publishes nothing.
    var publishesNothing = false
    /// Whether the node knows no store.
    var hasNoStore = false

    init() throws {
        key = world.keyPair()
        origin = try StatusOrigin(key: key.secret, using: &world.random)
        origin.isSending = true
    }

    /// A phone that is registered at the servers which are not down.
    mutating func phone() throws -> StatusInstallation {
        var device = try world.phone()
        try world.settle(&device)
        return device
    }

    /// Another run of the app.
    mutating func restart() throws {
        origin = try StatusOrigin(key: key.secret, keeping: origin.kept, using: &world.random)
        follows = []
    }

    @discardableResult
    mutating func notify(_ person: PublicPoint, _ byte: UInt8 = 7) throws -> UInt64 {
        let note = StatusNotification(
            messageID: Secret([UInt8](repeating: byte, count: 32)), .direct, content: Secret("hello".utf8))
        return try #require(try origin.notify(note, to: [person], at: world.now).first)
    }

    mutating func answer(_ answer: CallAnswer, _ call: Call) {
        origin.answered(answer, to: call, at: world.now, using: &world.random)
    }

    mutating func due() -> [Call] {
        let calls = origin.due(at: world.now, using: &world.random)
        follows += calls.filter(\.isStanding)
        return calls
    }

    /// Does a call, and brings what comes of it.
    mutating func make(_ call: Call) throws {
        switch call.way {
        case .follow: answer(.taken, call)
        case .history(let topic):
            histories += 1
            guard !hasNoStore else { return answer(.none, call) }
            for message in world.history where message.contentTopic == topic { answer(.waku(message), call) }
            answer(.taken, call)
        case .publish(let message):
            published += 1
            guard !publishesNothing else { return answer(.none, call) }
            let heard = try world.publish([message])
            answer(.taken, call)
            for message in heard where origin.topics.contains(message.contentTopic) {
                let follow = try #require(follows.last)
                guard case .follow(let topics) = follow.way else { return }
                #expect(topics.contains(message.contentTopic), "an answer that nobody would hear")
                answer(.waku(message), follow)
            }
        default: Issue.record("no call of this protocol")
        }
    }

    /// Does what is due, until nothing is due at this moment.
    mutating func work() throws {
        for _ in 0..<60 {
            let calls = due()
            if calls.isEmpty {
                settled += origin.takeSettled()
                return
            }
            for call in calls { try make(call) }
        }
        Issue.record("the sender does not come to rest")
    }

    /// The same over some time: everything happens when it is due.
    mutating func work(for span: Duration) throws {
        let end = world.now + span
        try work()
        while let next = origin.nextDue, next <= end {
            world.now = max(world.now, next)
            try work()
        }
        world.now = end
    }
}

extension Call {
    var message: WakuMessage? { if case .publish(let message) = way { message } else { nil } }

    var topic: String? { if case .history(let topic) = way { topic } else { nil } }

    var topics: [String]? { if case .follow(let topics) = way { topics } else { nil } }
}
