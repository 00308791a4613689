import NextcloudPush
import PushModel
import Simulators
import Synchronization
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// A Nextcloud server that is played in memory, with one user, beside a running relay.
final class TestCloud: Sendable {
    private let cloud: Mutex<DemoCloud>
    let url: String
    private let relay: RunningRelay
    /// Every cloud has a user of the same name, and a key of its own: their devices must differ.
    private let nextToken = Mutex(Int64.random(in: 1...1_000_000))

    init(_ relay: RunningRelay, padding: RSAPadding = .oaepSHA1, url: String = "https://cloud.example.org")
        throws
    {
        cloud = Mutex(try DemoCloud(url, padding: padding))
        self.url = url
        self.relay = relay
    }

    /// All that devices and the relay have said to the server.
    var heard: [[UInt8]] { told.withLock(\.self) }
    private let told = Mutex<[[UInt8]]>([])

    /// Registrations that the server has.
    var rows: [RegisteredDevice] { cloud.withLock(\.rows) }

    /// A phone logs in and registers, at the server and at the relay.
    ///
    /// - Parameter path: behind the relay's address: the instance, and perhaps the app.
    func phone(_ kind: PlayedDevice.Kind, at path: String = "/cloud") async throws -> CloudPhone {
        let tokenID = nextToken.withLock { next in
            next += 1
            return next
        }
        let phone = try CloudPhone(
            kind, cloud.withLock { $0.account() }, relay: (relay.urls["public"] ?? "") + path, tokenID)
        guard case .done = try await register(phone) else {
            throw TestCloudFault.notRegistered
        }
        return phone
    }

    /// Registers a phone again, as at a start of the app after something seemed wrong.
    func register(_ phone: CloudPhone) async throws -> NextcloudRoutine.Step {
        var random = SystemRandomNumberGenerator()
        var device = phone.device
        var step = try device.register(
            try NextcloudPushToken(phone.token), at: DemoCloud.capabilities(), .repair, now: World.live.now())
        for _ in 0..<3 {
            guard case .call(let call) = step else { break }
            step = device.settle(try await answer(call, phone.tokenID), now: World.live.now(), using: &random)
        }
        phone.device = device
        return step
    }

    /// The account leaves the phone.
    func unregister(_ phone: CloudPhone) async throws -> [Int] {
        var random = SystemRandomNumberGenerator()
        let device = phone.device
        var work = Unregistration(account: device.account, app: device.app)
        var (statuses, isOver) = ([Int](), false)
        for _ in 0..<2 {
            let call = try #require(work.call(device.registration))
            let answer = try await answer(call, phone.tokenID)
            statuses.append(answer.status ?? 0)
            isOver = work.settle(answer, now: World.live.now(), using: &random)
        }
        #expect(isOver)
        return statuses
    }

    private func answer(_ call: HTTPCall, _ tokenID: Int64) async throws -> CallAnswer {
        if call.url.hasPrefix(url) {
            told.withLock { $0.append(call.body.reveal { Array($0) }) }
            return try cloud.withLock { try $0.answer(call, tokenID: tokenID, now: World.live.now()) }
        }
        return try await send(call)
    }

    private func send(_ call: HTTPCall) async throws -> CallAnswer {
        await KitWire(DirectWeb(), patience: .seconds(600)).answer(call)
    }

    /// Tells the user's devices something.
    func notify(_ notification: NextcloudNotification) async throws -> ProxyVerdict {
        let entries = try cloud.withLock { try $0.notify(notification, now: World.live.now()) }
        return try await hand(entries)
    }

    func withdraw(_ ids: [Int64], of app: String = "spreed") async throws -> ProxyVerdict {
        let entries = try cloud.withLock { try $0.withdraw(ids, of: app, now: World.live.now()) }
        return try await hand(entries)
    }

    private func hand(_ entries: [SealedEntry]) async throws -> ProxyVerdict {
        let answer = try await send(cloud.withLock { $0.call(entries) })
        told.withLock { $0.append(answer.body.reveal { Array($0) }) }
        return cloud.withLock { $0.read(answer, to: entries) }
    }

    static func message(_ id: Int64, _ subject: String, type: String = "chat") -> NextcloudNotification {
        NextcloudNotification(
            id: id, app: "spreed", subject: subject, objectType: type, objectID: "t0k3n")
    }
}

enum TestCloudFault: Error { case notRegistered }

/// An app on a phone, with an account.
final class CloudPhone: Sendable {
    private let state: Mutex<NextcloudRoutine>
    let token: Secret
    let tokenID: Int64
    /// Tokens as push services know them: of alerts, and of calls.
    let addresses: [String]

    init(
        _ kind: PlayedDevice.Kind, _ account: NextcloudAccount, relay: String, _ tokenID: Int64
    ) throws {
        token = kind.inventToken(.live)
        self.tokenID = tokenID
        addresses = token.reveal { String(decoding: $0, as: UTF8.self) }.split(separator: " ").map {
            String($0)
        }
        let build = NextcloudAppBuild(
            proxyServer: relay.replacing("127.0.0.1", with: "localhost"), userAgent: kind.userAgent,
            voip: kind.takesCalls ? .strict : .none)
        state = Mutex(NextcloudRoutine(account: account, app: build, key: try .generate()))
    }

    var device: NextcloudRoutine {
        get { state.withLock(\.self) }
        set { state.withLock { $0 = newValue } }
    }

    /// What a delivery says to this phone.
    func open(_ delivery: Delivery) throws -> NextcloudContent? {
        try device.open(try #require(SealedSubject(try Delivered(json: Secret(delivery.body)))))
    }

    func subject(_ delivery: Delivery) throws -> String? {
        guard case .alert(let alert)? = try open(delivery) else { return nil }
        return alert.subject
    }
}
