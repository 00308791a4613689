import Synchronization
package import WireFormats

/// One case of a vector file, as an argument of a test. It describes itself.
package struct VectorCase: Sendable, CustomStringConvertible {
    package let section: String
    /// Its list within the section; empty for a section's only list.
    package let part: String
    package let name: String
    package let row: JSONValue
    /// How many rows it contains: more than one if they share a relay.
    package let rows: Int

    package var description: String { (part.isEmpty ? section : section + "/" + part) + " " + name }

    /// Whether all texts agree on it, so that it binds us.
    package var isFirm: Bool { row["firm"]?.bool != false }

    package init(_ section: String, part: String = "", name: String, row: JSONValue, rows: Int = 1) {
        (self.section, self.part, self.name, self.row, self.rows) = (section, part, name, row, rows)
    }

    /// A case for each element of a list, or for each member of an object.
    package static func each(
        of value: JSONValue?, _ section: String, part: String = ""
    ) -> [VectorCase] {
        if let members = value?.object?.members {
            return members.map { VectorCase(section, part: part, name: $0.name, row: $0.value) }
        }
        return (value?.array ?? []).enumerated().map { index, row in
            VectorCase(section, part: part, name: name(of: row, index), row: row)
        }
    }

    /// Its place in the list, and its name or first description in the file.
    private static func name(of row: JSONValue, _ index: Int) -> String {
        let words = ["name", "mutation", "value", "do", "format", "box"].lazy.compactMap { row[$0]?.string }
        return words.first.map { "\(index + 1): \($0)" } ?? "\(index + 1)"
    }
}

/// The cases of one vector file. After the last case of a section it prints the section's line: `vectors
/// toy/development notify 45/45`.
package final class VectorSet: Sendable {
    /// Protocol and set: `toy/development`.
    package let title: String
    package let cases: [VectorCase]
    private let tallies: Mutex<[String: Tally]>

    private struct Tally {
        var passed = 0
        var run = 0
        var total = 0
    }

    package init(_ title: String, _ cases: [VectorCase]) {
        self.title = title
        self.cases = cases
        var tallies: [String: Tally] = [:]
        for vector in cases { tallies[vector.section, default: Tally()].total += vector.rows }
        self.tallies = Mutex(tallies)
    }

    /// Those of these sections that have no case.
    package func lacks(_ sections: [String]) -> [String] {
        sections.filter { section in !cases.contains { $0.section == section } }
    }

    /// Runs one case. A case that is not firm may differ: that is printed, and it counts as passed.
    ///
    /// - Parameter body: how many of its rows hold.
    /// - Returns: whether all hold.
    package func run(
        _ vector: VectorCase, _ body: (VectorCase) async throws -> Int
    ) async throws -> Bool {
        var passed = 0
        defer { note(vector, passed) }
        do {
            passed = try await body(vector)
            if passed == vector.rows || vector.isFirm { return passed == vector.rows }
            VectorFile.say("  differs where texts do: \(vector)")
        } catch {
            if vector.isFirm { throw error }
            VectorFile.say("  differs where texts do: \(vector): \(error)")
        }
        passed = vector.rows
        return true
    }

    private func note(_ vector: VectorCase, _ passed: Int) {
        let tally = tallies.withLock { tallies in
            tallies[vector.section, default: Tally()].passed += passed
            tallies[vector.section, default: Tally()].run += vector.rows
            return tallies[vector.section, default: Tally()]
        }
        guard tally.run == tally.total else { return }
        VectorFile.say("vectors \(title) \(vector.section) \(tally.passed)/\(tally.total)")
    }
}
