public import PushModel
import WireFormats

/// What came back for a ``Call``. An answer of another kind than the call's counts as none.
public enum CallAnswer: Sendable {
    /// To ``Call/Way/http(_:)``, whatever the status (100 to 599): the value of `Retry-After`, where there
    /// was one, and the body, at most ``HTTPCall/answerLimitBytes``.
    case http(status: Int, retryAfter: String? = nil, body: Secret)
    /// The node, the group or one of the relays has it; a standing call is in force; a history has ended.
    case taken
    /// To ``Call/Way/follow(topics:)`` and ``Call/Way/history(topic:)``: a message that has arrived.
    case waku(WakuMessage)
    /// To ``Call/Way/hear(group:kinds:)``: an application message, as NIP-01 JSON; the leaf that MLS proved
    /// to be its sender, the epoch, and its place in the order in which the group's messages arrived here.
    case group(rumor: Secret, leaf: UInt32, epoch: UInt64, index: UInt64)
    /// To ``Call/Way/lookUp(filter:relays:)``: events that were found, as NIP-01 JSON; may be none.
    case events([Secret])
    /// To ``Call/Way/event(_:relays:)``: what each of the relays did, at most one answer for each. Of an app
    /// that cannot tell, ``taken`` is enough.
    case relays([(url: String, answer: RelayAnswer)])
    /// No network, no answer in time, or one that is too long.
    case none
}

/// What an answer to ``Call/Way/http(_:)`` has; of any other there is nothing.
extension CallAnswer {
    /// - Parameter status: of HTTP; `nil`: nobody answered.
    package init(status: Int?, retryAfter: String? = nil, body: Secret = Secret([])) {
        guard let status else {
            self = .none
            return
        }
        self = .http(status: status, retryAfter: retryAfter, body: body)
    }

    /// 100 to 599, of HTTP; `nil`: nobody answered.
    public var status: Int? { if case .http(let status, _, _) = self { status } else { nil } }

    /// The body's bytes; none where nobody answered.
    public var body: Secret { if case .http(_, _, let body) = self { body } else { Secret([]) } }

    /// The pause that `Retry-After` asks for, a day at most; `nil` where there is none that can be read.
    ///
    /// - Parameter now: from which a date in it counts.
    public func pause(now: UnixTime) -> Duration? {
        guard case .http(_, let retryAfter?, _) = self else { return nil }
        return RetryAfter.parse(retryAfter, now: now)
    }
}
