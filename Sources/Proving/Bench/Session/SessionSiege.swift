import EdwardsKeys
import NIOCore
import Primitives
import PushModel
import SessionPush
import Simulators
import WireFormats

/// Session's part of a siege: a group of a hundred members, one of whom means ill, and a swarm of three
/// storage servers.
final class SessionSiege: SiegeParty {
    private static let nodes = 0..<3
    /// In which the swarm must have been shown the group.
    private static let showSpan = Duration.seconds(30)

    private let network: SessionNetworkSimulator
    private let onion: X25519KeyPair
    private let daemon: String
    private let world: World

    init(_ setting: ChaosSetting) async throws {
        world = setting.world
        onion = .generate(world)
        network = SessionNetworkSimulator(world: world)
        try await network.start()
        daemon = network.daemonEndpoint ?? ""
    }

    func stop() async { await network.stop() }

    var instances: [StagedInstance] {
        let daemon = daemon
        return [
            StagedInstance(
                name: "session-siege", publicKey: onion.publicKey,
                keyFile: ("onion.key", onion.privateKey.reveal { Hex.encode(Array($0)) } + "\n"),
                isServed: true
            ) { plan in
                [
                    "protocol: session", "apps: [load]", "onion_key: \(plan.directory)/onion.key",
                    "oxend: \"\(daemon)\""
                ]
            }
        ]
    }

    var attacks: [SiegeAttack] {
        [
            // A member of a group who registers tokens that nobody has.
            SiegeAttack("made_up_tokens_of_a_member") { scene in try await self.madeUpTokens(scene) }
        ]
    }

    /// A member of the group, who watches it with a key that the group has signed.
    private struct Member: Sendable {
        let subaccount: Subaccount

        init(_ admin: GroupAdmin, _ world: World) throws {
            let own = try SessionMaterial.key(world)
            subaccount = try Subaccount(
                signingValue: try admin.signingValue(for: own.account), of: admin.key.account,
                member: own.pair)
        }

        /// A subscription of the group for a phone.
        func subscription(
            _ phone: LoadDevice, _ world: World
        ) throws -> (device: SessionRoutine, call: SessionCall) {
            var random = SystemRandomNumberGenerator()
            var device = SessionRoutine(using: &random)
            device.use(
                try SessionDeviceToken(phone.kind == .apns ? .apns : .firebase, Secret(phone.token.utf8)))
            try device.watch(WatchedAccount(subaccount))
            guard let call = try device.renewal(due: world.now()).first else {
                throw BenchError(.setUpRefused)
            }
            return (device, call)
        }
    }

    /// Others: the other members. A call counts as answered when their phone is subscribed; a message for the
    /// group must reach each of them.
    private func madeUpTokens(_ scene: SiegeScene) async throws -> SiegeAttack.Sides {
        let world = self.world
        let admin = try GroupAdmin(seed: Secret(world.randomBytes(SessionLimits.keyBytes)))
        let members = try (0..<SiegePlan.members).map { _ in try Member(admin, world) }
        let phones = (1..<members.count).map { LoadDevice.make($0.isMultiple(of: 2) ? .apns : .fcm, world) }
        for phone in phones { scene.service.register(phone, bundle: RelayPlan.bundle) }
        let arrivals = SiegeArrivals(scene.service, of: Set(phones.map(\.token)), world: world)
        return SiegeAttack.Sides(
            attackers: { force in
                try await force.repeatedly(from: SiegeForce.stranger) {
                    let call = try members[0].subscription(.make(.apns, world), world).call
                    return Self.request(call, scene)
                }
            },
            others: { force in
                try await withThrowingTaskGroup(of: Void.self) { callers in
                    for caller in 0..<SiegePlan.servers {
                        callers.addTask {
                            for number in stride(from: caller, to: phones.count, by: SiegePlan.servers) {
                                let (device, call) = try members[number + 1].subscription(
                                    phones[number], world)
                                await Self.subscribe(device, call, from: "127.0.8.\(number + 1)", force)
                            }
                        }
                    }
                    try await callers.waitForAll()
                }
                try await world.sleep(force.end)
                try await self.tell(admin.key.account, of: phones.count, force, arrivals)
            })
    }

    private static func subscribe(
        _ device: SessionRoutine, _ call: SessionCall, from place: String, _ force: SiegeForce
    ) async {
        var (device, random) = (device, SystemRandomNumberGenerator())
        let began = force.trial.world.instant()
        let connection = await force.scene.connect(from: place, to: force.scene.port)
        defer { connection?.close() }
        let reply = await connection?.ask(request(call, force.scene), within: SiegePlan.patience)
        let span = force.trial.world.instant() - began
        let verdict = reply.flatMap { reply in
            device.settle(
                call.id,
                SessionAnswer(status: reply.status, body: Secret(Array(reply.body.readableBytesView))),
                now: force.trial.world.now(), using: &random
            ).first?.verdict
        }
        var isSubscribed = false
        if case .added = verdict { isSubscribed = true }
        force.trial.note { [isSubscribed] in
            $0.called(isSubscribed ? 200 : reply?.status == 200 ? 403 : reply?.status, in: span)
        }
    }

    /// One message for the group, once every storage server watches it.
    private func tell(
        _ group: AccountID, of phones: Int, _ force: SiegeForce, _ arrivals: SiegeArrivals
    ) async throws {
        let account = group.bytes.reveal { Array($0) }
        let until = world.instant() + Self.showSpan
        for node in Self.nodes {
            while await !network.watchedAccounts(at: node).contains(account), world.instant() < until {
                try await world.sleep(world.instant() + .milliseconds(10))
            }
        }
        network.store(NoticeParts.message(group, namespace: 11, bytes: 200, world))
        _ = try await arrivals.wait(within: SiegePlan.arrival) { $0.devices(with: 1) >= phones }
        let missing = phones - arrivals.devices(with: 1)
        force.trial.note { $0.undelivered = missing }
    }

    private static func request(_ call: SessionCall, _ scene: SiegeScene) -> ByteBuffer {
        var buffer = ByteBuffer(
            string: "POST \(call.endpoint.rawValue) HTTP/1.1\r\nHost: 127.0.0.1:\(scene.port)\r\n"
                + "Content-Type: application/json\r\nContent-Length: \(call.body.count)\r\n\r\n")
        call.body.reveal { _ = buffer.writeBytes($0) }
        return buffer
    }
}
