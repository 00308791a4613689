/// A value that may be logged. Granted type by type; never to `String`.
package protocol LogSafe: Sendable { var logText: String { get } }

extension Int: LogSafe { package var logText: String { String(self) } }
extension Int64: LogSafe { package var logText: String { String(self) } }
extension Bool: LogSafe { package var logText: String { self ? "true" : "false" } }
extension Duration: LogSafe { package var logText: String { "\(wholeMilliseconds)ms" } }
extension ConfiguredName: LogSafe { package var logText: String { text } }
extension LaneName: LogSafe { package var logText: String { description } }
extension PushService: LogSafe { package var logText: String { name } }
extension OutcomeKind: LogSafe { package var logText: String { label } }
extension Reason: LogSafe { package var logText: String { rawValue } }
extension NoteCode: LogSafe { package var logText: String { text } }

/// An error by its code alone.
package struct ErrorCode: LogSafe, Hashable {
    package let logText: String
    package init(_ error: some PushError) { logText = error.codeText }
    package init(_ code: StaticString) { logText = "\(code)" }
}

/// Names of logged fields.
package enum LogKey: String, Sendable, CaseIterable {
    case lane, app, instance, listener, service, reason, outcome, code, count, rows, bytes, status, attempt
    case after, pid, port, version, note, credential, seconds, alert, relay, store, configuration, url,
        sentence, cause, way, registration
}

package enum LogLevel: String, Sendable, CaseIterable { case debug, info, warning, error }

/// Where events go. The event's name is static text, so it can carry no value.
package struct Journal: Sendable {
    private let sink: @Sendable (LogLevel, StaticString, [(LogKey, any LogSafe)]) -> Void

    package init(_ sink: @escaping @Sendable (LogLevel, StaticString, [(LogKey, any LogSafe)]) -> Void) {
        self.sink = sink
    }

    package static let silent = Journal { _, _, _ in }

    package func note(
        _ event: StaticString, _ fields: KeyValuePairs<LogKey, any LogSafe> = [:], level: LogLevel = .info
    ) {
        sink(level, event, fields.map { ($0.key, $0.value) })
    }

    /// The same with fields that were put together before.
    package func note(_ event: StaticString, _ fields: [(LogKey, any LogSafe)], level: LogLevel = .info) {
        sink(level, event, fields)
    }

    /// The same journal, of which `look` sees every event first, whatever its level.
    package func watched(
        by look: @escaping @Sendable (StaticString, [(LogKey, any LogSafe)]) -> Void
    ) -> Journal {
        Journal { [sink] level, event, fields in
            look(event, fields)
            sink(level, event, fields)
        }
    }
}
