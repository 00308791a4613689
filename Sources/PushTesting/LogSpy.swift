package import PushModel
import Synchronization

/// A journal that a test can read: every event as one line of text, as a log would show it.
package final class LogSpy: Sendable {
    private let lines = Mutex<[String]>([])

    package init() {}

    package var journal: Journal {
        Journal { level, event, fields in
            let pairs = fields.map { " \($0.0.rawValue)=\($0.1.logText)" }.joined()
            self.lines.withLock { $0.append("\(level.rawValue) \(event)\(pairs)") }
        }
    }

    /// Everything noted so far, in order.
    package var text: [String] { lines.withLock { $0 } }
    /// Whether any line contains the text.
    package func contains(_ part: String) -> Bool { text.contains { $0.contains(part) } }
    package func clear() { lines.withLock { $0.removeAll() } }
}
