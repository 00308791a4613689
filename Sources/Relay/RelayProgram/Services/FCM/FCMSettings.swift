import Delivery
import FCM
import HTTP2Client
import PushModel
import WireFormats

/// What the keys of an app say of FCM.
struct FCMSettings: Sendable, Hashable {
    enum Address: String, Sendable, Hashable, CaseIterable {
        /// By the form of each address.
        case auto
        /// Registration tokens.
        case token
        /// Firebase installation ids.
        case fid
    }

    /// The service account's JSON file.
    var serviceAccountFile: String
    var address: Address
    /// Instead of Google's base URL.
    var url: HTTPSBase?
    /// PEM file of the authority to trust instead of the system's.
    var caFile: String?
    /// Instead of the token endpoint that the service account names.
    var tokenURL: HTTPSURL?
}

extension AppConfiguration {
    var fcm: FCMSettings? {
        get { self[FCMSettings.self] }
        set { self[FCMSettings.self] = newValue }
    }
}

extension RelayConfiguration {
    /// Whether FCM pushes of the instance lead anywhere.
    func hasFCM(_ instance: InstanceConfiguration) -> Bool {
        instance.settings.app(for: .fcm).flatMap(app)?.fcm != nil
    }
}

extension FCMSettings: ServiceSettings {
    static let service = PushService.fcm

    var environments: [Environment] { [.production] }

    func outlet(of app: ConfiguredName, in instance: InstanceConfiguration) -> any ServiceOutlet {
        FCMOutlet(isDefault: instance.settings.app(for: .fcm) == app)
    }

    func laneSpecs(
        of app: ConfiguredName, on context: LaneContext, _ cache: inout CredentialCache
    ) throws(CommandFailure) -> [DeliveryService.LaneSpec] {
        let entry = try cache.entry(self)
        let certificates = try context.authority(caFile)
        let kind: FCMAddressKind =
            switch address {
            case .auto: .auto
            case .token: .token
            case .fid: .fid
            }
        return try laneSpecs(
            of: app, entry, certificates, on: context, target: { _ in "\(url?.text ?? "") \(kind.rawValue)" }
        ) { (lane) throws(HTTP2Error) in
            try FCMProvider(
                lane: lane, credential: entry.credential, addressKind: kind, url: url?.text,
                certificates: certificates, proxy: context.tunnel, options: context.options,
                validatesOnly: context.isTrial, group: context.group, world: context.world,
                journal: context.journal)
        }
    }

    /// The service, and where its tokens are asked for.
    var places: [PeerAddress] {
        let token = (tokenURL ?? accountTokenURL).map {
            PeerAddress(host: $0.host, port: $0.port, caFile: caFile)
        }
        return [PeerAddress(url, or: "fcm.googleapis.com", caFile: caFile)] + (token.map { [$0] } ?? [])
    }

    private var accountTokenURL: HTTPSURL? {
        // A file that cannot be read has a finding of its own.
        guard let bytes = try? readSecret(serviceAccountFile, limitBytes: credentialLimitBytes) else {
            return nil
        }
        // Nor one that is no service account.
        return (try? FCMServiceAccount(file: bytes)).flatMap { HTTPSURL($0.tokenURL) }
    }

    var reachesNobody: Bool { url?.isLoopback ?? false }

    func testPushes(_ order: TestPushOrder) throws(DeskRefusal) -> [TestPush] {
        let message = FCMMessage(address: order.token, priority: .high, data: Self.data)
        return [TestPush(environment: .production, message: .fcm(message))]
    }

    /// A data message, as all of ours are: what Android shows is the app's affair.
    private static var data: Secret {
        var json = JSONWriter()
        json.beginObject()
        json.member("test", "1")
        json.member("title", TestPush.title)
        json.member("body", TestPush.text)
        json.endObject()
        return json.takeSecret()
    }
}

extension CredentialCache {
    /// One for each service account.
    ///
    /// - Throws: `CommandFailure` that names the file.
    mutating func entry(_ app: FCMSettings) throws(CommandFailure) -> Entry<FCMCredential> {
        let file = try Self.read(app.serviceAccountFile)
        let name = "\(app.serviceAccountFile) \(app.tokenURL?.text ?? "")"
        // Where tokens are asked for, and by which way, is as much part of it as the key.
        let authority = try app.caFile.map { (file) throws(CommandFailure) in try Self.read(file) }
        let (world, journal, web) = (world, journal, web)
        return try entry(
            .fcm, name, stamp: Self.stamp(file, name, authority, proxy),
            identity: Self.identity(file, app.tokenURL?.text ?? "")
        ) { () throws(CommandFailure) in
            do throws(FCMError) {
                let account = try FCMServiceAccount(file: file, tokenURL: app.tokenURL?.text)
                return FCMCredential(
                    account: account, fetch: web(app.caFile), world: world, journal: journal)
            } catch {
                throw CommandFailure(.configuration, "\(app.serviceAccountFile): \(error.coded)")
            }
        }
    }
}
