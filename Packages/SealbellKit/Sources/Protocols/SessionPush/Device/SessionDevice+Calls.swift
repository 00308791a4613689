public import PushModel
public import SealbellKit

extension SessionDevice {
    /// What is to be done now: accounts that are new, whose token or settings have changed, or whose time has
    /// come, and subscriptions to be taken back; 100 of them in a call at most. A call without an answer for
    /// five minutes counts as lost.
    public mutating func due(
        at now: UnixTime, using generator: inout some RandomNumberGenerator
    ) -> [Call] {
        if routine.isUnwanted { giveUp(now) }
        // Nobody will meet a key that does not sign.
        let told = (try? routine.renewal(due: now)) ?? []
        underWay = underWay.filter { routine.underWay[$0.value.id] != nil }
        pathFault = nil
        var calls: [Call] = []
        for one in told {
            let request: OnionRequest?
            do throws(SessionError) {
                request = try server.onion.map { (onion) throws(SessionError) in
                    try onion.request(one, through: path, cipher, using: &generator)
                }
            } catch {
                // Past the nodes it would tell the server where the phone is: so it waits for another path.
                pathFault = error.code
                _ = routine.settle(one.id, .none, now: now, using: &generator)
                continue
            }
            let id = UInt64.random(in: 0...UInt64(Int64.max), using: &generator)
            underWay[id] = UnderWay(id: one.id, request: request)
            calls.append(Call(id: id, .http(http(one, request))))
        }
        if !told.isEmpty, askedAt == nil, newest(now) == nil { askedAt = now }
        return calls
    }

    private func http(_ call: SessionCall, _ request: OnionRequest?) -> HTTPCall {
        let address = request == nil ? nil : path.first?.address
        let type = request == nil ? "application/json" : "application/octet-stream"
        return HTTPCall(
            method: "POST", url: (address ?? server.url) + (request?.path ?? call.endpoint.rawValue),
            headers: [("Content-Type", Secret(type.utf8))], body: request?.body ?? call.body,
            answerLimitBytes: SessionLimits.answerBytes)
    }

    /// Every account leaves; what nobody can sign for any more is over when its signature is.
    private mutating func giveUp(_ now: UnixTime) {
        for member in routine.watched {
            // Nobody will meet a key that does not sign.
            try? routine.leave(member.account.account, now: now)
        }
        refusals = [:]
        routine.standings = routine.standings.filter { $0.value.overAt > now }
    }

    /// Takes what came back, element by element: an account is subscribed only if its own element says so.
    /// What no server has given, or does not open, is no answer.
    public mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        _ = take(answer, to: call, at: now, using: &generator)
    }

    /// - Returns: what the server itself has answered, `nil` where nothing of it came, and what became of
    ///   each account.
    package mutating func take(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) -> (server: SessionAnswer?, verdicts: [SessionVerdict]) {
        guard let open = underWay.removeValue(forKey: call.id) else { return (nil, []) }
        var inner: SessionAnswer?
        if case .http(let status, _, let body) = answer {
            if let request = open.request {
                // Whatever is wrong with it, the server has not said it.
                inner = try? request.answer(status: status, body: body)
            } else {
                inner = SessionAnswer(status: status, body: body)
            }
        }
        // Where an end is refused, the account stands as it did, or is not of this phone any more.
        let isSubscribing = routine.underWay[open.id]?.endpoint == .subscribe
        let settled = routine.settle(open.id, inner ?? .none, now: now, using: &generator)
        for (account, verdict) in settled where isSubscribing {
            let name = routine.name(of: account)
            switch verdict {
            case .refused(let error): refusals[name] = "ERROR_\(error.magnitude)"
            case .refusedCall(let status): refusals[name] = "HTTP_\(status)"
            case .added, .updated, .removed, .later: refusals[name] = nil
            }
        }
        if newest(now) != nil { askedAt = nil }
        return (inner, settled.map(\.verdict))
    }

    // MARK: how it stands

    /// When to ask ``due(at:using:)`` without anything having happened: for a renewal, after a failure, or
    /// when an answer no longer comes.
    public var nextDue: UnixTime? {
        guard routine.isUnwanted else { return routine.nextDeadline }
        if !routine.watched.isEmpty { return .distantPast }
        let ends = routine.standings.values.map(\.overAt)
        return (ends + [routine.nextDeadline].compactMap(\.self)).min()
    }

    /// How all accounts together stand: `active` while one of them does. It falls to `none` when the newest
    /// subscription is 14 days old: the app was not started for so long.
    public func status(at now: UnixTime) -> DeviceStatus {
        status(newest(now), Array(routine.standings.values), refusals.values.min(), now)
    }

    /// How one account stands; `none` for one that was never told.
    public func status(of account: AccountID, at now: UnixTime) -> DeviceStatus {
        let name = routine.name(of: account)
        let standings = [routine.standings[name]].compactMap(\.self)
        return status(Self.newest(standings, now), standings, refusals[name], now)
    }

    /// - Parameter renewedAt: of the newest subscription that stands.
    private func status(
        _ renewedAt: UnixTime?, _ standings: [Standing], _ refusal: String?, _ now: UnixTime
    ) -> DeviceStatus {
        let state: DeviceStatus.State =
            if routine.isUnwanted {
                isGone ? .none : .pending
            } else if renewedAt != nil {
                .active
            } else if refusal != nil {
                .failed
            } else {
                standings.isEmpty || standings.allSatisfy { $0.renewedAt != nil } ? .none : .pending
            }
        let advice: DeviceStatus.Advice =
            if routine.isUnwanted || refusal == nil && renewedAt != nil {
                .none
            } else if refusal != nil {
                .tellAdmin
            } else if standings.contains(where: { $0.failures > 0 }) {
                .retrying
            } else if routine.token == nil {
                .giveToken
            } else {
                standings.isEmpty ? .none : .wait
            }
        let since = renewedAt ?? askedAt
        let age = since.map { now.since($0) } ?? .zero
        // By a clock that was set back since, nobody knows how long it has been.
        let isYoung = age >= .zero && age < SessionLimits.quietTime
        return DeviceStatus(
            state: state, since: since, detail: refusal ?? pathFault?.rawValue,
            isQuiet: state == .pending && isYoung, advice: advice)
    }

    private func newest(_ now: UnixTime) -> UnixTime? { Self.newest(Array(routine.standings.values), now) }

    /// When a subscription that stands was taken last; `nil`: none stands.
    private static func newest(_ standings: [Standing], _ now: UnixTime) -> UnixTime? {
        standings.compactMap(\.renewedAt).filter { now.since($0) < SessionLimits.signatureLife }.max()
    }
}

extension Standing {
    /// When the server lets it go by itself, if it has it at all: no sooner was it told last.
    var overAt: UnixTime { max(renewedAt ?? dueAt, dueAt) + SessionLimits.signatureLife }
}
