#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation

/// Why a cluster could not be made, or failed. It contains the programs' output, because these clusters are
/// for tests and hold nobody's data.
package enum PostgresClusterFault: Error {
    /// Debian's package `postgresql` contains it: `scripts/setup run test`.
    case notInstalled(String)
    case toolFailed(String, said: String)
    /// The server ended, or was not ready in time. The end of its log.
    case notReady(log: String)
    case systemCallFailed(String)
}

/// PostgreSQL's programs on this system, and the account that runs them.
struct PostgresPrograms: Sendable {
    /// Where they are.
    let folder: String
    /// PostgreSQL refuses to run as root; Debian's package creates a user for it. `nil`: our own account.
    let account: Account?

    struct Account: Sendable {
        let user: uid_t
        let group: gid_t
    }

    /// The oldest release with everything that a cluster here uses.
    private static let oldestRelease = 13
    /// A cluster is made, copied and queried within seconds; a minute is enough even on a busy machine.
    private static let patience = Duration.seconds(60)

    init() throws(PostgresClusterFault) {
        folder = try Self.findFolder()
        account = geteuid() == 0 ? try Self.findAccount() : nil
    }

    private static func findFolder() throws(PostgresClusterFault) -> String {
        let releases = "/usr/lib/postgresql"
        // Without Debian's directory, PATH is searched.
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

    /// The words in front of a program that must not run as root.
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
    ///   - environment: for the program, besides a path and a language.
    ///   - log: a file for this call only, which takes the program's output.
    /// - Returns: its output.
    /// - Throws: `.toolFailed` if its status is not 0, or it took longer than a minute.
    @discardableResult
    func run(
        _ name: String, _ arguments: [String], environment: [String: String], log: String
    ) async throws -> String {
        guard FileManager.default.createFile(atPath: log, contents: nil),
            let output = FileHandle(forWritingAtPath: log)
        else { throw PostgresClusterFault.systemCallFailed("open") }
        // If it cannot be removed now, it is removed with the cluster's directory.
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
    /// Returns once there is a value; false if the span or the task ended first.
    func until(within span: Duration) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.until { $0 != nil } }
            group.addTask {
                // Cancelled if the value came first; then nobody needs this answer.
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
    /// Whether a process runs or is stopped. One that has ended and waits for its parent counts as neither.
    package static func lives(_ pid: Int32) -> Bool {
        guard let fields = fields(pid) else { return false }
        return fields.state != "Z" && fields.state != "X"
    }

    /// The processes that a process has started and that still live.
    package static func children(of parent: Int32) -> [Int32] {
        // A system without /proc gives no answer, and has no cluster of ours.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap(Int32.init).filter { pid in
            guard let fields = fields(pid) else { return false }
            return fields.parent == parent && fields.state != "Z"
        }
    }

    /// `pid (name) state parent …`; the name may hold anything, so parsing starts after its last bracket.
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
