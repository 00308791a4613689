import NIOHTTP1

/// A head that the server goes on with: everything that decides about the request before its body.
struct CheckedHead {
    let verb: HTTPVerb
    let path: String
    let query: String?
    let fields: HTTPFields
    let isVersion10: Bool
    /// Whether the connection may stay open behind the answer.
    let keepsAlive: Bool
    let awaitsContinue: Bool
    /// `nil`: chunked, or no body at all.
    let contentLength: Int?
    let isChunked: Bool

    var hasBody: Bool { isChunked || (contentLength ?? 0) > 0 }

    /// Checks a head against RFC 9112 where readers are known to disagree, because request smuggling uses
    /// such differences.
    ///
    /// Both lengths (§6.3), a length that is no plain number or is given twice, a transfer coding that is not
    /// just `chunked`, HTTP/1.0 with a transfer coding (§6.1), no `Host` or two (§3.2), control bytes in the
    /// target.
    init(_ head: HTTPRequestHead) throws(HeadFault) {
        guard head.version == .http1_1 || head.version == .http1_0 else {
            throw HeadFault(.unsupportedVersion)
        }
        isVersion10 = head.version == .http1_0
        verb = HTTPVerb(head.method)
        var scan = FieldScan()
        for field in head.headers { scan.see(field.name, field.value) }
        guard scan.hosts == 1 || isVersion10 && scan.hosts == 0 else { throw HeadFault(.malformed) }
        guard scan.lengths <= 1, scan.lengths == 0 || scan.codings == 0 else { throw HeadFault(.malformed) }
        guard scan.codings == 0 || !isVersion10 else { throw HeadFault(.malformed) }
        guard scan.codings == 0 || scan.isChunkedAlone else { throw HeadFault(.unsupportedTransferCoding) }
        if let text = scan.length {
            guard let length = Self.decimal(text) else { throw HeadFault(.malformed) }
            contentLength = length
        } else {
            contentLength = nil
        }
        isChunked = scan.codings > 0
        guard scan.expectations == 0 || scan.isContinueAlone else { throw HeadFault(.unsupportedExpectation) }
        awaitsContinue = scan.expectations > 0 && !isVersion10
        // After an upgrade or CONNECT the decoder stops reading HTTP, so the connection ends with the answer.
        keepsAlive = head.isKeepAlive && scan.upgrades == 0 && head.method != .CONNECT
        fields = HTTPFields(
            head.headers, authorization: scan.authorization, authorizations: scan.authorizations,
            lengths: scan.names)
        (path, query) = try Self.target(head.uri)
    }

    /// Splits the request target: origin form, or absolute form, whose scheme and authority are dropped, or
    /// `*`.
    private static func target(_ uri: String) throws(HeadFault) -> (path: String, query: String?) {
        guard let plain = PlainTarget(uri) else { throw HeadFault(.malformed) }
        guard uri.utf8.first == 0x2F else { return try foreignTarget(uri) }
        guard let count = plain.bytesBeforeQuery else { return (uri, nil) }
        let mark = uri.utf8.index(uri.startIndex, offsetBy: count)
        return (String(uri[..<mark]), String(uri[uri.utf8.index(after: mark)...]))
    }

    /// What does not begin with a slash.
    private static func foreignTarget(_ uri: String) throws(HeadFault) -> (path: String, query: String?) {
        if uri == "*" { return ("*", nil) }
        guard let scheme = ["http://", "https://"].first(where: { uri.lowercased().hasPrefix($0) }) else {
            throw HeadFault(.malformed)
        }
        var rest = uri.dropFirst(scheme.utf8.count)
        rest = rest.firstIndex(where: { $0 == "/" || $0 == "?" }).map { rest[$0...] } ?? ""
        guard let mark = rest.utf8.firstIndex(of: 0x3F) else {
            return (rest.isEmpty ? "/" : String(rest), nil)
        }
        let path = rest[..<mark]
        return (path.isEmpty ? "/" : String(path), String(rest[rest.utf8.index(after: mark)...]))
    }

    /// Up to 15 digits: more could not be held anyway, and would overflow somewhere.
    private static func decimal(_ text: String) -> Int? {
        guard (1...15).contains(text.utf8.count) else { return nil }
        var number = 0
        for byte in text.utf8 {
            guard 0x30...0x39 ~= byte else { return nil }
            number = number * 10 + Int(byte - 0x30)
        }
        return number
    }
}

/// Why a head is refused.
struct HeadFault: Error {
    let refusal: IngressRefusal
    init(_ refusal: IngressRefusal) { self.refusal = refusal }
}

/// What one pass over a target finds.
private struct PlainTarget {
    /// Bytes before the first question mark; `nil` when there is none.
    var bytesBeforeQuery: Int?

    /// - Returns: `nil` for what has other bytes than visible ASCII.
    init?(_ uri: String) {
        // A copy of the reference, lent as bytes: the view of a text costs five times as much for each.
        var uri = uri
        var mark: Int?
        let isPlain = uri.withUTF8 { bytes in
            for at in bytes.indices {
                let byte = bytes[at]
                guard byte > 0x20, byte < 0x7F else { return false }
                if byte == 0x3F, mark == nil { mark = at }
            }
            return true
        }
        guard isPlain else { return nil }
        bytesBeforeQuery = mark
    }
}

/// What one pass over the fields finds. Names are told apart by length first: most fields cost one
/// comparison.
private struct FieldScan {
    var hosts = 0
    var lengths = 0
    var length: String?
    var codings = 0
    var isChunkedAlone = false
    var expectations = 0
    var isContinueAlone = false
    var upgrades = 0
    var authorizations = 0
    /// The first.
    var authorization: String?
    var names = NameLengths()

    mutating func see(_ name: String, _ value: String) {
        names.add(name)
        switch name.utf8.count {
        case 4 where name.isField("host"): hosts += 1
        case 6 where name.isField("expect"):
            expectations += 1
            isContinueAlone = expectations == 1 && value.isField("100-continue")
        case 7 where name.isField("upgrade"): upgrades += 1
        case 13 where name.isField("authorization"):
            authorizations += 1
            if authorizations == 1 { authorization = value }
        case 14 where name.isField("content-length"):
            lengths += 1
            length = value
        case 17 where name.isField("transfer-encoding"):
            codings += 1
            isChunkedAlone = codings == 1 && value.isField("chunked")
        default: break
        }
    }
}
