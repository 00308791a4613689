import NIOCore
import PushModel
import SchnorrKeys
import WireFormats

/// The attackers.
struct SiegeForce: Sendable {
    let scene: SiegeScene
    let end: ContinuousClock.Instant

    var trial: SiegeTrial { scene.trial }
    var isOver: Bool { trial.world.instant() >= end }
    private var rest: Duration { max(.milliseconds(1), end - trial.world.instant()) }

    /// The first address of strangers; the origin and those who come by have others.
    private static let stranger = "127.0.1.1"

    func make(_ attack: SiegeAttack) async throws {
        switch attack {
        case .quiet: break
        case .bareBodies: await send(bodies { _ in "" })
        case .bodies: await send(bodies { "Authorization: \(Self.credentials($0))\r\n" })
        case .connections: try await hold { _ in Self.stranger }
        case .descriptors:
            try await hold { "127.0.2.\(1 + $0 % SiegePlan.crowdAddresses)" }
        case .failures:
            await repeatedly(callers: 4) {
                Self.request("GET", "server/analytics/status", Self.credentials($0))
            }
        case .signUps:
            await repeatedly(callers: 2) { _ in
                Self.form("server/register/transfer", [("hostname", "chat.example.org")])
            }
        case .challenges: await challenge()
        case .wholeBodies: await sendWholeBodies()
        case .realms, .unknownIDs, .madeUpTokens: try await beGuests(attack)
        }
    }

    // MARK: Bodies

    private func bodies(_ fields: (Int) -> String) -> [ByteBuffer] {
        let begun = ByteBuffer(repeating: UInt8(ascii: "a"), count: SiegePlan.bodyBytes)
        return (0..<SiegePlan.bodySenders).map { index in
            var bytes = ByteBuffer(
                string: "POST /api/v1/remotes/server/analytics HTTP/1.1\r\nHost: t\r\n\(fields(index))"
                    + "Content-Length: \(16 << 20)\r\n\r\n")
            bytes.writeImmutableBuffer(begun)
            return bytes
        }
    }

    /// Each begins its body, again whenever the relay has ended it.
    private func send(_ bodies: [ByteBuffer]) async {
        await withTaskGroup(of: Void.self) { senders in
            for body in bodies {
                senders.addTask {
                    while !isOver {
                        guard let connection = await scene.connect(from: Self.stranger, to: scene.port) else {
                            await breathe()
                            continue
                        }
                        let reply = await connection.ask(body, within: rest)
                        connection.close()
                        if !isOver { trial.note { $0.attacker(heard: reply?.status) } }
                        await breathe()
                    }
                }
            }
        }
    }

    /// Each sends one whole body after the other: rows as a server uploads them, so that reading them costs
    /// what it costs.
    private func sendWholeBodies() async {
        let row = #"{"id":1,"property":"messages_sent:is_bot:hour","subgroup":"false","end_time":1.7e9}"#
        let rows = Array(repeating: row, count: SiegePlan.wholeBodyBytes / 2 / row.utf8.count)
        let counts = "[\(rows.joined(separator: ","))]"
        await withTaskGroup(of: Void.self) { senders in
            for index in 0..<SiegePlan.wholeBodySenders {
                senders.addTask {
                    let body = Self.form(
                        "server/analytics", [("realm_counts", counts), ("installation_counts", counts)],
                        Self.credentials(index))
                    await repeatedly(from: "127.0.4.\(index + 1)") { body }
                }
            }
        }
    }

    // MARK: Connections

    /// Takes connections that say nothing, and holds them to the end.
    private func hold(_ place: (Int) -> String) async throws {
        var held: [CallConnection] = []
        for number in 0..<SiegePlan.crowd where !isOver {
            if let connection = await scene.connect(from: place(number), to: scene.port) {
                held.append(connection)
            }
        }
        try await trial.world.sleep(end)
        for connection in held {
            // Who was turned away was told so, and has ended.
            let hasEnded = await connection.standing().hasEnded
            trial.note { $0.attacker(heard: hasEnded ? 429 : 0) }
            connection.close()
        }
    }

    // MARK: Calls

    private func repeatedly(callers: Int, _ request: @escaping @Sendable (Int) -> ByteBuffer) async {
        await withTaskGroup(of: Void.self) { group in
            for caller in 0..<callers {
                group.addTask {
                    var number = caller
                    await repeatedly(from: Self.stranger) {
                        defer { number += callers }
                        return request(number)
                    }
                }
            }
        }
    }

    /// Asks as fast as it is answered, until the end or until there is nothing more to ask.
    func repeatedly(from place: String, _ request: () throws -> ByteBuffer?) async rethrows {
        var kept: CallConnection?
        defer { kept?.close() }
        while !isOver, let bytes = try request() {
            if kept == nil { kept = await scene.connect(from: place, to: scene.port) }
            let reply = await kept?.ask(bytes, within: SiegePlan.patience)
            trial.note { $0.attacker(heard: reply?.status) }
            if reply == nil || reply?.closes == true {
                kept?.close()
                kept = nil
            }
        }
    }

    /// Signs hosts up that are not there, and has the relay ask them.
    private func challenge() async {
        await withTaskGroup(of: Void.self) { servers in
            for number in 0..<5 {
                servers.addTask {
                    let (host, place) = ("h\(number).siege.invalid", "127.0.3.\(number + 1)")
                    let signUp = Self.form(
                        "server/register",
                        [
                            ("zulip_org_id", UUIDText(version4From: UInt64(number), 3).text),
                            ("zulip_org_key", String(repeating: "k", count: 64)), ("hostname", host),
                            ("contact_email", "ops@\(host)")
                        ])
                    _ = await scene.once(signUp, from: place, to: scene.port)
                    let transfer: (String, [(String, String)]) = ("server/register/transfer", [])
                    let calls = [transfer, Self.verification].map { path, more in
                        Self.form(path, [("hostname", host)] + more)
                    }
                    while !isOver {
                        for call in calls {
                            let status = await scene.once(call, from: place, to: scene.port)
                            trial.note { $0.attacker(heard: status) }
                        }
                        await breathe()
                    }
                }
            }
        }
    }

    private static let verification: (String, [(String, String)]) = (
        "server/register/verify_challenge", [("access_token", "siege")]
    )

    private func breathe() async {
        // Ends early only when the trial is cancelled.
        try? await trial.world.sleep(trial.world.instant() + .milliseconds(20))
    }

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
        whole(
            LoadRequests.form(
                path: "/api/v1/remotes/\(path)", host: "t", authorization: authorization, fields: fields))
    }

    static func whole(_ request: (head: [UInt8], body: [UInt8])) -> ByteBuffer {
        var bytes = ByteBuffer(bytes: request.head)
        bytes.writeBytes(request.body)
        return bytes
    }
}
