import NextcloudPush
import PushModel
import PushTesting
import Testing
import WireFormats

/// Runs the cases of `nextcloud.json` that are the relay's.
struct NextcloudRelayVectors: Sendable {
    static let sections = ["devices", "notifications"]

    let set: VectorSet
    private let json: JSONValue
    private let apps: NextcloudApps

    init(_ file: VectorFile) throws {
        json = file.json
        set = VectorSet(
            "nextcloud/" + file.set,
            Self.sections.flatMap { section in VectorCase.each(of: file.json[section], section) })
        apps = try Self.apps(#require(file.json["apps"]?.object))
    }

    /// Devices that call themselves by one product are of one app: their `User-Agent` tells no more.
    private static func apps(_ rows: JSONObject) throws -> NextcloudApps {
        var found: [String: (bundle: String?, hasVoIP: Bool, hasFCM: Bool)] = [:]
        for (_, row) in rows.members {
            let hint = ClientHint(userAgent: try #require(row["user_agent"]?.string))
            let product = try #require(hint.products.first { $0.hasPrefix("nextcloud-") })
            var app = found[product] ?? (nil, false, false)
            if row["provider"]?.string == "apns" {
                app.bundle = try #require(row["topic"]?.string)
                // The files app takes alerts alone, whatever the file calls its topic for calls.
                app.hasVoIP = row["voip_topic"]?.string != nil
            } else {
                app.hasFCM = true
            }
            found[product] = app
        }
        let apps = found.map { name, app in
            NextcloudApp(
                name: configured(name), bundle: app.bundle, hasVoIP: app.hasVoIP, hasFCM: app.hasFCM)
        }
        return NextcloudApps(
            apps, clients: Dictionary(uniqueKeysWithValues: found.keys.map { ($0, configured($0)) }))
    }

    func holds(_ vector: VectorCase) async throws -> Bool {
        let row = vector.row
        let rig = try await NextcloudRelayRig(apps: apps, web: web(row))
        return try await rig.running { rig in
            for name in row["setup"]?.array ?? [] {
                let device = try #require(
                    json["devices"]?.array?.first { $0["name"]?.string == name.string })
                let answer = try await ask(rig, device)
                guard answer.status == 200 else { return false }
            }
            let before = try await rows(rig)
            // What is changed by a setup a moment ago is changing still; the file knows no clock.
            rig.advance(by: NextcloudLimits.tokenChange)
            let answer = try await ask(rig, row)
            guard fits(answer, row) else { return false }
            // "Row stays": what is refused changes nothing.
            if answer.status != 200, try await rows(rig) != before { return false }
            let expected = row["deliver"]?.array ?? []
            await rig.services.sent(atLeast: expected.count)
            return same(rig.services.sent.map { $0.message }, expected)
        }
    }

    /// Keys and tokens of all registrations, without the times.
    private func rows(_ rig: NextcloudRelayRig) async throws -> [String] {
        var rows: [String] = []
        for space in [rig.keys.pinSpace, rig.keys.alertSpace, rig.keys.voipSpace] {
            for record in try await rig.store.page(.space(space), after: 0, limit: 1_000) {
                if let pin = NextcloudPin(body: record.body) {
                    rows.append("\(pin.keyDER) \(String(decoding: pin.tokenHash.hex, as: UTF8.self))")
                } else {
                    rows.append(record.body.reveal { Hex.encode($0) })
                }
            }
        }
        return rows.sorted()
    }

    /// The instance that the row describes.
    private func web(_ row: JSONValue) -> ScriptedWeb {
        let proofs = row["identity_proof"]?.array ?? []
        return ScriptedWeb { (request) throws(WebError) in
            for proof in proofs {
                guard let host = proof["host"]?.string, let user = proof["user_id"]?.string,
                    request.url.hasPrefix("https://\(host)/ocs/v2.php/identityproof/key/\(user)?")
                else { continue }
                guard let key = proof["public"]?.string else { return WebAnswer(404) }
                return WebAnswer(
                    200,
                    String(
                        decoding: JSONValue.object([
                            "ocs": .object(["data": .object(["public": .string(key)])])
                        ]).serialized(), as: UTF8.self))
            }
            throw WebError(.unreachable)
        }
    }

    private func ask(_ rig: NextcloudRelayRig, _ row: JSONValue) async throws -> RelayAnswer {
        let request = try #require(row["request"])
        var headers: [String: String] = [:]
        for (name, value) in request["headers"]?.object?.members ?? [] {
            headers[name.lowercased()] = value.string
        }
        return await rig.ask(
            try #require(request["method"]?.string), try #require(request["path"]?.string),
            contentType: headers["content-type"], userAgent: headers["user-agent"],
            body: Array((request["body"]?.string ?? "").utf8))
    }

    // MARK: comparing

    private func fits(_ answer: RelayAnswer, _ row: JSONValue) -> Bool {
        let allowed = row["accept_any_of"]?.array ?? [row["expect"] ?? .null]
        return allowed.contains { expected in
            guard expected["status"]?.int64 == Int64(answer.status) else { return false }
            guard let json = expected["json"] else { return true }
            let unknown = json["unknown"]?.array?.compactMap(\.string) ?? []
            return Set(answer.unknown ?? ["none"]) == Set(unknown) && answer.failed == json["failed"]?.int64
        }
    }

    private func same(_ sent: [ProviderMessage], _ expected: [JSONValue]) -> Bool {
        guard sent.count == expected.count else { return false }
        var rest = expected
        for message in sent {
            guard let place = rest.firstIndex(where: { fits(message, $0) }) else { return false }
            rest.remove(at: place)
        }
        return true
    }

    private func fits(_ message: ProviderMessage, _ row: JSONValue) -> Bool {
        let token = Secret((row["token"]?.string ?? "").utf8)
        // Apple's are sent in the one spelling.
        guard message.address == (message.apns == nil ? token : APNsMessage.canonical(token)) else {
            return false
        }
        if let apns = message.apns {
            let body = apns.payload.reveal { (try? JSONValue.parse($0)) ?? .null }  // Null fits nothing.
            return row["provider"]?.string == "apns" && row["apns-topic"]?.string == apns.topic
                && row["apns-push-type"]?.string == apns.pushType.rawValue
                && row["apns-priority"]?.string == String(apns.priority)
                && holds(body, row["payload"]) && body["aps"] != nil
        }
        guard let fcm = message.fcm else { return false }
        let data = fcm.data.reveal { (try? JSONValue.parse($0)) ?? .null }  // As above.
        return row["provider"]?.string == "fcm" && data == row["data"]
            && row["android_priority"]?.string == (fcm.priority == .high ? "HIGH" : "NORMAL")
    }

    /// Whether a body has all members of another.
    private func holds(_ body: JSONValue, _ members: JSONValue?) -> Bool {
        guard let members = members?.object?.members, !members.isEmpty else { return false }
        return members.allSatisfy { body[$0.name] == $0.value }
    }
}
