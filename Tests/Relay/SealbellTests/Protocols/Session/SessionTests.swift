import Foundation
import PushModel
import PushTesting
import SessionPush
import Simulators
import SwarmIngress
import Testing
import WebClient
import WireFormats

@testable import RelayProgram

/// Device, storage nodes and relay over real sockets: HTTP here, ZeroMQ with CURVE there. oxend, storage
/// nodes, Apple and Google are simulated.
@Suite("Session from end to end", .timeLimit(.minutes(30)))
struct SessionTests {
    /// Runs `body` with a relay and its network.
    private func relay(
        _ more: String = "", _ body: (RunningRelay, SessionNetworkSimulator) async throws -> Void
    ) async throws {
        try await RelayStage.with(RelayStage.session(more)) { stage in
            try await stage.run { try await body($0, stage.sandbox.session) }
        }
    }

    @Test("A message that three storage nodes tell of wakes an iPhone once, which opens it")
    func apple() async throws {
        try await relay { relay, network in
            for (count, cipher) in [nil, OnionCipher.xchacha20, .aesGCM].enumerated() {
                let phone = try SessionPhone(.apns)
                let arrivals = relay.stage.apns.subscribe(token: phone.token)
                #expect(try await phone.subscribe(at: relay, by: cipher) == [.added])
                try await network.watch(count + 1)
                let hash = network.store("hello", for: phone)
                let delivery = try await arrivals.next("a push")
                let message = try phone.message(delivery)
                #expect(message.hash == hash && message.text == "hello")
                #expect(delivery.topic == "org.acme.session" && delivery.pushType == .alert)
                #expect(delivery.priority == 10)
                let json = try JSONValue.parse(delivery.body)
                #expect(json["spns"]?.int64 == 1 && json["aps"]?["mutable-content"]?.int64 == 1)
                #expect(json["aps"]?["alert"]?["title"]?.string == "Session")
            }
            try await relay.until("notifications", reaches: 9)
            try await relay.drained()
            #expect(relay.stage.apns.deliveries().count == 3)
        }
    }

    @Test("Apple's sandbox has its own service, and Android's priority is that of what people read")
    func others() async throws {
        try await relay { relay, network in
            let beta = try SessionPhone(.apnsSandbox)
            let android = try SessionPhone(.firebase, namespaces: [0, 2])
            // Apple's sandbox knows those tokens alone that it has given out.
            relay.stage.sandboxAPNs.register(beta.token, as: APNsDevice(topics: ["org.acme.session"]))
            let betas = relay.stage.sandboxAPNs.subscribe(token: beta.token)
            let androids = relay.stage.fcm.subscribe(address: android.token)
            #expect(try await beta.subscribe(at: relay) == [.added])
            #expect(try await android.subscribe(at: relay, by: .aesGCM) == [.added])
            try await network.watch(2)
            network.store("for a tester", for: beta)
            #expect(try beta.message(try await betas.next("a push")).text == "for a tester")
            for (namespace, priority) in [(Int16(0), 10), (2, 5)] as [(Int16, Int)] {
                network.store("at \(namespace)", for: android, namespace: namespace)
                let delivery = try await androids.next("a push")
                #expect(try android.message(delivery).text == "at \(namespace)")
                #expect(delivery.priority == priority)
                let data = try JSONValue.parse(delivery.body)["message"]?["data"]
                #expect(data?["spns"]?.string == "1" && data?.object?.count == 2)
            }
        }
    }

    @Test("A phone that did not ask for a message's content, and one for whom it is too long, fetch it")
    func withoutData() async throws {
        try await relay { relay, network in
            let phone = try SessionPhone(.apns, content: .leftOut)
            let other = try SessionPhone(.apns, key: phone.key)
            let arrivals = relay.stage.apns.subscribe(token: phone.token)
            let others = relay.stage.apns.subscribe(token: other.token)
            let notes = network.notes()
            #expect(try await phone.subscribe(at: relay) == [.added])
            #expect(try await other.subscribe(at: relay) == [.added])
            // Each node has been shown both.
            try await network.taken(6, in: notes)
            network.store("hello", for: phone)
            guard case .fetch(let bare) = try phone.open(try await arrivals.next("a push")) else {
                Issue.record("it was given what it had not asked for")
                return
            }
            #expect(bare.data == nil && !bare.isTooLong)
            #expect(try other.message(try await others.next("a push")).text == "hello")
            network.store(String(repeating: "m", count: 2_501), for: phone)
            guard case .fetch(let long) = try other.open(try await others.next("a push")) else {
                Issue.record("it was given too much")
                return
            }
            #expect(long.isTooLong)
        }
    }

    @Test("Who has left is woken no more, and a token that Apple calls dead ends the subscription")
    func ends() async throws {
        try await relay { relay, network in
            let apns = relay.stage.apns
            let (gone, dead, alive) = (
                try SessionPhone(.apns), try SessionPhone(.apns), try SessionPhone(.apns)
            )
            for phone in [gone, dead, alive] { #expect(try await phone.subscribe(at: relay) == [.added]) }
            try await network.watch(3)
            #expect(try await gone.leave(at: relay) == [.removed(wasThere: true)])
            apns.register(dead.token, as: APNsDevice(topics: ["org.acme.session"]))
            apns.unregister(dead.token, since: World.live.now())
            let arrivals = apns.subscribe(token: alive.token)
            network.store("to nobody", for: gone)
            network.store("to a dead token", for: dead)
            network.store("hello", for: alive)
            #expect(try alive.message(try await arrivals.next("a push")).text == "hello")
            try await relay.until("notified", reaches: 2)
            try await relay.drained()
            #expect(apns.deliveries().count == 1)
            // Nobody is there to be woken, so nothing is tried.
            let received = apns.counters.received
            network.store("again", for: dead)
            network.store("again", for: alive)
            #expect(try alive.message(try await arrivals.next("a push")).text == "again")
            try await relay.drained()
            #expect(apns.counters.received == received + 1)
            // The phone has another token, and comes again with the same account.
            let again = try SessionPhone(.apns, key: dead.key)
            let others = apns.subscribe(token: again.token)
            #expect(try await again.subscribe(at: relay) == [.added])
            network.store("back", for: again)
            #expect(try again.message(try await others.next("a push")).text == "back")
        }
    }

    @Test("A reload changes the paths, keeps connections to storage nodes, and subscriptions")
    func reload() async throws {
        try await relay { relay, network in
            let phone = try SessionPhone(.firebase)
            let arrivals = relay.stage.fcm.subscribe(address: phone.token)
            #expect(try await phone.subscribe(at: relay) == [.added])
            try await network.watch(1)
            try relay.relay.reload(relay.stage.configuration(RelayStage.session(", plain_http: false")))
            #expect(try await relay.session("/subscribe", Secret([])).status == 404)
            network.store("after a reload", for: phone)
            #expect(try phone.message(try await arrivals.next("a push")).text == "after a reload")
            let broken = try relay.stage.configuration(
                RelayStage.session().replacing("onion.key", with: "none.key"))
            #expect(throws: CommandFailure.self) { try relay.relay.reload(broken) }
            #expect(try await relay.session("/subscribe", Secret([])).status == 404, "what stood stays")
        }
    }

    @Test("A reload with another oxend asks that one and the first no more, and shows its nodes what stands")
    func otherDaemon() async throws {
        try await relay { relay, network in
            let phone = try SessionPhone(.firebase)
            let arrivals = relay.stage.fcm.subscribe(address: phone.token)
            #expect(try await phone.subscribe(at: relay) == [.added])
            try await network.watch(1)
            let other = SessionNetworkSimulator(world: .live)
            try await other.start()
            do {
                let daemon = try #require(other.daemonEndpoint)
                // Refused: what stood is still asked.
                #expect(throws: ConfigurationError.self) {
                    try relay.relay.reload(
                        relay.stage.configuration(RelayStage.session(", oxend: \"http://localhost\"")))
                }
                network.store("from the first network", for: phone)
                let first = try phone.message(try await arrivals.next("a push"))
                #expect(first.text == "from the first network")
                let notes = network.notes()
                try relay.relay.reload(
                    relay.stage.configuration(RelayStage.session(", oxend: \"\(daemon)\"")))
                try await other.watch(1)
                _ = try await notes.next("the end of the connection to the first oxend") { $0 == .daemonLeft }
                other.store("from the second network", for: phone)
                let second = try phone.message(try await arrivals.next("a push"))
                #expect(second.text == "from the second network")
                network.block(swarms: [5, 5, 5])
                await network.stop()
                // Bound: the notes ended with the network, and all that it still said is among them.
                for await note in notes { #expect(note != .nodesTold && note != .daemonGreeted) }
            } catch {
                await other.stop()
                throw error
            }
            await other.stop()
        }
    }

    @Test("A relay that starts again shows its subscriptions again, under the same key")
    func restart() async throws {
        try await RelayStage.with(RelayStage.session()) { stage in
            let network = stage.sandbox.session
            let phone = try SessionPhone(.apns)
            let arrivals = stage.apns.subscribe(token: phone.token)
            var key: JSONValue?
            try await stage.run { relay in
                #expect(try await phone.subscribe(at: relay) == [.added])
                try await network.watch(1)
                key = try await relay.statistic("core_key")
            }
            for node in SessionNetworkSimulator.nodes { network.restart(node) }
            try await stage.run { relay in
                try await network.watch(1)
                network.store("after a restart", for: phone)
                #expect(try phone.message(try await arrivals.next("a push")).text == "after a restart")
                #expect(try await relay.statistic("core_key") == key && key != nil)
            }
        }
    }

    @Test("A storage node that starts again is shown everything again")
    func lostWatches() async throws {
        try await relay { relay, network in
            let phone = try SessionPhone(.apns)
            let arrivals = relay.stage.apns.subscribe(token: phone.token)
            #expect(try await phone.subscribe(at: relay) == [.added])
            try await network.watch(1)
            for node in SessionNetworkSimulator.nodes { network.restart(node) }
            try await network.watch(1)
            network.store("hello", for: phone)
            #expect(try phone.message(try await arrivals.next("a push")).text == "hello")
        }
    }

    @Test(
        "Without oxend a relay takes subscriptions, tells that it knows no node, and hears once it is there")
    func unheard() async throws {
        try await RelayStage.with(RelayStage.session()) { stage in
            let network = stage.sandbox.session
            network.turnDaemon { $0.answers = .never }
            try await stage.run(spans: { $0.spans.swarm.replyDeadline = .milliseconds(500) }) { relay in
                let phone = try SessionPhone(.apns)
                let arrivals = stage.apns.subscribe(token: phone.token)
                #expect(try await phone.subscribe(at: relay) == [.added])
                try await asked(for: "an instance that is ready") {
                    try await relay.admin("/health/ready?instance=main").status == 200
                }
                #expect(try await relay.statistic("snodes")?.int64 == 0)
                network.turnDaemon { $0.answers = .asItShould }
                try await network.watch(1)
                network.store("hello", for: phone)
                _ = try await arrivals.next("a push")
                #expect(try await relay.statistic("snodes")?.int64 == 3)
                #expect(try await relay.statistic("subscription")?.int64 == 1)
                #expect(try await relay.statistic("subscriptions")?["total"]?.int64 == 1)
            }
        }
    }

    @Test(
        "A written message has a hash that proves it, as of real storage servers",
        arguments: [0, 11, -11] as [Int16])
    func hash(namespace: Int16) throws {
        let phone = try SessionPhone(.apns)
        func written(_ text: String, to phone: SessionPhone) -> StorageNotice {
            .written(Secret(text.utf8), to: phone.account, namespace: namespace, .live)
        }
        let message = written("hello", to: phone)
        #expect(StorageHash.fits(message))
        func hash(_ notice: StorageNotice) -> [UInt8] { notice.hash.reveal { Array($0) } }
        #expect(hash(written("hello", to: phone)) == hash(message), "equal messages are one")
        #expect(hash(written("hello!", to: phone)) != hash(message))
        #expect(hash(written("hello", to: try SessionPhone(.apns))) != hash(message))
    }

    @Test("The demo's phones open what a storage node stored")
    func demo() async throws {
        try await relay { relay, _ in
            let demo = try Demo(.standard, on: relay.stage.demoStage(relay))
            let reports = await demo.run(["session"])
            #expect(reports.map(\.conversation) == ["session (APNs)", "session (FCM)"])
            for report in reports { #expect(report.opened, "\(report.fault ?? "")") }
        }
    }
}
