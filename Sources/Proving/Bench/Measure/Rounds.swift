package import PushModel

/// Figures that are taken turn by turn in one process, in so many rounds after one that warms up.
struct Rounds {
    /// What measurements beside primitives take: fewer rounds have no middle, and beyond nothing is learnt.
    static let range = 3...1_000

    private var figures: [String: [Double]] = [:]

    /// - Parameter figures: of one round, by their names.
    init(_ count: Int, _ figures: () async throws -> [String: Double]) async throws {
        // The first one is for pages, tables and caches.
        _ = try await figures()
        for _ in 0..<count {
            for (name, figure) in try await figures() { self.figures[name, default: []].append(figure) }
        }
    }

    /// Seconds that one of each contender takes.
    init(_ count: Int, _ contenders: [Contender]) async throws {
        var contenders = contenders
        for at in contenders.indices { try await contenders[at].calibrate() }
        var round = 0
        try await self.init(count) {
            var times: [String: Double] = [:]
            // Another one begins each time: nobody always follows the same.
            for at in contenders.indices {
                let contender = contenders[(at + round) % contenders.count]
                times[contender.name] = try await contender.seconds()
            }
            round += 1
            return times
        }
    }

    /// Of that name; without values when there is none.
    subscript(_ name: String) -> Series { Series(figures[name] ?? []) }
}

/// Something that is done again and again, and measured by the CPU time of this process: one contender is
/// busy at a time, and others on the machine do not count.
struct Contender {
    /// How long one turn lasts whose length is free.
    private static let turn = 0.015

    let name: String
    /// How often it is done in one turn. `nil`: until ``turn`` is over, as ``calibrate()`` finds out.
    private var times: Int?
    /// How many each time does at once.
    private let batch: Int
    private let undo: () -> Void
    private let work: (_ time: Int) async throws -> Void

    /// - Parameters:
    ///   - times: how often it is done in one turn; `nil`: for some 15 ms.
    ///   - batch: how many each time does at once; the figure is what one of them takes.
    ///   - undo: done after a turn, and not measured.
    ///   - work: is told its number in the turn, from 0.
    init(
        _ name: String, times: Int? = 1, batch: Int = 1, undo: @escaping () -> Void = {},
        _ work: @escaping (_ time: Int) async throws -> Void
    ) {
        (self.name, self.times, self.batch, self.undo, self.work) = (name, times, batch, undo, work)
    }

    fileprivate mutating func calibrate() async throws {
        guard times == nil else { return }
        times = 1
        // The first is slow: pages, lazy tables.
        for _ in 0..<3 {
            let one = try await seconds() * Double(batch)
            times = min(1_000_000, max(1, Int(Self.turn / max(one, 1e-9))))
        }
    }

    /// Of one.
    fileprivate func seconds() async throws -> Double {
        let (times, start) = (times ?? 1, ProcessUsage.ownCPU())
        for time in 0..<times { try await work(time) }
        let span = (ProcessUsage.ownCPU() - start).inSeconds
        undo()
        return span / Double(times * batch)
    }
}

/// Something of ours, and the primitives that it is made of: the same bytes through each alone.
struct Dissection {
    let name: String
    /// Ours, whose name does not matter.
    let whole: Contender
    let primitives: [Contender]

    /// Measures the whole turn by turn with each primitive, and reports what each takes.
    ///
    /// - Returns: seconds of one, and of all its primitives together.
    func measure(
        rounds: Int, digits: Int, _ report: inout BenchReport
    ) async throws -> (whole: Series, primitives: Series) {
        let times = try await Rounds(rounds, [whole] + primitives)
        let sum = primitives.dropFirst().reduce(times[primitives[0].name]) { $0 + times[$1.name] }
        report.add(name, microseconds: times[whole.name], digits: digits)
        report.add("\(name)_primitives", microseconds: sum, digits: digits)
        for primitive in primitives {
            report.add("\(name)_\(primitive.name)", microseconds: times[primitive.name], digits: digits)
        }
        return (times[whole.name], sum)
    }
}

/// A measurement of our own work beside its primitives, which a command of its own runs.
package protocol BesidePrimitives {
    /// The command's.
    static var name: String { get }
    /// What is measured, in one sentence.
    static var abstract: String { get }
    /// Ours, its primitives, and what passes.
    static var discussion: String { get }
    /// As many as give a steady median, and what one takes.
    static var rounds: (usual: Int, span: String) { get }

    /// - Throws: what the measured code throws, which is a bug.
    static func measure(
        _ rounds: Int, _ world: World, _ report: inout BenchReport
    ) async throws -> Bool
}

extension BesidePrimitives {
    /// - Returns: the report, and whether the goal is met.
    /// - Throws: `BenchError(.badPlan)` for fewer rounds than 3 or more than 1,000; as
    ///   ``measure(_:_:_:)``.
    package static func run(
        rounds: Int, world: World
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        guard Rounds.range.contains(rounds) else { throw BenchError(.badPlan) }
        var report = BenchReport()
        report.add("rounds", rounds)
        let hasPassed = try await measure(rounds, world, &report)
        return (report, hasPassed)
    }
}
