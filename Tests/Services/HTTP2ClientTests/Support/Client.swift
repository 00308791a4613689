import Dialling
@testable import HTTP2Client
import NIOPosix
import PushModel

extension HTTP2Options {
    /// Deadlines that only a peer that does not answer at all can miss, however loaded the machine is. A test
    /// of a deadline sets that one by itself.
    static var patient: HTTP2Options {
        var options = HTTP2Options()
        options.requestDeadline = .seconds(600)
        options.connectDeadline = .seconds(600)
        options.pingAfterSilence = .seconds(600)
        options.pongDeadline = .seconds(600)
        options.proofDeadline = .seconds(600)
        options.backoffBase = .milliseconds(10)
        options.backoffCap = .milliseconds(100)
        return options
    }
}

/// The bounds of a request that is no push's, for a caller as patient as the pool.
private final class Terms: HTTP2Terms {
    let sendBefore: ContinuousClock.Instant
    let isUnrepeatable: Bool
    var answerBy: ContinuousClock.Instant? { nil }

    init(_ sendBefore: ContinuousClock.Instant, _ isUnrepeatable: Bool) {
        self.sendBefore = sendBefore
        self.isUnrepeatable = isUnrepeatable
    }
}

extension HTTP2Pool {
    /// Sends a request that is no push's.
    func request(
        _ request: HTTP2Request, on slot: HTTP2Slot, sendBefore: ContinuousClock.Instant,
        isUnrepeatable: Bool = false
    ) async -> HTTP2Answer {
        slot.take(request, within: Terms(sendBefore, isUnrepeatable), begun: moment)
        return await send(on: slot)
    }
}

/// A pool that runs for the length of a test, and requests to send through it.
struct Client: Sendable {
    let pool: HTTP2Pool
    let template: HTTP2HeaderTemplate

    init(
        port: Int, options: HTTP2Options = .patient, host: String = "127.0.0.1",
        proxy: HTTP2Endpoint.Proxy? = nil, world: World = .live
    ) throws {
        let certificate = try TestCertificate.shared.get()
        try self.init(
            endpoint: try HTTP2Endpoint(
                url: "https://\(host):\(port)", certificates: certificate.pem, proxy: proxy),
            options: options, world: world)
    }

    init(
        endpoint: HTTP2Endpoint, options: HTTP2Options = .patient, world: World = .live,
        journal: Journal = .silent, group: MultiThreadedEventLoopGroup = .singleton
    ) throws {
        pool = try HTTP2Pool(
            endpoint: endpoint, options: options, group: group, world: world, journal: journal,
            lane: LaneName("acme-chat/apns/production"))
        template = HTTP2HeaderTemplate(
            authority: endpoint.authority, fixed: [("apns-push-type", "alert")],
            varying: [("apns-id", .nameOnce)])
    }

    /// For the name `localhost` with those addresses.
    init(
        dialling: DialOptions, port: Int, proxy: HTTP2Endpoint.Proxy? = nil, journal: Journal = .silent,
        group: MultiThreadedEventLoopGroup = .singleton
    ) throws {
        var options = HTTP2Options.patient
        options.dialling = dialling
        let certificate = try TestCertificate.shared.get()
        try self.init(
            endpoint: try HTTP2Endpoint(
                url: "https://localhost:\(port)", certificates: certificate.pem, proxy: proxy),
            options: options, journal: journal, group: group)
    }

    func request(path: String = "/3/device/00aa", id: Int = 1, body: [UInt8] = Array("{}".utf8))
        -> HTTP2Request
    {
        let head = HTTP2Head(capacity: path.utf8.count + 20) { writer in
            for byte in path.utf8 { writer.append(byte) }
            writer.endField()
            writer.append(decimal: Int64(id))
            writer.endField()
        }
        let authorization = HTTP2Authorization(scheme: "bearer", token: Secret(Array("a.b.c".utf8)))
        return HTTP2Request(template: template, head: head, authorization: authorization, body: Secret(body))
    }

    func send(_ request: HTTP2Request) async throws -> HTTP2Answer {
        let slot = try await pool.reserve()
        return await pool.request(request, on: slot, sendBefore: .now + .seconds(600))
    }

    /// Sends until it is answered: for requests after a fault, which a loaded machine may let meet it too.
    func sendUntilAnswered(_ request: HTTP2Request) async throws -> HTTP2Answer {
        while true {
            try Task.checkCancellation()
            let answer = try await send(request)
            if answer.cause == .answered { return answer }
        }
    }

    /// Sends `count` requests, `width` at a time, each until it is not left unprocessed, as a lane would.
    func send(_ count: Int, width: Int, body: [UInt8] = Array("{}".utf8)) async throws -> [HTTP2Answer] {
        try await withThrowingTaskGroup(of: [HTTP2Answer].self) { group in
            for worker in 0..<width {
                group.addTask {
                    var answers: [HTTP2Answer] = []
                    for id in stride(from: worker, to: count, by: width) {
                        var answer = try await send(request(id: id, body: body))
                        while answer.fate == .unprocessed {
                            answer = try await send(request(id: id, body: body))
                        }
                        answers.append(answer)
                    }
                    return answers
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Runs the pool while `body` runs; both have ended when this returns.
    func running<Result: Sendable>(_ body: @Sendable @escaping (Client) async throws -> Result) async throws
        -> Result
    {
        try await runs({ try await pool.run() }, during: { try await body(self) })
    }
}

/// Runs a service for as long as `body` runs; both have ended when this returns.
func runs<Result: Sendable>(
    _ service: @Sendable @escaping () async throws -> Void,
    during body: @Sendable @escaping () async throws -> Result
) async throws -> Result {
    try await withThrowingTaskGroup(of: Result?.self) { group in
        group.addTask {
            try await service()
            return nil
        }
        group.addTask { try await body() }
        var result: Result?
        while result == nil, let next = try await group.next() { result = next }
        group.cancelAll()
        while try await group.next() != nil {}
        guard let result else { throw CancellationError() }
        return result
    }
}
