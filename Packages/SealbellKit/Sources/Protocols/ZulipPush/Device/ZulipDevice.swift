import Primitives
public import PushModel
public import SealbellKit

/// The device: one login on one phone, in whichever profile its server speaks. A value; it sends nothing.
///
/// It asks the server what it can do, registers, watches what becomes of that, repeats it monthly, tells
/// another token, and takes everything back at a logout (§3, §8, §14.12). What it opens is a
/// ``ZulipNotification``; what was sealed to a former id or key of this phone opens for 30 days more.
///
/// A notification that arrives twice opens twice: the app knows its messages by their ids.
public struct ZulipDevice: PushDevice {
    /// What it is made from.
    public let login: ZulipLogin
    var core: ZulipRoutine

    // MARK: kept beside the core

    /// Of the user and key of the last start.
    var lastLogin: Secret?
    var isLeaving = false
    var forgets: [ForgetCall] = []

    // MARK: of this run

    var token: DeviceToken?
    var start = Start()
    var queue: EventQueue
    /// The call that ``queue`` waits for.
    var asking: UInt64?
    var underWay: [UnderWay] = []
    var outgoing: [ZulipDeviceCall] = []
    private var nextID: UInt64
    private let freshMarker: Secret

    /// What was done of a start.
    struct Start: Sendable {
        var isDone = false
        /// The server has said what it can do, in this run.
        var hasSettings = false
        /// The call for it is under way.
        var askedAt: UnixTime?
        var failures = 0
        /// When to ask again.
        var dueAt = UnixTime.distantPast
        /// A token that came behind the start.
        var hasNewToken = false
        var isAgainWanted = false
        /// The state was asked for to that end: once, or what fails would be asked for without a pause.
        var isStateWanted = false
        /// A state that came before the start.
        var state: Secret?
    }

    /// A registration that the server is to forget.
    struct ForgetCall: Sendable {
        let profile: ZulipProfile
        let id: Int64
        let since: UnixTime
        var failures = 0
        var dueAt: UnixTime
        /// Since when a call of it is under way. Not kept.
        var askedAt: UnixTime?
        /// Number of the registering call whose answer it waits for. Not kept.
        var behind: UInt64?
    }

    /// A call that was given, and what its answer is for.
    struct UnderWay: Sendable {
        enum Kind: Sendable {
            case settings
            case routine(number: UInt64, ZulipDeviceCall.Kind)
            case forget(ZulipProfile, Int64)
            /// A device that was asked for and is not wanted any more: its answer says which it is.
            case unwanted(since: UnixTime)
            case state
            case events
            /// Whose answer changes nothing here.
            case other
        }

        let id: UInt64
        var kind: Kind
    }

    /// Makes the device of a login.
    ///
    /// - Parameter kept: ``kept`` of the last run, at most ``ZulipLimits/keptBytes``; `nil`: new.
    /// - Parameter generator: ids of calls and a marker come from it; on a phone the system's.
    /// - Throws: `.malformedKept` for what ``kept`` has not written, and for what was kept of another user or
    ///   another server.
    public init(
        _ login: ZulipLogin, keeping kept: Secret?, using generator: inout some RandomNumberGenerator
    ) throws(DeviceError) {
        self.login = login
        core = ZulipRoutine(account: login.account)
        queue = EventQueue(staysOpen: login.asksForEvents == .always)
        nextID = generator.next()
        freshMarker = ZulipRoutine.newMarker(using: &generator)
        if let kept { try read(kept) }
    }

    /// To be told at each start, and when the system gives another token.
    ///
    /// - Parameter token: `nil`: no pushes any more, or a logout: ``due(at:using:)`` has the server forget
    ///   this phone, and the device has forgotten its keys.
    /// - Throws: `.malformedToken` for a token that no relay takes.
    public mutating func use(token: DeviceToken?) throws(DeviceError) {
        guard let token else {
            self.token = nil
            isLeaving = true
            return
        }
        do throws(ZulipError) { try push(token).check() } catch {
            throw DeviceError(.malformedToken, error.codeText)
        }
        if core.routine.isOver {
            // It has left, and comes again.
            core = ZulipRoutine(account: login.account)
            start = Start()
            // Its calls are counted from one again: what the former one asked is not its own.
            underWay.removeAll { if case .routine = $0.kind { true } else { false } }
            asking = nil
            for place in forgets.indices { forgets[place].behind = nil }
        }
        isLeaving = false
        self.token = token
        start.hasNewToken = true
    }

    /// As the core tells it.
    func push(_ token: DeviceToken) -> DevicePushToken {
        switch token.service {
        case .apns: DevicePushToken(kind: .apns, token: token.text, appID: login.bundleID)
        case .fcm: DevicePushToken(kind: .fcm, token: token.text, appID: nil)
        }
    }

    var marker: Secret { login.marker ?? core.routine.marker ?? freshMarker }

    /// Makes a call that is answered to ``answered(_:to:at:using:)``.
    mutating func call(_ kind: UnderWay.Kind, _ http: HTTPCall, patience: Duration = KitLimits.patience)
        -> Call
    {
        let id = nextID
        nextID &+= 1
        underWay.append(UnderWay(id: id, kind: kind))
        if underWay.count > ZulipLimits.callsUnderWay { underWay.removeFirst() }
        return Call(id: id, .http(http), patience: patience)
    }

    // MARK: what an app may ask besides

    /// How the phone registers at this server; `nil` before the server has said what it can do. With
    /// ``ZulipRoute/legacy`` the older protocol, in plaintext, is the app's own to carry out, or not.
    public var route: ZulipRoute? { core.routine.route }

    /// Registers once more, with the same id and keys, whatever the server said before: the user asks for it.
    /// What follows is in ``due(at:using:)``.
    public mutating func registerAgain() {
        start.isAgainWanted = true
        start.isStateWanted = false
    }

    /// Asks the server for a test notification to this phone (§3.4). Send it by itself; its answer is
    /// nothing that the device has to know. `NO_ACTIVE_PUSH_DEVICE` in it says that nothing is set up yet.
    ///
    /// - Returns: `nil` before the server has taken a registration.
    public mutating func testNotification() -> Call? {
        core.testNotification().map { call(.other, http($0)) }
    }

    /// How the account stands with its server.
    public func status(at now: UnixTime) -> DeviceStatus {
        let known = ZulipRoutine.status(of: core, now: now)
        if isLeaving {
            return DeviceStatus(state: .none, since: nil, detail: nil, isQuiet: true, advice: .none)
        }
        // Before the server has said what it can do, a token is what it takes to ask.
        let mayRegister = core.routine.route.map { $0.profile != nil } ?? true
        let isWanting = token == nil && mayRegister && known.advice != .logInAgain
        return DeviceStatus(
            state: known.state, since: core.routine.shownSince, detail: known.errorCode,
            isQuiet: known.isQuiet,
            advice: isWanting && known.state != .active ? .giveToken : known.advice)
    }

    /// After ``use(token:)`` with `nil`: whether the server has forgotten what it had of this phone, or will
    /// not hear of it. After 30 days in any case.
    public var isGone: Bool {
        let hadNothing = core.routine.current == nil && core.routine.former.isEmpty
        return isLeaving && forgets.isEmpty && unwantedSince == nil && (core.routine.isOver || hadNothing)
    }

    // MARK: what arrives

    /// Opens a push.
    ///
    /// - Parameter delivered: at most ``ZulipLimits/deliveredBytes``.
    /// - Returns: `.show` of a message, or of a test notification; `.remove` of messages to take off the
    ///   screen; `.ignore(.laterVersion)` of a type that this version does not know.
    /// - Throws: `.foreign` for what is not of this protocol, or has an id that this account does not have,
    ///   or is sealed to it and of another account; `.doesNotOpen`; `.malformedContent`.
    public func open(
        _ delivered: Delivered, at now: UnixTime
    ) throws(DeviceError) -> Opened<ZulipNotification> {
        let found: ZulipNotification?
        do throws(ZulipError) {
            found = try ZulipRoutine.open(delivered: delivered.json, for: [core], now: now).notification
        } catch { throw DeviceError(error) }
        guard let found else { return .ignore(.laterVersion) }
        return switch found.body {
        case .message, .test: .show(found)
        case .remove: .remove(found)
        }
    }
}

extension DeviceError {
    /// In an app's words.
    init(_ error: ZulipError) {
        let code: Code =
            switch error.code {
            case .foreignPush, .unknownPushKey, .unknownAccount, .foreignContent: .foreign
            case .doesNotOpen: .doesNotOpen
            case .malformedRow: .malformedKept
            default: .malformedContent
            }
        self.init(code, error.codeText)
    }
}
