import AdminIngress
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// `GET /why/realm?realm=UUID&instance=NAME` at the admin door: whose a realm is. Times are milliseconds of
/// Unix time.
struct RealmDesk: Sendable {
    static let path = "/why/realm"

    let instances: DeskInstances

    var calls: [AdminCall] {
        [.desk(Self.path, changes: false) { inbound throws(DeskRefusal) in try await why(inbound) }]
    }

    private func why(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let query = inbound.members
        let (name, servers) = try instances.instance(query["instance"].map(String.init))
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
        json.string(found.server?.standing.word ?? "forgotten")
        json.key("host")
        json.string(found.server?.hostname ?? "")
        json.endObject()
    }
}
