import APNs
import HTTP2Client
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Synchronization
import Testing

/// A simulator that knows one key and learns devices, and a provider that speaks to it.
private struct Stage: Sendable {
    let simulator: APNsSimulator
    let provider: APNsProvider
    let spy = LogSpy()
    static let lane = LaneName("acme-chat/apns/production")!

    init(connection: ConnectionKnobs = ConnectionKnobs()) async throws {
        let authority = try CertificateAuthority()
        let key = APNsKey()
        var configuration = APNsSimulatorConfiguration(environment: .production, keys: [key.registration()])
        configuration.knobs.learnsDevices = true
        configuration.connection = connection
        simulator = try APNsSimulator(
            configuration, authority: authority, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        let port = try await simulator.start()
        let credential = try APNsCredential(
            team: key.team, keyID: key.keyID, key: Secret(Array(key.privateKeyPEM.utf8)), world: .live)
        provider = try APNsProvider(
            lane: Self.lane, credential: credential, url: "https://127.0.0.1:\(port)",
            certificates: Array(authority.certificatePEM.utf8), options: .patient,
            group: MultiThreadedEventLoopGroup.singleton, world: .live, journal: spy.journal)
    }

    func push(_ number: Int, token: String = "00aa") -> LeasedPush {
        let message = APNsMessage(
            token: Secret(Array(token.utf8)), bundle: "org.acme.chat", pushType: .alert, priority: 10,
            payload: Secret(Array("{\"aps\":{\"alert\":\"New notification\"},\"n\":\(number)}".utf8)))
        let owed = OwedPush(
            id: PushID(at: UnixTime(seconds: 1_800_000_000), random: 0, UInt64(number)), row: 1,
            lane: Self.lane,
            pushClass: .normal, origin: Digest16(high: 0, low: 0), record: nil, touchedAt: .distantPast,
            notBefore: .distantPast, custodyEnds: .distantFuture, attempt: 0, epoch: 0, mark: nil,
            instance: ConfiguredName("zulip-main")!, message: .apns(message))
        return LeasedPush(granting: owed, sendBefore: .now + .seconds(300))
    }

    /// Runs the provider while `body` runs.
    func running<Result: Sendable>(_ body: @Sendable @escaping (Stage) async throws -> Result) async throws
        -> Result
    {
        let result = try await runs({ try await provider.run() }, during: { try await body(self) })
        await simulator.stop()
        return result
    }

    func send(_ push: LeasedPush) async throws -> Answer {
        await provider.send(push, on: try await provider.reserve())
    }

    /// Sends as a lane does: what asks to be tried again is tried again.
    func deliver(_ count: Int, width: Int) async throws -> (accepted: Int, unknown: Int, tries: Int) {
        try await withThrowingTaskGroup(of: (Int, Int, Int).self) { group in
            for worker in 0..<width {
                group.addTask {
                    var (accepted, unknown, tries) = (0, 0, 0)
                    for number in stride(from: worker, to: count, by: width) {
                        while true {
                            tries += 1
                            let answer = try await send(push(number))
                            if answer.fate == .unknown { unknown += 1 }
                            guard case .retry = answer.outcome else {
                                if answer.outcome == .accepted { accepted += 1 }
                                break
                            }
                        }
                    }
                    return (accepted, unknown, tries)
                }
            }
            var sum = (accepted: 0, unknown: 0, tries: 0)
            for try await part in group { sum = (sum.0 + part.0, sum.1 + part.1, sum.2 + part.2) }
            return sum
        }
    }
}

@Suite("The sender against the APNs simulator", .timeLimit(.minutes(30)))
struct APNsSimulatorTests {
    @Test("GOAWAY after every 1,000 requests over 20,000 sends, limits moving underneath: 0 lost, 0 doubled")
    func law() async throws {
        var knobs = ConnectionKnobs()
        knobs.goAway = GoAwayKnob(afterRequests: 1000, lastStream: .below(count: 3))
        knobs.excess = .refuse
        let stage = try await Stage(connection: knobs)
        let sum = try await stage.running { stage in
            try await withThrowingTaskGroup(of: Void.self) { group in
                let flow = stage.simulator.subscribe(token: "")
                group.addTask {
                    // The limit wanders between 1 and 1,000, and holds for about as many pushes: a narrow
                    // one lets few through, and what it refuses comes again.
                    let limits: [UInt32] = [1000, 7, 100, 1, 300, 30]
                    var (turn, next) = (0, 0)
                    // Bound: cancelled with the group, once all have been sent.
                    for await delivery in flow where delivery.number >= next {
                        let limit = limits[turn % limits.count]
                        stage.simulator.turnConnections { $0.streams = limit }
                        turn += 1
                        next = delivery.number + min(Int(limit) + 3, 150)
                    }
                }
                let sum = try await stage.deliver(20_000, width: 200)
                group.cancelAll()
                return sum
            }
        }
        #expect(sum.accepted == 20_000)
        #expect(sum.unknown == 0)
        let counters = stage.simulator.counters
        #expect(counters.accepted == 20_000)
        #expect(counters.doubles == 0)
        let snapshot = stage.provider.pool.snapshot()
        // About twenty; of the connections that stood at the end none need have finished its thousand.
        #expect(snapshot.goaways >= 10)
        #expect(snapshot.resent > 0)
        let figures = stage.provider.figures().map { ("\($0.name)", $0) }
        #expect(Set(figures.map(\.0)).count == figures.count)
        #expect(figures.allSatisfy { $0.0.hasSuffix("_total") == $0.1.isTotal })
        #expect(figures.first { $0.0 == "sealbell_push_goaways_total" }?.1.value == snapshot.goaways)
        #expect(counters.byReason.isEmpty)
    }

    @Test("One stream until the first good answer, then the tap is open")
    func startsAtOne() async throws {
        let stage = try await Stage()
        let sum = try await stage.running { try await $0.deliver(500, width: 50) }
        #expect(sum.accepted == 500 && sum.tries == 500)
        #expect(stage.provider.pool.snapshot().refused == 0)
    }

    @Test(
        "What was misdirected, or took too long to come, is tried again on another connection",
        arguments: [408, 421])
    func elsewhere(_ status: Int) async throws {
        var knobs = ConnectionKnobs()
        knobs.answers = [PreparedAnswer(status: status, times: 1)]
        let stage = try await Stage(connection: knobs)
        let outcomes = try await stage.running { stage in
            [try await stage.send(stage.push(1)).outcome, try await stage.send(stage.push(1)).outcome]
        }
        #expect(outcomes == [.retry(after: nil), .accepted])
        #expect(stage.provider.pool.snapshot().opened == 2)
    }

    @Test("A dead token tells since when, an unknown one is bad, and neither is tried again")
    func deadTokens() async throws {
        let stage = try await Stage()
        let since = UnixTime(milliseconds: 1_750_000_000_321)
        stage.simulator.register(
            "00ff", as: APNsDevice(topics: ["org.acme.chat"], state: .removed(since: since)))
        stage.simulator.turn { $0.learnsDevices = false }
        let answers = try await stage.running { stage in
            [
                try await stage.send(stage.push(1, token: "00ff")),
                try await stage.send(stage.push(2, token: "00ee")),
                try await stage.send(stage.push(3, token: "no-hex"))
            ]
        }
        #expect(answers[0].outcome == .unregistered(since: since) && answers[0].reason == .unregisteredAPNs)
        #expect(answers[1].outcome == .unregistered(since: nil) && answers[1].reason == .badDeviceToken)
        // The same word, but nobody was asked.
        #expect(answers[2].outcome == .unregistered(since: nil) && answers[2].reason == .badDeviceToken)
        #expect(answers.map(\.fate) == [.answered, .answered, .local])
        #expect(stage.provider.pool.snapshot().requests == 2)
    }

    @Test(
        "A revoked key is a misconfiguration of the credential, and makes no storm of tokens or connections")
    func revokedKey() async throws {
        let stage = try await Stage()
        let answers = try await stage.running { stage -> [Answer] in
            _ = try await stage.send(stage.push(0))
            stage.simulator.revoke(keyID: "F6G7H8I9J0")
            var answers: [Answer] = []
            for number in 1...50 { answers.append(try await stage.send(stage.push(number))) }
            return answers
        }
        #expect(
            answers.allSatisfy {
                $0.outcome == .misconfigured(.credential) && $0.reason == .invalidProviderToken
            })
        #expect(stage.provider.pool.snapshot().opened == 1)
    }

    @Test("Shutdown: the push is to be tried again, on another connection")
    func shutdown() async throws {
        let stage = try await Stage()
        let (first, second) = try await stage.running { stage -> (Answer, Answer) in
            _ = try await stage.send(stage.push(0))
            stage.simulator.turn { $0.shutdownUntil = .distantFuture }
            let first = try await stage.send(stage.push(1))
            stage.simulator.turn { $0.shutdownUntil = nil }
            return (first, try await stage.send(stage.push(1)))
        }
        #expect(first.outcome == .retry(after: nil) && first.reason == .shutdown)
        #expect(second.outcome == .accepted)
        #expect(stage.provider.pool.snapshot().opened == 2)
        #expect(stage.simulator.counters.doubles == 0)
    }

    @Test("Sockets killed under load: nothing is lost, and doubled is only what was in flight")
    func killed() async throws {
        let stage = try await Stage()
        let sum = try await stage.running { stage in
            try await withThrowingTaskGroup(of: Void.self) { group in
                let flow = stage.simulator.subscribe(token: "")
                group.addTask {
                    // Each time that another 400 were accepted, so that load and kills keep step.
                    var round = 1
                    // Bound: cancelled with the group, once all have been sent.
                    for await delivery in flow where delivery.number >= round * 400 && round <= 10 {
                        stage.simulator.killConnections()
                        round += 1
                    }
                }
                let sum = try await stage.deliver(5000, width: 100)
                group.cancelAll()
                return sum
            }
        }
        #expect(sum.accepted == 5000)
        let counters = stage.simulator.counters
        #expect(counters.doubles <= sum.unknown)
        #expect(counters.accepted - counters.doubles == 5000)
    }

    @Test("Nothing that was sent or answered reaches the journal")
    func silence() async throws {
        let stage = try await Stage()
        _ = try await stage.running { stage -> Bool in
            _ = try await stage.send(stage.push(1, token: "cafe0123"))
            stage.simulator.turn { $0.shutdownUntil = .distantFuture }
            _ = try await stage.send(stage.push(2, token: "cafe0123"))
            stage.simulator.killConnections()
            return true
        }
        #expect(!stage.spy.text.isEmpty)
        #expect(!stage.spy.contains("cafe0123") && !stage.spy.contains("New notification"))
        #expect(!stage.spy.contains("127.0.0.1"))
    }
}
