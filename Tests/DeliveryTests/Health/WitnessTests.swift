import AtRest
import Delivery
import PushModel
import PushTesting
import Testing

@Suite("Who can halt a lane", .timeLimit(.minutes(30)))
struct WitnessTests {
    /// A service that so answers every push to an address that begins with `bad`.
    private static func provider(_ answer: Answer, slots: Int = 1) -> ScriptedProvider {
        ScriptedProvider(Names.fcm, slots: slots) { $0.address.hasPrefix("bad") ? answer : .accepted }
    }

    @Test("Tokens that are refused here, without asking the service, halt no lane")
    func local() async throws {
        let provider = Self.provider(.badTokenHere)
        try await Rig.run(Depot(), .of(provider)) { rig in
            for number in 1...25 {
                try await rig.expect([.known(.unregistered)], of: [push(number, address: "bad\(number)")])
            }
            #expect(rig.events.text.isEmpty)
            try await rig.expect([.accepted], of: [push(100)])
        }
    }

    /// Origins that were never accepted, by the number of their push.
    struct Strangers: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let origin: @Sendable (Int) -> String
    }

    @Test(
        "Addresses that others made up halt no lane by which an origin was served, however many they are",
        arguments: [
            Strangers(testDescription: "one other") { _ in "one" },
            Strangers(testDescription: "five others") { "made up \($0 % 5)" }
        ])
    func strangers(_ strangers: Strangers) async throws {
        let provider = Self.provider(.badDeviceToken)
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.expect([.accepted], of: [push(1, origin: "victim")])
            for number in 2...60 {
                let made = push(number, origin: strangers.origin(number), address: "bad\(number)")
                // One is blamed; as many in a row as never before may be our own fault.
                try await rig.expect([.known(number == 2 ? .unregistered : .misconfigured)], of: [made])
            }
            #expect(rig.events.text.isEmpty)
            try await rig.expect([.accepted], of: [push(100, origin: "victim")])
        }
    }

    @Test("An origin whose pushes only wait counts as one that the app has")
    func waiting() async throws {
        let provider = Self.provider(.badDeviceToken, slots: 0)
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe((1...40).map { push($0, origin: "one", .urgent, address: "bad\($0)") })
            try await rig.owe([push(100, origin: "two", .background)])
            provider.grant(1)
            await rig.outbox.ended.wait(for: 41)
            #expect(rig.events.text.isEmpty)
            #expect(provider.addresses.last == "t100")
        }
    }

    @Test("A lane that its only origin halted opens when another origin comes, and spares registrations")
    func another() async throws {
        let depot = Depot()
        let provider = Self.provider(.badDeviceToken)
        try await Rig.run(depot, .of(provider)) { rig in
            for number in 1...20 {
                let word: OutcomeKind = number == 1 ? .unregistered : .misconfigured
                try await rig.expect([.known(word)], of: [push(number, address: "bad\(number)")])
            }
            #expect(rig.events.text == ["acme/fcm/production halted targets"])
            // Without a minute's wait for a probe.
            try await rig.owe([push(100, origin: "two")])
            await rig.outbox.ended.wait(for: 21)
            #expect(rig.events.text.last == "acme/fcm/production loosened")
            try await rig.expectRows(0)
        }
    }

    @Test("Three origins that meet nothing but target faults halt the lane; two of three do not")
    func three() async throws {
        let provider = Self.provider(.badTopic)
        try await Rig.run(Depot(), .of(provider)) { rig in
            for origin in ["one", "two", "three"] {
                try await rig.expect([.accepted], of: [push(origin.utf8.count * 1_000, origin: origin)])
            }
            for number in 1...50 {
                let made = push(number, origin: number % 2 == 0 ? "one" : "two", address: "bad\(number)")
                try await rig.expect([.known(.misconfigured)], of: [made])
            }
            #expect(rig.events.text.isEmpty)
            let third = push(51, origin: "three", address: "bad51")
            try await rig.expect([.known(.misconfigured)], of: [third])
            #expect(rig.events.text == ["acme/fcm/production halted targets"])
        }
    }
}
