package import PushModel
package import SealbellKit

/// How an account stands with its server (§14.12): for the app's settings page.
package struct ZulipStatus: Sendable, Hashable {
    /// The specification's words; `none`: the server has nothing of this phone.
    package typealias State = DeviceStatus.State
    /// What the user can do. docs/guides/zulip.md has a sentence for each.
    package typealias Advice = DeviceStatus.Advice

    package let state: State
    /// For how long it has been that.
    package let age: Duration
    /// Why it failed, in upper case; `nil` where it did not, or the server's word is none.
    package let errorCode: String?
    /// Whether to say nothing yet: it is being seen to, and the login or the last acknowledged call is less
    /// than five minutes old.
    package let isQuiet: Bool
    package let advice: Advice
}

/// What a server shows of one registration.
enum ShownState: Sendable, Hashable {
    case none, pending, active
    /// The code in upper case; `nil` where it is no code.
    case failed(code: String?)

    var state: ZulipStatus.State {
        switch self {
        case .none: .none
        case .pending: .pending
        case .active: .active
        case .failed: .failed
        }
    }
}

extension ZulipRoutine {
    /// How an account stands with its server.
    package static func status(of device: ZulipRoutine, now: UnixTime) -> ZulipStatus {
        let routine = device.routine
        let advice = routine.advice(now)
        let isSeenTo = advice == .none || advice == .wait || advice == .retrying
        let code: String? =
            if case .failed(let code) = routine.shown { code } else { routine.halt?.code }
        return ZulipStatus(
            state: routine.shown.state, age: max(.zero, now.since(routine.shownSince ?? now)),
            errorCode: code, isQuiet: routine.shown != .active && isSeenTo && routine.isInGrace(now),
            advice: advice)
    }
}

extension DeviceRoutine {
    func advice(_ now: UnixTime) -> ZulipStatus.Advice {
        if route == .legacy || route == .refused { return .unsupported }
        switch halt {
        case .loggedOut: return .logInAgain
        case .refused: return .tellAdmin
        case nil: break
        }
        if shown == .active { return .none }
        if isKeyRefused { return .updateApp }
        if isRetrying { return .retrying }
        if isInGrace(now) { return .none }
        return shown == .pending ? .wait : .retrying
    }

    /// Less than five minutes since the login or the last acknowledged call.
    func isInGrace(_ now: UnixTime) -> Bool {
        guard let since = [acknowledged?.at, loggedInAt].compactMap(\.self).max() else { return true }
        // A clock that was set back must not keep it quiet.
        let age = now.since(since)
        return age >= .zero && age < ZulipLimits.registrationGrace
    }
}
