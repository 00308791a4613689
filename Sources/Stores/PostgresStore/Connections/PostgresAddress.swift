import CPostgres
package import PushModel

/// Where a database is: hosts, database, user and libpq's other options, as a `postgresql://` URL gives them.
///
/// The password is kept separately and never printed. libpq reads what is not given from its own places:
/// `PGPASSFILE`, `~/.pgpass`, a service file, the `PG…` variables (PostgreSQL 15, chapter 34.1 and 34.15).
package struct PostgresAddress: Sendable, Hashable, CustomStringConvertible {
    /// One server of several.
    struct Host: Sendable, Hashable {
        var name: String?
        var numeric: String?
        var port: String?
    }

    let hosts: [Host]
    /// By libpq's keywords; no host, port or password among them.
    let options: [String: String]
    let password: Secret?

    /// Hosts tried one after the other: with more, a start would take minutes to fail.
    static let hostLimit = 16
    private static let apart: Set<String> = ["host", "hostaddr", "port", "password"]
    /// The options that a relay sets if the URL does not. A connection that has lost its server must be
    /// noticed in less time than a lease lasts (twenty seconds).
    private static let defaults = [
        "target_session_attrs": "read-write", "application_name": "sealbell", "client_encoding": "UTF8",
        "connect_timeout": "3", "keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "2",
        "keepalives_count": "3", "tcp_user_timeout": "8000"
    ]

    /// Reads a URL as libpq does.
    ///
    /// - Parameter password: of the user; before one that stands in the URL.
    /// - Throws: `.unavailable` where libpq is not there (``missingLibrary``); `.denied` when the text is no
    ///   such URL, or names hosts and ports that do not fit together.
    package init(_ url: String, password: Secret? = nil) throws(StoreError) {
        guard url.hasPrefix("postgresql://") || url.hasPrefix("postgres://") else {
            throw StoreError(.denied)
        }
        // All other code that calls libpq has an address.
        guard sealbell_postgres_is_there() == 1 else { throw StoreError(.unavailable) }
        var given = try Self.parse(url)
        let names = Self.list(given["host"])
        let numeric = Self.list(given["hostaddr"])
        let ports = Self.list(given["port"])
        let count = max(names.count, numeric.count, 1)
        guard count <= Self.hostLimit, names.isEmpty || names.count == count,
            numeric.isEmpty || numeric.count == count, ports.count <= 1 || ports.count == count,
            ports.allSatisfy({ $0.isEmpty || UInt16($0) != nil })
        else { throw StoreError(.denied) }
        hosts = (0..<count).map { index in
            Host(
                name: Self.item(names, index), numeric: Self.item(numeric, index),
                port: Self.item(ports.count == 1 ? Array(repeating: ports[0], count: count) : ports, index))
        }
        self.password = password ?? given["password"].map { Secret(Array($0.utf8)) }
        for name in Self.apart { given[name] = nil }
        options = Self.defaults.merging(given) { $1 }
    }

    /// What to say when the URL is not at fault. The first address loads PostgreSQL's library, so a relay
    /// without PostgreSQL needs none.
    package static let missingLibrary =
        "PostgreSQL's client library is not on this machine, or is older than 14: install libpq (libpq5 on "
        + "Debian and Ubuntu)."

    private static func parse(_ url: String) throws(StoreError) -> [String: String] {
        var message: UnsafeMutablePointer<CChar>?
        let parsed = PQconninfoParse(url, &message)
        // The message repeats what was given; it may hold a password.
        if let message { PQfreemem(message) }
        guard let parsed else { throw StoreError(.denied) }
        defer { PQconninfoFree(parsed) }
        var given: [String: String] = [:]
        var at = 0
        // Ends: libpq closes its list with an entry without a keyword.
        while let keyword = parsed[at].keyword {
            if let value = parsed[at].val { given[String(cString: keyword)] = String(cString: value) }
            at += 1
        }
        return given
    }

    private static func list(_ text: String?) -> [String] {
        guard let text, !text.isEmpty else { return [] }
        return text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    private static func item(_ list: [String], _ index: Int) -> String? {
        index < list.count && !list[index].isEmpty ? list[index] : nil
    }

    /// Whether the URL itself contained a password. A URL also appears in process lists and logs.
    package var holdsSecret: Bool { password != nil || options["sslpassword"] != nil }

    package var database: String? { options["dbname"] }

    /// Seconds that one host may take to answer.
    var connectSeconds: Int {
        // As libpq: fewer than two seconds are two.
        max(2, options["connect_timeout"].flatMap { Int($0) } ?? 3)
    }

    /// Hosts and database; nothing else.
    package var description: String {
        let names = hosts.map { ($0.name ?? $0.numeric ?? "local") + ($0.port.map { ":\($0)" } ?? "") }
        return names.joined(separator: ",") + "/" + (database ?? "")
    }

    package static func == (left: Self, right: Self) -> Bool {
        guard left.hosts == right.hosts, left.options == right.options else { return false }
        return switch (left.password, right.password) {
        case (nil, nil): true
        case (let left?, let right?): left == right
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(hosts)
        hasher.combine(options)
    }
}
