public import PushModel
public import SealbellKit
import WireFormats

/// What `push/e2ee/notify` answered (§5.5, §14.6).
public struct ZulipNotifyAnswer: Sendable, Hashable {
    /// `total_apple_devices`: how many pushes the relay took for APNs.
    public var apple: Int64
    /// `total_android_devices`: how many it took for FCM.
    public var android: Int64
    /// Of a call of v12: ids to forget, each once.
    public var deadTokenIDs: [TokenID] = []
    /// Of a call of v11 or of the specification's own profile, each once.
    public var deadDeviceIDs: [Int64] = []
    /// `realm.can_push`; true where the relay does not say. False: the realm's push flag goes off.
    public var canPush: Bool
    /// Ids under which the pushes went out, as `sealbell why` takes them, by the device's token id or number;
    /// of a relay that was asked for them and tells them.
    public var references: [String: String] = [:]
}

/// What an origin does after `push/e2ee/notify` (§5.6).
public enum ZulipNotifyOutcome: Sendable, Hashable {
    /// The relay took the call, and owns the pushes that it counts.
    case sent(ZulipNotifyAnswer)
    /// The relay sends nothing for this realm: its push flag goes off, and the notification is dropped.
    case realmIsOff(RelayFault)
    /// For good: the notification is dropped, and administrators are told.
    case refused(RelayFault)
    /// Later; it is owed until it is a day old (§14.6). `fault`: something that time alone does not mend.
    case retry(fault: RelayFault?)
}

extension ZulipOrigin {
    /// Judges the answer to a call of ``notify(_:to:realm:padding:using:)``.
    public static func notifyOutcome(_ answer: CallAnswer, profile: ZulipProfile) -> ZulipNotifyOutcome {
        if answer.status == 200 {
            do { return .sent(try notifyAnswer(answer.body, profile: profile)) } catch {
                return .retry(fault: .notTheProtocol)
            }
        }
        guard !answer.mayPass else { return .retry(fault: nil) }
        let code = errorCode(answer.body)
        let fault = RelayFault(answer, code)
        switch fault {
        case .unknownRealm, .notAllowed: return .realmIsOff(fault)
        case .credentialsRefused, .deactivated, .tooLarge, .notTheProtocol: return .retry(fault: fault)
        // It is no registration that could not be read.
        case .malformedRegistration: return .refused(.otherRefusal)
        case .realmOfOtherServer, .otherRefusal: return .refused(fault)
        }
    }

    /// Reads the answer to a notify call with status 200.
    ///
    /// - Throws: `.malformedAnswer`, also where it lists more ids than one call has, or the other kind of
    ///   ids.
    public static func notifyAnswer(
        _ body: Secret, profile: ZulipProfile = .v12
    ) throws(ZulipError) -> ZulipNotifyAnswer {
        let read = RelayAnswerReading(body)
        guard read.isSuccess, let apple = read.apple, let android = read.android else {
            throw ZulipError(.malformedAnswer)
        }
        var answer = ZulipNotifyAnswer(apple: apple, android: android, canPush: read.canPush ?? true)
        switch profile {
        case .v12:
            guard let ids = read.deadTokenIDs else { throw ZulipError(.malformedAnswer) }
            answer.deadTokenIDs = ids
        case .v11, .zap:
            guard let ids = read.deadDeviceIDs else { throw ZulipError(.malformedAnswer) }
            answer.deadDeviceIDs = ids
        }
        answer.references = read.references.mapValues(\.text)
        return answer
    }
}
