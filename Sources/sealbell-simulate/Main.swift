import ArgumentParser
#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import Foundation
import Simulation

/// Runs seeds of the simulation and says which broke the law.
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

    @Option(help: "Break the relay on purpose: settles-first, marks-apart, long-lease or sync-off.")
    var sabotage: String?

    @Flag(help: "Print each seed's figures.")
    var verbose = false

    func run() throws {
        try fixHashing()
        let planted = try sabotage.map { word -> Trial.Sabotage in
            switch word {
            case "settles-first": .settlesFirst
            case "marks-apart": .marksApart
            case "long-lease": .longLease
            case "sync-off": .syncOff
            default: throw ValidationError("--sabotage is settles-first, marks-apart, long-lease or sync-off")
            }
        }
        let kind = try engine.map { word -> Trial.EngineKind in
            guard let kind = Trial.EngineKind(rawValue: word) else {
                throw ValidationError("--engine is memory or sqlite")
            }
            return kind
        }
        let (once, again) = (Trial(seed: first).run(), Trial(seed: first).run())
        guard once.digest == again.digest, once.jobs == again.jobs else {
            say("seed \(first) did not run the same way twice: something beside the seed decides")
            throw ExitCode.failure
        }
        var (failed, owed, doubled, jobs) = (0, 0, 0, 0)
        var simulated = Duration.zero
        for seed in first..<first + count {
            let report = Trial(seed: seed, engine: kind, sabotage: planted ?? []).run()
            owed += report.owed
            doubled += report.doubled
            jobs += report.jobs
            simulated += report.simulated
            if verbose {
                say(
                    "seed \(seed) \(report.engine.rawValue) processes \(report.processes)",
                    "owed \(report.owed)",
                    "doubled \(report.doubled) seconds \(report.simulated.components.seconds)",
                    "jobs \(report.jobs) digest \(String(report.digest, radix: 16))")
            }
            if !report.violations.isEmpty { failed += 1 }
            if sabotage != nil, !verbose { continue }
            for violation in Set(report.violations).sorted(by: { "\($0)" < "\($1)" }) {
                say("seed \(seed) (\(report.engine.rawValue)): \(violation)")
            }
            if verbose { for line in report.story { say("    \(line)") } }
        }
        let hours = Double(simulated.components.seconds) / 3_600
        say(
            "seeds \(count) failed \(failed) pushes \(owed) doubled \(doubled)",
            "hours \((hours * 10).rounded() / 10) jobs \(jobs)")
        // With a planted fault it is the other way round: that nothing was found is the failure.
        if (failed > 0) == (sabotage == nil) { throw ExitCode.failure }
    }

    private func say(_ words: String...) {
        FileHandle.standardOutput.write(Data((words.joined(separator: " ") + "\n").utf8))
    }

    /// Tables are walked in the order of their hashes, which Swift draws anew for each process unless the
    /// environment forbids it: the same seed must run the same way tomorrow.
    private func fixHashing() throws {
        let name = "SWIFT_DETERMINISTIC_HASHING"
        guard getenv(name) == nil else { return }
        setenv(name, "1", 1)
        var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", &arguments)
        throw ValidationError("Set \(name)=1: this system does not let the program do it.")
    }
}
