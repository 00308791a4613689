import CoreMetrics
import Primitives
import PushModel
import SessionPush
import SwarmIngress

/// The link to the swarm by itself: how long it takes to show all accounts, what memory it adds meanwhile,
/// and what a start with many subscriptions adds.
struct SwarmBench: Sendable {
    private let plan: SessionBenchPlan
    private let world: World

    init(_ plan: SessionBenchPlan, world: World) {
        self.plan = plan
        self.world = world
    }

    /// - Returns: what the table of a start adds, in bytes.
    func run(_ report: inout BenchReport) async throws -> Int {
        let stored = try StoredSubscriptions(plan.accounts, world: world)
        try await show(stored, &report)
        return try await start(stored, &report)
    }

    // MARK: All accounts, at all nodes

    private func show(_ stored: StoredSubscriptions, _ report: inout BenchReport) async throws {
        report.add("swarm_accounts", plan.accounts)
        report.add("swarm_nodes", plan.nodes)
        report.add("swarm_in_a_process_of_its_own", .flag(plan.network != nil))
        guard let network = plan.network else {
            let swarm = try await StandingSwarm(nodes: plan.nodes, world: world)
            try await show(stored, at: swarm.daemon, &report) { await swarm.untilShown(plan.accounts) }
            return await swarm.stop()
        }
        let child = try network(plan)
        defer { child.signal(15) }
        let daemon = try await StandingSwarm.daemon(of: child, log: plan.log, world)
        try await show(stored, at: daemon, &report) {
            try await StandingSwarm.untilShown(by: child, log: plan.log, world)
        }
        child.signal(15)
        _ = await child.wait()
    }

    private func show(
        _ stored: StoredSubscriptions, at daemon: String, _ report: inout BenchReport,
        _ untilShown: () async throws -> Void
    ) async throws {
        let link = try self.link(to: daemon, plan.accounts) { stored.body($0) }
        let (before, began) = (ProcessUsage.own(), world.instant())
        let floor = ProcessUsage.markPeak()
        try await running(link, untilShown)
        let (after, span) = (ProcessUsage.own(), world.instant() - began)
        report.add("swarm_seconds", span.inSeconds, digits: 2)
        report.add("swarm_own_cpu_seconds", (after.cpu - before.cpu).inSeconds, digits: 2)
        report.add("swarm_own_peak_bytes_added", max(0, ProcessUsage.peakBytes() - floor))
        report.add("swarm_own_bytes_kept", max(0, after.residentBytes - before.residentBytes))
    }

    // MARK: A start

    /// Nobody listens there: no watch is shown, so what grows is the table.
    private static let nowhere = "tcp://127.0.0.1:1"
    /// Subscriptions of the start that is made first, because threads and buffers are there then.
    private static let few = 2_000

    private func start(_ stored: StoredSubscriptions, _ report: inout BenchReport) async throws -> Int {
        _ = try await load(Self.few, stored)
        let (bytes, peak, span) = try await load(plan.stored, stored)
        report.add("start_subscriptions", plan.stored)
        report.add("start_seconds", span.inSeconds, digits: 2)
        report.add("start_table_bytes", bytes)
        report.add("start_peak_bytes_added", peak)
        return bytes
    }

    private func load(
        _ count: Int, _ stored: StoredSubscriptions
    ) async throws -> (bytes: Int, peak: Int, span: Duration) {
        let link = try self.link(to: Self.nowhere, count) { stored.strangersBody($0) }
        let (before, began) = (ProcessUsage.own().residentBytes, world.instant())
        let floor = ProcessUsage.markPeak()
        var after = before
        try await running(link) {
            while link.statistics.watches < count {
                try await world.sleep(world.instant() + .milliseconds(5))
            }
            after = ProcessUsage.own().residentBytes
        }
        return (max(0, after - before), max(0, ProcessUsage.peakBytes() - floor), world.instant() - began)
    }

    // MARK: The link

    private func link(
        to daemon: String, _ count: Int, _ body: @escaping @Sendable (Int) -> Secret
    ) throws -> SwarmIngress {
        let name = try SessionMaterial.app().name
        guard let daemon = DaemonAddress(daemon) else { throw BenchError(.badPlan) }
        let space = SessionRecordNames(name).subscriptions
        return SwarmIngress(
            name: name,
            settings: SwarmSettings(daemon: daemon, pair: .generate(world), space: space),
            registry: PagedSubscriptions(space: space, count: count, body: body), bell: Bell(), world: world,
            journal: .silent, metrics: NOOPMetricsHandler.instance, take: { _ in .taken })
    }

    private func running(_ link: SwarmIngress, _ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await link.run() }
            do { try await body() } catch {
                link.stop()
                throw error
            }
            link.stop()
            try await group.waitForAll()
        }
    }
}
