public import PushModel
import SealbellKit
import WireFormats

// What is kept: the core's rows, and the face's own behind them.

extension ZulipDevice {
    private static let title: StaticString = "zulip"

    /// What to keep over a restart: in the keychain, out of backups. It has the account's keys and the device
    /// token, and neither API key nor e-mail address; at most ``ZulipLimits/keptBytes``, some KB as a rule.
    public var kept: Secret {
        var rows = core.keptRows
        if let lastLogin { rows.append([Secret(cell: "last-login"), lastLogin]) }
        if isLeaving { rows.append([Secret(cell: "leaving")]) }
        for one in forgets {
            rows.append([
                Secret(cell: "forget"), Secret(cell: one.profile.rawValue), Secret(cell: String(one.id)),
                Secret(cell: one.since), Secret(cell: String(one.failures)), Secret(cell: one.dueAt)
            ])
        }
        return KeptForm.write(Self.title, rows)
    }

    mutating func read(_ kept: Secret) throws(DeviceError) {
        var rows: [[Secret]] = []
        for row in try KeptForm.read(Self.title, kept, atMost: ZulipLimits.keptBytes) {
            switch (row.first?.word, row.count) {
            case ("last-login", 2): lastLogin = row[1]
            case ("leaving", 1): isLeaving = true
            case ("forget", 6):
                guard let one = ForgetCall(row), forgets.count < ZulipLimits.forgets else {
                    throw DeviceError(.malformedKept)
                }
                forgets.append(one)
            default: rows.append(row)
            }
        }
        let found: ZulipRoutine
        do throws(ZulipError) { found = try ZulipRoutine(rows: rows) } catch { throw DeviceError(error) }
        guard found.account.userID == login.userID,
            WebOrigin(found.account.realmURL) == WebOrigin(login.realmURL)
        else { throw DeviceError(.malformedKept) }
        if let marker = login.marker, let beside = found.routine.marker, !(marker == beside) {
            // Another phone's, out of a backup. What it has registered is left alone.
            (lastLogin, isLeaving, forgets) = (nil, false, [])
            return
        }
        core = found
    }
}

extension ZulipDevice.ForgetCall {
    fileprivate init?(_ row: [Secret]) {
        guard let profile = ZulipProfile(rawValue: row[1].word), let id = Int64(row[2].word),
            let since = row[3].moment ?? nil, let failures = Int(row[4].word), failures >= 0,
            let dueAt = row[5].moment ?? nil
        else { return nil }
        self.init(profile: profile, id: id, since: since, failures: failures, dueAt: dueAt)
    }
}
