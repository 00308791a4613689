import FCM
import HTTP2Client
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient

/// A simulator that knows one project and learns devices, and a provider that fetches its token there and
/// sends.
private struct FCMStage: Sendable {
    let simulator: FCMSimulator
    let provider: FCMProvider
    let scratch: TemporaryFolder
    static let lane = LaneName("acme-chat/fcm/production")!
    static let token = "dXy:APA91bF" + String(repeating: "x", count: 130)

    init() async throws {
        let authority = try CertificateAuthority()
        let account = try Simulators.ServiceAccount()
        var configuration = FCMSimulatorConfiguration(accounts: [account.registration])
        configuration.knobs.learnsDevices = true
        configuration.knobs.deviceMinuteLimit = nil
        configuration.knobs.deviceHourLimit = nil
        let group = MultiThreadedEventLoopGroup.singleton
        simulator = try FCMSimulator(configuration, authority: authority, eventLoopGroup: group)
        let port = try await simulator.start()
        scratch = try TemporaryFolder()
        let file = try scratch.write(authority.certificatePEM, to: "ca.pem")
        var options = WebOptions(extraAuthorities: [file])
        (options.connectDeadline, options.leastDeadline) = (.seconds(600), .seconds(600))
        let web = HTTPSFetch(options, group: group, world: .live)
        let json = account.json(tokenURI: simulator.tokenURI ?? "")
        let credential = FCMCredential(
            account: try FCMServiceAccount(file: Secret(Array(json.utf8))), fetch: web, world: .live,
            journal: .silent)
        provider = try FCMProvider(
            lane: Self.lane, credential: credential, addressKind: .auto, url: "https://localhost:\(port)",
            certificates: Array(authority.certificatePEM.utf8), options: .patient, group: group, world: .live,
            journal: .silent)
    }

    func send(_ address: String = Self.token, data: String = "{\"k\":\"v\"}") async throws -> Answer {
        let message = FCMMessage(
            address: Secret(Array(address.utf8)), priority: .high, data: Secret(Array(data.utf8)))
        let owed = OwedPush(
            id: PushID(at: UnixTime(seconds: 1_800_000_000), random: 0, 0), row: 1, lane: Self.lane,
            pushClass: .normal, origin: Digest16(high: 0, low: 0), record: nil, touchedAt: .distantPast,
            notBefore: .distantPast, custodyEnds: .distantFuture, attempt: 0, epoch: 0, mark: nil,
            instance: ConfiguredName("zulip-main")!, message: .fcm(message))
        let slot = try await provider.reserve()
        return await provider.send(LeasedPush(granting: owed, sendBefore: .now + .seconds(300)), on: slot)
    }

    func running<Result: Sendable>(_ body: @Sendable @escaping (FCMStage) async throws -> Result) async throws
        -> Result
    {
        let result = try await runs({ try await provider.run() }, during: { try await body(self) })
        await simulator.stop()
        return result
    }
}

@Suite("The sender against the FCM simulator", .timeLimit(.minutes(30)))
struct FCMSimulatorTests {
    @Test("A token is fetched once, and pushes to tokens and installation ids are accepted")
    func accepted() async throws {
        let stage = try await FCMStage()
        let answers = try await stage.running { stage in
            try await withThrowingTaskGroup(of: Answer.self) { group in
                for index in 0..<200 {
                    group.addTask {
                        try await stage.send(index % 2 == 0 ? FCMStage.token : "c1E-_5fGhIjKlMnOpQrStU")
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        }
        #expect(answers.count == 200 && answers.allSatisfy { $0.outcome == .accepted })
        #expect(stage.simulator.counters.accepted == 200)
        #expect(stage.simulator.counters.tokensIssued == 1)
    }

    @Test("An access token that is revoked early is replaced once, and the push goes through")
    func revoked() async throws {
        let stage = try await FCMStage()
        let answers = try await stage.running { stage -> [Answer] in
            let first = try await stage.send()
            stage.simulator.revokeAccessTokens()
            return [first, try await stage.send(), try await stage.send()]
        }
        #expect(answers.map(\.outcome) == [.accepted, .retry(after: nil), .accepted])
        #expect(answers[1].reason == .unauthenticated)
        #expect(stage.simulator.counters.tokensIssued == 2)
    }

    @Test(
        "What was misdirected, or took too long to come, is tried again on another connection",
        arguments: [408, 421])
    func elsewhere(_ status: Int) async throws {
        let stage = try await FCMStage()
        stage.simulator.turnConnections { $0.answers = [PreparedAnswer(status: status, times: 1)] }
        let outcomes = try await stage.running { [try await $0.send().outcome, try await $0.send().outcome] }
        #expect(outcomes == [.retry(after: nil), .accepted])
        #expect(stage.provider.pool.snapshot().opened == 2)
    }

    @Test("Removed apps, other projects, quota and server faults are told apart")
    func faults() async throws {
        let stage = try await FCMStage()
        let other = "oXy:APA91bF" + String(repeating: "x", count: 130)
        let gone = "gXy:APA91bF" + String(repeating: "x", count: 130)
        stage.simulator.register(gone, as: FCMDevice(project: "acme-chat", isLive: false))
        stage.simulator.register(other, as: FCMDevice(project: "somebody-else"))
        let answers = try await stage.running { stage -> [Answer] in
            var answers = [try await stage.send(gone), try await stage.send(other)]
            stage.simulator.turn { $0.unavailableShare = 1 }
            answers.append(try await stage.send())
            stage.simulator.turn {
                $0.unavailableShare = 0
                $0.deviceMinuteLimit = 0
                $0.retryAfter = .seconds(17)
            }
            answers.append(try await stage.send())
            return answers
        }
        #expect(
            answers.map(\.reason) == [
                .unregisteredFCM, .senderIdMismatch, .unavailable, .deviceQuotaExceeded
            ])
        #expect(
            answers[0].outcome == .unregistered(since: nil) && answers[1].outcome == .unregistered(since: nil)
        )
        #expect(OutcomeKind(answers[2].outcome) == .retry)
        #expect(answers[3].outcome == .retry(after: .seconds(17)))
    }

    @Test("The project's quota, a proxy's page and an OAuth answer that is none are told apart as well")
    func strays() async throws {
        let stage = try await FCMStage()
        stage.simulator.turn { $0.tokenStrays = [.page(403, on: .next(1))] }
        let answers = try await stage.running { stage -> [Answer] in
            // The keeper of the account asks once more within a second.
            let first = try await stage.send()
            try await asked(for: "an access token") { stage.simulator.counters.tokensIssued == 1 }
            stage.simulator.turn { $0.strays = [.page(404, on: .next(1))] }
            var answers = [first, try await stage.send(), try await stage.send()]
            stage.simulator.turn { $0.projectMinuteLimit = 0 }
            answers.append(try await stage.send())
            return answers
        }
        #expect(
            answers.map(\.reason) == [.credentialUnavailable, .foreignAnswer, .ok, .rateLimitExceeded])
        #expect(answers.map(\.fate) == [.unprocessed, .unprocessed, .answered, .answered])
        #expect(answers[0].outcome == .retry(after: nil))
    }

    @Test("What Google would refuse without doubt is refused here, and says so")
    func refusedHere() async throws {
        let stage = try await FCMStage()
        let answer = try await stage.running { stage in
            try await stage.send(data: "{\"k\":\"\(String(repeating: "v", count: 8_192))\"}")
        }
        #expect(answer.outcome == .rejected && answer.fate == .local)
        #expect(stage.simulator.counters.received == 0)
        #expect(stage.provider.pool.snapshot().requests == 0)
    }

    @Test("Without a token nothing is sent: the push is owed, and the fault is ours to mend")
    func noToken() async throws {
        let stage = try await FCMStage()
        stage.simulator.remove(accountEmail: "pusher@acme-chat.iam.gserviceaccount.com")
        let answers = try await stage.running { stage -> [Answer] in
            var answers = [try await stage.send()]
            // The keeper of the account asks until it has heard it three times.
            try await asked(for: "a refusal that is believed") {
                answers.append(try await stage.send())
                return answers.last?.outcome == .misconfigured(.credential)
            }
            return answers
        }
        #expect(answers.first?.outcome == .retry(after: nil), "the first may be a stray")
        #expect(answers.allSatisfy { $0.reason == .credentialUnavailable && $0.fate == .unprocessed })
        #expect(stage.simulator.counters.byReason["invalid_client"] == 3)
        #expect(stage.simulator.counters.received == 0)
        #expect(stage.provider.pool.snapshot().inFlight == 0)
    }
}
