package import PushModel
import WireFormats

/// What a server tells everybody of itself (`GET /api/v1/server_settings`, §3.6), as far as it decides how a
/// phone registers.
package struct ZulipServerSettings: Sendable, Hashable {
    /// `zulip_feature_level`; 0 where there is none, or no whole number.
    package let featureLevel: Int64
    /// `encrypted_push_notifications`: the server speaks the specification's own form. Only JSON `true` is
    /// yes (§14.13).
    package let encryptedPushNotifications: Bool

    package init(featureLevel: Int64, encryptedPushNotifications: Bool = false) {
        self.featureLevel = featureLevel
        self.encryptedPushNotifications = encryptedPushNotifications
    }

    /// Reads the answer. Members that are not known are ignored; of doubled ones the last counts.
    ///
    /// - Parameter body: at most ``ZulipLimits/settingsBytes``.
    /// - Throws: `.malformedAnswer` for what is no JSON object, and for an answer that says `error`.
    package init(_ body: Secret) throws(ZulipError) {
        guard body.count <= ZulipLimits.settingsBytes else { throw ZulipError(.malformedAnswer) }
        self = try body.reveal { (bytes) throws(ZulipError) in
            do { return try Self.read(bytes) } catch { throw ZulipError(.malformedAnswer) }
        }
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> ZulipServerSettings {
        var reader = JSONReader(bytes, depthLimit: ZulipLimits.jsonDepth)
        var level: Int64 = 0
        var isEncrypted = false
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            if name.equals("zulip_feature_level") {
                level = 0
                if kind == .number {
                    level = try reader.readNumber().int64 ?? 0
                } else {
                    try reader.skipValue()
                }
            } else if name.equals("encrypted_push_notifications") {
                isEncrypted = false
                if kind == .bool {
                    isEncrypted = try reader.readBool()
                } else {
                    try reader.skipValue()
                }
            } else if name.equals("result"), kind == .string {
                guard try !reader.readString().equals("error") else { throw FormatError(.wrongType) }
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        return ZulipServerSettings(featureLevel: level, encryptedPushNotifications: isEncrypted)
    }

    /// Whether the server speaks a profile.
    package func has(_ profile: ZulipProfile) -> Bool {
        switch profile {
        case .v12: featureLevel >= 468
        case .zap: encryptedPushNotifications
        case .v11: (406...467).contains(featureLevel)
        }
    }
}
