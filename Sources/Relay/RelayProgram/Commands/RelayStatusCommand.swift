import AdminIngress
import ArgumentParser
import PushModel
import WebClient
import WireFormats

/// `sealbell status`: what the running relay says of itself, in one look.
struct RelayStatusCommand: SealbellCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows what the running relay is doing: lanes, what is owed, alerts.",
        discussion: """
            In short what /status of the admin listener says, which --json prints whole; the dashboard shows \
            more. Ends with 0 when the relay answers, whatever it says, and with 69 when there is none; \
            sealbell doctor judges what it says. --check is for supervisors of containers and the like: it \
            needs no token, and takes the admin listener as the running relay has it.
            """)

    @Flag(help: "Only whether the relay serves: ends with 0 if it does, and with 69 if not.")
    var check = false

    @OptionGroup var adminListener: AdminListenerOptions

    func validate() throws {
        let others = [adminListener.tokenFile, adminListener.authorityFile].compactMap(\.self)
        guard !check || others.isEmpty && !adminListener.json else {
            throw ValidationError("--check takes neither --json nor --token-file nor --ca.")
        }
    }

    func run(_ shell: Shell) async throws -> Ending {
        if check {
            shell.out(try await ServingCheck(adminListener.server.find(shell)).sentence(shell))
            return .done
        }
        let status = try await adminListener.ask("/status", shell)
        adminListener.show(status, shell) { RelayStatus($0).lines(isStyled: shell.isStyled) }
        return .done
    }
}

/// Whether a server serves. It is asked no secret and believed nothing else, so that no token is needed, and
/// no certificate that this machine trusts for the listener's address.
struct ServingCheck {
    private let file: RunFile

    init(_ file: RunFile) { self.file = file }

    /// - Returns: what was seen.
    /// - Throws: `CommandFailure` with what is wrong.
    func sentence(_ shell: Shell) async throws(CommandFailure) -> String {
        // Where there is no admin listener, any answer of another one shows that the relay takes calls. The
        // parties of a sandbox are not the relay.
        let others = file.urls.filter { !$0.key.hasPrefix("sandbox-") }
        guard let url = file.urls["admin"] ?? others.min(by: { $0.key < $1.key })?.value else {
            return "The relay (process \(file.pid)) runs; it has no listener that could be asked."
        }
        guard let door = AdminDoor(url, pid: file.pid, checksCertificate: false, shell) else {
            throw CommandFailure(.failed, "The relay's listener \(url) cannot be asked.")
        }
        let status: Int
        do throws(AdminDoor.Fault) { status = try await door.live().status } catch {
            throw CommandFailure(.unavailable, door.sentence(error))
        }
        guard status == 200 || file.urls["admin"] == nil else {
            throw CommandFailure(.unavailable, door.sentence(.foreign))
        }
        return "The relay serves: \(url) answers."
    }
}

/// What `/status` says, for a person.
struct RelayStatus {
    private let status: JSONValue

    init(_ status: JSONValue) { self.status = status }

    func lines(isStyled: Bool) -> [String] {
        let up = StoreChecks.words(status["uptime_seconds"]?.int64 ?? 0)
        let head = [
            "Sealbell \(status["version"]?.string ?? "?") has served for \(up).",
            "Owed: \(owed).", "Origins signed up: \(status["origins"]?.int64.map(String.init) ?? "unknown")."
        ]
        return head + reload + certificates + alerts(isStyled) + [""] + lanes(isStyled)
    }

    private var owed: String {
        let outbox = status["outbox"]
        guard let rows = outbox?["rows"]?.int64 else { return "the store does not say" }
        guard rows > 0 else { return "nothing" }
        let size = (outbox?["bytes"]?.int64).map { ", \($0 >> 10) KiB" } ?? ""
        let age = (outbox?["oldest_seconds"]?.int64).map { ", the oldest for \(StoreChecks.words($0))" } ?? ""
        return counted(rows, "push", "pushes") + size + age
    }

    private var reload: [String] {
        guard let ago = status["reload"]?["seconds_ago"]?.int64 else { return [] }
        let when = "Last reload: \(StoreChecks.words(ago)) ago"
        guard let code = status["reload"]?["refused"]?.string else { return [when + ", in force."] }
        return [when + ", refused (\(code)): the configuration of before is in force."]
    }

    private var certificates: [String] {
        (status["certificates"]?.array ?? []).map { certificate in
            let days = certificate["days"]?.int64 ?? 0
            return "Certificate of \(certificate["listener"]?.string ?? ""): "
                + (days > 0 ? counted(days, "day") + " left." : "ended.")
        }
    }

    private func alerts(_ isStyled: Bool) -> [String] {
        let alerts = status["alerts"]?.array ?? []
        guard !alerts.isEmpty else { return ["No alert holds."] }
        return alerts.map { alert in
            let subject = alert["subject"]?.string ?? ""
            let name = [alert["alert"]?.string ?? "", subject].filter { !$0.isEmpty }.joined(separator: " ")
            return Style.red.on("ALERT", isStyled) + " \(name): \(alert["sentence"]?.string ?? "")"
        }
    }

    /// When a lane's last refusal came; `nil` where there was none, or the relay does not say.
    static func refusedAt(_ lane: JSONValue) -> String? {
        lane["reason_at"]?.int64.map { timestamp(UnixTime(seconds: $0)) }
    }

    private func lanes(_ isStyled: Bool) -> [String] {
        let rows = (status["lanes"]?.array ?? []).map { lane in
            [lane["lane"]?.string ?? "", lane["state"]?.string ?? ""]
                + ["in_flight", "in_memory", "parked"].map { String(lane[$0]?.int64 ?? 0) }
                + [[lane["reason"]?.string, Self.refusedAt(lane)].compactMap(\.self).joined(separator: ", ")]
        }
        let header = ["LANE", "STATE", "IN FLIGHT", "IN MEMORY", "IN STORE", "LAST REFUSAL"]
        return TextTable.lines(header, rows, isStyled: isStyled)
    }
}
