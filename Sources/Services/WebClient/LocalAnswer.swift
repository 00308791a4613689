/// What a server on this machine has answered so far.
package enum LocalAnswer {
    package enum Parsed: Sendable {
        case unfinished, malformed
        case whole(LocalCall.Answer)
        /// It names no length, so that the end of the connection is that of its body (RFC 9112 §6.3).
        case untilTheEnd(LocalCall.Answer)
    }

    /// Interim answers that are passed over: a server sends one for a body, if it sends any.
    private static let interim = 8

    package static func parse(_ bytes: [UInt8]) -> Parsed {
        let mark: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A]
        var rest = bytes[...]
        // An interim answer only says that another one comes.
        for _ in 0...interim {
            guard let end = rest.firstRange(of: mark) else { return .unfinished }
            let lines = String(decoding: rest[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
            // Of an empty head there is no line.
            guard let words = lines.first?.split(separator: " ", maxSplits: 2), words.count >= 2,
                words[0].hasPrefix("HTTP/1."), let status = Int(words[1])
            else { return .malformed }
            rest = rest[end.upperBound...]
            if status != 100 { return parse(status, lines.dropFirst(), rest) }
        }
        return .malformed
    }

    private static func parse(
        _ status: Int, _ lines: ArraySlice<Substring>, _ rest: ArraySlice<UInt8>
    ) -> Parsed {
        var answer = LocalCall.Answer(status: status, headers: [], body: [])
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { return .malformed }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            answer.headers.append((line[..<colon].lowercased(), String(value)))
        }
        if answer.header("transfer-encoding")?.lowercased() == "chunked" { return unchunked(rest, answer) }
        guard let text = answer.header("content-length") else {
            if status == 204 || status == 304 { return .whole(answer) }
            answer.body = Array(rest)
            return .untilTheEnd(answer)
        }
        guard let length = Int(text), length >= 0 else { return .malformed }
        guard rest.count >= length else { return .unfinished }
        answer.body = Array(rest.prefix(length))
        return .whole(answer)
    }

    /// RFC 9112 §7.1; extensions and trailers are passed over.
    private static func unchunked(_ bytes: ArraySlice<UInt8>, _ head: LocalCall.Answer) -> Parsed {
        var answer = head
        var rest = bytes
        while let line = rest.firstRange(of: [0x0D, 0x0A]) {
            let digits = rest[..<line.lowerBound].prefix { $0 != UInt8(ascii: ";") }
            guard digits.count <= 8, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16),
                size >= 0
            else { return .malformed }
            if size == 0 { return .whole(answer) }
            rest = rest[line.upperBound...]
            guard rest.count >= size + 2 else { return .unfinished }
            answer.body += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
        return .unfinished
    }
}
