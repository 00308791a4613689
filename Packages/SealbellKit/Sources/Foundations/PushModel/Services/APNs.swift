/// All that the model knows of APNs.
extension PushService {
    package static let apns = PushService(named: "apns")
}

extension ProviderMessage {
    package static func apns(_ message: consuming APNsMessage) -> ProviderMessage { ProviderMessage(message) }
    /// `nil` when it is for another service.
    package var apns: APNsMessage? { message() }
}

/// `apns-push-type`, all that Apple documents for apps (docs/push-services.md §2.4).
package enum APNsPushType: String, Sendable, CaseIterable {
    case alert, background, voip, complication, fileprovider, mdm, liveactivity, location, pushtotalk
    case widgets, controls

    /// What is appended to the bundle id to form the topic.
    package var topicSuffix: String {
        switch self {
        case .alert, .background, .mdm: ""
        case .voip: ".voip"
        case .complication: ".complication"
        case .fileprovider: ".pushkit.fileprovider"
        case .location: ".location-query"
        case .liveactivity: ".push-type.liveactivity"
        case .pushtotalk: ".voip-ptt"
        case .widgets: ".push-type.widgets"
        case .controls: ".push-type.controls"
        }
    }

    /// Largest body in bytes.
    package var bodyLimitBytes: Int { self == .voip ? 5120 : 4096 }
}

/// What APNs is asked to deliver.
package struct APNsMessage: Sendable {
    /// How `apns-topic` is made of the bundle id.
    package enum TopicForm: UInt8, Sendable, Hashable {
        /// With the suffix of the push type behind it (docs/push-services.md §2.4).
        case suffixedByType
        /// As it stands: the client named the whole topic (docs/conformance/zulip.md).
        case asNamed
    }

    /// The device token as it goes into the path: hex digits, as registered.
    package var token: Secret
    /// The app's bundle id without suffix, or with ``TopicForm/asNamed`` the topic itself.
    package var bundle: String
    package var topicForm: TopicForm
    /// To which of Apple's two services the token belongs, where the client said so.
    package var environment: Environment?
    package var pushType: APNsPushType
    /// 10, 5 or 1.
    package var priority: UInt8
    /// `apns-expiration`, only where the protocol's sheet gives one.
    package var expiration: UnixTime?
    /// At most 64 bytes.
    /// The long name for the reason that ``Verdict`` gives.
    package var collapseID: Optional<Secret>
    /// The JSON body.
    package var payload: Secret

    package init(
        token: Secret, bundle: String, topicForm: TopicForm = .suffixedByType,
        environment: Environment? = nil, pushType: APNsPushType, priority: UInt8,
        expiration: UnixTime? = nil, collapseID: Secret? = nil, payload: Secret
    ) {
        self.token = token
        self.bundle = bundle
        self.topicForm = topicForm
        self.environment = environment
        self.pushType = pushType
        self.priority = priority
        self.expiration = expiration
        self.collapseID = collapseID
        self.payload = payload
    }

    /// `apns-topic`.
    package var topic: String {
        switch topicForm {
        case .suffixedByType: bundle + pushType.topicSuffix
        case .asNamed: bundle
        }
    }

    /// Whether it is for PushKit, by its type or by the topic that the client named.
    package var isVoIP: Bool { pushType == .voip || topic.hasSuffix(APNsPushType.voip.topicSuffix) }

    /// The bundle id of the app whose credentials send this: a topic that was named whole may have a push
    /// type's suffix, which no configured bundle has.
    package var app: String {
        guard topicForm == .asNamed else { return bundle }
        let suffixes = APNsPushType.allCases.map(\.topicSuffix).filter { !$0.isEmpty && bundle.hasSuffix($0) }
        // `.voip` ends no other suffix, and none of them ends in another.
        return String(bundle.dropLast(suffixes.map(\.utf8.count).max() ?? 0))
    }
}

extension APNsMessage {
    /// A device token in small letters. Apple takes no difference between the two spellings of its
    /// hexadecimal digits, and phones send either: compared as they came, one phone would be two. What is no
    /// hexadecimal number stays as it is.
    package static func canonical(_ token: Secret) -> Secret {
        // Nearly every token has none.
        guard token.reveal({ HexDigits.mayHaveCapitals($0) }) else { return token }
        let isFolded = token.reveal { bytes in
            var hasCapitals = false
            for byte in bytes where byte &- 0x30 > 9 && byte &- 0x61 > 5 {
                guard byte &- 0x41 <= 5 else { return false }
                hasCapitals = true
            }
            return hasCapitals
        }
        guard isFolded else { return token }
        return Secret(count: token.count) { out in
            token.reveal { bytes in
                for at in 0..<out.count {
                    out[at] = (0x41...0x46).contains(bytes[at]) ? bytes[at] | 0x20 : bytes[at]
                }
            }
        }
    }
}

extension APNsMessage: ServiceMessage {
    package static let service = PushService.apns
    package static let reasons: [Reason] = [
        .badCollapseId, .badDeviceToken, .badExpirationDate, .badMessageId, .badPriority, .badTopic,
        .deviceTokenNotForTopic, .duplicateHeaders, .idleTimeout, .invalidPushType, .missingDeviceToken,
        .missingTopic, .payloadEmpty, .topicDisallowed, .badCertificate, .badCertificateEnvironment,
        .badEnvironmentKeyInToken, .badEnvironmentKeyIdInToken, .expiredProviderToken, .forbidden,
        .invalidProviderToken, .missingProviderToken, .unrelatedKeyIdInToken, .badPath, .methodNotAllowed,
        .expiredToken, .unregisteredAPNs, .payloadTooLarge, .tooManyProviderTokenUpdates, .tooManyRequests,
        .internalServerError, .serviceUnavailable, .shutdown
    ]

    /// In the one spelling that it has wherever addresses are compared.
    package var address: Secret { Self.canonical(token) }
    package var bytes: Int { payload.count + token.count }

    /// Tags of the stored form. The first two tell the form of the topic, and are of messages that name no
    /// environment; behind the third stand a byte for each of both.
    private enum Tag {
        static let suffixedByType: UInt8 = 1
        static let asNamed: UInt8 = 3
        static let withEnvironment: UInt8 = 4
    }

    package static let storedTags = [Tag.suffixedByType, Tag.asNamed, Tag.withEnvironment]

    package var storedSize: Int {
        3 * StoredSize.byte + StoredSize.of(token) + StoredSize.of(bundle) + StoredSize.of(pushType.rawValue)
            + StoredSize.byte + StoredSize.word + StoredSize.of(optional: collapseID) + StoredSize.of(payload)
    }

    package func write(to writer: inout StoredWriter) {
        if let environment {
            writer.put(Tag.withEnvironment)
            writer.put(topicForm.rawValue)
            writer.put(UInt8(environment == .production ? 0 : 1))
        } else {
            writer.put(topicForm == .suffixedByType ? Tag.suffixedByType : Tag.asNamed)
        }
        writer.put(token)
        writer.put(bundle)
        writer.put(pushType.rawValue)
        writer.put(priority)
        writer.put(expiration?.milliseconds)
        writer.put(collapseID)
        writer.put(payload)
    }

    package init?(tag: UInt8, from reader: inout StoredReader) {
        var form = tag == Tag.suffixedByType ? TopicForm.suffixedByType : .asNamed
        var environment: Environment?
        if tag == Tag.withEnvironment {
            guard let named = reader.byte().flatMap({ TopicForm(rawValue: $0) }),
                let side = reader.byte(), side < 2
            else { return nil }
            (form, environment) = (named, side == 0 ? .production : .sandbox)
        }
        guard let token = reader.secret(), let bundle = reader.text(),
            let type = reader.text().flatMap({ APNsPushType(rawValue: $0) }), let priority = reader.byte(),
            let expiration = reader.optionalWord(), let collapseID = reader.optionalSecret(),
            let payload = reader.secret()
        else { return nil }
        self.init(
            token: token, bundle: bundle, topicForm: form, environment: environment, pushType: type,
            priority: priority, expiration: expiration.map { UnixTime(milliseconds: $0) },
            collapseID: collapseID, payload: payload)
    }
}

extension EnvironmentPolicy {
    /// A token does not show to which of Apple's two services it belongs: production first and, on
    /// `BadDeviceToken` for one that was never accepted, the sandbox once.
    package static let learn = EnvironmentPolicy.learned(first: .production, other: .sandbox)
}

/// Which bundle ids an app answers for.
package enum BundleSet: Sendable, Hashable {
    case any
    case listed(Set<String>)

    package func contains(_ bundle: String) -> Bool {
        switch self {
        case .any: true
        // Each push asks. Most apps have one bundle or two, and a hash costs more than to compare as many.
        case .listed(let bundles):
            bundles.count <= 2 ? bundles.contains(where: { $0 == bundle }) : bundles.contains(bundle)
        }
    }
}

/// How an app is set up for APNs. Its bundle id says whose a message is; the first app that claims one has
/// it.
package struct APNsOutlet: ServiceOutlet {
    package static let service = PushService.apns

    package let bundles: BundleSet
    package let environment: EnvironmentPolicy
    /// Whether the app has PushKit, so that a VoIP push may go out in its name.
    package let takesVoIP: Bool

    package init(
        bundles: BundleSet, environment: EnvironmentPolicy = .fixed(.production), takesVoIP: Bool = true
    ) {
        self.bundles = bundles
        self.environment = environment
        self.takesVoIP = takesVoIP
    }

    package static func choose(
        for message: ProviderMessage, among apps: [AppOutlet<APNsOutlet>]
    ) -> Int? {
        guard let message = message.apns else { return nil }
        func index(_ bundle: String) -> Int? { apps.firstIndex { $0.outlet.bundles.contains(bundle) } }
        guard let index = index(message.bundle) ?? index(message.app) else { return nil }
        // Apple answers a VoIP push to an app without PushKit as a fault of the topic, again for each.
        return apps[index].outlet.takesVoIP || !message.isVoIP ? index : nil
    }
}

/// Apple's words (docs/push-services.md §2.5).
extension Reason {
    package static let badCollapseId = Reason("BadCollapseId")
    /// It proves no credential, because the form of a token may be looked at first. Each of Apple's two
    /// environments says it of the other's tokens.
    package static let badDeviceToken = Reason("BadDeviceToken", [.blamesTarget, .mayBeElsewhere])
    package static let badExpirationDate = Reason("BadExpirationDate")
    package static let badMessageId = Reason("BadMessageId")
    package static let badPriority = Reason("BadPriority")
    package static let badTopic = Reason("BadTopic", .blamesTarget)
    package static let deviceTokenNotForTopic = Reason(
        "DeviceTokenNotForTopic", [.blamesTarget, .provesCredential])
    package static let duplicateHeaders = Reason("DuplicateHeaders")
    package static let idleTimeout = Reason("IdleTimeout")
    package static let invalidPushType = Reason("InvalidPushType")
    package static let missingDeviceToken = Reason("MissingDeviceToken")
    package static let missingTopic = Reason("MissingTopic", .blamesTarget)
    package static let payloadEmpty = Reason("PayloadEmpty")
    package static let topicDisallowed = Reason("TopicDisallowed", .blamesTarget)
    package static let badCertificate = Reason("BadCertificate")
    package static let badCertificateEnvironment = Reason(
        "BadCertificateEnvironment", .isForOtherEnvironment)
    package static let badEnvironmentKeyInToken = Reason(
        "BadEnvironmentKeyInToken", .isForOtherEnvironment)
    package static let badEnvironmentKeyIdInToken = Reason(
        "BadEnvironmentKeyIdInToken", .isForOtherEnvironment)
    package static let expiredProviderToken = Reason("ExpiredProviderToken")
    package static let forbidden = Reason("Forbidden")
    package static let invalidProviderToken = Reason("InvalidProviderToken")
    package static let missingProviderToken = Reason("MissingProviderToken")
    package static let unrelatedKeyIdInToken = Reason("UnrelatedKeyIdInToken", .doubtsCredential)
    package static let badPath = Reason("BadPath")
    package static let methodNotAllowed = Reason("MethodNotAllowed")
    package static let expiredToken = Reason("ExpiredToken", .provesCredential)
    package static let unregisteredAPNs = Reason("Unregistered", .provesCredential)
    package static let payloadTooLarge = Reason("PayloadTooLarge")
    package static let tooManyProviderTokenUpdates = Reason("TooManyProviderTokenUpdates", .doubtsCredential)
    package static let tooManyRequests = Reason("TooManyRequests", .limitsAddress)
    package static let internalServerError = Reason("InternalServerError", .asksForTime)
    package static let serviceUnavailable = Reason("ServiceUnavailable", .asksForTime)
    package static let shutdown = Reason("Shutdown")

    private static let apns = Dictionary(
        APNsMessage.reasons.map { ($0.rawValue, $0) }, uniquingKeysWith: { first, _ in first })

    /// The word of an answer; `nil` for one that Apple has not told us.
    package static func apns(_ word: String) -> Reason? { apns[word] }
}
