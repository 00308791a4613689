import Foundation
import PushModel
import PushTesting
import Simulators
import Testing
import WebClient
import WireFormats
import ZulipPush

@testable import RelayProgram

/// What a scrape reads, judged by the rules of `promtool check metrics`, and by what it should say.
/// `make check` asks promtool itself.
@Suite("What a scrape of a relay reads", .timeLimit(.minutes(30)))
struct ExpositionTests {
    /// One family as a scrape shows it.
    private struct Family {
        var help: String?
        var kind: String?
        var values: [String: Double] = [:]
    }

    private static func read(_ text: String) -> [String: Family] {
        var families: [String: Family] = [:]
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 3)
            if line.hasPrefix("# HELP "), words.count == 4 {
                families[String(words[2]), default: Family()].help = String(words[3])
            } else if line.hasPrefix("# TYPE "), words.count == 4 {
                families[String(words[2]), default: Family()].kind = String(words[3])
            } else if let end = line.lastIndex(of: " ") {
                let series = line[..<end]
                let name = String(series.prefix { $0 != "{" })
                let family =
                    ["_bucket", "_sum", "_count"].first { name.hasSuffix($0) }
                    .map { String(name.dropLast($0.count)) }.flatMap { families[$0] == nil ? nil : $0 }
                    ?? name
                families[family, default: Family()].values[String(series)] = Double(
                    line[line.index(after: end)...])
            }
        }
        return families
    }

    /// Those of promtool's rules that a relay could break.
    private static func faults(_ families: [String: Family]) -> [String] {
        let units = ["milliseconds", "minutes", "hours", "days", "kilobytes", "megabytes", "percent"]
        let short = ["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "m", "h", "d"]
        var found: [String] = []
        for (name, family) in families {
            func fault(_ words: String) { found.append("\(name): \(words)") }
            let parts = name.split(separator: "_").map(String.init)
            if family.help?.isEmpty != false { fault("no help text") }
            guard let kind = family.kind else {
                fault("no type")
                continue
            }
            if (kind == "counter") != name.hasSuffix("_total") { fault("_total is of counters, and of all") }
            if kind != "histogram", ["_bucket", "_sum", "_count"].contains(where: name.hasSuffix) {
                fault("a histogram's name")
            }
            if name.contains(":") || name.contains(where: \.isUppercase) { fault("not in snake_case") }
            for part in parts where units.contains(part) || short.contains(part) {
                fault("\(part) is no base unit")
            }
            for part in parts where ["counter", "gauge", "histogram", "summary"].contains(part) {
                fault("its type in its name")
            }
            if family.values.isEmpty { fault("no series") }
        }
        return found.sorted()
    }

    @Test("Every family keeps promtool's rules; process, build, age and latency are told and plausible")
    func scrape() async throws {
        try await RelayStage.with(MarmotTests.text()) { stage in
            let began = World.live.now()
            try await stage.run(spans: { $0.spans.zulipReply = .milliseconds(50) }) { relay in
                let (server, apple) = try await relay.join(.apns)
                let google = try await relay.phone(.fcm, of: server)
                #expect(try await server.notify(.test(time: 1), [google], relay).status == 200)
                let sender = try MarmotSender(relay)
                try await sender.ready(relay)
                let woken = stage.apns.subscribe(token: "")
                await sender.publish(try sender.wake(MarmotSender.apple().target))
                _ = try await woken.next("a delivery")
                stage.apns.turn { $0.shutdownUntil = .distantFuture }
                #expect(try await server.notify(.test(time: 2), [apple], relay).status == 200)
                func scrape() async throws -> [String: Family] {
                    Self.read(String(decoding: try await relay.admin("/metrics").body, as: UTF8.self))
                }
                func value(_ family: String, _ all: [String: Family]) -> Double? {
                    all[family]?.values.values.max()
                }
                // Rows and age are two questions to the store, and a push may come or go between them.
                var all: [String: Family] = [:]
                try await asked(for: "one owed push and its age in the metrics") {
                    all = try await scrape()
                    return value("sealbell_outbox_oldest_seconds", all) ?? 0 > 0
                        && value("sealbell_outbox_rows", all) == 1
                }
                #expect(Self.faults(all) == [])
                #expect(
                    all["sealbell_build_info"]?.values.keys.contains {
                        $0.contains("version=\"\(Release.version)\"") && $0.contains("build=\"")
                    } == true)
                let start = try #require(value("process_start_time_seconds", all))
                #expect(start > 1_700_000_000 && start <= Double(began.milliseconds) / 1_000 + 2)
                #expect(value("process_cpu_seconds_total", all) ?? 0 > 0)
                #expect(value("process_resident_memory_bytes", all) ?? 0 > 1_048_576.0)
                let files = value("process_open_fds", all) ?? 0
                #expect(files > 3 && files < value("process_max_fds", all) ?? 0)
                let google1 =
                    "sealbell_push_latency_seconds_count{class=\"normal\",lane=\"acme/fcm/production\"}"
                #expect(all["sealbell_push_latency_seconds"]?.kind == "histogram")
                #expect(all["sealbell_push_latency_seconds"]?.values[google1] ?? 0 >= 1)
            }
        }
    }

    @Test("A lane is untried until there was a connection; origins are counted anew at each look")
    func untried() async throws {
        try await RelayStage.running { relay in
            func status() async throws -> JSONValue {
                try JSONValue.parse(try await relay.admin("/status").body)
            }
            func lane(_ status: JSONValue) -> JSONValue? {
                status["lanes"]?.array?.first { $0["lane"]?.string == "acme/apns/production" }
            }
            let before = try await status()
            // A lane connects at the start, so either may be seen.
            let open = try #require(lane(before)?["connections"]?.int64)
            #expect(lane(before)?["state"]?.string == (open > 0 ? "open" : "untried"))
            #expect(before["origins"]?.int64 == 0)
            let (server, phone) = try await relay.join(.apns)
            #expect(try await server.notify(.test(time: 1), [phone], relay).status == 200)
            try await relay.drained()
            let after = try await status()
            #expect(lane(after)?["state"]?.string == "open" && after["origins"]?.int64 == 1)
            #expect(lane(after)?["reason_at"] == .null && after["refusals"]?.array?.isEmpty == true)
        }
    }

    @Test("While the store does not answer, what is owed is not told as nothing")
    func storeAway() async throws {
        let fault = FailingEngine.Fault()
        try await RelayStage.running(engine: { FailingEngine($0, fault) }) { relay in
            func scrape() async throws -> String {
                String(decoding: try await relay.admin("/metrics").body, as: UTF8.self)
            }
            try await asked(for: "an empty outbox in the metrics") {
                try await scrape().contains("\nsealbell_outbox_rows 0\n")
            }
            fault.set(.unavailable)
            try await asked(for: "metrics without an outbox") {
                try await !scrape().contains("sealbell_outbox_rows")
            }
            let status = try JSONValue.parse(try await relay.admin("/status").body)
            #expect(status["outbox"]?["rows"] == .null && status["outbox"]?["bytes"] == .null)
            let page = String(decoding: try await relay.admin("/").body, as: UTF8.self)
            #expect(page.contains("the store does not say what is owed"))
        }
    }
}
