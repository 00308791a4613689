import MarmotPush
import NostrIngress
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing

@Suite("Relays that are tested with a trigger of our own", .timeLimit(.minutes(30)))
struct SelfTestTests {
    private static var limits: NostrLimits {
        var limits = ListeningRig.limits
        limits.firstSelfTest = .milliseconds(10)
        limits.selfTestEvery = .milliseconds(100)
        limits.selfTestSpan = .seconds(600)
        return limits
    }

    @Test("A trigger to ourselves comes back through each relay, is swallowed, and looks like any other")
    func passed() async throws {
        let rig = try await ListeningRig(relays: 2)
        let ingress = try rig.ingress(try rig.plan(testsItself: true), limits: Self.limits)
        try await rig.run(ingress) {
            try await rig.listening(2)
            func wraps(_ relay: NostrRelaySimulator) -> [NostrEvent] {
                relay.events.filter { $0.kind == NostrKind.giftWrap }
            }
            // One may pass again before the other has passed for the first time.
            repeat {
                _ = try await rig.journal.next("a test that passed") { $0 == "self-test-passed" }
            } while rig.relays.contains { wraps($0).isEmpty }
            let published = wraps(rig.relays[0])
            let wrap = try #require(published.first)
            #expect(wrap.tags == [["p", rig.key.publicKey.hex]] && wrap.isSigned)
            let opened = try GiftWrap.unwrap(wrap, with: rig.key)
            #expect(try TriggerContent(reading: opened.event).format == .pushV1)
            #expect(Set(published.map(\.pubkey)).count == published.count)
            let good = rig.wrap()
            rig.relays[1].inject(good)
            // The only thing that is taken in.
            #expect(try await rig.taken.next("an event taken in").event.id == good.id)
        }
    }

    @Test("Who hands nothing out is connected to anew, tested soon, and listened at once something comes")
    func comesBack() async throws {
        let rig = try await ListeningRig { $0.spreadsNothing = true }
        var limits = Self.limits
        limits.selfTestSpan = .seconds(1)
        limits.selfTestAgain = .milliseconds(100)
        let ingress = try rig.ingress(try rig.plan(testsItself: true), limits: limits)
        try await rig.run(ingress) {
            _ = try await rig.journal.next("a test that was lost") { $0 == "self-test-lost" }
            // The connection that hands nothing out is given up.
            _ = try await rig.journal.next("another connection") { $0 == "connected" }
            #expect(await ingress.presence().listening == 0)
            rig.relays[0].turn { $0.spreadsNothing = false }
            try await asked(for: "that it is listened at") { await ingress.presence().listening == 1 }
        }
    }

    @Test("Where nobody tests any more, no relay stays deaf by the last test")
    func untested() async throws {
        let rig = try await ListeningRig { $0.spreadsNothing = true }
        var limits = Self.limits
        limits.selfTestSpan = .seconds(1)
        limits.selfTestAgain = .milliseconds(100)
        let ingress = try rig.ingress(try rig.plan(testsItself: true), limits: limits)
        try await rig.run(ingress) {
            _ = try await rig.journal.next("a test that was lost") { $0 == "self-test-lost" }
            ingress.adopt(try rig.plan(testsItself: false), take: rig.take)
            try await asked(for: "that it is listened at") { await ingress.presence().listening == 1 }
        }
    }

    @Test("A relay that takes nothing of strangers is named, and so is one that hands nothing out")
    func refusedAndLost() async throws {
        let rig = try await ListeningRig { $0.refusesEvents = .blocked }
        let ingress = try rig.ingress(try rig.plan(testsItself: true), limits: Self.limits)
        try await rig.run(ingress) {
            let word = try await rig.journal.next("word of a test") { $0.hasPrefix("self-test") }
            #expect(word == "self-test-refused")
        }
        let mute = try await ListeningRig { $0.spreadsNothing = true }
        let limits = changing(Self.limits) { $0.selfTestSpan = .milliseconds(300) }
        let other = try mute.ingress(try mute.plan(testsItself: true), limits: limits)
        try await mute.run(other) {
            // On a slow machine some are not even published in their span.
            var words: Set<String> = []
            repeat {
                words.insert(try await mute.journal.next("word of a test") { $0.hasPrefix("self-test") })
            } while !words.contains("self-test-lost")
            #expect(words.isSubset(of: ["self-test-lost", "self-test-failed"]))
        }
    }
}
