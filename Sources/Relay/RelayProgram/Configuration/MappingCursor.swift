import PushModel

/// What one reading gathers: faults, warnings, and the files that were named.
final class ReadingContext {
    var faults: [ConfigurationFault] = []
    var warnings: [ConfigurationWarning] = []
    var files: [ConfiguredFile] = []
    /// What relative paths of the file start from: the file's own folder.
    var fileDirectory: String
    /// What relative paths of the command line and the environment start from.
    let workingDirectory: String
    let isSandbox: Bool
    /// Where every value is noted, for whoever wants to see them.
    var record: ConfigurationRecord?

    init(fileDirectory: String, workingDirectory: String, isSandbox: Bool) {
        self.fileDirectory = fileDirectory
        self.workingDirectory = workingDirectory
        self.isSandbox = isSandbox
    }

    func fault(
        _ code: ConfigurationFault.Code, _ path: ConfigurationPath, _ source: ConfigurationFault.Source,
        _ sentence: String
    ) {
        faults.append(ConfigurationFault(code: code, path: path.text, source: source, sentence: sentence))
    }

    func warn(_ code: ConfigurationWarning.Code, _ path: ConfigurationPath, _ sentence: String) {
        warnings.append(ConfigurationWarning(code: code, path: path.text, sentence: sentence))
    }

    /// Names among `names` that the texts say, each once; a fault for every other.
    func references(_ texts: [LocatedText], to names: [ConfiguredName], _ kind: String) -> [ConfiguredName] {
        var found: [ConfiguredName] = []
        for text in texts {
            guard let name = ConfiguredName(text.text), names.contains(name) else {
                let near = nearest(text.text, among: names.map(\.text)).map { " Did you mean \($0)?" } ?? ""
                fault(
                    .unknownReference, text.path, text.source, "There is no \(kind) of that name.\(near)")
                continue
            }
            guard !found.contains(name) else {
                fault(
                    .conflict, text.path, text.source, "The \(kind) \(name) stands twice in the list.")
                continue
            }
            found.append(name)
        }
        return found
    }

    /// An absolute path, without `.` and `..` where they can be taken away by text alone.
    func absolute(_ path: String, from source: ConfigurationFault.Source) -> String {
        let base =
            switch source {
            case .file, .builtIn: fileDirectory
            case .commandLine, .environment: workingDirectory
            }
        return joinPath(base, path)
    }
}

/// `path` itself when absolute, else below `base`; `.` and empty segments are dropped, `..` kept for the
/// system.
package func joinPath(_ base: String, _ path: String) -> String {
    let whole = path.hasPrefix("/") ? path : base + "/" + path
    let segments = whole.split(separator: "/").filter { $0 != "." }
    return "/" + segments.joined(separator: "/")
}

/// One scalar with its place.
struct LocatedText {
    let text: String
    let path: ConfigurationPath
    let source: ConfigurationFault.Source
}

/// Reads the members of one mapping. Each reader reports its fault and answers `nil`, so that one reading
/// finds all faults.
struct MappingCursor {
    let node: ConfigurationNode
    let path: ConfigurationPath
    let context: ReadingContext

    /// - Parameter keys: the keys there are; any other is a fault. `nil`: the keys are names.
    /// - Returns: `nil`, with a fault, when the node is no mapping. Nothing at all is an empty mapping.
    init?(_ node: ConfigurationNode, _ path: ConfigurationPath, keys: [String]?, _ context: ReadingContext) {
        self.node = node
        self.path = path
        self.context = context
        switch node.value {
        case .null: break
        case .scalar, .list:
            context.fault(
                .wrongShape, path, node.source, "A mapping is expected here: keys, each with its value.")
            return nil
        case .mapping(let entries):
            guard let keys else { break }
            for entry in entries where !keys.contains(entry.key) {
                context.fault(.unknownKey, path / entry.key, entry.keySource, Self.unknown(entry.key, keys))
            }
        }
    }

    private static func unknown(_ key: String, _ keys: [String]) -> String {
        if let near = nearest(key, among: keys) { return "There is no such key; did you mean \(near)?" }
        return "There is no such key; here stand \(keys.joined(separator: ", "))."
    }

    /// The members of a mapping of named things, each name checked.
    func named() -> [(name: ConfiguredName, node: ConfigurationNode, path: ConfigurationPath)] {
        guard case .mapping(let entries) = node.value else { return [] }
        return entries.compactMap { entry in
            guard let name = ConfiguredName(entry.key) else {
                context.fault(
                    .badName, path / entry.key, entry.keySource,
                    "A name is 1 to 64 of a-z, 0-9, hyphen, underscore and dot.")
                return nil
            }
            return (name, entry.node, path / entry.key)
        }
    }

    func cursor(_ key: String, keys: [String]?) -> MappingCursor? {
        node[key].flatMap { MappingCursor($0, path / key, keys: keys, context) }
    }

    /// The same of a mapping all of whose keys have defaults: nothing at all is an empty one.
    func part(_ key: String, keys: [String]) -> MappingCursor? {
        let node = node[key] ?? ConfigurationNode(value: .null, source: .builtIn)
        return MappingCursor(node, path / key, keys: keys, context)
    }

    func fault(_ code: ConfigurationFault.Code, _ key: String, _ sentence: String) {
        context.fault(code, path / key, node[key]?.source ?? node.source, sentence)
    }

    func missing(_ key: String, _ sentence: String) { fault(.missingKey, key, sentence) }

    /// A text that is there and not empty.
    func text(_ key: String) -> LocatedText? {
        guard let node = node[key] else { return nil }
        let text = scalar(node, path / key)
        if let text { context.record?.note(text.path, text.text, text.source) }
        return text
    }

    /// Notes a value that is in force because nothing else is said.
    private func noteDefault(_ key: String, _ value: String) {
        context.record?.note(path / key, value, .builtIn)
    }

    /// Notes a list.
    private func noted(
        _ items: [LocatedText], _ key: String, _ source: ConfigurationFault.Source
    ) -> [LocatedText] {
        context.record?.note(path / key, "[" + items.map(\.text).joined(separator: ", ") + "]", source)
        return items
    }

    private func scalar(_ node: ConfigurationNode, _ path: ConfigurationPath) -> LocatedText? {
        switch node.value {
        case .scalar(let text) where !text.isEmpty && text.utf8.count <= 4096 && !text.contains("\0"):
            return LocatedText(text: text, path: path, source: node.source)
        case .scalar, .null:
            context.fault(.badValue, path, node.source, "Here a value is expected, of at most 4,096 bytes.")
        case .list, .mapping:
            context.fault(
                .wrongShape, path, node.source, "Here one value is expected, no list and no mapping.")
        }
        return nil
    }

    /// A list of texts; from the command line or the environment, texts with commas between.
    func list(_ key: String) -> [LocatedText]? {
        guard let node = node[key] else { return nil }
        switch (node.value, node.source) {
        case (.list(let items), _):
            // As many hosts as an allow-list may reasonably hold.
            guard items.count <= 10_000 else {
                fault(.outOfBounds, key, "A list has at most 10,000 items.")
                return nil
            }
            return noted(items.compactMap { scalar($0, path / key) }, key, node.source)
        case (.scalar(let text), .commandLine), (.scalar(let text), .environment):
            let items = text.split(separator: ",").map {
                LocatedText(text: String($0.trimmingPrefix(" ")), path: path / key, source: node.source)
            }
            return noted(items, key, node.source)
        default:
            fault(.wrongShape, key, "Here a list of values is expected: [one, two].")
            return nil
        }
    }

    /// A value of a closed list.
    func choice<Choice: RawRepresentable<String> & CaseIterable>(_ key: String, default standard: Choice)
        -> Choice
    {
        if node[key] == nil { noteDefault(key, standard.rawValue) }
        guard let text = text(key) else { return standard }
        if let choice = Choice(rawValue: text.text) { return choice }
        let words = Choice.allCases.map(\.rawValue)
        let near = nearest(text.text, among: words).map { " Did you mean \($0)?" } ?? ""
        fault(.badValue, key, "One of \(words.joined(separator: ", ")).\(near)")
        return standard
    }

    func flag(_ key: String, default standard: Bool) -> Bool {
        if node[key] == nil { noteDefault(key, String(standard)) }
        guard let text = text(key) else { return standard }
        switch text.text {
        case "true": return true
        case "false": return false
        default:
            fault(.badValue, key, "Write true or false.")
            return standard
        }
    }

    /// A whole number, also with KiB, MiB, GiB where `unit` is bytes.
    func number(_ key: String, in range: ClosedRange<Int>, default standard: Int, bytes: Bool = false) -> Int
    {
        if node[key] == nil { noteDefault(key, String(standard)) }
        guard let text = text(key) else { return standard }
        guard let number = bytes ? byteCount(text.text) : decimal(text.text[...]) else {
            fault(
                .badValue, key, bytes ? "A number of bytes, such as 512 MiB." : "A whole number, digits only."
            )
            return standard
        }
        guard range.contains(number) else {
            fault(.outOfBounds, key, "Between \(range.lowerBound) and \(range.upperBound).")
            return standard
        }
        return number
    }

    /// The absolute path of a file, noted in the context as holding `content`.
    func file(_ key: String, _ content: FileContent) -> String? {
        guard let text = text(key) else { return nil }
        let file = context.absolute(text.text, from: text.source)
        context.record?.note(text.path, file, text.source)
        context.files.append(
            ConfiguredFile(content: content, file: file, path: text.path.text, source: text.source))
        return file
    }

    /// The same of a file that must be named; a fault with `sentence` where it is not.
    func file(_ key: String, _ content: FileContent, orElse sentence: String) -> String? {
        if node[key] == nil { missing(key, sentence) }
        return file(key, content)
    }

    /// Parses a text by a failable initialiser; a fault with `sentence` when it does not fit.
    func parsed<Value>(_ key: String, _ parse: (String) -> Value?, _ sentence: String) -> Value? {
        guard let text = text(key) else { return nil }
        if let value = parse(text.text) { return value }
        fault(.badValue, key, sentence)
        return nil
    }

    /// The same of each text of a list; those that do not fit are left out.
    func parsedList<Value>(_ key: String, _ parse: (String) -> Value?, _ sentence: String) -> [Value] {
        (list(key) ?? []).compactMap { text in
            if let value = parse(text.text) { return value }
            context.fault(.badValue, text.path, text.source, sentence)
            return nil
        }
    }
}

/// `4 GiB`, `512MiB`, `1024`; `nil` for anything else.
func byteCount(_ text: String) -> Int? {
    for (suffix, shift) in [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)] where text.hasSuffix(suffix) {
        var digits = text.dropLast(suffix.count)
        while digits.hasSuffix(" ") { digits = digits.dropLast() }
        guard let number = decimal(digits), number <= Int.max >> shift else { return nil }
        return number << shift
    }
    return decimal(text[...])
}
