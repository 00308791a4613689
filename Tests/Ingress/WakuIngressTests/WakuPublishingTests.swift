import NIOPosix
import PushModel
import PushTesting
import Simulators
import StatusPush
import Testing
import WakuIngress
import WebClient

private func message(_ rig: WakuRig, _ text: String, bytes: Int? = nil) -> WakuMessage {
    let payload = bytes.map { [UInt8](repeating: 1, count: $0) } ?? Array(text.utf8)
    return WakuMessage(
        payload: Secret(payload), contentTopic: WakuTopic.contentTopic(of: WakuRig.followed),
        timestamp: rig.network.now)
}

private func code(_ body: () async throws(WakuError) -> Void) async -> WakuErrorCode? {
    do throws(WakuError) {
        try await body()
        return nil
    } catch {
        return error.code
    }
}

@Suite("Publishing through a Waku node", .timeLimit(.minutes(30)))
struct WakuPublishingTests {
    @Test("A message reaches clients of other nodes as it was, and not its own sender")
    func publishes() async throws {
        let rig = try await WakuRig()
        let other = WakuNodeSimulator(on: rig.network, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        try await other.start()
        let client = WakuCalls(
            node: try #require(other.url.flatMap { WakuNode($0) }), web: rig.web, limits: WakuRig.limits)
        try await client.subscribe()
        try await rig.run {
            try await rig.note("listening")
            var sent = message(rig, "to all")
            sent.meta = Secret([1, 2, 3])
            try await rig.outlet.publish(sent)
            let batch = try await client.messages { $0 == WakuRig.followed }
            let heard = try #require(batch.messages.first?.message)
            #expect(heard.payload == sent.payload && heard.meta == sent.meta && heard.version == 1)
            #expect(heard.timestamp == sent.timestamp && heard.contentTopic == sent.contentTopic)
            // The relay hears the client, whose message comes behind its own at the node.
            try await client.publish(message(rig, "back"))
            _ = try await rig.arrival(of: "back")
            #expect(rig.texts == ["back"])
            #expect(rig.ingress.statistics.published == 1)
        }
        await other.stop()
    }

    @Test("Two relays, each at a node of its own, hear what a client publishes at a third, and each other")
    func twoRelays() async throws {
        let first = try await WakuRig()
        let second = try await WakuRig(on: first.network)
        let third = WakuNodeSimulator(
            on: first.network, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        try await third.start()
        let client = WakuCalls(
            node: try #require(third.url.flatMap { WakuNode($0) }), web: first.web, limits: WakuRig.limits)
        try await client.subscribe()
        try await first.run {
            try await second.run {
                try await first.note("listening")
                try await second.note("listening")
                try await client.publish(message(first, "to both"))
                _ = try await first.arrival(of: "to both")
                _ = try await second.arrival(of: "to both")
                try await first.outlet.publish(message(first, "from the first"))
                _ = try await second.arrival(of: "from the first")
                #expect(second.texts == ["to both", "from the first"] && first.texts == ["to both"])
            }
        }
        await third.stop()
    }

    @Test(
        "What a node cannot take now is tried again",
        arguments: [WakuNodeKnobs.Answers.unavailable, .serverError, .tooMany, .hangsUp])
    func retries(_ answers: WakuNodeKnobs.Answers) async throws {
        let rig = try await WakuRig({ $0.publishing = answers })
        let notes = rig.node.notes()
        try await rig.run {
            try await rig.note("listening")
            async let outcome = code { () async throws(WakuError) in
                try await rig.outlet.publish(message(rig, "late"))
            }
            _ = try await notes.next("an attempt") { $0 == .published(isTaken: false) }
            _ = try await notes.next("another one") { $0 == .published(isTaken: false) }
            rig.node.turn { $0.publishing = .asItShould }
            #expect(await outcome == nil)
        }
        #expect(rig.network.published == 1)
    }

    @Test("A node that has forgotten our subscription takes a message once it listens again")
    func unsubscribed() async throws {
        var limits = WakuRig.limits
        limits.refusalsBelieved = 1_000
        let rig = try await WakuRig({ $0.subscriptions = .serverError }, limits: limits)
        let notes = rig.node.notes()
        try await rig.run {
            async let outcome = code { () async throws(WakuError) in
                try await rig.outlet.publish(message(rig, "patient"))
            }
            _ = try await notes.next("an attempt") { $0 == .published(isTaken: false) }
            rig.node.turn { $0.subscriptions = .asItShould }
            #expect(await outcome == nil)
        }
    }

    @Test("What a node will never take is refused: too large, or not a message")
    func refused() async throws {
        let rig = try await WakuRig()
        try await rig.run {
            try await rig.note("listening")
            let large = message(rig, "", bytes: 150 << 10)
            #expect(
                await code { () async throws(WakuError) in try await rig.outlet.publish(large) } == .refused)
            let empty = message(rig, "")
            #expect(
                await code { () async throws(WakuError) in try await rig.outlet.publish(empty) } == .refused)
        }
        #expect(rig.network.published == 0)
    }

    @Test("A node that stays away costs its time and no more")
    func away() async throws {
        var limits = WakuRig.limits
        limits.publishWithin = .milliseconds(200)
        let rig = try await WakuRig(limits: limits)
        await rig.node.away()
        let outcome = await code { () async throws(WakuError) in
            try await rig.outlet.publish(message(rig, "lost"))
        }
        #expect(outcome == .nodeAway)
        #expect(rig.ingress.statistics.publishing == 0)
    }

    @Test("Too many that wait are refused at once, and the others follow in turn")
    func overloaded() async throws {
        var limits = WakuRig.limits
        limits.publishersAtOnce = 1
        limits.publishersWaiting = 2
        let rig = try await WakuRig({ $0.publishing = .unavailable }, limits: limits)
        try await rig.run {
            try await rig.note("listening")
            await withTaskGroup(of: WakuErrorCode?.self) { group in
                for number in 0..<3 {
                    group.addTask {
                        await code { () async throws(WakuError) in
                            try await rig.outlet.publish(message(rig, "message \(number)"))
                        }
                    }
                }
                // Bound: all three are on their way, and none can end before the node takes them.
                try? await asked(for: "three on their way") { rig.ingress.statistics.publishing == 3 }
                let fourth = await code { () async throws(WakuError) in
                    try await rig.outlet.publish(message(rig, "one too many"))
                }
                #expect(fourth == .overloaded)
                rig.node.turn { $0.publishing = .asItShould }
                for await outcome in group { #expect(outcome == nil) }
            }
        }
        #expect(rig.network.published == 3)
    }

    @Test("What waits is bounded by its bytes too, and a short message still finds room")
    func overloadedByBytes() async throws {
        var limits = WakuRig.limits
        limits.publishersAtOnce = 1
        limits.publishingBytes = 1_000
        let rig = try await WakuRig({ $0.publishing = .unavailable }, limits: limits)
        try await rig.run {
            try await rig.note("listening")
            await withTaskGroup(of: WakuErrorCode?.self) { group in
                for bytes in [2_000, 900, 90] {
                    let sent = rig.ingress.statistics.publishing
                    group.addTask {
                        await code { () async throws(WakuError) in
                            try await rig.outlet.publish(message(rig, "", bytes: bytes))
                        }
                    }
                    // Bound: none can end before the node takes it.
                    try? await asked(for: "one more on its way") {
                        rig.ingress.statistics.publishing == sent + 1
                    }
                }
                let fourth = await code { () async throws(WakuError) in
                    try await rig.outlet.publish(message(rig, "", bytes: 11))
                }
                #expect(fourth == .overloaded)
                rig.node.turn { $0.publishing = .asItShould }
                for await outcome in group { #expect(outcome == nil) }
            }
        }
        #expect(rig.network.published == 3)
    }
}
