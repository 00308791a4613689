import AtRest
import Delivery
package import PushModel
import PushTesting
import SQLiteStore

/// Lets a push service be out for minutes of simulated time while pushes go on coming, and then lets it come
/// back: on a manual clock, with the real core and the real SQLite engine.
///
/// What it shows: memory stays bounded, and each push arrives once.
package struct OutageTrial: Sendable {
    private let plan: OutagePlan
    private let world: World
    private let say: @Sendable (String) -> Void

    /// - Parameters:
    ///   - world: real time and chance; the core lives on a clock of the trial's own.
    ///   - say: takes a line of progress now and then.
    package init(_ plan: OutagePlan, world: World, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.world = world
        self.say = say
    }

    /// What the trial looks at while it goes on.
    private struct Peaks {
        var inMemory = 0
        var parked = 0
        var settling = 0
        var outboxRows = 0
        var outboxBytes = 0
    }

    private struct Stage {
        let clock: ManualClock
        let under: CoreStage
        let service: OutageService
        let core: DeliveryService
    }

    /// The core's own loops, and the one that empties the engine's log.
    private static let sleepers = 4
    /// The core's tick: so much time passes between two looks.
    private var step: Duration { plan.limits.tick }

    /// - Returns: the report, and whether everything arrived once within the bounds.
    /// - Throws: `BenchError`, `StoreError`.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        try plan.check()
        let stage = try await makeStage()
        let start = ProcessUsage.markPeak()
        let began = world.instant()
        var peaks = Peaks()
        let (out, whole) = try await stage.under.run(stage.core) {
            await stage.clock.sleepers(atLeast: Self.sleepers)
            try await outage(stage, &peaks)
            let out = world.instant() - began
            say("\(plan.pushes) pushes owed; the service comes back")
            stage.service.comeBack()
            try await drain(stage, until: began + plan.patience, &peaks)
            return (out, world.instant() - began)
        }
        let load = try await stage.under.store.load()
        try stage.under.engine.close()
        return report(stage.service.figures, peaks, left: load.rows, start, out: out, whole: whole)
    }

    private func makeStage() async throws -> Stage {
        let clock = ManualClock()
        let inner = clock.world(seed: 7)
        let under = try await CoreStage("outage", in: plan.directory, world: inner)
        let lane = LaneName(app: under.app, service: .fcm, environment: .production)
        let service = OutageService(lane: lane, plan: plan, world: inner)
        let core = under.makeCore(service, FCMOutlet(isDefault: true), limits: plan.limits)
        return Stage(clock: clock, under: under, service: service, core: core)
    }

    /// Every second its pushes come, in calls that are under way together, and then the second passes.
    private func outage(_ stage: Stage, _ peaks: inout Peaks) async throws {
        let data = Array("{\"x\":\"\(String(repeating: "x", count: plan.bodyBytes))\"}".utf8)
        for second in 0..<plan.seconds {
            let first = second * plan.rate
            let ends = stage.clock.now + .seconds(86_400)
            try await withThrowingTaskGroup(of: Void.self) { calls in
                for call in 0..<plan.rate / OutagePlan.pushesPerCall {
                    let number = first + call * OutagePlan.pushesPerCall
                    calls.addTask { try await admit(number, data, ends, stage) }
                }
                try await calls.waitForAll()
            }
            var left = Duration.seconds(1)
            while left > .zero {
                await pass(stage)
                look(stage, &peaks)
                left -= step
            }
            if second % 60 == 59 {
                try await measureOutbox(stage, &peaks)
                say("\(second / 60 + 1) min: \(peaks.outboxRows) owed, \(peaks.inMemory) in memory at most")
            }
        }
        try await measureOutbox(stage, &peaks)
    }

    private func admit(_ first: Int, _ data: [UInt8], _ ends: UnixTime, _ stage: Stage) async throws {
        let pushes = (first..<first + OutagePlan.pushesPerCall).map { number in
            let address = OutageService.address(number)
            return Push(
                message: .fcm(FCMMessage(address: address, priority: .high, data: Secret(data))),
                pushClass: .normal, origin: Secret("origin-\(first / 10 % plan.origins)".utf8), record: nil,
                touchedAt: .distantPast, custodyEnds: ends, repeatIdentity: address)
        }
        try await stage.under.admit(pushes, stage.core)
    }

    /// One tick passes, and the core has seen it.
    private func pass(_ stage: Stage) async {
        stage.clock.advance(by: step)
        await stage.clock.sleepers(atLeast: Self.sleepers)
    }

    /// Time goes on in ticks, none before what can leave in one has had the time to leave.
    private func drain(
        _ stage: Stage, until: ContinuousClock.Instant, _ peaks: inout Peaks
    ) async throws {
        var told = 0
        while world.instant() < until {
            let before = stage.service.figures
            if before.delivered == plan.pushes, try await stage.under.store.load().rows == 0 { return }
            await pass(stage)
            look(stage, &peaks)
            // Nothing to see for a millisecond or two, and so many turns, where a busy machine may give none
            // in that time, means that the lane waits for a tick, or for the store.
            let patience = world.instant() + .milliseconds(2)
            var turns = 0
            while stage.service.figures.delivered == before.delivered,
                turns < 100 || world.instant() < patience
            {
                turns += 1
                await Task.yield()
            }
            if before.delivered / 100_000 > told {
                told = before.delivered / 100_000
                say("\(before.delivered) delivered")
            }
        }
    }

    private func look(_ stage: Stage, _ peaks: inout Peaks) {
        for lane in stage.core.snapshot() {
            peaks.inMemory = max(peaks.inMemory, lane.inMemory)
            peaks.parked = max(peaks.parked, lane.parked)
        }
        peaks.settling = max(peaks.settling, stage.core.settleBacklog)
    }

    private func measureOutbox(_ stage: Stage, _ peaks: inout Peaks) async throws {
        let load = try await stage.under.store.load()
        peaks.outboxRows = max(peaks.outboxRows, load.rows)
        peaks.outboxBytes = max(peaks.outboxBytes, load.bytes)
    }

    private func report(
        _ figures: OutageService.Figures, _ peaks: Peaks, left: Int, _ start: Int, out: Duration,
        whole: Duration
    ) -> (report: BenchReport, hasPassed: Bool) {
        let more = Double(max(0, ProcessUsage.peakBytes() - start)) / 1_048_576
        let lost = plan.pushes - figures.delivered
        var report = BenchReport()
        report.add("fault", .text(plan.fault.rawValue))
        report.add("rate", plan.rate)
        report.add("minutes", plan.minutes, digits: 1)
        report.add("accepted", plan.pushes)
        report.add("delivered", figures.delivered)
        report.add("doubled", figures.doubled)
        report.add("lost", lost)
        report.add("left_in_outbox", left)
        report.add("attempts", figures.attempts)
        report.add("places_in_lane", plan.limits.lanePushes)
        report.add("pushes_in_memory_peak", peaks.inMemory)
        report.add("under_way_peak", figures.mostUnderWay)
        report.add("settlements_waiting_peak", peaks.settling)
        report.add("parked_peak", peaks.parked)
        report.add("outbox_rows_peak", peaks.outboxRows)
        report.add("outbox_mib_peak", Double(peaks.outboxBytes) / 1_048_576, digits: 1)
        report.add("resident_mib_at_start", Double(start) / 1_048_576, digits: 1)
        report.add("resident_mib_more_at_peak", more, digits: 1)
        report.add("outage_real_seconds", out.inSeconds, digits: 1)
        report.add("drain_real_seconds", (whole - out).inSeconds, digits: 1)
        report.add(
            "drained_per_second", Double(figures.delivered) / max((whole - out).inSeconds, 1e-9), digits: 0)
        let hasPassed =
            lost == 0 && figures.doubled == 0 && left == 0 && peaks.inMemory <= plan.limits.lanePushes
            && peaks.settling <= plan.limits.settleBacklog + plan.streams
            && more <= plan.residentLimitMiB ?? .infinity
        return (report, hasPassed)
    }
}
