public import PushModel

/// A notification that the origin keeps until it is deleted: what a device fetches by its number (§3.5).
public struct StoredNotification: Sendable, Hashable {
    /// What an application says; the origin gives number and time.
    public struct Draft: Sendable, Hashable {
        /// 1 to 32 bytes: `spreed` for Talk.
        public var app: String
        /// One line, 1 to 1,024 bytes.
        public var subject: String
        /// At most 4,000 bytes.
        public var message: String
        /// At most 64 bytes each.
        public var objectType: String
        /// At most 64 bytes; of Talk: the token of the conversation.
        public var objectID: String
        /// At most 4,000 bytes.
        public var link: String
        /// Sent even to someone who does not want to be disturbed.
        public var isPriority: Bool

        /// Lengths are checked when it is notified.
        public init(
            app: String, subject: String, message: String = "", objectType: String = "",
            objectID: String = "", link: String = "", isPriority: Bool = false
        ) {
            self.app = app
            self.subject = subject
            self.message = message
            self.objectType = objectType
            self.objectID = objectID
            self.link = link
            self.isPriority = isPriority
        }

        /// - Throws: `.missingParameter`; `.bodyTooLarge` for a text beyond its length.
        func check() throws(NextcloudError) {
            guard !app.isEmpty else { throw NextcloudError(.missingParameter, parameter: "app") }
            guard !subject.isEmpty else { throw NextcloudError(.missingParameter, parameter: "subject") }
            guard app.utf8.count <= NextcloudLimits.appBytes,
                subject.utf8.count <= NextcloudLimits.subjectBytes,
                message.utf8.count <= NextcloudLimits.messageBytes,
                objectType.utf8.count <= NextcloudLimits.objectBytes,
                objectID.utf8.count <= NextcloudLimits.objectBytes,
                link.utf8.count <= NextcloudLimits.messageBytes
            else { throw NextcloudError(.bodyTooLarge) }
        }

        var bytes: Int {
            app.utf8.count + subject.utf8.count + message.utf8.count + objectType.utf8.count
                + objectID.utf8.count + link.utf8.count
        }
    }

    /// `nid`; a later one has a higher one.
    public let id: Int64
    /// When it was made, whole seconds.
    public let at: UnixTime
    /// What the application said.
    public let draft: Draft

    /// When its record is over, whether anybody has read it or not.
    public var endsAt: UnixTime { at + NextcloudLimits.notificationLife }

    /// What a push says of it.
    var pushed: NextcloudNotification {
        NextcloudNotification(
            id: id, app: draft.app, subject: draft.subject, objectType: draft.objectType,
            objectID: draft.objectID, isPriority: draft.isPriority)
    }

    /// As an element of an answer. Rich texts, icons and actions are none.
    func data(of userID: String) -> OCSValue {
        .object([
            ("notification_id", .number(id)), ("app", .text(draft.app)), ("user", .text(userID)),
            ("datetime", .text(at.isoText)), ("object_type", .text(draft.objectType)),
            ("object_id", .text(draft.objectID)), ("subject", .text(draft.subject)),
            ("message", .text(draft.message)), ("link", .text(draft.link)), ("subjectRich", .text("")),
            ("subjectRichParameters", .list([])), ("messageRich", .text("")),
            ("messageRichParameters", .list([])), ("icon", .text("")), ("shouldNotify", .bool(true)),
            ("actions", .list([]))
        ])
    }
}

extension UnixTime {
    /// `2026-11-27T11:05:09+00:00`, of the years 1970 to 9999.
    var isoText: String {
        let seconds = min(max(seconds, 0), 253_402_300_799)
        // Days since March of the year 0, so that a leap day is a year's last.
        let days = (seconds + 62_162_035_200) / 86_400
        let inDay = seconds - (days * 86_400 - 62_162_035_200)
        let era = days / 146_097
        let dayOfEra = days % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * month + 2) / 5 + 1
        let year = era * 400 + yearOfEra + (month >= 10 ? 1 : 0)
        let digits = { (value: Int64, width: Int) in
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        return digits(year, 4) + "-" + digits(month < 10 ? month + 3 : month - 9, 2) + "-" + digits(day, 2)
            + "T" + digits(inDay / 3_600, 2) + ":" + digits(inDay / 60 % 60, 2) + ":"
            + digits(inDay % 60, 2) + "+00:00"
    }
}
