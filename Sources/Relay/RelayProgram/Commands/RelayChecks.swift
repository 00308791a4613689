#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import AdminIngress
import PushModel
import WebClient
import WireFormats

/// What the running relay says of itself: lanes, alerts, its last reload, and whether it is the program and
/// the configuration that stand here. It is asked at its admin listener, once.
struct RelayChecks {
    let configuration: RelayConfiguration
    let shell: Shell

    init(_ configuration: RelayConfiguration, _ shell: Shell) {
        self.configuration = configuration
        self.shell = shell
    }

    func check() async -> [Finding] {
        let state = configuration.state
        let found: RunFile.Found
        do throws(FileFault) { found = try RunFile.find(state: state) } catch {
            return [.warning(.relay, joinPath(state, RunFile.name), error.sentence)]
        }
        switch found {
        case .none: return [.good(.relay, state, "No relay serves from this state directory.")]
        case .stale(let pid):
            return [
                .warning(
                    .relay, state,
                    "The relay of this state directory (process \(pid)) is gone without a farewell: it was "
                        + "killed, or it crashed; the system's log says which.")
            ]
        case .running(let file): return await ask(file)
        }
    }

    private func ask(_ file: RunFile) async -> [Finding] {
        let name = "process \(file.pid)"
        guard let url = file.urls["admin"] else {
            return [
                .warning(
                    .relay, name,
                    "It serves and has no admin listener, so it cannot be asked: add listeners.admin.")
            ]
        }
        let answer: LocalCall.Answer
        do throws(AdminDoor.Fault) {
            guard let door = AdminDoor(url, pid: file.pid, shell) else { throw .unreachable }
            answer = try await door.ask("GET", "/status", headers: token())
        } catch {
            let cure =
                url.hasPrefix("https:")
                ? "Its certificate may be of an authority that this machine does not trust; ask by the "
                    + "other commands with --ca."
                : "It hangs, or it has no descriptor left: look at its log."
            return [.fault(.relay, name, "It runs, and its admin listener \(url) does not answer. \(cure)")]
        }
        // No JSON where JSON was promised is no relay's answer.
        guard answer.status == 200, let status = try? JSONValue.parse(answer.body, limitBytes: 4 << 20) else {
            return [
                .fault(
                    .relay, name,
                    "Its admin listener answers \(answer.status) and not its counts: reload it, if its token "
                        + "was changed.")
            ]
        }
        return identity(status, name) + reload(status) + lanes(status) + alerts(status) + proxies(status)
    }

    private func token() -> [(name: String, value: Secret)] {
        for listener in configuration.listeners {
            guard case .admin(let path?) = listener.purpose,
                // A file that cannot be read has a finding of its own, and the listener says 401.
                let token = try? CredentialCache.read(path).trimmed
            else { continue }
            return [("Authorization", token.reveal { Secret(Array("Bearer ".utf8) + $0) })]
        }
        return []
    }

    // MARK: What it is

    private func identity(_ status: JSONValue, _ name: String) -> [Finding] {
        let up = StoreChecks.words(status["uptime_seconds"]?.int64 ?? 0)
        let version = status["version"]?.string ?? "?"
        guard version == Release.version else {
            return [
                .warning(
                    .relay, name,
                    "It has served for \(up) and is version \(version), and this program is "
                        + "\(Release.version): restart it, or use its own doctor.")
            ]
        }
        return [.good(.relay, name, "It has served for \(up), version \(version).")]
    }

    /// A file that was changed behind the relay's last reading is not in force, however sound it is: the
    /// configuration, and each certificate, key or credential that it names.
    private func reload(_ status: JSONValue) -> [Finding] {
        let reload = status["reload"]
        if let code = reload?["refused"]?.string {
            let ago = StoreChecks.words(reload?["seconds_ago"]?.int64 ?? 0)
            return [
                .warning(
                    .relay, "reload",
                    "The last one, \(ago) ago, was refused (\(code)): the configuration of before is in "
                        + "force. Mend what config check and the log say, and reload again.")
            ]
        }
        let read = reload?["seconds_ago"]?.int64 ?? status["uptime_seconds"]?.int64 ?? 0
        let known = shell.world.now().seconds - read + Self.graceSeconds
        func isNewer(_ file: String) -> Bool { modified(file).map { $0 > known } ?? false }
        var findings: [Finding] = []
        if let file = configuration.file, isNewer(file) {
            findings.append(
                .warning(
                    .relay, file,
                    "It was changed after the running relay had read it: reload (SIGHUP), if it is to be in "
                        + "force."
                ))
        }
        return findings
            + configuration.files.filter { Self.isReadAgain($0) && isNewer($0.file) }.map { file in
                .warning(
                    .relay, "\(file.path) (\(file.file))",
                    "It was changed after the running relay had read it: reload (SIGHUP), if it is to be in "
                        + "force; restart, if systemd hands it over by LoadCredential.")
            }
    }

    /// Whether a reload reads it: the store's keys are watched, its password is asked for at each connection,
    /// and an origin may be a process of its own.
    private static func isReadAgain(_ file: ConfiguredFile) -> Bool {
        !file.path.hasPrefix("store.") && !file.path.hasPrefix("origin.")
    }

    /// Both clocks are cut to seconds, and a start reads its file some time before it counts.
    private static let graceSeconds: Int64 = 2

    private func modified(_ path: String) -> Int64? {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        #if canImport(Darwin)
        return Int64(facts.st_mtimespec.tv_sec)
        #else
        return Int64(facts.st_mtim.tv_sec)
        #endif
    }

    // MARK: What it does

    func lanes(_ status: JSONValue) -> [Finding] {
        let lanes = status["lanes"]?.array ?? []
        let troubled = lanes.compactMap { lane -> Finding? in
            guard let name = lane["lane"]?.string, let state = lane["state"]?.string,
                state == "halted" || state == "unanswered"
            else { return nil }
            let waiting = (lane["in_memory"]?.int64 ?? 0) + (lane["parked"]?.int64 ?? 0)
            let cure =
                state == "halted"
                ? "check the app's credential, topic and environment"
                : "check the network, the proxy"
                    + (shell.hosting.detours.map { " and, \($0)" } ?? "")
            let cause = Self.cause(lane["reason"]?.string, at: RelayStatus.refusedAt(lane))
            let wait = counted(waiting, "push waits", "pushes wait")
            return .fault(.relay, name, "It is \(state)\(cause), and \(wait): \(cure).")
        }
        return troubled.isEmpty
            ? [.good(.relay, "lanes", "None of \(lanes.count) is halted or without an answer.")] : troubled
    }

    /// Nothing where there is none, rather than a word that says nothing.
    private static func cause(_ reason: String?, at time: String?) -> String {
        switch reason {
        case nil: ""
        case Reason.unknown.rawValue: " for a reason that this version does not know"
        case .some(let reason): " (\(reason)\(time.map { ", \($0)" } ?? ""))"
        }
    }

    /// Where a trusted proxy names clients in a way that cannot be read, all of them have one share.
    private func proxies(_ status: JSONValue) -> [Finding] {
        (status["unread_clients"]?.object?.members ?? []).map { listener, requests in
            .warning(
                .relay, "listeners.\(listener)",
                "A trusted proxy named the client of \(counted(requests.int64 ?? 0, "request")) by no "
                    + "address. Such requests count as the proxy's own and share its limits: have it set "
                    + "X-Forwarded-For to the client's address.")
        }
    }

    /// Alerts that hold; those of lanes are told with their lane.
    private func alerts(_ status: JSONValue) -> [Finding] {
        (status["alerts"]?.array ?? []).compactMap { alert in
            guard let kind = alert["alert"]?.string, let sentence = alert["sentence"]?.string,
                kind != "lane_halted", kind != "lane_unanswered"
            else { return nil }
            let subject = alert["subject"]?.string ?? ""
            let name = subject.isEmpty ? kind : "\(kind) \(subject)"
            // A store that refuses writes serves nobody, and a lane that reaches nobody none of its app.
            return ["store_failing", "lane_unreachable"].contains(kind)
                ? .fault(.relay, name, sentence) : .warning(.relay, name, sentence)
        }
    }
}
