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

    /// A call of a user's.
    func ask(
        _ user: String, _ key: String, _ method: String, _ path: String, _ body: Secret? = nil
    ) async throws -> LocalCall.Answer {
        try await origin.door("origin").ask(
            method, path,
            headers: [
                ("Authorization", Secret("Basic \(Base64.text(Array("\(user):\(key)".utf8)))".utf8)),
                ("Content-Type", Secret("application/x-www-form-urlencoded".utf8))
            ], body: body)
    }

    /// - Returns: the id of an event queue of the user's.
    func openQueue(_ key: String) async throws -> String {
        let opened = try await ask(Self.user, key, "POST", "/api/v1/register", Secret([]))
        return try #require(try JSONValue.parse(opened.body)["queue_id"]?.string)
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

/// The command line's played phone, of one user of a running origin.
struct OriginPhone: Sendable {
    private(set) var played: ZulipPhone
    /// As the push service knows it.
    let token: String
    private let kind: TokenKind
    private var running: RunningOrigin
    private let folder: TemporaryFolder
    private let shell: Shell

    /// Joins: its registration is active then.
    init(
        _ kind: TokenKind, _ profile: ZulipProfile, _ running: RunningOrigin, key: String
    ) async throws {
        (self.kind, self.running) = (kind, running)
        (token, folder) = (DemoApp.token(kind), try TemporaryFolder())
        var shell = Shell(facts: facts(home: nil), world: .live, out: { _ in }, err: { _ in })
        shell.waitPatiently()
        self.shell = shell
        var party = PlayedZulip(
            kind, token: Secret(token.utf8), appID: "org.acme.chat", bouncerKey: running.relay.bouncerKey,
            HeldFile(folder.file("phone.json")))
        let url = "http://127.0.0.1:8490"
        party.accounts = [
            PlayedZulip.Account(
                url: url, user: RunningOrigin.user, apiKey: Secret(key.utf8), profile: profile, realmURL: url,
                userID: 1)
        ]
        played = try ZulipPhone(party, try Self.wire(running, shell), shell)
        try await played.start(0)
        try await follow(until: .active)
    }

    /// To the origin's listener, whatever the account's URL says.
    private static func wire(_ running: RunningOrigin, _ shell: Shell) throws -> KitWire {
        let url = try #require(running.origin.urls["origin"])
        return KitWire(DirectWeb(base: ServerURL(url)), patience: shell.wait)
    }

    /// The app starts at the same server, which was started again, with what it has kept.
    mutating func move(to running: RunningOrigin) async throws {
        self.running = running
        played = try ZulipPhone(await played.played, try Self.wire(running, shell), shell)
        try await played.start(0)
    }

    /// Waits for the next events, and does what follows from them.
    func follow() async throws {
        try #require(try await played.poll(0) == .events)
        try await played.work(0)
    }

    /// Follows events until the server shows that.
    func follow(until state: DeviceStatus.State) async throws {
        while try await played.status(0).state != state { try await follow() }
    }

    /// What the push service brought to this phone, opened, once there are so many.
    func opened(_ count: Int) async throws -> [ZulipNotification] {
        let stage = running.relay.stage
        let simulator: any SteeredSimulator = kind == .apns ? stage.apns : stage.fcm
        var mine: [Delivery] = []
        try await asked(for: "\(count) deliveries") {
            mine = simulator.deliveries(after: 0, limit: 4_096).filter { $0.token == token }
            return mine.count >= count
        }
        var opened: [ZulipNotification] = []
        for delivery in mine { opened.append(try await played.notification(delivery)) }
        return opened
    }
}

extension ZulipPhone {
    fileprivate func notification(_ delivery: Delivery) throws -> ZulipNotification {
        let delivered = try Delivered(json: Secret(delivery.body))
        return try #require(try phone(0).device.open(delivered, at: shell.world.now()).content)
    }

    /// Asks the server for a test notification.
    func askForTest() async throws {
        let made = try phone(0).device.testNotification()
        #expect(await wire.reply(to: try #require(made)).status == 200)
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
