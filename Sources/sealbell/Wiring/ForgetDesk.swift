import AdminIngress
import Delivery
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// The operator's calls that forget: `POST /forget/origin`, `/forget/realm`, `/forget/device`,
/// `/forget/address`.
///
/// They answer with counts of records by kind. What a forgotten device is still owed was accepted before and
/// stays owed until its custody ends.
struct ForgetDesk: Sendable {
    static let originPath = "/forget/origin"
    static let realmPath = "/forget/realm"
    static let devicePath = "/forget/device"
    static let addressPath = "/forget/address"
    /// Registrations of one address: one for each realm whose user has this phone.
    private static let registrations = 10_000

    let instances: DeskInstances
    let configuration: RelayConfiguration
    let registry: any Registry

    var calls: [AdminCall] {
        [
            .desk(Self.originPath, changes: true) { inbound throws(DeskRefusal) in
                try await forgetOrigin(inbound)
            },
            .desk(Self.realmPath, changes: true) { inbound throws(DeskRefusal) in
                try await forgetRealm(inbound)
            },
            .desk(Self.devicePath, changes: true) { inbound throws(DeskRefusal) in
                try await forgetDevice(inbound)
            },
            .desk(Self.addressPath, changes: true) { inbound throws(DeskRefusal) in
                try await forgetAddress(inbound)
            }
        ]
    }

    /// Body: `id` or `host`, perhaps `instance`.
    private func forgetOrigin(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (id, servers) = try await instances.origin(inbound.object())
        let forgotten: ZulipForgotten?
        do throws(StoreError) { forgotten = try await servers.forget(id) } catch { throw .store(error) }
        guard let forgotten else { throw .status(404, "No origin of this id has signed up.") }
        return Self.counts([
            ("origins", forgotten.servers), ("hosts", forgotten.hosts), ("realms", forgotten.realms),
            ("devices", forgotten.devices)
        ])
    }

    /// Body: `realm` (UUID), perhaps `instance`.
    private func forgetRealm(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let (_, servers) = try instances.instance(body["instance"]?.string)
        guard let realm = body["realm"]?.string.flatMap({ UUIDText($0) }) else {
            throw .status(400, "A realm is named by its UUID.")
        }
        let forgotten: ZulipForgotten?
        do throws(StoreError) { forgotten = try await servers.forgetRealm(realm) } catch {
            throw .store(error)
        }
        guard let forgotten else { throw .status(404, "No origin has reported this realm.") }
        return Self.counts([("realms", forgotten.realms), ("devices", forgotten.devices)])
    }

    /// Body: `realm` (UUID) and `token_id` (base64), perhaps `instance`.
    private func forgetDevice(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let (_, servers) = try instances.instance(body["instance"]?.string)
        guard let realm = body["realm"]?.string.flatMap({ UUIDText($0) }),
            let token = body["token_id"]?.string.flatMap({ TokenID($0) })
        else { throw .status(400, "A device is named by realm, a UUID, and token_id, 12 characters.") }
        let devices: Int
        do throws(StoreError) { devices = try await servers.forgetDevice(realm, token) } catch {
            throw .store(error)
        }
        guard devices > 0 else { throw .status(404, "No such device is registered.") }
        return Self.counts([("devices", devices)])
    }

    /// Body: `address` (a device token), perhaps `app_id` for one that no app of the configuration has any
    /// more.
    private func forgetAddress(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let read = inbound.withBody { bytes -> (address: Secret, appID: String?)? in
            // Whatever cannot be read gets the same answer.
            try? Self.readAddress(bytes)
        }
        guard let read, (1...1024).contains(read.address.count) else {
            throw .status(400, "The body is a JSON object with an address, all of it texts.")
        }
        do throws(StoreError) {
            return try await forget(read.address, read.appID)
        } catch { throw .store(error) }
    }

    private static func readAddress(
        _ bytes: UnsafeRawBufferPointer
    ) throws(FormatError) -> (address: Secret, appID: String?) {
        var reader = JSONReader(bytes, depthLimit: 2)
        var address = Secret([])
        var appID: String?
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let value = try reader.readString()
            if name.equals("address") { address = value.secret() }
            if name.equals("app_id") { appID = value.string() }
        }
        try reader.end()
        return (address, appID)
    }

    /// All registrations and learned environments of one address, in one commit.
    private func forget(_ address: Secret, _ appID: String?) async throws(StoreError) -> [UInt8] {
        // Registrations are found by address over all instances; any of them can name the index.
        guard let servers = instances.first else { return Self.counts([("devices", 0), ("environments", 0)]) }
        var appIDs: [String?] = [nil]
        for app in configuration.apps {
            // A device may have named its topic with a push type's suffix.
            for bundle in app.apns?.bundles ?? [] {
                for suffix in Set(APNsPushType.allCases.map(\.topicSuffix)) { appIDs.append(bundle + suffix) }
            }
        }
        if let appID { appIDs.append(appID) }
        var devices: [RecordKey] = []
        for spelled in Self.spellings(address) {
            for appID in appIDs {
                let index = RecordIndex.address(servers.address(spelled, appID: appID))
                devices += try await registry.page(index, after: 0, limit: Self.registrations).map(\.key)
            }
        }
        var learned: [RecordKey] = []
        for spelled in Self.spellings(address) {
            for app in configuration.apps {
                learned.append(Environments.key(app: app.name, address: spelled))
            }
        }
        let found = try await registry.find(learned)
        learned = zip(learned, found).compactMap { $1 == nil ? nil : $0 }
        _ = try await registry.apply((devices + learned).map { .delete($0, if: .any) })
        return Self.counts([("devices", devices.count), ("environments", learned.count)])
    }

    /// As given, and where it is hexadecimal in both cases: devices register it as their app spells it.
    private static func spellings(_ address: Secret) -> [Secret] {
        address.reveal { bytes in
            guard bytes.allSatisfy({ Hex.value(ofDigit: $0) != nil }) else { return [address] }
            func folded(_ letters: ClosedRange<UInt8>) -> Secret {
                Secret(count: bytes.count) { out in
                    for index in 0..<out.count {
                        out[index] = letters.contains(bytes[index]) ? bytes[index] ^ 0x20 : bytes[index]
                    }
                }
            }
            let others = [folded(0x41...0x46), folded(0x61...0x66)]
            return [address] + others.filter { !($0 == address) }
        }
    }

    private static func counts(_ counts: [(name: StaticString, count: Int)]) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        for (name, count) in counts {
            json.key(name)
            json.int(Int64(count))
        }
        json.endObject()
        return json.bytes
    }
}
