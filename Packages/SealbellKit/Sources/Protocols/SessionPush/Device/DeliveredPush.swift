package import PushModel
import SealbellKit
import WireFormats

/// A push as it reached the phone, still sealed (§8.3).
package struct DeliveredPush: Sendable {
    /// `enc_payload`, base64.
    let payload: Secret

    /// - Parameter payload: the member `enc_payload` of what arrived.
    package init(payload: Secret) { self.payload = payload }

    /// Finds the push in what a push service delivered, as JSON. `spns` may be a number or a text, of any
    /// version.
    ///
    /// - Throws: `.foreignPush` for what is not of this protocol, which an app may have use for elsewhere.
    package init(delivered json: Secret) throws(SessionError) {
        guard let payload = Delivered.find(Members.self, in: json)?.payload else {
            throw SessionError(.foreignPush)
        }
        self.payload = payload
    }

    private struct Members: DeliveredMembers {
        var payload: Secret?
        var hasVersion = false

        var areThere: Bool { payload != nil && hasVersion }

        mutating func read(
            _ name: JSONStringSlice, _ kind: JSONKind, _ reader: inout JSONReader
        ) throws(FormatError) -> DeliveredMember {
            if name.equals("enc_payload"), kind == .string {
                payload = try reader.readString().secret()
            } else if name.equals("spns") {
                hasVersion = kind == .number || kind == .string
                try reader.skipValue()
            } else {
                return .foreign
            }
            return .own
        }
    }
}
