public import PushModel
public import SealbellKit

extension ZulipRegistrations {
    /// Takes the relay's answer to a call.
    ///
    /// - Returns: nothing for a call that is not under way: its registration was replaced, forgotten or
    ///   settled, or this very try was answered before (§14.11, the replay clause).
    public mutating func settle(
        _ id: ZulipQueuedCall.ID, _ answer: CallAnswer, now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) -> ZulipStep {
        var step = ZulipStep()
        guard underWay[id.item] == id.attempt, var item = queue[id.item] else { return step }
        underWay[id.item] = nil
        switch ZulipOrigin.registrationOutcome(answer, profile: profile(of: item)) {
        case .done(let deviceID): confirm(item, deviceID, now, &step)
        case .failed(let code, let alert):
            if let alert { step.alerts.append(alert) }
            drop(item.id, &step)
            fail(item.subject, code, now, &step)
        case .retry(let alert):
            item.tries = id.attempt
            item.nextTry =
                now
                + ZulipOrigin.retryDelay(
                    item.tries, asked: answer.pause(now: now), first: times.first, longest: times.longest,
                    using: &generator)
            if let alert, !item.hasTold {
                item.hasTold = true
                step.alerts.append(alert)
            }
            queue[item.id] = item
            step.changes.append(.item(item))
        }
        return step
    }

    /// Takes the relay's answer to the call of an item, for a server whose calls are owed elsewhere, and
    /// tried again there: which try it was does not matter, because an item that is there was not answered
    /// for good.
    ///
    /// - Returns: `nil` where there is no such item: its registration was replaced, forgotten or settled.
    public mutating func settle(
        item id: UInt64, _ answer: CallAnswer, now: UnixTime,
        using generator: inout some RandomNumberGenerator
    ) -> ZulipStep? {
        guard let item = queue[id] else { return nil }
        return settle(begin(item).id, answer, now: now, using: &generator)
    }

    /// Time has passed, or the process has started: what is due is called, what has waited too long ends,
    /// notes go.
    public mutating func tick(now: UnixTime) -> ZulipStep {
        var step = ZulipStep()
        for item in queue.values.sorted(by: { ($0.nextTry, $0.id) < ($1.nextTry, $1.id) }) {
            if isOrphan(item) {
                drop(item.id, &step)
            } else if now.since(item.calledAt) > end(of: item) {
                step.alerts.append(.registrationExpired)
                drop(item.id, &step)
                fail(item.subject, Self.expired, now, &step)
            } else if underWay[item.id] == nil, isDue(item, now) {
                step.calls.append(begin(item))
            }
        }
        for subject in stranded { fail(subject, Self.expired, now, &step) }
        for note in notes.values.sorted(by: { $0.id < $1.id })
        where now.since(note.at) > ZulipOriginLimits.noteLife {
            removeNote(note.id, &step)
            step.events.append(.accountRemoved(note.id, code: nil))
        }
        return step
    }

    /// The relay says of ids that nobody is behind them any more, in an answer to a notification (§14.6) or
    /// in the stale list (§14.7). A record with a registration under way becomes pending instead of going.
    ///
    /// - Parameter realm: of the call that was answered; another realm's ids are none of this user's.
    /// - Parameter asked: when that call was made. A record that the relay confirmed since is alive: what the
    ///   answer says is older.
    public mutating func end(
        devices ids: some Sequence<Int64>, realm: String, askedAt asked: UnixTime
    ) -> ZulipStep {
        var step = ZulipStep()
        guard realm == self.realm else { return step }
        let dead = Set(ids)
        for row in accounts.values.sorted(by: { $0.id < $1.id }) {
            guard let id = row.deviceID, dead.contains(id), !row.isConfirmed(since: asked) else { continue }
            if row.registration != nil {
                var pending = row
                pending.deviceID = nil
                pending.confirmedAt = nil
                write(pending, &step)
                if row.profile == .zap { step.events.append(.accountUpdated(row.id, .pending)) }
            } else {
                remove(row, &step)
                if row.profile == .zap { step.events.append(.accountRemoved(row.id, code: nil)) }
            }
        }
        return step
    }

    /// The same of v12's ids: the token goes, its device stays (§5.6).
    public mutating func end(
        tokens ids: some Sequence<TokenID>, realm: String, askedAt asked: UnixTime
    ) -> ZulipStep {
        var step = ZulipStep()
        guard realm == self.realm else { return step }
        let dead = Set(ids)
        for var row in devices.values.sorted(by: { $0.id < $1.id }) {
            guard let id = row.tokenID, dead.contains(id), !row.isConfirmed(since: asked) else { continue }
            row.tokenID = nil
            row.kind = nil
            row.confirmedAt = nil
            write(row, &step)
            var change = ZulipEvent.DeviceChange()
            change.tokenID = .some(nil)
            step.events.append(.deviceUpdated(row.id, change))
        }
        return step
    }

    // MARK: parts

    private func profile(of item: ZulipQueueItem) -> ZulipProfile {
        switch item.subject {
        case .device: .v12
        case .account(let id): accounts[id]?.profile ?? .zap
        }
    }

    /// Its record names another registration, or none is there: rows of a store that was mended by hand.
    private func isOrphan(_ item: ZulipQueueItem) -> Bool {
        switch item.subject {
        case .account(let id): accounts[id]?.registration != item.id
        case .device(let id): devices[id]?.registration != item.id
        }
    }

    /// Records that wait for an answer, and have no item: of such a store, too. Their clients register again.
    private var stranded: [ZulipQueueItem.Subject] {
        let accounts = accounts.values.filter { $0.isPending && !isQueued($0.registration) }
        let devices = devices.values.filter {
            $0.pendingTokenID != nil && $0.errorCode == nil && !isQueued($0.registration)
        }
        return accounts.map(\.id).sorted().map { .account($0) }
            + devices.map(\.id).sorted().map { .device($0) }
    }

    private func isQueued(_ item: UInt64?) -> Bool { item.map { queue[$0] != nil } ?? false }

    private static let expired = "REQUEST_EXPIRED"

    /// A moment further ahead than any wait is one of a clock that was set back since.
    private func isDue(_ item: ZulipQueueItem, _ now: UnixTime) -> Bool {
        item.nextTry <= now || item.nextTry.since(now) > times.longestWait
    }

    private mutating func confirm(
        _ item: ZulipQueueItem, _ deviceID: Int64?, _ now: UnixTime, _ step: inout ZulipStep
    ) {
        drop(item.id, &step)
        switch item.subject {
        case .account(let id):
            guard var row = accounts[id] else { return }
            let wasPending = row.deviceID == nil
            row.deviceID = deviceID
            row.confirmedAt = now
            row.registration = nil
            write(row, &step)
            guard wasPending else { return }
            step.events.append(
                row.profile == .zap ? .accountUpdated(id, .active) : .pushDevice(id, .active, code: nil))
        case .device(let id):
            guard var row = devices[id], let tokenID = row.pendingTokenID else { return }
            row.tokenID = tokenID
            row.kind = item.registration.kind
            row.pendingTokenID = nil
            row.confirmedAt = now
            row.registration = nil
            write(row, &step)
            var change = ZulipEvent.DeviceChange()
            change.tokenID = .some(tokenID)
            change.pendingTokenID = .some(nil)
            step.events.append(.deviceUpdated(id, change))
        }
    }

    /// The relay refuses for good, or the item has waited too long. It is dropped already.
    private mutating func fail(
        _ subject: ZulipQueueItem.Subject, _ code: String, _ now: UnixTime, _ step: inout ZulipStep
    ) {
        switch subject {
        case .device(let id):
            guard var row = devices[id] else { return }
            row.errorCode = code
            row.registration = nil
            write(row, &step)
            var change = ZulipEvent.DeviceChange()
            change.errorCode = .some(code)
            step.events.append(.deviceUpdated(id, change))
        case .account(let id):
            guard var row = accounts[id] else { return }
            row.registration = nil
            switch row.profile {
            case .v11, .v12:
                row.errorCode = code
                write(row, &step)
                step.events.append(.pushDevice(id, .failed, code: code))
            case .zap where code == Self.expired && row.deviceID != nil:
                // A live device is not taken away because its repeat was late.
                write(row, &step)
            case .zap:
                remove(row, &step)
                note(ZulipRegistrationFailure(id: id, code: code, at: now), &step)
                step.events.append(.accountRemoved(id, code: code))
            }
        }
    }

    /// Keeps the reason in sight; where there are too many, the oldest goes as at its end.
    private mutating func note(_ note: ZulipRegistrationFailure, _ step: inout ZulipStep) {
        notes[note.id] = note
        step.changes.append(.note(note))
        let others = notes.values.filter { $0.id != note.id }
        guard others.count >= limit, let oldest = others.min(by: { ($0.at, $0.id) < ($1.at, $1.id) }) else {
            return
        }
        removeNote(oldest.id, &step)
        step.events.append(.accountRemoved(oldest.id, code: nil))
    }
}

extension ZulipQueueTimes {
    /// What a relay may ask for, and the jitter above it.
    fileprivate var longestWait: Duration {
        max(longest, .seconds(86_400) + ZulipOriginLimits.askedJitter)
    }
}

extension ZulipAccountRow {
    fileprivate func isConfirmed(since asked: UnixTime) -> Bool { confirmedAt.map { $0 > asked } ?? false }
}

extension ZulipDeviceRow {
    fileprivate func isConfirmed(since asked: UnixTime) -> Bool { confirmedAt.map { $0 > asked } ?? false }
}
