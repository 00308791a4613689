import PushModel
import PushTesting
import Simulators
import StatusPush
import Testing
import WakuIngress

@Suite("Listening at a Waku node", .timeLimit(.minutes(30)))
struct WakuListeningTests {
    @Test("What others publish on a followed topic is handed on; nothing else is")
    func listens() async throws {
        let rig = try await WakuRig()
        try await rig.run {
            try await rig.note("gap-fetched")
            rig.inject("foreign", topic: 43)
            rig.inject("ours")
            let arrival = try await rig.arrival(of: "ours")
            #expect(arrival.topic == WakuRig.followed && arrival.source == .live)
            #expect(arrival.message.contentTopic == WakuTopic.contentTopic(of: WakuRig.followed))
            #expect(arrival.message.version == 1)
            rig.topics.follow([43])
            rig.inject("followed now", topic: 43)
            #expect(try await rig.arrival(of: "followed now").topic == 43)
            rig.topics.leave([43])
            rig.inject("left again", topic: 43)
            rig.inject("last")
            _ = try await rig.arrival(of: "last")
            #expect(rig.texts == ["ours", "followed now", "last"])
            let statistics = rig.ingress.statistics
            #expect(statistics.isListening && !statistics.hearsNobody && statistics.topics == 1)
            #expect(statistics.heard == 5 && statistics.received == 3)
        }
    }

    @Test("Nothing is asked of the node before the topics are known, and a stop ends the wait")
    func waitsForTopics() async throws {
        let rig = try await WakuRig(knows: false)
        rig.topics.follow([7])
        try await rig.run { #expect(!rig.ingress.statistics.isListening) }
        #expect(!rig.node.isSubscribed)
        let other = try await WakuRig(knows: false)
        try await other.run {
            other.topics.begin(with: [WakuRig.followed])
            try await other.note("listening")
        }
    }

    @Test("At the start the store is asked for what was missed, page by page, and each message comes once")
    func start() async throws {
        let rig = try await WakuRig()
        let wanted = (0..<250).map { "stored \($0)" }
        for text in wanted { rig.archive(text, ago: .seconds(60)) }
        for number in 0..<50 { rig.archive("foreign \(number)", topic: 99, ago: .seconds(60)) }
        rig.archive("too old", ago: .seconds(7_200))
        try await rig.run {
            try await rig.note("gap-fetched")
            await rig.arrivals(wanted)
            // Workers hand on beside each other.
            #expect(rig.texts.sorted() == wanted.sorted())
            #expect(!rig.ingress.statistics.hasGap)
        }
    }

    @Test("What the store hands out again was shown already")
    func repeats() async throws {
        let rig = try await WakuRig({ $0.copies = 3 })
        try await rig.run {
            try await rig.note("gap-fetched")
            // The network's store has it too.
            rig.inject("once")
            _ = try await rig.arrival(of: "once")
            rig.node.forget()
            try await rig.note("gap-fetched")
            rig.inject("last")
            _ = try await rig.arrival(of: "last")
            #expect(rig.texts == ["once", "last"])
        }
    }

    @Test("What nobody took is handed on again when the store hands it out again, and then no more")
    func untaken() async throws {
        let (offered, isOurs) = (Noted<[String]>([]), Noted(false))
        let rig = try await WakuRig(take: { arrival in
            let isTaken = isOurs.value
            offered.change { $0.append(arrival.message.payload.text) }
            return isTaken
        })
        try await rig.run {
            try await rig.note("gap-fetched")
            rig.inject("another's")
            await offered.until(for: "the message") { $0 == ["another's"] }
            // The other one has died.
            isOurs.set(true)
            rig.ingress.lookAgain(since: World.live.now() - .seconds(30))
            await offered.until(for: "it once more") { $0.count == 2 }
            rig.ingress.lookAgain(since: World.live.now() - .seconds(30))
            try await rig.note("gap-fetched")
            try await rig.note("gap-fetched")
            #expect(offered.value == ["another's", "another's"])
        }
    }

    @Test("A subscription that the node has forgotten is asked for again, and the store fills the gap")
    func subscriptionLost() async throws {
        let rig = try await WakuRig()
        try await rig.run {
            try await rig.note("gap-fetched")
            rig.node.turn { $0.subscriptions = .serverError }
            rig.node.forget()
            try await rig.note("subscription-lost")
            rig.inject("unheard")
            #expect(!rig.node.isSubscribed)
            rig.node.turn { $0.subscriptions = .asItShould }
            try await rig.note("listening")
            #expect(try await rig.arrival(of: "unheard").source == .stored)
            rig.inject("heard")
            #expect(try await rig.arrival(of: "heard").source == .live)
        }
    }

    @Test("A node that refused a subscription is told to end it before it is asked again")
    func refusedSubscription() async throws {
        let rig = try await WakuRig({ $0.subscriptions = .serverError })
        let notes = rig.node.notes()
        try await rig.run {
            _ = try await notes.next("a subscription") { $0 == .subscribed(isTaken: false) }
            _ = try await notes.next("its end") { $0 == .unsubscribed }
            rig.node.turn { $0.subscriptions = .asItShould }
            try await rig.note("listening")
        }
    }

    @Test("A subscription that stands is not asked for again, whatever polls are answered with meanwhile")
    func subscribesOnce() async throws {
        let rig = try await WakuRig()
        let notes = rig.node.notes()
        let subscriptions = Noted(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                // Bound: the notes end with the node.
                for await note in notes where note == .subscribed(isTaken: true) {
                    subscriptions.change { $0 += 1 }
                }
            }
            try await rig.run {
                try await rig.note("gap-fetched")
                for answers in WakuNodeKnobs.Answers.allCases where answers != .notFound {
                    rig.node.turn { $0.polls = answers }
                    rig.inject("\(answers)")
                    await rig.arrivals(answers == .asItShould ? ["asItShould"] : [])
                }
                rig.node.turn { $0.polls = .asItShould }
                rig.inject("last")
                _ = try await rig.arrival(of: "last")
            }
            try await group.waitForAll()
        }
        #expect(subscriptions.value == 1)
    }

    @Test("A node that goes and comes back is listened at again, and what was published meanwhile arrives")
    func restart() async throws {
        let rig = try await WakuRig()
        let port = try #require(rig.node.port)
        try await rig.run {
            try await rig.note("gap-fetched")
            await rig.node.away()
            try await rig.note("node-away")
            #expect(rig.ingress.statistics.hearsNobody)
            rig.network.publish(rig.message("meanwhile"), on: WakuNodeSimulator.pubsubTopic)
            try await rig.node.back(at: port)
            try await rig.note("listening")
            #expect(try await rig.arrival(of: "meanwhile").source == .stored)
        }
    }

    @Test(
        "Whatever a poll is answered with, nothing is lost and nothing comes twice",
        arguments: WakuNodeKnobs.Answers.allCases.filter { $0 != .asItShould })
    func pollFaults(_ answers: WakuNodeKnobs.Answers) async throws {
        let rig = try await WakuRig()
        let notes = rig.node.notes()
        try await rig.run {
            try await rig.note("gap-fetched")
            rig.node.turn { $0.polls = answers }
            rig.inject("one")
            _ = try await notes.next("a poll that fails") { $0 == .polled(nil) }
            _ = try await notes.next("another one") { $0 == .polled(nil) }
            rig.node.turn { $0.polls = .asItShould }
            rig.inject("two")
            await rig.arrivals(["one", "two"])
            #expect(rig.texts.sorted() == ["one", "two"])
        }
    }

    @Test(
        "A store that answers wrongly is asked again",
        arguments: WakuNodeKnobs.Answers.allCases.filter {
            ![.asItShould, .badRequest, .notFound, .oversized].contains($0)
        })
    func storeFaults(_ answers: WakuNodeKnobs.Answers) async throws {
        let rig = try await WakuRig({ $0.store = answers })
        rig.archive("kept", ago: .seconds(60))
        try await rig.run {
            try await rig.note("store-absent")
            #expect(rig.ingress.statistics.hasGap)
            rig.node.turn { $0.store = .asItShould }
            #expect(try await rig.arrival(of: "kept").source == .stored)
            try await rig.note("gap-fetched")
        }
    }

    @Test("A gap that no store fills is counted, but for the one before the start, and for so long")
    func missed() async throws {
        var limits = WakuRig.limits
        limits.storeAttempts = 1
        let rig = try await WakuRig({ $0.hasStore = false }, limits: limits)
        try await rig.run {
            try await rig.note("gap-given-up")
            #expect(rig.ingress.statistics.missed == 0)
            rig.node.turn { $0.polls = .hangsUp }
            try await rig.note("node-away")
            rig.node.turn { $0.polls = .asItShould }
            try await asked(for: "a gap that counts") { rig.ingress.statistics.missed == 1 }
            rig.pass(limits.missedFor)
            #expect(rig.ingress.statistics.missed == 0)
        }
    }

    @Test("A node without a store is asked again until it has found one")
    func noStore() async throws {
        let rig = try await WakuRig({ $0.hasStore = false })
        rig.archive("kept", ago: .seconds(60))
        try await rig.run {
            try await rig.note("store-absent")
            rig.inject("live")
            #expect(try await rig.arrival(of: "live").source == .live)
            rig.node.turn { $0.hasStore = true }
            #expect(try await rig.arrival(of: "kept").source == .stored)
        }
    }

    @Test("What a store never gives is given up, and said", arguments: [true, false])
    func givesUp(_ isGoWaku: Bool) async throws {
        let limits = changing(WakuRig.limits) { $0.storeAttempts = 3 }
        let rig = try await WakuRig(
            { knobs in
                knobs.isGoWaku = isGoWaku
                knobs.hasStore = isGoWaku
            }, limits: limits)
        try await rig.run {
            try await rig.note("gap-given-up")
            rig.inject("live")
            #expect(try await rig.arrival(of: "live").source == .live)
        }
    }

    @Test("What a node could not keep while it answered nobody comes from the store")
    func fullCache() async throws {
        let rig = try await WakuRig()
        let wanted = (0..<60).map { "burst \($0)" }
        let notes = rig.node.notes()
        try await rig.run {
            try await rig.note("gap-fetched")
            rig.node.turn { $0.polls = .unavailable }
            _ = try await notes.next("a poll that fails") { $0 == .polled(nil) }
            for text in wanted { rig.inject(text) }
            #expect(rig.node.waiting == 50)
            rig.node.turn { $0.polls = .asItShould }
            await rig.arrivals(wanted)
            #expect(rig.texts.count == 60)
        }
    }

    @Test("A node that loses every other message is made good by the store after the next gap")
    func loses() async throws {
        let rig = try await WakuRig({ $0.losesEvery = 2 })
        let wanted = (0..<10).map { "message \($0)" }
        try await rig.run {
            try await rig.note("gap-fetched")
            for text in wanted { rig.inject(text) }
            rig.node.forget()
            await rig.arrivals(wanted)
            #expect(rig.texts.count == 10)
        }
    }

    @Test("A node in the manner of go-waku is listened at")
    func goWaku() async throws {
        let rig = try await WakuRig({ knobs in
            knobs.isGoWaku = true
            knobs.reverses = true
        })
        try await rig.run {
            try await rig.note("listening")
            rig.inject("one")
            rig.inject("two")
            await rig.arrivals(["one", "two"])
            #expect(rig.ingress.statistics.health == .unknown)
        }
    }

    @Test("A node that has no peers hears nobody, and says when it does again; the store has what it missed")
    func alone() async throws {
        let rig = try await WakuRig()
        try await rig.run {
            try await rig.note("gap-fetched")
            rig.node.turn { $0.peers = .none }
            try await rig.note("node-alone")
            #expect(rig.ingress.statistics.hearsNobody)
            rig.inject("meanwhile")
            rig.node.turn { $0.peers = .connected }
            try await rig.note("node-connected")
            #expect(rig.ingress.statistics.health == .connected)
            #expect(try await rig.arrival(of: "meanwhile").source == .stored)
            rig.inject("later")
            #expect(try await rig.arrival(of: "later").source == .live)
        }
    }
}
