import Primitives
package import PushModel

// The routine of §14.12: what happens to a phone goes in, what the app has to do comes out.

extension ZulipRoutine {
    /// A marker for ``ZulipStart/marker``: 16 random bytes, which tell nothing.
    package static func newMarker(using generator: inout some RandomNumberGenerator) -> Secret {
        randomSecret(ZulipLimits.markerBytes.lowerBound, &generator)
    }

    /// Takes what has happened. Keep ``encoded()`` afterwards, before the actions are carried out: an id that
    /// was told and then lost would be a second registration.
    ///
    /// - Parameter others: the phone's other accounts, whose ids are not given twice.
    /// - Parameter generator: on a phone the system's.
    /// - Returns: what the app has to do, in that order.
    /// - Throws: `.invalidRegistration` for a token that no relay takes; `.malformedAnswer` for a state or
    ///   events that are not of the protocol: fetch the state anew, later. Nothing has changed then.
    package mutating func take(
        _ event: ZulipDeviceEvent, now: UnixTime, beside others: [ZulipRoutine] = [],
        using generator: inout some RandomNumberGenerator
    ) throws(ZulipError) -> [ZulipDeviceAction] {
        guard !routine.isOver else { return [] }
        var step = RoutineStep(now: now, generator: generator, beside: others)
        defer { generator = step.generator }
        var next = self
        let before = routine.deadline
        var isStart = false
        if case .answer = event {} else { next.loseOldCall(now) }
        switch event {
        case .start(let start):
            isStart = true
            try next.start(start, &step)
        case .token(let token):
            try token.check()
            try next.adopt(token, &step)
        case .answer(let call, let answer): next.settle(call, answer, &step)
        case .state(let body): try next.readState(body, &step)
        case .events(let body): try next.readEvents(body, &step)
        case .tick: next.look(&step)
        case .build(let build): next.adopt(build, &step)
        case .apiKey: next.logIn(&step)
        case .keyRefused: next.logOut(code: nil, &step)
        case .again: next.registerAgain(now)
        case .logout: next.leave(&step)
        }
        try next.callIfDue(&step)
        // At a start the timers of the last run are gone.
        if let deadline = next.routine.deadline, deadline > now, isStart || deadline != before {
            step.actions.append(.timer(deadline))
        }
        self = next
        return step.actions
    }

    /// When ``ZulipDeviceEvent/tick`` is wanted; `nil` when nothing waits for time.
    package var nextDeadline: UnixTime? { routine.deadline }

    /// `last_acked_push_token` of the specification: what the server last took, exactly as the system gave
    /// it.
    package var lastAcknowledgedToken: Secret? { routine.acknowledged?.token }

    /// Asks the server for a test notification to this phone (§3.4). Its answer changes nothing here;
    /// `NO_ACTIVE_PUSH_DEVICE` in it says that nothing is set up yet.
    ///
    /// - Returns: `nil` before anything is registered.
    package mutating func testNotification() -> ZulipDeviceCall? {
        guard let current = routine.current, let id = current.id, current.isAcknowledged else { return nil }
        return call(.test, current.profile, id)
    }

    // MARK: of the app

    private mutating func start(
        _ start: ZulipStart, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        try start.token?.check()
        guard ZulipLimits.markerBytes.contains(start.marker.count) else {
            throw ZulipError(.invalidRequest)
        }
        if let marker = routine.marker, !(marker == start.marker) {
            // The data of another phone, out of a backup. Its registration is left alone.
            keys = []
            routine = DeviceRoutine()
        }
        routine.marker = start.marker
        routine.loggedInAt = routine.loggedInAt ?? step.now
        routine.isNoticeShown = false
        routine.columns = nil
        forgetOldIDs(step.now)
        bringForward(step.now)
        if let settings = start.serverSettings {
            routine.route = Self.route(
                serverSettings: settings, profiles: start.build.profiles,
                requireEndToEnd: start.requireEndToEnd)
        }
        endRefusal(step.now)
        adopt(start.build, &step)
        switch routine.route {
        case .refused:
            if routine.isLegacy { step.actions.append(.endLegacy) }
            routine.isLegacy = false
            notify(.cannotEncrypt, &step)
            routine.token = start.token ?? routine.token
        case .legacy:
            end([.cannotEncrypt], &step)
            routine.isLegacy = true
            step.actions.append(.legacy)
            routine.token = start.token ?? routine.token
        case .encrypted(let profile):
            end([.cannotEncrypt], &step)
            try follow(profile, &step)
            if let token = start.token { try adopt(token, &step) }
            repeatMonthly(step.now)
        case nil: routine.token = start.token ?? routine.token
        }
    }

    /// A clock that was set back must not put anything off.
    private mutating func bringForward(_ now: UnixTime) {
        if let dueAt = routine.dueAt, dueAt.since(now) > ZulipLimits.longestWait { routine.dueAt = now }
        if let checkAt = routine.checkAt, checkAt.since(now) > ZulipLimits.registrationGrace {
            routine.checkAt = now + ZulipLimits.registrationGrace
        }
    }

    /// A call whose answer never came is made again.
    private mutating func loseOldCall(_ now: UnixTime) {
        guard let call = routine.underWay else { return }
        let age = now.since(call.since)
        guard age >= ZulipLimits.callLife || age < .zero else { return }
        routine.underWay = nil
        routine.want(by: now)
    }

    /// A call that the server refused is made again at a start, after a day.
    private mutating func endRefusal(_ now: UnixTime) {
        guard case .refused(_, let since) = routine.halt else { return }
        let age = now.since(since)
        guard age >= ZulipLimits.refusalLife || age < .zero else { return }
        routine.halt = nil
        routine.want(by: now)
    }

    /// Makes a registration of that profile the current one.
    private mutating func follow(
        _ profile: ZulipProfile, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        if routine.current?.profile != profile {
            try replace(with: profile, &step)
        } else if routine.current?.isAcknowledged == false, routine.underWay == nil {
            // The first call has not got through yet, and waits for its turn where it failed.
            routine.dueAt = routine.dueAt ?? step.now
        }
        if profile == .v12 {
            tendKeys(now: step.now, taken: step.takenKeys, using: &step.generator)
        } else {
            retireKeys(step.now)
        }
    }

    /// *"The client should also repeat the registration procedure monthly"*. In v12 the columns say when.
    private mutating func repeatMonthly(_ now: UnixTime) {
        guard routine.current?.profile != .v12, let at = routine.acknowledged?.at,
            routine.current?.isAcknowledged == true
        else { return }
        let age = now.since(at)
        // A clock that was set back must not put it off.
        if age >= ZulipLimits.registrationRepeat || age < .zero { routine.want(by: now) }
    }

    private mutating func adopt(
        _ token: DevicePushToken, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        routine.token = token
        guard routine.route?.profile != nil, let current = routine.current else {
            // The older protocol tells its server, too.
            if routine.route == .legacy, !step.actions.contains(where: \.isLegacy) {
                step.actions.append(.legacy)
            }
            return
        }
        guard let told = current.told else {
            if routine.underWay == nil { routine.dueAt = routine.dueAt ?? step.now }
            return
        }
        guard !token.isSame(as: told) else { return }
        if current.profile == .v12 {
            // The same device gets another token, once its columns are known.
            if routine.underWay == nil { routine.want(by: step.now) }
        } else {
            try replace(with: current.profile, &step)
        }
    }

    private mutating func adopt(
        _ build: ZulipAppBuild, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        routine.build = build
        guard let refused = routine.refusedKey, refused != build.bouncerKey else { return }
        routine.refusedKey = nil
        routine.isRetrying = true
        routine.want(by: step.now)
    }

    private mutating func logIn(_ step: inout RoutineStep<some RandomNumberGenerator>) {
        routine.loggedInAt = step.now
        end([.logInAgain], &step)
        if case .loggedOut = routine.halt { routine.halt = nil }
    }

    mutating func logOut(code: String?, _ step: inout RoutineStep<some RandomNumberGenerator>) {
        routine.halt = .loggedOut(code: code)
        routine.want(by: step.now)
        notify(.logInAgain, &step)
    }

    private mutating func registerAgain(_ now: UnixTime) {
        guard let current = routine.current, routine.underWay == nil else { return }
        if current.profile == .v12, current.id != nil {
            // A server that has the token pending refuses it once more (§3.3).
            guard var columns = routine.columns, columns.pendingTokenID == nil || columns.errorCode != nil
            else { return }
            columns.tokenUpdatedAt = nil
            routine.columns = columns
        }
        if case .refused = routine.halt { routine.halt = nil }
        routine.dueAt = now
    }

    /// Best effort, once.
    private mutating func leave(_ step: inout RoutineStep<some RandomNumberGenerator>) {
        for one in routine.former where one.isToBeForgotten { forget(one.profile, one.id, &step) }
        if let current = routine.current, let id = current.id,
            // What was told may be there, even where no answer came.
            current.told != nil || current.profile == .v12
        {
            forget(current.profile, id, &step)
        }
        if routine.isLegacy { step.actions.append(.endLegacy) }
        keys = []
        routine = DeviceRoutine()
        routine.isOver = true
    }

    /// The clock: a timer whose reason is gone does nothing.
    private mutating func look(_ step: inout RoutineStep<some RandomNumberGenerator>) {
        guard let checkAt = routine.checkAt, checkAt <= step.now else { return }
        routine.checkAt = nil
        if routine.shown == .pending { notify(.notSetUp, &step) }
    }

    // MARK: parts

    /// Takes a fresh id. The former one opens what still arrives, and is forgotten once the new is active.
    mutating func replace(
        with profile: ZulipProfile, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        let old = routine.current
        if let old, let id = old.id {
            routine.former.append(
                FormerRegistration(
                    profile: old.profile, id: id, key: old.key, since: step.now,
                    isToBeForgotten: old.isAcknowledged || old.profile == .v12, call: old.told?.call))
            if routine.former.count > ZulipLimits.formerRegistrations { routine.former.removeFirst() }
        }
        routine.current = try Self.registration(profile, after: old, avoiding: routine.former, &step)
        // The answer to the former one's call changes nothing of this one.
        routine.underWay = nil
        routine.columns = nil
        routine.checkAt = nil
        routine.failures = 0
        routine.losses = 0
        routine.isRetrying = false
        if case .refused = routine.halt { routine.halt = nil }
        routine.show(.none, step.now)
        routine.dueAt = step.now
    }

    /// - Parameter old: whose key it has where that is of the same profile: *"Use a fresh
    ///   `push_account_id`"*, and nothing else.
    private static func registration(
        _ profile: ZulipProfile, after old: HeldRegistration?, avoiding former: [FormerRegistration],
        _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) -> HeldRegistration {
        let same = old?.profile == profile ? old?.key : nil
        switch profile {
        case .v12: return HeldRegistration(profile: profile, id: nil, key: .listed)
        case .zap, .v11:
            let taken = step.takenAccounts.union(former.map(\.id))
            var id = Int64.random(in: 1 ... .max, using: &step.generator)
            // Ends: a phone has a few dozen ids out of 2⁶³.
            while taken.contains(id) { id = Int64.random(in: 1 ... .max, using: &step.generator) }
            if let same { return HeldRegistration(profile: profile, id: id, key: same) }
            return HeldRegistration(profile: profile, id: id, key: try newKey(profile, &step))
        }
    }

    private static func newKey(
        _ profile: ZulipProfile, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) -> RegistrationKey {
        let secret = randomSecret(32, &step.generator)
        if profile == .v11 { return .pushKey(PushKey(key: secret)) }
        // 32 bytes always form a private key.
        do { return .pair(try X25519KeyPair(privateKey: secret)) } catch { throw ZulipError(.invalidPushKey) }
    }

    mutating func forget(
        _ profile: ZulipProfile, _ id: Int64, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        // Servers of v11 have no such call and answer 404. One that serves the other profiles too, as after
        // its update, takes the account away: its token lives on where the app has only changed its profile.
        step.actions.append(.call(call(.forget, profile, id)))
    }

    /// A call that names a registration and nothing else.
    private mutating func call(
        _ kind: ZulipDeviceCall.Kind, _ profile: ZulipProfile, _ id: Int64
    ) -> ZulipDeviceCall {
        routine.lastCall += 1
        let name = profile == .v12 ? "device_id" : "push_account_id"
        return ZulipDeviceCall(
            number: routine.lastCall, kind: kind, profile: profile,
            fields: [(name, Secret(String(id).utf8))])
    }

    /// Tells the user, once in each run of the app.
    mutating func notify(
        _ notice: ZulipNotice, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        guard routine.notice != notice || !routine.isNoticeShown else { return }
        routine.notice = notice
        routine.isNoticeShown = true
        step.actions.append(.notice(notice))
    }

    mutating func end(
        _ notices: Set<ZulipNotice>, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        guard let notice = routine.notice, notices.contains(notice) else { return }
        routine.notice = nil
        routine.isNoticeShown = false
        step.actions.append(.endNotice)
    }

    private mutating func forgetOldIDs(_ now: UnixTime) {
        routine.former.removeAll { one in
            let age = now.since(one.since)
            return age >= ZulipLimits.formerLife && !one.isToBeForgotten
        }
    }
}

extension ZulipDeviceAction {
    var isLegacy: Bool { if case .legacy = self { true } else { false } }
}

extension DevicePushToken {
    /// - Throws: `.invalidRegistration` for a token that no relay takes.
    func check() throws(ZulipError) {
        _ = try RegistrationPlaintext(
            parsing: RegistrationPlaintext(kind: kind, token: token, timestamp: 0, appID: appID).serialized())
    }
}
