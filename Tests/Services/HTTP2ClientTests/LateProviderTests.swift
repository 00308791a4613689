import APNs
import FCM
import HTTP2Client
import NIOCore
import NIOPosix
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient

/// The two push services, and what each is owed.
enum PatientService: CaseIterable, Sendable {
    case apns, fcm

    /// How long its requests are waited for.
    fileprivate var deadline: Duration { self == .apns ? .seconds(20) : .seconds(30) }
    fileprivate var lane: LaneName { LaneName("acme-chat/\(self)/production")! }

    fileprivate var message: ProviderMessage {
        switch self {
        case .apns:
            .apns(
                APNsMessage(
                    token: Secret("00aa".utf8), bundle: "org.acme.chat", pushType: .alert, priority: 10,
                    payload: Secret("{}".utf8)))
        case .fcm:
            .fcm(
                FCMMessage(
                    address: Secret(("dXy:APA91bF" + String(repeating: "x", count: 130)).utf8),
                    priority: .high, data: Secret("{}".utf8)))
        }
    }

    fileprivate func provider(port: Int, world: World) throws -> any DirectProvider {
        var options = HTTP2Options.patient
        // Its own.
        options.requestDeadline = nil
        let (url, pem) = ("https://127.0.0.1:\(port)", try TestCertificate.shared.get().pem)
        let group = MultiThreadedEventLoopGroup.singleton
        switch self {
        case .apns:
            let key = APNsKey()
            let credential = try APNsCredential(
                team: key.team, keyID: key.keyID, key: Secret(key.privateKeyPEM.utf8), world: world)
            return try APNsProvider(
                lane: lane, credential: credential, url: url, certificates: pem, options: options,
                group: group, world: world, journal: .silent)
        case .fcm:
            let account = try Simulators.ServiceAccount().json(tokenURI: "https://oauth.test/token")
            let web = ScriptedWeb([
                .success(
                    WebAnswer(
                        status: 200, retryAfter: nil,
                        body: Secret(#"{"access_token":"ya29.a","expires_in":3599}"#.utf8)))
            ])
            let credential = FCMCredential(
                account: try FCMServiceAccount(file: Secret(account.utf8)), fetch: web, world: world,
                journal: .silent)
            return try FCMProvider(
                lane: lane, credential: credential, addressKind: .auto, url: url, certificates: pem,
                options: options, group: group, world: world, journal: .silent)
        }
    }
}

/// A push service that answers when a test says so, and a provider whose time is the test's.
private struct Stage {
    typealias Held = (connection: RawConnection, stream: Int32)

    let service: PatientService
    let clock = ManualClock()
    let peer: RawPeer
    let provider: any DirectProvider
    private let waiting: Noted<[Held]>

    init(_ service: PatientService, answers: Bool) async throws {
        let waiting = Noted<[Held]>([])
        var script = RawPeer.Script()
        script.requested = { connection, stream, _, _ in
            if answers { return connection.answer(stream) }
            waiting.change { $0.append((connection, stream)) }
        }
        self.service = service
        self.waiting = waiting
        peer = try await RawPeer(script)
        provider = try service.provider(port: peer.port, world: clock.world(seed: 1))
    }

    /// Both have ended when this returns.
    func running(_ body: @Sendable @escaping (Stage) async throws -> Void) async throws {
        try await runs({ try await provider.run() }, during: { try await body(self) })
        try await peer.close()
    }

    /// The request that came and is not answered.
    func held() async throws -> Held {
        await waiting.until(for: "a request at the peer") { !$0.isEmpty }
        return try #require(waiting.value.first)
    }

    func send(_ pushClass: PushClass) async throws -> Answer { try await send(pushClass, provider) }

    private func send(_ pushClass: PushClass, _ provider: some Provider) async throws -> Answer {
        let owed = OwedPush(
            id: PushID(at: clock.now, random: 0, 0), row: 1, lane: service.lane, pushClass: pushClass,
            origin: Digest16(high: 0, low: 0), record: nil, touchedAt: .distantPast,
            notBefore: .distantPast, custodyEnds: .distantFuture, attempt: 0, epoch: 0, mark: nil,
            instance: ConfiguredName("zulip-main")!, message: service.message)
        let lease = LeasedPush(granting: owed, sendBefore: clock.instant + .seconds(10))
        return await provider.send(lease, on: try await provider.reserve())
    }

    var deadlineSeconds: Int? {
        provider.figures().first { "\($0.name)" == "sealbell_push_deadline_seconds" }?.value
    }
}

@Suite("A provider whose service answers late", .timeLimit(.minutes(30)))
struct LateProviderTests {
    @Test(
        "It waits as long as its service may take, and then its late word counts",
        arguments: PatientService.allCases)
    func late(_ service: PatientService) async throws {
        let stage = try await Stage(service, answers: false)
        try await stage.running { stage in
            #expect(stage.deadlineSeconds == Int(service.deadline.components.seconds))
            async let answer = stage.send(.normal)
            let held = try await stage.held()
            stage.clock.advance(by: service.deadline)
            let lost = try await answer
            #expect(lost.reason == .deadlineExceeded && lost.fate == .unknown)
            let late = try #require(lost.late)
            held.connection.later(.zero) { $0.answer(held.stream) }
            let word = try #require(await late.answer())
            #expect(word.outcome == .accepted && word.fate == .answered && word.sentAt == lost.sentAt)
        }
    }

    @Test(
        "A call behind a silence goes behind a PONG, and nothing else does",
        arguments: PatientService.allCases)
    func call(_ service: PatientService) async throws {
        let stage = try await Stage(service, answers: true)
        try await stage.running { stage in
            for (pushClass, pings) in [(PushClass.normal, 0), (.normal, 0), (.urgent, 1), (.normal, 1)] {
                let answer = try await stage.send(pushClass)
                #expect(answer.outcome == .accepted)
                #expect(stage.peer.seen.pings == pings)
                stage.clock.advance(by: .seconds(15))
            }
        }
    }

    @Test("A stop gives requests as long as it is told", arguments: PatientService.allCases)
    func windDown(_ service: PatientService) async throws {
        let stage = try await Stage(service, answers: false)
        try await stage.running { stage in
            async let answer = stage.send(.normal)
            _ = try await stage.held()
            stage.provider.windDown(within: .seconds(5))
            stage.clock.advance(by: .seconds(5))
            let given = try await answer
            #expect(given.reason == .deadlineExceeded)
        }
    }
}
