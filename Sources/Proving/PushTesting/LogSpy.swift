package import PushModel

/// A journal that a test can read: every event as one line of text, as a log would show it.
package final class LogSpy: Sendable {
    private let lines = Noted<[String]>([])

    package init() {}

    package var journal: Journal {
        Journal { level, event, fields in
            let pairs = fields.map { " \($0.0.rawValue)=\($0.1.logText)" }.joined()
            self.lines.change { $0.append("\(level.rawValue) \(event)\(pairs)") }
        }
    }

    /// Everything noted so far, in order.
    package var text: [String] { lines.value }
    /// Whether any line contains the text.
    package func contains(_ part: String) -> Bool { text.contains { $0.contains(part) } }
    /// Returns once this many lines contain the text, or when the test has run out of time or of patience.
    package func until(
        _ count: Int = 1, contain part: String, file: String = #fileID, line: Int = #line
    ) async {
        await lines.until(for: "line \(count) with “\(part)”", file: file, line: line) { lines in
            lines.count { $0.contains(part) } >= count
        }
    }
}
