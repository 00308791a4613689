import APNs
import Delivery
import FCM
import HTTP2Client
import NIOCore
import PushModel

/// From a configuration to what the delivery core runs: lanes, the directory of apps, each protocol's
/// overrides.
struct DeliveryPlanning {
    let configuration: RelayConfiguration
    let group: any EventLoopGroup
    let world: World
    let journal: Journal
    let options: HTTP2Options

    init(configuration: RelayConfiguration, _ around: Surroundings) {
        self.configuration = configuration
        (group, world, journal) = (around.group, around.world, around.journal)
        options = around.spans.pushServices
    }

    /// - Throws: `CommandFailure` that names the file or the app at fault.
    func plan(
        _ shelf: inout CredentialShelf, for instances: [any HostedInstance]
    ) throws(CommandFailure) -> DeliveryService.Plan {
        var routes: [DeliveryService.Route] = []
        for app in configuration.apps {
            if let apns = app.apns { routes += try self.routes(app.name, apns, &shelf) }
            if let fcm = app.fcm { routes.append(try route(app.name, fcm, &shelf)) }
        }
        var overrides: [ConfiguredName: @Sendable (Answer) -> Outcome?] = [:]
        for instance in instances { overrides[instance.name] = instance.override }
        return DeliveryService.Plan(apps: directory, routes: routes, overrides: overrides)
    }

    private var directory: AppDirectory {
        AppDirectory(
            configuration.instances.map { instance in
                let apps = instance.apps.compactMap(configuration.app).map { app in
                    AppDirectory.App(name: app.name, outlets: Self.outlets(app, of: instance))
                }
                return AppDirectory.Instance(name: instance.name, apps: apps)
            })
    }

    private static func outlets(
        _ app: AppConfiguration, of instance: InstanceConfiguration
    ) -> [any ServiceOutlet] {
        var outlets: [any ServiceOutlet] = []
        if let apns = app.apns {
            outlets.append(
                APNsOutlet(
                    bundles: .listed(Set(apns.bundles)), environment: policy(apns.environment),
                    takesVoIP: apns.voip))
        }
        if app.fcm != nil { outlets.append(FCMOutlet(isDefault: instance.fcmApp == app.name)) }
        return outlets
    }

    private static func policy(_ environment: APNsAppConfiguration.Environment) -> EnvironmentPolicy {
        switch environment {
        case .production: .fixed(.production)
        case .sandbox: .fixed(.sandbox)
        case .learn: .learn
        }
    }

    private func routes(
        _ app: ConfiguredName, _ apns: APNsAppConfiguration, _ shelf: inout CredentialShelf
    ) throws(CommandFailure) -> [DeliveryService.Route] {
        let entry = try shelf.entry(apns)
        let certificates = try authority(apns.caFile)
        let environments: [Environment] =
            switch apns.environment {
            case .production: [.production]
            case .sandbox: [.sandbox]
            case .learn: [.production, .sandbox]
            }
        var routes: [DeliveryService.Route] = []
        for environment in environments {
            let url = environment == .production ? apns.url : apns.sandboxURL
            do throws(HTTP2Error) {
                let provider = try APNsProvider(
                    lane: LaneName(app: app, service: .apns, environment: environment),
                    credential: entry.credential, url: url?.text, certificates: certificates, proxy: proxy,
                    options: options, group: group, world: world, journal: journal)
                routes.append(
                    DeliveryService.Route(
                        provider, credential: entry.shared, stamp: stamp(entry.stamp, url?.text, certificates)
                    ))
            } catch {
                throw CommandFailure(.configuration, "apps.\(app.text).apns: \(error.sentence)")
            }
        }
        return routes
    }

    private func route(
        _ app: ConfiguredName, _ fcm: FCMAppConfiguration, _ shelf: inout CredentialShelf
    ) throws(CommandFailure) -> DeliveryService.Route {
        let entry = try shelf.entry(fcm)
        let certificates = try authority(fcm.caFile)
        let kind: FCMAddressKind =
            switch fcm.address {
            case .auto: .auto
            case .token: .token
            case .fid: .fid
            }
        do throws(HTTP2Error) {
            let provider = try FCMProvider(
                lane: LaneName(app: app, service: .fcm, environment: .production),
                credential: entry.credential,
                addressKind: kind, url: fcm.url?.text, certificates: certificates, proxy: proxy,
                options: options, group: group, world: world, journal: journal)
            return DeliveryService.Route(
                provider, credential: entry.shared,
                stamp: stamp(entry.stamp, "\(fcm.url?.text ?? "") \(kind.rawValue)", certificates))
        } catch {
            throw CommandFailure(.configuration, "apps.\(app.text).fcm: \(error.sentence)")
        }
    }

    private var proxy: HTTP2Endpoint.Proxy? {
        configuration.proxy.map { HTTP2Endpoint.Proxy(host: $0.host, port: $0.port) }
    }

    private func authority(_ file: String?) throws(CommandFailure) -> [UInt8]? {
        guard let file else { return nil }
        return try CredentialShelf.read(file).reveal { Array($0) }
    }

    private func stamp(_ credential: Int, _ target: String?, _ certificates: [UInt8]?) -> Int {
        var hasher = Hasher()
        hasher.combine(credential)
        hasher.combine(target)
        hasher.combine(certificates)
        hasher.combine(configuration.proxy)
        return hasher.finalize()
    }
}
