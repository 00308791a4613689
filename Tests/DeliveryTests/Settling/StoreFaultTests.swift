import AtRest
@testable import Delivery
import PushModel
import PushTesting
import Synchronization
import Testing

@Suite("When the store fails", .timeLimit(.minutes(30)))
struct StoreFaultTests {
    @Test(
        "A full outbox refuses the whole call, says when to come again, and writes nothing",
        arguments: EngineKind.allCases)
    func full(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(kind, rows: 4), .of(provider)) { rig in
            try await rig.owe((1...3).map { push($0) })
            let key = Names.phone
            let record = Record(key: key, touchedAt: rig.clock.now, body: Secret([1]))
            do {
                _ = try await rig.admit([push(4), push(5)], changes: [.put(record, if: .any)])
                Issue.record("a full outbox took pushes in")
            } catch {
                guard case .overloaded(let after) = error as? IntakeRefusal<SampleError> else {
                    Issue.record("another refusal")
                    return
                }
                #expect(after == .seconds(5))
            }
            try await rig.expectRows(3)
            let found = try await rig.store.find([key])[0]
            #expect(found == nil)
            provider.grant(1)
            await rig.outbox.ended.wait(for: 3)
            try await rig.expect([.accepted, .accepted], of: [push(4), push(5)])
        }
    }

    @Test(
        "While the store cannot settle, lanes stop at the backlog's bound; nothing is lost or doubled"
    )
    func congestion() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 2) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.settleBacklog = 10 }
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            rig.outbox.set { $0.settle = .unavailable }
            try await rig.owe((1...50).map { push($0) })
            await provider.waitForSent(10)
            await rig.pass(.seconds(2), sleepers: 3)
            // Ten answers wait; what was under way beside the last of them comes on top.
            #expect((10...12).contains(provider.sent.count))
            #expect(rig.service.settleBacklog == provider.sent.count)
            rig.outbox.set { $0.settle = nil }
            await rig.pass(.seconds(6), sleepers: 3)
            await rig.pass(until: rig.outbox.ended, reaches: 50)
            try await rig.expectRows(0)
            #expect(provider.sent.count == 50)
        }
    }

    @Test("One outcome that the store refuses holds up no other, and is a fault once a renewal has passed")
    func oneRefused() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 4) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.outbox.refuse { $0.push.address == "t7" }
            try await rig.owe((1...40).map { push($0) })
            await rig.pass(until: rig.outbox.ended, reaches: 39)
            #expect(rig.service.settleBacklog == 1)
            await rig.pass(.seconds(6))
            #expect(rig.service.unsettled == UnsettledOutcomes(code: .unavailable, count: 1))
            try await rig.owe((51...60).map { push($0) })
            await rig.pass(until: rig.outbox.ended, reaches: 49)
            #expect(rig.service.unsettled?.count == 1, "others are sent and settled as always")
            rig.outbox.refuse(nil)
            await rig.pass(until: rig.outbox.ended, reaches: 50)
            #expect(rig.service.unsettled == nil && provider.sent.count == 50)
            try await rig.expectRows(0)
        }
    }

    @Test("While the store takes no outcome at all, calls leave, and of all else one in a renewal's span")
    func allRefused() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 4) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            rig.outbox.set { $0.settle = .unavailable }
            try await rig.owe((1...5).map { push($0) })
            await provider.waitForSent(5)
            await rig.pass(.seconds(8))
            #expect(rig.service.unsettled == UnsettledOutcomes(code: .unavailable, count: 5))
            try await rig.owe((11...60).map { push($0) })
            await rig.pass(.seconds(20))
            let sent = provider.sent.count
            #expect((7...10).contains(sent))
            try await rig.owe([push(100, .urgent)])
            await rig.pass(untilSent: sent + 1, by: provider)
            #expect(provider.addresses.contains("t100"))
            rig.outbox.set { $0.settle = nil }
            await rig.pass(until: rig.outbox.ended, reaches: 56)
            #expect(rig.service.unsettled == nil && provider.sent.count == 56)
            try await rig.expectRows(0)
        }
    }

    @Test("Outcomes that the store refuses are few, and all that is sent again after a restart")
    func refusedRestart() async throws {
        let depot = Depot()
        let limits = changing(DeliveryLimits()) { $0.refusedBacklog = 8 }
        let first = ScriptedProvider(Names.fcm, slots: 2) { _ in .accepted }
        try await Rig.run(depot, .of(first), limits: limits) { rig in
            rig.outbox.set { $0.settle = .corrupt }
            try await rig.owe((1...50).map { push($0) })
            await first.waitForSent(8)
            await rig.pass(.seconds(4))
            rig.outbox.cut()
        }
        let sent = first.sent.count
        // What was under way beside the last, and what left while its answer was on its way to the settler.
        #expect((8...12).contains(sent))
        depot.clock.advance(by: .seconds(30))
        let next = ScriptedProvider(Names.fcm, slots: 4) { _ in .accepted }
        try await Rig.run(depot, .of(next)) { rig in
            await rig.pass(until: rig.outbox.ended, reaches: 50)
            #expect(next.sent.count == 50)
        }
    }

    @Test("A push whose outcome the store refused is known when it comes again, and not sent again")
    func refusedAndReclaimed() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            let isOver = Mutex(false)
            rig.outbox.refuse { $0.push.address == "t1" && !isOver.withLock(\.self) }
            try await rig.owe([push(1)])
            await rig.outbox.refusals.wait(for: 1)
            // An answer is lost: all that stands as in memory is taken back, and this push with it.
            await rig.oweUnheard([push(2)])
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            isOver.withLock { $0 = true }
            await rig.pass(until: rig.outbox.ended, reaches: 2)
            #expect(provider.addresses.sorted() == ["t1", "t2"])
            try await rig.expectRows(0)
        }
    }

    @Test("While the store is asked what it owes and does not answer, replies and retries keep their time")
    func hangs() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 2) { push in
            push.address == "t1" && push.attempt == 0 ? .busy(.seconds(2)) : .accepted
        }
        let silent = ScriptedProvider(Names.apns, slots: 0) { _ in .accepted }
        let gate = AwaitedCount()
        try await Rig.run(Depot(), .of(provider, silent)) { rig in
            rig.outbox.countGate.withLock { $0 = gate }
            let asked = rig.outbox.counts.count
            await rig.pass(until: rig.outbox.counts, reaches: asked + 1)
            try await rig.expect([.known(.retry)], of: [push(1)])
            async let late = rig.admit([push(2, bundle: "org.acme")])
            await silent.waitForReservation()
            await rig.pass(.seconds(4))
            await rig.pass(until: rig.outbox.ended, reaches: 1)
            #expect(provider.addresses == ["t1", "t1"])
            #expect(try await late == [.pending])
            gate.add()
        }
    }

    @Test(
        "What is parked while the store counts is claimed all the same, although the count knows nothing of it"
    )
    func parkedMeanwhile() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        let gate = AwaitedCount()
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            rig.outbox.countGate.withLock { $0 = gate }
            let before = rig.outbox.counts.count
            await rig.pass(until: rig.outbox.counts, reaches: before + 1)
            try await rig.owe((1...20).map { push($0) })
            try await asked(for: "sixteen parked pushes") { try rig.lane().parked == 16 }
            let counted = rig.counted.count
            gate.add()
            await rig.counted.wait(for: counted + 1)
            // No time passes, so no other count is made.
            provider.grant(1)
            await rig.outbox.ended.wait(for: 20)
            #expect(provider.sent.count == 20)
        }
    }

    @Test("A claim that fails is made again")
    func claims() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 4 }
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            try await rig.owe((1...20).map { push($0) })
            rig.outbox.set { $0.claim = .unavailable }
            provider.grant(1)
            await rig.outbox.ended.wait(for: 4)
            // The four may have gone before the lane hears what was parked; then a tick asks for it.
            await rig.pass(until: rig.outbox.refusals, reaches: 1)
            rig.outbox.set { $0.claim = nil }
            await rig.pass(.seconds(4))
            await rig.pass(until: rig.outbox.ended, reaches: 20)
            #expect(provider.sent.count == 20)
        }
    }

    @Test(
        "A change that does not meet its condition is the role's own refusal, and nothing is owed",
        arguments: EngineKind.allCases)
    func refused(_ kind: EngineKind) async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(kind), .of(provider)) { rig in
            let key = Names.phone
            let change = Change.put(
                Record(key: key, touchedAt: rig.clock.now, body: Secret([1])), if: .revision(77))
            do {
                _ = try await rig.admit([push(1)], changes: [change])
                Issue.record("the condition was not met")
            } catch {
                guard case .refused = error as? IntakeRefusal<SampleError> else {
                    Issue.record("another refusal")
                    return
                }
            }
            try await rig.expectRows(0)
            #expect(provider.sent.isEmpty)
        }
    }
}
