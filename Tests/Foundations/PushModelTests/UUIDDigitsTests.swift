import PushModel
import Testing

@Suite struct UUIDDigitsTests {
    @Test("Every half byte has its digit, in every place, and the dashes stand where they do")
    func everyDigit() {
        let digits = Array("0123456789abcdef")
        for place in 0..<32 {
            for (value, digit) in digits.enumerated() {
                // Zeros all around, or the highest digits.
                for others in [UInt64(0), .max] {
                    var halves = [others, others]
                    let shift = UInt64(60 - place % 16 * 4)
                    halves[place / 16] = others & ~(15 << shift) | UInt64(value) << shift
                    var expected = Array(repeating: others == 0 ? Character("0") : "f", count: 32)
                    expected[place] = digit
                    for dash in [8, 13, 18, 23] { expected.insert("-", at: dash) }
                    #expect(UUIDDigits.text(high: halves[0], low: halves[1]) == String(expected))
                }
            }
        }
    }
}
