import PushModel

/// Which alerts hold, and which notices follow: a state machine without I/O.
///
/// One subject is told when its trouble begins or grows worse, at most once an hour (or a day) while it
/// lasts, and when it ends. A trouble that comes and goes is told at most once in ten minutes; then its end
/// is told only if its beginning was.
///
/// An alert that an earlier process has told holds until it is known to be over. It is told once more when
/// this process meets it.
struct AlertState {
    private struct Entry {
        var standing: StandingAlert
        var isRaised = true
        /// Whether the operator thinks that it holds.
        var isKnown = true
        /// Its subject was replaced since: if the trouble is met again, that is new.
        var isOfBefore = false
    }

    static let quiet = Duration.seconds(600)
    /// Lanes and listeners of a configuration stay far below; more subjects are logged and not remembered.
    static let subjects = 1000

    private var entries: [Alert.Subject: Entry] = [:]

    /// What holds now.
    var raised: [StandingAlert] { entries.values.filter(\.isRaised).map(\.standing) }

    /// What the operator thinks holds of that subject.
    func known(_ subject: Alert.Subject) -> StandingAlert? {
        entries[subject].flatMap { $0.isRaised && $0.isKnown ? $0.standing : nil }
    }

    mutating func raise(_ alert: Alert, at now: UnixTime) -> AlertNotice? {
        let subject = alert.subject
        guard var entry = entries[subject] else {
            guard entries.count < Self.subjects else { return nil }
            let standing = StandingAlert(alert, toldAt: now)
            entries[subject] = Entry(standing: standing)
            return Self.notice(.raised, standing, at: now)
        }
        let isWorse = alert.grade > (entry.isKnown ? entry.standing.grade : 0)
        let isNews = entry.isRaised && entry.isOfBefore
        let isMetAgain = entry.isRaised && entry.standing.isInherited
        let span = now.since(entry.standing.toldAt)
        let patience = entry.isKnown ? subject.kind.reminder : Self.quiet
        let isDue = isNews || isMetAgain || isWorse || span >= patience
        let phase: AlertNotice.Phase = entry.isKnown && !isWorse && !isNews ? .reminded : .raised
        (entry.standing.sentence, entry.standing.cause) = (alert.sentence, alert.cause)
        entry.isRaised = true
        (entry.isOfBefore, entry.standing.isInherited) = (false, false)
        if isDue {
            entry.standing.toldAt = now
            entry.standing.grade = alert.grade
            entry.isKnown = true
        }
        entries[subject] = entry
        return isDue ? Self.notice(phase, entry.standing, at: now) : nil
    }

    mutating func clear(_ subject: Alert.Subject, at now: UnixTime) -> AlertNotice? {
        guard var entry = entries[subject], entry.isRaised else { return nil }
        let wasKnown = entry.isKnown
        let over = Self.notice(.cleared, entry.standing, at: now)
        (entry.isRaised, entry.isKnown, entry.isOfBefore) = (false, false, false)
        (entry.standing.grade, entry.standing.isInherited) = (0, false)
        entries[subject] = entry
        return wasKnown ? over : nil
    }

    /// Troubles that still hold and whose telling is due: reminders, and beginnings that were held back.
    mutating func due(at now: UnixTime) -> [AlertNotice] {
        var notices: [AlertNotice] = []
        for (subject, var entry) in entries where entry.isRaised {
            let patience = entry.isKnown ? subject.kind.reminder : Self.quiet
            guard now.since(entry.standing.toldAt) >= patience else { continue }
            let phase: AlertNotice.Phase = entry.isKnown ? .reminded : .raised
            (entry.standing.toldAt, entry.isKnown) = (now, true)
            entries[subject] = entry
            notices.append(Self.notice(phase, entry.standing, at: now))
        }
        return notices
    }

    /// Takes over what an earlier process has told. Troubles that this process has met stay as they are.
    mutating func inherit(_ standing: [StandingAlert]) {
        for var standing in standing {
            if let entry = entries[standing.subject], entry.isRaised { continue }
            guard entries[standing.subject] != nil || entries.count < Self.subjects else { continue }
            standing.isInherited = true
            entries[standing.subject] = Entry(standing: standing)
        }
    }

    /// Another configuration is in force: troubles that were over may begin again and be told, and a lane's
    /// trouble is told again if the new lane meets it.
    mutating func reloaded() {
        entries = entries.filter(\.value.isRaised)
        for (subject, entry) in entries where subject.kind == .laneHalted || subject.kind == .laneUnanswered {
            var entry = entry
            entry.isOfBefore = true
            entries[subject] = entry
        }
    }

    private static func notice(
        _ phase: AlertNotice.Phase, _ standing: StandingAlert, at now: UnixTime
    ) -> AlertNotice {
        let sentence = phase == .cleared ? "This is over: \(standing.sentence)" : standing.sentence
        return AlertNotice(phase, standing.subject, sentence, cause: standing.cause, at: now)
    }
}

/// How many notices an hour leave by webhook or mail: this many troubles at once are one trouble, and an
/// operator who is told of it looks at the dashboard.
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
