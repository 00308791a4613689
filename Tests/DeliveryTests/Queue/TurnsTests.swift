import Delivery
import PushModel
import PushTesting
import Testing

/// Who holds turns in a lane (decision 0103), over the whole core.
@Suite("Whose turns a lane takes", .timeLimit(.minutes(30)))
struct TurnsTests {
    private static let attacker = ClientKey(7)
    private static let other = ClientKey(8)

    /// A stranger's flood of calls, and who would else share turns with it.
    struct Flood: Sendable, CustomTestStringConvertible {
        let name: String
        let turns: Turns
        /// The token that the n-th key names.
        let token: @Sendable (Int) -> String
        /// How the other's call is counted, in its own words.
        var others: Turns { if case .byCredential = turns { .byCredential(Secret([2])) } else { turns } }
        var testDescription: String { name }
    }

    static let floods = [
        Flood(name: "free keys of one client that name one token", turns: .byClient) { _ in "one" },
        Flood(name: "free keys of one client, each with a token of its own", turns: .byClient) { "\($0)" },
        Flood(name: "free keys behind which nobody stands, all with one token", turns: .byAddress) { _ in
            "one"
        },
        Flood(name: "free keys behind one subscription key", turns: .byCredential(Secret([1]))) { "\($0)" }
    ]

    private func calls(of flood: Flood) -> [Push] {
        (1...300).map { push($0, origin: "key \($0)", .urgent, address: flood.token($0)) }
    }

    @Test("A stranger's call goes second, behind three hundred keys that cost nothing", arguments: floods)
    func freeKeys(_ flood: Flood) async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe(calls(of: flood), turns: flood.turns, from: Self.attacker)
            try await rig.owe([push(1_000, .urgent)], turns: flood.others, from: Self.other)
            provider.grant(1)
            await provider.waitForSent(301)
            #expect(provider.addresses.firstIndex(of: "t1000") == 1)
        }
    }

    @Test("Nor does a restart give each of those keys a turn, in any store", arguments: EngineKind.allCases)
    func afterRestart(_ kind: EngineKind) async throws {
        let depot = Depot(kind)
        let still = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(still)) { rig in
            for flood in Self.floods.prefix(3) {
                let client = ClientKey(UInt64(flood.name.count))
                try await rig.owe(calls(of: flood), turns: flood.turns, from: client)
            }
            try await rig.owe([push(1_000, .urgent)], turns: .byClient, from: Self.other)
        }
        depot.clock.advance(by: .seconds(30))
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(depot, .of(provider)) { rig in
            await rig.pass(until: rig.outbox.claims, reaches: 1)
            provider.grant(1)
            await rig.pass(untilSent: 10, by: provider)
            #expect(provider.addresses.prefix(5).contains("t1000"), "\(provider.addresses.prefix(10))")
        }
    }

    @Test("In a full lane the flood makes room, and its own server's other phones keep theirs")
    func fullLane() async throws {
        let limits = changing(DeliveryLimits()) { $0.lanePushes = 64 }
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider), limits: limits) { rig in
            let flood = (1...300).map { push($0, origin: "key \($0)", address: "one") }
            try await rig.owe(flood, turns: .byClient, from: Self.attacker)
            try await rig.owe([push(1_000)], turns: .byClient, from: Self.attacker)
            try await rig.owe([push(1_001)], turns: .byClient, from: Self.other)
            provider.grant(1)
            await provider.waitForSent(3)
            #expect(Set(provider.addresses.prefix(3)) == ["one", "t1000", "t1001"])
        }
    }

    @Test("A push is known again whoever brings it: a repeat is its origin's, whoever holds the turn")
    func repeats() async throws {
        let provider = ScriptedProvider(Names.fcm) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            try await rig.owe([push(1)], turns: .byClient, from: Self.attacker)
            await rig.outbox.ended.wait(for: 1)
            try await rig.owe([push(1)], turns: .byClient, from: Self.other)
            try await rig.owe([push(1)], turns: .byAddress)
            try await rig.expect([.accepted, .accepted], of: [push(1), push(2)])
            #expect(provider.addresses == ["t1", "t2"])
        }
    }

    @Test("Where no client is known, a phone holds the turn")
    func nobody() async throws {
        let provider = ScriptedProvider(Names.fcm, slots: 0) { _ in .accepted }
        try await Rig.run(Depot(), .of(provider)) { rig in
            for client in [nil, ClientKey.nobody] {
                let number = client == nil ? 0 : 100
                let flood = (1...50).map { push(number + $0, origin: "key \($0)", address: "one") }
                try await rig.owe(flood, turns: .byClient, from: client)
                try await rig.owe([push(number + 99)], turns: .byClient, from: client)
            }
            provider.grant(1)
            await provider.waitForSent(3)
            #expect(provider.addresses.prefix(3) == ["one", "t99", "t199"])
        }
    }
}
