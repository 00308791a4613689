import AdminIngress
import AtRest
import HTTPIngress
import Primitives
import PushModel
import WireFormats

/// `POST /why/registration` at the admin listener: how registrations stand, and what became of their pushes
/// within the last week, without content, token or account.
///
/// Body: `address` (a device token), perhaps `app_id`; or `account`; or `code`, a support code; or names as
/// the protocol's other end has them, such as `realm` and `token_id`; perhaps `instance`. Times are
/// milliseconds of Unix time.
struct HistoryDesk: Sendable {
    static let path = "/why/registration"
    /// Registrations of one answer; one token or account rarely has more than a few.
    private static let most = 100
    /// Of one name, in bytes: a server's number or hash, an account.
    private static let nameBytes = 256

    let instances: DeskInstances
    let configuration: RelayConfiguration
    let store: OpenStore
    let history: HistoryKeeper
    let codes: CodeSearch

    var calls: [AdminCall] {
        [.desk(Self.path, takesBody: true) { inbound throws(DeskRefusal) in try await why(inbound) }]
    }

    /// What a body asks for.
    private struct Asked {
        var address: Secret?
        var account: String?
        var code: SupportCode?
        var names: [String: String] = [:]
        var appID: String?
        var instance: String?

        /// By how many things it names a registration; it must be one.
        var ways: Int {
            [address != nil, account != nil, code != nil, !names.isEmpty].count { $0 }
        }
    }

    private func why(_ inbound: HTTPInbound) async throws(DeskRefusal) -> [UInt8] {
        // Whatever cannot be read gets the same answer.
        guard let asked = inbound.withBody({ bytes in try? Self.read(bytes) }),
            asked.ways == 1
        else {
            throw .status(
                400, "The body is a JSON object with an address, an account, a code, or names; all texts.")
        }
        if let address = asked.address, !(1...DeskLimits.addressBytes).contains(address.count) {
            throw .status(400, "An address has 1 to 4096 bytes.")
        }
        if let code = asked.code { return try await find(code, asked) }
        do throws(StoreError) {
            return try await tell(try await find(asked))
        } catch { throw .store(error) }
    }

    private func find(_ code: SupportCode, _ asked: Asked) async throws(DeskRefusal) -> [UInt8] {
        do throws(StoreError) {
            let spaces = instances.registrationSpaces(at: asked.instance)
            if let found = try await codes.find(code, in: spaces, atMost: Self.most + 1) {
                return try await tell(found.records, isWhole: found.isWhole)
            }
        } catch { throw .store(error) }
        throw .status(409, "Another search for a code is under way. Ask again in a minute.")
    }

    private static func read(_ bytes: UnsafeRawBufferPointer) throws(FormatError) -> Asked {
        var reader = JSONReader(bytes, depthLimit: 2)
        var asked = Asked()
        try reader.beginObject()
        while let name = try reader.nextMember() {
            let key = name.string()
            let value = try reader.readString()
            switch key {
            case "address": asked.address = value.secret()
            case "app_id": asked.appID = value.string()
            case "instance": asked.instance = value.string()
            case "account": asked.account = value.string()
            case "code":
                guard let code = SupportCode(value.string()) else { throw FormatError(.wrongType) }
                asked.code = code
            default:
                let text = value.string()
                if text.utf8.count <= nameBytes, asked.names.count < 8 { asked.names[key] = text }
            }
        }
        try reader.end()
        return asked
    }

    private func find(_ asked: Asked) async throws(StoreError) -> [Record] {
        if let account = asked.account {
            return try await instances.registrations(
                ofAccount: account, at: asked.instance, in: store.sealed, atMost: Self.most + 1)
        }
        guard let address = asked.address else {
            return try await instances.registrations(named: asked.names, at: asked.instance)
        }
        var found: [Record] = []
        for index in instances.indexes(ofAddress: address, over: configuration, asked.appID) {
            let page = try await store.sealed.page(.address(index), after: 0, limit: Self.most + 1)
            found += page.filter { record in
                instances.devices(among: [record.key]) == 1
                    && (asked.instance == nil || asked.instance == record.key.space.instance)
            }
        }
        return found
    }

    /// - Parameter isWhole: whether all registrations were looked at.
    private func tell(_ records: [Record], isWhole: Bool = true) async throws(StoreError) -> [UInt8] {
        await history.write()
        var json = JSONWriter(reserving: 1_024)
        json.beginObject()
        json.key("history")
        json.string(history.isOn ? "on" : "off")
        json.member("more", records.count > Self.most)
        json.member("whole", isWhole)
        let gap = history.gap
        json.optional("uncounted_since", gap?.since.milliseconds)
        json.optional("uncounted_until", gap?.until.milliseconds)
        json.beginArray("registrations")
        for record in records.prefix(Self.most) {
            let digest = store.sealed.digest(of: record.key)
            let known = try await history.history(of: digest)
            Self.write(record, digest, known, &json)
        }
        json.endArray()
        json.endObject()
        return json.bytes
    }

    private static func write(
        _ record: Record, _ digest: Digest16, _ history: RegistrationHistory?, _ json: inout JSONWriter
    ) {
        json.beginObject()
        json.member("registration", RegistrationID(digest).logText)
        json.member("instance", record.key.space.instance)
        switch record.state {
        case .live: json.member("state", "live")
        case .tombstone: json.member("state", "ended")
        case .expired(let at):
            json.member("state", "expired")
            json.member("expired", at.milliseconds)
        }
        json.member("registered", record.touchedAt.milliseconds)
        json.member("ends", record.expiresAt.milliseconds)
        json.beginArray("pushes")
        for cell in history?.cells ?? [] {
            json.beginObject()
            json.member("from", cell.begins.milliseconds)
            json.member("until", cell.ends.milliseconds)
            json.member("event", cell.event.label)
            if !cell.reason.isEmpty { json.member("reason", cell.reason) }
            json.member("count", Int64(cell.count))
            json.member("last", cell.last.milliseconds)
            json.endObject()
        }
        json.endArray()
        json.endObject()
    }
}

extension Space {
    /// The instance whose room it is.
    var instance: String { text.split(separator: "/").first.map(String.init) ?? "" }
}
