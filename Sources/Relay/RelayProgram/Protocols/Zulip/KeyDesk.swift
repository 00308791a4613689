import AdminIngress
import HTTPIngress
import PushModel
import WireFormats
import ZulipPush

/// The operator's question about a Zulip instance's keys at the admin listener:
/// `GET /keys/zulip?instance=NAME`. Public halves alone; times are milliseconds of Unix time.
struct KeyDesk: Sendable {
    static let path = "/keys/zulip"

    let instances: DeskInstances

    var calls: [AdminCall] {
        [.desk(Self.path, changes: false) { inbound throws(DeskRefusal) in try await list(inbound) }]
    }

    private func list(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (name, instance) = try instances.part(inbound.members["instance"].map(String.init)) {
            $0 as? ZulipInstance
        }
        let uses: [ZulipKeyUse]
        do throws(StoreError) { uses = try await instance.book.uses(of: instance.publicKeys) } catch {
            throw .store(error)
        }
        let now = instance.now()
        var json = JSONWriter(reserving: 512)
        json.beginObject()
        json.member("instance", name.text)
        json.beginArray("keys")
        for use in uses { Self.write(use, now, &json) }
        json.endArray()
        json.endObject()
        return json.bytes
    }

    private static func write(_ use: ZulipKeyUse, _ now: UnixTime, _ json: inout JSONWriter) {
        json.beginObject()
        json.member("public_key", use.publicKey)
        json.optional("since", use.since?.milliseconds)
        json.member("recent", Int64(use.count(within: ZulipLimits.keyUseDays, of: now)))
        json.beginArray("days")
        for (day, count) in use.days {
            json.beginObject()
            json.member("day", day.milliseconds)
            json.member("registrations", Int64(count))
            json.endObject()
        }
        json.endArray()
        json.endObject()
    }
}
