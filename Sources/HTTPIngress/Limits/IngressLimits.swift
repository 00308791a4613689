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
    /// Bytes of request bodies in memory over all connections, so that memory stays flat whoever sends. Room
    /// for sixteen of Zulip's largest bodies (4 MiB).
    package var bufferedBytes = 64 * 1024 * 1024
    /// From the first byte of a head (over TLS: from accepting) to its end.
    package var head = Duration.seconds(10)
    /// From the end of the head to the end of an empty body; bytes that arrive add to it.
    package var bodyGrace = Duration.seconds(10)
    /// What a sender must keep up behind the grace: a 4 MiB body ends within 75 seconds.
    package var bodyBytesPerSecond = 64 * 1024
    /// From the end of a request to its answer. Zulip's own longest wait is 3 seconds.
    package var answer = Duration.seconds(30)
    /// Without a request on an open connection. nginx keeps an upstream connection for 60 seconds.
    package var idle = Duration.seconds(75)
    /// How long a refused sender may go on sending before the connection is cut: an immediate close would
    /// make its system throw the answer away.
    package var linger = Duration.seconds(2)
    /// From the end of accepting until the last connection is cut at a graceful stop.
    package var drain = Duration.seconds(15)
    /// How long a kept connection may stay quiet at a stop: a request that comes within it is answered, with
    /// word that it was the last. Those who wait for a successor in the socket's queue wait that much longer,
    /// of the 15 s after which a Zulip server gives up.
    package var lastChance = Duration.seconds(2)
    /// Connections that may wait to be accepted, while a successor starts above all; the system's own bound
    /// (`net.core.somaxconn`) is below it.
    package static let backlog: Int32 = 65_535
    /// How often the deadlines are looked at during a stop: a successor waits for each of them.
    package var drainSweep = Duration.milliseconds(100)
    /// How often the deadlines above are looked at, hence their grain.
    package var sweep = Duration.seconds(1)
    /// Parts (heads, pieces, ends) of later requests that may wait behind the one being answered; a client
    /// that sends more in one read loses the connection behind the answer.
    package var waitingParts = 64

    package init() {}

    /// Buckets of one rate limiter: about 40 bytes each, so 4 MiB.
    package static let rateBuckets = 100_000
    /// Pushes a minute of one origin (docs/configuration.md), divided among the relays on one store.
    package static let pushesPerMinute = 60_000
    /// Calls a minute of one client address that no credential vouches for.
    package static let unauthenticatedPerMinute = 600
}
