import OriginServer
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// An origin and the relay that it hands to, in one process or in two.
struct RunningOrigin: Sendable {
    /// Whose push services deliver.
    let relay: RunningRelay
    /// Whose listener `origin` clients know.
    let origin: RunningRelay

    static let user = "ada@example.org"

    /// A configuration whose relay has an origin beside it.
    static func both(_ more: String = "") -> String {
        RelayStage.text.replacing("listeners:\n", with: "listeners:\n  origin: { bind: \"127.0.0.1:0\" }\n")
            + "origin: { url: \"http://127.0.0.1:8490\", contact: \"ops@acme.example\"\(more) }\n"
    }

    /// A configuration of an origin alone.
    static func alone(_ relay: String, _ more: String = "") -> String {
        """
        listeners:
          origin: { bind: "127.0.0.1:0" }
          admin: { bind: "127.0.0.1:0" }
        log: { level: debug }
        origin:
          { url: "http://127.0.0.1:8490", contact: "ops@acme.example", relay: { url: "\(relay)" }\(more) }

        """
    }

    /// Runs both, with one user.
    ///
    /// - Parameter isOne: in one process.
    static func run(
        inOneProcess isOne: Bool, _ more: String = "",
        _ body: (RunningOrigin, _ key: String) async throws -> Void
    ) async throws {
        try await RelayStage.with(isOne ? both(more) : RelayStage.text) { stage in
            try await stage.run { relay in
                guard !isOne else {
                    let running = RunningOrigin(relay: relay, origin: relay)
                    return try await body(running, try await running.begin())
                }
                let text = alone(try #require(relay.urls["public"]), more)
                try await RelayStage.with(text) { other in
                    try await other.run { origin in
                        let running = RunningOrigin(relay: relay, origin: origin)
                        try await body(running, try await running.begin())
                    }
                }
            }
        }
    }

    var polls: EventPolls { get throws { try house.polls } }

    var house: OriginHouse {
        get throws {
            let instances = origin.relay.hosted.compactMap { $0 as? OriginInstance }
            return try #require(instances.first).house
        }
    }

    /// Signs up, and makes a realm and a user.
    ///
    /// - Returns: the user's key.
    func begin() async throws -> String {
        _ = try await desk(.signUp, [:])
        let realm = try await desk(.addRealm, ["name": "acme"])
        // A relay on a loaded machine may have no time for it at once; the next sign-up tells it again.
        if realm["relay"]?.string != "told" {
            try await asked(for: "a relay that knows the realm") {
                try await desk(.signUp, [:])["realms"]?.string == "told"
            }
        }
        let user = try await desk(.addUser, ["name": Self.user])
        return try #require(user["key"]?.string)
    }

    /// What an operator asks of the running origin.
    func desk(_ path: OriginDesk.Path, _ members: [String: String]) async throws -> JSONValue {
        let answer = try await deskAnswer(path, members)
        #expect(answer.status == 200, "\(path) \(String(decoding: answer.body, as: UTF8.self))")
        return try JSONValue.parse(answer.body)
    }

    func deskJSON(_ path: OriginDesk.Path, _ body: String) async throws -> JSONValue {
        let answer = try await origin.door("admin").ask(
            "POST", path.rawValue, headers: [("Content-Type", Secret("application/json".utf8))],
            body: Secret(body.utf8))
        #expect(answer.status == 200, "\(path) \(String(decoding: answer.body, as: UTF8.self))")
        return try JSONValue.parse(answer.body)
    }

    func deskAnswer(_ path: OriginDesk.Path, _ members: [String: String]) async throws -> LocalCall.Answer {
        var writer = JSONWriter()
        writer.beginObject()
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            writer.key(name)
            writer.string(value)
        }
        writer.endObject()
        return try await origin.door("admin").ask(
            "POST", path.rawValue, headers: [("Content-Type", Secret("application/json".utf8))],
            body: writer.takeSecret())
    }

    /// - Returns: its id.
    func notify(_ text: String, devices: Int64 = 1) async throws -> String {
        let answer = try await desk(.notify, ["user": Self.user, "text": text])
        #expect(answer["devices"]?.int64 == devices)
        return try #require(answer["id"]?.string)
    }

    /// What is known of a notification at each device, once nothing of it waits.
    func became(of id: String) async throws -> [String] {
        var states: [String] = []
        try await asked(for: "an answer about \(id)") {
            let answer = try await origin.admin("\(OriginDesk.Path.notification.rawValue)?id=\(id)")
            let devices = try JSONValue.parse(answer.body)["devices"]?.array ?? []
            states = devices.compactMap { $0["state"]?.string }
            return !states.isEmpty && !states.contains("waiting")
        }
        return states
    }
}

/// An app on a phone: the device library, and a network.
struct OriginPhone {
    private(set) var device = ZulipRoutine(
        account: ZulipAccount(realmURL: "http://127.0.0.1:8490", userID: 1))
    let token: DevicePushToken
    private var running: RunningOrigin
    private let key: String
    private let profile: ZulipProfile
    private let marker: Secret
    private var random = SystemRandomNumberGenerator()
    private var queue = ""
    private var last: Int64 = -1
    private(set) var notices: [ZulipNotice] = []

    init(_ kind: TokenKind, _ profile: ZulipProfile, _ running: RunningOrigin, key: String) {
        token = DevicePushToken(
            kind: kind, token: Secret(TestPhone.token(kind).utf8),
            appID: kind == .apns ? "org.acme.chat" : nil)
        self.profile = profile
        self.running = running
        self.key = key
        marker = ZulipRoutine.newMarker(using: &random)
    }

    func ask(_ method: String, _ path: String, _ body: Secret? = nil) async throws -> LocalCall.Answer {
        try await Self.ask(running, RunningOrigin.user, key, method, path, body)
    }

    static func ask(
        _ running: RunningOrigin, _ user: String, _ key: String, _ method: String, _ path: String,
        _ body: Secret? = nil
    ) async throws -> LocalCall.Answer {
        try await running.origin.door("origin").ask(
            method, path,
            headers: [
                ("Authorization", Secret("Basic \(Base64.text(Array("\(user):\(key)".utf8)))".utf8)),
                ("Content-Type", Secret("application/x-www-form-urlencoded".utf8))
            ], body: body)
    }

    /// The app starts: it looks at what the server can, fetches the state, and registers.
    mutating func start() async throws {
        let settings = try await ask("GET", "/api/v1/server_settings")
        try #require(settings.status == 200)
        let start = ZulipStart(
            serverSettings: try ZulipServerSettings(Secret(settings.body)),
            build: try ZulipAppBuild(bouncerKey: running.relay.bouncerKey, profiles: [profile]), token: token,
            marker: marker)
        try await take(.start(start))
        try await fetch()
    }

    /// The same server, started again.
    mutating func move(to running: RunningOrigin) { self.running = running }

    /// Asks for a test notification.
    mutating func askForTest() async throws {
        let made = device.testNotification()
        let call = try #require(made)
        #expect(try await ask("POST", call.path, call.body).status == 200)
    }

    /// Opens an event queue, and takes the state beside it.
    mutating func fetch() async throws {
        let types = #"["push_account","push_device","device","realm"]"#
        let body = Form([(name: "event_types", value: Array(types.utf8))]).encoded()
        let answer = try await ask("POST", "/api/v1/register", Secret(body))
        try #require(answer.status == 200)
        queue = try #require(try JSONValue.parse(answer.body)["queue_id"]?.string)
        last = -1
        try await take(.state(Secret(answer.body)))
    }

    func poll() async throws -> LocalCall.Answer {
        try await ask("GET", "/api/v1/events?queue_id=\(queue)&last_event_id=\(last)")
    }

    /// Waits for the next events.
    mutating func follow() async throws {
        let answer = try await poll()
        try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
        let events = try JSONValue.parse(answer.body)["events"]?.array ?? []
        last = events.compactMap { $0["id"]?.int64 }.max() ?? last
        try await take(.events(Secret(answer.body)))
    }

    /// Follows events until the device has come so far.
    mutating func follow(until state: ZulipStatus.State) async throws {
        while ZulipRoutine.status(of: device, now: World.live.now()).state != state { try await follow() }
    }

    /// The time comes that the device waits for.
    mutating func tick() async throws {
        guard let deadline = device.nextDeadline else { return }
        try await take(.tick, now: max(deadline, World.live.now()))
    }

    mutating func take(_ event: ZulipDeviceEvent, now: UnixTime? = nil) async throws {
        var events = [event]
        while !events.isEmpty {
            let actions = try device.take(
                events.removeFirst(), now: now ?? World.live.now(), using: &random)
            for action in actions {
                switch action {
                case .call(let call):
                    let answer = try await ask("POST", call.path, call.body)
                    events.append(
                        .answer(
                            call: call.number,
                            ZulipDeviceAnswer(status: answer.status, body: Secret(answer.body))))
                case .notice(let notice): notices.append(notice)
                case .timer, .endNotice, .legacy, .endLegacy: break
                }
            }
        }
    }

    /// What the push service brought to this phone, opened, once there are so many.
    func opened(_ count: Int) async throws -> [ZulipNotification] {
        let simulator: any SteeredSimulator =
            token.kind == .apns ? running.relay.stage.apns : running.relay.stage.fcm
        let own = token.token.reveal { String(decoding: $0, as: UTF8.self) }
        var mine: [Delivery] = []
        try await asked(for: "\(count) deliveries") {
            mine = simulator.deliveries(after: 0, limit: 4_096).filter { $0.token == own }
            return mine.count >= count
        }
        return try mine.map { delivery in
            let body = try JSONValue.parse(delivery.body)
            let fields = token.kind == .apns ? body : try #require(body["message"]?["data"])
            let found = try ZulipRoutine.open(
                delivered: Secret(fields.serialized()), for: [device], now: World.live.now())
            return try #require(found.notification)
        }
    }
}

extension RelayStage {
    /// The push service says from now on that nobody has this token.
    func end(_ token: String, _ kind: TokenKind) {
        switch kind {
        case .apns: apns.unregister(token, since: World.live.now())
        case .fcm:
            guard var device = fcm.device(token) else { return }
            device.isLive = false
            fcm.register(token, as: device)
        }
    }

    /// It knows the token again.
    func revive(_ token: String, _ kind: TokenKind) {
        switch kind {
        case .apns: apns.forget(token)
        case .fcm: fcm.forget(token)
        }
    }
}
