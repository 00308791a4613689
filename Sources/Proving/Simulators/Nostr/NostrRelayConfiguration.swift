public import MarmotPush
public import Secp256k1Keys

/// How a simulated Nostr relay is set up.
public struct NostrRelayConfiguration: Sendable {
    /// Where it listens.
    public var host = "127.0.0.1"
    /// 0: any free one.
    public var port = 0
    /// TLS with a certificate of the sandbox's authority.
    public var isSecure = true
    /// The largest message from a client, as the relay's document says. A larger one ends the connection with
    /// 1009.
    public var messageBytes = 256 << 10
    /// The largest content of one event, in bytes of UTF-8.
    public var contentBytes = 128 << 10
    /// The most subscriptions of one connection.
    public var subscriptions = 20
    /// The most stored events in the answer to one request.
    public var eventsOfRequest = 500
    /// How far in the future an event's date may be.
    public var ahead = Duration.seconds(900)
    /// Events that are kept, and bytes of their JSON; the oldest by arrival go first.
    public var storedEvents = 10_000
    /// 64 MiB, of the JSON of all events that are kept.
    public var storedBytes = 64 << 20
    /// The most bytes of messages that wait for a slow client; beyond it the connection is closed.
    public var waitingBytes = 4 << 20
    /// How it begins to behave; ``NostrRelaySimulator/turn(_:)`` changes it.
    public var knobs = NostrRelayKnobs()

    /// A relay as careful operators set one up.
    public init() {}
}

/// What the simulated relay asks of clients, and how it misbehaves; each can be changed at run time and takes
/// effect with the next message.
public struct NostrRelayKnobs: Sendable, Equatable {
    /// When a client must authenticate (NIP-42), in the orders that real relays use
    /// (docs/conformance/marmot.md).
    public enum Authentication: String, Sendable, CaseIterable {
        /// Nobody need prove who they are.
        case none
        /// A challenge on connecting; an early request is answered with `NOTICE restricted:` and nothing
        /// else, as by nostr-relay 1.14.
        case onConnect
        /// A challenge with the first request, which ends with `CLOSED auth-required:`, as by rust-nostr's.
        case onDemand
    }

    /// What it wrongly sends.
    public enum Lie: String, Sendable, CaseIterable {
        /// Every event, regardless of the filter.
        case wrongFilter
        /// Signatures with a changed digit.
        case badSignature
        /// Ids with a changed digit.
        case wrongID
        /// Events for a subscription that does not exist.
        case strangeSubscription
    }

    /// When it asks who a client is.
    public var authentication = Authentication.none
    /// Publishing needs authentication too.
    public var authenticatesPublishers = false
    /// Gift wraps are sent only to authenticated keys in their `p` tags (NIP-17).
    public var guardsWraps = false
    /// The answer to an event that is stored already: nostr-relay says false there.
    public var acceptsDuplicates = true
    /// An authentication gets no answer, as from nostr-relay 1.14; the next request shows that it was
    /// accepted.
    public var takesProofsSilently = false
    /// A refused event is answered with an empty id, as by nostr-relay 1.14.
    public var refusesWithoutID = false
    /// Events and requests are refused only by NOTICE, without OK or CLOSED, as strfry up to 1.0 does with
    /// requests.
    public var refusesByNoticeAlone = false
    /// What it sends that it should not; honest unless said otherwise.
    public var lies: Set<Lie> = []
    /// How often each event is sent.
    public var copies = 1
    /// No EOSE.
    public var withholdsEndOfStored = false
    /// Every event is refused with this word.
    public var refusesEvents: NostrReason?
    /// Every request is closed with this word.
    public var refusesRequests: NostrReason?
    /// An event is sent on connecting, before any request, for a subscription that does not exist.
    public var speaksFirst = false
    /// Events are accepted and kept, but not sent to open subscriptions.
    public var spreadsNothing = false
    /// Clients get no answers, and nothing is sent. PINGs are still answered.
    public var isSilent = false
    /// PINGs get no PONG.
    public var ignoresPing = false
    /// The delay of everything except the messages on connecting.
    public var answerDelay = Duration.zero
    /// The connection is closed with `closeCode` after this many messages from the client.
    public var closesAfterMessages: Int?
    /// The WebSocket's close code (RFC 6455 §7.4); 1001: it goes away.
    public var closeCode: UInt16 = 1001

    /// An honest relay that asks for nothing.
    public init() {}
}

/// What a simulated relay has seen, for tests to wait for.
public enum NostrRelayNote: Sendable {
    /// A client's WebSocket is open.
    case connected
    /// A client's connection has ended, by whomever.
    case disconnected
    /// `REQ`, whether it is served or not.
    case requested(subscription: String, filters: [NostrFilter])
    /// `CLOSE` of this subscription.
    case unsubscribed(String)
    /// `EVENT`, and what `OK` says of it.
    case published(NostrEvent, isAccepted: Bool)
    /// A client has proven that it holds this key.
    case authenticated(XOnlyKey)
    /// A malformed message, with its error's code.
    case malformed(String)
}

/// Counts since the start.
public struct NostrRelayCounters: Sendable, Equatable {
    /// WebSockets that were opened.
    public var connections = 0
    /// `REQ`s.
    public var requests = 0
    /// `EVENT`s of clients.
    public var eventsReceived = 0
    /// Those of them whose `OK` was true.
    public var eventsAccepted = 0
    /// `EVENT`s to clients, the same to two of them twice.
    public var eventsSent = 0
    /// Proofs that were taken.
    public var authentications = 0
    /// Requests and events that were refused.
    public var refusals = 0
    /// Messages that were none.
    public var malformed = 0
    /// How many notes slow readers lost.
    public var unheard = 0

    /// Nothing yet.
    public init() {}
}
