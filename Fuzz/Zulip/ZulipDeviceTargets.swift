import Primitives
import PushModel
import WireFormats
import ZulipPush

/// What a phone of the Zulip protocol reads: what servers say, what push services deliver, what it has kept.
let zulipDeviceTargets: [String: Body] = [
    "zulip-server-settings": { bytes in
        guard let settings = try? ZulipServerSettings(Secret(copying: bytes)) else { return }
        // What is taken says the same of itself when it is read as any JSON.
        guard let json = try? JSONValue.parse(bytes, depthLimit: ZulipLimits.jsonDepth) else {
            preconditionFailure("settings are JSON")
        }
        precondition(settings.featureLevel == json["zulip_feature_level"]?.int64 ?? 0)
        precondition(
            settings.encryptedPushNotifications == (json["encrypted_push_notifications"]?.bool ?? false))
        for require in [false, true] {
            let route = ZulipRoutine.route(serverSettings: settings, requireEndToEnd: require)
            let has = ZulipProfile.allCases.contains { settings.has($0) }
            precondition(has == (route != .legacy && route != .refused))
            precondition(require ? route != .legacy : route != .refused)
        }
    },
    "zulip-server-state": { bytes in
        // As the state, and as events, to a phone of each profile, whose id `$ID` stands for.
        let text = String(decoding: bytes, as: UTF8.self)
        for (phone, calling) in zip(waitingPhones, callingPhones) {
            let said = Secret(text.replacing("$ID", with: calling.id).utf8)
            for event in [ZulipDeviceEvent.state(said), .events(said)] { play(phone, event) }
        }
    },
    "zulip-device-answer": { bytes in
        guard let first = bytes.first else { return }
        let statuses: [Int?] = [200, 201, 302, 400, 401, 403, 404, 408, 429, 500, 503, nil]
        let answer = ZulipDeviceAnswer(
            status: statuses[Int(first) % statuses.count], retryAfter: first & 16 == 0 ? nil : "30",
            body: Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst())))
        for phone in callingPhones { play(phone.device, .answer(call: phone.call, answer)) }
    },
    "zulip-delivered": { bytes in
        let devices = waitingPhones
        _ = try? ZulipRoutine.open(delivered: Secret(copying: bytes), for: devices, now: noon)
        // And as what somebody has sealed to an account, under its own name and under another's.
        for (id, content) in sealedToAll(Secret(copying: bytes)) {
            let own = try? ZulipRoutine.open(delivered: Secret(content.utf8), for: devices, now: noon)
            let names = ["encrypted_data", "encrypted_content"]
            let isData = content.contains(names[0])
            let crossed = content.replacing(names[isData ? 0 : 1], with: names[isData ? 1 : 0])
            precondition(
                (try? ZulipRoutine.open(delivered: Secret(crossed.utf8), for: devices, now: noon)) == nil,
                "no content opens under another profile's name")
            if let own { precondition(devices[own.place].account.userID == id) }
        }
    },
    "zulip-kept": { bytes in
        _ = try? ZulipRoutine(keeping: Secret(copying: bytes))
        // And as rows with the digest that belongs to them.
        guard let rows = KeptRows.read(Secret(copying: bytes), atMost: 256 << 10) else { return }
        let digest = Hex.encode(SHA256.hash(KeptRows.write(rows)))
        let head = ["zulip-device", "1", digest].map { Secret($0.utf8) }
        guard let device = try? ZulipRoutine(keeping: KeptRows.write([head] + rows)) else { return }
        let kept = device.encoded()
        guard let again = try? ZulipRoutine(keeping: kept) else {
            preconditionFailure("we can read what we write")
        }
        precondition(again.encoded() == kept, "one form for one account")
        play(device, .tick)
        play(device, start(encrypted))
        play(device, .logout)
    }
]

private let noon = UnixTime(seconds: 1_800_000_000)
private let encrypted = ZulipServerSettings(featureLevel: 0, encryptedPushNotifications: true)

/// What changes is what is kept, and what is refused changes nothing.
private func play(_ device: ZulipRoutine, _ event: ZulipDeviceEvent) {
    var device = device
    var random = FixedRandom()
    let before = device.encoded()
    guard let actions = try? device.take(event, now: noon, using: &random) else {
        precondition(device.encoded() == before, "nothing has changed")
        return
    }
    let calls = actions.count { action in
        if case .call(let call) = action { return call.kind != .forget }
        return false
    }
    precondition(calls <= 1, "one call at a time")
    let kept = device.encoded()
    guard let again = try? ZulipRoutine(keeping: kept) else {
        preconditionFailure("we can read what we write")
    }
    precondition(again.encoded() == kept)
    _ = ZulipRoutine.status(of: device, now: noon)
    if let deadline = device.nextDeadline, deadline <= noon {
        _ = try? device.take(.tick, now: noon, using: &random)
        precondition(device.nextDeadline.map { $0 > noon } ?? true, "time alone wants nothing twice")
    }
}

private func start(_ settings: ZulipServerSettings) -> ZulipDeviceEvent {
    do {
        let key = try X25519KeyPair(privateKey: Secret([UInt8](repeating: 3, count: 32)))
        return .start(
            ZulipStart(
                serverSettings: settings, build: try ZulipAppBuild(bouncerKey: Base64.text(key.publicKey)),
                token: DevicePushToken(kind: .fcm, token: Secret("tok".utf8), appID: nil),
                marker: Secret([UInt8](repeating: 5, count: 16))))
    } catch { preconditionFailure("the key is one") }
}

/// A phone of each profile whose call is under way.
private let callingPhones: [(device: ZulipRoutine, call: UInt64, id: String, form: ZulipDeviceCall)] = [
    ZulipServerSettings(featureLevel: 468), encrypted, ZulipServerSettings(featureLevel: 406)
].enumerated().map { place, settings in
    var device = ZulipRoutine(
        account: ZulipAccount(realmURL: "https://chat.example.org", userID: Int64(place)))
    var random = FixedRandom(state: UInt64(place))
    var form = called(&device, start(settings), &random)
    if form.kind == .addDevice {
        let answer = ZulipDeviceAnswer(
            status: 200, body: Secret(#"{"result":"success","device_id":5}"#.utf8))
        form = called(&device, .answer(call: form.number, answer), &random)
    }
    return (device, form.number, text(form, "push_account_id") ?? "5", form)
}

/// The same phones when the server has taken their calls.
private let waitingPhones: [ZulipRoutine] = callingPhones.map { phone in
    var device = phone.device
    var random = FixedRandom()
    let answer = ZulipDeviceAnswer(status: 200, body: Secret(#"{"result":"success"}"#.utf8))
    _ = try? device.take(.answer(call: phone.call, answer), now: noon, using: &random)
    precondition(ZulipRoutine.status(of: device, now: noon).state == .pending)
    return device
}

private func called(
    _ device: inout ZulipRoutine, _ event: ZulipDeviceEvent, _ random: inout FixedRandom
) -> ZulipDeviceCall {
    let actions = try? device.take(event, now: noon, using: &random)
    guard case .call(let call)? = actions?.first else { preconditionFailure("a new phone calls") }
    return call
}

private func text(_ form: ZulipDeviceCall, _ name: String) -> String? {
    form.fields.first { $0.name == name }
        .map { field in field.value.reveal { String(decoding: $0, as: UTF8.self) } }
}

/// A content sealed to each phone, as it is delivered.
private func sealedToAll(_ plain: Secret) -> [(user: Int64, json: String)] {
    callingPhones.enumerated().map { place, phone in
        var random = FixedRandom()
        do {
            if let key = text(phone.form, "push_public_key") {
                let sealed = try AccountBox.seal(plain, to: PushPublicKey(base64: key), using: &random)
                let content = sealed.reveal { String(decoding: $0, as: UTF8.self) }
                let id = text(phone.form, "push_account_id") ?? ""
                return (Int64(place), #"{"push_account_id":"\#(id)","encrypted_content":"\#(content)"}"#)
            }
            let key = try Base64.decode(text(phone.form, "push_key") ?? "")
            let nonce = [UInt8](repeating: 2, count: SecretBox.nonceBytes)
            let box = try SecretBox.seal(plain, key: Secret(key.dropFirst()), nonce: nonce)
            let name = place == 0 ? "push_key_id" : "push_account_id"
            let id = text(phone.form, name) ?? ""
            return (Int64(place), #"{"\#(name)":\#(id),"encrypted_data":"\#(Base64.text(nonce + box))"}"#)
        } catch { preconditionFailure("the phone's own key is one") }
    }
}

/// The same numbers each time.
struct FixedRandom: RandomNumberGenerator {
    var state: UInt64 = 9

    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state ^ state >> 29
    }
}
