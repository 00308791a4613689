import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// An app with its node, and the network.
struct StatusApp {
    var world = StatusWorld()
    let key: Secp256k1KeyPair
    var servers: [RelayKey]
    var device: StatusDevice
    var token = "a5"
    /// The `follow` calls that were made in this run.
    var follows: [Call] = []
    /// Whether the device is made anew from what it kept before and after each answer.
    var restarts = false
    var nodeFails = false

    /// - Parameter number: of the account; each has a key of its own.
    init(_ number: Int = 0) throws {
        for _ in 0..<number { _ = world.keyPair() }
        key = world.keyPair()
        servers = try world.servers.map { try RelayKey(text: Hex.encode($0.key.point.uncompressed)) }
        device = try StatusDevice(
            StatusSetup(key: key.secret, bundleID: "im", servers: servers), keeping: nil,
            using: &world.random)
    }

    mutating func start(wanted: Bool = true) throws {
        try device.apply(StatusSettings())
        try device.use(token: wanted ? .apns(hex: String(repeating: token, count: 32)) : nil)
    }

    /// Another run of the app.
    mutating func restart(wanted: Bool = true) throws {
        let setup = try StatusSetup(key: key.secret, bundleID: "im", servers: servers)
        device = try StatusDevice(setup, keeping: device.kept, using: &world.random)
        follows = []
        try start(wanted: wanted)
    }

    mutating func answer(_ answer: CallAnswer, _ call: Call) {
        device.answered(answer, to: call, at: world.now, using: &world.random)
    }

    mutating func due() -> [Call] {
        let calls = device.due(at: world.now, using: &world.random)
        follows += calls.filter(\.isStanding)
        return calls
    }

    /// Does what is due, answers of servers included, until nothing is due at this moment.
    mutating func work(wanted: Bool = true) throws {
        for _ in 0..<40 {
            if restarts { try restart(wanted: wanted) }
            let calls = due()
            if calls.isEmpty { return }
            var heard: [WakuMessage] = []
            for call in calls {
                guard !nodeFails else {
                    answer(.none, call)
                    continue
                }
                switch call.way {
                case .follow: break
                case .publish(let message): heard += try world.publish([message])
                default: Issue.record("no call of this protocol")
                }
                answer(.taken, call)
            }
            if restarts {
                try restart(wanted: wanted)
                for call in due() {
                    #expect(call.isStanding, "what was published is not published again")
                    answer(.taken, call)
                }
            }
            guard let follow = follows.last else { continue }
            for message in heard where device.topics.contains(message.contentTopic) {
                answer(.waku(message), follow)
            }
            // A restarted one follows once more in each round, and has nothing else to do.
            if restarts, calls.allSatisfy(\.isStanding) { return }
        }
        Issue.record("the phone does not come to rest")
    }

    mutating func push(_ text: String = "hello", id: UInt8 = 7) throws -> Delivered {
        var alice = world.sender()
        let note = StatusNotification(
            messageID: Secret([UInt8](repeating: id, count: 32)), .direct, content: Secret(text.utf8))
        try world.send(note, to: [key.point], by: &alice)
        let push = try #require(world.pushes.last)
        func hex(_ secret: Secret) -> String { "0x" + secret.hexDigits.word }
        return try Delivered(data: [
            "encryptedMessage": hex(push.message), "chatId": hex(push.chatID),
            "publicKey": hex(push.publicKey)
        ])
    }

    var conditions: [StatusServer.Condition] { device.servers.map(\.condition) }
}
