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

    private struct Phone {
        let name: String
        let target: DeviceTarget
        let shown: String
        let deliveries: AsyncStream<Delivery>
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
        let phones = try phones()
        var members = DemoGroup(server: server, relay: url, world: world)
        for phone in phones { try members.register(phone.target, using: &random) }

        let client = try WebSocketClient(
            executor: LoopExecutor(group.next()), certificates: Array(sandbox.authority.certificatePEM.utf8),
            world: world)
        let publisher = NostrPublisher(client: client, world: world)
        let relay = try NostrRelay(url)
        // The server publishes its list when it has connected, which may be a moment after its start.
        guard let list = await list(publisher, relay) else {
            throw DemoFault(words: "the server's relay list was not to be found")
        }
        var directory = MarmotOrigin.Directory()
        directory.lists[server] = list
        let triggers = try members.trigger(MarmotOrigin(directory), using: &random)
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

    private func phones() throws -> [Phone] {
        let raw = world.randomBytes(32)
        let hex = Hex.encode(raw)
        let address = world.inventGoogleAddress("demo")
        return [
            Phone(
                name: "marmot (APNs)", target: try .apns(bytes: Secret(raw)), shown: hex,
                deliveries: sandbox.production.subscribe(token: hex)),
            Phone(
                name: "marmot (FCM)", target: try .fcm(Secret(address.utf8)),
                shown: address, deliveries: sandbox.fcm.subscribe(address: address))
        ]
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

    private func report(_ phone: Phone, _ wrap: String, _ delivery: Delivery?) -> DemoReport {
        let service = phone.target.platform == .apns ? "APNs" : "FCM"
        guard let delivery else {
            let seconds = patience.wholeMilliseconds / 1000
            return DemoReport(
                phone.name, [], opened: false,
                fault: "nothing reached the push service within \(seconds) s")
        }
        let isEmpty = Self.isEmpty(delivery.body, phone.target.platform)
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
    private static func isEmpty(_ body: [UInt8], _ platform: DeviceTarget.Platform) -> Bool {
        guard let push = try? JSONValue.parse(body) else { return false }
        switch platform {
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
    private struct View: GroupView {
        let groupID: [UInt8]
        let ownLeaf: UInt32
        let identities: [XOnlyKey]
        var activeLeaves: [UInt32] { identities.indices.map(UInt32.init) }

        func member(ofLeaf leaf: UInt32) -> XOnlyKey? {
            identities.indices.contains(Int(leaf)) ? identities[Int(leaf)] : nil
        }
    }

    private static let platforms: [DevicePlatform] = [.desktop, .apple, .android]
    private var devices: [MarmotLeaf]
    private let identities: [XOnlyKey]
    private let groupID: [UInt8]
    private let world: World
    private var messages: UInt64 = 0

    init(
        server: XOnlyKey, relay: String, format: TokenFormat = .pushV1, world: World
    ) {
        let pairs = Self.platforms.map { _ in Secp256k1KeyPair.generate(world) }
        identities = pairs.map(\.publicKey)
        groupID = world.randomBytes(32)
        self.world = world
        devices = zip(Self.platforms, pairs).map { platform, pair in
            MarmotLeaf(
                .init(platform: platform, server: server, format: format, relayHint: relay), identity: pair,
                now: world.now())
        }
    }

    private var now: Moment { Moment(wall: world.now(), instant: world.instant()) }

    private func view(_ leaf: Int) -> View {
        View(groupID: groupID, ownLeaf: UInt32(leaf), identities: identities)
    }

    /// The phone of the token's push service registers it, and the group hears of it.
    mutating func register(
        _ target: DeviceTarget, using random: inout some RandomNumberGenerator
    ) throws(MarmotError) {
        guard let leaf = Self.platforms.firstIndex(where: { $0.pushService == target.platform }) else {
            return
        }
        let due = try devices[leaf].register(target, .joined, in: view(leaf), now: now, using: &random)
        for event in due.events {
            messages += 1
            let message = GroupMessage(
                event, senderLeaf: UInt32(leaf), order: MessageOrder(epoch: 1, index: messages))
            for other in devices.indices where other != leaf {
                _ = devices[other].receive(message, in: view(other), now: now, using: &random)
            }
        }
    }

    /// The desktop has sent a message, and wakes the others.
    func trigger(
        _ origin: MarmotOrigin, using random: inout some RandomNumberGenerator
    ) throws(MarmotError) -> [MarmotOrigin.Trigger] {
        let tokens = MarmotOrigin.choose(
            from: devices[0].tokens, in: view(0), sender: identities[0], now: world.now())
        return try origin.notify(tokens, now: world.now(), using: &random).triggers
    }
}
