public import PushModel

extension ZulipRegistrations {
    private static let format: UInt8 = 0x51

    /// All rows as one body, for a store that seals it and keeps one record for each user.
    ///
    /// Sealed registrations are left out: a server that owes its calls has each in the call, and nowhere
    /// else, so that it goes with it. What is read back has empty ones.
    public func encoded() -> Secret {
        var writer = BodyWriter(format: Self.format)
        for row in accounts.values.sorted(by: { $0.id < $1.id }) { writer.row(1, row.body) }
        for row in devices.values.sorted(by: { $0.id < $1.id }) { writer.row(2, row.body) }
        for note in notes.values.sorted(by: { $0.id < $1.id }) { writer.row(3, note.body) }
        for item in queue.values.sorted(by: { $0.id < $1.id }) { writer.row(4, item.withoutBlob.body) }
        return writer.take()
    }

    /// Reads such a body.
    ///
    /// - Returns: `nil` for one that ``encoded()`` did not write.
    public init?(
        body: Secret, realm: String, times: ZulipQueueTimes = ZulipQueueTimes(),
        limit: Int = ZulipOriginLimits.recordsPerUser
    ) {
        var read = ZulipRegistrations(realm: realm, times: times, limit: limit)
        guard body.reveal({ read.take($0) }) else { return nil }
        self = read
    }

    private mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard var reader = BodyReader(bytes, format: Self.format) else { return false }
        while !reader.isAtEnd {
            guard let kind = reader.byte(), let length = reader.int(), let count = Int(exactly: length),
                count >= 0, let field = reader.fixed(count), take(kind, Secret(copying: field))
            else { return false }
        }
        return true
    }

    private mutating func take(_ kind: UInt8, _ body: Secret) -> Bool {
        switch kind {
        case 1:
            guard let row = ZulipAccountRow(body: body) else { return false }
            accounts[row.id] = row
        case 2:
            guard let row = ZulipDeviceRow(body: body) else { return false }
            devices[row.id] = row
        case 3:
            guard let note = ZulipRegistrationFailure(body: body) else { return false }
            notes[note.id] = note
        case 4:
            guard let item = ZulipQueueItem(body: body) else { return false }
            queue[item.id] = item
        default: return false
        }
        return true
    }
}

extension ZulipQueueItem {
    fileprivate var withoutBlob: ZulipQueueItem {
        ZulipQueueItem(
            id: id, subject: subject,
            registration: SealedRegistration(
                registration.name, kind: registration.kind, bouncerKey: registration.bouncerKey,
                sealed: Secret([])),
            calledAt: calledAt, tries: tries, nextTry: nextTry, hasTold: hasTold)
    }
}

extension BodyWriter {
    fileprivate mutating func row(_ kind: UInt8, _ body: Secret) {
        byte(kind)
        int(Int64(body.count))
        fixed(body)
    }
}
