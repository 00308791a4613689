import Delivery
import HTTPIngress
import NextcloudPush
import PushModel

/// One Nextcloud instance: a face at listeners over the relay's role.
struct NextcloudInstance: HostedInstance {
    let name: ConfiguredName
    /// Apps and servers need no key of it: devices register over TLS, servers sign with their users' keys.
    var publicKeys: [String] { [] }
    private let nextcloudFace: NextcloudFace

    /// - Throws: `CommandFailure` that names the file or the instance at fault.
    init(_ settings: NextcloudSettings, _ making: InstanceMaking) throws(CommandFailure) {
        let context = making.context
        name = making.name
        let apps = NextcloudApps(making.apps.map { NextcloudApp($0) }, clients: settings.clients)
        let policy = try Self.policy(settings)
        let notes = WordMeter.notes(of: name, context.metrics)
        let relay: NextcloudRelay
        do throws(NextcloudError) {
            relay = try NextcloudRelay(
                instance: name, apps: apps, policy: policy, registry: context.registry,
                web: ProofWeb(settings, on: context), charge: making.charge,
                note: { notes.count($0) },
                heard: ProofLog(of: name, context.journal, context.world).note, world: context.world)
        } catch {
            throw CommandFailure(.software, "instances.\(name): \(error.coded)")
        }
        nextcloudFace = NextcloudFace(
            NextcloudConversation(policy), making.reception(relay),
            segments: Set(making.instance.apps.map(\.text)).union(settings.clients.keys),
            hasBarePath: settings.hasBarePath)
    }

    private static func policy(_ settings: NextcloudSettings) throws(CommandFailure) -> NextcloudPolicy {
        NextcloudPolicy(
            subscriptionKeys: try settings.subscriptionKeysFile.map { (file) throws(CommandFailure) in
                try SubscriptionKeysFile.read(file)
            } ?? [],
            missingDelete: settings.missingDevice, newKey: settings.newKey, provenServers: settings.proof)
    }

    var override: (@Sendable (Answer) -> Outcome?)? { { NextcloudRelay.override($0) } }
    var face: (any HTTPFace)? { nextcloudFace }

    func indexes(ofAddress address: Secret, appID: String?) -> [RecordKey] {
        [NextcloudRecordNames(name).address(of: address, bundle: appID)]
    }
    /// Beside each token stands what it is known by.
    func isDevice(_ record: RecordKey) -> Bool { record.space != NextcloudRecordNames(name).pinSpace }

    /// A device identifier, in base64: of one account at one server on one phone.
    func places(ofAccount account: String) -> AccountPlaces {
        let identifier = Array(account.utf8).withUnsafeBytes { DeviceIdentifier(base64: $0) }
        guard let identifier else { return AccountPlaces() }
        let names = NextcloudRecordNames(name)
        return AccountPlaces(records: [names.alert(identifier), names.voip(identifier)])
    }

    var registrationSpaces: [Space] {
        let names = NextcloudRecordNames(name)
        return [names.alertSpace, names.voipSpace]
    }
}

extension NextcloudApp {
    /// An app as its publisher has set it up.
    init(_ app: AppConfiguration) {
        self.init(
            name: app.name, bundle: app.apns?.bundles.first, hasVoIP: app.apns?.voip ?? false,
            hasFCM: app.fcm != nil, aps: app.fallback == .standard ? nil : app.fallback.aps)
    }
}
