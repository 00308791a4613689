import AdminIngress
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// The operator's calls about realms and their devices at the admin listener:
/// `GET /why/realm?realm=UUID&instance=NAME`, `GET /why/device?realm=UUID&token_id=ID` (or `&device_id=N`),
/// `POST /forget/realm` and `/forget/device`. Times are milliseconds of Unix time.
struct ZulipDesk: Sendable {
    static let realmPath = "/why/realm"
    static let devicePath = "/why/device"
    static let forgetRealmPath = "/forget/realm"
    static let forgetDevicePath = "/forget/device"

    let instances: DeskInstances

    var calls: [AdminCall] {
        [
            .desk(Self.realmPath, takesBody: false, whyRealm),
            .desk(Self.devicePath, takesBody: false, whyDevice),
            .desk(Self.forgetRealmPath, takesBody: true, forgetRealm),
            .desk(Self.forgetDevicePath, takesBody: true, forgetDevice)
        ]
    }

    // MARK: Realms

    private func whyRealm(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let query = inbound.members
        let (name, servers) = try servers(query["instance"])
        let realm = try Self.realm(query["realm"])
        let found = try await stored { () throws(StoreError) in try await servers.holder(ofRealm: realm) }
        return JSONWriter.object { json in
            json.member("instance", name.text)
            json.member("realm", realm.text)
            json.object("holder", found) { found, json in
                json.member("id", found.realm.server.text)
                json.member("standing", found.server.map { "\($0.standing)" } ?? "forgotten")
                json.member("host", found.server?.hostname ?? "")
            }
            guard let found else { return }
            json.member("reported", !found.realm.isLocallyDeleted)
            json.member("since", found.since.milliseconds)
        }
    }

    /// Body: `realm` (UUID), perhaps `instance`.
    private func forgetRealm(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let servers = try servers(body["instance"]?.string).part
        let realm = try Self.realm(body["realm"]?.string)
        let forgotten = try await stored { () throws(StoreError) in try await servers.forgetRealm(realm) }
        guard let forgotten else { throw .status(404, "No origin has reported this realm.") }
        return JSONWriter.object {
            $0.counts([("realms", forgotten.realms), ("devices", forgotten.devices)])
        }
    }

    private func servers(
        _ name: String?
    ) throws(DeskRefusal) -> (name: ConfiguredName, part: ZulipServers) {
        try instances.part(name) { ($0 as? ZulipInstance)?.servers }
    }

    private static func realm(_ text: String?) throws(DeskRefusal) -> UUIDText {
        guard let realm = text.flatMap({ UUIDText($0) }) else {
            throw .status(400, "A realm is named by its UUID.")
        }
        return realm
    }

    // MARK: Devices

    private func whyDevice(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let query = inbound.members
        let (name, servers) = try servers(query["instance"])
        let (realm, device) = try Self.device { query[$0] }
        let facts = try await stored { () throws(StoreError) in
            try await servers.facts(ofDevice: device, in: realm)
        }
        return JSONWriter.object { json in
            json.member("instance", name.text)
            json.object("device", facts) { facts, json in
                json.member("state", facts.expired == nil ? "live" : "expired")
                json.optional("expired", facts.expired?.milliseconds)
                json.member("registered", facts.touchedAt.milliseconds)
                json.member("ends", facts.ends.milliseconds)
                json.optional("kind", facts.kind?.rawValue)
                json.optional("app", facts.appID)
            }
        }
    }

    /// Body: `realm` (UUID) and `token_id` (base64) or `device_id` (decimal text), perhaps `instance`.
    private func forgetDevice(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let servers = try servers(body["instance"]?.string).part
        let (realm, device) = try Self.device { body[$0]?.string }
        let devices = try await stored { () throws(StoreError) in
            try await servers.forgetDevice(realm, device)
        }
        guard devices > 0 else { throw .status(404, "No such device is registered.") }
        return JSONWriter.object { $0.member("devices", devices) }
    }

    /// - Parameter member: a member of the query or the body.
    private static func device(
        _ member: (String) -> String?
    ) throws(DeskRefusal) -> (realm: UUIDText, device: DeviceName) {
        guard let realm = member("realm").flatMap({ UUIDText($0) }),
            let device = DeviceName(tokenID: member("token_id"), number: member("device_id"))
        else {
            throw .status(
                400,
                "A device is named by realm, a UUID, and by token_id, 12 characters, or device_id, a number.")
        }
        return (realm, device)
    }
}
