package import HTTP2Client
package import NIOCore
package import PushModel

/// One lane's way to APNs: a separate pool of connections, so that a fault of one lane does not affect
/// others, and a credential that it shares with the key's other lanes.
package struct APNsProvider: DirectProvider {
    package let lane: LaneName
    package let pool: HTTP2Pool
    private let credential: APNsCredential
    private let requests: APNsRequest
    private let world: World
    private let journal: Journal

    /// Apple is seen to answer after twelve seconds and more (docs/push-services.md §2.6).
    package static let requestDeadline = Duration.seconds(20)

    /// Apple's hosts (docs/push-services.md §2.1).
    package static func url(of environment: Environment) -> String {
        switch environment {
        case .production: "https://api.push.apple.com"
        case .sandbox: "https://api.sandbox.push.apple.com"
        }
    }

    /// - Parameters:
    ///   - url: where the requests go; `nil`: Apple's host of the lane's environment.
    ///   - certificates: PEM text of the CAs to trust; `nil`: the system's.
    /// - Throws: `.malformedURL`, `.badCertificateFile`.
    package init(
        lane: LaneName, credential: APNsCredential, url: String? = nil, certificates: [UInt8]? = nil,
        proxy: HTTP2Endpoint.Proxy? = nil, options: HTTP2Options = HTTP2Options(), group: any EventLoopGroup,
        world: World, journal: Journal
    ) throws(HTTP2Error) {
        let endpoint = try HTTP2Endpoint(
            url: url ?? Self.url(of: lane.environment), certificates: certificates, proxy: proxy)
        self.lane = lane
        self.credential = credential
        self.world = world
        self.journal = journal
        requests = APNsRequest(authority: endpoint.authority)
        var options = options
        options.requestDeadline = options.requestDeadline ?? Self.requestDeadline
        pool = try HTTP2Pool(
            endpoint: endpoint, options: options, group: group, world: world, journal: journal, lane: lane)
    }

    package var executor: (any TaskExecutor)? { pool.executor }

    package func run() async throws { try await pool.run() }

    package func reserve() async throws(CancellationError) -> HTTP2Slot { try await pool.reserve() }

    package func reserveAtOnce() -> HTTP2Slot? { pool.reserveAtOnce() }

    package func figures() -> [ProviderFigure] { pool.snapshot().figures }

    package func send(_ leased: LeasedPush, on slot: HTTP2Slot) async -> Answer {
        guard let message = leased.push.message.apns else {
            return slot.refuse((.rejected, .unknown), at: world.now())
        }
        let token: APNsToken
        if let current = credential.current() { token = current } else { token = await credential.token() }
        let request: HTTP2Request
        do {
            request = try requests.request(
                for: message, id: leased.push.sentAs, authorization: token.authorization)
        } catch {
            return slot.refuse(error.judged, at: world.now())
        }
        let answer = await pool.request(request, of: leased, on: slot)
        let (word, mustRenew) = judged(answer, token)
        return mustRenew ? await renewed(word, token) : word
    }

    package func windDown(within span: Duration) { pool.windDown(within: span) }

    /// Not async: nearly every answer is judged at once.
    ///
    /// - Returns: also whether the token may have to be renewed first.
    private func judged(_ answer: HTTP2Answer, _ token: APNsToken) -> (Answer, mustRenew: Bool) {
        guard answer.cause == .answered else {
            let unanswered = answer.unanswered { late in
                let (word, mustRenew) = judged(late, token)
                return mustRenew ? await renewed(word, token) : word
            }
            return (unanswered, false)
        }
        let reading = APNsOutcomeTable.judge(
            status: answer.status, body: answer.body, retryAfter: answer.retryAfter, now: world.now())
        switch reading.cure {
        case .none, .renewToken: break
        case .replaceConnection:
            pool.replace(answer.connection)
            journal.note("apns connection replaced", [.lane: lane, .reason: reading.reason])
        }
        let word = Answer(reading.outcome, reading.reason, sentAt: answer.sentAt, fate: reading.fate)
        return (word, reading.cure == .renewToken)
    }

    private func renewed(_ answer: Answer, _ token: APNsToken) async -> Answer {
        // If Apple calls a young token expired, our clock is wrong: more tokens would not help.
        if await credential.expired(token) { return answer }
        return Answer(
            .misconfigured(.credential), answer.reason, sentAt: answer.sentAt, fate: answer.fate)
    }
}
