import Crypto
package import HTTPIngress
package import PushModel

/// The operator's face: metrics, health, status. If there is a token, only its holders get answers, otherwise
/// only loopback; the two health paths answer everybody. A token is required on loopback too, because a proxy
/// there may not say for whom it asks.
///
/// Without a token, a request counts as loopback only when nothing suggests that somebody else stands behind
/// it: no forwarding field, and a `Host` that is an address or `localhost`, since a web page can make a
/// browser ask a name that leads here.
package struct AdminFace: HTTPFace {
    private enum Page: Int, CaseIterable {
        case dashboard, metrics, live, ready, status

        var path: String {
            switch self {
            case .dashboard: "/"
            case .metrics: "/metrics"
            case .live: "/health/live"
            case .ready: "/health/ready"
            case .status: "/status"
            }
        }

        /// Answered to anybody.
        var isOpen: Bool { self == .live || self == .ready }
    }

    /// Wrong tokens of one address in a minute, before it is told to wait.
    private static let failuresPerMinute = 30

    package let name: ConfiguredName
    /// SHA-256 of the token, so that nobody reads the token itself out of the memory.
    private let digest: Secret?
    private let metrics: PrometheusMetrics
    private let samples: @Sendable () async -> [MetricSample]
    private let examination: Examination
    private let status: @Sendable () async -> StatusReport
    /// Further calls; their tags stand behind those of the pages.
    private let calls: [AdminCall]
    private let world: World
    /// Each relay's own, as its admin listener is.
    private let failures: RateLimiter<ClientKey>

    /// - Parameter token: what `Authorization: Bearer` must carry; `nil`: loopback alone.
    package init(
        _ name: ConfiguredName, token: Secret?, metrics: PrometheusMetrics,
        samples: @escaping @Sendable () async -> [MetricSample] = { [] }, checks: [HealthCheck],
        roles: [RoleCheck] = [], status: @escaping @Sendable () async -> StatusReport,
        calls: [AdminCall] = [], world: World
    ) {
        self.name = name
        digest = token.map(Self.digest)
        self.metrics = metrics
        self.samples = samples
        examination = Examination(checks: checks, roles: roles, world: world)
        self.status = status
        self.calls = calls
        self.world = world
        failures = RateLimiter(perMinute: Self.failuresPerMinute, capacity: 1000, world: world)
    }

    package var routes: [HTTPRoute] {
        Page.allCases.map { HTTPRoute(.exact($0.path), bodyLimitBytes: 0, tag: $0.rawValue) }
            + calls.enumerated().map { index, call in
                HTTPRoute(
                    .exact(call.path), bodyLimitBytes: call.takesBody ? AdminCall.bodyLimitBytes : 0,
                    tag: Page.allCases.count + index)
            }
    }

    package func judge(head: HTTPInbound) -> HTTPOutbound? { refusal(of: head) }

    package func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        if let refusal = refusal(of: inbound) {
            // A load balancer or a container supervisor asks for health, and has no token.
            guard let page = Page(rawValue: inbound.tag), page.isOpen else { return refusal }
            return guarded(await self.page(inbound, tells: false))
        }
        guard Page(rawValue: inbound.tag) == nil, calls.indices.contains(inbound.tag - Page.allCases.count)
        else { return guarded(await page(inbound, tells: true)) }
        let call = calls[inbound.tag - Page.allCases.count]
        if let refusal = call.refusal(of: inbound) { return refusal }
        return guarded(await call.answer(inbound))
    }

    /// Fields that keep an answer out of caches and stop browsers from guessing its type.
    private func guarded(_ outbound: HTTPOutbound) -> HTTPOutbound {
        var answer = outbound
        answer.headers.append((name: "cache-control", value: "no-store"))
        answer.headers.append((name: "x-content-type-options", value: "nosniff"))
        return answer
    }

    /// - Parameter tells: whether the caller may see what fails.
    private func page(_ inbound: HTTPInbound, tells: Bool) async -> HTTPOutbound {
        guard inbound.method == .get || inbound.method == .head else {
            var answer = HTTPOutbound.text(405, "Only GET is answered here.")
            answer.headers = [(name: "allow", value: "GET, HEAD")]
            return answer
        }
        var answer: HTTPOutbound
        switch Page(rawValue: inbound.tag) {
        case .metrics: answer = HTTPOutbound(200, .metrics, Array(metrics.text(await samples()).utf8))
        case .live: answer = .text(200, "live")
        case .ready: answer = await readiness(inbound, tells: tells)
        case .status: answer = HTTPOutbound(200, .json, AdminPages.status(await status(), now: world.now()))
        case .dashboard, nil:
            let page = Dashboard(
                report: await status(), health: await examination.health(), now: world.now())
            answer = HTTPOutbound(200, .html, page.html)
            answer.headers = [(name: "content-security-policy", value: DashboardStyle.policy)]
        }
        return answer
    }

    // MARK: Who may ask

    /// `nil` when the request may be answered.
    private func refusal(of inbound: HTTPInbound) -> HTTPOutbound? {
        guard let digest else {
            return isLocal(inbound) ? nil : .text(403, "This port answers on its own machine only.")
        }
        guard let given = bearer(of: inbound) else { return unauthorised }
        if Self.digest(given) == digest { return nil }
        if case .refused(let span) = failures.take(1, of: inbound.client) {
            return HTTPOutbound.text(429, "Too many wrong tokens.").retrying(after: span)
        }
        return unauthorised
    }

    private static func digest(_ token: Secret) -> Secret {
        token.reveal { token in Secret(Array(SHA256.hash(data: token))) }
    }

    private var unauthorised: HTTPOutbound {
        var answer = HTTPOutbound.text(401, "A bearer token is needed here.")
        answer.headers = [(name: "www-authenticate", value: "Bearer")]
        return answer
    }

    private func bearer(of inbound: HTTPInbound) -> Secret? {
        guard inbound.headerCount("authorization") == 1, let field = inbound.header("authorization") else {
            return nil
        }
        let scheme = "bearer "
        guard field.utf8.count > scheme.utf8.count, field.prefix(scheme.count).lowercased() == scheme else {
            return nil
        }
        return Secret(Array(field.utf8.dropFirst(scheme.utf8.count)))
    }

    private func isLocal(_ inbound: HTTPInbound) -> Bool {
        guard inbound.isLoopback else { return false }
        for field in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] where inbound.header(field) != nil {
            return false
        }
        return inbound.header("host").map(Self.isLocalHost) ?? true
    }

    /// `localhost`, `127.0.0.1`, `[::1]`, each with or without a port.
    private static func isLocalHost(_ field: String) -> Bool {
        let end = field.hasPrefix("[") ? field.firstIndex(of: "]") : nil
        let host = end.map { field[field.index(after: field.startIndex)..<$0] } ?? field.prefix { $0 != ":" }
        return host.lowercased() == "localhost" || IPAddress(host) != nil
    }

    // MARK: Health

    /// The readiness of the relay, or of the instance that a query names.
    private func readiness(_ inbound: HTTPInbound, tells: Bool) async -> HTTPOutbound {
        let health = await examination.health()
        guard let name = inbound.instanceNamed else {
            return HTTPOutbound(health.isReady ? 200 : 503, .json, AdminPages.health(health, tells: tells))
        }
        guard let isReady = health.isReady(name) else {
            return .text(404, "The configuration has no instance of that name.")
        }
        return HTTPOutbound(isReady ? 200 : 503, .json, AdminPages.readiness(isReady))
    }
}

extension HTTPInbound {
    /// What `?instance=` names.
    fileprivate var instanceNamed: Substring? {
        (query ?? "").split(separator: "&").last { $0.hasPrefix("instance=") }?.dropFirst("instance=".count)
    }
}
