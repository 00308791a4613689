package import HTTP2Client
package import PushModel
import Synchronization

/// Makes requests out of messages (docs/push-services.md §2.3). Pure but for a memory of field templates.
package final class APNsRequest: Sendable {
    /// A message that Apple would certainly refuse; it is not sent.
    package enum Refusal: Error, Sendable, Hashable {
        /// Not 2 to 200 hex digits, an even number: Apple calls it `BadDeviceToken`.
        case badDeviceToken
        /// Over 4,096 bytes, or 5,120 for VoIP.
        case tooLarge
        case empty
        case badCollapseID
        /// The bundle id has characters that no bundle id may have.
        case badTopic
        case badPriority

        var judged: (Outcome, Reason) {
            switch self {
            case .badDeviceToken: (.unregistered(since: nil), .badDeviceToken)
            case .tooLarge: (.rejected, .tooLargeToSend)
            case .empty: (.rejected, .payloadEmpty)
            case .badCollapseID: (.rejected, .badCollapseId)
            case .badTopic: (.rejected, .badTopic)
            case .badPriority: (.rejected, .badPriority)
            }
        }
    }

    private struct Kind: Hashable {
        let bundle: String, form: APNsMessage.TopicForm, pushType: APNsPushType, priority: UInt8
    }

    private let authority: String
    private struct Templates {
        var known: [Kind: HTTP2HeaderTemplate] = [:]
        /// The last that was used: nearly always the next request is of its kind.
        var last: (kind: Kind, template: HTTP2HeaderTemplate)?

        mutating func find(_ kind: Kind) -> HTTP2HeaderTemplate? {
            if let last, last.kind == kind { return last.template }
            guard let template = known[kind] else { return nil }
            last = (kind, template)
            return template
        }

        mutating func keep(_ template: HTTP2HeaderTemplate, for kind: Kind) {
            if known.count >= APNsRequest.templateLimit { known.removeAll() }
            known[kind] = template
            last = (kind, template)
        }
    }

    private let templates = Mutex(Templates())
    /// Bundles come from configuration, but a role may pass on what a client named.
    private static let templateLimit = 256
    /// Apple asks not to rely on 64 (docs/push-services.md §2.3).
    private static let tokenLimit = 200
    private static let collapseLimitBytes = 64
    /// 155 characters is Apple's own bound; suffixes come on top.
    private static let bundleLimitBytes = 155

    package init(authority: String) { self.authority = authority }

    /// - Parameter id: becomes `apns-id`, the same on every attempt.
    package func request(
        for message: APNsMessage, id: PushID, authorization: HTTP2Authorization
    ) throws(Refusal) -> HTTP2Request {
        try check(message)
        let template = try template(for: message)
        let head = HTTP2Head(capacity: Self.path.utf8CodeUnitCount + message.token.count + 36 + 20 + 64) {
            writer in
            writer.append(Self.path)
            writer.append(message.token)
            writer.endField()
            writer.append(id)
            writer.endField()
            if let expiration = message.expiration { writer.append(decimal: max(0, expiration.seconds)) }
            writer.endField()
            if let collapse = message.collapseID { writer.append(collapse) }
            writer.endField()
        }
        return HTTP2Request(
            template: template, head: head, authorization: authorization, body: message.payload)
    }

    private static let path: StaticString = "/3/device/"

    private func check(_ message: APNsMessage) throws(Refusal) {
        guard message.payload.count > 0 else { throw .empty }
        guard message.payload.count <= message.pushType.bodyLimitBytes else { throw .tooLarge }
        let isToken =
            (2...Self.tokenLimit).contains(message.token.count) && message.token.count % 2 == 0
            && message.token.reveal { HexDigits.areAll($0) }
        guard isToken else { throw .badDeviceToken }
        guard message.priority == 10 || message.priority == 5 || message.priority == 1,
            message.pushType != .background || message.priority != 10
        else { throw .badPriority }
        if let collapse = message.collapseID {
            // A field's value is visible text (RFC 9113 §8.2.1); other bytes could end the connection.
            guard (1...Self.collapseLimitBytes).contains(collapse.count),
                collapse.reveal({ $0.allSatisfy { $0 > 0x20 && $0 != 0x7F } })
            else { throw .badCollapseID }
        }
    }

    private static func isBundle(_ bundle: String) -> Bool {
        (1...bundleLimitBytes).contains(bundle.utf8.count)
            && bundle.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    private func template(for message: APNsMessage) throws(Refusal) -> HTTP2HeaderTemplate {
        let kind = Kind(
            bundle: message.bundle, form: message.topicForm, pushType: message.pushType,
            priority: message.priority)
        if let template = templates.withLock({ $0.find(kind) }) { return template }
        guard Self.isBundle(message.bundle) else { throw .badTopic }
        let template = HTTP2HeaderTemplate(
            authority: authority,
            fixed: [
                ("apns-topic", message.topic), ("apns-push-type", message.pushType.rawValue),
                ("apns-priority", String(message.priority))
            ],
            varying: [("apns-id", .nameOnce), ("apns-expiration", .nameOnce), ("apns-collapse-id", .never)])
        templates.withLock { $0.keep(template, for: kind) }
        return template
    }
}

extension HTTP2Head.Writer {
    fileprivate mutating func append(_ id: PushID) {
        append(count: UUIDDigits.count) { UUIDDigits.write(high: id.value.high, low: id.value.low, into: $0) }
    }
}
