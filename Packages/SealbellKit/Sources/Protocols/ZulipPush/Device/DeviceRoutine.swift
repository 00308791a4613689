import Primitives
import PushModel
import WireFormats

/// What the routine of one account knows (§14.12).
struct DeviceRoutine: Sendable {
    // MARK: of the app, anew at each start

    var build: ZulipAppBuild?
    var token: DevicePushToken?
    /// v12's columns, once the server has shown them in this run.
    var columns: ZulipDeviceState?
    /// Whether the user was told ``notice`` in this run.
    var isNoticeShown = false
    var underWay: CallUnderWay?

    // MARK: kept

    /// Beside which these data were made; `nil` before the first start.
    var marker: Secret?
    var loggedInAt: UnixTime?
    var route: ZulipRoute?
    var current: HeldRegistration?
    var former: [FormerRegistration] = []
    var acknowledged: Acknowledgement?
    var shown = ShownState.none
    var shownSince: UnixTime?
    /// The server has lost a registration that it had, and has not acknowledged another since.
    var isRetrying = false
    /// When to call next; `nil`: nothing is to be told.
    var dueAt: UnixTime?
    /// When to look whether it is still pending.
    var checkAt: UnixTime?
    /// Calls in a row that found nobody.
    var failures = 0
    /// Registrations in a row that the server dropped before they were active.
    var losses = 0
    var halt: Halt?
    /// With that key of the relay nothing is sent.
    var refusedKey: String?
    var notice: ZulipNotice?
    /// The app was asked to register by the older protocol.
    var isLegacy = false
    /// The account has left the phone.
    var isOver = false
    var lastCall: UInt64 = 0

    /// What the server last took (`last_acked_push_token` of the specification).
    struct Acknowledgement: Sendable {
        let at: UnixTime
        let kind: TokenKind
        /// Exactly as the system gave it.
        let token: Secret
    }

    struct CallUnderWay: Sendable {
        let number: UInt64
        let kind: ZulipDeviceCall.Kind
        let since: UnixTime
        /// Whether it told a token, which v12 may leave out.
        let hasToken: Bool
    }

    /// Why no call is made.
    enum Halt: Sendable, Hashable {
        case loggedOut(code: String?)
        case refused(code: String?, since: UnixTime)

        var code: String? {
            switch self {
            case .loggedOut(let code), .refused(let code, _): code
            }
        }
    }

    /// Whether the relay has refused the key of this build.
    var isKeyRefused: Bool {
        guard let refusedKey else { return false }
        return build.map { $0.bouncerKey == refusedKey } ?? true
    }

    /// Whether a call may be made at all.
    var mayCall: Bool {
        !isOver && route?.profile != nil && token != nil && build != nil && halt == nil && underWay == nil
            && !isKeyRefused
    }

    /// When the device wants to be asked again.
    var deadline: UnixTime? { [checkAt, mayCall ? dueAt : nil].compactMap(\.self).min() }

    mutating func show(_ state: ShownState, _ now: UnixTime) {
        if state != shown || shownSince == nil { shownSince = now }
        shown = state
    }

    /// To be called at that time, or earlier where that was wanted already.
    mutating func want(by time: UnixTime) { dueAt = min(dueAt ?? time, time) }
}

/// What opens the content of one registration.
enum RegistrationKey: Sendable {
    /// zap.
    case pair(X25519KeyPair)
    /// v11.
    case pushKey(PushKey)
    /// v12: the device's own list, by `push_key_id`.
    case listed
}

/// A registration that this phone makes or has.
struct HeldRegistration: Sendable {
    let profile: ZulipProfile
    /// `push_account_id`; in v12 `device_id`, `nil` before the server has given one.
    var id: Int64?
    /// When the server gave it (v12).
    var givenAt: UnixTime?
    let key: RegistrationKey
    /// What it was last told, with which key of the relay, by which call.
    var told: Told?
    var isAcknowledged = false

    struct Told: Sendable {
        let kind: TokenKind
        let token: Secret
        let bouncerKey: String
        let call: UInt64
    }
}

/// A registration that another one has taken the place of. What still arrives for it opens for 30 days.
struct FormerRegistration: Sendable {
    let profile: ZulipProfile
    let id: Int64
    let key: RegistrationKey
    let since: UnixTime
    /// The server has acknowledged it, and is to forget it once the new one is active.
    var isToBeForgotten: Bool
    /// The last call that told it, whose answer may still come.
    let call: UInt64?
}

/// One step of the routine while it is taken.
struct RoutineStep<Generator: RandomNumberGenerator> {
    let now: UnixTime
    var generator: Generator
    /// Ids of the phone's other accounts.
    let takenAccounts: Set<Int64>
    let takenKeys: Set<UInt32>
    var actions: [ZulipDeviceAction] = []

    init(now: UnixTime, generator: Generator, beside others: [ZulipRoutine]) {
        self.now = now
        self.generator = generator
        takenAccounts = Set(
            others.flatMap { device in
                device.routine.former.map(\.id) + [device.routine.current?.id].compactMap(\.self)
            })
        takenKeys = Set(others.flatMap { $0.keys.map(\.id) })
    }
}

extension DevicePushToken {
    /// Whether a push service takes both for one token: APNs does not tell upper from lower case, FCM does.
    func isSame(as told: HeldRegistration.Told) -> Bool {
        guard kind == told.kind, token.count == told.token.count else { return false }
        guard kind == .apns else { return token == told.token }
        return token.reveal { left in
            told.token.reveal { right in
                zip(left, right).allSatisfy { Self.lower($0) == Self.lower($1) }
            }
        }
    }

    private static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}
