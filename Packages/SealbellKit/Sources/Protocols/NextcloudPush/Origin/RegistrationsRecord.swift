public import PushModel
import WireFormats

// What a store keeps and seals: rows of texts, of which the first says the format. What cannot be read is
// `nil`, and a record that is none to its reader.

extension NextcloudRegistrations {
    private static let format = "nextcloud-user-2"

    /// One user's record.
    public func encoded() -> Secret {
        var rows: [[Secret]] = [[Secret(Self.format.utf8), Secret(String(nextID).utf8)]]
        for device in devices {
            rows.append(
                [
                    "d", String(device.tokenID), device.deviceIdentifier, device.devicePublicKey,
                    device.pushTokenHash, device.proxyServer, device.group.rawValue
                ].map { Secret($0.utf8) })
        }
        // One text for all: a row for each would be read at every call.
        let notes = notifications.map(\.kept).joined(separator: ",")
        if !notes.isEmpty { rows.append([Secret("n".utf8), Secret(notes.utf8)]) }
        return KeptRows.write(rows)
    }

    /// `nil` for a body that ``encoded()`` has not written, or beyond ``NextcloudLimits/userRecordBytes``.
    public init?(body: Secret) {
        guard let rows = KeptRows.read(body, atMost: NextcloudLimits.userRecordBytes),
            let head = rows.first, head.count == 2, head[0].word == Self.format,
            // As far as JSON's numbers are exact everywhere, and with room to count on.
            let next = Int64(head[1].word), (1...1 << 53).contains(next)
        else { return nil }
        self.init()
        nextID = next
        var tokens: Set<Int64> = []
        for (place, row) in rows.enumerated().dropFirst() {
            let row = row.map(\.word)
            if let device = RegisteredDevice(kept: row), tokens.insert(device.tokenID).inserted {
                devices.append(device)
            } else if place == rows.count - 1, let notes = Self.notes(row, before: next) {
                notifications = notes
            } else {
                return nil
            }
        }
        guard devices.count <= NextcloudLimits.devicesPerUser,
            notifications.count <= NextcloudLimits.keptNotifications
        else { return nil }
    }

    private static func notes(_ row: [String], before next: Int64) -> [NotificationSummary]? {
        guard row.count == 2, row[0] == "n" else { return nil }
        var notes: [NotificationSummary] = []
        for text in row[1].split(separator: ",", omittingEmptySubsequences: false) {
            guard let note = NotificationSummary(kept: text), note.id < next, note.id > notes.last?.id ?? 0
            else { return nil }
            notes.append(note)
        }
        return notes
    }
}

extension RegisteredDevice {
    fileprivate init?(kept row: [String]) {
        guard row.count == 7, row[0] == "d", let tokenID = Int64(row[1]),
            let group = DeviceGroup(rawValue: row[6])
        else { return nil }
        self.init(
            tokenID: tokenID, deviceIdentifier: row[2], devicePublicKey: row[3], pushTokenHash: row[4],
            proxyServer: row[5], group: group)
    }
}

extension StoredNotification {
    private static let format = "nextcloud-notification-1"

    /// A record of its own, JSON.
    public func encoded() -> Secret {
        KeptRows.write([
            [
                Self.format, String(id), String(at.milliseconds), draft.app, draft.subject, draft.message,
                draft.objectType, draft.objectID, draft.link, draft.isPriority ? "1" : "0"
            ].map { Secret($0.utf8) }
        ])
    }

    /// `nil` for a body that ``encoded()`` has not written, or beyond ``NextcloudLimits/keptBytes``.
    public init?(body: Secret) {
        guard let rows = KeptRows.read(body, atMost: NextcloudLimits.keptBytes), rows.count == 1 else {
            return nil
        }
        let row = rows[0].map(\.word)
        guard row.count == 10, row[0] == Self.format, let id = Int64(row[1]), let at = Int64(row[2]),
            row[9] == "0" || row[9] == "1"
        else { return nil }
        self.init(
            id: id, at: UnixTime(milliseconds: at),
            draft: Draft(
                app: row[3], subject: row[4], message: row[5], objectType: row[6], objectID: row[7],
                link: row[8], isPriority: row[9] == "1"))
    }
}

extension ProxyQueue.Waiting {
    private static let format = "nextcloud-entry-1"

    /// An entry that was taken in at this moment.
    public init(_ entry: SealedEntry, since: UnixTime) { self.init(entry: entry, since: since) }

    /// One entry of a queue that is kept in a store. All of it is sealed already, but for the address.
    public func encoded() -> Secret {
        KeptRows.write([
            [
                Secret(Self.format.utf8), Secret(String(since.milliseconds).utf8), Secret(entry.proxy.utf8),
                Secret(entry.deviceIdentifier.utf8), Secret(entry.pushTokenHash.utf8),
                Secret(entry.kind.priority.rawValue.utf8), Secret(entry.kind.form.rawValue.utf8), entry.json
            ]
        ])
    }

    /// `nil` for a body that ``encoded()`` has not written, or beyond ``NextcloudLimits/keptBytes``.
    public init?(body: Secret) {
        guard let rows = KeptRows.read(body, atMost: NextcloudLimits.keptBytes), rows.count == 1,
            rows[0].count == 8, rows[0][0].word == Self.format, let since = Int64(rows[0][1].word),
            let priority = NextcloudPushKind.Priority(rawValue: rows[0][5].word),
            let form = NextcloudPushKind.Form(rawValue: rows[0][6].word)
        else { return nil }
        self.init(
            entry: SealedEntry(
                proxy: rows[0][2].word, deviceIdentifier: rows[0][3].word, pushTokenHash: rows[0][4].word,
                kind: NextcloudPushKind(priority: priority, form: form), json: rows[0][7]),
            since: UnixTime(milliseconds: since))
    }
}
