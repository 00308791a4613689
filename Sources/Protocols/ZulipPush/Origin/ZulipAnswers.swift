public import PushModel
import WireFormats

/// What an origin does after `push/e2ee/register` (§5.6).
public enum ZulipRegistrationOutcome: Sendable, Hashable {
    /// The token is registered: it is pending no more.
    case done
    /// For good; the code goes to the device.
    case failed(code: String)
    /// Later, with back-off. `tellsAdmins`: something that time alone does not mend.
    case retry(tellsAdmins: Bool)
}

/// What `push/e2ee/notify` answered (§5.5).
public struct ZulipNotifyAnswer: Sendable, Hashable {
    public var apple: Int64
    public var android: Int64
    /// Ids to forget, for this user.
    public var deadTokenIDs: [TokenID]
    public var canPush: Bool
}

extension ZulipOrigin {
    /// Judges the answer to ``register(_:realm:)``.
    ///
    /// 401 and 429 are tried again: the deployed origin gives up on them, which docs/conformance/zulip.md
    /// calls a defect.
    ///
    /// - Parameter status: `nil` when there was no answer.
    public static func registrationOutcome(status: Int?, body: Secret) -> ZulipRegistrationOutcome {
        guard let status else { return .retry(tellsAdmins: false) }
        if status == 200 { return .done }
        if status == 401 || status == 429 { return .retry(tellsAdmins: status == 401) }
        guard (400..<500).contains(status) else { return .retry(tellsAdmins: status < 500) }
        switch errorCode(body) {
        case nil: return .retry(tellsAdmins: true)
        case "MISSING_REMOTE_REALM", "INVALID_ZULIP_SERVER", "PUSH_NOTIFICATIONS_DISALLOWED":
            return .retry(tellsAdmins: true)
        case "INVALID_BOUNCER_PUBLIC_KEY": return .failed(code: "INVALID_BOUNCER_PUBLIC_KEY")
        case "REQUEST_EXPIRED": return .failed(code: "REQUEST_EXPIRED")
        default: return .failed(code: "BAD_REQUEST")
        }
    }

    /// Reads the answer to a notify call with status 200.
    ///
    /// - Throws: `.malformedAnswer`.
    public static func notifyAnswer(_ body: Secret) throws(ZulipError) -> ZulipNotifyAnswer {
        guard let json = json(body), json["result"]?.string == "success",
            let apple = json["apple_successfully_sent_count"]?.int64,
            let android = json["android_successfully_sent_count"]?.int64,
            let ids = json["delete_token_ids"]?.array
        else { throw ZulipError(.malformedAnswer) }
        let dead = ids.compactMap { $0.string.flatMap { TokenID($0) } }
        guard dead.count == ids.count else { throw ZulipError(.malformedAnswer) }
        return ZulipNotifyAnswer(
            apple: apple, android: android, deadTokenIDs: dead,
            canPush: json["realm_push_status"]?["can_push"]?.bool ?? true)
    }

    /// `code` of an error envelope, in upper case; `nil` where there is none.
    public static func errorCode(_ body: Secret) -> String? { json(body)?["code"]?.string?.uppercased() }

    private static func json(_ body: Secret) -> JSONValue? {
        body.reveal { bytes in
            // Whatever cannot be read is the same to the callers: no answer of this protocol.
            try? JSONValue.parse(bytes, limitBytes: 1 << 20, depthLimit: ZulipLimits.jsonDepth)
        }
    }
}
