import MarmotPush
import PushModel
import Secp256k1Keys
import Testing
import WebSocket

@testable import Simulators

@Suite("A simulated relay that wants to know who asks", .timeLimit(.minutes(30)))
struct NostrRelayAuthenticationTests {
    private let mine = NostrFilter(kinds: [NostrKind.relayList])

    @Test("a challenge on connecting: an early request gets a notice, a proven one is served") func early()
        async throws
    {
        let stage = try await NostrRelayStage { $0.knobs.authentication = .onConnect }
        let party = try await stage.join()
        let challenge = try await party.challenge()
        try await party.say(.request(subscription: "s", filters: [mine]))
        try await party.expect("NOTICE restricted: permission denied")
        let proof = try await party.authenticate(challenge, by: stage.alice, at: stage.now)
        try await party.expect("OK \(short(proof.id)) true ")
        try await party.say(.request(subscription: "s", filters: [mine]))
        try await party.expect("EOSE s")
        await stage.relay.stop()
    }

    @Test("a challenge with the first request, which is closed and may be sent again") func late()
        async throws
    {
        let stage = try await NostrRelayStage {
            $0.knobs.authentication = .onDemand
            $0.knobs.authenticatesPublishers = true
        }
        let party = try await stage.join()
        try await party.say(.request(subscription: "s", filters: [mine]))
        let challenge = try await party.challenge()
        try await party.expect("CLOSED s auth-required: who are you?")
        let event = stage.event()
        try await party.say(.event(event))
        #expect(try await party.challenge() == challenge)
        try await party.expect("OK \(short(event.id)) false auth-required: who are you?")
        let proof = try await party.authenticate(
            challenge, by: stage.alice, at: stage.now, relay: party.url + "/")
        try await party.expect("OK \(short(proof.id)) true ")
        try await party.say(.request(subscription: "s", filters: [mine]))
        try await party.expect("EOSE s")
        #expect(try await party.publish(event) == "OK \(short(event.id)) true ")
        #expect(stage.relay.counters.authentications == 1)
        await stage.relay.stop()
    }

    @Test("a proof for another challenge, relay, time or kind proves nothing") func wrong() async throws {
        let stage = try await NostrRelayStage { $0.knobs.authentication = .onConnect }
        let (party, other) = (try await stage.join(), try await stage.join())
        let (challenge, foreign) = (try await party.challenge(), try await other.challenge())
        #expect(challenge != foreign)
        let port = try #require(stage.relay.port)
        for (text, time, relay) in [
            (foreign, 0, nil), ("", 0, nil), (challenge, 601, nil), (challenge, -601, nil),
            (challenge, 0, "ws://localhost:1"), (challenge, 0, "ws://relay.example:\(port)"),
            (challenge, 0, "wss://localhost:\(port)"), (challenge, 0, "ws://localhost:\(port)/x"),
            (challenge, 0, "")
        ] as [(String, Int64, String?)] {
            let proof = try await party.authenticate(
                text, by: stage.alice, at: stage.now + time, relay: relay)
            try await party.expect("OK \(short(proof.id)) false invalid: malformedEvent")
        }
        let event = stage.event(tags: [["relay", party.url], ["challenge", challenge]])
        try await party.say(.authenticate(event))
        try await party.expect("OK \(short(event.id)) false invalid: wrongKind")
        try await party.say(.request(subscription: "s", filters: [mine]))
        try await party.expect("NOTICE restricted: permission denied")
        await stage.relay.stop()
    }

    @Test("a proof may be taken without a word, and a refusal may name no event") func terse() async throws {
        let stage = try await NostrRelayStage {
            $0.knobs.authentication = .onConnect
            $0.knobs.takesProofsSilently = true
            $0.knobs.refusesWithoutID = true
        }
        let party = try await stage.join()
        _ = try await party.authenticate(try await party.challenge(), by: stage.alice, at: stage.now)
        try await party.say(.request(subscription: "s", filters: [mine]))
        try await party.expect("EOSE s")
        try await party.say(.event(stage.event(age: -10_000)))
        let told = try #require(try await party.connection.receive())
        #expect(
            told == WebSocketMessage("[\"OK\",\"\",false,\"invalid: created_at too far ahead\"]"))
        await stage.relay.stop()
    }

    @Test("guarded wraps are shown to the key they are for, and to no other") func wraps() async throws {
        let stage = try await NostrRelayStage { $0.knobs.guardsWraps = true }
        let party = try await stage.join()
        stage.relay.inject(stage.wrap(for: stage.bob.publicKey))
        let hers = NostrFilter.wraps(for: [stage.alice.publicKey], since: nil)
        try await party.say(.request(subscription: "s", filters: [hers]))
        let challenge = try await party.challenge()
        try await party.expect("CLOSED s auth-required: wraps are shown to their recipients")
        let proof = try await party.authenticate(challenge, by: stage.alice, at: stage.now)
        try await party.expect("OK \(short(proof.id)) true ")
        for filter in [
            NostrFilter.wraps(for: [stage.bob.publicKey], since: nil), NostrFilter(kinds: [1059]),
            NostrFilter(),
            NostrFilter.wraps(for: [stage.alice.publicKey, stage.bob.publicKey], since: nil)
        ] {
            try await party.say(.request(subscription: "s", filters: [filter]))
            try await party.expect("CLOSED s restricted: not for you")
        }
        try await party.say(.request(subscription: "s", filters: [hers]))
        try await party.expect("EOSE s")
        let wrap = stage.wrap(for: stage.alice.publicKey)
        stage.relay.inject(stage.wrap(for: stage.bob.publicKey, "not hers"))
        stage.relay.inject(wrap)
        try await party.expect("EVENT s \(short(wrap.id))")
        await stage.relay.stop()
    }
}
