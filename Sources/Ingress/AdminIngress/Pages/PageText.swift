import PushModel

/// Texts of the dashboard: figures as a person reads them, and words made safe for a page.
enum PageText {
    /// Scalar by scalar: a combining mark makes another character of a quote, which a browser still reads as
    /// a quote and a mark.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// `1 origin`, `1,200 origins`.
    static func counted(_ count: Int, _ noun: String) -> String {
        "\(grouped(count)) \(noun)\(count == 1 ? "" : "s")"
    }

    /// `1,234,567`.
    static func grouped(_ count: Int) -> String {
        var text = ""
        let digits = String(count.magnitude)
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return count < 0 ? "-\(text)" : text
    }

    /// `0.4`, `12`, `1,234`: one decimal below ten.
    static func number(_ value: Double) -> String {
        guard value.isFinite else { return "?" }
        let bounded = min(max(value, -1e15), 1e15)
        let tenths = Int((bounded * 10).rounded())
        guard abs(tenths) < 100, tenths % 10 != 0 else { return grouped(Int(bounded.rounded())) }
        return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
    }

    /// `90 s`, `12 min`, `3 h`, `4 days`.
    static func span(_ seconds: Int64) -> String {
        if seconds < 120 { return "\(seconds) s" }
        if seconds < 7200 { return "\(seconds / 60) min" }
        return seconds < 172_800 ? "\(seconds / 3600) h" : "\(seconds / 86_400) days"
    }

    /// `3 min ago`; never before now, should the clock have been set back.
    static func ago(_ time: UnixTime, _ now: UnixTime) -> String {
        "\(span(max(0, now.since(time).components.seconds))) ago"
    }

    /// `85 ms`, `1.2 s`, `12 min`.
    static func latency(_ seconds: Double) -> String {
        if seconds < 0.001 { return "<1 ms" }
        if seconds < 1 { return "\(grouped(Int((seconds * 1_000).rounded()))) ms" }
        guard seconds < 120 else { return span(Int64(min(seconds, 1e9))) }
        return "\(number(seconds)) s"
    }

    /// `900 B`, `12 KiB`, `1.5 MiB`.
    static func bytes(_ count: Int) -> String {
        if count < 1 << 10 { return "\(count) B" }
        if count < 1 << 20 { return "\(grouped(count >> 10)) KiB" }
        return count < 1 << 30
            ? "\(number(Double(count) / 1_048_576)) MiB" : "\(number(Double(count) / 1_073_741_824)) GiB"
    }

    /// `14:03:22`, of UTC.
    static func clock(_ time: UnixTime) -> String {
        let day = ((time.seconds % 86_400) + 86_400) % 86_400
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(two(day / 3600)):\(two(day / 60 % 60)):\(two(day % 60))"
    }
}
