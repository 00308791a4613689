package import PushModel

/// A push service, under the name that servers use for it (§8.3).
package enum SessionService: String, Sendable, Hashable, CaseIterable {
    /// Apple's service.
    case apns
    /// Apple's service for apps under development.
    case apnsSandbox = "apns-sandbox"
    /// Google's FCM.
    case firebase
    /// Reserved: no app of a relay uses it yet, and calls that name it are refused.
    case huawei

    /// Which of Apple's two services the name means.
    package var environment: Environment? {
        switch self {
        case .apns: .production
        case .apnsSandbox: .sandbox
        case .firebase, .huawei: nil
        }
    }

    var word: StaticString {
        switch self {
        case .apns: "apns"
        case .apnsSandbox: "apns-sandbox"
        case .firebase: "firebase"
        case .huawei: "huawei"
        }
    }

    package var isApple: Bool { environment != nil }

    /// Whether a token has the service's form: 64 hex digits for APNs, visible ASCII for the others.
    package func takes(_ token: Secret) -> Bool {
        guard SessionLimits.tokenBytes.contains(token.count) else { return false }
        return token.reveal { bytes in
            guard isApple else { return bytes.allSatisfy { (0x21..<0x7F).contains($0) } }
            return bytes.count == SessionLimits.apnsTokenDigits
                && bytes.allSatisfy { character in
                    switch character {
                    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
                    default: false
                    }
                }
        }
    }

    /// Its byte in stored forms.
    package var stored: UInt8 {
        switch self {
        case .apns: 1
        case .apnsSandbox: 2
        case .firebase: 3
        case .huawei: 4
        }
    }

    package init?(stored: UInt8) {
        switch stored {
        case Self.apns.stored: self = .apns
        case Self.apnsSandbox.stored: self = .apnsSandbox
        case Self.firebase.stored: self = .firebase
        case Self.huawei.stored: self = .huawei
        default: return nil
        }
    }
}
