import EdwardsKeys
import Primitives
import PushModel
import SessionPush
import WireFormats

/// What the relay of the Session protocol reads: calls, onion requests, the swarm's messages, its own rows.
let sessionTargets: [String: Body] = [
    "session-call": { bytes in
        guard let first = bytes.first else { return }
        let endpoint: SessionEndpoint = first & 1 == 0 ? .subscribe : .unsubscribe
        judgeCall(
            UnsafeRawBufferPointer(rebasing: bytes.dropFirst()), endpoint, first & 2 == 0 ? .plain : .onion)
    },
    "session-byte-field": { bytes in
        guard let first = bytes.first else { return }
        let text = Array(bytes.dropFirst())
        let field = byteFields[Int(first) % byteFields.count]
        guard let value = field.read(text) else { return }
        precondition(value.count == field.count, "no other length")
        let hex = value.reveal { Hex.encode($0) }
        precondition(field.read(Array(hex.utf8)).map { $0 == value } ?? false, "hex is good for any bytes")
        let base64 = value.reveal { Base64.encode($0) }
        precondition(field.read(base64).map { $0 == value } ?? false, "and so is base64")
    },
    "session-onion": { bytes in
        if let opened = try? SessionOnion.open(bytes, key: onionServer) {
            judge(opened.request)
            precondition(opened.reply.malformed(.live).count > 0)
        }
        // And as what a client that knows the server's key has sealed.
        for cipher in OnionCipher.allCases {
            let (key, nonce) = (onionKey(cipher), [UInt8](repeating: 1, count: cipher.nonceBytes))
            let body = framed(cipher.seal(bytes, key: key, nonce: nonce), clientRouting(cipher))
            guard let opened = try? body.reveal({ try SessionOnion.open($0, key: onionServer) }) else {
                preconditionFailure("what a client has sealed is opened")
            }
            judge(opened.request)
            precondition((opened.request == nil) == (InnerRequest(bytes) == nil))
            let reply = opened.reply.seal(code: 200, contentType: nil, body: bytes, nonce: nonce)
            precondition(reply.reveal { cipher.open($0, key: key) } != nil, "the client reads the reply")
        }
    },
    "session-onion-routing": { bytes in
        // The JSON behind a ciphertext that is in order.
        guard let first = bytes.first else { return }
        let cipher = OnionCipher.allCases[Int(first & 1)]
        let routing = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
        let body = framed(sealedCalls[cipher] ?? Secret([]), Array(routing))
        let opened = try? body.reveal { try SessionOnion.open($0, key: onionServer) }
        precondition(opened == nil || opened?.request?.path == "/subscribe", "or it does not open")
    },
    "session-notice": { bytes in
        guard let notice = try? StorageNotice(parsing: bytes) else { return }
        precondition(SwarmFormLimits.hashBytes.contains(notice.hash.count))
        let text = notice.serialized()
        guard let again = try? text.reveal({ try StorageNotice(parsing: $0) }) else {
            preconditionFailure("what we write we can read")
        }
        precondition(again.account == notice.account && again.hash == notice.hash)
        precondition(again.namespace == notice.namespace && again.timestamp == notice.timestamp)
        precondition(again.expiry == notice.expiry)
        precondition((again.data == nil) == (notice.data == nil))
        if let (data, written) = notice.data.flatMap({ data in again.data.map { (data, $0) } }) {
            precondition(data == written)
        }
        precondition(text.reveal { isStrict($0) })
        _ = notice.account.swarmPoint
    },
    "session-monitor-reply": { bytes in
        guard let first = bytes.first else { return }
        let (most, body) = (Int(first), UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
        guard let reply = try? MonitorReply(parsing: body, atMost: most) else { return }
        precondition(reply.answers.count <= (reply.isSingle ? 1 : most))
    },
    "session-service-nodes": { bytes in
        let told = withBytes(Array("200".utf8)) { status in
            try? ServiceNodes(frames: [status, bytes])
        }
        guard let told else { return }
        judge(told)
    },
    "session-message": { bytes in
        // Frames, each on a line of its own.
        let frames = bytes.split(separator: 0x0A, maxSplits: 8, omittingEmptySubsequences: false)
            .map { Secret($0) }
        switch OxenMessage(frames) {
        case .call(let name, let parts):
            precondition(name.utf8.contains(UInt8(ascii: ".")) && parts.count == frames.count - 1)
        case .reply(let tag, let parts):
            precondition(parts.count == frames.count - 2 && tag == frames[1])
        case .refusal(_, let tag): precondition(tag == nil || frames.count >= 3)
        case .hi, .hello, .bye, .strange: break
        }
    },
    "session-rows": { bytes in
        guard let row = SessionSubscription(body: Secret(copying: bytes)) else { return }
        judge(row)
    }
]

// MARK: calls

private func judgeCall(
    _ body: UnsafeRawBufferPointer, _ endpoint: SessionEndpoint, _ way: SessionInbound.Way
) {
    guard let call = try? SessionCallBody(endpoint, by: way, body) else { return }
    precondition(call.elements.count <= SessionLimits.elementsPerCall)
    precondition(call.isArray || call.elements.count == 1)
    for element in call.elements {
        switch element {
        case .success(.subscribe(let form, let by)):
            precondition(endpoint == .subscribe && by == way)
            judge(form.claim)
            precondition(form.encryptionKey.count == SessionLimits.keyBytes)
            judge(form)
        case .success(.unsubscribe(let form, let by)):
            precondition(endpoint == .unsubscribe && by == way)
            judge(form.claim)
        case .success(.notified): preconditionFailure("nobody calls with a notice")
        case .failure: break
        }
    }
    let results = call.elements.map { element in element.map { _ in SessionReply.removed(true) } }
    let answer = CallReply.body(results, isArray: call.isArray)
    precondition(withBytes(answer) { try? JSONValue.parse($0) } != nil, "an answer is JSON")
}

private func judge(_ claim: SessionClaim) {
    precondition(claim.account.bytes.count == SessionLimits.accountBytes)
    precondition(claim.signature.count == SessionLimits.signatureBytes)
    precondition((claim.sessionKey == nil) == (claim.account.prefix != AccountID.personPrefix))
    precondition(claim.sessionKey.map { $0.count == SessionLimits.keyBytes } ?? true)
    precondition(claim.subkeyTag.map { $0.count == SessionLimits.subkeyTagBytes } ?? true)
    precondition(claim.service != .huawei && claim.service.takes(claim.token))
    if let subaccount = claim.subaccount {
        precondition(subaccount.token.count == SessionLimits.subaccountBytes)
        precondition(subaccount.signature.count == SessionLimits.signatureBytes)
    }
}

private func judge(_ form: SubscribeForm) {
    precondition((1...SessionLimits.namespaces).contains(form.namespaces.count))
    precondition(zip(form.namespaces, form.namespaces.dropFirst()).allSatisfy { $0 < $1 }, "they rise")
    let row = SessionSubscription(form, app: fuzzName)
    judge(row)
    row.body.reveal { bytes in
        guard let view = SubscriptionView(bytes) else { preconditionFailure("what we write we can read") }
        precondition(form.namespaces.allSatisfy { view.wants($0) })
        precondition(view.wantsData == form.wantsData && view.signedAt == form.claim.signedAt)
        precondition(Secret(copying: view.token) == form.claim.token)
    }
}

/// A row, whoever wrote it: what was read is written so that it is read again, and can be shown.
private func judge(_ row: SessionSubscription) {
    let body = row.body
    precondition(SessionSubscription(body: body).map { $0.body == body } ?? false, "one form for one row")
    let record = row.record(SessionRecordNames(fuzzName), bundle: "org.example", now: UnixTime(seconds: 1))
    precondition((MonitorRequest(record) == nil) == row.isLocal)
    guard let watch = MonitorRequest(row) else { return }
    _ = watch.isValid(at: UnixTime(seconds: 1_700_000_000))
    precondition(watch.serialized().reveal { isStrict($0) }, "what nodes are shown has one spelling")
}

let fuzzName: ConfiguredName = {
    guard let name = ConfiguredName("session") else { preconditionFailure("a word is a name") }
    return name
}()

/// One byte field in a call in which all else is in order.
private struct ByteFieldCase: Sendable {
    let name: String
    let count: Int
    let value: @Sendable (SessionClaim, Secret) -> Secret?

    func read(_ text: [UInt8]) -> Secret? {
        // Whatever else JSON has to say of a text is another target's.
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 < 0x7F }) else { return nil }
        let others = goodCall.filter { $0.name != name }.map { #""\#($0.name)":\#($0.value)"# }
        let body =
            Array(#"{"\#(name)":""#.utf8) + text + Array(("\"," + others.joined(separator: ",") + "}").utf8)
        let call = withBytes(body) { try? SessionCallBody(.subscribe, by: .plain, $0) }
        guard case .success(.subscribe(let form, _))? = call?.elements.first else { return nil }
        return value(form.claim, form.encryptionKey)
    }
}

private let byteFields = [
    ByteFieldCase(name: "pubkey", count: SessionLimits.accountBytes) { claim, _ in claim.account.bytes },
    ByteFieldCase(name: "signature", count: SessionLimits.signatureBytes) { claim, _ in claim.signature },
    ByteFieldCase(name: "enc_key", count: SessionLimits.keyBytes) { _, key in key },
    ByteFieldCase(name: "subaccount", count: SessionLimits.subaccountBytes) { claim, _ in
        claim.subaccount?.token
    }
]

private let goodCall: [(name: String, value: String)] = [
    ("pubkey", #""05\#(String(repeating: "07", count: 32))""#),
    ("session_ed25519", #""\#(String(repeating: "07", count: 32))""#),
    ("namespaces", "[0]"), ("data", "true"), ("sig_ts", "1700000000"),
    ("signature", #""\#(String(repeating: "07", count: 64))""#), ("service", #""firebase""#),
    ("service_info", #"{"token":"\#(String(repeating: "t", count: 40))"}"#),
    ("enc_key", #""\#(String(repeating: "07", count: 32))""#),
    ("subaccount", #""\#(String(repeating: "07", count: 36))""#),
    ("subaccount_sig", #""\#(String(repeating: "07", count: 64))""#)
]

// MARK: onions

let onionServer = onionPair("bf1974f1ff1220dd4ac6c41379c7c6746ba9f033de415714f7fefa0ae90fb37a")
/// One of the shared vectors, so that their routing opens here too.
let onionClient = onionPair("8ef0d539721a20f18a111d3923b0ec21547c6186f3eea346122797805aeac113")

private func onionPair(_ hex: String) -> X25519KeyPair {
    guard let bytes = try? Hex.decode(hex.utf8), let pair = try? X25519KeyPair(privateKey: Secret(bytes))
    else { preconditionFailure("32 bytes always form a private key") }
    return pair
}

private let onionKeys: [OnionCipher: Secret] = Dictionary(
    uniqueKeysWithValues: OnionCipher.allCases.map { cipher in
        let key = withBytes(onionServer.publicKey) { cipher.key(onionClient, with: $0, isClient: true) }
        return (cipher, key ?? Secret([]))
    })

/// Between the two.
func onionKey(_ cipher: OnionCipher) -> Secret { onionKeys[cipher] ?? Secret([]) }

private func clientRouting(_ cipher: OnionCipher) -> [UInt8] {
    let key = Hex.encode(onionClient.publicKey)
    return Array(#"{"ephemeral_key":"\#(key)","enc_type":"\#(cipher.rawValue)"}"#.utf8)
}

/// N (little-endian) ‖ ciphertext ‖ JSON.
private func framed(_ sealed: Secret, _ routing: [UInt8]) -> Secret {
    let length = withUnsafeBytes(of: UInt32(sealed.count).littleEndian) { Array($0) }
    return Secret(length + sealed.reveal { Array($0) } + routing)
}

private let sealedCalls: [OnionCipher: Secret] = Dictionary(
    uniqueKeysWithValues: OnionCipher.allCases.map { cipher in
        let plain = Array(#"l45:{"method":"POST","endpoint":"/subscribe?a=b"}2:{}e"#.utf8)
        let nonce = [UInt8](repeating: 1, count: cipher.nonceBytes)
        return (cipher, withBytes(plain) { cipher.seal($0, key: onionKey(cipher), nonce: nonce) })
    })

private func judge(_ request: InnerRequest?) {
    guard let request else { return }
    precondition(request.path.utf8.first == UInt8(ascii: "/"))
    precondition(request.method == request.method.uppercased())
    guard let endpoint = try? SessionEndpoint.find(method: request.method, path: request.path) else { return }
    if endpoint != .onion { request.body.reveal { judgeCall($0, endpoint, .onion) } }
}

// MARK: the network

private func judge(_ told: ServiceNodes) {
    precondition(told.blockHash.utf8.count <= SwarmFormLimits.blockHashBytes)
    precondition(Set(told.nodes.map(\.key)).count == told.nodes.count, "each node once")
    let ids = told.swarms.ids
    precondition(zip(ids, ids.dropFirst()).allSatisfy { $0 < $1 } && !ids.contains(SwarmRing.none))
    for node in told.nodes {
        precondition(node.port > 0)
        precondition(told.swarms.swarm(of: node.swarm) == node.swarm, "a swarm is nearest to itself")
    }
    // Points on the borders, and of the ring's ends.
    let arcs = ids.prefix(32).compactMap { told.swarms.arc(of: $0) }
    for id in ids.prefix(32) {
        for point in [id, id &+ 1, id &- 1, id &+ (id >> 1), id ^ 1 << 63, 0, .max] {
            let nearest = told.swarms.swarm(of: point)
            for arc in arcs { precondition(arc.contains(point) == (arc.id == nearest), "one swarm each") }
        }
    }
}
