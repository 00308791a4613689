import PushModel

// Step 5 of the judgement: the request's own fields (docs/push-services.md §2.3, §2.4).
extension APNsJudge {
    /// `apns-collapse-id` has at most this many bytes.
    private static let collapseBytes = 64
    /// A longer text is not a bundle id (Apple allows 155 characters).
    private static let topicBytes = 200

    static func headers(
        _ request: SimulatedRequest, _ registration: APNsKeyRegistration
    ) -> Result<Accepted, ProviderTokens.Refusal> {
        func refuse(_ reason: APNsReason) -> Result<Accepted, ProviderTokens.Refusal> {
            .failure(ProviderTokens.Refusal(reason))
        }
        var accepted = Accepted(token: "", topic: "", bundle: "", pushType: nil, priority: 10)
        if let field = request[.apnsID] {
            guard let id = lowerCaseID(field) else { return refuse(.badMessageId) }
            accepted.id = id
        }
        if let field = request[.pushType] {
            guard let type = APNsPushType(field) else { return refuse(.invalidPushType) }
            accepted.pushType = type
        }
        if let field = request[.priority] {
            guard let priority = integer(field), [1, 5, 10].contains(priority),
                priority != 10 || accepted.pushType != .background
            else { return refuse(.badPriority) }
            accepted.priority = Int(priority)
        }
        if let field = request[.expiration] {
            guard let seconds = integer(field) else { return refuse(.badExpirationDate) }
            accepted.expirationSeconds = seconds
        }
        if let field = request[.collapseID] {
            guard field.count <= collapseBytes else { return refuse(.badCollapseId) }
            accepted.collapseID = String(decoding: field, as: UTF8.self)
        }
        guard let topic = request[.topic] else { return refuse(.missingTopic) }
        guard isTopic(topic) else { return refuse(.badTopic) }
        accepted.topic = String(decoding: topic, as: UTF8.self)
        let (bundle, suffix) = APNsPushType.split(topic)
        accepted.bundle = suffix.isEmpty ? accepted.topic : String(decoding: bundle, as: UTF8.self)
        if let bundles = registration.bundles, !bundles.contains(accepted.topic),
            !bundles.contains(accepted.bundle)
        {
            return refuse(.topicDisallowed)
        }
        if let wanted = accepted.pushType?.topicSuffix, wanted != suffix { return refuse(.topicDisallowed) }
        return .success(accepted)
    }

    /// A canonical lower-case UUID. (`PushID` reads capitals too; APNs refuses them.)
    private static func lowerCaseID(_ field: ArraySlice<UInt8>) -> PushID? {
        guard field.count == 36, !field.contains(where: { (0x41...0x46).contains($0) }) else { return nil }
        return PushID(text: String(decoding: field, as: UTF8.self))
    }

    /// Decimal digits, at most 18 of them.
    private static func integer(_ field: ArraySlice<UInt8>) -> Int64? {
        guard (1...18).contains(field.count), field.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return field.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    private static func isTopic(_ field: ArraySlice<UInt8>) -> Bool {
        (1...topicBytes).contains(field.count)
            && field.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "."), UInt8(ascii: "-"),
                    UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}
