#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import PushModel
import Synchronization

/// Where events become lines: text on a terminal, else JSON, one event a line.
///
/// Everything that reaches it is static text, or was granted `LogSafe` type by type, so there is nothing to
/// redact.
final class LogSink: Sendable {
    enum Form: Sendable, Hashable { case text, json }

    private struct State {
        var level: LogLevel
        var form: Form
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> UnixTime
    private let write: @Sendable ([UInt8]) -> Void

    /// - Parameter write: takes one whole line, with its line break.
    init(
        level: LogLevel, form: Form, now: @escaping @Sendable () -> UnixTime,
        write: @escaping @Sendable ([UInt8]) -> Void = LogSink.standardError
    ) {
        state = Mutex(State(level: level, form: form))
        self.now = now
        self.write = write
    }

    convenience init(_ log: LogConfiguration, _ facts: ProcessFacts, _ world: World) {
        self.init(level: log.level, form: Self.form(log.format, facts), now: world.now)
    }

    /// That of a command, which says everything by its shell.
    convenience init(_ log: LogConfiguration, _ shell: Shell) {
        self.init(level: log.level, form: Self.form(log.format, shell.facts), now: shell.world.now) { line in
            shell.err(String(decoding: line.dropLast(), as: UTF8.self))
        }
    }

    /// Follows a reload.
    func change(_ log: LogConfiguration, _ facts: ProcessFacts) {
        state.withLock { $0 = State(level: log.level, form: Self.form(log.format, facts)) }
    }

    var journal: Journal { Journal { [self] level, event, fields in note(level, event, fields) } }

    /// Writes a line for the person who starts or reloads the relay: as plain text if the log is text,
    /// otherwise as one event, so that a JSON log consists of JSON to its last line.
    ///
    /// - Parameter line: words of ours, of paths and names of the configuration.
    /// - Parameter fields: what the event says instead of the line as its `sentence`.
    func tell(
        _ event: StaticString, _ line: String, level: LogLevel = .info,
        _ fields: [(LogKey, any LogSafe)]? = nil
    ) {
        guard state.withLock(\.form) == .text else {
            return note(level, event, fields ?? [(.sentence, ConfiguredText(line))])
        }
        write(Array((line + "\n").utf8))
    }

    /// Each fault of a configuration.
    func tell(_ error: ConfigurationError) {
        for line in error.lines { tell("configuration fault", line, level: .error) }
    }

    /// What was found in the files that a configuration names.
    ///
    /// - Returns: whether a relay may start with them.
    func tell(_ findings: [Finding]) -> Bool {
        for finding in findings where finding.severity != .good {
            let line = "\(finding.subject): \(finding.sentence)"
            if finding.endsAStart {
                tell("configuration fault", line, level: .error)
            } else {
                tell("configuration warning", line, level: .warning)
            }
        }
        return !findings.contains(where: \.endsAStart)
    }

    private func note(_ level: LogLevel, _ event: StaticString, _ fields: [(LogKey, any LogSafe)]) {
        let state = state.withLock { $0 }
        guard level.rank >= state.level.rank else { return }
        var line =
            switch state.form {
            case .text: Self.text(now(), level, event, fields)
            case .json: Self.json(now(), level, event, fields)
            }
        line += "\n"
        write(Array(line.utf8))
    }

    private static func form(_ format: LogConfiguration.Format, _ facts: ProcessFacts) -> Form {
        switch format {
        case .auto: facts.isTerminal ? .text : .json
        case .text: .text
        case .json: .json
        }
    }

    /// `2026-11-21T10:41:11.123Z info    listener.ready listener=public port=8480`
    private static func text(
        _ time: UnixTime, _ level: LogLevel, _ event: StaticString, _ fields: [(LogKey, any LogSafe)]
    ) -> String {
        let word = level.rawValue + String(repeating: " ", count: max(0, 7 - level.rawValue.utf8.count))
        return fields.reduce("\(timestamp(time)) \(word) \(event)") { line, field in
            "\(line) \(field.0.rawValue)=\(field.1.logText)"
        }
    }

    /// `{"time":"…","level":"info","event":"listener.ready","listener":"public","port":8480}`
    private static func json(
        _ time: UnixTime, _ level: LogLevel, _ event: StaticString, _ fields: [(LogKey, any LogSafe)]
    ) -> String {
        let head =
            "{\"time\":\"\(timestamp(time))\",\"level\":\"\(level.rawValue)\",\"event\":\(quoted("\(event)"))"
        return fields.reduce(head) { line, field in
            let isBare = field.1 is Int || field.1 is Int64 || field.1 is Bool
            return "\(line),\"\(field.0.rawValue)\":\(isBare ? field.1.logText : quoted(field.1.logText))"
        } + "}"
    }

    private static func quoted(_ text: String) -> String {
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": out += "\\\(scalar)"
            case "\0"..<" ", "\u{7F}": out += "?"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    /// Writes to standard error. A line that the system does not take is lost, because there is no other
    /// place to report it.
    static let standardError: @Sendable ([UInt8]) -> Void = { line in
        // The journal must never end the process, so the fault has nowhere to go.
        try? writeAll(STDERR_FILENO, line)
    }
}

extension LogLevel {
    /// From the quietest on.
    var rank: Int {
        switch self {
        case .debug: 0
        case .info: 1
        case .warning: 2
        case .error: 3
        }
    }
}

/// `2026-11-21T10:41:11.123Z`, for years 1970 to 9999.
func timestamp(_ time: UnixTime) -> String {
    let milliseconds = max(0, min(time.milliseconds, 253_402_300_799_999))
    let (days, rest) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
    // Howard Hinnant's civil-from-days: the year is counted from 1 March of year 0, in eras of 400 years.
    let shifted = days + 719_468
    let (era, dayOfEra) = shifted.quotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * month + 2) / 5 + 1
    let civilMonth = month < 10 ? month + 3 : month - 9
    let year = yearOfEra + era * 400 + (civilMonth <= 2 ? 1 : 0)
    func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
    return "\(padded(year, 4))-\(padded(civilMonth, 2))-\(padded(day, 2))T\(padded(rest / 3_600_000, 2)):"
        + "\(padded(rest / 60_000 % 60, 2)):\(padded(rest / 1000 % 60, 2)).\(padded(rest % 1000, 3))Z"
}
