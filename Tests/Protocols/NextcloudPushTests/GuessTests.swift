import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// Strangers who guess identifiers (decision 0104). Work is counted here; what it takes is measured elsewhere.
@Suite("Guessing at a Nextcloud relay", .timeLimit(.minutes(30)))
struct GuessTests {
    private let alice = PeerUser.alice
    private let stranger = PeerUser.stranger

    /// Two devices that are there, of which one is looked at, and one that is not.
    private struct Guessed {
        let rig: NextcloudRelayRig
        let known: PeerDevice
        let unknown: PeerDevice

        /// What one call costs.
        func cost(_ call: (NextcloudRelayRig) async -> RelayAnswer) async -> (RelayWork, RelayAnswer) {
            rig.work.set(RelayWork())
            let answer = await call(rig)
            return (rig.work.value, answer)
        }
    }

    private func guessed(
        _ policy: NextcloudPolicy = NextcloudPolicy(),
        tolled: @escaping @Sendable (Toll) -> Duration? = { _ in nil }
    ) async throws -> Guessed {
        let rig = try await NextcloudRelayRig.make(policy: policy, tolled: tolled)
        for number in [40, 41] { #expect(await rig.register(alice.device(number)).status == 200) }
        return Guessed(rig: rig, known: stranger.device(41), unknown: stranger.device(42))
    }

    @Test(
        "A removal with another key has the same words and costs the same work whatever is registered",
        arguments: [NextcloudPolicy.MissingDelete.forbidden, .success])
    func removal(_ missing: NextcloudPolicy.MissingDelete) async throws {
        let guessed = try await guessed(NextcloudPolicy(missingDelete: missing))
        let before = try await guessed.rig.revisions()
        for _ in 0..<2 {
            let known = await guessed.cost { await $0.unregister(guessed.known) }
            let unknown = await guessed.cost { await $0.unregister(guessed.unknown) }
            #expect(known.1.status == (missing == .forbidden ? 403 : 200))
            #expect(unknown.1.status == known.1.status && unknown.1.json == known.1.json)
            #expect(unknown.0 == known.0)
            #expect(known.0 == RelayWork(lookups: 2, found: 1, notFound: 1, verifications: 1))
        }
        #expect(try await guessed.rig.revisions() == before)
    }

    @Test("A removal that nobody signed is looked up for nobody")
    func unsigned() async throws {
        let guessed = try await guessed()
        for number in [41, 42] {
            let device = alice.device(number)
            let forged = PeerDevice(
                identifier: device.identifier, signature: alice.device(7).signature,
                publicKey: device.publicKey, user: alice)
            let (work, answer) = await guessed.cost { await $0.unregister(forged) }
            #expect(answer.status == 403 && work == RelayWork(verifications: 1))
        }
    }

    @Test(
        "A push with a forged signature costs the same work whatever is registered, for the first time and later",
        arguments: ["alert", "voip"])
    func forged(_ type: String) async throws {
        // Where nothing is told as unknown the words are the same.
        let guessed = try await guessed(NextcloudPolicy(unknownPerAnswer: 0))
        for round in 0..<3 {
            let entries = [guessed.known, guessed.unknown].map { $0.entry(round, type: type) }
            let known = await guessed.cost { await $0.notify([entries[0]]) }
            let unknown = await guessed.cost { await $0.notify([entries[1]]) }
            #expect(known.1.json == unknown.1.json && known.1.failed == 1)
            #expect(unknown.0 == known.0, "round \(round)")
            let names = type == "voip" ? 3 : 2
            let expected = RelayWork(
                lookups: 2, found: names, notFound: names, verifications: 1, keysRead: 1)
            #expect(known.0 == expected, "round \(round)")
        }
    }

    @Test("Of a large call each identifier is made level once, and those that are proven are not")
    func large() async throws {
        let guessed = try await guessed(NextcloudPolicy(unknownPerAnswer: 0))
        let proof = alice.device(40)
        _ = await guessed.cost { await $0.notify([proof.entry(0)]) }
        let alone = await guessed.cost { await $0.notify([proof.entry(1)]) }.0
        #expect(alone == RelayWork(lookups: 1, found: 2, verifications: 1))
        // More names than one look-up asks for.
        func entries(_ numbers: Range<Int>) -> [String] { numbers.map { stranger.device($0).entry($0) } }
        let many = await guessed.cost {
            await $0.notify([proof.entry(2)] + entries(1_000..<1_510) + entries(1_000..<1_020))
        }
        #expect(many.0.verifications == 531 && many.0.keysRead == 510)
        #expect(many.0.found == 2 + 2 * 510 && many.0.notFound == 2 * 510)
    }

    @Test("One share bounds what a client may guess, at all doors together; owners are not asked for it")
    func share() async throws {
        let guessed = try await guessed()
        let rig = guessed.rig
        var statuses: [Int] = []
        for number in 0..<110 {
            statuses.append(await rig.unregister(stranger.device(number), from: 7).status)
        }
        #expect(statuses.allSatisfy { $0 == 403 })
        // Ten answers by pushes, with and without a row, are as good as ten others.
        let entries = [guessed.known.entry(1)] + (200..<209).map { stranger.device($0).entry($0) }
        #expect(await rig.notify(entries, from: 7).unknown?.count == 9)
        let refused = await [
            rig.unregister(guessed.known, from: 7), rig.unregister(guessed.unknown, from: 7),
            rig.register(guessed.known, from: 7), rig.register(guessed.unknown, from: 7)
        ]
        #expect(refused.allSatisfy { $0.status == 429 && $0.json == refused[0].json })
        #expect(try await rig.pin(guessed.unknown.identifier) == nil)
        // Their owners, from the same address.
        #expect(await rig.register(alice.device(41), from: 7).status == 200)
        #expect(await rig.unregister(alice.device(40), from: 7).status == 200)
        #expect(await rig.register(alice.device(50), from: 8).status == 200, "another address")
        rig.pass(.seconds(60))
        #expect(await rig.register(alice.device(51), from: 7).status == 200)
    }

    @Test("When the share is used up, conflict and first registration cost the same work")
    func exhausted() async throws {
        let isOut = Noted(false)
        let guessed = try await guessed { toll in
            toll.allowance.name == "guesses" && isOut.value ? .seconds(30) : nil
        }
        isOut.set(true)
        for call in [0, 1] {
            func ask(_ rig: NextcloudRelayRig, _ device: PeerDevice) async -> RelayAnswer {
                call == 0 ? await rig.register(device) : await rig.unregister(device)
            }
            let known = await guessed.cost { await ask($0, guessed.known) }
            let unknown = await guessed.cost { await ask($0, guessed.unknown) }
            #expect(known.1.status == 429 && unknown.1.status == 429)
            #expect(known.0 == unknown.0)
            #expect(known.0 == RelayWork(lookups: 2, found: 1, notFound: 1, verifications: 1))
        }
    }

    @Test("What a push asks takes of the share once for each identifier, badly signed ones as unknown ones")
    func once() async throws {
        let guessed = try await guessed()
        func guesses() -> Int { guessed.rig.tolls.value.count { $0.allowance.name == "guesses" } }
        let before = guesses()
        for round in 0..<3 { _ = await guessed.rig.notify([guessed.known.entry(round)]) }
        #expect(guesses() == before + 1)
        for round in 0..<3 { _ = await guessed.rig.notify([guessed.unknown.entry(round)]) }
        #expect(guesses() == before + 2)
    }

    @Test("A signature that is no number below the modulus is verified all the same, and refused")
    func outOfRange() throws {
        let key = alice.key.publicKey
        let modulus = Array(key.der[33..<289])
        var below = modulus
        // A product of two odd primes is odd.
        below[255] -= 1
        for (number, isBelow) in [
            (modulus, false), (below, true), ([UInt8](repeating: 0, count: 256), true),
            ([UInt8](repeating: 0xFF, count: 256), false), ([UInt8](repeating: 0x55, count: 256), true)
        ] {
            number.withUnsafeBytes { number in
                #expect(key.isBelowModulus(number) == isBelow)
                #expect(![1].withUnsafeBytes { key.isValid(number, over: $0) })
            }
        }
        let message: [UInt8] = [1, 2, 3]
        let good = alice.sign(message)
        #expect(good.withUnsafeBytes { good in message.withUnsafeBytes { key.isValid(good, over: $0) } })
    }
}
