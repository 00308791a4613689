package import PushModel
import Primitives
package import Secp256k1Keys
import WireFormats

/// The type of a message, by Status's number. Other numbers belong to chats.
package struct MessageType: RawRepresentable, Sendable, Hashable {
    package let rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    package static let contactCodeAdvertisement = MessageType(rawValue: 15)
    package static let registration = MessageType(rawValue: 16)
    package static let registrationResponse = MessageType(rawValue: 17)
    package static let query = MessageType(rawValue: 18)
    package static let queryResponse = MessageType(rawValue: 19)
    package static let request = MessageType(rawValue: 20)
    package static let response = MessageType(rawValue: 21)
}

/// ApplicationMetadataMessage: names the type of a message and its sender. Only the signature tells who the
/// sender is; it does not cover the type.
package struct MetadataMessage: Sendable {
    package let type: MessageType
    /// As it was sent and signed; for a registration, the sealed box.
    package let payload: Secret
    package let signer: PublicPoint
    /// Keccak-256 of the signer's key, uncompressed, and all of these bytes: 32 bytes.
    package let messageID: Secret

    /// - Throws: `.malformedMessage`; `.unsigned` when no key can be recovered, v other than 0 and 1 among
    /// it.
    ///
    /// - Parameter fallback: the sender of a message without a signature of its own: the key that signed the
    ///   payload, as in deployed servers. `nil`: nobody.
    package init(
        reading bytes: UnsafeRawBufferPointer, fallback: @autoclosure () -> PublicPoint? = nil
    ) throws(StatusError) {
        let parts: Parts
        do {
            var fields = ProtobufReader(bytes, fieldLimit: Parts.fieldLimit)
            parts = try Parts(reading: &fields)
        } catch {
            throw StatusError(.malformedMessage)
        }
        let recovered = parts.signature.reveal { signature in
            signature.isEmpty
                ? fallback() : PublicPoint.recovered(from: signature, of: Keccak.hash256(parts.payload))
        }
        guard let signer = recovered
        else { throw StatusError(.unsigned) }
        type = parts.type
        payload = parts.payload
        self.signer = signer
        messageID = Self.messageID(of: bytes, by: signer)
    }

    package init(
        reading bytes: Secret, fallback: @autoclosure () -> PublicPoint? = nil
    ) throws(StatusError) {
        self = try bytes.reveal { bytes throws(StatusError) in
            try MetadataMessage(reading: bytes, fallback: fallback())
        }
    }

    /// Keccak-256 of the key's 65 bytes and the message as it was sent. The message is never encoded again
    /// for it.
    package static func messageID(of bytes: UnsafeRawBufferPointer, by signer: PublicPoint) -> Secret {
        signer.uncompressed.withUnsafeBytes { Secret(Keccak.hash256(joining: [$0, bytes])) }
    }

    /// Wraps and signs.
    package static func wrap(_ payload: Secret, _ type: MessageType, by key: Secp256k1KeyPair) -> Secret {
        let parts = Parts(
            signature: Secret(key.signRecoverable(Keccak.hash256(payload))), payload: payload, type: type)
        return parts.encoded()
    }

    private struct Parts: StatusMessage {
        var signature: Secret = .none
        var payload: Secret = .none
        var type = MessageType(rawValue: 0)

        init(signature: Secret, payload: Secret, type: MessageType) {
            self.signature = signature
            self.payload = payload
            self.type = type
        }

        init(reading fields: inout ProtobufReader) throws(FormatError) {
            while let field = try fields.next() {
                switch field.number {
                case 1: signature = field.secret ?? signature
                case 2: payload = field.secret ?? payload
                case 3: type = field.enumNumber.map { MessageType(rawValue: $0) } ?? type
                default: break
                }
            }
        }

        var room: Int { FieldRoom.heads + signature.count + payload.count }

        func write(to writer: inout ProtobufWriter) {
            writer.bytes(1, signature)
            writer.bytes(2, payload)
            writer.enumNumber(3, type.rawValue)
        }
    }
}
