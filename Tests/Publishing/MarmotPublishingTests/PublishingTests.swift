import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import Testing
import WebSocket

@testable import MarmotPublishing

@Suite("Publishing to relays", .timeLimit(.minutes(30)))
struct PublishingTests {
    private func publisher(
        _ rig: PublishingRelayRig, document: DocumentFetch? = nil, world: World = .live
    ) -> NostrPublisher { NostrPublisher(client: rig.client, document: document, world: world) }

    private func addresses(_ rig: PublishingRelayRig) throws -> [NostrRelay] {
        try rig.relays.compactMap(\.url).map { try NostrRelay($0) }
    }

    private func stop(_ rig: PublishingRelayRig) async { for relay in rig.relays { await relay.stop() } }

    @Test("An event reaches every relay, and each says what became of it")
    func publish() async throws {
        let rig = try await PublishingRelayRig(relays: 3)
        rig.relays[1].turn { $0.refusesEvents = .blocked }
        await rig.relays[2].stop()
        let wrap = rig.wrap()
        let relays = try addresses(rig) + [NostrRelay("ws://127.0.0.1:1")]
        let outcomes = await publisher(rig).publish(wrap, to: relays, within: .seconds(600))
        #expect(outcomes == [.accepted, .refused(.blocked), .failed(.unreachable)])
        #expect(rig.relays[0].events.map(\.id) == [wrap.id] && rig.relays[1].events.isEmpty)
        await stop(rig)
    }

    @Test("A duplicate that the relay answers with false counts as published")
    func duplicate() async throws {
        let rig = try await PublishingRelayRig { $0.acceptsDuplicates = false }
        let wrap = rig.wrap()
        rig.relays[0].inject(wrap)
        let relays = try addresses(rig)
        #expect(await publisher(rig).publish(wrap, to: relays, within: .seconds(600)) == [.accepted])
        await stop(rig)
    }

    @Test("Who must prove himself does so with a key that nobody has seen")
    func proof() async throws {
        let rig = try await PublishingRelayRig { $0.authenticatesPublishers = true }
        let notes = rig.relays[0].notes()
        let wrap = rig.wrap()
        let relays = try addresses(rig)
        #expect(await publisher(rig).publish(wrap, to: relays, within: .seconds(600)) == [.accepted])
        let note = try await notes.next("a proof") { if case .authenticated = $0 { true } else { false } }
        guard case .authenticated(let key) = note else { return }
        #expect(key != wrap.pubkey && key != rig.key.publicKey)
        await stop(rig)
    }

    @Test("A relay that says nothing is not waited for beyond the deadline")
    func silence() async throws {
        let rig = try await PublishingRelayRig(relays: 2)
        rig.relays[1].turn { $0.isSilent = true }
        let relays = try addresses(rig)
        // The deadline passes when the one has answered and the other one has been reached.
        let (silent, answered) = (rig.relays[1], AwaitedCount())
        var world = World.live
        world.sleep = { _ in
            await withTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    // Called off, because the answer came first.
                    await untilCancelled()
                    answered.add()
                }
                tasks.addTask { await answered.wait(for: 1) }
                await tasks.next()
                tasks.cancelAll()
            }
            try await asked(for: "an event at the silent relay") { silent.counters.eventsReceived == 1 }
        }
        let outcomes = await publisher(rig, world: world).publish(
            rig.wrap(), to: relays, within: .seconds(600))
        #expect(outcomes == [.accepted, .unanswered])
        await stop(rig)
    }

    @Test("A relay whose document would not take the event is not asked")
    func unfit() async throws {
        let rig = try await PublishingRelayRig()
        var document = RelayInformation()
        document.maxMessageBytes = 100
        let (fetched, relays) = (document, try addresses(rig))
        let outcomes = await publisher(rig, document: { _ in fetched })
            .publish(rig.wrap(), to: relays, within: .seconds(600))
        #expect(outcomes == [.unfit] && rig.relays[0].counters.connections == 0)
        await stop(rig)
    }

    @Test("The newest list of a key is found among relays, and none where there is none")
    func lists() async throws {
        let rig = try await PublishingRelayRig(relays: 2)
        let now = World.live.now().seconds
        for (index, urls) in [["wss://old.example.org"], ["wss://new.example.org"]].enumerated() {
            rig.relays[index].inject(
                RelayList.event(
                    relays: urls, at: now - 10 + Int64(index), by: rig.key,
                    auxiliary: World.live.randomBytes(32)))
        }
        let relays = try addresses(rig)
        let found = await publisher(rig).relayList(of: rig.key.publicKey, from: relays, within: .seconds(600))
        #expect(found?.relays == ["wss://new.example.org"])
        let nobody = Secp256k1KeyPair.generate(.live).publicKey
        #expect(await publisher(rig).relayList(of: nobody, from: relays, within: .seconds(600)) == nil)
        await stop(rig)
    }

    @Test("An onion relay is not looked up without a proxy")
    func onion() async throws {
        let rig = try await PublishingRelayRig(relays: 0)
        let onion = try NostrRelay("ws://" + String(repeating: "a", count: 56) + ".onion")
        let outcomes = await publisher(rig).publish(rig.wrap(), to: [onion], within: .seconds(600))
        #expect(outcomes == [.failed(.onionNeedsProxy)])
    }
}

@Suite("A relay's document", .timeLimit(.minutes(30)))
struct DocumentTests {
    @Test("A document's limits say which events are worth sending")
    func limits() {
        var found = RelayInformation()
        #expect(found.takes(messageBytes: .max, contentBytes: .max, age: .seconds(1 << 40)))
        found.maxMessageBytes = 1_000
        found.maxContentCharacters = 500
        found.createdAtLowerLimit = .seconds(86_400)
        #expect(found.takes(messageBytes: 1_000, contentBytes: 500, age: .seconds(86_400)))
        #expect(!found.takes(messageBytes: 1_001, contentBytes: 500, age: .zero))
        #expect(!found.takes(messageBytes: 10, contentBytes: 501, age: .zero))
        #expect(!found.takes(messageBytes: 10, contentBytes: 5, age: .seconds(86_401)))
        found.minPowDifficulty = 8
        #expect(!found.takes(messageBytes: 1, contentBytes: 1, age: .zero))
    }

    @Test("Only relays with TLS are asked, at their own address")
    func fetch() async throws {
        let web = ScriptedWeb { request in
            #expect(request.url == "https://relay.example.org:7000/a")
            #expect(request.headers.map(\.name) == ["accept"])
            #expect(request.headers.map(\.value) == ["application/nostr+json"])
            return WebAnswer(200, #"{"limitation":{"max_message_length":7}}"#)
        }
        let fetch = RelayInformation.fetch(web)
        #expect(await fetch(try WebSocketAddress("wss://relay.example.org:7000/a"))?.maxMessageBytes == 7)
        #expect(await fetch(try WebSocketAddress("ws://127.0.0.1:7000")) == nil)
        #expect(await fetch(try WebSocketAddress("wss://\(String(repeating: "a", count: 56)).onion")) == nil)
    }
}
