import PushModel

/// Which alerts hold, and which notices follow: a state machine without I/O.
///
/// One subject is told when its trouble begins or grows worse, at most once an hour (or a day) while it
/// lasts, and when it ends. A trouble that comes and goes is told at most once in ten minutes; then its end
/// is told only if its beginning was.
struct AlertBook {
    private struct Entry {
        var alert: Alert
        var isRaised: Bool
        /// When the operator last heard that it holds.
        var toldAt: UnixTime
        /// Whether the operator thinks that it holds.
        var isKnown: Bool
        /// The worst grade that the operator has heard of.
        var told: Int
    }

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
            entries[subject] = Entry(
                alert: alert, isRaised: true, toldAt: now, isKnown: true, told: alert.grade)
            return AlertNotice(.raised, subject, alert.sentence, at: now)
        }
        let span = now.since(entry.toldAt)
        let isWorse = alert.grade > entry.told
        let isDue = isWorse || span >= (entry.isKnown ? alert.reminder : Self.quiet)
        let phase: AlertNotice.Phase = entry.isKnown && !isWorse ? .reminded : .raised
        entry.alert = alert
        entry.isRaised = true
        if isDue {
            entry.toldAt = now
            entry.isKnown = true
            entry.told = alert.grade
        }
        entries[subject] = entry
        return isDue ? AlertNotice(phase, subject, alert.sentence, at: now) : nil
    }

    mutating func clear(_ subject: Alert.Subject, at now: UnixTime) -> AlertNotice? {
        guard var entry = entries[subject], entry.isRaised else { return nil }
        let wasKnown = entry.isKnown
        entry.isRaised = false
        entry.isKnown = false
        entry.told = 0
        entries[subject] = entry
        return wasKnown
            ? AlertNotice(.cleared, subject, "This is over: \(entry.alert.sentence)", at: now) : nil
    }

    /// Troubles that still hold and whose telling is due: reminders, and beginnings that were held back.
    mutating func due(at now: UnixTime) -> [AlertNotice] {
        entries.values.filter(\.isRaised).compactMap { raise($0.alert, at: now) }
    }
}

/// How many notices an hour leave by webhook or mail: so many troubles at once are one trouble, and anyone
/// who is told of it looks at the dashboard.
struct AlertBudget {
    enum Word: Sendable, Hashable {
        case tell
        /// The last place of the hour: say that there is more.
        case tellMuted
        case drop
    }

    static let notices = 30
    static let hour = Duration.seconds(3600)

    private var began = UnixTime.distantPast
    private var count = 0

    /// What becomes of one more notice.
    mutating func take(at now: UnixTime) -> Word {
        // A clock that was set back begins a new hour too.
        if now.since(began) >= Self.hour || now < began {
            began = now
            count = 0
        }
        count = min(count + 1, Self.notices + 1)
        return count < Self.notices ? .tell : count == Self.notices ? .tellMuted : .drop
    }
}
