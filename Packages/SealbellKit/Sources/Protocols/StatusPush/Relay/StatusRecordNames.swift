import Primitives
package import PushModel

/// Names of this protocol's records at one instance.
package struct StatusRecordNames: Sendable {
    /// Registrations, and tombstones of those that ended.
    package let registrations: Space
    private let people: Space
    private let topics: Space
    private let topicIDs: Space
    private let seen: Space
    private let addresses: Space

    package init(_ instance: ConfiguredName) {
        registrations = Space(instance, "reg")
        people = Space(instance, "person")
        topics = Space(instance, "topic")
        topicIDs = Space(instance, "topic-id")
        seen = Space(instance, "seen")
        addresses = .addresses(of: instance)
    }

    /// A hash of person and installation, so that a tombstone reveals neither.
    package func registration(of person: Secret, installation: Secret) -> RecordKey {
        let name = person.reveal { person in
            installation.reveal { Blake2b.digest32([person, $0]) }
        }
        return RecordKey(registrations, name)
    }

    /// The owner of registrations.
    package func owner(_ person: Secret) -> RecordKey { RecordKey(people, person) }

    /// A followed topic of a person.
    package func topic(_ topic: WakuTopic) -> RecordKey { RecordKey(topics, topic.name) }

    /// All followed topics.
    package var followed: RecordIndex { .space(topics) }

    /// All followed topics that share four bytes.
    package func topics(sharing id: UInt32) -> RecordKey {
        RecordKey(topicIDs, withUnsafeBytes(of: id.bigEndian) { Secret(copying: $0) })
    }

    /// A request that was taken.
    package func request(_ messageID: Secret) -> RecordKey { RecordKey(seen, messageID) }

    /// One address of one app: topic ‖ 0 ‖ token, with no topic for FCM.
    package func address(of token: Secret, bundle: String?) -> RecordKey {
        let token = bundle == nil ? token : APNsMessage.canonical(token)
        let name = token.reveal { Secret(Array((bundle ?? "").utf8) + [0] + $0) }
        return RecordKey(addresses, name)
    }
}
