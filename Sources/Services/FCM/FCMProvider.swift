package import HTTP2Client
package import NIOCore
package import PushModel

/// One lane's way to FCM HTTP v1: a separate pool of connections, and a service account that it shares with
/// the account's other lanes.
package struct FCMProvider: DirectProvider {
    package let lane: LaneName
    package let pool: HTTP2Pool
    private let credential: FCMCredential
    private let requests: FCMRequest
    private let world: World

    /// Google asks for at least ten seconds, and is seen to take more (docs/push-services.md §4.2).
    package static let requestDeadline = Duration.seconds(30)

    /// Google's host (docs/push-services.md §4.2).
    package static let url = "https://fcm.googleapis.com"

    /// - Parameters:
    ///   - url: where the requests go; `nil`: Google's host.
    ///   - certificates: PEM text of the CAs to trust; `nil`: the system's.
    ///   - validatesOnly: Google looks at messages and delivers none.
    /// - Throws: `.malformedURL`, `.badCertificateFile`.
    package init(
        lane: LaneName, credential: FCMCredential, addressKind: FCMAddressKind, url: String? = nil,
        certificates: [UInt8]? = nil, proxy: HTTP2Endpoint.Proxy? = nil,
        options: HTTP2Options = HTTP2Options(), validatesOnly: Bool = false,
        group: any EventLoopGroup, world: World, journal: Journal
    ) throws(HTTP2Error) {
        let endpoint = try HTTP2Endpoint(url: url ?? Self.url, certificates: certificates, proxy: proxy)
        self.lane = lane
        self.credential = credential
        self.world = world
        requests = FCMRequest(
            authority: endpoint.authority, project: credential.account.project, addressKind: addressKind,
            validatesOnly: validatesOnly)
        var options = options
        options.requestDeadline = options.requestDeadline ?? Self.requestDeadline
        pool = try HTTP2Pool(
            endpoint: endpoint, options: options, group: group, world: world, journal: journal, lane: lane)
    }

    /// Keeps connections and a fresh access token until cancelled.
    package var executor: (any TaskExecutor)? { pool.executor }

    package func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await credential.keepFresh() }
            group.addTask { try await pool.run() }
            // The token's keeper ends with the pool.
            while let _ = try await group.next() { group.cancelAll() }
        }
    }

    package func reserve() async throws(CancellationError) -> HTTP2Slot { try await pool.reserve() }

    package func reserveAtOnce() -> HTTP2Slot? { pool.reserveAtOnce() }

    package func figures() -> [ProviderFigure] { pool.snapshot().figures }

    package func send(_ leased: LeasedPush, on slot: HTTP2Slot) async -> Answer {
        guard let message = leased.push.message.fcm else {
            return slot.refuse((.rejected, .unknown), at: world.now())
        }
        let token: FCMToken
        do {
            token = try await credential.token()
        } catch {
            slot.release()
            return unsent(error)
        }
        let request: HTTP2Request
        do {
            request = try requests.request(for: message, authorization: token.authorization)
        } catch {
            return slot.refuse(error.judged, at: world.now())
        }
        return await judged(await pool.request(request, of: leased, on: slot), token)
    }

    package func windDown(within span: Duration) { pool.windDown(within: span) }

    private func judged(_ answer: HTTP2Answer, _ token: FCMToken) async -> Answer {
        guard answer.cause == .answered else {
            return answer.unanswered(late: { await judged($0, token) })
        }
        let reading = FCMOutcomeTable.judge(
            status: answer.status, body: answer.body, retryAfter: answer.retryAfter, now: world.now())
        var outcome = reading.outcome
        switch reading.cure {
        case .none: if outcome == .accepted { await credential.accepted(token) }
        case .replaceConnection: pool.replace(answer.connection)
        case .renewToken: if await !credential.refused(token) { outcome = .misconfigured(.credential) }
        }
        return Answer(outcome, reading.reason, sentAt: answer.sentAt, fate: reading.fate)
    }

    private func unsent(_ fault: FCMCredentialFault) -> Answer {
        let outcome: Outcome =
            switch fault {
            case .refused: .misconfigured(.credential)
            case .unavailable(let after): .retry(after: after)
            }
        return Answer(outcome, .credentialUnavailable, sentAt: world.now(), fate: .unprocessed)
    }
}
