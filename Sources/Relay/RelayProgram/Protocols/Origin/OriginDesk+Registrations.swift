import Delivery
import HTTPIngress
import OriginServer
import PushModel
import WireFormats
import ZulipPush

extension OriginDesk {
    func registrations(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let name = try Self.text(try inbound.object(), "user")
        let (rows, cloud) = try await Self.done { () throws(OriginError) in
            (try await house.rows(of: name), try await house.cloudRows(of: name))
        }
        return JSONWriter.object { json in
            json.beginArray("registrations")
            for row in rows { Self.write(row, &json) }
            for row in cloud {
                json.beginObject()
                json.member("device", "\(Self.cloudWord) \(row.number)")
                json.member("profile", "nextcloud")
                json.member("state", "active")
                json.member("group", row.group)
                json.member("proxy", row.proxy)
                json.endObject()
            }
            json.endArray()
        }
    }

    /// How a device of Nextcloud's door is listed; with the number of its app password.
    private static let cloudWord = "cloud"

    private static func write(_ row: RegistrationSummary, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("device", row.device)
        json.member("profile", "\(row.profile)")
        json.member("state", row.state.rawValue)
        if let code = row.code { json.member("code", code) }
        if let since = row.waitingSince {
            json.member("waiting_since", since.milliseconds)
            json.member("tries", row.tries)
        }
        json.endObject()
    }

    func drop(_ house: OriginHouse, _ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let name = try Self.text(body, "user")
        let words = try Self.text(body, "device").split(separator: " ")
        if words.count == 2, words[0] == Self.cloudWord, let number = Int64(words[1]) {
            let isThere = try await Self.done { () throws(OriginError) in
                try await house.drop(cloud: number, of: name)
            }
            guard isThere else { throw .status(404, "The user has no such device.") }
            return JSONWriter.object { $0.member("user", name) }
        }
        guard let device = ZulipQueueItem.Subject(listed: try Self.text(body, "device")) else {
            throw .status(400, "A device is named as the list does: account 7, device 12, cloud 31.")
        }
        let isThere = try await Self.done { () throws(OriginError) in try await house.drop(device, of: name) }
        guard isThere else { throw .status(404, "The user has no such device.") }
        return JSONWriter.object { $0.member("user", name) }
    }

    func status(_ house: OriginHouse) async throws(DeskRefusal) -> [UInt8] {
        let (tally, users) = try await Self.done { () throws(OriginError) in
            (try await house.users.tally(), try await house.people.userCount())
        }
        let realms = house.people.realms
        return JSONWriter.object { json in
            json.member("relay", house.upkeep.lastTold?.word ?? "not asked yet")
            json.member("realms", realms.count)
            json.member("realms_requiring", realms.count { $0.requiresEncryption })
            json.member("server_requires", house.settings.requiresEncryption)
            json.member("users", users)
            json.member("waiting_polls", house.polls.waitingCount)
            json.beginArray("devices")
            for (group, count) in tally.devices.sorted(by: { "\($0.key)" < "\($1.key)" }) {
                json.beginObject()
                json.member("profile", "\(group.profile)")
                json.member("state", group.state.rawValue)
                json.member("count", count)
                json.endObject()
            }
            json.endArray()
            if let oldest = tally.oldestWaiting {
                json.member("oldest_waiting", oldest.milliseconds)
            }
            json.beginArray("calls")
            for lane in house.laneSnapshots {
                json.beginObject()
                json.member("lane", "\(lane.lane)")
                json.member("owed", lane.inMemory + lane.parked + lane.inFlight)
                if let reason = lane.reason { json.member("reason", "\(reason)") }
                json.endObject()
            }
            json.endArray()
            json.beginArray("waiting_keys")
            for (key, count) in tally.waitingKeys.sorted(by: { $0.key < $1.key }) {
                json.beginObject()
                json.member("key", key)
                json.member("count", count)
                json.endObject()
            }
            json.endArray()
            json.member("legacy_refused", house.door.legacyRefused)
        }
    }
}

extension ZulipQueueItem.Subject {
    /// `account 7`, `device 12`.
    fileprivate init?(listed text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, let id = Int64(words[1]) else { return nil }
        switch words[0] {
        case "account": self = .account(id)
        case "device": self = .device(id)
        default: return nil
        }
    }
}
