import NextcloudPush
import PushModel
import RSAKeys
import WireFormats

/// The parsers of the Nextcloud protocol, and RSA keys.
let nextcloudTargets: [String: Body] = [
    "nextcloud-batch": { bytes in batch(bytes, isJSON: false) },
    "nextcloud-json-batch": { bytes in batch(bytes, isJSON: true) },
    "nextcloud-devices": { bytes in
        guard let first = bytes.first else { return }
        let body = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        let isJSON = first & 1 == 1
        let query = first & 2 == 0 ? nil : String(decoding: body, as: UTF8.self)
        let inbound = try? NextcloudInbound.parse(
            method: first & 4 == 0 ? "POST" : "DELETE", path: "/devices", query: query,
            contentType: isJSON ? "application/json" : nil,
            userAgent: String(decoding: body.prefix(64), as: UTF8.self), body: body)
        guard case .register(let form)? = inbound?.call else { return }
        precondition(form.pushToken.count <= NextcloudLimits.tokenBytes)
        precondition(form.ownership.signature.count == NextcloudLimits.blockBytes)
    },
    "nextcloud-cloud-id": { bytes in
        guard let cloudID = CloudID(Secret(copying: bytes)) else { return }
        // Whatever a stranger sends, it is a path below one host, and no line of its own.
        let url = cloudID.proofURL
        precondition(url.hasPrefix("https://") && url.hasSuffix("?format=json"))
        precondition(url.utf8.allSatisfy { (0x21..<0x7F).contains($0) && $0 != 0x40 && $0 != 0x23 })
    },
    "rsa-pem": { bytes in
        guard let key = try? RSAPublicKey(pem: bytes) else { return }
        let again = withBytes(Array(key.pem.utf8)) { try? RSAPublicKey(pem: $0) }
        precondition(again == key, "what we write we can read")
    },
    "rsa-digest": { bytes in
        // 64 bytes of digest, the rest a signature: none but the known one verifies.
        guard bytes.count >= RSAForm.digestBytes else { return }
        let digest = UnsafeRawBufferPointer(rebasing: bytes[..<RSAForm.digestBytes])
        let signature = UnsafeRawBufferPointer(rebasing: bytes[RSAForm.digestBytes...])
        precondition(!fuzzKey.isValid(signature, overDigest: digest))
    }
]

/// Read again from what was read, so that every text has its place.
private func batch(_ bytes: UnsafeRawBufferPointer, isJSON: Bool) {
    guard let batch = try? NotificationBatch(parsing: bytes, isJSON: isJSON) else { return }
    precondition(batch.entries.count + batch.malformed <= NextcloudLimits.entriesPerCall)
    for entry in batch.entries {
        precondition(DeviceIdentifier(base64: entry.identifier.base64) == entry.identifier)
    }
}

extension DeviceIdentifier {
    fileprivate init?(base64 text: [UInt8]) {
        guard let read = withBytes(text, { DeviceIdentifier(base64: $0) }) else { return nil }
        self = read
    }
}

private let fuzzKey: RSAPublicKey = {
    do { return try RSAPrivateKey.generate().publicKey } catch {
        preconditionFailure("the library makes no key")
    }
}()
