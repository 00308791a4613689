import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@Suite("What is remembered of servers and relays")
struct RelayBookTests {
    private static let now = UnixTime(seconds: 1_800_000_000)
    private let pair = Secp256k1KeyPair.generate(.live)

    private func list(
        _ urls: [String], at seconds: Int64, by other: Secp256k1KeyPair? = nil
    ) throws -> RelayList {
        try RelayList(
            RelayList.event(
                relays: urls, at: seconds, by: other ?? pair, auxiliary: World.live.randomBytes(32)))
    }

    @Test("A list is fresh for a day, its absence for five minutes, silence for one")
    func lives() throws {
        let server = pair.publicKey
        let found = try list(["wss://a.example"], at: 1)
        for (list, isAnswered, life) in [
            (found, true, Duration.seconds(86_400)), (nil, true, .seconds(300)), (nil, false, .seconds(60))
        ] {
            var book = RelayBook()
            #expect(book.isDue(server, isDoubted: false, at: Self.now))
            book.note(list, isAnswered: isAnswered, of: server, at: Self.now)
            #expect(!book.isDue(server, isDoubted: false, at: Self.now + life - .milliseconds(1)))
            #expect(book.isDue(server, isDoubted: false, at: Self.now + life))
            #expect(book.isDue(server, isDoubted: false, at: Self.now - .seconds(1)), "a clock set back")
        }
    }

    @Test("What led nowhere is doubted after a minute, and not sooner")
    func doubt() throws {
        var book = RelayBook()
        book.note(try list([], at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        #expect(!book.isDue(pair.publicKey, isDoubted: true, at: Self.now + .seconds(59)))
        #expect(book.isDue(pair.publicKey, isDoubted: true, at: Self.now + .seconds(60)))
    }

    @Test("An older list, or none, takes nothing away")
    func rollback() throws {
        let server = pair.publicKey
        var book = RelayBook()
        book.note(try list(["wss://new.example"], at: 20), isAnswered: true, of: server, at: Self.now)
        book.note(try list(["wss://old.example"], at: 10), isAnswered: true, of: server, at: Self.now)
        #expect(book.list(of: server)?.relays == ["wss://new.example"])
        book.note(nil, isAnswered: true, of: server, at: Self.now)
        #expect(book.list(of: server)?.relays == ["wss://new.example"])
        book.note(try list(["wss://newer.example"], at: 30), isAnswered: true, of: server, at: Self.now)
        #expect(book.list(of: server)?.relays == ["wss://newer.example"])
    }

    @Test("Servers that somebody made up push out no list that is known")
    func bound() throws {
        var book = RelayBook()
        book.note(try list(["wss://a.example"], at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        for step in 1...200 {
            book.note(
                nil, isAnswered: false, of: Secp256k1KeyPair.generate(.live).publicKey,
                at: Self.now + .seconds(step))
        }
        #expect(book.entries.count == MarmotLimits.rememberedServers)
        #expect(book.list(of: pair.publicKey) != nil)
        for step in 0..<1_000 { book.note(nil, ofRelay: "wss://\(step).example", at: Self.now) }
        #expect(book.document(of: "wss://999.example", at: Self.now) != nil)
        #expect(book.document(of: "wss://0.example", at: Self.now) == nil)
    }

    @Test("A list of more than 16 KiB counts as none")
    func longList() throws {
        var book = RelayBook()
        let long = (0..<40).map { "wss://\(String(repeating: "a", count: 500))\($0).example" }
        book.note(try list(long, at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        #expect(book.list(of: pair.publicKey) == nil)
    }

    @Test("What is kept comes back, and what was changed in it does not")
    func keeping() throws {
        var book = RelayBook()
        let other = Secp256k1KeyPair.generate(.live)
        book.note(try list(["wss://a.example"], at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        book.note(nil, isAnswered: true, of: other.publicKey, at: Self.now)
        let kept = book.encoded()
        let again = RelayBook(keeping: kept)
        #expect(again.entries.count == 1 && again.list(of: pair.publicKey)?.relays == ["wss://a.example"])
        #expect(!again.isDue(pair.publicKey, isDoubted: false, at: Self.now + .seconds(60)))
        #expect(again.isDue(pair.publicKey, isDoubted: false, at: Self.now + .seconds(86_400)))

        let text = kept.reveal { String(decoding: $0, as: UTF8.self) }
        let forged = text.replacing("wss://a.example", with: "wss://b.example")
        #expect(forged != text)
        #expect(RelayBook(keeping: Secret(forged.utf8)).entries.isEmpty)
        for end in stride(from: 0, to: text.utf8.count, by: 7) {
            #expect(RelayBook(keeping: Secret(Array(text.utf8.prefix(end)))).entries.isEmpty)
        }
    }
}
