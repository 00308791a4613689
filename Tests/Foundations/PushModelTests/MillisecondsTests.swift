import PushModel
import Testing

@Suite struct MillisecondsTests {
    /// The definition, by the parts that the standard library gives.
    private static func divided(_ span: Duration) -> Int64 {
        let (seconds, attoseconds) = span.components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }

    @Test("A span's whole milliseconds are rounded toward zero, at every size and on either side of it")
    func rounded() {
        var generator = SystemRandomNumberGenerator()
        // As many seconds as 64 bits of milliseconds hold; a week has 20 bits.
        for bits in 0...52 {
            for _ in 0..<50 {
                let most = Int64(1) << Int64(bits)
                let span = Duration(
                    secondsComponent: .random(in: -most...most, using: &generator),
                    attosecondsComponent: .random(
                        in: -999_999_999_999_999_999...999_999_999_999_999_999, using: &generator))
                #expect(span.wholeMilliseconds == Self.divided(span), "\(span)")
            }
        }
        for seconds: Int64 in [0, 1, -1, 604_462, 604_463, -604_462, -604_463] {
            for rest: Int64 in [0, 1, 999_999_999_999_999, 1_000_000_000_000_000] {
                for sign: Int64 in [1, -1] {
                    let span = Duration(secondsComponent: seconds, attosecondsComponent: rest * sign)
                    #expect(span.wholeMilliseconds == Self.divided(span), "\(span)")
                }
            }
        }
    }

    @Test("A span of more milliseconds than there are saturates")
    func saturated() {
        #expect(Duration.seconds(Int64.max).wholeMilliseconds == .max)
        #expect(Duration.seconds(Int64.min).wholeMilliseconds == .min)
        #expect(Duration.milliseconds(Int64.max).wholeMilliseconds == .max)
        #expect(Duration.milliseconds(Int64.min).wholeMilliseconds == .min)
        #expect((UnixTime(milliseconds: 5) + .seconds(Int64.max)).milliseconds == .max)
    }

    @Test("A span doubles up to its bound, and its random parts go from nothing to the whole")
    func waits() {
        let (base, cap) = (Duration.seconds(1), Duration.seconds(60))
        let spans = (-1...7).map { base.doubled($0, atMost: cap) }
        #expect(spans == [1, 1, 2, 4, 8, 16, 32, 60, 60].map { .seconds($0) })
        #expect(base.doubled(.max, atMost: cap) == cap)
        #expect(cap.part(0) == .zero && cap.part(1 << 63) == .seconds(30))
        #expect(cap.part(.max) < cap && cap.part(.max) > .milliseconds(59_999))
    }
}
