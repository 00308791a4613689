import Foundation

/// One thing that a check looked at, and what a person should do about it.
struct Finding: Sendable, Hashable, Encodable {
    enum Area: String, Sendable, Hashable, CaseIterable, Encodable {
        /// `certificates`: those that are no fault of the configuration's, for time alone has made them bad.
        case configuration, files, certificates, clock, state, keys, store, ports, relay, reach, live
    }

    enum Severity: String, Sendable, Hashable, CaseIterable, Encodable {
        case good, warning, fault
    }

    var area: Area
    /// A configuration path, a file, a host: what the sentence is about.
    var subject: String
    var severity: Severity
    var sentence: String

    // JSON keeps the member's first name.
    private enum CodingKeys: String, CodingKey { case area, subject, severity = "verdict", sentence }

    static func good(_ area: Area, _ subject: String, _ sentence: String) -> Finding {
        Finding(area: area, subject: subject, severity: .good, sentence: sentence)
    }
    static func warning(_ area: Area, _ subject: String, _ sentence: String) -> Finding {
        Finding(area: area, subject: subject, severity: .warning, sentence: sentence)
    }
    static func fault(_ area: Area, _ subject: String, _ sentence: String) -> Finding {
        Finding(area: area, subject: subject, severity: .fault, sentence: sentence)
    }

    /// `FAULT    files  listeners.public.tls.key: There is no such file.`
    var line: String { line(isStyled: false) }

    func line(isStyled: Bool) -> String {
        let word = severity == .fault ? "FAULT" : severity.rawValue
        let style: Style =
            switch severity {
            case .good: .green
            case .warning: .yellow
            case .fault: .red
            }
        func padded(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        return style.on(word, isStyled) + padded("", 9 - word.count) + padded(area.rawValue, 15)
            + "\(subject): \(sentence)"
    }
}

/// What a check found, as a whole.
struct Findings: Sendable, Encodable {
    var ok: Bool
    var findings: [Finding]

    init(_ findings: [Finding]) {
        self.findings = findings
        ok = !findings.contains { $0.severity == .fault }
    }

    /// The worst of it: configuration before what is broken here before what is out of reach.
    var status: Ending {
        let areas = Set(findings.filter { $0.severity == .fault }.map(\.area))
        if areas.contains(.configuration) || areas.contains(.files) { return .configuration }
        if !areas.isDisjoint(with: [.certificates, .clock, .state, .keys, .store, .relay, .live]) {
            return .failed
        }
        return areas.isEmpty ? .done : .unavailable
    }

    /// Prints as lines, or as one JSON object.
    func report(_ shell: Shell, json: Bool) throws {
        guard json else {
            findings.map { $0.line(isStyled: shell.isStyled) }.forEach(shell.out)
            return
        }
        shell.out(try jsonText(self))
    }
}

/// One line of JSON, its keys in order.
func jsonText(_ value: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
}
