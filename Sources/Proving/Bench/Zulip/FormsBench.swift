import Foundation
import NIOCore
import NIOPosix
package import PushModel

/// Measures what a push costs in each of the three forms in which Zulip's servers ask for one: rounds of each
/// in turn, over one relay. A ratio is the median of the ratios of single rounds.
package struct FormsBench: Sendable {
    /// A sink that stands already, by its base URL and the PEM text of its authority.
    package typealias Sink = (url: String, authority: String)

    private let rounds: Int
    private let seconds: Double
    private let executable: String
    private let directory: String
    private let sink: Sink?
    private let world: World

    /// - Parameters:
    ///   - rounds: of each form, 1 to 100.
    ///   - seconds: how long one is, 0.1 to 60.
    ///   - executable: the `sealbell` that is run: absolute path.
    ///   - directory: one of the measurement's own, which is there.
    ///   - sink: `nil`: a simulated APNs in this process, whose own time is then most of what is measured.
    package init(
        rounds: Int, seconds: Double, executable: String, directory: String, sink: Sink?, world: World
    ) {
        self.rounds = rounds
        self.seconds = seconds
        self.executable = executable
        self.directory = directory
        self.sink = sink
        self.world = world
    }

    /// - Returns: the report, and whether every request was answered by a 200 that counts all its pushes.
    /// - Throws: `BenchError` when the measurement could not be made.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        guard (1...100).contains(rounds), (0.1...60).contains(seconds) else { throw BenchError(.badPlan) }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        return try await OwnZulipRelay.run(
            executable: executable, directory: directory, sink: sink, world: world
        ) { try await measure($0, group.next()) }
    }

    private static let devices = 1_000
    private static let devicesPerRequest = 10
    private static let connections = 64

    private func measure(
        _ relay: OwnZulipRelay, _ eventLoop: any EventLoop
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        let address = relay.address
        var origins: [ZulipLoadOrigin] = []
        for form in ZulipForm.allCases { origins.append(try await origin(form, relay, eventLoop)) }
        var hasPassed = true
        let figures = try await Rounds(rounds) {
            var figures: [String: Double] = [:]
            for (form, origin) in zip(ZulipForm.allCases, origins) {
                let prepared = try prepared(origin)
                let before = ProcessUsage.of(address.pid)
                let drive = RequestDrive(
                    host: address.host, port: address.port, prepared: prepared, pace: .max,
                    watch: ZulipLoad().taken(Self.devicesPerRequest), eventLoop: eventLoop)
                let result = try await drive.run(connections: Self.connections, patience: .seconds(seconds))
                let pushes = Double(result.answered(200) * Self.devicesPerRequest)
                let others = result.statuses.filter { $0.key != 200 }.values.reduce(0, +)
                hasPassed =
                    hasPassed && pushes > 0 && others == 0 && result.watched == result.answered(200)
                guard let before, let after = ProcessUsage.of(address.pid) else { continue }
                figures["\(form.rawValue)_rate"] = pushes / max(result.span.inSeconds, 1e-3)
                figures["\(form.rawValue)_cost"] = (after.cpu - before.cpu).inSeconds / max(pushes, 1)
            }
            return figures
        }
        var report = BenchReport()
        report.add("rounds", rounds)
        for form in ZulipForm.allCases.map(\.rawValue) {
            let rate = figures["\(form)_rate"]
            hasPassed = hasPassed && rate.values.count == rounds
            report.add("\(form)_pushes_per_second", Int(exactly: rate.median.rounded()) ?? 0)
            report.add("\(form)_relay_microseconds_a_push", figures["\(form)_cost"].median * 1e6, digits: 1)
            guard form != ZulipForm.v12.rawValue else { continue }
            report.add("\(form)_beside_v12", ratio: rate / figures["\(ZulipForm.v12.rawValue)_rate"])
        }
        return (report, hasPassed)
    }

    private func origin(
        _ form: ZulipForm, _ relay: OwnZulipRelay, _ eventLoop: any EventLoop
    ) async throws -> ZulipLoadOrigin {
        let address = relay.address
        var origin = relay.makeOrigin(world)
        origin.form = form
        for prepared in origin.signUp() { try await prepared.setUp(at: address, eventLoop) }
        if form == .v12 {
            try await origin.addDevices(Self.devices, .apns).setUp(at: address, eventLoop)
            return origin
        }
        let connection = try await CallConnection.connect(
            host: address.host, port: address.port, eventLoop: eventLoop)
        defer { connection.close() }
        for _ in 0..<Self.devices {
            guard try await origin.join(.apns, over: connection) else { throw BenchError(.setUpRefused) }
        }
        return origin
    }

    private func prepared(_ origin: ZulipLoadOrigin) throws -> PreparedRequests {
        let pushes = RelayBenchPlan.mostPerSecond * seconds
        var prepared = PreparedRequests()
        for number in 0..<max(1, Int(pushes) / Self.devicesPerRequest) {
            let first = number * Self.devicesPerRequest % Self.devices
            let request = try origin.notify(
                origin.devices[first..<first + Self.devicesPerRequest], contentBytes: 256)
            prepared.add(head: request.head, body: request.body)
        }
        return prepared
    }
}
