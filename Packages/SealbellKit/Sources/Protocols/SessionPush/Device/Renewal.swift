package import PushModel
import WireFormats

/// Subscribing, and staying subscribed (§3.4).
extension SessionRoutine {
    /// The calls to make now: accounts that are new, whose token or settings have changed, or whose time
    /// has come, and subscriptions to be taken back. Each signature is fresh.
    ///
    /// A subscription that succeeded comes again after a random time between 12 hours and 7 days; one that
    /// found no answer after 15 seconds, doubled with each failure up to an hour.
    ///
    /// - Returns: nothing before the app has given a token. A call has 100 elements and 100,000 bytes at
    ///   most, and its accounts are in no other call until it is settled or five minutes have passed.
    /// - Throws: `.malformedKey`, which nobody will meet.
    package mutating func renewal(due now: UnixTime) throws(SessionError) -> [SessionCall] {
        guard token != nil || isUnwanted else { return [] }
        underWay = underWay.filter { call in
            let age = now.since(call.value.since)
            return age >= .zero && age < SessionLimits.callDeadline
        }
        tidy(token, now)
        var subscribing = Batch(.subscribe)
        if let token { subscribing = try subscriptions(token, now) }
        var unsubscribing = Batch(.unsubscribe)
        for one in leaving where one.dueAt <= now && !isUnderWay(one) {
            unsubscribing.add(one.element, .leaving(one))
        }
        return subscribing.calls(&self, now) + unsubscribing.calls(&self, now)
    }

    private mutating func subscriptions(
        _ token: SessionDeviceToken, _ now: UnixTime
    ) throws(SessionError) -> Batch {
        let busy = namesUnderWay(token)
        var subscribing = Batch(.subscribe)
        for member in watched where !busy.contains(member.name) {
            let settings = member.account.settings(encKey)
            if let standing = standings[member.name], !(standing.token == token) {
                try takeBack(member.account, standing.token, now: now)
                standings[member.name] = nil
            }
            let standing =
                standings[member.name] ?? Standing(token: token, settings: settings, dueAt: now)
            guard standing.isDue(settings, now: now) else { continue }
            standings[member.name] = standing
            let element = try CallElement.subscribe(
                member.account, token, encKey: encKey,
                signedAt: signingTime(member.name, now))
            subscribing.add(element, .watched(member.name, settings: settings))
        }
        return subscribing
    }

    /// Makes every account due at once, for somebody who asks for it; a server that has lost its records
    /// takes them again.
    package mutating func renewAll() {
        for name in standings.keys { standings[name]?.dueAt = .distantPast }
    }

    /// When ``renewal(due:)`` has something again; `nil` when nothing waits for time.
    package var nextDeadline: UnixTime? {
        guard token != nil || isUnwanted else { return nil }
        var subscriptions: [UnixTime] = []
        if let token {
            let busy = namesUnderWay(token)
            subscriptions = watched.filter { !busy.contains($0.name) }.map {
                standings[$0.name]?.dueAt ?? .distantPast
            }
        }
        let unsubscriptions = leaving.filter { !isUnderWay($0) }.map(\.dueAt)
        let lost = underWay.values.map { $0.since + SessionLimits.callDeadline }
        return (subscriptions + unsubscriptions + lost).min()
    }

    /// Takes the answer to a call, element by element: an account is subscribed only if its own element says
    /// so.
    ///
    /// - Returns: what became of each account; nothing for a call that was settled before, or that counts as
    ///   lost.
    package mutating func settle(
        _ id: UInt64, _ answer: SessionAnswer, now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) -> [(account: AccountID, verdict: SessionVerdict)] {
        guard let call = underWay.removeValue(forKey: id) else { return [] }
        let answers = ElementAnswer.read(answer, count: call.items.count, call.endpoint)
        var verdicts: [(account: AccountID, verdict: SessionVerdict)] = []
        for (item, answer) in zip(call.items, answers) {
            switch item {
            case .watched(let name, let settings):
                guard let member = watched.first(where: { $0.name == name }),
                    let verdict = settle(name, settings, answer, now, &generator)
                else { continue }
                verdicts.append((member.account.account, verdict))
            case .leaving(let one):
                guard let verdict = settle(one, answer, now, &generator) else { continue }
                verdicts.append((one.account, verdict))
            }
        }
        return verdicts
    }

    // MARK: parts

    /// Seconds. A subscription signed in the second of its end would be taken for an older one.
    private func signingTime(_ name: Digest16, _ now: UnixTime) -> Int64 {
        let near = now.seconds...now.seconds + SessionLimits.sameSecond.components.seconds
        // A clock that was set back by more counts as it is.
        guard let left = leftAt[name], near.contains(left) else { return now.seconds }
        return left + 1
    }

    /// Of an end, in seconds: one that may overtake a subscription of its own second is signed later.
    func endingTime(_ name: Digest16, _ now: UnixTime) -> Int64 {
        let overtakes = underWay.values.contains { call in
            call.since.seconds == now.seconds
                && call.items.contains { if case .watched(name, _) = $0 { true } else { false } }
        }
        return now.seconds + (overtakes ? 1 : 0)
    }

    /// Drops what has had its time, what is back before it had left, and, where there are too many, what is
    /// kept of accounts that the app no longer names.
    private mutating func tidy(_ token: SessionDeviceToken?, _ now: UnixTime) {
        let over = leaving.indices.filter { place in
            let one = leaving[place]
            let isOfToken = token.map { one.token == $0 } ?? false
            let isBack = isOfToken && watched.contains { $0.account.account == one.account }
            return one.isOver(now: now) || isBack && !isUnderWay(one)
        }
        for place in over.reversed() { leaving.remove(at: place) }
        guard standings.count > SessionLimits.watchedAccounts - watched.count else { return }
        let names = Set(watched.map(\.name))
        standings = standings.filter { names.contains($0.key) }
    }

    private mutating func settle(
        _ name: Digest16, _ settings: Digest16, _ answer: ElementAnswer, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) -> SessionVerdict? {
        guard var standing = standings[name] else { return nil }
        defer { standings[name] = standing }
        standing.settings = settings
        switch answer {
        case .added, .updated, .removed:
            standing.renewedAt = now
            standing.failures = 0
            let most = SessionLimits.renewalMost.wholeMilliseconds
            let span = Int64.random(
                in: SessionLimits.renewalLeast.wholeMilliseconds...most, using: &generator)
            standing.dueAt = now + .milliseconds(span)
            return answer == .added ? .added : .updated
        case .none:
            standing.failures = min(standing.failures, Self.countedFailures) + 1
            standing.dueAt = now + Self.pause(after: standing.failures, &generator)
            return .later(standing.dueAt)
        case .refused(let error):
            standing.dueAt = now + SessionLimits.renewalLeast
            return .refused(error: error)
        case .refusedCall(let status):
            standing.dueAt = now + SessionLimits.renewalLeast
            return .refusedCall(status: status)
        }
    }

    private mutating func settle(
        _ one: Leaving, _ answer: ElementAnswer, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) -> SessionVerdict? {
        guard let place = leaving.firstIndex(where: { $0.isSame(as: one) }) else { return nil }
        switch answer {
        case .none:
            leaving[place].failures = min(leaving[place].failures, Self.countedFailures) + 1
            leaving[place].dueAt = now + Self.pause(after: leaving[place].failures, &generator)
            return .later(leaving[place].dueAt)
        // Whatever else it says, it will say again.
        case .added, .updated: leaving.remove(at: place)
        case .removed(let wasThere):
            leaving.remove(at: place)
            // It may have come back while its end was on its way, and ended what was new.
            let name = name(of: one.account)
            if let back = standings[name], back.token == one.token { standings[name]?.dueAt = now }
            return .removed(wasThere: wasThere)
        case .refused(let error):
            leaving.remove(at: place)
            return .refused(error: error)
        case .refusedCall(let status):
            leaving.remove(at: place)
            return .refusedCall(status: status)
        }
        return nil
    }

    /// Accounts of which a call is under way. An end counts too, so that no subscription overtakes it: a
    /// server that does not look at the order of signatures would end what is new.
    private func namesUnderWay(_ token: SessionDeviceToken) -> Set<Digest16> {
        var names: Set<Digest16> = []
        for call in underWay.values {
            for item in call.items {
                switch item {
                case .watched(let name, _): names.insert(name)
                case .leaving(let one): if one.token == token { names.insert(name(of: one.account)) }
                }
            }
        }
        return names
    }

    private func isUnderWay(_ one: Leaving) -> Bool {
        underWay.values.contains { call in
            call.items.contains { item in
                if case .leaving(let other) = item { return other.isSame(as: one) }
                return false
            }
        }
    }

    /// More of them make no pause longer.
    private static let countedFailures = 16

    private static func pause(
        after failures: Int, _ generator: inout some RandomNumberGenerator
    ) -> Duration {
        let whole = min(
            SessionLimits.backoffMost.wholeMilliseconds,
            SessionLimits.backoffLeast.wholeMilliseconds << Int64(failures - 1))
        // A random part is taken off, so that phones do not come back together.
        return .milliseconds(whole - Int64.random(in: 0...whole / 4, using: &generator))
    }
}

/// Elements of one endpoint, cut into calls.
private struct Batch {
    private typealias Item = SessionRoutine.UnderWay.Item
    private let endpoint: SessionCall.Endpoint
    private var calls: [(elements: [Secret], items: [Item], bytes: Int)] = []

    init(_ endpoint: SessionCall.Endpoint) { self.endpoint = endpoint }

    mutating func add(_ element: Secret, _ item: SessionRoutine.UnderWay.Item) {
        let bytes = element.count + 1
        if let last = calls.last, last.elements.count < SessionLimits.elementsAtOnce,
            last.bytes + bytes <= SessionLimits.bodyBytes
        {
            calls[calls.count - 1].elements.append(element)
            calls[calls.count - 1].items.append(item)
            calls[calls.count - 1].bytes += bytes
        } else {
            // The array's brackets.
            calls.append(([element], [item], bytes + 1))
        }
    }

    func calls(_ device: inout SessionRoutine, _ now: UnixTime) -> [SessionCall] {
        calls.map { part in
            let id = device.nextID
            device.nextID += 1
            device.underWay[id] = SessionRoutine.UnderWay(endpoint: endpoint, items: part.items, since: now)
            return SessionCall(id: id, endpoint: endpoint, body: CallElement.body(part.elements))
        }
    }
}
