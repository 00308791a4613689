/// A message of FCM HTTP v1, as far as the simulator reads it (docs/push-services.md §4.2): only what it
/// judges.
struct FCMMessage: Equatable {
    enum Target: Equatable {
        case token(String)
        case fid(String)
        case topic(String)
        case condition(String)
    }

    var target: Target
    var validatesOnly: Bool
    var isHigh: Bool
    /// Whole seconds, rounded down; `nil`: the default of 28 days.
    var ttlSeconds: Int64?
    var collapseKey: String?

    /// `data` and `notification`, keys and values together.
    static let payloadBytes = 4096
    static let topicPayloadBytes = 2048
    static let ttlLimitSeconds: Int64 = 2_419_200

    /// The steps of docs/push-services.md §5 from "JSON broken" to "payload > 4096", in that order.
    init(_ body: [UInt8]) throws(SimulatedFCMError) {
        guard let root = JSONTree(body), root.members != nil, let message = root["message"],
            message.members != nil
        else { throw SimulatedFCMError.notJSON }
        target = try Self.target(message)
        validatesOnly = Self.member(root, "validate_only", "validateOnly")?.flag ?? false
        var payload = 0
        if let data = message["data"] { payload += try Self.data(data, "message.data") }
        let android = message["android"] ?? .object([])
        if let data = android["data"] { payload += try Self.data(data, "message.android.data") }
        ttlSeconds = try Self.ttl(android["ttl"])
        isHigh = try Self.priority(android["priority"])
        collapseKey = Self.member(android, "collapse_key", "collapseKey")?.text
        for case .string(let text) in (message["notification"]?.members ?? []).map(\.value) {
            payload += text.utf8.count
        }
        for name in message["notification"]?.members?.map(\.name) ?? [] { payload += name.utf8.count }
        var limit = Self.payloadBytes
        if case .topic = target { limit = Self.topicPayloadBytes }
        guard payload <= limit else { throw SimulatedFCMError.tooBig }
    }

    private static func member(_ tree: JSONTree, _ snake: String, _ camel: String) -> JSONTree? {
        tree[snake] ?? tree[camel]
    }

    private static func target(_ message: JSONTree) throws(SimulatedFCMError) -> Target {
        let names = ["token", "fid", "topic", "condition"]
        let given = names.filter { message[$0] != nil }
        guard given.count == 1, let value = message[given[0]]?.text else {
            throw SimulatedFCMError.invalid(
                "message", "Exactly one of token, fid, topic or condition is required.")
        }
        return switch given[0] {
        case "token": .token(value)
        case "fid": .fid(value)
        case "topic": .topic(value)
        default: .condition(value)
        }
    }

    /// The bytes of keys and values; values are strings, some keys are Google's.
    private static func data(_ tree: JSONTree, _ field: String) throws(SimulatedFCMError) -> Int {
        guard let members = tree.members else {
            throw SimulatedFCMError.invalid(field, "A map of strings is required.")
        }
        var bytes = 0
        for member in members {
            guard let value = member.value.text else {
                throw SimulatedFCMError.invalid(
                    "\(field)[\(members.firstIndex(of: member) ?? 0)].value", "A string is required.")
            }
            let isReserved =
                member.name == "from" || member.name == "message_type"
                || member.name.hasPrefix("google.") || member.name.hasPrefix("gcm.")
            if isReserved { throw SimulatedFCMError.invalid(field, "Invalid data payload key.") }
            bytes += member.name.utf8.count + value.utf8.count
        }
        return bytes
    }

    /// `^\d+(\.\d+)?s$`, at most 28 days.
    private static func ttl(_ tree: JSONTree?) throws(SimulatedFCMError) -> Int64? {
        guard let tree else { return nil }
        let fault = SimulatedFCMError.invalid(
            "message.android.ttl", "Duration must be 0 to 2419200 seconds and end in s.")
        guard let text = tree.text, text.utf8.last == UInt8(ascii: "s") else { throw fault }
        let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
        let isDigits = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.count <= 18 && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard (1...2).contains(parts.count), isDigits, let whole = Int64(parts[0]) else { throw fault }
        let hasRest = parts.count == 2 && parts[1].contains { $0 != "0" }
        guard whole < ttlLimitSeconds || (whole == ttlLimitSeconds && !hasRest) else { throw fault }
        return whole
    }

    private static func priority(_ tree: JSONTree?) throws(SimulatedFCMError) -> Bool {
        guard let tree else { return false }
        switch tree.text {
        case "HIGH", "high": return true
        case "NORMAL", "normal": return false
        default: throw SimulatedFCMError.invalid("message.android.priority", "HIGH or NORMAL is required.")
        }
    }
}
