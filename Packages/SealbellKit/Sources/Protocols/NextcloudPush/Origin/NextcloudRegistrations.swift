public import PushModel
import WireFormats

/// Who calls, after the server has checked the credentials.
public struct NextcloudCaller: Sendable {
    /// The user, and the app password that was used.
    public let session: NextcloudSession
    /// The server's own id of the user, at most 64 characters.
    public let userID: String
    /// What people see; `cloud/user` answers it.
    public let displayName: String
    /// `User-Agent` of the request; tells the kind of app.
    public let userAgent: String

    /// Nothing is checked here: the server has.
    public init(session: NextcloudSession, userID: String, displayName: String, userAgent: String) {
        self.session = session
        self.userID = userID
        self.displayName = displayName
        self.userAgent = userAgent
    }
}

/// What comes of one call or event: the records are to be kept or deleted and the entries to be queued in one
/// commit, and then the answer is sent.
public struct NextcloudStep: Sendable {
    /// What the caller is told, once all else is committed.
    public internal(set) var answer: OCSAnswer
    /// In the order in which each proxy is to have them.
    public internal(set) var entries: [SealedEntry] = []
    /// The user's record is another than before.
    public internal(set) var hasChanged = false
    /// Notifications to keep, each in a record of its own.
    public internal(set) var added: [StoredNotification] = []
    /// Numbers of notifications whose records are to be deleted.
    public internal(set) var removed: [Int64] = []

    init(answer: OCSAnswer, entries: [SealedEntry] = [], hasChanged: Bool = false) {
        self.answer = answer
        self.entries = entries
        self.hasChanged = hasChanged
    }

    /// What follows from a proxy's answer.
    ///
    /// - Parameter deletes: of ``NextcloudRegistrations/settle(_:to:)``.
    public init(settled deletes: [Int64]) { self.init(answer: .done, hasChanged: !deletes.isEmpty) }

    /// The entries, grouped by proxy: one call each (§4.6), or several where one would be too much for a
    /// store's row: a hundred devices that are told of many withdrawals.
    public var byProxy: [[SealedEntry]] {
        var groups: [[SealedEntry]] = []
        var places: [String: Int] = [:]
        for entry in entries {
            if let place = places[entry.proxy], groups[place].count < NextcloudLimits.entriesPerRow {
                groups[place].append(entry)
            } else {
                places[entry.proxy] = groups.count
                groups.append([entry])
            }
        }
        return groups
    }
}

/// One user's devices at an origin, and which notifications there are. A value: it is read from a record,
/// changed, and kept with what the change has to send. Texts of notifications are not in it: they are handed
/// in where they are read (docs/decisions/0125-texts-that-are-read-again.md). A call that throws or is
/// refused changes nothing.
public struct NextcloudRegistrations: Sendable {
    /// At most ``NextcloudLimits/devicesPerUser``, the one that registered last at the end.
    public internal(set) var devices: [RegisteredDevice] = []
    /// At most ``NextcloudLimits/keptNotifications``, by rising number.
    public internal(set) var notifications: [NotificationSummary] = []
    /// The number of the next notification. It never falls, so that no number has two meanings.
    public internal(set) var nextID: Int64 = 1

    /// A user without devices and notifications.
    public init() {}

    /// Takes a user's call.
    ///
    /// - Parameter texts: of ``needed(for:)``; what is not there is answered as if it had never been.
    /// - Parameter conditions: app passwords as they are now.
    /// - Throws: `.sealingFailed` when the library refuses a key.
    public mutating func receive(
        _ call: OCSCall, from caller: NextcloudCaller, texts: [StoredNotification] = [],
        conditions: PushConditions, at origin: NextcloudOrigin, now: UnixTime
    ) throws(NextcloudError) -> NextcloudStep {
        let user = caller.session.user
        switch call {
        case .capabilities:
            return NextcloudStep(
                answer: .capabilities(isLoggedIn: true, version: origin.settings.version))
        case .user: return NextcloudStep(answer: .user(caller))
        case .register(let registration):
            return apply(
                try origin.register(
                    registration, by: caller.session, userAgent: caller.userAgent, rows: devices),
                conditions)
        case .unregister: return apply(origin.unregister(by: caller.session, rows: devices), conditions)
        case .revoke:
            var step = apply(origin.unregister(by: caller.session, rows: devices), conditions)
            step.answer = .done
            return step
        case .notifications, .notification: return read(call, texts, caller.userID)
        case .exists(let ids):
            let asked = Set(ids)
            let found = notifications.filter { asked.contains($0.id) && !$0.isOver(now) }
                .map { OCSValue.number($0.id) }
            return NextcloudStep(answer: OCSAnswer(status: 200, data: .list(found)))
        case .deleteNotification(0): return NextcloudStep(answer: .nothingThere)
        case .deleteNotification(let id):
            return try withdraw([id], of: user, conditions: conditions, at: origin, now: now)
        case .deleteNotifications:
            return try withdrawAll(of: user, conditions: conditions, at: origin, now: now)
        case .selfTest: return try test(for: caller, conditions: conditions, at: origin, now: now)
        }
    }

    /// Keeps a notification and seals it for the user's devices. Where there is no room, the oldest go, and
    /// stay on the screens.
    ///
    /// - Throws: `.missingParameter`, `.bodyTooLarge`, `.plaintextTooLong` for what is wrong with the draft;
    ///   `.sealingFailed`.
    public mutating func notify(
        _ draft: StoredNotification.Draft, of user: NextcloudUser, conditions: PushConditions,
        at origin: NextcloudOrigin, now: UnixTime
    ) throws(NextcloudError) -> NextcloudStep {
        try draft.check()
        let stored = StoredNotification(id: nextID, at: now, draft: draft)
        let audience = conditions.audience(for: stored.pushed, of: devices, now: now)
        let sealing = try origin.notify(stored.pushed, to: audience, of: user)
        notifications.append(NotificationSummary(stored))
        nextID += 1
        var step = NextcloudStep(answer: .done, entries: take(sealing, audience), hasChanged: true)
        step.added = [stored]
        step.removed = makeRoom(now)
        return step
    }

    /// Deletes notifications and takes them off the screens. Numbers that there are not are passed over.
    ///
    /// - Throws: as ``NextcloudOrigin/withdraw(_:from:of:)``; nothing has changed then.
    public mutating func withdraw(
        _ ids: [Int64], of user: NextcloudUser, conditions: PushConditions, at origin: NextcloudOrigin,
        now: UnixTime
    ) throws(NextcloudError) -> NextcloudStep {
        let asked = Set(ids)
        let gone = notifications.filter { asked.contains($0.id) }
        var step = NextcloudStep(answer: .done)
        guard !gone.isEmpty else { return step }
        var parts: [(NextcloudOrigin.Sealing, Audience)] = []
        for isTalk in [true, false] {
            let part = gone.filter { $0.isOfTalk == isTalk }
            guard !part.isEmpty else { continue }
            let audience = conditions.audience(forWithdrawalsOfTalk: isTalk, of: devices, now: now)
            parts.append((try origin.withdraw(part.map(\.id), from: audience, of: user), audience))
        }
        notifications.removeAll { asked.contains($0.id) }
        for (sealing, audience) in parts { step.entries += take(sealing, audience) }
        step.hasChanged = true
        step.removed = gone.map(\.id)
        return step
    }

    /// Deletes everything, and clears the screens of all devices.
    ///
    /// - Throws: as ``NextcloudOrigin/withdrawAll(from:of:)``; nothing has changed then.
    public mutating func withdrawAll(
        of user: NextcloudUser, conditions: PushConditions, at origin: NextcloudOrigin, now: UnixTime
    ) throws(NextcloudError) -> NextcloudStep {
        guard !notifications.isEmpty else { return NextcloudStep(answer: .done) }
        let audience = conditions.everybody(of: devices, now: now)
        let sealing = try origin.withdrawAll(from: audience, of: user)
        var step = NextcloudStep(answer: .done, entries: take(sealing, audience), hasChanged: true)
        step.removed = notifications.map(\.id)
        notifications = []
        return step
    }

    /// Takes a proxy's answer to entries, of this user's devices and others': those that it does not know go,
    /// unless they are another proxy's or have registered anew since (§4.7).
    ///
    /// - Returns: app passwords whose rows went; none: the record is as it was.
    public mutating func settle(_ answer: ProxyReading, to entries: [SealedEntry]) -> [Int64] {
        let deletes = ProxyVerdict(answer, to: entries, rows: devices).deletes
        devices.removeAll { deletes.contains($0.tokenID) }
        return deletes
    }

    /// The row of an app password that was taken back goes with it.
    ///
    /// - Returns: whether there was one.
    public mutating func forget(tokenID: Int64) -> Bool {
        let before = devices.count
        devices.removeAll { $0.tokenID == tokenID }
        return devices.count < before
    }

    // MARK: parts

    private mutating func apply(
        _ verdict: RegistrationVerdict, _ conditions: PushConditions
    ) -> NextcloudStep {
        var step = NextcloudStep(answer: verdict.answer)
        step.hasChanged = verdict.row != nil || !verdict.deletes.isEmpty
        devices.removeAll { verdict.deletes.contains($0.tokenID) || $0.tokenID == verdict.row?.tokenID }
        guard let row = verdict.row else { return step }
        // Rows of app passwords that are gone make room first, then the one that registered longest ago.
        if devices.count >= NextcloudLimits.devicesPerUser {
            devices.removeAll { conditions.appPasswords[$0.tokenID] == nil }
        }
        let over = devices.count - NextcloudLimits.devicesPerUser + 1
        if over > 0 { devices.removeFirst(over) }
        devices.append(row)
        return step
    }

    private mutating func take(_ sealing: NextcloudOrigin.Sealing, _ audience: Audience) -> [SealedEntry] {
        let gone = Set(sealing.deaf + audience.orphans)
        if !gone.isEmpty { devices.removeAll { gone.contains($0.tokenID) } }
        return sealing.entries
    }

    private func read(_ call: OCSCall, _ texts: [StoredNotification], _ userID: String) -> NextcloudStep {
        let found = needed(for: call).compactMap { id in texts.first { $0.id == id } }
        let data = found.map { $0.data(of: userID) }
        if case .notifications = call {
            return NextcloudStep(answer: OCSAnswer(status: 200, data: .list(data)))
        }
        return NextcloudStep(answer: data.first.map { OCSAnswer(status: 200, data: $0) } ?? .nothingThere)
    }

    /// - Returns: numbers of those that go: the old ones, and the oldest.
    private mutating func makeRoom(_ now: UnixTime) -> [Int64] {
        var bytes = notifications.reduce(0) { $0 + $1.bytes }
        var over = 0
        while over < notifications.count,
            notifications[over].isOver(now) || bytes > NextcloudLimits.keptNotificationBytes
                || notifications.count - over > NextcloudLimits.keptNotifications
        {
            bytes -= notifications[over].bytes
            over += 1
        }
        defer { notifications.removeFirst(over) }
        return notifications.prefix(over).map(\.id)
    }

    private mutating func test(
        for caller: NextcloudCaller, conditions: PushConditions, at origin: NextcloudOrigin, now: UnixTime
    ) throws(NextcloudError) -> NextcloudStep {
        guard conditions.hasInternet, conditions.isWithinFairUse else {
            return NextcloudStep(
                answer: OCSAnswer(
                    status: 400, data: [("message", .text("This server sends no push notifications."))]))
        }
        let isTalk = DeviceGroup(userAgent: caller.userAgent) == .talk
        let draft = StoredNotification.Draft(
            app: isTalk ? "admin_notification_talk" : "admin_notifications",
            subject: "Testing push notifications", objectType: "admin_notifications",
            objectID: String(now.seconds, radix: 16))
        let id = nextID
        var step = try notify(
            draft, of: caller.session.user, conditions: conditions, at: origin, now: now)
        let count = step.entries.count
        let sentence = count == 1 ? "Sent to 1 device." : "Sent to \(count) devices."
        step.answer = OCSAnswer(status: 200, data: [("message", .text(sentence)), ("nid", .number(id))])
        return step
    }
}
