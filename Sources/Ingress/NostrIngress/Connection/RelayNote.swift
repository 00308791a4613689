package import MarmotPush
package import PushModel
package import WebSocket

/// What happened at a relay, for counting and logging: words of our own, nothing that a relay said.
package enum RelayNote: Sendable, Hashable {
    case connected, listening
    case disconnected(WebSocketError.Code?), unreachable(WebSocketError.Code?)
    case closed(NostrReason?), refusedForGood
    case proven, proofRefused, proofUnanswered
    case listAccepted, listUnanswered
    case listRejected(NostrReason?)
    case endWithheld, notice
    /// A trigger of ours, published as by a stranger, came back through the relay, did not, or was not
    /// accepted.
    case selfTestPassed, selfTestLost
    case selfTestRefused(NostrReason?), selfTestFailed(WebSocketError.Code?)
    // Messages that are dropped.
    case malformed, strangeSubscription, wrongFilter, outdated, beforeEnd, strangeAnswer, tooManyChallenges

    /// Whether what a stranger published came through; `nil`: it was not published, or this is no test.
    var isHeard: Bool? {
        switch self {
        case .selfTestPassed: true
        case .selfTestLost: false
        default: nil
        }
    }

    /// Metric label, and the `note` of a log line.
    package var code: NoteCode {
        switch self {
        case .connected: NoteCode("connected")
        case .listening: NoteCode("listening")
        case .disconnected: NoteCode("disconnected")
        case .unreachable: NoteCode("unreachable")
        case .closed: NoteCode("closed")
        case .refusedForGood: NoteCode("refused-for-good")
        case .proven: NoteCode("proven")
        case .proofRefused: NoteCode("proof-refused")
        case .proofUnanswered: NoteCode("proof-unanswered")
        case .listAccepted: NoteCode("list-accepted")
        case .listUnanswered: NoteCode("list-unanswered")
        case .listRejected: NoteCode("list-rejected")
        case .endWithheld: NoteCode("end-withheld")
        case .notice: NoteCode("notice")
        case .selfTestPassed: NoteCode("self-test-passed")
        case .selfTestLost: NoteCode("self-test-lost")
        case .selfTestRefused: NoteCode("self-test-refused")
        case .selfTestFailed: NoteCode("self-test-failed")
        case .malformed: NoteCode("malformed")
        case .strangeSubscription: NoteCode("strange-subscription")
        case .wrongFilter: NoteCode("wrong-filter")
        case .outdated: NoteCode("outdated")
        case .beforeEnd: NoteCode("before-end")
        case .strangeAnswer: NoteCode("strange-answer")
        case .tooManyChallenges: NoteCode("too-many-challenges")
        }
    }

    /// The code beside it in a log line; `nil`: none.
    package var detail: ErrorCode? {
        switch self {
        case .disconnected(let code?), .unreachable(let code?), .selfTestFailed(let code?):
            ErrorCode(WebSocketError(code))
        case .closed(let reason?), .listRejected(let reason?), .selfTestRefused(let reason?): reason.logged
        default: nil
        }
    }

    /// Silent: an event that a relay can cause as often as it likes is counted, never logged.
    package var level: LogLevel? {
        switch self {
        case .connected, .disconnected, .proven, .listAccepted, .selfTestPassed: .debug
        case .listening: .info
        case .unreachable, .closed, .refusedForGood, .proofRefused, .listRejected, .listUnanswered,
            .selfTestLost, .selfTestRefused, .selfTestFailed:
            .warning
        case .proofUnanswered, .endWithheld: .debug
        case .notice, .malformed, .strangeSubscription, .wrongFilter, .outdated, .beforeEnd, .strangeAnswer,
            .tooManyChallenges:
            nil
        }
    }
}

extension NostrReason {
    fileprivate var logged: ErrorCode {
        switch self {
        case .authRequired: ErrorCode("auth-required")
        case .restricted: ErrorCode("restricted")
        case .duplicate: ErrorCode("duplicate")
        case .blocked: ErrorCode("blocked")
        case .invalid: ErrorCode("invalid")
        case .pow: ErrorCode("pow")
        case .error: ErrorCode("error")
        case .mute: ErrorCode("mute")
        case .rateLimited: ErrorCode("rate-limited")
        }
    }
}
