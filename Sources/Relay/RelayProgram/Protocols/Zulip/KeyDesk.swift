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

    var calls: [AdminCall] { [.desk(Self.path, changes: false, list)] }

    private func list(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let (name, instance) = try instances.part(inbound.members["instance"]) { $0 as? ZulipInstance }
        let uses = try await stored { () throws(StoreError) in
            try await instance.servers.uses(of: instance.publicKeys)
        }
        let now = instance.servers.now()
        return JSONWriter.object { json in
            json.member("instance", name.text)
            json.objects("keys", uses) { use, json in
                json.member("public_key", use.publicKey)
                json.optional("since", use.since?.milliseconds)
                json.member("recent", use.count(within: ZulipLimits.keyUseDays, of: now))
                json.objects("days", use.days) { day, json in
                    json.member("day", day.day.milliseconds)
                    json.member("registrations", day.count)
                }
            }
        }
    }
}
