package import PushModel

/// What an answer of a push service means by that service's outcome table.
package struct AnswerReading: Sendable, Hashable {
    /// What the sender does about the connection or the token, beside the outcome.
    package enum Cure: Sendable, Hashable {
        case none
        /// Send on another connection from now on, with the same token.
        case replaceConnection
        /// The token is refused: try once with a new one, if ours may be replaced.
        case renewToken
    }

    package let outcome: Outcome
    package let reason: Reason
    package let cure: Cure

    package init(_ outcome: Outcome, _ reason: Reason, _ cure: Cure = .none) {
        self.outcome = outcome
        self.reason = reason
        self.cure = cure
    }

    /// An answer that is not the service's own was given before the service saw the request.
    package var fate: Answer.Fate { reason == .foreignAnswer ? .unprocessed : .answered }

    /// An answer that is not in the service's own form: a page of a front end or a proxy, or half a body. It
    /// says nothing about our credential, and about the push only what another attempt confirms.
    ///
    /// - Parameter wait: the wait that the answer asks for.
    package static func unreadable(_ status: Int, wait: Duration?) -> AnswerReading {
        switch AnswerMeaning(status: status) {
        case .accepted: AnswerReading(.accepted, .ok)
        case .passes: AnswerReading(.retry(after: wait), .unknown)
        // With these a proxy or a front end answers for itself (decision 0079), also with 404.
        case .aboutSender: AnswerReading(.retry(after: wait), .foreignAnswer)
        case .aboutRequest where status == 404: AnswerReading(.retry(after: wait), .foreignAnswer)
        case .passesElsewhere: AnswerReading(.retry(after: wait), .unknown, .replaceConnection)
        case .aboutRequest: AnswerReading(.retry(after: wait), .unreadable)
        }
    }
}
