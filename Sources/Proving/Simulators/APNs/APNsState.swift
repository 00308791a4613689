import PushModel
import Synchronization

/// The state that the connections of a simulated APNs share, behind one lock.
final class APNsState: DeliveryKeeper {
    let world: World
    private let environment: APNsEnvironment
    private let inner: Mutex<Inner>

    struct Inner: ~Copyable {
        var judge: APNsJudge
        var log: DeliveryLog
        var knobs: APNsKnobs
        var strays = StrayAnswers()
        /// One notification for each token and topic of an offline device (docs/push-services.md §2.3).
        var stored: [String: [String: Delivery]] = [:]
        var storedCount = 0
    }

    /// How many offline notifications are kept in all; more are dropped, as at APNs.
    private static let storedLimit = 10_000

    init(_ configuration: APNsSimulatorConfiguration, world: World) throws(SimulatorError) {
        self.world = world
        environment = configuration.environment
        var tokens = ProviderTokens(environment: configuration.environment)
        for key in configuration.keys { try tokens.register(key) }
        inner = Mutex(
            Inner(
                judge: APNsJudge(
                    tokens: tokens, devices: APNsDevices(learns: configuration.knobs.learnsDevices)),
                log: DeliveryLog(
                    capacity: configuration.keptDeliveries, bodyBytes: configuration.keptBodyBytes,
                    doubles: configuration.rememberedIDs),
                knobs: configuration.knobs))
        turn { _ in }
    }

    /// Changes or reads what is shared.
    func mutate<Value: Sendable>(_ body: (inout Inner) -> Value) -> Value {
        inner.withLock { body(&$0) }
    }

    func log<Value: Sendable>(_ body: (inout DeliveryLog) -> Value) -> Value {
        inner.withLock { body(&$0.log) }
    }

    func register(_ key: APNsKeyRegistration) throws(SimulatorError) {
        try inner.withLock { inner throws(SimulatorError) in try inner.judge.tokens.register(key) }
    }

    func turn(_ change: (inout APNsKnobs) -> Void) {
        inner.withLock { inner in
            change(&inner.knobs)
            inner.judge.devices.learns = inner.knobs.learnsDevices
            inner.strays.turn(inner.knobs.strays)
            inner.judge.deviceRate = inner.knobs.deviceLimit.map {
                Rate(count: $0, per: inner.knobs.deviceSpan)
            }
        }
    }

    var knobs: APNsKnobs { inner.withLock { $0.knobs } }

    /// Judges a request, records the result, hands it to those who wait for it, and answers.
    func answer(_ request: SimulatedRequest, on connection: inout APNsConnectionFacts) -> SimulatedAnswer {
        let now = world.now()
        var listeners: [AsyncStream<Delivery>.Continuation] = []
        var heard: Delivery?
        let answer = inner.withLock { inner -> SimulatedAnswer in
            inner.log.countReceived()
            if let stray = inner.stray(request, random: world.random) {
                inner.log.countRefused("stray \(stray.status)")
                return SimulatedAnswer(stray, apnsID: request[.apnsID].map { Array($0) } ?? [])
            }
            if let reason = inner.failure(now: now, random: world.random) {
                return refusal(APNsRefusal(reason), request, hasGoodToken: false, &inner)
            }
            switch inner.judge.judge(request, on: &connection, now: now) {
            case .refused(let refused, let hasGoodToken):
                return refusal(refused, request, hasGoodToken: hasGoodToken, &inner)
            case .accepted(let accepted):
                let id = accepted.id ?? PushID(at: now, random: world.random(), world.random())
                let isDouble = inner.log.countAccepted(id)
                if inner.log.wants(accepted.token) || inner.judge.devices[accepted.token]?.isOnline == false {
                    let delivery = Delivery(
                        number: inner.log.counters.accepted, id: id.text, token: accepted.token,
                        topic: accepted.topic, pushType: accepted.pushType, priority: accepted.priority,
                        expirationSeconds: accepted.expirationSeconds, collapseID: accepted.collapseID,
                        body: request.body, receivedAt: now, isDouble: isDouble)
                    inner.log.record(delivery)
                    if inner.judge.devices[accepted.token]?.isOnline == false {
                        inner.store(delivery, limit: Self.storedLimit)
                    } else {
                        listeners = inner.log.listeners(for: accepted.token)
                        heard = delivery
                    }
                }
                return SimulatedAnswer(
                    status: 200, apnsID: Array(id.text.utf8), uniqueID: uniqueID(now), weight: .accepted)
            }
        }
        if let heard { tell(heard, listeners) }
        return answer
    }

    private func uniqueID(_ now: UnixTime) -> [UInt8] {
        guard environment == .sandbox else { return [] }
        return Array(PushID(at: now, random: world.random(), world.random()).text.utf8)
    }

    private func refusal(
        _ refusal: APNsRefusal, _ request: SimulatedRequest, hasGoodToken: Bool, _ inner: inout Inner
    ) -> SimulatedAnswer {
        inner.log.countRefused(refusal.reason.rawValue)
        let echoed = request[.apnsID].flatMap { PushID(text: String(decoding: $0, as: UTF8.self)) }
        let id = echoed ?? PushID(at: world.now(), random: world.random(), world.random())
        var body = "{\"reason\":\"\(refusal.reason.rawValue)\""
        if let since = refusal.since { body += ",\"timestamp\":\(since.milliseconds)" }
        let status = refusal.reason.status
        return SimulatedAnswer(
            status: status, apnsID: Array(id.text.utf8), body: Array((body + "}").utf8),
            weight: status < 500 ? .rejected(withGoodToken: hasGoodToken) : .neutral)
    }

    /// Takes a device online and delivers what was kept for it, to its subscribers too.
    func bringOnline(_ token: String) -> [Delivery] {
        let (kept, listeners) = inner.withLock { inner in
            inner.judge.devices[token]?.isOnline = true
            let kept = (inner.stored.removeValue(forKey: token) ?? [:]).values.sorted {
                $0.number < $1.number
            }
            inner.storedCount -= kept.count
            return (kept, inner.log.listeners(for: token))
        }
        for delivery in kept { tell(delivery, listeners) }
        return kept
    }
}

extension APNsState.Inner {
    fileprivate mutating func stray(_ request: SimulatedRequest, random: () -> UInt64) -> StrayAnswer? {
        guard !strays.knob.isEmpty else { return nil }
        let token = request[.path].map {
            String(decoding: $0, as: UTF8.self).split(separator: "/").last.map { $0.lowercased() } ?? ""
        }
        return strays.take(for: token, random: random)
    }

    fileprivate func failure(now: UnixTime, random: () -> UInt64) -> APNsReason? {
        if let until = knobs.shutdownUntil, now < until { return .shutdown }
        if knobs.errorShare > 0, Double(random() >> 11) / Double(UInt64(1) << 53) < knobs.errorShare {
            return .internalServerError
        }
        return nil
    }

    /// The newest replaces the one before.
    fileprivate mutating func store(_ delivery: Delivery, limit: Int) {
        // Expiration 0 means: try once, store nothing.
        if delivery.expirationSeconds == 0 { return }
        let isNew = stored[delivery.token]?[delivery.topic] == nil
        if isNew, storedCount >= limit { return }
        stored[delivery.token, default: [:]][delivery.topic] = delivery
        if isNew { storedCount += 1 }
    }
}
