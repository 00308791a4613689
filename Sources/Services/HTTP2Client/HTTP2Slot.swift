import PushModel
import Synchronization

/// A stream that is free on a connection that stands; once used, the request's own state.
///
/// One object a request: reservation, continuation and what has come back so far.
package final class HTTP2Slot: SendSlot, @unchecked Sendable {
    // Safety: what is handed over and `sender` are written by the one sender that won `use()`, before the
    // slot goes through the connection's locked inbox; from then on all fields belong to the connection's
    // event loop. If the call has ended as unprocessed, the connection leaves the request alone, and the
    // sender reads it.

    let connection: HTTP2Connection
    private let spent = Atomic<Bool>(false)

    /// The request that is handed over, and handed over again if it was not processed. Kept until the stream
    /// is closed: the session reads the fields where they stand.
    var request: HTTP2Request?
    /// A reference: it is looked at several times a request, and moments have no fixed size.
    var terms: (any HTTP2Terms)?
    /// When the caller handed it over, to this connection or to one before.
    var begun: ContinuousClock.Instant?
    /// The waiter for the answer, until the call is over.
    var sender: UnsafeContinuation<HTTP2Answer, Never>?
    /// It has ended as unprocessed, and may be handed over elsewhere.
    private var goesOn = false
    /// The late answer of a request that was given up and may still be answered.
    var late: HTTP2LateAnswer?
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
        // An unused slot goes back by itself, so that a cancelled caller cannot leak a stream.
        if !spent.load(ordering: .relaxed) { connection.pool.giveBack(connection.tag) }
    }

    package func release() {
        if use() { connection.pool.giveBack(connection.tag) }
    }

    /// Whether the caller is the first to use or release it.
    func use() -> Bool { !spent.exchange(true, ordering: .acquiringAndReleasing) }

    /// Takes a request, by the one sender that may use the slot.
    func take(
        _ request: HTTP2Request, within terms: any HTTP2Terms, begun: ContinuousClock.Instant
    ) {
        precondition(use(), "a slot carries one request")
        self.request = request
        self.terms = terms
        self.begun = begun
    }

    /// Takes what was not processed on another connection.
    func take(over other: HTTP2Slot) {
        precondition(use(), "a slot carries one request")
        request = other.request
        terms = other.terms
        begun = other.begun
    }

    /// Whether somebody waits for the answer.
    var isOpen: Bool { sender != nil }

    /// The call is over: the waiter to resume. `nil`: it was over before.
    func end(_ fate: Answer.Fate) -> UnsafeContinuation<HTTP2Answer, Never>? {
        guard let sender else { return nil }
        self.sender = nil
        goesOn = fate == .unprocessed
        return sender
    }

    /// The session reads nothing of it any more. What was not processed is still its sender's.
    func forget() { if !goesOn { (request, terms) = (nil, nil) } }

    func isLate(_ now: ContinuousClock.Instant, _ allowance: PoolPatience.Allowance) -> Bool {
        guard isOpen, let terms, let begun else { return false }
        let own = terms.answerBy ?? begun + allowance.span
        return min(own, allowance.until ?? own) <= now
    }

    func answer(_ cause: HTTP2Answer.Cause, _ fate: Answer.Fate) -> HTTP2Answer {
        HTTP2Answer(
            cause: cause, fate: fate, status: complete ? status : 0, retryAfter: retryAfter, body: body,
            sentAt: sentAt,
            connection: connection.tag)
    }
}

/// The bounds of one request, which its sender keeps.
package protocol HTTP2Terms: AnyObject, Sendable {
    /// Its bytes are handed to a session before then, or not at all.
    var sendBefore: ContinuousClock.Instant { get }
    /// When the caller gives it up; `nil`: when the pool's patience ends.
    var answerBy: ContinuousClock.Instant? { get }
    /// It must not be sent twice, so that its connection has to be heard from first.
    var isUnrepeatable: Bool { get }
}
