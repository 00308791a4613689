public import PushModel
public import SealbellKit
import WireFormats

// What is to be done now.

extension ZulipDevice {
    /// Calls to make now, each once; none before ``use(token:)``. All of them are HTTP requests to
    /// ``ZulipLogin/serverURL``; `GET events` waits there for up to 90 s.
    public mutating func due(at now: UnixTime, using generator: inout some RandomNumberGenerator) -> [Call] {
        guard token != nil || isLeaving else { return [] }
        var calls: [Call] = []
        if isLeaving {
            if !core.routine.isOver { leave(now, &generator) }
            start.isDone = false
            queue.end()
            // Registering calls that were not given yet are not to be.
            outgoing = []
            // An answer that the app has not brought by then is lost, and nobody knows what it was. It is not
            // asked for again, so a clock that is set back a little must not end it.
            underWay.removeAll { one in
                guard case .unwanted(let since) = one.kind else { return false }
                let age = now.since(since)
                return age >= ZulipLimits.callLife || age <= .zero - ZulipLimits.callLife
            }
        } else {
            if let ask = settingsCall(now) { calls.append(ask) }
            if start.isDone { work(now, &generator) }
        }
        calls += outgoing.map { call(.routine(number: $0.number, $0.kind), http($0)) }
        outgoing = []
        let isBusy = core.routine.underWay != nil
        for ask in queue.asks(now, isPending: isPending, isBusy: isBusy) { calls.append(call(ask)) }
        return calls + forgetCalls(now)
    }

    /// Whether there is something to hear of.
    private var isPending: Bool { core.routine.shown == .pending && core.routine.halt == nil }

    /// Once a run; again, later, where the server does not say it.
    private mutating func settingsCall(_ now: UnixTime) -> Call? {
        if let askedAt = start.askedAt {
            // An answer that the app has not brought by then is lost.
            let age = now.since(askedAt)
            guard age >= ZulipLimits.callLife || age < .zero else { return nil }
        }
        guard !start.hasSettings, start.dueAt <= now || start.dueAt.since(now) > ZulipLimits.longestWait
        else {
            return nil
        }
        start.askedAt = now
        return call(
            .settings,
            HTTPCall(
                method: "GET", url: login.serverURL + "/api/v1/server_settings",
                answerLimitBytes: ZulipLimits.settingsBytes))
    }

    /// What has come to be due since the start.
    private mutating func work(_ now: UnixTime, _ generator: inout some RandomNumberGenerator) {
        if start.hasNewToken, let token {
            start.hasNewToken = false
            take(.token(push(token)), now, &generator)
        }
        if start.isAgainWanted { again(now, &generator) }
        if let deadline = core.nextDeadline, deadline <= now { take(.tick, now, &generator) }
        // A call whose answer never came is made again; whatever happens looks for it.
        if let since = core.routine.underWay?.since, now.since(since) >= ZulipLimits.callLife {
            take(.tick, now, &generator)
        }
    }

    /// v12 repeats nothing before the state was fetched in this run.
    private mutating func again(_ now: UnixTime, _ generator: inout some RandomNumberGenerator) {
        guard core.routine.underWay == nil else { return }
        let isUnseen =
            core.routine.current?.profile == .v12 && core.routine.current?.id != nil
            && core.routine.columns == nil
        guard !isUnseen else {
            if login.asksForEvents != .never, !start.isStateWanted {
                start.isStateWanted = true
                queue.want(at: now)
            }
            return
        }
        start.isAgainWanted = false
        take(.again, now, &generator)
    }

    /// Gives the core an event, and notes what it wants done.
    ///
    /// - Returns: whether the core took it.
    @discardableResult
    mutating func take(
        _ event: ZulipDeviceEvent, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> Bool {
        do throws(ZulipError) {
            for case .call(let call) in try core.take(event, now: now, using: &generator) {
                if call.kind == .forget { forget(call, now) } else { outgoing.append(call) }
            }
            return true
        } catch { return false }
    }

    /// When to ask ``due(at:using:)`` without anything having happened.
    public var nextDue: UnixTime? {
        guard token != nil || isLeaving else { return nil }
        var times = forgets.map { $0.askedAt.map { $0 + ZulipLimits.callLife } ?? $0.dueAt }
        if isLeaving {
            if !core.routine.isOver { times.append(.distantPast) }
            if let since = unwantedSince { times.append(since + ZulipLimits.callLife) }
        } else {
            if !start.hasSettings {
                times.append(start.askedAt.map { $0 + ZulipLimits.callLife } ?? start.dueAt)
            }
            if start.isDone {
                if start.hasNewToken { times.append(.distantPast) }
                if let deadline = core.nextDeadline { times.append(deadline) }
                if let call = core.routine.underWay { times.append(call.since + ZulipLimits.callLife) }
            }
        }
        if let next = queue.next(isPending: isPending, isBusy: core.routine.underWay != nil) {
            times.append(next)
        }
        return times.min()
    }

    // MARK: forgetting

    /// The core asks once; here the server is asked until it has answered.
    private mutating func forget(_ call: ZulipDeviceCall, _ now: UnixTime) {
        guard let id = call.fields.first.flatMap({ Int64($0.value.word) }) else { return }
        forget(call.profile, id, now)
    }

    private mutating func forget(_ profile: ZulipProfile, _ id: Int64, _ now: UnixTime) {
        forgets.append(ForgetCall(profile: profile, id: id, since: now, dueAt: now))
        if forgets.count > ZulipLimits.forgets { forgets.removeFirst() }
    }

    /// Since when the first call for a device that is not wanted any more is under way.
    var unwantedSince: UnixTime? {
        underWay.lazy.compactMap { if case .unwanted(let since) = $0.kind { since } else { nil } }.min()
    }

    /// A device that the server adds is to be forgotten, once its answer says which it is.
    mutating func forget(device answer: ZulipDeviceAnswer, _ now: UnixTime) {
        guard case .success(let id?) = AnswerVerdict(answer, now: now) else { return }
        forget(.v12, id, now)
    }

    /// What a registering call tells is to be forgotten behind its answer: a server that took the two the
    /// other way round would keep it.
    private mutating func leave(_ now: UnixTime, _ generator: inout some RandomNumberGenerator) {
        let (open, current) = (core.routine.underWay, core.routine.current)
        take(.logout, now, &generator)
        for place in underWay.indices {
            guard let open, case .routine(let number, .addDevice) = underWay[place].kind,
                number == open.number
            else { continue }
            underWay[place].kind = .unwanted(since: open.since)
        }
        guard let open, !outgoing.contains(where: { $0.number == open.number }),
            let place = forgets.lastIndex(where: { $0.profile == current?.profile && $0.id == current?.id })
        else { return }
        forgets[place].behind = open.number
        // An answer that the app has not brought by then is lost; nor may a clock that was set back delay it.
        forgets[place].dueAt = max(now, min(open.since, now) + ZulipLimits.callLife)
    }

    /// The registering call of that number is answered.
    mutating func forget(behind number: UInt64, _ now: UnixTime) {
        for place in forgets.indices where forgets[place].behind == number {
            forgets[place].behind = nil
            forgets[place].dueAt = now
        }
    }

    private mutating func forgetCalls(_ now: UnixTime) -> [Call] {
        // A clock that was set back must not keep them.
        forgets.removeAll { one in
            let age = now.since(one.since)
            return age >= ZulipLimits.formerLife || age < .zero - ZulipLimits.formerLife
        }
        var calls: [Call] = []
        for place in forgets.indices {
            let one = forgets[place]
            if let askedAt = one.askedAt {
                let age = now.since(askedAt)
                guard age >= ZulipLimits.callLife || age < .zero else { continue }
            }
            guard one.dueAt <= now || one.dueAt.since(now) > ZulipLimits.longestWait else { continue }
            forgets[place].askedAt = now
            let name = one.profile == .v12 ? "device_id" : "push_account_id"
            let asked = ZulipDeviceCall(
                number: 0, kind: .forget, profile: one.profile,
                fields: [(name, Secret(String(one.id).utf8))])
            calls.append(call(.forget(one.profile, one.id), http(asked)))
        }
        return calls
    }

    // MARK: requests

    /// A form with the user's key.
    func http(_ call: ZulipDeviceCall) -> HTTPCall {
        request("POST", call.path, call.body, limitBytes: ZulipLimits.callAnswerBytes)
    }

    private mutating func call(_ ask: EventQueue.Ask) -> Call {
        let made: Call
        switch ask {
        case .fetch:
            let types = Array(#"["push_account","push_device","device","realm"]"#.utf8)
            let form = Form([("event_types", types), ("fetch_event_types", types)])
            made = call(
                .state,
                request(
                    "POST", "/api/v1/register", Secret(form.encoded()),
                    limitBytes: ZulipLimits.queueAnswerBytes))
        case .poll(let open):
            let path = events([("queue_id", open.id), ("last_event_id", String(open.last))])
            made = call(
                .events, request("GET", path, limitBytes: ZulipLimits.queueAnswerBytes),
                patience: KitLimits.longPatience)
        case .close(let id):
            return call(
                .other, request("DELETE", events([("queue_id", id)]), limitBytes: ZulipLimits.callAnswerBytes)
            )
        }
        asking = made.id
        return made
    }

    private func events(_ fields: [(name: String, value: String)]) -> String {
        let form = Form(fields.map { ($0.name, Array($0.value.utf8)) })
        return "/api/v1/events?" + String(decoding: form.encoded(), as: UTF8.self)
    }

    private func request(
        _ method: String, _ path: String, _ body: Secret = Secret([]), limitBytes: Int
    ) -> HTTPCall {
        var headers = [(name: "Authorization", value: login.authorization)]
        if method == "POST" {
            headers.append(("Content-Type", Secret("application/x-www-form-urlencoded".utf8)))
        }
        return HTTPCall(
            method: method, url: login.serverURL + path, headers: headers, body: body,
            answerLimitBytes: limitBytes)
    }
}
