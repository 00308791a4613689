import PushModel
import Secp256k1Keys
import Simulators
import StatusPush
import Synchronization

/// Status's part of a siege: a Waku node, whose other users register phones, or send what does not open.
final class StatusSiege: SiegeParty {
    /// Whose answer it is.
    private enum Waiting: Sendable { case phone, junk }

    private struct State {
        /// By the id that they name.
        var answers: [[UInt8]: PushNotificationRegistrationResponse] = [:]
        var answersToJunk = 0
    }

    private let staged: StagedNode<Waiting>
    private let world: World
    private let state = Mutex(State())

    init(_ setting: ChaosSetting) async throws {
        world = setting.world
        staged = try await StagedNode(setting)
    }

    func stop() async { await staged.node.stop() }

    var instances: [StagedInstance] { [staged.instance("status-siege")] }

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
        let messages = staged.network.messages()
        return SiegeAttack.Sides(
            attackers: { force in
                for message in junk.prefix(count) { self.staged.node.inject(message) }
                for message in junk.dropFirst(count) where !force.isOver {
                    self.staged.node.inject(message)
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
                    self.staged.wait(key, .junk)
                    let box = Secret(self.world.randomBytes(SiegePlan.junkBytes))
                    return self.staged.message(.registration, box, by: key, self.world)
                }
            }
            var made: [SimulatedWakuMessage] = []
            for await message in makers { made.append(message) }
            return made
        }
    }

    /// People who register, one after the other, until the attack is over.
    private func register(_ scene: SiegeScene, _ force: SiegeForce) async throws {
        while !force.isOver {
            let target = LoadDevice.make(.apns, world)
            scene.service.register(target, bundle: RelayPlan.bundle)
            var phone = ChaosStatusPhone(
                target, bundle: RelayPlan.bundle, at: staged.pair.point, world)
            staged.wait(phone.key, .phone)
            let (box, id) = phone.registration(world)
            let message = staged.message(.registration, box, by: phone.key, world)
            let began = world.instant()
            staged.node.inject(message)
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

    private func hear(_ message: SimulatedWakuMessage) {
        switch staged.heard(message) {
        case (let answer, .phone)?:
            // What is no answer to a registration is missed by whoever waits for one.
            guard answer.type == .registrationResponse,
                let response = try? PushNotificationRegistrationResponse(reading: answer.payload)
            else { return }
            state.withLock { $0.answers[response.requestID.reveal { Array($0) }] = response }
        case (_, .junk)?: state.withLock { $0.answersToJunk += 1 }
        case nil: break
        }
    }
}
