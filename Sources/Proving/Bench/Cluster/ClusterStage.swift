import Foundation
import NIOCore
import PushModel
import PushTesting
import Simulators

/// The parts of a trial: a database with its standby, relays as processes of their own, and for each relay
/// push services of its own, so that it is known who sent what.
final class ClusterStage: Sendable {
    let relays: [RelayProcess]
    let services: [ChaosService]
    /// `nil` on SQLite.
    let database: Database?
    private let group: any EventLoopGroup

    struct Database: Sendable {
        let primary: PostgresCluster
        let standby: PostgresCluster
        /// Between the first relay and both servers, where the network is to be cut. Elsewhere there are
        /// none: they would make that relay wait whenever this process has much to do.
        let proxies: [DatabaseProxy]
    }

    /// Starts everything; returns when all relays are ready.
    ///
    /// - Parameters:
    ///   - executables: the program of each relay.
    ///   - isCut: whether the first relay's way to the database can be cut.
    /// - Throws: `BenchError`; `PostgresClusterFault` when there is no PostgreSQL.
    static func start(
        _ run: TrialRun, _ store: TrialStore, executables: [String], isCut: Bool, directory: String,
        group: any EventLoopGroup
    ) async throws -> ClusterStage {
        let database = store == .postgres ? try await makeDatabase(isCut: isCut, group) : nil
        let authority = try CertificateAuthority()
        var services: [ChaosService] = []
        for _ in executables { services.append(try await ChaosService(authority: authority, group: group)) }
        var relays: [RelayProcess] = []
        for (number, executable) in executables.enumerated() {
            let place = "\(directory)/relay-\(number)"
            try makeDirectory(place)
            let service = services[number]
            var plan = service.makePlan(executable: executable, directory: place)
            plan.fcm = service.fcm
            if let database { plan.store = .postgres(url: url(database, relay: number)) }
            relays.append(try RelayProcess(plan, keysOf: relays.first, world: run.world))
        }
        let stage = ClusterStage(relays, services, database, group)
        do {
            // The first makes keys and schema.
            for number in relays.indices { try await stage.launch(number, run) }
        } catch {
            await stage.end()
            throw error
        }
        return stage
    }

    private init(
        _ relays: [RelayProcess], _ services: [ChaosService], _ database: Database?,
        _ group: any EventLoopGroup
    ) {
        self.relays = relays
        self.services = services
        self.database = database
        self.group = group
    }

    private static func makeDatabase(isCut: Bool, _ group: any EventLoopGroup) async throws -> Database {
        let primary = try await PostgresCluster.start()
        let standby = try await primary.standby()
        var proxies: [DatabaseProxy] = []
        for server in isCut ? [primary, standby] : [] {
            proxies.append(try await DatabaseProxy.start(to: server.port, group: group))
        }
        return Database(primary: primary, standby: standby, proxies: proxies)
    }

    private static func url(_ database: Database, relay: Int) -> String {
        guard relay == 0, !database.proxies.isEmpty else {
            return PostgresCluster.url(of: [database.primary, database.standby])
        }
        let hosts = database.proxies.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
        let role = PostgresCluster.role
        return "postgresql://\(role)@\(hosts)/\(role)?target_session_attrs=read-write"
    }

    /// Starts a relay and waits until it is ready.
    func launch(_ number: Int, _ run: TrialRun) async throws {
        try relays[number].launch()
        run.set(try await relays[number].ready(within: RelayProcess.startSpan), of: number)
    }

    /// Signs up and registers the devices, at the first relay and at all push services.
    func makeOrigin(_ run: TrialRun, devices: Int) async throws -> any LoadOrigin {
        guard let address = run.address else { throw BenchError(.relayNotReady) }
        return try await relays[0].signUp(
            apns: devices, fcm: devices / 2, at: services, through: address, group.next())
    }

    /// Asks all relays to drain and end.
    ///
    /// - Returns: their exit statuses; `nil` for one that had to be killed.
    func stopRelays(_ run: TrialRun) async -> [Int32?] {
        var statuses: [Int32?] = []
        for (number, relay) in relays.enumerated() {
            statuses.append(await relay.stop(within: .seconds(30)))
            run.set(nil, of: number)
        }
        return statuses
    }

    /// Pushes that the store still owes; 0 without a database.
    func owed() async throws -> Int {
        guard let database else { return 0 }
        let server = database.primary.server == nil ? database.standby : database.primary
        let rows = try await server.execute("SELECT count(*) FROM outbox", database: PostgresCluster.role)
        return Int(rows) ?? -1
    }

    /// Ends whatever is left.
    func end() async {
        for relay in relays { await relay.kill() }
        for service in services { await service.stop() }
        guard let database else { return }
        for proxy in database.proxies { await proxy.stop() }
        await database.standby.end()
        await database.primary.end()
    }
}
