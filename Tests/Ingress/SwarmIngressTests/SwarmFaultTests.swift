import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Testing

@Suite("A swarm that lies, stalls and floods", .timeLimit(.minutes(30)))
struct SwarmFaultTests {
    @Test("One node that refuses every signature changes nothing for the others")
    func lie() async throws {
        let rig = try await SwarmRig()
        rig.network.turn(0) { $0.answers = .refusal(5) }
        let account = try await rig.account()
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            try await rig.shown(1, at: [0, 1, 2])
            try await rig.register([try SwarmAccount().watch()])
            try await rig.shown(1, at: [0, 1, 2])
            try await asked(for: "both in the rotation") { ingress.statistics.watches == 2 }
            rig.network.store(account.message(1))
            #expect(try await rig.told(3).count == 3)
        }
    }

    @Test("What every node refuses for good leaves the rotation until its row changes")
    func refusedByAll() async throws {
        let rig = try await SwarmRig()
        for node in 0..<3 { rig.network.turn(node) { $0.answers = .refusal(5) } }
        let account = try await rig.account()
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            try await rig.shown(1, at: [0, 1, 2])
            try await asked(for: "an empty rotation") { ingress.statistics.watches == 0 }
            for node in 0..<3 { rig.network.turn(node) { $0.answers = .asItShould } }
            #expect(ingress.statistics.watches == 0, "its row has not changed")
            try await rig.register([account.watch([0, 1])])
            try await rig.shown(1, at: [0, 1, 2])
            try await asked(for: "a full rotation") { ingress.statistics.watches == 1 }
            #expect(ingress.statistics.connected == 3, "no node was left for its refusal")
        }
    }

    @Test(
        "Answers that are none do not stop what comes after them",
        arguments: [
            StorageNodeKnobs.Answers.garbage, .tooFew, .tooMany, .forbidden, .refusal(1), .refusal(6)
        ])
    func nonsense(_ answers: StorageNodeKnobs.Answers) async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        rig.network.turn(0) { $0.answers = answers }
        try await rig.register([try SwarmAccount().watch()])
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            _ = try await rig.seen.next("a greeting") { $0 == .greeted(node: 0) }
            rig.network.turn(0) { $0.answers = .asItShould }
            try await rig.register([try SwarmAccount().watch()])
            try await rig.shown(1, at: [0])
            try await asked(for: "a node that is connected") { ingress.statistics.connected == 1 }
            #expect(ingress.statistics.nodes == 1 && ingress.statistics.watches >= 1)
        }
    }

    @Test(
        "A node that never answers holds up neither the others nor what is registered",
        arguments: [StorageNodeKnobs.Answers.never, .unknownCommand])
    func stall(_ answers: StorageNodeKnobs.Answers) async throws {
        let rig = try await SwarmRig()
        rig.network.turn(0) { $0.answers = answers }
        let limits = changing(SwarmRig.limits) { $0.replyDeadline = .milliseconds(100) }
        try await rig.register([try SwarmAccount().watch()])
        try await rig.run(try rig.ingress(limits)) {
            try await rig.shown(1, at: [1, 2])
            for _ in 0..<5 {
                try await rig.register([try SwarmAccount().watch()])
                try await rig.shown(1, at: [1, 2])
            }
            // It is dialled anew, and shown everything once it answers.
            rig.network.turn(0) { $0.answers = .asItShould }
            try await rig.shown(6, at: [0])
        }
    }

    @Test("A node that does not greet is left, and tried again")
    func silentGreeting() async throws {
        let rig = try await SwarmRig()
        rig.network.turn(0) { $0.greets = false }
        let limits = changing(SwarmRig.limits) { $0.dialDeadline = .seconds(1) }
        try await rig.register([try SwarmAccount().watch()])
        try await rig.run(try rig.ingress(limits)) {
            try await rig.shown(1, at: [1, 2])
            rig.network.turn(0) { $0.greets = true }
            try await rig.shown(1, at: [0])
        }
    }

    @Test("A flood of nonsense from one node leaves the others' messages through")
    func flood() async throws {
        let rig = try await SwarmRig()
        let account = try await rig.account()
        var limits = SwarmRig.limits
        limits.leastShare = 4_096
        limits.queuedBytes = 4_096
        limits.workers = 1
        let ingress = try rig.ingress(limits)
        try await rig.run(ingress) {
            try await rig.shown(1, at: [0, 1, 2])
            try await asked(for: "three nodes") { ingress.statistics.connected == 3 }
            rig.network.turn(0) { $0.notifies = false }
            let nonsense = [Array("notify.message".utf8), [UInt8](repeating: 0x64, count: 500)]
            rig.network.say(0, nonsense, times: 3_000)
            rig.network.store(account.message(1))
            #expect(try await rig.told(2).count == 2)
            try await asked(for: "the whole flood") { ingress.statistics.received >= 3_002 }
            #expect(ingress.statistics.connected == 3, "a flood of pushes alone ends no connection")
        }
    }

    @Test("A message of ten MiB ends its connection, which comes back; nobody else notices")
    func tooLong() async throws {
        let rig = try await SwarmRig()
        let account = try await rig.account()
        try await rig.run(try rig.ingress()) {
            try await rig.shown(1, at: [0, 1, 2])
            rig.network.say(0, [Array("notify.message".utf8), [UInt8](repeating: 0x64, count: 10 << 20)])
            try await rig.shown(1, at: [0])
            rig.network.store(account.message(1))
            #expect(try await rig.told(3).count == 3)
        }
    }

    @Test("Words that no node has to say to us end nothing until there are too many")
    func strays() async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5]))
        try await rig.register([try SwarmAccount().watch()])
        try await rig.run(try rig.ingress(changing(SwarmRig.limits) { $0.strays = 10 })) {
            try await rig.shown(1, at: [0])
            rig.network.say(0, [Array("storage.get".utf8)], times: 5)
            rig.network.say(0, [[UInt8](repeating: 0x41, count: 300)], times: 20)
            // It was left, came back, and is shown everything.
            try await rig.shown(1, at: [0])
        }
    }

    @Test("A message of an account that is not the node's is dropped")
    func foreignAccount() async throws {
        let swarms: [UInt64] = [1 << 62, 3 << 62]
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: swarms))
        let map = SwarmMap(swarms)
        let (near, far) = (
            try SwarmAccount(in: map, swarm: swarms[0]), try SwarmAccount(in: map, swarm: swarms[1])
        )
        try await rig.register([near.watch(), far.watch()])
        try await rig.run(try rig.ingress()) {
            try await rig.shown(1, at: [0, 1])
            let lie = far.message(1).serialized().reveal { Array($0) }
            rig.network.say(0, [Array("notify.message".utf8), lie])
            rig.network.store(near.message(2))
            #expect(try await rig.told(1)[0].hashText == near.message(2).hashText)
        }
    }

    // MARK: The chain daemon

    @Test(
        "A list that is cut short, or is none, leaves the network as it was",
        arguments: [
            (ChainDaemonKnobs.Answers.halfOfThem, "nodes-doubted"), (.brokenOff, "nodes-malformed"),
            (.garbage, "nodes-malformed"), (.failure, "nodes-malformed")
        ])
    func halfList(_ answers: ChainDaemonKnobs.Answers, note: String) async throws {
        let rig = try await SwarmRig(SessionNetworkConfiguration(swarms: [5, 5, 5, 5, 5]))
        try await rig.register([try SwarmAccount().watch()])
        let ingress = try rig.ingress()
        try await rig.run(ingress) {
            try await rig.shown(1, at: [0, 1, 2, 3, 4])
            rig.network.turnDaemon { $0.answers = answers }
            rig.network.block(swarms: [5, 5, 5, 5, 5])
            _ = try await rig.notes.next("a word on the list") { $0 == note }
            #expect(ingress.statistics.nodes == 5)
            rig.network.turnDaemon { $0.answers = .asItShould }
            rig.network.block(swarms: [5, 5, 5, nil, 5])
            try await asked(for: "the new list") { ingress.statistics.nodes == 4 }
        }
    }

    @Test("A daemon that falls silent is dialled anew; storage servers stay connected")
    func silentDaemon() async throws {
        let rig = try await SwarmRig()
        try await rig.register([try SwarmAccount().watch()])
        let ingress = try rig.ingress(changing(SwarmRig.limits) { $0.replyDeadline = .seconds(1) })
        try await rig.run(ingress) {
            try await rig.shown(1, at: [0, 1, 2])
            rig.network.turnDaemon { $0.answers = .never }
            rig.network.block(swarms: [5, 5, 5])
            _ = try await rig.notes.next("a silence") { $0 == "daemon-silent" }
            rig.network.turnDaemon { $0.answers = .asItShould }
            _ = try await rig.notes.next("another connection") { $0 == "daemon-connected" }
            try await asked(for: "the new list") { ingress.statistics.height == 2 }
            #expect(ingress.statistics.nodes == 3)
        }
    }
}
