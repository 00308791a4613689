import AdminIngress
import HTTPIngress
import PushModel
import WireFormats

/// `GET /keys?instance=NAME`: which keys the instances, or one of them, have in force, and how often
/// registrations use them. Public halves alone; times are milliseconds of Unix time.
struct KeysDesk: Sendable {
    static let path = "/keys"

    let instances: DeskInstances

    var calls: [AdminCall] { [.desk(Self.path, takesBody: false, keys)] }

    private func keys(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        let asked = inbound.members["instance"]
        let found = try await stored { () throws(StoreError) in try await instances.keys(at: asked) }
        guard asked == nil || !found.isEmpty else {
            throw .status(404, "The configuration has no instance of that name.")
        }
        let rows = found.flatMap { instance, keys in keys.map { (instance, $0) } }
        return JSONWriter.object { json in
            json.objects("keys", rows) { row, json in
                let (instance, key) = row
                json.member("instance", instance.text)
                json.member("public_key", key.publicKey)
                json.object("uses", key.uses) { uses, json in
                    json.optional("since", uses.since?.milliseconds)
                    json.member("recent", uses.recent)
                    json.member("recent_days", uses.recentDays)
                    json.member("known_days", uses.knownDays)
                    json.objects("days", uses.days) { day, json in
                        json.member("day", day.day.milliseconds)
                        json.member("registrations", day.count)
                    }
                }
            }
        }
    }
}
