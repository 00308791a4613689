import PushModel

/// Which alerts hold, and which notices follow: a state machine without I/O.
///
/// One subject is told when its trouble begins, at most once an hour while it lasts, and when it ends. A
/// trouble that comes and goes is told at most once in ten minutes; then its end is told only if its
/// beginning was.
struct AlertBook {
    private struct Entry {
        var alert: Alert
        var isRaised: Bool
        /// When the operator last heard that it holds.
        var toldAt: UnixTime
        /// Whether the operator thinks that it holds.
        var isKnown: Bool
    }

    static let reminder = Duration.seconds(3600)
    static let quiet = Duration.seconds(600)
    /// Lanes and listeners of a configuration stay far below; more subjects are logged and not remembered.
    static let subjects = 1000

    private var entries: [Alert.Subject: Entry] = [:]

    /// Subjects that hold now.
    var raised: [Alert] { entries.values.filter(\.isRaised).map(\.alert) }

    mutating func raise(_ alert: Alert, at now: UnixTime) -> AlertNotice? {
        let subject = alert.subject
        guard var entry = entries[subject] else {
            guard entries.count < Self.subjects else { return nil }
            entries[subject] = Entry(alert: alert, isRaised: true, toldAt: now, isKnown: true)
            return AlertNotice(.raised, subject, alert.sentence, at: now)
        }
        let span = now.since(entry.toldAt)
        let isDue = entry.isKnown ? span >= Self.reminder : span >= Self.quiet
        let phase: AlertNotice.Phase = entry.isKnown ? .reminded : .raised
        entry.alert = alert
        entry.isRaised = true
        if isDue {
            entry.toldAt = now
            entry.isKnown = true
        }
        entries[subject] = entry
        return isDue ? AlertNotice(phase, subject, alert.sentence, at: now) : nil
    }

    mutating func clear(_ subject: Alert.Subject, at now: UnixTime) -> AlertNotice? {
        guard var entry = entries[subject], entry.isRaised else { return nil }
        let wasKnown = entry.isKnown
        entry.isRaised = false
        entry.isKnown = false
        entries[subject] = entry
        return wasKnown
            ? AlertNotice(.cleared, subject, "This is over: \(entry.alert.sentence)", at: now) : nil
    }

    /// Troubles that still hold and whose telling is due: reminders, and beginnings that were held back.
    mutating func due(at now: UnixTime) -> [AlertNotice] {
        entries.values.filter(\.isRaised).compactMap { raise($0.alert, at: now) }
    }
}
