import NIOCore
import PushModel
import WireFormats

/// What a siege does to a Zulip instance.
enum ZulipAttacks {
    static let all: [SiegeAttack] = [
        .quiet, bareBodies, bodies, .connections, .descriptors, failures, signUps, challenges, wholeBodies,
        realms, unknownIDs, madeUpTokens, phoneQuota
    ]

    /// Bodies of the largest kind without credentials, begun and not ended.
    private static let bareBodies = SiegeAttack("bodies_without_credentials") { force in
        await force.send(begun { _ in "" })
    }
    /// The same of one client, with credentials of the right form that nobody has.
    private static let bodies = SiegeAttack("bodies_with_made_up_credentials") { force in
        await force.send(begun { "Authorization: \(credentials($0))\r\n" })
    }
    /// One client that tries credentials.
    private static let failures = SiegeAttack("failed_calls") { force in
        await force.repeatedly(callers: 4) { request("GET", "server/analytics/status", credentials($0)) }
    }
    /// One client that asks for transfers without end.
    private static let signUps = SiegeAttack("sign_ups_and_transfers") { force in
        await force.repeatedly(callers: 2) { _ in
            form("server/register/transfer", [("hostname", "chat.example.org")])
        }
    }
    /// A server that has the relay ask hosts that are not there.
    private static let challenges = SiegeAttack("challenges") { await challenge($0) }
    /// Clients that send whole bodies of several mebibytes with credentials that nobody has.
    private static let wholeBodies = SiegeAttack("large_bodies_of_strangers") { await sendWholeBodies($0) }
    /// Servers that were let in, and upload realms that nobody knows.
    private static let realms = guests("realms_of_the_admitted") { try await $0.uploadRealms() }
    /// The same, and ask for pushes to ids that nobody has.
    private static let unknownIDs = guests("ids_that_nobody_has") { try await $0.askForUnknown() }
    /// The same, and register tokens that the push service refuses, and have them pushed to.
    private static let madeUpTokens = guests("tokens_that_are_none") { try await $0.pushToNobody() }

    /// The same, and have one phone of theirs pushed to until its quota at Google is used up, and on.
    private static let phoneQuota = guests("quota_of_one_phone") { try await $0.exhaustPhone() }

    // MARK: Strangers

    private static func begun(_ fields: (Int) -> String) -> [ByteBuffer] {
        let begun = ByteBuffer(repeating: UInt8(ascii: "a"), count: SiegePlan.bodyBytes)
        return (0..<SiegePlan.bodySenders).map { index in
            var bytes = ByteBuffer(
                string: "POST /api/v1/remotes/server/analytics HTTP/1.1\r\nHost: t\r\n\(fields(index))"
                    + "Content-Length: \(16 << 20)\r\n\r\n")
            bytes.writeImmutableBuffer(begun)
            return bytes
        }
    }

    /// Each sends one whole body after the other: rows as a server uploads them, so that reading them costs
    /// what it costs.
    private static func sendWholeBodies(_ force: SiegeForce) async {
        let row = #"{"id":1,"property":"messages_sent:is_bot:hour","subgroup":"false","end_time":1.7e9}"#
        let rows = Array(repeating: row, count: SiegePlan.wholeBodyBytes / 2 / row.utf8.count)
        let counts = "[\(rows.joined(separator: ","))]"
        await withTaskGroup(of: Void.self) { senders in
            for index in 0..<SiegePlan.wholeBodySenders {
                senders.addTask {
                    let body = form(
                        "server/analytics", [("realm_counts", counts), ("installation_counts", counts)],
                        credentials(index))
                    await force.repeatedly(from: "127.0.4.\(index + 1)") { body }
                }
            }
        }
    }

    /// Signs hosts up that are not there, and has the relay ask them.
    private static func challenge(_ force: SiegeForce) async {
        await withTaskGroup(of: Void.self) { servers in
            for number in 0..<5 {
                servers.addTask {
                    let (host, place) = ("h\(number).siege.invalid", "127.0.3.\(number + 1)")
                    let signUp = form(
                        "server/register",
                        [
                            ("zulip_org_id", UUIDText(version4From: UInt64(number), 3).text),
                            ("zulip_org_key", String(repeating: "k", count: 64)), ("hostname", host),
                            ("contact_email", "ops@\(host)")
                        ])
                    _ = await force.scene.once(signUp, from: place, to: force.scene.port)
                    let transfer: (String, [(String, String)]) = ("server/register/transfer", [])
                    let calls = [transfer, verification].map { path, more in
                        form(path, [("hostname", host)] + more)
                    }
                    while !force.isOver {
                        for call in calls {
                            let status = await force.scene.once(call, from: place, to: force.scene.port)
                            force.trial.note { $0.attacker(heard: status) }
                        }
                        await force.breathe()
                    }
                }
            }
        }
    }

    private static let verification: (String, [(String, String)]) = (
        "server/register/verify_challenge", [("access_token", "siege")]
    )

    // MARK: Requests

    private static func credentials(_ number: Int) -> String {
        let id = UUIDText(version4From: UInt64(number), 7).text
        return "Basic " + Base64.text(Array("\(id):\(String(repeating: "k", count: 64))".utf8))
    }

    private static func request(_ method: String, _ path: String, _ authorization: String) -> ByteBuffer {
        ByteBuffer(
            string: "\(method) /api/v1/remotes/\(path) HTTP/1.1\r\nHost: t\r\n"
                + "Authorization: \(authorization)\r\n\r\n")
    }

    private static func form(
        _ path: String, _ fields: [(String, String)], _ authorization: String? = nil
    ) -> ByteBuffer {
        let form = [(name: "Content-Type", value: Secret("application/x-www-form-urlencoded".utf8))]
        let body = Form(fields.map { ($0.0, Array($0.1.utf8)) }).encoded()
        return ByteBuffer(
            requestText(
                "POST", "/api/v1/remotes/\(path)", host: "t",
                form + (authorization.map { [("Authorization", Secret($0.utf8))] } ?? []), Secret(body)))
    }
}
