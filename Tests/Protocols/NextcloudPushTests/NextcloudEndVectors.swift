import NextcloudPush
import Primitives
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// Runs the cases of `nextcloud.json` that are a device's or an origin's.
struct NextcloudEndVectors: Sendable {
    /// Members of the file that are no sections.
    static let frame: Set<String> = ["schema", "set", "protocol", "conventions", "apps", "keys"]
    /// Sections of the relay's role, which have a runner of their own.
    static let ofRelay: Set<String> = ["devices", "notifications"]

    private static let ours = [
        "push_tokens", "identities", "device_key_checks", "push_token_hash_checks", "proxy_url_checks",
        "registrations", "subjects", "truncation", "delete_plaintexts", "push_kinds", "server_reactions"
    ]
    static let now = UnixTime(seconds: 1_800_000_000)

    let json: JSONValue
    let set: VectorSet
    let keys: [String: RSAPrivateKey]
    /// What the file says of hosts of one's own holds where they are allowed.
    let origin = NextcloudOrigin(NextcloudOrigin.Settings(localProxies: .allowed))

    init(_ file: VectorFile) throws {
        json = file.json
        let limits = file.json["subject_limits"].map { [VectorCase("subject_limits", name: "all", row: $0)] }
        set = VectorSet(
            "nextcloud/" + file.set,
            Self.ours.flatMap { VectorCase.each(of: file.json[$0], $0) } + (limits ?? []))
        var keys: [String: RSAPrivateKey] = [:]
        for (name, row) in file.json["keys"]?.object?.members ?? [] where row["bits"]?.int64 == 2_048 {
            keys[name] = try RSAPrivateKey(pem: Secret(Self.text(row, "private_pkcs8_pem").utf8))
        }
        self.keys = keys
    }

    func holds(_ vector: VectorCase) throws -> Bool {
        let row = vector.row
        switch vector.section {
        case "push_tokens": return try pushToken(row)
        case "identities": return try identity(row)
        case "device_key_checks":
            return try check(row, PushRegistration(hash, Self.text(row, "pem"), proxy))
        case "push_token_hash_checks":
            return try check(row, PushRegistration(Self.text(row, "value"), pem, proxy))
        case "proxy_url_checks": return try check(row, PushRegistration(hash, pem, Self.text(row, "url")))
        case "registrations": return try registrations(row)
        case "subjects": return try subject(row)
        case "subject_limits": return try limits(row)
        case "truncation": return try truncation(row)
        case "delete_plaintexts": return try withdrawals(row)
        case "push_kinds": return try kind(row)
        case "server_reactions": return try reaction(row)
        default: return false
        }
    }

    // MARK: what is registered

    private func pushToken(_ row: JSONValue) throws -> Bool {
        let whole = try NextcloudPushToken(Secret(Self.text(row, "token").utf8))
        guard let alert = row["alert_token"]?.string, let voip = row["voip_token"]?.string else {
            return whole.hash == row["sha512_hex"]?.string
        }
        let pair = try NextcloudPushToken(alert: Secret(alert.utf8), voip: Secret(voip.utf8))
        return whole.hash == row["sha512_hex"]?.string && pair.hash == whole.hash
    }

    private func identity(_ row: JSONValue) throws -> Bool {
        let identity = AppPasswordIdentity(
            cloudID: try Self.text(row, "cloud_id"), tokenID: try #require(row["token_id"]?.int64))
        let digest = try Base64.decode(identity.deviceIdentifier)
        let signature = try identity.signature(by: key(row, "user_key"))
        return String(decoding: identity.preimage, as: UTF8.self) == row["preimage"]?.string
            && Hex.encode(digest) == row["preimage_sha512_hex"]?.string
            && identity.deviceIdentifier == row["device_identifier"]?.string
            && signature == row["signature"]?.string
    }

    /// Whether the answer is one of those that may be given: `accept`, or the word of a refusal.
    private func check(_ row: JSONValue, _ registration: PushRegistration) throws -> Bool {
        let verdict = try origin.register(registration, by: session(41), userAgent: "", rows: [])
        let got = verdict.answer.word?.rawValue ?? (verdict.answer.status == 201 ? "accept" : "?")
        return (row["accept_any_of"]?.array ?? [row["expect"] ?? .null]).contains(.string(got))
    }

    private func registrations(_ row: JSONValue) throws -> Bool {
        var rows: [RegisteredDevice] = []
        var identifiers: [Int64: String] = [:]
        for step in row["steps"]?.array ?? [] {
            let verdict: RegistrationVerdict
            if let fields = step["POST"] {
                let registration = PushRegistration(
                    fields["pushTokenHash"]?.string, fields["devicePublicKey"]?.string,
                    fields["proxyServer"]?.string)
                verdict = try origin.register(registration, by: login(step), userAgent: "", rows: rows)
            } else {
                verdict = origin.unregister(by: try login(step), rows: rows)
            }
            rows.removeAll { verdict.deletes.contains($0.tokenID) || $0.tokenID == verdict.row?.tokenID }
            if let written = verdict.row {
                let known = identifiers.updateValue(written.deviceIdentifier, forKey: written.tokenID)
                if let known, known != written.deviceIdentifier { return false }
                rows.append(written)
            }
            let allowed = step["status_any_of"]?.array ?? [step["status"] ?? .null]
            guard allowed.contains(.number(JSONNumber(Int64(verdict.answer.status)))),
                step["message"]?.string == verdict.answer.word?.rawValue,
                step["rows_left"].map({ $0.int64 == Int64(rows.count) }) ?? true
            else { return false }
        }
        return true
    }

    private func login(_ step: JSONValue) throws -> NextcloudSession? {
        let login = try Self.text(step, "login")
        switch login {
        case "none": return nil
        case "login password": return try session(nil)
        default: return try session(Int64(try #require(login.split(separator: " ").last)))
        }
    }

    // MARK: what is sealed

    private func subject(_ row: JSONValue) throws -> Bool {
        let sealed = SealedSubject(
            subject: Secret(try Self.text(row, "subject").utf8),
            signature: Secret(try Self.text(row, "signature").utf8))
        let device = try device(row)
        let expect = try #require(row["expect"])
        let opened = Result { try device.open(sealed) }
        guard expect["signature"]?.bool == true else { return Self.code(opened) == .foreignSignature }
        guard expect["decrypts"]?.bool == true, expect["json"]?.bool != false else {
            return Self.code(opened) == .doesNotOpen
        }
        return try Self.says(opened.get(), try JSONValue.parse(Array(Self.text(row, "plaintext").utf8)))
            && kindFits(row)
    }

    /// Whether a content has what the plaintext has.
    private static func says(_ content: NextcloudContent?, _ plain: JSONValue) -> Bool {
        switch content {
        case .alert(let alert):
            return alert.id == plain["nid"]?.int64 && alert.app == plain["app"]?.string
                && alert.subject == plain["subject"]?.string && alert.objectType == plain["type"]?.string
                && alert.objectID == plain["id"]?.string
        case .withdrawal(let ids):
            return plain["nids"]?.array.map { $0.map(\.int64) == ids } ?? (plain["nid"]?.int64 == ids.first)
        case .withdrawalOfAll: return plain["delete-all"]?.bool == true
        case nil: return false
        }
    }

    private func kindFits(_ row: JSONValue) throws -> Bool {
        let plain = try JSONValue.parse(Array(Self.text(row, "plaintext").utf8))
        let kind =
            plain["app"]?.string.map {
                NextcloudPushKind(Self.notification(app: $0, type: plain["type"]?.string ?? ""))
            } ?? .withdrawal
        return Self.isSame(kind, row)
    }

    /// A text of exactly as many bytes as a padding takes, and one of a byte more.
    private func limits(_ row: JSONValue) throws -> Bool {
        for (padding, member) in [
            (RSAPadding.pkcs1v15, "rsa2048_pkcs1v15_max_bytes"), (.oaepSHA1, "rsa2048_oaep_sha1_max_bytes")
        ] {
            let most = Int(try #require(row[member]?.int64))
            guard try sealedBytes(most, padding) == most else { return false }
            #expect(throws: NextcloudError(.plaintextTooLong)) { try sealedBytes(most + 1, padding) }
        }
        return try #require(row["oversized"]?.array).allSatisfy { oversized in
            let padding = oversized["padding"]?.string == "PKCS1v15" ? RSAPadding.pkcs1v15 : .oaepSHA1
            return oversized["bytes"]?.int64 == Int64(padding.plaintextBytes + 1)
        }
    }

    private func sealedBytes(_ count: Int, _ padding: RSAPadding) throws -> Int {
        let frame = #"{"nid":5,"app":"","subject":"","type":"chat","id":""}"#.utf8.count
        var notification = Self.notification(app: String(repeating: "a", count: count - frame), type: "chat")
        notification.id = 5
        return try plaintexts(padding) { try $0.notify(notification, to: $1, of: $2) }[0].utf8.count
    }

    private func truncation(_ row: JSONValue) throws -> Bool {
        let notification = NextcloudNotification(
            id: try #require(row["nid"]?.int64), app: try Self.text(row, "app"),
            subject: try Self.text(row, "parsed_subject"), objectType: try Self.text(row, "type"),
            objectID: try Self.text(row, "id"))
        let plain = try plaintexts(.oaepSHA1) { try $0.notify(notification, to: $1, of: $2) }
        return try row["budget"]?.int64 == 200 && plain == [Self.text(row, "expect_plaintext")]
    }

    private func withdrawals(_ row: JSONValue) throws -> Bool {
        let ids = row["ids"]?.array?.compactMap(\.int64)
        let group = row["group"]?.string == "talk" ? DeviceGroup.talk : .nextcloud
        let plain = try plaintexts(.pkcs1v15, group) { origin, audience, user in
            guard let ids else { return try origin.withdrawAll(from: audience, of: user) }
            return try origin.withdraw(ids, from: audience, of: user)
        }
        return plain == row["expect_plaintexts"]?.array?.compactMap(\.string)
    }

    /// What a device of the file finds in what an origin seals for it.
    private func plaintexts(
        _ padding: RSAPadding, _ group: DeviceGroup = .talk,
        _ seal: (NextcloudOrigin, Audience, NextcloudUser) throws -> NextcloudOrigin.Sealing
    ) throws -> [String] {
        let device = RegisteredDevice(
            tokenID: 41, deviceIdentifier: "", devicePublicKey: try pem, pushTokenHash: "", proxyServer: "",
            group: group)
        let rows = PushConditions(appPasswords: [41: AppPasswordState(lastUsedAt: Self.now)])
            .everybody(of: [device], now: Self.now)
        let sealing = try seal(
            NextcloudOrigin(NextcloudOrigin.Settings(padding: padding)), rows, try session(41).user)
        let key = try #require(keys["dev_talk_ios"])
        return try sealing.entries.map { entry in
            let json = try entry.json.reveal { try JSONValue.parse($0) }
            let sealed = try Base64.decode(Self.text(json, "subject"))
            return try sealed.withUnsafeBytes { try key.decrypt($0, padding: padding) }
                .reveal { String(decoding: $0, as: UTF8.self) }
        }
    }

    private func kind(_ row: JSONValue) throws -> Bool {
        let kind = NextcloudPushKind(
            Self.notification(app: try Self.text(row, "app"), type: try Self.text(row, "object_type")))
        return Self.isSame(kind, row)
    }

    // MARK: what comes back

    private func reaction(_ row: JSONValue) throws -> Bool {
        let status = row["answer"]?["status"]?.int64.map { Int($0) }
        let answer = CallAnswer(
            status: status, body: Secret((row["answer"]?["body"]?.string ?? "").utf8))
        let rows = try (json["identities"]?.object?.members ?? []).enumerated().map { index, member in
            RegisteredDevice(
                tokenID: Int64(index), deviceIdentifier: try Self.text(member.value, "device_identifier"),
                devicePublicKey: try pem, pushTokenHash: try hash, proxyServer: try proxy, group: .talk)
        }
        // The file has some identities twice, under several keys; a server has a row of each once.
        var seen: Set<String> = []
        let known = rows.filter { seen.insert($0.deviceIdentifier).inserted }
        let sealing = try origin.withdrawAll(
            from: PushConditions(
                appPasswords: [known[0].tokenID: AppPasswordState(lastUsedAt: Self.now)]
            ).everybody(of: known, now: Self.now), of: try session(41).user)
        // As deployed servers have it, which have no second try.
        var queue = ProxyQueue(origin, retries: .never)
        queue.add(sealing.entries, now: Self.now)
        var random = SeededRandom(seed: 1)
        let call = try #require(queue.next(now: Self.now).first)
        let settled = try #require(
            queue.settle(call.id, answer, rows: known, now: Self.now, using: &random))
        let deleted = known.filter { settled.verdict.deletes.contains($0.tokenID) }
        return deleted.map(\.deviceIdentifier) == row["delete_rows"]?.array?.compactMap(\.string)
            && row["retry"]?.bool == (settled.retried > 0) && Self.fits(settled.verdict, row)
    }

    private static func fits(_ verdict: ProxyVerdict, _ row: JSONValue) -> Bool {
        let words: [ProxyVerdict.Outcome: String] = [
            .sent: "sent", .partlyFailed: "partly failed", .outdatedProxy: "outdated proxy",
            .refused: "refused"
        ]
        let outcome = row["outcome"]?.string ?? ""
        guard let word = words[verdict.outcome] else { return false }
        return outcome.split(whereSeparator: { ";,".contains($0) }).first.map(String.init) == word
            && verdict.isRateLimited == outcome.contains("the time is noted")
    }

    // MARK: reading

    private static func notification(app: String, type: String) -> NextcloudNotification {
        NextcloudNotification(id: 1, app: app, subject: "", objectType: type, objectID: "")
    }

    private static func isSame(_ kind: NextcloudPushKind, _ row: JSONValue) -> Bool {
        // A device of another group may be sent a call too; the file's rows follow the notification.
        kind.priority.rawValue == row["priority"]?.string && kind.form.rawValue == row["type"]?.string
    }

    private static func code(_ opened: Result<NextcloudContent?, any Error>) -> NextcloudError.Code? {
        guard case .failure(let error) = opened else { return nil }
        return (error as? NextcloudError)?.code
    }

    private func device(_ row: JSONValue) throws -> NextcloudRoutine {
        NextcloudRoutine(
            account: NextcloudAccount(
                serverURL: "https://cloud.example.org", userID: "alice", loginName: "alice",
                appPassword: Secret("p".utf8)),
            app: NextcloudAppBuild(proxyServer: try proxy, userAgent: ""), key: try key(row, "device_key"),
            registration: DeviceRegistration(
                deviceIdentifier: "", signature: "", userPublicKey: try key(row, "user_key").publicKey,
                proxyServer: try proxy, pushTokenHash: try hash, completedAt: Self.now))
    }

    private func session(_ tokenID: Int64?) throws -> NextcloudSession {
        let user = NextcloudUser(cloudID: "alice@cloud.example.org", key: try #require(keys["user_alice"]))
        return NextcloudSession(user: user, tokenID: tokenID)
    }

    private func key(_ row: JSONValue, _ member: String) throws -> RSAPrivateKey {
        try #require(keys[Self.text(row, member)])
    }

    /// Those of the file's first device.
    private var hash: String {
        get throws { try Self.text(try #require(json["push_tokens"]?["talk-ios"]), "sha512_hex") }
    }
    private var pem: String {
        get throws { try Self.text(try #require(json["keys"]?["dev_talk_ios"]), "public_spki_pem") }
    }
    private var proxy: String { get throws { "https://push.example.com/" } }

    private static func text(_ row: JSONValue, _ member: String) throws -> String {
        try #require(row[member]?.string)
    }
}

extension PushRegistration {
    fileprivate init(_ hash: String?, _ key: String?, _ proxy: String?) {
        self.init(pushTokenHash: hash, devicePublicKey: key, proxyServer: proxy)
    }
}
