import PushModel

// What the server shows of a registration, and what follows from it (§14.12).

extension ZulipRoutine {
    /// Where an account's state was seen.
    enum Sight: Sendable {
        /// Fetched whole: what is not there is not at the server.
        case fetched
        case event
    }

    // MARK: the account form

    /// - Parameter state: of the current id.
    mutating func see(
        _ state: ShownState, _ sight: Sight, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        routine.show(state, step.now)
        switch state {
        case .active: seeActive(&step)
        case .pending: seePending(sight, &step)
        case .none, .failed:
            routine.checkAt = nil
            // While a call is under way or waits, what is shown is what was before it.
            guard routine.underWay == nil, routine.dueAt == nil, let current = routine.current,
                let told = current.told, current.isAcknowledged
            else { return }
            seeLost(state, told, &step)
        }
    }

    private mutating func seeActive(_ step: inout RoutineStep<some RandomNumberGenerator>) {
        routine.losses = 0
        routine.isRetrying = false
        routine.checkAt = nil
        end([.notSetUp, .updateApp, .serverRefuses], &step)
        for place in routine.former.indices where routine.former[place].isToBeForgotten {
            routine.former[place].isToBeForgotten = false
            forget(routine.former[place].profile, routine.former[place].id, &step)
        }
        if routine.isLegacy {
            // Two registrations would show each message twice.
            routine.isLegacy = false
            step.actions.append(.endLegacy)
        }
    }

    private mutating func seePending(
        _ sight: Sight, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        routine.isRetrying = false
        guard let at = routine.acknowledged?.at, routine.current?.isAcknowledged == true else { return }
        let age = step.now.since(at)
        if age < .zero || age >= ZulipLimits.registrationGrace {
            if sight == .fetched {
                routine.checkAt = nil
                notify(.notSetUp, &step)
            } else {
                routine.checkAt = routine.checkAt ?? step.now + ZulipLimits.registrationGrace
            }
        } else {
            routine.checkAt = routine.checkAt ?? at + ZulipLimits.registrationGrace
        }
    }

    mutating func seeLost(
        _ state: ShownState, _ told: HeldRegistration.Told,
        _ step: inout RoutineStep<some RandomNumberGenerator>
    ) {
        if state == .failed(code: "INVALID_BOUNCER_PUBLIC_KEY") { routine.refusedKey = told.bouncerKey }
        if routine.isKeyRefused { return notify(.updateApp, &step) }
        routine.losses = min(routine.losses, ZulipLimits.countedFailures) + 1
        routine.isRetrying = true
        routine.dueAt =
            routine.losses == 1
            ? step.now
            : step.now + ZulipLimits.lossRetry.draw(routine.losses - 1, using: &step.generator)
    }

    // MARK: v12

    /// Columns of this device, or that it has none.
    mutating func see(
        columns: ZulipDeviceState?, _ sight: Sight, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        guard let columns else {
            // A state that was fetched while the device was being made does not have it yet.
            if sight == .fetched, let at = routine.current?.givenAt, step.now >= at,
                step.now.since(at) < ZulipLimits.registrationGrace
            {
                return
            }
            return loseDevice(&step)
        }
        routine.columns = columns
        observe(columns, now: step.now)
        if sight == .fetched, columns.isStuck(step.now), let current = routine.current,
            current.isAcknowledged
        {
            return try replace(with: .v12, &step)
        }
        see(columns.shown, sight, &step)
        wantWhatLacks(step.now)
    }

    /// The server has no such device: it is logged out there, or came back from a backup.
    private mutating func loseDevice(_ step: inout RoutineStep<some RandomNumberGenerator>) {
        routine.current?.id = nil
        routine.columns = nil
        routine.checkAt = nil
        routine.show(.none, step.now)
        if case .refused = routine.halt {
            // Another device is another call.
            routine.halt = nil
            routine.dueAt = nil
            end([.serverRefuses], &step)
        }
        guard routine.underWay == nil, routine.dueAt == nil else { return }
        guard let told = routine.current?.told else { return routine.want(by: step.now) }
        seeLost(.none, told, &step)
    }

    /// A call is due where the columns lack something, unless one is under way or waits for its time.
    mutating func wantWhatLacks(_ now: UnixTime) {
        guard let columns = routine.columns, routine.underWay == nil, routine.dueAt == nil,
            !routine.isKeyRefused, lacks(columns, now)
        else { return }
        routine.dueAt = now
    }

    private func lacks(_ columns: ZulipDeviceState, _ now: UnixTime) -> Bool {
        guard let newest = newestKey else { return false }
        guard let token = routine.token else { return false }
        let id = TokenID(token: token.token)
        return !columns.isBusy(with: id)
            && (columns.pushKeyID != newest.id || needsToken(columns, id, now))
    }

    /// What the server makes of a call that it took (§3.3).
    mutating func noteColumns(_ call: DeviceRoutine.CallUnderWay, _ now: UnixTime) {
        guard var columns = routine.columns else { return }
        columns.pushKeyID = newestKey?.id
        if call.hasToken, let told = routine.current?.told {
            columns.pendingTokenID = TokenID(token: told.token)
            columns.tokenUpdatedAt = now.seconds
            columns.errorCode = nil
        }
        routine.columns = columns
    }
}

extension ZulipDeviceState {
    /// The specification's words, of the four columns.
    var shown: ShownState {
        if let errorCode { return .failed(code: errorCode) }
        if pendingTokenID != nil { return .pending }
        return tokenID == nil ? .none : .active
    }

    /// Whether another token is pending: then the server takes none (§3.3).
    func isBusy(with id: TokenID) -> Bool { errorCode == nil && pendingTokenID.map { $0 != id } ?? false }

    /// Whether it is pending for longer than any relay takes the blob, and the server says nothing of it: a
    /// deployed server has given it up then, and takes no other for this device (§5.6).
    func isStuck(_ now: UnixTime) -> Bool {
        guard errorCode == nil, pendingTokenID != nil, let tokenUpdatedAt else { return false }
        return now.since(UnixTime(seconds: tokenUpdatedAt)) >= ZulipLimits.stuckAfter
    }
}

extension ZulipRoutine {
    // MARK: what a server says

    mutating func readState(
        _ body: Secret, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        guard let current = routine.current, let id = current.id else { return }
        if current.profile == .v12 {
            return try see(columns: try ZulipServerView.device(id, in: body), .fetched, &step)
        }
        let shown = try ZulipServerView.account(id, current.profile, in: body)
        // A server of 11.x takes no repeat of what is pending, and may have given it up (§3.7).
        if current.profile == .v11, shown == .pending, current.isAcknowledged,
            let at = routine.acknowledged?.at, step.now.since(at) >= ZulipLimits.stuckAfter
        {
            return try replace(with: .v11, &step)
        }
        see(shown, .fetched, &step)
    }

    mutating func readEvents(
        _ body: Secret, _ step: inout RoutineStep<some RandomNumberGenerator>
    ) throws(ZulipError) {
        guard let current = routine.current, let id = current.id else { return }
        for event in try ZulipServerView.events(id, current.profile, in: body) {
            switch event {
            case .account(let shown): see(shown, .event, &step)
            case .deviceAdded: break
            case .deviceRemoved: try see(columns: nil, .event, &step)
            case .columns(let changes):
                // Before the state was fetched, a change of it tells nothing.
                guard var columns = routine.columns else { continue }
                changes.apply(to: &columns)
                try see(columns: columns, .event, &step)
            }
        }
    }
}
