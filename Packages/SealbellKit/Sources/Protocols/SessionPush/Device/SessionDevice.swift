import Primitives
public import PushModel
public import SealbellKit

/// The device: one app on one phone, with all its accounts. A value; it sends nothing.
///
/// At each start it is given its token, each of its accounts (``watch(_:)``) and a path of storage servers
/// (``path``). It subscribes each account, and again after a random time between 12 hours and 7 days: a
/// subscription ends when its signature is 14 days old (§3.4).
public struct SessionDevice: PushDevice {
    let server: SessionServer
    package internal(set) var routine: SessionRoutine
    /// Storage servers that calls go through, the one that is asked first at first; three as a rule, at most
    /// 15. Empty: onions for the server alone, which then learns the phone's address. It is for the next
    /// ``due(at:using:)``, and never kept.
    public var path: [OnionNode] = []
    /// How onions are sealed.
    package var cipher = OnionCipher.xchacha20
    var underWay: [UInt64: UnderWay] = [:]
    /// Codes of refusals in this run, by the routine's names of accounts.
    var refusals: [Digest16: String] = [:]
    /// Since when something is told that has not been taken; `nil`: nothing, or all of it was.
    var askedAt: UnixTime?
    /// What was wrong with the last path; `nil`: nothing.
    var pathFault: SessionError.Code?

    /// A call whose answer is awaited.
    struct UnderWay: Sendable {
        /// The routine's.
        let id: UInt64
        /// What opens the answer; `nil`: it comes in the clear.
        let request: OnionRequest?
    }

    /// Makes the device; see ``PushDevice/init(_:keeping:using:)``.
    ///
    /// With another server than ``kept`` tells of, every account is subscribed anew.
    ///
    /// - Parameter kept: ``kept`` of the last run, at most 4 MiB; `nil`: new, with a key of 32 bytes for what
    ///   arrives.
    /// - Throws: `.malformedKept`.
    public init(
        _ setup: SessionServer, keeping kept: Secret?, using generator: inout some RandomNumberGenerator
    ) throws(DeviceError) {
        if let kept {
            try self.init(setup, keeping: kept)
        } else {
            self.init(setup, SessionRoutine(using: &generator))
        }
    }

    /// A device that has got as far as this.
    package init(_ server: SessionServer, _ routine: SessionRoutine) {
        (self.server, self.routine) = (server, routine)
    }

    // MARK: tokens and accounts

    /// With another token than before every account is subscribed anew at once, and the subscriptions of the
    /// old one are taken back.
    ///
    /// - Parameter token: `nil`: all accounts leave; those that were watched in this run or a former one
    ///   since then are taken back by calls that are signed already. Watch them before it is said, because an
    ///   account's key signs; one that was not is over 14 days after its last subscription.
    /// - Throws: `.malformedToken` for an APNs token of another length than 32 bytes, and an FCM token of
    ///   less than 32 or more than 999 characters. Nothing has changed then.
    public mutating func use(token: DeviceToken?) throws(DeviceError) {
        guard let token else {
            (routine.token, routine.isUnwanted) = (nil, true)
            return
        }
        let service: SessionService =
            switch (token.service, token.entitlement) {
            case (.apns, .production): .apns
            case (.apns, .development): .apnsSandbox
            case (.fcm, _): .firebase
            }
        do { routine.use(try SessionDeviceToken(service, token.text)) } catch {
            throw DeviceError(.malformedToken, error.codeText)
        }
    }

    /// Adds an account, or replaces what is watched of it; changed settings are told at once. At each start,
    /// for no account's key is kept.
    ///
    /// - Throws: `.tooMany` beyond 2,000 accounts.
    public mutating func watch(_ account: WatchedAccount) throws(DeviceError) {
        do { try routine.watch(account) } catch { throw DeviceError(.tooMany, error.codeText) }
    }

    /// The account leaves the phone, or is to be silent: its subscription is taken back, which is tried for
    /// 23 hours. Its key is not needed for longer than this call. Nothing for an account that was not watched
    /// in this run.
    ///
    /// - Throws: `.malformedKey`, which nobody will meet.
    public mutating func leave(_ account: AccountID, at now: UnixTime) throws(DeviceError) {
        do { try routine.leave(account, now: now) } catch { throw DeviceError(.malformedKey, error.codeText) }
        refusals[routine.name(of: account)] = nil
    }

    /// Something seems wrong, such as a server that has lost its records: ``due(at:using:)`` subscribes every
    /// account anew, though its time has not come.
    public mutating func subscribeAgain() { routine.renewAll() }

    /// Whether no server has anything of this phone.
    public var isGone: Bool {
        routine.isUnwanted && routine.leaving.isEmpty && routine.standings.isEmpty
    }

    // MARK: receiving

    /// Opens what arrived. No account's key is needed for it: what is open is still sealed by its sender, and
    /// is the app's to decrypt.
    ///
    /// - Returns: `.show` where the message is here; `.update` where what is here concerns the account's
    ///   settings, lists or keys; `.fetch` where it is too long, or not asked for: from the account's swarm;
    ///   `.ignore` for repeats of what was ``stored(_:)``, what storage servers no longer have, and after
    ///   ``use(token:)`` with `nil`.
    /// - Throws: `.foreign` for what has no `spns` and `enc_payload`, and for an account that is not on this
    ///   phone; `.doesNotOpen`; `.malformedContent`.
    public func open(_ delivered: Delivered, at now: UnixTime) throws(DeviceError) -> Opened<SessionMessage> {
        do throws(SessionError) {
            let action = try routine.open(try DeliveredPush(delivered: delivered.json), now: now)
            if routine.isUnwanted { return .ignore(.switchedOff) }
            switch action {
            case .show(let message): return .show(message)
            case .update(let message): return .update(message)
            case .fetch(let message): return .fetch(message)
            case .ignore(.repeated): return .ignore(.repeated)
            case .ignore(.expired): return .ignore(.expired)
            case .ignore(.foreignAccount): break
            }
        } catch {
            let code: DeviceError.Code =
                switch error.code {
                case .foreignPush: .foreign
                case .malformedPush: .malformedContent
                default: .doesNotOpen
                }
            throw DeviceError(code, error.codeText)
        }
        throw DeviceError(.foreign, "foreignAccount")
    }

    /// The message was stored, or fetched: a repeat of its push is ignored. The last 512 are remembered.
    public mutating func stored(_ content: SessionMessage) { routine.remember(content) }
}

extension SessionDevice: CustomStringConvertible, CustomReflectable {
    /// `‹device›`, whatever it is.
    public var description: String { "‹device›" }
    /// Without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
