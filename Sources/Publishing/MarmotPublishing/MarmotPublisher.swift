import EventLoops
public import MarmotPush
import NIOPosix
public import PushModel
public import Secp256k1Keys
import Synchronization
import WebClient
package import WebSocket

/// Wakes a group's phones: looks up where their notification servers listen, makes the triggers, and hands
/// them to the relays there.
///
/// One of it serves an app for all groups. It remembers relay lists (``kept()``) and documents, and each
/// trigger has connections of its own, which end with it.
///
/// ```swift
/// let publisher = try MarmotPublisher(.init(lookUp: ["wss://relay.example.org"]))
/// do throws(Unreached) {
///     try await publisher.wake(tokens)
/// } catch {
///     show(error.servers)
/// }
/// ```
public final class MarmotPublisher: Sendable {
    /// A proxy of Tor's, by SOCKS5. Names are looked up by the proxy, every trigger has SOCKS credentials of
    /// its own and so a circuit of its own (`IsolateSOCKSAuth`), and nothing is published another way when
    /// the proxy is not there. Relays' documents are not fetched.
    public struct Tor: Sendable {
        /// Name or address of the proxy.
        public var host: String
        /// 1 to 65,535.
        public var port: Int

        /// - Parameter port: 9050 is the daemon's, 9150 Tor Browser's; an app that brings Tor has its own.
        public init(host: String = "127.0.0.1", port: Int = 9050) {
            self.host = host
            self.port = port
        }
    }

    /// What an app publishes by.
    public struct Settings: Sendable {
        /// Relays at which servers' lists of kind 10050 are looked up: those that the app itself uses.
        public var lookUp: [String]
        /// Where a server listens according to the app's build, used as long as no list is found.
        public var builtIn: [XOnlyKey: [String]]
        /// Off by default (spec, "Privacy": clients SHOULD offer it).
        public var tor: Tor?
        /// Whether triggers of the seed text are sealed.
        public var seedPath = GiftWrap.Path.sealed
        /// Whether relays are dialled at private addresses, and without TLS at this machine's: for trials.
        /// Relays of ``lookUp`` and ``builtIn`` are in any case.
        public var reachesLocalRelays = false
        /// PEM text of the authorities to trust for relays instead of the system's: for a relay with your own
        /// certificate, and for trials.
        public var authorities: Secret?

        /// No Tor, and the system's authorities, unless said otherwise.
        ///
        /// - Parameter lookUp: `wss` addresses.
        /// - Parameter builtIn: `wss` addresses by server.
        public init(lookUp: [String], builtIn: [XOnlyKey: [String]] = [:], tor: Tor? = nil) {
            self.lookUp = lookUp
            self.builtIn = builtIn
            self.tor = tor
        }
    }

    let settings: Settings
    let limits: PublishingLimits
    let world: World
    let line: NostrPublisher
    let web: any WebFetch
    let isStranger: @Sendable (WebSocketAddress) -> Bool
    let cache: Mutex<RelayListCache>
    let flights = Flights()

    /// - Parameter kept: what ``kept()`` returned in an earlier run.
    /// - Throws: `.malformedRelay` for an address of the settings that is none, or that only Tor reaches;
    ///   `.malformedAuthorities`; `.noTrust`.
    public convenience init(
        _ settings: Settings, keeping kept: Secret? = nil
    ) throws(PublishingError) {
        let group = MultiThreadedEventLoopGroup.singleton
        let authorities = settings.authorities?.reveal { Array($0) }
        let client: WebSocketClient
        do {
            client = try WebSocketClient(executor: LoopExecutor(group.next()), certificates: authorities)
        } catch {
            throw PublishingError(authorities == nil ? .noTrust : .malformedAuthorities)
        }
        var options = WebOptions()
        options.authorityTexts = authorities.map { [$0] } ?? []
        try self.init(
            settings, keeping: kept, client: client, web: HTTPSFetch(options, group: group, world: .live),
            world: .live)
    }

    package init(
        _ settings: Settings, keeping kept: Secret? = nil, client: WebSocketClient, web: any WebFetch,
        world: World, limits: PublishingLimits = PublishingLimits()
    ) throws(PublishingError) {
        self.settings = settings
        self.world = world
        self.limits = limits
        let own = settings.lookUp + settings.builtIn.values.joined()
        var hosts: Set<String> = []
        for url in own {
            // Which rule of addresses it breaks is of no matter.
            guard let relay = try? NostrRelay(url), !relay.address.isOnion || settings.tor != nil else {
                throw PublishingError(.malformedRelay)
            }
            hosts.insert(relay.address.authority)
        }
        let (known, local) = (hosts, settings.reachesLocalRelays)
        let isStranger: @Sendable (WebSocketAddress) -> Bool = { !local && !known.contains($0.authority) }
        (self.web, self.isStranger) = (web, isStranger)
        line = NostrPublisher(
            client: client, proxy: settings.tor.map { SOCKS5Proxy(host: $0.host, port: $0.port) },
            world: world, grace: limits.grace, isStranger: isStranger)
        cache = Mutex(kept.map { RelayListCache(keeping: $0) } ?? RelayListCache())
    }

    /// What to keep between two runs of the app: servers' relay lists, which are public.
    public func kept() -> Secret { cache.withLock { $0.encoded() } }

    /// Wakes the phones of these tokens. To be called when the message itself is published, and beside
    /// whatever else the app does: it takes up to two minutes where relays do not answer.
    ///
    /// - Parameter tokens: what `MarmotDevice.tokensToWake(at:)` returned, of one group; none
    ///   wakes nobody.
    /// - Returns: the result of each server's triggers.
    /// - Throws: ``Unreached`` when phones were not woken; those of other servers are. Of more tokens than
    ///   `MarmotLimits.tokensOfWake`, or `MarmotLimits.tokenBytesOfWake`, none is.
    @discardableResult
    public func wake(_ tokens: [GossipToken]) async throws(Unreached) -> [WakeReport] {
        let reports = await work(tokens)
        let missed = reports.filter { !$0.isReached }
        guard missed.isEmpty else {
            throw Unreached(servers: missed, reached: reports.filter(\.isReached))
        }
        return reports
    }
}

/// Why a publisher cannot be made.
public typealias PublishingError = CodedError<PublishingErrorCode>

/// Why there is no publisher.
public enum PublishingErrorCode: String, AdvisingErrorCode {
    /// An address, the authorities, or the system's certificates.
    case malformedRelay, malformedAuthorities, noTrust

    public var blame: Blame { .ourselves }
    public var retry: RetryAdvice { .never }
    public var sentence: String {
        switch self {
        case .malformedRelay: "A relay of the settings has no address that can be dialled."
        case .malformedAuthorities: "The authorities of the settings are no certificates in PEM."
        case .noTrust: "The system's certificates cannot be read."
        }
    }
}
