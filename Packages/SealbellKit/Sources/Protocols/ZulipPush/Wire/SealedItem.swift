package import PushModel
import WireFormats

/// One item of a notify call in the specification's own form (§14.6): a pair of device and content. The other
/// fields for the push services are made from the row.
package struct SealedItem: Sendable {
    package let deviceID: Int64
    /// Canonical base64, 1 to ``ZulipLimits/sealedContentCharacters`` characters.
    package let content: Secret
    /// High: a message. Low: a removal.
    package let isUrgent: Bool

    /// What an urgent one shows where the app does not open it, but for an app with words of its own.
    package static let standardAps = Array(
        #"{"mutable-content":1,"alert":{"title":"New notification"},"sound":"default"}"#.utf8)
    /// Wakes the app without showing anything (§14.8).
    package static let quietAps = Array(#"{"content-available":1}"#.utf8)

    /// The whole body for APNs: `{"push_account_id":N,"encrypted_content":"…","aps":{…}}`.
    ///
    /// - Parameter aps: the app's own, which gives way where Apple would not take the body with it; `nil`:
    ///   the standard.
    package func apnsBody(accountID: Int64, aps: [UInt8]?) -> Secret {
        guard isUrgent else { return body(accountID, Self.quietAps) }
        if let aps {
            let own = body(accountID, aps)
            if own.count <= ZulipLimits.payloadBytes { return own }
        }
        return body(accountID, Self.standardAps)
    }

    /// The `data` for FCM: `{"push_account_id":"N","encrypted_content":"…"}`.
    package func fcmData(accountID: Int64) -> Secret {
        var writer = JSONWriter(reserving: content.count + 128)
        writer.beginObject()
        writer.key("push_account_id")
        writer.stringOfInt(accountID)
        writeContent(&writer)
        writer.endObject()
        return writer.takeSecret()
    }

    private func body(_ accountID: Int64, _ aps: [UInt8]) -> Secret {
        var writer = JSONWriter(reserving: content.count + aps.count + 128)
        writer.beginObject()
        writer.member("push_account_id", accountID)
        writeContent(&writer)
        writer.key("aps")
        writer.raw(aps)
        writer.endObject()
        return writer.takeSecret()
    }

    private func writeContent(_ writer: inout JSONWriter) {
        writer.member("encrypted_content", escaped: content)
    }
}
