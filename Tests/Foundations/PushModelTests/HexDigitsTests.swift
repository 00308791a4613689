import PushModel
import Testing

@Suite struct HexDigitsTests {
    private static let digits = Set("0123456789abcdefABCDEF".utf8)
    private static let capitals = Set("ABCDEF".utf8)

    @Test("Every byte is judged in every place, whatever its neighbours are", arguments: [7, 8, 9, 17])
    func everyByte(length: Int) {
        for place in 0..<length {
            for byte in UInt8.min...UInt8.max {
                for neighbour in "09afAF".utf8 {
                    var bytes = [UInt8](repeating: neighbour, count: length)
                    bytes[place] = byte
                    bytes.withUnsafeBytes { raw in
                        #expect(HexDigits.areAll(raw) == Self.digits.contains(byte))
                        let hasCapitals = raw.contains(where: Self.capitals.contains)
                        // A byte that is no digit may be taken for one.
                        #expect(HexDigits.mayHaveCapitals(raw) == hasCapitals || !hasCapitals && byte >= 0x80)
                    }
                }
            }
        }
    }

    @Test("Nothing is all digits, and has no capitals")
    func nothing() {
        [UInt8]().withUnsafeBytes { raw in
            #expect(HexDigits.areAll(raw) && !HexDigits.mayHaveCapitals(raw))
        }
    }

    @Test("A token has one spelling, and what is no number stays as it is")
    func canonical() {
        for (token, expected) in [
            ("00ffAB12cd34EF56789", "00ffab12cd34ef56789"), ("00ffab12cd34ef56789", "00ffab12cd34ef56789"),
            ("00ffAB12cd34EF5678x", "00ffAB12cd34EF5678x"), ("AB", "ab"), ("", "")
        ] {
            #expect(APNsMessage.canonical(Secret(token.utf8)) == Secret(expected.utf8))
        }
    }
}
