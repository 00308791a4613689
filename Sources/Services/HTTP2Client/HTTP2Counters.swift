package import PushModel
import Synchronization

/// What a pool has counted since it was made.
final class HTTP2Counters: Sendable {
    let opened = Atomic<Int>(0)
    let closed = Atomic<Int>(0)
    let failed = Atomic<Int>(0)
    let goaways = Atomic<Int>(0)
    let refused = Atomic<Int>(0)
    let resent = Atomic<Int>(0)
    let timeouts = Atomic<Int>(0)
    let unknownFates = Atomic<Int>(0)
    let requests = Atomic<Int>(0)
    let answers = Atomic<Int>(0)
    let late = Atomic<Int>(0)
    /// A gauge: it goes down again.
    let listened = Atomic<Int>(0)

    init() {}

    func snapshot() -> HTTP2Snapshot {
        var snapshot = HTTP2Snapshot()
        snapshot.opened = opened.load(ordering: .relaxed)
        snapshot.closed = closed.load(ordering: .relaxed)
        snapshot.failed = failed.load(ordering: .relaxed)
        snapshot.goaways = goaways.load(ordering: .relaxed)
        snapshot.refused = refused.load(ordering: .relaxed)
        snapshot.resent = resent.load(ordering: .relaxed)
        snapshot.timeouts = timeouts.load(ordering: .relaxed)
        snapshot.unknownFates = unknownFates.load(ordering: .relaxed)
        snapshot.requests = requests.load(ordering: .relaxed)
        snapshot.answers = answers.load(ordering: .relaxed)
        snapshot.late = late.load(ordering: .relaxed)
        snapshot.listened = listened.load(ordering: .relaxed)
        return snapshot
    }
}

extension Atomic<Int> {
    borrowing func increment(by count: Int = 1) { wrappingAdd(count, ordering: .relaxed) }
}

/// A pool's counters and gauges at one moment.
package struct HTTP2Snapshot: Sendable, Hashable {
    /// Connections that stood, that ended, and attempts that never stood.
    package var opened = 0
    package var closed = 0
    package var failed = 0
    /// GOAWAY frames received.
    package var goaways = 0
    /// Streams that the peer did not look at (REFUSED_STREAM, or above a GOAWAY's last stream).
    package var refused = 0
    /// Requests sent a second time because the first was left unprocessed.
    package var resent = 0
    /// Requests without an answer within the deadline.
    package var timeouts = 0
    /// Requests whose fate is unknown.
    package var unknownFates = 0
    /// Requests handed to sessions, resent ones twice.
    package var requests = 0
    package var answers = 0
    /// Of these, to requests that had been given up.
    package var late = 0
    /// Gauges: connections that stand, streams reserved or in flight, callers waiting for one.
    package var connections = 0
    package var inFlight = 0
    package var waiting = 0
    /// Streams that were given up and may be answered yet.
    package var listened = 0
    /// How long a request is waited for now.
    package var deadline = Duration.zero

    /// The same under the names that an operator reads them by.
    package var figures: [ProviderFigure] {
        [
            .gauge("sealbell_push_connections", connections),
            .gauge("sealbell_push_streams_in_use", inFlight),
            .gauge("sealbell_push_streams_wanted", waiting),
            .gauge("sealbell_push_streams_given_up", listened),
            .gauge("sealbell_push_deadline_seconds", Int(deadline.components.seconds)),
            .total("sealbell_push_connections_opened_total", opened),
            .total("sealbell_push_connections_closed_total", closed),
            .total("sealbell_push_connections_failed_total", failed),
            .total("sealbell_push_goaways_total", goaways),
            .total("sealbell_push_requests_total", requests),
            .total("sealbell_push_requests_resent_total", resent),
            .total("sealbell_push_requests_refused_total", refused),
            .total("sealbell_push_requests_timed_out_total", timeouts),
            .total("sealbell_push_answers_late_total", late),
            .total("sealbell_push_requests_unknown_total", unknownFates)
        ]
    }
}
