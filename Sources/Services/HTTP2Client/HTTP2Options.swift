package import Dialling

/// How a pool behaves; with several relays on one store, each one's. Every bound has its reason beside it; a
/// bench or a test may move them.
package struct HTTP2Options: Sendable {
    /// Connections grow up to this many while all streams or windows are full. Eight, because with a round
    /// trip of 80 ms and Apple's window of 65,535 bytes each carries some 330 pushes a second (push-services
    /// §2.6).
    package var maximumConnections = 8
    /// Our own cap of streams on a connection, under whatever the peer allows. Apple allows 1,000.
    package var streamsPerConnection = 1000
    /// Streams until the first good answer when the peer's SETTINGS name no limit (RFC 9113 §6.5.2 asks peers
    /// for at least 100).
    package var unprovedStreams = 100
    /// From the hand-over of a request to its answer; `nil`: the service's own, which its provider gives, or
    /// ``usualDeadline``.
    package var requestDeadline: Duration?
    /// Apple is seen to answer that late (docs/push-services.md §2.6).
    package static let usualDeadline = Duration.seconds(20)
    /// A service that was seen to answer late is waited for up to so long: after a minute a message is late
    /// in any case, and a stream that is never answered occupies its place for that time.
    package var longestDeadline: Duration = .seconds(60)
    /// The extra time that was learned halves in this span without another late answer.
    package var patienceHalves: Duration = .seconds(300)
    /// A request that was given up is still listened to until so long after its hand-over: twice as long as
    /// anything is waited for, and so long that its answer comes before the second repeat.
    package var lateAnswers: Duration = .seconds(120)
    /// Streams of a pool that are given up and listened to: half of what a lane keeps in memory, some 8 MB.
    /// What is beyond is reset.
    package var lateStreams = 2_048
    /// After this many expired requests without an answer in between, a connection takes no more: three,
    /// because the peer may lose one or two single requests.
    package var expiredRequests = 3
    /// From the look-up of the name to the peer's SETTINGS, over all addresses of the name.
    package var connectDeadline: Duration = .seconds(10)
    /// How the addresses of the name are tried within it.
    package var dialling = DialOptions()
    /// With requests in flight, so long without a byte read before a PING (docs/push-services.md §2.6).
    package var pingAfterSilence: Duration = .seconds(15)
    /// A PING unanswered for so long: the connection is dead.
    package var pongDeadline: Duration = .seconds(10)
    /// A request that must not be sent twice leaves on a connection that was heard from within this span;
    /// else a PING goes first. At most one a second, each with a request behind it.
    package var provedFor: Duration = .seconds(1)
    /// A PING unanswered for so long: the connection takes no more requests, and what waited for the PONG
    /// goes on another. A round trip by satellite takes 0.6 s; a call that waits longer has been missed.
    package var proofDeadline: Duration = .seconds(2)
    /// On an idle connection one PING an hour, as Apple asks.
    package var idlePing: Duration = .seconds(3600)
    /// A connection beyond the first goes after so long without a request.
    package var idleShrink: Duration = .seconds(600)
    /// How long everything must have been full before another connection is opened: a full loopback peer
    /// frees a stream within a millisecond, and a handshake costs more than that.
    package var growAfter: Duration = .milliseconds(25)
    /// Between looks at a pool in which time alone changes nothing: it only bounds how long a wake-up could
    /// be missed.
    package var restLook: Duration = .seconds(30)
    /// A connection that stood for so long without a good answer, and ends with nothing under way, was closed
    /// because it was idle and has not failed: peers do that after some ten seconds or more.
    package var restAfter: Duration = .seconds(5)
    /// First wait before connecting again after a connection that gave no good answer; doubles, with full
    /// jitter, up to the cap (docs/push-services.md §6).
    package var backoffBase: Duration = .seconds(1)
    package var backoffCap: Duration = .seconds(60)
    /// Stream ids run out after 2³⁰ requests; a connection is replaced a little before.
    package var requestsPerConnection = 1 << 30 - 1 << 16
    /// The bytes of an answer's body that are kept: a push service's errors take a few hundred.
    package var answerLimitBytes = 8192

    package init() {}

    /// From the hand-over of a request to its answer, before anything was learned.
    var deadline: Duration { requestDeadline ?? Self.usualDeadline }
    /// A connection that drains has let go of everything by then.
    var farewell: Duration { max(lateAnswers, deadline * 2) + pongDeadline }
}
