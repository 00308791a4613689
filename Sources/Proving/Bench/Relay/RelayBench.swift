import Foundation
import NIOCore
import NIOPosix
package import PushModel
import Simulators

/// Measures the whole relay from outside: HTTP in, durable, HTTP/2 out; from this process, over real sockets.
package struct RelayBench: Sendable {
    private let plan: RelayBenchPlan
    private let world: World
    private let say: @Sendable (String) -> Void

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: RelayBenchPlan, world: World, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.world = world
        self.say = say
    }

    /// What stands around the measurement.
    private struct Scene: Sendable {
        var address: RelayProcess.Address
        var publicKey: [UInt8]
        var bundle: String
        var sinkPID: Int32?
        var simulator: APNsSimulator?
        var roundTrip: Duration?

        func makeOrigin(_ world: World) -> any LoadOrigin {
            RelayPlan.load.makeOrigin(
                host: "\(address.host):\(address.port)", publicKey: publicKey, bundle: bundle, world: world)
        }
    }

    /// - Returns: the report, and whether every request was answered by a 200 that counts all its pushes.
    /// - Throws: `BenchError` when the measurement could not be made.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        try plan.check()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        switch plan.target {
        case .running(let state):
            guard let address = RelayProcess.address(state: state),
                let key = RelayProcess.publicKeys(state: state).first
            else { throw BenchError(.relayNotReady) }
            let bundle = RelayProcess.bundles(state: state).first ?? "org.example.load"
            return try await measure(Scene(address: address, publicKey: key, bundle: bundle), group.next())
        case .own(let sink, let store):
            return try await withOwnRelay(sink, store, group)
        }
    }

    private func withOwnRelay(
        _ sink: RelayBenchPlan.Sink, _ store: RelayPlan.Store, _ group: MultiThreadedEventLoopGroup
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        let key = APNsKey()
        var simulator: APNsSimulator?
        let (url, authority): (String, String)
        var (sinkPID, roundTrip): (Int32?, Duration?) = (nil, nil)
        switch sink {
        case .standing(let base, let pem, let pid):
            (url, authority) = (base, pem)
            sinkPID = pid
        case .simulated(let span):
            let made = try CertificateAuthority()
            var configuration = APNsSimulatorConfiguration(
                environment: .production, keys: [key.registration()])
            configuration.connection.roundTrip = span
            configuration.knobs.learnsDevices = true
            configuration.keptDeliveries = 16
            let apns = try APNsSimulator(
                configuration, authority: made, eventLoopGroup: MultiThreadedEventLoopGroup.singleton)
            (url, authority) = ("https://127.0.0.1:\(try await apns.start())", made.certificatePEM)
            (simulator, roundTrip) = (apns, span)
        }
        var relay = RelayPlan(
            executable: plan.executable, directory: plan.directory, apnsURL: url, authority: authority,
            apnsKey: key.privateKeyPEM)
        (relay.team, relay.keyID, relay.store) = (key.team, key.keyID, store)
        relay.environment = plan.environment
        let stage = try RelayProcess(relay, world: world)
        return try await ending {
            await stage.kill()
            await simulator?.stop()
        } after: {
            try stage.launch()
            let address = try await stage.ready(within: RelayProcess.startSpan)
            let scene = Scene(
                address: address, publicKey: stage.publicKey, bundle: relay.bundle, sinkPID: sinkPID,
                simulator: simulator, roundTrip: roundTrip)
            let result = try await measure(scene, group.next())
            _ = await stage.stop(within: .seconds(30))
            return result
        }
    }

    private func measure(
        _ scene: Scene, _ eventLoop: any EventLoop
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        var report = BenchReport()
        var origin = scene.makeOrigin(world)
        for prepared in try origin.signUp() + [origin.addDevices(plan.devices, .apns)] {
            try await prepared.setUp(at: scene.address, eventLoop)
        }
        say("\(plan.devices) devices registered")
        if plan.extraRegistrations > 0 { try await register(scene, eventLoop, &report) }

        let (prepared, items) = try makeBook(origin)
        let warmUp = try makeWarmUp(origin)
        try await warmUp.setUp(at: scene.address, eventLoop)
        try await world.sleep(world.instant() + .milliseconds(200))
        say("\(items) pushes made ready")

        let drive = RequestDrive(
            host: scene.address.host, port: scene.address.port, prepared: prepared,
            pace: plan.rate.map { .rate($0 / Double(plan.devicesPerRequest)) } ?? .max,
            watch: RelayPlan.load.taken(plan.devicesPerRequest), eventLoop: eventLoop)
        let before = usage(scene)
        let patience: Duration = plan.rate == nil ? .seconds(plan.seconds) : .seconds(20)
        let (result, peak) = try await watching(scene.address.pid) {
            try await drive.run(connections: plan.connections, patience: patience)
        }
        let after = usage(scene)
        let pushes = result.answered(200) * plan.devicesPerRequest
        write(result, pushes: pushes, to: &report)
        write(before, after, pushes: pushes, peak: peak, to: &report)
        if scene.roundTrip != nil {
            // What is owed by now leaves with nothing else to do for the machine.
            let early = try await delivered(scene, after: .seconds(1))
            let late = try await delivered(scene, after: .seconds(RelayBenchPlan.drainSeconds))
            allowance(scene, from: early, to: late, &report)
        }
        let others = result.statuses.filter { $0.key != 200 }.values.reduce(0, +)
        let hasPassed =
            pushes > 0 && others == 0 && result.watched == result.answered(200)
            && (plan.rate == nil || result.unanswered == 0)
        return (report, hasPassed)
    }

    /// Registers devices that nobody will push to, and notes what that did to the relay's memory.
    private func register(_ scene: Scene, _ eventLoop: any EventLoop, _ report: inout BenchReport)
        async throws
    {
        let before = ProcessUsage.of(scene.address.pid)?.residentBytes ?? 0
        var left = plan.extraRegistrations
        while left > 0 {
            var origin = scene.makeOrigin(world)
            for prepared in origin.signUp() { try await prepared.setUp(at: scene.address, eventLoop) }
            var ofThisOrigin = min(left, RelayPlan.devicesPerOrigin)
            left -= ofThisOrigin
            while ofThisOrigin > 0 {
                let count = min(ofThisOrigin, RelayBenchPlan.registrationChunk)
                let prepared = try origin.addDevices(count, .apns)
                try await prepared.setUp(at: scene.address, eventLoop)
                origin.forgetDevices()
                ofThisOrigin -= count
            }
            say("\(plan.extraRegistrations - left) more registrations")
        }
        let after = ProcessUsage.of(scene.address.pid)?.residentBytes ?? 0
        report.add("extra_registrations", plan.extraRegistrations)
        report.add("resident_mib_before_them", mib(before), digits: 1)
        report.add("resident_mib_after_them", mib(after), digits: 1)
    }

    private func makeBook(_ origin: any LoadOrigin) throws -> (prepared: PreparedRequests, items: Int) {
        let wanted =
            (plan.rate ?? RelayBenchPlan.mostPerSecond) * plan.seconds / Double(plan.devicesPerRequest)
        return try makeBook(origin, requests: max(1, Int(wanted)))
    }

    private func makeWarmUp(_ origin: any LoadOrigin) throws -> PreparedRequests {
        try makeBook(origin, requests: max(1, RelayBenchPlan.warmUpPushes / plan.devicesPerRequest)).prepared
    }

    private func makeBook(_ origin: any LoadOrigin, requests: Int) throws -> (
        prepared: PreparedRequests, items: Int
    ) {
        var prepared = PreparedRequests()
        var next = 0
        for _ in 0..<requests {
            if next + plan.devicesPerRequest > origin.devices.count { next = 0 }
            let targets = origin.devices[next..<next + plan.devicesPerRequest]
            let request = try origin.notify(targets, contentBytes: plan.contentBytes)
            prepared.add(head: request.head, body: request.body)
            next += plan.devicesPerRequest
        }
        return (prepared, requests * plan.devicesPerRequest)
    }
}

// MARK: what is read off

extension RelayBench {
    private struct Usages: Sendable {
        var driver: ProcessUsage
        var relay: ProcessUsage?
        var sink: ProcessUsage?
    }

    private func usage(_ scene: Scene) -> Usages {
        Usages(
            driver: .own(), relay: .of(scene.address.pid), sink: scene.sinkPID.flatMap { .of($0) })
    }

    /// Runs `body` and looks at the relay's memory ten times a second meanwhile.
    private func watching<Result: Sendable>(
        _ pid: Int32, _ body: @Sendable @escaping () async throws -> Result
    ) async throws -> (Result, peakBytes: Int) {
        try await withThrowingTaskGroup(of: Int.self) { watcher in
            watcher.addTask {
                var peak = 0
                while !Task.isCancelled {
                    peak = max(peak, ProcessUsage.of(pid)?.residentBytes ?? 0)
                    // Cancelled at the end of the measurement: then the peak is known.
                    do { try await world.sleep(world.instant() + .milliseconds(100)) } catch { break }
                }
                return peak
            }
            let result = try await body()
            watcher.cancelAll()
            return (result, try await watcher.next() ?? 0)
        }
    }

    private func write(_ result: DriveReport, pushes: Int, to report: inout BenchReport) {
        report.add("devices_per_request", plan.devicesPerRequest)
        report.add("asked_rate", plan.rate.map { .number($0, digits: 0) } ?? .text("max"))
        report.add("seconds", result.span.inSeconds)
        report.add("requests", result.statuses.values.reduce(0, +))
        report.add("pushes", pushes)
        report.add("pushes_per_second", Double(pushes) / result.span.inSeconds, digits: 0)
        report.add("sent_before_answer", result.watched * plan.devicesPerRequest)
        report.add("unanswered", result.unanswered)
        for (status, count) in result.statuses.sorted(by: { $0.key < $1.key }) where status != 200 {
            report.add("status_\(status)", count)
        }
        if plan.rate != nil {
            report.add("p50_milliseconds", result.latency.quantile(0.5).inMilliseconds, digits: 2)
            report.add("p95_milliseconds", result.latency.quantile(0.95).inMilliseconds, digits: 2)
            report.add("p99_milliseconds", result.latency.quantile(0.99).inMilliseconds, digits: 2)
            report.add("max_milliseconds", result.latency.maximum.inMilliseconds, digits: 2)
            report.add("most_requests_waiting", result.mostWaiting)
        }
    }

    private func write(
        _ before: Usages, _ after: Usages, pushes: Int, peak: Int, to report: inout BenchReport
    ) {
        func each(_ name: String, _ from: ProcessUsage?, _ to: ProcessUsage?) {
            guard let from, let to, pushes > 0 else { return }
            report.add(
                "\(name)_cpu_microseconds_per_push", (to.cpu - from.cpu).inSeconds * 1e6 / Double(pushes),
                digits: 2)
        }
        each("relay", before.relay, after.relay)
        each("driver", before.driver, after.driver)
        each("sink", before.sink, after.sink)
        report.add("relay_resident_mib_peak", mib(peak), digits: 1)
        report.add("relay_resident_mib_after", mib(after.relay?.residentBytes ?? 0), digits: 1)
    }

    /// With a simulated round trip: what flow control allows, and how much of it was used.
    /// How many pushes the simulator has accepted by then, and when that was.
    private func delivered(
        _ scene: Scene, after wait: Duration
    ) async throws -> (count: Int, at: ContinuousClock.Instant) {
        try await world.sleep(world.instant() + wait)
        return (scene.simulator?.counters.accepted ?? 0, world.instant())
    }

    /// What arrived at the simulator while the relay drained what it owed, beside what the windows allow.
    /// (What it accepted says nothing of that: it answers for pushes that still wait.)
    private func allowance(
        _ scene: Scene, from early: (count: Int, at: ContinuousClock.Instant),
        to late: (count: Int, at: ContinuousClock.Instant), _ report: inout BenchReport
    ) {
        guard let simulator = scene.simulator, let roundTrip = scene.roundTrip, roundTrip > .zero,
            let body = simulator.deliveries(after: 0, limit: 16).last?.body.count, body > 0
        else { return }
        let connections = simulator.openConnections
        let window = Double(simulator.connectionKnobs.initialWindowBytes)
        let allowed = Double(connections) * window / Double(body) / roundTrip.inSeconds
        report.add("connections", connections)
        report.add("body_bytes", body)
        report.add("round_trip_milliseconds", Int(roundTrip.inMilliseconds))
        report.add("allowed_per_second", allowed, digits: 0)
        let arrived = Double(late.count - early.count) / (late.at - early.at).inSeconds
        report.add("arrived_per_second", arrived, digits: 0)
        report.add("ratio_to_allowed", arrived / allowed)
    }
}

private func mib(_ bytes: Int) -> Double { Double(bytes) / 1_048_576 }
