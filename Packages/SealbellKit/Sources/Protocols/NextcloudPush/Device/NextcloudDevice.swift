public import PushModel
public import SealbellKit
import RSAKeys
import WireFormats

/// The device: one login on one phone (§3). A value; it sends nothing.
///
/// It registers at the user's server and then at the relay, once more each day, and opens what arrives. A new
/// device draws an RSA key of 2,048 bits, which takes 0.1 to 1 s, and keeps it.
///
/// A VoIP push must be shown as a call even when ``open(_:at:)`` throws, or iOS ends the app.
public struct NextcloudDevice: PushDevice {
    let login: NextcloudLogin
    package internal(set) var routine: NextcloudRoutine
    /// Given in this run.
    var token: NextcloudPushToken?
    /// In this run there was told that there is none.
    var isUnwanted = false
    /// Until nothing is left of it anywhere.
    var leaving: Unregistration?
    /// The server was told something and has not answered: it may have a registration that is not known here.
    var isAsked = false
    /// What the server said in this run.
    var server: NextcloudCapabilities?
    var underWay: UnderWay?
    /// What the last answer has led to, and ``due(at:)`` has not given yet.
    var following: HTTPCall?
    var notBefore: UnixTime?
    /// Until then nothing is tried in this run, because it was refused.
    var restsUntil: UnixTime?
    /// When the state of ``status(at:)`` was last another one.
    var changedAt: UnixTime?
    /// Why it was refused or put off last; `nil`: nobody answered, or it was not.
    var trouble: NextcloudError.Code?

    struct UnderWay: Sendable {
        enum Kind: Sendable { case capabilities, registration, leaving }
        let id: UInt64
        let kind: Kind
        let since: UnixTime
    }

    /// Makes the device; see ``PushDevice/init(_:keeping:using:)``.
    ///
    /// Of another server, user, login name or app password than ``kept`` tells of, it registers anew, and
    /// until then opens what the one before has signed.
    ///
    /// - Parameter kept: ``kept`` of the last run, at most 16 KiB; `nil`: new.
    /// - Throws: `.malformedSetup` for an address that is none, and for texts that are too long;
    ///   `.malformedKept`.
    public init(
        _ setup: NextcloudLogin, keeping kept: Secret?, using generator: inout some RandomNumberGenerator
    ) throws(DeviceError) {
        if let kept {
            try self.init(setup, keeping: kept)
            return
        }
        let key: RSAPrivateKey
        do { key = try .generate() } catch { throw DeviceError(.malformedSetup, error.codeText) }
        try self.init(setup, key: key)
    }

    /// A new device with a key that was made elsewhere.
    ///
    /// - Throws: `.malformedSetup`.
    package init(_ login: NextcloudLogin, key: RSAPrivateKey) throws(DeviceError) {
        try self.init(login, NextcloudRoutine(account: login.account, app: login.app, key: key))
    }

    /// A device that has got as far as this.
    ///
    /// - Throws: `.malformedSetup`.
    package init(_ login: NextcloudLogin, _ routine: NextcloudRoutine) throws(DeviceError) {
        guard login.isSound else { throw DeviceError(.malformedSetup) }
        (self.login, self.routine) = (login, routine)
    }

    // MARK: tokens

    /// The one token of an app without calls, or on Android; see ``PushDevice/use(token:)``.
    ///
    /// - Throws: `.malformedToken` for a text that no relay takes.
    public mutating func use(token: DeviceToken?) throws(DeviceError) { try use(token: token, calls: nil) }

    /// Both tokens of an iOS app with calls.
    ///
    /// - Parameter token: of alerts; `nil` for a logout, and then `calls` is `nil`, too.
    /// - Parameter calls: of PushKit, only where the login's `voip` is `.strict`.
    /// - Throws: `.wrongService` for a second token that is not of APNs beside one of APNs, or that the login
    ///   knows nothing of; `.malformedToken` for texts that no relay takes. Nothing has changed then.
    public mutating func use(token: DeviceToken?, calls: DeviceToken?) throws(DeviceError) {
        guard let token else {
            guard calls == nil else { throw DeviceError(.wrongService) }
            return leave()
        }
        if let calls {
            guard token.service == .apns, calls.service == .apns, login.app.voip == .strict else {
                throw DeviceError(.wrongService)
            }
        }
        let joined: NextcloudPushToken
        do {
            joined =
                if let calls { try NextcloudPushToken(alert: token.text, voip: calls.text) } else {
                    try NextcloudPushToken(token.text)
                }
        } catch { throw DeviceError(.malformedToken, error.codeText) }
        if leaving != nil {
            // What was taken back until now nobody can tell.
            leaving = nil
            routine.distrust()
        }
        isUnwanted = false
        if joined.hash != self.token?.hash { (notBefore, restsUntil) = (nil, nil) }
        self.token = joined
    }

    private mutating func leave() {
        (token, isUnwanted, following) = (nil, true, nil)
        (notBefore, restsUntil) = (nil, nil)
        // An answer to it would tell nothing that is still of use.
        if underWay?.kind == .capabilities { underWay = nil }
        guard leaving == nil else { return }
        guard routine.registration != nil || isAsked else {
            // Whatever was refused is not wanted any more.
            trouble = nil
            return
        }
        leaving = Unregistration(account: login.account, app: login.app)
    }

    /// Whether server and relay have nothing of this phone.
    public var isGone: Bool {
        isUnwanted && leaving == nil && !isAsked && routine.registration == nil
    }

    /// Something seems wrong: ``due(at:)`` registers anew, though a day has not passed. Nothing where no
    /// token was given.
    public mutating func registerAgain() {
        guard token != nil else { return }
        routine.distrust()
        (notBefore, restsUntil) = (nil, nil)
    }

    // MARK: receiving

    /// Opens what arrived for this login: verifies it with the user's key, then opens it.
    ///
    /// - Returns: `.show` for an alert that is whole; `.fetch` for one that was cut, or that says not
    ///   everything: ``details(of:)`` asks for the rest; `.remove` for withdrawals; `.ignore` for a form of a
    ///   later version (`.laterVersion`), and after a logout (`.switchedOff`).
    /// - Throws: `.foreign` for what has no `subject` and `signature`, or is signed by another user (or
    ///   nobody); `.doesNotOpen` for what the user's server has sealed to another key.
    public func open(
        _ delivered: Delivered, at now: UnixTime
    ) throws(DeviceError) -> Opened<NextcloudContent> {
        guard let sealed = SealedSubject(delivered) else { throw DeviceError(.foreign) }
        let content: NextcloudContent?
        do { content = try routine.open(sealed) } catch {
            let code: DeviceError.Code =
                switch error.code {
                case .foreignSignature: .foreign
                case .malformedSubject: .malformedContent
                default: .doesNotOpen
                }
            throw DeviceError(code, error.codeText)
        }
        guard leaving == nil else { return .ignore(.switchedOff) }
        switch content {
        case nil: return .ignore(.laterVersion)
        case .alert(let alert)?: return alert.needsDetails ? .fetch(.alert(alert)) : .show(.alert(alert))
        case .withdrawal?, .withdrawalOfAll?: return .remove(content ?? .withdrawalOfAll)
        }
    }

    // MARK: calls of the app's own

    /// Asks the server for the whole notification: its JSON, at most 4 MiB, is the answer's body.
    ///
    /// Its answer is the app's: ``answered(_:to:at:)`` takes none.
    public func details(of alert: NextcloudAlert) -> Call { ownCall(routine.details(of: alert)) }

    /// Asks the server for a test push. A server of release 30 or earlier has none, and answers with 404.
    ///
    /// Its answer is the app's: ``answered(_:to:at:)`` takes none.
    public func selfTest() -> Call { ownCall(routine.selfTest()) }

    private func ownCall(_ call: HTTPCall) -> Call {
        Call(id: .random(in: 0...UInt64(Int64.max)), .http(call))
    }
}

extension NextcloudDevice: CustomStringConvertible, CustomReflectable {
    /// `‹device›`, whatever it is.
    public var description: String { "‹device›" }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
