package import PushModel

/// What the relay keeps of a registration: its owner and the message.
package struct StatusRow: Sendable {
    /// Hash of the key.
    package let person: Secret
    package let registration: PushNotificationRegistration

    private static let format: UInt8 = 1

    package init(person: Secret, _ registration: PushNotificationRegistration) {
        self.person = person
        self.registration = registration
    }

    /// `nil` for a record that has ended, or was not written by us.
    package init?(_ record: Record) {
        guard record.state == .live else { return nil }
        let parts = record.body.reveal { raw -> (Secret, PushNotificationRegistration)? in
            let start = 1 + StatusLimits.hashBytes
            // A row that cannot be read was not written by us.
            guard raw.count >= start, raw[0] == Self.format,
                let registration = try? PushNotificationRegistration(
                    reading: UnsafeRawBufferPointer(rebasing: raw[start...]))
            else { return nil }
            return (Secret(copying: UnsafeRawBufferPointer(rebasing: raw[1..<start])), registration)
        }
        guard let (person, registration) = parts else { return nil }
        self.init(person: person, registration)
    }

    /// The same without lists, which may be as long as a message.
    var withoutLists: StatusRow {
        var registration = registration
        registration.allowedKeyList = []
        registration.blockedChatList = []
        registration.allowedMentionsChatList = []
        registration.mutedChatList = []
        return StatusRow(person: person, registration)
    }

    package var body: Secret {
        let message = registration.encoded()
        return Secret(count: 1 + person.count + message.count) { out in
            out[0] = Self.format
            person.reveal { UnsafeMutableRawBufferPointer(rebasing: out[1...]).copyBytes(from: $0) }
            message.reveal {
                UnsafeMutableRawBufferPointer(rebasing: out[(1 + person.count)...]).copyBytes(from: $0)
            }
        }
    }
}

/// A topic that the relay follows for a person.
package struct FollowedTopic: Sendable {
    package let id: UInt32
    package let key: Secret
    /// Hash of the key of the person for whom it is followed; `nil` if the topic's name is no such hash.
    package let person: Secret?

    /// Its record, which is found by the topic's four bytes and holds the topic's key, so that the key is
    /// made only once.
    package static func record(
        _ topic: WakuTopic, key: Secret, _ keys: StatusRecordNames, now: UnixTime
    ) -> Record {
        Record(
            key: keys.topic(topic), owner: keys.topics(sharing: topic.id), touchedAt: now,
            body: Secret(count: 4 + key.count) { out in
                out.storeBytes(of: topic.id.bigEndian, as: UInt32.self)
                key.reveal { UnsafeMutableRawBufferPointer(rebasing: out[4...]).copyBytes(from: $0) }
            })
    }

    /// `nil` for another record.
    package init?(_ record: Record) {
        guard record.state == .live, record.body.count == 4 + StatusLimits.keyBytes else { return nil }
        (id, key) = record.body.reveal { raw in
            (
                UInt32(bigEndian: raw.loadUnaligned(as: UInt32.self)),
                Secret(copying: UnsafeRawBufferPointer(rebasing: raw[4...]))
            )
        }
        person = WakuTopic.person(ofQuery: record.key.name)
    }
}

extension Record {
    var withoutBody: Record {
        var record = self
        record.body = .none
        return record
    }
}
