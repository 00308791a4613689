import DialTesting
import Dialling
import MarmotPush
import NIOPosix
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WebSocket

@testable import MarmotPublishing

@Suite("Waking a group's phones", .timeLimit(.minutes(30)))
struct PublisherTests {
    static let formats = TokenFormat.allCases

    @Test("The server's list is found, and every relay of it gets the trigger", arguments: formats)
    func list(_ format: TokenFormat) async throws {
        let rig = try await PublishingRelayRig(relays: 3)
        rig.publishList(Array(rig.urls.suffix(2)))
        let publisher = try rig.publisher(lookUp: [rig.urls[0]])
        let reports = try await publisher.wake([try rig.token(format), try rig.token(format)])
        #expect(reports.count == 1 && reports[0].isReached && reports[0].hasList)
        #expect(reports[0].relays.map(\.answer) == [.accepted, .accepted])
        #expect(rig.wraps(0).isEmpty && rig.wraps(1).map(\.id) == rig.wraps(2).map(\.id))
        #expect(try rig.opened(rig.wraps(1)) == 2)
        await rig.stop()
    }

    @Test("The list is looked up once for several messages, also at once, and again after a day")
    func cache() async throws {
        let rig = try await PublishingRelayRig()
        rig.publishList(rig.urls)
        // Of which relays' clocks have no bound: events may be old, and not from the future.
        let clock = ManualClock(start: World.live.now() - .seconds(200_000))
        var world = World.live
        world.now = { clock.now }
        let publisher = try rig.publisher(world: world)
        let token = try rig.token()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<5 { group.addTask { _ = await missed(publisher, [token]) } }
        }
        #expect(rig.relays[0].counters.requests == 1 && rig.wraps().count == 5)
        clock.advance(by: .seconds(86_399))
        #expect(await missed(publisher, [token]) == nil)
        #expect(rig.relays[0].counters.requests == 1)
        clock.advance(by: .seconds(1))
        #expect(await missed(publisher, [token]) == nil)
        #expect(rig.relays[0].counters.requests == 2)
        await rig.stop()
    }

    @Test("A later run knows the list, and asks nobody")
    func kept() async throws {
        let rig = try await PublishingRelayRig()
        rig.publishList(rig.urls)
        let first = try rig.publisher()
        let token = try rig.token()
        #expect(await missed(first, [token]) == nil)
        let second = try rig.publisher(keeping: first.kept())
        #expect(await missed(second, [token]) == nil)
        #expect(rig.relays[0].counters.requests == 1)
        await rig.stop()
    }

    @Test("More tokens than one wake takes are thrown, and nobody is asked for anything")
    func tooMany() async throws {
        let rig = try await PublishingRelayRig()
        rig.publishList(rig.urls)
        let tokens = Array(repeating: try rig.token(), count: MarmotLimits.tokensOfWake + 1)
        let error = try #require(await missed(try rig.publisher(), tokens))
        #expect(error.servers.map(\.server) == [rig.server] && error.reached.isEmpty)
        #expect(error.servers[0].tokens == tokens.count)
        #expect(error.servers[0].sentence == WakeReport.tooMany)
        #expect(rig.wraps().isEmpty && rig.relays[0].counters.requests == 0)
        await rig.stop()
    }

    @Test("Nobody knows where the server listens: it is thrown, and the others are woken all the same")
    func unreachable() async throws {
        let rig = try await PublishingRelayRig()
        rig.publishList(rig.urls)
        let stranger = Secp256k1KeyPair.generate(.live).publicKey
        let error = try #require(
            await missed(try rig.publisher(), [try rig.token(to: stranger), try rig.token()]))
        #expect(error.servers.map(\.server) == [stranger] && error.reached.map(\.server) == [rig.server])
        #expect(error.servers[0].relays.isEmpty && !error.servers[0].hasList)
        #expect(error.servers[0].sentence == WakeReport.notFound)
        #expect(try rig.opened(rig.wraps()) == 1)
        await rig.stop()
    }

    @Test("Nobody to wake is no failure")
    func nobody() async throws {
        let rig = try await PublishingRelayRig(relays: 0)
        #expect(try await rig.publisher(lookUp: []).wake([]).isEmpty)
    }

    @Test("Without a list the relays that the app was built with serve")
    func builtIn() async throws {
        let rig = try await PublishingRelayRig()
        let publisher = try rig.publisher(lookUp: [], builtIn: [rig.server: rig.urls])
        #expect(await missed(publisher, [try rig.token()]) == nil)
        #expect(try rig.opened(rig.wraps()) == 1)
        await rig.stop()
    }

    @Test("An empty list is an answer: nothing stands in for it")
    func emptyList() async throws {
        let rig = try await PublishingRelayRig()
        rig.publishList([])
        let publisher = try rig.publisher(builtIn: [rig.server: rig.urls])
        let error = try #require(await missed(publisher, [try rig.token()]))
        #expect(error.servers[0].hasList && rig.wraps().isEmpty)
        await rig.stop()
    }

    @Test("One relay of two is dead: the other has the trigger, and that is enough")
    func oneDead() async throws {
        let rig = try await PublishingRelayRig(relays: 2)
        rig.publishList(rig.urls)
        await rig.relays[1].stop()
        let reports = try await rig.publisher(lookUp: [rig.urls[0]]).wake([try rig.token()])
        #expect(reports[0].relays.map(\.answer) == [.accepted, .unreachable])
        await rig.stop()
    }

    @Test("A relay's name has two addresses of which one is dead", arguments: [true, false])
    func twoAddresses(_ isDeadFirst: Bool) async throws {
        let good = try await PublishingRelayRig()
        let port = try #require(good.relays[0].port)
        let dead = try DeadAddress(.silent, port: port)
        let rig = try await PublishingRelayRig(
            relays: 0, dialling: .swift(isDeadFirst ? [dead.address, .here] : [.here, dead.address]))
        let url = "ws://localhost:\(port)"
        good.publishList([url], by: rig.key)
        #expect(await missed(try rig.publisher(lookUp: [url]), [try rig.token()]) == nil)
        #expect(good.wraps().count == 1)
        await good.stop()
    }

    @Test("Hints of owners that lead nowhere: the server's own list is looked up, and serves")
    func deadHints() async throws {
        let rig = try await PublishingRelayRig()
        rig.publishList(rig.urls)
        let reports = try await rig.publisher()
            .wake([try rig.token(.pushV1, hint: "ws://127.0.0.1:1")])
        #expect(reports[0].relays.map(\.answer) == [.unreachable, .accepted])
        #expect(try rig.opened(rig.wraps()) == 1)
        await rig.stop()
    }

    @Test("A server that moved is found by its new list, and the same trigger goes there")
    func moved() async throws {
        let rig = try await PublishingRelayRig(relays: 2)
        let clock = ManualClock(start: World.live.now())
        var world = World.live
        world.now = { clock.now }
        rig.publishList(["ws://127.0.0.1:1"], age: 100)
        let publisher = try rig.publisher(lookUp: [rig.urls[0]], world: world)
        let first = try #require(await missed(publisher, [try rig.token()]))
        #expect(first.servers[0].relays.map(\.answer) == [.unreachable])
        rig.publishList([rig.urls[1]])
        clock.advance(by: .seconds(60))
        let reports = try await publisher.wake([try rig.token()])
        #expect(reports[0].relays.map(\.answer) == [.unreachable, .accepted])
        await rig.stop()
    }

    @Test("Somebody else's address without TLS, or of a private network, is not dialled")
    func forbidden() async throws {
        let rig = try await PublishingRelayRig(relays: 2)
        rig.publishList([rig.urls[1]])
        let publisher = try rig.publisher(lookUp: [rig.urls[0]], reachesLocalRelays: false)
        for token in [
            try rig.token(), try rig.token(.pushV1, hint: "wss://10.0.0.1"),
            try rig.token(.pushV1, hint: "ws://relay.example.org"),
            try rig.token(.pushV1, hint: "wss://[::1]")
        ] {
            let error = try #require(await missed(publisher, [token]))
            #expect(error.servers[0].relays.allSatisfy { $0.answer == .forbidden })
        }
        #expect(rig.relays[1].counters.connections == 0)
        await rig.stop()
    }

    @Test("A name that somebody else brought is not dialled at any address when one of them is private")
    func forbiddenName() async throws {
        let own = try await PublishingRelayRig()
        for addresses in ["127.0.0.1", "203.0.114.1 127.0.0.1", "10.0.0.1", "::1", "fd00::1", "169.254.1.1"] {
            let all = addresses.split(separator: " ").compactMap { IPAddress($0) }
            let names = NamedAddresses(all)
            let rig = try await PublishingRelayRig(relays: 1, dialling: DialOptions(resolver: names))
            let port = try #require(rig.relays[0].port)
            let publisher = try rig.publisher(lookUp: own.urls, reachesLocalRelays: false)
            let token = try rig.token(.pushV1, hint: "wss://inside.example.org:\(port)")
            let error = try #require(await missed(publisher, [token]))
            #expect(error.servers[0].relays.map(\.answer) == [.forbidden], "\(addresses)")
            #expect(!names.asked.isEmpty && rig.relays[0].counters.connections == 0)
            await rig.stop()
        }
        await own.stop()
    }

    @Test("Made-up servers hold up none that is real")
    func madeUp() async throws {
        let rig = try await PublishingRelayRig()
        rig.publishList(rig.urls)
        var tokens = [try rig.token()]
        for _ in 0..<40 { tokens.append(try rig.token(to: Secp256k1KeyPair.generate(.live).publicKey)) }
        let publisher = try rig.publisher(builtIn: [rig.server: rig.urls])
        let error = try #require(await missed(publisher, tokens))
        #expect(error.reached.map(\.server) == [rig.server] && error.servers.count == 40)
        #expect(rig.relays[0].counters.requests <= MarmotLimits.serversOfWake)
        await rig.stop()
    }

    @Test("A caller that gives up hears at once what was not reached, and nothing is learned by it")
    func givenUp() async throws {
        let rig = try await PublishingRelayRig { $0.isSilent = true }
        rig.publishList(rig.urls)
        let notes = rig.relays[0].notes()
        let publisher = try rig.publisher()
        let token = try rig.token()
        let waking = Task { await missed(publisher, [token]) }
        _ = try await notes.next("a look-up") { if case .requested = $0 { true } else { false } }
        waking.cancel()
        let error = try #require(await waking.value)
        #expect(error.servers.map(\.server) == [rig.server] && error.servers[0].relays.isEmpty)
        rig.relays[0].turn { $0.isSilent = false }
        #expect(await missed(publisher, [token]) == nil, "the list is asked for again")
        await rig.stop()
    }

    @Test("A bad address of the settings is refused at the start")
    func settings() throws {
        for url in ["https://relay.example.org", "wss://user@relay.example.org", "", "ws://a.onion"] {
            #expect(throws: PublishingError(.malformedRelay)) {
                try MarmotPublisher(.init(lookUp: [url]))
            }
        }
    }

    @Test(
        "A relay with an authority of its own is reached by an app that brings it, and by no other"
    )
    func authorities() async throws {
        let authority = try CertificateAuthority()
        let relay = NostrRelaySimulator(
            authority: authority, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
        try await relay.start()
        let url = try #require(relay.url)
        #expect(url.hasPrefix("wss://"))
        let key = Secp256k1KeyPair.generate(.live)
        let target = try DeviceTarget(.apns, token: Secret(World.live.randomBytes(32)))
        let token = try GossipToken(
            .seed, box: try TokenBox.encrypt(target, to: key.publicKey, .seed, world: .live),
            server: key.publicKey, relayHint: nil)
        var settings = MarmotPublisher.Settings(lookUp: [url], builtIn: [key.publicKey: [url]])
        settings.authorities = Secret(authority.certificatePEM.utf8)
        #expect(await missed(try MarmotPublisher(settings), [token]) == nil)
        #expect(relay.events.count { $0.kind == NostrKind.giftWrap } == 1)
        settings.authorities = nil
        let error = try #require(await missed(try MarmotPublisher(settings), [token]))
        #expect(error.servers.first?.relays.map(\.answer) == [.unreachable])
        settings.authorities = Secret("no PEM".utf8)
        #expect(throws: PublishingError(.malformedAuthorities)) { try MarmotPublisher(settings) }
        await relay.stop()
    }
}
