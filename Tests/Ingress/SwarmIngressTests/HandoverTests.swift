import Delivery
import DeliveryTesting
import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Testing

@Suite("A relay that is told to stop, over real sockets", .timeLimit(.minutes(30)))
struct HandoverTests {
    /// Processes on one store, whose clock is moved by hand. Of those that have only just come the first has
    /// every node.
    private struct Processes {
        let clock = ManualClock()
        let group: GroupName
        let members: [Membership]

        init(_ count: Int, of instance: ConfiguredName) async throws {
            group = GroupName(listeningFor: instance)
            let memory = try await SealedMemory(clock.world(seed: 1))
            var members: [Membership] = []
            for number in 1...UInt64(count) {
                let world = clock.world(seed: number)
                let store = try await memory.open(world, as: number).store
                members.append(
                    Membership(store: store, limits: DeliveryLimits(), world: world, journal: .silent))
            }
            self.members = members
        }

        /// Renews until the process is known to be a member.
        func enter(_ number: Int) async throws {
            clock.advance(by: .seconds(1))
            try await asked(for: "member \(number)") {
                await members[number].renew()
                return members[number].roster(of: group) != nil
            }
        }

        /// Time passes until each has its share, within what a process may sleep unnoticed.
        func settle() async {
            for _ in 0..<3 {
                clock.advance(by: Roster.settling / 2)
                for member in members { await member.renew() }
            }
        }

        func left(_ number: Int) async throws {
            try await asked(for: "the leave of member \(number)") {
                members[number].roster(of: group) == nil
            }
        }
    }

    /// Longer than any test.
    private static let ever = Duration.seconds(360_000)

    private static func limits(_ handover: Duration) -> SwarmLimits {
        let limits = changing(SwarmRig.limits) { $0.handover = handover }
        return limits
    }

    @Test("It hears its nodes until the other one has shown them everything, and some time beyond")
    func overlap() async throws {
        let rig = try await SwarmRig()
        let account = try await rig.account()
        let processes = try await Processes(2, of: rig.name)
        let (old, toldOld) = AsyncStream<StorageNotice>.makeStream()
        let (new, toldNew) = AsyncStream<StorageNotice>.makeStream()
        let leaving = try rig.ingress(Self.limits(Self.ever), membership: processes.members[0]) {
            toldOld.took($0)
        }
        let staying = try rig.ingress(membership: processes.members[1], bell: Bell()) { toldNew.took($0) }
        func heard(_ number: Int, by pushes: AsyncStream<StorageNotice>) async throws {
            for node in 1...3 {
                let push = try await pushes.next("message \(number) from \(node) nodes")
                #expect(push.hashText == account.message(number).hashText)
            }
        }
        try await rig.run(leaving, staying) {
            try await processes.enter(0)
            try await rig.shown(1, at: [0, 1, 2])
            try await processes.enter(1)
            leaving.end()
            try await processes.left(0)
            rig.network.store(account.message(1))
            try await heard(1, by: old)
            #expect(staying.statistics.ours == 0)
            // As both do by themselves: one tells the store that it has left, and the other reads it.
            for member in processes.members { await member.renew() }
            try await rig.shown(1, at: [0, 1, 2])
            rig.network.store(account.message(2))
            try await heard(2, by: new)
            try await heard(2, by: old)
        }
    }

    @Test("One that dies leaves the other a node of each swarm, and nothing is lost before its lease ends")
    func death() async throws {
        // Left to chance, both nodes of some swarm would be the dying one's but once in 256.
        let ids = (0..<8).map { UInt64($0) << 61 }
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: ids + ids))
        let accounts = try ids.map { try SwarmAccount(in: SwarmMap(ids), swarm: $0) }
        try await rig.register(accounts.map { $0.watch() })
        let processes = try await Processes(2, of: rig.name)
        let (heard, told) = AsyncStream<StorageNotice>.makeStream()
        let dying = try rig.ingress(membership: processes.members[0]) { _ in .taken }
        let staying = try rig.ingress(membership: processes.members[1], bell: Bell()) { told.took($0) }
        try await rig.run(dying, staying) {
            try await processes.enter(0)
            try await rig.shown(1, at: Array(0..<16))
            try await processes.enter(1)
            await processes.settle()
            var nodes: Set<Int> = []
            while nodes.count < 8 {
                let note = try await rig.seen.next("watches at 8 nodes", where: { $0.isWatched })
                if case .watched(let node, _, _) = note { nodes.insert(node) }
            }
            #expect(Set(nodes.map { $0 % 8 }).count == 8, "one node of each swarm")
            // Nobody hears of it: its row stays until its lease ends, and the clock stands.
            dying.stop()
            for (number, account) in accounts.enumerated() { rig.network.store(account.message(number)) }
            var hashes: Set<String> = []
            for _ in accounts {
                hashes.insert(try await heard.next("a message told to the one that stays").hashText)
            }
            #expect(hashes == Set(accounts.enumerated().map { $1.message($0).hashText }))
            #expect(staying.statistics.ours == 8)
        }
    }

    @Test("Its time to hand over has an end, whatever the other one does")
    func bounded() async throws {
        let rig = try await SwarmRig()
        let processes = try await Processes(2, of: rig.name)
        processes.members[1].enter(processes.group)
        try await processes.enter(1)
        try await ends(try rig.ingress(Self.limits(.milliseconds(10)), membership: processes.members[0]), rig)
        {
            try await processes.enter(0)
        }
    }

    @Test("Alone it stops at once, on a store that others might share and on one of its own")
    func alone() async throws {
        let rig = try await SwarmRig()
        let processes = try await Processes(1, of: rig.name)
        let shared = try rig.ingress(Self.limits(Self.ever), membership: processes.members[0])
        try await ends(shared, rig) { try await processes.enter(0) }
        let second = try await SwarmRig()
        let own = try second.ingress(Self.limits(Self.ever))
        try await ends(own, second) { try await asked(for: "its nodes") { own.statistics.connected == 3 } }
    }

    /// Told to end once `begun` has returned, it ends by itself.
    private func ends(_ ingress: SwarmIngress, _ rig: SwarmRig, _ begun: () async throws -> Void) async throws
    {
        let ended = AwaitedCount()
        try await rig.run {
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    try await ingress.run()
                    ended.add()
                }
                try await begun()
                #expect(ended.count == 0, "nobody has told it to end")
                ingress.end()
                await ended.wait(for: 1, "the end of a relay")
                #expect(ended.count == 1)
                ingress.stop()
            }
        }
    }
}
