import Foundation

/// One file of Swift source, read for its style.
///
/// `lines` is the text as it stands. `code` has the same number of lines, with every comment and every string
/// literal replaced by spaces, so that a rule about code never trips over prose. An interpolation `\(…)` inside
/// a string literal is code again.
struct SwiftText {
    let path: String
    let lines: [String]
    let code: [String]

    init(path: String, text: String) {
        self.path = path
        lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        code = Blanker.blank(text).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Lines of code that hold one of these texts. Regular expressions are slow; they look at these only.
    func places(of texts: String...) -> [(offset: Int, element: String)] {
        code.enumerated().filter { line in texts.contains { line.element.contains($0) } }
    }

    /// The modules that it imports, each with its line, counted from 1.
    var imports: [(line: Int, module: String)] {
        let form =
            #/^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|fileprivate|private)\s+)?import\s+(?:(?:struct|class|enum|protocol|func|var|let|typealias)\s+)?(\w+)/#
        return places(of: "import").compactMap { index, line in
            line.firstMatch(of: form).map { (index + 1, String($0.1)) }
        }
    }
}

/// A place where a rule is not kept. `line` counts from 1.
struct Violation: CustomStringConvertible, Equatable {
    let rule: String
    let path: String
    let line: Int
    let text: String

    var description: String { "\(path):\(line): \(rule): \(text)" }
}

/// Replaces comments and string literals by spaces and keeps line breaks.
struct Blanker {
    private enum State: Equatable {
        case code(parentheses: Int)
        case lineComment
        case blockComment(depth: Int)
        case string(hashes: Int, quotes: Int)
    }

    private let characters: [Character]
    private var at = 0
    private var out = ""
    private var stack: [State] = [.code(parentheses: 0)]

    static func blank(_ text: String) -> String {
        var blanker = Blanker(characters: Array(text))
        while blanker.at < blanker.characters.count { blanker.step() }
        return blanker.out
    }

    private init(characters: [Character]) { self.characters = characters }

    private mutating func step() {
        switch stack[stack.count - 1] {
        case .code(let parentheses): stepCode(parentheses)
        case .lineComment:
            if characters[at] == "\n" { stack.removeLast() }
            skip(1)
        case .blockComment(let depth): stepBlockComment(depth)
        case .string(let hashes, let quotes): stepString(hashes, quotes)
        }
    }

    private mutating func stepCode(_ parentheses: Int) {
        if starts("//") {
            stack.append(.lineComment)
            skip(2)
        } else if starts("/*") {
            stack.append(.blockComment(depth: 1))
            skip(2)
        } else if let (hashes, quotes) = openingQuote() {
            stack.append(.string(hashes: hashes, quotes: quotes))
            skip(hashes + quotes)
        } else {
            let character = characters[at]
            if stack.count > 1, character == "(" {
                stack[stack.count - 1] = .code(parentheses: parentheses + 1)
            } else if stack.count > 1, character == ")" {
                stack[stack.count - 1] = .code(parentheses: parentheses - 1)
                if parentheses == 1 { stack.removeLast() }
            }
            out.append(character)
            at += 1
        }
    }

    private mutating func stepBlockComment(_ depth: Int) {
        if starts("/*") {
            stack[stack.count - 1] = .blockComment(depth: depth + 1)
            skip(2)
        } else if starts("*/") {
            if depth == 1 {
                stack.removeLast()
            } else {
                stack[stack.count - 1] = .blockComment(depth: depth - 1)
            }
            skip(2)
        } else {
            skip(1)
        }
    }

    private mutating func stepString(_ hashes: Int, _ quotes: Int) {
        let marks = String(repeating: "#", count: hashes)
        if starts(String(repeating: "\"", count: quotes) + marks) {
            stack.removeLast()
            skip(quotes + hashes)
        } else if starts("\\" + marks + "(") {
            skip(1 + hashes)
            stack.append(.code(parentheses: 0))
        } else if starts("\\" + marks) {
            skip(1 + hashes)
            if at < characters.count { skip(1) }
        } else if quotes == 1, characters[at] == "\n" {
            // Not valid Swift; leaving the literal here keeps one slip from blanking the rest of the file.
            stack.removeLast()
            skip(1)
        } else {
            skip(1)
        }
    }

    /// The number of `#` and of quotation marks (1 or 3) of a literal that begins here.
    private func openingQuote() -> (hashes: Int, quotes: Int)? {
        var place = at
        while place < characters.count, characters[place] == "#" { place += 1 }
        guard place < characters.count, characters[place] == "\"" else { return nil }
        let hashes = place - at
        let triple =
            place + 2 < characters.count && characters[place + 1] == "\"" && characters[place + 2] == "\""
        // `""` is an empty literal unless a third mark follows.
        return (hashes, triple ? 3 : 1)
    }

    private func starts(_ text: String) -> Bool {
        var place = at
        for character in text {
            guard place < characters.count, characters[place] == character else { return false }
            place += 1
        }
        return true
    }

    private mutating func skip(_ count: Int) {
        for _ in 0..<count where at < characters.count {
            out.append(characters[at] == "\n" ? "\n" : " ")
            at += 1
        }
    }
}
