import Testing

@Suite("Lines that may trap", .timeLimit(.minutes(30)))
struct TrapTests {
    @Test("Every line that may trap is listed with its proof, and every row has a line")
    func listed() throws {
        let rows = Traps.rows(try Tree.text("docs/traps.md"))
        #expect(rows.count > 100, "the page was not found, or has another form")
        #expect(rows.allSatisfy { $0.proof.count > 3 })
        let byPath = Dictionary(grouping: rows, by: \.path)
        var used: Set<Traps.Row> = []
        var missing: [String] = []
        // Simulators, benches and the test kit never serve.
        for file in try Tree.sources() where !file.path.hasPrefix("Sources/Proving/") {
            for place in Traps.places(in: file) {
                let found = (byPath[file.path] ?? []).filter { place.text.contains($0.text) }
                if found.isEmpty { missing.append("\(file.path):\(place.line): \(place.text)") }
                used.formUnion(found)
            }
        }
        #expect(missing.isEmpty, "no row in docs/traps.md:\n\(missing.joined(separator: "\n"))")
        let gone = Set(rows).subtracting(used).map { "\($0.path): \($0.text)" }.sorted()
        #expect(gone.isEmpty, "rows of docs/traps.md without a line:\n\(gone.joined(separator: "\n"))")
    }

    @Test(
        "A line that may trap is told from one that may not",
        arguments: [
            ("precondition(a == b)", true), ("preconditionFailure()", true), ("assert(a)", true),
            ("let a = b!", true), ("b!.c()", true), ("f(b!, c)", true), ("a[0]!", true),
            ("if !a, a != b { }", false), ("let a: Int! ", true), ("UInt8(count >> 8)", true),
            ("UInt16(port)", true), ("UInt8(ascii: a)", false), ("UInt8(count & 0xFF)", false),
            ("UInt32(truncatingIfNeeded: a)", false), ("Int32(SOCK_STREAM.rawValue)", false),
            ("unsafeBitCast(a, to: B.self)", true), ("Int(a)", false), ("UInt8(rest % 10)", false),
            ("asserted(a)", false)
        ])
    func told(_ code: String, _ isTrap: Bool) { #expect(Traps.isTrap(code) == isTrap, "\(code)") }
}
