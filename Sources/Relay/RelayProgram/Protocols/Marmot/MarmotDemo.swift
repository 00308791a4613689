import EventLoops
import MarmotPublishing
import MarmotPush
import NIOCore
import NostrIngress
import PushModel
import Secp256k1Keys
import Simulators
import WebSocket
import WireFormats

/// One message in a group of three, by Marmot: a desktop that writes, a phone of Apple's and one of Google's
/// that are woken. The Nostr relay, Apple and Google are simulated; MLS is played by a list of members, and
/// everything else is real.
struct MarmotDemo: ProtocolDemo {
    private static let text = "see you at nine"

    let server: XOnlyKey
    let sandbox: Sandbox
    let group: any EventLoopGroup
    let world: World
    let patience: Duration

    init?(on stage: DemoStage) {
        guard let instance = stage.configuration.instances.first(where: { $0.marmot != nil }),
            let key = stage.publicKeys[instance.name.text]?.first.flatMap({ XOnlyKey(hex: $0) })
        else { return nil }
        server = key
        (sandbox, group, world, patience) = (stage.sandbox, stage.group, stage.world, stage.patience)
    }

    func run() async -> [DemoReport] {
        do {
            return try await converse()
        } catch let fault as DemoFault {
            return [DemoReport("marmot", [], opened: false, fault: fault.words)]
        } catch {
            return [DemoReport("marmot", [], opened: false, fault: "the parties did not understand")]
        }
    }

    private func converse() async throws -> [DemoReport] {
        var random = SystemRandomNumberGenerator()
        guard let url = sandbox.peer(MarmotSandboxPeer.self)?.relay.url else {
            throw DemoFault(words: "the Nostr relay does not listen")
        }
        let phones = try [DeviceToken.Service.apns, .fcm].map { service in
            try SandboxPhone("marmot", service, sandbox, world)
        }
        var members = try DemoGroup(server: server, relay: url, world: world)
        for phone in phones { try members.register(phone.token) }

        let client = try WebSocketClient(
            executor: LoopExecutor(group.next()), certificates: Array(sandbox.authority.certificatePEM.utf8),
            world: world)
        let publisher = NostrPublisher(client: client, world: world)
        let relay = try NostrRelay(url)
        // The server publishes its list when it has connected, which may be a moment after its start.
        guard let list = await list(publisher, relay) else {
            throw DemoFault(words: "the server's relay list was not to be found")
        }
        var directory = MarmotOriginRoutine.Directory()
        directory.lists[server] = list
        let triggers = try MarmotOriginRoutine(directory).notify(
            members.tokensToWake, now: world.now(), using: &random
        ).triggers
        guard !triggers.isEmpty else { throw DemoFault(words: "the sender knew nobody to wake") }
        for trigger in triggers {
            let relays = try trigger.relays.map { try NostrRelay($0) }
            let outcomes = await publisher.publish(trigger.wrap, to: relays, within: patience)
            guard outcomes.contains(.accepted) else {
                throw DemoFault(words: "the Nostr relay took no trigger")
            }
        }
        let wrap = String(decoding: triggers[0].wrap.content.reveal { Array($0.prefix(64)) }, as: UTF8.self)
        var reports: [DemoReport] = []
        for phone in phones {
            let delivery = await world.firstDelivery(within: patience, of: phone.deliveries)
            reports.append(report(phone, wrap, delivery))
        }
        return reports
    }

    private func list(_ publisher: NostrPublisher, _ relay: NostrRelay) async -> RelayList? {
        let end = world.instant() + patience
        while world.instant() < end {
            if let list = await publisher.relayList(of: server, from: [relay], within: patience) {
                return list
            }
            // Ends early only when the demo is cancelled.
            do { try await world.sleep(world.instant() + .milliseconds(200)) } catch { return nil }
        }
        return nil
    }

    private func report(_ phone: SandboxPhone, _ wrap: String, _ delivery: Delivery?) -> DemoReport {
        let service = phone.service
        guard let delivery else {
            let seconds = patience.wholeMilliseconds / 1000
            return DemoReport(
                phone.name, [], opened: false,
                fault: "nothing reached the push service within \(seconds) s")
        }
        let isEmpty = Self.isEmpty(delivery.body, phone.token.service)
        return DemoReport(
            phone.name,
            [
                .init("sender", .plaintext, "“\(Self.text)”, told to the group alone"),
                .init("Nostr relay", .ciphertext, wrap),
                .init("relay", .address, "device token \(phone.shown.prefix(8))…"),
                .init(service, .address, "device token \(phone.shown.prefix(8))…"),
                .init(service, .nothing, "no content"),
                .init("device", .nothing, "woken; it asks the group")
            ],
            opened: isEmpty, fault: isEmpty ? nil : "the push carried more than it may",
            success: "woke the device")
    }

    /// Whether a push is what every device of the service gets, and no more.
    private static func isEmpty(_ body: [UInt8], _ service: DeviceToken.Service) -> Bool {
        guard let push = try? JSONValue.parse(body) else { return false }
        switch service {
        case .apns: return push == .object(["aps": .object(["content-available": .number(JSONNumber(1))])])
        case .fcm:
            let message = push["message"]
            return message?["data"] == .object(["content_available": .string("true")])
                && message?["notification"] == nil
        }
    }
}

/// A group as MLS would keep it: a desktop on leaf 0, and phones. What one says, all others hear.
struct DemoGroup {
    private static let platforms: [(platform: DevicePlatform, service: DeviceToken.Service?)] = [
        (.desktop, nil), (.apple, .apns), (.android, .fcm)
    ]
    private var devices: [MarmotDevice] = []
    /// The `hear` of those that have begun.
    private var hears: [Call?] = []
    private let world: World
    private var messages: UInt64 = 0

    init(
        server: XOnlyKey, relay: String, format: TokenFormat = .pushV1, world: World
    ) throws(DeviceError) {
        let pairs = Self.platforms.map { _ in Secp256k1KeyPair.generate(world) }
        let leaves: [UInt32] = [0, 1, 2]
        let members = Dictionary(uniqueKeysWithValues: zip(leaves, pairs.map(\.publicKey.bytes)))
        let groupID = world.randomBytes(32)
        self.world = world
        for (leaf, pair) in zip(leaves, pairs) {
            let setup = try MarmotSetup(
                identity: pair.secret, platform: Self.platforms[devices.count].platform,
                server: RelayKey(text: server.hex), relayHint: relay, format: format)
            var device = try MarmotDevice(setup)
            device.group = MarmotGroup(id: groupID, ownLeaf: leaf, members: members)
            devices.append(device)
            hears.append(nil)
        }
        // It has no token, and wakes others all the same.
        try devices[0].use(token: nil)
        work(0)
    }

    /// The phone of the token's push service tells it, and the group hears of it.
    mutating func register(_ token: DeviceToken) throws(DeviceError) {
        guard let place = Self.platforms.firstIndex(where: { $0.service == token.service }) else { return }
        try devices[place].use(token: token)
        work(place)
    }

    /// What the desktop has to wake the others by.
    var tokensToWake: [GossipToken] { devices[0].tokensToWake(at: world.now()) }

    private mutating func work(_ place: Int) {
        for call in devices[place].due(at: world.now()) {
            switch call.way {
            case .hear: hears[place] = call
            case .say(_, let rumor):
                messages += 1
                for other in devices.indices where other != place {
                    guard let hear = hears[other], let leaf = devices[place].group?.ownLeaf else { continue }
                    devices[other].answered(
                        .group(rumor: rumor, leaf: leaf, epoch: 1, index: messages), to: hear,
                        at: world.now())
                }
            // There are no others.
            case .http, .publish, .follow, .history, .event, .lookUp: break
            }
            devices[place].answered(.taken, to: call, at: world.now())
        }
    }
}
