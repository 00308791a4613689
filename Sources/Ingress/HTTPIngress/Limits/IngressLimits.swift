/// Every bound of a listener, with its reason. Spans are of monotonic time. They bound one process: with
/// several relays on one store each has them for itself.
package struct IngressLimits: Sendable {
    /// Bytes of request target and fields. The longest head of the protocols served is below 2 KiB.
    package var headBytes = 16 * 1024
    /// Fields of a head. Proxies add about ten to a client's ten.
    package var headFields = 64
    /// Connections that a listener carries. Ten thousand idle ones must not keep others out.
    package var connections = 20_000
    /// Requests between their last byte and their answer: more would only wait for the same disk and the same
    /// push service. Full means 503.
    package var inFlight = 8192
    /// Of these, connections of one client; trusted proxies, who carry everybody, are not counted. A host of
    /// a thousand origins that each keep one; twenty such clients are needed to fill the listener.
    package var clientConnections = 1_000
    /// Bytes of request bodies in memory over all connections, so that memory stays flat no matter who sends.
    /// Room for sixteen of the largest calls that push (4 MiB). The following limits are parts of it.
    package var bufferedBytes = 64 * 1024 * 1024
    /// The beginning of a body up to here counts as small. All calls but an analytics upload or a notify of
    /// hundreds of devices stay within it.
    package static let smallBodyBytes = 64 * 1024
    /// What large bodies hold beyond their beginnings: the last quarter is kept for small ones.
    package var largeBodiesBytes: Int { bufferedBytes / 4 * 3 }
    /// The same of one client: one body of the largest kind (16 MiB).
    package var clientLargeBytes: Int { bufferedBytes / 4 }
    /// Beginnings of bodies of one client: 64 of full length, or thousands of the usual one.
    package var clientSmallBytes: Int { bufferedBytes / 16 }
    /// A body of which fewer than ``stallBytes`` have come in this time is stalled. It is dropped when room
    /// is needed and its sender has not shown a credential that was good lately: a lost segment is sent again
    /// within a second or two.
    package var stall = Duration.seconds(2)
    package static let stallBytes = 64 * 1024
    /// A body up to this size is judged only with the whole request: it mostly arrives with its head, and
    /// usual calls save a second look at their credentials. The memory of such bodies is bounded as small.
    package static let unjudgedBodyBytes = 16 * 1024
    /// If the head was refused, a body of known length up to this size is read and discarded, so that the
    /// connection can go on. A longer one ends the connection.
    package static let passedBodyBytes = 64 * 1024
    /// From the first byte of a head (over TLS: from accepting) to its end.
    package var head = Duration.seconds(10)
    /// From the end of the head to the end of an empty body; bytes that arrive add to it.
    package var bodyGrace = Duration.seconds(10)
    /// What a sender must keep up behind the grace: a 4 MiB body ends within 75 seconds.
    package var bodyBytesPerSecond = 64 * 1024
    /// From the end of the head to the end of any body: the largest must come at 180 KiB a second. Otherwise
    /// anyone who sends as slowly as is allowed would hold 16 MiB for more than four minutes.
    package var bodyTotal = Duration.seconds(90)
    /// From the first byte of a request to its answer, whatever has delayed it. An origin gives a call up
    /// after 15 s (docs/conformance/zulip.md), and a proxy before us and the ways there and back take some of
    /// them.
    package var answer = Duration.seconds(12)
    /// From the last byte of a request to its answer at least, for senders that take long.
    package var answerLeast = Duration.seconds(5)
    /// At the admin listener, whose caller waits for 30 s: a test push asks two environments in turn.
    package static let operatorAnswer = Duration.seconds(30)
    /// At a listener whose clients wait for future events: they are answered after 25 s of silence
    /// (docs/configuration.md, `origin`), and a wait for the store may come behind it.
    package static let pollAnswer = Duration.seconds(40)
    /// From an answer until the peer has taken it.
    package var flush = Duration.seconds(30)
    /// Without a request on an open connection. nginx keeps an upstream connection for 60 seconds.
    package var idle = Duration.seconds(75)
    /// How long a refused sender may go on sending before the connection is cut: an immediate close would
    /// make its system throw the answer away.
    package var linger = Duration.seconds(2)
    /// From the end of accepting until the last connection is cut at a graceful stop.
    package var drain = Duration.seconds(15)
    /// How long a kept connection may stay quiet at a stop: a request that comes within it is answered, and
    /// told that it was the last. Clients that wait in the socket's queue for the next process wait that much
    /// longer, of the 15 s after which an origin gives up (docs/conformance/zulip.md).
    package var lastChance = Duration.seconds(2)
    /// Connections that may wait to be accepted, while a successor starts above all; the system's own bound
    /// (`net.core.somaxconn`) is below it.
    package static let backlog: Int32 = 65_535
    /// How often the deadlines are looked at during a stop: a successor waits for each of them.
    package var drainSweep = Duration.milliseconds(100)
    /// How often the deadlines above are looked at, hence their grain: a fiftieth of the answer's. A look at
    /// twenty thousand connections takes less than a millisecond.
    package var sweep = Duration.milliseconds(250)
    /// The same while no connection stands: it only bounds how long a wake-up could be missed.
    package var restSweep = Duration.seconds(10)
    /// Parts (heads, pieces, ends) of later requests that may wait behind the one being answered; a client
    /// that sends more in one read loses the connection after the answer.
    package var waitingParts = 64

    /// How long accepting pauses when the system has no descriptor or no memory for another connection:
    /// asking again at once costs a core and gets nothing.
    package static let acceptPause = Duration.milliseconds(250)
    /// How long after the last call that was refused for lack of room the alert about a strained listener
    /// lasts.
    package var strainLasts = Duration.seconds(60)

    package init() {}

    /// Pushes a minute of one origin (docs/configuration.md), divided among the relays on one store.
    package static let pushesPerMinute = 60_000
    /// Calls a minute of one client that end with 401, at each listener of each process: a server whose key
    /// was changed asks a few times a minute. Above it, only credentials that were good lately are looked at.
    package static let failedPerMinute = 600
    /// Digests of such credentials, 8 bytes each, in each of two generations: as many origins as call often.
    package static let goodCredentials = 10_000
}
