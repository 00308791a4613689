import PushModel

/// The life of one connection: when it may take requests, when it pings, when it is given up. Pure: instants
/// in, actions out.
struct ConnectionState: Sendable {
    enum Phase: Sendable, Hashable {
        /// TCP, proxy, TLS.
        case connecting
        /// TLS stands, our preface is sent, the peer's SETTINGS have not come.
        case awaitingSettings
        case ready
        /// No new requests; what is in flight may finish (RFC 9113 §6.8).
        case draining
        case ended
    }

    enum Action: Sendable, Hashable {
        case none
        case ping
        /// Give it up at once.
        case fail(HTTP2Error.Code)
        /// Nothing is left to do on it: close.
        case leave
        /// Take no more requests; leave when the last is done.
        case drain
    }

    private let options: HTTP2Options
    private let began: ContinuousClock.Instant
    private(set) var phase = Phase.connecting
    /// SETTINGS_MAX_CONCURRENT_STREAMS as last received; `nil`: no limit named.
    private(set) var peerLimit: Int?
    /// Whether a good answer (2xx) came.
    private(set) var proved = false
    private(set) var lastRead: ContinuousClock.Instant
    private var pingSent: ContinuousClock.Instant?
    private var stalledSince: ContinuousClock.Instant?
    private var drainingSince: ContinuousClock.Instant?
    private var requests = 0
    /// Requests that expired since the last answer.
    private var expired = 0

    init(options: HTTP2Options, now: ContinuousClock.Instant) {
        self.options = options
        began = now
        lastRead = now
    }

    /// How many streams may be open now: the peer's limit under our cap. A peer that names no limit is taken
    /// at `unprovedStreams` until its first good answer.
    var limit: Int {
        guard phase == .ready else { return 0 }
        let peer = peerLimit ?? (proved ? Int.max : options.unprovedStreams)
        return min(peer, options.streamsPerConnection)
    }

    mutating func secured() { if phase == .connecting { phase = .awaitingSettings } }

    /// - Returns: whether this is the first, which makes the connection ready.
    mutating func settings(peerLimit: Int?) -> Bool {
        self.peerLimit = peerLimit
        guard phase == .awaitingSettings else { return false }
        phase = .ready
        return true
    }

    mutating func read(at now: ContinuousClock.Instant) { lastRead = now }

    mutating func pong() { pingSent = nil }

    /// Whether the peer was lately silent when it should have answered. Another connection is better, if
    /// there is one.
    var isDoubted: Bool { expired > 0 }

    /// Called before a request that must not be sent twice, because the fate of bytes to a peer that is gone
    /// is unknown.
    enum Proof: Sendable, Hashable {
        case given
        /// A PONG is needed: send a PING.
        case ping
        /// A PING is on its way.
        case awaited
    }

    mutating func proof(at now: ContinuousClock.Instant) -> Proof {
        if now - lastRead < options.provedFor { return .given }
        if pingSent != nil { return .awaited }
        pingSent = now
        return .ping
    }

    /// A whole answer came, however late.
    mutating func answered() { expired = 0 }

    /// A request expired; `.drain` when the connection is useless, because it answers PING but no requests,
    /// or because such requests occupy its streams.
    ///
    /// - Parameter listened: streams that were given up and stay open, this one among them.
    mutating func expired(listened: Int) -> Action {
        expired += 1
        return expired >= options.expiredRequests || listened * 2 > limit ? .drain : .none
    }

    /// - Returns: whether this is the first good answer.
    mutating func good() -> Bool {
        defer { proved = true }
        return !proved
    }

    /// Counts a request; `.ping` after a long silence, so that a connection that died unnoticed is detected
    /// with the first request after it; `.drain` when its stream ids are used up.
    mutating func submitted(at now: ContinuousClock.Instant) -> Action {
        requests += 1
        if requests >= options.requestsPerConnection { return .drain }
        // In this order, because nearly always the peer was heard from, and an optional instant would be
        // copied.
        guard now - lastRead >= options.pingAfterSilence, pingSent == nil else { return .none }
        pingSent = now
        return .ping
    }

    /// - Returns: whether it drains only from now on.
    mutating func drain(at now: ContinuousClock.Instant) -> Bool {
        guard phase == .ready || phase == .awaitingSettings || phase == .connecting else { return false }
        phase = .draining
        drainingSince = now
        return true
    }

    mutating func end() { phase = .ended }

    /// The actions that are due. `stalled`: nothing is in flight, and the peer's window does not hold a
    /// request of the usual size.
    mutating func tick(at now: ContinuousClock.Instant, inFlight: Int, stalled: Bool) -> Action {
        switch phase {
        case .ended:
            return .none
        case .connecting, .awaitingSettings:
            return now - began >= options.connectDeadline ? .fail(.noSettings) : .none
        case .draining where drainingSince.map({ now - $0 >= options.farewell }) ?? false:
            // Nothing more is waited for: the peer does not even accept our farewell.
            return .fail(.silent)
        case .draining where inFlight == 0:
            return .leave
        case .ready, .draining:
            break
        }
        if let pingSent {
            if now - pingSent >= options.pongDeadline { return .fail(.silent) }
            return now - pingSent >= options.proofDeadline && phase == .ready ? .drain : .none
        }
        if now - lastRead >= (inFlight > 0 ? options.pingAfterSilence : options.idlePing) {
            pingSent = now
            return .ping
        }
        guard stalled, phase == .ready else {
            stalledSince = nil
            return .none
        }
        guard let since = stalledSince else {
            stalledSince = now
            return .none
        }
        return now - since >= options.deadline ? .drain : .none
    }
}
