import AdminIngress
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// The operator's calls about realms and their devices at the admin listener:
/// `GET /why/realm?realm=UUID&instance=NAME`, `GET /why/device?realm=UUID&token_id=ID` (or `&device_id=N`),
/// `POST /forget/realm` and `/forget/device`. Times are milliseconds of Unix time.
struct RealmDesk: Sendable {
    static let path = "/why/realm"
    static let devicePath = "/why/device"
    static let forgetRealmPath = "/forget/realm"
    static let forgetDevicePath = "/forget/device"

    let instances: DeskInstances

    var calls: [AdminCall] {
        [
            .desk(Self.path, changes: false) { inbound throws(DeskRefusal) in try await why(inbound) },
            .desk(Self.devicePath, changes: false) { inbound throws(DeskRefusal) in
                try await whyDevice(inbound)
            },
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
        json.member("instance", name.text)
        json.member("realm", realm.text)
        json.key("holder")
        if let found { Self.write(found, &json) } else { json.null() }
        if let found {
            json.member("reported", !found.realm.isLocallyDeleted)
            json.member("since", found.since.milliseconds)
        }
        json.endObject()
        return json.bytes
    }

    private static func write(_ found: ZulipServers.RealmHolder, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("id", found.realm.server.text)
        json.member("standing", found.server?.standing.ofOrigin.rawValue ?? "forgotten")
        json.member("host", found.server?.hostname ?? "")
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

    private func whyDevice(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let query = inbound.members
        let (name, servers) = try servers(query["instance"].map(String.init))
        guard let realm = query["realm"].flatMap({ UUIDText(String($0)) }),
            let device = Self.device(
                tokenID: query["token_id"].map(String.init), number: query["device_id"].map(String.init))
        else { throw Self.unnamed }
        let facts: ZulipServers.DeviceFacts?
        do throws(StoreError) { facts = try await servers.facts(ofDevice: device, in: realm) } catch {
            throw .store(error)
        }
        var json = JSONWriter(reserving: 256)
        json.beginObject()
        json.member("instance", name.text)
        json.key("device")
        if let facts { Self.write(facts, &json) } else { json.null() }
        json.endObject()
        return json.bytes
    }

    private static func write(_ facts: ZulipServers.DeviceFacts, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("state", facts.expired == nil ? "live" : "expired")
        json.optional("expired", facts.expired?.milliseconds)
        json.member("registered", facts.touchedAt.milliseconds)
        json.member("ends", facts.ends.milliseconds)
        json.optional("kind", facts.kind?.rawValue)
        json.optional("app", facts.appID)
        json.endObject()
    }

    private static let unnamed = DeskRefusal.status(
        400, "A device is named by realm, a UUID, and by token_id, 12 characters, or device_id, a number.")

    /// `nil` unless exactly one of the two is given, and is one.
    private static func device(tokenID: String?, number: String?) -> DeviceName? {
        switch (tokenID, number) {
        case (let text?, nil): TokenID(text).map { .token($0) }
        case (nil, let text?): CanonicalInteger.read(Array(text.utf8)).map { .number($0) }
        default: nil
        }
    }

    /// Body: `realm` (UUID) and `token_id` (base64) or `device_id` (decimal text), perhaps `instance`.
    private func forgetDevice(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let body = try inbound.object()
        let (_, servers) = try servers(body["instance"]?.string)
        guard let realm = body["realm"]?.string.flatMap({ UUIDText($0) }),
            let device = Self.device(
                tokenID: body["token_id"]?.string, number: body["device_id"]?.string)
        else { throw Self.unnamed }
        let devices: Int
        do throws(StoreError) { devices = try await servers.forgetDevice(realm, device) } catch {
            throw .store(error)
        }
        guard devices > 0 else { throw .status(404, "No such device is registered.") }
        return ForgetDesk.counts([("devices", devices)])
    }
}
