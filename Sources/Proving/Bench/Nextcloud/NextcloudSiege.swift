import NIOCore
import NextcloudPush
import PushModel
import RSAKeys
import WireFormats

/// Nextcloud's part of a siege: an instance that anybody may push at, and one that wants a subscription key.
final class NextcloudSiege: SiegeParty {
    private static let keyed = "nextcloud-keyed"
    private static let key = "a-key-of-the-siege-1"

    private let world: World

    init(_ setting: ChaosSetting) async throws { world = setting.world }

    func stop() async {}

    var instances: [StagedInstance] {
        [
            NextcloudLoad().makeInstance(world),
            StagedInstance(
                name: Self.keyed, publicKey: [], keyFile: ("subscription.keys", Self.key + "\n"),
                isServed: true
            ) { plan in
                [
                    "protocol: nextcloud", "apps: [load]",
                    "subscription_keys: \(plan.directory)/subscription.keys"
                ]
            }
        ]
    }

    var attacks: [SiegeAttack] {
        [
            // Key pairs that cost nothing, all of them for one phone, whose calls stand before others'.
            SiegeAttack("free_keys", prepare: Self.freeKeys),
            // Bodies of the largest kind that are begun, and never ended.
            SiegeAttack("standing_bodies", prepare: Self.standingBodies),
            // One client that tries subscription keys, beside a server at the same address that has one.
            SiegeAttack("wrong_subscription_keys", prepare: Self.wrongKeys)
        ]
    }

    // MARK: Free keys

    /// Others: servers each of whose users gets a call now and then; it counts as made when it has reached
    /// the phone's push service, which has room for ten a second: a turn of all the keys takes half a minute.
    private static func freeKeys(_ scene: SiegeScene) async throws -> SiegeAttack.Sides {
        let keys = try await makeKeys(scene.trial.plan.scaled(SiegePlan.freeKeys))
        var crowd = scene.nextcloud(keys: keys)
        let shared = LoadDevice.make(.fcm, scene.trial.world)
        scene.service.register(shared, bundle: RelayPlan.bundle)
        let registrations = try crowd.add(
            keys.indices.map { number in
                var device = shared
                device.number = UInt32(number)
                return device
            })
        try await scene.register(registrations) { "127.0.10.\($0 + 1)" }
        let servers = try await scene.honestServers(.fcm)
        let tokens = Set(servers.flatMap(\.devices).map(\.token))
        let arrivals = SiegeArrivals(scene.service, of: tokens, world: scene.trial.world) {
            NextcloudLoad().mark(in: $0)
        }
        scene.service.crawl(true)
        return SiegeAttack.Sides(
            attackers: { [crowd] force in
                await withTaskGroup(of: Void.self) { callers in
                    for number in 0..<SiegePlan.freeKeyCallers {
                        callers.addTask {
                            // A call that cannot be signed is none.
                            await force.repeatedly(from: "127.0.6.\(201 + number)") {
                                (try? crowd.notify(crowd.devices, as: .call)).map {
                                    ByteBuffer(($0.head, $0.body))
                                }
                            }
                        }
                    }
                }
            },
            others: { force in
                try await withThrowingTaskGroup(of: Void.self) { callers in
                    for (number, server) in servers.enumerated() {
                        callers.addTask {
                            try await force.ring(server, from: "127.0.6.\(number + 1)", arrivals)
                        }
                    }
                    try await callers.waitForAll()
                }
                force.scene.service.crawl(false)
            })
    }

    /// A pair takes some 50 ms of a core.
    private static func makeKeys(_ count: Int) async throws -> [RSAPrivateKey] {
        try await withThrowingTaskGroup(of: RSAPrivateKey.self) { makers in
            for _ in 0..<count { makers.addTask { try .generate() } }
            var keys: [RSAPrivateKey] = []
            for try await key in makers { keys.append(key) }
            return keys
        }
    }

    // MARK: Standing bodies

    /// Others: servers with calls of hundreds of entries, each a large body.
    private static func standingBodies(_ scene: SiegeScene) async throws -> SiegeAttack.Sides {
        let world = scene.trial.world
        var bytes = ByteBuffer(
            string: "POST /\(NextcloudLoad.instance)/notifications HTTP/1.1\r\nHost: t\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\n"
                + "Content-Length: \(SiegePlan.standingBytes)\r\n\r\n")
        bytes.writeRepeatingByte(UInt8(ascii: "a"), count: SiegePlan.standingBytes - 1)
        let servers = try await scene.honestServers()
        let standing = try await SiegeStanding(scene, bytes)
        try await world.sleep(world.instant() + SiegePlan.standingSpan)
        let arrivals = SiegeArrivals(
            scene.service, of: Set(servers.flatMap(\.devices).map(\.token)), world: world)
        return SiegeAttack.Sides(
            attackers: { force in await standing.stand(force) },
            others: { force in
                try await withThrowingTaskGroup(of: Void.self) { callers in
                    for (number, server) in servers.enumerated() {
                        callers.addTask {
                            try await force.ask(from: "127.0.6.\(number + 1)", SiegePlan.largeCallPause) {
                                let device = server.devices[0]
                                return try server.notify(
                                    Array(repeating: device, count: SiegePlan.largeCall), as: .message)
                            }
                        }
                    }
                    try await callers.waitForAll()
                }
                let answered = force.trial.note { $0.answered }
                try await force.scene.waitForAll(answered * SiegePlan.largeCall, arrivals)
            })
    }

    // MARK: Wrong keys

    /// Others: one server at the attacker's address, which has been accepted once before.
    private static func wrongKeys(_ scene: SiegeScene) async throws -> SiegeAttack.Sides {
        let place = SiegeForce.stranger
        let server = try await scene.honest(SiegePlan.servers, instance: keyed, key: key)
        let first = try server.notify(server.devices, as: .message)
        guard await scene.once(ByteBuffer((first.head, first.body)), from: place, to: scene.port) == 200
        else { throw BenchError(.setUpRefused) }
        let arrivals = SiegeArrivals(
            scene.service, of: Set(server.devices.map(\.token)), world: scene.trial.world)
        let stranger = scene.nextcloud(instance: keyed, key: "a-key-that-is-none-1")
        // Empty batches would do: who has no key is not read.
        let call = try stranger.notify([] as [LoadDevice], as: .message)
        return SiegeAttack.Sides(
            attackers: { force in
                await force.repeatedly(callers: 2) { _ in ByteBuffer((call.head, call.body)) }
            },
            others: { force in
                try await force.ask(from: place, SiegePlan.pause) {
                    try server.notify([server.devices[0]], as: .message)
                }
                try await force.scene.waitForAll(force.trial.note { $0.answered }, arrivals)
            })
    }
}
