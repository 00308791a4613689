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
    "nextcloud-request": { bytes in
        // Method and path, content type, User-Agent, query, body, each on a line of its own.
        let parts = bytes.split(separator: 0x0A, maxSplits: 5, omittingEmptySubsequences: false)
        guard parts.count == 6 else { return }
        let texts = parts.map { String(decoding: $0, as: UTF8.self) }
        let inbound = try? NextcloudInbound.parse(
            method: texts[0], path: texts[1], query: texts[4], contentType: texts[2], userAgent: texts[3],
            body: UnsafeRawBufferPointer(rebasing: parts[5]))
        guard let inbound else { return }
        precondition(inbound.prefix.map { $0.utf8.count <= NextcloudLimits.prefixBytes } ?? true)
        precondition(inbound.client.products.count <= 8)
        precondition((try? NextcloudInbound.check(method: texts[0], path: texts[1])) != nil)
    },
    "nextcloud-push-token": { bytes in
        guard let first = bytes.first else { return }
        // What stands behind a newline is `voipToken`.
        let parts = bytes.dropFirst().split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        var fields = goodFields + [(name: "pushToken", value: Array(parts[0]))]
        if parts.count > 1 { fields.append((name: "voipToken", value: Array(parts[1]))) }
        if first & 3 > 0 {
            fields.append((name: "pushProvider", value: Array((first & 1 == 0 ? "apns" : "fcm").utf8)))
        }
        let inbound = try? withBytes(Form(fields).encoded()) { body in
            try NextcloudInbound.parse(method: "POST", path: "/devices", body: body)
        }
        guard case .register(let form)? = inbound?.call else { return }
        precondition(form.pushToken == Secret(parts[0]), "its hash is what the server knows")
        precondition((try? NextcloudPushToken(form.pushToken)) != nil, "a device may send what a relay takes")
        switch form.tokens {
        case .fcm(let token): precondition(token == form.pushToken)
        case .apns(let alert, let voip):
            for token in [alert, voip ?? alert] {
                precondition(token.count <= NextcloudLimits.apnsTokenDigits)
                precondition(token.reveal { (try? Hex.decode($0)) != nil })
            }
        }
    },
    "nextcloud-proof": { bytes in
        guard let key = ProofAnswer.publicKey(bytes) else { return }
        precondition((try? RSAPublicKey(der: key.der)) == key)
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
    "rsa-der": { bytes in
        guard let key = try? RSAPublicKey(der: Array(bytes)) else { return }
        precondition(key.der.elementsEqual(bytes), "one spelling for one key")
        let again = withBytes(Array(key.pem.utf8)) { try? RSAPublicKey(pem: $0) }
        precondition(again == key && key.pem.utf8.count == RSAForm.publicPEMBytes)
    },
    "rsa-digest": { bytes in
        // A digest of any length, as a device decodes it from its server's answer.
        let block = [UInt8](repeating: 0, count: RSAForm.blockBytes)
        precondition(!withBytes(block) { fuzzKey.isValid($0, overDigest: bytes) })
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
        guard let read = text.withUnsafeBytes({ DeviceIdentifier(base64: $0) }) else { return nil }
        self = read
    }
}

private let fuzzKey = fuzzPrivateKey().publicKey

func fuzzPrivateKey() -> RSAPrivateKey {
    // The library loses 16 bytes for each key that it makes, which would be every target's find.
    leaksAreFine()
    defer { leaksAreFaults() }
    do { return try RSAPrivateKey.generate() } catch { preconditionFailure("the library makes no key") }
}

@_silgen_name("__lsan_disable")
func leaksAreFine()

@_silgen_name("__lsan_enable")
func leaksAreFaults()

/// Of a registration in which only the token can be wrong.
private let goodFields: [(name: String, value: [UInt8])] = [
    (name: "deviceIdentifier", value: Base64.encode([UInt8](repeating: 7, count: 64))),
    (name: "deviceIdentifierSignature", value: Base64.encode([UInt8](repeating: 7, count: 256))),
    (name: "userPublicKey", value: Array(fuzzKey.pem.utf8))
]
