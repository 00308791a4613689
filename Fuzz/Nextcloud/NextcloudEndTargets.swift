import NextcloudPush
import PushModel
import RSAKeys
import WireFormats

/// What a device and an origin of Nextcloud's push read: answers, pushes, and what they have kept themselves.
let nextcloudEndTargets: [String: Body] = [
    "nextcloud-subject": { bytes in
        guard let content = try? NextcloudContent.read(Secret(copying: bytes)) else { return }
        switch content {
        case .alert(let alert):
            precondition(alert.id != nil || alert.subject != nil)
            precondition(alert.detailsPath.hasSuffix("?format=json"))
        case .withdrawal(let ids): precondition(!ids.isEmpty && ids.count < bytes.count)
        case .withdrawalOfAll: break
        }
    },
    "nextcloud-push": { bytes in
        let parts = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2 {
            let sealed = SealedSubject(subject: Secret(parts[0]), signature: Secret(parts[1]))
            precondition((try? phone.open(sealed)) == nil, "nobody has signed it")
        }
        // And as what the user's server has signed, be it a ciphertext or not.
        var block = [UInt8](repeating: 0, count: RSAForm.blockBytes)
        for (at, byte) in bytes.prefix(block.count).enumerated() { block[at] = byte }
        _ = try? phone.open(signed(block))
        let plain = Secret(bytes.prefix(RSAPadding.oaepSHA1.plaintextBytes))
        guard let sealed = try? phone.key.publicKey.encrypt(plain, padding: .oaepSHA1) else {
            preconditionFailure("what fits is encrypted")
        }
        let (opened, read) = (try? phone.open(signed(sealed)), try? NextcloudContent.read(plain))
        precondition(opened == read, "what was sealed is what is opened")
    },
    "nextcloud-answer": { bytes in
        guard let answer = CallAnswer(fuzz: bytes) else { return }
        if let read = try? NextcloudCapabilities(answer.body) { _ = read.takesDevices }
        let now = UnixTime(seconds: 1_800_000_000)
        let verdict = ProxyVerdict(answer, to: [fuzzEntry(fuzzRows[0])], rows: fuzzRows)
        precondition(verdict.deletes.allSatisfy { $0 == fuzzRows[0].tokenID }, "its own rows alone")
        // At the server, then at the proxy.
        var (device, random) = (registering, SystemRandomNumberGenerator())
        for _ in 0..<3 {
            switch device.settle(answer, now: now, using: &random) {
            case .call(let call): precondition(call.url.hasSuffix("/devices"))
            case .later(let time):
                precondition(time >= now && time <= now + .seconds(86_400 + 300))
                return
            case .done, .failed: return
            }
        }
        preconditionFailure("a registration has three calls at most")
    },
    "nextcloud-proxy-queue": { bytes in playQueue(bytes) },
    "nextcloud-registration": { bytes in
        // Token hash, proxy, User-Agent, key; an empty key is a good one.
        let texts = bytes.split(separator: 0x0A, maxSplits: 3, omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        guard texts.count == 4 else { return }
        let key = texts[3].isEmpty ? phone.key.publicKey.pem : texts[3]
        let registration = PushRegistration(
            pushTokenHash: texts[0], devicePublicKey: key, proxyServer: texts[1])
        guard
            let verdict = try? origin.register(
                registration, by: fuzzSession, userAgent: texts[2], rows: fuzzRows)
        else { preconditionFailure("our own key signs") }
        for version in OCSAnswer.Version.allCases {
            guard (try? verdict.answer.body(version, .json).reveal { try JSONValue.parse($0) }) != nil else {
                preconditionFailure("an answer is JSON")
            }
            precondition(verdict.answer.body(version, .xml).count > 0)
        }
        guard let row = verdict.row else { return }
        precondition(row.proxy.hasPrefix("https://") && !row.proxy.hasSuffix("/"))
        precondition(row.proxyServer.utf8.allSatisfy { (0x21...0x7E).contains($0) })
    },
    "nextcloud-ocs": { bytes in readOCS(bytes) },
    "nextcloud-rows": { bytes in
        guard let first = bytes.first else { return }
        let kept = Secret(bytes.dropFirst())
        switch first % 4 {
        case 0:
            guard let pin = NextcloudPin(body: kept) else { return }
            precondition(pin.body == kept, "one spelling for one row")
        case 1:
            guard let target = NextcloudTarget(body: kept) else { return }
            precondition(target.body == kept, "one spelling for one row")
        case 2: playDevice(kept)
        default: playDelivered(kept)
        }
    }
]

/// Method, path, query, type, `Authorization`, one a line; the rest is the body.
private func readOCS(_ bytes: UnsafeRawBufferPointer) {
    let parts = bytes.split(separator: 0x0A, maxSplits: 5, omittingEmptySubsequences: false)
    guard parts.count == 6 else { return }
    let texts = parts.prefix(4).map { String(decoding: $0, as: UTF8.self) }
    let head = OCSHead(
        method: texts[0], path: texts[1], query: texts[2].isEmpty ? nil : texts[2], accept: texts[3],
        contentType: texts[3], apiRequest: "true", authorization: Secret(parts[4]))
    guard let request = OCSRequest(head) else { return }
    if let credentials = request.credentials {
        precondition(!credentials.user.isEmpty && !credentials.user.utf8.contains(0x3A))
    }
    let body = Secret(parts[5])
    do throws(OCSRefusal) {
        let call = try request.call(body: body, isLoggedIn: true)
        if case .exists(let ids) = call { precondition(ids.count <= NextcloudLimits.askedAtOnce) }
    } catch {
        precondition([400, 404, 405, 412, 413].contains(error.answer.status))
    }
    do throws(OCSRefusal) {
        guard case .capabilities = try request.call(body: body, isLoggedIn: false) else {
            preconditionFailure("a stranger asks for capabilities alone")
        }
    } catch {}  // Whatever it says.
    if let kept = NextcloudRegistrations(body: body) {
        precondition(NextcloudRegistrations(body: kept.encoded()) != nil, "we can read what we write")
    }
    if let kept = ProxyQueue.Waiting(body: body) {
        precondition(ProxyQueue.Waiting(body: kept.encoded()) != nil, "we can read what we write")
    }
}

// MARK: one user, with a server and a phone

private let serverKey = fuzzPrivateKey()
private let origin = NextcloudOrigin()
private let fuzzSession = NextcloudSession(
    user: NextcloudUser(cloudID: "alice@cloud.example.org", key: serverKey), tokenID: 41)

private let phone: NextcloudRoutine = {
    let identity = fuzzSession.user.identity(tokenID: 41)
    return NextcloudRoutine(
        account: NextcloudAccount(
            serverURL: "https://cloud.example.org", userID: "alice", loginName: "alice",
            appPassword: Secret("p".utf8)),
        app: NextcloudAppBuild(proxyServer: "https://push.example.com/", userAgent: "fuzz"),
        key: fuzzPrivateKey(),
        registration: DeviceRegistration(
            deviceIdentifier: identity.deviceIdentifier, signature: "", userPublicKey: serverKey.publicKey,
            proxyServer: "https://push.example.com/", pushTokenHash: "h"))
}()

/// A phone that waits for its server's answer.
private let registering: NextcloudRoutine = {
    var device = phone
    let offer = Secret(#"{"ocs":{"data":{"capabilities":{"notifications":{"push":["devices"]}}}}}"#.utf8)
    guard let server = try? NextcloudCapabilities(offer),
        let token = try? NextcloudPushToken(Secret("1f21e952".utf8)),
        case .call? = try? device.register(token, at: server, now: UnixTime(seconds: 1_800_000_000))
    else { preconditionFailure("a device registers") }
    return device
}()

/// One device at the proxy that answers, one at another; identifiers of the shared vectors.
private let fuzzRows = [("https://push.example.com/", Int64(41)), ("https://other.example", 42)].map {
    RegisteredDevice(
        tokenID: $1,
        deviceIdentifier:
            "fhZBULdd0Eqo3CanZdrlHpAHxnALRIWRNXzGxRA6rVE03+Mz21vFgsW8MFbTU2S2LBftfokNw+gkvzETn8MMUA==",
        devicePublicKey: "", pushTokenHash: "h", proxyServer: $0, group: .talk)
}

private func fuzzEntry(_ row: RegisteredDevice) -> SealedEntry {
    SealedEntry(row, SealedSubject(subject: Secret([]), signature: Secret([])), .withdrawal)
}

private func signed(_ block: [UInt8]) -> SealedSubject {
    guard let signature = try? withBytes(block, { try serverKey.sign($0) }) else {
        preconditionFailure("our own key signs")
    }
    return SealedSubject(subject: Secret(Base64.encode(block)), signature: Secret(Base64.encode(signature)))
}

extension CallAnswer {
    private static let statuses: [Int?] = [
        nil, 200, 201, 202, 204, 301, 400, 401, 403, 404, 408, 409, 413, 425, 429, 500, 503, 0, -1, .max
    ]

    /// A status by its place in the list, a line for `Retry-After`, the body.
    fileprivate init?(fuzz bytes: UnsafeRawBufferPointer) {
        guard let first = bytes.first else { return nil }
        let parts = bytes.dropFirst().split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false)
        self.init(
            status: Self.statuses[Int(first) % Self.statuses.count],
            retryAfter: parts[0].isEmpty ? nil : String(decoding: parts[0], as: UTF8.self),
            body: parts.count > 1 ? Secret(parts[1]) : Secret([]))
    }
}

// MARK: state machines, in any order and at any time

/// Entries to four proxies that answer whatever they like: none is lost without being counted.
private func playQueue(_ bytes: UnsafeRawBufferPointer) {
    var (queue, random) = (ProxyQueue(origin), SystemRandomNumberGenerator())
    var (open, now, added, settled) = ([ProxyQueue.Call](), UnixTime(seconds: 1_800_000_000), 0, 0)
    for step in bytes.split(separator: 0x0A).prefix(200) {
        let step = UnsafeRawBufferPointer(rebasing: step)
        let value = step[0] >> 2
        switch step[0] & 3 {
        case 0:
            let row = RegisteredDevice(
                tokenID: 1, deviceIdentifier: "a", devicePublicKey: "", pushTokenHash: "h",
                proxyServer: "https://\(value & 3).example", group: .unknown)
            let count = Int(value >> 2) + 1
            queue.add([SealedEntry](repeating: fuzzEntry(row), count: count), now: now)
            added += count
        case 1:
            now = now + .milliseconds(1 << Int64(value & 31))
        case 2: open += queue.next(now: now)
        default:
            guard !open.isEmpty,
                let answer = CallAnswer(fuzz: UnsafeRawBufferPointer(rebasing: step[1...]))
            else { continue }
            let call = open.remove(at: Int(value) % open.count)
            guard let end = queue.settle(call.id, answer, rows: [], now: now, using: &random) else {
                preconditionFailure("a call under way is settled once")
            }
            precondition(end.retried >= 0 && end.lost >= 0 && end.retried + end.lost <= call.count)
            settled += call.count - end.retried
            precondition(queue.settle(call.id, answer, rows: [], now: now, using: &random) == nil)
        }
        precondition(queue.count + queue.dropped + settled == added, "every entry has its place")
        precondition(queue.count == queue.waiting.count && queue.remembered <= 4)
    }
}

/// What is kept reads back, and a logout ends whatever server and relay say.
private func playDevice(_ kept: Secret) {
    guard var device = try? NextcloudDevice(fuzzLogin, keeping: kept) else { return }
    guard let again = try? NextcloudDevice(fuzzLogin, keeping: device.kept), again.kept == device.kept else {
        preconditionFailure("we can read what we write")
    }
    try? device.use(token: nil)
    var now = UnixTime(seconds: 1_800_000_000)
    for status in [0, 404, 503, 200, 200] {
        for call in device.due(at: now) {
            let answer = status == 0 ? CallAnswer.none : .http(status: status, body: Secret([]))
            device.answered(answer, to: call, at: now)
        }
        now = now + .seconds(600)
    }
    precondition(device.isGone && device.nextDue == nil)
}

/// Nobody has signed it, whatever a push service hands over.
private func playDelivered(_ json: Secret) {
    guard let delivered = try? Delivered(json: json), let device = try? NextcloudDevice(fuzzLogin, phone)
    else { return }
    precondition((try? device.open(delivered, at: UnixTime(seconds: 1_800_000_000))) == nil)
}

private let fuzzLogin = NextcloudLogin(phone.account, phone.app)
