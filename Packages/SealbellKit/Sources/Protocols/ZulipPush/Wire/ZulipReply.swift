package import PushModel
package import WireFormats

/// The relay's answers when it does not refuse (§5.2 to §5.5).
package enum ZulipReply: Sendable {
    /// Parameters that were not known, by name.
    case done(ignored: [String])
    /// The number of a device that registered with an account id (§14.5).
    case registered(deviceID: Int64, ignored: [String])
    /// Rising, and the last of them where there are more (§14.7).
    case stale([Int64], next: Int64?)
    case signedUp(created: Bool)
    case analyticsStatus(realmCount: Int64, installationCount: Int64, auditLog: Int64)
    /// The realms sent, and those of them that are another server's or too many: these cannot push.
    case realms([UUIDText], refused: Set<UUIDText>)
    case notified(NotifyCounts)
    /// Every token of a legacy call, told to be gone.
    case legacyDeleted(LegacyNotifyRequest)
    /// The secret that the host must show.
    case challenge(Secret)
    /// A new key for a server that lost its own.
    case credentials(id: UUIDText, key: Secret)

    /// The body: the deployed success envelope. Every reply goes out with status 200.
    package func body() -> [UInt8] {
        if case .notified(let counts) = self, let body = counts.plainBody { return body }
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("result", "success")
        writer.member("msg", "")
        members(&writer)
        writer.endObject()
        return writer.bytes
    }

    private func members(_ writer: inout JSONWriter) {
        switch self {
        case .done(let ignored): Self.write(ignored: ignored, &writer)
        case .registered(let deviceID, let ignored):
            writer.member("device_id", deviceID)
            Self.write(ignored: ignored, &writer)
        case .stale(let ids, let next):
            writer.key("device_ids")
            Self.write(ids, &writer)
            writer.optional("next_after", next)
        case .signedUp(let created):
            writer.member("created", created)
        case .analyticsStatus(let realmCount, let installationCount, let auditLog):
            writer.member("last_realm_count_id", realmCount)
            writer.member("last_installation_count_id", installationCount)
            writer.member("last_realmauditlog_id", auditLog)
        case .realms(let realms, let refused):
            writer.beginObject("realms")
            for realm in realms {
                writer.key(realm.text)
                Self.pushStatus(&writer, canPush: !refused.contains(realm))
            }
            writer.endObject()
        case .notified(let counts): counts.write(&writer)
        case .legacyDeleted(let tokens): Self.write(tokens, &writer)
        case .challenge(let secret):
            writer.member("verification_secret", utf8: secret)
        case .credentials(let id, let key):
            writer.member("zulip_org_id", id.text)
            writer.member("zulip_org_key", utf8: key)
        }
    }

    private static func write(ignored: [String], _ writer: inout JSONWriter) {
        if ignored.isEmpty { return }
        writer.beginArray("ignored_parameters_unsupported")
        for name in ignored { writer.string(name) }
        writer.endArray()
    }

    fileprivate static func write(_ ids: [Int64], _ writer: inout JSONWriter) {
        writer.beginArray()
        for id in ids { writer.int(id) }
        writer.endArray()
    }

    /// §5.7; without `realm`, which a bouncer leaves out for a realm that it does not know.
    private static func write(_ tokens: LegacyNotifyRequest, _ writer: inout JSONWriter) {
        writer.member("total_android_devices", 0)
        writer.member("total_apple_devices", 0)
        writer.beginObject("deleted_devices")
        writer.key("android_devices")
        tokens.android.reveal { writer.raw($0) }
        writer.key("apple_devices")
        tokens.apple.reveal { writer.raw($0) }
        writer.endObject()
    }

    /// This relay has no plans: every realm of the server can push, without end.
    fileprivate static func pushStatus(_ writer: inout JSONWriter, canPush: Bool = true) {
        writer.beginObject()
        writer.member("can_push", canPush)
        writer.key("expected_end_timestamp")
        writer.null()
        writer.endObject()
    }
}

/// The results of a notify call's items.
package struct NotifyCounts: Sendable {
    package var apple = 0
    package var android = 0
    /// Token ids that the origin should forget, in v12.
    package var dead: [TokenID] = []
    /// Numbers that it should forget, each once; `nil` in v12, and in a call without items.
    package private(set) var deadNumbers: [Int64]?
    /// Devices that are dead, of one named twice both.
    package private(set) var deadCount = 0
    private var seen: Set<Int64> = []
    /// Ids of the pushes, by device; `nil`: the caller did not ask for them (decision 0130).
    var references: [(device: DeviceName, push: PushID)]?

    package init() {}

    /// - Parameter device: one of the call; its form is all of theirs.
    init(of device: DeviceName?) { if case .number = device { deadNumbers = [] } }

    mutating func add(dead device: DeviceName) {
        deadCount += 1
        switch device {
        case .token(let id): dead.append(id)
        case .number(let number): if seen.insert(number).inserted { deadNumbers?.append(number) }
        }
    }

    /// The body that most calls get, without dead devices or references, from pieces that were made once;
    /// `nil` for any other.
    fileprivate var plainBody: [UInt8]? {
        guard deadCount == 0, dead.isEmpty, references == nil else { return nil }
        let tail = deadNumbers == nil ? Self.tokensTail : Self.numbersTail
        var body: [UInt8] = []
        body.reserveCapacity(Self.head.count + Self.middle.count + tail.count + 16)
        body += Self.head
        Self.append(apple, to: &body)
        body += Self.middle
        Self.append(android, to: &body)
        body += tail
        return body
    }

    private static let head = Array(
        #"{"result":"success","msg":"","apple_successfully_sent_count":"#.utf8)
    private static let middle = Array(#","android_successfully_sent_count":"#.utf8)
    private static let tokensTail = tail(NotifyCounts())
    private static let numbersTail = tail(NotifyCounts(of: .number(1)))

    private static func tail(_ none: NotifyCounts) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        none.writeBehindCounts(&writer)
        writer.endObject()
        return [0x2C] + writer.bytes.dropFirst()
    }

    /// A call has a thousand items at most.
    private static func append(_ number: Int, to body: inout [UInt8]) {
        if (0..<10).contains(number) {
            body.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number))
        } else {
            body += String(number).utf8
        }
    }

    fileprivate func write(_ writer: inout JSONWriter) {
        writer.member("apple_successfully_sent_count", Int64(apple))
        writer.member("android_successfully_sent_count", Int64(android))
        writeBehindCounts(&writer)
    }

    private func writeBehindCounts(_ writer: inout JSONWriter) {
        if let deadNumbers {
            writer.key("delete_device_ids")
            ZulipReply.write(deadNumbers, &writer)
        } else {
            writer.beginArray("delete_token_ids")
            for id in dead { writer.string(id.text) }
            writer.endArray()
        }
        writer.key("realm_push_status")
        ZulipReply.pushStatus(&writer)
        if let references {
            writer.beginObject("references")
            for reference in references {
                switch reference.device {
                case .token(let id): writer.key(id.text)
                case .number(let number): writer.key(String(number))
                }
                writer.string(reference.push.text)
            }
            writer.endObject()
        }
    }
}
