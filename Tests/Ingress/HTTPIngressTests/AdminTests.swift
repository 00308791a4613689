@testable import AdminIngress
import CoreMetrics
import HTTPIngress
import PushModel
import PushTesting
import Testing
import WireFormats

/// One line of Prometheus' text format as this file's own small reader sees it.
struct Series: Hashable {
    var name: String
    var labels: [String: String]
}

enum TextFault: Error { case line(String) }

/// Reads the text format strictly: `# HELP` before `# TYPE`, that before a family's first line, no name
/// twice, quoted and escaped labels.
func readMetrics(_ text: String) throws -> (types: [String: String], values: [Series: Double]) {
    var types: [String: String] = [:]
    var values: [Series: Double] = [:]
    guard text.hasSuffix("\n") else { throw TextFault.line("no line break at the end") }
    for line in text.split(separator: "\n") {
        if line.hasPrefix("# HELP ") {
            let words = line.split(separator: " ", maxSplits: 3)
            guard words.count == 4, types[String(words[2])] == nil else { throw TextFault.line(String(line)) }
            continue
        }
        if line.hasPrefix("# TYPE ") {
            let words = line.split(separator: " ")
            guard words.count == 4, types.updateValue(String(words[3]), forKey: String(words[2])) == nil
            else {
                throw TextFault.line(String(line))
            }
            continue
        }
        var rest = Array(line.unicodeScalars)[...]
        let name = take(&rest) {
            ("a"..."z").contains($0) || ("A"..."Z").contains($0) || ("0"..."9").contains($0) || $0 == "_"
                || $0 == ":"
        }
        var labels: [String: String] = [:]
        if rest.first == "{" {
            rest = rest.dropFirst()
            while rest.first != "}" {
                let label = take(&rest) { $0 != "=" }
                guard rest.starts(with: ["=", "\""]) else { throw TextFault.line(String(line)) }
                rest = rest.dropFirst(2)
                var value = ""
                while let scalar = rest.popFirst(), scalar != "\"" {
                    guard scalar == "\\" else {
                        value.unicodeScalars.append(scalar)
                        continue
                    }
                    switch rest.popFirst() {
                    case "n": value += "\n"
                    case "\\": value += "\\"
                    case "\"": value += "\""
                    default: throw TextFault.line(String(line))
                    }
                }
                labels[label] = value
                if rest.first == "," { rest = rest.dropFirst() }
            }
            rest = rest.dropFirst()
        }
        var number = ""
        number.unicodeScalars.append(contentsOf: rest.dropFirst())
        let family =
            ["_bucket", "_sum", "_count"].first {
                name.hasSuffix($0) && types[String(name.dropLast($0.count))] == "histogram"
            }
            .map { String(name.dropLast($0.count)) } ?? name
        guard rest.first == " ", let value = number == "+Inf" ? .infinity : Double(number),
            types[family] != nil,
            values.updateValue(value, forKey: Series(name: name, labels: labels)) == nil
        else { throw TextFault.line(String(line)) }
    }
    return (types, values)
}

private func take(_ rest: inout ArraySlice<Unicode.Scalar>, while isIn: (Unicode.Scalar) -> Bool) -> String {
    var text = ""
    while let scalar = rest.first, isIn(scalar) {
        text.unicodeScalars.append(scalar)
        rest = rest.dropFirst()
    }
    return text
}

@Suite("Metrics in Prometheus' text format", .timeLimit(.minutes(30)))
struct MetricsTests {
    @Test("Each kind is counted as swift-metrics says and read back by an independent reader")
    func kinds() throws {
        let metrics = PrometheusMetrics()
        let counter = Counter(label: "a_total", dimensions: [("x", "1")], factory: metrics)
        counter.increment()
        counter.increment(by: 4)
        Counter(label: "a_total", dimensions: [("x", "1")], factory: metrics).increment(by: 2)
        Counter(label: "a_total", dimensions: [("x", "2")], factory: metrics).increment()
        FloatingPointCounter(label: "f_total", factory: metrics).increment(by: 0.5)
        Gauge(label: "g", factory: metrics).record(7)
        Gauge(label: "g", factory: metrics).record(-3)
        let meter = Meter(label: "m", factory: metrics)
        meter.set(10)
        meter.decrement(by: 2.5)
        let timer = Timer(label: "t_seconds", factory: metrics)
        timer.recordMilliseconds(3)
        timer.recordMilliseconds(5)
        timer.recordSeconds(1000)
        Recorder(label: "sizes", dimensions: [], aggregate: true, factory: metrics).record(3)
        let (types, values) = try readMetrics(
            metrics.text([
                MetricSample("now_value", labels: [("k", "v")], value: 1.25),
                MetricSample("so_far_total", value: 4, isTotal: true)
            ]))
        #expect(types["now_value"] == "gauge" && types["so_far_total"] == "counter")
        #expect(types["a_total"] == "counter" && types["g"] == "gauge" && types["t_seconds"] == "histogram")
        #expect(values[Series(name: "a_total", labels: ["x": "1"])] == 7)
        #expect(values[Series(name: "a_total", labels: ["x": "2"])] == 1)
        #expect(values[Series(name: "f_total", labels: [:])] == 0.5)
        #expect(values[Series(name: "g", labels: [:])] == -3)
        #expect(values[Series(name: "m", labels: [:])] == 7.5)
        #expect(values[Series(name: "now_value", labels: ["k": "v"])] == 1.25)
        let buckets = values.filter { $0.key.name == "t_seconds_bucket" }
        #expect(buckets[Series(name: "t_seconds_bucket", labels: ["le": "0.0025"])] == 0)
        #expect(buckets[Series(name: "t_seconds_bucket", labels: ["le": "0.005"])] == 2)
        #expect(buckets[Series(name: "t_seconds_bucket", labels: ["le": "30"])] == 2)
        #expect(buckets[Series(name: "t_seconds_bucket", labels: ["le": "+Inf"])] == 3)
        #expect(values[Series(name: "t_seconds_count", labels: [:])] == 3)
        #expect(abs((values[Series(name: "t_seconds_sum", labels: [:])] ?? 0) - 1000.008) < 1e-6)
        #expect(values[Series(name: "sizes_count", labels: [:])] == 1)
    }

    @Test("Names and labels of any bytes stay one line of one series")
    func escaping() throws {
        let metrics = PrometheusMetrics()
        let odd = "a\"b\\c\nd{}=,"
        Counter(label: "1 odd-name\n", dimensions: [("la:bel\"", odd)], factory: metrics).increment()
        let (_, values) = try readMetrics(metrics.text())
        #expect(values[Series(name: "__odd_name_", labels: ["la_bel_": odd])] == 1)
    }

    @Test("The number of series is bounded, and what has no room is counted")
    func bounded() throws {
        let metrics = PrometheusMetrics(seriesLimit: 10)
        for index in 0..<25 {
            Counter(label: "c", dimensions: [("i", "\(index)")], factory: metrics).increment()
        }
        Gauge(label: "c", dimensions: [("i", "0")], factory: metrics).record(5)
        let (_, values) = try readMetrics(metrics.text())
        #expect(values.count == 11)
        #expect(values[Series(name: "c", labels: ["i": "0"])] == 1, "another kind does not overwrite")
        #expect(values[Series(name: "sealbell_metrics_dropped_total", labels: [:])] == 16)
    }

    @Test("A listener counts its requests by face and class, its refusals, its connections")
    func listener() async throws {
        let metrics = PrometheusMetrics()
        try await withClient(metrics: metrics) { _, client in
            for _ in 0..<3 {
                try await client.send(post("/echo", "x"))
                _ = try await client.answer()
            }
            try await client.send(get("/none"))
            _ = try await client.answer()
            try await client.send(post("/echo", String(repeating: "x", count: 2000)))
            _ = try await client.answer()
        }
        let (_, values) = try readMetrics(metrics.text())
        let face = ["listener": "public", "face": "probe"]
        func requests(_ status: String) -> Double? {
            values[
                Series(name: "sealbell_http_requests_total", labels: face.merging(["status": status]) { $1 })]
        }
        #expect(requests("2xx") == 3)
        #expect(requests("4xx") == 1)
        #expect(
            values[
                Series(
                    name: "sealbell_http_refusals_total", labels: ["listener": "public", "reason": "notFound"]
                )] == 1)
        #expect(
            values[
                Series(
                    name: "sealbell_http_refusals_total",
                    labels: ["listener": "public", "reason": "bodyTooLarge"])] == 1)
        #expect(values[Series(name: "sealbell_http_connections", labels: ["listener": "public"])] == 0)
        #expect(values[Series(name: "sealbell_http_request_seconds_count", labels: face)] == 4)
    }
}

let probeLane = LaneName(app: configured("acme"), service: .apns, environment: .production)

@Suite("The admin port", .timeLimit(.minutes(30)))
struct AdminFaceTests {
    private static let report = StatusReport(
        version: NoteCode("1"), startedAt: UnixTime(seconds: 100),
        lanes: [
            LaneReport(
                probeLane, .halted, inMemory: 3, parked: 4, reason: .badDeviceToken)
        ],
        outboxRows: 7, outboxBytes: 900)

    private func face(
        token: Secret? = nil, checks: [HealthCheck] = [HealthCheck("store") { true }], world: World = .live
    ) -> AdminFace {
        AdminFace(
            configured("admin"), token: token, metrics: PrometheusMetrics(), checks: checks,
            status: { Self.report }, world: world)
    }

    private func status(_ face: AdminFace, _ headers: [(String, String)], loopback: Bool) async -> Int {
        await face.respond(
            to: HTTPInbound(.get, path: "/metrics", headers: headers, isLoopback: loopback, tag: 1)
        ).status
    }

    @Test(
        "Without a token loopback alone is answered, and nobody who stands behind a proxy or a borrowed name")
    func loopback() async {
        let face = face()
        #expect(await status(face, [("Host", "127.0.0.1:8481")], loopback: true) == 200)
        #expect(await status(face, [("Host", "localhost")], loopback: true) == 200)
        #expect(await status(face, [("Host", "[::1]:8481")], loopback: true) == 200)
        #expect(await status(face, [("Host", "127.0.0.1")], loopback: false) == 403)
        #expect(await status(face, [("Host", "rebound.example")], loopback: true) == 403)
        #expect(await status(face, [("Host", "localhost.evil.example")], loopback: true) == 403)
        for field in ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"] {
            #expect(await status(face, [("Host", "localhost"), (field, "127.0.0.1")], loopback: true) == 403)
        }
    }

    @Test("A token that is configured is asked for on loopback too: a proxy may stand there and say nothing")
    func tokenOnLoopback() async {
        let face = face(token: Secret(Array("correct horse".utf8)))
        for host in ["127.0.0.1:8481", "localhost", "[::1]:8481"] {
            #expect(await status(face, [("Host", host)], loopback: true) == 401)
            let shown = [("Host", host), ("Authorization", "Bearer correct horse")]
            #expect(await status(face, shown, loopback: true) == 200)
        }
    }

    @Test("With a token its bearer is answered from anywhere; wrong ones are refused and then slowed")
    func token() async {
        let face = face(token: Secret(Array("correct horse".utf8)))
        #expect(await status(face, [("Authorization", "Bearer correct horse")], loopback: false) == 200)
        #expect(await status(face, [("authorization", "bearer correct horse")], loopback: false) == 200)
        for wrong in [
            "Bearer correct hors", "Bearer correct horse ", "Basic correct horse", "Bearer ", "correct horse"
        ] {
            #expect(await status(face, [("Authorization", wrong)], loopback: false) == 401)
        }
        #expect(await status(face, [], loopback: false) == 401)
        let twice = [("Authorization", "Bearer correct horse"), ("Authorization", "Bearer correct horse")]
        #expect(await status(face, twice, loopback: false) == 401)
        var last = 0
        for _ in 0..<100 { last = await status(face, [("Authorization", "Bearer x")], loopback: false) }
        #expect(last == 429)
        #expect(await status(face, [("Authorization", "Bearer correct horse")], loopback: false) == 200)
    }

    @Test("Every page answers GET and HEAD over a socket, and nothing else")
    func pages() async throws {
        try await withClient([face()]) { _, client in
            for (path, type) in [
                ("/", "text/html"), ("/metrics", "text/plain"), ("/health/live", "text/plain"),
                ("/health/ready", "application/json"), ("/status", "application/json")
            ] {
                try await client.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                let answer = try await client.answer()
                #expect(answer.status == 200, "\(path)")
                #expect(answer.header("content-type")?.hasPrefix(type) == true)
                #expect(answer.header("cache-control") == "no-store")
                try await client.send("DELETE \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                #expect(try await client.answer().status == 405)
            }
        }
    }

    @Test("Readiness names the check that fails, and one that is silent fails at the deadline")
    func readiness() async throws {
        let clock = ManualClock()
        let face = face(
            checks: [
                HealthCheck("store") { true }, HealthCheck("lanes") { false },
                HealthCheck("silent") {
                    await untilCancelled()
                    return true
                }
            ], world: clock.world(seed: 1))
        async let answer = face.respond(
            to: HTTPInbound(.get, path: "/health/ready", isLoopback: true, tag: 3))
        await clock.sleepers(atLeast: 1)
        clock.advance(by: .seconds(3))
        let found = await answer
        #expect(found.status == 503)
        let text = String(decoding: found.body, as: UTF8.self)
        #expect(text == #"{"ready":false,"checks":{"store":true,"lanes":false,"silent":false}}"#)
    }

    @Test("The status page says lanes, states and counts")
    func statusPage() async {
        let answer = await face().respond(to: HTTPInbound(.get, path: "/status", isLoopback: true, tag: 4))
        let text = String(decoding: answer.body, as: UTF8.self)
        #expect(text.contains(#""state":"halted","in_memory":3,"parked":4,"reason":"BadDeviceToken""#))
        #expect(text.contains(#""reason_at":null,"in_flight":0,"connections":null"#))
        #expect(text.contains(#""outbox":{"rows":7,"bytes":900,"oldest_seconds":null}"#))
        #expect(text.contains(#""origins":null"#) && text.contains(#""alerts":[],"certificates":[]"#))
    }
}

@Suite("Health without a token", .timeLimit(.minutes(30)))
struct OpenHealthTests {
    @Test("Anybody hears whether the relay lives and is ready, and no more; the rest needs the token")
    func strangers() async {
        let face = AdminFace(
            configured("admin"), token: Secret(Array("correct horse".utf8)), metrics: PrometheusMetrics(),
            checks: [HealthCheck("store") { false }], status: { emptyStatus }, world: .live)
        func ask(_ path: String, _ tag: Int, _ headers: [(String, String)] = []) async -> HTTPOutbound {
            await face.respond(to: HTTPInbound(.get, path: path, headers: headers, tag: tag))
        }
        #expect(await ask("/health/live", 2).status == 200)
        let ready = await ask("/health/ready", 3)
        #expect(ready.status == 503)
        #expect(String(decoding: ready.body, as: UTF8.self) == #"{"ready":false}"#)
        let known = await ask("/health/ready", 3, [("Authorization", "Bearer correct horse")])
        #expect(known.status == 503)
        #expect(String(decoding: known.body, as: UTF8.self).contains(#""store":false"#))
        for (path, tag) in [("/", 0), ("/metrics", 1), ("/status", 4)] {
            #expect(await ask(path, tag).status == 401)
        }
    }
}

/// Of a relay that does nothing.
let emptyStatus = StatusReport(
    version: NoteCode("1"), startedAt: UnixTime(seconds: 100), lanes: [], outboxRows: 7, outboxBytes: 900)
