import PushModel
import PushTesting
import Testing
import WireFormats
import ZulipPush

/// A call that comes again is recognised by address and ciphertext (docs/conformance/zulip.md, decision
/// 0003).
@Suite("Zulip replays", .timeLimit(.minutes(30)))
struct ReplayTests {
    private static let other = "a247ce6a-4a56-4f69-ac0e-09fe4537d3ce"
    private static let otherRealm = "a74ead24-d964-44aa-ae4e-b1114d22ffe6"

    /// A call with these ciphertexts for one token.
    private func body(_ id: TokenID, _ data: String...) -> String {
        RealmRig.body(data.map { RealmRig.item(id.text, data: $0) })
    }

    @Test("A repeat of an owed push is not sent, and hears what the first one hears")
    func whileOwed() async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds)
            relay.services.hold()
            let call = body(id, "QUJD")
            async let first = bench.notify(raw: call)
            await relay.services.sends(atLeast: 1)
            async let second = bench.notify(raw: call)
            await relay.store.repeats(atLeast: 1)
            relay.services.release()
            let answers = await [first, second]
            #expect(answers.map(\.status) == [200, 200])
            #expect(answers[0].json["apple_successfully_sent_count"]?.int64 == 1)
            #expect(answers[0].json == answers[1].json)
            await relay.services.sends(atLeast: 1)
            #expect(relay.services.sends.count == 1)
        }
    }

    @Test(
        "A repeat after the end is not sent, and gets the first answer again",
        arguments: [200, 400, 413, 503])
    func afterwards(upstream: Int) async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds)
            let word = [400: "BadPriority", 413: "PayloadTooLarge", 503: "ServiceUnavailable"][upstream]
            if let word {
                relay.services.answer("ab12", with: StubServices.Upstream(status: upstream, word: word))
            }
            let first = await bench.notify(raw: body(id, "QUJD"))
            #expect(
                first.json["apple_successfully_sent_count"]?.int64 == (upstream == 200 ? 1 : 0))
            for _ in 0..<3 {
                let again = await bench.notify(raw: body(id, "QUJD"))
                #expect(again.status == 200 && again.json == first.json)
            }
            await relay.services.sends(atLeast: 1)
            #expect(relay.services.sends.count == 1)
            #expect(relay.store.repeats == 3)
        }
    }

    @Test("Two equal items of one call are both sent; the call's repeat sends neither")
    func twins() async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds)
            let call = body(id, "QUJD", "QUJD")
            let first = await bench.notify(raw: call)
            #expect(first.json["apple_successfully_sent_count"]?.int64 == 2)
            await relay.services.sends(atLeast: 2)
            #expect(relay.services.sends.count == 2)
            #expect(await bench.notify(raw: call).json == first.json)
            await relay.services.sends(atLeast: 2)
            #expect(relay.services.sends.count == 2)
        }
    }

    @Test("Another ciphertext, device or origin is another push")
    func different() async throws {
        let bench = try await RealmRig()
        #expect(await bench.signUp(Self.other, host: "b.example.org").status == 200)
        #expect(await bench.reportRealm(Self.otherRealm, by: Self.other).status == 200)
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds)
            let second = try await bench.register("cd34", timestamp: bench.now.seconds)
            _ = try await bench.register(
                "ab12", timestamp: bench.now.seconds, realm: Self.otherRealm, by: Self.other)
            _ = await bench.notify(raw: body(id, "QUJD"))
            _ = await bench.notify(raw: body(id, "QUJE"))
            await relay.services.sends(atLeast: 2)
            #expect(relay.services.sends.count == 2)
            _ = await bench.notify(raw: body(second, "QUJD"))
            await relay.services.sends(atLeast: 3)
            #expect(relay.services.sends.count == 3)
            let elsewhere = RealmRig.body([RealmRig.item(id.text)], realm: Self.otherRealm)
            _ = await bench.notify(raw: elsewhere, by: Self.other)
            await relay.services.sends(atLeast: 4)
            #expect(relay.services.sends.count == 4)
            #expect(relay.store.repeats == 0)
        }
    }

    @Test("After ten minutes the same call is a new push")
    func later() async throws {
        let bench = try await RealmRig()
        try await bench.relay.running { relay in
            let id = try await bench.register("ab12", timestamp: bench.now.seconds)
            _ = await bench.notify(raw: body(id, "QUJD"))
            relay.advance(by: .seconds(599))
            _ = await bench.notify(raw: body(id, "QUJD"))
            await relay.services.sends(atLeast: 1)
            #expect(relay.services.sends.count == 1)
            relay.advance(by: .seconds(1))
            _ = await bench.notify(raw: body(id, "QUJD"))
            await relay.services.sends(atLeast: 2)
            #expect(relay.services.sends.count == 2)
        }
    }
}
