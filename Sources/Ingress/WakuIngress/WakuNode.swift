import PushModel
import StatusPush

/// Where a Waku node's REST interface is (logos-delivery, formerly nwaku, or go-waku), and the paths of it.
///
/// The node knows which topics are followed and has no authentication, so it must be on this machine, or
/// behind TLS.
package struct WakuNode: Sendable, Hashable {
    /// Scheme, host and port, without a slash at the end.
    package let url: String
    /// What all messages travel on.
    package let pubsubTopic: String

    /// - Parameter url: `http://127.0.0.1:8645`, with or without a slash at the end; any address of this
    ///   machine, `localhost`, or `https://` and a host.
    /// - Returns: `nil` for a URL of another form, as one with a path, and for plain http to another machine.
    package init?(_ url: String, pubsubTopic: String = WakuMessage.pubsubTopic) {
        let scheme = url.hasPrefix("http://") ? 7 : url.hasPrefix("https://") ? 8 : 0
        guard scheme > 0 else { return nil }
        let base = url.hasSuffix("/") ? url.dropLast() : url[...]
        let place = base.dropFirst(scheme)
        guard !place.isEmpty, place.utf8.allSatisfy({ 0x21...0x7E ~= $0 }),
            !place.contains(where: { "/?#@\\".contains($0) })
        else { return nil }
        if scheme == 7, !Self.isHere(place) { return nil }
        self.url = String(base)
        self.pubsubTopic = pubsubTopic
    }

    /// Whether a host, perhaps with a port, is an address of this machine, or its name.
    private static func isHere(_ place: Substring) -> Bool {
        if place.hasPrefix("[") {
            return IPAddress(place.dropFirst().prefix { $0 != "]" })?.isLoopback == true
        }
        let host = place.prefix { $0 != ":" }
        return host.lowercased() == "localhost" || IPAddress(host)?.isLoopback == true
    }

    var subscriptions: String { url + "/relay/v1/subscriptions" }
    var messages: String { url + "/relay/v1/messages/" + Self.escaped(pubsubTopic) }
    var health: String { url + "/health" }

    /// - Parameters:
    ///   - range: of timestamps, Unix nanoseconds.
    ///   - cursor: of the page before, as the node gave it.
    func history(_ range: ClosedRange<Int64>, pageSize: Int, cursor: String?) -> String {
        var text = url + "/store/v3/messages?includeData=true&ascending=true&pageSize=\(pageSize)"
        text += "&pubsubTopic=" + Self.escaped(pubsubTopic)
        text += "&startTime=\(range.lowerBound)&endTime=\(range.upperBound)"
        if let cursor { text += "&cursor=" + Self.escaped(cursor) }
        return text
    }

    /// Percent-encodes all but letters, digits and `-._~` (RFC 3986 §2.3).
    static func escaped(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var out: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: out.append(byte)
            default: out += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
