import PushModel
import PushTesting
import Testing
import WireFormats

@testable import Bench

@Suite("What a measurement is made of", .timeLimit(.minutes(30)))
struct MeasureTests {
    @Test("A quantile lies at or above the exact one, and at most a 64th of it above")
    func quantiles() {
        var random = SeededRandom(seed: 11)
        var histogram = LatencyHistogram()
        // From microseconds to minutes, as many in each power of ten.
        let scales: [Int64] = [1, 10, 100, 1_000, 100_000, 10_000_000]
        let micros = (0..<20_000).map { index in
            scales[index % scales.count] * Int64.random(in: 1...9, using: &random)
                + Int64.random(in: 0...9, using: &random)
        }
        for value in micros { histogram.record(nanoseconds: value * 1000) }
        let sorted = micros.sorted()
        for share in [0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1] {
            let exact = Duration.microseconds(sorted[Int((20_000 * share).rounded(.up)) - 1])
            let told = histogram.quantile(share)
            #expect(told >= exact, "\(share)")
            #expect(told <= exact + exact / 64 + .microseconds(1), "\(share)")
        }
        #expect(histogram.total == 20_000)
        #expect(histogram.maximum == .microseconds(sorted[19_999]))
    }

    @Test("No quantile is above the maximum, one value is all of them, and none is zero")
    func edges() {
        var histogram = LatencyHistogram()
        #expect(histogram.quantile(0.5) == .zero && histogram.maximum == .zero)
        histogram.record(nanoseconds: 1_234_567_890)
        for share in [0.001, 0.5, 0.99, 1] {
            #expect(histogram.quantile(share) == .nanoseconds(1_234_567_890))
        }
        // A clock that went back, and a span beyond the last bucket, break nothing.
        histogram.record(nanoseconds: -5)
        histogram.record(nanoseconds: .max)
        #expect(histogram.total == 3)
        #expect(histogram.quantile(0.33) <= .microseconds(1))
        #expect(histogram.maximum == Duration.nanoseconds(Int64.max))
    }

    @Test(
        "A number is written with so many digits, rounded, and without a sign before zero",
        arguments: [
            (0.0, 3, "0.000"), (1.0, 0, "1"), (2.5, 0, "3"), (-1.25, 1, "-1.3"), (0.0004, 3, "0.000"),
            (-0.0004, 3, "0.000"), (0.0005, 3, "0.001"), (12.3456, 2, "12.35"), (0.05, 2, "0.05"),
            (99_999.999, 2, "100000.00"), (7, 4, "7.0000")
        ])
    func decimals(value: Double, digits: Int, text: String) { #expect(decimal(value, digits) == text) }

    @Test("A report is one JSON object, in the order in which it was told, and a table of the same figures")
    func report() throws {
        var report = BenchReport()
        report.add("pushes", 12)
        report.add("p99_milliseconds", 3.14159, digits: 2)
        report.add("service", .text("apns \"x\"\n"))
        report.add("passed", .flag(true))
        report.add("ratio", .nan)
        report.add("rate", .infinity, digits: 0)
        let text = report.json()
        #expect(!text.contains("\n"))
        let json = try #require(try JSONValue.parse(Array(text.utf8)).object)
        #expect(
            json.members.map { $0.name } == [
                "pushes", "p99_milliseconds", "service", "passed", "ratio", "rate"
            ])
        #expect(json["pushes"]?.int64 == 12 && json["p99_milliseconds"] != nil)
        #expect(text.contains(#""p99_milliseconds":3.14,"#))
        #expect(json["service"]?.string == "apns \"x\"\n" && json["passed"] == .bool(true))
        #expect(text.hasSuffix(#""ratio":0.000,"rate":0}"#), "what is no number is told as zero")
        let lines = report.lines()
        #expect(lines.count == 6)
        #expect(lines[0] == "pushes            12")
        #expect(lines[1] == "p99 milliseconds  3.14")
        #expect(lines[3] == "passed            yes")
    }

    @Test("This process's memory and CPU time are read from the system, and a process that is gone has none")
    func usage() throws {
        let before = ProcessUsage.own()
        var sum: UInt64 = 0
        for number in UInt64(0)..<3_000_000 { sum &+= number &* number }
        let after = ProcessUsage.own()
        #expect(sum != 0)
        #expect(after.cpu > before.cpu, "the work between them took time")
        // A test process with its libraries is larger than 4 MiB, and smaller than 64 GiB.
        #expect((4 << 20..<64 << 30).contains(after.residentBytes))
        #expect(ProcessUsage.of(.max) == nil)
    }

    @Test("Every fault of a measurement has a sentence of its own")
    func errors() {
        let sentences = BenchError.Code.allCases.map { BenchError($0).sentence }
        #expect(Set(sentences).count == BenchError.Code.allCases.count)
        #expect(sentences.allSatisfy { $0.hasSuffix(".") })
    }
}
