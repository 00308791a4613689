import Foundation
import PushModel

/// What is asked of a server before anything else, at every connection.
enum PostgresOpening {
    /// Sets the session's bounds, and checks whether its commits are durable.
    ///
    /// Durable is: `fsync` and `full_page_writes` on, and `synchronous_commit` such that a commit waits for
    /// the disk of this server (`on`, `remote_apply`, `remote_write`), where no standby is named also
    /// `local`. A server with other settings is refused, not overruled, so that the operator who turned them
    /// off learns of it.
    static func prepare(
        _ session: PostgresSession, limits: PostgresLimits, purpose: PostgresConnector.Purpose
    ) throws(PostgresFault) {
        let answers = try session.run(
            [
                Query(PostgresSQL.configure) { query in
                    let settings = settings(limits, purpose)
                    query.add(texts: settings.map(\.0))
                    query.add(texts: settings.map(\.1))
                },
                Query(PostgresSQL.inspectServer)
            ], commits: false)
        let rows = answers[1]
        guard rows.count == 1 else { throw .store(StoreError(.unavailable)) }
        let facts = ServerFacts(
            durability: Durability(
                fsync: rows.text(0, 0), fullPageWrites: rows.text(0, 1), commit: rows.text(0, 2),
                standbys: rows.text(0, 3)),
            isWritable: rows.text(0, 4) == "off" && !rows.bool(0, 5),
            backend: Backend(pid: try rows.int(0, 6), startedAt: try rows.int(0, 7)),
            version: rows.text(0, 8))
        session.stands(for: facts)
        guard case .engine(let synchronous) = purpose else { return }
        guard facts.isWritable else { throw .store(StoreError(.unavailable)) }
        guard synchronous == .dangerNormal || facts.durability.isEnough else {
            throw .store(StoreError(.notDurable))
        }
    }

    /// Every statement here finds its rows one by one through an index. A plan that reads a whole table or
    /// index is right while it is short, and would stay in use when it has grown.
    static let planning = [
        ("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off"), ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"), ("enable_bitmapscan", "off")
    ]

    private static func settings(
        _ limits: PostgresLimits, _ purpose: PostgresConnector.Purpose
    ) -> [(String, String)] {
        let bounds = [
            ("statement_timeout", limits.statementTimeout), ("lock_timeout", limits.lockTimeout),
            ("idle_in_transaction_session_timeout", limits.idleTransactionTimeout)
        ]
        var settings = bounds.map { ($0, String($1.wholeMilliseconds)) }
        settings += [
            ("jit", "off"), ("max_parallel_workers_per_gather", "0"),
            ("default_transaction_isolation", "read committed")
        ]
        switch purpose {
        case .inspection:
            settings.append(("default_transaction_read_only", "on"))
        case .engine(let synchronous):
            settings += planning
            if synchronous == .dangerNormal { settings.append(("synchronous_commit", "off")) }
        }
        return settings
    }
}

/// What a server said when we connected.
struct ServerFacts: Sendable, Hashable {
    var durability = Durability(fsync: "", fullPageWrites: "", commit: "", standbys: "")
    /// A primary, and not one that is kept from writing.
    var isWritable = false
    var backend = Backend(pid: 0, startedAt: 0)
    var version = ""
}

/// What a server says of its commits.
package struct Durability: Sendable, Hashable {
    package var fsync: String
    package var fullPageWrites: String
    package var commit: String
    /// `synchronous_standby_names`.
    package var standbys: String

    package init(fsync: String, fullPageWrites: String, commit: String, standbys: String) {
        self.fsync = fsync
        self.fullPageWrites = fullPageWrites
        self.commit = commit
        self.standbys = standbys
    }

    package var isEnough: Bool {
        guard fsync == "on", fullPageWrites == "on" else { return false }
        return switch commit {
        case "on", "remote_apply", "remote_write": true
        case "local": standbys.isEmpty
        default: false
        }
    }
}
