import PushModel
import Synchronization

/// The state that the connections of a simulated FCM share, behind one lock.
final class FCMState: DeliveryKeeper {
    let world: World
    private let inner: Mutex<Inner>

    struct Inner {
        var judge = FCMJudge()
        var log: DeliveryLog
        var knobs: FCMKnobs
        var strays = StrayAnswers()
        var tokenStrays = StrayAnswers()
        var audiences: Set<String> = []
    }

    init(_ configuration: FCMSimulatorConfiguration, world: World) throws(SimulatorError) {
        self.world = world
        var judge = FCMJudge()
        for account in configuration.accounts { try judge.tokens.register(account) }
        judge.otherProjects = configuration.otherProjects
        inner = Mutex(
            Inner(
                judge: judge,
                log: DeliveryLog(
                    capacity: configuration.keptDeliveries, bodyBytes: configuration.keptBodyBytes, doubles: 1
                ),
                knobs: configuration.knobs))
        turn { _ in }
    }

    func mutate<Value: Sendable>(_ body: (inout Inner) -> Value) -> Value { inner.withLock { body(&$0) } }

    func log<Value: Sendable>(_ body: (inout DeliveryLog) -> Value) -> Value {
        inner.withLock { body(&$0.log) }
    }

    func register(_ account: ServiceAccountRegistration) throws(SimulatorError) {
        try inner.withLock { inner throws(SimulatorError) in try inner.judge.tokens.register(account) }
    }

    func turn(_ change: (inout FCMKnobs) -> Void) {
        inner.withLock { inner in
            change(&inner.knobs)
            inner.judge.learns = inner.knobs.learnsDevices
            inner.strays.turn(inner.knobs.strays)
            inner.tokenStrays.turn(inner.knobs.tokenStrays)
            inner.judge.projectRate = inner.knobs.projectMinuteLimit.map {
                Rate(count: $0, per: .seconds(60))
            }
            inner.judge.deviceMinute = inner.knobs.deviceMinuteLimit.map {
                Rate(count: $0, per: .seconds(60))
            }
            inner.judge.deviceHour = inner.knobs.deviceHourLimit.map { Rate(count: $0, per: .seconds(3600)) }
        }
    }

    func answer(_ request: SimulatedRequest) -> SimulatedAnswer {
        Self.isForToken(request) ? token(request) : send(request)
    }

    static func isForToken(_ request: SimulatedRequest) -> Bool {
        request[.path]?.elementsEqual("/token".utf8) ?? false
    }

    // MARK: the token endpoint

    private func token(_ request: SimulatedRequest) -> SimulatedAnswer {
        let now = world.now()
        return inner.withLock { inner in
            var answer = issue(request, now, &inner)
            answer.delay = inner.knobs.tokenDelay
            return answer
        }
    }

    private func issue(_ request: SimulatedRequest, _ now: UnixTime, _ inner: inout Inner) -> SimulatedAnswer
    {
        if let stray = inner.tokenStrays.take(for: nil, random: world.random) {
            inner.log.countRefused("stray \(stray.status)")
            return SimulatedAnswer(stray)
        }
        guard request[.method]?.elementsEqual("POST".utf8) ?? false else { return Self.page(405) }
        switch inner.knobs.tokenFault {
        case .serverError: return Self.page(500)
        case .tooMany(let after):
            return SimulatedAnswer(
                status: 429, contentType: Self.json, retryAfter: Self.text(after, now),
                body: JSONTree.object([.init(name: "error", value: "rate_limit_exceeded")]).bytes)
        case .none, .noExpiry, .oversized: break
        }
        do throws(TokenRefusal) {
            let project = try inner.judge.tokens.judge(request, audiences: inner.audiences, now: now)
            let token = "ya29." + SimulatorBase64.encodeURL(world.randomBytes(96))
            let life = inner.knobs.tokenLifeSeconds
            inner.judge.tokens.issue(token, project: project, expires: now + .seconds(life))
            inner.log.countToken()
            return SimulatedAnswer(
                status: 200, contentType: Self.json, body: Self.tokenBody(token, life, inner.knobs.tokenFault)
            )
        } catch {
            inner.log.countRefused(error.code)
            let body: JSONTree = [
                "error": .string(error.code), "error_description": "The assertion was refused."
            ]
            return SimulatedAnswer(status: error.http, contentType: Self.json, body: body.bytes)
        }
    }

    private static func tokenBody(_ token: String, _ life: Int64, _ fault: FCMKnobs.TokenFault) -> [UInt8] {
        var members: [JSONTree.Member] = [.init(name: "access_token", value: .string(token))]
        if fault != .noExpiry { members.append(.init(name: "expires_in", value: .number(life))) }
        members.append(.init(name: "token_type", value: "Bearer"))
        if case .oversized(let bytes) = fault {
            members.append(
                .init(name: "padding", value: .string(String(repeating: "x", count: min(bytes, 1 << 20)))))
        }
        return JSONTree.object(members).bytes
    }

    // MARK: the send endpoint

    private func send(_ request: SimulatedRequest) -> SimulatedAnswer {
        let now = world.now()
        var heard: (Delivery, [AsyncStream<Delivery>.Continuation])?
        let answer = inner.withLock { inner -> SimulatedAnswer in
            inner.log.countReceived()
            if let stray = inner.strays.take(for: address(of: request, inner), random: world.random) {
                inner.log.countRefused("stray \(stray.status)")
                return SimulatedAnswer(stray)
            }
            if let error = failure(inner.knobs) { return refusal(error, now, &inner) }
            switch inner.judge.judge(request, now: now) {
            case .page(let status):
                inner.log.countRefused(status == 404 ? "page_not_found" : "method_not_allowed")
                return Self.page(status)
            case .refused(let error):
                return refusal(error, now, &inner)
            case .accepted(let message, let project, let address):
                let id = PushID(at: now, random: world.random(), world.random())
                let name = "projects/\(project)/messages/\(id.text)"
                if !message.validatesOnly {
                    _ = inner.log.countAccepted(nil)
                    let delivery = Delivery(
                        number: inner.log.counters.accepted, id: name, token: address, topic: project,
                        pushType: nil,
                        priority: message.isHigh ? 10 : 5,
                        expirationSeconds: message.ttlSeconds.map { $0 == 0 ? 0 : now.seconds + $0 },
                        collapseID: message.collapseKey, body: request.body, receivedAt: now, isDouble: false)
                    inner.log.record(delivery)
                    heard = (delivery, inner.log.listeners(for: address))
                }
                return SimulatedAnswer(
                    status: 200, contentType: Self.json,
                    body: JSONTree.object([.init(name: "name", value: .string(name))]).bytes,
                    weight: .accepted)
            }
        }
        if let (delivery, listeners) = heard { tell(delivery, listeners) }
        return answer
    }

    /// The address in a request, read only if a stray answer depends on it.
    private func address(of request: SimulatedRequest, _ inner: borrowing Inner) -> String? {
        guard inner.strays.asksForAddress, let message = JSONTree(request.body)?["message"] else {
            return nil
        }
        return message["token"]?.text ?? message["fid"]?.text
    }

    private func failure(_ knobs: FCMKnobs) -> SimulatedFCMError? {
        func happens(_ share: Double) -> Bool {
            share > 0 && Double(world.random() >> 11) / Double(UInt64(1) << 53) < share
        }
        if happens(knobs.errorShare) { return .internalError }
        return happens(knobs.unavailableShare) ? .unavailable : nil
    }

    private func refusal(_ error: SimulatedFCMError, _ now: UnixTime, _ inner: inout Inner) -> SimulatedAnswer
    {
        inner.log.countRefused(error.reason)
        let carriesDelay = error.http == 429 || error.http == 503
        return SimulatedAnswer(
            status: error.http, contentType: Self.json,
            retryAfter: carriesDelay ? Self.text(inner.knobs.retryAfter, now) : nil, body: error.body,
            weight: error.http < 500 ? .rejected(withGoodToken: true) : .neutral)
    }

    private static let json = "application/json; charset=UTF-8"

    private static func page(_ status: Int) -> SimulatedAnswer {
        let text =
            "<!DOCTYPE html>\n<html lang=en>\n<title>Error \(status)</title>\n"
            + "<p><b>\(status).</b> That’s an error.\n"
        return SimulatedAnswer(
            status: status, contentType: "text/html; charset=UTF-8", body: Array(text.utf8))
    }

    private static func text(_ after: FCMKnobs.RetryAfter, _ now: UnixTime) -> String? {
        switch after {
        case .off: nil
        case .seconds(let seconds): String(seconds)
        case .date(let ahead): HTTPDate.text(now + .seconds(ahead))
        }
    }
}
