import AdminIngress
import Delivery
import HTTPIngress
import PushModel
import WireFormats

/// The operator's calls that forget: `POST /forget/origin` and `/forget/address`; protocols have calls of
/// their own beside them.
///
/// They answer with counts of records by kind. What a forgotten device is still owed goes with it
/// (decision 0081).
struct ForgetDesk: Sendable {
    static let originPath = "/forget/origin"
    static let addressPath = "/forget/address"
    /// Registrations of one address: one for each realm whose user has this phone.
    private static let registrations = 10_000

    let instances: DeskInstances
    let configuration: RelayConfiguration
    let registry: any Registry

    var calls: [AdminCall] {
        [
            .desk(Self.originPath, takesBody: true, forgetOrigin),
            .desk(Self.addressPath, takesBody: true, forgetAddress)
        ]
    }

    /// Body: `id` or `host`, perhaps `instance`.
    private func forgetOrigin(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (id, control) = try await instances.origin(inbound.object())
        let forgotten = try await stored { () throws(StoreError) in try await control.forgetOrigin(id) }
        guard let forgotten else { throw .status(404, "No origin of this id has signed up.") }
        return JSONWriter.object { $0.counts(forgotten) }
    }

    /// Body: `address` (a device token), perhaps `app_id` for one that no app of the configuration has any
    /// more.
    private func forgetAddress(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let read = inbound.withBody { bytes -> (address: Secret, appID: String?)? in
            // Whatever cannot be read gets the same answer.
            try? Self.readAddress(bytes)
        }
        guard let read, (1...DeskLimits.addressBytes).contains(read.address.count) else {
            throw .status(400, "The body is a JSON object with an address, all of it texts.")
        }
        let forgotten = try await stored { () throws(StoreError) in
            try await forget(read.address, read.appID)
        }
        return JSONWriter.object { $0.counts(forgotten) }
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
    private func forget(_ address: Secret, _ appID: String?) async throws(StoreError) -> [NamedCount] {
        let indexes = instances.indexes(ofAddress: address, over: configuration, appID)
        // Most spellings give the same keys; rows of earlier versions may stand under others.
        var learned: [RecordKey] = []
        for spelled in DeskInstances.spellings(address) {
            for app in configuration.apps {
                DeskInstances.add(Environments.key(app: app.name, address: spelled), to: &learned)
            }
        }
        var devices: [RecordKey] = []
        for index in indexes {
            let page = try await registry.page(.address(index), after: 0, limit: Self.registrations)
            devices += page.map(\.key)
        }
        let found = try await registry.find(learned)
        learned = zip(learned, found).compactMap { $1 == nil ? nil : $0 }
        _ = try await registry.apply((devices + learned).map { .delete($0, if: .any) })
        return [("devices", instances.devices(among: devices)), ("environments", learned.count)]
    }
}
