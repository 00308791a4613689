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

/// Publishes such a message, and says why it was refused.
private func publish(_ rig: WakuRig, _ text: String, bytes: Int? = nil) async -> WakuErrorCode? {
    do throws(WakuError) {
        try await rig.outlet.publish(message(rig, text, bytes: bytes))
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
            async let outcome = publish(rig, "late")
            _ = try await notes.next("an attempt") { $0 == .published(isTaken: false) }
            _ = try await notes.next("another one") { $0 == .published(isTaken: false) }
            rig.node.turn { $0.publishing = .asItShould }
            #expect(await outcome == nil)
        }
        #expect(rig.network.published == 1)
    }

    @Test("A node that has forgotten our subscription takes a message once it listens again")
    func unsubscribed() async throws {
        let limits = changing(WakuRig.limits) { $0.refusalsBelieved = 1_000 }
        let rig = try await WakuRig({ $0.subscriptions = .serverError }, limits: limits)
        let notes = rig.node.notes()
        try await rig.run {
            async let outcome = publish(rig, "patient")
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
            #expect(await publish(rig, "", bytes: 150 << 10) == .refused)
            #expect(await publish(rig, "") == .refused)
        }
        #expect(rig.network.published == 0)
    }

    @Test("A node that stays away costs its time and no more")
    func away() async throws {
        let limits = changing(WakuRig.limits) { $0.publishWithin = .milliseconds(200) }
        let rig = try await WakuRig(limits: limits)
        await rig.node.away()
        #expect(await publish(rig, "lost") == .nodeAway)
        #expect(rig.ingress.statistics.publishing == 0)
    }

    /// What may wait, three messages that may, and one that may not.
    struct Crowd: Sendable, CustomTestStringConvertible {
        let name: String
        let limits: WakuLimits
        let taken: [Int]
        let refused: Int
        var testDescription: String { name }
    }

    static let crowds = [
        Crowd(
            name: "as many as may wait", limits: changing(WakuRig.limits) { $0.publishersWaiting = 2 },
            taken: [10, 11, 12], refused: 13),
        Crowd(
            name: "as many bytes as may wait, of which a short message still finds room",
            limits: changing(WakuRig.limits) { $0.publishingBytes = 1_000 }, taken: [2_000, 900, 90],
            refused: 11)
    ]

    @Test("Too many that wait are refused at once, and the others follow in turn", arguments: crowds)
    func overloaded(_ crowd: Crowd) async throws {
        let limits = changing(crowd.limits) { $0.publishersAtOnce = 1 }
        let rig = try await WakuRig({ $0.publishing = .unavailable }, limits: limits)
        try await rig.run {
            try await rig.note("listening")
            await withTaskGroup(of: WakuErrorCode?.self) { group in
                for bytes in crowd.taken {
                    let sent = rig.ingress.statistics.publishing
                    group.addTask { await publish(rig, "", bytes: bytes) }
                    // Bound: none can end before the node takes it.
                    try? await asked(for: "one more on its way") {
                        rig.ingress.statistics.publishing == sent + 1
                    }
                }
                #expect(await publish(rig, "", bytes: crowd.refused) == .overloaded)
                rig.node.turn { $0.publishing = .asItShould }
                for await outcome in group { #expect(outcome == nil) }
            }
        }
        #expect(rig.network.published == 3)
    }
}
