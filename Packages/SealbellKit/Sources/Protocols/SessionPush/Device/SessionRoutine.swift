package import PushModel
import WireFormats

/// How one app on one phone, with all its accounts, is subscribed, and opens what arrives. What
/// ``SessionDevice`` goes by; a value, and it sends nothing.
///
/// At each start the app gives it what it kept (``init(keeping:)``), its token (``use(_:)``) and each of its
/// accounts (``watch(_:)``). Then it sends what ``renewal(due:)`` returns, brings the answers to
/// ``settle(_:_:now:using:)``, keeps ``encoded()``, and comes back at ``nextDeadline``.
package struct SessionRoutine: Sendable {
    /// With it pushes are opened. Made once, and the same for all accounts.
    package let encKey: Secret
    var token: SessionDeviceToken?
    /// There is to be no token: what ends is still told.
    var isUnwanted = false
    var watched: [Member] = []
    var standings: [Digest16: Standing] = [:]
    var leaving: [Leaving] = []
    var seen = SeenMessages()
    var underWay: [UInt64: UnderWay] = [:]
    var nextID: UInt64 = 1
    /// When an account was last taken back, in seconds: what is signed no later does not bring it back.
    var leftAt: [Digest16: Int64] = [:]

    struct Member: Sendable {
        let name: Digest16
        let account: WatchedAccount
    }

    /// A call whose answer is awaited.
    struct UnderWay: Sendable {
        enum Item: Sendable {
            case watched(Digest16, settings: Digest16)
            case leaving(Leaving)
        }
        let endpoint: SessionCall.Endpoint
        let items: [Item]
        let since: UnixTime
    }

    /// A new phone: draws ``encKey``.
    package init(using generator: inout some RandomNumberGenerator) {
        encKey = Secret(count: 32) { room in
            for at in 0..<4 {
                room.storeBytes(of: generator.next(), toByteOffset: 8 * at, as: UInt64.self)
            }
        }
    }

    /// The same phone after a restart.
    ///
    /// - Throws: `.malformedRow` for what ``encoded()`` has not written.
    package init(keeping kept: Secret) throws(SessionError) {
        guard let rows = KeptRows.read(kept, atMost: SessionLimits.keptBytes) else {
            throw SessionError(.malformedRow)
        }
        try self.init(rows: rows)
    }

    /// - Throws: `.malformedRow` for what ``rows`` has not written.
    init(rows: [[Secret]]) throws(SessionError) {
        guard rows.count >= 3, rows[0].count == 1, let key = rows[0][0].fromHex, key.count == 32,
            let seen = SeenMessages(rows[1])
        else { throw SessionError(.malformedRow) }
        encKey = key
        self.seen = seen
        for row in rows[2...] {
            if row.first?.word == "leaving" {
                guard let one = Leaving(Array(row.dropFirst())) else { throw SessionError(.malformedRow) }
                guard !leaving.contains(where: { $0.isSame(as: one) }) else {
                    throw SessionError(.malformedRow)
                }
                leaving.append(one)
            } else if row.count == 7, let name = row[0].fromHex.flatMap({ $0.reveal { Digest16($0) } }),
                let standing = Standing(row[1...])
            {
                standings[name] = standing
            } else if !row.isEmpty {
                throw SessionError(.malformedRow)
            }
        }
        guard standings.count <= SessionLimits.watchedAccounts, leaving.count <= SessionLimits.unsubscriptions
        else { throw SessionError(.malformedRow) }
    }

    /// What to keep over a restart, where the app keeps its keys: after each answer, and together with each
    /// message that was stored. It holds ``encKey``, but no account's key.
    package func encoded() -> Secret { KeptRows.write(rows) }

    var rows: [[Secret]] {
        var rows = [[encKey.hexDigits], seen.row, []]
        for (name, standing) in standings.sorted(by: { $0.key < $1.key }) {
            rows.append([Secret(hexDigitsOf: name)] + standing.row)
        }
        for one in leaving { rows.append([Secret("leaving".utf8)] + one.row) }
        return rows
    }

    // MARK: what is watched

    /// The token that the system gave, at each start and whenever it gives another: then every account is
    /// subscribed anew at once, and the subscriptions of the old token are taken back.
    package mutating func use(_ token: SessionDeviceToken) { (self.token, isUnwanted) = (token, false) }

    /// Adds an account, or replaces what is watched of it; changed settings are told at once.
    ///
    /// - Throws: `.tooManyAccounts` beyond ``SessionLimits/watchedAccounts``.
    package mutating func watch(_ account: WatchedAccount) throws(SessionError) {
        let name = name(of: account.account)
        if let place = watched.firstIndex(where: { $0.name == name }) {
            watched[place] = Member(name: name, account: account)
        } else {
            guard watched.count < SessionLimits.watchedAccounts else {
                throw SessionError(.tooManyAccounts)
            }
            watched.append(Member(name: name, account: account))
        }
    }

    /// The account leaves the phone, or is to be silent: its subscription is taken back, by a call that
    /// ``renewal(due:)`` will return, and tried for a day. The key is not needed for longer than this
    /// call.
    ///
    /// - Throws: `.malformedKey`, which nobody will meet.
    package mutating func leave(_ account: AccountID, now: UnixTime) throws(SessionError) {
        let name = name(of: account)
        guard let place = watched.firstIndex(where: { $0.name == name }) else { return }
        let member = watched.remove(at: place)
        guard let standing = standings.removeValue(forKey: name) else { return }
        try takeBack(member.account, standing.token, now: now)
    }

    /// Beyond ``SessionLimits/unsubscriptions`` the oldest is given up.
    mutating func takeBack(
        _ account: WatchedAccount, _ token: SessionDeviceToken, now: UnixTime
    ) throws(SessionError) {
        let name = name(of: account.account)
        let signedAt = endingTime(name, now)
        let element = try CallElement.unsubscribe(account, token, signedAt: signedAt)
        leftAt = leftAt.filter { $0.value >= now.seconds }
        leftAt[name] = signedAt
        let one = Leaving(account: account.account, token: token, element: element, since: now, dueAt: now)
        // Left twice within a second: once is enough.
        if leaving.contains(where: { $0.isSame(as: one) }) { return }
        leaving.append(one)
        if leaving.count > SessionLimits.unsubscriptions { leaving.removeFirst() }
    }

    func name(of account: AccountID) -> Digest16 { account.digest(encKey) }

    // MARK: receiving

    /// Opens what arrived, and says what to do with it.
    ///
    /// A repeat is told by ``remember(_:)``, which the app calls once it has stored the message: what was
    /// shown but not stored comes again, rather than be lost.
    ///
    /// - Throws: `.doesNotOpen`; `.malformedPush` for what opens and is not of a form that is known.
    package func open(_ push: DeliveredPush, now: UnixTime) throws(SessionError) -> SessionAction {
        let message = try PushOpening.open(push.payload, key: encKey)
        // A process that only opens has no account's key, and knows its accounts by what was kept.
        guard
            watched.contains(where: { $0.account.account == message.account })
                || standings[name(of: message.account)] != nil
        else { return .ignore(.foreignAccount) }
        guard !seen.contains(message, key: encKey) else { return .ignore(.repeated) }
        if message.data != nil { return message.isForPeople ? .show(message) : .update(message) }
        if let expiresAt = message.expiresAt, expiresAt <= now { return .ignore(.expired) }
        return .fetch(message)
    }

    /// The message was stored, or fetched: a repeat of its push is to be ignored. Keep ``encoded()`` in the
    /// same transaction.
    package mutating func remember(_ message: SessionMessage) { seen.insert(message, key: encKey) }
}
