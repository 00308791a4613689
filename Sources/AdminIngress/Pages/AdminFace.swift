package import HTTPIngress
package import PushModel

/// The operator's face: metrics, health, status. For who holds the token, where there is one, else for
/// loopback; nobody else. A token binds loopback too: a proxy may stand there and say nothing of whom it
/// speaks for.
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
    }

    /// Wrong tokens of one address in a minute, before it is told to wait.
    private static let failuresPerMinute = 30
    /// For all checks of one question together.
    private static let checkDeadline = Duration.seconds(2)

    package let name: ConfiguredName
    private let token: Secret?
    private let metrics: PrometheusMetrics
    private let samples: @Sendable () async -> [MetricSample]
    private let checks: [HealthCheck]
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
        status: @escaping @Sendable () async -> StatusReport, calls: [AdminCall] = [], world: World
    ) {
        self.name = name
        self.token = token
        self.metrics = metrics
        self.samples = samples
        self.checks = checks
        self.status = status
        self.calls = calls
        self.world = world
        failures = RateLimiter(perMinute: Self.failuresPerMinute, capacity: 1000, world: world)
    }

    package var routes: [HTTPRoute] {
        Page.allCases.map { HTTPRoute(.exact($0.path), bodyLimitBytes: 0, tag: $0.rawValue) }
            + calls.enumerated().map { index, call in
                HTTPRoute(
                    .exact(call.path), bodyLimitBytes: call.changes ? AdminCall.bodyLimitBytes : 0,
                    tag: Page.allCases.count + index)
            }
    }

    package func judge(head: HTTPInbound) -> HTTPOutbound? { refusal(of: head) }

    package func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        if let refusal = refusal(of: inbound) { return refusal }
        guard Page(rawValue: inbound.tag) == nil, calls.indices.contains(inbound.tag - Page.allCases.count)
        else { return guarded(await page(inbound)) }
        let call = calls[inbound.tag - Page.allCases.count]
        if let refusal = call.refusal(of: inbound) { return refusal }
        return guarded(await call.answer(inbound))
    }

    /// What no cache keeps and no browser takes for something else.
    private func guarded(_ outbound: HTTPOutbound) -> HTTPOutbound {
        var answer = outbound
        answer.headers.append((name: "cache-control", value: "no-store"))
        answer.headers.append((name: "x-content-type-options", value: "nosniff"))
        return answer
    }

    private func page(_ inbound: HTTPInbound) async -> HTTPOutbound {
        guard inbound.method == .get || inbound.method == .head else {
            var answer = HTTPOutbound.text(405, "Only GET is answered here.")
            answer.headers = [(name: "allow", value: "GET, HEAD")]
            return answer
        }
        var answer: HTTPOutbound
        switch Page(rawValue: inbound.tag) {
        case .metrics: answer = HTTPOutbound(200, .metrics, Array(metrics.text(await samples()).utf8))
        case .live: answer = .text(200, "live")
        case .ready:
            let results = await examine()
            answer = HTTPOutbound(results.allSatisfy(\.isWell) ? 200 : 503, .json, AdminPages.health(results))
        case .status: answer = HTTPOutbound(200, .json, AdminPages.status(await status(), now: world.now()))
        case .dashboard, nil:
            answer = HTTPOutbound(200, .html, AdminPages.dashboard(await status(), now: world.now()))
            answer.headers = [
                (name: "content-security-policy", value: AdminPages.dashboardPolicy)
            ]
        }
        return answer
    }

    // MARK: Who may ask

    /// `nil` when the request may be answered.
    private func refusal(of inbound: HTTPInbound) -> HTTPOutbound? {
        guard let token else {
            return isLocal(inbound) ? nil : .text(403, "This port answers on its own machine only.")
        }
        guard let given = bearer(of: inbound) else { return unauthorised }
        if given == token { return nil }
        if case .refused(let span) = failures.take(1, of: inbound.client) {
            return HTTPOutbound.text(429, "Too many wrong tokens.").retrying(after: span)
        }
        return unauthorised
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

    /// Asks all checks at once; one that is silent until the deadline is not well.
    private func examine() async -> [(name: NoteCode, isWell: Bool)] {
        let end = world.instant() + Self.checkDeadline
        var found: [Int: Bool] = [:]
        await withTaskGroup(of: (Int, Bool)?.self) { group in
            for (index, check) in checks.enumerated() { group.addTask { (index, await check.isWell()) } }
            let world = world
            group.addTask {
                // A sleep that ends early was cancelled because all checks have answered.
                try? await world.sleep(end)
                return nil
            }
            while found.count < checks.count, let result = await group.next(), let result {
                found[result.0] = result.1
            }
            group.cancelAll()
        }
        return checks.enumerated().map { ($1.name, found[$0] ?? false) }
    }
}
