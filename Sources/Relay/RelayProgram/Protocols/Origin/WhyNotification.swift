import AdminIngress
import PushModel
import WireFormats

/// `sealbell why ID`: one notification of an origin, over the origin's queue and the relay's.
///
/// The origin tells which calls to its relay the notification became, what became of it at each device, and
/// the reference that the relay told for each push. Calls and pushes are then asked for like any push.
struct WhyNotification {
    private let id: String
    private let origin: AdminListenerOptions
    /// Where the pushes are asked for: at the same process, or at the relay's own.
    private let relay: AdminListenerOptions
    private let isApart: Bool

    /// - Parameter id: 32 hex digits.
    /// - Parameter relayAt: the relay's state directory; `nil`: the origin's process is the relay.
    init(_ id: String, _ origin: AdminListenerOptions, relayAt: String?) {
        self.id = id
        self.origin = origin
        isApart = relayAt != nil
        var relay = origin
        if let relayAt {
            relay.server.state = relayAt
            relay.tokenFile = nil
        }
        self.relay = relay
    }

    func tell(_ shell: Shell) async throws(CommandFailure) -> Ending {
        let found = try await origin.ask("\(OriginDesk.Path.notification.rawValue)?id=\(id)", shell)
        var calls: [JSONValue] = []
        for call in found["calls"]?.array?.compactMap(\.string) ?? [] {
            calls.append(try await origin.ask("\(WhyDesk.path)?push=\(call)", shell))
        }
        var devices: [(device: JSONValue, way: JSONValue?)] = []
        for device in found["devices"]?.array ?? [] {
            var way: JSONValue?
            if let reference = device["reference"]?.string {
                way = try await relay.ask("\(WhyDesk.path)?push=\(reference)", shell)
            }
            devices.append((device, way))
        }
        if origin.json {
            shell.out(json(calls, devices))
        } else {
            lines(calls, devices).forEach(shell.out)
        }
        return .done
    }

    private func lines(_ calls: [JSONValue], _ devices: [(device: JSONValue, way: JSONValue?)]) -> [String] {
        var lines = ["notification   \(id), \(counted(devices.count, "device"))"]
        if calls.isEmpty, devices.contains(where: { $0.device["state"]?.string == "waiting" }) {
            lines.append("call           not tried since this process started")
        }
        for call in calls {
            lines.append("call           to the relay")
            lines += PushWay.lines(call)
        }
        for (device, way) in devices {
            let words = ["state", "reason"].compactMap { device[$0]?.string }
            lines.append(
                "device         \(device["device"]?.string ?? ""): \(words.joined(separator: " ")) "
                    + "at the relay, \(PushWay.time(device["at"]))")
            guard let way, let reference = device["reference"]?.string else { continue }
            lines.append("push           \(reference)")
            if PushWay.isKnown(way) || isApart {
                lines += PushWay.lines(way)
            } else {
                lines.append(
                    "unknown        this process knows nothing of it: ask the relay's with --relay-at")
            }
        }
        return lines
    }

    private func json(_ calls: [JSONValue], _ devices: [(device: JSONValue, way: JSONValue?)]) -> String {
        var json = JSONWriter(reserving: 1_024)
        json.beginObject()
        json.member("notification", id)
        json.beginArray("calls")
        for call in calls { json.value(call) }
        json.endArray()
        json.beginArray("devices")
        for (device, way) in devices {
            json.beginObject()
            json.key("device")
            json.value(device)
            json.key("push")
            if let way { json.value(way) } else { json.null() }
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return String(decoding: json.bytes, as: UTF8.self)
    }
}
