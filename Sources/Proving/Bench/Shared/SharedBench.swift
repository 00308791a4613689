#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import NIOCore
import NIOPosix
package import PushModel
import Simulators

/// Measures what a push costs relays and database, window by window: as registrations grow, as time passes
/// beside a reader, and with more relays on one database.
package struct SharedBench: Sendable {
    private let plan: SharedPlan
    private let world: World
    private let say: @Sendable (String) -> Void

    /// - Parameter say: takes a line of progress now and then.
    package init(_ plan: SharedPlan, world: World, say: @escaping @Sendable (String) -> Void) {
        self.plan = plan
        self.world = world
        self.say = say
    }

    /// A server, and those of its devices that are pushed to.
    private struct Crowd {
        var origin: any LoadOrigin
        var registered = 0
        var targets: [LoadDevice] = []
    }

    private struct Scene {
        let stages: [RelayProcess]
        let addresses: [RelayProcess.Address]
        let eventLoop: any EventLoop
        /// The last of them takes the next devices.
        var crowds: [Crowd] = []
        /// One of so many registrations is pushed to.
        var step = 1
        var registered = 0
        var report = BenchReport()
        var window = 0
        /// Pushes a second of the fastest window so far.
        var fastest: Double?
        var hasPassed = true
    }

    /// - Returns: the report, and whether every request was answered by a 200.
    /// - Throws: `BenchError`; `.tooLittleSpace` before anything was begun.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        try plan.check()
        try checkSpace()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        let stages = try makeStages()
        return try await ending {
            for stage in stages { await stage.kill() }
        } after: {
            let result = try await measure(stages, group.next())
            for stage in stages { _ = await stage.stop(within: .seconds(30)) }
            return result
        }
    }

    private func checkSpace() throws(BenchError) {
        guard plan.freeBytes > 0 else { return }
        var found = statvfs()
        guard statvfs(plan.freeAt, &found) == 0 else { throw BenchError(.fileFault) }
        guard Int64(found.f_bavail) * Int64(found.f_frsize) >= plan.freeBytes else {
            throw BenchError(.tooLittleSpace)
        }
    }

    private func makeStages() throws(BenchError) -> [RelayProcess] {
        let key = APNsKey()
        var stages: [RelayProcess] = []
        for number in 0..<plan.relays {
            let directory = "\(plan.directory)/relay-\(number)"
            guard mkdir(directory, 0o700) == 0 else { throw BenchError(.fileFault) }
            var relay = RelayPlan(
                executable: plan.executable, directory: directory, apnsURL: plan.sink.url,
                authority: plan.sink.authority, apnsKey: key.privateKeyPEM)
            (relay.team, relay.keyID, relay.store) = (key.team, key.keyID, plan.store)
            stages.append(try RelayProcess(relay, keysOf: stages.first, world: world))
        }
        return stages
    }

    private func measure(
        _ stages: [RelayProcess], _ eventLoop: any EventLoop
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        var addresses: [RelayProcess.Address] = []
        // One behind the other, so that the schema is made once and nobody waits for it.
        for stage in stages {
            try stage.launch()
            addresses.append(try await stage.ready(within: RelayProcess.startSpan))
        }
        var scene = Scene(stages: stages, addresses: addresses, eventLoop: eventLoop)
        scene.report.add("relays", plan.relays)
        scene.report.add("asked_rate", plan.rate.map { .number($0, digits: 0) } ?? .text("max"))
        scene.report.add("window_seconds", plan.seconds, digits: 0)
        for count in plan.registrations {
            try await register(count, &scene)
            try await series(&scene)
        }
        scene.report.add("windows", scene.window)
        return (scene.report, scene.hasPassed)
    }

    /// Registers devices until so many stand, and keeps a sample of them, spread evenly.
    private func register(_ count: Int, _ scene: inout Scene) async throws {
        let step = max(1, count / SharedPlan.targets)
        // Those of earlier series are thinned out, so that the sample stays spread over all.
        let thinner = max(1, step / scene.step)
        for index in scene.crowds.indices {
            scene.crowds[index].targets = scene.crowds[index].targets.enumerated()
                .filter { $0.offset % thinner == 0 }.map(\.element)
        }
        scene.step = step
        while scene.registered < count {
            var crowd = try await takeCrowd(&scene)
            let number = min(
                SharedPlan.chunk, count - scene.registered, RelayPlan.devicesPerOrigin - crowd.registered)
            let prepared = try crowd.origin.addDevices(number, .apns)
            try await prepared.setUp(at: scene.addresses[0], scene.eventLoop)
            for (place, device) in crowd.origin.devices.enumerated()
            where (scene.registered + place) % step == 0 { crowd.targets.append(device) }
            crowd.origin.forgetDevices()
            crowd.registered += number
            scene.crowds.append(crowd)
            scene.registered += number
            if scene.registered % 100_000 == 0 { say("\(scene.registered) registrations") }
        }
        for index in scene.crowds.indices { scene.crowds[index].targets.shuffle() }
    }

    /// The last crowd, taken out, while there is room in it; otherwise a new one, whose server has signed up.
    private func takeCrowd(_ scene: inout Scene) async throws -> Crowd {
        if let last = scene.crowds.last, last.registered < RelayPlan.devicesPerOrigin {
            return scene.crowds.removeLast()
        }
        let origin = scene.stages[0].makeOrigin(at: scene.addresses[0])
        for prepared in origin.signUp() { try await prepared.setUp(at: scene.addresses[0], scene.eventLoop) }
        return Crowd(origin: origin)
    }

    /// One series of windows. At a fixed rate the requests of each are made ready while the one before it
    /// runs, so that the load never pauses; where as many go as can, before it, for to seal them takes a
    /// processor that the relays would have.
    private func series(_ scene: inout Scene) async throws {
        let warmUp = try books(
            scene, requests: max(1, SharedPlan.warmUpPushes / plan.devicesPerRequest / plan.relays))
        _ = try await drive(warmUp, scene, pace: .max)
        var reader: ChildProcess?
        var next: [PreparedRequests]?
        for number in 0..<plan.windows {
            let current = try next ?? books(scene, requests: requests(scene))
            let isAhead = plan.rate != nil && number < plan.windows - 1
            let standing = scene
            async let following = isAhead ? books(standing, requests: requests(standing)) : nil
            try await window(current, &scene)
            next = try await following
            if number + 1 == SharedPlan.windowsAlone, let beside = plan.beside, reader == nil {
                reader = try ChildProcess(
                    "/bin/sh", ["-c", beside.replacing("{state}", with: scene.stages[0].plan.stateDirectory)],
                    environment: ProcessInfo.processInfo.environment,
                    log: "\(plan.directory)/beside.log")
                say("the reader has begun")
            }
        }
        if let reader {
            // Gone before its time, it held nothing back: then the figures say nothing.
            if reader.hasEnded { throw BenchError(.processFault) }
            reader.signal(SIGTERM)
            _ = await reader.wait()
        }
    }

    /// How many requests each relay gets in a window: with no rate, half as many again as in the fastest.
    private func requests(_ scene: Scene) -> Int {
        let rate = plan.rate ?? scene.fastest.map { $0 * 1.5 } ?? SharedPlan.mostPerSecond
        return max(1, Int(rate * plan.seconds) / plan.devicesPerRequest / plan.relays)
    }

    /// One book a relay; the requests of each go round all servers.
    private func books(_ scene: Scene, requests: Int) throws -> [PreparedRequests] {
        let crowds = scene.crowds.filter { $0.targets.count >= plan.devicesPerRequest }
        guard !crowds.isEmpty else { throw BenchError(.badPlan) }
        var next = crowds.map { scene.window &* 7_919 % $0.targets.count }
        var turn = 0
        return try scene.addresses.map { _ in
            var prepared = PreparedRequests()
            for _ in 0..<requests {
                let (crowd, index) = (crowds[turn], turn)
                turn = (turn + 1) % crowds.count
                if next[index] + plan.devicesPerRequest > crowd.targets.count { next[index] = 0 }
                let request = try crowd.origin.notify(
                    crowd.targets[next[index]..<next[index] + plan.devicesPerRequest],
                    contentBytes: plan.contentBytes)
                prepared.add(head: request.head, body: request.body)
                next[index] += plan.devicesPerRequest
            }
            return prepared
        }
    }
}

// MARK: one window

extension SharedBench {
    private struct Usages {
        var relays: Duration
        var database: Duration?
        /// Ours: the same work for each push, so it tells how fast the machine is at the time.
        var driver: Duration
        var resident: Int
    }

    private func usages(_ scene: Scene) -> Usages {
        let relays = scene.addresses.compactMap { ProcessUsage.of($0.pid) }
        return Usages(
            relays: relays.reduce(.zero) { $0 + $1.cpu },
            database: plan.databasePID.flatMap { ProcessUsage.ofTree($0) }, driver: ProcessUsage.own().cpu,
            resident: relays.map(\.residentBytes).max() ?? 0)
    }

    private func window(_ books: [PreparedRequests], _ scene: inout Scene) async throws {
        let pace: Pace =
            plan.rate.map { .rate($0 / Double(plan.devicesPerRequest * plan.relays)) } ?? .max
        let before = usages(scene)
        let reports = try await drive(books, scene, pace: pace)
        let after = usages(scene)
        var whole = DriveReport()
        for report in reports { whole.add(report) }
        let pushes = whole.answered(200) * plan.devicesPerRequest
        let others = whole.statuses.filter { $0.key != 200 }.values.reduce(0, +)
        if pushes == 0 || others > 0 || plan.rate != nil && whole.unanswered > 0 { scene.hasPassed = false }
        scene.fastest = max(scene.fastest ?? 0, Double(pushes) / whole.span.inSeconds)
        write(whole, pushes: pushes, others: others, before, after, &scene)
        scene.window += 1
    }

    private func write(
        _ whole: DriveReport, pushes: Int, others: Int, _ before: Usages, _ after: Usages,
        _ scene: inout Scene
    ) {
        let name = "window_\(scene.window)"
        func perPush(_ span: Duration) -> Double { span.inSeconds * 1e6 / Double(max(1, pushes)) }
        let relays = perPush(after.relays - before.relays)
        let database = after.database.flatMap { end in before.database.map { perPush(end - $0) } }
        scene.report.add("\(name)_registrations", scene.registered)
        scene.report.add("\(name)_pushes", pushes)
        scene.report.add("\(name)_refused_or_unanswered", others + whole.unanswered)
        scene.report.add("\(name)_pushes_per_second", Double(pushes) / whole.span.inSeconds, digits: 0)
        scene.report.add("\(name)_relay_cpu_microseconds_per_push", relays, digits: 2)
        if let database {
            scene.report.add("\(name)_database_cpu_microseconds_per_push", database, digits: 2)
        }
        let driver = perPush(after.driver - before.driver)
        scene.report.add("\(name)_driver_cpu_microseconds_per_push", driver, digits: 2)
        if plan.rate != nil {
            for (label, share) in [("p50", 0.5), ("p99", 0.99)] {
                scene.report.add(
                    "\(name)_\(label)_milliseconds", whole.latency.quantile(share).inMilliseconds, digits: 2)
            }
        }
        scene.report.add("\(name)_relay_resident_mib", Double(after.resident) / 1_048_576, digits: 1)
        let rate = decimal(Double(pushes) / whole.span.inSeconds, 0)
        let parts = database.map { " + \(decimal($0, 1))" } ?? ""
        say(
            "window \(scene.window): \(scene.registered) registrations, \(rate)/s, "
                + "\(decimal(relays, 1))\(parts) us a push, "
                + "driver \(decimal(driver, 1)), p99 "
                + "\(decimal(whole.latency.quantile(0.99).inMilliseconds, 1)) ms")
    }

    private func drive(_ books: [PreparedRequests], _ scene: Scene, pace: Pace) async throws -> [DriveReport]
    {
        let patience = plan.rate == nil ? Duration.seconds(plan.seconds) : SharedPlan.patience
        return try await withThrowingTaskGroup(of: DriveReport.self) { drives in
            for (address, prepared) in zip(scene.addresses, books) {
                let drive = RequestDrive(
                    host: address.host, port: address.port, prepared: prepared, pace: pace,
                    eventLoop: scene.eventLoop)
                let connections = plan.connections
                drives.addTask { try await drive.run(connections: connections, patience: patience) }
            }
            var reports: [DriveReport] = []
            for try await report in drives { reports.append(report) }
            return reports
        }
    }
}
