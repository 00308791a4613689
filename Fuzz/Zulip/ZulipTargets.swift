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
            body: body)
    },
    "zulip-authorization": { bytes in
        _ = try? ServerCredentials(authorization: String(decoding: bytes, as: UTF8.self))
    },
    "zulip-notify": { bytes in
        guard let request = try? NotifyRequest(parsing: bytes) else { return }
        let asked = value(bytes)?["push_requests"]
        checkSealed(request, asked)
        for (index, item) in request.items.enumerated() {
            precondition(item.payload.count >= item.ciphertext.upperBound)
            // One call, one form.
            let isNumber = if case .number = item.device { true } else { false }
            precondition((item.tokenID == nil) == isNumber && isNumber == (request.items[0].tokenID == nil))
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
        // Whatever v12 takes the account form takes, and reads alike.
        guard let account = try? RegistrationPlaintext(parsing: Secret(copying: bytes), .account) else {
            preconditionFailure("the account form asks for less")
        }
        precondition(account.token == plain.token && account.timestamp == plain.timestamp)
    },
    "zulip-registration-account": { bytes in
        guard let plain = try? RegistrationPlaintext(parsing: Secret(copying: bytes), .account) else {
            return
        }
        guard let again = try? RegistrationPlaintext(parsing: plain.serialized(), .account) else {
            preconditionFailure("what we write we can read")
        }
        precondition(again.token == plain.token && again.timestamp == plain.timestamp)
        precondition(again.kind == plain.kind && again.appID == plain.appID)
    },
    "zulip-rfc3339": { bytes in
        guard let seconds = RFC3339.seconds(bytes) else { return }
        precondition((20...35).contains(bytes.count), "no shorter and no longer text is a time")
        // Year 0 to 9999, and a day for offsets.
        precondition((-62_167_305_600...253_402_387_200).contains(seconds))
        // The same moment, written by counting days, is the same number.
        let text = utc(seconds)
        precondition(text.utf8.count != 20 || withBytes(Array(text.utf8)) { RFC3339.seconds($0) } == seconds)
    },
    "zulip-integer": { bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        // The library's reader takes more spellings of the same numbers.
        precondition(CanonicalInteger.read(bytes) == Int64(text).flatMap { String($0) == text ? $0 : nil })
    },
    "zulip-stale": { bytes in
        _ = try? ZulipInbound.parse(
            method: "GET", path: ZulipPath.staleDevices.rawValue,
            query: String(decoding: bytes, as: UTF8.self),
            authorization: "Basic MWMyOWQ3NzQtMjQxNC00MGNjLWE3ZDEtNGZiNDQ1Y2Y5NzI2Oms=",
            body: bytes)
        guard let form = try? Form.parse(bytes), let stale = try? StaleForm(form) else { return }
        precondition(stale.after >= 0 && (1...ZulipLimits.staleIDsPerPage).contains(stale.limit))
    },
    "zulip-rows": { bytes in
        guard let row = ZulipRegistration(body: Secret(copying: bytes)) else { return }
        precondition(row.kind == .apns || row.appID == nil)
        // A row of FCM may hold an app id that nobody reads.
        guard let again = ZulipRegistration(body: row.body) else {
            preconditionFailure("what we write we can read")
        }
        precondition(again.token == row.token && again.accountID == row.accountID)
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
        let device = ZulipRoutine(
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

/// Items of the specification's own form: what the push services get is JSON, fits, and has the content as it
/// came, whatever the row's account id is.
private func checkSealed(_ request: NotifyRequest, _ asked: JSONValue?) {
    guard case .sealed(let items) = request.asked else { return }
    precondition(request.items.isEmpty)
    let long = Array(#"{"x":""#.utf8) + [UInt8](repeating: 0x78, count: 400) + Array(#""}"#.utf8)
    for (index, item) in items.enumerated() {
        let content = asked?[index]?["encrypted_content"]
        precondition(asked?[index]?["device_id"]?.int64 == item.deviceID)
        for accountID in [Int64.min, 0, .max] {
            for aps in [nil, long] {
                let body = item.apnsBody(accountID: accountID, aps: aps)
                guard let sent = body.reveal(value) else { preconditionFailure("a body is JSON") }
                precondition(body.count <= ZulipLimits.payloadBytes && sent.object?.count == 3)
                precondition(sent["push_account_id"]?.int64 == accountID)
                precondition(sent["encrypted_content"] == content)
            }
            guard let data = item.fcmData(accountID: accountID).reveal(value) else {
                preconditionFailure("data is JSON")
            }
            precondition(data["push_account_id"]?.string == String(accountID))
            precondition(data["encrypted_content"] == content)
        }
    }
}

/// `2026-06-10T13:18:08Z`; nothing for a year that has not four digits.
private func utc(_ seconds: Int64) -> String {
    func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }
    var days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let time = seconds - days * 86_400
    var year: Int64 = 1970
    while days < 0 {
        year -= 1
        days += isLeap(year) ? 366 : 365
    }
    while days >= (isLeap(year) ? 366 : 365) {
        days -= isLeap(year) ? 366 : 365
        year += 1
    }
    let lengths = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as [Int64]
    var month = 0
    while days >= lengths[month] {
        days -= lengths[month]
        month += 1
    }
    guard (0...9_999).contains(year) else { return "" }
    func digits(_ value: Int64, _ count: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    return digits(year, 4) + "-" + digits(Int64(month) + 1, 2) + "-" + digits(days + 1, 2) + "T"
        + digits(time / 3_600, 2) + ":" + digits(time / 60 % 60, 2) + ":" + digits(time % 60, 2) + "Z"
}

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
