#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation

/// Why a cluster could not be had, or did not do what it was told. What the programs said is in it: these are
/// clusters of tests, which hold nothing of anybody.
package enum PostgresClusterFault: Error {
    /// Debian's package `postgresql` brings it: `scripts/setup run test`.
    case notInstalled(String)
    case toolFailed(String, said: String)
    /// The server ended, or was not ready in time. The end of its log.
    case notReady(log: String)
    case systemCallFailed(String)
}

/// PostgreSQL's programs on this system, and as whom they run.
struct PostgresPrograms: Sendable {
    /// Where they are.
    let folder: String
    /// PostgreSQL refuses to run as root; Debian's package brings a user for it. `nil`: as we are.
    let account: Account?

    struct Account: Sendable {
        let user: uid_t
        let group: gid_t
    }

    /// The oldest release that has everything which a cluster here uses.
    private static let oldestRelease = 13
    /// A cluster is made, copied and asked within seconds; a minute outlasts a machine that is busy.
    private static let patience = Duration.seconds(60)

    init() throws(PostgresClusterFault) {
        folder = try Self.findFolder()
        account = geteuid() == 0 ? try Self.findAccount() : nil
    }

    private static func findFolder() throws(PostgresClusterFault) -> String {
        let releases = "/usr/lib/postgresql"
        // Without Debian's directory there is PATH to look in.
        let found = (try? FileManager.default.contentsOfDirectory(atPath: releases)) ?? []
        let numbers = found.compactMap(Int.init).filter { $0 >= oldestRelease }.sorted(by: >)
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = numbers.map { "\(releases)/\($0)/bin" } + path.split(separator: ":").map(String.init)
        let whole = folders.first { folder in
            ["initdb", "postgres", "psql", "pg_basebackup"].allSatisfy {
                FileManager.default.isExecutableFile(atPath: "\(folder)/\($0)")
            }
        }
        guard let whole else { throw .notInstalled("initdb") }
        return whole
    }

    private static func findAccount() throws(PostgresClusterFault) -> Account {
        guard let entry = getpwnam("postgres") else { throw .notInstalled("the user postgres") }
        return Account(user: entry.pointee.pw_uid, group: entry.pointee.pw_gid)
    }

    /// What is put before a program that must not run as root.
    var prefix: [String] {
        guard let account else { return [] }
        return [
            "/usr/bin/setpriv", "--reuid=\(account.user)", "--regid=\(account.group)", "--clear-groups", "--"
        ]
    }

    func give(_ path: String) throws(PostgresClusterFault) {
        guard let account else { return }
        guard chown(path, account.user, account.group) == 0 else { throw .systemCallFailed("chown") }
    }

    /// Runs one of PostgreSQL's programs to its end.
    ///
    /// - Parameters:
    ///   - environment: more for the program than a path and a language.
    ///   - log: a file of this call alone, which takes what the program says.
    /// - Returns: what it said.
    /// - Throws: `.toolFailed` when its status is not 0, or it took longer than a minute.
    @discardableResult
    func run(
        _ name: String, _ arguments: [String], environment: [String: String], log: String
    ) async throws -> String {
        guard FileManager.default.createFile(atPath: log, contents: nil),
            let output = FileHandle(forWritingAtPath: log)
        else { throw PostgresClusterFault.systemCallFailed("open") }
        // What cannot be removed goes with the cluster's directory.
        defer { try? FileManager.default.removeItem(atPath: log) }
        let words = prefix + ["\(folder)/\(name)"] + arguments
        let process = Process()
        process.executableURL = URL(fileURLWithPath: words[0])
        process.arguments = Array(words.dropFirst())
        let plain = ["PATH": "/usr/bin:/bin", "LC_ALL": "C", "PGCONNECT_TIMEOUT": "10"]
        process.environment = plain.merging(environment) { $1 }
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        let status = Noted<Int32?>(nil)
        process.terminationHandler = { status.set($0.terminationStatus) }
        try process.run()
        let hasEnded = await status.until(within: Self.patience)
        if !hasEnded { kill(process.processIdentifier, SIGKILL) }
        let said = String(decoding: FileManager.default.contents(atPath: log) ?? Data(), as: UTF8.self)
        guard hasEnded, status.value == 0 else { throw PostgresClusterFault.toolFailed(name, said: said) }
        return said
    }
}

extension Noted where Value == Int32? {
    /// Returns once there is a value; false when the span ended first, or the task.
    func until(within span: Duration) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.until { $0 != nil } }
            group.addTask {
                // Cancelled when the value came first: then nobody asks for this answer.
                try? await ContinuousClock().sleep(for: span)
                return false
            }
            let first = await group.next() ?? false
            group.cancelAll()
            return first
        }
    }
}

/// What the kernel says about processes.
package enum ProcessTable {
    /// Whether a process runs, or is stopped: one that has ended and waits for its parent does neither.
    package static func lives(_ pid: Int32) -> Bool {
        guard let fields = fields(pid) else { return false }
        return fields.state != "Z" && fields.state != "X"
    }

    /// The processes that a process has started, as far as they live.
    package static func children(of parent: Int32) -> [Int32] {
        // A system without /proc has no answer, and no cluster of ours.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap(Int32.init).filter { pid in
            guard let fields = fields(pid) else { return false }
            return fields.parent == parent && fields.state != "Z"
        }
    }

    /// `pid (name) state parent …`; the name may hold anything, so what counts is behind its last bracket.
    private static func fields(_ pid: Int32) -> (state: Substring, parent: Int32)? {
        guard let data = FileManager.default.contents(atPath: "/proc/\(pid)/stat") else { return nil }
        let text = String(decoding: data, as: UTF8.self)
        guard let bracket = text.lastIndex(of: ")") else { return nil }
        let words = text[text.index(after: bracket)...].split(separator: " ")
        guard words.count > 1, let parent = Int32(words[1]) else { return nil }
        return (words[0], parent)
    }
}

/// A port of 127.0.0.1 that nobody listens at. Somebody else may take it before it is used.
func freePort() throws(PostgresClusterFault) -> Int {
    #if canImport(Glibc)
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
    let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { throw .systemCallFailed("socket") }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
            bind(descriptor, pointer, length) == 0 ? getsockname(descriptor, pointer, &length) : -1
        }
    }
    guard status == 0 else { throw .systemCallFailed("bind") }
    return Int(UInt16(bigEndian: address.sin_port))
}
