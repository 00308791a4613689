import AdminIngress
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// The operator's calls about realms at the admin listener: `GET /why/realm?realm=UUID&instance=NAME`,
/// `POST /forget/realm` and `/forget/device`. Times are milliseconds of Unix time.
struct RealmDesk: Sendable {
    static let path = "/why/realm"
    static let forgetRealmPath = "/forget/realm"
    static let forgetDevicePath = "/forget/device"

    let instances: DeskInstances

    var calls: [AdminCall] {
        [
            .desk(Self.path, changes: false) { inbound throws(DeskRefusal) in try await why(inbound) },
            .desk(Self.forgetRealmPath, changes: true) { inbound throws(DeskRefusal) in
                try await forgetRealm(inbound)
            },
            .desk(Self.forgetDevicePath, changes: true) { inbound throws(DeskRefusal) in
                try await forgetDevice(inbound)
            }
        ]
    }

    private func why(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let query = inbound.members
        let (name, servers) = try servers(query["instance"].map(String.init))
        guard let realm = query["realm"].flatMap({ UUIDText(String($0)) }) else {
            throw .status(400, "A realm is named by its UUID.")
        }
        let found: ZulipServers.RealmHolder?
        do throws(StoreError) { found = try await servers.holder(ofRealm: realm) } catch {
            throw .store(error)
        }
        var json = JSONWriter(reserving: 256)
        json.beginObject()
        json.key("instance")
        json.string(name.text)
        json.key("realm")
        json.string(realm.text)
        json.key("holder")
        if let found { Self.write(found, &json) } else { json.null() }
        if let found {
            json.key("reported")
            json.bool(!found.realm.isLocallyDeleted)
            json.key("since")
            json.int(found.since.milliseconds)
        }
        json.endObject()
        return json.bytes
    }

    private static func write(_ found: ZulipServers.RealmHolder, _ json: inout JSONWriter) {
        json.beginObject()
        json.key("id")
        json.string(found.realm.server.text)
        json.key("standing")
        json.string(found.server?.standing.ofOrigin.rawValue ?? "forgotten")
        json.key("host")
        json.string(found.server?.hostname ?? "")
        json.endObject()
    }

    private func servers(
        _ name: String?
    ) throws(DeskRefusal) -> (name: ConfiguredName, servers: ZulipServers) {
        let (name, servers) = try instances.part(name) { ($0 as? ZulipInstance)?.book }
        return (name, servers)
    }

    /// Body: `realm` (UUID), perhaps `instance`.
    private func forgetRealm(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let (_, servers) = try servers(body["instance"]?.string)
        guard let realm = body["realm"]?.string.flatMap({ UUIDText($0) }) else {
            throw .status(400, "A realm is named by its UUID.")
        }
        let forgotten: ZulipForgotten?
        do throws(StoreError) { forgotten = try await servers.forgetRealm(realm) } catch {
            throw .store(error)
        }
        guard let forgotten else { throw .status(404, "No origin has reported this realm.") }
        return ForgetDesk.counts([("realms", forgotten.realms), ("devices", forgotten.devices)])
    }

    /// Body: `realm` (UUID) and `token_id` (base64), perhaps `instance`.
    private func forgetDevice(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let (_, servers) = try servers(body["instance"]?.string)
        guard let realm = body["realm"]?.string.flatMap({ UUIDText($0) }),
            let token = body["token_id"]?.string.flatMap({ TokenID($0) })
        else { throw .status(400, "A device is named by realm, a UUID, and token_id, 12 characters.") }
        let devices: Int
        do throws(StoreError) { devices = try await servers.forgetDevice(realm, token) } catch {
            throw .store(error)
        }
        guard devices > 0 else { throw .status(404, "No such device is registered.") }
        return ForgetDesk.counts([("devices", devices)])
    }
}
