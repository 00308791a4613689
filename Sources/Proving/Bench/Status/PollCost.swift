import PushModel
import StatusPush
import WakuIngress

/// A node's answer to a poll with many messages, of which so many are of followed topics; and a set of
/// topics as large as a large relay's.
struct PollCost {
    /// Messages of one answer: what a node holds that was told to keep thousands.
    static let messages = 10_000
    /// Topics that are followed: those of so many people.
    static let topics = 100_000
    /// Bytes of a payload: a request of one notification, padded and sealed.
    private static let payloadBytes = 626

    private let body: Secret
    private let followed: FollowedTopics

    /// - Parameter share: one message of so many is of a followed topic.
    init(oneOf share: Int, world: World) {
        followed = FollowedTopics()
        followed.begin(with: (0..<UInt32(Self.topics)).map { $0 * 2 })
        var text: [UInt8] = [0x5B]
        for number in 0..<Self.messages {
            if number > 0 { text.append(0x2C) }
            // Even ids are followed, odd ones are not.
            let id = UInt32(number % Self.topics) * 2 + (number.isMultiple(of: share) ? 0 : 1)
            let message = WakuMessage(
                payload: Secret(world.randomBytes(Self.payloadBytes)),
                contentTopic: WakuTopic.contentTopic(of: id), timestamp: Int64(number))
            WakuCalls.json(message).reveal { text += $0 }
        }
        text.append(0x5D)
        body = Secret(text)
    }

    /// Reads the answer, and names each followed message by its hash, as an ingress does.
    func read() throws {
        let seen = SeenWakuMessages()
        for (message, _) in try NodeReader.messages(body, wants: { followed.contains($0) }).messages {
            _ = seen.note(message.hash(pubsubTopic: WakuMessage.pubsubTopic))
        }
    }
}
