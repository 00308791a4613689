/// One small graph of the last hour, as SVG with its figures beside it as text. Nothing of it needs a script.
struct DashboardGraph {
    struct Curve {
        let name: String
        /// Values by their age in seconds, oldest first; `nil`: unknown, which leaves a gap.
        let points: [(age: Double, value: Double?)]
    }

    /// Samples that are further apart are not joined: nobody looked meanwhile.
    private static let gapSeconds: Double = 95
    private static let (width, height): (Double, Double) = (360, 96)
    private static let hour: Double = 3_600

    let title: String
    /// One or two; the first has its area shaded.
    let curves: [Curve]
    let unit: (Double) -> String

    var html: String {
        let most = curves.flatMap(\.points).compactMap(\.value).max() ?? 0
        let top = Self.ceiling(most)
        let now = curves.map { ($0.name, $0.points.last?.value.map(unit) ?? "–") }
        let figures = now.enumerated().map { index, curve in
            let value = PageText.escaped(curve.1)
            return "<span class=\"k\(index)\">\(PageText.escaped(curve.0)) <b>\(value)</b></span>"
        }.joined()
        let heading = "<h3>\(PageText.escaped(title))</h3>"
        let words = now.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
        let label = PageText.escaped("\(title): \(words) now, \(unit(most)) at most in the last hour")
        let lines = curves.enumerated().map { index, curve in
            (index == 0 ? "<path class=\"area\" d=\"\(path(curve, top, closed: true))\"/>" : "")
                + "<path class=\"c\(index)\" d=\"\(path(curve, top, closed: false))\"/>"
        }
        return """
            <figure class="card"><figcaption>\(heading)\(figures)</figcaption>
            <svg viewBox="0 0 360 96" preserveAspectRatio="none" role="img" aria-label="\(label)">
            <path class="grid" d="M0 1H360M0 48H360M0 95H360"/>\(lines.joined())</svg>
            <div class="axis"><span>1 h ago</span><span>top \(PageText.escaped(unit(top)))</span>
            <span>now</span></div></figure>

            """
    }

    /// The next 1, 2 or 5 with zeros that is no less, so that the scale does not move with every sample.
    static func ceiling(_ value: Double) -> Double {
        guard value.isFinite, value > 0 else { return 1 }
        var step = 0.000_001
        // Ends: the step grows tenfold, and values are bounded.
        while step < 1e15 {
            for factor in [1.0, 2.0, 5.0] where step * factor >= value { return step * factor }
            step *= 10
        }
        return value
    }

    private func path(_ curve: Curve, _ top: Double, closed: Bool) -> String {
        var runs: [[(x: Double, y: Double)]] = [[]]
        var last: Double?
        for (age, value) in curve.points where age >= 0 && age <= Self.hour {
            guard let value, value.isFinite else {
                runs.append([])
                continue
            }
            if let last, last - age > Self.gapSeconds { runs.append([]) }
            last = age
            let share = min(max(value / top, 0), 1)
            runs[runs.count - 1].append(
                (Self.width * (1 - age / Self.hour), Self.height - 2 - share * (Self.height - 4)))
        }
        return runs.filter { !$0.isEmpty }.map { run in
            var text = ""
            for (index, point) in run.enumerated() {
                text += "\(index == 0 ? "M" : "L")\(Self.tenths(point.x)) \(Self.tenths(point.y))"
            }
            // One sample alone is a point.
            if run.count == 1 { text += "h.1" }
            guard closed, let first = run.first, let end = run.last else { return text }
            return text + "L\(Self.tenths(end.x)) 95L\(Self.tenths(first.x)) 95Z"
        }.joined()
    }

    private static func tenths(_ value: Double) -> String {
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
}

extension DashboardGraph {
    /// The graphs of an hour's samples.
    ///
    /// - Parameter now: the right edge.
    static func all(_ samples: [FigureSample], now: ContinuousClock.Instant) -> [DashboardGraph] {
        func curve(_ name: String, _ value: (FigureSample) -> Double?) -> Curve {
            Curve(name: name, points: samples.map { (age: (now - $0.at) / Duration.seconds(1), value($0)) })
        }
        func perMinute(_ count: Int64, _ sample: FigureSample) -> Double {
            Double(count) * 60 / max(sample.seconds, 0.001)
        }
        return [
            DashboardGraph(
                title: "Pushes a minute",
                curves: [
                    curve("accepted") { perMinute($0.accepted, $0) },
                    curve("not accepted") { perMinute($0.refused, $0) }
                ], unit: PageText.number),
            DashboardGraph(
                title: "Until accepted",
                curves: [
                    curve("median") { $0.delivery?.median }, curve("95 %") { $0.delivery?.slow }
                ], unit: PageText.latency),
            DashboardGraph(
                title: "Owed pushes", curves: [curve("owed") { $0.owed.map { Double($0) } }],
                unit: PageText.number),
            DashboardGraph(
                title: "Calls a minute",
                curves: [
                    curve("all") { perMinute($0.calls, $0) },
                    curve("failed (5xx)") { perMinute($0.failedCalls, $0) }
                ], unit: PageText.number),
            DashboardGraph(
                title: "Until answered",
                curves: [
                    curve("median") { $0.answering?.median }, curve("95 %") { $0.answering?.slow }
                ], unit: PageText.latency),
            DashboardGraph(
                title: "Memory",
                curves: [curve("resident") { $0.residentBytes.map { Double($0) / 1_048_576 } }],
                unit: { "\(PageText.number($0)) MiB" })
        ]
    }
}
