public import PushModel

/// What an OCS endpoint of the origin answers (§4.1), before it is worded for one of the two versions of the
/// interface and one of the two formats.
public struct OCSAnswer: Sendable {
    /// `/ocs/v1.php` or `/ocs/v2.php`.
    public enum Version: Sendable, Hashable, CaseIterable { case v1, v2 }
    /// JSON where the caller asks for it (`?format=json`, `Accept: application/json`), else XML.
    public enum Format: Sendable, Hashable, CaseIterable { case json, xml }
    /// `data.message` of a refusal; frozen.
    public enum Word: String, Sendable, Hashable, CaseIterable {
        case invalidTokenHash = "INVALID_PUSHTOKEN_HASH"
        case invalidDeviceKey = "INVALID_DEVICE_KEY"
        case invalidProxyServer = "INVALID_PROXY_SERVER"
        case invalidSessionToken = "INVALID_SESSION_TOKEN"
    }

    enum Value: Sendable {
        case text(String)
        case number(Int)
    }

    /// 200, 201, 202, 400 or 401.
    public let status: Int
    /// `data`: names and values in order.
    let data: [(name: StaticString, value: Value)]

    /// Of a refusal.
    public var word: Word? {
        guard status == 400, data.count == 1, case .text(let word) = data[0].value else { return nil }
        return Word(rawValue: word)
    }

    static func refusal(_ word: Word) -> OCSAnswer {
        OCSAnswer(status: 400, data: [("message", .text(word.rawValue))])
    }

    static let notLoggedIn = OCSAnswer(status: 401, data: [])

    /// The status of the HTTP answer: of version 1 it is 200, but for a caller who is not logged in.
    public func httpStatus(_ version: Version) -> Int { version == .v1 && status != 401 ? 200 : status }

    /// `Content-Type`.
    public func contentType(_ format: Format) -> String {
        format == .json ? "application/json; charset=utf-8" : "application/xml; charset=utf-8"
    }

    public func body(_ version: Version, _ format: Format) -> Secret {
        format == .json ? json(version) : xml(version)
    }

    // MARK: parts

    private func meta(_ version: Version) -> [(name: StaticString, value: Value)] {
        let code = status == 401 ? 997 : version == .v1 && status == 200 ? 100 : status
        let isFine = version == .v1 ? code == 100 : (200..<300).contains(code)
        let message = isFine ? "OK" : status == 401 ? "Current user is not logged in" : ""
        let meta: [(name: StaticString, value: Value)] = [
            ("status", .text(isFine ? "ok" : "failure")), ("statuscode", .number(code)),
            ("message", .text(message))
        ]
        return version == .v1 ? meta + [("totalitems", .text("")), ("itemsperpage", .text(""))] : meta
    }

    private func json(_ version: Version) -> Secret {
        var text = PHPText(reserving: 2_048)
        text.raw(#"{"ocs":{"meta":"#)
        write(meta(version), &text)
        text.raw(#","data":"#)
        if data.isEmpty { text.raw("[]") } else { write(data, &text) }
        text.raw("}}")
        return text.takeSecret()
    }

    private func write(_ members: [(name: StaticString, value: Value)], _ text: inout PHPText) {
        text.raw("{")
        for (place, member) in members.enumerated() {
            if place > 0 { text.raw(",") }
            text.raw("\"")
            text.raw(member.name)
            text.raw("\":")
            switch member.value {
            case .text(let value): text.string(value)
            case .number(let value): text.int(Int64(value))
            }
        }
        text.raw("}")
    }

    /// None of the values has a character that XML escapes.
    private func xml(_ version: Version) -> Secret {
        var text = PHPText(reserving: 2_048)
        text.raw("<?xml version=\"1.0\"?>\n<ocs>\n")
        element("meta", meta(version), &text)
        element("data", data, &text)
        text.raw("</ocs>\n")
        return text.takeSecret()
    }

    private func element(
        _ name: StaticString, _ members: [(name: StaticString, value: Value)], _ text: inout PHPText
    ) {
        guard !members.isEmpty else {
            text.raw(" <")
            text.raw(name)
            text.raw("/>\n")
            return
        }
        text.raw(" <")
        text.raw(name)
        text.raw(">\n")
        for member in members {
            text.raw("  <")
            text.raw(member.name)
            if case .text("") = member.value {
                text.raw("/>\n")
                continue
            }
            text.raw(">")
            switch member.value {
            case .text(let value): text.plain(value)
            case .number(let value): text.plain(String(value))
            }
            text.raw("</")
            text.raw(member.name)
            text.raw(">\n")
        }
        text.raw(" </")
        text.raw(name)
        text.raw(">\n")
    }
}
