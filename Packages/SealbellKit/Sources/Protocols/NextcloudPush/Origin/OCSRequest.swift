public import PushModel
import WireFormats

/// What a client asks of the origin's OCS interface, well-formed.
public enum OCSCall: Sendable {
    /// Of a stranger too, who hears less.
    case capabilities
    /// Who the caller is.
    case user
    /// The caller's device is registered, or anew (§4.1).
    case register(PushRegistration)
    /// The caller's device is taken back (§4.1).
    case unregister
    /// The app logs out: its app password is over, and with it its registration.
    case revoke
    /// The caller's newest, at most ``NextcloudLimits/listedNotifications``.
    case notifications
    /// The one with this `nid`.
    case notification(Int64)
    /// The one with this `nid` is deleted.
    case deleteNotification(Int64)
    /// All of the caller's are deleted.
    case deleteNotifications
    /// Which of these there are; at most ``NextcloudLimits/askedAtOnce``.
    case exists([Int64])
    /// A test message to the caller's devices (§3.5).
    case selfTest
}

/// Whom a caller says to be. The server checks it.
public struct OCSCredentials: Sendable {
    /// Login name, UTF-8.
    public let user: String
    /// The app password, or the login's own; UTF-8.
    public let password: Secret
}

/// What a listener hands over of a request's head.
public struct OCSHead: Sendable {
    /// `GET`, `POST` or `DELETE`; any other is refused.
    public var method: String
    /// Path behind the server's URL, percent-encoded as it came, without the query.
    public var path: String
    /// Behind the `?`, percent-encoded as it came; `nil`: there is none.
    public var query: String?
    /// Value of `Accept`.
    public var accept: String?
    /// Value of `Content-Type`.
    public var contentType: String?
    /// Value of `OCS-APIRequest`.
    public var apiRequest: String?
    /// Value of `Authorization`, at most ``NextcloudLimits/authorizationBytes``.
    public var authorization: Secret?
    /// Value of `User-Agent`; empty where there is none.
    public var userAgent: String

    /// Fields that the request has not stay `nil`.
    ///
    /// - Parameter authorization: `Basic` and Base64.
    public init(
        method: String, path: String, query: String? = nil, accept: String? = nil,
        contentType: String? = nil, apiRequest: String? = nil, authorization: Secret? = nil,
        userAgent: String = ""
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.accept = accept
        self.contentType = contentType
        self.apiRequest = apiRequest
        self.authorization = authorization
        self.userAgent = userAgent
    }
}

/// Why a request is no call: what to answer.
public struct OCSRefusal: Error, Sendable {
    /// What to say in place of what was asked for.
    public let answer: OCSAnswer
}

/// A request to the OCS interface, read in two steps, in the deployed order: the head tells format, endpoint
/// and credentials; once the server has looked these up, ``call(body:isLoggedIn:)`` reads the rest.
public struct OCSRequest: Sendable {
    enum Endpoint: Sendable, Hashable {
        case capabilities, user, register, unregister, revoke, notifications, deleteNotifications, exists
        case selfTest
        case notification(Int64)
        case deleteNotification(Int64)
    }

    /// By the path: `/ocs/v1.php` or `/ocs/v2.php`.
    public let version: OCSAnswer.Version
    /// By query or `Accept`.
    public let format: OCSAnswer.Format
    /// `nil`: none, or in a form that is none; the caller is a stranger.
    public let credentials: OCSCredentials?
    private let head: OCSHead
    private let endpoint: Result<Endpoint, OCSRefusal>

    /// - Returns: `nil` for a path that is not the interface's.
    public init?(_ head: OCSHead) {
        let rest: Substring
        if let found = head.path.behind("/ocs/v1.php") {
            (version, rest) = (.v1, found)
        } else if let found = head.path.behind("/ocs/v2.php") {
            (version, rest) = (.v2, found)
        } else {
            return nil
        }
        format = Self.format(head)
        credentials = head.authorization.flatMap { OCSCredentials(basic: $0) }
        endpoint = Result { () throws(OCSRefusal) in try Self.endpoint(head.method, rest) }
        self.head = head
    }

    /// The `User-Agent`, as far as it is looked at.
    public var userAgent: String { String(decoding: head.userAgent.utf8.prefix(512), as: UTF8.self) }

    /// Reads what is asked.
    ///
    /// - Parameter isLoggedIn: the server has found the ``credentials`` good. Where it has found them wrong,
    ///   it answers ``OCSAnswer/wrongCredentials`` and does not ask.
    /// - Throws: what to answer, in the deployed order: no such endpoint (OCS 998, HTTP 404), no such method
    ///   (405), not logged in (401, OCS 997), no `OCS-APIRequest` (412), body too large (413), malformed
    ///   (400). Missing fields of a registration are refused by ``NextcloudOrigin``, each by its own word.
    public func call(body: Secret, isLoggedIn: Bool) throws(OCSRefusal) -> OCSCall {
        let endpoint = try endpoint.get()
        if endpoint != .capabilities, !isLoggedIn { throw OCSRefusal(answer: .notLoggedIn) }
        guard head.apiRequest?.isEmpty == false else {
            throw OCSRefusal(answer: OCSAnswer(status: 412, bare: #"{"message":"CSRF check failed"}"#))
        }
        guard body.count <= NextcloudLimits.deviceBodyBytes,
            head.query?.utf8.count ?? 0 <= NextcloudLimits.queryBytes
        else { throw OCSRefusal(answer: OCSAnswer(status: 413, bare: "")) }
        switch endpoint {
        case .capabilities: return .capabilities
        case .user: return .user
        case .unregister: return .unregister
        case .revoke: return .revoke
        case .notifications: return .notifications
        case .deleteNotifications: return .deleteNotifications
        case .selfTest: return .selfTest
        case .notification(let id): return .notification(id)
        case .deleteNotification(let id): return .deleteNotification(id)
        case .register: return .register(try fields(body).registration)
        case .exists:
            let fields = try fields(body)
            guard let ids = fields.ids else {
                throw OCSRefusal(answer: OCSAnswer(status: 400, message: "The parameter ids is missing."))
            }
            guard ids.count <= NextcloudLimits.askedAtOnce else {
                throw OCSRefusal(answer: OCSAnswer(status: 400))
            }
            return .exists(ids)
        }
    }

    private func fields(_ body: Secret) throws(OCSRefusal) -> OCSFields {
        do throws(FormatError) {
            return try OCSFields(
                body, isJSON: ContentType.isJSON(head.contentType), query: head.query)
        } catch {
            throw OCSRefusal(answer: OCSAnswer(status: 400, message: "The request is malformed."))
        }
    }

    // MARK: parts

    /// The query's word counts before the head's. Of `Accept` the first `application/` counts.
    private static func format(_ head: OCSHead) -> OCSAnswer.Format {
        if let query = head.query, query.utf8.count <= NextcloudLimits.queryBytes,
            let form = try? Form.parse(Array(query.utf8), fieldLimit: OCSFields.most),  // Then XML.
            let format = form.fields.last(where: { $0.name == "format" })
        {
            return format.value == Array("json".utf8) ? .json : .xml
        }
        let types = (head.accept ?? "").utf8.prefix(NextcloudLimits.userAgentBytes).split(separator: 0x2C)
        for type in types {
            let type = String(decoding: type, as: UTF8.self).lowercased().drop { $0 == " " || $0 == "\t" }
            guard type.hasPrefix("application/") else { continue }
            return type.prefix { $0 != ";" && $0 != " " } == "application/json" ? .json : .xml
        }
        return .xml
    }

    private static func endpoint(
        _ method: String, _ path: Substring
    ) throws(OCSRefusal) -> Endpoint {
        guard let methods = methods(path) else {
            throw OCSRefusal(answer: OCSAnswer(status: 404, code: 998, message: "Invalid query"))
        }
        guard let endpoint = methods.first(where: { $0.method == method })?.endpoint else {
            throw OCSRefusal(answer: OCSAnswer(status: 405, bare: ""))
        }
        return endpoint
    }

    private static func methods(_ path: Substring) -> [(method: String, endpoint: Endpoint)]? {
        switch path {
        case "/cloud/capabilities": return [("GET", .capabilities)]
        case "/cloud/user": return [("GET", .user)]
        case "/core/apppassword": return [("DELETE", .revoke)]
        default: break
        }
        guard let rest = path.behind("/apps/notifications/api/") else { return nil }
        switch rest {
        case "v2/push": return [("POST", .register), ("DELETE", .unregister)]
        case "v3/test/self": return [("POST", .selfTest)]
        default: break
        }
        guard let list = rest.behind("v2/notifications") ?? rest.behind("v1/notifications") else {
            return nil
        }
        if list.isEmpty { return [("GET", .notifications), ("DELETE", .deleteNotifications)] }
        if list == "/exists" { return [("POST", .exists)] }
        guard let digits = list.behind("/"), !digits.isEmpty,
            digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        // One that is beyond all numbers is nobody's.
        let id = Int64(digits) ?? .max
        return [("GET", .notification(id)), ("DELETE", .deleteNotification(id))]
    }
}

extension StringProtocol {
    /// What follows a beginning, byte by byte.
    fileprivate func behind(_ beginning: StaticString) -> Substring? {
        let (text, start) = (Substring(self), String(describing: beginning))
        guard text.utf8.starts(with: start.utf8) else { return nil }
        return Substring(text.utf8.dropFirst(start.utf8.count))
    }
}

extension OCSCredentials {
    /// `Basic <base64 of user:password>`; the user ends at the first colon.
    init?(basic field: Secret) {
        guard field.count <= NextcloudLimits.authorizationBytes else { return nil }
        let parts: (String, Secret)? = field.reveal { bytes in
            let scheme = "basic ".utf8
            // Letters in either case, and a blank that is one.
            let isBasic = bytes.prefix(scheme.count).elementsEqual(scheme) {
                $0 == $1 || $1 != 0x20 && $0 | 0x20 == $1
            }
            guard isBasic else { return nil }
            let start = bytes[scheme.count...].firstIndex { $0 != 0x20 } ?? bytes.count
            let text = UnsafeRawBufferPointer(rebasing: bytes[start...])
            // What does not decode is nobody's.
            guard var plain = try? Base64.decode(text) else { return nil }
            defer { plain.withUnsafeMutableBytes { wipe($0) } }
            guard let colon = plain.firstIndex(of: 0x3A), colon > 0,
                let user = String(validating: plain[..<colon], as: UTF8.self)
            else { return nil }
            return (user, Secret(plain[(colon + 1)...]))
        }
        guard let parts else { return nil }
        (user, password) = parts
    }
}

/// The fields of a call, from a form or JSON body and, behind it in rank, the query.
struct OCSFields {
    /// Fields of a form: the ids that may be asked for, and a few to ignore.
    static let most = NextcloudLimits.askedAtOnce + 56

    private var texts: [String: String] = [:]
    private(set) var ids: [Int64]?

    init(_ body: Secret, isJSON: Bool, query: String?) throws(FormatError) {
        if let query { try readForm(Array(query.utf8)) }
        guard body.count > 0 else { return }
        let asked = ids
        ids = nil
        if isJSON {
            try body.reveal { (bytes) throws(FormatError) in try readJSON(bytes) }
        } else {
            try readForm(body.reveal { Array($0) })
        }
        ids = ids ?? asked
    }

    var registration: PushRegistration {
        PushRegistration(
            pushTokenHash: texts["pushTokenHash"], devicePublicKey: texts["devicePublicKey"],
            proxyServer: texts["proxyServer"])
    }

    private static let names = ["pushTokenHash", "devicePublicKey", "proxyServer"]

    /// Of doubles the last counts. A text that is no UTF-8 is none.
    private mutating func readForm(_ bytes: [UInt8]) throws(FormatError) {
        for field in try Form.parse(bytes, fieldLimit: Self.most).fields {
            if Self.names.contains(field.name) {
                texts[field.name] = String(validating: field.value, as: UTF8.self)
            } else if field.name.utf8.starts(with: "ids[".utf8), field.name.utf8.last == 0x5D {
                let id = String(validating: field.value, as: UTF8.self).flatMap { Int64($0) }
                ids = (ids ?? []) + [id ?? 0]
            }
        }
    }

    private mutating func readJSON(_ bytes: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = JSONReader(bytes, depthLimit: NextcloudLimits.jsonDepth)
        try reader.beginObject()
        while let member = try reader.nextMember() {
            if member.equals("ids"), try reader.peek() == .array {
                ids = try Self.ids(&reader)
            } else if let name = Self.names.first(where: { member.string() == $0 }) {
                texts[name] = nil
                if try reader.peek() == .string {
                    texts[name] = String(validating: try reader.readString().decoded(), as: UTF8.self)
                } else {
                    try reader.skipValue()
                }
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
    }

    /// What is no number is nobody's, as 0 is.
    private static func ids(_ reader: inout JSONReader) throws(FormatError) -> [Int64] {
        var ids: [Int64] = []
        try reader.beginArray()
        while try reader.nextElement() {
            switch try reader.peek() {
            case .number: ids.append(try reader.readNumber().int64 ?? 0)
            case .string: ids.append(Int64(try reader.readString().string()) ?? 0)
            default:
                try reader.skipValue()
                ids.append(0)
            }
        }
        return ids
    }
}
