import APNs
import Delivery
import HTTP2Client
import PushModel
import WireFormats

/// What the keys of an app say of APNs.
struct APNsSettings: Sendable, Hashable {
    enum Choice: String, Sendable, Hashable, CaseIterable {
        case production, sandbox
        /// Production first, and sandbox once for an address never accepted (docs/configuration.md).
        case learn
    }

    /// Ten capital letters and digits.
    var team: String
    /// Ten capital letters and digits.
    var keyID: String
    /// The `.p8` file.
    var keyFile: String
    /// At least one; each belongs to this app alone within an instance.
    var bundles: [String]
    var environment: Choice
    /// Whether the app takes `voip` pushes.
    var voip: Bool
    /// Instead of Apple's own base URLs.
    var url: HTTPSBase?
    /// Instead of Apple's sandbox; follows `url` when that alone is set.
    var sandboxURL: HTTPSBase?
    /// PEM file of the authority to trust instead of the system's.
    var caFile: String?
}

extension AppConfiguration {
    var apns: APNsSettings? {
        get { self[APNsSettings.self] }
        set { self[APNsSettings.self] = newValue }
    }
}

extension APNsSettings: ServiceSettings {
    static let service = PushService.apns

    var environments: [Environment] {
        switch environment {
        case .production: [.production]
        case .sandbox: [.sandbox]
        case .learn: [.production, .sandbox]
        }
    }

    func outlet(of app: ConfiguredName, in instance: InstanceConfiguration) -> any ServiceOutlet {
        let policy: EnvironmentPolicy =
            switch environment {
            case .production: .fixed(.production)
            case .sandbox: .fixed(.sandbox)
            case .learn: .learn
            }
        return APNsOutlet(bundles: .listed(Set(bundles)), environment: policy, takesVoIP: voip)
    }

    private func url(of environment: Environment) -> HTTPSBase? {
        environment == .production ? url : sandboxURL
    }

    func laneSpecs(
        of app: ConfiguredName, on context: LaneContext, _ cache: inout CredentialCache
    ) throws(CommandFailure) -> [DeliveryService.LaneSpec] {
        let entry = try cache.entry(self)
        let certificates = try context.authority(caFile)
        return try laneSpecs(
            of: app, entry, certificates, on: context, target: { url(of: $0.environment)?.text }
        ) { (lane) throws(HTTP2Error) in
            try APNsProvider(
                lane: lane, credential: entry.credential, url: url(of: lane.environment)?.text,
                certificates: certificates, proxy: context.tunnel, options: context.options,
                group: context.group, world: context.world, journal: context.journal)
        }
    }

    var places: [PeerAddress] {
        environments.map { environment in
            let own = environment == .production ? "api.push.apple.com" : "api.sandbox.push.apple.com"
            return PeerAddress(url(of: environment), or: own, caFile: caFile)
        }
    }

    /// Both of Apple's worlds, whichever of them is in use.
    var reachesNobody: Bool {
        [url, sandboxURL ?? url].allSatisfy { $0?.isLoopback ?? false }
    }

    var appIDs: [String] { bundles }

    /// A device may have named its topic with a push type's suffix.
    var registeredAppIDs: [String] {
        let suffixes = Set(APNsPushType.allCases.map(\.topicSuffix))
        return bundles.flatMap { bundle in suffixes.map { bundle + $0 } }
    }

    /// Apple's are hexadecimal.
    static func fit(_ address: Secret) -> AddressFit {
        let isHex = address.reveal { bytes in
            bytes.count >= 64 && bytes.allSatisfy { Hex.value(ofDigit: $0) != nil }
        }
        return isHex ? .surely : .no
    }

    func testPushes(_ order: TestPushOrder) throws(DeskRefusal) -> [TestPush] {
        let bundle = order.bundle ?? bundles[0]
        guard bundles.contains(bundle) else { throw .status(400, "This app has no such bundle id.") }
        let message = APNsMessage(
            token: order.token, bundle: bundle, pushType: .alert, priority: 10, payload: Self.alert)
        return try environments(order).map { TestPush(environment: $0, message: .apns(message)) }
    }

    /// iOS shows it without the app's help.
    private static var alert: Secret {
        var json = JSONWriter()
        json.beginObject()
        json.beginObject("aps")
        json.beginObject("alert")
        json.member("title", TestPush.title)
        json.member("body", TestPush.text)
        json.endObject()
        json.member("sound", "default")
        json.endObject()
        json.endObject()
        return json.takeSecret()
    }
}

extension CredentialCache {
    /// One for each of Apple's keys, whatever apps it is for.
    ///
    /// - Throws: `CommandFailure` that names the file.
    mutating func entry(_ app: APNsSettings) throws(CommandFailure) -> Entry<APNsCredential> {
        let file = try Self.read(app.keyFile)
        let (name, world) = ("\(app.team)/\(app.keyID)", world)
        return try entry(
            .apns, name, stamp: Self.stamp(file, name), identity: Self.identity(file, name)
        ) { () throws(CommandFailure) in
            do throws(APNsError) {
                return try APNsCredential(team: app.team, keyID: app.keyID, key: file, world: world)
            } catch {
                throw CommandFailure(.configuration, "\(app.keyFile): \(error.coded)")
            }
        }
    }
}
