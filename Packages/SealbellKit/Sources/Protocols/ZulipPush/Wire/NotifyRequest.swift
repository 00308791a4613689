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

    package let device: DeviceName
    package let target: Target
    /// APNs: `{"push_key_id":n,"encrypted_data":"…","aps":…}`, the whole body. FCM: the `data` object,
    /// `{"push_key_id":"n","encrypted_data":"…"}`. In v11 the id is `push_account_id`.
    package let payload: Secret
    /// The range of the ciphertext in `payload`.
    package let ciphertext: Range<Int>
    /// The origin gave no `aps`, so that `payload` ends with ``defaultAps`` and the closing brace.
    package let hasDefaultAps: Bool

    /// What the deployed relay sends where the origin gives no `aps` (§5.5).
    package static let defaultAps = Array(
        #"{"mutable-content":1,"alert":{"title":"New notification"}}"#.utf8)

    /// The token's hash; `nil` in v11.
    package var tokenID: TokenID? { if case .token(let id) = device { id } else { nil } }

    /// The payload with another `aps` instead of the default; unchanged if the origin gave its own, or if
    /// Apple would not take the body with the other one.
    ///
    /// - Parameter aps: a JSON object.
    func payload(fallback aps: [UInt8]?) -> Secret {
        guard let aps, hasDefaultAps, case .apns(_, let type) = target else { return payload }
        let kept = payload.count - Self.defaultAps.count - 1
        let count = kept + aps.count + 1
        guard count <= type.bodyLimitBytes else { return payload }
        return payload.reveal { old in
            Secret(count: count) { out in
                out.copyMemory(from: UnsafeRawBufferPointer(rebasing: old[..<kept]))
                UnsafeMutableRawBufferPointer(rebasing: out[kept...]).copyBytes(from: aps)
                out[count - 1] = 0x7D
            }
        }
    }
}

/// `push/e2ee/notify` (§5.5, §14.6), not yet believed.
package struct NotifyRequest: Sendable {
    /// Items of one form: a call never has two (§14.1).
    package enum Items: Sendable {
        /// v12 and v11; of a call without items also.
        case given([NotifyItem])
        /// The specification's own.
        case sealed([SealedItem])
    }

    package let realm: UUIDText
    /// At most ``ZulipLimits/requestsPerCall``.
    package let asked: Items

    /// Those of v12 or v11.
    package var items: [NotifyItem] { if case .given(let items) = asked { items } else { [] } }

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

    private init(realm: UUIDText, asked: Items) {
        self.realm = realm
        self.asked = asked
    }

    private static func read(
        _ reader: inout JSONReader, _ parser: consuming NotifyItemParser
    ) throws -> NotifyRequest {
        var realm: UUIDText?
        var items: Items?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            if name.equals("realm_uuid") {
                let text = try reader.readString()
                realm =
                    text.hasEscapes
                    ? withBytes(text.decoded()) { UUIDText(anyCase: $0) } : UUIDText(anyCase: text.raw)
                if realm == nil { throw ZulipError(.invalidRequest) }
            } else if name.equals("push_requests") {
                items = try readItems(&reader, &parser)
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        guard let realm, let items else { throw ZulipError(.invalidRequest) }
        return NotifyRequest(realm: realm, asked: items)
    }

    private static func readItems(
        _ reader: inout JSONReader, _ parser: inout NotifyItemParser
    ) throws -> Items {
        var given: [NotifyItem] = []
        var sealed: [SealedItem] = []
        try reader.beginArray()
        while try reader.nextElement() {
            guard given.count + sealed.count < ZulipLimits.requestsPerCall else {
                throw ZulipError(.tooManyRequests)
            }
            switch try parser.read(&reader) {
            case .given(let item):
                guard sealed.isEmpty, item.isNamed(like: given.last) else {
                    throw ZulipError(.invalidRequest)
                }
                given.append(item)
            case .sealed(let item):
                guard given.isEmpty else { throw ZulipError(.invalidRequest) }
                sealed.append(item)
            }
        }
        return sealed.isEmpty ? .given(given) : .sealed(sealed)
    }
}

extension NotifyItem {
    /// Whether both are of v12, or both of v11.
    fileprivate func isNamed(like other: NotifyItem?) -> Bool {
        switch (device, other?.device) {
        case (_, nil), (.token, .token), (.number, .number): true
        case (.token, .number), (.number, .token): false
        }
    }
}
