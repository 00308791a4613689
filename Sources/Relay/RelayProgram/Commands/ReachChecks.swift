import Dialling
import HTTP2Client
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import PushModel

/// Checks whether push services and instances' peers can be reached: name, route, TLS and trust, and whether
/// a push service speaks HTTP/2. No request is sent.
///
/// They are dialled as the relay dials them. Where a name has addresses of both families, each is tried by
/// itself: one that does not answer is worth a word, although the relay goes on without it.
struct ReachChecks {
    /// Enough for a lookup, two round trips round the earth and a retransmission.
    static let deadline = Duration.seconds(5)
    /// More places than anybody has apps; further ones would show nothing new.
    private static let limit = 64

    /// What came of one place.
    struct Knock: Sendable {
        let finding: Finding
        /// The family that does not answer while the other does.
        var deadFamily: Family?
        /// Whether it has addresses of both.
        var hasBoth = false
    }

    enum Family: String, Sendable, Hashable {
        case v4 = "IPv4", v6 = "IPv6"
        var other: Family { self == .v4 ? .v6 : .v4 }
    }

    let configuration: RelayConfiguration
    private let dialling: DialOptions
    private let deadline: Duration
    private let dialer: Dialer
    private let loop = MultiThreadedEventLoopGroup.singleton.next()

    /// - Parameters:
    ///   - dialling: how names are looked up and their addresses are tried.
    ///   - deadline: of each place, and of each family where it has both.
    init(
        _ configuration: RelayConfiguration, dialling: DialOptions = DialOptions(),
        deadline: Duration = Self.deadline
    ) {
        self.configuration = configuration
        self.dialling = dialling
        self.deadline = deadline
        dialer = Dialer(dialling)
    }

    func check() async -> [Finding] {
        var places = services()
        if let proxy = configuration.proxy {
            places =
                [PeerAddress(host: proxy.host, port: proxy.port, isPlain: true)]
                + places.filter(\.isPushService)
        }
        return await withTaskGroup(of: (Int, Knock).self) { group in
            for (index, place) in (places + peers()).prefix(Self.limit).enumerated() {
                group.addTask { (index, await knockEach(place)) }
            }
            var found: [(Int, Knock)] = []
            for await knock in group { found.append(knock) }
            return Self.findings(found.sorted { $0.0 < $1.0 }.map(\.1))
        }
    }

    /// Each place once, in the order of the apps.
    func services() -> [PeerAddress] { once(configuration.apps.flatMap(\.services).flatMap { $0.places }) }

    /// What instances connect to, each once.
    func peers() -> [PeerAddress] { once(configuration.instances.flatMap(\.settings.peers)) }

    private func once(_ places: [PeerAddress]) -> [PeerAddress] {
        places.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    func knock(_ place: PeerAddress) async -> Finding { await knockEach(place).finding }

    // MARK: Families

    /// If a family is dead at all places, the cause is this machine, and it is reported once.
    private static func findings(_ knocks: [Knock]) -> [Finding] {
        let both = knocks.filter(\.hasBoth)
        guard both.count > 1, let family = both[0].deadFamily,
            both.allSatisfy({ $0.deadFamily == family })
        else {
            return knocks.flatMap { knock in
                [knock.finding] + (knock.deadFamily.map { [note($0, knock.finding.subject)] } ?? [])
            }
        }
        return knocks.map(\.finding) + [
            .warning(
                .reach, family.rawValue,
                "No host with \(family.rawValue) addresses answers there; all are reached over "
                    + "\(family.other.rawValue). A new connection may take a moment longer.")
        ]
    }

    private static func note(_ family: Family, _ subject: String) -> Finding {
        .warning(
            .reach, subject,
            "Its \(family.rawValue) addresses do not answer; it is reached over "
                + "\(family.other.rawValue). A new connection may take a moment longer.")
    }

    private func knockEach(_ place: PeerAddress) async -> Knock {
        if place.socket != nil { return Knock(finding: finding(place, await knock(place, at: nil))) }
        let host = way(to: place).host
        var found: [IPAddress] = []
        if IPAddress(host) == nil {
            do throws(WebError) { found = try await addresses(of: host) } catch {
                return Knock(finding: finding(place, .unresolved))
            }
        }
        let families = [Family.v4, .v6].map { family in found.filter { $0.isV4 == (family == .v4) } }
        guard families.allSatisfy({ !$0.isEmpty }) else {
            return Knock(finding: finding(place, await knock(place, at: found.isEmpty ? nil : found)))
        }
        async let four = knock(place, at: families[0])
        async let six = knock(place, at: families[1])
        switch (await four, await six) {
        case (nil, nil): return Knock(finding: finding(place, nil), hasBoth: true)
        case (nil, _?): return Knock(finding: finding(place, nil), deadFamily: .v6, hasBoth: true)
        case (_?, nil): return Knock(finding: finding(place, nil), deadFamily: .v4, hasBoth: true)
        case (let one?, let other?):
            // What came further tells more.
            return Knock(finding: finding(place, max(one, other)), hasBoth: true)
        }
    }

    private func addresses(of host: String) async throws(WebError) -> [IPAddress] {
        let found = await withTaskGroup(of: [IPAddress].self) { group in
            group.addTask {
                // One that has no address has none to be tried.
                (try? await dialling.resolver.resolve(host)) ?? []
            }
            group.addTask {
                // Ends early only when the look-up has ended.
                try? await Task.sleep(for: deadline)
                return []
            }
            defer { group.cancelAll() }
            return await group.next() ?? []
        }
        if found.isEmpty { throw WebError(.unreachable) }
        return found
    }

    // MARK: One knock

    /// Why a place is not reached, the least far first.
    private enum Fault: Int, Comparable {
        case unresolved, unreachable, silent, trust, other

        static func < (left: Fault, right: Fault) -> Bool { left.rawValue < right.rawValue }
    }

    private func way(to place: PeerAddress) -> (host: String, port: Int) {
        guard place.isPushService, let proxy = configuration.proxy else { return (place.host, place.port) }
        return (proxy.host, proxy.port)
    }

    /// - Parameter addresses: those alone.
    /// - Returns: `nil`: it is reached.
    private func knock(_ place: PeerAddress, at addresses: [IPAddress]?) async -> Fault? {
        if let socket = place.socket {
            do {
                let channel = try await Dialer.connect(socket: socket, on: loop, within: deadline).get()
                channel.close(promise: nil)
                return nil
            } catch { return .unreachable }
        }
        if place.isPushService { return await knockService(place, at: addresses) }
        do {
            let client = try place.isPlain ? nil : context(place)
            let dialled = try await dialer.dial(
                place.host, place.port, on: loop, within: deadline, addresses: addresses
            ) { (channel, attempt: DialAttempt<Void>) in
                guard let client else { return attempt.succeed(()) }
                let name = IPAddress(place.host) == nil ? place.host : nil
                try channel.pipeline.syncOperations.addHandlers(
                    NIOSSLClientHandler(context: client, serverHostname: name), HandshakeWaiter(attempt))
            }
            dialled.channel.close(promise: nil)
            return nil
        } catch let fault as DialFault {
            switch fault {
            case .unresolved: return .unresolved
            case .unreachable, .late, .cancelled: return .unreachable
            case .silent: return .silent
            case .failed(let error): return Self.isTrust(error) ? .trust : .other
            }
        } catch {
            return Self.isTrust(error) ? .trust : .other
        }
    }

    private static func isTrust(_ error: any Error) -> Bool {
        error is NIOSSLError || error is NIOSSLExtraError || error is BoringSSLError
    }

    private func knockService(_ place: PeerAddress, at addresses: [IPAddress]?) async -> Fault? {
        var options = HTTP2Options()
        (options.connectDeadline, options.dialling) = (deadline, dialling)
        do {
            let certificates = try place.caFile.map { try CredentialCache.read($0).reveal { Array($0) } }
            let proxy = configuration.proxy.map { HTTP2Endpoint.Proxy(host: $0.host, port: $0.port) }
            let host = place.host.contains(":") ? "[\(place.host)]" : place.host
            let reach = try HTTP2Reach(
                HTTP2Endpoint(url: "https://\(host):\(place.port)", certificates: certificates, proxy: proxy),
                options: options)
            switch await reach.knock(on: loop, addresses: addresses)?.code {
            case nil: return nil
            case .unreachable: return .unreachable
            case .tlsFailed: return .trust
            case .noSettings, .silent: return .silent
            case .notHTTP2, .protocolViolation, .malformedURL, .badCertificateFile: return .other
            }
        } catch {
            // A file that cannot be read has a finding of its own.
            return .other
        }
    }

    private func context(_ place: PeerAddress) throws -> NIOSSLContext {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.applicationProtocols = ["h2", "http/1.1"]
        if let caFile = place.caFile { configuration.trustRoots = .file(caFile) }
        return try NIOSSLContext(configuration: configuration)
    }

    // MARK: What to say

    private func finding(_ place: PeerAddress, _ fault: Fault?) -> Finding {
        let subject = place.socket ?? "\(place.host):\(place.port)"
        if let fault { return .fault(.reach, subject, sentence(fault, place)) }
        if place.isPlain { return .good(.reach, subject, "It answers.") }
        return .good(
            .reach, subject,
            place.isPushService
                ? "It answers, its certificate is trusted, and it speaks HTTP/2."
                : "It answers, and its certificate is trusted.")
    }

    /// What to do.
    private func sentence(_ fault: Fault, _ place: PeerAddress) -> String {
        if place.socket != nil {
            return "Nothing answers at this socket: look whether the program runs, and who may open it."
        }
        let isProxied = place.isPushService && configuration.proxy != nil
        switch fault {
        case .unresolved: return "Its name has no address: look at the name and at DNS."
        case .unreachable where isProxied: return "The proxy does not lead there: look at what it allows."
        case .unreachable where place.isPlain:
            return "It does not answer: look at the address and the route to it."
        case .unreachable:
            return "It does not answer: look at DNS and at the firewall; outgoing port \(place.port) must be "
                + "open."
        case .silent: return "It takes connections and says nothing: look at what stands on the way."
        case .trust:
            return "It answers, and TLS fails: look at the clock, at ca, and at what opens TLS on the way."
        case .other where place.isPushService:
            return "It answers, and does not speak HTTP/2: look at the address and at what opens TLS on the "
                + "way."
        case .other: return "It cannot be reached: look at DNS, the route and the firewall."
        }
    }
}

/// Waits for the end of one attempt's TLS handshake.
private final class HandshakeWaiter: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    private let attempt: DialAttempt<Void>

    init(_ attempt: DialAttempt<Void>) { self.attempt = attempt }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { attempt.succeed(()) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { attempt.fail(error) }

    func channelInactive(context: ChannelHandlerContext) {
        attempt.fail(ChannelError.eof)
        context.fireChannelInactive()
    }
}
