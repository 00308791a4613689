import PushModel
public import SealbellKit
import WireFormats

extension ZulipOrigin {
    /// `push/e2ee/notify`: seals a notification for each of the devices (§5.5, §14.6).
    ///
    /// A device that the relay has not confirmed yet is skipped. A call has devices of one profile.
    ///
    /// - Parameter generator: nonces and ephemeral keys come from here, 24 or 32 bytes for each device; in
    ///   production the system's.
    /// - Returns: for each profile as many calls as hold 1,000 devices and 4 MiB each; none where nothing is
    ///   left.
    /// - Throws: `.tooMuchContent` when a push service would not take it, before anything is sealed.
    public func notify(
        _ notification: ZulipNotification, to targets: [ZulipTarget], realm: String,
        padding: ContentPadding = .steps, using generator: inout some RandomNumberGenerator
    ) throws(ZulipError) -> [HTTPCall] {
        let plain = notification.serialized(padding: padding)
        let confirmed = targets.filter(\.isConfirmed)
        let groups = ZulipProfile.allCases.map { profile in
            (room: Room(profile, plain.count), targets: confirmed.filter { $0.profile == profile })
        }
        for group in groups where !group.targets.isEmpty && !group.room.isEnough {
            throw ZulipError(.tooMuchContent)
        }
        var calls: [HTTPCall] = []
        for (room, targets) in groups {
            var rest = targets[...]
            while !rest.isEmpty {
                let batch = rest.prefix(room.itemsPerCall)
                rest = rest.dropFirst(batch.count)
                var writer = JSONWriter(reserving: room.itemBytes * batch.count + Room.frameBytes)
                writer.beginObject()
                writer.member("realm_uuid", realm)
                writer.beginArray("push_requests")
                for target in batch {
                    try Self.write(target, plain, Urgency(notification.body), &writer, &generator)
                }
                writer.endArray()
                writer.endObject()
                calls.append(call(.notify, json: writer.takeSecret()))
            }
        }
        return calls
    }

    /// What sealed contents of one profile take: at a push service, and in a call.
    private struct Room {
        /// Characters of the ciphertext.
        let characters: Int
        let isEnough: Bool
        let itemBytes: Int

        /// What surrounds the items of a call: names and a realm's UUID, with room.
        static let frameBytes = 128

        init(_ profile: ZulipProfile, _ plainBytes: Int) {
            switch profile {
            case .v12, .v11:
                characters = Base64.encodedCount(plainBytes + ContentBox.overheadBytes)
                let name = profile == .v12 ? "push_key_id" : "push_account_id"
                let digits = profile == .v12 ? 10 : 20
                // {"push_key_id":…,"encrypted_data":"…","aps":{…}}; the data for Google is shorter.
                let around = name.utf8.count + digits + 3 + 20 + 7 + Urgency.alertAps.count + 2
                isEnough = characters + around <= ZulipLimits.payloadBytes
                // {"device_id":…,"http_headers":{…},"payload":{…}}, and a comma.
                itemBytes = characters + around + 160
            case .zap:
                characters = Base64.encodedCount(plainBytes + AccountBox.overheadBytes)
                isEnough = characters <= ZulipLimits.sealedContentCharacters
                itemBytes = characters + 96
            }
        }

        /// 1,000, or fewer where the body would become too large.
        var itemsPerCall: Int {
            min(
                ZulipLimits.requestsPerCall,
                max(1, (ZulipLimits.notifyBodyBytes - Self.frameBytes) / itemBytes))
        }
    }

    private static func write(
        _ target: ZulipTarget, _ plain: Secret, _ urgency: Urgency, _ writer: inout JSONWriter,
        _ generator: inout some RandomNumberGenerator
    ) throws(ZulipError) {
        writer.beginObject()
        switch target.address {
        case .v12(let kind, let tokenID, let keyID, let key):
            writer.member("token_id", tokenID.text)
            let nonce = randomSecret(24, &generator).reveal { Array($0) }
            let sealed = try ContentBox.seal(plain, with: key, nonce: nonce)
            urgency.write(kind, "push_key_id", Int64(keyID), sealed, &writer)
        case .v11(let kind, let device, let account, let key):
            writer.member("device_id", device ?? 0)
            let nonce = randomSecret(24, &generator).reveal { Array($0) }
            let sealed = try ContentBox.seal(plain, with: key, nonce: nonce)
            urgency.write(kind, "push_account_id", account, sealed, &writer)
        case .zap(let device, let key):
            writer.member("device_id", device ?? 0)
            writer.member(
                "encrypted_content", escaped: try AccountBox.seal(plain, to: key, using: &generator))
            writer.member("priority", urgency == .alert ? "high" : "low")
        }
        writer.endObject()
    }
}

/// How urgent a notification is, as servers say it to each push service (§6, §14.8).
private enum Urgency {
    /// Messages and tests: shown.
    case alert
    /// Removals: for the app alone.
    case background

    init(_ body: ZulipNotification.Body) {
        switch body {
        case .message, .test: self = .alert
        case .remove: self = .background
        }
    }

    /// As servers 12.x write it; Zulip's own relay of 12.2 refuses a call with an item for Apple that has
    /// none (§5.5).
    static let alertAps = Array(
        #"{"mutable-content":1,"alert":{"title":"New notification"},"sound":"default"}"#.utf8)
    static let backgroundAps = Array(#"{"mutable-content":1}"#.utf8)

    /// The rest of an item of v12 or v11.
    func write(
        _ kind: TokenKind, _ name: StaticString, _ id: Int64, _ sealed: Secret, _ writer: inout JSONWriter
    ) {
        switch kind {
        case .apns:
            writer.beginObject("http_headers")
            writer.member("apns_priority", self == .alert ? 10 : 5)
            writer.member("apns_push_type", self == .alert ? "alert" : "background")
            writer.endObject()
        case .fcm: writer.member("fcm_priority", self == .alert ? "high" : "normal")
        }
        writer.beginObject("payload")
        writer.member(name, id)
        writer.member("encrypted_data", escaped: sealed)
        if kind == .apns {
            writer.key("aps")
            writer.raw(self == .alert ? Self.alertAps : Self.backgroundAps)
        }
        writer.endObject()
    }
}
