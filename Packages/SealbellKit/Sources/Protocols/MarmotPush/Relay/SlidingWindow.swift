/// How often something happened within the span that ends now, in eight slots. The oldest slot is dropped as
/// a whole, so the window is up to an eighth shorter than the span.
///
/// Times are milliseconds of a monotonic clock since some fixed moment.
struct SlidingWindow<Count: FixedWidthInteger & UnsignedInteger & SIMDScalar & Sendable>: Sendable
where Count.SIMD8Storage: Sendable {
    private static var slots: Int64 { 8 }
    private var counts = SIMD8<Count>()
    private var newest: Int64 = 0

    func count(at now: Int64, span: Int64) -> Int {
        let slot = max(now / (span / Self.slots), newest)
        var sum = 0
        for age in 0..<Self.slots where newest - age > slot - Self.slots && newest >= age {
            sum += Int(counts[Int((newest - age) % Self.slots)])
        }
        return sum
    }

    mutating func add(at now: Int64, span: Int64) {
        let slot = max(now / (span / Self.slots), newest)
        if slot - newest >= Self.slots {
            counts = SIMD8()
        } else if slot > newest {
            for passed in (newest + 1)...slot { counts[Int(passed % Self.slots)] = 0 }
        }
        newest = slot
        // Saturates: no rule needs larger numbers.
        let at = Int(slot % Self.slots)
        if counts[at] < Count.max { counts[at] += 1 }
    }

    /// Takes the latest one back.
    mutating func remove() {
        for age in 0..<min(Self.slots, newest + 1) {
            let at = Int((newest - age) % Self.slots)
            if counts[at] > 0 {
                counts[at] -= 1
                return
            }
        }
    }
}

/// One budget: a window of a minute and one of an hour.
struct Budget<Count: FixedWidthInteger & UnsignedInteger & SIMDScalar & Sendable>: Sendable
where Count.SIMD8Storage: Sendable {
    private static var minute: Int64 { 60_000 }
    private static var hour: Int64 { 3_600_000 }
    private var lastMinute = SlidingWindow<Count>()
    private var lastHour = SlidingWindow<Count>()

    func isSpent(_ rule: RateRule, at now: Int64) -> Bool {
        (rule.perMinute > 0 && lastMinute.count(at: now, span: Self.minute) >= rule.perMinute)
            || (rule.perHour > 0 && lastHour.count(at: now, span: Self.hour) >= rule.perHour)
    }

    /// Whether both windows are empty.
    func isIdle(at now: Int64) -> Bool { lastHour.count(at: now, span: Self.hour) == 0 }

    /// False if nothing is left; then nothing was charged.
    mutating func charge(_ rule: RateRule, at now: Int64) -> Bool {
        guard !isSpent(rule, at: now) else { return false }
        lastMinute.add(at: now, span: Self.minute)
        lastHour.add(at: now, span: Self.hour)
        return true
    }

    mutating func refund() {
        lastMinute.remove()
        lastHour.remove()
    }
}
