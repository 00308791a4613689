import PushModel
import ZulipPush

/// What an owed notification is about.
struct NotificationSubject: Sendable {
    let id: String
    let user: String
    let realm: String
    let profile: ZulipProfile
    /// The time of the request: the answer does not apply to a device that has registered since.
    let askedAt: UnixTime

    private static let format: UInt8 = 2

    var body: Secret {
        let size =
            2 * StoredSize.byte + StoredSize.of(id) + StoredSize.of(user) + StoredSize.of(realm)
            + StoredSize.word
        return Secret(stored: size) {
            $0.put(Self.format)
            $0.put(id)
            $0.put(user)
            $0.put(realm)
            $0.put(profile.stored)
            $0.put(Int64?.some(askedAt.milliseconds))
        }
    }

    init(id: String, user: String, realm: String, profile: ZulipProfile, askedAt: UnixTime) {
        self.id = id
        self.user = user
        self.realm = realm
        self.profile = profile
        self.askedAt = askedAt
    }

    init?(_ body: Secret) {
        let read: NotificationSubject? = body.reveal { bytes in
            var reader = StoredReader(bytes)
            guard reader.byte() == Self.format, let id = reader.text(), let user = reader.text(),
                let realm = reader.text(), let profile = reader.byte().flatMap({ ZulipProfile(stored: $0) }),
                let askedAt = reader.optionalWord() ?? nil, reader.isAtEnd
            else { return nil }
            return NotificationSubject(
                id: id, user: user, realm: realm, profile: profile,
                askedAt: UnixTime(milliseconds: askedAt))
        }
        guard let read else { return nil }
        self = read
    }
}

extension ZulipProfile {
    var stored: UInt8 {
        switch self {
        case .v12: 1
        case .v11: 2
        case .zap: 3
        }
    }

    init?(stored: UInt8) {
        guard let found = ZulipProfile.allCases.first(where: { $0.stored == stored }) else { return nil }
        self = found
    }
}

extension NotifiedDevice {
    init?(_ reader: inout StoredReader) {
        guard let name = reader.text(), let relayName = reader.text(),
            let profile = reader.byte().flatMap({ ZulipProfile(stored: $0) }),
            let state = reader.byte().flatMap({ State(rawValue: $0) }),
            let at = reader.optionalWord() ?? nil, let reason = reader.text(), let reference = reader.text()
        else { return nil }
        self.init(
            name: name, relayName: relayName, profile: profile, state: state,
            at: UnixTime(milliseconds: at), reason: reason, reference: reference)
    }
}

extension ZulipRegistrations {
    /// The devices that ``targets`` names, as a notification begins for them.
    ///
    /// - Parameter subject: one of them alone; `nil`: all.
    func notified(_ now: UnixTime, only subject: ZulipQueueItem.Subject?) -> [NotifiedDevice] {
        var found: [NotifiedDevice] = []
        for row in devices.values.sorted(by: { $0.id < $1.id }) {
            guard let token = row.tokenID, row.target != nil, subject ?? .device(row.id) == .device(row.id)
            else { continue }
            found.append(
                NotifiedDevice(
                    name: "device \(row.id)", relayName: token.text, profile: .v12, state: .waiting, at: now,
                    reason: ""))
        }
        for row in accounts.values.sorted(by: { $0.id < $1.id }) {
            guard let id = row.deviceID, subject ?? .account(row.id) == .account(row.id) else { continue }
            found.append(
                NotifiedDevice(
                    name: "account \(row.id)", relayName: String(id), profile: row.profile, state: .waiting,
                    at: now, reason: ""))
        }
        return found
    }
}

extension ZulipNotification.Body {
    var pushClass: PushClass {
        switch self {
        case .message, .test: .normal
        case .remove: .background
        }
    }
}
