import Primitives
import PushModel

/// What is sent to a push service for one entry (§5.7, §5.8).
struct NextcloudPayload {
    /// Base64, as sent.
    let subject: Slice<UnsafeRawBufferPointer>
    let signature: Slice<UnsafeRawBufferPointer>
    let kind: NotificationEntry.Kind
    let isHigh: Bool
    /// It goes to the token for calls.
    let isCall: Bool

    /// `nil` where the app has no such push service any more.
    func message(to target: NextcloudTarget, _ app: NextcloudApp, _ now: UnixTime) -> ProviderMessage? {
        switch target.kind {
        case .apns:
            guard let bundle = app.bundle else { return nil }
            return .apns(
                APNsMessage(
                    token: target.token, bundle: bundle, environment: target.environment, pushType: pushType,
                    priority: priority, expiration: now + ttl, payload: apnsPayload(app)))
        case .fcm:
            guard app.hasFCM else { return nil }
            return .fcm(
                FCMMessage(
                    address: target.token, app: app.name, priority: isHigh ? .high : .normal, ttl: ttl,
                    data: object(before: [])))
        }
    }

    private var pushType: APNsPushType {
        if isCall { return .voip }
        return kind == .background ? .background : .alert
    }

    /// A call rings at once, whatever it goes out as.
    private var priority: UInt8 {
        switch kind {
        case .voip: 10
        case .alert: isHigh ? 10 : 5
        case .background: 5
        }
    }

    private var ttl: Duration {
        switch kind {
        case .voip: NextcloudLimits.callCustody
        case .alert: NextcloudLimits.alertTTL
        case .background: NextcloudLimits.withdrawalTTL
        }
    }

    private func apnsPayload(_ app: NextcloudApp) -> Secret {
        let aps: [UInt8]
        switch pushType {
        case .background: aps = Array(#"{"content-available":1}"#.utf8)
        case .voip: aps = Array("{}".utf8)
        default: aps = app.aps ?? NextcloudApps.standardAps
        }
        return object(before: Array(#""aps":"#.utf8) + aps + [0x2C])
    }

    /// `{…"subject":"…","signature":"…"}`: base64 needs no escape.
    private func object(before members: [UInt8]) -> Secret {
        let (open, middle, end) = (Self.open, Self.middle, Self.end)
        let count =
            1 + members.count + open.count + subject.count + middle.count + signature.count + end.count
        return Secret(count: count) { out in
            var at = 0
            func put(_ bytes: some Collection<UInt8>) {
                UnsafeMutableRawBufferPointer(rebasing: out[at...]).copyBytes(from: bytes)
                at += bytes.count
            }
            put(CollectionOfOne(0x7B))
            put(members)
            put(open)
            put(subject)
            put(middle)
            put(signature)
            put(end)
        }
    }

    private static let open = Array(#""subject":""#.utf8)
    private static let middle = Array(#"","signature":""#.utf8)
    private static let end = Array(#""}"#.utf8)
}

/// The name of an origin: SHA-256 of the pinned key.
enum KeyDigest {
    static func of(_ der: [UInt8]) -> [UInt8] { SHA256.hash(der) }
}
