package import PushModel
package import Secp256k1Keys

/// What a sending client of ours puts into `message`, so that a phone can show something without fetching:
///
///     length of the id (1) ‖ id ‖ length of the content (2, big-endian) ‖ content ‖ zeros
///
/// filled up to ``StatusLimits/previewBytes``, then sealed to the account's key and signed by the author as
/// 26/WAKU2-PAYLOAD. All notes have one length; deployed clients never fill the field.
package struct MessagePreview: Sendable {
    package let messageID: Secret
    package let content: Secret
    package let author: PublicPoint

    /// - Returns: `nil` when there is no room, and the push goes without it.
    package static func seal(
        _ content: Secret, messageID: Secret, author: Secp256k1KeyPair, to account: PublicPoint,
        using generator: inout some RandomNumberGenerator
    ) -> Secret? {
        guard messageID.count <= 255, 3 + messageID.count + content.count <= StatusLimits.previewBytes else {
            return nil
        }
        let plain = Secret(count: StatusLimits.previewBytes) { room in
            room[0] = UInt8(messageID.count)
            copy(messageID, into: room, at: 1)
            let at = 1 + messageID.count
            room[at] = UInt8(content.count >> 8)
            room[at + 1] = UInt8(content.count & 255)
            copy(content, into: room, at: at + 2)
        }
        return EndMessages.sealPayload(plain, to: account, signedBy: author, &generator)
    }

    /// - Returns: `nil` for what does not open, is not signed, or has another form.
    package static func open(_ sealed: Secret, with key: Secp256k1KeyPair) -> MessagePreview? {
        // What is for somebody else, or was changed, does not open.
        guard let opened = try? WakuPayload.openAsymmetric(sealed, with: key), let author = opened.signer
        else {
            return nil
        }
        return opened.data.reveal { bytes in
            guard bytes.count == StatusLimits.previewBytes else { return nil }
            let idEnd = 1 + Int(bytes[0])
            guard idEnd > 1, idEnd + 2 <= bytes.count else { return nil }
            let end = idEnd + 2 + (Int(bytes[idEnd]) << 8 | Int(bytes[idEnd + 1]))
            guard end <= bytes.count, bytes[end...].allSatisfy({ $0 == 0 }) else { return nil }
            return MessagePreview(
                messageID: Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[1..<idEnd])),
                content: Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[(idEnd + 2)..<end])),
                author: author)
        }
    }

    private static func copy(_ part: Secret, into room: UnsafeMutableRawBufferPointer, at: Int) {
        part.reveal { UnsafeMutableRawBufferPointer(rebasing: room[at...]).copyMemory(from: $0) }
    }
}
