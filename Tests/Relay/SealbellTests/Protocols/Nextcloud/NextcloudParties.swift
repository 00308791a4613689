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
        let phone = try CloudPhone(kind, url, relay: (relay.urls["public"] ?? "") + path, tokenID)
        guard try await register(phone) == .active else { throw TestCloudFault.notRegistered }
        return phone
    }

    /// Registers a phone again, as at a start of the app after something seemed wrong.
    func register(_ phone: CloudPhone) async throws -> DeviceStatus.State {
        var device = phone.device
        try phone.played.tell(&device)
        device.registerAgain()
        phone.device = device
        _ = try await work(phone)
        return phone.device.status(at: World.live.now()).state
    }

    /// The account leaves the phone.
    func unregister(_ phone: CloudPhone) async throws -> [Int] {
        var device = phone.device
        try device.use(token: nil)
        phone.device = device
        let statuses = try await work(phone)
        #expect(phone.device.isGone)
        return statuses
    }

    /// Does what is due at a phone, at the server or at the relay.
    ///
    /// - Returns: statuses of the answers.
    private func work(_ phone: CloudPhone) async throws -> [Int] {
        var (device, statuses) = (phone.device, [Int]())
        // Bound: what the server can do, its registration, the relay, and the relay once more with a proof.
        for _ in 0..<4 {
            for call in device.due(at: World.live.now()) {
                let answer = try await answer(call, phone.tokenID)
                statuses.append(answer.status ?? 0)
                device.answered(answer, to: call, at: World.live.now())
            }
        }
        phone.device = device
        return statuses
    }

    private func answer(_ call: Call, _ tokenID: Int64) async throws -> CallAnswer {
        let http = try #require(call.http)
        let own = try cloud.withLock { try $0.answer(call, tokenID: tokenID, now: World.live.now()) }
        guard let own else { return try await send(http) }
        told.withLock { $0.append(http.body.reveal { Array($0) }) }
        return own
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

/// An app on a phone, with an account: the one that the command line plays, which keeps nothing here.
final class CloudPhone: Sendable {
    let played: PlayedDevice
    private let state: Mutex<NextcloudDevice>
    let tokenID: Int64
    /// Tokens as push services know them: of alerts, and of calls.
    let addresses: [String]

    init(_ kind: PlayedDevice.Kind, _ server: String, relay: String, _ tokenID: Int64) throws {
        played = PlayedDevice(
            kind, server: server, user: "ada", login: "ada@example.org",
            appPassword: Secret("app-password".utf8), relay: relay.replacing("127.0.0.1", with: "localhost"),
            token: kind.inventToken(.live), HeldFile(""))
        self.tokenID = tokenID
        addresses = played.token.word.split(separator: " ").map(String.init)
        state = Mutex(try played.device())
    }

    var device: NextcloudDevice {
        get { state.withLock(\.self) }
        set { state.withLock { $0 = newValue } }
    }

    /// What a delivery says to this phone.
    func open(_ delivery: Delivery) throws -> NextcloudContent? {
        try device.open(Delivered(json: Secret(delivery.body)), at: World.live.now()).content
    }

    func subject(_ delivery: Delivery) throws -> String? {
        guard case .alert(let alert)? = try open(delivery) else { return nil }
        return alert.subject
    }
}
