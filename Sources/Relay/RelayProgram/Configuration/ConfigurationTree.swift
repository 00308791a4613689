/// A configuration as a tree of texts, each with the place it came from. No meaning yet.
struct ConfigurationNode: Sendable, Hashable {
    indirect enum Value: Sendable, Hashable {
        /// `~`, `null`, or nothing after the colon.
        case null
        case scalar(String)
        case list([ConfigurationNode])
        /// In the file's order; keys are distinct.
        case mapping([Entry])
    }

    struct Entry: Sendable, Hashable {
        var key: String
        var keySource: ConfigurationFault.Source
        var node: ConfigurationNode
    }

    var value: Value
    var source: ConfigurationFault.Source

    /// The member of that key; `nil` when there is none or this is no mapping.
    subscript(key: String) -> ConfigurationNode? {
        guard case .mapping(let entries) = value else { return nil }
        return entries.first { $0.key == key }?.node
    }

    /// The keys of a mapping, in order.
    var keys: [String] {
        guard case .mapping(let entries) = value else { return [] }
        return entries.map(\.key)
    }

    /// Puts a scalar at the end of `segments`, making mappings on the way. A list or scalar that stands in
    /// the way gives way too: what overrides, overrides.
    mutating func set(_ segments: ArraySlice<String>, to text: String, source: ConfigurationFault.Source) {
        guard let first = segments.first else {
            self = ConfigurationNode(value: .scalar(text), source: source)
            return
        }
        var entries: [Entry] = []
        if case .mapping(let held) = value { entries = held }
        let index = entries.firstIndex { $0.key == first }
        var child = index.map { entries[$0].node } ?? ConfigurationNode(value: .null, source: source)
        child.set(segments.dropFirst(), to: text, source: source)
        if let index {
            entries[index].node = child
        } else {
            entries.append(Entry(key: first, keySource: source, node: child))
        }
        value = .mapping(entries)
    }
}

/// The way to a node: `apps.acme-chat.fallback.title`. A segment with a dot of its own stands in quotation
/// marks.
struct ConfigurationPath: Sendable, Hashable {
    var segments: [String]

    init(_ segments: [String] = []) { self.segments = segments }

    static func / (path: ConfigurationPath, key: String) -> ConfigurationPath {
        ConfigurationPath(path.segments + [key])
    }

    /// A key that is no plain word could be a secret in the wrong place, so it is not repeated.
    var text: String {
        segments.map { segment in
            guard segment.utf8.count <= 64, segment.utf8.allSatisfy(Self.isPlain) else { return "‹key›" }
            return segment.contains(".") ? "\"\(segment)\"" : segment
        }.joined(separator: ".")
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
            true
        default: false
        }
    }

    /// Reads the text form; `nil` for an empty segment, an open quotation mark, or more than 8 segments.
    init?(text: String) {
        var segments: [String] = []
        var segment = ""
        var quoted = false
        var wasQuoted = false
        for character in text {
            if character == "\"" {
                guard quoted || segment.isEmpty else { return nil }
                quoted.toggle()
                wasQuoted = true
            } else if character == ".", !quoted {
                guard !segment.isEmpty else { return nil }
                segments.append(segment)
                segment = ""
                wasQuoted = false
            } else {
                guard quoted || !wasQuoted else { return nil }
                segment.append(character)
            }
        }
        guard !quoted, !segment.isEmpty else { return nil }
        segments.append(segment)
        guard segments.count <= 8 else { return nil }
        self.segments = segments
    }
}
