public import PushModel
public import SealbellKit

// What came back, and what an app with an event queue of its own has seen.

extension ZulipDevice {
    /// Takes what came back for a call. Twice, late, or to a call that this device has not given in this run:
    /// nothing changes. An answer that is no HTTP answer counts as none.
    public mutating func answered(
        _ answer: CallAnswer, to call: Call, at now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) {
        guard let place = underWay.firstIndex(where: { $0.id == call.id }) else { return }
        let heard = ZulipDeviceAnswer(answer)
        switch underWay.remove(at: place).kind {
        case .settings: settle(settings: heard, now, &generator)
        case .routine(let number, let kind):
            take(.answer(call: number, heard), now, &generator)
            if kind == .register, isListening {
                // No event tells of a registration that was repeated and changed nothing; the state shows it,
                // and it is not to wait for a question that the server answers in a minute.
                if login.asksForEvents == .always { closeEvents() }
                queue.expect(at: now)
            }
            leaveIfLoggedOut()
            forget(behind: number, now)
        case .unwanted: forget(device: heard, now)
        case .forget(let profile, let id):
            settle(profile, id, AnswerVerdict(heard, now: now), now, &generator)
        case .state:
            // What was asked for before is older than what was seen since.
            guard asking == call.id, start.isDone else { return dropQueue(of: heard) }
            settle(state: heard, now, &generator)
        case .events: if asking == call.id, start.isDone { settle(events: heard, now, &generator) }
        case .other: break
        }
    }

    private mutating func settle(
        settings answer: ZulipDeviceAnswer, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) {
        start.askedAt = nil
        guard token != nil, !start.hasSettings else { return }
        // A page that is none of this protocol's says nothing.
        let settings = answer.status == 200 ? try? ZulipServerSettings(answer.body) : nil
        if settings == nil {
            start.failures = min(start.failures, ZulipLimits.countedFailures) + 1
            start.dueAt = now + ZulipLimits.callRetry.draw(start.failures, using: &generator)
        } else {
            start.hasSettings = true
            start.failures = 0
        }
        // Without them the route of the last run holds, and is not begun again at each failure.
        if settings != nil || !start.isDone { begin(settings, now, &generator) }
    }

    private mutating func begin(
        _ settings: ZulipServerSettings?, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) {
        guard let token else { return }
        // Only a login that is known to be another one ends what the last one has come to.
        if let lastLogin, !(lastLogin == login.digest) { take(.apiKey, now, &generator) }
        let event = ZulipStart(
            serverSettings: settings, build: login.build, token: push(token),
            requireEndToEnd: login.requireEndToEnd, marker: marker)
        guard take(.start(event), now, &generator) else { return }
        lastLogin = login.digest
        start.isDone = true
        start.hasNewToken = false
        if let state = start.state {
            start.state = nil
            take(.state(state), now, &generator)
        }
        guard login.asksForEvents != .never, core.routine.route?.profile != nil,
            core.routine.current?.id != nil, !core.routine.isLoggedOut
        else { return }
        queue.want(at: now)
    }

    /// Whether it is to hear what becomes of a call that was answered.
    private var isListening: Bool {
        switch login.asksForEvents {
        case .never: false
        case .whilePending: core.routine.shown == .pending
        case .always: true
        }
    }

    private mutating func settle(
        _ profile: ZulipProfile, _ id: Int64, _ verdict: AnswerVerdict, _ now: UnixTime,
        _ generator: inout some RandomNumberGenerator
    ) {
        guard let place = forgets.firstIndex(where: { $0.profile == profile && $0.id == id }) else { return }
        switch verdict {
        // A server of v11 has no such call, and one that does not take the login any more hears nothing.
        case .success, .refused, .loggedOut: forgets.remove(at: place)
        case .later(let asked):
            let failures = min(forgets[place].failures, ZulipLimits.countedFailures) + 1
            let drawn = ZulipLimits.callRetry.draw(failures, using: &generator)
            forgets[place].failures = failures
            forgets[place].dueAt = now + min(max(drawn, asked ?? .zero), ZulipLimits.longestWait)
            forgets[place].askedAt = nil
        }
    }

    // MARK: state and events

    /// Of a state that is of no use any more: its queue is not to stay.
    private mutating func dropQueue(of answer: ZulipDeviceAnswer) {
        let body = AnswerMembers(answer.body, atMost: ZulipLimits.queueAnswerBytes)
        if answer.status == 200, body.isSuccess, let id = body.queueID { queue.drop(id) }
    }

    private mutating func settle(
        state answer: ZulipDeviceAnswer, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) {
        let body = AnswerMembers(answer.body, atMost: ZulipLimits.queueAnswerBytes)
        switch AnswerVerdict(answer, body, now: now) {
        case .success:
            guard let id = body.queueID else { return queue.failed(nil, now, using: &generator) }
            guard take(.state(answer.body), now, &generator) else {
                queue.drop(id)
                return queue.failed(nil, now, using: &generator)
            }
            queue.fetched(id, last: body.last ?? -1, now)
        case .loggedOut:
            take(.keyRefused, now, &generator)
            queue.end()
        case .later(let asked): queue.failed(asked, now, using: &generator)
        // Whoever listens tries as often as where nobody answers.
        case .refused:
            let pause = login.asksForEvents == .always ? nil : ZulipLimits.laterLook
            queue.failed(pause, now, using: &generator)
        }
    }

    private mutating func settle(
        events answer: ZulipDeviceAnswer, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) {
        let body = AnswerMembers(answer.body, atMost: ZulipLimits.queueAnswerBytes)
        switch AnswerVerdict(answer, body, now: now) {
        case .success:
            // Events that cannot be taken are asked for no more: the next state has what they say.
            let isTaken = take(.events(answer.body), now, &generator)
            if isTaken {
                queue.polled(body.last, now, using: &generator)
            } else {
                queue.lost(now, using: &generator)
            }
        case .loggedOut:
            take(.keyRefused, now, &generator)
            queue.end()
        case .refused where body.code == "BAD_EVENT_QUEUE_ID": queue.lost(now, using: &generator)
        case .later(let asked): queue.failed(asked, now, using: &generator)
        case .refused: queue.failed(nil, now, using: &generator)
        }
    }

    private mutating func leaveIfLoggedOut() {
        if core.routine.isLoggedOut { closeEvents() }
    }

    /// Closes the event queue until the next start, as an app with ``ZulipLogin/Asking/always`` does when
    /// nobody looks at it. Ask ``due(at:using:)`` behind it. A question for events that is under way may be
    /// answered still, which changes nothing.
    public mutating func closeEvents() {
        queue.end()
        asking = nil
    }

    /// What an app with ``ZulipLogin/Asking/never`` has fetched, at each start and after a lost
    /// event queue: the whole answer to `POST /api/v1/register`, at most ``ZulipLimits/stateBytes``. Ask
    /// ``due(at:using:)`` behind it.
    ///
    /// - Throws: `.malformedContent` for what is no such answer: fetch it anew, later. Nothing has changed
    ///   then.
    public mutating func see(state: Secret, at now: UnixTime) throws(DeviceError) {
        guard start.isDone else {
            guard state.count <= ZulipLimits.stateBytes else { throw DeviceError(.tooLarge) }
            return start.state = state
        }
        try see(.state(state), now)
    }

    /// What came in its event queue: the whole answer to `GET /api/v1/events`, at most
    /// ``ZulipLimits/eventsBytes``, or one event of it. Ask ``due(at:using:)`` behind it.
    ///
    /// - Throws: `.malformedContent` for what are no such events: fetch the state anew. Nothing has changed
    ///   then.
    public mutating func see(events: Secret, at now: UnixTime) throws(DeviceError) {
        // Before the start there is nothing that they could change; the state has it all.
        if start.isDone { try see(.events(events), now) }
    }

    /// The server has answered 401 to a call of the app's own: nothing is called before a device is made with
    /// another API key.
    public mutating func seeRefusedLogin(at now: UnixTime) {
        var generator = SystemRandomNumberGenerator()
        take(.keyRefused, now, &generator)
        queue.end()
    }

    private mutating func see(_ event: ZulipDeviceEvent, _ now: UnixTime) throws(DeviceError) {
        var generator = SystemRandomNumberGenerator()
        guard take(event, now, &generator) else { throw DeviceError(.malformedContent, "malformedAnswer") }
        leaveIfLoggedOut()
    }
}

extension DeviceRoutine {
    var isLoggedOut: Bool { if case .loggedOut = halt { true } else { false } }
}

extension ZulipDeviceAnswer {
    init(_ answer: CallAnswer) {
        guard case .http(let status, let retryAfter, let body) = answer else {
            self = .none
            return
        }
        self.init(status: status, retryAfter: retryAfter, body: body)
    }
}
