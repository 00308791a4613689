public import PushModel

/// What an origin knows of one of a user's app passwords.
public struct AppPasswordState: Sendable, Hashable {
    /// When it was last used, to the second or better; who is idle for two months gets no pushes.
    public let lastUsedAt: UnixTime
    /// The device is to be emptied; it gets nothing more.
    public let isMarkedForWipe: Bool

    /// - Parameter isMarkedForWipe: no, unless said otherwise.
    public init(lastUsedAt: UnixTime, isMarkedForWipe: Bool = false) {
        self.lastUsedAt = lastUsedAt
        self.isMarkedForWipe = isMarkedForWipe
    }
}

/// What decides besides the notification who gets a push (§4.3).
public struct PushConditions: Sendable {
    /// Switched off by configuration: nothing leaves the server.
    public var hasInternet: Bool
    /// The official rule: fewer than 1,000 users, or a subscription. For a proxy of one's own, one's own.
    public var isWithinFairUse: Bool
    /// The user's status.
    public var isDoNotDisturb: Bool
    /// By number; what is not in it does not exist any more.
    public var appPasswords: [Int64: AppPasswordState]

    /// Online, within fair use and not to be left undisturbed, unless said otherwise.
    ///
    /// - Parameter appPasswords: all that the user has now, by number.
    public init(
        appPasswords: [Int64: AppPasswordState], isDoNotDisturb: Bool = false, hasInternet: Bool = true,
        isWithinFairUse: Bool = true
    ) {
        self.appPasswords = appPasswords
        self.isDoNotDisturb = isDoNotDisturb
        self.hasInternet = hasInternet
        self.isWithinFairUse = isWithinFairUse
    }
}

/// A user's devices, sorted for one push.
public struct Audience: Sendable {
    /// Those to push to.
    public let devices: [RegisteredDevice]
    /// App passwords that are gone; their rows are to be deleted.
    public let orphans: [Int64]
}

extension PushConditions {
    /// Who gets a notification.
    public func audience(
        for notification: NextcloudNotification, of rows: [RegisteredDevice], now: UnixTime
    ) -> Audience {
        let all = everybody(of: rows, now: now)
        guard notification.isPriority || !isDoNotDisturb else {
            return Audience(devices: [], orphans: all.orphans)
        }
        return Audience(
            devices: Self.devices(all.devices, ofTalk: notification.isOfTalk), orphans: all.orphans)
    }

    /// Who is told that notifications of an app are gone.
    public func audience(
        forWithdrawalsOf app: String, of rows: [RegisteredDevice], now: UnixTime
    ) -> Audience {
        audience(
            forWithdrawalsOfTalk: NextcloudNotification.talkApps.contains(app), of: rows, now: now)
    }

    func audience(
        forWithdrawalsOfTalk isOfTalk: Bool, of rows: [RegisteredDevice], now: UnixTime
    ) -> Audience {
        let all = everybody(of: rows, now: now)
        return Audience(devices: Self.devices(all.devices, ofTalk: isOfTalk), orphans: all.orphans)
    }

    /// Every device of the user, whatever its group: who is told that everything is gone.
    public func everybody(of rows: [RegisteredDevice], now: UnixTime) -> Audience {
        let orphans = rows.map(\.tokenID).filter { appPasswords[$0] == nil }
        guard hasInternet, isWithinFairUse else { return Audience(devices: [], orphans: orphans) }
        let live = rows.filter { row in
            appPasswords[row.tokenID].map { state in
                !state.isMarkedForWipe && now.since(state.lastUsedAt) <= NextcloudLimits.appPasswordIdle
            } ?? false
        }
        return Audience(devices: live, orphans: orphans)
    }

    /// Devices are sorted by group after the dead ones are out, so that a Talk app that nobody has used for
    /// months does not keep calls from the user's other apps.
    private static func devices(_ rows: [RegisteredDevice], ofTalk: Bool) -> [RegisteredDevice] {
        let (talk, others) = (rows.filter { $0.group == .talk }, rows.filter { $0.group != .talk })
        return ofTalk && !talk.isEmpty ? talk : others
    }
}
