package import NIOCore
import NIOHTTP1
public import PushModel
public import ServiceLifecycle

/// A small HTTP/1.1 endpoint on loopback through which another process reads and controls the simulators, for
/// chaos runs and benchmarks. It has no authentication, so it listens on 127.0.0.1 only.
///
/// `<name>` is a simulator's own (`SteeredSimulator.name`): `production`, `sandbox`, …
/// - `GET /<name>/counters`
/// - `GET /<name>/deliveries?after=N&limit=M[&ids=1]`: at most 4,096; with `ids` only number and id.
/// - `POST /<name>/knobs`: `{"connection": {…}, "service": {…}, "goAway": {…}, "kill": true,
///   "lapse": "mute" | "dead"}`, each optional.
/// - `POST /<name>/devices`: an array of `{"token", "topics" | "project", "state": "live" | "removed" |
///   "expired" | "unknown", "sinceMilliseconds", "isOnline"}`.
/// - `POST /<name>/keys`: an array of `{"keyID", "environments": ["production" | "sandbox"]}`, or
///   `{"keyID", "isRevoked": true}`.
///
/// A network that carries messages itself is written to by `POST /<name>/messages`; the answer is
/// `{"told": N}`, to how many connections the network told it.
public final class SimulatorControl: Service {
    private let listener: SimulatorListener
    private let wantedPort: Int
    private let simulators: [String: any SteeredSimulator]
    private let posts: [String: SimulatedPost]

    /// - Parameters:
    ///   - simulators: no two may have the same name.
    ///   - posts: networks that are written to; as above.
    ///   - port: 0 for any free one.
    package init(
        _ simulators: [any SteeredSimulator], posts: [SimulatedPost] = [], port: Int = 0,
        eventLoopGroup: any EventLoopGroup
    ) {
        self.simulators = Dictionary(simulators.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        self.posts = Dictionary(posts.map { ($0.name, $0) }, uniquingKeysWith: { $1 })
        wantedPort = port
        listener = SimulatorListener(group: eventLoopGroup)
    }

    /// Binds the port and serves.
    ///
    /// - Returns: the port, 1 to 65,535.
    /// - Throws: `.portNotFree`, `.alreadyStarted`.
    @discardableResult
    public func start() async throws(SimulatorError) -> Int {
        guard listener.port == nil else { throw SimulatorError(.alreadyStarted) }
        let (simulators, posts) = (simulators, posts)
        return try await listener.start(host: "127.0.0.1", port: wantedPort) { channel in
            try channel.pipeline.syncOperations.configureHTTPServerPipeline()
            try channel.pipeline.syncOperations.addHandler(
                PlainConnection(judge: ControlJudge(simulators, posts), board: nil, world: .live))
        }
    }

    /// Starts, unless it is already started, and serves until graceful shutdown.
    ///
    /// - Throws: as ``start()``.
    public func run() async throws {
        if listener.port == nil { try await start() }
        try? await gracefulShutdown()  // Throws only when cancelled, which is the end as well.
        await stop()
    }

    /// Closes the port and every connection.
    public func stop() async { await listener.stop() }

    /// 1 to 65,535; `nil` before ``start()``.
    public var port: Int? { listener.port }
}

/// Answers the control endpoint's requests.
private final class ControlJudge: ConnectionJudge {
    /// Most deliveries in one answer.
    private static let page = 4096

    private let simulators: [String: any SteeredSimulator]
    private let posts: [String: SimulatedPost]

    init(_ simulators: [String: any SteeredSimulator], _ posts: [String: SimulatedPost]) {
        (self.simulators, self.posts) = (simulators, posts)
    }

    private static func isPost(_ request: SimulatedRequest) -> Bool {
        request[.method]?.elementsEqual("POST".utf8) ?? false
    }

    private static func target(_ request: SimulatedRequest) -> (path: [String], query: Substring) {
        let target = String(decoding: request[.path] ?? [], as: UTF8.self)
        let halves = target.split(separator: "?", maxSplits: 1)
        return ((halves.first ?? "").split(separator: "/").map(String.init), halves.dropFirst().first ?? "")
    }

    func later(_ request: SimulatedRequest, on loop: any EventLoop) -> EventLoopFuture<SimulatedAnswer>? {
        let path = Self.target(request).path
        guard Self.isPost(request), path.count == 2, path[1] == "messages", let post = posts[path[0]] else {
            return nil
        }
        let promise = loop.makePromise(of: SimulatedAnswer.self)
        do throws(SimulatorError) {
            try post.take(try Self.body(request)) { told in
                promise.succeed(Self.answer(200, ["told": .number(told)]))
            }
        } catch {
            promise.succeed(Self.answer(400, ["error": .string(error.codeText)]))
        }
        return promise.futureResult
    }

    func judge(_ request: SimulatedRequest) -> SimulatedAnswer {
        let (path, query) = Self.target(request)
        guard path.count == 2, let simulator = simulators[path[0]] else {
            return Self.answer(404, ["error": "notFound"])
        }
        let isPost = Self.isPost(request)
        do throws(SimulatorError) {
            switch (isPost, path[1]) {
            case (false, "counters"): return Self.answer(200, Self.counters(simulator))
            case (false, "deliveries"):
                return Self.answer(200, Self.deliveries(simulator, query))
            case (true, "knobs"): try Self.turn(simulator, try Self.body(request))
            case (true, "devices"):
                let tree = try Self.body(request)
                for item in try tree.known(tree.items) { try simulator.register(SteeringOrder(tree: item)) }
            case (true, "keys"):
                let tree = try Self.body(request)
                for item in try tree.known(tree.items) { try simulator.bind(SteeringOrder(tree: item)) }
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

    private static func counters(_ simulator: any SteeredSimulator) -> JSONTree {
        let counters = simulator.counters
        let reasons = counters.byReason.sorted { $0.key < $1.key }
            .map { JSONTree.Member(name: $0.key, value: .number($0.value)) }
        return [
            "received": .number(counters.received), "accepted": .number(counters.accepted),
            "doubles": .number(counters.doubles), "tokensIssued": .number(counters.tokensIssued),
            "unheard": .number(counters.unheard), "openConnections": .number(simulator.openConnections),
            "byReason": .object(reasons)
        ]
    }

    private static func deliveries(_ simulator: any SteeredSimulator, _ query: Substring) -> JSONTree {
        var after = 0
        var limit = page
        var idsOnly = false
        for pair in query.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            switch parts[0] {
            case "after": after = Int(parts[1]) ?? 0
            case "limit": limit = min(page, max(0, Int(parts[1]) ?? 0))
            case "ids": idsOnly = parts[1] == "1"
            default: break
            }
        }
        let list = simulator.deliveries(after: after, limit: limit)
        return .array(list.map { $0.tree(idsOnly: idsOnly) })
    }

    private static func turn(
        _ simulator: any SteeredSimulator, _ tree: JSONTree
    ) throws(SimulatorError) {
        for member in try tree.known(tree.members) {
            let value = member.value
            switch member.name {
            case "connection":
                var knobs = simulator.connectionKnobs
                try knobs.turn(value)
                let turned = knobs
                simulator.turnConnections { $0 = turned }
            case "service": try simulator.turn(SteeringOrder(tree: value))
            case "goAway": simulator.goAway(try GoAwayKnob(value))
            case "kill": simulator.killConnections()
            case "lapse":
                try simulator.lapse(try tree.known(value.text.flatMap { ConnectionLapse(rawValue: $0) }))
            default: throw SimulatorError(.knobNotKnown)
            }
        }
    }

    private static func answer(_ status: Int, _ tree: JSONTree) -> SimulatedAnswer {
        SimulatedAnswer(status: status, contentType: "application/json", body: tree.bytes)
    }
}

extension Delivery {
    /// The body in base64, because it may not be text.
    fileprivate func tree(idsOnly: Bool) -> JSONTree {
        if idsOnly { return ["number": .number(number), "id": .string(id)] }
        return [
            "number": .number(number), "id": .string(id), "token": .string(token), "topic": .string(topic),
            "pushType": pushType.map { .string($0.rawValue) } ?? .null, "priority": .number(priority),
            "expirationSeconds": expirationSeconds.map { .number($0) } ?? .null,
            "collapseID": collapseID.map { .string($0) } ?? .null,
            "body": .string(SimulatorBase64.encode(body)),
            "receivedAtMilliseconds": .number(receivedAt.milliseconds), "isDouble": .bool(isDouble)
        ]
    }
}
