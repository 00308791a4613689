import PushModel
import Synchronization

/// What a listener had run out of when it refused a call, whoever used it.
package enum ListenerStrain: String, LogSafe, Hashable, CaseIterable {
    /// Memory for bodies.
    case bodies
    /// Requests on their way to their answer.
    case requests
    case connections
    /// The system had no descriptor or no memory for a connection.
    case descriptors

    package var logText: String { rawValue }

    /// For sentences.
    package var noun: String {
        switch self {
        case .bodies: "memory for bodies"
        case .requests: "places for requests"
        case .connections: "places for connections"
        case .descriptors: "descriptors"
        }
    }
}

/// When a listener was last strained, and by what. Noted where a call is turned away, looked at once a sweep.
final class LastStrain: Sendable {
    private struct State {
        var last: [ListenerStrain: ContinuousClock.Instant] = [:]
        /// `nil`: nothing was reported yet.
        var told: Set<ListenerStrain>?
    }

    private let state = Mutex(State())
    private let lasts: Duration
    private let began: ContinuousClock.Instant

    init(lasts: Duration, began: ContinuousClock.Instant) {
        self.lasts = lasts
        self.began = began
    }

    func note(_ strain: ListenerStrain, at now: ContinuousClock.Instant) {
        state.withLock { $0.last[strain] = now }
    }

    /// When ``change(at:)`` will have something to tell unless more is noted; `nil`: never.
    var nextChange: ContinuousClock.Instant? {
        state.withLock { state in
            guard let told = state.told else { return state.last.isEmpty ? began + lasts : began }
            return told == Set(state.last.keys) ? state.last.values.min().map { $0 + lasts } : began
        }
    }

    /// What strains the listener now, if that has changed since the last report. A new listener first reports
    /// after a while that nothing does, because the earlier process may have reported something.
    func change(at now: ContinuousClock.Instant) -> Set<ListenerStrain>? {
        state.withLock { state in
            let lasts = lasts
            state.last = state.last.filter { now < $0.value + lasts }
            let strains = Set(state.last.keys)
            let isTooSoon = state.told == nil && strains.isEmpty && now < began + lasts
            guard strains != state.told, !isTooSoon else { return nil }
            state.told = strains
            return strains
        }
    }
}
