import PushModel
import Synchronization

/// Why an instance could not say whose key it is.
package enum ProofFault: String, LogSafe, Hashable, CaseIterable {
    // May pass.
    case unreachable, deadlineExceeded, inTrouble
    // Will not pass by itself.
    case unknownHost, forbiddenAddress, tlsFailed, malformedURL, answerTooLarge, redirected, unexpectedStatus
    case malformedAnswer
    /// 404: it knows no such user, or is no Nextcloud server at all.
    case notFound

    package var logText: String { rawValue }

    init(_ code: WebErrorCode) {
        switch code {
        case .unreachable: self = .unreachable
        case .unknownHost: self = .unknownHost
        case .deadlineExceeded: self = .deadlineExceeded
        case .forbiddenAddress: self = .forbiddenAddress
        case .tlsFailed: self = .tlsFailed
        case .malformedURL, .plainElsewhere: self = .malformedURL
        case .answerTooLarge: self = .answerTooLarge
        }
    }

    /// - Parameter status: not 200.
    init(status: Int) {
        switch status {
        case 404: self = .notFound
        case 300..<400: self = .redirected
        case 408, 425, 429, 500...: self = .inTrouble
        default: self = .unexpectedStatus
        }
    }

    /// What a device hears.
    var refusal: NextcloudError {
        switch self {
        case .unreachable, .deadlineExceeded, .inTrouble: NextcloudError(.instanceUnreachable)
        case .notFound: NextcloudError(.identityRefused)
        case .unknownHost, .forbiddenAddress, .tlsFailed, .malformedURL, .answerTooLarge, .redirected,
            .unexpectedStatus, .malformedAnswer:
            NextcloudError(.instanceUnfit)
        }
    }
}

/// What an instance says of one of its users.
enum InstanceWord: Sendable {
    /// The key's DER.
    case key([UInt8])
    case fault(ProofFault)

    func names(_ der: [UInt8]) -> Bool { if case .key(der) = self { true } else { false } }
}

/// Answers of instances: each is asked for once at a time, and stays valid for a while. So a caller that asks
/// about a user first, or often, keeps nobody else from an answer (decision 0101).
final class InstanceWords: Sendable {
    enum Step {
        case known(InstanceWord)
        /// Nobody asks yet: the caller that gets this must ask, and end with ``finish(_:_:now:)``.
        case asks
        /// Somebody does: ``join(_:)``.
        case isAsked
    }

    private struct State {
        var known = Recent<Digest16, (word: InstanceWord, at: ContinuousClock.Instant)>(
            capacity: NextcloudLimits.instanceWords)
        /// Those who wait for a word that somebody asks for.
        var asked: [Digest16: [CheckedContinuation<InstanceWord?, Never>]] = [:]
    }

    private let state = Mutex(State())

    /// - Parameter der: the key that is to be confirmed. A word for it stands longer than any other, which
    ///   the instance may have changed meanwhile.
    func begin(_ name: Digest16, for der: [UInt8], now: ContinuousClock.Instant) -> Step {
        state.withLock { state in
            if let (word, at) = state.known.value(name) {
                let life = word.names(der) ? NextcloudLimits.wordLife : NextcloudLimits.refusalLife
                if now - at < life { return .known(word) }
            }
            guard state.asked[name] == nil else { return .isAsked }
            state.asked[name] = []
            return .asks
        }
    }

    /// - Returns: `nil`: there is none, or too many wait for it.
    func join(_ name: Digest16) async -> InstanceWord? {
        await withCheckedContinuation { continuation in
            let known = state.withLock { state -> InstanceWord?? in
                guard let waiting = state.asked[name] else { return .some(state.known.value(name)?.word) }
                guard waiting.count < NextcloudLimits.waitingForWord else { return .some(nil) }
                state.asked[name]?.append(continuation)
                return nil
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    /// - Parameter word: `nil`: the instance was not asked.
    func finish(_ name: Digest16, _ word: InstanceWord?, now: ContinuousClock.Instant) {
        let waiting = state.withLock { state in
            if let word { state.known.set((word, now), for: name) }
            return state.asked.removeValue(forKey: name) ?? []
        }
        for continuation in waiting { continuation.resume(returning: word) }
    }
}
