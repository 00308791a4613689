public import PushModel

/// What a user's record says of a notification, some 30 bytes. Its texts stand in a record of their own, so
/// that a user's thousandth notification costs what the first did.
public struct NotificationSummary: Sendable, Hashable {
    /// `nid`; a later one has a higher one.
    public let id: Int64
    /// When it was made, whole seconds.
    public let at: UnixTime
    /// Of its texts.
    let bytes: Int
    /// Who is told when it goes: Talk, or the others.
    let isOfTalk: Bool
    /// Of the object that it is about, 32 bits: a hint, for different objects may have the same.
    let mark: UInt64

    init(_ stored: StoredNotification) {
        id = stored.id
        at = UnixTime(seconds: stored.at.seconds)
        bytes = stored.draft.bytes
        isOfTalk = stored.pushed.isOfTalk
        mark = Self.mark(stored.draft.objectType, stored.draft.objectID)
    }

    /// FNV-1a. Whoever makes texts that have the same gains nothing: the texts are compared in the end.
    static func mark(_ objectType: String, _ objectID: String) -> UInt64 {
        (Array(objectType.utf8) + [0] + Array(objectID.utf8)).reduce(2_166_136_261) {
            ($0 ^ UInt64($1)) &* 16_777_619 & 0xFFFF_FFFF
        }
    }

    /// Its record's time is over.
    func isOver(_ now: UnixTime) -> Bool { now >= at + NextcloudLimits.notificationLife }

    // MARK: kept

    /// `nid:seconds:bytes:talk:mark`.
    var kept: String { "\(id):\(at.seconds):\(bytes):\(isOfTalk ? 1 : 0):\(mark)" }

    init?(kept: Substring) {
        let parts = kept.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 5, let id = Int64(parts[0]), let seconds = Int64(parts[1]),
            // So that no sum of a thousand runs over.
            let bytes = Int(parts[2]), (0...NextcloudLimits.keptNotificationBytes).contains(bytes),
            let mark = UInt64(parts[4]), parts[3] == "0" || parts[3] == "1"
        else { return nil }
        self.id = id
        at = UnixTime(seconds: seconds)
        self.bytes = bytes
        isOfTalk = parts[3] == "1"
        self.mark = mark
    }
}

extension NextcloudRegistrations {
    /// The notifications whose texts ``receive(_:from:texts:conditions:at:now:)`` needs for a call.
    public func needed(for call: OCSCall) -> [Int64] {
        switch call {
        case .notifications:
            notifications.suffix(NextcloudLimits.listedNotifications).reversed().map(\.id)
        case .notification(let id): notifications.contains { $0.id == id } ? [id] : []
        default: []
        }
    }

    /// Notifications that may be about these objects. Whether they are, their texts say.
    public func candidates(objectType: String, objectIDs: [String]) -> [Int64] {
        let marks = Set(objectIDs.map { NotificationSummary.mark(objectType, $0) })
        return notifications.filter { marks.contains($0.mark) }.map(\.id)
    }
}
