import EdwardsKeys
import Primitives
import PushModel
import SessionPush
import WireFormats

/// What a phone of the Session protocol reads: pushes, answers, what it has kept; and keys in both forms.
let sessionEndTargets: [String: Body] = [
    "session-push": { bytes in
        // As what the phone's key has sealed, with padding and without: both say the same.
        var padded = Array(bytes)
        while padded.count % SessionLimits.paddingBytes != 0 { padded.append(0) }
        let message = opened(Array(bytes))
        precondition(message == opened(padded), "padding says nothing")
        // And as a push service might deliver it.
        precondition((try? phone.open(DeliveredPush(payload: Secret(copying: bytes)), now: noon)) == nil)
    },
    "session-delivered": { bytes in
        guard let push = try? DeliveredPush(delivered: Secret(copying: bytes)) else { return }
        _ = try? phone.open(push, now: noon)
    },
    "session-onion-reply": { bytes in
        for (cipher, request) in onionRequests {
            let received = try? request.answer(status: 200, body: Secret(copying: bytes))
            precondition(received == nil, "nobody has sealed it")
            let nonce = [UInt8](repeating: 2, count: cipher.nonceBytes)
            let sealed = cipher.seal(bytes, key: onionKey(cipher), nonce: nonce)
            guard let answer = try? request.answer(status: 200, body: sealed) else { continue }
            precondition(answer.status.map { (100...599).contains($0) } ?? false)
            precondition(answer.body.count < bytes.count)
        }
    },
    "session-answer": { bytes in
        guard let first = bytes.first else { return }
        let status = answerStatuses[Int(first >> 1) % answerStatuses.count]
        let answer = SessionAnswer(
            status: status, body: Secret(copying: UnsafeRawBufferPointer(rebasing: bytes.dropFirst())))
        play(first & 1 == 0 ? phone : leavingPhone, answer)
    },
    "session-kept": { bytes in
        guard var device = try? SessionRoutine(keeping: Secret(copying: bytes)) else { return }
        let kept = device.encoded()
        guard let again = try? SessionRoutine(keeping: kept) else {
            preconditionFailure("we can read what we write")
        }
        precondition(again.encoded() == kept, "one form for one phone")
        device.use(phoneToken)
        for account in accounts {
            guard (try? device.watch(account)) != nil else { preconditionFailure("there is room") }
        }
        play(device, .none)
        play(device, SessionAnswer(status: 400))
        playKit(device)
    },
    "session-keys": { bytes in
        var block = [UInt8](repeating: 0, count: 32)
        for (at, byte) in bytes.prefix(32).enumerated() { block[at] = byte }
        convert(Secret(block))
        var wide = [UInt8](repeating: 0, count: 64)
        for (at, byte) in bytes.dropFirst(32).prefix(64).enumerated() { wide[at] = byte }
        blind(seed: Secret(block), factor: EdwardsScalar.reduced(Secret(wide)))
        // A signing value of any content: head, factor, signature.
        let value = Secret(block + wide + block[..<4])
        let held = try? Subaccount(signingValue: value, of: groupAdmin.key.account, member: member)
        precondition(held == nil, "the group has not signed it")
    }
]

// MARK: one phone

private let noon = UnixTime(seconds: 1_700_000_000)
private let phoneToken: SessionDeviceToken = {
    guard let token = try? SessionDeviceToken(.firebase, Secret([UInt8](repeating: 0x74, count: 40))) else {
        preconditionFailure("forty letters are a token")
    }
    return token
}()

/// Seeds of the shared vectors' accounts.
private let groupAdmin: GroupAdmin = {
    let seed = seed("c4893488ed649135c1fd4e707909db72554080c01642c8f1cd2a8a496d2157fc")
    do { return try GroupAdmin(seed: seed) } catch { preconditionFailure("32 bytes are a seed") }
}()
private let member: Ed25519KeyPair = {
    let seed = seed("578adb8a7bb6390e985119d6de91ecb52bf8ad1010f4a011e2dcf378a1a8130d")
    guard let pair = Ed25519KeyPair(seed: seed) else { preconditionFailure("32 bytes are a seed") }
    return pair
}()
private let accounts: [WatchedAccount] = {
    do {
        let person = try SessionAccountKey(
            seed: seed("6c719287007966a75433f7946197305b25e6b7ca61ea273baea36510cf263e76"))
        let other = try SessionAccountKey(
            seed: seed("7563e3dd10fa6549e086cf531766423d57ce69cccf7191313b5c9b7944561543"))
        return [
            try WatchedAccount(person), try WatchedAccount(groupAdmin.key),
            try WatchedAccount(other, namespaces: [0], content: .leftOut)
        ]
    } catch { preconditionFailure("32 bytes are a seed") }
}()

private func seed(_ hex: String) -> Secret {
    guard let bytes = try? Hex.decode(hex.utf8) else { preconditionFailure("these are digits") }
    return Secret(bytes)
}

private let phone: SessionRoutine = {
    var random = SystemRandomNumberGenerator()
    var device = SessionRoutine(using: &random)
    device.use(phoneToken)
    for account in accounts {
        guard (try? device.watch(account)) != nil else { preconditionFailure("there is room") }
    }
    return device
}()

/// Of which every account has been subscribed, and is leaving.
private let leavingPhone: SessionRoutine = {
    var (device, random) = (phone, SystemRandomNumberGenerator())
    guard let calls = try? device.renewal(due: noon) else { preconditionFailure("our own keys sign") }
    let one = #"{"success":true,"added":true}"#
    for call in calls {
        let answer = SessionAnswer(status: 200, body: Secret("[\(one),\(one),\(one)]".utf8))
        _ = device.settle(call.id, answer, now: noon, using: &random)
    }
    for account in accounts {
        guard (try? device.leave(account.account, now: noon)) != nil else {
            preconditionFailure("our own keys sign")
        }
    }
    return device
}()

private let answerStatuses: [Int?] = [
    200, nil, 201, 299, 301, 400, 401, 404, 408, 425, 429, 500, 503, 0, -1, .max
]

/// Renewals that are answered so, with time between them.
private func play(_ device: SessionRoutine, _ answer: SessionAnswer) {
    var (device, now, random) = (device, noon, SystemRandomNumberGenerator())
    for _ in 0..<3 {
        guard let calls = try? device.renewal(due: now) else { preconditionFailure("our own keys sign") }
        for call in calls {
            let verdicts = device.settle(call.id, answer, now: now, using: &random)
            precondition(verdicts.count <= SessionLimits.elementsAtOnce)
            for case .later(let time) in verdicts.map(\.verdict) {
                precondition(time > now && time <= now + SessionLimits.backoffMost)
            }
            precondition(device.settle(call.id, answer, now: now, using: &random).isEmpty, "once")
        }
        let rest = try? device.renewal(due: now)
        precondition(rest.map { $0.isEmpty } ?? false, "nothing is due twice")
        guard let kept = try? SessionRoutine(keeping: device.encoded()) else {
            preconditionFailure("we can read what we write")
        }
        precondition(kept.encoded() == device.encoded())
        now = max(now, device.nextDeadline ?? now)
    }
}

/// The device that apps have, from the same rows: it reads back, and leaves whatever the server says.
private func playKit(_ routine: SessionRoutine) {
    guard let server = try? SessionServer(host: "push.example", key: nil) else {
        preconditionFailure("this is a host")
    }
    var device = SessionDevice(server, routine)
    guard let again = try? SessionDevice(server, keeping: device.kept), again.kept == device.kept else {
        preconditionFailure("we can read what we write")
    }
    _ = device.status(at: noon)
    guard (try? device.use(token: nil)) != nil else { preconditionFailure("a logout is no token") }
    var now = noon
    for status in [0, 503, 200, 404] {
        for call in device.due(at: now) {
            let answer = status == 0 ? CallAnswer.none : .http(status: status, body: Secret([]))
            device.answered(answer, to: call, at: now)
            device.answered(answer, to: call, at: now)
        }
        now = now + .seconds(86_400)
    }
    _ = device.due(at: UnixTime.distantFuture)
    _ = device.nextDue
}

// MARK: pushes

/// What the phone makes of a plaintext, in words; empty: it is malformed.
private func opened(_ plain: [UInt8]) -> String {
    let nonce = [UInt8](repeating: 3, count: XChaCha20Poly1305.nonceBytes)
    guard
        let sealed = try? XChaCha20Poly1305.seal(Secret(plain), with: [], key: phone.encKey, nonce: nonce)
    else { preconditionFailure("the key has 32 bytes") }
    let push = DeliveredPush(payload: Secret(Base64.encode(nonce + sealed)))
    do throws(SessionError) {
        var device = phone
        let action = try device.open(push, now: noon)
        switch action {
        case .show(let message), .update(let message):
            precondition(message.data != nil && !message.isTooLong)
            precondition(message.isForPeople == { if case .show = action { true } else { false } }())
            judge(message)
        case .fetch(let message):
            precondition(message.data == nil && message.expiresAt.map { $0 > noon } ?? true)
            judge(message)
        case .ignore(.repeated): preconditionFailure("nothing was remembered")
        case .ignore(.foreignAccount), .ignore(.expired): return words(action)
        }
        if case .show(let message) = action { device.remember(message) }
        if case .update(let message) = action { device.remember(message) }
        if case .fetch(let message) = action { device.remember(message) }
        guard case .ignore(.repeated) = try device.open(push, now: noon) else {
            preconditionFailure("what is remembered is a repeat")
        }
        return words(action)
    } catch {
        precondition(error.code == .malformedPush, "our own key opens")
        return ""
    }
}

private func judge(_ message: SessionMessage) {
    precondition((1...SessionLimits.messageHashBytes).contains(message.hash.utf8.count))
    precondition(accounts.contains { $0.account == message.account })
    precondition(message.sentAt.map { $0.milliseconds >= 0 } ?? true)
    precondition(message.data.map { $0.count > 0 } ?? true)
}

private func words(_ action: SessionAction) -> String {
    func text(_ message: SessionMessage) -> String {
        let account = message.account.bytes.reveal { Hex.encode($0) }
        let data = message.data.map { $0.reveal { Hex.encode($0) } } ?? "-"
        let (sent, end) = (message.sentAt?.milliseconds ?? -1, message.expiresAt?.milliseconds ?? -1)
        let namespace = message.namespace.map { "\($0)" } ?? "-"
        return "\(account) \(message.hash) \(namespace) \(sent) \(end) \(message.isTooLong) \(data)"
    }
    switch action {
    case .show(let message): return "show " + text(message)
    case .update(let message): return "update " + text(message)
    case .fetch(let message): return "fetch " + text(message)
    case .ignore(let reason): return "ignore \(reason)"
    }
}

private let onionRequests: [(OnionCipher, OnionRequest)] = {
    do {
        let server = try OnionServer(host: "push.example", key: Secret(onionServer.publicKey))
        return try OnionCipher.allCases.map { cipher in
            let nonce = [UInt8](repeating: 1, count: cipher.nonceBytes)
            let chance = OnionChance(pair: onionClient, nonce: nonce)
            return (
                cipher, try server.request(Secret([]), through: [], cipher, chances: [chance])
            )
        }
    } catch { preconditionFailure("the server's key is one") }
}()

// MARK: keys

private func convert(_ block: Secret) {
    guard let key = Ed25519PublicKey(block) else { preconditionFailure("32 bytes") }
    if let u = EdwardsPoint.x25519(of: key) {
        guard let point = EdwardsPoint.unsigned(x25519: u), let bare = Ed25519PublicKey(point),
            let again = EdwardsPoint.x25519(of: bare)
        else { preconditionFailure("a point of the group has both forms") }
        precondition(again == u, "there and back")
        precondition(point.reveal { $0[31] < 0x80 }, "of sign 0")
        // But for the few spellings of what is not below the modulus.
        let isLow = block.reveal { $0[1...30].contains { $0 != 0xFF } }
        let bytes = block.reveal { Array($0[..<31]) + [$0[31] & 0x7F] }
        precondition(!isLow || point == Secret(bytes), "the same point")
    }
    // Any u has a y, but one.
    if let point = EdwardsPoint.unsigned(x25519: block), let bare = Ed25519PublicKey(point),
        let u = EdwardsPoint.x25519(of: bare)
    {
        let back = EdwardsPoint.unsigned(x25519: u)
        precondition(back.map { $0 == point } ?? false)
    }
    if let product = EdwardsPoint.product(EdwardsScalar.reduced(Secret(count: 64) { $0[0] = 1 }), key) {
        precondition(product.bytes == block || block.reveal { $0[1...30].allSatisfy { $0 == 0xFF } })
    }
    _ = AccountID(Secret([0x05] + block.reveal { Array($0) }))?.swarmPoint
}

private func blind(seed: Secret, factor: Secret) {
    guard let member = Ed25519KeyPair(seed: seed), let u = EdwardsPoint.x25519(of: member.publicKey) else {
        preconditionFailure("32 bytes are a seed")
    }
    let (own, shown) = (BlindedKey(member, factor: factor), BlindedKey.publicKey(ofMember: u, factor: factor))
    precondition((own == nil) == (shown == nil))
    guard let own, let shown else { return }
    precondition(own.publicKey.bytes == shown.bytes, "both compute the same")
    seed.reveal { text in
        guard let signature = own.signature(over: text, nonceKey: "fuzz", seedKey: "zzuf") else {
            preconditionFailure("nobody meets a nonce of zero")
        }
        precondition(signature.reveal { own.publicKey.isValid($0, over: text) }, "the member signs")
    }
}
