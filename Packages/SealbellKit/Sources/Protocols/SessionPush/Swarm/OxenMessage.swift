package import PushModel
import WireFormats

/// One message of OxenMQ, from its frames (§10.1).
package enum OxenMessage: Sendable {
    case hi, hello, bye
    /// A command, or a request, whose first part is its tag.
    case call(name: String, parts: [Secret])
    case reply(tag: Secret, parts: [Secret])
    /// A request of ours was refused; where the refusal names it, by its tag.
    case refusal(OxenRefusal, tag: Secret?)
    /// None of these.
    case strange

    /// - Parameter frames: without the routing frame of a server's side.
    package init(_ frames: [Secret]) {
        guard let first = frames.first, first.count <= SwarmFormLimits.commandBytes else {
            self = .strange
            return
        }
        let rest = Array(frames.dropFirst())
        let word = first.reveal { String(decoding: $0, as: UTF8.self) }
        switch word {
        case "HI": self = .hi
        case "HELLO": self = .hello
        case "BYE": self = .bye
        case "REPLY":
            self = rest.first.map { .reply(tag: $0, parts: Array(rest.dropFirst())) } ?? .strange
        default:
            if let refusal = OxenRefusal(rawValue: word) {
                self = .refusal(refusal, tag: Self.refusedTag(rest))
            } else {
                self = Self.isCommand(word) ? .call(name: word, parts: rest) : .strange
            }
        }
    }

    /// `REPLY` and the tag, where a request was refused.
    private static func refusedTag(_ rest: [Secret]) -> Secret? {
        guard rest.count >= 2, rest[0].reveal({ bytes($0, equal: "REPLY") }) else { return nil }
        return rest[1]
    }

    /// A category, a point and a name.
    private static func isCommand(_ word: String) -> Bool {
        guard let point = word.utf8.firstIndex(of: UInt8(ascii: ".")) else { return false }
        return point != word.startIndex && word.utf8.index(after: point) != word.endIndex
    }

    /// What a client calls itself, so that its next connection takes over its place: a letter and its key.
    package static func routingID(of key: [UInt8]) -> [UInt8] { [UInt8(ascii: "L")] + key }
}

/// Refusals that either side may send instead of doing what it was told.
package enum OxenRefusal: String, Sendable, Hashable, CaseIterable {
    case unknownCommand = "UNKNOWNCOMMAND"
    case forbidden = "FORBIDDEN"
    case forbiddenToNodes = "FORBIDDEN_SN"
    case notANode = "NOT_A_SERVICE_NODE"
    case noReplyTag = "NO_REPLY_TAG"
}
