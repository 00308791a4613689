public import PushModel
import WireFormats

/// One user's registrations at an origin, in all profiles: records, queue items and notes, and what follows
/// from everything that happens to them (§3.3, §3.7, §14.4, §14.10, §14.11).
///
/// A state machine without clock, network, disk or randomness of its own. What happens goes in; changes to
/// commit, events for the user's clients, calls to make and alerts come out (``ZulipStep``). The caller
/// commits the changes before it does the rest, and hands back what calls were answered. After a restart it
/// is made of the rows again; a call whose answer was lost is then made again.
///
/// What holds at every moment: a record that is neither confirmed nor refused has a queue item, and every
/// item is the newest registration of its record. An answer counts once, and only while its item is there.
public struct ZulipRegistrations: Sendable {
    /// The realm of the user: canonical lower-case UUID.
    public let realm: String
    /// By `push_account_id`: v11 and the specification's own profile.
    public internal(set) var accounts: [Int64: ZulipAccountRow] = [:]
    /// By `device_id`: v12.
    public internal(set) var devices: [Int64: ZulipDeviceRow] = [:]
    /// By `push_account_id`.
    public internal(set) var notes: [Int64: ZulipRegistrationFailure] = [:]
    /// By id: registrations that the relay has not answered for good.
    public internal(set) var queue: [UInt64: ZulipQueueItem] = [:]
    /// Items with a call under way, and its try.
    var underWay: [UInt64: Int] = [:]
    let times: ZulipQueueTimes
    let limit: Int

    /// - Parameter limit: records of the user, and as many devices of v12, and as many notes.
    public init(
        realm: String, accounts: [ZulipAccountRow] = [], devices: [ZulipDeviceRow] = [],
        notes: [ZulipRegistrationFailure] = [], queue: [ZulipQueueItem] = [],
        times: ZulipQueueTimes = ZulipQueueTimes(),
        limit: Int = ZulipOriginLimits.recordsPerUser
    ) {
        self.realm = realm
        self.times = times
        self.limit = limit
        for row in accounts { self.accounts[row.id] = row }
        for row in devices { self.devices[row.id] = row }
        for note in notes { self.notes[note.id] = note }
        for item in queue { self.queue[item.id] = item }
    }

    /// The devices that a notification for this user goes to, in all profiles. One that the relay has not
    /// confirmed yet is not among them.
    public var targets: [ZulipTarget] {
        devices.values.sorted { $0.id < $1.id }.compactMap(\.target)
            + accounts.values.sorted { $0.id < $1.id }.map(\.target).filter(\.isConfirmed)
    }

    /// When ``tick(now:)`` may have something to do; `nil` when nothing waits for time alone.
    public var nextDeadline: UnixTime? {
        let items = queue.values.map { item in
            let end = item.calledAt + end(of: item) + .milliseconds(1)
            return underWay[item.id] == nil ? min(item.nextTry, end) : end
        }
        let ends = notes.values.map { $0.at + ZulipOriginLimits.noteLife + .milliseconds(1) }
        return (items + ends).min()
    }

    /// The state as `POST /api/v1/register` shows it: the member of a profile, one JSON object (§3.5, §3.7,
    /// §14.10).
    public func state(_ profile: ZulipProfile) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        switch profile {
        case .v12:
            for row in devices.values.sorted(by: { $0.id < $1.id }) {
                writer.key(String(row.id))
                row.write(&writer)
            }
        case .v11:
            for row in rows(of: .v11) {
                writer.key(String(row.id))
                writer.beginObject()
                writer.member("status", row.status.rawValue)
                writer.optional("error_code", row.errorCode)
                writer.endObject()
            }
        case .zap:
            for row in rows(of: .zap) {
                writer.key(String(row.id))
                writer.beginObject()
                writer.member("status", row.status.rawValue)
                writer.endObject()
            }
            for note in notes.values.sorted(by: { $0.id < $1.id }) {
                writer.key(String(note.id))
                writer.beginObject()
                writer.member("status", ZulipEvent.Status.failed.rawValue)
                writer.member("error_code", note.code)
                writer.endObject()
            }
        }
        writer.endObject()
        return writer.bytes
    }

    private func rows(of profile: ZulipProfile) -> [ZulipAccountRow] {
        accounts.values.filter { $0.profile == profile }.sorted { $0.id < $1.id }
    }

    // MARK: parts that all events share

    /// How long an item is tried, from the client's call on.
    func end(of item: ZulipQueueItem) -> Duration {
        if case .account(let id) = item.subject, accounts[id]?.profile == .zap { return times.end }
        return min(times.end, ZulipOriginLimits.deployedRegistrationEnd)
    }

    /// Takes a registration in, in place of the item that the record had, and makes its first call.
    ///
    /// - Returns: what the record notes as its newest registration.
    mutating func enqueue(
        _ registration: SealedRegistration, for subject: ZulipQueueItem.Subject, replacing old: UInt64?,
        now: UnixTime, _ step: inout ZulipStep, _ generator: inout some RandomNumberGenerator
    ) -> UInt64 {
        drop(old, &step)
        var id = generator.next()
        // Ends: an item in a hundred would have to have each of the numbers drawn.
        while queue[id] != nil { id = generator.next() }
        let item = ZulipQueueItem(
            id: id, subject: subject, registration: registration, calledAt: now, nextTry: now)
        queue[id] = item
        step.changes.append(.item(item))
        step.calls.append(begin(item))
        return id
    }

    mutating func drop(_ item: UInt64?, _ step: inout ZulipStep) {
        guard let item, queue.removeValue(forKey: item) != nil else { return }
        underWay[item] = nil
        step.changes.append(.removeItem(item))
    }

    mutating func begin(_ item: ZulipQueueItem) -> ZulipQueuedCall {
        let attempt = item.tries &+ 1
        underWay[item.id] = attempt
        return ZulipQueuedCall(
            id: ZulipQueuedCall.ID(item: item.id, attempt: attempt), realm: realm,
            registration: item.registration)
    }

    mutating func write(_ row: ZulipAccountRow, _ step: inout ZulipStep) {
        accounts[row.id] = row
        step.changes.append(.account(row))
    }

    mutating func write(_ row: ZulipDeviceRow, _ step: inout ZulipStep) {
        devices[row.id] = row
        step.changes.append(.device(row))
    }

    /// Removes a record and its item.
    mutating func remove(_ row: ZulipAccountRow, _ step: inout ZulipStep) {
        drop(row.registration, &step)
        accounts[row.id] = nil
        step.changes.append(.removeAccount(row.id))
    }

    @discardableResult
    mutating func removeNote(_ id: Int64, _ step: inout ZulipStep) -> Bool {
        guard notes.removeValue(forKey: id) != nil else { return false }
        step.changes.append(.removeNote(id))
        return true
    }
}

/// When a registration is tried again, and until when (§14.11).
public struct ZulipQueueTimes: Sendable, Hashable {
    /// The wait behind the first try, 30 seconds as a rule, doubled each time.
    public var first: Duration
    /// The longest wait between two tries.
    public var longest: Duration
    /// Of the specification's own profile; v12 and v11 end with their blob, after a day.
    public var end: Duration

    /// - Parameter first: 30 seconds unless said otherwise.
    /// - Parameter longest: an hour unless said otherwise.
    /// - Parameter end: seven days unless said otherwise.
    public init(
        first: Duration = ZulipOriginLimits.firstRetry, longest: Duration = ZulipOriginLimits.longestRetry,
        end: Duration = ZulipOriginLimits.zapRegistrationEnd
    ) {
        self.first = first
        self.longest = longest
        self.end = end
    }
}

extension ZulipAccountRow {
    var status: ZulipEvent.Status {
        errorCode != nil ? .failed : deviceID != nil ? .active : .pending
    }

    var target: ZulipTarget {
        switch key {
        case .zap(let key): ZulipTarget(deviceID: deviceID, key: key)
        case .v11(let key): ZulipTarget(kind: kind, deviceID: deviceID, accountID: id, key: key)
        }
    }
}

extension ZulipDeviceRow {
    /// Where its pushes go; `nil` before the relay has confirmed a token, or without a push key.
    public var target: ZulipTarget? {
        guard let kind, let tokenID, let keyID, let key else { return nil }
        return ZulipTarget(kind: kind, tokenID: tokenID, pushKeyID: keyID, key: key)
    }

    fileprivate func write(_ writer: inout JSONWriter) {
        writer.beginObject()
        writer.optional("push_key_id", keyID.map { Int64($0) })
        writer.optional("push_token_id", tokenID?.text)
        writer.optional("pending_push_token_id", pendingTokenID?.text)
        writer.optional("push_token_last_updated_timestamp", updatedAt)
        writer.optional("push_registration_error_code", errorCode)
        writer.endObject()
    }
}
