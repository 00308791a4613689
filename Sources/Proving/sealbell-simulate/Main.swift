import ArgumentParser
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Simulation

/// Runs seeds of the simulation and reports which of them broke a law.
@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sealbell-simulate",
        abstract: "Run the relay on simulated machines, by seed, and look for a push that is lost.")

    @Option(help: "The first seed.")
    var first: UInt64 = 1

    @Option(help: "How many seeds.")
    var count: UInt64 = 1_000

    @Option(help: "memory or sqlite; without it as each seed has it.")
    var engine: String?

    @Option(help: "Break the relay on purpose: settles-first, or another of those that 0023 tells of.")
    var sabotage: String?

    @Option(help: "What push services and devices do to each seed: words of 0089, with commas, or all.")
    var misbehaving: String?

    @Flag(help: "With --sabotage: go on after the first seed that finds it, and count those that do.")
    var all = false

    @Flag(help: "Print each seed's figures.")
    var verbose = false

    @Flag(help: "An origin in place of the relay; --sabotage is then one of its own (0131).")
    var origin = false

    func run() throws {
        try fixHashing()
        if origin { return try runOrigin() }
        let planted = try sabotage.map { word -> SeedRun.Sabotage in
            guard let planted = SeedRun.Sabotage.byName[word] else {
                let words = SeedRun.Sabotage.byName.keys.sorted().joined(separator: ", ")
                throw ValidationError("--sabotage is one of: \(words)")
            }
            return planted
        }
        let kind = try engine.map { word -> SeedRun.EngineKind in
            guard let kind = SeedRun.EngineKind(rawValue: word) else {
                throw ValidationError("--engine is memory or sqlite")
            }
            return kind
        }
        let misbehaviours = try misbehaving.map { words in
            try words.split(separator: ",").map { word -> Misbehaviour in
                guard let found = word == "all" ? .all : Misbehaviour.byName[String(word)] else {
                    let words = Misbehaviour.byName.keys.sorted().joined(separator: ", ")
                    throw ValidationError("--misbehaving is all, or some of: \(words)")
                }
                return found
            }
        }.map { Misbehaviour($0) }
        let (once, again) = (SeedRun(seed: first).run(), SeedRun(seed: first).run())
        guard once.digest == again.digest, once.jobs == again.jobs else {
            say("seed \(first) did not run the same way twice: something beside the seed decides")
            throw ExitCode.failure
        }
        var (seeds, failed, owed, doubled, jobs) = (0, 0, 0, 0, 0)
        var simulated = Duration.zero
        for seed in first..<first + count {
            let report = SeedRun(
                seed: seed, engine: kind, sabotage: planted ?? [], misbehaviours: misbehaviours
            ).run()
            seeds += 1
            owed += report.owed
            doubled += report.doubled
            jobs += report.jobs
            simulated += report.simulated
            if verbose {
                say(
                    "seed \(seed) \(report.engine.rawValue) (\(report.traits)) processes \(report.processes)",
                    "owed \(report.owed)",
                    "doubled \(report.doubled) seconds \(report.simulated.components.seconds)",
                    "jobs \(report.jobs) digest \(String(report.digest, radix: 16))")
            }
            let isBroken = report.violations.contains { planted?.laws.contains($0.law) ?? true }
            if isBroken { failed += 1 }
            if sabotage == nil || verbose || isBroken && failed == 1 { tell(report) }
            if sabotage != nil, failed > 0, !all { break }
        }
        let hours = Double(simulated.components.seconds) / 3_600
        say(
            "seeds \(seeds) failed \(failed) pushes \(owed) doubled \(doubled)",
            "hours \((hours * 10).rounded() / 10) jobs \(jobs)")
        // With a planted fault it is the other way round: finding nothing is the failure.
        if (failed > 0) == (sabotage == nil) { throw ExitCode.failure }
    }

    private func runOrigin() throws {
        let planted = try sabotage.map { word -> OriginSeedRun.Sabotage in
            guard let planted = OriginSeedRun.Sabotage.byName[word] else {
                let words = OriginSeedRun.Sabotage.byName.keys.sorted().joined(separator: ", ")
                throw ValidationError("--sabotage of an origin is one of: \(words)")
            }
            return planted
        }
        let kind = engine.flatMap { SeedRun.EngineKind(rawValue: $0) }
        let (once, again) = (OriginSeedRun(seed: first).run(), OriginSeedRun(seed: first).run())
        guard once.digest == again.digest, once.jobs == again.jobs else {
            say("origin seed \(first) did not run the same way twice: something beside the seed decides")
            throw ExitCode.failure
        }
        var (seeds, failed, registrations, notifications, jobs) = (0, 0, 0, 0, 0)
        var simulated = Duration.zero
        for seed in first..<first + count {
            let report = OriginSeedRun(seed: seed, engine: kind, sabotage: planted ?? []).run()
            seeds += 1
            registrations += report.answered.registrations
            notifications += report.answered.notifications
            jobs += report.jobs
            simulated += report.simulated
            if verbose {
                say(
                    "origin seed \(seed) \(report.engine.rawValue) registrations",
                    "\(report.answered.registrations) notifications \(report.answered.notifications)",
                    "seconds \(report.simulated.components.seconds) jobs \(report.jobs)")
            }
            guard !report.violations.isEmpty else { continue }
            failed += 1
            if sabotage == nil || verbose || failed == 1 {
                for one in report.violations {
                    say(
                        "origin seed \(seed) (\(report.engine.rawValue)):", one.law.rawValue,
                        "(\(one.detail))")
                }
                if verbose { for line in report.chronicle { say("    \(line)") } }
            }
            if sabotage != nil, !all { break }
        }
        let hours = Double(simulated.components.seconds) / 3_600
        say(
            "origin seeds \(seeds) failed \(failed) registrations \(registrations)",
            "notifications \(notifications) hours \((hours * 10).rounded() / 10) jobs \(jobs)")
        if (failed > 0) == (sabotage == nil) { throw ExitCode.failure }
    }

    /// One line for each law that was broken.
    private func tell(_ report: SeedRun.Report) {
        let broken = Dictionary(grouping: Set(report.violations), by: \.law)
        for (law, violations) in broken.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            let first = violations.map(\.number).min() ?? 0
            let more = violations.count > 1 ? ", of \(violations.count)" : ""
            say("seed \(report.seed) (\(report.engine.rawValue)): \(law.rawValue) (number \(first)\(more))")
            guard verbose else { continue }
            for line in report.stories[law] ?? [] { say("    \(line)") }
        }
        guard verbose, !broken.isEmpty else { return }
        for line in report.chronicle + report.standing { say("    \(line)") }
    }

    private func say(_ words: String...) {
        FileHandle.standardOutput.write(Data((words.joined(separator: " ") + "\n").utf8))
    }

    /// Tables are iterated in the order of their hashes, which Swift seeds at random for each process unless
    /// the environment forbids it; the same seed must always run in the same way.
    private func fixHashing() throws {
        let name = "SWIFT_DETERMINISTIC_HASHING"
        guard getenv(name) == nil else { return }
        setenv(name, "1", 1)
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", &arguments)
        throw ValidationError("Set \(name)=1: this system does not let the program do it.")
    }
}
