/// One figure, of each round.
///
/// A ratio is the median of the ratios of single rounds, so that a machine that grows slower meanwhile says
/// nothing about it.
struct Series: Sendable {
    /// In the order of the rounds.
    let values: [Double]

    init(_ values: [Double]) { self.values = values }

    /// The middle one, or between the middle two. Of no rounds it is no number.
    var median: Double {
        guard !values.isEmpty else { return .nan }
        let (sorted, middle) = (values.sorted(), values.count / 2)
        return values.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    /// How far the largest lies from the smallest, beside the median.
    var spread: Double { ((values.max() ?? 0) - (values.min() ?? 0)) / median }

    static func + (first: Series, second: Series) -> Series { both(first, second, +) }
    static func - (first: Series, second: Series) -> Series { both(first, second, -) }
    static func / (first: Series, second: Series) -> Series { both(first, second, /) }
    static func / (series: Series, number: Double) -> Series { Series(series.values.map { $0 / number }) }

    private static func both(_ first: Series, _ second: Series, _ of: (Double, Double) -> Double) -> Series {
        Series(zip(first.values, second.values).map(of))
    }
}

extension BenchReport {
    /// How many fit into a second, by the median of what one takes in seconds.
    mutating func add(_ name: String, perSecond seconds: Series) {
        add("\(name)_per_second", Int(exactly: (1 / seconds.median).rounded(.down)) ?? 0)
    }

    /// The median of what takes seconds, in microseconds.
    mutating func add(_ name: String, microseconds seconds: Series, digits: Int) {
        add("\(name)_microseconds", seconds.median * 1e6, digits: digits)
    }

    /// The median, and in a row of its own how far the rounds lie apart.
    mutating func add(_ name: String, ratio: Series) {
        add(name, ratio.median)
        add("\(name)_spread", ratio.spread)
    }
}
