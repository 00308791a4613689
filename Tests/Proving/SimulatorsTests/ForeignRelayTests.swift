import EventLoops
import Foundation
import MarmotPush
import NIOCore
import NIOPosix
import PushModel
import Secp256k1Keys
import Testing
import WebSocket

/// Runs against the relay that `SEALBELL_NOSTR_RELAY` names, and proves who asks where `SEALBELL_NOSTR_AUTH` is
/// set: what `make interop` does with relays that others wrote.
@Suite("Our client at a foreign Nostr relay", .timeLimit(.minutes(30)))
struct ForeignRelayTests {
    static let url = ProcessInfo.processInfo.environment["SEALBELL_NOSTR_RELAY"]
    static let needsProof = ProcessInfo.processInfo.environment["SEALBELL_NOSTR_AUTH"] != nil
    private static var now: Int64 { World.live.now().seconds }

    /// The relay, which is set up to want a proof, served without one.
    private struct Served: Error {}

    private func join() async throws -> NostrParty {
        let url = try #require(Self.url)
        let client = try WebSocketClient(executor: LoopExecutor(MultiThreadedEventLoopGroup.singleton.next()))
        return NostrParty(connection: try await client.connect(try WebSocketAddress(url)), url: url)
    }

    private func event(
        kind: Int, age: Int64 = 0, tags: [[String]] = [], _ content: String = "", by pair: Secp256k1KeyPair
    ) -> NostrEvent {
        .signed(
            kind: kind, createdAt: Self.now - age, tags: tags, content: Secret(Array(content.utf8)), by: pair,
            auxiliary: World.live.randomBytes(32))
    }

    /// Asks as a relay's own order has it: with a challenge on connecting at once, else after the refusal.
    private func prove(_ party: NostrParty, _ pair: Secp256k1KeyPair) async throws {
        guard Self.needsProof else { return }
        try await party.say(.request(subscription: "probe", filters: [NostrFilter(kinds: [1], limit: 1)]))
        var challenge: String?
        var wasRefused = false
        while challenge == nil || !wasRefused {
            switch try await party.message() {
            case .challenge(let text): challenge = text
            case .closed(_, let text), .notice(let text):
                let reason = NostrReason(text: text)
                #expect(reason == .authRequired || reason == .restricted)
                wasRefused = true
            case .event, .ok, .endOfStored: throw Served()
            case nil: throw NostrParty.NoChallenge()
            }
        }
        let proof = try await party.authenticate(try #require(challenge), by: pair, at: Self.now)
        // nostr-relay 1.14 says nothing to a proof, so the next request tells whether it was taken.
        try await party.say(.request(subscription: "proven", filters: [NostrFilter(kinds: [1], limit: 1)]))
        while let message = try await party.message() {
            if case .ok(let id, let flag, _) = message {
                #expect(id == proof.id)
                #expect(flag)
            }
            if case .endOfStored("proven") = message { break }
            if case .closed("proven", _) = message { throw NostrParty.NoChallenge() }
        }
        try await party.say(.close(subscription: "proven"))
    }

    private func accepted(_ party: NostrParty, _ event: NostrEvent) async throws {
        while let message = try await party.message() {
            guard case .ok(let id, let flag, _) = message else { continue }
            #expect(id == event.id)
            #expect(flag)
            return
        }
        Issue.record("the relay closed")
    }

    /// The events of a request up to its end.
    private func read(_ party: NostrParty, _ filter: NostrFilter) async throws -> [NostrEvent] {
        try await party.say(.request(subscription: "read", filters: [filter]))
        var events: [NostrEvent] = []
        while let message = try await party.message() {
            if case .event("read", let event) = message { events.append(event) }
            if case .endOfStored("read") = message { break }
        }
        try await party.say(.close(subscription: "read"))
        return events
    }

    @Test("what we publish is taken and read back as it was", .enabled(if: url != nil))
    func publish() async throws {
        let pair = Secp256k1KeyPair.generate(.live)
        let party = try await join()
        try await prove(party, pair)
        let note = event(kind: 1, tags: [["t", "x"]], "zażółć 🔔 \"quoted\" \\ \n\t", by: pair)
        try await party.say(.event(note))
        try await accepted(party, note)
        let heard = try #require(try await read(party, NostrFilter(ids: [note.id])).first)
        #expect(heard.isSigned)
        #expect(heard.content == note.content)
        #expect(heard.tags == note.tags)
        await party.connection.close()
    }

    @Test("a relay list is replaced by a newer one", .enabled(if: url != nil)) func relayList() async throws {
        let pair = Secp256k1KeyPair.generate(.live)
        let party = try await join()
        try await prove(party, pair)
        for age in [Int64(20), 10] {
            let list = event(
                kind: NostrKind.relayList, age: age, tags: [["relay", "wss://\(age).example"]], by: pair)
            try await party.say(.event(list))
            try await accepted(party, list)
        }
        let events = try await read(party, .relayList(of: pair.publicKey))
        #expect(RelayList.newest(of: events, author: pair.publicKey)?.relays == ["wss://10.example"])
        await party.connection.close()
    }

    @Test("a wrap reaches who subscribed before, and who asks since two days ago", .enabled(if: url != nil))
    func wraps() async throws {
        let (pair, stranger) = (Secp256k1KeyPair.generate(.live), Secp256k1KeyPair.generate(.live))
        let (reader, writer) = (try await join(), try await join())
        try await prove(reader, pair)
        try await prove(writer, stranger)
        let filter = NostrFilter.wraps(for: [pair.publicKey], since: Self.now - 172_800)
        try await reader.say(.request(subscription: "live", filters: [filter]))
        while let message = try await reader.message() { if case .endOfStored("live") = message { break } }
        let wrap = event(
            kind: NostrKind.giftWrap, age: 100_000, tags: [["p", pair.publicKey.hex]],
            String(repeating: "A", count: 40_000), by: stranger)
        try await writer.say(.event(wrap))
        try await accepted(writer, wrap)
        var live: NostrEvent?
        while live == nil, let message = try await reader.message() {
            if case .event("live", let event) = message { live = event }
        }
        #expect(live?.id == wrap.id)
        #expect(live?.isSigned == true)
        #expect(try await read(reader, filter).map(\.id) == [wrap.id])
        await reader.connection.close()
        await writer.connection.close()
    }
}
