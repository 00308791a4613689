import Delivery
import NextcloudPush
import PushModel
import PushTesting
import Testing

/// Deployed servers send a batch once: one that cannot be judged or taken now waits, as long as it may.
@Suite("Nextcloud batches that are held", .timeLimit(.minutes(30)))
struct HoldingTests {
    private let device = PeerUser.alice.device(1)

    /// What is held asks again once in this span at most.
    private let poll = DeliveryLimits().holdPoll

    /// Registers the device, and returns when calls can be held: once the delivery has begun.
    private func begin(_ rig: NextcloudRelayRig) async {
        await rig.register(device)
        await rig.notify([device.entry(900)])
        await rig.services.sent(atLeast: 1)
        rig.store.forget()
    }

    private func refused(_ answer: RelayAnswer) -> Bool {
        answer.status == 503 && answer.retryAfter != nil && answer.unknown == nil && answer.failed == nil
    }

    @Test(
        "A batch is held while the store is out, small or large, and answered and sent when it is back",
        arguments: [1, 40])
    func judged(_ count: Int) async throws {
        let rig = try await NextcloudRelayRig.make()
        try await rig.running { rig in
            await begin(rig)
            // One that spoils nothing, though it comes while all are held.
            let entries = (1...count).map { device.entry($0) } + ["no entry"]
            rig.store.goOut()
            async let held = rig.notify(entries)
            await rig.store.lookups(atLeast: 1)
            // It asks again and again, and is sent and answered nothing.
            for number in 2...4 {
                rig.pass(poll)
                await rig.store.lookups(atLeast: number)
            }
            #expect(rig.services.sent.count == 1)
            rig.store.comeBack()
            rig.pass(poll)
            let answer = await held
            #expect(answer.status == 200 && answer.failed == 1 && answer.unknown == [])
            // One phone is sent a few at once, and more at each tick.
            try await asked(for: "all of them sent") {
                rig.pass(.milliseconds(100))
                return rig.services.sent.count >= 1 + count
            }
            #expect(rig.services.sent.count == 1 + count)
        }
    }

    @Test("A batch that has been judged is held while its pushes find no room, and is sent once")
    func full() async throws {
        let rig = try await NextcloudRelayRig.make(rows: 1)
        try await rig.running { rig in
            await rig.register(device)
            rig.services.hold()
            #expect(await rig.notify([device.entry(1)]).failed == 0)
            await rig.services.sent(atLeast: 1)
            rig.store.forget()
            async let held = rig.notify([device.entry(2)])
            await rig.store.lookups(atLeast: 1)
            #expect(rig.services.sent.count == 1)
            rig.services.release()
            // Room that was made before it waited nobody tells it of.
            rig.pass(poll)
            let answer = await held
            #expect(answer.status == 200 && answer.failed == 0)
            await rig.services.sent(atLeast: 2)
            #expect(rig.services.sent.count == 2)
        }
    }

    @Test("When the store stays out the batch is refused, with the time to come back and no word of entries")
    func ends() async throws {
        let rig = try await NextcloudRelayRig.make()
        try await rig.running { rig in
            await begin(rig)
            rig.store.goOut()
            async let held = rig.notify([device.entry(1)])
            await rig.store.lookups(atLeast: 1)
            rig.pass(DeliveryLimits().hold)
            #expect(refused(await held))
            rig.store.comeBack()
            // Nothing of it was remembered: the server's next call is as good as the first.
            #expect(await rig.notify([device.entry(1)]).failed == 0)
            await rig.services.sent(atLeast: 2)
        }
    }

    @Test("Where no more can be held a batch is refused at once, and what is held is not harmed by it")
    func noRoom() async throws {
        var limits = DeliveryLimits()
        limits.heldCalls = 1
        let rig = try await NextcloudRelayRig.make(limits: limits)
        try await rig.running { rig in
            await begin(rig)
            rig.store.goOut()
            async let held = rig.notify([device.entry(1)])
            await rig.store.lookups(atLeast: 1)
            // Held by now: it has asked again.
            rig.pass(poll)
            await rig.store.lookups(atLeast: 2)
            #expect(refused(await rig.notify([device.entry(2)])))
            rig.store.comeBack()
            rig.pass(poll)
            let answer = await held
            #expect(answer.status == 200 && answer.failed == 0)
            await rig.services.sent(atLeast: 2)
            #expect(rig.services.sent.count == 2)
        }
    }

    @Test("Nothing is held that is larger than what may wait, nor when nothing may")
    func tooLarge() async throws {
        for change: @Sendable (inout DeliveryLimits) -> Void in [
            { $0.heldBytes = 1_000 }, { $0.heldCalls = 0 }, { $0.hold = .zero }
        ] {
            var limits = DeliveryLimits()
            change(&limits)
            let rig = try await NextcloudRelayRig.make(limits: limits)
            try await rig.running { rig in
                await begin(rig)
                rig.store.goOut()
                #expect(refused(await rig.notify([device.entry(1)])))
                #expect(rig.store.lookups.count == 1)
            }
        }
    }

    @Test("A registration is not held: its app comes again")
    func registration() async throws {
        let rig = try await NextcloudRelayRig.make()
        try await rig.running { rig in
            rig.store.goOut()
            #expect(refused(await rig.register(device)))
            #expect(refused(await rig.unregister(device)))
            rig.store.comeBack()
            #expect(await rig.register(device).status == 200)
        }
    }
}
