import Primitives
package import PushModel
package import Secp256k1Keys

/// Messages as both ends seal and open them, all layers at once (§1).
package enum EndMessages {
    /// `request_id`: of a registration's box, nonce and tag included.
    package static func requestID(_ box: Secret) -> Secret { Secret(SHAKE256.hash64(box)) }

    /// Wraps, signs and seals to a key. The same key signs both layers, so that an ephemeral sender shows
    /// nobody another.
    package static func seal(
        _ type: MessageType, _ payload: Secret, signedBy signer: Secp256k1KeyPair, to recipient: PublicPoint,
        on topic: WakuTopic, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> WakuMessage {
        let wrapped = MetadataMessage.wrap(payload, type, by: signer)
        return message(sealPayload(wrapped, to: recipient, signedBy: signer, &generator), topic, now)
    }

    /// Wraps, signs and seals to whoever knows a topic's name.
    ///
    /// - Returns: the message, and the id that an answer names.
    package static func seal(
        _ type: MessageType, _ payload: Secret, signedBy signer: Secp256k1KeyPair, on topic: WakuTopic,
        topicKey: Secret, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> (message: WakuMessage, id: Secret) {
        let wrapped = MetadataMessage.wrap(payload, type, by: signer)
        let id = wrapped.reveal { MetadataMessage.messageID(of: $0, by: signer.point) }
        return (message(sealPayload(wrapped, topicKey, signer, &generator), topic, now), id)
    }

    /// A contact code, inside a ProtocolMessage as deployed clients send it.
    static func sealContactCode(
        _ code: Secret, installationID: Secret, signedBy signer: Secp256k1KeyPair, on topic: WakuTopic,
        topicKey: Secret, _ now: UnixTime, _ generator: inout some RandomNumberGenerator
    ) -> WakuMessage {
        // An empty payload would be dropped, and an account without servers has nothing to say but that.
        let said = code.count > 0 ? code : emptyCode
        let wrapped = Wrapping.wrap(
            MetadataMessage.wrap(said, .contactCodeAdvertisement, by: signer), installationID: installationID)
        return message(sealPayload(wrapped, topicKey, signer, &generator), topic, now)
    }

    /// A field of a number that nobody reads, so that the message is not empty.
    private static let emptyCode = Secret([0x78, 0x01])

    package static func open(_ message: WakuMessage, with key: Secp256k1KeyPair) -> MetadataMessage? {
        // Topics are shared: what does not open, or has another form, is somebody else's.
        guard let payload = try? WakuPayload.openAsymmetric(message.payload, with: key),
            let wrapped = try? Wrapping.unwrap(payload.data)
        else { return nil }
        // The same.
        return try? MetadataMessage(reading: wrapped)
    }

    package static func open(_ message: WakuMessage, topicKey: Secret) -> MetadataMessage? {
        // What does not open, or has another form, is somebody else's.
        guard let payload = try? WakuPayload.openSymmetric(message.payload, key: topicKey),
            let wrapped = try? Wrapping.unwrap(payload.data)
        else { return nil }
        // The same.
        return try? MetadataMessage(reading: wrapped)
    }

    /// What was found on a contact code's topic.
    package struct ContactCode {
        package let signer: PublicPoint
        /// Who wrote it; `nil` without a ProtocolMessage around it.
        package let installationID: Secret?
        package let advertisement: ContactCodeAdvertisement
    }

    /// Opens a contact code, bare or inside a ProtocolMessage.
    package static func openContactCode(_ message: WakuMessage, topicKey: Secret) -> ContactCode? {
        // What does not open, or has another form, is somebody else's.
        guard let payload = try? WakuPayload.openSymmetric(message.payload, key: topicKey) else { return nil }
        return contactCode(payload.data)
    }

    package static func contactCode(_ bytes: Secret) -> ContactCode? {
        // What does not open, or has another form, is somebody else's.
        guard let inner = try? Wrapping.unwrap(bytes),
            let metadata = try? MetadataMessage(reading: inner), metadata.type == .contactCodeAdvertisement,
            let advertisement = try? ContactCodeAdvertisement(reading: metadata.payload)
        else { return nil }
        let isBare = inner == bytes
        return ContactCode(
            signer: metadata.signer, installationID: isBare ? nil : Wrapping.installationID(of: bytes),
            advertisement: advertisement)
    }

    // MARK: payloads

    static func sealPayload(
        _ data: Secret, to recipient: PublicPoint, signedBy signer: Secp256k1KeyPair,
        _ generator: inout some RandomNumberGenerator
    ) -> Secret {
        let padding = Draw.bytes(WakuPayload.padding(data, isSigned: true), &generator)
        return WakuPayload.sealAsymmetric(
            WakuPayload.body(data, signer: signer, padding: padding), to: recipient,
            ephemeral: Draw.keyPair(&generator), iv: Draw.bytes(16, &generator))
    }

    private static func sealPayload(
        _ data: Secret, _ topicKey: Secret, _ signer: Secp256k1KeyPair,
        _ generator: inout some RandomNumberGenerator
    ) -> Secret {
        let padding = Draw.bytes(WakuPayload.padding(data, isSigned: true), &generator)
        return WakuPayload.sealSymmetric(
            WakuPayload.body(data, signer: signer, padding: padding), key: topicKey,
            nonce: Draw.bytes(StatusLimits.nonceBytes, &generator))
    }

    private static func message(_ payload: Secret, _ topic: WakuTopic, _ now: UnixTime) -> WakuMessage {
        let (nanoseconds, overflow) = now.milliseconds.multipliedReportingOverflow(by: 1_000_000)
        return WakuMessage(
            payload: payload, contentTopic: topic.contentTopic,
            timestamp: overflow ? 0 : nanoseconds)
    }
}
