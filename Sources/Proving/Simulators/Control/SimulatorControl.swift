public import NIOCore
import NIOHTTP1
import PushModel
public import ServiceLifecycle

/// A small HTTP/1.1 endpoint on loopback through which another process reads and turns the simulators: for
/// chaos runs and benchmarks. It has no authentication, so it listens on 127.0.0.1 alone.
///
/// `<name>` is `production`, `sandbox` or `fcm`.
/// - `GET /<name>/counters`
/// - `GET /<name>/deliveries?after=N&limit=M[&ids=1]`: at most 4,096; with `ids` only number and id.
/// - `POST /<name>/knobs`: `{"connection": {…}, "service": {…}, "goAway": {…}, "kill": true}`, each optional.
/// - `POST /<name>/devices`: an array of `{"token", "topics" | "project", "state": "live" | "removed" |
///   "expired" | "unknown", "sinceMilliseconds", "isOnline"}`.
public final class SimulatorControl: Service {
    private let listener: SimulatorListener
    private let wantedPort: Int
    private let parts: Parts

    struct Parts: Sendable {
        var apns: [String: APNsSimulator]
        var fcm: FCMSimulator?
    }

    /// - Parameters:
    ///   - apns: at most one of each environment.
    ///   - port: 0 for any free one.
    public init(apns: [APNsSimulator], fcm: FCMSimulator?, port: Int = 0, eventLoopGroup: any EventLoopGroup)
    {
        var named: [String: APNsSimulator] = [:]
        for simulator in apns { named[simulator.environment.rawValue] = simulator }
        parts = Parts(apns: named, fcm: fcm)
        wantedPort = port
        listener = SimulatorListener(group: eventLoopGroup)
    }

    /// Binds the port and serves.
    ///
    /// - Returns: the port.
    /// - Throws: `.portNotFree`, `.alreadyStarted`.
    @discardableResult
    public func start() async throws(SimulatorError) -> Int {
        guard listener.port == nil else { throw SimulatorError(.alreadyStarted) }
        let parts = parts
        return try await listener.start(host: "127.0.0.1", port: wantedPort) { channel in
            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
            try channel.pipeline.syncOperations.addHandler(
                PlainConnection(judge: ControlJudge(parts), board: nil, world: .live))
        }
    }

    /// Starts, unless that was done, and serves until graceful shutdown.
    public func run() async throws {
        if listener.port == nil { try await start() }
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
        await stop()
    }

    public func stop() async { await listener.stop() }

    /// `nil` before ``start()``.
    public var port: Int? { listener.port }
}

/// Answers the control endpoint's requests.
private final class ControlJudge: ConnectionJudge {
    /// Most deliveries in one answer.
    private static let page = 4096

    private let parts: SimulatorControl.Parts
    init(_ parts: SimulatorControl.Parts) { self.parts = parts }

    func judge(_ request: SimulatedRequest) -> SimulatedAnswer {
        let target = String(decoding: request[.path] ?? [], as: UTF8.self)
        let halves = target.split(separator: "?", maxSplits: 1)
        let path = (halves.first ?? "").split(separator: "/").map(String.init)
        guard path.count == 2, path[0] == "fcm" ? parts.fcm != nil : parts.apns[path[0]] != nil else {
            return Self.answer(404, ["error": "notFound"])
        }
        let isPost = request[.method]?.elementsEqual("POST".utf8) ?? false
        do throws(SimulatorError) {
            switch (isPost, path[1]) {
            case (false, "counters"): return Self.answer(200, counters(path[0]))
            case (false, "deliveries"):
                return Self.answer(200, deliveries(path[0], halves.count > 1 ? halves[1] : ""))
            case (true, "knobs"): try turn(path[0], try Self.body(request))
            case (true, "devices"): try devices(path[0], try Self.body(request))
            default: return Self.answer(404, ["error": "notFound"])
            }
            return Self.answer(200, .object([]))
        } catch {
            return Self.answer(400, ["error": .string(error.codeText)])
        }
    }

    private static func body(_ request: SimulatedRequest) throws(SimulatorError) -> JSONTree {
        guard request.bodyBytes == request.body.count, let tree = JSONTree(request.body) else {
            throw SimulatorError(.knobNotKnown)
        }
        return tree
    }

    private func counters(_ name: String) -> JSONTree {
        let counters = name == "fcm" ? parts.fcm?.counters : parts.apns[name]?.counters
        let open = name == "fcm" ? parts.fcm?.openConnections : parts.apns[name]?.openConnections
        guard let counters, let open else { return .null }
        let reasons = counters.byReason.sorted { $0.key < $1.key }
            .map { JSONTree.Member(name: $0.key, value: .number($0.value)) }
        return [
            "received": .number(counters.received), "accepted": .number(counters.accepted),
            "doubles": .number(counters.doubles), "tokensIssued": .number(counters.tokensIssued),
            "unheard": .number(counters.unheard), "openConnections": .number(open),
            "byReason": .object(reasons)
        ]
    }

    private func deliveries(_ name: String, _ query: Substring) -> JSONTree {
        var after = 0
        var limit = Self.page
        var idsOnly = false
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            switch parts[0] {
            case "after": after = Int(parts[1]) ?? 0
            case "limit": limit = min(Self.page, max(0, Int(parts[1]) ?? 0))
            case "ids": idsOnly = parts[1] == "1"
            default: break
            }
        }
        let list =
            name == "fcm"
            ? parts.fcm?.deliveries(after: after, limit: limit)
            : parts.apns[name]?.deliveries(after: after, limit: limit)
        return .array((list ?? []).map { $0.tree(idsOnly: idsOnly) })
    }

    private func turn(_ name: String, _ tree: JSONTree) throws(SimulatorError) {
        for member in try tree.known(tree.members) {
            let value = member.value
            switch member.name {
            case "connection":
                var knobs = try tree.known(
                    name == "fcm" ? parts.fcm?.connectionKnobs : parts.apns[name]?.connectionKnobs)
                try knobs.turn(value)
                let turned = knobs
                parts.fcm.flatMap { name == "fcm" ? $0 : nil }?.turnConnections { $0 = turned }
                parts.apns[name]?.turnConnections { $0 = turned }
            case "service":
                if let apns = parts.apns[name] {
                    var knobs = apns.knobs
                    try knobs.turn(value, now: apns.now)
                    let turned = knobs
                    apns.turn { $0 = turned }
                } else if let fcm = parts.fcm {
                    var knobs = fcm.knobs
                    try knobs.turn(value)
                    let turned = knobs
                    fcm.turn { $0 = turned }
                }
            case "goAway":
                let plan = try GoAwayPlan(value)
                if let apns = parts.apns[name] { apns.goAway(plan) } else { parts.fcm?.goAway(plan) }
            case "kill":
                if let apns = parts.apns[name] {
                    apns.killConnections()
                } else {
                    parts.fcm?.killConnections()
                }
            default: throw SimulatorError(.knobNotKnown)
            }
        }
    }

    private func devices(_ name: String, _ tree: JSONTree) throws(SimulatorError) {
        for item in try tree.known(tree.items) {
            let token = try tree.known(item["token"]?.text)
            let state = item["state"]?.text ?? "live"
            if let apns = parts.apns[name] {
                let since = item["sinceMilliseconds"]?.integer.map { UnixTime(milliseconds: $0) } ?? apns.now
                let topics = (item["topics"]?.items ?? []).compactMap(\.text)
                var device = apns.device(token) ?? APNsDevice(topics: topics)
                if !topics.isEmpty { device.topics = topics }
                if let isOnline = item["isOnline"]?.flag { device.isOnline = isOnline }
                switch state {
                case "live": device.state = .live
                case "removed": device.state = .removed(since: since)
                case "expired": device.state = .expired(since: since)
                case "unknown":
                    apns.forget(token)
                    continue
                default: throw SimulatorError(.knobNotKnown)
                }
                apns.register(token, as: device)
            } else if let fcm = parts.fcm {
                if state == "unknown" {
                    fcm.forget(token)
                    continue
                }
                let project = try tree.known(item["project"]?.text ?? fcm.device(token)?.project)
                fcm.register(token, as: FCMDevice(project: project, isLive: state == "live"))
            }
        }
    }

    private static func answer(_ status: Int, _ tree: JSONTree) -> SimulatedAnswer {
        SimulatedAnswer(status: status, contentType: "application/json", body: tree.bytes)
    }
}

extension Delivery {
    /// The body as base64, for it need not be text.
    fileprivate func tree(idsOnly: Bool) -> JSONTree {
        if idsOnly { return ["number": .number(number), "id": .string(id)] }
        return [
            "number": .number(number), "id": .string(id), "token": .string(token), "topic": .string(topic),
            "pushType": pushType.map { .string($0.rawValue) } ?? .null, "priority": .number(priority),
            "expirationSeconds": expirationSeconds.map { .number($0) } ?? .null,
            "collapseID": collapseID.map { .string($0) } ?? .null, "body": .string(Base64.encode(body)),
            "receivedAtMilliseconds": .number(receivedAt.milliseconds), "isDouble": .bool(isDouble)
        ]
    }
}
