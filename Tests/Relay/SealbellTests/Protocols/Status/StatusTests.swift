import AtRest
import Foundation
import PushModel
import PushTesting
import Secp256k1Keys
import Simulators
import StatusPush
import Testing
import WakuIngress
import WebClient
import WireFormats

@testable import RelayProgram

/// Members, nodes and relay over real sockets; the Waku network, Apple and Google are simulated.
@Suite("Status from end to end", .timeLimit(.minutes(30)))
struct StatusTests {
    @Test("A phone registers, a sender finds its contact code, and the phone opens what wakes it")
    func wholeWay() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            try await StatusMember.with(relay.stage, .apns) { bob in
                try await StatusMember.two(relay.stage, .fcm) { carol, alice in
                    let apple = relay.stage.apns.subscribe(token: bob.token)
                    let google = relay.stage.fcm.subscribe(address: carol.token)
                    #expect(try await bob.register(at: [server]) == [.registered(server)])
                    #expect(try await carol.register(at: [server]) == [.registered(server)])
                    #expect(try await alice.tell(bob.point, "see you at nine") == .delivered)
                    let first = try await apple.next("a push")
                    #expect(try bob.text(first) == "see you at nine")
                    #expect(first.topic == StatusMember.topic && first.priority == 10)
                    #expect(throws: DeviceError(.foreign)) { try carol.text(first) }
                    let json = try JSONValue.parse(first.body)
                    #expect(json["aps"]?["alert"]?.string == "You have a new message")
                    #expect(try await alice.tell(carol.point, "at ten") == .delivered)
                    #expect(try carol.text(try await google.next("a push")) == "at ten")
                    try await relay.drained()
                    #expect(relay.stage.apns.deliveries().count == 1)
                    try await relay.statusReaches(2, "registered")
                    #expect(try await relay.status("requests")?.int64 == 2)
                    #expect(!(relay.stage.log.all.joined().contains(bob.token)))
                }
            }
        }
    }

    @Test("Without a contact code the server is asked, on the person's topic, and answers once it is known")
    func query() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            try await StatusMember.with(relay.stage) { bob in
                let arrivals = relay.stage.apns.subscribe(token: bob.token)
                try await bob.register(at: [server])
                relay.stage.sandbox.waku.network.forget()
                // Her node comes later than the contact code.
                try await StatusMember.with(relay.stage) { alice in
                    let outcome = try await alice.tell(bob.point, "found")
                    #expect(outcome == .delivered)
                    #expect(try bob.text(try await arrivals.next("a push")) == "found")
                    #expect(try await relay.status("queries")?.int64 == 1)
                    // Personal and partitioned topic of the server, two query topics of the person.
                    #expect(try await relay.status("topics")?.int64 == 4)
                }
            }
        }
    }

    @Test("Who has left is not found, and not pushed to; whoever knew the token hears that nobody is there")
    func leaving() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            try await StatusMember.two(relay.stage) { bob, alice in
                let arrivals = relay.stage.apns.subscribe(token: bob.token)
                try await bob.register(at: [server])
                #expect(try await alice.tell(bob.point, "one") == .delivered)
                _ = try await arrivals.next("a push")
                #expect(try await bob.leave() == [.unregistered(server)])
                relay.stage.sandbox.waku.network.forget()
                alice.origin.requestPause = .milliseconds(50)
                let gone = try await alice.tell(bob.point, "two")
                #expect(gone == .taken(installations: 0, failed: 1))
                try await relay.drained()
                #expect(relay.stage.apns.deliveries().count == 1)
                // Back again, with a higher version.
                #expect(try await bob.register(at: [server]) == [.registered(server)])
                #expect(try await alice.tell(bob.point, "three") == .delivered)
                #expect(try bob.text(try await arrivals.next("a push")) == "three")
            }
        }
    }

    @Test("A token that Apple calls dead ends the registration, and the sender hears so at once")
    func deadToken() async throws {
        try await RelayStage.statusRelay { relay in
            let (server, apns) = (try relay.statusKey(), relay.stage.apns)
            try await StatusMember.two(relay.stage) { bob, alice in
                apns.register(bob.token, as: APNsDevice(topics: [StatusMember.topic]))
                try await bob.register(at: [server])
                apns.unregister(bob.token, since: World.live.now() + .seconds(3_600))
                #expect(try await alice.tell(bob.point, "one") == .taken(installations: 0, failed: 1))
                try await relay.drained()
                #expect(apns.deliveries().isEmpty)
            }
        }
    }

    @Test("An address that the operator has forgotten is pushed to no more")
    func forgetAddress() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            try await StatusMember.two(relay.stage) { bob, alice in
                try await bob.register(at: [server])
                #expect(try await alice.tell(bob.point, "one") == .delivered)
                try await relay.drained()
                let person = try Operator(relay)
                let wrong = await person.run("forget", "address", input: alice.token)
                #expect(wrong.status == .failed)
                let told = await person.run("forget", "address", input: bob.token)
                #expect(told.out.first?.hasPrefix("Forgotten: 1 device") == true, "\(told)")
                #expect(!(told.out + told.err).joined().contains(bob.token))
                #expect(try await alice.tell(bob.point, "two") == .taken(installations: 0, failed: 1))
                #expect(relay.stage.apns.deliveries().count == 1)
            }
        }
    }

    @Test("Garbage on every topic stops nothing, and is counted")
    func garbage() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            let network = relay.stage.sandbox.waku.network
            try await StatusMember.two(relay.stage) { bob, alice in
                let arrivals = relay.stage.apns.subscribe(token: bob.token)
                try await bob.register(at: [server])
                try await relay.statusReaches(4, "topics")
                let person = StatusHash.person(bob.point)
                let topics = [
                    WakuTopic.partitioned(of: server), .personal(of: server), .query(of: person),
                    .prefixedQuery(of: person)
                ]
                var sent = 0
                for topic in topics {
                    for payload in Self.junk(for: server, on: topic) {
                        network.publish(
                            SimulatedWakuMessage(
                                payload: payload, contentTopic: topic.contentTopic,
                                timestamp: network.now + Int64(sent)),
                            on: WakuNodeSimulator.pubsubTopic)
                        sent += 1
                    }
                }
                let taken = { () async throws -> Int64 in
                    try await relay.status("waku")?["received"]?.int64 ?? 0
                }
                try await asked(for: "all of it, taken in") { try await taken() >= Int64(sent) }
                #expect(try await alice.tell(bob.point, "still there") == .delivered)
                #expect(try bob.text(try await arrivals.next("a push")) == "still there")
                #expect(try await relay.status("registered")?.int64 == 1)
            }
        }
    }

    /// What does not open, and what opens and is nothing.
    private static func junk(for server: PublicPoint, on topic: WakuTopic) -> [[UInt8]] {
        let world = World.live
        let key = TopicKey.derive(from: topic)
        let other = Secp256k1KeyPair.generate(world)
        let inside: [Secret] = [
            Secret([]), Secret([0xFF]), Secret(world.randomBytes(300)),
            MetadataMessage.wrap(Secret([]), .registration, by: other),
            MetadataMessage.wrap(Secret(world.randomBytes(200)), .registration, by: other),
            MetadataMessage.wrap(Secret(world.randomBytes(200)), .query, by: other),
            MetadataMessage.wrap(Secret(world.randomBytes(200)), .request, by: other),
            MetadataMessage.wrap(Secret("text".utf8), .response, by: other)
        ]
        var payloads: [[UInt8]] = [[0], world.randomBytes(28), world.randomBytes(500)]
        for data in inside {
            let sealed = [
                WakuPayload.sealAsymmetric(data, to: server, signer: other, world),
                WakuPayload.sealSymmetric(data, key: key, signer: nil, world)
            ]
            for one in sealed {
                let bytes = one.reveal { Array($0) }
                payloads += [bytes, Array(bytes.dropLast()), Array(bytes.prefix(bytes.count / 2))]
            }
        }
        return payloads
    }

    @Test("A node that is away makes the instance unready; what came meanwhile is fetched when it is back")
    func nodeAway() async throws {
        try await RelayStage.statusRelay { relay in
            let (server, node) = (try relay.statusKey(), relay.stage.sandbox.waku.node)
            let port = try #require(node.port)
            try await StatusMember.with(relay.stage) { bob in
                await node.away()
                try await asked(for: "an instance that is not ready") {
                    try await relay.admin("/health/ready?instance=main").status == 503
                }
                // Nobody answers; the network's store keeps it.
                try bob.set([server])
                try await bob.publish()
                try await node.back(at: port)
                try await relay.listens()
                #expect(try await bob.settle() == [.registered(server)])
            }
        }
    }

    @Test("A reload with another node listens there, and keeps who is registered")
    func otherNode() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            try await relay.stage.withWakuNode { other in
                try await StatusMember.two(relay.stage) { bob, alice in
                    let arrivals = relay.stage.apns.subscribe(token: bob.token)
                    try await bob.register(at: [server])
                    let url = try #require(other.url)
                    try relay.relay.reload(
                        relay.stage.configuration(RelayStage.status(", waku: { url: \"\(url)\" }")))
                    await relay.stage.sandbox.waku.node.away()
                    try await relay.listens()
                    relay.stage.sandbox.waku.network.forget()
                    #expect(try await alice.tell(bob.point, "over there") == .delivered)
                    #expect(try bob.text(try await arrivals.next("a push")) == "over there")
                    #expect(try relay.statusKey() == server)
                }
            }
        }
    }

    @Test("A reload with another key is another server; one without a key changes nothing")
    func otherKey() async throws {
        try await RelayStage.statusRelay { relay in
            let server = try relay.statusKey()
            let broken = try relay.stage.configuration(
                RelayStage.status().replacing("status.key", with: "none.key"))
            #expect(throws: CommandFailure.self) { try relay.relay.reload(broken) }
            #expect(try relay.statusKey() == server)
            let pair = Secp256k1KeyPair.generate(.live)
            try StatusKeyFile.text(pair).reveal { raw in
                try writeFile(relay.stage.folder.path + "/other.key", raw, replacing: true)
            }
            try relay.relay.reload(
                relay.stage.configuration(RelayStage.status().replacing("status.key", with: "other.key")))
            #expect(try relay.statusKey() == pair.point)
            try await StatusMember.with(relay.stage) { bob in
                let events = try await bob.register(at: [pair.point])
                #expect(events == [.registered(pair.point)])
            }
        }
    }

    @Test("Of two servers one is away: the other pushes, and the first is brought level when it returns")
    func failover() async throws {
        try await RelayStage.with(RelayStage.status()) { stage in
            try await stage.withWakuNode { node in
                let text =
                    RelayStage.status()
                    + "  other: { protocol: status, apps: [acme], key_file: other.key, waku: { url: "
                    + "\"\(try #require(node.url))\" } }\n"
                let pair = Secp256k1KeyPair.generate(.live)
                try StatusKeyFile.text(pair).reveal { raw in
                    try writeFile(stage.folder.path + "/other.key", raw, replacing: true)
                }
                try await stage.run(text) { relay in
                    try await relay.listens()
                    try await relay.listens("other")
                    try await Self.failover(relay, [try relay.statusKey(), pair.point])
                }
            }
        }
    }

    private static func failover(_ relay: RunningRelay, _ servers: [PublicPoint]) async throws {
        let node = relay.stage.sandbox.waku.node
        let port = try #require(node.port)
        try await StatusMember.two(relay.stage) { bob, alice in
            let arrivals = relay.stage.apns.subscribe(token: bob.token)
            let events = try await bob.register(at: servers)
            #expect(Set(events) == Set(servers.map { .registered($0) }))
            await node.away()
            alice.origin.answerWait = StatusLimits.answerWait
            for number in 0..<3 {
                #expect(try await alice.tell(bob.point, "number \(number)") == .delivered)
                #expect(try bob.text(try await arrivals.next("a push")) == "number \(number)")
            }
            try await relay.statusReaches(3, "requests", of: "other")
            try await node.back(at: port)
            try await relay.listens()
            #expect(try await alice.tell(bob.point, "number 3") == .delivered)
            // What the first hears out of the store it may push too, for servers know nothing of each
            // other: the phone shows each once.
            var shown = 0
            for delivery in relay.stage.apns.deliveries() {
                if try bob.opened(Secret(delivery.body), isStored: true) != nil { shown += 1 }
            }
            #expect(shown == 4)
        }
    }

    @Test("The demo's phones open what a sender told them")
    func demo() async throws {
        try await RelayStage.statusRelay { relay in
            let demo = try Demo(.standard, on: relay.stage.demoStage(relay))
            let reports = await demo.run(["status"])
            #expect(reports.map(\.conversation) == ["status (APNs)", "status (FCM)"])
            for report in reports { #expect(report.opened, "\(report.fault ?? "")") }
        }
    }
}

@Suite("Status on PostgreSQL", .timeLimit(.minutes(30)))
struct SharedStatusTests {
    @Test("Two relays with a node each: both follow everybody, and each request is pushed once")
    func shared() async throws {
        let cluster = try await PostgresCluster.shared
        let url = try await cluster.freshDatabase()
        let text = RelayStage.status() + "store: { url: \"\(url)\" }\n"
        try await RelayStage.with(text) { stage in
            _ = try KeyFile.create(stage.state + "/storage.keys", .live)
            try await stage.withWakuNode { node in
                let other = text.replacing(
                    "key_file: status.key",
                    with: "key_file: status.key, waku: { url: \"\(try #require(node.url))\" }")
                try await stage.run(text) { first in
                    try await first.listens()
                    try await stage.run(other) { second in
                        try await second.listens()
                        try await Self.converse(first, second)
                    }
                }
            }
            #expect(stage.apns.deliveries().count == 4)
        }
    }

    private static func converse(_ first: RunningRelay, _ second: RunningRelay) async throws {
        let server = try first.statusKey()
        #expect(try second.statusKey() == server)
        // Two of the server, two of each person.
        for topics in [4, 6] as [Int64] {
            try await StatusMember.with(first.stage) { bob in
                let arrivals = first.stage.apns.subscribe(token: bob.token)
                try await bob.register(at: [server])
                try await first.statusReaches(topics, "topics")
                try await second.statusReaches(topics, "topics")
                first.stage.sandbox.waku.network.forget()
                try await StatusMember.with(first.stage) { alice in
                    for text in ["one", "two"] {
                        let outcome = try await alice.tell(bob.point, text)
                        #expect(outcome == .delivered)
                        let delivery = try await arrivals.next("a push")
                        #expect(try bob.text(delivery) == text)
                    }
                }
            }
        }
        // More, where a slow machine lets both answer for a moment; the pushes are counted at the end.
        let requests = try await (first.status("requests"), second.status("requests"))
        #expect((requests.0?.int64 ?? 0) + (requests.1?.int64 ?? 0) >= 4)
    }
}
