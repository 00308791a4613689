import Foundation
import NIOPosix
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

@Suite("What others get of a Status relay", .timeLimit(.minutes(30)))
struct StatusPrivacyTests {
    /// The fields that a push service is meant to get are in what it got, and no other.
    private func judge(_ bytes: [UInt8], _ cast: StatusCast) {
        let got = Set(cast.canaries.filter { $0.isIn(Data(bytes)) }.map(\.name))
        #expect(got == StatusCast.pushed)
    }

    @Test(
        "Apple and Google get token, installation, sealed message, hashes of chat and registered key, no more",
        arguments: [DeviceToken.Service.apns, .fcm])
    func services(_ service: DeviceToken.Service) async throws {
        try await RelayStage.statusRelay { relay in
            let (stage, node) = (relay.stage, relay.stage.sandbox.waku.node)
            var cast = try StatusCast(at: try relay.statusKey(), service)
            let arrivals =
                service == .apns
                ? stage.apns.subscribe(token: cast.token) : stage.fcm.subscribe(address: cast.token)
            node.inject(cast.registration())
            try await relay.statusReaches(1, "registered")
            node.inject(cast.request())
            let delivery = try await arrivals.next("a push")
            let words = [delivery.id, delivery.topic, delivery.token, delivery.collapseID ?? ""]
            judge(delivery.body + Array(words.joined(separator: " ").utf8), cast)
            #expect(delivery.collapseID == nil)
            try await relay.drained()
        }
    }

    @Test("A gorush gets the same, and no more")
    func gateway() async throws {
        try await GorushDouble.with { gorush in
            try await RelayStage.statusRelay(", gorush: { url: \"http://127.0.0.1:\(gorush.port)\" }") {
                relay in
                let node = relay.stage.sandbox.waku.node
                var cast = try StatusCast(at: try relay.statusKey(), .fcm)
                node.inject(cast.registration())
                try await relay.statusReaches(1, "registered")
                node.inject(cast.request())
                try await asked(for: "a call") { gorush.calls.count == 1 }
                var writer = JSONWriter()
                writer.value(try #require(gorush.calls.first?.first))
                judge(writer.bytes, cast)
                #expect(gorush.faults == [])
            }
        }
    }

    @Test("Equal messages look different to a push service, and short ones have one size")
    func sizes() async throws {
        try await RelayStage.statusRelay { relay in
            try await StatusMember.two(relay.stage) { bob, alice in
                let arrivals = relay.stage.apns.subscribe(token: bob.token)
                try await bob.register(at: [try relay.statusKey()])
                var bodies: [[UInt8]] = []
                for text in ["yes", "yes", String(repeating: "a", count: 60)] {
                    #expect(try await alice.tell(bob.point, text) == .delivered)
                    let delivery = try await arrivals.next("a push")
                    #expect(try bob.text(delivery) == text)
                    bodies.append(delivery.body)
                }
                #expect(Set(bodies).count == 3)
                #expect(Set(bodies.map(\.count)).count == 1)
                let names = [
                    Canary("contact id", StatusHash.contactID(alice.point).reveal { Array($0) }),
                    Canary("key", Array(alice.point.compressed.dropFirst()))
                ]
                for body in bodies {
                    for name in names { #expect(!name.isIn(Data(body)), "\(name.name)") }
                }
            }
        }
    }

    @Test("The network carries no field in clear, and answers open for nobody but whom they are for")
    func network() async throws {
        try await RelayStage.statusRelay { relay in
            let stage = relay.stage
            try await stage.withWakuNode { other in
                let listener = WakuCalls(
                    node: try #require(other.url.flatMap { WakuNode($0) }),
                    web: HTTPSFetch(group: MultiThreadedEventLoopGroup.singleton, world: .live))
                try await listener.subscribe()
                var cast = try StatusCast(at: try relay.statusKey(), .apns)
                let node = stage.sandbox.waku.node
                node.inject(cast.registration())
                try await relay.statusReaches(4, "topics")
                node.inject(cast.query())
                try await relay.statusReaches(1, "queries")
                node.inject(cast.request())
                try await asked(for: "three answers") {
                    try await relay.status("waku")?["published"]?.int64 == 3
                }
                let heard = try await listener.messages { _ in true }.messages.map(\.message)
                #expect(heard.count == 6)
                for canary in cast.canaries where !canary.name.hasPrefix("sealed ") {
                    for message in heard {
                        let bytes = message.encoded().reveal { Data($0) }
                        #expect(!canary.isIn(bytes), "\(canary.name)")
                    }
                }
                // The search can find.
                let sealed = cast.canaries.filter { $0.name.hasPrefix("sealed ") }
                #expect(sealed.count == 3)
                for canary in sealed {
                    #expect(heard.contains { canary.isIn($0.payload.reveal { Data($0) }) })
                }
                let sender = try #require(cast.senders.first)
                for reader in [cast.person, cast.asker, sender] {
                    #expect(heard.count { EndMessages.open($0, with: reader) != nil } == 1)
                }
                #expect(heard.allSatisfy { EndMessages.open($0, with: .generate(.live)) == nil })
            }
        }
    }
}
