import Foundation
import PushTesting
import Testing

/// What the tests of the shared engine stand on.
@Suite("A PostgreSQL server of the tests' own", .timeLimit(.minutes(30)))
struct PostgresClusterTests {
    private static let table = "CREATE TABLE kept (word text)"

    @Test("Databases of one server are empty, apart, and the relay's role owns them")
    func freshDatabases() async throws {
        let cluster = try await PostgresCluster.shared
        let first = try await cluster.freshDatabase()
        let second = try await cluster.freshDatabase()
        #expect(first != second)
        let name = try #require(first.split(separator: "/").last.map(String.init))
        let owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = '\(name)'"
        #expect(try await cluster.execute(owner) == "sealbell")
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        #expect(try await cluster.execute(tables, database: name) == "0")
        let role = "SELECT rolsuper OR rolcreatedb OR rolcreaterole FROM pg_roles WHERE rolname = 'sealbell'"
        #expect(try await cluster.execute(role) == "f")
    }

    @Test("It is durable, and listens at the loopback interface only")
    func settings() async throws {
        let cluster = try await PostgresCluster.shared
        for (name, value) in [
            ("fsync", "on"), ("full_page_writes", "on"), ("synchronous_commit", "on"),
            ("listen_addresses", "127.0.0.1")
        ] {
            #expect(try await cluster.execute("SHOW \(name)") == value)
        }
    }

    @Test("What was committed is there after a crash, a kill and a stop")
    func endings() async throws {
        let cluster = try await PostgresCluster.start()
        try await cluster.execute(Self.table)
        for (word, end) in [
            ("crash", PostgresCluster.crash), ("kill", PostgresCluster.kill), ("stop", PostgresCluster.stop)
        ] {
            try await cluster.execute("INSERT INTO kept VALUES ('\(word)')")
            let before = try #require(cluster.server)
            try await end(cluster)()
            #expect(cluster.server == nil)
            try await cluster.startAgain()
            #expect(cluster.server != before)
        }
        #expect(try await cluster.execute("SELECT string_agg(word, ' ') FROM kept") == "crash kill stop")
        await cluster.end()
        #expect(!FileManager.default.fileExists(atPath: cluster.home))
    }

    @Test("A suspended server says nothing, and goes on where it stood")
    func suspended() async throws {
        let cluster = try await PostgresCluster.start()
        cluster.suspend()
        let answered = Noted(false)
        try await withThrowingTaskGroup(of: String.self) { group in
            group.addTask {
                defer { answered.set(true) }
                return try await cluster.execute("SELECT 1")
            }
            // There is no event for silence; what a running server answers in takes a fraction of this.
            let spoke = await watchOutside(for: .milliseconds(300)) { answered.value }
            #expect(!spoke)
            cluster.resume()
            let answer = try await group.next()
            #expect(answer == "1")
        }
        await cluster.end()
    }

    @Test("A synchronous standby has what was committed, and takes writes once promoted")
    func standby() async throws {
        let primary = try await PostgresCluster.start()
        let standby = try await primary.standby()
        try await primary.execute(Self.table)
        try await primary.execute("INSERT INTO kept VALUES ('both')")
        try await primary.kill()
        try await standby.promote()
        #expect(try await standby.execute("SELECT word FROM kept") == "both")
        try await standby.execute("INSERT INTO kept VALUES ('one')")
        #expect(try await standby.execute("SELECT count(*) FROM kept") == "2")
        await primary.end()
        await standby.end()
    }

    @Test("A role with a password is let in by it alone")
    func password() async throws {
        let cluster = try await PostgresCluster.start(.init(password: "it's long"))
        for (url, host) in [(cluster.url, "127.0.0.1"), (cluster.socketURL, cluster.home)] {
            await #expect(throws: PostgresClusterFault.self) {
                try await cluster.enter(url, password: "wrong")
            }
            try await cluster.enter(url, password: "it's long")
            #expect(url.removingPercentEncoding?.contains(host) == true)
        }
        await cluster.end()
    }

    @Test("It ends with its owner, however that ends")
    func ownerDies() async throws {
        let cluster = try await PostgresCluster.start()
        let server = try #require(cluster.server)
        // What the owner's end does to the pipe, without the owner's end.
        cluster.abandon()
        #expect(await watchOutside { !ProcessTable.lives(server) })
        #expect(await watchOutside { !FileManager.default.fileExists(atPath: cluster.home) })
    }

    @Test("One that cannot start says why")
    func misconfigured() async throws {
        await #expect {
            try await PostgresCluster.start(.init(settings: ["shared_buffers": "many"]))
        } throws: { error in
            guard case .notReady(let log) = error as? PostgresClusterFault else { return false }
            return log.contains("shared_buffers")
        }
    }
}
