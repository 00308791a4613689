import MarmotPush
import PushModel
import PushTesting
import Secp256k1Keys
import Testing

@Suite("What is remembered of servers and relays")
struct RelayListCacheTests {
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
            var cache = RelayListCache()
            #expect(cache.isDue(server, isDoubted: false, at: Self.now))
            cache.note(list, isAnswered: isAnswered, of: server, at: Self.now)
            #expect(!cache.isDue(server, isDoubted: false, at: Self.now + life - .milliseconds(1)))
            #expect(cache.isDue(server, isDoubted: false, at: Self.now + life))
            #expect(cache.isDue(server, isDoubted: false, at: Self.now - .seconds(1)), "a clock set back")
        }
    }

    @Test("What led nowhere is doubted after a minute, and not sooner")
    func doubt() throws {
        var cache = RelayListCache()
        cache.note(try list([], at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        #expect(!cache.isDue(pair.publicKey, isDoubted: true, at: Self.now + .seconds(59)))
        #expect(cache.isDue(pair.publicKey, isDoubted: true, at: Self.now + .seconds(60)))
    }

    @Test("An older list, or none, takes nothing away")
    func rollback() throws {
        let server = pair.publicKey
        var cache = RelayListCache()
        cache.note(try list(["wss://new.example"], at: 20), isAnswered: true, of: server, at: Self.now)
        cache.note(try list(["wss://old.example"], at: 10), isAnswered: true, of: server, at: Self.now)
        #expect(cache.list(of: server)?.relays == ["wss://new.example"])
        cache.note(nil, isAnswered: true, of: server, at: Self.now)
        #expect(cache.list(of: server)?.relays == ["wss://new.example"])
        cache.note(try list(["wss://newer.example"], at: 30), isAnswered: true, of: server, at: Self.now)
        #expect(cache.list(of: server)?.relays == ["wss://newer.example"])
    }

    @Test("Servers that somebody made up push out no list that is known")
    func bound() throws {
        var cache = RelayListCache()
        cache.note(try list(["wss://a.example"], at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        for step in 1...200 {
            cache.note(
                nil, isAnswered: false, of: Secp256k1KeyPair.generate(.live).publicKey,
                at: Self.now + .seconds(step))
        }
        #expect(cache.entries.count == MarmotLimits.rememberedServers)
        #expect(cache.list(of: pair.publicKey) != nil)
        for step in 0..<1_000 { cache.note(nil, ofRelay: "wss://\(step).example", at: Self.now) }
        #expect(cache.document(of: "wss://999.example", at: Self.now) != nil)
        #expect(cache.document(of: "wss://0.example", at: Self.now) == nil)
    }

    @Test("A list of more than 16 KiB counts as none")
    func longList() throws {
        var cache = RelayListCache()
        let long = (0..<40).map { "wss://\(String(repeating: "a", count: 500))\($0).example" }
        cache.note(try list(long, at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        #expect(cache.list(of: pair.publicKey) == nil)
    }

    @Test("What is kept comes back, and what was changed in it does not")
    func keeping() throws {
        var cache = RelayListCache()
        let other = Secp256k1KeyPair.generate(.live)
        cache.note(try list(["wss://a.example"], at: 1), isAnswered: true, of: pair.publicKey, at: Self.now)
        cache.note(nil, isAnswered: true, of: other.publicKey, at: Self.now)
        let kept = cache.encoded()
        let again = RelayListCache(keeping: kept)
        #expect(again.entries.count == 1 && again.list(of: pair.publicKey)?.relays == ["wss://a.example"])
        #expect(!again.isDue(pair.publicKey, isDoubted: false, at: Self.now + .seconds(60)))
        #expect(again.isDue(pair.publicKey, isDoubted: false, at: Self.now + .seconds(86_400)))

        let text = kept.reveal { String(decoding: $0, as: UTF8.self) }
        let forged = text.replacing("wss://a.example", with: "wss://b.example")
        #expect(forged != text)
        #expect(RelayListCache(keeping: Secret(forged.utf8)).entries.isEmpty)
        for end in stride(from: 0, to: text.utf8.count, by: 7) {
            #expect(RelayListCache(keeping: Secret(Array(text.utf8.prefix(end)))).entries.isEmpty)
        }
    }
}
