import Foundation
import PushModel
import WireFormats

/// Writes down what a chaos trial showed.
enum ChaosReport {
    static func make(
        _ plan: ChaosPlan, _ ledger: ChaosLedger, _ companions: [any ChaosCompanion], _ outcome: ChaosOutcome
    ) -> (report: BenchReport, hasPassed: Bool) {
        let result = ChaosResult(ledger)
        var hasPassed =
            result.hasPassed && outcome.drainedIn != nil && outcome.exitStatus == 0
            && ledger.unexpectedStatuses.isEmpty && ledger.answersWithDeadDevices == 0
            && ledger.neverAcknowledged == 0 && ledger.foreignDeliveries == 0
            // Each protocol showed something.
            && !result.shares.isEmpty && result.shares.values.allSatisfy { $0.acknowledged > 0 }
        var report = BenchReport()
        report.add("store", .text(plan.store.rawValue))
        report.add("kills", ledger.kills.count)
        report.add("power_cuts", .flag(plan.powerCuts != nil))
        report.add("without_sync", .flag(plan.withoutSync))
        report.add("seed", .text(String(plan.seed)))
        report.add("requests", ledger.requests)
        report.add("requests_acknowledged", ledger.acknowledgedRequests)
        report.add("requests_repeated_for_want_of_an_answer", ledger.unanswered)
        report.add("refused_for_now", ledger.refusedForNow)
        report.add("never_acknowledged", ledger.neverAcknowledged)
        report.add("pushes", result.pushes)
        report.add("pushes_acknowledged", result.acknowledged)
        report.add("lost", result.lost)
        for (name, share) in result.shares.sorted(by: { $0.key < $1.key }) {
            report.add("\(name)_pushes_acknowledged", share.acknowledged)
            report.add("\(name)_lost", share.lost)
        }
        report.add("doubled", result.doubled)
        report.add("doubled_under_two_names", result.doubledUnderTwoNames)
        report.add("doubled_without_cause", result.doubledWithoutCause)
        if let example = result.example { report.add("example", .text(example)) }
        report.add("oldest_double_milliseconds", Int(result.oldestDouble.inMilliseconds))
        report.add("arrived_unpromised", result.unpromised)
        report.add("registrations_lost_in_answers", ledger.answersWithDeadDevices)
        report.add("unexpected_answers", ledger.unexpectedStatuses.count)
        if let status = ledger.unexpectedStatuses.first { report.add("first_unexpected_status", status) }
        for companion in companions where !companion.report(to: &report, directory: plan.directory) {
            hasPassed = false
        }
        report.add("drain_seconds", outcome.drainedIn?.inSeconds ?? -1, digits: 1)
        report.add("exit_status", Int(outcome.exitStatus ?? -1))
        report.add("passed", .flag(hasPassed))
        return (report, hasPassed)
    }

    /// One JSON object a line for each answered request, as `scripts/powercut/trace.py` reads them.
    ///
    /// - Parameter row: a push's row by the name under which it was sent (decision 0106).
    static func write(_ ledger: ChaosLedger, to path: String, row: (String) -> String?) throws {
        var text: [UInt8] = []
        for answer in ledger.answered {
            var ids: [String] = []
            for mark in answer.marks {
                let sent = Set(ledger.items[mark]?.deliveries.map(\.id) ?? [])
                ids += sent.compactMap(row)
            }
            var writer = JSONWriter()
            writer.beginObject()
            writer.key("port")
            writer.int(Int64(answer.port))
            writer.key("sequence")
            writer.int(Int64(answer.sequence))
            writer.key("status")
            writer.int(Int64(answer.status))
            writer.key("pushes")
            writer.beginArray()
            for id in ids { writer.string(id) }
            writer.endArray()
            writer.endObject()
            text += writer.bytes + [0x0A]
        }
        guard FileManager.default.createFile(atPath: path, contents: Data(text)) else {
            throw BenchError(.fileFault)
        }
    }
}

/// Makes a directory that may be there already.
///
/// - Throws: `.fileFault`.
func makeDirectory(_ path: String) throws(BenchError) {
    do {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    } catch {
        throw BenchError(.fileFault)
    }
}
