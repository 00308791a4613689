import PushModel
import Synchronization

/// A stream that is free on a connection that stands; once used, the request's own state.
///
/// One object a request: reservation, continuation and what has come back so far.
package final class HTTP2Slot: SendSlot, @unchecked Sendable {
    // Safety: `call` and `sender` are written by the one sender that won `use()` before the slot goes through
    // the connection's locked inbox; from then on all fields belong to the connection's event loop.

    /// What the sender hands over, and hands over again where it was not processed.
    ///
    /// A class: it is looked at a dozen times a request, and a copy of it is ten fields. And moments have no
    /// fixed size: each that stands in a task's memory is an allocation.
    final class Call: Sendable {
        let request: HTTP2Request
        /// When the caller handed it over, to this connection or to one before.
        let begun: ContinuousClock.Instant
        /// When the caller gives it up; `nil`: when the pool's patience ends.
        let deadline: ContinuousClock.Instant?
        /// It must not be sent twice, so that its connection has to be heard from first.
        let isUnrepeatable: Bool
        let sendBefore: ContinuousClock.Instant

        init(
            request: HTTP2Request, begun: ContinuousClock.Instant, deadline: ContinuousClock.Instant?,
            isUnrepeatable: Bool, sendBefore: ContinuousClock.Instant
        ) {
            self.request = request
            self.begun = begun
            self.deadline = deadline
            self.isUnrepeatable = isUnrepeatable
            self.sendBefore = sendBefore
        }
    }

    let connection: HTTP2Connection
    private let spent = Atomic<Bool>(false)

    var call: Call?
    /// Who waits for the answer, as long as there is a call.
    var sender: UnsafeContinuation<HTTP2Answer, Never>?
    /// Of a request that was given up and may be answered yet.
    var late: HTTP2LateAnswer?
    /// When the caller handed it over.
    var begun: ContinuousClock.Instant?
    /// Keeps the memory of the fields until the stream is closed: the session reads it where it stands.
    var held: Call?
    /// Where it stands in the connection's list.
    var index = -1
    var streamID: Int32 = 0
    /// Whether the header fields were handed to the session's output: the peer may have seen the request.
    var written = false
    /// The connection's turn in which it was handed to the session, its lease checked.
    var turn: UInt64 = 0
    var bodyOffset = 0
    /// Whether the last byte of the body was handed over: only then can the peer have acted on it.
    var bodySent = false
    /// Whether the peer's END_STREAM came.
    var complete = false
    var resetSent = false
    /// When an answered stream was first seen still open.
    var lateSince: ContinuousClock.Instant?
    var sentAt = UnixTime.distantPast
    var status = 0
    var retryAfter: [UInt8] = []
    var body: [UInt8] = []

    init(on connection: HTTP2Connection) { self.connection = connection }

    deinit {
        // A slot that nobody used goes back by itself: a cancelled caller cannot leak a stream.
        if !spent.load(ordering: .relaxed) { connection.pool.giveBack(connection.tag) }
    }

    package func release() {
        if use() { connection.pool.giveBack(connection.tag) }
    }

    /// Whether the caller is the first to use or release it.
    func use() -> Bool { !spent.exchange(true, ordering: .acquiringAndReleasing) }

    /// The call is over: who is to hear its answer. `nil`: it was over before.
    func end() -> UnsafeContinuation<HTTP2Answer, Never>? {
        defer { (call, sender) = (nil, nil) }
        return call == nil ? nil : sender
    }

    func isLate(_ now: ContinuousClock.Instant, _ allowance: Patience.Allowance) -> Bool {
        guard let call else { return false }
        let own = call.deadline ?? call.begun + allowance.span
        return min(own, allowance.until ?? own) <= now
    }

    func answer(_ cause: HTTP2Answer.Cause, _ fate: Answer.Fate) -> HTTP2Answer {
        HTTP2Answer(
            cause: cause, fate: fate, status: complete ? status : 0, retryAfter: retryAfter, body: body,
            sentAt: sentAt,
            connection: connection.tag)
    }
}
