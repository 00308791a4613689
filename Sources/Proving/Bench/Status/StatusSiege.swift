import PushModel
import Secp256k1Keys
import Simulators
import StatusPush
import Synchronization
import WireFormats

/// Status's part of a siege: a Waku node, whose other users register phones, or send what does not open.
final class StatusSiege: SiegeParty {
    private struct State {
        /// Those who wait for answers, by the content topic of these, which several may share.
        var phones: [String: [Secp256k1KeyPair]] = [:]
        var junk: [String: [Secp256k1KeyPair]] = [:]
        /// By the id that they name.
        var answers: [[UInt8]: PushNotificationRegistrationResponse] = [:]
        var answersToJunk = 0
    }

    private let pair: Secp256k1KeyPair
    private let network = WakuNetworkSimulator()
    private let node: WakuNodeSimulator
    private let url: String
    private let world: World
    private let state = Mutex(State())

    init(_ setting: ChaosSetting) async throws {
        world = setting.world
        pair = .generate(world)
        node = WakuNodeSimulator(on: network, eventLoopGroup: setting.group)
        // As operators are told to have it.
        node.turn { $0.cacheMessages = 5_000 }
        try await node.start()
        url = node.url ?? ""
    }

    func stop() async { await node.stop() }

    var instances: [StagedInstance] {
        let url = url
        return [
            StagedInstance(
                name: "status-siege", publicKey: [],
                keyFile: ("status.key", pair.secret.reveal { Hex.encode(Array($0)) } + "\n"), isServed: false
            ) { plan in
                [
                    "protocol: status", "apps: [load]", "key_file: \(plan.directory)/status.key",
                    "waku: { url: \"\(url)\" }"
                ]
            }
        ]
    }

    var attacks: [SiegeAttack] {
        [
            // Registrations of keys that cost nothing, whose boxes do not open.
            SiegeAttack("junk_boxes") { scene in try await self.junkBoxes(scene) }
        ]
    }

    // MARK: Junk boxes

    /// Others: people who register a phone each. A call counts as answered when the relay has said that it
    /// took the registration. Whoever proved nothing is to hear nothing.
    private func junkBoxes(_ scene: SiegeScene) async throws -> SiegeAttack.Sides {
        let plan = scene.trial.plan
        let count = plan.scaled(SiegePlan.junkBoxes)
        let junk = await makeJunk(count + Int(Double(SiegePlan.junkBoxesPerSecond) * plan.seconds))
        let messages = network.messages()
        return SiegeAttack.Sides(
            attackers: { force in
                for message in junk.prefix(count) { self.node.inject(message) }
                for message in junk.dropFirst(count) where !force.isOver {
                    self.node.inject(message)
                    try await self.world.sleep(
                        self.world.instant() + .milliseconds(1_000 / SiegePlan.junkBoxesPerSecond))
                }
            },
            others: { force in
                try await withThrowingTaskGroup(of: Void.self) { tasks in
                    tasks.addTask { for await message in messages { self.hear(message) } }
                    try await withThrowingTaskGroup(of: Void.self) { phones in
                        for _ in 0..<plan.callers {
                            phones.addTask { try await self.register(scene, force) }
                        }
                        try await phones.waitForAll()
                    }
                    tasks.cancelAll()
                }
                let answered = self.state.withLock(\.answersToJunk)
                force.trial.note { $0.unduly = answered }
            })
    }

    private func makeJunk(_ count: Int) async -> [SimulatedWakuMessage] {
        await withTaskGroup(of: SimulatedWakuMessage.self) { makers in
            for _ in 0..<count {
                makers.addTask {
                    let key = Secp256k1KeyPair.generate(self.world)
                    self.state.withLock { state in
                        state.junk[Self.topic(of: key), default: []].append(key)
                    }
                    let box = Secret(self.world.randomBytes(SiegePlan.junkBytes))
                    return ChaosStatusPhone.message(
                        .registration, box, by: key, to: self.pair.point, self.world)
                }
            }
            var made: [SimulatedWakuMessage] = []
            for await message in makers { made.append(message) }
            return made
        }
    }

    private static func topic(of key: Secp256k1KeyPair) -> String {
        WakuTopic.partitioned(of: key.point).contentTopic
    }

    /// People who register, one after the other, until the attack is over.
    private func register(_ scene: SiegeScene, _ force: SiegeForce) async throws {
        while !force.isOver {
            let target = LoadDevice.make(.apns, world)
            scene.service.register(target, bundle: RelayPlan.bundle)
            var phone = ChaosStatusPhone(target, bundle: RelayPlan.bundle, at: pair.point, world)
            let key = phone.key
            state.withLock { $0.phones[Self.topic(of: key), default: []].append(key) }
            let (message, id) = phone.registration(world)
            let began = world.instant()
            node.inject(message)
            let answer = try await answer(to: id)
            let span = world.instant() - began
            force.trial.note { $0.called(answer.map { $0.success ? 200 : 403 }, in: span) }
            try await world.sleep(world.instant() + SiegePlan.pause)
        }
    }

    /// `nil`: none came in the time that a phone waits.
    private func answer(to id: [UInt8]) async throws -> PushNotificationRegistrationResponse? {
        let until = world.instant() + StatusLimits.answerWait
        while world.instant() < until {
            if let answer = state.withLock({ $0.answers[id] }) { return answer }
            try await world.sleep(world.instant() + .milliseconds(4))
        }
        return nil
    }

    /// A message of the network. Topics are shared: who cannot open it was not meant.
    private func hear(_ message: SimulatedWakuMessage) {
        let (phones, junk) = state.withLock { state in
            (state.phones[message.contentTopic] ?? [], state.junk[message.contentTopic] ?? [])
        }
        for key in phones {
            guard let answer = ChaosStatusPhone.open(message, with: key, from: pair.point) else { continue }
            // What is no answer to a registration is missed by whoever waits for one.
            guard answer.type == .registrationResponse,
                let response = try? PushNotificationRegistrationResponse(reading: answer.payload)
            else { return }
            return state.withLock { state in
                state.answers[response.requestID.reveal { Array($0) }] = response
            }
        }
        for key in junk where ChaosStatusPhone.open(message, with: key, from: pair.point) != nil {
            return state.withLock { $0.answersToJunk += 1 }
        }
    }
}
