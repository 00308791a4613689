import PushModel

/// The keys that Nextcloud servers may show: one a line; blank lines and lines that begin with `#` are
/// comments.
enum SubscriptionKeysFile: SecretFile {
    enum Fault: String, SecretFileFault, Sendable, CaseIterable {
        case empty, malformed, tooMany

        var sentence: String {
            switch self {
            case .empty: "It holds no key; without one every server would be refused."
            case .malformed: "A key is a line of 16 to 256 visible characters, without blanks."
            case .tooMany: "At most \(SubscriptionKeysFile.limit) keys."
            }
        }
    }

    /// Each call is compared with all of them, so that nobody learns by the time which one was near.
    static let limit = 1_000

    static func parse(_ bytes: Secret) throws(Fault) -> [Secret] {
        var keys: [Secret] = []
        var isMalformed = false
        bytes.reveal { text in
            for line in text.split(separator: 0x0A) {
                let line = trimmed(line)
                guard let first = line.first, first != UInt8(ascii: "#") else { continue }
                guard (16...256).contains(line.count), line.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                    isMalformed = true
                    return
                }
                keys.append(Secret(Array(line)))
            }
        }
        if isMalformed { throw .malformed }
        if keys.isEmpty { throw .empty }
        if keys.count > limit { throw .tooMany }
        return keys
    }

    private static func trimmed(_ line: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        var line = line
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0D]
        while let first = line.first, blanks.contains(first) { line = line.dropFirst() }
        while let last = line.last, blanks.contains(last) { line = line.dropLast() }
        return line
    }
}
