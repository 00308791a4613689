package import PushModel
import WireFormats

/// What `pushToken` turned out to be, by its shape (§5.6 c).
package enum PushTokens: Sendable {
    /// Hexadecimal digits, in small letters: of alerts, and behind a blank of calls.
    case apns(alert: Secret, voip: Secret?)
    case fcm(Secret)

    /// - Parameter text: visible ASCII and single blanks, at most ``NextcloudLimits/tokenBytes``.
    /// - Parameter provider: `pushProvider`, where it was sent: it decides where the shape does not.
    /// - Parameter voip: `voipToken`, where it was sent.
    /// - Throws: `.invalidPushToken`, `.unsupportedPushToken` for an endpoint of UnifiedPush.
    init(_ text: Secret, provider: Provider?, voip: Secret?) throws(NextcloudError) {
        guard text.count <= NextcloudLimits.tokenBytes, text.reveal({ $0.allSatisfy(Self.isTokenByte) })
        else { throw NextcloudError(.invalidPushToken) }
        let parts = text.reveal { bytes in
            bytes.split(separator: 0x20, omittingEmptySubsequences: false).map { Secret($0) }
        }
        let isHex = parts.allSatisfy(Self.isAPNsToken)
        switch provider {
        case .apns?:
            guard isHex else { throw NextcloudError(.invalidPushToken) }
            self = try Self.apns(parts, voip)
        case .fcm?:
            guard parts.count == 1 else { throw NextcloudError(.invalidPushToken) }
            self = .fcm(text)
        case nil:
            let isLong = parts.allSatisfy { $0.count >= Self.digits }
            if isHex, isLong || voip != nil {
                self = try Self.apns(parts, voip)
            } else if Self.isURL(text) {
                throw NextcloudError(.unsupportedPushToken)
            } else {
                guard parts.count == 1, voip == nil else { throw NextcloudError(.invalidPushToken) }
                self = .fcm(text)
            }
        }
    }

    package enum Provider: Sendable { case apns, fcm }

    /// Digits of every APNs token so far.
    private static let digits = 64

    private static func apns(_ parts: [Secret], _ voip: Secret?) throws(NextcloudError) -> PushTokens {
        guard (1...2).contains(parts.count), parts.count == 1 || voip == nil else {
            throw NextcloudError(.invalidPushToken)
        }
        if let voip, !isAPNsToken(voip) { throw NextcloudError(.invalidPushToken) }
        return .apns(
            alert: APNsMessage.canonical(parts[0]),
            voip: (parts.count == 2 ? parts[1] : voip).map { APNsMessage.canonical($0) })
    }

    private static func isAPNsToken(_ token: Secret) -> Bool {
        (1...NextcloudLimits.apnsTokenDigits).contains(token.count) && token.count.isMultiple(of: 2)
            && token.reveal { $0.allSatisfy { Hex.value(ofDigit: $0) != nil } }
    }

    private static func isURL(_ token: Secret) -> Bool {
        token.reveal { bytes in
            bytes.starts(with: Array("https://".utf8)) || bytes.starts(with: Array("http://".utf8))
        }
    }

    /// No control characters, and nothing that is not ASCII: no push service has such a token.
    private static func isTokenByte(_ byte: UInt8) -> Bool { (0x20..<0x7F).contains(byte) }
}
