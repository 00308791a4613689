package import PushModel
package import WireFormats

/// What the relay says when it does not refuse (§5.2 to §5.5).
package enum ZulipReply: Sendable {
    /// Parameters that were not known, by name.
    case done(ignored: [String])
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
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("result")
        writer.string("success")
        writer.key("msg")
        writer.string("")
        members(&writer)
        writer.endObject()
        return writer.bytes
    }

    private func members(_ writer: inout JSONWriter) {
        switch self {
        case .done(let ignored):
            if ignored.isEmpty { break }
            writer.key("ignored_parameters_unsupported")
            writer.beginArray()
            for name in ignored { writer.string(name) }
            writer.endArray()
        case .signedUp(let created):
            writer.key("created")
            writer.bool(created)
        case .analyticsStatus(let realmCount, let installationCount, let auditLog):
            writer.key("last_realm_count_id")
            writer.int(realmCount)
            writer.key("last_installation_count_id")
            writer.int(installationCount)
            writer.key("last_realmauditlog_id")
            writer.int(auditLog)
        case .realms(let realms, let refused):
            writer.key("realms")
            writer.beginObject()
            for realm in realms {
                writer.key(realm.text)
                Self.pushStatus(&writer, canPush: !refused.contains(realm))
            }
            writer.endObject()
        case .notified(let counts): counts.write(&writer)
        case .legacyDeleted(let tokens): Self.write(tokens, &writer)
        case .challenge(let secret):
            writer.key("verification_secret")
            secret.reveal { writer.string(utf8: $0) }
        case .credentials(let id, let key):
            writer.key("zulip_org_id")
            writer.string(id.text)
            writer.key("zulip_org_key")
            key.reveal { writer.string(utf8: $0) }
        }
    }

    /// §5.7; without `realm`, which a bouncer leaves out for a realm that it does not know.
    private static func write(_ tokens: LegacyNotifyRequest, _ writer: inout JSONWriter) {
        writer.key("total_android_devices")
        writer.int(0)
        writer.key("total_apple_devices")
        writer.int(0)
        writer.key("deleted_devices")
        writer.beginObject()
        writer.key("android_devices")
        tokens.android.reveal { writer.raw($0) }
        writer.key("apple_devices")
        tokens.apple.reveal { writer.raw($0) }
        writer.endObject()
    }

    /// This relay has no plans: every realm of the server can push, without end.
    fileprivate static func pushStatus(_ writer: inout JSONWriter, canPush: Bool = true) {
        writer.beginObject()
        writer.key("can_push")
        writer.bool(canPush)
        writer.key("expected_end_timestamp")
        writer.null()
        writer.endObject()
    }
}

/// What became of a notify call's items.
package struct NotifyCounts: Sendable {
    package var apple = 0
    package var android = 0
    /// Ids that the origin should forget.
    package var dead: [TokenID] = []

    package init() {}

    fileprivate func write(_ writer: inout JSONWriter) {
        writer.key("apple_successfully_sent_count")
        writer.int(Int64(apple))
        writer.key("android_successfully_sent_count")
        writer.int(Int64(android))
        writer.key("delete_token_ids")
        writer.beginArray()
        for id in dead { writer.string(id.text) }
        writer.endArray()
        writer.key("realm_push_status")
        ZulipReply.pushStatus(&writer)
    }
}
