import APNs
import AtRest
import Crypto
import Delivery
import HTTP2Client
import NIOCore
import NIOPosix
package import PushModel
import SQLiteStore
import Simulators
import WireFormats

/// Measures how long one push takes past a lane that owes hundreds of thousands: the real core over the real
/// SQLite engine, sending through the real APNs client over TLS and HTTP/2.
///
/// The backlog is made first, with the sender held; then it drains as fast as it goes, and all the while one
/// push after another comes from an origin of its own.
package struct BacklogBench: Sendable {
    private let plan: BacklogPlan
    private let world: World
    private let say: @Sendable (String) -> Void

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: BacklogPlan, world: World, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.world = world
        self.say = say
    }

    private static let probeName = Secret("probe".utf8)

    private struct Stage: Sendable {
        let under: CoreStage
        let provider: HeldProvider<APNsProvider>
        let core: DeliveryService
    }

    private struct Findings: Sendable {
        var committed = LatencyHistogram()
        var sent = LatencyHistogram()
        var answered = LatencyHistogram()
        var mostBefore = 0
        var lost = 0
        var load = Duration.zero
        var drain = Duration.zero
        var left = 0
    }

    /// - Returns: the report, and whether everything arrived and every probe within the goal.
    /// - Throws: `BenchError`, `StoreError`, `HTTP2Error`, `APNsError`, `SimulatorError`.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        try plan.check()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        switch plan.sink {
        case .standing(let url, let authority):
            return try await measure(url, authority, nil, group)
        case .own:
            let sinkGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            defer { sinkGroup.shutdownGracefully { _ in } }
            let authority = try CertificateAuthority()
            let sink = BareSink(
                rememberedIDs: plan.owed + BacklogPlan.probeLimit, authority: authority,
                eventLoopGroup: sinkGroup)
            let port = try await sink.start()
            let result = try await measure(
                "https://127.0.0.1:\(port)", authority.certificatePEM, sink, group)
            await sink.stop()
            return result
        }
    }

    private func measure(
        _ url: String, _ authority: String, _ sink: BareSink?, _ group: MultiThreadedEventLoopGroup
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        let stage = try await makeStage(url, authority, group)
        let start = ProcessUsage.markPeak()
        let findings = try await stage.under.run(stage.core) { try await probe(stage) }
        try stage.under.engine.close()
        return report(findings, stage, sink?.counters.doubles, start)
    }

    private func makeStage(
        _ url: String, _ authority: String, _ group: MultiThreadedEventLoopGroup
    ) async throws -> Stage {
        let under = try await CoreStage("backlog", in: plan.directory, world: world)
        let key = Secret(Array(P256.Signing.PrivateKey().pemRepresentation.utf8))
        let credential = try APNsCredential(team: "A1B2C3D4E5", keyID: "F6G7H8I9J0", key: key, world: world)
        let apns = try APNsProvider(
            lane: LaneName(app: under.app, service: .apns, environment: .production), credential: credential,
            url: url, certificates: Array(authority.utf8), group: group, world: world, journal: .silent)
        let provider = HeldProvider(
            apns, probeOrigin: under.store.digest(ofOrigin: Self.probeName, at: under.instance), world: world)
        let core = under.makeCore(provider, APNsOutlet(bundles: .any))
        return Stage(under: under, provider: provider, core: core)
    }

    private func push(_ number: Int, _ origin: Secret, _ pushClass: PushClass) -> Push {
        let token = Secret(Hex.encode(world.randomBytes(32)).utf8)
        let filler = String(repeating: "x", count: plan.bodyBytes)
        let payload = Secret("{\"aps\":{},\"n\":\(number),\"x\":\"\(filler)\"}".utf8)
        return Push(
            message: .apns(
                APNsMessage(
                    token: token, bundle: "org.example.bench",
                    pushType: pushClass == .urgent ? .voip : .alert, priority: 10, payload: payload)),
            pushClass: pushClass, origin: origin, record: nil, touchedAt: world.now(),
            custodyEnds: world.now() + .seconds(86_400), repeatIdentity: token)
    }
}

// MARK: the measurement

extension BacklogBench {
    private func probe(_ stage: Stage) async throws -> Findings {
        var findings = Findings()
        let began = world.instant()
        try await load(stage)
        findings.load = world.instant() - began
        say("\(plan.owed) pushes owed")
        let released = world.instant()
        stage.provider.letGo()
        var probes = 0
        // The last ones are left out: then nothing stands in a probe's way any more.
        while stage.provider.sent < plan.owed - 5_000, probes < BacklogPlan.probeLimit {
            try await world.sleep(world.instant() + plan.probeEvery)
            try await one(probes, stage, &findings)
            probes += 1
        }
        let until = world.instant() + BacklogPlan.drainPatience
        while world.instant() < until {
            findings.left = try await stage.under.store.load().rows
            if findings.left == 0 { break }
            try await world.sleep(world.instant() + .milliseconds(20))
        }
        findings.drain = world.instant() - released
        return findings
    }

    /// Makes the backlog: calls that are under way together, as a busy hour's.
    private func load(_ stage: Stage) async throws {
        let calls = plan.owed / BacklogPlan.pushesPerCall
        try await withThrowingTaskGroup(of: Void.self) { group in
            for call in 0..<calls {
                if call >= BacklogPlan.callsTogether { try await group.next() }
                group.addTask {
                    let origin = Secret("origin-\(call % plan.origins)".utf8)
                    let first = call * BacklogPlan.pushesPerCall
                    try await stage.under.admit(
                        (first..<first + BacklogPlan.pushesPerCall).map { push($0, origin, .normal) },
                        stage.core)
                }
                if call % 1_000 == 999 { say("\((call + 1) * BacklogPlan.pushesPerCall) accepted") }
            }
            try await group.waitForAll()
        }
    }

    private func one(_ number: Int, _ stage: Stage, _ findings: inout Findings) async throws {
        let push = push(plan.owed + number, Self.probeName, plan.probeClass)
        let before = stage.provider.sent
        let asked = world.instant()
        try await stage.under.admit([push], stage.core)
        let committed = world.instant()
        let until = asked + BacklogPlan.probePatience
        while world.instant() < until {
            if let seen = stage.provider.takeSighting() {
                findings.committed.record(nanoseconds: (committed - asked).wholeNanoseconds)
                findings.sent.record(nanoseconds: (seen.sentAt - asked).wholeNanoseconds)
                findings.answered.record(nanoseconds: (seen.answeredAt - asked).wholeNanoseconds)
                findings.mostBefore = max(findings.mostBefore, seen.sentBefore - before)
                if !seen.isAccepted { findings.lost += 1 }
                return
            }
            // Its moments are noted where they happen; this only waits until they were.
            try await world.sleep(world.instant() + .milliseconds(1))
        }
        findings.lost += 1
    }

    private func report(
        _ findings: Findings, _ stage: Stage, _ doubles: Int?, _ start: Int
    ) -> (report: BenchReport, hasPassed: Bool) {
        var report = BenchReport()
        let probes = findings.answered.total
        let drained = stage.provider.accepted
        report.add("probe_class", .text("\(plan.probeClass)"))
        report.add("owed", plan.owed)
        report.add("origins", plan.origins)
        report.add("accepted_per_second", Double(plan.owed) / findings.load.inSeconds, digits: 0)
        report.add("drained", drained)
        report.add("failed", stage.provider.failed)
        report.add("left_in_outbox", findings.left)
        if let doubles { report.add("doubled", doubles) }
        report.add("drain_seconds", findings.drain.inSeconds, digits: 1)
        report.add("drained_per_second", Double(drained) / findings.drain.inSeconds, digits: 0)
        report.add("probes", probes)
        report.add("probes_lost", findings.lost)
        for (name, times) in [
            ("committed", findings.committed), ("sent", findings.sent), ("answered", findings.answered)
        ] {
            report.add("\(name)_p50_milliseconds", times.quantile(0.5).inMilliseconds, digits: 2)
            report.add("\(name)_p99_milliseconds", times.quantile(0.99).inMilliseconds, digits: 2)
            report.add("\(name)_max_milliseconds", times.maximum.inMilliseconds, digits: 2)
        }
        report.add("most_sent_before_a_probe", findings.mostBefore)
        report.add("goal_milliseconds", plan.goal.inMilliseconds, digits: 0)
        report.add(
            "resident_mib_more_at_peak", Double(max(0, ProcessUsage.peakBytes() - start)) / 1_048_576,
            digits: 1)
        let hasPassed =
            probes > 0 && findings.lost == 0 && findings.left == 0 && (doubles ?? 0) == 0
            && drained == plan.owed + probes && findings.answered.maximum <= plan.goal
        return (report, hasPassed)
    }
}

extension Duration {
    /// Rounded toward zero; nanoseconds of centuries fit.
    fileprivate var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
