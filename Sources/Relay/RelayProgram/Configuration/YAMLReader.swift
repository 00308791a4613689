import Yams

/// Reads YAML text into a tree. Yams' own errors hold the text they failed on, so they end here.
enum YAMLReader {
    /// A relay with a thousand instances needs a tenth of it.
    static let limitBytes = 1 << 20

    /// - Throws: one fault, `.notYAML` or `.duplicateKey`, with its line.
    static func read(_ text: String) throws(ConfigurationError) -> ConfigurationNode {
        guard text.utf8.count <= limitBytes else {
            throw fault(.fileTooLarge, 0, "The file is larger than 1 MiB; a configuration is not.")
        }
        // Some editors put a byte order mark in front, which would hide in the first key.
        let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        if let line = falselyIndented(text) {
            throw fault(
                .notYAML, line,
                "This line is indented by a no-break space (U+00A0), which looks like a space; write spaces.")
        }
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw translate(error, text)
        } catch {
            throw fault(.notYAML, 0, "The file cannot be read as YAML.")
        }
        guard let root else { return ConfigurationNode(value: .mapping([]), source: .file(line: 1)) }
        var nodes = 0
        return try convert(root, depth: 0, nodes: &nodes)
    }

    /// The deepest key that means anything is five levels down.
    private static let depthLimit = 8
    /// Aliases unfold; this bounds into how much.
    private static let nodeLimit = 100_000

    private static func convert(
        _ node: Node, depth: Int, nodes: inout Int
    ) throws(ConfigurationError) -> ConfigurationNode {
        let line = node.mark?.line ?? 0
        guard depth <= depthLimit else {
            throw fault(
                .wrongShape, line, "Nothing in a configuration is nested so deeply; look at the indentation.")
        }
        nodes += 1
        guard nodes <= nodeLimit else {
            throw fault(
                .fileTooLarge, line, "The file unfolds into more than 100,000 values; write aliases out.")
        }
        switch node {
        case .scalar(let scalar):
            let isNull = scalar.style == .plain && ["", "~", "null"].contains(scalar.string)
            return ConfigurationNode(
                value: isNull ? .null : .scalar(scalar.string), source: .file(line: line))
        case .sequence(let sequence):
            var list: [ConfigurationNode] = []
            for item in sequence { list.append(try convert(item, depth: depth + 1, nodes: &nodes)) }
            return ConfigurationNode(value: .list(list), source: .file(line: line))
        case .mapping(let mapping):
            var entries: [ConfigurationNode.Entry] = []
            for (key, value) in mapping {
                let keyLine = key.mark?.line ?? line
                guard case .scalar(let scalar) = key else {
                    throw fault(.wrongShape, keyLine, "A key must be a plain word.")
                }
                entries.append(
                    ConfigurationNode.Entry(
                        key: scalar.string, keySource: .file(line: keyLine),
                        node: try convert(value, depth: depth + 1, nodes: &nodes)))
            }
            return ConfigurationNode(value: .mapping(entries), source: .file(line: line))
        case .alias:
            throw fault(.wrongShape, line, "Anchors and aliases are not supported; write the value out.")
        }
    }

    private static func translate(_ error: YamlError, _ text: String) -> ConfigurationError {
        switch error {
        case .scanner(_, _, let mark, _):
            fault(.notYAML, mark.line, "This line is not YAML; look at quotation marks, colons and tabs.")
        case .parser(_, _, let mark, _):
            fault(
                .notYAML, mark.line,
                "The YAML breaks off here; look at brackets and at the indentation above.")
        case .composer(_, _, let mark, _):
            fault(.notYAML, mark.line, "The file must hold one document, without aliases.")
        case .duplicatedKeysInMapping(let keys, let context):
            duplicate(keys.first ?? "", at: context.mark, text)
        case .reader:
            fault(.notYAML, 0, "The file holds bytes that are no UTF-8 text.")
        case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded:
            fault(.notYAML, 0, "The file cannot be read as YAML.")
        }
    }

    /// The first line whose indentation has a no-break space, as texts that were copied from web pages do. To
    /// YAML it is the first letter of a word.
    private static func falselyIndented(_ text: String) -> Int? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.firstIndex { line in
            line.prefix { $0 == " " || $0 == "\u{A0}" }.contains("\u{A0}")
        }.map { $0 + 1 }
    }

    /// - Parameter mark: where the key stands first; lines and columns from 1.
    private static func duplicate(_ key: String, at mark: Mark, _ text: String) -> ConfigurationError {
        // Keys are words of ours and names; what looks otherwise may be anything.
        let isWord = (1...64).contains(key.utf8.count) && key.utf8.allSatisfy(isOfAName)
        let subject = isWord ? "The key \(key)" : "A key"
        guard isWord, let second = secondLine(of: key, behind: mark, text) else {
            return fault(
                .duplicateKey, mark.line, "\(subject) stands twice in one mapping; keep one of them.")
        }
        return fault(
            .duplicateKey, second,
            "\(subject) stands twice in one mapping, first in line \(mark.line); keep one of them.")
    }

    private static func isOfAName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: false
        }
    }

    /// The line of the same mapping that begins with the key once more; `nil` where the mapping stands in one
    /// line.
    private static func secondLine(of key: String, behind mark: Mark, _ text: String) -> Int? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated().dropFirst(mark.line) {
            let content = line.drop { $0 == " " }
            if content.isEmpty || content.first == "#" { continue }
            let column = line.count - content.count + 1
            if column < mark.column { return nil }
            let begins = [key, "\"\(key)\"", "'\(key)'"].contains { word in
                content.hasPrefix(word) && content.dropFirst(word.count).drop { $0 == " " }.first == ":"
            }
            if column == mark.column, begins { return index + 1 }
        }
        return nil
    }

    private static func fault(
        _ code: ConfigurationFault.Code, _ line: Int, _ sentence: String
    ) -> ConfigurationError {
        ConfigurationError([
            ConfigurationFault(code: code, path: "", source: .file(line: line), sentence: sentence)
        ])
    }
}
