import Primitives
import PushModel
import SealbellKit
import WireFormats
import ZulipPush

/// What an app's device of Zulip reads: answers to each of its calls, and what it has kept.
let zulipKitTargets: [String: Body] = [
    "zulip-kit-answer": { bytes in
        guard let first = bytes.first else { return }
        let statuses: [Int?] = [200, 201, 302, 400, 401, 403, 404, 408, 429, 500, 503, nil]
        let body = Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        let answer: CallAnswer =
            statuses[Int(first & 15) % statuses.count].map {
                .http(status: $0, retryAfter: first & 16 == 0 ? nil : "30", body: body)
            } ?? .none
        for (device, call) in calling {
            var device = device
            var random = FixedRandom()
            device.answered(answer, to: call, at: noon, using: &random)
            rest(device)
            // Late, or once more.
            let kept = device.kept
            device.answered(answer, to: call, at: noon, using: &random)
            precondition(device.kept == kept, "an answer counts once")
        }
    },
    "zulip-kit-kept": { bytes in
        _ = try? ZulipDevice(login, keeping: Secret(copying: bytes))
        // And as rows behind the head that belongs to them.
        guard let rows = KeptRows.read(Secret(copying: bytes), atMost: ZulipLimits.keptBytes) else { return }
        let account = ["account", login.realmURL, "7"].map { Secret($0.utf8) }
        let kept = KeptForm.write("zulip", [account] + rows)
        guard var device = try? ZulipDevice(login, keeping: kept) else { return }
        rest(device)
        do {
            try device.use(token: token)
            rest(device)
            try device.use(token: nil)
        } catch { preconditionFailure("the token is one") }
        rest(device)
    }
]

private let noon = UnixTime(seconds: 1_800_000_000)

private let login: ZulipLogin = {
    do {
        let pair = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 3, count: 32)))
        return try ZulipLogin(
            realmURL: "https://chat.example.org", userID: 7, email: "ada@example.org",
            apiKey: Secret("key".utf8), relayKey: RelayKey(text: Base64.text(pair.publicKey)),
            bundleID: "org.acme.chat")
    } catch { preconditionFailure("the login is one") }
}()

private let token: DeviceToken = {
    do { return try .fcm("tok") } catch { preconditionFailure("the token is one") }
}()

/// Nothing is due twice at one time, and what is kept is read again.
private func rest(_ device: ZulipDevice) {
    var device = device
    var random = FixedRandom()
    _ = device.due(at: noon, using: &random)
    precondition(device.due(at: noon, using: &random).isEmpty, "each call once")
    precondition(device.nextDue.map { $0 > noon } ?? true, "time alone wants nothing twice")
    _ = device.status(at: noon)
    let kept = device.kept
    guard let again = try? ZulipDevice(login, keeping: kept) else {
        preconditionFailure("we can read what we write")
    }
    precondition(again.kept == kept, "one form for one device")
}

/// A device of each profile at each of its calls, until it is registered.
private let calling: [(device: ZulipDevice, call: Call)] = {
    var all: [(device: ZulipDevice, call: Call)] = []
    let settings = [
        #""zulip_feature_level":468"#, #""encrypted_push_notifications":true"#, #""zulip_feature_level":467"#
    ]
    for settings in settings {
        var random = FixedRandom()
        do {
            var device = try ZulipDevice(login, keeping: nil, using: &random)
            try device.use(token: token)
            // Each round answers what the one before has called for; a registration has eight at most.
            for _ in 0..<8 {
                for call in device.due(at: noon, using: &random) {
                    all.append((device, call))
                    device.answered(answer(call, settings), to: call, at: noon, using: &random)
                }
            }
        } catch { preconditionFailure("the token is one") }
    }
    precondition(all.count > 9, "they call")
    return all
}()

/// As a server that takes everything, and has not heard from its relay.
private func answer(_ call: Call, _ settings: String) -> CallAnswer {
    let url = call.http?.url ?? ""
    let members =
        if url.hasSuffix("/server_settings") {
            settings
        } else if url.hasSuffix("/register_client_device") {
            #""device_id":5"#
        } else if url.hasSuffix("/api/v1/register") {
            #""queue_id":"q","last_event_id":-1,"devices":{},"push_devices":{},"push_account_ids":{}"#
        } else {
            #""msg":"""#
        }
    return .http(status: 200, body: Secret(#"{"result":"success",\#(members)}"#.utf8))
}
