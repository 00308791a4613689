import PushModel
import WireFormats

extension Wrapping {
    /// Which installation a ProtocolMessage names; `nil`: none.
    static func installationID(of bytes: Secret) -> Secret? {
        bytes.reveal { raw in
            var fields = ProtobufReader(raw, fieldLimit: StatusLimits.fewFields)
            var id: Secret?
            // What cannot be read names nobody.
            while let field = try? fields.next() {
                if field.number == 2, let text = try? field.secretText() { id = text }
            }
            return id
        }
    }
}
