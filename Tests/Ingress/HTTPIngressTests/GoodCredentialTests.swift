import PushModel
import PushTesting
import Testing

@testable import HTTPIngress

@Suite("Which credentials were good")
struct GoodCredentialTests {
    private let calls = FailedCalls(perMinute: 10, world: ManualClock().world(seed: 1))

    @Test("Good is what one client has shown to one face, byte for byte")
    func good() throws {
        let (one, other) = (try #require(ConfiguredName("main")), try #require(ConfiguredName("other")))
        let client = ClientKey(1)
        // Lengths around whole words, and one byte changed at each place.
        for length in 1...40 {
            let shown = String(repeating: "a", count: length)
            calls.note(200, of: client, one, shown)
            #expect(calls.isGood(client, one, shown))
            #expect(!calls.isGood(ClientKey(2), one, shown))
            #expect(!calls.isGood(client, other, shown))
            for place in 0..<length {
                let bytes = (0..<length).map { UInt8($0 == place ? 0x62 : 0x61) }
                #expect(!calls.isGood(client, one, String(decoding: bytes, as: UTF8.self)))
            }
        }
        #expect(!calls.isGood(client, one, String(repeating: "a", count: 41)))
        #expect(!calls.isGood(client, one, ""))
        #expect(!calls.isGood(client, one, nil))
    }

    @Test("What is refused later is good no more")
    func refused() throws {
        let face = try #require(ConfiguredName("main"))
        calls.note(200, of: ClientKey(1), face, "Basic x")
        calls.note(500, of: ClientKey(1), face, "Basic x")
        #expect(calls.isGood(ClientKey(1), face, "Basic x"))
        calls.note(401, of: ClientKey(1), face, "Basic x")
        #expect(!calls.isGood(ClientKey(1), face, "Basic x"))
    }
}
