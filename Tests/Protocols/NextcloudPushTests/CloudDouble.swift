import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// A Nextcloud server with one user, made of the origin alone: it keeps rows and a queue, and is asked over
/// HTTP as values.
struct CloudDouble {
    static let url = "https://cloud.example.org"
    static let proxy = "https://push.example.com/acme-talk"

    private(set) var user: NextcloudUser
    private(set) var rows: [RegisteredDevice] = []
    private(set) var queue = ProxyQueue(NextcloudOrigin())
    private let origin = NextcloudOrigin()
    private var random = SeededRandom(seed: 2)
    /// Every id that it has given so far.
    private var lastID: Int64 = 0

    init() throws { user = try Self.person(try Ends().user.key) }

    /// It is set up again from nothing: the same names and numbers, another key.
    mutating func reinstall() throws {
        user = try Self.person(try Ends().otherKey)
        rows = []
    }

    private static func person(_ key: RSAPrivateKey) throws -> NextcloudUser {
        NextcloudUser(cloudID: AppPasswordIdentity.cloudID(user: "alice", serverURL: url), key: key)
    }

    static let capabilities = CallAnswer(
        200,
        #"{"ocs":{"data":{"capabilities":{"notifications":{"push":["devices","object-data","delete"]}}}}}"#)

    /// What the server answers to a device.
    mutating func answer(_ call: HTTPCall, tokenID: Int64 = 41) throws -> CallAnswer {
        let session = NextcloudSession(user: user, tokenID: tokenID)
        let verdict: RegistrationVerdict
        if call.method == "POST" {
            let form = try call.form
            verdict = try origin.register(
                PushRegistration(
                    pushTokenHash: form.text("pushTokenHash"), devicePublicKey: form.text("devicePublicKey"),
                    proxyServer: form.text("proxyServer")),
                by: session, userAgent: try #require(call.header("User-Agent")), rows: rows)
        } else {
            verdict = origin.unregister(by: session, rows: rows)
        }
        rows.removeAll { verdict.deletes.contains($0.tokenID) || $0.tokenID == verdict.row?.tokenID }
        if let row = verdict.row { rows.append(row) }
        return CallAnswer(
            status: verdict.answer.httpStatus(.v2), body: verdict.answer.body(.v2, .json))
    }

    /// What it says at `identityproof/key/alice`.
    var proof: WebAnswer {
        let json = JSONValue.object([
            "ocs": .object(["data": .object(["public": .string(user.key.publicKey.pem)])])
        ])
        return WebAnswer(200, String(decoding: json.serialized(), as: UTF8.self))
    }

    // MARK: notifying

    private var everybody: Audience {
        let states = rows.map { ($0.tokenID, AppPasswordState(lastUsedAt: NextcloudRelayRig.now)) }
        return PushConditions(appPasswords: Dictionary(states, uniquingKeysWith: { $1 }))
            .everybody(of: rows, now: NextcloudRelayRig.now)
    }

    mutating func notify(_ subject: String, type: String = "chat") throws -> Int64 {
        lastID += 1
        let notification = NextcloudNotification(
            id: lastID, app: "spreed", subject: subject, objectType: type, objectID: "t0k3n")
        queue.add(
            try origin.notify(notification, to: everybody, of: user).entries, now: NextcloudRelayRig.now)
        return lastID
    }

    mutating func withdraw(_ ids: [Int64]) throws {
        queue.add(try origin.withdraw(ids, from: everybody, of: user).entries, now: NextcloudRelayRig.now)
    }

    /// Makes the calls that are due, and acts on their answers.
    mutating func flush(to relay: NextcloudRelayRig) async throws -> [ProxyVerdict.Outcome] {
        var outcomes: [ProxyVerdict.Outcome] = []
        for call in queue.next(now: NextcloudRelayRig.now) {
            let answer = await relay.answer(call.request)
            let settlement = queue.settle(
                call.id, answer, rows: rows, now: NextcloudRelayRig.now, using: &random)
            let settled = try #require(settlement)
            rows.removeAll { settled.verdict.deletes.contains($0.tokenID) }
            outcomes.append(settled.verdict.outcome)
        }
        return outcomes
    }
}

/// A phone with one account.
struct PhoneDouble {
    private(set) var device: NextcloudRoutine
    private var random = SeededRandom(seed: 3)

    init() throws {
        let ends = try Ends()
        device = NextcloudRoutine(
            account: NextcloudAccount(
                serverURL: CloudDouble.url, userID: "alice", loginName: "alice",
                appPassword: Secret("p".utf8)),
            app: NextcloudAppBuild(
                proxyServer: CloudDouble.proxy, userAgent: "Mozilla/5.0 (iOS) Nextcloud-Talk v20.1.0",
                voip: .strict), key: ends.deviceKey)
    }

    static let alert = "B529DD6F50CF7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D"
    static let voip = "C629DD6F50CF7819418C554CB767B4AEF9111BEDEB842BC6D25312469E01E03D"

    /// Registers at both.
    ///
    /// - Returns: what the relay answered, in order.
    mutating func register(
        _ cloud: inout CloudDouble, _ relay: NextcloudRelayRig, _ occasion: NextcloudRoutine.Occasion = .start
    ) async throws -> [Int?] {
        let capabilities = try NextcloudCapabilities(CloudDouble.capabilities.body)
        let token = try NextcloudPushToken(alert: Secret(Self.alert.utf8), voip: Secret(Self.voip.utf8))
        var step = try device.register(token, at: capabilities, occasion, now: NextcloudRelayRig.now)
        var answers: [Int?] = []
        while case .call(let call) = step {
            let answer: CallAnswer
            if call.url.hasPrefix(CloudDouble.url) {
                answer = try cloud.answer(call)
            } else {
                answer = await relay.answer(call)
                answers.append(answer.status)
            }
            step = device.settle(answer, now: NextcloudRelayRig.now, using: &random)
        }
        guard case .done = step else { throw NextcloudError(.refusedByProxy) }
        return answers
    }

    /// Leaves both.
    mutating func unregister(_ cloud: inout CloudDouble, _ relay: NextcloudRelayRig) async throws -> [Int?] {
        var work = Unregistration(account: device.account, app: device.app)
        var (answers, isOver) = ([Int?](), false)
        // The server first, then the relay.
        for _ in 0..<2 {
            let call = try #require(work.call(device.registration))
            let isAtCloud = call.url.hasPrefix(CloudDouble.url)
            let answer = isAtCloud ? try cloud.answer(call) : await relay.answer(call)
            answers.append(answer.status)
            isOver = work.settle(answer, now: NextcloudRelayRig.now, using: &random)
        }
        #expect(isOver)
        return answers
    }

    /// What a push says.
    func open(_ message: APNsMessage) throws -> NextcloudContent? {
        try device.open(try #require(SealedSubject(try Delivered(json: message.payload))))
    }
}

extension NextcloudRelayRig {
    /// Makes a call of a device or an origin.
    func answer(_ call: HTTPCall) async -> CallAnswer {
        let path = call.url.split(separator: "/", omittingEmptySubsequences: true).dropFirst(2)
        let answer = await ask(
            call.method, "/" + path.joined(separator: "/"), contentType: call.header("Content-Type"),
            userAgent: call.header("User-Agent"), body: call.body.reveal { Array($0) })
        return CallAnswer(status: answer.status, body: Secret(answer.json.serialized()))
    }
}
