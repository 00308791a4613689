import AsyncHTTPClient
package import Dialling
package import NIOCore
package import PushModel
import Synchronization

/// What an operator can set for rare outgoing requests.
package struct WebOptions: Sendable {
    package struct Proxy: Sendable {
        package var host: String
        package var port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }
    }

    /// PEM files of further certification authorities.
    package var extraAuthorities: [String]
    /// The same as PEM texts.
    package var authorityTexts: [[UInt8]] = []
    /// Where those of the machine are.
    package var trust = SystemTrust()
    /// A proxy that understands CONNECT.
    package var proxy: Proxy?
    /// Addresses that a peer's URL may reach although they are not public: self-hosted services, the sandbox.
    package var allowed: [AddressBlock]
    /// For one TCP connection, so that a dead address leaves time for the next.
    package var connectDeadline = Duration.seconds(5)
    /// For the first of several addresses alone, until its connection stands.
    package var attemptDelay = WebLimits.attemptDelay
    /// No fetch gives up sooner than this, whatever its own deadline: for tests that are not about deadlines.
    package var leastDeadline = Duration.zero
    /// Instead of the system's, for tests.
    package var resolver: (any HostResolver)?

    package init(extraAuthorities: [String] = [], proxy: Proxy? = nil, allowed: [AddressBlock] = []) {
        self.extraAuthorities = extraAuthorities
        self.proxy = proxy
        self.allowed = allowed
    }
}

/// `WebFetch` over AsyncHTTPClient: https, or plain http to this machine; HTTP/1.1, no redirects, no
/// decompression.
///
/// A host is resolved once, its addresses are checked, and the connection goes to a checked address, so a
/// name that changes in between leads nowhere. Several addresses are tried in parallel, each a little later,
/// so that a dead one does not hide a live one; the request goes over the first connection (``WayRace``).
/// Each attempt has a client of its own, because the judged address is a setting of the client; fetches are
/// rare. Requests to this machine share kept connections (``LoopbackFetch``), because they may be frequent;
/// so do requests that ask for it (``KeptClients``).
package final class HTTPSFetch: WebFetch {
    private let options: WebOptions
    private let resolver: any HostResolver
    /// For hosts of peers' choice.
    private let peerResolver: any HostResolver
    private let group: any EventLoopGroup
    private let world: World
    private let loopback: LoopbackFetch
    private let kept = KeptClients()
    /// Of hosts that are not of peers' choice.
    private let memory = DialMemory()
    private let running = Atomic<Int>(0)
    private let runningForPeers = Atomic<Int>(0)

    /// - Parameter resolver: for every host; `nil`: the system's, with threads of their own for the hosts of
    ///   peers' choice (``WebRequest/publicAddressesOnly``).
    package init(
        _ options: WebOptions = WebOptions(), resolver: (any HostResolver)? = nil,
        group: any EventLoopGroup, world: World
    ) {
        self.options = options
        self.resolver = resolver ?? options.resolver ?? SystemResolver.own
        peerResolver = resolver ?? options.resolver ?? SystemResolver.peers
        self.group = group
        self.world = world
        loopback = LoopbackFetch(group: group, connectDeadline: options.connectDeadline)
    }

    package func fetch(_ request: WebRequest) async throws(WebError) -> WebAnswer {
        // A peer's URL never leads to a server without TLS, wherever that is.
        let isPlain = !request.publicAddressesOnly && request.url.utf8.starts(with: WebAddress.plain.utf8)
        let address = isPlain ? try WebAddress(plain: request.url) : try WebAddress(request.url)
        guard enter(request) else { throw WebError(.unreachable) }
        defer { leave(request) }
        let end = world.instant() + max(request.deadline, options.leastDeadline)
        let result = await world.untilEnd(end) {
            isPlain ? await self.loopback.fetch(request, address) : await self.attempt(request, address)
        }
        guard let result else { throw WebError(.deadlineExceeded) }
        return try result.get()
    }

    /// Takes one of the places; false, and none taken, when there is none.
    private func enter(_ request: WebRequest) -> Bool {
        let count: Int
        let limit: Int
        if request.publicAddressesOnly {
            count = runningForPeers.add(1, ordering: .relaxed).newValue
            limit = WebLimits.peerFetches
        } else {
            count = running.add(1, ordering: .relaxed).newValue
            limit = WebLimits.fetches
        }
        if count > limit { leave(request) }
        return count <= limit
    }

    private func leave(_ request: WebRequest) {
        if request.publicAddressesOnly {
            runningForPeers.subtract(1, ordering: .relaxed)
        } else {
            running.subtract(1, ordering: .relaxed)
        }
    }

    // MARK: Where to

    private func attempt(_ request: WebRequest, _ address: WebAddress) async -> Result<WebAnswer, WebError> {
        let kept = request.keepsConnection && !request.publicAddressesOnly ? kept : nil
        if let kept, let client = kept.take(address) {
            let result = await request.fetch(over: client, from: address)
            // Its address, authority or certificate may be outdated.
            let isGood = ![.neverConnected, .unreachable, .tlsFailed].contains(result.fault)
            kept.giveBack(client, of: address, isGood: isGood)
            if result.fault != .neverConnected { return result.mapError(\.translated) }
        }
        do throws(WebError) {
            let (way, result) = await race(request, by: try await ways(of: request, address)) {
                [options, group] way, mayGo in
                do throws(ExchangeFault) {
                    return .success(
                        try await Exchange(request, address, by: way, options, mayGo: mayGo)
                            .attempt(on: group, keeping: kept))
                } catch { return .failure(error) }
            }
            if let way, !request.publicAddressesOnly { remember(way, address) }
            return result.mapError(\.translated)
        } catch {
            return .failure(error)
        }
    }

    private func race(
        _ request: WebRequest, by ways: [Way], _ attempt: @escaping WayRace.Attempt
    ) async -> (way: Way?, result: Result<WebAnswer, ExchangeFault>) {
        await WayRace(ways: ways, delay: options.attemptDelay, world: world).run(attempt)
    }

    /// The ways to a host, those first that worked last time. Each address of a proxy leads to each address
    /// of the host.
    private func ways(of request: WebRequest, _ address: WebAddress) async throws(WebError) -> [Way] {
        guard let proxy = options.proxy else {
            return order(try await judged(request, address), address.host).map { Way(target: $0) }
        }
        let proxies =
            if let literal = IPAddress(proxy.host) { [literal] } else {
                order(try await resolver.resolve(proxy.host), proxy.host)
            }
        // A proxy that need not be told an address resolves for us.
        guard request.publicAddressesOnly else { return proxies.map { Way(proxy: $0) } }
        let targets = order(try await judged(request, address), nil)
        let ways = targets.flatMap { target in proxies.map { Way(target: target, proxy: $0) } }
        return Array(ways.prefix(WebLimits.addresses))
    }

    private func order(_ found: [IPAddress], _ host: String?) -> [IPAddress] {
        DialOrder.order(found, preferred: host.flatMap(memory.last), limit: WebLimits.addresses)
    }

    private func remember(_ way: Way, _ address: WebAddress) {
        if let proxy = options.proxy, let used = way.proxy { memory.worked(used, for: proxy.host) }
        if let target = way.target { memory.worked(target, for: address.host) }
    }

    /// The addresses that may be connected to, best first.
    private func judged(_ request: WebRequest, _ address: WebAddress) async throws(WebError) -> [IPAddress] {
        var found: [IPAddress] = []
        if let literal = address.literal {
            found = [literal]
        } else {
            let resolver = request.publicAddressesOnly ? peerResolver : resolver
            found = try await resolver.resolve(address.host)
        }
        guard request.publicAddressesOnly else { return found }
        // One private address among public ones is a trap, so all of them must be fit.
        let areFit = found.allSatisfy { one in one.isGlobal || options.allowed.contains { $0.contains(one) } }
        guard areFit, address.port == 443 || address.port >= WebLimits.firstFreePort else {
            throw WebError(.forbiddenAddress)
        }
        return found
    }
}

extension Result where Failure == ExchangeFault {
    fileprivate var fault: ExchangeFault? { if case .failure(let fault) = self { fault } else { nil } }
}
