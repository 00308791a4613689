package import PushModel
package import Secp256k1Keys

/// The answer to a query, within a budget of bytes: what a person has registered decides how much is told,
/// but never how long a message is.
///
/// A list that is too long for one response is sent in parts, each with everything else of its registration:
/// readers try the entries that they get, and ignore a part without one of theirs.
package struct QueryAnswer: Sendable {
    /// Each of them fits into a response.
    package private(set) var info: [PushNotificationQueryInfo] = []
    private var left: Int
    private let partBytes: Int

    package init(bytes: Int = StatusLimits.answerBytes, partBytes: Int = StatusLimits.responseBytes) {
        left = bytes
        self.partBytes = min(partBytes, bytes)
    }

    /// Nothing more is added.
    package private(set) var isFull = false

    /// Adds one registration if there is room; if its list does not fit, the beginning of the list.
    ///
    /// Token or list, never both: the list if only contacts may send, and, by the specification, also if
    /// there is a list. Deployed servers go by the flag, and deployed clients send no list without it.
    package mutating func add(_ row: StatusRow, _ policy: StatusPolicy) {
        let registration = row.registration
        var head = PushNotificationQueryInfo()
        head.publicKey = row.person
        head.installationID = registration.installationID
        head.grant = registration.grant
        head.version = registration.version
        let isByList = !policy.isStatusGo && !registration.allowedKeyList.isEmpty
        guard registration.allowFromContactsOnly || isByList else {
            head.accessToken = registration.accessToken
            return put(head)
        }
        var part = head
        var room = min(left, partBytes) - FieldRoom.element(head)
        for entry in registration.allowedKeyList where Self.mayOpen(entry) {
            let size = FieldRoom.element(entry)
            if size > room {
                put(part)
                part = head
                room = min(left, partBytes) - FieldRoom.element(head)
                // Not even one entry fits: there is no room for another part.
                guard size <= room else { return isFull = true }
            }
            part.allowedKeyList.append(entry)
            room -= size
        }
        put(part)
    }

    private mutating func put(_ part: PushNotificationQueryInfo) {
        let size = FieldRoom.element(part)
        guard !isFull, size <= min(left, partBytes) else { return isFull = true }
        left -= size
        info.append(part)
    }

    /// Whether it could hold an access token for somebody: a box around a UUID. Anything else is useless to
    /// everybody, and may be of any length.
    private static func mayOpen(_ entry: Secret) -> Bool {
        let frame = StatusLimits.nonceBytes + StatusLimits.tagBytes
        return (frame + 1...frame + StatusLimits.tokenTextBytes).contains(entry.count)
    }
}

extension StatusReply {
    /// The signed application messages: one, or as many as the network's size limit requires. Readers match
    /// them by the id of the query, which each of them carries.
    package func messages(by key: Secp256k1KeyPair) -> [Secret] {
        switch body {
        case .registration(let response):
            return [MetadataMessage.wrap(response.encoded(), .registrationResponse, by: key)]
        case .query(let whole):
            return MessageParting.parts(whole.info).map { info in
                var response = whole
                response.info = info
                return MetadataMessage.wrap(response.encoded(), .queryResponse, by: key)
            }
        case .request(let whole):
            return MessageParting.parts(whole.reports).map { reports in
                var response = whole
                response.reports = reports
                return MetadataMessage.wrap(response.encoded(), .response, by: key)
            }
        }
    }
}
