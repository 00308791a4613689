package import PushModel
import WireFormats

/// A push as it reached the phone, still sealed (§8.3).
package struct DeliveredPush: Sendable {
    /// `enc_payload`, base64.
    let payload: Secret

    /// - Parameter payload: the member `enc_payload` of what arrived.
    package init(payload: Secret) { self.payload = payload }

    /// Finds the push in what a push service delivered, as JSON: beside `aps`, as FCM's data or in its
    /// `data` or `message`, or in a text that is JSON again, as Huawei's is. `spns` may be a number or a
    /// text, of any version.
    ///
    /// - Throws: `.foreignPush` for what is not of this protocol, which an app may have use for elsewhere.
    package init(delivered json: Secret) throws(SessionError) {
        guard json.count <= SessionLimits.deliveredBytes,
            // Whatever cannot be read is not of this protocol.
            let found = json.reveal({ try? Self.find($0, SessionLimits.deliveredDepth) })
        else { throw SessionError(.foreignPush) }
        payload = found
    }

    private static func find(_ json: UnsafeRawBufferPointer, _ depth: Int) throws(FormatError) -> Secret {
        guard depth > 0 else { throw FormatError(.tooDeep) }
        var reader = JSONReader(json)
        if try reader.peek() == .string {
            let text = try reader.readString().secret()
            try reader.end()
            return try text.reveal { (text) throws(FormatError) in try find(text, depth - 1) }
        }
        var payload: Secret?
        var hasVersion = false
        var inner: UnsafeRawBufferPointer?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let kind = try reader.peek()
            if name.equals("enc_payload"), kind == .string {
                payload = try reader.readString().secret()
            } else if name.equals("spns") {
                hasVersion = kind == .number || kind == .string
                try reader.skipValue()
            } else if name.equals("data") || name.equals("message"), kind == .object || kind == .string {
                inner = try reader.skipValue()
            } else {
                try reader.skipValue()
            }
        }
        try reader.end()
        if let payload, hasVersion { return payload }
        guard let inner else { throw FormatError(.wrongType) }
        return try find(inner, depth - 1)
    }
}
