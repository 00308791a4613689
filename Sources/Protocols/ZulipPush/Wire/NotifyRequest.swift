package import PushModel
package import WireFormats

/// One item of a notify call: for whom, and the body that Apple or Google will get (§5.5, §6).
package struct NotifyItem: Sendable {
    package enum Target: Sendable, Hashable {
        /// `apns-priority` and `apns-push-type`.
        case apns(priority: UInt8, APNsPushType)
        case fcm(FCMMessage.Priority)

        package var kind: TokenKind {
            switch self {
            case .apns: .apns
            case .fcm: .fcm
            }
        }
    }

    package let tokenID: TokenID
    package let target: Target
    /// APNs: `{"push_key_id":n,"encrypted_data":"…","aps":…}`, the whole body. FCM: the `data` object,
    /// `{"push_key_id":"n","encrypted_data":"…"}`.
    package let payload: Secret
    /// Where the ciphertext stands in `payload`.
    package let ciphertext: Range<Int>
    /// The origin gave no `aps`, so that `payload` ends with ``defaultAps`` and the closing brace.
    package let hasDefaultAps: Bool

    /// What the deployed relay sends where the origin gives no `aps` (§5.5).
    package static let defaultAps = Array(
        #"{"mutable-content":1,"alert":{"title":"New notification"}}"#.utf8)

    /// The payload with another `aps` in place of the default; as it stands where the origin gave its own.
    ///
    /// - Parameter aps: a JSON object.
    /// - Throws: `.payloadTooLarge` when Apple would not take the body any more.
    func payload(fallback aps: [UInt8]?) throws(ZulipError) -> Secret {
        guard let aps, hasDefaultAps, case .apns(_, let type) = target else { return payload }
        let kept = payload.count - Self.defaultAps.count - 1
        let count = kept + aps.count + 1
        guard count <= type.bodyLimitBytes else { throw ZulipError(.payloadTooLarge) }
        return payload.reveal { old in
            Secret(count: count) { out in
                out.copyMemory(from: UnsafeRawBufferPointer(rebasing: old[..<kept]))
                UnsafeMutableRawBufferPointer(rebasing: out[kept...]).copyBytes(from: aps)
                out[count - 1] = 0x7D
            }
        }
    }
}

/// `push/e2ee/notify` (§5.5), not yet believed.
package struct NotifyRequest: Sendable {
    package let realm: UUIDText
    /// At most ``ZulipLimits/requestsPerCall``.
    package let items: [NotifyItem]

    /// Reads the body straight into what the push services will be sent. Members that are not known are
    /// ignored; of doubles the last counts.
    ///
    /// - Throws: `.malformedJSON`, `.invalidRequest`, `.tooManyRequests`, `.payloadTooLarge`,
    ///   `.bodyTooLarge`. One bad item fails the whole call.
    package init(parsing body: UnsafeRawBufferPointer) throws(ZulipError) {
        guard body.count <= ZulipLimits.notifyBodyBytes else { throw ZulipError(.bodyTooLarge) }
        var reader = JSONReader(body, depthLimit: ZulipLimits.jsonDepth)
        do {
            self = try Self.read(&reader, NotifyItemParser(body: body.count))
        } catch let error as ZulipError {
            throw error
        } catch let error as FormatError {
            throw ZulipError(error.code == .wrongType ? .invalidRequest : .malformedJSON)
        } catch {
            throw ZulipError(.malformedJSON)
        }
    }

    private init(realm: UUIDText, items: [NotifyItem]) {
        self.realm = realm
        self.items = items
    }

    private static func read(
        _ reader: inout JSONReader, _ parser: consuming NotifyItemParser
    ) throws -> NotifyRequest {
        var realm: UUIDText?
        var items: [NotifyItem]?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("realm_uuid") {
                realm = withBytes(try reader.readString().decoded()) { UUIDText(anyCase: $0) }
                if realm == nil { throw ZulipError(.invalidRequest) }
            } else if name.equals("push_requests") {
                items = try readItems(&reader, &parser)
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        guard let realm, let items else { throw ZulipError(.invalidRequest) }
        return NotifyRequest(realm: realm, items: items)
    }

    private static func readItems(
        _ reader: inout JSONReader, _ parser: inout NotifyItemParser
    ) throws -> [NotifyItem] {
        var items: [NotifyItem] = []
        try reader.beginArray()
        while try reader.nextElement() {
            guard items.count < ZulipLimits.requestsPerCall else { throw ZulipError(.tooManyRequests) }
            items.append(try parser.read(&reader))
        }
        return items
    }
}
