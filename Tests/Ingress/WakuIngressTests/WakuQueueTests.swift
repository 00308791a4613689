import PushModel
import PushTesting
import Simulators
import StatusPush
import Testing
import WakuIngress

@Suite("A slow receiver, and a stop", .timeLimit(.minutes(30)))
struct WakuQueueTests {
    @Test("What waits is bounded by bytes; the rest waits at the node and comes from the store")
    func bounded() async throws {
        var limits = WakuRig.limits
        limits.queuedBytes = 8_192
        limits.workers = 2
        let gate = Noted(false)
        let seen = Noted<[String]>([])
        let rig = try await WakuRig(
            limits: limits,
            take: { arrival in
                await gate.until(for: "an open gate") { $0 }
                seen.change { $0.append(arrival.message.payload.text) }
                return true
            })
        try await rig.run {
            try await rig.note("listening")
            // The node's cache overflows each time, and always with as many messages as it holds.
            for round in 1...3 {
                let wanted = (0..<200).map { "message \($0) of round \(round)" }
                gate.set(false)
                for text in wanted { rig.inject(text) }
                // Workers may have taken theirs behind the last that found room, so that it is not full.
                try await asked(for: "a queue that takes no more") {
                    rig.ingress.statistics.queuedBytes > limits.queuedBytes / 2
                }
                // The last one may exceed the bound: a message of this size has some 540 bytes.
                #expect(rig.ingress.statistics.queuedBytes < limits.queuedBytes + 1_024)
                gate.set(true)
                await seen.until(for: "all messages") { Set($0).isSuperset(of: wanted) }
                #expect(seen.value.count == 200 * round)
            }
        }
    }

    @Test("A stop hands on what was taken, and leaves the subscription to the node")
    func stop() async throws {
        let limits = changing(WakuRig.limits) { $0.workers = 1 }
        let gate = Noted(false)
        let seen = Noted(0)
        let rig = try await WakuRig(
            limits: limits,
            take: { _ in
                await gate.until(for: "an open gate") { $0 }
                seen.change { $0 += 1 }
                return true
            })
        try await rig.run {
            try await rig.note("listening")
            for number in 0..<20 { rig.inject("message \(number)") }
            try await asked(for: "all of them in the queue") { rig.ingress.statistics.received == 20 }
            rig.ingress.stop()
            gate.set(true)
        }
        #expect(seen.value == 20)
    }

    @Test("A stopped ingress that is stopped again, or never ran, does no harm")
    func stopTwice() async throws {
        let rig = try await WakuRig()
        rig.ingress.stop()
        rig.ingress.stop()
        try await rig.run {}
        #expect(rig.texts == [])
    }
}
