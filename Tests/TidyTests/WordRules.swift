/// WordRules and paths that do not belong into the repository. The patterns are put together from halves, so that
/// this file does not trip over itself.
enum WordRules {
    static func unfinished(_ path: String, _ text: String) -> [Violation] {
        let words = [
            "TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", "st" + "ub", "st" + "ubbed",
            "not imple" + "mented", "unimple" + "mented"
        ]
        return find("unfinished", in: path, text) { line in
            words.contains { word in
                line.ranges(of: word).contains { isWhole($0, in: line) }
            }
        }
    }

    /// Absolute paths that exist on one machine only.
    static func machinePaths(_ path: String, _ text: String) -> [Violation] {
        let roots = ["wo" + "rk", "fa" + "rm", "ro" + "ot", "opt/sw" + "ift", "ho" + "me"]
        return find("machine path", in: path, text) { line in
            roots.contains { root in
                line.ranges(of: "/\(root)/").contains { range in
                    guard range.lowerBound > line.startIndex else { return true }
                    let before = line[line.index(before: range.lowerBound)]
                    return !(before.isASCII && (before.isLetter || before.isNumber))
                        && !"_./-".contains(before)
                }
            }
        }
    }

    /// Files of this repository that a page names in code marks: `Packages/…`, `Sources/…`, `Tests/…`, `scripts/…`, `docs/…`.
    static func namedPaths(_ page: String) -> [String] {
        page.matches(of: #/`((?:Packages|Sources|Tests|scripts|docs)\/[\w.\/-]+)`/#).map { String($0.1) }
    }

    /// Tests that a page names behind their file: `Tests/….swift` ("…", "…"). WordRules that are left out of a
    /// name, and what is said of the test beside it, count for nothing.
    static func namedTests(_ page: String) -> [(file: String, name: String)] {
        page.matches(of: #/`(Tests\/[\w.\/-]+\.swift)` \(((?:[^()]|\([^()]*\))*)\)/#).flatMap { match in
            match.2.matches(of: #/"([^"]+)"/#).map { (String(match.1), String($0.1)) }
        }
    }

    /// Whether all the parts of a name that are given stand in a text.
    static func holds(_ text: String, _ name: String) -> Bool {
        name.split(separator: "…").allSatisfy { text.contains($0) }
    }

    private static func find(
        _ rule: String, in path: String, _ text: String, where isBad: (Substring) -> Bool
    ) -> [Violation] {
        text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().compactMap { index, line in
            isBad(line)
                ? Violation(rule: rule, path: path, line: index + 1, text: String(line.prefix(80))) : nil
        }
    }

    private static func isWhole(_ range: Range<Substring.Index>, in line: Substring) -> Bool {
        func isLetter(_ character: Character?) -> Bool {
            character.map { $0.isLetter || $0.isNumber || $0 == "_" } ?? false
        }
        return !isLetter(line[..<range.lowerBound].last) && !isLetter(line[range.upperBound...].first)
    }
}
