public import PushModel

// Bodies of a user's rows, for a store that seals them: a format byte, of which each kind of row has its own,
// then fields in fixed order. What cannot be read is `nil`, and a row that is none to its reader.

extension ZulipAccountRow {
    private static let format: UInt8 = 0x11

    /// The row in bytes: id, profile, key, kind, then what may be missing: device id, time, code,
    /// registration.
    public var body: Secret {
        var writer = BodyWriter(format: Self.format)
        writer.int(id)
        switch key {
        case .zap(let key):
            writer.byte(1)
            writer.long(Secret(key.base64.utf8))
        case .v11(let key):
            writer.byte(2)
            writer.long(key.base64)
        }
        writer.kind(kind)
        writer.optional(deviceID)
        writer.optional(confirmedAt?.milliseconds)
        writer.long(Secret((errorCode ?? "").utf8))
        writer.optional(registration.map { Int64(bitPattern: $0) })
        return writer.take()
    }

    /// `nil` for bytes that ``body`` has not written.
    public init?(body: Secret) {
        guard let row = body.reveal({ Self.read($0) }) else { return nil }
        self = row
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) -> ZulipAccountRow? {
        guard var reader = BodyReader(bytes, format: format), let id = reader.int(),
            let profile = reader.byte(), let text = reader.long(), let kind = reader.kind(),
            let deviceID = reader.optional(), let confirmedAt = reader.optional(),
            let code = reader.word(), let registration = reader.optional(), reader.isAtEnd
        else { return nil }
        let key: Key
        do throws(ZulipError) {
            switch profile {
            case 1: key = .zap(try PushPublicKey(base64: text.reveal { String(decoding: $0, as: UTF8.self) }))
            case 2: key = .v11(try PushKey(base64: text))
            default: return nil
            }
        } catch { return nil }
        return ZulipAccountRow(
            id: id, kind: kind, key: key, deviceID: deviceID,
            confirmedAt: confirmedAt.map { UnixTime(milliseconds: $0) }, errorCode: code.isEmpty ? nil : code,
            registration: registration.map { UInt64(bitPattern: $0) })
    }
}

extension ZulipDeviceRow {
    private static let format: UInt8 = 0x21

    /// The row in bytes: id, key id, key, kind, both tokens, time, code, confirmation, registration; all but
    /// the id may be missing.
    public var body: Secret {
        var writer = BodyWriter(format: Self.format)
        writer.int(id)
        writer.optional(keyID.map { Int64($0) })
        writer.long(key?.base64 ?? Secret([]))
        writer.kind(kind)
        writer.optional(tokenID?.signed)
        writer.optional(pendingTokenID?.signed)
        writer.optional(updatedAt)
        writer.long(Secret((errorCode ?? "").utf8))
        writer.optional(confirmedAt?.milliseconds)
        writer.optional(registration.map { Int64(bitPattern: $0) })
        return writer.take()
    }

    /// `nil` for bytes that ``body`` has not written.
    public init?(body: Secret) {
        guard let row = body.reveal({ Self.read($0) }) else { return nil }
        self = row
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) -> ZulipDeviceRow? {
        guard var reader = BodyReader(bytes, format: format), let id = reader.int(),
            let keyID = reader.optional(), let key = reader.long(), let kind = reader.optionalKind(),
            let tokenID = reader.optional(), let pending = reader.optional(),
            let updatedAt = reader.optional(), let code = reader.word(),
            let confirmedAt = reader.optional(), let registration = reader.optional(), reader.isAtEnd
        else { return nil }
        var row = ZulipDeviceRow(id: id)
        if let keyID {
            guard let narrow = UInt32(exactly: keyID) else { return nil }
            row.keyID = narrow
        }
        if key.count > 0 {
            do { row.key = try PushKey(base64: key) } catch { return nil }
        }
        row.kind = kind
        row.tokenID = tokenID.map { TokenID(UInt64(bitPattern: $0)) }
        row.pendingTokenID = pending.map { TokenID(UInt64(bitPattern: $0)) }
        row.updatedAt = updatedAt
        row.errorCode = code.isEmpty ? nil : code
        row.confirmedAt = confirmedAt.map { UnixTime(milliseconds: $0) }
        row.registration = registration.map { UInt64(bitPattern: $0) }
        return row
    }
}

extension ZulipRegistrationFailure {
    private static let format: UInt8 = 0x31

    /// The note in bytes: id, time, code.
    public var body: Secret {
        var writer = BodyWriter(format: Self.format)
        writer.int(id)
        writer.int(at.milliseconds)
        writer.long(Secret(code.utf8))
        return writer.take()
    }

    /// `nil` for bytes that ``body`` has not written.
    public init?(body: Secret) {
        let note: ZulipRegistrationFailure? = body.reveal { bytes in
            guard var reader = BodyReader(bytes, format: Self.format), let id = reader.int(),
                let at = reader.int(), let code = reader.word(), reader.isAtEnd
            else { return nil }
            return ZulipRegistrationFailure(id: id, code: code, at: UnixTime(milliseconds: at))
        }
        guard let note else { return nil }
        self = note
    }
}

extension ZulipQueueItem {
    private static let format: UInt8 = 0x41

    /// The item in bytes: id, whose it is, the registration, times and tries.
    public var body: Secret {
        var writer = BodyWriter(format: Self.format)
        writer.int(Int64(bitPattern: id))
        switch subject {
        case .account(let id):
            writer.byte(1)
            writer.int(id)
        case .device(let id):
            writer.byte(2)
            writer.int(id)
        }
        switch registration.name {
        case .account(let id):
            writer.byte(1)
            writer.int(id)
        case .token(let id):
            writer.byte(2)
            writer.int(id.signed)
        }
        writer.kind(registration.kind)
        writer.long(Secret(registration.bouncerKey.utf8))
        writer.long(registration.sealed)
        writer.int(calledAt.milliseconds)
        writer.int(Int64(tries))
        writer.int(nextTry.milliseconds)
        writer.byte(hasTold ? 1 : 0)
        return writer.take()
    }

    /// `nil` for bytes that ``body`` has not written.
    public init?(body: Secret) {
        guard let item = body.reveal({ Self.read($0) }) else { return nil }
        self = item
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) -> ZulipQueueItem? {
        guard var reader = BodyReader(bytes, format: format), let id = reader.int(),
            let whose = reader.byte(), let subject = reader.int(), let form = reader.byte(),
            let name = reader.int(), let kind = reader.kind(), let bouncerKey = reader.word(),
            let sealed = reader.long(), let calledAt = reader.int(), let tries = reader.int(),
            let nextTry = reader.int(), let hasTold = reader.byte(), reader.isAtEnd, hasTold <= 1,
            (1...2).contains(whose), (1...2).contains(form), let count = Int(exactly: tries), count >= 0
        else { return nil }
        return ZulipQueueItem(
            id: UInt64(bitPattern: id), subject: whose == 1 ? .account(subject) : .device(subject),
            registration: SealedRegistration(
                form == 1 ? .account(name) : .token(TokenID(UInt64(bitPattern: name))), kind: kind,
                bouncerKey: bouncerKey, sealed: sealed),
            calledAt: UnixTime(milliseconds: calledAt), tries: count,
            nextTry: UnixTime(milliseconds: nextTry), hasTold: hasTold == 1)
    }
}

extension BodyWriter {
    /// A length of eight bytes, then the field.
    fileprivate mutating func long(_ field: Secret) {
        int(Int64(field.count))
        fixed(field)
    }

    /// Whether it is there, then the number or zero.
    fileprivate mutating func optional(_ field: Int64?) {
        byte(field == nil ? 0 : 1)
        int(field ?? 0)
    }

    fileprivate mutating func kind(_ kind: TokenKind?) {
        switch kind {
        case nil: byte(0)
        case .apns: byte(1)
        case .fcm: byte(2)
        }
    }
}

extension BodyReader {
    fileprivate mutating func long() -> Secret? {
        guard let length = int(), let count = Int(exactly: length), count >= 0 else { return nil }
        return fixed(count).map { Secret(copying: $0) }
    }

    fileprivate mutating func word() -> String? { long()?.reveal { String(decoding: $0, as: UTF8.self) } }

    /// The outer `nil`: not what we wrote.
    fileprivate mutating func optional() -> Int64?? {
        guard let flag = byte(), flag <= 1, let value = int() else { return nil }
        return .some(flag == 1 ? value : nil)
    }

    fileprivate mutating func optionalKind() -> TokenKind?? {
        switch byte() {
        case 0: .some(nil)
        case 1: .some(.apns)
        case 2: .some(.fcm)
        default: nil
        }
    }

    fileprivate mutating func kind() -> TokenKind? { optionalKind() ?? nil }
}
