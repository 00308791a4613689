import Foundation

/// Files whose types need each other, in a circle: to understand one of them a reader needs all.
///
/// An arrow goes from a file to another in which a type is declared that it names. Types of one file may need
/// each other; private ones, and those declared inside others, have no name outside.
enum Circles {
    private static let kinds: Set<Substring> = [
        "struct", "class", "enum", "protocol", "actor", "typealias"
    ]

    /// - Returns: each circle, its files by path.
    static func all(_ files: [SwiftText]) -> [[String]] {
        var home: [Substring: Int] = [:]
        for (index, file) in files.enumerated() {
            for line in file.code where line.first.map({ !$0.isWhitespace && $0 != "}" }) ?? false {
                if let name = declared(line) { home[name] = index }
            }
        }
        let arrows = files.enumerated().map { index, file in
            Set(file.code.flatMap { names($0) }.compactMap { home[$0] }).subtracting([index])
        }
        var search = Search(arrows)
        return search.circles().map { $0.map { files[$0].path }.sorted() }.sorted { $0[0] < $1[0] }
    }

    /// The type that a line declares; `nil` for a private one.
    private static func declared(_ line: String) -> Substring? {
        let words = line.split { !($0.isLetter || $0.isNumber || $0 == "_") }
        guard let at = words.firstIndex(where: { kinds.contains($0) }), at + 1 < words.count,
            !words[..<at].contains(where: { $0 == "private" || $0 == "fileprivate" })
        else { return nil }
        return words[at + 1]
    }

    /// The words of a line that begin with a capital letter, as types do.
    private static func names(_ line: String) -> [Substring] {
        line.split { !($0.isLetter || $0.isNumber || $0 == "_") }.filter { $0.first?.isUppercase ?? false }
    }

    /// Tarjan's strongly connected components.
    private struct Search {
        private let arrows: [Set<Int>]
        private var order: [Int?]
        private var low: [Int]
        private var stack: [Int] = []
        private var found: [[Int]] = []
        private var next = 0

        init(_ arrows: [Set<Int>]) {
            self.arrows = arrows
            order = Array(repeating: nil, count: arrows.count)
            low = Array(repeating: 0, count: arrows.count)
        }

        mutating func circles() -> [[Int]] {
            for file in arrows.indices where order[file] == nil { visit(file) }
            return found.filter { $0.count > 1 }
        }

        private mutating func visit(_ file: Int) {
            let mine = next
            (order[file], low[file]) = (mine, mine)
            next += 1
            stack.append(file)
            for other in arrows[file].sorted() {
                if let theirs = order[other] {
                    if stack.contains(other) { low[file] = min(low[file], theirs) }
                } else {
                    visit(other)
                    low[file] = min(low[file], low[other])
                }
            }
            guard low[file] == mine, let start = stack.lastIndex(of: file) else { return }
            found.append(Array(stack[start...]))
            stack.removeSubrange(start...)
        }
    }
}
