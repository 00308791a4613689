import PushModel
import WireFormats
import ZulipPush

/// The rows of one user as a store holds them: changes go in, and a value for the next process comes out.
struct RegistrationStore {
    private(set) var accounts: [Int64: ZulipAccountRow] = [:]
    private(set) var devices: [Int64: ZulipDeviceRow] = [:]
    private(set) var notes: [Int64: ZulipRegistrationFailure] = [:]
    private(set) var items: [UInt64: ZulipQueueItem] = [:]

    mutating func commit(_ changes: [ZulipChange]) {
        for change in changes {
            switch change {
            case .account(let row): accounts[row.id] = row
            case .removeAccount(let id): accounts[id] = nil
            case .device(let row): devices[row.id] = row
            case .removeDevice(let id): devices[id] = nil
            case .note(let note): notes[note.id] = note
            case .removeNote(let id): notes[id] = nil
            case .item(let item): items[item.id] = item
            case .removeItem(let id): items[id] = nil
            }
        }
    }

    /// As after a restart: of rows that were written and read. One that does not come back is missing.
    func registrations(realm: String, limit: Int) -> ZulipRegistrations {
        ZulipRegistrations(
            realm: realm, accounts: accounts.values.compactMap { ZulipAccountRow(body: $0.body) },
            devices: devices.values.compactMap { ZulipDeviceRow(body: $0.body) },
            notes: notes.values.compactMap { ZulipRegistrationFailure(body: $0.body) },
            queue: items.values.compactMap { ZulipQueueItem(body: $0.body) }, limit: limit)
    }

    /// All that the rows say but their secrets.
    var text: String {
        Self.text(Array(accounts.values), Array(devices.values), Array(notes.values), Array(items.values))
    }

    static func text(of value: ZulipRegistrations) -> String {
        text(
            Array(value.accounts.values), Array(value.devices.values), Array(value.notes.values),
            Array(value.queue.values))
    }

    private static func text(
        _ accounts: [ZulipAccountRow], _ devices: [ZulipDeviceRow], _ notes: [ZulipRegistrationFailure],
        _ items: [ZulipQueueItem]
    ) -> String {
        var lines = accounts.map { "a \($0)" } + devices.map { "d \($0)" } + notes.map { "n \($0)" }
        lines += items.map { item in
            "i \(item.id) \(item.subject) \(item.registration.name) \(item.calledAt) \(item.tries) "
                + "\(item.nextTry) \(item.hasTold)"
        }
        return lines.sorted().joined(separator: "\n")
    }
}

/// What a client holds: the state that it fetched, and every event since applied to it.
struct FoldedState: Equatable {
    var zap: [Int64: String] = [:]
    var v11: [Int64: String] = [:]
    var v12: [Int64: [String: JSONValue]] = [:]

    init() {}

    /// A new fetch.
    init(_ value: ZulipRegistrations) throws {
        func entries(_ profile: ZulipProfile) throws -> [(Int64, JSONValue)] {
            try (JSONValue.parse(value.state(profile)).object?.members ?? []).compactMap { name, entry in
                Int64(name).map { ($0, entry) }
            }
        }
        for (id, entry) in try entries(.zap) { zap[id] = Self.word(entry) }
        for (id, entry) in try entries(.v11) { v11[id] = Self.word(entry) }
        for (id, entry) in try entries(.v12) {
            v12[id] = Dictionary(
                (entry.object?.members ?? []).map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        }
    }

    private static func word(_ entry: JSONValue) -> String {
        [entry["status"]?.string ?? "?", entry["error_code"]?.string].compactMap { $0 }
            .joined(separator: " ")
    }

    /// Applies an event as clients do (§3.5, §3.7, §14.10).
    mutating func apply(_ event: JSONValue) {
        let account = event["push_account_id"]?.int64 ?? 0
        let device = event["device_id"]?.int64 ?? 0
        switch (event["type"]?.string, event["op"]?.string) {
        case ("push_account", "add"), ("push_account", "update"): zap[account] = Self.word(event)
        case ("push_account", "remove"):
            zap[account] = event["error_code"]?.string.map { "failed " + $0 }
        case ("push_device", _): v11[account] = Self.word(event)
        case ("device", "add"): v12[device] = Self.newDevice
        case ("device", "remove"): v12[device] = nil
        case ("device", "update"):
            for (name, value) in event.object?.members ?? [] where Self.newDevice[name] != nil {
                v12[device]?[name] = value
            }
        default: zap[.min] = "unknown event"
        }
    }

    private static let newDevice: [String: JSONValue] = [
        "push_key_id": .null, "push_token_id": .null, "pending_push_token_id": .null,
        "push_token_last_updated_timestamp": .null, "push_registration_error_code": .null
    ]
}
