import PushModel

/// What one connection remembers of the tokens it has carried (docs/push-services.md §2.2).
struct APNsConnectionFacts {
    var first: APNsKeyRegistration?
    var token: [UInt8] = []
    /// When the token last changed, by the simulated clock.
    var changedAt = UnixTime.distantPast
    /// Until then every request is answered 429 `TooManyProviderTokenUpdates`.
    var punishedUntil: UnixTime?

    init() {}
}

/// The judgement of the simulated APNs: request and state in, verdict out; no I/O, no clock.
///
/// The order of its steps is that of docs/push-services.md §3, 1–9; the first fault decides the answer.
struct APNsJudge {
    /// The result of a request.
    enum Ruling: Equatable {
        case accepted(Accepted)
        /// `hasGoodToken`: the provider token was found valid before the fault.
        case refused(APNsRefusal, hasGoodToken: Bool)
    }

    /// What was accepted, after all checks.
    struct Accepted: Equatable {
        var id: PushID?
        var token: String
        var topic: String
        /// The topic without the push type's suffix.
        var bundle: String
        var pushType: APNsPushType?
        var priority: Int
        var expirationSeconds: Int64?
        var collapseID: String?
    }

    /// A different token string within this time after the last change is one update too many.
    static let updateSpan = Duration.seconds(20 * 60)

    var tokens: ProviderTokens
    var devices: APNsDevices
    var deviceRate: Rate?

    init(tokens: ProviderTokens, devices: APNsDevices) {
        self.tokens = tokens
        self.devices = devices
    }

    mutating func judge(_ request: SimulatedRequest, on connection: inout APNsConnectionFacts, now: UnixTime)
        -> Ruling
    {
        func refuse(_ reason: APNsReason, goodToken: Bool = false) -> Ruling {
            .refused(APNsRefusal(reason), hasGoodToken: goodToken)
        }
        if request.hasDuplicate { return refuse(.duplicateHeaders) }
        guard request[.method].map({ $0.elementsEqual("POST".utf8) }) ?? false else {
            return refuse(.methodNotAllowed)
        }
        let prefix = "/3/device/".utf8
        guard let path = request[.path], path.starts(with: prefix) else { return refuse(.badPath) }
        let address = path.dropFirst(prefix.count)
        if address.isEmpty { return refuse(.missingDeviceToken) }

        let registration: APNsKeyRegistration
        switch tokens.judge(request[.authorization], now: now) {
        case .failure(let refusal): return refuse(refusal.reason)
        case .success(let good):
            if let reason = Self.connectionFault(
                good.token, good.verified.registration, on: &connection, now: now)
            {
                return refuse(reason)
            }
            registration = good.verified.registration
        }
        var accepted: Accepted
        switch Self.headers(request, registration) {
        case .failure(let refusal): return refuse(refusal.reason, goodToken: true)
        case .success(let value): accepted = value
        }
        guard let token = Self.tokenText(address) else { return refuse(.badDeviceToken, goodToken: true) }
        accepted.token = token
        if let refusal = devices.fault(token: token, topic: accepted.topic, bundle: accepted.bundle) {
            return .refused(refusal, hasGoodToken: true)
        }
        if let reason = Self.bodyFault(request, accepted) { return refuse(reason, goodToken: true) }
        if let deviceRate, !devices.allows(token: token, rate: deviceRate, now: now) {
            return refuse(.tooManyRequests, goodToken: true)
        }
        return .accepted(accepted)
    }

    /// Step 4: one connection, one team, one family of keys, and few updates.
    private static func connectionFault(
        _ token: ArraySlice<UInt8>, _ registration: APNsKeyRegistration,
        on connection: inout APNsConnectionFacts, now: UnixTime
    ) -> APNsReason? {
        guard let first = connection.first else {
            connection.first = registration
            connection.token = Array(token)
            connection.changedAt = now
            return nil
        }
        if registration.team != first.team { return .forbidden }
        if !registration.isRelated(to: first) { return .unrelatedKeyIdInToken }
        if let until = connection.punishedUntil {
            if now < until { return .tooManyProviderTokenUpdates }
            connection.punishedUntil = nil
        }
        if token.elementsEqual(connection.token) { return nil }
        guard now.since(connection.changedAt) >= updateSpan else {
            connection.punishedUntil = connection.changedAt + updateSpan
            return .tooManyProviderTokenUpdates
        }
        connection.token = Array(token)
        connection.changedAt = now
        return nil
    }

    /// Step 6, first sentence: the token in lower case; `nil` unless it is 2 to 200 hex digits, an even
    /// number.
    private static func tokenText(_ address: ArraySlice<UInt8>) -> String? {
        guard (2...200).contains(address.count), address.count % 2 == 0 else { return nil }
        var hasCapitals = false
        for byte in address {
            switch byte {
            case 0x30...0x39, 0x61...0x66: break
            case 0x41...0x46: hasCapitals = true
            default: return nil
            }
        }
        let text = String(decoding: address, as: UTF8.self)
        return hasCapitals ? text.lowercased() : text
    }

    /// Step 7.
    private static func bodyFault(_ request: SimulatedRequest, _ accepted: Accepted) -> APNsReason? {
        let isCall =
            accepted.pushType == .voip || (accepted.pushType == nil && accepted.topic.hasSuffix(".voip"))
        let limit = (isCall ? APNsPushType.voip : .alert).payloadBytes
        // A body that was not kept cannot be read, and is too large anyway.
        if request.bodyBytes > SimulatedRequest.bodyKeptBytes { return .payloadTooLarge }
        guard JSONTree.isObject(request.body) else { return .payloadEmpty }
        return request.bodyBytes > limit ? .payloadTooLarge : nil
    }
}
