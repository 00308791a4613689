import MarmotPush
import NIOCore
import PushModel
import PushTesting
import Secp256k1Keys
import Testing
import WebSocket

@testable import Simulators

@Suite("A simulated relay that misbehaves", .timeLimit(.minutes(30))) struct NostrRelayFaultTests {
    private func subscribed(
        _ stage: NostrRelayStage, _ change: (inout WebSocketLimits) -> Void = { _ in }
    ) async throws -> NostrParty {
        let party = try await stage.join(change)
        try await party.say(
            .request(subscription: "s", filters: [.wraps(for: [stage.bob.publicKey], since: nil)]))
        try await party.expect("EOSE s")
        return party
    }

    @Test("it shows what nobody asked for") func wrongFilter() async throws {
        let stage = try await NostrRelayStage { $0.knobs.lies = [.wrongFilter] }
        let party = try await subscribed(stage)
        let event = stage.event(kind: 7)
        stage.relay.inject(event)
        try await party.expect("EVENT s \(short(event.id))")
        try await party.say(.request(subscription: "t", filters: [NostrFilter(kinds: [8])]))
        try await party.expect("EVENT t \(short(event.id))", "EOSE t")
        await stage.relay.stop()
    }

    @Test("it changes signatures and ids", arguments: [NostrRelayKnobs.Lie.badSignature, .wrongID])
    func forged(lie: NostrRelayKnobs.Lie) async throws {
        let stage = try await NostrRelayStage()
        let party = try await subscribed(stage)
        let wrap = stage.wrap(for: stage.bob.publicKey)
        for isLying in [false, true] {
            stage.relay.turn { $0.lies = isLying ? [lie] : [] }
            stage.relay.inject(wrap)
            guard case .event(_, let heard) = try await party.message() else {
                throw NostrParty.NoChallenge()
            }
            #expect(heard.isSigned != isLying)
            #expect((heard.id == wrap.id) == !(isLying && lie == .wrongID))
            #expect(heard.content == wrap.content)
        }
        await stage.relay.stop()
    }

    @Test("it repeats itself, under names that nobody gave") func repeats() async throws {
        let stage = try await NostrRelayStage {
            $0.knobs.copies = 3
            $0.knobs.lies = [.strangeSubscription]
        }
        let party = try await subscribed(stage)
        let wrap = stage.wrap(for: stage.bob.publicKey)
        stage.relay.inject(wrap)
        for _ in 0..<3 { try await party.expect("EVENT s? \(short(wrap.id))") }
        await stage.relay.stop()
    }

    @Test("it never says that the stored events have ended") func endless() async throws {
        let stage = try await NostrRelayStage { $0.knobs.withholdsEndOfStored = true }
        let party = try await stage.join()
        try await party.say(.request(subscription: "s", filters: [NostrFilter()]))
        let event = stage.event()
        try await party.say(.event(event))
        try await party.expect("OK \(short(event.id)) true ", "EVENT s \(short(event.id))")
        await stage.relay.stop()
    }

    @Test("it refuses with every word that relays have", arguments: NostrReason.allCases)
    func refuses(reason: NostrReason) async throws {
        let stage = try await NostrRelayStage {
            $0.knobs.refusesEvents = reason
            $0.knobs.refusesRequests = reason
        }
        let party = try await stage.join()
        let event = stage.event()
        try await party.say(.event(event))
        if reason == .authRequired { try await party.expect("AUTH") }
        try await party.expect("OK \(short(event.id)) false \(reason.rawValue): as the test wants it")
        try await party.say(.request(subscription: "s", filters: [NostrFilter()]))
        try await party.expect("CLOSED s \(reason.rawValue): as the test wants it")
        #expect(stage.relay.events.isEmpty)
        await stage.relay.stop()
    }

    @Test("it hears and says nothing, but answers PINGs") func silent() async throws {
        let stage = try await NostrRelayStage { $0.knobs.isSilent = true }
        let notes = stage.relay.notes()
        let party = try await stage.join()
        let event = stage.event()
        try await party.say(.event(event))
        _ = try await notes.next("an event taken in") { if case .published = $0 { true } else { false } }
        #expect(try await party.connection.ping() >= .zero)
        stage.relay.turn { $0.isSilent = false }
        try await party.say(.request(subscription: "s", filters: [NostrFilter()]))
        try await party.expect("EVENT s \(short(event.id))", "EOSE s")
        await stage.relay.stop()
    }

    @Test("it ignores PINGs, and is given up") func deaf() async throws {
        let stage = try await NostrRelayStage()
        let patient = try await stage.join()
        #expect(try await patient.connection.ping() >= .zero)
        stage.relay.turn {
            $0.ignoresPing = true
            $0.isSilent = true
        }
        // It joins behind that, and needs nothing of the relay: only a deadline that passes.
        let party = try await stage.join {
            $0.pingAfterSilence = .milliseconds(40)
            $0.pongDeadline = .milliseconds(200)
        }
        await #expect(throws: WebSocketError(.silent)) { try await party.message() }
        await stage.relay.stop()
    }

    @Test("it is slow, and keeps the order") func slow() async throws {
        let stage = try await NostrRelayStage()
        let party = try await subscribed(stage)
        stage.relay.turn { $0.answerDelay = .milliseconds(50) }
        let began = ContinuousClock.now
        let events = (0..<3).map { stage.event("\($0)") }
        for event in events { try await party.say(.event(event)) }
        for event in events { try await party.expect("OK \(short(event.id)) true ") }
        #expect(ContinuousClock.now - began >= .milliseconds(50))
        await stage.relay.stop()
    }

    @Test("it closes after a while, all at once, or without a word") func closes() async throws {
        let stage = try await NostrRelayStage { $0.knobs.closesAfterMessages = 1 }
        let counted = try await subscribed(stage)
        try await counted.say(.close(subscription: "s"))
        try await counted.expect(nil)
        stage.relay.turn { $0.closesAfterMessages = nil }
        let first = try await subscribed(stage)
        stage.relay.closeConnections()
        try await first.expect(nil)
        let second = try await subscribed(stage)
        stage.relay.killConnections()
        await #expect(throws: WebSocketError(.lost)) { try await second.message() }
        await stage.relay.stop()
        let started = stage.relay.url
        #expect(started == nil)
    }

    @Test("it forgets everything") func forgets() async throws {
        let stage = try await NostrRelayStage()
        let party = try await stage.join()
        let event = stage.event(kind: NostrKind.relayList)
        _ = try await party.publish(event)
        stage.relay.forget()
        #expect(stage.relay.events.isEmpty)
        #expect(try await party.publish(event) == "OK \(short(event.id)) true ")
        await stage.relay.stop()
    }

    @Test("it floods as fast as the client reads, and no faster") func floods() async throws {
        let stage = try await NostrRelayStage()
        let party = try await subscribed(stage)
        let wrap = stage.wrap(for: stage.bob.publicKey, String(repeating: "x", count: 60_000))
        stage.relay.flood(wrap, count: 1_000)
        // 60 MB: more than lies between the two ends, so it has to wait for the reader.
        for _ in 0..<1_000 { try await party.expect("EVENT s \(short(wrap.id))") }
        let last = stage.wrap(for: stage.bob.publicKey, "last")
        stage.relay.inject(last)
        try await party.expect("EVENT s \(short(last.id))")
        await stage.relay.stop()
    }

    @Test("a client that does not read is dropped when too much waits for it") func slowClient() async throws
    {
        let stage = try await NostrRelayStage { $0.waitingBytes = 100_000 }
        let notes = stage.relay.notes()
        _ = try await subscribed(stage)
        // Each is another event, so that nothing is shared.
        let injecting = 400
        for number in 0..<injecting {
            stage.relay.inject(
                stage.wrap(for: stage.bob.publicKey, String(repeating: "x", count: 60_000) + "\(number)"))
        }
        _ = try await notes.next("a client dropped") { if case .disconnected = $0 { true } else { false } }
        #expect(stage.relay.openConnections == 0)
        await stage.relay.stop()
    }
}
