package import PushModel
import Synchronization

/// All hosts of a test in one value: they answer as the test says, and keep the requests.
package final class ScriptedWeb: WebFetch {
    /// The requests, in order.
    package let requests = Noted<[WebRequest]>([])
    private let answer: @Sendable (WebRequest) async throws(WebError) -> WebAnswer

    package init(_ answer: @escaping @Sendable (WebRequest) async throws(WebError) -> WebAnswer) {
        self.answer = answer
    }

    /// No host answers.
    package convenience init() {
        self.init { (_) async throws(WebError) -> WebAnswer in throw WebError(.unreachable) }
    }

    /// These are the answers to any requests, in order; after them no host answers.
    package convenience init(
        _ answers: [Result<WebAnswer, WebError>], gate: (@Sendable () async -> Void)? = nil
    ) {
        let next = AnswerList(answers)
        self.init { (_) async throws(WebError) -> WebAnswer in
            let answer = next.take()
            await gate?()
            return try (answer ?? .failure(WebError(.unreachable))).get()
        }
    }

    package func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
        requests.change { $0.append(request) }
        return try await answer(request)
    }
}

private final class AnswerList: Sendable {
    private let answers: Mutex<ArraySlice<Result<WebAnswer, WebError>>>
    init(_ answers: [Result<WebAnswer, WebError>]) { self.answers = Mutex(answers[...]) }
    func take() -> Result<WebAnswer, WebError>? { answers.withLock { $0.popFirst() } }
}

extension WebAnswer {
    /// Without `Retry-After`.
    package init(_ status: Int, _ body: String = "") {
        self.init(status: status, retryAfter: nil, body: Secret(body.utf8))
    }
}
