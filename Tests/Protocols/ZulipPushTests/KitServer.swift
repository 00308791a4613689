import PushModel
import SealbellKit
import WireFormats
import ZulipPush

/// A server of one profile, as far as a device calls it; in the words of deployed servers.
struct KitServer {
    /// What a phone has told it, by `push_account_id` or `device_id`.
    struct Registration {
        var fields: [String: String] = [:]
        /// `nil`: nothing was told yet, or it was given up.
        var status: String?
        var code: String?
    }

    var profile: ZulipProfile?
    var user = "ada@example.org"
    var apiKey = "the-api-key"
    var registrations: [String: Registration] = [:]
    /// Nobody answers.
    var isDown = false
    /// What a realm's settings add to its state.
    var settingsBytes = 0
    /// What paths that hold this are answered with instead: status and body.
    var instead: [(path: String, status: Int, body: String)] = []
    /// The relay's word comes while the phone waits for events.
    var confirmsAtPoll = true
    /// Events since a queue was opened, by queue.
    var queues: [String: [String]] = [:]
    /// Method and path of every call.
    private(set) var heard: [String] = []
    private var nextDevice = 41
    private var nextQueue = 1
    private var nextEvent = 100

    init(_ profile: ZulipProfile?) { self.profile = profile }

    static let success = #"{"result":"success","msg":""}"#

    /// Calls with that in their method and path.
    func count(_ part: String) -> Int { heard.count { $0.contains(part) } }

    mutating func answer(_ call: Call, at now: UnixTime) -> CallAnswer {
        guard let http = call.http, let path = Self.path(http.url) else { return .none }
        heard.append("\(http.method) \(path)")
        if isDown { return .none }
        if let other = instead.first(where: { path.contains($0.path) }) {
            return .http(status: other.status, body: Secret(other.body.utf8))
        }
        let (status, body) = answer(http.method, path, http, now)
        return .http(status: status, body: Secret(body.utf8))
    }

    private static func path(_ url: String) -> String? {
        let server = "https://chat.example.org"
        return url.hasPrefix(server) ? String(url.dropFirst(server.count)) : nil
    }

    private mutating func answer(
        _ method: String, _ path: String, _ http: HTTPCall, _ now: UnixTime
    ) -> (Int, String) {
        let parts = path.split(separator: "?", maxSplits: 1).map(String.init)
        if parts[0] == "/api/v1/server_settings" { return (200, settings) }
        let given = http.headers.first { $0.name == "Authorization" }?.value.word
        guard given == "Basic " + Base64.text(Array("\(user):\(apiKey)".utf8)) else {
            return (401, #"{"result":"error","msg":"Invalid API key","code":"UNAUTHORIZED"}"#)
        }
        let fields = Self.fields(
            method == "POST" ? http.body : Secret((parts.count > 1 ? parts[1] : "").utf8))
        switch "\(method) \(parts[0])" {
        case "POST /api/v1/register": return (200, openQueue())
        case "GET /api/v1/events": return events(fields)
        case "DELETE /api/v1/events":
            queues[fields["queue_id"] ?? ""] = nil
            return (200, Self.success)
        case "POST /api/v1/register_client_device":
            nextDevice += 1
            registrations[String(nextDevice)] = Registration()
            return (200, #"{"result":"success","msg":"","device_id":\#(nextDevice)}"#)
        case "POST /api/v1/mobile_push/register":
            register(fields, now)
            return (200, Self.success)
        case "POST /api/v1/remove_client_device", "POST /api/v1/mobile_push/forget":
            registrations[id(fields)] = nil
            return (200, Self.success)
        case "POST /api/v1/mobile_push/e2ee/test_notification": return (200, Self.success)
        default: return (404, #"{"result":"error","msg":"","code":"BAD_REQUEST"}"#)
        }
    }

    private static func fields(_ body: Secret) -> [String: String] {
        // What the device writes is a form, or the test that looks at it fails.
        let form = body.reveal { try? Form.parse($0) }
        return Dictionary(
            (form?.fields ?? []).map { ($0.name, String(decoding: $0.value, as: UTF8.self)) },
            uniquingKeysWith: { $1 })
    }

    private func id(_ fields: [String: String]) -> String {
        fields["device_id"] ?? fields["push_account_id"] ?? ""
    }

    private var settings: String {
        switch profile {
        case .v12: #"{"result":"success","zulip_feature_level":468}"#
        case .zap: #"{"result":"success","zulip_feature_level":400,"encrypted_push_notifications":true}"#
        case .v11: #"{"result":"success","zulip_feature_level":467}"#
        case nil: #"{"result":"success","zulip_feature_level":300}"#
        }
    }

    private mutating func register(_ fields: [String: String], _ now: UnixTime) {
        var one = registrations[id(fields)] ?? Registration()
        one.fields.merge(fields) { $1 }
        if fields["encrypted_push_registration"] != nil {
            one.fields["updated"] = String(now.seconds)
            one.status = "pending"
            one.code = nil
        }
        registrations[id(fields)] = one
    }

    // MARK: state and events

    private mutating func openQueue() -> String {
        let queue = "q:\(nextQueue)"
        nextQueue += 1
        queues[queue] = []
        let settings = #""realm_description":"\#(String(repeating: "a", count: settingsBytes))""#
        let head = #""result":"success","msg":"","queue_id":"\#(queue)","last_event_id":-1"#
        return "{\(head),\(settings),\(state)}"
    }

    private var state: String {
        let rows = registrations.compactMap { id, one -> String? in
            if profile == .v12 { return #""\#(id)":{\#(columns(one))}"# }
            guard let status = one.status else { return nil }
            return #""\#(id)":{"status":"\#(status)","error_code":\#(Self.quoted(one.code))}"#
        }
        let name =
            switch profile {
            case .v12: "devices"
            case .v11: "push_devices"
            case .zap, nil: "push_account_ids"
            }
        return #""\#(name)":{\#(rows.joined(separator: ","))}"#
    }

    private func columns(_ one: Registration) -> String {
        let token = Self.quoted(one.fields["token_id"])
        let isActive = one.status == "active"
        return #""push_key_id":\#(one.fields["push_key_id"] ?? "null"),"#
            + #""push_token_id":\#(isActive ? token : "null"),"#
            + #""pending_push_token_id":\#(one.status == "pending" ? token : "null"),"#
            + #""push_token_last_updated_timestamp":\#(one.fields["updated"] ?? "null"),"#
            + #""push_registration_error_code":\#(Self.quoted(one.code))"#
    }

    private static func quoted(_ text: String?) -> String { text.map { #""\#($0)""# } ?? "null" }

    private mutating func events(_ fields: [String: String]) -> (Int, String) {
        let queue = fields["queue_id"] ?? ""
        guard queues[queue] != nil else {
            return (400, #"{"result":"error","msg":"Bad event queue ID","code":"BAD_EVENT_QUEUE_ID"}"#)
        }
        if confirmsAtPoll { settle() }
        let events = queues[queue] ?? []
        queues[queue] = []
        return (200, #"{"result":"success","msg":"","events":[\#(events.joined(separator: ","))]}"#)
    }

    /// The relay's word about all that are pending.
    mutating func settle(code: String? = nil) {
        for (id, one) in registrations where one.status == "pending" {
            registrations[id]?.status = code == nil ? "active" : "failed"
            registrations[id]?.code = code
            nextEvent += 1
            let head = #"{"id":\#(nextEvent),"#
            let shown =
                #""status":"\#(code == nil ? "active" : "failed")","error_code":\#(Self.quoted(code))}"#
            let event =
                switch profile {
                case .v12:
                    head + #""type":"device","op":"update","device_id":\#(id),"#
                        + columns(registrations[id] ?? Registration()) + "}"
                case .v11: head + #""type":"push_device","push_account_id":"\#(id)","# + shown
                case .zap, nil:
                    head + #""type":"push_account","op":"update","push_account_id":\#(id),"# + shown
                }
            for queue in queues.keys { queues[queue]?.append(event) }
        }
    }
}
