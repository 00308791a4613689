#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Synchronization

/// A PostgreSQL server of a test's own: made by `initdb` in a directory of its own, at a Unix socket and a
/// free port of 127.0.0.1, durable as in service (`fsync` and `full_page_writes` on). It ends with this
/// process, even if that is killed, and its directory is removed with it.
package final class PostgresCluster: Sendable {
    package struct Options: Sendable {
        /// Override the settings below, by their names in `postgresql.conf`.
        package var settings: [String: String]
        /// The password of the role `sealbell`, checked by SCRAM; `nil`: the role is trusted.
        package var password: String?

        package init(settings: [String: String] = [:], password: String? = nil) {
            self.settings = settings
            self.password = password
        }
    }

    /// The relay's role: it owns its databases, and may do nothing else.
    package static let role = "sealbell"

    /// The cluster's directory: `data`, the server's `log`, and its socket.
    package let home: String
    /// The port at 127.0.0.1; it is also in the socket's name.
    package let port: Int
    package let options: Options
    private let programs: PostgresPrograms
    private let keeper: PostgresKeeper
    /// Numbers the databases, and the logs of programs.
    private let count = Mutex(0)

    // MARK: Made

    /// Makes a cluster with the role and an empty database `sealbell`, and starts it.
    ///
    /// - Throws: ``PostgresClusterFault``.
    package static func start(_ options: Options = Options()) async throws -> PostgresCluster {
        for _ in 1..<startsAtMost {
            do { return try await startOnce(options) } catch PostgresClusterFault.notReady(let log) {
                // Its port was free when it was chosen, but somebody has taken it since.
                guard log.contains("could not create any TCP/IP sockets") else {
                    throw PostgresClusterFault.notReady(log: log)
                }
            }
        }
        return try await startOnce(options)
    }

    /// A port is rarely taken within a second of being chosen; if it happens three times in a row, something
    /// else is wrong.
    private static let startsAtMost = 3

    private static func startOnce(_ options: Options) async throws -> PostgresCluster {
        let cluster = try PostgresCluster(options)
        do {
            var words = ["-D", cluster.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"]
            // Nothing is committed yet that a power cut could destroy.
            words.append("--no-sync")
            try await cluster.run("initdb", words)
            try cluster.configure()
            try await cluster.startAgain()
            let password = options.password.map { " PASSWORD '\($0.replacing("'", with: "''"))'" } ?? ""
            try await cluster.execute("CREATE ROLE \(role) LOGIN\(password)")
            try await cluster.execute("CREATE DATABASE \(role) OWNER \(role) TEMPLATE template0")
            return cluster
        } catch {
            await cluster.end()
            throw error
        }
    }

    private init(_ options: Options) throws {
        self.options = options
        programs = try PostgresPrograms()
        // A socket's path holds 107 bytes, and another account must reach it: not every TMPDIR allows that.
        var template = Array("/tmp/sealbell-pg-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw PostgresClusterFault.systemCallFailed("mkdtemp") }
        home = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        try programs.give(home)
        port = try freePort()
        // The environment is set after the change of account, because a preloaded library must not affect
        // that change.
        let shell = ["/bin/sh", "-c", #"set -a; [ ! -e "$0" ] || . "$0"; exec "$@""#, "\(home)/environment"]
        keeper = try PostgresKeeper(
            home, server: programs.prefix + shell + ["\(programs.folder)/postgres", "-D", "\(home)/data"])
    }

    package var data: String { "\(home)/data" }

    // MARK: Addresses

    /// The database `sealbell` over 127.0.0.1, without the password.
    package var url: String { url(of: Self.role) }
    /// The same over the Unix socket.
    package var socketURL: String { socketURL(of: Self.role) }

    package func url(of database: String) -> String {
        "postgresql://\(Self.role)@127.0.0.1:\(port)/\(database)"
    }

    package func socketURL(of database: String) -> String {
        "postgresql://\(Self.role)@\(home.replacing("/", with: "%2F")):\(port)/\(database)"
    }

    /// One address for several servers, which selects the writable one.
    package static func url(of clusters: [PostgresCluster], database: String = role) -> String {
        let hosts = clusters.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        return "postgresql://\(role)@\(hosts)/\(database)?target_session_attrs=read-write"
    }

    /// Makes an empty database that nobody else uses.
    ///
    /// - Returns: its address over 127.0.0.1.
    package func freshDatabase() async throws -> String {
        let name = "fresh_\(number())"
        try await execute("CREATE DATABASE \(name) OWNER \(Self.role) TEMPLATE template0")
        return url(of: name)
    }

    /// Runs a query at an address of this server, as the role in the address.
    package func enter(_ url: String, password: String) async throws {
        try await run("psql", ["-XAtqw", "-c", "SELECT 1", url], environment: ["PGPASSWORD": password])
    }

    /// Runs SQL as the superuser, each statement in a transaction of its own.
    ///
    /// - Returns: the rows, one on each line, with columns separated by `|`.
    @discardableResult
    package func execute(_ sql: String, database: String = "postgres") async throws -> String {
        try await run(
            "psql",
            [
                "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", home, "-p", String(port), "-U", "postgres", "-d",
                database, "-c", sql
            ]
        ).trimmingCharacters(in: .newlines)
    }

    // MARK: Ends and starts

    /// Ends in order: connections are closed, everything is written.
    package func stop() async throws { try await end(by: SIGINT) }

    /// Ends without writing anything more, as PostgreSQL itself does if one of its processes has crashed.
    package func crash() async throws { try await end(by: SIGQUIT) }

    /// Kills all processes at one moment.
    package func kill() async throws {
        guard let server else { return }
        signal(SIGSTOP, server)
        let all = [server] + ProcessTable.children(of: server)
        for pid in all { signal(SIGKILL, pid) }
        try await untilGone(all)
    }

    /// Suspends all processes: nothing is answered, and no connection is closed.
    package func suspend() {
        guard let server else { return }
        signal(SIGSTOP, server)
        for pid in ProcessTable.children(of: server) { signal(SIGSTOP, pid) }
    }

    package func resume() {
        guard let server else { return }
        for pid in ProcessTable.children(of: server) + [server] { signal(SIGCONT, pid) }
    }

    /// Starts the server, and returns when it answers. After ``crash()`` and ``kill()`` it recovers first.
    package func startAgain() async throws {
        let pidFile = "\(home)/pid"
        // At the first start there is none.
        try? FileManager.default.removeItem(atPath: pidFile)
        try keeper.start()
        var pid: Int32 = 0
        let isReady = try await watchOutside {
            guard let text = FileManager.default.contents(atPath: pidFile) else { return false }
            pid = Int32(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .newlines)) ?? 0
            guard ProcessTable.lives(pid) else { throw PostgresClusterFault.notReady(log: logTail) }
            return status == "ready" || status == "standby"
        }
        guard isReady else { throw PostgresClusterFault.notReady(log: logTail) }

        /// The eighth line of the server's lock file, if it is this server's.
        var status: Substring? {
            // Not there before the server has written it.
            guard let text = try? String(contentsOfFile: "\(data)/postmaster.pid", encoding: .utf8) else {
                return nil
            }
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            guard lines.count > 7, lines[0] == "\(pid)" else { return nil }
            return lines[7].split(separator: " ").first
        }
    }

    /// Additions to the server's environment, from its next start on: a trial of the disk preloads a library.
    package func set(environment: [String: String]) throws {
        let lines = environment.map { "\($0)='\($1)'\n" }.sorted()
        try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: "\(home)/environment"))
        try programs.give("\(home)/environment")
    }

    /// An empty directory next to the data, to which the server may write.
    ///
    /// - Returns: its path.
    package func makeDirectory(_ name: String) throws -> String {
        let path = "\(home)/\(name)"
        guard mkdir(path, 0o700) == 0 else { throw PostgresClusterFault.systemCallFailed("mkdir") }
        try programs.give(path)
        return path
    }

    /// Copies a file to a place where the server may read it.
    ///
    /// - Returns: the path of the copy.
    package func bring(_ file: String) throws -> String {
        let path = "\(home)/\(URL(fileURLWithPath: file).lastPathComponent)"
        try FileManager.default.copyItem(atPath: file, toPath: path)
        try programs.give(path)
        return path
    }

    /// Ends the server for good and removes its directory. Otherwise both end with the process.
    package func end() async { await keeper.end() }

    /// Ends it as this process's own end would, without waiting.
    package func abandon() { keeper.abandon() }

    // MARK: A second server

    /// Makes a second cluster that follows this one.
    ///
    /// - Parameter synchronous: whether this one acknowledges a commit only when the other has it on disk.
    package func standby(synchronous: Bool = true) async throws -> PostgresCluster {
        let second = try PostgresCluster(options)
        do {
            try await second.run(
                "pg_basebackup",
                ["-D", second.data, "-h", home, "-p", String(port), "-U", "postgres", "-X", "stream"]
                    + ["-c", "fast", "--no-sync"])
            try second.configure(following: self)
            try await second.startAgain()
            if synchronous {
                try await execute("ALTER SYSTEM SET synchronous_standby_names = '\(second.standbyName)'")
                try await execute("SELECT pg_reload_conf()")
            }
            try await untilFollowed(by: second, synchronous: synchronous)
            return second
        } catch {
            await second.end()
            throw error
        }
    }

    /// Waits until a standby has caught up and, if it is to be, counts for commits.
    package func untilFollowed(by second: PostgresCluster, synchronous: Bool = true) async throws {
        let state = synchronous ? "sync_state = 'sync'" : "true"
        let question = """
            SELECT count(*) FROM pg_stat_replication
            WHERE application_name = '\(second.standbyName)' AND state = 'streaming' AND \(state)
            """
        let isFollowed = try await watchOutside { try await execute(question) == "1" }
        guard isFollowed else { throw PostgresClusterFault.notReady(log: second.logTail) }
    }

    /// Makes a standby the primary, and returns when it takes writes.
    package func promote() async throws {
        guard try await execute("SELECT pg_promote(true, 60)") == "t" else {
            throw PostgresClusterFault.notReady(log: logTail)
        }
    }

    private var standbyName: String { "standby_\(port)" }

    // MARK: Within

    /// All settings that are not the default; this replaces what `initdb` or a copy wrote there.
    private func configure(following primary: PostgresCluster? = nil) throws {
        var settings = [
            "listen_addresses": "127.0.0.1", "port": String(port), "unix_socket_directories": home,
            "max_connections": "200", "shared_buffers": "16MB", "wal_level": "replica",
            "max_wal_senders": "5", "wal_keep_size": "512MB", "hot_standby": "on", "fsync": "on",
            "full_page_writes": "on", "logging_collector": "off", "log_line_prefix": "%m [%p] ",
            // Files in the data directory, which are removed with it.
            "dynamic_shared_memory_type": "mmap", "lc_messages": "C", "timezone": "UTC"
        ]
        if let primary {
            settings["primary_conninfo"] =
                "host=\(primary.home) port=\(primary.port) user=postgres application_name=\(standbyName)"
            try write("", to: "standby.signal")
        }
        settings.merge(options.settings) { _, ours in ours }
        let lines = settings.sorted { $0.key < $1.key }.map { name, value in
            "\(name) = '\(value.replacing("'", with: "''"))'\n"
        }
        try write(lines.joined(), to: "postgresql.conf")
        let method = options.password == nil ? "trust" : "scram-sha-256"
        // The socket's directory is closed to other accounts.
        let rules = """
            local all         postgres              trust
            local replication postgres              trust
            local all         \(Self.role)              \(method)
            host  all         \(Self.role) 127.0.0.1/32 \(method)

            """
        try write(rules, to: "pg_hba.conf")
    }

    private func write(_ text: String, to name: String) throws {
        let path = "\(data)/\(name)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try programs.give(path)
    }

    @discardableResult
    private func run(
        _ name: String, _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> String {
        try await programs.run(
            name, arguments, environment: environment, log: "\(home)/said-\(number())")
    }

    private func number() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }

    /// The process of the running server.
    package var server: Int32? {
        guard let text = FileManager.default.contents(atPath: "\(home)/pid"),
            let pid = Int32(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .newlines)),
            ProcessTable.lives(pid)
        else { return nil }
        return pid
    }

    private func end(by number: Int32) async throws {
        guard let server else { return }
        let all = [server] + ProcessTable.children(of: server)
        signal(number, server)
        try await untilGone(all)
    }

    private func untilGone(_ processes: [Int32]) async throws {
        let areGone = await watchOutside { !processes.contains(where: ProcessTable.lives) }
        guard areGone else { throw PostgresClusterFault.notReady(log: logTail) }
    }

    private func signal(_ number: Int32, _ pid: Int32) {
        #if canImport(Glibc)
        _ = Glibc.kill(pid, number)
        #else
        _ = Darwin.kill(pid, number)
        #endif
    }

    /// The last lines of the server's log.
    package var logTail: String {
        let text = String(
            decoding: FileManager.default.contents(atPath: "\(home)/log") ?? Data(), as: UTF8.self)
        return text.split(separator: "\n").suffix(20).joined(separator: "\n")
    }
}
