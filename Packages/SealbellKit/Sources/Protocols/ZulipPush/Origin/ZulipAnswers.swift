public import PushModel
public import SealbellKit
import WireFormats

/// What an answer of the relay says; of a body above ``ZulipOriginLimits/answerBytes`` nothing does.
extension CallAnswer {
    /// What time alone mends: no answer, 5xx, 429.
    package var mayPass: Bool { status.map { $0 == 429 || (500..<600).contains($0) } ?? true }

    /// Whether the relay refuses this call for what it is: any 4xx but 401, which is about who asks, and 429.
    var isRefusal: Bool {
        status.map { (400..<500).contains($0) && $0 != 401 && $0 != 429 } ?? false
    }
}

/// What administrators are told. The raw values are names of alerts, and frozen.
public enum ZulipAlert: Sendable, Hashable {
    /// The relay could not be reached, or refused every try, for so long that a phone must register anew.
    case registrationExpired
    /// A registration waits for something that time alone does not mend.
    case registrationRefused(RelayFault)
    /// The relay does not say which phones are dead, and it is no relay without that list.
    case staleList(RelayFault)

    /// What the alert is called in logs and pages; frozen.
    public var name: String {
        switch self {
        case .registrationExpired: "registration-expired"
        case .registrationRefused: "registration-refused"
        case .staleList: "origin-stale-list"
        }
    }
}

/// Why a relay did not take a call, as far as an administrator can do something about it. None of the relay's
/// own text is kept.
public enum RelayFault: String, Sendable, Hashable, CaseIterable {
    /// What the relay's code says of itself: the realm, the server, or this registration is not taken.
    case unknownRealm, realmOfOtherServer, credentialsRefused, deactivated, notAllowed, malformedRegistration
    /// A code that this version does not know.
    case otherRefusal
    /// A proxy on the way, or the relay, takes no body of that size.
    case tooLarge
    /// An answer that is none of this protocol: another status, HTML, an id that is none.
    case notTheProtocol

    /// What to look at.
    public var sentence: String {
        switch self {
        case .unknownRealm:
            "The relay does not know this organization: run sealbell origin sign-up, which tells it."
        case .realmOfOtherServer: "The relay knows this organization as another server's."
        case .credentialsRefused:
            "The relay refuses this server's id and key: run sealbell origin sign-up; if that is refused, "
                + "restore the credentials file, or take the host back with --transfer."
        case .deactivated:
            "The relay has deactivated this server, or its operator has suspended it: ask them. Signing up "
                + "again does not mend it."
        case .notAllowed: "The relay does not let this organization send notifications."
        case .malformedRegistration:
            "The relay cannot read a phone's registration: check that the app has the relay's public key."
        case .otherRefusal: "The relay refuses with a code that this version does not know."
        case .tooLarge:
            "The relay, or a proxy before it, takes no call of this size: raise its limit to 4 MiB "
                + "(client_max_body_size of nginx)."
        case .notTheProtocol: "What answers at the relay's address is no relay: check the address."
        }
    }

    init(_ answer: CallAnswer, _ code: String?) {
        switch code {
        case _ where answer.status == 413: self = .tooLarge
        case "REALM_DEACTIVATED" where answer.status == 401 || answer.isRefusal: self = .deactivated
        case _ where answer.status == 401: self = .credentialsRefused
        case "INVALID_ZULIP_SERVER" where answer.isRefusal: self = .credentialsRefused
        case "MISSING_REMOTE_REALM" where answer.isRefusal: self = .unknownRealm
        case "REMOTE_REALM_SERVER_MISMATCH_ERROR" where answer.isRefusal: self = .realmOfOtherServer
        case "PUSH_NOTIFICATIONS_DISALLOWED" where answer.isRefusal: self = .notAllowed
        case "BAD_REQUEST" where answer.isRefusal: self = .malformedRegistration
        case .some where answer.isRefusal: self = .otherRefusal
        default: self = .notTheProtocol
        }
    }
}

/// What an origin does after `push/e2ee/register` (§5.6, §14.11).
public enum ZulipRegistrationOutcome: Sendable, Hashable {
    /// The relay has the token.
    ///
    /// - Parameter deviceID: what the relay calls the device, 1 to 2⁶³ − 1; `nil` in v12, which has no such
    ///   name.
    case done(deviceID: Int64?)
    /// For good; the code, in upper case, goes to the device.
    case failed(code: String, tells: ZulipAlert?)
    /// Later, with back-off: ``ZulipOrigin/retryDelay(_:asked:first:longest:using:)``. `tells`: something
    /// that time alone does not mend, to be told once for a registration.
    case retry(tells: ZulipAlert?)
}

extension ZulipOrigin {
    /// Judges the answer to a registration.
    ///
    /// 401 and 429 are tried again in every profile: the deployed origin gives up on them, which
    /// docs/conformance/zulip.md calls a defect. In the specification's own profile all is tried again but
    /// the two codes that it names (§14.11).
    public static func registrationOutcome(
        _ answer: CallAnswer, profile: ZulipProfile
    ) -> ZulipRegistrationOutcome {
        let read = RelayAnswerReading(answer.body)
        if answer.status == 200, read.isSuccess {
            if profile == .v12 { return .done(deviceID: nil) }
            if let id = read.deviceID, id > 0 { return .done(deviceID: id) }
        }
        guard !answer.mayPass else { return .retry(tells: nil) }
        let fault = ZulipAlert.registrationRefused(RelayFault(answer, read.code))
        guard answer.isRefusal, let code = read.code else { return .retry(tells: fault) }
        switch code {
        case "INVALID_BOUNCER_PUBLIC_KEY": return .failed(code: code, tells: nil)
        case "REQUEST_EXPIRED": return .failed(code: code, tells: .registrationExpired)
        case "MISSING_REMOTE_REALM", "INVALID_ZULIP_SERVER", "PUSH_NOTIFICATIONS_DISALLOWED":
            return .retry(tells: fault)
        default: return profile == .zap ? .retry(tells: fault) : .failed(code: "BAD_REQUEST", tells: nil)
        }
    }

    /// How long to wait before the n-th retry of a registration (§14.11): drawn evenly from d/2 to d, with d
    /// of 30 s doubled n − 1 times, an hour at most.
    ///
    /// - Parameter tries: how often it was tried so far, from 1.
    /// - Parameter asked: what the relay asked for: a lower bound, with up to an hour of jitter above it.
    public static func retryDelay(
        _ tries: Int, asked: Duration? = nil, first: Duration = ZulipOriginLimits.firstRetry,
        longest: Duration = ZulipOriginLimits.longestRetry,
        using generator: inout some RandomNumberGenerator
    ) -> Duration {
        // An hour is seven doublings of half a minute; many more would not fit the integer.
        let doublings = Int64(tries > 1 ? min(tries - 1, 20) : 0)
        let (base, cap) = (max(first.wholeMilliseconds, 2), max(longest.wholeMilliseconds, 2))
        let longest = base > cap >> doublings ? cap : base << doublings
        let drawn = Int64.random(in: longest / 2...longest, using: &generator)
        let floor = min(max(asked ?? .zero, .zero), RetryAfter.limit).wholeMilliseconds
        guard floor > drawn else { return .milliseconds(drawn) }
        let jitter = min(floor, ZulipOriginLimits.askedJitter.wholeMilliseconds)
        return .milliseconds(floor + Int64.random(in: 0...jitter, using: &generator))
    }

    /// The code of an error envelope, in upper case: `code`, else `error_code`, which the specification's own
    /// relays may send (§14.5). `nil` where there is none.
    public static func errorCode(_ body: Secret) -> String? { RelayAnswerReading(body).code }
}
