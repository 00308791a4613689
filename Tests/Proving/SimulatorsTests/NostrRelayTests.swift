import MarmotPush
import NIOCore
import NIOHTTP1
import PushModel
import Secp256k1Keys
import Testing
import WebClient
import WebSocket

@testable import Simulators

@Suite("A simulated Nostr relay", .timeLimit(.minutes(30))) struct NostrRelayTests {
    @Test(
        "an event is accepted, shown to who asked before, and kept for who asks later",
        arguments: [false, true])
    func publish(isSecure: Bool) async throws {
        let stage = try await NostrRelayStage(isSecure: isSecure)
        let reader = try await stage.join()
        try await reader.say(
            .request(subscription: "live", filters: [.wraps(for: [stage.bob.publicKey], since: nil)]))
        try await reader.expect("EOSE live")
        let writer = try await stage.join()
        let (wrap, other) = (stage.wrap(for: stage.bob.publicKey), stage.wrap(for: stage.alice.publicKey))
        #expect(try await writer.publish(other) == "OK \(short(other.id)) true ")
        #expect(try await writer.publish(wrap) == "OK \(short(wrap.id)) true ")
        try await reader.expect("EVENT live \(short(wrap.id))")
        try await writer.say(.request(subscription: "later", filters: [NostrFilter(kinds: [1059])]))
        // Of the same second, so the lower id comes first.
        let order = [wrap.id, other.id].sorted { $0.lexicographicallyPrecedes($1) }
        try await writer.expect(
            "EVENT later \(short(order[0]))", "EVENT later \(short(order[1]))", "EOSE later")
        try await reader.say(.close(subscription: "live"))
        // Heard by the relay before the next event comes another way.
        try await reader.say(.request(subscription: "other", filters: [NostrFilter(kinds: [2])]))
        try await reader.expect("EOSE other")
        let again = stage.wrap(for: stage.bob.publicKey, "again")
        #expect(try await writer.publish(again) == "OK \(short(again.id)) true ")
        try await writer.expect("EVENT later \(short(again.id))")
        try await reader.say(.request(subscription: "none", filters: [NostrFilter(kinds: [2])]))
        try await reader.expect("EOSE none")
        await stage.relay.stop()
    }

    @Test("what comes out is what went in, byte for byte") func content() async throws {
        let stage = try await NostrRelayStage()
        let party = try await stage.join()
        let event = stage.event(tags: [["t", "ż\"\\\u{8}\n"], []], "a \u{1F} b \u{7F} \u{2028} 🔔 \"q\"")
        _ = try await party.publish(event)
        try await party.say(.request(subscription: "s", filters: [NostrFilter(ids: [event.id])]))
        guard case .event(_, let heard) = try await party.message() else { throw NostrParty.NoChallenge() }
        #expect(heard.isSigned)
        #expect(heard.tags == event.tags)
        #expect(heard.content == event.content)
        await stage.relay.stop()
    }

    @Test("an event that is not what its author signed is refused, and why is said") func refusals()
        async throws
    {
        let stage = try await NostrRelayStage { $0.contentBytes = 100 }
        let party = try await stage.join()
        let good = stage.event("good")
        let text = String(decoding: good.serialized().reveal { Array($0) }, as: UTF8.self)
        let digit = text.suffix(3).first == "0" ? "1" : "0"
        let rows: [(String, String)] = [
            (text.replacing("\"good\"", with: "\"evil\""), "invalid: wrong id"),
            (text.dropLast(3) + digit + "\"}", "invalid: bad signature")
        ]
        for (event, why) in rows {
            try await party.say(bytes: Array("[\"EVENT\",\(event)]".utf8))
            try await party.expect("OK \(short(good.id)) false \(why)")
        }
        let events: [(NostrEvent, String)] = [
            (stage.event(age: -901), "invalid: created_at too far ahead"),
            (stage.event(String(repeating: "x", count: 101)), "invalid: content too large"),
            (stage.event(kind: NostrKind.authentication), "invalid: not to be published")
        ]
        for (event, why) in events {
            #expect(try await party.publish(event) == "OK \(short(event.id)) false \(why)")
        }
        for event in [stage.event(age: -900), stage.event(age: 400_000_000), good] {
            #expect(try await party.publish(event) == "OK \(short(event.id)) true ")
        }
        #expect(stage.relay.events.count == 3)
        await stage.relay.stop()
    }

    @Test(
        "what is no message is answered with a notice",
        arguments: [
            "", "x", "{}", "[]", "[1]", "[\"EVENT\"]", "[\"EVENT\",{}]", "[\"REQ\"]", "[\"REQ\",\"s\"]",
            "[\"REQ\",\"\",{}]", "[\"REQ\",\"s\",[]]", "[\"REQ\",\"s\",{\"kinds\":[\"1\"]}]",
            "[\"WHATEVER\",1]",
            "[\"CLOSE\",\"s\"", "[\"COUNT\",\"s\",{}]"
        ])
    func malformed(text: String) async throws {
        let stage = try await NostrRelayStage()
        let party = try await stage.join()
        try await party.say(bytes: Array(text.utf8))
        #expect(try await party.hear()?.hasPrefix("NOTICE invalid: ") == true)
        try await party.connection.send(.binary(ByteBuffer(string: "[]")))
        try await party.expect("NOTICE invalid: binary")
        // The connection lives on.
        try await party.say(.request(subscription: "s", filters: [NostrFilter()]))
        try await party.expect("EOSE s")
        await stage.relay.stop()
    }

    @Test(
        "an event that is there already is a duplicate, told as this or that relay tells it",
        arguments: [true, false])
    func duplicates(isAccepted: Bool) async throws {
        let stage = try await NostrRelayStage { $0.knobs.acceptsDuplicates = isAccepted }
        let party = try await stage.join()
        let event = stage.event()
        #expect(try await party.publish(event) == "OK \(short(event.id)) true ")
        #expect(
            try await party.publish(event)
                == "OK \(short(event.id)) \(isAccepted) duplicate: already have this event")
        #expect(stage.relay.events.count == 1)
        await stage.relay.stop()
    }

    @Test(
        "of a relay list only the newest is kept, and of one second the lower id",
        arguments: [10_050, 10_002, 0, 3])
    func replaceable(kind: Int) async throws {
        let stage = try await NostrRelayStage()
        let party = try await stage.join()
        let twins = [stage.event(kind: kind, age: 5, "a"), stage.event(kind: kind, age: 5, "b")]
            .sorted { $0.id.lexicographicallyPrecedes($1.id) }
        let (newer, older) = (stage.event(kind: kind), stage.event(kind: kind, age: 9))
        for (event, kept) in [
            (older, older), (twins[1], twins[1]), (twins[0], twins[0]), (twins[1], twins[0]),
            (newer, newer), (older, newer)
        ] {
            #expect(try await party.publish(event)?.hasPrefix("OK \(short(event.id)) true") == true)
            #expect(stage.relay.events.map(\.id) == [kept.id])
        }
        _ = try await party.publish(stage.event(kind: kind, by: stage.bob))
        #expect(stage.relay.events.count == 2)
        await stage.relay.stop()
    }

    @Test("an ephemeral event is passed on and not kept") func ephemeral() async throws {
        let stage = try await NostrRelayStage()
        let party = try await stage.join()
        try await party.say(.request(subscription: "s", filters: [NostrFilter(kinds: [20_001])]))
        try await party.expect("EOSE s")
        let event = stage.event(kind: 20_001)
        try await party.say(.event(event))
        try await party.expect("OK \(short(event.id)) true ", "EVENT s \(short(event.id))")
        #expect(stage.relay.events.isEmpty)
        await stage.relay.stop()
    }

    @Test("a limit gives the newest, each filter its own; none of 0 and no more than the relay's own")
    func limits() async throws {
        let stage = try await NostrRelayStage { $0.eventsOfRequest = 3 }
        let party = try await stage.join()
        let events = (0..<5).map { stage.event(kind: $0 == 4 ? 2 : 1, age: Int64(10 * $0)) }
        for event in events.shuffled() { _ = try await party.publish(event) }
        let ids = events.map { short($0.id) }
        let rows: [([NostrFilter], [Int])] = [
            ([NostrFilter(limit: 2)], [0, 1]), ([NostrFilter(limit: 0)], []), ([NostrFilter()], [0, 1, 2]),
            ([NostrFilter(limit: 100)], [0, 1, 2]),
            ([NostrFilter(kinds: [2], limit: 1), NostrFilter(kinds: [1], limit: 1)], [0, 4]),
            ([NostrFilter(since: stage.now - 20, until: stage.now - 10)], [1, 2]),
            ([NostrFilter(since: stage.now - 9)], [0]), ([NostrFilter(until: stage.now - 40)], [4]),
            ([NostrFilter(ids: [events[3].id]), NostrFilter(ids: [events[3].id])], [3]),
            ([NostrFilter(authors: [stage.bob.publicKey.bytes])], [])
        ]
        for (filters, wanted) in rows {
            try await party.say(.request(subscription: "s", filters: filters))
            for index in wanted { try await party.expect("EVENT s \(ids[index])") }
            try await party.expect("EOSE s")
        }
        await stage.relay.stop()
    }

    @Test("what is kept is bounded by number and by bytes, the oldest arrivals going first") func bounds()
        async throws
    {
        let few = try await NostrRelayStage { $0.storedEvents = 2 }
        let events = [few.event("1"), few.event(age: 50, "2"), few.event(age: 20, "3")]
        events.forEach(few.relay.inject)
        #expect(few.relay.events.map(\.id) == [events[2].id, events[1].id])
        await few.relay.stop()
        let small = try await NostrRelayStage { $0.storedBytes = 2_000 }
        for number in 0..<20 {
            small.relay.inject(small.event(String(repeating: "x", count: 300) + "\(number)"))
        }
        #expect((1...3).contains(small.relay.events.count))
        await small.relay.stop()
    }

    @Test("a message above the relay's bound ends the connection with 1009, and subscriptions are counted")
    func clientBounds() async throws {
        let stage = try await NostrRelayStage {
            $0.messageBytes = 1_000
            $0.subscriptions = 2
        }
        let party = try await stage.join()
        for (name, answer) in [
            ("a", "EOSE a"), ("b", "EOSE b"), ("c", "CLOSED c error: too many subscriptions"),
            ("b", "EOSE b")
        ] {
            try await party.say(.request(subscription: name, filters: [NostrFilter()]))
            try await party.expect(answer)
        }
        try await party.say(bytes: [UInt8](repeating: 0x20, count: 1_001))
        try await party.expect(nil)
        await stage.relay.stop()
    }

    @Test("the relay's document tells its limits, and only who asks for it gets it") func document()
        async throws
    {
        let stage = try await NostrRelayStage(isSecure: true) {
            $0.messageBytes = 65_536
            $0.knobs.authentication = .onDemand
        }
        let port = try #require(stage.relay.port)
        let answer = try await PlainClient.ask(
            port: port, trusting: stage.authority, .GET, "/", headers: [("accept", "application/nostr+json")])
        #expect(answer.status == 200)
        #expect(answer.header("content-type") == "application/nostr+json")
        let limitation = answer.tree?["limitation"]
        #expect(limitation?["max_message_length"]?.integer == 65_536)
        #expect(limitation?["auth_required"]?.flag == true)
        #expect(answer.tree?["supported_nips"]?.items?.compactMap(\.integer) == [1, 11, 42])
        let plain = try await PlainClient.ask(port: port, trusting: stage.authority, .GET, "/")
        #expect(plain.status == 200)
        #expect(plain.header("content-type") == "text/plain")
        let post = try await PlainClient.ask(port: port, trusting: stage.authority, .POST, "/")
        #expect(post.status == 405)
        await stage.relay.stop()
    }
}
