import PushModel
import SessionPush
import Simulators

/// Session's part of a siege: a group of a hundred members, one of whom means ill, and a swarm of three
/// storage servers.
final class SessionSiege: SiegeParty {
    private let swarm: StagedSwarm
    private let world: World

    init(_ setting: ChaosSetting) async throws {
        world = setting.world
        swarm = try await StagedSwarm(world)
    }

    func stop() async { await swarm.network.stop() }

    var instances: [StagedInstance] { [swarm.instance("session-siege")] }

    var attacks: [SiegeAttack] {
        [
            // A member of a group who registers tokens that nobody has.
            SiegeAttack("made_up_tokens_of_a_member") { scene in try await self.madeUpTokens(scene) }
        ]
    }

    /// A member of the group, who watches it with a key that the group has signed.
    private static func member(of admin: GroupAdmin, _ world: World) throws -> WatchedAccount {
        let own = try SessionMaterial.key(world)
        return try WatchedAccount(
            Subaccount(
                signingValue: try admin.signingValue(for: own.account), of: admin.key.account,
                member: own.pair))
    }

    /// Others: the other members. A call counts as answered when their phone is subscribed; a message for the
    /// group must reach each of them.
    private func madeUpTokens(_ scene: SiegeScene) async throws -> SiegeAttack.Sides {
        let world = self.world
        let admin = try GroupAdmin(seed: Secret(world.randomBytes(SessionLimits.keyBytes)))
        let members = try (0..<SiegePlan.members).map { _ in try Self.member(of: admin, world) }
        let phones = (1..<members.count).map { LoadDevice.make($0.isMultiple(of: 2) ? .apns : .fcm, world) }
        for phone in phones { scene.service.register(phone, bundle: RelayPlan.bundle) }
        let arrivals = SiegeArrivals(scene.service, of: Set(phones.map(\.token)), world: world)
        return SiegeAttack.Sides(
            attackers: { force in
                try await force.repeatedly(from: SiegeForce.stranger) {
                    try SubscribingPhone(.make(.apns, world), watching: members[0], world)
                        .request(host: Self.host(scene))
                }
            },
            others: { force in
                try await withThrowingTaskGroup(of: Void.self) { callers in
                    for caller in 0..<SiegePlan.servers {
                        callers.addTask {
                            for number in stride(from: caller, to: phones.count, by: SiegePlan.servers) {
                                let phone = try SubscribingPhone(
                                    phones[number], watching: members[number + 1], world)
                                await Self.subscribe(phone, from: "127.0.8.\(number + 1)", force)
                            }
                        }
                    }
                    try await callers.waitForAll()
                }
                try await world.sleep(force.end)
                try await self.tell(admin.key.account, of: phones.count, force, arrivals)
            })
    }

    private static func host(_ scene: SiegeScene) -> String { "127.0.0.1:\(scene.port)" }

    private static func subscribe(
        _ phone: SubscribingPhone, from place: String, _ force: SiegeForce
    ) async {
        let world = force.trial.world
        let began = world.instant()
        let connection = await force.scene.connect(from: place, to: force.scene.port)
        defer { connection?.close() }
        let reply = await connection?.ask(
            phone.request(host: host(force.scene)), within: SiegePlan.patience)
        let span = world.instant() - began
        let verdict = reply.flatMap { phone.verdict(of: $0, world) }
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
        let until = world.instant() + StagedSwarm.showSpan
        while await !swarm.shown().contains(account), world.instant() < until {
            try await world.sleep(world.instant() + .milliseconds(10))
        }
        swarm.network.store(NoticeParts.message(group, namespace: 11, bytes: 200, world))
        _ = try await arrivals.wait(within: SiegePlan.arrival) { $0.devices(with: 1) >= phones }
        let missing = phones - arrivals.devices(with: 1)
        force.trial.note { $0.undelivered = missing }
    }
}
