import Foundation
import PushModel
import WireFormats

/// Writes down what a chaos trial showed.
enum ChaosReport {
    static func make(
        _ plan: ChaosPlan, _ ledger: TrialLedger, _ companions: [any ChaosCompanion], _ outcome: ChaosOutcome
    ) -> (report: BenchReport, hasPassed: Bool) {
        let verdict = TrialVerdict(ledger)
        var hasPassed = verdict.isSound && outcome.drainedIn != nil && outcome.exitStatus == 0
        var report = BenchReport()
        report.add("store", .text(plan.store.rawValue))
        report.add("kills", ledger.kills.count)
        report.add("power_cuts", .flag(plan.powerCuts != nil))
        report.add("without_sync", .flag(plan.withoutSync))
        report.add("seed", .text(String(plan.seed)))
        verdict.write(to: &report)
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
    static func write(_ ledger: TrialLedger, to path: String, row: (String) -> String?) throws {
        var text: [UInt8] = []
        for answer in ledger.answered {
            var ids: [String] = []
            for mark in answer.marks {
                let sent = Set(ledger.items[mark]?.arrivals.map(\.id) ?? [])
                ids += sent.compactMap(row)
            }
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("port", Int64(answer.port))
            writer.member("sequence", Int64(answer.sequence))
            writer.member("status", Int64(answer.status))
            writer.beginArray("pushes")
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
