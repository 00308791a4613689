package import MarmotPush
package import PushModel
package import WebSocket

/// What happened at a relay, for counting and logging: words of our own, nothing that a relay said.
package struct RelayNote: Sendable, Hashable {
    /// Metric label, and the `note` of a log line.
    package let code: NoteCode
    /// `nil`: silent. An event that a relay can cause as often as it likes is counted, never logged.
    package let level: LogLevel?
    /// The code beside it in a log line; `nil`: none.
    package let detail: ErrorCode?

    private init(_ code: StaticString, _ level: LogLevel?, _ detail: ErrorCode? = nil) {
        (self.code, self.level, self.detail) = (NoteCode(code), level, detail)
    }

    private init(_ code: StaticString, _ level: LogLevel?, _ fault: WebSocketError.Code?) {
        self.init(code, level, fault.map { ErrorCode(WebSocketError($0)) })
    }

    package static let connected = RelayNote("connected", .debug)
    package static let listening = RelayNote("listening", .info)

    package static func disconnected(_ fault: WebSocketError.Code?) -> RelayNote {
        RelayNote("disconnected", .debug, fault)
    }

    package static func unreachable(_ fault: WebSocketError.Code?) -> RelayNote {
        RelayNote("unreachable", .warning, fault)
    }

    package static func closed(_ reason: NostrReason?) -> RelayNote {
        RelayNote("closed", .warning, reason?.logged)
    }

    package static let refusedForGood = RelayNote("refused-for-good", .warning)
    package static let proven = RelayNote("proven", .debug)
    package static let proofRefused = RelayNote("proof-refused", .warning)
    package static let proofUnanswered = RelayNote("proof-unanswered", .debug)
    package static let listAccepted = RelayNote("list-accepted", .debug)
    package static let listUnanswered = RelayNote("list-unanswered", .warning)

    package static func listRejected(_ reason: NostrReason?) -> RelayNote {
        RelayNote("list-rejected", .warning, reason?.logged)
    }

    package static let endWithheld = RelayNote("end-withheld", .debug)
    package static let notice = RelayNote("notice", nil)
    // A trigger of ours, published as by a stranger, came back through the relay, did not, or was not
    // accepted.
    package static let selfTestPassed = RelayNote("self-test-passed", .debug)
    package static let selfTestLost = RelayNote("self-test-lost", .warning)

    package static func selfTestRefused(_ reason: NostrReason?) -> RelayNote {
        RelayNote("self-test-refused", .warning, reason?.logged)
    }

    package static func selfTestFailed(_ fault: WebSocketError.Code?) -> RelayNote {
        RelayNote("self-test-failed", .warning, fault)
    }

    // Messages that are dropped.
    package static let malformed = RelayNote("malformed", nil)
    package static let strangeSubscription = RelayNote("strange-subscription", nil)
    package static let wrongFilter = RelayNote("wrong-filter", nil)
    package static let outdated = RelayNote("outdated", nil)
    package static let beforeEnd = RelayNote("before-end", nil)
    package static let strangeAnswer = RelayNote("strange-answer", nil)
    package static let tooManyChallenges = RelayNote("too-many-challenges", nil)

    /// Whether what a stranger published came through; `nil`: it was not published, or this is no test.
    var isHeard: Bool? {
        switch self {
        case .selfTestPassed: true
        case .selfTestLost: false
        default: nil
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
