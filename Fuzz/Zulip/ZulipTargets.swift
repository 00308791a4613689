import Primitives
import PushModel
import WireFormats
import ZulipPush

/// The parsers and boxes of the Zulip protocol.
let zulipTargets: [String: Body] = [
    "zulip-inbound": { bytes in
        let paths = [
            "/api/v1/remotes/server/register", "/api/v1/remotes/server/deactivate",
            "/api/v1/remotes/server/register/transfer",
            "/api/v1/remotes/server/register/verify_challenge", "/api/v1/remotes/server/analytics",
            "/api/v1/remotes/push/e2ee/register", "/api/v1/remotes/push/e2ee/notify",
            "//api/v1/remotes/push/notify"
        ]
        guard let first = bytes.first else { return }
        let body = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        _ = try? ZulipInbound.parse(
            method: "POST", path: paths[Int(first) % paths.count],
            authorization: "Basic MWMyOWQ3NzQtMjQxNC00MGNjLWE3ZDEtNGZiNDQ1Y2Y5NzI2Oms=",
            contentType: nil, body: body)
    },
    "zulip-authorization": { bytes in
        _ = try? ServerCredentials(authorization: String(decoding: bytes, as: UTF8.self))
    },
    "zulip-notify": { bytes in
        guard let request = try? NotifyRequest(parsing: bytes) else { return }
        let asked = value(bytes)?["push_requests"]
        for (index, item) in request.items.enumerated() {
            precondition(item.payload.count >= item.ciphertext.upperBound)
            // What goes to Apple or Google is JSON whatever came in, and what goes to Apple is what was asked.
            guard let sent = item.payload.reveal(value) else { preconditionFailure("a payload is JSON") }
            guard case .apns = item.target else { continue }
            let aps = asked?[index]?["payload"]?["aps"]
            precondition(item.hasDefaultAps == (aps == nil))
            precondition(aps == nil || sent["aps"] == aps)
            precondition(sent.object?.count == 3)
        }
    },
    "zulip-legacy-notify": { bytes in
        guard let request = try? LegacyNotifyRequest(parsing: bytes) else { return }
        // What came goes back: the answer is JSON, and its tokens are those of the call.
        let answer = ZulipReply.legacyDeleted(request).body()
        guard let told = withBytes(answer, value)?["deleted_devices"] else {
            preconditionFailure("an answer is JSON")
        }
        let asked = value(bytes)
        var count = 0
        for list in ["android_devices", "apple_devices"] {
            precondition(told[list] == asked?[list] ?? .array([]))
            count += told[list]?.array?.count ?? 0
        }
        precondition(count == request.count)
    },
    "zulip-registration": { bytes in
        guard let plain = try? RegistrationPlaintext(parsing: Secret(copying: bytes)) else { return }
        guard let again = try? RegistrationPlaintext(parsing: plain.serialized()) else {
            preconditionFailure("what we write we can read")
        }
        precondition(again.token == plain.token && again.timestamp == plain.timestamp)
    },
    "zulip-registration-box": { bytes in
        _ = try? RegistrationBox.open(Secret(copying: bytes), with: relayPair)
        // And as what was sealed by somebody who knows how.
        guard
            let sealed = try? SealedBox.seal(
                Secret(copying: bytes), to: relayPair.publicKey, ephemeral: otherPair)
        else { return }
        _ = try? RegistrationBox.open(Secret(Base64.encode(sealed)), with: relayPair)
    },
    "zulip-content-box": { bytes in
        guard let key = try? PushKey(base64: Secret(Base64.encode([0x31] + [UInt8](repeating: 1, count: 32))))
        else {
            return
        }
        let account = ZulipAccount(realmURL: "https://chat.example.org", userID: 7)
        let device = ZulipDevice(
            account: account, keys: [HeldPushKey(id: 7, key: key, createdAt: .distantPast)])
        _ = try? device.open(pushKeyID: 7, encryptedData: Secret(copying: bytes))
        let nonce = [UInt8](repeating: 2, count: SecretBox.nonceBytes)
        let raw = Secret([UInt8](repeating: 1, count: 32))
        guard let box = try? SecretBox.seal(Secret(copying: bytes), key: raw, nonce: nonce) else { return }
        _ = try? device.open(pushKeyID: 7, encryptedData: Secret(Base64.encode(nonce + box)))
    },
    "zulip-push-key": { bytes in
        guard let key = try? PushKey(base64: Secret(copying: bytes)) else { return }
        precondition(key.base64 == Secret(copying: bytes), "one spelling for one key")
    }
]

/// As deep as a call may be.
private func value(_ bytes: UnsafeRawBufferPointer) -> JSONValue? {
    try? JSONValue.parse(bytes, limitBytes: 16 << 20, depthLimit: ZulipLimits.jsonDepth)
}

private let relayPair = pair(3)
private let otherPair = pair(4)

private func pair(_ byte: UInt8) -> X25519KeyPair {
    do { return try X25519KeyPair(privateKey: Secret([UInt8](repeating: byte, count: 32))) } catch {
        preconditionFailure("32 bytes are a key")
    }
}
