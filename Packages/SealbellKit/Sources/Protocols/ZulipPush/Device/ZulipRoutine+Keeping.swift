import Primitives
package import PushModel
import WireFormats

// What an app keeps of an account: rows of texts behind a head with a version and a digest.

extension ZulipRoutine {
    /// What to keep over a restart, where the app keeps its keys and no backup reaches: after each
    /// ``take(_:now:beside:using:)``. It holds the account's keys and the device token.
    package func encoded() -> Secret { KeptForm.write("zulip-device", keptRows) }

    /// The same account after a restart.
    ///
    /// - Throws: `.malformedRow` for what ``encoded()`` has not written, whatever is wrong with it.
    package init(keeping kept: Secret) throws(ZulipError) {
        let rows: [[Secret]]
        do throws(DeviceError) {
            rows = try KeptForm.read("zulip-device", kept, atMost: ZulipLimits.keptBytes)
        } catch { throw ZulipError(.malformedRow) }
        try self.init(rows: rows)
    }

    /// The account of ``keptRows``.
    ///
    /// - Throws: `.malformedRow` for rows that are none of them.
    init(rows: [[Secret]]) throws(ZulipError) {
        guard let head = rows.first, head.count == 3, head[0].word == "account",
            let userID = Int64(head[2].word)
        else { throw ZulipError(.malformedRow) }
        self.init(account: ZulipAccount(realmURL: head[1].word, userID: userID))
        for row in rows[1...] {
            guard let name = row.first?.word, read(name, Array(row.dropFirst())) else {
                throw ZulipError(.malformedRow)
            }
        }
        guard keys.count <= ZulipLimits.heldKeys,
            routine.former.count <= ZulipLimits.formerRegistrations
        else { throw ZulipError(.malformedRow) }
    }

    // MARK: writing

    /// Texts of everything that is known, the account first.
    var keptRows: [[Secret]] {
        var rows = [KeptText.row("account", account.realmURL, String(account.userID))]
        for key in keys.suffix(ZulipLimits.heldKeys) {
            rows.append([
                KeptText("key").secret, KeptText(String(key.id)).secret, key.key.base64,
                KeptText(key.createdAt).secret, KeptText(key.supersededAt).secret
            ])
        }
        return rows + routine.keptRows
    }

    // MARK: reading

    private mutating func read(_ name: String, _ row: [Secret]) -> Bool {
        guard name == "key" else { return routine.read(name, row) }
        guard row.count == 4, let id = Int64(row[0].word).flatMap({ UInt32(exactly: $0) }),
            let createdAt = KeptText.time(row[2]),
            // Then it is none.
            let key = try? PushKey(base64: row[1]), let supersededAt = KeptText.optionalTime(row[3])
        else { return false }
        keys.append(HeldPushKey(id: id, key: key, createdAt: createdAt, supersededAt: supersededAt))
        return true
    }
}

/// Texts in kept rows.
struct KeptText {
    let secret: Secret

    init(_ text: String) { secret = Secret(text.utf8) }
    init(_ time: UnixTime?) { self.init(time.map { String($0.milliseconds) } ?? "") }

    static func row(_ texts: String...) -> [Secret] { texts.map { Secret($0.utf8) } }

    static func time(_ text: Secret) -> UnixTime? {
        Int64(text.word).map { UnixTime(milliseconds: $0) }
    }

    /// - Returns: `.some(nil)` for an empty text, `nil` for what is no time.
    static func optionalTime(_ text: Secret) -> UnixTime?? {
        text.count == 0 ? .some(nil) : time(text).map { .some($0) }
    }

    static func flag(_ text: Secret) -> Bool? {
        switch text.word {
        case "yes": true
        case "no": false
        default: nil
        }
    }

    static func text(_ flag: Bool) -> String { flag ? "yes" : "no" }
}

extension DeviceRoutine {
    // MARK: writing

    var keptRows: [[Secret]] {
        var rows: [[Secret]] = []
        if let marker { rows.append([KeptText("marker").secret, marker.hexDigits]) }
        if let loggedInAt { rows.append([KeptText("login").secret, KeptText(loggedInAt).secret]) }
        if let route { rows.append(KeptText.row("route", Self.text(route))) }
        if let current { rows += current.keptRows }
        for one in former { rows.append(one.row) }
        if let acknowledged {
            rows.append(
                [KeptText("acknowledged").secret, KeptText(acknowledged.at).secret]
                    + [KeptText(acknowledged.kind.rawValue).secret, acknowledged.token])
        }
        rows.append([
            KeptText("shown").secret, KeptText(shown.state.rawValue).secret,
            KeptText(shown.code ?? "").secret, KeptText(shownSince).secret,
            KeptText(KeptText.text(isRetrying)).secret
        ])
        // A call whose answer did not come before the app ended is to be made again.
        let due = underWay == nil ? dueAt : underWay?.since
        rows.append([
            KeptText("work").secret, KeptText(due).secret, KeptText(checkAt).secret,
            KeptText(String(failures)).secret, KeptText(String(losses)).secret,
            KeptText(String(lastCall)).secret
        ])
        switch halt {
        case .loggedOut(let code): rows.append(KeptText.row("logged-out", code ?? ""))
        case .refused(let code, let since):
            rows.append(KeptText.row("refused", code ?? "") + [KeptText(since).secret])
        case nil: break
        }
        if let refusedKey { rows.append(KeptText.row("refused-key", refusedKey)) }
        if let notice { rows.append(KeptText.row("notice", notice.rawValue)) }
        if isLegacy { rows.append(KeptText.row("legacy")) }
        if isOver { rows.append(KeptText.row("over")) }
        return rows
    }

    private static func text(_ route: ZulipRoute) -> String {
        switch route {
        case .encrypted(let profile): profile.rawValue
        case .legacy: "legacy"
        case .refused: "refused"
        }
    }

    // MARK: reading

    /// - Returns: whether ``keptRows`` could have written it.
    mutating func read(_ name: String, _ row: [Secret]) -> Bool {
        switch (name, row.count) {
        case ("marker", 1):
            marker = row[0].fromHex
            return marker.map { ZulipLimits.markerBytes.contains($0.count) } ?? false
        case ("login", 1):
            loggedInAt = KeptText.time(row[0])
            return loggedInAt != nil
        case ("route", 1):
            route = Self.route(row[0].word)
            return route != nil
        case ("current", _), ("told", _): return readCurrent(name, row)
        case ("former", _):
            guard let one = FormerRegistration(row) else { return false }
            former.append(one)
        case ("acknowledged", 3):
            guard let at = KeptText.time(row[0]), let kind = TokenKind(rawValue: row[1].word) else {
                return false
            }
            acknowledged = Acknowledgement(at: at, kind: kind, token: row[2])
        case ("shown", 4): return readShown(row)
        case ("work", 5): return readWork(row)
        case ("logged-out", 1): halt = .loggedOut(code: KeptText.code(row[0]))
        case ("refused", 2):
            guard let since = KeptText.time(row[1]) else { return false }
            halt = .refused(code: KeptText.code(row[0]), since: since)
        case ("refused-key", 1): refusedKey = row[0].word
        case ("notice", 1):
            notice = ZulipNotice(rawValue: row[0].word)
            return notice != nil
        case ("legacy", 0): isLegacy = true
        case ("over", 0): isOver = true
        default: return false
        }
        return true
    }

    private static func route(_ text: String) -> ZulipRoute? {
        switch text {
        case "legacy": .legacy
        case "refused": .refused
        default: ZulipProfile(rawValue: text).map { .encrypted($0) }
        }
    }

    private mutating func readShown(_ row: [Secret]) -> Bool {
        guard let state = ZulipStatus.State(rawValue: row[0].word),
            let since = KeptText.optionalTime(row[2]), let retrying = KeptText.flag(row[3])
        else { return false }
        shown =
            switch state {
            case .none: .none
            case .pending: .pending
            case .active: .active
            case .failed: .failed(code: KeptText.code(row[1]))
            }
        shownSince = since
        isRetrying = retrying
        return true
    }

    private mutating func readWork(_ row: [Secret]) -> Bool {
        guard let due = KeptText.optionalTime(row[0]), let check = KeptText.optionalTime(row[1]),
            let failures = Int(row[2].word), let losses = Int(row[3].word), failures >= 0, losses >= 0,
            let lastCall = UInt64(row[4].word), lastCall < .max / 2
        else { return false }
        (dueAt, checkAt, self.failures, self.losses, self.lastCall) = (due, check, failures, losses, lastCall)
        return true
    }

    private mutating func readCurrent(_ name: String, _ row: [Secret]) -> Bool {
        if name == "current" {
            current = HeldRegistration(row)
            return current != nil
        }
        guard row.count == 4, let kind = TokenKind(rawValue: row[0].word), let call = UInt64(row[3].word),
            current != nil
        else { return false }
        current?.told = HeldRegistration.Told(
            kind: kind, token: row[1], bouncerKey: row[2].word, call: call)
        return true
    }
}

extension ShownState {
    fileprivate var code: String? { if case .failed(let code) = self { code } else { nil } }
}

extension KeptText {
    fileprivate static func code(_ text: Secret) -> String? { text.count == 0 ? nil : text.word }
}

extension RegistrationKey {
    fileprivate var text: Secret {
        switch self {
        case .pair(let pair): pair.privateKey.hexDigits
        case .pushKey(let key): key.base64
        case .listed: Secret([])
        }
    }

    /// - Returns: `nil` for a text that is no key of that profile.
    fileprivate init?(_ text: Secret, _ profile: ZulipProfile) {
        switch profile {
        case .v12:
            guard text.count == 0 else { return nil }
            self = .listed
        case .zap:
            // What is no key was not kept.
            guard let key = text.fromHex, let pair = try? X25519KeyPair(privateKey: key) else { return nil }
            self = .pair(pair)
        case .v11:
            guard let key = try? PushKey(base64: text) else { return nil }  // The same.
            self = .pushKey(key)
        }
    }
}

extension HeldRegistration {
    fileprivate var keptRows: [[Secret]] {
        var rows = [
            [
                KeptText("current").secret, KeptText(profile.rawValue).secret,
                KeptText(id.map { String($0) } ?? "").secret, KeptText(givenAt).secret, key.text,
                KeptText(KeptText.text(isAcknowledged)).secret
            ]
        ]
        if let told {
            rows.append([
                KeptText("told").secret, KeptText(told.kind.rawValue).secret, told.token,
                KeptText(told.bouncerKey).secret, KeptText(String(told.call)).secret
            ])
        }
        return rows
    }

    fileprivate init?(_ row: [Secret]) {
        guard row.count == 5, let profile = ZulipProfile(rawValue: row[0].word),
            let givenAt = KeptText.optionalTime(row[2]), let key = RegistrationKey(row[3], profile),
            let isAcknowledged = KeptText.flag(row[4])
        else { return nil }
        let id = Int64(row[1].word)
        // A device is given its id by the server; an account id is the phone's own.
        guard id != nil || (profile == .v12 && row[1].count == 0) else { return nil }
        self.init(
            profile: profile, id: id, givenAt: givenAt, key: key, told: nil, isAcknowledged: isAcknowledged)
    }
}

extension FormerRegistration {
    fileprivate var row: [Secret] {
        [
            KeptText("former").secret, KeptText(profile.rawValue).secret, KeptText(String(id)).secret,
            key.text, KeptText(since).secret, KeptText(KeptText.text(isToBeForgotten)).secret,
            KeptText(call.map { String($0) } ?? "").secret
        ]
    }

    fileprivate init?(_ row: [Secret]) {
        guard row.count == 6, let profile = ZulipProfile(rawValue: row[0].word), let id = Int64(row[1].word),
            let key = RegistrationKey(row[2], profile), let since = KeptText.time(row[3]),
            let isToBeForgotten = KeptText.flag(row[4]), row[5].count == 0 || UInt64(row[5].word) != nil
        else { return nil }
        self.init(
            profile: profile, id: id, key: key, since: since, isToBeForgotten: isToBeForgotten,
            call: UInt64(row[5].word))
    }
}
