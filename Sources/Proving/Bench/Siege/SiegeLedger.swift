/// What one attack did to everybody else, and what its makers heard.
struct SiegeLedger: Sendable {
    /// Calls of the origin that asks beside it, answered 200.
    private(set) var answered = 0
    /// Those that were not: refused, broken off, too late, or answered otherwise.
    private(set) var failed = 0
    private(set) var waits = LatencyHistogram()
    /// Calls answered 200 whose pushes had not arrived soon after the attack.
    var undelivered = 0
    /// Attackers that were answered where their protocol wants silence.
    var unduly = 0
    /// Answers to the attackers, by status; 0 for a connection that ended without one.
    private(set) var heard: [Int: Int] = [:]
    /// Whether a newcomer could sign up meanwhile, and the admin listener answered.
    var hasSignedUp = false
    var hasAdmin = false
    /// CPU time of the relay for each second; `nil` where the system does not tell.
    var cores: Double?
    /// Nothing can be promised to newcomers.
    var isCrowded = false

    mutating func called(_ status: Int?, in span: Duration) {
        if status == 200 {
            answered += 1
            waits.record(nanoseconds: span.inNanoseconds)
        } else {
            failed += 1
        }
    }

    mutating func attacker(heard status: Int?) { heard[status ?? 0, default: 0] += 1 }

    /// Nobody else lost a call.
    var hasPassed: Bool {
        answered > 0 && failed == 0 && undelivered == 0 && unduly == 0 && (hasSignedUp || isCrowded)
            && hasAdmin
    }

    var p50: Duration { waits.quantile(0.5) }
    var p99: Duration { waits.quantile(0.99) }

    /// One row: `812 calls, 0 failed, p50 3.1 ms, p99 9.8 ms, relay 0.31 cores, attackers heard 401 (5)`.
    var row: String {
        let answers = heard.sorted { $0.key < $1.key }.map { status, count in
            "\(status == 0 ? "nothing" : String(status)) (\(count))"
        }
        var words = [
            "\(answered + failed) calls", "\(failed) failed", "p50 \(decimal(p50.inMilliseconds, 1)) ms",
            "p99 \(decimal(p99.inMilliseconds, 1)) ms"
        ]
        if let cores { words.append("relay \(decimal(cores, 2)) cores") }
        if undelivered > 0 { words.append("\(undelivered) not delivered") }
        if unduly > 0 { words.append("\(unduly) answered that should hear nothing") }
        if !hasSignedUp { words.append("a newcomer could not sign up") }
        if !hasAdmin { words.append("the admin listener did not answer") }
        if !answers.isEmpty { words.append("attackers heard " + answers.joined(separator: ", ")) }
        return words.joined(separator: ", ")
    }

    /// - Parameter ledgers: in the order of the attacks.
    static func report(
        _ ledgers: [(attack: SiegeAttack, ledger: SiegeLedger)], _ plan: SiegePlan
    ) -> (report: BenchReport, hasPassed: Bool) {
        var report = BenchReport()
        report.add("seconds_each", plan.seconds, digits: 1)
        for (attack, ledger) in ledgers { report.add(attack.name, .text(ledger.row)) }
        let hasPassed = !ledgers.isEmpty && ledgers.allSatisfy(\.ledger.hasPassed)
        report.add("passed", .flag(hasPassed))
        return (report, hasPassed)
    }
}
