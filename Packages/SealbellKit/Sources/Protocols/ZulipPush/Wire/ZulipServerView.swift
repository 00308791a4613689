import PushModel
import WireFormats

/// Reads what a server shows of one phone: in the answer to `POST /api/v1/register`, and in its events
/// (§3.5, §3.7, §14.10). Entries of other phones are passed over, whatever they hold.
enum ZulipServerView {
    /// One event about this phone.
    enum Event: Sendable {
        case account(ShownState)
        /// v12's `add`: the device is there, with nothing in its columns.
        case deviceAdded
        case deviceRemoved
        /// Only the columns that are in it change; a column that is null is cleared.
        case columns(ColumnChanges)
    }

    struct ColumnChanges: Sendable {
        var pushKeyID: UInt32??
        var tokenID: TokenID??
        var pendingTokenID: TokenID??
        var tokenUpdatedAt: Int64??
        var errorCode: String??

        func apply(to columns: inout ZulipDeviceState) {
            if let pushKeyID { columns.pushKeyID = pushKeyID }
            if let tokenID { columns.tokenID = tokenID }
            if let pendingTokenID { columns.pendingTokenID = pendingTokenID }
            if let tokenUpdatedAt { columns.tokenUpdatedAt = tokenUpdatedAt }
            if let errorCode { columns.errorCode = errorCode }
        }
    }

    // MARK: the state

    /// The entry of an account id in `push_account_ids` (zap) or `push_devices` (v11).
    ///
    /// - Throws: `.malformedAnswer` where there is no such map, or this entry is none.
    static func account(
        _ id: Int64, _ profile: ZulipProfile, in body: Secret
    ) throws(ZulipError) -> ShownState {
        let name: StaticString = profile == .v11 ? "push_devices" : "push_account_ids"
        var shown = ShownState.none
        try readMap(name, key: id, in: body) { (reader) throws(FormatError) in
            shown = try readEntry(&reader)
        }
        return shown
    }

    /// The columns of a device in `devices` (v12); `nil` where it has none.
    ///
    /// - Throws: `.malformedAnswer`.
    static func device(_ id: Int64, in body: Secret) throws(ZulipError) -> ZulipDeviceState? {
        var columns: ZulipDeviceState?
        try readMap("devices", key: id, in: body) { (reader) throws(FormatError) in
            var changes = ColumnChanges()
            try reader.beginObject()
            while let name = try reader.nextMember() { try readColumn(name, &reader, &changes) }
            var all = ZulipDeviceState()
            changes.apply(to: &all)
            columns = all
        }
        return columns
    }

    private static func readMap(
        _ map: StaticString, key: Int64, in body: Secret,
        _ entry: (inout JSONReader) throws(FormatError) -> Void
    ) throws(ZulipError) {
        guard body.count <= ZulipLimits.stateBytes else { throw ZulipError(.malformedAnswer) }
        try body.reveal { (bytes) throws(ZulipError) in
            do {
                var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
                var isThere = false
                try reader.beginObject()
                while let name = try reader.nextMember() {
                    if name.equals(map) {
                        isThere = true
                        try reader.beginObject()
                        while let place = try reader.nextMember() {
                            if isKey(place, key) { try entry(&reader) } else { try reader.skipValue() }
                        }
                    } else if name.equals("result"), try reader.peek() == .string {
                        guard try !reader.readString().equals("error") else { throw FormatError(.wrongType) }
                    } else {
                        try reader.skipValue()
                    }
                }
                try reader.end()
                guard isThere else { throw FormatError(.wrongType) }
            } catch { throw ZulipError(.malformedAnswer) }
        }
    }

    private static func isKey(_ text: JSONStringSlice, _ id: Int64) -> Bool {
        text.raw.count <= 128 && withBytes(text.decoded()) { CanonicalInteger.read($0) } == id
    }

    private static func readEntry(_ reader: inout JSONReader) throws(FormatError) -> ShownState {
        var entry = EntryReading()
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if try !entry.read(name, &reader) { try reader.skipValue() }
        }
        guard let shown = entry.shown else { throw FormatError(.wrongType) }
        return shown
    }

    // MARK: events

    /// The events about a phone, in order: of the whole answer to `GET /api/v1/events`, or one alone.
    ///
    /// - Parameter id: `push_account_id`, or `device_id` in v12.
    /// - Throws: `.malformedAnswer`.
    static func events(
        _ id: Int64, _ profile: ZulipProfile, in body: Secret
    ) throws(ZulipError) -> [Event] {
        guard body.count <= ZulipLimits.eventsBytes else { throw ZulipError(.malformedAnswer) }
        return try body.reveal { (bytes) throws(ZulipError) in
            do { return try readEvents(bytes, id, profile) } catch { throw ZulipError(.malformedAnswer) }
        }
    }

    private static func readEvents(
        _ bytes: UnsafeRawBufferPointer, _ id: Int64, _ profile: ZulipProfile
    ) throws(FormatError) -> [Event] {
        var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
        var events: [Event] = []
        var list: UnsafeRawBufferPointer?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("events") { list = try reader.skipValue() } else { try reader.skipValue() }
        }
        try reader.end()
        guard let list else {
            if let one = try readEvent(bytes, id, profile) { events.append(one) }
            return events
        }
        reader = JSONReader(list, depthLimit: ZulipLimits.jsonDepth)
        try reader.beginArray()
        while try reader.nextElement() {
            guard let one = try readEvent(reader.skipValue(), id, profile) else { continue }
            guard events.count < ZulipLimits.ownEvents else { throw FormatError(.tooLarge) }
            events.append(one)
        }
        return events
    }

    /// - Returns: `nil` for an event that is not about this phone, or of another profile.
    private static func readEvent(
        _ bytes: UnsafeRawBufferPointer, _ id: Int64, _ profile: ZulipProfile
    ) throws(FormatError) -> Event? {
        guard try isAbout(bytes, id, profile) else { return nil }
        var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
        var entry = EntryReading()
        var changes = ColumnChanges()
        var op = Operation.none
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("op") {
                op = Operation(try reader.readString())
            } else if profile == .v12 {
                try readColumn(name, &reader, &changes)
            } else if try !entry.read(name, &reader) {
                try reader.skipValue()
            }
        }
        switch (profile, op) {
        // v11 has no operations.
        case (.v11, _), (.zap, .add), (.zap, .update):
            guard let shown = entry.shown else { throw FormatError(.wrongType) }
            return .account(shown)
        case (.zap, .remove): return .account(entry.hasCode ? .failed(code: entry.code) : .none)
        case (.v12, .add): return .deviceAdded
        case (.v12, .remove): return .deviceRemoved
        case (.v12, .update): return .columns(changes)
        case (_, .other): return nil
        case (_, .none): throw FormatError(.wrongType)
        }
    }

    private enum Operation {
        case none, add, update, remove
        /// Of a later version.
        case other

        init(_ text: JSONStringSlice) {
            self = .other
            if text.equals("add") { self = .add }
            if text.equals("update") { self = .update }
            if text.equals("remove") { self = .remove }
        }
    }

    /// Whether type and id are those of this phone. Others may be of any form.
    private static func isAbout(
        _ bytes: UnsafeRawBufferPointer, _ id: Int64, _ profile: ZulipProfile
    ) throws(FormatError) -> Bool {
        var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
        guard try reader.peek() == .object else { return false }
        var isType = false
        var isID = false
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            if name.equals("type"), kind == .string {
                let type = try reader.readString()
                isType =
                    switch profile {
                    case .v12: type.equals("device")
                    case .zap: type.equals("push_account")
                    case .v11: type.equals("push_device")
                    }
            } else if name.equals(profile == .v12 ? "device_id" : "push_account_id") {
                // A number; of some servers text.
                isID = false
                switch kind {
                case .number: isID = try reader.readNumber().int64 == id
                case .string: isID = isKey(try reader.readString(), id)
                default: try reader.skipValue()
                }
            } else {
                try reader.skipValue()
            }
        }
        return isType && isID
    }

    // MARK: members

    /// `status` and `error_code`.
    private struct EntryReading {
        var status: ZulipStatus.State?
        var hasCode = false
        var code: String?

        /// - Returns: whether the member was one of them.
        mutating func read(
            _ name: JSONStringSlice, _ reader: inout JSONReader
        ) throws(FormatError) -> Bool {
            if name.equals("status") {
                let text = try reader.readString()
                status = nil
                if text.equals("active") { status = .active }
                if text.equals("pending") { status = .pending }
                if text.equals("failed") { status = .failed }
                guard status != nil else { throw FormatError(.wrongType) }
            } else if name.equals("error_code") {
                hasCode = try !reader.readNull()
                code = hasCode ? ErrorCodeText.read(try reader.readString()) : nil
            } else {
                return false
            }
            return true
        }

        var shown: ShownState? {
            switch status {
            case nil: nil
            case .pending: .pending
            case .active: .active
            case .failed, .some(.none): .failed(code: code)
            }
        }
    }

    private static func readColumn(
        _ name: JSONStringSlice, _ reader: inout JSONReader, _ changes: inout ColumnChanges
    ) throws(FormatError) {
        // Each is optional twice: it stands there, and it may be null.
        if name.equals("push_key_id") {
            let id: UInt32? = try orNull(&reader) { (reader) throws(FormatError) in
                try reader.readNumber().uint32
            }
            changes.pushKeyID = .some(id)
        } else if name.equals("push_token_id") {
            changes.tokenID = .some(try tokenID(&reader))
        } else if name.equals("pending_push_token_id") {
            changes.pendingTokenID = .some(try tokenID(&reader))
        } else if name.equals("push_token_last_updated_timestamp") {
            let time: Int64? = try orNull(&reader) { (reader) throws(FormatError) in
                try reader.readNumber().int64
            }
            changes.tokenUpdatedAt = .some(time)
        } else if name.equals("push_registration_error_code") {
            let code: String? = try orNull(&reader) { (reader) throws(FormatError) in
                // What is no code is one that we do not know.
                ErrorCodeText.read(try reader.readString()) ?? "BAD_REQUEST"
            }
            changes.errorCode = .some(code)
        } else {
            try reader.skipValue()
        }
    }

    private static func tokenID(_ reader: inout JSONReader) throws(FormatError) -> TokenID? {
        try orNull(&reader) { (reader) throws(FormatError) in
            withBytes(try reader.readString().decoded()) { TokenID($0) }
        }
    }

    /// A value or null; `.wrongType` for anything else.
    private static func orNull<Value>(
        _ reader: inout JSONReader, _ read: (inout JSONReader) throws(FormatError) -> Value?
    ) throws(FormatError) -> Value? {
        if try reader.readNull() { return nil }
        guard let value = try read(&reader) else { throw FormatError(.wrongType) }
        return value
    }
}
