public import PushModel

/// What an OCS endpoint of the origin answers (§4.1), before it is worded for one of the two versions of the
/// interface and one of the two formats.
public struct OCSAnswer: Sendable {
    /// `/ocs/v1.php` or `/ocs/v2.php`.
    public enum Version: Sendable, Hashable, CaseIterable {
        /// `/ocs/v1.php`: nearly always status 200.
        case v1
        /// `/ocs/v2.php`.
        case v2
    }
    /// JSON where the caller asks for it (`?format=json`, `Accept: application/json`), else XML.
    public enum Format: Sendable, Hashable, CaseIterable {
        /// Compact JSON.
        case json
        /// XML, indented.
        case xml
    }
    /// `data.message` of a refusal; frozen.
    public enum Word: String, Sendable, Hashable, CaseIterable {
        /// No SHA-512 in lower-case hex: 128 digits.
        case invalidTokenHash = "INVALID_PUSHTOKEN_HASH"
        /// No RSA key of 2,048 bits in OpenSSL's PEM.
        case invalidDeviceKey = "INVALID_DEVICE_KEY"
        /// No URL that a proxy may have.
        case invalidProxyServer = "INVALID_PROXY_SERVER"
        /// No session with an app password.
        case invalidSessionToken = "INVALID_SESSION_TOKEN"
    }

    /// Of version 2 the HTTP status: 200, 201, 202, 400, 401, 404, 405, 412, 413, 429, 503.
    public let status: Int
    /// `ocs.meta.statuscode` where it is neither the status nor, in version 1, 100.
    let code: Int?
    /// `ocs.meta.message` of a failure.
    let message: String
    let data: OCSValue
    /// The whole body where an answer is not of the interface's form; its status is that of both versions.
    let bare: String?

    init(
        status: Int, code: Int? = nil, message: String = "", data: OCSValue = .list([]), bare: String? = nil
    ) {
        self.status = status
        self.code = code
        self.message = message
        self.data = data
        self.bare = bare
    }

    init(status: Int, data: [(name: StaticString, value: OCSValue)]) {
        self.init(status: status, data: .object(data))
    }

    /// Of a refusal.
    public var word: Word? {
        guard status == 400, case .object(let members) = data, members.count == 1,
            case .text(let word) = members[0].value
        else { return nil }
        return Word(rawValue: word)
    }

    static func refusal(_ word: Word) -> OCSAnswer {
        OCSAnswer(status: 400, data: [("message", .text(word.rawValue))])
    }

    static let notLoggedIn = OCSAnswer(status: 401, code: 997, message: "Current user is not logged in")
    /// The caller shows credentials that are wrong: the answer to whoever looks them up in vain.
    public static let wrongCredentials = OCSAnswer(status: 401, code: 997, message: "Unauthorised")
    /// Of a caller who has logged in by another key, which no client's logging out ends.
    public static let noAppPassword = OCSAnswer(status: 403, message: "no app password in use")
    /// Too many calls. The server adds `Retry-After`.
    public static let tooManyCalls = OCSAnswer(status: 429, message: "Too many requests")
    /// The server cannot take this now, in both versions.
    public static let unavailable = OCSAnswer(status: 503, message: "Service unavailable")

    /// The status of the HTTP answer. Of version 1 it is 200, but for a caller who is not logged in, and for
    /// an answer that the interface has no form for.
    public func httpStatus(_ version: Version) -> Int {
        version == .v1 && status != 401 && status != 503 && bare == nil ? 200 : status
    }

    /// `Content-Type`.
    public func contentType(_ format: Format) -> String {
        if bare?.isEmpty == false { return "application/json; charset=utf-8" }
        return format == .json ? "application/json; charset=utf-8" : "application/xml; charset=utf-8"
    }

    /// What the head has besides.
    public var headers: [(name: String, value: String)] {
        status == 401 ? [("WWW-Authenticate", "Basic realm=\"Authorisation Required\"")] : []
    }

    /// The body of the answer, UTF-8; less than a megabyte, since lists and texts are bounded.
    public func body(_ version: Version, _ format: Format) -> Secret {
        if let bare { return Secret(bare.utf8) }
        var text = PHPText(reserving: 2_048)
        if format == .json {
            text.raw(#"{"ocs":{"meta":"#)
            OCSValue.object(meta(version)).json(&text)
            text.raw(#","data":"#)
            data.json(&text)
            text.raw("}}")
        } else {
            text.raw("<?xml version=\"1.0\"?>\n<ocs>\n")
            OCSValue.object(meta(version)).xml("meta", depth: 1, &text)
            data.xml("data", depth: 1, &text)
            text.raw("</ocs>\n")
        }
        return text.takeSecret()
    }

    // MARK: parts

    private func meta(_ version: Version) -> [(name: StaticString, value: OCSValue)] {
        let code = code ?? (version == .v1 && status == 200 ? 100 : status)
        let isFine = version == .v1 ? code == 100 : (200..<300).contains(code)
        let meta: [(name: StaticString, value: OCSValue)] = [
            ("status", .text(isFine ? "ok" : "failure")), ("statuscode", .number(Int64(code))),
            ("message", .text(isFine ? "OK" : message))
        ]
        return version == .v1 ? meta + [("totalitems", .text("")), ("itemsperpage", .text(""))] : meta
    }
}

/// A value of an answer's `data`, which both formats can say.
enum OCSValue: Sendable {
    case text(String)
    case number(Int64)
    case bool(Bool)
    case null
    case list([OCSValue])
    /// Names and values in order. An empty one is written as an empty list, as PHP knows no difference.
    case object([(name: StaticString, value: OCSValue)])

    private var isEmpty: Bool {
        switch self {
        case .list(let values): values.isEmpty
        case .object(let members): members.isEmpty
        default: false
        }
    }

    func json(_ text: inout PHPText) {
        switch self {
        case .text(let value): text.string(value)
        case .number(let value): text.int(value)
        case .bool(let value): text.raw(value ? "true" : "false")
        case .null: text.raw("null")
        case _ where isEmpty: text.raw("[]")
        case .list(let values):
            for (place, value) in values.enumerated() {
                text.raw(place == 0 ? "[" : ",")
                value.json(&text)
            }
            text.raw("]")
        case .object(let members):
            for (place, member) in members.enumerated() {
                text.raw(place == 0 ? "{\"" : ",\"")
                text.raw(member.name)
                text.raw("\":")
                member.value.json(&text)
            }
            text.raw("}")
        }
    }

    /// An element. Those of a list are called `element`; true is 1, and false nothing, as PHP spells them.
    func xml(_ name: StaticString, depth: Int, _ text: inout PHPText) {
        for _ in 0..<depth { text.raw(" ") }
        text.raw("<")
        text.raw(name)
        switch self {
        case .null, .bool(false), .text(""):
            text.raw("/>\n")
            return
        case _ where isEmpty:
            text.raw("/>\n")
            return
        case .text(let value):
            text.raw(">")
            text.escaped(value)
        case .number(let value):
            text.raw(">")
            text.int(value)
        case .bool: text.raw(">1")
        case .list(let values):
            text.raw(">\n")
            for value in values { value.xml("element", depth: depth + 1, &text) }
            for _ in 0..<depth { text.raw(" ") }
        case .object(let members):
            text.raw(">\n")
            for member in members { member.value.xml(member.name, depth: depth + 1, &text) }
            for _ in 0..<depth { text.raw(" ") }
        }
        text.raw("</")
        text.raw(name)
        text.raw(">\n")
    }
}

extension PHPText {
    /// Text between elements of XML. A carriage return would be read as a line end, and control characters
    /// have no place in XML at all, escaped or not.
    mutating func escaped(_ text: String) {
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x26: raw("&amp;")
            case 0x3C: raw("&lt;")
            case 0x3E: raw("&gt;")
            case 0x0D: raw("&#13;")
            case 0x09, 0x0A: plain(String(scalar))
            case 0..<0x20, 0xFFFE, 0xFFFF: plain("\u{FFFD}")
            default: plain(String(scalar))
            }
        }
    }
}
