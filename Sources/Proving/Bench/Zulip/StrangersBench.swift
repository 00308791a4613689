import Foundation
import NIOCore
import NIOPosix
package import PushModel

/// Measures whether one origin can tell by the time of an answer that another origin's device exists
/// (SECURITY.md): a stranger names another's realm with devices that it has, and with devices that nobody
/// has.
///
/// Both kinds of request are sent one at a time, in an order drawn by chance, over one connection.
package struct StrangersBench: Sendable {
    /// Pairs beyond which nothing is learnt, and memory for the times would grow.
    static let pairLimit = 1_000_000

    private let pairs: Int
    private let executable: String
    private let directory: String
    private let world: World

    /// - Parameters:
    ///   - pairs: requests of each kind, 100 to 1,000,000.
    ///   - executable: the `sealbell` that is run: absolute path.
    ///   - directory: one of the measurement's own, which is there.
    package init(pairs: Int, executable: String, directory: String, world: World) {
        self.pairs = pairs
        self.executable = executable
        self.directory = directory
        self.world = world
    }

    /// - Returns: the report, and whether all answers were the same.
    /// - Throws: `BenchError` when the measurement could not be made.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        guard (100...Self.pairLimit).contains(pairs) else { throw BenchError(.badPlan) }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        return try await OwnZulipRelay.run(executable: executable, directory: directory, world: world) {
            try await measure($0, group.next())
        }
    }

    private func measure(
        _ relay: OwnZulipRelay, _ eventLoop: any EventLoop
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        let address = relay.address
        var owner = relay.makeOrigin(world)
        let stranger = relay.makeOrigin(world)
        for book in owner.signUp() + stranger.signUp() + [try owner.addDevices(Self.devices, .apns)] {
            try await book.setUp(at: address, eventLoop)
        }
        let asking = stranger.naming(realmOf: owner)
        let nobodys = (0..<Self.devices).map { _ in ZulipLoadOrigin.makeDevice(.apns, world) }
        let connection = try await CallConnection.connect(
            host: address.host, port: address.port, eventLoop: eventLoop)
        defer { connection.close() }
        var times: (theirs: [Double], nobodys: [Double]) = ([], [])
        var answers: Set<String> = []
        // The first are slower for both: caches, and the realm's owner is looked up anew.
        for round in 0..<(pairs + Self.warmUp) {
            let theirsFirst = world.random() & 1 == 0
            for isTheirs in [theirsFirst, !theirsFirst] {
                let device = (isTheirs ? owner.devices : nobodys)[round % Self.devices]
                let request = try asking.notify([device], contentBytes: 64)
                let start = world.instant()
                let reply = await connection.ask(
                    ByteBuffer(bytes: request.head + request.body), within: .seconds(10))
                let span = (world.instant() - start).inSeconds * 1e6
                guard let reply else { throw BenchError(.unreachable) }
                answers.insert("\(reply.status) \(String(buffer: reply.body))")
                guard round >= Self.warmUp else { continue }
                if isTheirs { times.theirs.append(span) } else { times.nobodys.append(span) }
            }
        }
        return report(&times.theirs, &times.nobodys, answers: answers.count)
    }

    /// So many that no cache of the machine's holds one for all.
    private static let devices = 1_000
    private static let warmUp = 200

    private func report(
        _ theirs: inout [Double], _ nobodys: inout [Double], answers: Int
    ) -> (report: BenchReport, hasPassed: Bool) {
        theirs.sort()
        nobodys.sort()
        var report = BenchReport()
        report.add("pairs", pairs)
        report.add("different_answers", answers)
        report.add("median_microseconds_existing", theirs[theirs.count / 2], digits: 1)
        report.add("median_microseconds_nobodys", nobodys[nobodys.count / 2], digits: 1)
        report.add("ratio_of_medians", theirs[theirs.count / 2] / nobodys[nobodys.count / 2])
        let (share, errors) = Self.rank(theirs, nobodys)
        report.add("share_existing_slower", share)
        report.add("standard_errors_from_half", errors, digits: 2)
        return (report, answers == 1)
    }

    /// How often a time of the first is longer than one of the second (Mann and Whitney's U over all pairs),
    /// and how many standard errors that is from one half, which is what nothing to tell looks like.
    ///
    /// - Parameters: both sorted.
    static func rank(_ first: [Double], _ second: [Double]) -> (share: Double, errors: Double) {
        var (below, wins) = (0, 0.0)
        var ties = 0
        for time in first {
            while below < second.count, second[below] < time { below += 1 }
            ties = 0
            while below + ties < second.count, second[below + ties] == time { ties += 1 }
            wins += Double(below) + Double(ties) / 2
        }
        let (n, m) = (Double(first.count), Double(second.count))
        let share = wins / (n * m)
        let error = ((n + m + 1) / (12 * n * m)).squareRoot()
        return (share, (share - 0.5) / error)
    }
}
