package import PushModel
import WireFormats

/// The layers that may surround a ``MetadataMessage``: those of Status's chats, of which this protocol needs
/// only the outer part.
package enum Wrapping {
    /// - Returns: the bytes of the ``MetadataMessage``: those inside a ProtocolMessage if it has a message
    ///   for everybody, else the bytes that came. `nil` for a segment of a longer message.
    /// - Throws: `.malformedMessage`.
    package static func unwrap(_ bytes: Secret) throws(StatusError) -> Secret? {
        try bytes.reveal { raw throws(StatusError) in
            var first: Secret?
            var publicMessage: Secret?
            var hasFourth = false
            do {
                var fields = ProtobufReader(raw, fieldLimit: StatusLimits.fewFields)
                while let field = try fields.next() {
                    switch field.number {
                    case 1: first = field.secret ?? first
                    case 4: hasFourth = hasFourth || field.bytes != nil
                    case 102: publicMessage = field.secret ?? publicMessage
                    default: break
                    }
                }
            } catch {
                throw StatusError(.malformedMessage)
            }
            if let publicMessage { return publicMessage }
            // SegmentMessage: a hash of the whole message, and a piece of it. No push message is long enough
            // to be cut.
            if first?.count == 32, hasFourth { return nil }
            return bytes
        }
    }

    /// A ProtocolMessage for everybody: installation id and message. Contact codes are sent in it.
    package static func wrap(_ message: Secret, installationID: Secret) -> Secret {
        var writer = ProtobufWriter(reserving: FieldRoom.heads + message.count + installationID.count)
        writer.bytes(2, installationID)
        writer.bytes(102, message)
        return writer.takeSecret()
    }
}
