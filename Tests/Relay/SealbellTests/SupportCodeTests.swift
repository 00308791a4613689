import Primitives
import PushModel
import Testing

@testable import RelayProgram

@Suite("What a person reads and types")
struct SupportCodeTests {
    private static let token = Secret(String(repeating: "0af9", count: 16).utf8)

    @Test("A code is read as it is written, and as people write it")
    func reads() throws {
        let code = SupportCode(token: Self.token, day: 20_833)
        #expect(code.text == "ETWD-9Y57-EMEN")
        for text in ["ETWD-9Y57-EMEN", "etwd9y57emen", " etwd 9y57 emen "] {
            #expect(SupportCode(text) == code, "\(text)")
        }
        #expect(SupportCode("OIL0-0000-0000") == SupportCode("0110-0000-0000"))
        for text in [
            "", "ETWD-9Y57-EME", "ETWD-9Y57-EMENE", "ETWD-9Y57-EMEU", "ETWD_9Y57-EMEN", "ÉTWD-9Y57-EMEN"
        ] {
            #expect(SupportCode(text) == nil, "\(text)")
        }
    }

    @Test("It counts on its day and on the three after that, and no day's code is another's")
    func days() {
        let now = UnixTime(seconds: 20_833 * 86_400 + 86_399)
        for back in 0..<4 as Range<UInt32> {
            let code = SupportCode(token: Self.token, day: 20_833 - back)
            #expect(code.day(at: now) == 20_833 - back)
        }
        let old = SupportCode(token: Self.token, day: 20_829)
        #expect(SupportCode(token: Self.token, day: old.day(at: now)) != old)
        let all = (0..<400 as Range<UInt32>).map { SupportCode(token: Self.token, day: $0) }
        #expect(Set(all).count == 400)
        #expect(all.allSatisfy { SupportCode($0.text) == $0 })
        #expect(all[1].day(at: UnixTime(seconds: 0)) == 0, "before there was such a day")
    }

    @Test("Times of an operator, in UTC")
    func times() {
        let now = UnixTime(seconds: 1_800_000_000)
        #expect(TimeWord.read("90m", at: now) == now - .seconds(5_400))
        #expect(TimeWord.read("36h", at: now) == now - .seconds(36 * 3_600))
        #expect(TimeWord.read("3d", at: now) == now - .seconds(3 * 86_400))
        for (text, shown) in [
            ("2026-11-27", "2026-11-27T00:00:00.000Z"), ("2026-11-27T09:05", "2026-11-27T09:05:00.000Z"),
            ("2024-02-29", "2024-02-29T00:00:00.000Z"), ("1970-01-01", "1970-01-01T00:00:00.000Z"),
            ("2000-03-01", "2000-03-01T00:00:00.000Z")
        ] { #expect(TimeWord.read(text, at: now).map { timestamp($0) } == shown, "\(text)") }
        for text in [
            "", "h", "-1h", "1w", "yesterday", "2026-13-01", "2026-1-1", "2026-11-27T9:00",
            "2026-11-27T24:00", "2026-11-27T", "2026-11-27T09:00Z", "99999999999999999999d", "1969-12-31",
            "2026-02-31", "2026-11-27T23:60", "+026-11-27", " 026-11-27"
        ] { #expect(TimeWord.read(text, at: now) == nil, "\(text)") }
    }
}
