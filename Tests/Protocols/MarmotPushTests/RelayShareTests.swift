import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@Suite("The relays' shares of the budget", .timeLimit(.minutes(30)))
struct RelayShareTests {
    private func bench(
        relays: Int, _ rule: RateRule, _ body: (MarmotRig, Sender) async throws -> Void
    ) async throws {
        let key = Secp256k1KeyPair.generate(World.fixed(seed: 4, at: UnixTime(seconds: 1_800_000_000)))
        var serving = try MarmotServing(keys: [key], topic: MarmotRig.topic, servesFCM: true)
        serving.relays = relays
        serving.budgets.everything = rule
        let bench = try await MarmotRig(serving)
        try await bench.running { try await body($0, Sender($0.world, to: key)) }
    }

    private func good(_ sender: Sender, _ number: Int) throws -> NostrEvent {
        try sender.wrapped(.pushV1, [sender.chunk(sender.device(.fcm, number), .pushV1)])
    }

    @Test(
        "One relay's junk uses up its own share, and a wrap through another wakes; a minute later, here too")
    func flood() async throws {
        try await bench(relays: 2, RateRule(perMinute: 40, perHour: 400)) { bench, sender in
            for _ in 0..<20 {
                let junk = try sender.wrap(
                    sender.trigger(.pushV1, [sender.decoy(.pushV1)]),
                    to: Secp256k1KeyPair.generate(bench.world).publicKey)
                let addressed = NostrEvent.signed(
                    kind: NostrKind.giftWrap, createdAt: junk.createdAt,
                    tags: [["p", sender.server.publicKey.hex]], content: junk.content,
                    by: .generate(bench.world), auxiliary: bench.world.randomBytes(32))
                await bench.expect(.doesNotOpen, of: addressed, relay: 7)
            }
            let wrap = try good(sender, 1)
            await bench.expect(.overBudget, of: wrap, relay: 7)
            await bench.expect(wakes: 1, by: wrap, relay: 8)
            await bench.expect(wakes: 1, by: try good(sender, 2), relay: 8)
            let late = try good(sender, 3)
            await bench.expect(.overBudget, of: late, relay: 7)
            bench.clock.advance(by: .seconds(61))
            await bench.expect(wakes: 1, by: late, relay: 7)
        }
    }

    @Test(
        "Each attempt at a token counts for the relay that brought it, and the hour holds as the minute does")
    func attempts() async throws {
        try await bench(relays: 2, RateRule(perMinute: 0, perHour: 8)) { bench, sender in
            // A wrap and three chunks are four: the share.
            let decoys = try sender.wrapped(.pushV1, (0..<3).map { _ in sender.decoy(.pushV1) })
            await bench.expect(ignored: 3, by: decoys)
            bench.clock.advance(by: .seconds(600))
            let wrap = try good(sender, 1)
            await bench.expect(.overBudget, of: wrap)
            await bench.expect(wakes: 1, by: wrap, relay: 1)
            bench.clock.advance(by: .seconds(3_600))
            await bench.expect(wakes: 1, by: try good(sender, 2))
        }
    }

    @Test("New numbers for relays, as reloads give them, neither fill memory nor widen the whole")
    func numbers() async throws {
        try await bench(relays: 1, RateRule(perMinute: 200, perHour: 400)) { bench, sender in
            for number in 0..<100 {
                await bench.expect(wakes: 1, by: try good(sender, number), relay: number)
            }
            await bench.expect(.overBudget, of: try good(sender, 100), relay: 100)
        }
    }
}
