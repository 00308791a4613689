import Delivery
import MarmotPush
import NIOCore
import NIOPosix
import NostrIngress
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Synchronization
import Testing
import WebSocket

@Suite("Listening at relays", .timeLimit(.minutes(30)))
struct ListeningTests {
    @Test("A wrap comes through a live subscription of the sheet's form, and the list is published")
    func plain() async throws {
        let rig = try await ListeningRig()
        let relay = rig.relays[0]
        let notes = relay.notes()
        try await rig.run(try rig.ingress(try rig.plan())) {
            let filters = try await notes.request()
            #expect(filters.count == 1)
            #expect(filters[0].kinds == [1059] && filters[0].limit == 1)
            #expect(filters[0].tags == ["p": [rig.key.publicKey.hex]])
            let since = try #require(filters[0].since)
            let now = World.live.now().seconds
            // Two days, and an hour for clocks that are slow.
            #expect((now - 176_460...now - 176_400).contains(since))
            let list = try await notes.list()
            #expect(list.pubkey == rig.key.publicKey && list.isSigned)
            #expect(list.tags == [["relay", try #require(relay.url)]] && list.content.count == 0)
            try await rig.listening()
            let wrap = rig.wrap()
            relay.inject(wrap)
            let taken = try await rig.taken.next("an event taken in")
            #expect(taken.event.id == wrap.id && taken.standing == .live)
        }
    }

    @Test("Wraps are opened on no event loop, also where the ingress runs on one: reading goes on")
    func besideLoops() async throws {
        let rig = try await ListeningRig()
        let loops = Array(MultiThreadedEventLoopGroup.singleton.makeIterator())
        let held = Noted(0)
        let ingress = try rig.ingress(try rig.plan()) { event, standing, relay in
            if loops.contains(where: \.inEventLoop) { held.change { $0 += 1 } }
            await rig.take(event, standing, relay)
        }
        try await withTaskExecutorPreference(rig.client.executor) {
            try await rig.run(ingress) {
                try await rig.listening()
                for _ in 0..<20 {
                    rig.relays[0].inject(rig.wrap())
                    _ = try await rig.taken.next("an event taken in")
                }
            }
        }
        #expect(held.value == 0)
    }

    @Test("Stored wraps are left alone by a live listener, and taken as stored by one with grace")
    func backlog() async throws {
        for backlog in [NostrBacklog.live, .grace] {
            let rig = try await ListeningRig()
            let (old, new) = (rig.wrap(), rig.wrap())
            rig.relays[0].inject(old)
            try await rig.run(try rig.ingress(try rig.plan(backlog: backlog))) {
                try await rig.listening()
                if backlog == .live { rig.relays[0].inject(new) }
                let first = try await rig.taken.next("an event taken in")
                #expect(first.event.id == (backlog == .live ? new.id : old.id))
                #expect(first.standing == (backlog == .live ? .live : .stored))
            }
        }
    }

    @Test(
        "Both orders of authentication lead to a subscription, with every key proven",
        arguments: [NostrRelayKnobs.Authentication.onConnect, .onDemand])
    func authentication(_ order: NostrRelayKnobs.Authentication) async throws {
        let rig = try await ListeningRig {
            $0.authentication = order
            $0.authenticatesPublishers = true
            $0.guardsWraps = true
        }
        let relay = rig.relays[0]
        let notes = relay.notes()
        let old = Secp256k1KeyPair.generate(.live)
        try await rig.run(try rig.ingress(try rig.plan(keys: [rig.key, old]))) {
            var proven: Set<XOnlyKey> = []
            var lists: Set<XOnlyKey> = []
            while lists.count < 2 || proven.count < 2 {
                switch try await notes.next("two lists and two proofs") {
                case .authenticated(let key): proven.insert(key)
                case .published(let event, true): lists.insert(event.pubkey)
                default: break
                }
            }
            #expect(proven == [rig.key.publicKey, old.publicKey] && lists == proven)
            // Only what was asked for after both proofs is given.
            try await rig.listening()
            let wraps = [rig.wrap(), rig.wrap(to: old.publicKey)]
            for wrap in wraps { relay.inject(wrap) }
            // Two workers may finish in either order.
            var ids: Set<[UInt8]> = []
            for _ in wraps { ids.insert(try await rig.taken.next("an event taken in").event.id) }
            #expect(ids == Set(wraps.map(\.id)))
        }
    }

    @Test("A relay that goes is connected to again, asked again, and given the list again")
    func reconnect() async throws {
        let rig = try await ListeningRig()
        let relay = rig.relays[0]
        let notes = relay.notes()
        try await rig.run(try rig.ingress(try rig.plan())) {
            _ = try await notes.request()
            _ = try await notes.list()
            for ending in 0..<2 {
                if ending == 0 { relay.killConnections() } else { relay.closeConnections() }
                _ = try await notes.request()
                _ = try await notes.list()
            }
            try await rig.listening(3)
            let wrap = rig.wrap()
            relay.inject(wrap)
            #expect(try await rig.taken.next("an event taken in").event.id == wrap.id)
        }
    }

    @Test("What comes while the connection is away is taken when it is back, and nothing twice")
    func missed() async throws {
        let rig = try await ListeningRig()
        let relay = rig.relays[0]
        let notes = relay.notes()
        let old = rig.wrap()
        relay.inject(old)
        try await rig.run(try rig.ingress(try rig.plan())) {
            #expect(try await notes.request().first?.limit == 1)
            try await rig.listening()
            relay.turn { $0.refusesRequests = .error }
            relay.killConnections()
            // Connected again, and nothing said to it yet.
            let filters = try await notes.request()
            #expect(filters.count == 1 && filters.first?.limit == nil)
            let between = rig.wrap()
            relay.inject(between)
            relay.turn { $0.refusesRequests = nil }
            try await rig.listening()
            let after = rig.wrap()
            relay.inject(after)
            // What was there before the first subscription comes too; the role knows its age.
            var standings: [[UInt8]: EventSource] = [:]
            for _ in 0..<3 {
                let taken = try await rig.taken.next("an event taken in")
                standings[taken.event.id] = taken.standing
            }
            #expect(standings[after.id] == .live)
            for id in [old.id, between.id] {
                guard case .missed = standings[id] else {
                    Issue.record("came as \(String(describing: standings[id]))")
                    continue
                }
            }
        }
    }

    @Test("What a relay gives a page at a time is asked for page by page")
    func pages() async throws {
        let configuration = changing(NostrRelayConfiguration()) { $0.eventsOfRequest = 10 }
        let rig = try await ListeningRig(configuration)
        let now = World.live.now().seconds
        // Dated back as wraps are, two of each second.
        let stored = (0..<64).map { rig.wrap(createdAt: now - Int64($0 / 2) * 3_000) }
        for wrap in stored { rig.relays[0].inject(wrap) }
        let limits = changing(ListeningRig.limits) { $0.fullPage = 10 }
        try await rig.run(try rig.ingress(try rig.plan(backlog: .grace), limits: limits)) {
            var ids: Set<[UInt8]> = []
            while ids.count < stored.count {
                ids.insert(try await rig.taken.next("an event taken in").event.id)
            }
            #expect(ids == Set(stored.map(\.id)))
        }
    }

    @Test("A subscription that the relay closes is asked for again on the same connection")
    func closed() async throws {
        let rig = try await ListeningRig { $0.refusesRequests = .error }
        let relay = rig.relays[0]
        let notes = relay.notes()
        let ingress = try rig.ingress(try rig.plan())
        try await rig.run(ingress) {
            for _ in 0..<3 { _ = try await notes.request() }
            relay.turn { $0.refusesRequests = nil }
            try await rig.listening()
            let wrap = rig.wrap()
            relay.inject(wrap)
            #expect(try await rig.taken.next("an event taken in").event.id == wrap.id)
            #expect(relay.counters.connections == 1)
        }
    }

    @Test("A relay that refuses for good is not asked again and again")
    func restricted() async throws {
        let rig = try await ListeningRig { $0.refusesRequests = .restricted }
        let relay = rig.relays[0]
        let notes = relay.notes()
        try await rig.run(try rig.ingress(try rig.plan())) {
            _ = try await notes.request()
            // By the list's answer the refusal has been read; the next request is the next connection's.
            _ = try await notes.list()
            relay.killConnections()
            _ = try await notes.request()
            #expect(relay.counters.requests == 2 && relay.counters.connections == 2)
        }
    }

    @Test("A relay's flood does not hold up another relay's wrap")
    func flood() async throws {
        let rig = try await ListeningRig(relays: 2)
        let (first, second) = (rig.relays[0], rig.relays[1])
        var limits = ListeningRig.limits
        limits.leastShare = 8 << 10
        limits.queuedBytes = 0
        limits.workers = 1
        let flood = 1_000_000
        let junk = rig.wrap()
        let good = rig.wrap()
        let (found, inlet) = AsyncStream.makeStream(of: Int.self)
        let count = Mutex(0)
        let ingress = try rig.ingress(try rig.plan(), limits: limits) { event, _, _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            if event.id == good.id { inlet.yield(number) }
        }
        try await rig.run(ingress) {
            try await rig.listening(2)
            first.inject(junk)
            first.flood(junk, count: flood)
            second.inject(good)
            let number = try await found.next("the event")
            #expect(number < flood)
        }
    }

    @Test("A stop takes nothing more in and opens what it has")
    func drain() async throws {
        let rig = try await ListeningRig()
        let relay = rig.relays[0]
        let notes = relay.notes()
        let limits = changing(ListeningRig.limits) { $0.workers = 1 }
        let (began, beginning) = AsyncStream.makeStream(of: Void.self)
        let gate = Bell()
        let count = Mutex(0)
        let ingress = try rig.ingress(try rig.plan(), limits: limits) { _, _, _ in
            beginning.yield()
            if count.withLock({ $0 }) == 0 { await gate.waitThroughCancellation() }
            count.withLock { $0 += 1 }
        }
        try await rig.run(ingress) {
            try await rig.listening()
            relay.inject(rig.wrap())
            _ = try await began.next("the first event")
            ingress.stop()
            _ = try await notes.next("a note of the relay") { $0.isDisconnection }
            #expect(count.withLock { $0 } == 0)
            gate.ring()
        }
        #expect(count.withLock { $0 } == 1)
    }

    @Test(
        "A reload adds and removes relays, tells the others of the list, and drops no connection that stays")
    func reload() async throws {
        let rig = try await ListeningRig(relays: 3)
        let notes = rig.relays.map { $0.notes() }
        let ingress = try rig.ingress(try rig.plan([0, 1]))
        try await rig.run(ingress) {
            for relay in [0, 1] {
                _ = try await notes[relay].request()
                #expect(try await notes[relay].list().tags.count == 2)
            }
            // Before one of them goes: who is dismissed tells of nothing more.
            try await rig.listening(2)
            ingress.adopt(try rig.plan([1, 2]), take: rig.take)
            _ = try await notes[0].next("a note of the relay") { $0.isDisconnection }
            _ = try await notes[2].request()
            let urls = rig.relays[1...].compactMap(\.url)
            #expect(try await notes[2].list().tags == urls.map { ["relay", $0] })
            #expect(try await notes[1].list().tags == urls.map { ["relay", $0] })
            #expect(rig.relays[1].counters.connections == 1)
            try await rig.listening()
            let wrap = rig.wrap()
            rig.relays[1].inject(wrap)
            #expect(try await rig.taken.next("an event taken in").event.id == wrap.id)
        }
    }

    @Test("Other keys are listened for on new connections")
    func otherKeys() async throws {
        let rig = try await ListeningRig()
        let notes = rig.relays[0].notes()
        let fresh = Secp256k1KeyPair.generate(.live)
        let ingress = try rig.ingress(try rig.plan())
        try await rig.run(ingress) {
            _ = try await notes.request()
            ingress.adopt(try rig.plan(keys: [fresh, rig.key]), take: rig.take)
            let filters = try await notes.request()
            #expect(filters[0].tags == ["p": [fresh.publicKey.hex, rig.key.publicKey.hex]])
        }
    }
}

@Suite("Relays that lie", .timeLimit(.minutes(30)))
struct LyingTests {
    @Test(
        "What does not fit the subscription is dropped before anything is opened",
        arguments: [NostrRelayKnobs.Lie.wrongFilter, .strangeSubscription])
    func lies(_ lie: NostrRelayKnobs.Lie) async throws {
        let rig = try await ListeningRig { $0.lies = [lie] }
        let relay = rig.relays[0]
        try await rig.run(try rig.ingress(try rig.plan())) {
            try await rig.listening()
            let stranger = Secp256k1KeyPair.generate(.live).publicKey
            relay.inject(lie == .wrongFilter ? rig.wrap(to: stranger) : rig.wrap())
            relay.inject(rig.wrap(kind: 1))
            // The honest times begin when the lies are out.
            let wanted = lie == .wrongFilter ? 2 : 1
            try await asked(for: "\(wanted) lies") { relay.counters.eventsSent >= wanted }
            relay.turn { $0.lies = [] }
            let good = rig.wrap()
            relay.inject(good)
            #expect(try await rig.taken.next("an event taken in").event.id == good.id)
        }
        #expect(rig.takenCount == 1)
    }

    @Test("A relay that says too much of what nobody asked for is hung up on, and asked again later")
    func strays() async throws {
        let rig = try await ListeningRig { $0.lies = [.strangeSubscription] }
        let relay = rig.relays[0]
        let notes = relay.notes()
        let limits = changing(ListeningRig.limits) { $0.strays = 5 }
        try await rig.run(try rig.ingress(try rig.plan(), limits: limits)) {
            _ = try await notes.request()
            try await rig.listening()
            for _ in 0..<6 { relay.inject(rig.wrap()) }
            // On a connection of its own; the relay may see the old one's end only after that.
            _ = try await notes.request()
            #expect(relay.counters.connections >= 2)
        }
        #expect(rig.takenCount == 0)
    }

    @Test("A relay that never ends its stored events is listened to all the same, after a while")
    func endWithheld() async throws {
        let rig = try await ListeningRig { $0.withholdsEndOfStored = true }
        let notes = rig.relays[0].notes()
        let limits = changing(ListeningRig.limits) { $0.endOfStored = .milliseconds(100) }
        let ingress = try rig.ingress(try rig.plan(), limits: limits)
        try await rig.run(ingress) {
            _ = try await notes.request()
            _ = try await rig.journal.next("a note of the ingress") { $0 == "end-withheld" }
            let wrap = rig.wrap()
            rig.relays[0].inject(wrap)
            #expect(try await rig.taken.next("an event taken in").event.id == wrap.id)
        }
    }

    @Test("Events said over and over cost their own relay's share of the queue alone")
    func copies() async throws {
        let rig = try await ListeningRig { $0.copies = 50 }
        var limits = ListeningRig.limits
        limits.leastShare = 4 << 10
        limits.queuedBytes = 0
        try await rig.run(try rig.ingress(try rig.plan(), limits: limits)) {
            try await rig.listening()
            let wrap = rig.wrap()
            rig.relays[0].inject(wrap)
            for _ in 0..<50 { #expect(try await rig.taken.next("an event taken in").event.id == wrap.id) }
        }
    }
}
